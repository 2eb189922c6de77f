"""Variable elimination: marginals over columns that share no clique of the junction tree.

A message over an edge is the joint marginal of the separator and of the wanted columns beyond it. Messages
and partial sums are kept between requests, so that a batch does shared work once. Routes, the way from a
clique to a column, depend on names only; they are made once for each tree.

Invariant: only the part of the tree between the wanted columns is walked, and no array is larger than the
limit.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import fsum, log, prod

import numpy as np

from dpsynth.columns.domain import Clique, Domain
from dpsynth.model.factor import Array, spread, sum_in_order
from dpsynth.model.junction_tree import Edge, JunctionTree


class Routes:
    """Routes through one junction tree; ``separators`` by clique and neighbour."""

    def __init__(self, tree: JunctionTree) -> None:
        """The routes of a tree; cliques are numbered so that each subtree is an interval."""
        self.tree = tree
        count = len(tree.cliques)
        self.separators: list[dict[int, Clique]] = [{} for _ in range(count)]
        self._parent = [-1] * count
        self._children: list[list[int]] = [[] for _ in range(count)]
        sizes, following = [1] * count, [1] * count
        for edge in reversed(tree.edges):
            sizes[edge.parent] += sizes[edge.child]
        self._enter = [0] * count
        for edge in tree.edges:
            self._parent[edge.child] = edge.parent
            self._children[edge.parent].append(edge.child)
            self.separators[edge.child][edge.parent] = edge.separator
            self.separators[edge.parent][edge.child] = edge.separator
            self._enter[edge.child] = following[edge.parent]
            following[edge.parent] += sizes[edge.child]
            following[edge.child] = self._enter[edge.child] + 1
        self._leave = [e + s for e, s in zip(self._enter, sizes, strict=True)]
        self._members = [frozenset(c) for c in tree.cliques]
        self._top: dict[str, int] = {}
        for index in (0, *(e.child for e in tree.edges)):
            for column in tree.cliques[index]:
                self._top.setdefault(column, index)
        self._toward: dict[tuple[int, str], int] = {}

    def toward(self, index: int, column: str) -> int:
        """The neighbour of a clique on the way to a column that the clique lacks."""
        known = self._toward.get((index, column))
        if known is None:
            place = self._enter[self._top[column]]
            if self._enter[index] <= place < self._leave[index]:
                children = self._children[index]
                known = children[bisect_right(children, place, key=lambda k: self._enter[k]) - 1]
            else:
                known = self._parent[index]
            self._toward[index, column] = known
        return known

    def inputs(self, index: int, wanted: Iterable[str]) -> dict[int, frozenset[str]]:
        """Neighbours through which a clique gets wanted columns that it lacks, each with these columns."""
        found: dict[int, set[str]] = {}
        # The order of a set of texts is another in every process, and orders of sums would follow it.
        for column in sorted(wanted):
            if column not in self._members[index]:
                found.setdefault(self.toward(index, column), set()).add(column)
        return {k: frozenset(columns) for k, columns in found.items()}

    def meeting(self, wanted: frozenset[str], weights: Mapping[str, float]) -> int:
        """The clique at which messages about the wanted columns meet: their weighted centre."""
        index = self._top[max(sorted(wanted), key=lambda c: weights[c])] if wanted else 0
        while True:
            for neighbour, beyond in self.inputs(index, wanted).items():
                shared = self.separators[index][neighbour]
                near = wanted.difference(beyond, shared)
                if not near or fsum(weights[c] for c in beyond) > fsum(weights[c] for c in near):
                    index = neighbour
                    break
            else:
                return index

    def span(self, columns: Iterable[str]) -> tuple[JunctionTree, tuple[int, ...]]:
        """The smallest part of the tree that holds some columns, with those columns that connect them.

        Each of its cliques comes with the clique of this tree of which it is a part.
        """
        wanted = frozenset(columns)
        origin = [self.meeting(wanted, dict.fromkeys(wanted, 1.0))]
        needs = [set(wanted & self._members[origin[0]])]
        links: list[tuple[int, int, Clique]] = []
        waiting = [(0, wanted)]
        while waiting:
            place, missing = waiting.pop()
            for neighbour, beyond in self.inputs(origin[place], missing).items():
                separator = self.separators[origin[place]][neighbour]
                links.append((len(origin), place, separator))
                needs[place].update(separator)
                needs.append({*separator, *(beyond & self._members[neighbour])})
                waiting.append((len(origin), beyond))
                origin.append(neighbour)
        canonical = self.tree.domain.canonical
        kept = {c for need in needs for c in need}
        domain = Domain({c: s for c, s in self.tree.domain.sizes.items() if c in kept})
        cliques = tuple(canonical(need) for need in needs)
        edges = tuple(Edge(*link) for link in links)
        return replace(self.tree, domain=domain, cliques=cliques, edges=edges), tuple(origin)


CELL_LIMIT = 100_000_000
"""Default for the largest number of cells of a result or an intermediate: 800 MB."""

_KEPT_CELLS = 16_000_000
"""Cells of messages and partial sums that are kept from one request to the next."""

_ONE_THREAD = 1 << 18
"""Multiplications up to which OpenBLAS uses one thread.

On a busy machine, waiting for other threads took five to thirty times as long as the product.
"""

Factor = tuple[Clique, Array]
"""Columns, and an array with one axis for each column."""

Message = tuple[int, int, frozenset[str]]
"""Sender, receiver (its neighbour), and the wanted columns beyond the edge."""


def checked(domain: Domain, clique: Clique, limit: int) -> None:
    """ValueError for a marginal with unknown or repeated columns, or with more cells than the limit."""
    unknown = [c for c in clique if c not in domain.sizes]
    if unknown:
        raise ValueError(f"the model has no column {unknown[0]!r}")
    if len(set(clique)) < len(clique):
        raise ValueError(f"the clique {clique} names a column twice")
    _refuse_above(limit, domain.cells(clique), f"the marginal of {clique}")


def _refuse_above(limit: int, cells: int, what: str) -> None:
    if cells > limit:
        raise ValueError(f"{what} has {cells:,} cells; the limit is {limit:,}")


def _stacked_product(left: Array, right: Array) -> Array:
    rows, (_, inner, columns) = left.shape[1], right.shape
    step = max(1, _ONE_THREAD // (inner * columns))
    if step >= rows:
        return np.matmul(left, right)
    found = np.empty((len(left), rows, columns))
    for begin in range(0, rows, step):
        np.matmul(left[:, begin : begin + step], right, out=found[:, begin : begin + step])
    return found


def _contracted(left: Factor, right: Factor, kept: set[str], limit: int) -> Factor:
    """The product of two factors, summed to the kept columns, as a stack of matrix products."""
    sizes = dict(zip(left[0], left[1].shape, strict=True)) | dict(zip(right[0], right[1].shape, strict=True))
    shared = [c for c in left[0] if c in right[0]]
    batch, inner = [c for c in shared if c in kept], [c for c in shared if c not in kept]
    rows = [c for c in left[0] if c in kept and c not in shared]
    columns = [c for c in right[0] if c in kept and c not in shared]
    found = (*batch, *rows, *columns)
    _refuse_above(limit, prod(sizes[c] for c in found), f"an intermediate over {found}")
    stacks, inside = prod(sizes[c] for c in batch), prod(sizes[c] for c in inner)
    a = sum_in_order(left[1], left[0], (*batch, *rows, *inner)).reshape(stacks, -1, inside)
    b = sum_in_order(right[1], right[0], (*batch, *inner, *columns)).reshape(stacks, inside, -1)
    return found, _stacked_product(a, b).reshape([sizes[c] for c in found])


def divided(values: Array, by: Array) -> Array:
    """The quotient values / by, and 0 where ``by`` is 0."""
    return np.divide(values, by, out=np.zeros(np.broadcast_shapes(values.shape, by.shape)), where=by > 0)


def marginals_within(values: Array, clique: Clique, wanted: Sequence[Clique]) -> dict[Clique, Array]:
    """Marginals of one array over several subsets of its columns, in few passes over it.

    The column that most subsets do not need is summed out first, and these subsets continue from there.
    """
    found: dict[Clique, Array] = {}
    tasks = [(clique, values, list(wanted))]
    while tasks:
        columns, array, asked = tasks.pop()
        used = {c for w in asked for c in w}
        kept = tuple(c for c in columns if c in used)
        array = sum_in_order(array, columns, kept)
        if len(asked) == 1:
            found[asked[0]] = sum_in_order(array, kept, asked[0])
            continue
        gone = max(
            kept, key=lambda c: (sum(c not in w for w in asked), array.shape[kept.index(c)]), default=""
        )
        without = [w for w in asked if gone not in w]
        if not without:
            found.update((w, sum_in_order(array, kept, w)) for w in asked)
            continue
        rest = [w for w in asked if gone in w]
        tasks.append((kept, array, without))
        if rest:
            tasks.append((kept, array, rest))
    return found


class VariableElimination:
    """Marginals from the calibrated beliefs of a junction tree; shared messages and sums are kept."""

    def __init__(self, routes: Routes, beliefs: Sequence[Array], limit: int) -> None:
        self._routes = routes
        self._beliefs = beliefs
        self._limit = limit
        self._sums: dict[int, list[Factor]] = defaultdict(list)
        self._messages: dict[Message, Factor] = {}
        self._kept = 0

    def forget(self, *, all_messages: bool = False) -> None:
        """Drop all messages if asked to or if too many cells are kept; then the sums too if needed."""
        if all_messages or self._kept > _KEPT_CELLS:
            self._kept -= sum(values.size for _, values in self._messages.values())
            self._messages.clear()
        if self._kept > _KEPT_CELLS:
            self._sums.clear()
            self._kept = 0

    def marginal(self, clique: Clique, weights: Mapping[str, float]) -> Array:
        """The marginal of columns anywhere in the tree; messages carry columns of less weight."""
        wanted = frozenset(clique)
        root = self._routes.meeting(wanted, weights)
        incoming = self._routes.inputs(root, wanted)
        self._deliver([(k, root, columns) for k, columns in incoming.items()])
        return sum_in_order(*self._combined(root, wanted, incoming)[::-1], clique)

    def _deliver(self, wanted: Iterable[Message]) -> None:
        stack = list(wanted)
        while stack:
            message = stack[-1]
            if message in self._messages:
                stack.pop()
                continue
            sender, receiver, columns = message
            incoming = self._routes.inputs(sender, columns)
            missing = [m for k, c in incoming.items() if (m := (k, sender, c)) not in self._messages]
            if missing:
                stack += missing
                continue
            separator = self._routes.separators[sender][receiver]
            factor = self._combined(sender, columns.union(separator), incoming)
            self._messages[message] = factor
            self._kept += factor[1].size
            stack.pop()

    def _combined(self, index: int, kept: frozenset[str], incoming: Mapping[int, frozenset[str]]) -> Factor:
        links, clique = self._routes.separators[index], self._routes.tree.cliques[index]
        messages = {k: self._messages[k, index, columns] for k, columns in incoming.items()}
        for columns, values in messages.values():
            if kept.issubset(columns):
                left = tuple(c for c in columns if c in kept)
                return left, sum_in_order(values, columns, left)
        open_columns = kept.union(*(links[k] for k in messages))
        found = self._summed(index, tuple(c for c in clique if c in open_columns))
        while messages:
            open_after = {k: kept.union(*(links[j] for j in messages if j != k)) for k in messages}
            reach = {
                k: {c for c in (*found[0], *columns) if c in open_after[k]}
                for k, (columns, _) in messages.items()
            }
            best = min(messages, key=lambda k: self._routes.tree.domain.cells(reach[k]))
            columns, values = messages.pop(best)
            separator, chances = self._summed(best, links[best])
            given = divided(values, spread(chances, separator, columns))
            found = _contracted(found, (columns, given), reach[best], self._limit)
        return found

    def _summed(self, index: int, kept: Clique) -> Factor:
        clique = self._routes.tree.cliques[index]
        source: Factor = (clique, self._beliefs[index])
        for known in self._sums[index]:
            if known[1].size < source[1].size and set(kept).issubset(known[0]):
                source = known
        if source[0] == kept:
            return source
        factor = kept, sum_in_order(source[1], source[0], kept)
        self._sums[index].append(factor)
        self._kept += factor[1].size
        return factor


def _carried(pairs: Iterable[Clique], domain: Domain) -> list[tuple[str, list[Clique]]]:
    """Pairs grouped by the column whose messages answer them: one of many pairs and few codes."""
    around: dict[str, set[Clique]] = defaultdict(set)
    for pair in pairs:
        for column in pair:
            around[column].add(pair)
    groups = []
    while around:
        column = max(around, key=lambda c: len(around[c]) / domain.sizes[c])
        mine = around.pop(column)
        if not mine:
            break
        groups.append((column, sorted(mine)))
        for a, b in mine:
            other = b if a == column else a
            around[other] -= mine
    return groups


def marginals(
    routes: Routes, beliefs: Sequence[Array], cliques: Iterable[Clique], limit: int
) -> dict[Clique, Array]:
    """Marginals of any cliques, each result's axes in its clique's order, in float64.

    Pairs of distant columns take one round of messages from one of the two columns, shared by all pairs with
    that column. Besides the results, memory holds about the largest intermediate and some tens of megabytes
    of partial sums.

    Raises:
        ValueError: a result or an intermediate would have more cells than the limit.
    """
    domain = routes.tree.domain
    wanted = list(dict.fromkeys(cliques))
    for clique in wanted:
        checked(domain, clique, limit)
    at_home: dict[int, list[Clique]] = defaultdict(list)
    pairs: list[Clique] = []
    others: list[Clique] = []
    for clique in wanted:
        home = routes.tree.home(clique)
        if home is not None:
            at_home[home].append(clique)
        else:
            (pairs if len(clique) == 2 else others).append(clique)
    found: dict[Clique, Array] = {}
    for home, asked in at_home.items():
        for clique, values in marginals_within(beliefs[home], routes.tree.cliques[home], asked).items():
            found[clique] = values.copy() if np.may_share_memory(values, beliefs[home]) else values
    elimination = VariableElimination(routes, beliefs, limit)
    for column, mine in _carried(pairs, domain):
        for pair in mine:
            found[pair] = elimination.marginal(pair, {c: float(c != column) for c in pair})
        elimination.forget(all_messages=True)
    for clique in sorted(others):
        found[clique] = elimination.marginal(clique, {c: log(domain.sizes[c]) for c in clique})
        elimination.forget()
    return {clique: found[clique] for clique in wanted}
