"""A public table, whose counts the model may rest on beside the private table's answers.

A public sample of the same population, or a synthetic table released before, shows relations of columns. Its
rows are not the private table's, so its counts are discounted, and its relations are tested
(``with_public_relations``). Wherever a number rests on it, the bundle says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import inf, sqrt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.accounting.calibration import mean_absolute_error
from dpsynth.columns.column import Column, domain_of
from dpsynth.columns.domain import Clique, Compression
from dpsynth.columns.measurement import Observation, PublicCounts
from dpsynth.errors import ConfigError
from dpsynth.model import Fit
from dpsynth.model.measurement_file import Answered
from dpsynth.model.reused_answers import MOST_BEFORE, ReusedAnswers, within
from dpsynth.plan.questions import Door
from dpsynth.strategy.allocation import MEASURED_A_COLUMN
from dpsynth.strategy.strategy import Problem

MOST_CELLS, MOST_PAIR = 20_000_000, 200_000
"""Largest number of cells of all counted pairs of columns, fewest cells first, and of one pair."""

_EXACT = 1e-3
"""Nominal noise of exact counts, in rows."""


@dataclass(frozen=True)
class PublicUse:
    """The use of a public table.

    Attributes:
        sha256: digest of its file.
        columns: the private table's columns that it has.
        equivalent_rows: number of random rows of the private table's population with as much information.
        cliques: the pairs whose counts are in the model; none where their signal was too small.
    """

    sha256: str
    rows: int
    columns: tuple[str, ...]
    equivalent_rows: float
    cliques: tuple[Clique, ...] = ()

    def to_json(self) -> dict[str, object]:
        return {
            "sha256": self.sha256,
            "rows": self.rows,
            "columns": list(self.columns),
            "equivalent_rows": round(self.equivalent_rows, 1),
            "in_the_model_together": [list(clique) for clique in self.cliques],
        }


@dataclass(frozen=True, eq=False)
class PublicTable:
    """A public table, its cells as text: of each requested column that it has, batch by batch."""

    sha256: str
    rows: int
    texts: Mapping[str, Sequence[pa.DictionaryArray]]

    @staticmethod
    def of(
        path: Path, batches: Iterable[Mapping[str, pa.StringArray]], columns: Sequence[Column]
    ) -> PublicTable:
        """The table in a file, from its columns as text.

        Raises:
            ConfigError: it has no rows, or a column without any value of the private table's column.
        """
        texts: dict[str, list[pa.DictionaryArray]] = {}
        rows = 0
        for batch in batches:
            for name, cells in batch.items():
                texts.setdefault(name, []).append(pc.dictionary_encode(cells, null_encoding="encode"))
            rows += len(next(iter(batch.values())))
        if not rows:
            raise ConfigError(f"public_table.path: {path} has no rows. Nothing was charged.")
        with path.open("rb") as file:
            table = PublicTable(hashlib.file_digest(file, "sha256").hexdigest(), rows, texts)
        for column in columns:
            if column.source in texts and column.search is None and not table._usable(column):
                raise ConfigError(
                    f"public_table.path: no cell of column '{column.name}' of {path} is a value that the "
                    "config declares for it. Spell its values as the private table does, or remove the "
                    "column from that file. Nothing was charged."
                )
        return table

    def _usable(self, column: Column) -> bool:
        cells = len(column.codec.labels)
        found = (column.codec.encode(column.values_of(t.dictionary)) for t in self.texts[column.source])
        return any(((codes >= 0) & (codes < cells)).any() for codes in found)

    def _codes(self, column: Column) -> NDArray[np.int64]:
        parts = [
            column.encode(t.dictionary)[t.indices.to_numpy(zero_copy_only=False)]
            for t in self.texts[column.source]
        ]
        return np.concatenate(parts)

    def use(self, reused: ReusedAnswers, rows: float) -> PublicUse | None:
        """The use of the table, for reports; None if its counts were not used."""
        if reused.public is None:
            return None
        # Of a drift K n/m a cell, n/m is the sampling error of now's rows; a sample of w rows has n^2/(w m).
        equivalent_rows = rows / (reused.public[0].squared / rows - 1)
        return PublicUse(self.sha256, self.rows, tuple(self.texts), equivalent_rows)

    def answered(self, columns: Sequence[Column]) -> Answered:
        """The counts of its rows, of every column that it has, and of pairs of these columns.

        They are exact; the sampling error of its rows is a part of the ``Drift`` to those of another table.
        """
        common = [c for c in columns if c.name in self.texts]
        domain, codes = domain_of(common), {c.name: self._codes(c) for c in common}
        pairs = [p for p in combinations(domain.columns, 2) if domain.cells(p) <= MOST_PAIR]
        pairs.sort(key=domain.cells)
        reached = np.cumsum([domain.cells(p) for p in pairs])
        kept = pairs[: int(np.searchsorted(reached, MOST_CELLS, side="right"))]

        def counted(clique: Clique) -> PublicCounts:
            shape = domain.shape(clique)
            cells = np.ravel_multi_index(tuple(codes[c] for c in clique), shape)
            values = np.bincount(cells, minlength=domain.cells(clique)).reshape(shape)
            return PublicCounts(clique, values.astype(np.int64), "gaussian", _EXACT)

        total = PublicCounts((), np.array(self.rows), "none", 0.0)
        singles = (total, *(counted((c,)) for c in domain.columns))
        return Answered(singles, tuple(counted(p) for p in kept), Compression({}))


ASKED = 8
"""Number of pairs whose distances are asked for."""

PART = Fraction(1, 10)
"""The part of the structure budget that the test costs."""


def with_public_relations(
    door: Door, problem: Problem, start: Fit, public: Sequence[Observation]
) -> tuple[Problem, tuple[Observation, ...]]:
    """The problem with the public table's counts if they pass a private test, and the counts that are used.

    Agreement in single columns does not show agreement in relations: a table whose columns were sorted one by
    one has the right columns and only wrong relations. So the noisy distances of the public table's most
    informative pairs are asked for twice: from the model with the public table, and from the model without
    it, which ``problem.start`` is. The public table is used unless the first sum exceeds the second by a
    standard deviation. For two sums of ``ASKED`` distances a small part of the structure budget is enough,
    but for a small table; then the public table is used. The budget for measuring is not touched.

    Counts less precise than the release's own measurements would be are left out. A strategy that chooses
    nothing has no budget for the test: then all evidence is used, at its discount. The evidence has the most
    informative first.
    """
    if not public:
        return problem, ()
    usual = (door.remaining - problem.structure) / (MEASURED_A_COLUMN * len(problem.domain.columns))
    error = door.cell_error(usual) if problem.structure and usual > 0 else inf
    precise = [m for m in public if mean_absolute_error(m.noise, m.scale) <= error]
    used = within(problem.domain, problem.given, precise, min(problem.max_cells // 2, MOST_BEFORE))
    if not used:
        return problem, ()
    believing = replace(problem, earlier=(*problem.earlier, *used), believed=used)
    believing = replace(believing, start=believing.refit((), start))
    price = problem.structure * PART
    if not price:
        return believing, used
    pairs = [m.clique for m in used[:ASKED]]
    (with_it, spread), (without, _) = (
        door.errors(pairs, p.start.model, price / 2) for p in (believing, problem)
    )
    left = problem.structure - price
    if int(with_it.sum()) - int(without.sum()) < sqrt(2 * len(pairs)) * spread:
        return replace(believing, structure=left), used
    return replace(problem, structure=left), ()
