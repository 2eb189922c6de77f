"""The exam of a synthetic table: the measured error of its marginals, with 95 % limits.

An error is a total variation distance: the share of the rows that would have to change so that a marginal of
the synthetic table were that of the private table. It is half of an L1 distance that the curator has measured
with noise, so each has an interval that follows from the noise alone, without any model. The errors of the
model's figures follow from the exam, so that they hold whatever the model lacks (``ExaminedCells``).

Invariant: post-processing. All of it is made from noisy distances and public facts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import log, pi, sqrt
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dpsynth.accounting.calibration import reach
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.measurement import Classified, Examined, Kind, NoisyDistances
from dpsynth.statistics.estimates import ALL, HOLDS, LEAST_ROWS, Z95, Counts, Numbers, Place, Unbiased, ratio

if TYPE_CHECKING:
    import pandas as pd

FILE = "exam.csv"
BASES = ("measured", "public", "earlier", "through others", "independent")
"""The ways in which columns can be related in the model, see ``Basis.of``."""

_TAIL = log(20)
"""Half the width of the 95 % interval of an error, by its expected size."""
_FURTHER = 2.5
"""Size of errors that shift a sum in one direction, by the expected size: groups are not equally far off."""


@dataclass(frozen=True)
class Distance:
    """A measured L1 distance of a clique, in rows.

    Attributes:
        expected: the noisy distance, at least 0, and one standard error of its noise: intervals would be too
            short where noise has made a distance small.
        highest: its upper 95 % limit.
    """

    expected: float
    highest: float


Distances = Mapping[frozenset[str], Distance]
"""The measured distance of each examined clique, by its columns."""


@dataclass(frozen=True)
class Basis:
    """The marginals that a table rests on, by provenance.

    Attributes:
        measured: cliques that this release has measured.
        public: cliques with public marginals.
        earlier: cliques from earlier releases or a public table.
    """

    measured: Sequence[Clique]
    public: Sequence[Clique] = ()
    earlier: Sequence[Clique] = ()

    def of(self, clique: Clique) -> str:
        """The first of ``BASES`` that is true of some columns.

        "measured", "public" or "earlier" if a marginal of that provenance holds all of them; "through others"
        if marginals connect them; "independent" if one is taken to be independent of another.
        """
        for name, holding in zip(BASES, self._holding, strict=False):
            if set.intersection(*(holding.get(column, set()) for column in clique)):
                return name
        joined = {self._parts.get(column, column) for column in clique}
        return "through others" if len(joined) == 1 else "independent"

    @cached_property
    def _holding(self) -> list[dict[str, set[int]]]:
        """For each provenance the places of the cliques that hold a column, by column."""
        found: list[dict[str, set[int]]] = []
        for cliques in (self.measured, self.public, self.earlier):
            found.append({})
            for place, clique in enumerate(cliques):
                for column in clique:
                    found[-1].setdefault(column, set()).add(place)
        return found

    @cached_property
    def _parts(self) -> dict[str, str]:
        part: dict[str, str] = {}
        for clique in (*self.measured, *self.public, *self.earlier):
            joined = {part.get(c, c) for c in clique}
            part |= dict.fromkeys(clique, clique[0]) | {c: clique[0] for c, p in part.items() if p in joined}
        return part


@dataclass(frozen=True)
class MeanError:
    """The mean error of some marginals, with its 95 % limits."""

    number: int
    mean_error: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Exam:
    """The measured errors of a finished synthetic table.

    Attributes:
        distances: the noisy distances; None if an interruption has lost them.
        rows: number of rows that the synthetic table's counts were scaled to.
        classified: the noisy counts of right guesses, of each classifier that acceptance criteria ask for.
    """

    examined: Sequence[Examined]
    distances: NoisyDistances | None
    rows: int
    domain: Domain
    basis: Basis
    classified: tuple[Classified, ...] = ()

    @property
    def standard_error(self) -> float:
        """Standard error of one error, a share of the rows; NaN if the distances are lost."""
        return float("nan") if self.distances is None else self.distances.stddev / (2 * self.rows)

    @property
    def reach(self) -> float:
        """Half the width of the 95 % interval of one error."""
        assert self.distances is not None
        return reach(self.distances.noise, self.distances.scale) / (2 * self.rows)

    @cached_property
    def bases(self) -> list[str]:
        return [self.basis.of(e.clique) for e in self.examined]

    @cached_property
    def raw(self) -> Numbers:
        """Unbiased error of each marginal, float64[examined]; noise may take it below 0 or above 1."""
        assert self.distances is not None
        return self.distances.values / (2.0 * self.rows)

    @property
    def by_columns(self) -> dict[frozenset[str], Distance]:
        """For the columns of each marginal the distance that intervals of its figures rest on, in rows."""
        if self.distances is None:
            return {}
        values, stddev = self.distances.values.tolist(), self.distances.stddev
        highest = reach(self.distances.noise, self.distances.scale)
        return {
            frozenset(e.clique): _resting_on(v, stddev, highest)
            for e, v in zip(self.examined, values, strict=True)
        }

    @cached_property
    def _limits(self) -> tuple[Numbers, Numbers]:
        wide = self.reach
        return np.clip(self.raw - wide, 0.0, 1.0), np.clip(np.maximum(self.raw, 0.0) + wide, 0.0, 1.0)

    def mean_error(
        self, kind: Kind, basis: str = "", of: Callable[[Clique], bool] = lambda _: True
    ) -> MeanError | None:
        """The mean error of marginals of a kind and a basis, with its limits; of some cliques alone."""
        if self.distances is None:
            return None
        found = zip(self.examined, self.bases, strict=True)
        spots = [i for i, (e, b) in enumerate(found) if e.kind == kind and basis in ("", b) and of(e.clique)]
        if not spots:
            return None
        mean = float(self.raw[spots].mean())
        # A sum of Laplace noises has lighter tails than one, so its reach holds for means too.
        wide = self.reach / sqrt(len(spots))
        low, middle, high = (min(max(x, 0.0), 1.0) for x in (mean - wide, mean, max(mean, 0.0) + wide))
        return MeanError(len(spots), middle, low, high)

    @property
    def pairs(self) -> MeanError | None:
        return self.mean_error("pair")

    @property
    def pairs_by_basis(self) -> dict[str, MeanError]:
        return {name: error for name in BASES if (error := self.mean_error("pair", name)) is not None}

    @property
    def triples(self) -> MeanError | None:
        return self.mean_error("triple")

    @property
    def links(self) -> MeanError | None:
        """The mean error of columns together with those of the row before."""
        return self.mean_error("link")

    @cached_property
    def table(self) -> pa.Table:
        """A row a marginal, pairs first, as docs/exam.md describes it; empty if the distances are lost."""
        if self.distances is None:
            return pa.table({})
        examined, (low, high) = self.examined, self._limits
        columns = {"kind": pa.array([e.kind for e in examined])}
        for i in range(max(len(e.clique) for e in examined)):
            columns[f"column_{i + 1}"] = pa.array([(*e.clique, "", "", "")[i] for e in examined])
        columns["basis"] = pa.array(self.bases)
        columns["cells"] = pa.array([self.domain.cells(e.clique) for e in examined])
        columns["distance"] = pa.array(self.distances.values)
        columns["error"] = pa.array(np.clip(self.raw, 0.0, 1.0))
        columns["standard_error"] = pa.array(np.full(len(examined), self.standard_error))
        return pa.table(columns | {"low": pa.array(low), "high": pa.array(high)})

    def to_json(self) -> dict[str, object]:
        asked: dict[str, object] = {
            "answered": self.distances is not None,
            "marginals": len(self.examined),
            "rows": self.rows,
            **({"classified": [asdict(each) for each in self.classified]} if self.classified else {}),
        }
        if self.distances is None:
            return asked
        return asked | {
            "noise": self.distances.noise,
            "scale": self.distances.scale,
            "standard_error": self.standard_error,
            "pairs": _shown(self.pairs),
            "pairs_by_basis": {name: _shown(error) for name, error in self.pairs_by_basis.items()},
            "triples": _shown(self.triples),
            **({} if self.links is None else {"links": _shown(self.links)}),
            "limits": "95 %, each by itself",
        }


def _resting_on(distance: float, stddev: float, wide: float) -> Distance:
    return Distance(max(distance, 0.0) + stddev, max(distance, 0.0) + wide)


def distances_in(
    table: pd.DataFrame, *, rows: int, standard_error: float, noise: str, scale: float
) -> dict[frozenset[str], Distance]:
    """The same as ``Exam.by_columns``, from the published table and the manifest's figures."""
    names = table[[name for name in table.columns if name.startswith("column_")]]
    stddev, wide = 2 * float(rows) * standard_error, reach(noise, scale)
    cliques = (frozenset(c for c in row if isinstance(c, str) and c) for row in names.itertuples(index=False))
    values = table["distance"].to_numpy(dtype=np.float64).tolist()
    return {c: _resting_on(v, stddev, wide) for c, v in zip(cliques, values, strict=True)}


def _shown(error: MeanError | None) -> dict[str, float] | None:
    return None if error is None else asdict(error)


@dataclass(frozen=True, eq=False)
class ExaminedCells:
    """The model's counts of columns whose distance from the private table was measured.

    The L1 distance D of the synthetic table from the private one in a clique says how large the errors of all
    cells are together: noise, shrinkage, and relations that the model doesn't have. The model's own counts n
    lie as far away, but for the rounding to whole rows. The distance is divided among the cells as the sizes
    of their errors are expected to be: cell i gets D sqrt(n_i + 1) / sum_j sqrt(n_j + 1). Errors have longer
    tails than normal ones, as some relations are missing and others aren't. Those of the Laplace distribution
    with the mean size e lie within e ln(20) in 95 of 100 cases.

    The errors of a group's cells may be random, or all of them may shift the group's mean in one direction,
    as they do where a relation is missing. Then some groups are further off than others. So a sum may be off
    by random errors, and by a shift of errors of two and a half times the expected sizes. Chance shifts
    nothing: a table that was drawn from the model would be at the distance C of it, the sum of
    2 n_i/sqrt(1 + 2 pi n_i) over cells. One that agrees with measured marginals is nearer; half of C^2 is
    taken for chance, so the sizes in the shift are those of the distance sqrt(D^2 - C^2/2).

    That is a model of the errors, held against tables by ``benchmarks/coverage.py``. There is a bound too.
    Errors above zero and errors below zero add up to D/2 each, if both tables have as many rows. So a sum of
    counts with weights between a and b is off by at most (b - a) D/2, and by |a + b|/2 more for each row by
    which the numbers of rows differ. The narrower of the two is taken.

    Attributes:
        rows_reach: half the width of the 95 % interval of the number of rows.
    """

    cells: Numbers
    distance: Distance
    rows_reach: float
    basis: str = "model"
    limits: str = HOLDS

    @staticmethod
    def of(cells: Numbers, distance: Distance, direct: Unbiased, basis: str) -> ExaminedCells:
        return ExaminedCells(cells, distance, Z95 * sqrt(direct.cell_variance(())), basis)

    @cached_property
    def sizes(self) -> Numbers:
        """Expected size of the error of each cell, in rows, of the cells' shape."""
        parts = np.sqrt(np.maximum(self.cells, 0.0) + 1.0)
        return np.asarray(self.distance.expected * parts / parts.sum())

    @cached_property
    def shifting(self) -> float:
        """The part of the errors' sizes that may shift sums: what isn't chance, by squares."""
        rows = np.maximum(self.cells, 0.0)
        by_chance = float((sqrt(2) * rows / np.sqrt(1.0 + 2 * pi * rows)).sum())
        return sqrt(max(1.0 - (by_chance / max(self.distance.expected, 1e-9)) ** 2, 0.0))

    @property
    def figures(self) -> Counts:
        rows, total = self.cells.ravel(), float(self.cells.sum())
        bound = (self.distance.highest + self.rows_reach) / 2
        error = np.minimum(_TAIL * self.sizes.ravel(), bound) / Z95
        return Counts(rows, error, ratio(rows, total, LEAST_ROWS), ratio(error, total, LEAST_ROWS))

    def reach(self, weights: Numbers, place: Place = ALL) -> float:
        """The reach of errors of the expected sizes, or the bound by half of the distance if that is less."""
        number, groups = place
        parts = np.abs(weights) * self.sizes.reshape(groups, -1)[number]
        # A cell's own error is random; the errors of all others may shift the sum along with it.
        shift = _FURTHER * self.shifting * float(parts.sum() - parts.max(initial=0.0))
        expected = sqrt(_TAIL**2 * float(parts @ parts) + shift**2)
        ends = [float(weights.min()), float(weights.max())]
        if groups > 1:
            ends = [min(ends[0], 0.0), max(ends[1], 0.0)]
        low, high = ends
        bound = (high - low) * self.distance.highest / 2 + abs(high + low) * self.rows_reach / 2
        return min(expected, bound)
