"""Private partitions of text columns: values of an open category, and prefixes of codes.

Values that many units have come out by partition selection. Where more come out than there may be, they are
counted with a part of the price that was kept back, and the heaviest stay; all others count as other.

Prefixes of the first length are all counted, then those of the next length in place of the prefixes whose
rows outweigh the noise of all their continuations, the heaviest first.

Invariant: the values known beforehand are cells whatever is found, and come first; each text of a pattern
has exactly one of the prefixes found.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import sqrt

import numpy as np

from dpsynth.domain.category_codec import CategoryCodec
from dpsynth.domain.column import Column
from dpsynth.domain.search import PrefixSearch, ValueSearch
from dpsynth.domain.text_codec import TextCodec, every_prefix
from dpsynth.domain.text_patterns import alphabets, texts_of
from dpsynth.plan.questions import Door

KEPT_BACK = Fraction(1, 5)
"""Part of the price for counting, where too many values are selected."""
LEAST = 4.0
"""Standard deviations of its noise that the rows of a prefix must exceed for it to be made longer."""


def private_values(
    door: Door, column: Column, search: ValueSearch, price: Fraction, delta: Fraction
) -> CategoryCodec:
    """The values known, those found in the order of their texts, and a place for all others.

    Args:
        door: the curator's answers.
        column: whose values are to be found.
        search: the column's search.
        price: of all questions together.
        delta: of the partition selection.
    """
    selected = door.values_of(column, price * (1 - KEPT_BACK), delta, search.known)
    # A value with the label of the place of others, or of missing cells, would be mistaken for it.
    taken = {*search.known, search.other, *column.labels[len(column.codec.labels) :]}
    found = sorted({value for value in selected if value not in taken})
    room = max(0, search.most - len(search.known))
    if len(found) > room > 0:
        every = CategoryCodec((*search.known, *found), search.other)
        counts, _ = door.counts_under(column, every, price * KEPT_BACK)
        theirs = counts[len(search.known) : len(search.known) + len(found)]
        heaviest = np.argsort(-theirs.astype(np.float64), kind="stable")[:room]
        found = [found[i] for i in sorted(heaviest.tolist())]
    values = (*search.known, *found[:room])
    return CategoryCodec(values or (search.other,), search.other)


def private_prefixes(door: Door, column: Column, search: PrefixSearch, price: Fraction) -> TextCodec:
    """Codec of the prefixes, in the order of the pattern's characters.

    Args:
        door: the curator's answers.
        column: whose prefixes are to be found.
        search: the column's search; the prefixes of its first length are no more than there may be.
        price: of all questions together.
    """
    positions, levels = alphabets(search.pattern), search.levels
    first = positions[: levels[0]]
    leaves = every_prefix(first, texts_of(first))
    for still, (shorter, longer) in zip(range(len(levels) - 1, 0, -1), pairwise(levels), strict=True):
        codec, part = TextCodec(search.pattern, leaves), price / (len(levels) - 1)
        counts, stddev = door.counts_under(column, codec, part)
        ends = every_prefix(positions[shorter:longer], texts_of(positions[shorter:longer]))
        least = max(LEAST, sqrt(len(ends))) * stddev
        heavy = [
            leaves[i]
            for i in np.argsort(-counts.astype(np.float64), kind="stable").tolist()
            if counts[i] > least and len(leaves[i]) == shorter
        ]
        room = (search.most - len(leaves)) // max(1, len(ends) - 1)
        # Later levels have their parts of the room.
        chosen = set(heavy[: -(-room // still)])
        if not chosen:
            break
        leaves = tuple(
            prefix for leaf in leaves for prefix in ([leaf + e for e in ends] if leaf in chosen else [leaf])
        )
    return TextCodec(search.pattern, leaves)
