"""The owner's rule on overlapping questions: the sets of two questions share few rows, or are the same.

Dobkin, Jones and Lipton (1979): if each set has k rows and two sets share r at most, an exact sum can't be
computed from fewer than 1 + (k - 1)/r answers. Here answers have noise, and the bundle's files can be
computed on without asking, so that the rule protects nobody: it adds nothing to the guarantee.

A set is made of the synthetic rows that satisfy a question's condition, one set a group. A set of a new
question that shares too many rows with a set that was answered before, and is not the same, is withheld.

Invariant: what was asked is remembered at the asker's side alone, and only the texts of questions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpsynth.bundle.recipient.bundle import Bundle
from dpsynth.bundle.recipient.query import Answer, AnswerRow
from dpsynth.bundle.recipient.question import QuestionRefused, question_in
from dpsynth.bundle.recipient.rows_as_text import synthetic_codes
from dpsynth.columns.domain import Clique
from dpsynth.errors import ConfigError
from dpsynth.statistics.conditions import condition_of
from dpsynth.statistics.group_figures import UNDEFINED

MEMORY = Path("dpsynth") / "questions"
_NO_SET = -1

Rows = NDArray[np.int64]
Codes = Mapping[str, NDArray[np.unsignedinteger]]


@dataclass(frozen=True, eq=False)
class _Set:
    """The set of one group of a question, bool[rows]."""

    rows: NDArray[np.bool_]

    def close(self, other: _Set, most: int) -> bool:
        """True if two sets share more rows than allowed, and are not the same."""
        shared = int((self.rows & other.rows).sum())
        return shared > most and not (shared == int(self.rows.sum()) == int(other.rows.sum()))


@dataclass(eq=False)
class Asked:
    """The sets that were answered, in memory; the file of questions, if there is one.

    Attributes:
        path: a file with a question a line; None keeps them in memory alone.
    """

    path: Path | None = None
    _sets: list[_Set] = field(default_factory=list)
    _codes: Codes | None = None

    def kept_apart(self, bundle: Bundle, answer: Answer) -> Answer:
        """The answer, without the rows whose sets share too many rows with sets that were answered before.

        Without the owner's rule, the answer as it is.

        Raises:
            ConfigError: the file of questions can't be used.
        """
        most = bundle.manifest.get("maximum_set_overlap")
        if not isinstance(most, int):
            return answer
        if self._codes is None:
            self._codes = synthetic_codes(bundle)
            for text in self._remembered():
                self._add(_sets_of(bundle, self._codes, text), most)
        sets = _sets_of(bundle, self._codes, answer.question.written)
        answered = self._add(sets, most)
        if answered:
            self._remember(answer.question.written)
        rows = tuple(r if r.labels in answered or r.labels not in sets else _withheld(r) for r in answer.rows)
        return replace(answer, rows=rows, maximum_set_overlap=most)

    def _add(self, sets: Mapping[Clique, _Set], most: int) -> set[Clique]:
        """Take up the sets that may be answered; returns the labels of their groups."""
        free = {labels for labels, own in sets.items() if not any(own.close(s, most) for s in self._sets)}
        self._sets += [sets[labels] for labels in sets if labels in free]
        return free

    def _remembered(self) -> Sequence[str]:
        if self.path is None or not self.path.exists():
            return ()
        try:
            return self.path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            raise ConfigError(
                f"The file of earlier questions {self.path} can't be read. Give another with --asked."
            ) from None

    def _remember(self, text: str) -> None:
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(" ".join(text.split()) + "\n")
        except OSError as error:
            raise ConfigError(
                f"The file of earlier questions {self.path} can't be written: {error.strerror}. Give another "
                "with --asked."
            ) from None


def default_memory(bundle: Bundle) -> Path:
    """The file of the questions asked of a bundle, in the user's folder of states."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / MEMORY / f"{Path(str(bundle.manifest.get('release_id'))).name}.txt"


def _withheld(row: AnswerRow) -> AnswerRow:
    return AnswerRow(row.labels, UNDEFINED, None, "withheld")


def _sets_of(bundle: Bundle, codes: Codes, text: str) -> dict[Clique, _Set]:
    """The set of each group of a question, by its labels; a row that may satisfy the condition is in."""
    layout = bundle.rows.layout
    try:
        question = question_in(text, layout)
    except QuestionRefused:
        # A line that somebody has added to the file.
        return {}
    where = condition_of(question.where, layout, bundle.rules)
    rows = len(next(iter(codes.values())))
    inside = np.ones(rows, np.bool_)
    for name, mask in where.masks.items():
        inside &= mask[codes[name]]
    for factor in where.factors:
        inside &= factor.most[tuple(codes[name] for name in factor.columns)] > 0
    columns = {column.name: column for column in layout.columns}
    group = np.zeros(rows, np.int64)
    for name in question.by:
        group = group * columns[name].size + codes[name]
    group[~inside] = _NO_SET
    found: dict[Clique, _Set] = {}
    for number in np.unique(group[inside]).tolist():
        members = group == number
        first = int(np.argmax(members))
        found[tuple(columns[name].labels[int(codes[name][first])] for name in question.by)] = _Set(members)
    return found
