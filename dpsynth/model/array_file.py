"""Files of arrays with a JSON header, read without pickle.

A file is a zip of ``header.json`` and one uncompressed ``.npy`` for each array. Members are stored, not
deflated, with a fixed date. So the bytes and the checksum of a file do not depend on time or machine, and
nothing that is read can be larger than the file.

Invariant: no array is read before its name, type and shape are known to be those that the header promises.
"""

from __future__ import annotations

import json
import os
import secrets
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import ModelFileError

AnyArray = NDArray[Any]

_HEADER = "header.json"
_LARGEST_HEADER = 1 << 24
_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Member:
    """An array that a header promises: its name, its shape and its type, such as "<f8"."""

    name: str
    shape: tuple[int, ...]
    dtype: str


def require(condition: bool, complaint: str) -> None:
    """Refuse a file, or a value that is to be saved.

    Raises:
        ModelFileError: the condition doesn't hold.
    """
    if not condition:
        raise ModelFileError(complaint)


def dtype_of(values: AnyArray) -> str:
    """The type in the file: little-endian."""
    return str(values.dtype.newbyteorder("<").str)


def save_arrays(path: str | Path, header: Mapping[str, object], arrays: Mapping[str, AnyArray]) -> None:
    """Write a header and arrays to a file, which appears whole or not at all.

    The same values give the same bytes, on any machine.

    Args:
        path: the file; an existing one is replaced.
        header: JSON values.
        arrays: the arrays by their names, in the order in which ``Content.arrays`` expects them.

    Raises:
        OSError: the file can't be written.
    """
    target = Path(path)
    part = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    try:
        with part.open("xb") as file:
            with zipfile.ZipFile(file, "w") as archive:
                _write(archive, _HEADER, json.dumps(header).encode(), np.empty(0))
                for name, values in arrays.items():
                    array = np.ascontiguousarray(values, dtype=dtype_of(values))
                    _write(archive, f"{name}.npy", _preamble(array.shape, dtype_of(values)), array)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


@dataclass(frozen=True, eq=False)
class Content:
    """An open file of arrays.

    Attributes:
        header: the header's JSON value, of any form.
    """

    header: Any
    _archive: zipfile.ZipFile
    _members: Sequence[zipfile.ZipInfo]

    def arrays(self, promised: Sequence[Member]) -> tuple[AnyArray, ...]:
        """The arrays, which must be those that the header promises, in their order.

        Raises:
            ModelFileError: they are others, or more, or fewer.
        """
        names = [f"{member.name}.npy" for member in promised]
        require(
            [m.filename for m in self._members] == names, "its arrays are not those that its header promises"
        )
        return tuple(self._array(*pair) for pair in zip(self._members, promised, strict=True))

    def _array(self, info: zipfile.ZipInfo, promised: Member) -> AnyArray:
        start = _preamble(promised.shape, promised.dtype)
        length = prod(promised.shape) * np.dtype(promised.dtype).itemsize
        require(info.file_size == len(start) + length, f"{info.filename} has a wrong size")
        content = self._archive.read(info)
        require(content.startswith(start), f"{info.filename} is not the array that the header promises")
        array = np.frombuffer(content, dtype=promised.dtype, offset=len(start)).reshape(promised.shape)
        return array.astype(array.dtype.newbyteorder("="), copy=False)


@contextmanager
def opened(path: str | Path, what: str) -> Iterator[Content]:
    """The content of a file that ``save_arrays`` wrote.

    Args:
        path: the file.
        what: its content in words, such as "a model".

    Raises:
        ModelFileError: the file can't be opened, is damaged, or is refused while it is open.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            yield _content(archive, Path(path).stat().st_size)
    except ModelFileError as error:
        raise ModelFileError(f"{path} is not {what} that can be loaded: {error}") from None
    except OSError as error:
        raise ModelFileError(f"{path} can't be opened: {error.strerror}") from None
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise ModelFileError(f"{path} is not {what} that can be loaded: damaged ({error})") from None


def _preamble(shape: tuple[int, ...], dtype: str) -> bytes:
    """The bytes before an array's numbers in an .npy file of version 1.0."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape!r}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode("latin1")


def _write(archive: zipfile.ZipFile, name: str, start: bytes, array: AnyArray) -> None:
    info = zipfile.ZipInfo(name, _DATE)
    info.create_system, info.external_attr = 3, 0o644 << 16
    info.file_size = len(start) + array.nbytes
    with archive.open(info, "w") as file:
        file.write(start)
        if array.size:
            file.write(array.data.cast("B"))


def _content(archive: zipfile.ZipFile, size: int) -> Content:
    members = archive.infolist()
    require(bool(members) and members[0].filename == _HEADER, "it has no header")
    stored = all(m.compress_type == zipfile.ZIP_STORED and m.compress_size == m.file_size for m in members)
    require(stored, "a member is compressed")
    require(sum(m.file_size for m in members) <= size, "it promises more than it holds")
    require(members[0].file_size <= _LARGEST_HEADER, "its header is too long")
    try:
        header = json.loads(archive.read(members[0]))
    except (ValueError, RecursionError):
        raise ModelFileError("its header is not JSON") from None
    return Content(header, archive, members[1:])
