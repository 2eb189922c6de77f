"""Sources of reused answers: earlier releases of the dataset, and a public table.

A public sample of the same population, or a synthetic table released before, shows relations of columns. Its
rows are not the private table's, so its counts are discounted, and its relations are tested
(``with_public_relations``).

Invariant: only published files are read, and only of releases that the ledger has as closed, whose cost is
counted. What is used is fixed when a release begins, before anything is charged, with a checksum of each: a
resumed release goes on with the same answers or ends with an error.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from itertools import combinations
from math import inf, sqrt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.accounting.amount import Amount, float_up
from dpsynth.accounting.calibration import mean_absolute_error
from dpsynth.accounting.slices import Slice
from dpsynth.columns.column import Column, domain_of
from dpsynth.columns.domain import Clique, Compression
from dpsynth.columns.measurement import Observation, PublicCounts
from dpsynth.errors import ConfigError
from dpsynth.ledger.balance import Balance, ReleaseEntry
from dpsynth.model import Fit
from dpsynth.model.measurement_file import Answered, UnusableMeasurements, read_measurements
from dpsynth.model.reused_answers import MOST_BEFORE, ReusedAnswers, discrepancy, within
from dpsynth.plan.questions import Door
from dpsynth.strategy.reuse_record import EarlierRelease, PublicUse, Reused
from dpsynth.strategy.strategy import Problem

MOST_CELLS, MOST_PAIR = 20_000_000, 200_000
"""Largest number of cells of all counted pairs of columns, fewest cells first, and of one pair."""

_EXACT = 1e-3
"""Nominal noise of exact counts, in rows."""


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

        The numbers are exact. The sampling error of its rows is a part of the ``Drift`` from them to the rows
        of another table. All columns have found cells.
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

_MEASURED_A_COLUMN = Fraction(5, 2)
"""Approximate number of pairs that a strategy measures for each column."""


def with_public_relations(
    door: Door, problem: Problem, start: Fit, public: Sequence[Observation]
) -> tuple[Problem, tuple[Observation, ...]]:
    """The problem with the public table's counts if they pass a private test, and the counts that are used.

    Agreement in single columns does not show agreement in relations: a table whose columns were sorted one by
    one has the right columns and only wrong relations. So the noisy distances of the public table's most
    informative pairs are asked for twice: from the model with the public table, and from the model without
    it. The public table is used unless the first sum exceeds the second by a standard deviation. For two sums
    of ``ASKED`` distances a small part of the structure budget is enough, but for a small table; then the
    public table is used. Without a public table nothing is asked, and the budget for measuring is not
    touched.

    Counts less precise than the release's own measurements would be are left out. A strategy that chooses
    nothing has no budget for the test: then all evidence is used, at its discount.

    Args:
        problem: the problem without the public table; its ``start`` holds everything else.
        public: the public table's evidence, the most informative first.
    """
    if not public:
        return problem, ()
    usual = (door.remaining - problem.structure) / (_MEASURED_A_COLUMN * len(problem.domain.columns))
    error = door.cell_error(usual) if problem.structure and usual > 0 else inf
    precise = [m for m in public if mean_absolute_error(m.noise, m.scale) <= error]
    used = within(problem.domain, problem.given, precise, min(problem.max_cells // 2, MOST_BEFORE))
    if not used:
        return problem, ()
    believing = replace(problem, earlier=(*problem.earlier, *used))
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


MOST_PERIODS = 24
"""Largest number of earlier periods that are used: the last ones."""

AGREEMENT = 6.0
"""Largest discrepancy, in standard deviations beyond noise, of answers about the same rows."""


def earlier_releases(
    account: Balance | None,
    adding: Amount,
    part: Slice | None,
    columns: Sequence[Column],
    outputs: Path,
    *,
    same_period: bool,
    earlier_periods: bool,
) -> tuple[Reused, tuple[str, ...]]:
    """The releases that serve as evidence, and a public sentence on each that can't.

    The ledger has one unit for a dataset, and releases from before a change of it don't serve: so the
    contributions to all that do were bounded alike. But where a person has more rows than the contribution
    bound, each release draws the rows that count anew: answers about the same slice are then about nearly the
    same rows.

    Args:
        account: the dataset's account before this release reserved; None if there is none.
        adding: (epsilon, delta) of this release.
        part: the slice that it is about; None for the whole table, of which each release is a period.
        columns: its public schema, which an earlier release must have had too.
        outputs: folder of the bundles, each in ``<release>/<release id>``.
        same_period: true to use answers about the same slice.
        earlier_periods: true to use answers about earlier slices.
    """
    closed = [
        e for e in ([] if account is None else account.releases) if e.state == "closed" and e.changed is None
    ]
    wanted = [(e, 0) for e in closed if same_period and part is not None and e.part == part]
    if earlier_periods:
        wanted += _before(closed, part)
    found, left_out = [], []
    for entry, periods in wanted:
        path = _path(outputs, entry.release, entry.release_id)
        try:
            read_measurements(path, columns)
            digest = _checked(path)
        except UnusableMeasurements as error:
            left_out.append(f"Release {entry.release_id} is not used as evidence: {error}.")
            continue
        found.append(EarlierRelease(entry.release, entry.release_id, entry.part, periods, digest))
    # Of releases that nothing bounds for persons, the bundle says so.
    known = None if account is None else account.of_unit
    before = Amount() if known is None else Amount(known.epsilon_used, known.delta_used)
    so_far = before + adding
    return Reused(tuple(found), (float_up(so_far.epsilon), float_up(so_far.delta))), tuple(left_out)


def answers_of(reused: Reused | None, columns: Sequence[Column], outputs: Path) -> tuple[Answered, ...]:
    """The answers of the releases that serve as evidence.

    Raises:
        ConfigError: a bundle is gone, or has changed since this release began.
    """
    found = []
    for release in () if reused is None else reused.releases:
        path = _path(outputs, release.release, release.release_id)
        try:
            if _digest(path) != release.sha256:
                raise UnusableMeasurements("its measurements.parquet is not what it was")
            found.append(read_measurements(path, columns))
        except UnusableMeasurements as error:
            raise ConfigError(
                f"This release began with the answers of release {release.release_id} as evidence, and can't "
                f"go on without: {error}. Put {path} back as it was."
            ) from None
    return tuple(found)


def weighted_evidence(
    reused: Reused | None,
    answers: Sequence[Answered],
    columns: Sequence[Column],
    singles: Sequence[Observation],
    public: Answered | None = None,
) -> tuple[ReusedAnswers, Reused | None]:
    """The evidence of earlier releases and of a public table, and the record of the releases' use.

    ``singles`` are the total and the one-way answers of this release.
    """
    domain = domain_of(columns)
    pairs = [] if reused is None else list(zip(reused.releases, answers, strict=True))
    same = [(r, a) for r, a in pairs if not r.periods]
    differing = frozenset(r.release_id for r, a in same if discrepancy(singles, a.singles) > AGREEMENT)
    evidence = ReusedAnswers.of(
        domain,
        singles,
        [a for r, a in same if r.release_id not in differing],
        [(r.periods, a) for r, a in pairs if r.periods],
        public,
    )
    return evidence, None if reused is None else replace(reused, differing=differing)


def _before(closed: Sequence[ReleaseEntry], part: Slice | None) -> list[tuple[ReleaseEntry, int]]:
    """Releases of earlier periods, each with its age in periods, the last ones first."""
    earlier = [e for e in reversed(closed) if _is_before(e.part, part)]
    # Values have no order but that of their releases; the sort keeps it.
    earlier.sort(key=lambda e: (e.part and e.part.start) or date.min, reverse=True)
    periods: dict[object, int] = {}
    found = []
    for entry in earlier:
        ago = periods.setdefault(entry.part or entry.release_id, len(periods) + 1)
        if ago <= MOST_PERIODS:
            found.append((entry, ago))
    return found


def _is_before(other: Slice | None, part: Slice | None) -> bool:
    """True if a slice with a closed release is an earlier period than another."""
    if part is None or other is None:
        return part is other
    if part.column != other.column or part.overlaps(other):
        return False
    return part.start is other.start or (
        part.start is not None and other.start is not None and other.start < part.start
    )


def _path(outputs: Path, release: str, release_id: str) -> Path:
    return outputs / release / release_id / "public" / "measurements.parquet"


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UnusableMeasurements("its measurements.parquet can't be opened") from error


def _checked(path: Path) -> str:
    """The checksum of a file, which agrees with its bundle's manifest."""
    digest = _digest(path)
    try:
        listed = json.loads((path.parent / "manifest.json").read_text(encoding="utf-8"))
        recorded = listed["files"][path.name]["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnusableMeasurements("its manifest.json can't be read") from error
    if digest != recorded:
        raise UnusableMeasurements("its measurements.parquet is not what its manifest says")
    return digest
