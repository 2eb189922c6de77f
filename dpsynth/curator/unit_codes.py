"""Codes of units: whose row it is and, where units are per period, in which period.

Invariant: the code of a row follows from its own cells and a secret key alone. Two rows have one code if, and
but for a chance of 2^-64 only if, they are of one unit.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.slices import label_within
from dpsynth.curator.cell_texts import distinct_cells
from dpsynth.curator.contribution_bounding import Person, keyed_digest, nobody, person_codes

_TIME = (
    r"[T ]([01][0-9]|2[0-4])(:[0-5][0-9](:[0-6][0-9]([.,][0-9]+)?)?)?"
    r" ?([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)?$"
)
_DATED = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}" + _TIME


def unit_codes(batch: Mapping[str, pa.Array], near: Neighbours, key: bytes) -> Person:
    """A 64-bit code of each row's unit; that of ``nobody`` for all rows without an id, in any period.

    Args:
        batch: columns by name, with those of the unit.
        near: relation and unit; the unit is not a row.
        key: secret bytes of the release.
    """
    assert near.person is not None
    people = person_codes(batch[near.person], key)
    if near.per is None:
        return people
    every = near.per.every
    periods = distinct_cells(batch[near.per.column]).each(lambda texts: _period_codes(texts, every, key))
    return np.where(people == nobody(key), people, people ^ periods)


def _period_codes(cells: pa.StringArray, every: str, key: bytes) -> Person:
    """A code of the period of each cell; cells that aren't dates, or are coarser, share one."""
    coded = pc.dictionary_encode(dates_written(cells), null_encoding="encode")
    labels = [label_within(every, text or "") for text in coded.dictionary.to_pylist()]
    codes = np.array([keyed_digest(key, b"in:" + label.encode()) for label in labels], dtype=np.uint64)
    return np.asarray(codes[coded.indices.to_numpy(zero_copy_only=False)], dtype=np.uint64)


def dates_written(cells: pa.StringArray) -> pa.StringArray:
    """The cells without blanks around them, and of a date with a time the date that is written there."""
    texts = pc.utf8_trim_whitespace(cells)
    dated = pc.match_substring_regex(texts, _DATED)
    return pc.if_else(dated, pc.utf8_slice_codeunits(texts, 0, 10), texts)
