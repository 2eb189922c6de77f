"""Reader of a private table in memory: text cells, as ``dpsynth.curator.rows.files`` reads them from a file.

A data frame is handed over once, and is kept behind ``MemoryTable`` alone. A cell's text follows from the
cell and the public type of its column, never from other cells: a library that guesses one type for all
cells of a column would let one row change the codes of all.

Invariant: the table is not shown, copied or pickled. Broken structure (no such column) is a clear error, a
broken cell is none, and no message quotes one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, NoReturn, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.config.files.header import require_columns, spelling_advice
from dpsynth.config.files.opening import iso_duration
from dpsynth.curator.rows.cell_texts import Batch, is_text, readable, text_of
from dpsynth.errors import SourceError
from dpsynth.work_shares import telling

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import TypeIs

_BATCH_ROWS = 1 << 18
_MOST_BITS = 10_000
_MOST_DIGITS = 400

_OFFSET = re.compile("([+-][0-9]{2}):([0-9]{2})$")


class MemoryTable:
    """A private table in memory.

    Attributes:
        names: the names of its columns, in order.
        library: the package whose table it is, such as pandas.
    """

    __slots__ = ("_table", "library", "names")

    def __init__(self, table: object) -> None:
        """The only holder of a table.

        Args:
            table: a pandas DataFrame, an Arrow table, or a table of another library that gives an Arrow
                stream (``__arrow_c_stream__``), such as one of Polars.

        Raises:
            SourceError: it is no table.
        """
        self._table: pd.DataFrame | pa.Table = table if _is_pandas(table) else _as_arrow(table)
        self.library = type(table).__module__.partition(".")[0]
        table = self._table
        names = table.column_names if isinstance(table, pa.Table) else table.columns
        self.names = [str(name) for name in names]

    def __repr__(self) -> str:
        return "<a private table in memory>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a private table is neither copied nor pickled")

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The Arrow types of columns, as far as the type of a column alone tells them; no cell is read."""
        if isinstance(self._table, pa.Table):
            return dict(zip(self.names, self._table.schema.types, strict=True))
        found: dict[str, pa.DataType] = {}
        for spot, name in enumerate(self.names):
            cells = self._table.iloc[:0, spot]
            if _is_categorical(cells.dtype):
                # Its values are cells.
                found[name] = pa.dictionary(pa.int32(), pa.string())
            elif not _by_cell(cells.dtype):
                with suppress(pa.ArrowException):
                    found[name] = pa.array(cells, from_pandas=True).type
        return found

    def check(self, columns: Sequence[str]) -> None:
        """Raise SourceError if the names or types of the columns show that ``batches`` would."""
        require_columns(columns, self.names, "The table in memory", self._advice)
        if isinstance(self._table, pa.Table):
            nested = [c for c in columns if not readable(self._table.field(self.names.index(c)).type)]
            if nested:
                raise SourceError(
                    f"Column '{nested[0]}' of the table in memory holds lists or records, or cells of a type "
                    "that can't be written as text, such as times in an unknown time zone."
                )

    def _advice(self, absent: Sequence[str]) -> str:
        index = [] if isinstance(self._table, pa.Table) else self._table.index.names
        inside = next((c for c in absent if c in index), None)
        if inside is None:
            return spelling_advice(absent, self.names)
        return (
            f"'{inside}' is in the frame's index, which is not read: frame.reset_index() makes it a column."
        )

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Some columns, batch by batch, with the cells that a file of the same table would have.

        Each is of a type that can be written as text.

        Raises:
            SourceError: a column is absent, or its type can't be written as text.
        """
        self.check(columns)
        spots = [self.names.index(name) for name in columns]
        tell = telling("reading", len(self._table))
        if isinstance(self._table, pa.Table):
            for batch in self._table.select(spots).to_batches(max_chunksize=_BATCH_ROWS):
                tell(batch.num_rows)
                yield dict(zip(columns, batch.columns, strict=True))
            return
        readers = [_reader_of(self._table.iloc[:, spot]) for spot in spots]
        for first in range(0, len(self._table), _BATCH_ROWS):
            rows = slice(first, first + _BATCH_ROWS)
            tell(_BATCH_ROWS)
            yield {name: read(rows) for name, read in zip(columns, readers, strict=True)}


class MemoryTables(MemoryTable):
    """Several private tables in memory, by name, which a configuration with linked tables reads as one."""

    __slots__ = ("tables",)

    def __init__(self, tables: Mapping[str, object]) -> None:
        """The only holder of the tables; see ``MemoryTable``."""
        self.tables = {str(name): MemoryTable(table) for name, table in tables.items()}
        self._table = pa.table({})
        self.library = next((table.library for table in self.tables.values()), "")
        self.names = []

    def check(self, columns: Sequence[str]) -> None:
        del columns
        raise SourceError(
            f"{len(self.tables)} tables were handed over, and the configuration describes one. Describe them "
            "under tables, or hand over one of them."
        )


def _is_pandas(table: object) -> TypeIs[pd.DataFrame]:
    # Who hands over a frame has imported pandas; nobody else waits for it.
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(table, pandas.DataFrame)


def _as_arrow(table: object) -> pa.Table:
    if isinstance(table, pa.Table):
        return table
    if hasattr(table, "__arrow_c_stream__") and not isinstance(table, pa.ChunkedArray):
        with suppress(Exception):
            # A foreign library's errors may quote cells.
            return pa.table(table)
    raise SourceError(
        f"A value of type {type(table).__name__} is no table. Hand over a pandas DataFrame, a pyarrow Table, "
        "a Polars DataFrame, or the path of a file."
    )


# pandas

_Reader = Callable[[slice], pa.Array]


def _reader_of(cells: pd.Series) -> _Reader:
    import pandas as pd

    dtype = cells.dtype
    if _is_categorical(dtype):
        values = dtype.categories
        # By their own type: pandas would guess that objects are texts.
        known = text_of(_cells(pd.Series(values, dtype=values.dtype), by_cell=_by_cell(values.dtype)))
        codes = cells.cat.codes.to_numpy()
        return lambda rows: pa.DictionaryArray.from_arrays(pa.array(codes[rows], mask=codes[rows] < 0), known)
    by_cell = _by_cell(dtype)
    return lambda rows: _cells(cells.iloc[rows], by_cell=by_cell)


def _is_categorical(dtype: object) -> TypeIs[pd.CategoricalDtype]:
    import pandas as pd

    return isinstance(dtype, pd.CategoricalDtype)


def _by_cell(dtype: object) -> bool:
    """True if the cells of a type of column are written one by one: Python objects, periods, intervals."""
    import pandas as pd

    if isinstance(dtype, pd.PeriodDtype | pd.IntervalDtype | pd.SparseDtype):
        return True
    if isinstance(dtype, np.dtype):
        return dtype.kind not in "biufMm" or dtype.itemsize > 8
    return False


def _cells(cells: pd.Series, *, by_cell: bool) -> pa.Array:
    """Cells of a type that can be written as text; what stands for a missing cell is null."""
    if not by_cell:
        try:
            found = pa.array(cells, from_pandas=True)
            if readable(found.type):
                # Texts that pandas keeps in Arrow may come in chunks.
                whole = pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found
                # A text may turn out to be none only when it is read.
                return text_of(whole) if is_text(whole.type) else whole
        except (pa.ArrowException, UnicodeError):
            # A text with half of a surrogate pair; the texts of all other cells stay the same.
            pass
    return texts_of_objects(cells.to_numpy(dtype=object))


def cells_of_objects(cells: NDArray[np.object_]) -> pa.Array:
    """Python objects object[rows] as cells of a type that can be written as text, each by its own type."""
    kinds = set(map(type, cells)) - {type(None)}
    kind = _ARROW.get(next(iter(kinds))) if len(kinds) == 1 else None
    if kind is not None:
        # Arrow writes these as ``texts_of_objects`` does; not a number that is too large for its type.
        with suppress(pa.ArrowException, OverflowError):
            return pa.array(cells, kind, from_pandas=True)
    return texts_of_objects(cells)


def texts_of_objects(cells: NDArray[np.object_]) -> pa.StringArray:
    """Texts of Python objects object[rows], each by its own type."""
    kinds = set(map(type, cells))
    if kinds <= {str, type(None)}:
        with suppress(UnicodeError):
            return pa.array(cells, pa.string())
    by_kind = {kind: _text_by(kind) for kind in kinds}
    return pa.array([_attempted(by_kind[type(cell)], cell) for cell in cells], pa.string())


def _attempted(text: Callable[[object], str | None], cell: object) -> str | None:
    """The text of a cell in UTF-8; None if the cell is missing, or can't be written."""
    try:
        found = text(cell)
    except Exception:
        # A broken cell says nothing, whatever its class does.
        return None
    return found if found is None else found.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _text_by(kind: type) -> Callable[[object], str | None]:
    import pandas as pd

    if issubclass(kind, type(None) | type(pd.NA) | type(pd.NaT)):
        return lambda _: None
    for known, text in _WRITERS:
        if issubclass(kind, known):
            return text
    return str


def _whole(cell: object) -> str:
    number = int(cast(int, cell))
    # Python refuses to write very long numbers; any such number is out of every range.
    return str(number) if number.bit_length() <= _MOST_BITS else ("-1e999" if number < 0 else "1e999")


def _fraction(cell: object) -> str | None:
    """A float as Arrow writes one, in its own precision."""
    value = cell if isinstance(cell, np.float16 | np.float32) else np.float64(cast(float, cell))
    return None if np.isnan(value) else str(text_of(pa.array(np.array([value])))[0].as_py())


def _decimal(cell: object) -> str | None:
    number = cast(Decimal, cell)
    if number.is_nan():
        return None
    plain = number.is_finite() and abs(number.adjusted()) <= _MOST_DIGITS
    return format(number, "f") if plain else str(number)


def _moment(cell: object) -> str:
    text = cast(datetime, cell).isoformat(sep=" ", timespec="microseconds")
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else _OFFSET.sub(r"\1\2", text)


def _duration(cell: object) -> str:
    span = cast(timedelta, cell)
    microseconds = (span.days * 86_400 + span.seconds) * 10**6 + span.microseconds
    nanoseconds: int = getattr(span, "nanoseconds", 0)
    return (
        iso_duration(microseconds * 1_000 + nanoseconds, 9) if nanoseconds else iso_duration(microseconds, 6)
    )


def _numpy_duration(cell: object) -> str | None:
    import pandas as pd

    span = cast(np.timedelta64, cell)
    return None if np.isnat(span) else _duration(pd.Timedelta(span))


def _numpy_moment(cell: object) -> str | None:
    import pandas as pd

    moment = cast(np.datetime64, cell)
    return None if np.isnat(moment) else _moment(pd.Timestamp(moment))


_WRITERS: tuple[tuple[type, Callable[[object], str | None]], ...] = (
    (str, str),
    (bytes, lambda cell: cast(bytes, cell).decode("utf-8", "replace")),
    (bool, lambda cell: "true" if cell else "false"),
    (np.bool_, lambda cell: "true" if cell else "false"),
    (np.timedelta64, _numpy_duration),
    (np.datetime64, _numpy_moment),
    (int, _whole),
    (np.integer, _whole),
    (float, _fraction),
    (np.floating, _fraction),
    (Decimal, _decimal),
    (datetime, _moment),
    (date, lambda cell: cast(date, cell).isoformat()),
    (time, lambda cell: cast(time, cell).isoformat(timespec="microseconds")),
    (timedelta, _duration),
)
"""Writers of cells by type, the narrower type first."""

_ARROW: dict[type, pa.DataType] = {
    bool: pa.bool_(), int: pa.int64(), float: pa.float64(), date: pa.date32(), bytes: pa.binary(),
}  # fmt: skip
"""Arrow's types for Python's, where both are written alike."""
