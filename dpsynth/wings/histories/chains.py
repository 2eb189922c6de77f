"""Chains: rows of a unit that follow each other, each drawn given the one before it.

A chain is a Markov random field over the columns of a row and those of the row before it. It rests on the
answers that the model of single rows rests on, for both rows, and on each column together with that of the
row before. Noise falls on all of these alike. Two rows of one unit depend on each other only through the rows
between them, so what lasts for many rows, such as a trait that no column holds, fades in a chain.

The column that rows are ordered by is drawn first for all rows of a unit, backwards from the number of rows
that are still to come, so its values never fall. Then each row follows from the one before.

A column of groups follows its groups in the row before, and its value there too: a leaf of the model has the
likelihood of each value in the row before, given the groups of a row.

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
from dpsynth.model.rounding import Codes, permuted
from dpsynth.model.sampling import sample
from dpsynth.model.storage import Member, load, opened, require, save, save_arrays
from dpsynth.model.triangulation import Triangulation
from dpsynth.pipeline.measuring import Measured
from dpsynth.wings.histories.links import Linked, StepKinds
from dpsynth.wings.histories.sequences import UnitRows

MODEL, STEPS = CHAIN_FILES
FORMAT = "dpsynth chain 2"
_KEYS = {"format", "order", "place", "most", "links", "values", "constant", "rising"}
_MOST = 10_000
_MOST_CELLS = 1 << 15
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
_PULLS, _PACE, _FEW = 60, 0.5, 1e-4
_AT_ONCE = 1 << 15


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
            "constant": list(self.constant),
            "rising": list(self.rising),
        }
        arrays = {"lengths": self.lengths, "ways": self.ways}
        values = {f"values_{i}": weights for i, weights in enumerate(self.values.values())}
        save_arrays(folder / STEPS, header, {**arrays, **values})

    def drawn(self, rows: int, rng: np.random.Generator) -> tuple[dict[str, Codes], Codes]:
        """Rows of new units: int64[rows] codes of the columns of a row, and the unit of each row, from 0.

        The rows of a unit stand together and in their order. The last unit has what is left of the rows.
        """
        before = {*self.links.values(), *map(_value_before, self.values)}
        own = [c for c in self.model.tree.domain.columns if c not in before]
        lengths = -np.sort(-self._lengths_of(rows, rng))
        numbers = permuted(len(lengths), rng)
        parts = [{c: np.zeros(0, np.int64) for c in ("", *own)}]
        earlier = {c: np.full(len(lengths), self._places(c)) for c in (*self.links, *self.values, self.place)}
        for turn in range(int(lengths.max(initial=0))):
            going = int((lengths > turn).sum())
            given = {link: earlier[c][:going] for c, link in self.links.items()}
            given |= {_value_before(c): earlier[c][:going] for c in self.values}
            given[self.place] = self._next(earlier[self.place][:going], lengths[:going] - turn - 1, rng)
            found = self._sampled(given, going, rng)
            for column in self.values:
                found[column] = self._value(column, found, earlier[column][:going], rng)
            for column in self.constant if turn else ():
                found[column] = earlier[column][:going]
            earlier = found
            parts.append({c: earlier[c] for c in own} | {"": numbers[:going]})
        whole = {c: np.concatenate([part[c] for part in parts]) for c in parts[0]}
        # Values within one group may fall.
        by_unit = np.lexsort((whole[self.order], whole[""]))
        ordered = {c: codes[by_unit] for c, codes in whole.items()}
        return ordered, ordered.pop("")

    def sequences(self, unit: NDArray[np.integer]) -> UnitRows:
        """The rows of units, by the unit of each row."""
        return UnitRows(unit.astype(np.int64, copy=False), self.order, self.constant, self.rising)

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
        reach = _reached(self.ways, int(still.max(initial=0)))
        # At the end of the ways, a row stays where the one before was.
        stay = np.minimum(before, self.ways.shape[1] - 1)
        return _picked(self.ways[before] * (reach[still] + _LEAST), stay, rng)


def _picked(weights: Array, otherwise: Codes, rng: np.random.Generator) -> Codes:
    """A place by the weights of each line, int64[lines]; of a line of nothing, what it is otherwise."""
    ends = np.cumsum(weights, axis=1)
    at = rng.random(len(ends)) * ends[:, -1]
    found = np.minimum((ends <= at[:, None]).sum(axis=1), ends.shape[1] - 1)
    return np.asarray(np.where(ends[:, -1] > 0, found, otherwise), np.int64)


def _reached(ways: Array, most: int) -> Array:
    """The weight of all ways of 0, 1, ... further rows from each place, up to a factor for each number."""
    found = [np.ones(ways.shape[1])]
    for _ in range(most):
        further = ways[:-1] @ found[-1]
        found.append(further / max(float(further.max()), _LEAST))
    return np.array(found)


def _by_line(weights: Array) -> Array:
    """Each line as shares of its sum; a line of nothing stays that."""
    sums = weights.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(weights, sums, where=sums > 0, out=np.zeros(weights.shape)))


def _stepped(ways: Array, lengths: Array, *, ahead: bool) -> Array:
    """Expected rows of units by the place of the row before and their own, float64[places + 1, places].

    Args:
        ahead: whether a step looks at the rows still to come, as ways of several rows do.
    """
    found = np.zeros(ways.shape)
    going = np.cumsum(lengths[::-1])[::-1]
    if not ahead:
        shares = _by_line(ways)
        at = shares[-1]
        found[-1] = going[0] * at
        for units in going[1:]:
            moved = units * at[:, None] * shares[:-1]
            found[:-1] += moved
            at = _by_line(moved.sum(axis=0))
        return found
    reach = _reached(ways, len(lengths) - 1)
    for most, units in enumerate(lengths, 1):
        at = _by_line(ways[-1] * reach[most - 1])
        found[-1] += units * at
        for still in range(most - 2, -1, -1):
            moved = units * at[:, None] * _by_line(ways[:-1] * reach[still])
            found[:-1] += moved
            at = moved.sum(axis=0) / units
    return found


def _drawn_to(counts: Array, wanted: Array, lengths: Array, *, ahead: bool) -> Array:
    """The ways of a column, of which units of all lengths have as many rows in each place as is wanted.

    Args:
        counts: float64[places + 1, places], by the place of the row before.
        wanted: float64[places], the rows in each place.
    """
    plain, pull = _by_line(counts), np.ones(len(wanted))
    for _ in range(_PULLS):
        held = _stepped(plain * pull, lengths, ahead=ahead).sum(axis=0)
        # A place that hardly any way leads to would grow, for its few rows, until it outweighs all others.
        pull = pull * ((_by_line(wanted) + _FEW) / (_by_line(held) + _FEW)) ** _PACE
        pull = np.clip(pull / max(float(pull.max()), _LEAST), _LEAST, 1.0)
    return plain * pull


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
    steps = Steps(given.order_by, constant, given.rising, ruled, history.steps)
    return chained(measured.spread, rows, together, history.links, steps, history.lengths, _MOST_CELLS)


@dataclass(frozen=True)
class Steps:
    """The rows that there are, and the steps from row to row.

    Attributes:
        order: the column that rows are ordered by.
        constant: columns that never change.
        rising: columns that never fall.
        ruled: cells of several columns that rules close, over groups.
        kinds: of columns whose steps were counted by kinds.
    """

    order: str
    constant: Clique = ()
    rising: Clique = ()
    ruled: Mapping[Clique, NDArray[np.bool_]] = field(default_factory=dict)
    kinds: Mapping[str, StepKinds] = field(default_factory=dict)

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
    ways, ends, by_value = dict[str, Array](), dict[str, Array](), dict[str, Array]()
    for c in steps.constant:
        ends[c] = np.append(singles[c] * (1 - first), singles[c].sum() * first)
        pair = np.column_stack([np.diag(singles[c] * (1 - first)), singles[c] * first])
        counts.append(_counts((c, row_before(c)), pair, _EXACT))
    for (c, link), (likely, variance) in known.items():
        of_groups = likely
        if c in names and len(likely) == expansion.domain.sizes[c]:
            closed = steps.closed(c, *held[c]) if c in held else np.zeros(likely.shape, np.bool_)
            of_values, walked = np.where(closed, 0.0, _with_a_little(likely)), c == order and by_values
            by_value[c] = _drawn_to(of_values.T, rows.marginal((c,)), units, ahead=walked)
            moved = _stepped(by_value[c], units, ahead=True).T if walked else of_values
            of_groups = _in_groups(moved, groups[c])
        of_groups = np.where(zeros.get((c, link), False), 0.0, _with_a_little(of_groups))
        ways[c] = _drawn_to(of_groups.T, singles[c], units, ahead=c == order)
        found = _stepped(ways[c], units, ahead=c == order)
        found *= rows.total / max(float(found.sum()), _LEAST)
        ends[c] = found.sum(axis=1)
        counts.append(_counts((c, link), found.T, sqrt(variance)))
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
        both = [
            _counts(clique, here, deviation),
            _counts(tuple(map(row_before, clique)), earlier, deviation),
        ]
        if Triangulation.of(domain, [c.clique for c in (*counts, *both)]).cells <= max_cells:
            counts += both
            zeros[both[1].clique] = _half_a_row(earlier.shape)
            if clique in steps.ruled:
                zeros[clique] = steps.ruled[clique]
    options, total = FitOptions(tolerance=_TOLERANCE, least_path=_LEAST_PATH), rows.total * _SCALE
    fitted = estimate(domain, counts, options, total=total, zeros=zeros).model.scaled_to(rows.total)
    whole = replace(expansion, domain=Domain({**domain.sizes, **expansion.domain.sizes}))
    place = order if order in by_value and by_values else names.get(order, order)
    walk = by_value.pop(order) if place in by_value else ways[order]
    leaves = {c: (names[c], _told(own, rows.marginal((c,)), groups[c])) for c, own in by_value.items()}
    # Groups are spread over their values by numbers of rows.
    model = _with_leaves(whole.model(fitted), leaves)
    walk = np.where(model.marginal((place,)) > 0, walk, 0.0)
    values = {c: _within(own, groups[c]) for c, own in by_value.items()}
    return Chain(
        model,
        {names.get(c, c): row_before(c) for c in own.columns},
        order,
        place,
        units,
        walk,
        values,
        tuple(steps.constant),
        tuple(steps.rising),
    )


def _stays(answer: Observation, values: int) -> NDArray[np.bool_]:
    """The cells of rows that stay at the value of the row before, if it isn't told that any does."""
    found, at = np.zeros(answer.values.shape, np.bool_), np.arange(values)
    found[at, at] = answer.values[at, at].sum() <= _TOLD * sqrt(answer.variance * values)
    return found


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


def _told(counts: Array, rows: Array, groups: NDArray[np.integer]) -> Array:
    """The likelihood of each value in the row before, given the group of a row, float64[groups, values + 2].

    It is that of the value beside that of its group, up to a factor of each value. The last place but one is
    no row, and the last has what is left to 1.

    Args:
        counts: float64[values + 1, values], the weight of each value after each value.
        rows: float64[values], the rows of each value.
    """
    number, shares = int(groups.max()) + 1, _by_line(counts)
    whose, by_value = np.append(groups, number), np.zeros((len(shares), number))
    np.add.at(by_value.T, groups, shares.T)
    by_group = np.zeros((number + 1, number))
    np.add.at(by_group, whose, by_value * np.append(rows + _LEAST, 1.0)[:, None])
    ratio = (by_value + _SOME) / (_by_line(by_group)[whose] + _SOME)
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
        links, place, most, values = (found[key] for key in ("links", "place", "most", "values"))
        sound = isinstance(links, dict) and all(
            isinstance(link, str) and c in sizes and sizes.get(link) == sizes[c] + 1
            for c, link in links.items()
        )
        known = isinstance(found["order"], str) and (
            place in links or (place == found["order"] and place in sizes)
        )
        require(sound and known, "its links are not of columns")
        require(isinstance(most, int) and 0 < most <= _MOST, "its units have no number of rows")
        told = isinstance(values, list) and all(
            isinstance(v, str) and v in sizes and sizes.get(_value_before(v)) == sizes[v] + 2 for v in values
        )
        require(told, "its values are not of columns")
        shapes = [(most,), *((sizes[c] + 1, sizes[c]) for c in (place, *values))]
        named = ["lengths", "ways", *(f"values_{i}" for i in range(len(values)))]
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
    drawn = dict(zip(values, weights, strict=True))
    return Chain(model, links, found["order"], place, lengths, ways, drawn, *map(tuple, steady))
