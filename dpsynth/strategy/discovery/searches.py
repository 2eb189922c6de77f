"""Domain discovery: the searches of a release, one after another.

Invariant: every question follows from the config and earlier answers; no search costs more than its price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from dpsynth.columns.codec import Codec
from dpsynth.columns.column import Column
from dpsynth.columns.search import NumberSearch, PrefixSearch, ValueSearch
from dpsynth.plan.questions import Door
from dpsynth.plan.searches import PlannedSearch
from dpsynth.strategy.discovery.bins import quantile_cuts, tree_cuts
from dpsynth.strategy.discovery.bounds import Ends, private_bounds
from dpsynth.strategy.discovery.cuts import NoisyHistogram, codec_of, equal_widths, public_ends
from dpsynth.strategy.discovery.partitions import private_prefixes, private_values


def discover(door: Door, columns: Sequence[Column], searches: Sequence[PlannedSearch]) -> Mapping[str, Codec]:
    """The codecs found for the columns with a search, by name.

    Args:
        door: the curator's answers.
        columns: the columns of the table.
        searches: the searches in order, the ends of a column before its bins.
    """
    named = {column.name: column for column in columns}
    ends: dict[str, tuple[Ends, list[NoisyHistogram]]] = {}
    found: dict[str, Codec] = {}
    for planned in searches:
        column, search = named[planned.column], named[planned.column].search
        if isinstance(search, ValueSearch):
            found[column.name] = private_values(door, column, search, planned.price, planned.delta)
        elif isinstance(search, PrefixSearch):
            found[column.name] = private_prefixes(door, column, search, planned.price)
        elif isinstance(search, NumberSearch):
            if planned.find == "bounds":
                ends[column.name] = private_bounds(door, column, search, planned.price)
            if search.edges in {planned.find, "equal"}:
                found[column.name] = _bins(door, column, search, ends.get(column.name), planned.price)
    return found


def _bins(
    door: Door,
    column: Column,
    search: NumberSearch,
    ends_found: tuple[Ends, list[NoisyHistogram]] | None,
    price: Fraction,
) -> Codec:
    """Codec of bins between ends that are public, or were found before."""
    ends, answers = ends_found or (public_ends(search), [])
    if search.edges == "equal":
        cuts = equal_widths(*ends, search.bins)
    elif search.edges == "quantiles":
        cuts = quantile_cuts(door, column, search, ends, price)
    else:
        cuts = tree_cuts(door, column, search, ends, answers, price)
    return codec_of(search, cuts)
