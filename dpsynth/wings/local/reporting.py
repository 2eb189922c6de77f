"""Reports made at the respondent's side, from records that stay there.

Invariant: a respondent makes one report of a contract, by one memory and under one name, however it is spelt.
It is remembered before it is returned, and returned again whenever she is asked, whatever her record says by
then. A record enters codes and random draws, and
nothing else.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa

from dpsynth.columns.codec import INVALID, Codes
from dpsynth.columns.column import Column
from dpsynth.errors import BudgetRefused, SourceError
from dpsynth.wings.local.contract import Contract, Question
from dpsynth.wings.local.memory import Memory
from dpsynth.wings.local.randomisers import Answer
from dpsynth.wings.local.randomisers.coins import dice
from dpsynth.wings.local.reports import Report

Records = Mapping[str, pa.StringArray]
"""The cells of records by column, as text; null is missing."""


def reports_of(
    contract: Contract,
    respondents: Sequence[str],
    records: Records,
    memory: Memory,
    cap: Fraction | None = None,
) -> list[Report]:
    """The reports of respondents, each once and in an order of no meaning.

    Sensitivity: a respondent's whole record may change.
    Distribution: that of the randomiser of the question that she draws, or of those of all questions.
    Cost: the contract's epsilon, once a respondent and contract.

    Args:
        contract: what they agreed to.
        respondents: whose each record is, in any spelling; of several records of one respondent the first is
            used.
        records: the cells of every column of the contract.
        memory: the memory of this side.
        cap: the most that a respondent's reports of all contracts may cost together; None for no cap.

    Raises:
        BudgetRefused: a respondent's reports would cost more than the cap; nothing was randomised.
    """
    first: dict[str, int] = {}
    for place, respondent in enumerate(respondents):
        first.setdefault(memory.named(respondent), place)
    new = [name for name in first if memory.report(name, contract.digest) is None]
    if cap is not None and any(memory.spent(name) + contract.epsilon > cap for name in new):
        raise BudgetRefused(
            f"The reports of a respondent would cost more than the cap of {float(cap):g} (--cap): this one "
            f"costs {float(contract.epsilon):.4g}. Nothing was randomised and nothing was sent."
        )
    places = np.array([first[name] for name in new], dtype=np.int64)
    if new:
        memory.add(
            contract.digest, contract.epsilon, dict(zip(new, _drawn(contract, records, places), strict=True))
        )
    found = [memory.report(name, contract.digest) for name in first]
    return sorted((report for report in found if report is not None), key=lambda report: report.id)


def _drawn(contract: Contract, records: Records, places: Codes) -> list[Report]:
    """A fresh report of each of some records."""
    codes = {c.name: c.encode(records[c.source])[places] for c in contract.compiled.columns}
    answers: defaultdict[int, list[tuple[int, Answer]]] = defaultdict(list)
    questions = contract.questions
    drawn = dice(len(questions), places.size) if contract.one else None
    for number, question in enumerate(questions):
        asked = np.arange(places.size) if drawn is None else np.flatnonzero(drawn == number)
        cells = _cells(contract, question, codes)[asked]
        for place, answer in zip(asked.tolist(), question.randomiser.randomise(cells), strict=True):
            answers[place].append((number, answer))
    return [Report(secrets.token_hex(16), tuple(answers[place])) for place in range(places.size)]


def _cells(contract: Contract, question: Question, codes: Mapping[str, Codes]) -> Codes:
    """The cell of the question's marginal for each record."""
    sizes = contract.domain.shape(question.columns)
    return np.ravel_multi_index([codes[c] for c in question.columns], sizes).astype(np.int64)


def single_record(contract: Contract, answers: Mapping[str, str | None]) -> Records:
    """One record from texts by column.

    Raises:
        SourceError: a column is unknown or left out, or a text is none of its values; no text is quoted.
    """
    columns = {c.name: c for c in contract.compiled.columns if not c.part_of}
    unknown = [name for name in answers if name not in columns]
    if unknown:
        raise SourceError(f"There is no column {unknown[0]!r} to answer; there are: {', '.join(columns)}.")
    records = {name: pa.array([answers.get(name)], pa.string()) for name in columns}
    for name, column in columns.items():
        _check(column, records[name], given=name in answers)
    return records


def _check(column: Column, text: pa.StringArray, *, given: bool) -> None:
    value = column.values_of(text)
    absent = value.null_count == 1 and not column.distinct
    if absent and not column.missing:
        raise SourceError(
            f"The answer to {column.name} is {'empty' if given else 'left out'}, and it may not be missing: "
            "give one of its values."
        )
    if not absent and value.null_count == 0 and int(column.codec.encode(value)[0]) == INVALID:
        labels = column.codec.labels
        some = ", ".join(labels[:8]) + (" …" if len(labels) > 8 else "")
        raise SourceError(f"The answer to {column.name} is none of its values, which are: {some}.")
