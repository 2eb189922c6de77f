"""Completion of rows with fixed values: messages of belief propagation up the tree, piece by piece.

Rows may be fixed to different values. A piece of evidence is a distinct combination of fixed
values. An edge distinguishes only the pieces that differ in columns below it.

Invariant: the arithmetic is additions, products and divisions in a fixed order, so that a seed gives the
same rows on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth.columns.domain import Clique
from dpsynth.model.conditioning import ImpossibleEvidence
from dpsynth.model.factor import Array, spread, sum_in_order
from dpsynth.model.junction_tree import Edge, JunctionTree
from dpsynth.model.rounding import Codes
from dpsynth.model.variable_elimination import divided

_BLOCK = 1 << 19
"""Cells of a clique, over pieces of evidence, that are processed together."""


def ranked(keys: Sequence[tuple[Codes, int]], count: int) -> tuple[Codes, Codes]:
    """Numbers of the distinct combinations of some keys.

    Args:
        keys: int64[count] each, with an exclusive upper bound of its values.
        count: length of the keys.

    Returns:
        int64[count], the number of each combination, and the first position of each combination.
    """
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
        """The values for some pieces of evidence, at known codes of some of the columns.

        Returns:
            float64[pieces, *sizes of the remaining columns], and the remaining columns.
        """
        first = [i for i, c in enumerate(self.columns) if c in known]
        rest = [i for i, c in enumerate(self.columns) if c not in known]
        arranged = self.values.transpose([0, *(i + 1 for i in first), *(i + 1 for i in rest)])
        codes = tuple(known[self.columns[i]] for i in first)
        return arranged[(self.piece[pieces], *codes)], tuple(self.columns[i] for i in rest)


class Completion:
    """Upward pass of belief propagation for evidence on fixed columns."""

    def __init__(self, tree: JunctionTree, beliefs: Sequence[Array], fixed: Sequence[str]) -> None:
        """The edges with evidence below them, and the marginals of their separators."""
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
        """Number of cells of all messages, for one piece of evidence."""
        free = (tuple(c for c in e.separator if c not in self._fixed) for e in self._edges)
        return sum(self._tree.domain.cells(columns) for columns in free)

    def incoming(self, index: int, messages: Mapping[int, Message], known: Sequence[str]) -> list[Message]:
        """The messages to a clique about columns that are not known."""
        here = [messages[e.child] for e in self._edges if e.parent == index and e.child in messages]
        return [m for m in here if not set(m.columns).issubset(known)]

    def messages(self, values: Mapping[str, Codes]) -> dict[int, Message]:
        """Messages of belief propagation, by child clique.

        Args:
            values: int64[pieces] codes of each fixed column.

        Raises:
            ImpossibleEvidence: if a piece of evidence has probability zero.
        """
        found: dict[int, Message] = {}
        for edge in reversed(self._edges):
            message = self._message(edge, values, self.incoming(edge.child, found, ()))
            if message.columns:
                found[edge.child] = message
        root = self._tree.cliques[0]
        whole = set(root).issubset(self._fixed)
        if whole and not self._beliefs[0][tuple(values[c] for c in root)].all():
            raise ImpossibleEvidence(f"the model gives probability zero to fixed values of {root}")
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
                raise ImpossibleEvidence(f"the model gives probability zero to fixed values of {scope}")
            parts.append(ratio / peak)
        return Message(piece, columns, np.concatenate(parts))


def at(table: Array, codes: Sequence[Codes], count: int) -> Array:
    """The table's parts at some codes of its first axes, as a new float64 array.

    Args:
        table: the values.
        codes: int64[count] for each of the first axes; without codes the whole table is repeated.
        count: number of parts.
    """
    parts = table[tuple(codes)] if codes else np.broadcast_to(table, (count, *table.shape))
    return np.array(parts, dtype=np.float64, order="C", copy=not codes or None)
