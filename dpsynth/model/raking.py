"""Raking: models, tables and marginals that are fitted to better counts of some of their columns.

Iterative proportional fitting sets each marginal in turn to its better counts (Deming and Stephan 1940). On a
junction tree the change is passed on along the tree (Lauritzen 1996, section 4.3): so a model gets public
marginals exactly. A drawn table has, by rounding, too many rows in some public cells and too few in others.
The surplus rows are removed, and as many are drawn anew, conditioned on the cells that lack rows.

A triple's counts by a model follow what the model holds. Fitted to pairs that were measured outside of the
tree, they are the distribution nearest to the model's that has these pairs (``RakedEstimates``).

A model of weights, in which all rows of a person count as much as those of another, is made one of rows by
raking to counts of rows of single columns: as if the number of rows of a person were a product of factors of
the columns.

Invariant: post-processing of a model and of answers. If the model gives the public cells any probability, its
marginals are the public ones. It keeps its number of rows in any case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations
from math import sqrt

import numpy as np

from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.measurement import Observation, PublicCounts, PublicMarginal, PublicMarginals
from dpsynth.model.factor import Array, spread, sum_in_order, sum_to
from dpsynth.model.junction_tree import Edge, JunctionTree
from dpsynth.model.markov_random_field import MarkovRandomField, ZeroProbability
from dpsynth.model.rounding import Codes, permuted, position_of
from dpsynth.model.sampling import sample

_SCALE = 0.5
"""Noise scale, in rows, for the rounding of a public number to rows."""

_ROUNDS, _ROUNDS_OF_PAIRS = 200, 8
"""Rounds of proportional fitting of a model, and of a clique's counts to their pairs."""

_CLOSE = 1e-9
"""Tolerance of a share."""

_TRIES = 8

_NOBODY = 1e-9
"""Least expected number of rows of a value."""
_SURELY = 2.0
"""Standard deviations that a sum of squares exceeds what noise explains by, to be no noise."""


def public_counts(
    known: PublicMarginals, rows: float
) -> tuple[tuple[PublicCounts, ...], tuple[PublicCounts, ...]]:
    """Public marginals of single columns, and of several columns, as counts of so many rows."""

    def answered(clique: Clique, shares: Array) -> PublicCounts:
        return PublicCounts(clique, np.rint(shares * rows).astype(np.int64), "gaussian", _SCALE)

    singles = {c: m.summed((c,)) for m in known.marginals for c in m.clique}
    joint = (answered(m.clique, m.shares) for m in known.marginals if len(m.clique) > 1)
    return tuple(answered((c,), shares) for c, shares in singles.items()), tuple(joint)


def raked(model: MarkovRandomField, known: PublicMarginals) -> MarkovRandomField:
    """The nearest model with the public marginals; its tree has a clique around the columns of each."""
    # A round walks through the tree, depth first, and back to its root. Each step passes changes on over one
    # edge, so the beliefs are right where the walk is, and everywhere after the last round.
    tree, beliefs = model.tree, list(model.beliefs)
    walk, homes = _depth_first(tree), dict[int | None, list[PublicMarginal]]()
    for marginal in known.marginals:
        homes.setdefault(tree.home(marginal.clique), []).append(marginal)

    def back(to: int) -> None:
        while path[-1].child != to:
            edge = path.pop()
            _pass_on(tree, beliefs, edge, edge.child, edge.parent)

    def set_all(home: int) -> float:
        return max((_set(model, beliefs, home, marginal) for marginal in homes.get(home, ())), default=0.0)

    for _ in range(_ROUNDS if homes else 0):
        farthest, path = set_all(0), [Edge(0, 0, ())]
        for edge in walk:
            back(edge.parent)
            _pass_on(tree, beliefs, edge, edge.parent, edge.child)
            farthest = max(farthest, set_all(edge.child))
            path.append(edge)
        back(0)
        if farthest <= _CLOSE:
            break
    for edge in tree.edges if homes else ():
        _pass_on(tree, beliefs, edge, edge.parent, edge.child)
    return MarkovRandomField(model.tree, tuple(beliefs), model.total)


def _depth_first(tree: JunctionTree) -> list[Edge]:
    """The edges in the order of a walk, depth first; those of an expanded model are in another one."""
    below: dict[int, list[Edge]] = {}
    for edge in reversed(tree.edges):
        below.setdefault(edge.parent, []).append(edge)
    found, waiting = list[Edge](), below.get(0, [])
    while waiting:
        found.append(edge := waiting.pop())
        waiting += below.get(edge.child, [])
    return found


def row_counts(counted: Iterable[Observation], model: MarkovRandomField, rows: float) -> dict[Clique, Array]:
    """Counts of rows of single columns: noisy ones, shrunk to a model of the same rows by other weights.

    A count is taken to be normal about the model's count m, with variance k m times all rows; k is learnt
    from all columns together (empirical Bayes). A column whose counts surely lie elsewhere is shrunk no more
    than its own distance asks for (James and Stein 1961).

    Args:
        counted: noisy counts of rows; those of several columns together are left out.
        model: the model, of any number of rows.
    """
    known: dict[Clique, _Counted] = {
        clique: _Counted.of([m for m in counted if m.clique == clique], model.marginal(clique), rows)
        for clique in dict.fromkeys(m.clique for m in counted if len(m.clique) == 1 and m.variance > 0)
    }
    of_all = _Counted.spread(known.values())
    found: dict[Clique, Array] = {}
    for clique, one in known.items():
        between = of_all * one.expected * rows
        kept = np.maximum(between / (between + one.variances), one.surely)
        posterior = one.expected + kept * (one.counts - one.expected)
        found[clique] = np.maximum(posterior, 0.0) if posterior.max() > 0 else one.expected
    return found


@dataclass(frozen=True, eq=False)
class _Counted:
    """Noisy counts of a column, made to add up to the rows; what is expected; the noise's variances."""

    counts: Array
    expected: Array
    variances: Array

    @classmethod
    def of(cls, answers: Sequence[Observation], weighted: Array, rows: float) -> _Counted:
        precision = np.sum([1 / m.variances for m in answers], axis=0)
        counts = np.sum([m.values / m.variances for m in answers], axis=0) / precision
        variances = 1 / precision
        expected = np.maximum(weighted, _NOBODY)
        level = counts - (counts.sum() - rows) * variances / variances.sum()
        return cls(level, expected * (rows / expected.sum()), variances)

    @property
    def surely(self) -> float:
        """The part of the distance from what is expected that noise doesn't explain; 0 if it may be noise."""
        squares = float(((self.counts - self.expected) ** 2).sum())
        noise = float(self.variances.sum()) * (1 - 1 / self.counts.size)
        least = 1 + _SURELY * sqrt(2 / max(self.counts.size - 1, 1))
        return 1 - noise / squares if squares > least * noise else 0.0

    @staticmethod
    def spread(some: Iterable[_Counted]) -> float:
        """The k of ``row_counts``, by the squares that noise doesn't explain."""
        beyond = of_one = 0.0
        for one in some:
            explained = float(one.variances.sum()) * (1 - 1 / one.counts.size)
            beyond += float(((one.counts - one.expected) ** 2).sum()) - explained
            of_one += float(one.expected.sum()) ** 2
        return max(0.0, beyond / max(of_one, 1e-300))


def of_rows(model: MarkovRandomField, counts: Mapping[Clique, Array], rows: float) -> MarkovRandomField:
    """The nearest model with these counts of single columns, of so many rows."""
    known = tuple(PublicMarginal(clique, values, counted=False) for clique, values in counts.items())
    nearest = raked(model, PublicMarginals(known))
    scale = rows / model.total
    return MarkovRandomField(nearest.tree, tuple(b * scale for b in nearest.beliefs), rows)


def counts_of_rows(
    counts: Mapping[Clique, Array], weighted: MarkovRandomField, model: MarkovRandomField
) -> dict[Clique, Array]:
    """Counts by weights as counts of rows: each cell times the ratio of two models, raked to the columns."""
    found = {}
    of_weights, of_all_rows = weighted.marginals(list(counts)), model.marginals(list(counts))
    for clique, values in counts.items():
        before, after = of_weights[clique], of_all_rows[clique]
        ratio = np.divide(after, before, out=np.ones_like(after), where=before > 0)
        axes = range(after.ndim)
        others = [tuple(i for i in axes if i != axis) for axis in axes]
        wanted = {gone: after.sum(axis=gone, keepdims=True) for gone in others}
        found[clique] = raked_counts(values * ratio, wanted, _ROUNDS_OF_PAIRS)
    return found


def raked_counts(counts: Array, wanted: Mapping[tuple[int, ...], Array], rounds: int) -> Array:
    """Counts with other sums, by rounds of iterative proportional fitting.

    Args:
        wanted: sums by the axes that they are over, which have a length of 1 in them.
    """
    for _ in range(rounds):
        for gone, target in wanted.items():
            sums = counts.sum(axis=gone, keepdims=True)
            counts = counts * np.divide(target, sums, out=np.zeros_like(sums), where=sums > 0)
    return counts


def _set(model: MarkovRandomField, beliefs: list[Array], home: int, marginal: PublicMarginal) -> float:
    """Largest error of a marginal's shares among possible cells, before it is set in a clique around it."""
    clique = model.tree.cliques[home]
    now = sum_to(beliefs[home].astype(np.float64), clique, marginal.clique) / model.total
    shares = np.where(now > 0, marginal.shares, 0.0)
    shares /= shares.sum()
    off = float(np.abs(now - shares).max())
    ratio = np.divide(shares, now, out=np.ones_like(now), where=now > 0)
    order = tuple(c for c in clique if c in marginal.clique)
    beliefs[home] = beliefs[home] * spread(sum_to(ratio, marginal.clique, order), order, clique)
    return off


def _pass_on(tree: JunctionTree, beliefs: list[Array], edge: Edge, source: int, to: int) -> None:
    new, old = (sum_in_order(beliefs[i], tree.cliques[i], edge.separator) for i in (source, to))
    change = np.divide(new, old, out=np.zeros_like(new), where=old > 0)
    beliefs[to] = beliefs[to] * spread(change, edge.separator, tree.cliques[to])


def whole_counts(known: PublicMarginals, rows: int, rng: np.random.Generator) -> tuple[Codes, ...]:
    """Whole numbers of rows for the cells of each public marginal.

    They are exact if the public numbers are counts of as many rows. Otherwise each is rounded up or down, so
    that a marginal agrees with an earlier one on shared columns; ``rng`` decides between cells with equal
    fractions.
    """
    found: list[tuple[Clique, Codes]] = []
    for marginal in known.marginals:
        exact = marginal.shares * rows
        shared = max((tuple(c for c in marginal.clique if c in b) for b, _ in found), key=len, default=())
        axes = tuple(marginal.clique.index(c) for c in shared)
        others = tuple(i for i in range(exact.ndim) if i not in axes)
        transposed = exact.transpose((*axes, *others)).reshape(
            int(np.prod([exact.shape[i] for i in axes])), -1
        )
        sums = np.array([rows])
        if shared:
            before, counts = next((c, n) for c, n in found if set(shared) <= set(c))
            sums = sum_to(counts.astype(np.float64), before, shared).reshape(-1).round().astype(np.int64)
        rounded = np.stack([_rounded(line, int(n), rng) for line, n in zip(transposed, sums, strict=True)])
        shape = [exact.shape[i] for i in (*axes, *others)]
        back = np.argsort((*axes, *others))
        found.append((marginal.clique, rounded.reshape(shape).transpose(back)))
    return tuple(counts for _, counts in found)


def _rounded(exact: Array, rows: int, rng: np.random.Generator) -> Codes:
    """Whole numbers with the sum ``rows``, each within 1 of its share."""
    if not exact.sum():
        exact = np.ones_like(exact)
    scaled = exact * (rows / exact.sum())
    near = np.rint(scaled)
    scaled = np.where(np.abs(scaled - near) < _CLOSE * max(rows, 1), near, scaled)
    found = np.floor(scaled).astype(np.int64)
    left = rows - int(found.sum())
    if left > 0:
        parts = np.maximum(scaled - found, 0)
        mixed = permuted(parts.size, rng)
        order = mixed[np.argsort(-parts[mixed], kind="stable")]
        found[order[:left]] += 1
    return found


def raked_rows(
    model: MarkovRandomField, known: PublicMarginals, codes: Mapping[str, Codes], rng: np.random.Generator
) -> dict[str, Codes]:
    """The rows of a table, some of them drawn anew so that public cells have the right numbers of rows.

    If this is impossible for all marginals (three in a ring; cells that the model excludes), it is done for
    as many as possible, and the last marginals may be off by the rounding of the draw.
    """
    if len(next(iter(codes.values()))):
        for number in range(len(known.marginals), 0, -1):
            found = _redrawn(model, PublicMarginals(known.marginals[:number]), codes, rng)
            if found is not None:
                return found
    return dict(codes)


def _redrawn(
    model: MarkovRandomField, known: PublicMarginals, codes: Mapping[str, Codes], rng: np.random.Generator
) -> dict[str, Codes] | None:
    """The rows with some drawn anew; None if that is impossible."""
    domain, rows = model.tree.domain, len(next(iter(codes.values())))
    wanted = whole_counts(known, rows, rng)
    kept = np.ones(rows, dtype=np.bool_)
    order = permuted(rows, rng)
    for clique, counts in zip(known.cliques, wanted, strict=True):
        cell = position_of(codes, clique, domain, rows)
        left = order[kept[order]]
        by_cell = left[np.argsort(cell[left], kind="stable")]
        ranked = cell[by_cell]
        first = np.searchsorted(ranked, ranked)
        kept[by_cell[np.arange(len(ranked)) - first >= counts.reshape(-1)[ranked]]] = False
    gone = np.flatnonzero(~kept)
    if not gone.size:
        return dict(codes)
    for _ in range(_TRIES):
        given = _missing(known, wanted, {c: v[kept] for c, v in codes.items()}, domain, gone.size, rng)
        if given is None:
            return None
        try:
            fresh = sample(model, gone.size, rng, given=given)
        except ZeroProbability:
            continue
        return {c: _put(v, gone, fresh[c]) for c, v in codes.items()}
    return None


def _put(values: Codes, places: Codes, fresh: Codes) -> Codes:
    found = values.copy()
    found[places] = fresh
    return found


def _missing(
    known: PublicMarginals,
    wanted: tuple[Codes, ...],
    codes: Mapping[str, Codes],
    domain: Domain,
    rows: int,
    rng: np.random.Generator,
) -> dict[str, Codes] | None:
    found: dict[str, Codes] = {}
    for clique, counts in zip(known.cliques, wanted, strict=True):
        have = np.bincount(
            position_of(codes, clique, domain, len(next(iter(codes.values())))), minlength=counts.size
        )
        short = counts.reshape(-1) - have
        if (short < 0).any() or short.sum() != rows:
            return None
        cells = np.repeat(np.arange(counts.size), short)[permuted(rows, rng)]
        mine = dict(zip(clique, np.unravel_index(cells, counts.shape), strict=True))
        shared = [c for c in clique if c in found]
        # Rows of both that agree on the columns that they share are put side by side.
        ours, theirs = (position_of(side, tuple(shared), domain, rows) for side in (mine, found or mine))
        to, of = np.argsort(theirs, kind="stable"), np.argsort(ours, kind="stable")
        if not np.array_equal(ours[of], theirs[to]):
            return None
        for column in clique:
            placed = np.empty(rows, dtype=np.int64)
            placed[to] = mine[column][of]
            found.setdefault(column, placed)
    return found


@dataclass(frozen=True, eq=False)
class RakedEstimates:
    """A model, and counts of pairs that are better than the model's, columns in the order of its domain."""

    model: MarkovRandomField
    pairs: Mapping[Clique, Array]

    def marginal(self, clique: Clique) -> Array:
        return self.marginals([clique])[clique]

    def marginals(self, cliques: Sequence[Clique]) -> dict[Clique, Array]:
        return {c: self._raked(c, np.maximum(m, 0.0)) for c, m in self.model.marginals(cliques).items()}

    def fingerprint(self) -> str:
        digest = sha256(self.model.fingerprint().encode())
        for clique, counts in self.pairs.items():
            digest.update(repr(clique).encode())
            digest.update(np.ascontiguousarray(counts).tobytes())
        return digest.hexdigest()

    def _raked(self, clique: Clique, counts: Array) -> Array:
        within = [pair for pair in combinations(clique, 2) if pair in self.pairs]
        if not within or len(clique) < 2:
            return counts
        total = float(counts.sum())
        wanted = {}
        for pair in combinations(clique, 2):
            gone = tuple(i for i, c in enumerate(clique) if c not in pair)
            target = self.pairs[pair] if pair in self.pairs else counts.sum(axis=gone)
            scaled = target * (total / max(float(target.sum()), 1e-300))
            wanted[gone] = np.expand_dims(scaled, gone) if gone else scaled
        return raked_counts(counts, wanted, _ROUNDS_OF_PAIRS if len(wanted) > 1 else 1)
