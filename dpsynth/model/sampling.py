"""Sampling of a table of codes whose marginals follow the model's, at once or in chunks.

The method is randomised rounding down the junction tree. Within the rows that share a separator's value, each
cell of the clique gets the floor or the ceiling of its expected number of rows, with the right expectation
(systematic sampling in random row order). The error of a marginal is far below that of independent draws.
Columns that share no clique depend on each other only through the separators between them, as in the model:
rows are shuffled anew within each group.

Rows may be fixed to different values, by messages of belief propagation up the tree. A piece of evidence is a
distinct combination of fixed values. An edge distinguishes only the pieces that differ in columns below it.

In chunks, each cell of each clique first gets its whole number of rows for the entire stream. Then each chunk
takes its share of the remaining rows, rounded again, so errors do not add up.

Invariant: each single row has exactly the model's distribution (given the fixed values), up to multiples of
2^-52. The arithmetic is additions, products and divisions in a fixed order, so that a seed gives the same
rows on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.parities import parities
from dpsynth.model.factor import Array, spread, sum_in_order
from dpsynth.model.junction_tree import Edge, JunctionTree
from dpsynth.model.markov_random_field import MarkovRandomField, ZeroProbability
from dpsynth.model.rounding import (
    MOST_ROWS,
    Codes,
    NoWeight,
    assigned,
    bits,
    codes_of,
    distributions,
    drawn_cells,
    position_of,
    rounded,
    shuffled,
)
from dpsynth.model.variable_elimination import divided

_BLOCK = 1 << 19
"""Cells of a clique, over pieces of evidence, that are processed together."""


def ranked(keys: Sequence[tuple[Codes, int]], count: int) -> tuple[Codes, Codes]:
    """Number of each combination of some keys below their bounds, and the first position of each."""
    if not keys:
        return np.zeros(count, dtype=np.int64), np.zeros(1, dtype=np.int64)
    joined, bound = np.zeros(count, dtype=np.int64), 1
    for key, size in keys:
        if bound * size > 1 << 62:
            known, joined = np.unique(joined, return_inverse=True)
            bound = len(known)
        joined = joined * size + key
        bound *= size
    _, first, found = np.unique(joined, return_index=True, return_inverse=True)
    return found, first


@dataclass(frozen=True, eq=False)
class Message:
    """The message over an edge: probability of the evidence below it, given the separator.

    Attributes:
        piece: int64[pieces of all evidence], the row of ``values`` of each piece.
        columns: columns of the separator that are not fixed.
        values: float64[rows, *sizes of columns]; the largest value of each row is 1.
    """

    piece: Codes
    columns: Clique
    values: Array

    def given(self, pieces: Codes, known: Mapping[str, Codes]) -> tuple[Array, Clique]:
        """The values for some pieces at known codes, [pieces, *remaining columns]; and these columns."""
        first = [i for i, c in enumerate(self.columns) if c in known]
        rest = [i for i, c in enumerate(self.columns) if c not in known]
        arranged = self.values.transpose([0, *(i + 1 for i in first), *(i + 1 for i in rest)])
        codes = tuple(known[self.columns[i]] for i in first)
        return arranged[(self.piece[pieces], *codes)], tuple(self.columns[i] for i in rest)


class Completion:
    """Upward pass of belief propagation for evidence on fixed columns."""

    def __init__(self, tree: JunctionTree, beliefs: Sequence[Array], fixed: Sequence[str]) -> None:
        self._tree = tree
        self._beliefs = beliefs
        self._fixed = tuple(fixed)
        scopes = [set(fixed).intersection(c) for c in tree.cliques]
        for edge in reversed(tree.edges):
            scopes[edge.parent] |= scopes[edge.child]
        self._scopes = scopes
        self._edges = [e for e in tree.edges if not scopes[e.child].issubset(e.separator)]
        self._marginals = {
            e.child: sum_in_order(beliefs[e.child], tree.cliques[e.child], e.separator) for e in self._edges
        }

    def cells(self) -> int:
        free = (tuple(c for c in e.separator if c not in self._fixed) for e in self._edges)
        return sum(self._tree.domain.cells(columns) for columns in free)

    def incoming(self, index: int, messages: Mapping[int, Message], known: Sequence[str]) -> list[Message]:
        """The messages to a clique about columns that are not known."""
        here = [messages[e.child] for e in self._edges if e.parent == index and e.child in messages]
        return [m for m in here if not set(m.columns).issubset(known)]

    def messages(self, values: Mapping[str, Codes]) -> dict[int, Message]:
        """Messages by child clique for codes of each piece; ``ZeroProbability`` if a piece has none."""
        found: dict[int, Message] = {}
        for edge in reversed(self._edges):
            message = self._message(edge, values, self.incoming(edge.child, found, ()))
            if message.columns:
                found[edge.child] = message
        root = self._tree.cliques[0]
        whole = set(root).issubset(self._fixed)
        if whole and not self._beliefs[0][tuple(values[c] for c in root)].all():
            raise ZeroProbability(f"the model gives probability zero to fixed values of {root}")
        return found

    def _message(self, edge: Edge, values: Mapping[str, Codes], incoming: Sequence[Message]) -> Message:
        clique, sizes = self._tree.cliques[edge.child], self._tree.domain.sizes
        count = len(next(iter(values.values())))
        scope = self._tree.domain.canonical(self._scopes[edge.child])
        piece, first = ranked([(values[c], sizes[c]) for c in scope], count)
        own = tuple(c for c in clique if c in self._fixed)
        free = tuple(c for c in clique if c not in self._fixed)
        known = tuple(c for c in edge.separator if c in self._fixed)
        columns = tuple(c for c in edge.separator if c not in self._fixed)
        table = self._beliefs[edge.child].transpose([clique.index(c) for c in (*own, *free)])
        whole = self._marginals[edge.child].transpose([edge.separator.index(c) for c in (*known, *columns)])
        parts = []
        step = max(1, _BLOCK // self._tree.domain.cells(free))
        for begin in range(0, len(first), step):
            some = first[begin : begin + step]
            weights = at(table, [values[c][some] for c in own], len(some))
            mass = at(whole, [values[c][some] for c in known], len(some))
            weights = divided(weights, spread(mass, ("", *columns), ("", *free)))
            for message in incoming:
                factor, left = message.given(some, {})
                weights *= spread(factor, ("", *left), ("", *free))
            ratio = sum_in_order(weights, ("", *free), ("", *columns))
            peak = ratio.max(axis=tuple(range(1, ratio.ndim)), keepdims=True)
            if not peak.all():
                raise ZeroProbability(f"the model gives probability zero to fixed values of {scope}")
            parts.append(ratio / peak)
        return Message(piece, columns, np.concatenate(parts))


def at(table: Array, codes: Sequence[Codes], count: int) -> Array:
    """The table's parts at codes of its first axes, a new float64 array; without codes, the table."""
    parts = table[tuple(codes)] if codes else np.broadcast_to(table, (count, *table.shape))
    return np.array(parts, dtype=np.float64, order="C", copy=not codes or None)


_MESSAGE_CELLS = 1 << 24
"""Cells of messages about fixed values that are in memory at a time: 128 MB."""

Fixed = Mapping[str, int | NDArray[np.integer]]
"""Codes of some columns: one for all rows, or one for each row."""


def sample(
    model: MarkovRandomField, rows: int, rng: np.random.Generator, *, given: Fixed | None = None
) -> dict[str, Codes]:
    """A table drawn from a model: int64[rows] codes of every column of the domain, in table order.

    Only the raw words of the bit generator of ``rng`` are used, so a saved model and a seed give the same
    table on every machine. Memory: 8 bytes a row and column, some 50 bytes a row, and 16 bytes a cell of the
    largest conditional distribution of a clique given its separator. The model's arrays are not copied.

    Args:
        rng: generator for this post-processing step; it decides nothing private.
        given: codes of some columns, for all rows or for each row; every row's other columns follow the
            model's exact distribution given them, wherever they lie in the tree.

    Raises:
        ZeroProbability: the model gives probability zero to the values fixed in a row.
        ValueError: for an unknown column, or codes of a wrong shape or outside the domain.
    """
    if rows < 0:
        raise ValueError(f"rows must not be negative, not {rows}")
    domain = model.tree.domain
    fixed = {c: _fixed_codes(domain, c, value, rows) for c, value in (given or {}).items()}
    if not rows:
        return {c: np.empty(0, dtype=np.int64) for c in domain.columns}
    completion = Completion(model.tree, model.beliefs, tuple(fixed))
    which, first = ranked([(v, domain.sizes[c]) for c, v in fixed.items() if v.ndim], rows)
    distinct = {c: v[first] if v.ndim else np.broadcast_to(v, len(first)) for c, v in fixed.items()}
    step = max(1, _MESSAGE_CELLS // max(1, completion.cells()))
    if len(first) <= step:
        drawn = _completed(model, completion, which, distinct, rng)
        return {c: drawn[c] for c in domain.columns}
    found: dict[str, Codes] = {c: np.empty(rows, dtype=np.int64) for c in domain.columns}
    by_piece = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which))[step - 1 : -1 : step]
    for begin, part in zip(range(0, len(first), step), np.split(by_piece, ends), strict=True):
        values = {c: v[begin : begin + step] for c, v in distinct.items()}
        for column, codes in _completed(model, completion, which[part] - begin, values, rng).items():
            found[column][part] = codes
    return found


_FOR_PARITIES = 1 << 15
"""Rows of a sample for parities: their error is below a hundredth of all rows."""


def sampled_parities(model: MarkovRandomField, columns: Sequence[str], most: int) -> Array:
    """Expected parities of sets of columns of two places, as of ``parity_sets``, float64[sets], in rows.

    They are those of a sample of a fixed seed, so a resumed release has the same.
    """
    drawn = sample(model, _FOR_PARITIES, np.random.default_rng(0))
    exact = parities([drawn[c] for c in columns], most)
    return np.asarray(exact * (model.total / _FOR_PARITIES), dtype=np.float64)


def _fixed_codes(domain: Domain, column: str, value: int | NDArray[np.integer], rows: int) -> Codes:
    if column not in domain.sizes:
        raise ValueError(f"the model has no column {column!r}")
    codes = np.asarray(value)
    if not np.issubdtype(codes.dtype, np.integer) or codes.shape not in {(), (rows,)}:
        raise ValueError(f"column {column!r} must be fixed to one integer code or to {rows}, one a row")
    if codes.size and not 0 <= codes.min() <= codes.max() < domain.sizes[column]:
        raise ValueError(f"a code of {column!r} is outside 0 to {domain.sizes[column] - 1}")
    return codes.astype(np.int64)


def _completed(
    model: MarkovRandomField,
    completion: Completion,
    which: Codes,
    fixed: Mapping[str, Codes],
    rng: np.random.Generator,
) -> dict[str, Codes]:
    messages = completion.messages(fixed)
    drawn = {column: codes[which] for column, codes in fixed.items()}
    try:
        for index in (0, *(e.child for e in model.tree.edges)):
            clique = model.tree.cliques[index]
            known = tuple(c for c in clique if c in drawn)
            if len(known) < len(clique):
                incoming = completion.incoming(index, messages, known)
                drawn |= _extension(model, index, drawn, which, incoming, rng)
    except NoWeight:
        if fixed:
            raise ZeroProbability("the model gives probability zero to a row's fixed values") from None
        raise
    return drawn


def _extension(
    model: MarkovRandomField,
    index: int,
    drawn: Mapping[str, Codes],
    which: Codes,
    incoming: Sequence[Message],
    rng: np.random.Generator,
) -> dict[str, Codes]:
    domain, clique = model.tree.domain, model.tree.cliques[index]
    known, new = tuple(c for c in clique if c in drawn), tuple(c for c in clique if c not in drawn)
    table = model.beliefs[index].transpose([clique.index(c) for c in (*known, *new)])
    cells = domain.cells(new)
    group = position_of(drawn, known, domain, len(which))
    piece, first = ranked(
        [(m.piece, len(m.values)) for m in incoming], len(incoming[0].piece) if incoming else 1
    )
    pieces = len(first)
    if incoming:
        group *= pieces
        group += piece[which]

    def weights_of(groups: Codes) -> Array:
        codes = codes_of(groups // pieces, known, domain)
        weights = at(table, tuple(codes.values()), len(groups))
        for message in incoming:
            values, free = message.given(first[groups % pieces], codes)
            weights *= spread(values, ("", *free), ("", *new))
        return weights.reshape(len(groups), cells)

    cell = drawn_cells(group, domain.cells(known) * pieces, cells, weights_of, rng)
    return codes_of(cell, new, domain)


_LARGEST_CHUNK = 1 << 25
"""Largest number of rows of a chunk; products with the remaining rows fit 63 bits."""


@dataclass(frozen=True, eq=False)
class _Reserve:
    """Remaining rows of a clique's cells, for the cells that get any.

    Attributes:
        known, new: columns of the separator, and the other columns.
        groups: int64, separator values that have rows, ascending.
        starts: int64[groups + 1], index of the first cell of each group.
        cells: int64, position of each cell among the cells of its group; ascending in each group.
        left: int64, remaining rows of each cell.
    """

    known: Clique
    new: Clique
    groups: Codes
    starts: Codes
    cells: Codes
    left: Codes

    def codes(self, domain: Domain) -> dict[str, Codes]:
        group = np.repeat(self.groups, np.diff(self.starts))
        return codes_of(group, self.known, domain) | codes_of(self.cells, self.new, domain)

    def take(self, sizes: Codes, rng: np.random.Generator) -> Codes:
        """Rows of each cell in a chunk with ``sizes`` rows of each group, taken from the remaining rows.

        Systematic sampling: with L the cumulative remaining rows of a group, R of them in all, and u uniform
        below R, cells up to c get floor((m L_c + u) / R) of the chunk's m rows. No cell gets more than its
        remaining rows.
        """
        ends = np.cumsum(self.left)
        starts = self.starts[:-1]
        before = ends[starts] - self.left[starts]
        rest = ends[self.starts[1:] - 1] - before
        # Below 2^37, these are uniform to within 2^-26.
        phase = (bits(rng, len(rest)) % np.maximum(rest, 1).astype(np.uint64)).astype(np.int64)
        lengths = np.diff(self.starts)
        ends -= np.repeat(before, lengths)
        ends *= np.repeat(sizes, lengths)
        ends += np.repeat(phase, lengths)
        ends //= np.repeat(np.maximum(rest, 1), lengths)
        counts = ends.copy()
        counts[1:] -= ends[:-1]
        counts[starts] = ends[starts]
        self.left[:] -= counts
        return counts


def _allotted(model: MarkovRandomField, rows: int, rng: np.random.Generator) -> list[_Reserve]:
    """Number of rows of each cell in the entire stream, for each clique in the tree's order."""
    domain = model.tree.domain
    found: dict[int, _Reserve] = {}
    steps = [(0, 0, ()), *((e.child, e.parent, e.separator) for e in model.tree.edges)]
    for index, parent, known in steps:
        clique = model.tree.cliques[index]
        new = tuple(c for c in clique if c not in known)
        table = model.beliefs[index].transpose([clique.index(c) for c in (*known, *new)])
        groups, sizes = np.zeros(1, dtype=np.int64), np.array([rows])
        if index != parent:
            position = position_of(found[parent].codes(domain), known, domain, len(found[parent].cells))
            groups, feed = np.unique(position, return_inverse=True)
            sizes = _summed(feed, found[parent].left, len(groups))

        def weights_of(some: Codes, table: Array = table, known: Clique = known) -> Array:
            return at(table, tuple(codes_of(some, known, domain).values()), len(some)).reshape(len(some), -1)

        cells, counts, lengths = [], [], []
        for _, rows_each, reach in distributions(groups, sizes, domain.cells(new), weights_of):
            whole = rounded(reach, rows_each, rng)
            group, cell = np.nonzero(whole)
            cells.append(cell)
            counts.append(whole[group, cell])
            lengths.append(np.bincount(group, minlength=len(rows_each)))
        starts = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
        found[index] = _Reserve(known, new, groups, starts, np.concatenate(cells), np.concatenate(counts))
    return [found[index] for index in range(len(found))]


def _summed(places: Codes, counts: Codes, length: int) -> Codes:
    """Sums of counts by place; exact, since they stay far below 2^53."""
    return np.bincount(places, weights=counts, minlength=length).astype(np.int64)


def chunk_draws(
    model: MarkovRandomField, rows: int, seed: int, *, chunk: int
) -> Iterator[Callable[[], dict[str, Codes]]]:
    """A table of any length in chunks, each as a function that draws it; any thread may call it.

    All chunks together are one rounded sample, and each by itself follows the model too, with an error about
    as small. Chunk t follows from the arguments, on every machine. Memory: that of ``sample`` for one chunk,
    and 24 bytes for each cell of the tree that gets rows, with 8 more for each edge below it.

    Raises:
        ValueError: the rows are not below 2^37, or those of a chunk not 1 to 2^25.
    """
    if not 0 <= rows < MOST_ROWS or not 0 < chunk <= _LARGEST_CHUNK:
        raise ValueError(f"rows must be in 0 to {MOST_ROWS - 1}, chunk in 1 to {_LARGEST_CHUNK}")
    if not rows:
        return
    domain, edges = model.tree.domain, model.tree.edges
    reserves = _allotted(model, rows, _generator(seed, 0))
    feeds = {}
    for edge in edges:
        above, here = reserves[edge.parent], reserves[edge.child]
        position = position_of(above.codes(domain), edge.separator, domain, len(above.cells))
        feeds[edge.child] = np.searchsorted(here.groups, position)
    for number, begin in enumerate(range(0, rows, chunk)):
        size, rng = min(chunk, rows - begin), _generator(seed, 1, number)
        counts = {0: reserves[0].take(np.array([size]), rng)}
        for edge in edges:
            here = reserves[edge.child]
            taken = _summed(feeds[edge.child], counts[edge.parent], len(here.groups))
            counts[edge.child] = here.take(taken, rng)
        yield partial(_arranged, domain, reserves, edges, counts, size, _generator(seed, 2, number))


def _generator(seed: int, *key: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


def _arranged(
    domain: Domain,
    reserves: list[_Reserve],
    edges: Sequence[Edge],
    counts: Mapping[int, Codes],
    size: int,
    rng: np.random.Generator,
) -> dict[str, Codes]:
    drawn: dict[str, Codes] = {}
    for index in (0, *(e.child for e in edges)):
        here = reserves[index]
        if not here.new:
            continue
        group = position_of(drawn, here.known, domain, size)
        cell = assigned(np.repeat(here.cells, counts[index]), shuffled(group, domain.cells(here.known), rng))
        drawn |= codes_of(cell, here.new, domain)
    return {c: drawn[c] for c in domain.columns}
