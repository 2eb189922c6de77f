"""A draft of the configuration of a table in memory, from the names and types of its columns.

Invariant: no cell is read. A type that says more than the texts of its cells is kept; whole and decimal
numbers, categories and texts are left to the look at the cells, as those of a CSV file are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa

from dpsynth.config.declaration import Declared
from dpsynth.config.grammar import MAX_COLUMNS
from dpsynth.errors import SourceError
from dpsynth.wings.owner.starter.fitting import fitted
from dpsynth.wings.owner.starter.header import declared_of
from dpsynth.wings.owner.starter.sketch import STUB, Draft, Sketch

_LEFT_TO_THE_LOOK = frozenset({"integer", "number", "category"})


def draft_in_memory(names: Sequence[str], types: Mapping[str, pa.DataType]) -> Draft:
    """A stub for each column, with its type if that is known.

    Args:
        names: names of the columns.
        types: Arrow types of some of them.

    Raises:
        SourceError: there is no column with a name of its own, or there are too many.
    """
    counted = Counter(names)
    usable = [name for name in names if name and counted[name] == 1]
    if not usable:
        raise SourceError("The table in memory has no column with a name of its own.")
    if len(usable) > MAX_COLUMNS:
        raise SourceError(
            f"The table in memory has {len(usable):,} columns; a configuration can declare {MAX_COLUMNS:,}. "
            "Give a table of the columns that matter."
        )
    found = ((name, _declared(types[name]) if name in types else None) for name in usable)
    columns = tuple(fitted(Sketch(name, dict(declared or STUB))) for name, declared in found)
    origin = ["The names and types of the columns of a table in memory were read."]
    if len(usable) < len(names):
        origin.append("Columns without a name, or with that of another column, were left out.")
    return Draft(tuple(origin), columns, described=False)


def _declared(kind: pa.DataType) -> Declared | None:
    declared = declared_of(kind)
    return None if declared is None or declared["type"] in _LEFT_TO_THE_LOOK else declared
