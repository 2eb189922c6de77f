"""Small collections for tests: a config, respondents with known records, and their reports."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.config import Spec, compiled
from dpsynth.wings.local.contract import Contract, contract_of
from dpsynth.wings.local.estimates import LocalAnswers, local_answers
from dpsynth.wings.local.reporting import Memory, reports_of
from dpsynth.wings.local.reports import Report, Tally

COLUMNS: Mapping[str, object] = {
    "sex": {"type": "category", "values": ["F", "M"], "missing": False},
    "plan": {"type": "category", "values": ["a", "b", "c"], "missing": False},
    "age": {"type": "integer", "min": 0, "max": 7, "missing": False},
}

Codes = Mapping[str, NDArray[np.int64]]


def spec_of(epsilon: object = 1, columns: Mapping[str, object] = COLUMNS, **more: object) -> Spec:
    """A config of the local model."""
    keys = {"release": "survey", "trust": "local", "privacy": {"epsilon": epsilon}, "columns": dict(columns)}
    return Spec.from_dict({**keys, **more})


def contract_for(epsilon: object = 1, columns: Mapping[str, object] = COLUMNS, **more: object) -> Contract:
    """The contract of such a config."""
    return contract_of(compiled(spec_of(epsilon, columns, **more)))


def respondents(number: int) -> Codes:
    """Codes of so many records, in which the columns are related."""
    rng = np.random.default_rng(5)
    sex = (rng.random(number) < 0.3).astype(np.int64)
    plan = np.where(rng.random(number) < 0.6, sex, rng.integers(0, 3, number))
    age = np.minimum(rng.poisson(1.0 + 2 * plan), 7)
    return {"sex": sex, "plan": plan.astype(np.int64), "age": age.astype(np.int64)}


def texts_of(contract: Contract, codes: Codes) -> dict[str, pa.StringArray]:
    """The records as text."""
    labels = {c.name: np.array(c.codec.labels) for c in contract.compiled.columns}
    return {name: pa.array(labels[name][codes[name]].tolist(), pa.string()) for name in labels}


def tally_of(contract: Contract, reports: Sequence[Report]) -> Tally:
    """The tally of reports."""
    tally = Tally(tuple([] for _ in contract.questions), len(reports))
    for report in reports:
        for number, answer in report.answers:
            tally.answers[number].append(answer)
    return tally


def collected(contract: Contract, codes: Codes, folder: Path) -> LocalAnswers:
    """The debiased answers of fresh reports of all respondents."""
    people = [str(i) for i in range(len(next(iter(codes.values()))))]
    path = folder / "memory.jsonl"
    path.unlink(missing_ok=True)
    with Memory(path) as memory:
        reports = reports_of(contract, people, texts_of(contract, codes), memory)
    return local_answers(contract, tally_of(contract, reports))


def truth_of(contract: Contract, codes: Codes, clique: tuple[str, ...]) -> NDArray[np.float64]:
    """The respondents' own marginal."""
    shape = contract.domain.shape(clique)
    cells = np.ravel_multi_index([codes[c] for c in clique], shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


def cliques_of(contract: Contract) -> list[tuple[str, ...]]:
    """All single columns, and all pairs that are asked."""
    return [
        *((c,) for c in contract.domain.columns),
        *(q.columns for q in contract.questions if len(q.columns) > 1),
    ]
