"""All searches of a release, one after another.

Invariant: what is asked follows from the config and earlier answers; no search costs more than its price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from dpsynth.discovery.bounds import Ends, ends_found
from dpsynth.discovery.counted import Counted
from dpsynth.discovery.partitions import values_found
from dpsynth.discovery.prefixes import prefixes_found
from dpsynth.discovery.quantiles import quantile_cuts
from dpsynth.discovery.questions import Door
from dpsynth.discovery.steps import codec_of, even, public_ends
from dpsynth.discovery.tree import tree_cuts
from dpsynth.domain.codec import Codec
from dpsynth.domain.column import Column
from dpsynth.domain.search import NumberSearch, PrefixSearch, ValueSearch
from dpsynth.plan.searches import PlannedSearch


def discover(door: Door, columns: Sequence[Column], searches: Sequence[PlannedSearch]) -> Mapping[str, Codec]:
    """The codecs of the columns that are sought, by name.

    Args:
        door: the curator's answers.
        columns: those of the table.
        searches: in order; the ends of a column before its bins.
    """
    named = {column.name: column for column in columns}
    ends: dict[str, tuple[Ends, list[Counted]]] = {}
    found: dict[str, Codec] = {}
    for planned in searches:
        column, search = named[planned.column], named[planned.column].search
        if isinstance(search, ValueSearch):
            found[column.name] = values_found(door, column, search, planned.price, planned.delta)
        elif isinstance(search, PrefixSearch):
            found[column.name] = prefixes_found(door, column, search, planned.price)
        elif isinstance(search, NumberSearch):
            if planned.find == "bounds":
                ends[column.name] = ends_found(door, column, search, planned.price)
            if search.edges in {planned.find, "equal"}:
                found[column.name] = _bins(door, column, search, ends.get(column.name), planned.price)
    return found


def _bins(
    door: Door,
    column: Column,
    search: NumberSearch,
    known: tuple[Ends, list[Counted]] | None,
    price: Fraction,
) -> Codec:
    """Bins between ends that are known by now."""
    ends, answers = known or (public_ends(search), [])
    if search.edges == "equal":
        cuts = even(*ends, search.bins)
    elif search.edges == "quantiles":
        cuts = quantile_cuts(door, column, search, ends, price)
    else:
        cuts = tree_cuts(door, column, search, ends, answers, price)
    return codec_of(search, cuts)
