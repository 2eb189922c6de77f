"""Routes in a junction tree don't hang on the order of a set, which is another in every process."""

from collections.abc import Iterator
from itertools import combinations

from dpsynth.columns.domain import Domain
from dpsynth.model.junction_tree import junction_tree
from dpsynth.model.variable_elimination import Routes


class Reversed(frozenset[str]):
    """A set whose order is another than a list's of the same texts."""

    def __iter__(self) -> Iterator[str]:
        """Its texts, the last one first."""
        return iter(sorted(super().__iter__(), reverse=True))


def test_neighbours_and_the_clique_where_messages_meet_follow_from_names_alone() -> None:
    """All columns have one weight, so every choice of the heaviest is a tie."""
    names = [f"c{i}" for i in range(8)]
    pairs = [(names[i], names[j]) for i, j in [(0, 1), (0, 2), (0, 3), (3, 4), (3, 5), (5, 6), (1, 7)]]
    routes = Routes(junction_tree(Domain(dict.fromkeys(names, 5)), pairs))
    weights = dict.fromkeys(names, 0.1)
    for wanted in combinations(names, 3):
        for index in range(len(routes.tree.cliques)):
            ways = [list(routes.inputs(index, order)) for order in (wanted, wanted[::-1])]
            assert ways[0] == ways[1]
        met = routes.meeting(frozenset(wanted), weights)
        assert met == routes.meeting(Reversed(wanted), weights)
