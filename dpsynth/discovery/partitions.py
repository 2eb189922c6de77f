"""Values of an open category.

Values that many units have are named by partition selection. Where more are named than there may be, they
are counted with what was kept back for that, and the heaviest stay; all others count as other.

Invariant: the values known beforehand are cells whatever is found, and come first.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpsynth.discovery.questions import Door
from dpsynth.domain.category_codec import CategoryCodec
from dpsynth.domain.column import Column
from dpsynth.domain.search import ValueSearch

KEPT_BACK = Fraction(1, 5)
"""Part of the price for counting, where too many values are named."""


def values_found(
    door: Door, column: Column, search: ValueSearch, price: Fraction, delta: Fraction
) -> CategoryCodec:
    """The values known, those found in the order of their texts, and a cell for all others.

    Args:
        door: the curator's answers.
        column: whose values are sought.
        search: what is sought.
        price: of all questions together.
        delta: of naming values.
    """
    named = door.values_of(column, price * (1 - KEPT_BACK), delta, search.known)
    # A value that is called like the cell of others, or of missing cells, could not be told from it.
    taken = {*search.known, search.other, *column.labels[len(column.codec.labels) :]}
    found = sorted({value for value in named if value not in taken})
    room = max(0, search.most - len(search.known))
    if len(found) > room > 0:
        every = CategoryCodec((*search.known, *found), search.other)
        counts, _ = door.counts_under(column, every, price * KEPT_BACK)
        theirs = counts[len(search.known) : len(search.known) + len(found)]
        heaviest = np.argsort(-theirs.astype(np.float64), kind="stable")[:room]
        found = [found[i] for i in sorted(heaviest.tolist())]
    values = (*search.known, *found[:room])
    return CategoryCodec(values or (search.other,), search.other)
