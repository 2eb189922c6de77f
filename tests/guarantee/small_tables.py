"""All small tables over two binary columns, all their neighbours, and what a curator says of them exactly.

Every number comes from the curator's own code: its noise is taken away, and the integers that it
was to be drawn upon are looked at in its place.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np

from dpsynth.accounting.measures import GDP, PURE, ZCDP, Measure
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.domain import Clique, Domain
from dpsynth.curator import Curator, Entry, Terms, samplers
from dpsynth.curator.table import PrivateTable

DOMAIN = Domain({"a": 2, "b": 2})
CELLS = 4
MOST_ROWS = 3

Table = tuple[int, ...]
"""The cell of each row, ascending."""

NEIGHBOURS = [
    Neighbours("add_remove"),
    Neighbours("replace_one"),
    Neighbours("add_remove", "who", 2),
    Neighbours("replace_one", "who", 2),
]

TERMS = [(ZCDP, "gaussian"), (GDP, "gaussian"), (PURE, "laplace"), (ZCDP, "laplace")]
"""Measures, each with a kind of noise."""


def tables(cells: int = CELLS) -> list[Table]:
    return [t for n in range(MOST_ROWS + 1) for t in combinations_with_replacement(range(cells), n)]


def neighbours_of(table: Table, near: Neighbours, cells: int = CELLS) -> Iterator[Table]:
    """The tables, up to a size, that one unit makes of a table.

    An added or removed unit is any rows within its bound, an exchanged one leaves with any and
    comes with any; under replace-one of rows, with one for one.
    """
    units = [u for n in range(near.max_rows + 1) for u in combinations_with_replacement(range(cells), n)]
    for leaving in units:
        rest = list(table)
        if any(leaving.count(cell) > table.count(cell) for cell in leaving):
            continue
        for cell in leaving:
            rest.remove(cell)
        for coming in units:
            if near.relation == "add_remove" and leaving and coming:
                continue
            if near.rows_public and len(leaving) != len(coming):
                continue
            if len(rest) + len(coming) <= MOST_ROWS:
                yield tuple(sorted([*rest, *coming]))


@dataclass
class Notes:
    """A journal that keeps entries in memory."""

    entries: list[Entry] = field(default_factory=list)

    at_end = True

    def asked(self):
        return iter(self.entries)

    def charge(self, asked):
        """A question is charged as it is answered."""

    def answer(self, question, event, draw):
        self.entries.append(Entry(question, event))
        self.entries[-1].outcome = draw()
        return self.entries[-1].outcome

    def charged(self, measure: str) -> Fraction:
        return sum((measure.cost(e.event) for e in self.entries), Fraction(0))


class Guess:
    """Estimates from a table of them."""

    def __init__(self, **marginals: list[int]) -> None:
        self._marginals = marginals

    def marginal(self, clique: Clique) -> np.ndarray:
        return np.array(self._marginals["".join(clique)], dtype=float).reshape(DOMAIN.shape(clique))

    def fingerprint(self) -> str:
        return repr(self._marginals)


LOPSIDED = Guess(a=[9, 0], b=[0, 900], ab=[0, 0, 0, 3])
"""Far from every small table; a row in cell 3 moves the distance of a up and that of b down."""
LEVEL = Guess(a=[9, 0], b=[0, 9], ab=[0, 0, 0, 3])
"""Likewise, with distances that differ by little."""


def curator_on(table: Table, near: Neighbours, measure: str, kind: str) -> tuple[Curator, Notes]:
    """A curator before a table, with its journal."""
    cells = np.array(table, dtype=np.uint8)
    codes = {"a": cells // 2, "b": cells % 2}
    notes = Notes()
    terms = Terms(near, measure, Fraction(100), kind)
    return Curator(PrivateTable(DOMAIN, codes, len(table)), terms, notes), notes


def drawn_upon(monkeypatch, ask: Callable[[], object]) -> list[np.ndarray]:
    """The integers that noise was to be drawn upon during an ask; the last candidate is always chosen."""
    seen: list[np.ndarray] = []

    def noted(values, scale):
        del scale
        seen.append(np.array(values))
        return values

    with monkeypatch.context() as patch:
        patch.setattr(samplers, "choose_index", lambda values, scale: len(noted(values, scale)) - 1)
        patch.setattr(samplers, "add_gaussian", noted)
        patch.setattr(samplers, "add_laplace", noted)
        ask()
    return seen


def excesses(
    monkeypatch,
    near: Neighbours,
    terms: tuple[Measure, str],
    ask: Callable[[Curator], object],
    opened: Callable[..., tuple[Curator, Notes]] = curator_on,
    cells: int = CELLS,
) -> list[float]:
    """Measured sensitivity of an ask over the declared one, in its noise's metric, for all neighbours."""
    squared = terms[1] == "gaussian"
    exact, charged = {}, set()
    for table in tables(cells):
        curator, notes = opened(table, near, *terms)
        (exact[table],) = drawn_upon(monkeypatch, lambda c=curator: ask(c))
        (entry,) = notes.entries
        charged.add(entry.event.l2_squared if squared else entry.event.l1)
    (declared,) = charged
    return [
        float((np.abs(exact[t] - exact[n]) ** (2 if squared else 1)).sum() / declared)
        for t in exact
        for n in neighbours_of(t, near, cells)
    ]
