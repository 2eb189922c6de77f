"""Search for an elimination order of few cells: the best of several greedy orders, improved in parts.

Invariant: the result depends on the graph and the sizes alone. The length of the search is not decided by
a clock, and draws come from a fixed seed.
"""

from __future__ import annotations

from dpsynth.model.elimination import RULES, Draws, RandomTies, Sizes, burden, eliminate
from dpsynth.model.elimination_tree import EliminationTree

_CELLS_PER_LOOK = 100
_MOST_LOOKS = 100_000
_PATIENCE = 100
"""Length of the search, in looks: a look at one neighbour of a column takes 1 to 2 microseconds.
One look for so many cells of the model costs as much as one pass over them, and a fit makes hundreds of
passes. After so many looks for each column without a gain, the search ends."""

_HOPELESS = 1 << 64
"""Cells from which on only the quick rules are tried: no other order would make such a model feasible."""

_MOST_COLUMNS = 24
_MOST_STEPS_UP = 4
_SLACKS = (1, 2, 2, 3)
"""Columns of a part; steps from a random column up to the part's top; and the factor of the best rank
within which a column may be drawn. Values were measured on random graphs, grids and models grown to a
limit of cells; nearby values are as good."""


def best_tree(
    graph: tuple[int, ...], sizes: Sizes, candidate: EliminationTree | None = None
) -> EliminationTree:
    """The best elimination tree that was found: of fewest cells, then of the smallest largest clique.

    Args:
        graph: neighbours of each column.
        sizes: sizes of the columns.
        candidate: a tree of the same graph; the result is no worse.
    """
    near = dict(enumerate(graph))
    everything = (1 << len(graph)) - 1
    best, *others = RULES
    found = eliminate(near, everything, sizes, best)
    # With nothing filled in the graph is chordal, and its own cliques are the best there is.
    chordal = sum(m.bit_count() for m in graph) == 2 * sum(m.bit_count() for m in found.later)
    for rule in others if not chordal else ():
        if rule.counts != "none" and found.cells >= _HOPELESS:
            break
        rival = eliminate(near, everything, sizes, rule, bound=found.cells)
        found = min(found, rival, key=burden)
    tree = EliminationTree.of(graph, sizes, found)
    if candidate is not None and (candidate.cells, max(candidate.counted)) <= burden(found):
        tree = candidate
    return tree if chordal or tree.cells >= _HOPELESS else _improved(tree)


def _improved(tree: EliminationTree) -> EliminationTree:
    """The tree after random parts of it were eliminated anew, if that made it smaller."""
    draws = Draws(1)
    left = min(_MOST_LOOKS, tree.cells // _CELLS_PER_LOOK)
    patience = _PATIENCE * len(tree.graph)
    quits = left - patience
    while left > max(0, quits):
        top = draws.below(len(tree.graph))
        for _ in range(draws.below(_MOST_STEPS_UP + 1)):
            top = tree.parents[top] if tree.parents[top] >= 0 else top
        columns = [top]
        ends = list(tree.children[top])
        most = 3 + draws.below(_MOST_COLUMNS - 2)
        while ends and len(columns) < most:
            columns.append(ends.pop(draws.below(len(ends))))
            ends += tree.children[columns[-1]]
        region = tree.under(columns)
        links = sum(near.bit_count() + (near & ~region.inside).bit_count() for near in region.graph.values())
        left -= 10 + links
        if links == 2 * sum(tree.later[c].bit_count() for c in columns):
            continue
        rule, slack = RULES[draws.below(len(RULES))], _SLACKS[draws.below(len(_SLACKS))]
        found = eliminate(
            region.graph,
            region.inside,
            tree.sizes,
            rule,
            known=region.known,
            bound=region.cells - 1,
            ties=RandomTies(draws, slack),
        )
        if found.cells < region.cells:
            tree = tree.renewed(region, found)
            quits = left - patience
    return tree
