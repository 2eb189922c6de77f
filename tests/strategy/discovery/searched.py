"""Columns whose places are to be found."""

from dpsynth.columns.column import Column, NumberSearch, Search
from dpsynth.columns.number_texts import PLAIN
from dpsynth.columns.numeric import NumericCodec


def sought(search: Search, **more) -> Column:
    """A column whose places are to be found."""
    return Column("x", NumericCodec((0.0, 1.0), 0, integer=False), search=search, **more)


def number_search(edges="tree", bins=32, ends=(None, None), decimals=0, integer=None) -> NumberSearch:
    return NumberSearch(*ends, edges, bins, decimals, decimals == 0 if integer is None else integer, PLAIN)
