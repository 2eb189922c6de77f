"""All small tables of one column of texts, by their units, and all their neighbours.

They are loaded as any table is: bounded, and with a number for each person.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement

import pyarrow as pa

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.column import Column, NumberSearch
from dpsynth.columns.numeric import NumericCodec
from dpsynth.curator import Curator, Terms
from dpsynth.curator.table import PrivateTable
from dpsynth.testing import load_table
from tests.guarantee.small_tables import Notes

VALUES = ("0", "1", "2", "3", "4", "5")
_OF_PERSONS = VALUES[1:5]
COLUMN = Column(
    "n", NumericCodec((0.0, 3.0, 6.0), 0, True), search=NumberSearch(None, None, "tree", 2, 0, True)
)
KEY = b"k" * 32

Unit = tuple[str, ...]
"""The texts of a unit's rows."""
Units = tuple[Unit, ...]
"""A table: its units, in order."""


@cache
def units_of(near: Neighbours) -> tuple[Unit, ...]:
    """What a unit may bring: one row; or, for a person, any rows within the bound, and some beyond it."""
    if near.person is None:
        return tuple((v,) for v in VALUES)
    within = [u for n in range(near.max_rows + 1) for u in combinations_with_replacement(_OF_PERSONS, n)]
    return (*within, _OF_PERSONS)


@cache
def tables(near: Neighbours) -> tuple[Units, ...]:
    """All tables of up to four rows that are units, or up to two persons."""
    most = 4 if near.person is None else 2
    return tuple(t for n in range(most + 1) for t in combinations_with_replacement(units_of(near), n))


def neighbours_of(table: Units, near: Neighbours) -> Iterator[Units]:
    """The tables among ``tables`` that one unit makes of a table."""
    for i, leaving in enumerate(table):
        rest = table[:i] + table[i + 1 :]
        if near.relation == "add_remove":
            yield rest
        else:
            yield from (_ordered(rest, coming, near) for coming in units_of(near) if coming != leaving)
    if near.relation == "add_remove":
        larger = (_ordered(table, coming, near) for coming in units_of(near))
        yield from (t for t in larger if t in tables(near))


def _ordered(rest: Units, coming: Unit, near: Neighbours) -> Units:
    return tuple(sorted((*rest, coming), key=units_of(near).index))


@cache
def _loaded(table: Units, near: Neighbours) -> PrivateTable:
    """A table as it is loaded; it is read only, so that all tests may ask the same one."""
    names = [f"{'-'.join(unit)} {table[:i].count(unit)}" for i, unit in enumerate(table)]
    cells = [v for unit in table for v in unit]
    who = [name for name, unit in zip(names, table, strict=True) for _ in unit]
    batch = {"n": pa.array(cells, pa.string()), "who": pa.array(who, pa.string())}
    return load_table([batch], [COLUMN], near, KEY)


def curator_on(table: Units, near: Neighbours, measure: str, kind: str) -> tuple[Curator, Notes]:
    """A curator before a table, with its journal.

    A person's name says what the person's rows are, so that a person is the same one in both of two
    neighbours, and the same rows are kept of it; of two that are alike, the second has another name.
    """
    notes = Notes()
    terms = Terms(near, measure, Fraction(100), kind, Fraction(1, 2))
    return Curator(_loaded(table, near), terms, notes), notes
