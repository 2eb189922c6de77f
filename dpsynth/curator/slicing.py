"""Which rows lie in a slice of the table; all others are left out before anything is counted.

Whether a row is in depends on its own cell and on the slice, which is public; never on other
rows, on their order, or on what dates there are. So tables that differ in one unit still differ
in at most that unit's rows when the others are left out: sensitivities under add_remove stay as
they are, and a bound on a person's rows, put on afterwards, holds within the slice.

Invariant: a cell is never spoken of. One that is no date, or no value, is in no slice.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from dpsynth.domain.slices import Slice

_TIME = (
    r"[T ]([01][0-9]|2[0-4])(:[0-5][0-9](:[0-6][0-9]([.,][0-9]+)?)?)?"
    r" ?([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)?$"
)
_DATED = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}" + _TIME


def rows_within(batch: Mapping[str, pa.StringArray], part: Slice) -> dict[str, pa.StringArray]:
    """The rows of a batch that lie in a slice.

    Args:
        batch: text columns by name, the slice's among them.
        part: the slice.
    """
    inside = in_slice(batch[part.column], part)
    return {name: cells.filter(inside) for name, cells in batch.items()}


def in_slice(cells: pa.StringArray, part: Slice) -> pa.BooleanArray:
    """Whether each row is in a slice, by the text of its cell; each distinct day or value is read once.

    Of a date with a time the date counts, as it is written, whatever the zone.
    """
    texts = pc.utf8_trim_whitespace(cells)
    if part.start is not None:
        dated = pc.match_substring_regex(texts, _DATED)
        texts = pc.if_else(dated, pc.utf8_slice_codeunits(texts, 0, 10), texts)
    coded = pc.dictionary_encode(texts, null_encoding="encode")
    known = coded.dictionary.to_pylist()
    held = pa.array([text is not None and part.holds(text) for text in known], pa.bool_())
    return held.take(coded.indices)
