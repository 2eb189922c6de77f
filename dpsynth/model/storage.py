"""Storage of a model in one file of arrays: one for each clique, and a header with the tree.

A file is a zip of ``header.json`` and one uncompressed ``.npy`` for each array, read without pickle. Members
are stored, not deflated, with a fixed date. So the bytes and the checksum of a file do not depend on time or
machine, and nothing that is read can be larger than the file.

Invariant: a model that ``load`` returns satisfies the invariants of ``MarkovRandomField``; any other file is
refused with one error. No array is read before its name, type and shape are known to be those that the header
promises.
"""

from __future__ import annotations

import json
import os
import secrets
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite, prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Domain
from dpsynth.errors import ModelFileError
from dpsynth.model.factor import sum_in_order
from dpsynth.model.junction_tree import Edge, JunctionTree
from dpsynth.model.markov_random_field import MarkovRandomField

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
    """Refuse a file, or a value that is to be saved, with a ``ModelFileError`` unless the condition holds."""
    if not condition:
        raise ModelFileError(complaint)


def dtype_of(values: AnyArray) -> str:
    """The type in the file: little-endian."""
    return str(values.dtype.newbyteorder("<").str)


def save_arrays(path: str | Path, header: Mapping[str, object], arrays: Mapping[str, AnyArray]) -> None:
    """Write a header of JSON values and arrays to a file, which appears whole or not at all.

    The same values give the same bytes, on any machine. An existing file is replaced. ``Content.arrays``
    expects the arrays in this order.

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
    """An open file of arrays, and its header's JSON value, of any form."""

    header: Any
    _archive: zipfile.ZipFile
    _members: Sequence[zipfile.ZipInfo]

    def arrays(self, promised: Sequence[Member]) -> tuple[AnyArray, ...]:
        """The arrays, in order; ``ModelFileError`` if they are others than the header promises."""
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
    """The content of a file that ``save_arrays`` wrote; ``ModelFileError`` if it is another file."""
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


__all__ = ["ModelFileError", "load", "save"]

FORMAT = "dpsynth Markov random field"

VERSION = 1

_TOLERANCES = {"<f8": 1e-6, "<f4": 1e-3}
"""Disagreement of neighbouring cliques that rounding may cause, as a share of the total."""

_KEYS = {"format", "version", "total", "columns", "cliques", "edges", "dtypes"}


def save(model: MarkovRandomField, path: str | Path) -> None:
    """Write a model to a file. The file appears whole or not at all.

    The same model gives the same bytes, on any machine. Its arrays keep their precision; an existing file is
    replaced.

    Raises:
        ModelFileError: the model breaks an invariant of its type.
        OSError: the file can't be written.
    """
    _check(model)
    tree = model.tree
    header = {
        "format": FORMAT,
        "version": VERSION,
        "total": float(model.total),
        "columns": [[column, int(size)] for column, size in tree.domain.sizes.items()],
        "cliques": [list(clique) for clique in tree.cliques],
        "edges": [[e.child, e.parent] for e in tree.edges],
        "dtypes": [dtype_of(b) for b in model.beliefs],
    }
    save_arrays(path, header, {f"belief_{i}": belief for i, belief in enumerate(model.beliefs)})


def load(path: str | Path) -> MarkovRandomField:
    """The model of a file that ``save`` wrote, after all checks.

    Memory: the model's arrays; no member is read before its size is known to be right.

    Raises:
        ModelFileError: the file can't be opened, is damaged, of another version, or holds anything but a
            model.
    """
    with opened(path, "a model") as content:
        tree, dtypes, total = _described(content.header)
        promised = [
            Member(f"belief_{i}", tree.domain.shape(clique), dtype)
            for i, (clique, dtype) in enumerate(zip(tree.cliques, dtypes, strict=True))
        ]
        model = MarkovRandomField(tree, content.arrays(promised), total)
        _check(model)
    return model


def _described(header: Any) -> tuple[JunctionTree, list[str], float]:
    require(isinstance(header, dict) and header.get("format") == FORMAT, f"its format is not '{FORMAT}'")
    version = header.get("version")
    require(version == VERSION, f"its version is {version!r}; this program reads version {VERSION}")
    require(header.keys() == _KEYS, f"its header must have {', '.join(sorted(_KEYS))}, nothing else")
    total, dtypes = header["total"], header["dtypes"]
    require(isinstance(total, float), "its total is not a number")
    for key, kinds in (("columns", (str, int)), ("edges", (int, int))):
        listed = isinstance(header[key], list) and all(
            isinstance(pair, list) and [type(part) for part in pair] == list(kinds) for pair in header[key]
        )
        require(listed, f"its {key} are not pairs of {kinds[0].__name__} and {kinds[1].__name__}")
    named = isinstance(header["cliques"], list) and all(
        isinstance(clique, list) and all(isinstance(column, str) for column in clique)
        for clique in header["cliques"]
    )
    require(named, "its cliques are not lists of names")
    cliques = tuple(tuple(clique) for clique in header["cliques"])
    known = isinstance(dtypes, list) and all(isinstance(d, str) and d in _TOLERANCES for d in dtypes)
    require(known and len(dtypes) == len(cliques), "its dtypes are not one of <f4 and <f8 a clique")
    domain = Domain(dict(header["columns"]))
    require(len(domain.sizes) == len(header["columns"]), "it names a column twice")
    edges = []
    for child, parent in header["edges"]:
        require(min(child, parent) >= 0 and max(child, parent) < len(cliques), "an edge has no clique")
        edges.append(Edge(child, parent, domain.canonical(set(cliques[child]) & set(cliques[parent]))))
    tree = JunctionTree(domain, cliques, tuple(edges))
    _check_tree(tree)
    return tree, dtypes, total


def _check_tree(tree: JunctionTree) -> None:
    domain, cliques = tree.domain, tree.cliques
    require(bool(cliques) and bool(domain.sizes), "it has no columns")
    require(all(size >= 1 for size in domain.sizes.values()), "a column has no values")
    for clique in cliques:
        require(domain.canonical(clique) == clique, f"the clique {clique} is not in the domain's order")
    met = {0}
    for edge in tree.edges:
        require(edge.parent in met and edge.child not in met, "its edges are not a tree, parents first")
        shared = domain.canonical(set(cliques[edge.child]) & set(cliques[edge.parent]))
        require(edge.separator == shared, "a separator is not what its cliques share")
        met.add(edge.child)
    require(len(met) == len(cliques), "its edges do not join all cliques")
    holders = Counter(column for clique in cliques for column in clique)
    holders.subtract(Counter(column for edge in tree.edges for column in edge.separator))
    for column in domain.sizes:
        require(holders[column] == 1, f"the cliques that hold {column!r} do not hang together")


def _check(model: MarkovRandomField) -> None:
    tree, total = model.tree, model.total
    _check_tree(tree)
    require(isfinite(total) and total > 0, f"its total is {total}, not a positive number")
    require(len(model.beliefs) == len(tree.cliques), "it has not one array a clique")
    for clique, belief in zip(tree.cliques, model.beliefs, strict=True):
        require(dtype_of(belief) in _TOLERANCES, f"the array of {clique} is of {belief.dtype}")
        require(belief.shape == tree.domain.shape(clique), f"the array of {clique} has a wrong shape")
        require(bool(belief.min() >= 0), f"the array of {clique} has a cell that is negative or no number")
        excess = abs(float(sum_in_order(belief, clique, ())) - total)
        require(
            excess <= _TOLERANCES[dtype_of(belief)] * total,
            f"the array of {clique} does not sum to the total",
        )
    for edge in tree.edges:
        child, parent = (
            sum_in_order(model.beliefs[i], tree.cliques[i], edge.separator) for i in (edge.child, edge.parent)
        )
        worst = max(_TOLERANCES[dtype_of(model.beliefs[i])] for i in (edge.child, edge.parent))
        agree = bool(np.abs(child - parent).max() <= worst * total)
        require(agree, f"neighbouring cliques disagree on {edge.separator}")
