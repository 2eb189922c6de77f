"""Opening of table files: archives, Parquet files and folders of them, and Excel workbooks.

Invariant: an archive and a sheet are read as streams and never held whole. No message quotes a cell, for
errors and warnings of parsers do; nor a path below a folder, which may be one
(``city=Paris/part-0.parquet``).
"""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import io
import lzma
import os
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import repeat
from threading import Lock
from typing import Any, BinaryIO, cast
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from dpsynth.config.files.form import WIDE, Compression, FileForm, decoder_of
from dpsynth.config.files.place import Place, RemotePath, arrow_input, files_below
from dpsynth.errors import SourceError

_NOTHING = "__HIVE_DEFAULT_PARTITION__"
"""The name of a folder whose rows have no value."""


@dataclass(frozen=True)
class ParquetPart:
    """A file of a table.

    Attributes:
        same: columns that the folders' names give, with the cell that all rows of the file have.
    """

    path: Place
    same: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        """The columns in the file, and those that folders give, which are texts."""
        with arrow_input(self.path) as file:
            found = parquet.read_schema(file)
        for name in self.same:
            if name not in found.names:
                found = found.append(pa.field(name, pa.string()))
        return found


def parquet_parts(path: Place) -> Iterator[ParquetPart]:
    """The files of a table: the file itself, or those of a folder, by path.

    Names that begin with a dot or an underscore are no tables: programs leave such beside them.

    Raises:
        OSError: the folder has none.
    """
    if not path.is_dir():
        yield ParquetPart(path)
        return
    found = 0
    for file, inside in sorted(files_below(path), key=lambda below: below[1]):
        if not inside[-1].endswith(".parquet") or any(part.startswith((".", "_")) for part in inside):
            continue
        keys = (part.partition("=") for part in inside[:-1] if "=" in part)
        same = {unquote(key): None if value == _NOTHING else unquote(value) for key, _, value in keys}
        found += 1
        yield ParquetPart(file, same)
    if not found:
        raise OSError("no Parquet file")


Cell = str | bool | int | float | dt.datetime | dt.date | dt.time | dt.timedelta | None
"""A cell as openpyxl reads it."""

_EXACT = 10**15

_MIDNIGHT = dt.time()

_DIGITS = len("1048576")
"""Most digits of the number of a row."""


def sheet_rows(path: Place, sheet: str | None) -> Iterator[tuple[Cell, ...]]:
    """All rows of a sheet up to the last that it stores, empty ones too; ``is_row`` tells which have a cell.

    Stray cells far outside of the table cost no memory, as a sheet is read as a stream.

    Cells behind a row's last one are left out.

    Raises:
        SourceError: openpyxl isn't installed, or the workbook has no such sheet.
        OSError: the file is no workbook, or broken.
    """
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise SourceError(
            f"{path} is an Excel workbook, which needs a package that isn't installed: "
            'pip install "dpsynth[excel]".'
        ) from None
    with path.open("rb") as file:
        try:
            workbook = load_workbook(file, read_only=True, data_only=True, keep_links=False)
            sheets = {found.title: found for found in workbook.worksheets}
            if sheets.keys() & {sheet} or (sheet is None and sheets):
                yield from _rows_of(next(iter(sheets.values())) if sheet is None else sheets[sheet])
                return
        except (GeneratorExit, MemoryError):
            raise
        except Exception:
            # Errors of any kind come of broken parts, and quote them.
            raise OSError from None
    raise SourceError(
        f"{path} has no sheet {'' if sheet is None else repr(sheet)}: set source.sheet to the name of one of "
        "its sheets."
    )


def is_row(row: Sequence[Cell]) -> bool:
    """True if a row has a cell that isn't empty."""
    return any(cell is not None and cell != "" for cell in row)


def _rows_of(sheet: Any) -> Iterator[tuple[Cell, ...]]:
    """The rows of one of openpyxl's sheets, in their order.

    openpyxl stops at a cell that isn't what its attributes say. Here such a cell is its text, or empty where
    it has none, and it changes no other cell.
    """
    from openpyxl.worksheet._reader import VALUE_TAG, WorkSheetParser

    class Parser(WorkSheetParser):  # type: ignore[misc]
        def parse_cell(self, element: Any) -> dict[str, Any]:
            before, text = self.col_counter, element.findtext(VALUE_TAG)
            try:
                if element.get("t") == "s" and text and int(text) < 0:
                    # Python would count from the last of the shared texts.
                    raise IndexError
                found: dict[str, Any] = super().parse_cell(element)
            except Exception:
                if self.col_counter == before:
                    self.col_counter += 1
                # The place of a shared text that isn't there is no text.
                found = {"column": self.col_counter, "value": None if element.get("t") == "s" else text}
            return found

        def parse_row(self, element: Any) -> tuple[int, list[dict[str, Any]]]:
            number = element.get("r", "")
            known = number.isascii() and number.isdigit() and len(number) <= _DIGITS
            if not (known and int(number) > self.row_counter):
                # Each stored row is a row, whatever number it says.
                element.attrib["r"] = str(self.row_counter + 1)
            found: tuple[int, list[dict[str, Any]]] = super().parse_row(element)
            return found

    workbook, next_row = sheet.parent, 1
    with sheet._get_source() as source:
        parser = Parser(
            source,
            sheet._shared_strings,
            data_only=True,
            epoch=workbook.epoch,
            date_formats=workbook._date_formats,
            timedelta_formats=workbook._timedelta_formats,
        )
        for number, cells in parser.parse():
            yield from repeat((), number - next_row)
            by_column = {cell["column"]: cell["value"] for cell in cells}
            yield tuple(by_column.get(column) for column in range(1, max(by_column, default=0) + 1))
            next_row = number + 1


def cell_text(cell: Cell) -> str | None:
    """The text of a cell, as a CSV file would have it; None for an empty one.

    A number is written plainly, without grouping, with at most the 15 digits that Excel keeps; a date, time
    or duration by ISO 8601. Formats of a workbook change no text, but that a number with that of a date is a
    date.

    >>> [cell_text(c) for c in (7.0, 0.1 + 0.2, True, dt.datetime(2020, 1, 2), dt.timedelta(hours=25), "")]
    ['7', '0.3', 'true', '2020-01-02', 'PT90000S', None]
    """
    if cell is None or isinstance(cell, str):
        return cell or None
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, int | float):
        try:
            return str(int(cell)) if abs(cell) < _EXACT and cell == int(cell) else f"{cell:.15g}"
        except OverflowError:
            # A whole number too long for a float.
            return str(cell)
    if isinstance(cell, dt.datetime):
        return cell.date().isoformat() if cell.time() == _MIDNIGHT else cell.isoformat(" ")
    if isinstance(cell, dt.timedelta):
        return iso_duration(cell // dt.timedelta(microseconds=1), 6)
    return cell.isoformat()


def iso_duration(count: int, decimals: int) -> str:
    """A duration by ISO 8601.

    Args:
        count: a number of units.
        decimals: of a second, in a unit.

    >>> iso_duration(-90500, 3), iso_duration(5, 0)
    ('-PT90.500S', 'PT5S')
    """
    seconds, rest = divmod(abs(count), 10**decimals)
    fraction = f".{rest:0{decimals}}" if rest else ""
    return f"{'-' if count < 0 else ''}PT{seconds}{fraction}S"


_AT_ONCE = 1 << 20

_LEFT_BY_MACS = "__MACOSX/"

_NO_ARCHIVE = (zipfile.BadZipFile, NotImplementedError, EOFError, zlib.error, lzma.LZMAError)

_AS_WHAT = {"csv": "a CSV file", "parquet": "a Parquet file", "xlsx": "an Excel workbook"}


@contextmanager
def plainly(path: Place, form: FileForm, advice: str) -> Iterator[None]:
    """Errors of a file that is no table, replaced by a SourceError that quotes no cell.

    Args:
        advice: a sentence for a path without a file.
    """
    is_file, folder = _is_file_or_folder(path)
    if not is_file and not (folder and form.kind == "parquet"):
        if folder:
            raise SourceError(
                f"{path} is a folder, and a table is one file, unless it is a folder of .parquet files with "
                f"source.format: parquet. {advice}"
            )
        raise SourceError(f"There is no file {path}. {advice}")
    try:
        yield
    except PermissionError:
        raise SourceError(f"{path} may not be read by this user.") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError, *_NO_ARCHIVE):
        # Arrow's messages quote cells; a UnicodeDecodeError is about names of columns.
        raise SourceError(_no_archive(path, form) if form.compression else _no_table(path, form)) from None
    except Exception as error:
        if isinstance(path, RemotePath) and not isinstance(error, SourceError):
            raise SourceError(_unreached(path, error)) from None
        raise


_silence = Lock()

_silent: list[warnings.catch_warnings[None]] = []


@contextmanager
def unheard() -> Iterator[None]:
    """A block that cells go through, and in which nothing warns.

    A warning may quote a cell, and that there is one tells that there is such a cell. Blocks may overlap, in
    one thread or in several: warnings are shown again after the last of them.
    """
    with _silence:
        if not _silent:
            quiet = warnings.catch_warnings(action="ignore")
            quiet.__enter__()
        else:
            quiet = _silent[-1]
        _silent.append(quiet)
    try:
        # A program may have told numpy to raise errors.
        with np.errstate(all="ignore"):
            yield
    finally:
        with _silence:
            _silent.pop()
            if not _silent:
                quiet.__exit__(None, None, None)


def _is_file_or_folder(path: Place) -> tuple[bool, bool]:
    if not isinstance(path, RemotePath):
        # Path.is_file raises where a name is too long, or a folder may not be searched.
        return os.path.isfile(path), os.path.isdir(path)  # noqa: PTH112, PTH113
    try:
        is_file = path.is_file()
        return is_file, not is_file and path.is_dir()
    except SourceError:
        raise
    except Exception as error:
        raise SourceError(_unreached(path, error)) from None


def _unreached(path: Place, error: Exception) -> str:
    return (
        f"{path} can't be reached ({type(error).__name__}). See to the URL, to the network and to the "
        "credentials that its file system finds in the environment or in its own files; its words are "
        "withheld, as they may hold secrets."
    )


def _no_archive(path: Place, form: FileForm) -> str:
    return (
        f"{path} can't be unpacked: it is no .{form.compression} file, or it is broken or not whole. Set "
        "source.compression to what it is, or fetch the file again."
    )


def _no_table(path: Place, form: FileForm) -> str:
    if path.is_dir():
        return f"{path} has no .parquet file in it, or one of its files is broken."
    words = f"{path} can't be read as {_AS_WHAT[form.kind]}: it is of another format, or broken."
    hint = other_format(path)
    return words if f"source.format: {form.kind}" in hint else f"{words} {hint}".rstrip()


_FIRST_BYTES = (
    (b"PAR1", "It begins like a Parquet file: set source.format: parquet."),
    (b"\x1f\x8b", "It begins like a .gz file: set source.compression: gz."),
    (b"BZh", "It begins like a .bz2 file: set source.compression: bz2."),
    (b"\xfd7zXZ\0", "It begins like an .xz file: set source.compression: xz."),
    (b"\x28\xb5\x2f\xfd", "It begins like a .zst file: set source.compression: zst."),
    (b"\xd0\xcf\x11\xe0", "It begins like an .xls file of an old Excel: save it as .xlsx or .csv."),
    (b"PK\x03\x04", "It begins like .zip or .xlsx: set source.compression: zip, or source.format: xlsx."),
    (b"ARROW1", "It begins like a Feather file: save it as .parquet or .csv."),
    ((b"<stata", b"r\2\1", b"s\2\1", b"$FL2"), "It begins like Stata or SPSS: save it as .parquet or .csv."),
    (b"{", "It begins like JSON: save a table as .csv or .parquet, and call a description .json."),
)


def other_format(path: Place) -> str:
    """A sentence about the format that the first bytes of a file are usual for, or ""."""
    with path.open("rb") as file:
        beginning = file.read(8)
    return next((words for first, words in _FIRST_BYTES if beginning.startswith(first)), "")


Told = Callable[[int], None]
"""A function that takes a number of bytes that were read."""


class _Heard:
    """A file that tells how many of its bytes are read."""

    def __init__(self, file: BinaryIO, told: Told) -> None:
        self._file, self._told = file, told

    def read(self, size: int = -1) -> bytes:
        found = self._file.read(size)
        self._told(len(found))
        return found

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)


class _Unpacked(io.RawIOBase):
    """A stream of bytes that a function yields piece by piece, an empty piece at its end."""

    def __init__(self, produce: Callable[[], bytes]) -> None:
        self._produce, self._left = produce, b""

    def readable(self) -> bool:
        return True

    def readinto(self, target: object) -> int:
        view = memoryview(cast(bytearray, target))
        piece = self._left or self._produce()
        size = min(len(piece), len(view))
        view[:size] = piece[:size]
        self._left = piece[size:]
        return size


@contextmanager
def opened(path: Place, form: FileForm, told: Told | None = None) -> Iterator[BinaryIO]:
    """The bytes of a CSV file, unpacked; those of UTF-16 as UTF-8, those of all other encodings as they are.

    Args:
        told: takes the numbers of bytes of the file that are read, packed as they lie there.

    Raises:
        SourceError: an archive does not hold one file alone, or needs a password.
    """
    with path.open("rb") as raw, _unpacked(path, _heard(raw, told), form.compression) as stream:
        if form.encoding not in WIDE:
            yield stream
            return
        beginning = stream.read(2)
        decoder, mark = decoder_of(form.encoding, beginning)
        pieces = _decoded(beginning[mark:], stream, decoder.decode)
        yield io.BufferedReader(_Unpacked(lambda: next(pieces, b"")), _AT_ONCE)


def _decoded(beginning: bytes, stream: BinaryIO, decode: Callable[..., str]) -> Iterator[bytes]:
    piece = beginning
    while piece or (piece := stream.read(_AT_ONCE)):
        # The first byte of a character alone decodes to nothing yet.
        if text := decode(piece):
            yield text.encode()
        piece = b""
    yield decode(b"", True).encode()


def _heard(file: BinaryIO, told: Told | None) -> BinaryIO:
    return file if told is None else cast(BinaryIO, _Heard(file, told))


@contextmanager
def _unpacked(path: Place, file: BinaryIO, compression: Compression | None) -> Iterator[BinaryIO]:
    if compression is None:
        yield file
    elif compression == "zip":
        with zipfile.ZipFile(file) as archive, _only_member(path, archive) as member:
            yield member
    elif compression == "zst":
        with pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd") as packed:
            yield io.BufferedReader(_Unpacked(lambda: packed.read(_AT_ONCE)), _AT_ONCE)
    else:
        kinds: dict[str, Callable[[BinaryIO], gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile]] = {
            "gz": lambda file: gzip.GzipFile(fileobj=file), "bz2": bz2.BZ2File, "xz": lzma.LZMAFile,
        }  # fmt: skip
        with kinds[compression](file) as stream:
            yield cast(BinaryIO, stream)


@contextmanager
def _only_member(path: Place, archive: zipfile.ZipFile) -> Iterator[BinaryIO]:
    files = [m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith(_LEFT_BY_MACS)]
    if len(files) != 1:
        raise SourceError(
            f"{path} holds {len(files):,} files, and a table must be one. Pack the table alone, or unpack it "
            "and set source.path to the table."
        )
    if files[0].flag_bits & 1:
        raise SourceError(f"{path} needs a password. Unpack it and set source.path to the table.")
    try:
        member = archive.open(files[0])
    except NotImplementedError:
        raise SourceError(
            f"{path} is packed by a method that isn't known here. Unpack it and set source.path to the table."
        ) from None
    with member:
        yield cast(BinaryIO, member)
