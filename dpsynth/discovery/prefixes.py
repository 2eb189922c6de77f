"""Beginnings of texts, longer where there are many rows.

All beginnings of the first length are counted, then those of the next length in place of the ones whose
rows outweigh the noise of all their continuations, the heaviest first.

Invariant: each text of the pattern has exactly one of the beginnings found.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import sqrt

import numpy as np

from dpsynth.discovery.questions import Door
from dpsynth.domain.column import Column
from dpsynth.domain.search import PrefixSearch
from dpsynth.domain.text_codec import TextCodec, every_prefix
from dpsynth.domain.text_patterns import alphabets, texts_of

LEAST = 4.0
"""Standard deviations of its noise that the rows of a beginning exceed, if it is told apart further."""


def prefixes_found(door: Door, column: Column, search: PrefixSearch, price: Fraction) -> TextCodec:
    """Codec of the beginnings, in the order of the pattern's characters.

    Args:
        door: the curator's answers.
        column: whose beginnings are sought.
        search: what is sought; the beginnings of its first length are no more than there may be.
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
        # The levels to come have their parts of the room.
        chosen = set(heavy[: -(-room // still)])
        if not chosen:
            break
        leaves = tuple(
            prefix for leaf in leaves for prefix in ([leaf + e for e in ends] if leaf in chosen else [leaf])
        )
    return TextCodec(search.pattern, leaves)
