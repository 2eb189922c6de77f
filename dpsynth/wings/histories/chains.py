"""Chains: rows of a unit that follow each other, each drawn given the one before it.

A chain is a Markov random field over the columns of a row and those of the row before it. It rests on the
answers that the model of single rows rests on, for both rows, and on each column together with that of the
row before. Noise falls on all of these alike. Two rows of one unit depend on each other only through the rows
between them, and through the unit's levels of some columns (``levels``): what lasts for many rows otherwise,
such as a trait that no column holds, fades in a chain.

The column that rows are ordered by is drawn first for all rows of a unit, backwards from the number of rows
that are still to come, so its values never fall. Then each row follows from the one before.

A column of groups follows its groups in the row before, and its value there too: a leaf of the model has the
likelihood of each value in the row before, at each level, given the groups of a row.

Steps that a column never takes, as it never changes or never falls, are zeros of the model.

Invariant: post-processing of answers. The place for "no row" stands in all columns of the row before, or in
none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpsynth.bundle.row_source import CHAIN_FILES
from dpsynth.columns.domain import Clique, Domain, row_before
from dpsynth.columns.measurement import DenoisedCounts, Observation
from dpsynth.config import CompiledSpec
from dpsynth.model.denoising import denoised, denoised_answers, independent
from dpsynth.model.estimation import FitOptions, estimate
from dpsynth.model.expansion import Expansion
from dpsynth.model.factor import Array
from dpsynth.model.junction_tree import Edge, JunctionTree
from dpsynth.model.markov_random_field import MarkovRandomField, ZeroProbability
from dpsynth.model.raking import raked_counts
from dpsynth.model.refinement import TableTarget
from dpsynth.model.rounding import Codes, permuted
from dpsynth.model.sampling import sample
from dpsynth.model.storage import Member, load, opened, require, save, save_arrays
from dpsynth.model.triangulation import Triangulation
from dpsynth.pipeline.measuring import Measured
from dpsynth.wings.histories.levels import Levels, by_line, drawn_to, levelled, reached, stepped
from dpsynth.wings.histories.links import FirstRows, Linked, StepKinds, staying
from dpsynth.wings.histories.selection import Counted, chosen
from dpsynth.wings.histories.sequences import UnitRows

MODEL, STEPS = CHAIN_FILES
FORMAT = "dpsynth chain 5"
_KEYS = {"format", "order", "place", "most", "links", "values", "levels", "within", "constant", "rising"}
_MOST = 10_000
_MOST_CELLS = 1 << 17
"""Cells of the model of two rows, beyond which no more columns are held together."""
_MOST_PLACES = 256
"""Values of the column that rows are ordered by, beyond which groups are drawn in order, and then values."""
_LEAST = 1e-9
_LITTLE, _SOME = 1e-3, 1e-2
_TURNS = 20
_EXACT = 30.0
_TOLERANCE, _LEAST_PATH = 0.03, 1e4
_SCALE = 1000
_SURE, _TOLD = 2.0, 3.5
_AT_ONCE = 1 << 15
_TIMES, _OF_STEPS = 2, 3.0
"""Units that are drawn for each one of a table, and the weight of counts of steps beside those of rows."""


@dataclass(frozen=True, eq=False)
class Chain:
    """A model of a row given the one before it in its unit.

    Attributes:
        model: over the columns of a row, as in the model of single rows, and over those of the row before.
        links: for columns of a row those of the row before, which have one more place: no row.
        order: the column that rows are ordered by.
        place: the same, or its column of groups in ``links``.
        lengths: float64[most rows], the number of units with 1, 2, ... rows.
        ways: float64[places + 1, places], the weight of each place of ``place`` after each place of the row
            before, the last of which is no row; a way of several rows weighs as the product of its steps.
        values: for columns of values that stand in groups, float64[values + 1, values], the weight of each
            value within its group, given the value of the row before.
        levels: for columns of which something lasts, float64[places, levels], the chance of each level of a
            unit by the place of its first row.
        within: for columns of numbers, float64[values], what rows do that stay in a cell (``UnitRows``).
        constant: columns with one value in all rows of a unit.
        rising: columns that never fall.
    """

    model: MarkovRandomField
    links: Mapping[str, str]
    order: str
    place: str
    lengths: Array
    ways: Array
    values: Mapping[str, Array] = field(default_factory=dict)
    levels: Mapping[str, Array] = field(default_factory=dict)
    within: Mapping[str, Array] = field(default_factory=dict)
    constant: Clique = ()
    rising: Clique = ()

    def save(self, folder: Path) -> None:
        """Write the model, and the rest, into the folder of a bundle."""
        save(self.model, folder / MODEL)
        header = {
            "format": FORMAT,
            "order": self.order,
            "place": self.place,
            "most": len(self.lengths),
            "links": dict(self.links),
            "values": list(self.values),
            "levels": {column: shares.shape[1] for column, shares in self.levels.items()},
            "within": {column: len(own) for column, own in self.within.items()},
            "constant": list(self.constant),
            "rising": list(self.rising),
        }
        arrays = {"lengths": self.lengths, "ways": self.ways}
        values = {f"values_{i}": weights for i, weights in enumerate(self.values.values())}
        levels = {f"levels_{i}": shares for i, shares in enumerate(self.levels.values())}
        within = {f"within_{i}": shares for i, shares in enumerate(self.within.values())}
        save_arrays(folder / STEPS, header, {**arrays, **values, **levels, **within})

    def drawn(
        self, rows: int, rng: np.random.Generator, targets: Sequence[TableTarget] = ()
    ) -> tuple[dict[str, Codes], Codes]:
        """Rows of new units: int64[rows] codes of the columns of a row, and the unit of each row, from 0.

        The rows of a unit stand together and in their order. One unit has what is left of the rows.

        Args:
            targets: counts of single rows. Of ``_TIMES`` as many units, those are taken that have them.
        """
        lengths = self._lengths_of(rows, rng)
        if not targets or not rows:
            return self._units(lengths, rng)
        scale, domain = rows / self.model.total, self.model.tree.domain
        wanted = [replace(t, weight=1.0) for t in targets]
        wanted += [TableTarget(p, self.model.marginal(p) * scale, _OF_STEPS) for p in self.links.items()]
        parts, units = [], 0
        for own in np.array_split(lengths[permuted(len(lengths), rng)], -(-rows // _AT_ONCE)):
            codes, unit = self._units(np.repeat(own, _TIMES), rng)
            first, share = np.diff(unit, prepend=-1) != 0, float(own.sum()) / rows
            whole = {n: np.where(first, self._places(c), np.roll(codes[c], 1)) for c, n in self.links.items()}
            whole |= codes
            kept = chosen(unit, [Counted.of(t, whole, domain, share) for t in wanted], _TIMES, rng)
            numbers = np.unique(unit[kept], return_inverse=True)[1] + units
            parts.append({c: codes[c][kept] for c in codes} | {"": numbers})
            units += len(own)
        found = {c: np.concatenate([part[c] for part in parts]) for c in parts[0]}
        return found, found.pop("")

    def _units(self, lengths: Codes, rng: np.random.Generator) -> tuple[dict[str, Codes], Codes]:
        """Rows of units with so many rows, in their order, and the unit of each."""
        before = {*self.links.values(), *map(_value_before, self._told)}
        own = [c for c in self.model.tree.domain.columns if c not in before]
        lengths = -np.sort(-lengths)
        numbers = permuted(len(lengths), rng)
        parts = [{c: np.zeros(0, np.int64) for c in ("", *own)}]
        told = (*self.links, *self._told, self.place)
        earlier = {c: np.full(len(lengths), self._places(c)) for c in told}
        levels = {c: np.zeros(len(lengths), np.int64) for c in self._told}
        for turn in range(int(lengths.max(initial=0))):
            going = int((lengths > turn).sum())
            given = {link: earlier[c][:going] for c, link in self.links.items()}
            given |= {_value_before(c): self._before(c, earlier[c][:going], levels[c]) for c in self._told}
            given[self.place] = self._next(earlier[self.place][:going], lengths[:going] - turn - 1, rng)
            found = self._sampled(given, going, rng)
            for column in self.values:
                found[column] = self._value(column, found, earlier[column][:going], rng)
            for column in self.constant if turn else ():
                found[column] = earlier[column][:going]
            if not turn:
                levels |= {c: _picked(own[found[c]], levels[c], rng) for c, own in self.levels.items()}
            earlier = found
            parts.append({c: earlier[c] for c in own} | {"": numbers[:going]})
        whole = {c: np.concatenate([part[c] for part in parts]) for c in parts[0]}
        # Values within one group may fall.
        by_unit = np.lexsort((whole[self.order], whole[""]))
        ordered = {c: codes[by_unit] for c, codes in whole.items()}
        return ordered, ordered.pop("")

    def sequences(self, unit: NDArray[np.integer]) -> UnitRows:
        """The rows of units, by the unit of each row."""
        whose = unit.astype(np.int64, copy=False)
        return UnitRows(whose, self.order, self.constant, self.rising, self.within)

    @property
    def _told(self) -> tuple[str, ...]:
        """The columns whose place in the row before, and level, is told to the model."""
        return tuple(dict.fromkeys((*self.values, *self.levels)))

    def _before(self, column: str, places: Codes, levels: Codes) -> Codes:
        number = self.levels[column].shape[1] if column in self.levels else 1
        return np.where(places == self._places(column), 0, levels[: len(places)]) + places * number

    def _sampled(self, given: Mapping[str, Codes], rows: int, rng: np.random.Generator) -> dict[str, Codes]:
        """Rows given those before them; a row that the model holds impossible is given its place alone."""
        try:
            return sample(self.model, rows, rng, given=given)
        except ZeroProbability:
            if rows == 1:
                return sample(self.model, rows, rng, given={self.place: given[self.place]})
        parts = [
            self._sampled({c: own[part] for c, own in given.items()}, part.stop - part.start, rng)
            for part in (slice(0, rows // 2), slice(rows // 2, rows))
        ]
        return {c: np.concatenate([part[c] for part in parts]) for c in parts[0]}

    def _value(
        self, column: str, found: Mapping[str, Codes], before: Codes, rng: np.random.Generator
    ) -> Codes:
        """Values in the groups of those that are found, given the values of the rows before."""
        home = self.model.tree.home((column,))
        assert home is not None
        groups, held = found[self.model.tree.cliques[home][0]], self.model.beliefs[home] > 0
        drawn = found[column].copy()
        for start in range(0, len(drawn), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            drawn[some] = _picked(self.values[column][before[some]] * held[groups[some]], drawn[some], rng)
        return drawn

    def _places(self, column: str) -> int:
        return self.model.tree.domain.sizes[column]

    def _lengths_of(self, rows: int, rng: np.random.Generator) -> Codes:
        """The rows of units with so many rows in all, as near as can be to the shares of ``lengths``."""
        each = np.arange(1, len(self.lengths) + 1)
        units = rows * self.lengths / float(self.lengths @ each)
        ends = np.floor(np.cumsum(units) + rng.random()).astype(np.int64)
        found = np.repeat(each, np.diff(np.r_[0, ends]))[permuted(int(ends[-1]), rng)]
        within = found[np.cumsum(found) <= rows]
        left = rows - int(within.sum())
        rest = [len(each)] * (left // len(each)) + [left % len(each)]
        return np.concatenate([within, [length for length in rest if length]]).astype(np.int64)

    def _next(self, before: Codes, still: Codes, rng: np.random.Generator) -> Codes:
        """The places in the order of some rows, given those of the rows before and the rows still to come."""
        reach = reached(self.ways, int(still.max(initial=0)))
        # At the end of the ways, a row stays where the one before was.
        stay = np.minimum(before, self.ways.shape[1] - 1)
        return _picked(self.ways[before] * (reach[still] + _LEAST), stay, rng)


def _picked(weights: Array, otherwise: Codes, rng: np.random.Generator) -> Codes:
    """A place by the weights of each line, int64[lines]; of a line of nothing, what it is otherwise."""
    ends = np.cumsum(weights, axis=1)
    at = rng.random(len(ends)) * ends[:, -1]
    found = np.minimum((ends <= at[:, None]).sum(axis=1), ends.shape[1] - 1)
    return np.asarray(np.where(ends[:, -1] > 0, found, otherwise), np.int64)


def chain_of(
    compiled: CompiledSpec,
    measured: Measured,
    rows: MarkovRandomField,
    ruled: Mapping[Clique, NDArray[np.bool_]],
) -> Chain:
    """The chain of a release, by all its answers and the model of single rows."""
    history, given = measured.history, compiled.spec.privacy.history
    assert isinstance(history, Linked) and given is not None
    together = denoised_answers(measured.fitted_to, measured.posteriors)
    constant = tuple(c for c in measured.spread.domain.columns if c not in compiled.linked)
    weighted = measured.weights is not None
    steps = Steps(given.order_by, constant, given.rising, ruled, history.steps, history.firsts, weighted)
    links = [m for m in history.links if m.clique[1] == row_before(m.clique[0])]
    return chained(measured.spread, rows, together, links, steps, history.lengths, _MOST_CELLS)


@dataclass(frozen=True)
class Steps:
    """The rows that there are, and the steps from row to row.

    Attributes:
        order: the column that rows are ordered by.
        constant: columns that never change.
        rising: columns that never fall.
        ruled: cells of several columns that rules close, over groups.
        kinds: of columns whose steps were counted by kinds.
        firsts: of columns that were counted together with the first row of a unit.
        weighted: True if rows of a unit count 1 together in all of these.
    """

    order: str
    constant: Clique = ()
    rising: Clique = ()
    ruled: Mapping[Clique, NDArray[np.bool_]] = field(default_factory=dict)
    kinds: Mapping[str, StepKinds] = field(default_factory=dict)
    firsts: Mapping[str, FirstRows] = field(default_factory=dict)
    weighted: bool = False

    @property
    def kept(self) -> Clique:
        return (self.order, *self.constant, *self.rising)

    def closed(
        self, column: str, size: int, values: int, groups: NDArray[np.integer] | None = None
    ) -> NDArray[np.bool_]:
        """Places of a column that follow no such place in the row before, bool[places, places + 1].

        Args:
            size: number of the column's codes.
            values: number of its first codes that are values; the others are of missing cells.
            groups: the place of each code; None if each is one.
        """
        codes = np.arange(size)
        at = codes if groups is None else groups
        least, most = np.full(at.max() + 1, size), np.zeros(at.max() + 1, np.int64)
        np.minimum.at(least, at, codes)
        np.maximum.at(most, at, codes)
        if column in self.constant:
            found = ~np.eye(len(least), dtype=np.bool_)
        else:
            found = (most[:, None] < least) & (least < (size if column == self.order else values))
        return np.column_stack([found, np.zeros(len(found), np.bool_)])


def chained(
    expansion: Expansion,
    rows: MarkovRandomField,
    together: Sequence[Observation],
    history: Sequence[Observation],
    steps: Steps,
    lengths: NDArray[np.float64],
    max_cells: int,
) -> Chain:
    """The chain that fits answers about rows, and about rows and those before them.

    Args:
        expansion: with the single columns.
        rows: the model of single rows, whose single columns the chain has.
        together: counts of several columns together, over groups. Those that a tree of ``max_cells`` cells
            for two rows has no room for are left out.
        history: counts of each column that changes and that of the row before, over groups or values.
        lengths: float64[most rows], the number of units with 1, 2, ... rows.
    """
    own, names, order = expansion.coarse, expansion.names, steps.order
    domain, groups = own.with_rows_before, expansion.compression.groups
    singles = {c: rows.marginal((names.get(c, c),)) for c in own.columns}
    sizes = expansion.domain.sizes
    held = {c: (sizes[c], expansion.values.get(c, sizes[c])) for c in steps.kept}
    zeros: dict[Clique, NDArray[np.bool_]] = {
        (c, row_before(c)): steps.closed(c, *held[c], groups.get(c)) for c in steps.kept
    }
    known: dict[Clique, tuple[Array, float]] = {}
    units, by_values = np.maximum(lengths, _LEAST), sizes[order] <= _MOST_PLACES
    first = float(units.sum() / (np.arange(1, len(units) + 1) @ units))
    for m in history:
        known[m.clique] = _denoised(m, expansion, rows, first, steps.kinds.get(m.clique[0]))
        if m.clique[0] == order and order not in names:
            zeros[m.clique] |= _stays(m, held[order][1])
    counts: list[Observation] = [_counts((c,), singles[c], _EXACT) for c in own.columns]
    links, ends = _Links(expansion, rows, steps, units, zeros, by_values), dict[str, Array]()
    for c in steps.constant:
        ends[c] = np.append(singles[c] * (1 - first), singles[c].sum() * first)
        pair = np.column_stack([np.diag(singles[c] * (1 - first)), singles[c] * first])
        counts.append(_counts((c, row_before(c)), pair, _EXACT))
    taken = {c: links.of(c, likely) for (c, _), (likely, _) in known.items()}
    for clique, (_, variance) in known.items():
        found = taken[clique[0]].counts * (rows.total / max(float(taken[clique[0]].counts.sum()), _LEAST))
        ends[clique[0]] = found.sum(axis=1)
        counts.append(_counts(clique, found.T, sqrt(variance)))
    ruled = [
        (clique, np.where(closed, 0.0, rows.marginal(tuple(names.get(c, c) for c in clique))), _EXACT)
        for clique, closed in steps.ruled.items()
        if len(clique) > 1
    ]
    for clique, likely, deviation in [*ruled, *((m.clique, m.values, m.stddev) for m in together)]:
        here = _raked(
            _with_a_little(likely, steps.ruled.get(clique)), {i: singles[c] for i, c in enumerate(clique)}
        )
        earlier = _before(here, [ends[c] for c in clique])
        both = [_counts(clique, here, deviation), _counts(tuple(map(row_before, clique)), earlier, deviation)]
        if Triangulation.of(domain, [c.clique for c in (*counts, *both)]).cells <= max_cells:
            counts += both
            zeros[both[1].clique] = _half_a_row(earlier.shape)
            if clique in steps.ruled:
                zeros[clique] = steps.ruled[clique]
    options, total = FitOptions(tolerance=_TOLERANCE, least_path=_LEAST_PATH), rows.total * _SCALE
    fitted = estimate(domain, counts, options, total=total, zeros=zeros).model.scaled_to(rows.total)
    whole = replace(expansion, domain=Domain({**domain.sizes, **expansion.domain.sizes}))
    values = {c: link.values for c, link in taken.items() if link.values is not None}
    place = order if order in values and by_values else names.get(order, order)
    walk = values.pop(order) if place in values else taken[order].ways
    told = {
        c if c in values else names.get(c, c): link.told
        for c, link in taken.items()
        if link.told is not None and c != place
    }
    leaves = {c: (names.get(c, c), _told(at, groups[c] if c in values else None)) for c, at in told.items()}
    # Groups are spread over their values by numbers of rows.
    model = _with_leaves(whole.model(fitted), leaves)
    walk = np.where(model.marginal((place,)) > 0, walk, 0.0)
    return Chain(
        model,
        {names.get(c, c): row_before(c) for c in own.columns},
        order,
        place,
        units,
        walk,
        {c: _within(own, groups[c]) for c, own in values.items()},
        {c: at.shares for c, at in told.items() if at.shares.shape[1] > 1},
        {
            c: staying(known[m.clique][0][:n, :n], m.variance, rising=c in steps.rising)
            for m in history
            if (c := m.clique[0]) != order
            and (n := expansion.numbers.get(c, 0))
            and len(known[m.clique][0]) == sizes[c]
        },
        tuple(steps.constant),
        tuple(steps.rising),
    )


def _stays(answer: Observation, values: int) -> NDArray[np.bool_]:
    """The cells of rows that stay at the value of the row before, if it isn't told that any does."""
    found, at = np.zeros(answer.values.shape, np.bool_), np.arange(values)
    found[at, at] = answer.values[at, at].sum() <= _TOLD * sqrt(answer.variance * values)
    return found


@dataclass(frozen=True, eq=False)
class _Link:
    """The steps of a column over its groups.

    Attributes:
        ways: float64[places + 1, places], the weight of each place after each place of the row before.
        counts: float64[places + 1, places], expected rows.
        told: the steps from the value of the row before, at each level.
        values: as ``ways``, over values, of a column whose values stand in groups.
    """

    ways: Array
    counts: Array
    told: Levels | None = None
    values: Array | None = None


@dataclass(frozen=True, eq=False)
class _Links:
    """The rows that there are, and the steps that were counted, by which the steps of each column are set.

    Attributes:
        by_values: True if the values of the order are drawn, and not its groups.
    """

    expansion: Expansion
    rows: MarkovRandomField
    steps: Steps
    units: Array
    zeros: Mapping[Clique, NDArray[np.bool_]]
    by_values: bool

    def of(self, column: str, likely: Array) -> _Link:
        """The steps of a column by estimates, [places, places + 1], over groups or values."""
        groups, sizes = self.expansion.compression.groups.get(column), self.expansion.domain.sizes
        if groups is None or len(likely) < len(groups):
            likely, wanted = self._open(column, likely), self.rows.marginal((self._name(column),))
            codes = np.arange(len(likely)) if groups is None else np.unique(groups, return_index=True)[1]
            levels = self._levels(column, likely, wanted, codes)
            return self._plain(column, likely) if levels is None else self._at(levels)
        held = sizes[column], self.expansion.values.get(column, sizes[column])
        closed = self.steps.closed(column, *held) if column in self.steps.kept else False
        likely, wanted = np.where(closed, 0.0, _with_a_little(likely)), self.rows.marginal((column,))
        levels = self._levels(column, likely, wanted, np.arange(len(groups)))
        if levels is not None:
            return replace(self._at(levels, groups), values=levels.counts)
        walked = column == self.steps.order and self.by_values
        ways = drawn_to(likely.T, wanted, self.units, ahead=walked)
        moved = stepped(ways, self.units, ahead=True).T if walked else likely
        plain = self._plain(column, self._open(column, _in_groups(moved, groups)))
        return replace(plain, told=Levels.alone(ways, wanted), values=ways)

    def _name(self, column: str) -> str:
        return self.expansion.names.get(column, column)

    def _open(self, column: str, likely: Array) -> Array:
        closed = self.zeros.get((column, row_before(column)), False)
        return np.where(closed, 0.0, _with_a_little(likely))

    def _levels(self, column: str, likely: Array, wanted: Array, codes: NDArray[np.integer]) -> Levels | None:
        if column not in self.steps.firsts:
            return None
        firsts = self.steps.firsts[column]
        counted = FirstRows(firsts.part[codes], firsts.answer)
        return levelled(likely.T, wanted, counted, self.units, self.steps.weighted)

    def _at(self, levels: Levels, groups: NDArray[np.integer] | None = None) -> _Link:
        counts = levels.counts if groups is None else _in_groups(levels.counts.T, groups).T
        return _Link(counts, counts, levels)

    def _plain(self, column: str, likely: Array) -> _Link:
        wanted, ahead = self.rows.marginal((self._name(column),)), column == self.steps.order
        ways = drawn_to(likely.T, wanted, self.units, ahead=ahead)
        return _Link(ways, stepped(ways, self.units, ahead=ahead))


def _counts(clique: Clique, counts: Array, deviation: float) -> Observation:
    values = np.rint(counts * _SCALE).astype(np.int64)
    return DenoisedCounts(clique, values, "gaussian", max(deviation, 1.0) * _SCALE)


def _with_a_little(counts: Array, closed: NDArray[np.bool_] | None = None) -> Array:
    """Counts, not negative, with a little of independent columns: none may be nothing by chance."""
    found = np.maximum(counts, 0.0)
    found = found + _LITTLE * independent(found)
    return found if closed is None else np.where(closed, 0.0, found)


def _raked(counts: Array, sums: Mapping[int, Array]) -> Array:
    """Counts with the sums of some axes."""
    wanted = {}
    for axis, own in sums.items():
        others = tuple(i for i in range(counts.ndim) if i != axis)
        wanted[others] = np.expand_dims(own, others)
    return raked_counts(counts, wanted, _TURNS)


def _denoised(
    answer: Observation, expansion: Expansion, rows: MarkovRandomField, first: float, kinds: StepKinds | None
) -> tuple[Array, float]:
    """Denoised counts of a column and the row before, and their variance; of steps, over values."""
    if kinds is not None:
        return kinds.spread(answer, rows.marginal(answer.clique[:1]), first)
    found = denoised(answer.values, answer.variance, _expected(answer, expansion))
    return found.mean, found.variance


def _expected(answer: Observation, expansion: Expansion) -> Array:
    """An estimate of the counts of a column and the row before, by the answer's sums over alike steps.

    Rows of all values are taken to move alike: numbers in order by as many places, other values to stay or to
    go where rows are. A kind of step whose sum is within its noise has no rows.
    """
    column, counts = answer.clique[0], np.maximum(answer.values, 0).astype(np.float64)
    size, groups = len(counts), expansion.compression.groups.get(column)
    ordered = expansion.numbers.get(column, 0)
    if ordered and groups is not None and size == int(groups.max()) + 1:
        ordered = int(groups[:ordered].max()) + 1
    here, before = np.indices(counts.shape)
    steps = np.where(here == before, 0, 1)
    both = (here < ordered) & (before < ordered)
    steps = np.where(both, 2 + size + here - before, steps)
    steps = np.where((here >= ordered) & (before < ordered) & (ordered > 0), 3 * size + 3, steps)
    steps = np.where(before == size, 3 * size + 4, steps)
    alike = independent(counts)
    held, number = np.bincount(steps.ravel(), answer.values.ravel()), np.bincount(steps.ravel())
    held = np.where(held > _SURE * np.sqrt(answer.variance * number), held, 0.0)
    usual = np.bincount(steps.ravel(), alike.ravel())
    ratio = np.divide(held, usual, where=usual > 0, out=np.zeros(len(usual)))
    found = alike * ratio[steps]
    if not found.any():
        return alike
    total = max(float(answer.values.sum()), 1.0)
    sums = [np.maximum(answer.values.sum(axis=1 - axis), 0).astype(np.float64) for axis in (0, 1)]
    return _raked(
        found, {axis: own * (total / max(float(own.sum()), _LEAST)) for axis, own in enumerate(sums)}
    )


def _in_groups(counts: Array, groups: NDArray[np.integer]) -> Array:
    """Counts of values, and of those of the row before, as counts of groups; the last column is no row."""
    number = int(groups.max()) + 1
    found = np.zeros((number, number + 1))
    np.add.at(found, (groups[:, None], np.append(groups, number)[None, :]), counts)
    return found


def _within(counts: Array, groups: NDArray[np.integer]) -> Array:
    """The weight of each value within its group, given the value of the row before, of each line 1 a group.

    A group that nobody comes to from a value is divided as it is on the whole.
    """
    whole = np.zeros((len(counts), int(groups.max()) + 1))
    np.add.at(whole.T, groups, counts.T)
    usual = counts.sum(axis=0)
    held = np.bincount(groups, usual)[groups]
    even = np.divide(usual, held, where=held > 0, out=np.ones(len(usual)))
    return np.asarray(np.divide(counts, whole[:, groups], where=whole[:, groups] > 0, out=even + 0 * counts))


def _told(levels: Levels, of_values: NDArray[np.integer] | None) -> Array:
    """The likelihood of each value in the row before, at each level, given the group of a row.

    It is that of the value beside that of its group, up to a factor of each value. The last place but one is
    no row, and the last has what is left to 1.

    Args:
        of_values: the group of each value; None if each is one.

    Returns:
        float64[groups, values * levels + 2]
    """
    groups = np.arange(levels.ways.shape[2]) if of_values is None else of_values
    number, whose = int(groups.max()) + 1, np.append(groups, int(groups.max()) + 1)
    by_value = np.zeros((*levels.ways.shape[:2], number))
    np.add.at(by_value.transpose(2, 0, 1), groups, levels.ways.transpose(2, 0, 1))
    rows = np.column_stack([levels.before + _LEAST, np.ones(len(levels.before))])
    by_group = np.zeros((number + 1, number))
    np.add.at(by_group, whose, (by_value * rows[:, :, None]).sum(axis=0))
    ratio = (by_value + _SOME) / (by_line(by_group)[whose] + _SOME)
    ratio = np.vstack([ratio[:, :-1].swapaxes(0, 1).reshape(-1, number), ratio[0, -1:]])
    likely = ratio.T / float(ratio.sum(axis=0).max())
    return np.column_stack([likely, np.maximum(1.0 - likely.sum(axis=1), 0.0)])


def _with_leaves(model: MarkovRandomField, leaves: Mapping[str, tuple[str, Array]]) -> MarkovRandomField:
    """The model with a column for the value of the row before of some columns, by the groups of the row.

    Args:
        leaves: the name of the column's groups, and the likelihood of each value given the group.
    """
    tree, beliefs, sizes = model.tree, list(model.beliefs), dict(model.tree.domain.sizes)
    cliques, edges = list(tree.cliques), list(tree.edges)
    for column, (of_groups, likely) in leaves.items():
        home, sizes[_value_before(column)] = tree.home((of_groups,)), likely.shape[1]
        assert home is not None
        edges.append(Edge(len(cliques), home, (of_groups,)))
        cliques.append((of_groups, _value_before(column)))
        beliefs.append(model.marginal((of_groups,))[:, None] * likely)
    whole = JunctionTree(Domain(sizes), tuple(cliques), tuple(edges))
    return MarkovRandomField(whole, tuple(beliefs), model.total)


def _value_before(column: str) -> str:
    """The name of the column with the value of the row before, of a column that stands in groups."""
    return f"{column} (value before)"


def _before(counts: Array, ends: Sequence[Array]) -> Array:
    """Counts of the rows before, with each column's own: like those of rows that don't end a unit.

    Args:
        ends: float64[places + 1] of each axis, counts of the row before; the last is no row.
    """
    found = _raked(_with_a_little(counts), {axis: own[:-1] for axis, own in enumerate(ends)})
    whole = np.zeros([size + 1 for size in counts.shape])
    whole[tuple(slice(-1) for _ in counts.shape)] = found
    whole[(-1,) * counts.ndim] = np.mean([own[-1] for own in ends])
    return whole


def _half_a_row(shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """The cells in which some columns of the row before have a value and others say that there is no row."""
    missing = np.sum(
        [index == size - 1 for index, size in zip(np.indices(shape), shape, strict=True)], axis=0
    )
    return np.asarray((missing > 0) & (missing < len(shape)))


def load_chain(folder: Path) -> Chain:
    """The chain of a bundle's folder.

    Raises:
        ModelFileError: a file can't be opened, is damaged, or is about other columns.
    """
    model = load(folder / MODEL)
    sizes = model.tree.domain.sizes
    with opened(folder / STEPS, "the steps of a chain") as content:
        found = content.header
        require(isinstance(found, dict) and found.keys() == _KEYS, "its header is not that of a chain")
        require(found["format"] == FORMAT, f"its format is not '{FORMAT}'")
        links, place, most, values, within = map(found.get, ("links", "place", "most", "values", "within"))
        sound = isinstance(links, dict) and all(
            isinstance(link, str) and c in sizes and sizes.get(link) == sizes[c] + 1
            for c, link in links.items()
        )
        known = isinstance(found["order"], str) and (
            place in links or (place == found["order"] and place in sizes)
        )
        require(sound and known, "its links are not of columns")
        require(isinstance(most, int) and 0 < most <= _MOST, "its units have no number of rows")
        lasting = found["levels"]
        told = isinstance(values, list) and isinstance(lasting, dict) and all(map(sizes.__contains__, values))
        require(told, "its values are not of columns")
        told = all(
            c in sizes and isinstance(n, int) and sizes.get(_value_before(c)) == sizes[c] * n + 2
            for c, n in (dict.fromkeys(values, 1) | lasting).items()
        )
        require(told, "its values are not of columns")
        told = isinstance(within, dict) and all(
            c in sizes and isinstance(n, int) and 0 < n <= sizes[c] for c, n in within.items()
        )
        require(told, "its values are not of columns")
        shapes = [(most,), *((sizes[c] + 1, sizes[c]) for c in (place, *values))]
        shapes += [*((sizes[c], n) for c, n in lasting.items()), *((n,) for n in within.values())]
        named = ["lengths", "ways", *(f"values_{i}" for i in range(len(values)))]
        named += [f"levels_{i}" for i in range(len(lasting))] + [f"within_{i}" for i in range(len(within))]
        members = [Member(name, shape, "<f8") for name, shape in zip(named, shapes, strict=True)]
        lengths, ways, *weights = (np.asarray(own, np.float64) for own in content.arrays(members))
    for own in (lengths, ways, *weights):
        require(bool(np.isfinite(own).all() and (own >= 0).all()), "its weights are no weights")
    require(bool(lengths.any()), "its units have no rows")
    steady = found["constant"], found["rising"]
    named = [c for own in steady if isinstance(own, list) for c in own]
    require(
        all(isinstance(own, list) for own in steady) and all(c in sizes for c in named),
        "its columns that never change or fall are not of its model",
    )
    drawn = dict(zip(values, weights, strict=False))
    levels = dict(zip(lasting, weights[len(values) :], strict=False))
    within = dict(zip(within, weights[len(values) + len(lasting) :], strict=True))
    return Chain(
        model, links, found["order"], place, lengths, ways, drawn, levels, within, *map(tuple, steady)
    )
