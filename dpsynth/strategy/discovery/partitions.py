"""Private partitions of text columns: values of an open category, and prefixes of codes.

Partition selection finds the values that many units have. If it finds more than the column may have, they
are counted with a reserved part of the price, and the heaviest stay; all other values count as other.

All prefixes of the first length are counted. Then prefixes whose rows outweigh the noise of all their
continuations are replaced by these, the heaviest first.

Invariant: public values are cells whatever is found, and come first; each text of a pattern
has exactly one of the prefixes found.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import sqrt

import numpy as np

from dpsynth.columns.category_codec import CategoryCodec
from dpsynth.columns.column import Column
from dpsynth.columns.search import PrefixSearch, ValueSearch
from dpsynth.columns.text_codec import TextCodec, every_prefix
from dpsynth.columns.text_patterns import alphabets, texts_of
from dpsynth.plan.questions import Door

KEPT_BACK = Fraction(1, 5)
"""Part of the price for counting, if too many values are selected."""
LEAST = 4.0
"""A prefix is made longer if its rows exceed so many standard deviations of their noise."""


def private_values(
    door: Door, column: Column, search: ValueSearch, price: Fraction, delta: Fraction
) -> CategoryCodec:
    """Codec of the public values, the values found in order of their texts, and one cell for the rest.

    Args:
        door: the curator's answers.
        column: the column whose values are to be found.
        search: the column's search.
        price: the price of all questions together.
        delta: the delta of the partition selection.
    """
    selected = door.values_of(column, price * (1 - KEPT_BACK), delta, search.known)
    # A value with the label of the cell of other values, or of missing cells, would be mistaken for it.
    taken = {*search.known, search.other, *column.labels[len(column.codec.labels) :]}
    found = sorted({value for value in selected if value not in taken})
    capacity = max(0, search.most - len(search.known))
    if len(found) > capacity > 0:
        every = CategoryCodec((*search.known, *found), search.other)
        counts, _ = door.counts_under(column, every, price * KEPT_BACK)
        theirs = counts[len(search.known) : len(search.known) + len(found)]
        heaviest = np.argsort(-theirs.astype(np.float64), kind="stable")[:capacity]
        found = [found[i] for i in sorted(heaviest.tolist())]
    values = (*search.known, *found[:capacity])
    return CategoryCodec(values or (search.other,), search.other)


def private_prefixes(door: Door, column: Column, search: PrefixSearch, price: Fraction) -> TextCodec:
    """Codec of the prefixes, in the order of the pattern's characters.

    Args:
        door: the curator's answers.
        column: the column whose prefixes are to be found.
        search: the column's search; its limit allows all prefixes of the first length.
        price: the price of all questions together.
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
        capacity = (search.most - len(leaves)) // max(1, len(ends) - 1)
        # Each later level keeps its part of the capacity.
        chosen = set(heavy[: -(-capacity // still)])
        if not chosen:
            break
        leaves = tuple(
            prefix for leaf in leaves for prefix in ([leaf + e for e in ends] if leaf in chosen else [leaf])
        )
    return TextCodec(search.pattern, leaves)
