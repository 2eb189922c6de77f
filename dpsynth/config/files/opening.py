"""Opening of table files: bytes out of archives, errors of files that are no tables, and warnings of readers.

Invariant: an archive is unpacked as it is read and is never held whole. No message quotes a cell, for
errors and warnings of parsers do.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa

from dpsynth.config.files.encodings import WIDE, decoder_of
from dpsynth.config.files.form import Compression, FileForm
from dpsynth.config.files.place import Place, RemotePath
from dpsynth.errors import SourceError

_AT_ONCE = 1 << 20
_LEFT_BY_MACS = "__MACOSX/"
_NO_ARCHIVE = (zipfile.BadZipFile, NotImplementedError, EOFError, zlib.error, lzma.LZMAError)
_AS_WHAT = {"csv": "a CSV file", "parquet": "a Parquet file", "xlsx": "an Excel workbook"}


@contextmanager
def plainly(path: Place, form: FileForm, advice: str) -> Iterator[None]:
    """Errors of a file that is no table, replaced by a SourceError that quotes no cell.

    Args:
        path: the file.
        form: the form that was declared.
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
    (
        b"PK\x03\x04",
        "It begins like a .zip file or a workbook: set source.compression: zip, or source.format: xlsx.",
    ),
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
        path: the file.
        form: its form.
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
