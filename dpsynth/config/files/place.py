"""Places of table files: paths of this machine, and URLs of any file system that fsspec knows.

A URL is opened with the credentials that its file system finds by itself: in the environment, in its own
files, or in fsspec's configuration. None stands in a configuration of ours.

A file has many spellings: a URL of this machine (``file://``), dots and doubled slashes, links, another case
of letters. Whoever compares two tables asks ``same_table``.

Invariant: a file behind a URL is read in ranges, in memory; nothing of it is copied to disk. A message says a
URL as it stands in the configuration, and no words of the file system behind it. A URL of this machine is a
path from the moment that a configuration is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, cast
from urllib.parse import unquote, urlsplit

from dpsynth.errors import SourceError

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_URL = re.compile(r"([a-z][a-z0-9+.:-]*)://.*", re.DOTALL)
_PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "az": "adlfs"}
"""Packages of file systems that fsspec has not itself."""
_OWN = re.compile(r"(?:file|local):(?://(?:localhost(?=/))?|(?=/))(.*)", re.DOTALL)
_SCHEMES = {"s3a": "s3", "gcs": "gs", "abfs": "az", "abfss": "az", "ssh": "sftp", "https": "http"}
"""Schemes that lead to the same files as another one."""
_PORTS = {"http": (80, 443), "ftp": (21,), "sftp": (22,)}


def is_url(path: str) -> bool:
    """True if a path is a URL.

    >>> is_url("s3://bucket/visits.parquet"), is_url("data/visits.csv")
    (True, False)
    """
    return _URL.fullmatch(path) is not None


def as_path(path: str) -> str:
    """A URL of this machine as the path that it names; any other text as it is.

    >>> as_path("file:///data/visits.csv"), as_path("data/visits.csv"), as_path("s3://bucket/visits.csv")
    ('/data/visits.csv', 'data/visits.csv', 's3://bucket/visits.csv')
    """
    found = _OWN.fullmatch(path)
    return path if found is None else found[1]


def resolved(path: str) -> str:
    """The absolute path of a file of this machine, without links; a URL of another one as it is."""
    own = as_path(path)
    # Unlike Path.resolve it takes links in a circle, which are refused later, as a file that isn't there.
    return own if is_url(own) else os.path.realpath(own)


def same_table(one: str, other: str) -> bool:
    """True if two paths or URLs name the same file or folder, however they are spelt.

    Two paths do so if they are one after links are followed, or if both lead to one file of a file system: by
    a hard link, by another mount, or in another case of letters where that makes no difference. Two URLs do
    so if they differ only in what most file systems pass over. So two objects of a store whose names differ
    in no more than that count as one.

    >>> same_table("s3://bucket/a//./visits.csv", "s3a://bucket/a/visits.csv")
    True
    """
    first, second = resolved(one), resolved(other)
    if is_url(first) or is_url(second):
        return is_url(first) and is_url(second) and _plain(first) == _plain(second)
    return first == second or _same_file(first, second)


def is_part_of(part: str, whole: str) -> bool:
    """True if a path is that of a table, or of a file in the folder that holds the table."""
    if same_table(part, whole):
        return True
    folder = resolved(whole)
    if is_url(folder):
        return False
    inside = Path(resolved(part))
    try:
        if not Path(folder).is_dir():
            return False
        if any(_same_file(str(parent), folder) for parent in inside.parents):
            return True
        return inside.is_file() and any(_same_file(str(inside), str(f)) for f, _ in files_below(Path(folder)))
    except (OSError, ValueError):
        # A name that no file can have, such as one that is too long: it is refused as the source is opened.
        return False


def _same_file(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except (OSError, ValueError):
        return False


def _plain(url: str) -> tuple[str, str, tuple[str, ...]]:
    """The scheme, the host and the parts of the path of a URL, each in the one spelling that is compared."""
    scheme, _, rest = url.partition("://")
    scheme = _SCHEMES.get(scheme.lower(), scheme.lower())
    host, _, path = rest.partition("/")
    try:
        parsed = urlsplit(f"//{host}")
        port = None if parsed.port in _PORTS.get(scheme, ()) else parsed.port
        host = f"{(parsed.hostname or '').rstrip('.')}:{port or ''}"
    except ValueError:
        host = host.lower()
    parts: list[str] = []
    for part in unquote(path).split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return scheme, host, tuple(parts)


class RemotePath:
    """A file or a folder behind a URL, with those methods of ``Path`` that readers of tables use."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __str__(self) -> str:
        return self._url

    @cached_property
    def _found(self) -> tuple[AbstractFileSystem, str]:
        scheme = self._url.partition(":")[0]
        package = _PACKAGES.get(scheme, f"fsspec and its package for {scheme}")
        try:
            from fsspec.core import url_to_fs

            return cast("tuple[AbstractFileSystem, str]", url_to_fs(self._url))
        except (ImportError, ValueError):
            raise SourceError(
                f"{self._url} needs a package that isn't installed, or is of a kind that fsspec doesn't "
                f"know: pip install {package}; those of s3:// come with pip install 'dpsynth[s3]'."
            ) from None

    @property
    def name(self) -> str:
        return PurePosixPath(self._url).name

    def open(self, mode: str = "rb") -> BinaryIO:
        """The bytes of the file, which are fetched in ranges as they are read.

        Raises:
            OSError: there is no such file, or it may not be read.
        """
        system, inside = self._found
        return cast(BinaryIO, system.open(inside, mode))

    @property
    def size(self) -> int:
        """The number of bytes of the file; 0 where its file system doesn't know."""
        system, inside = self._found
        return int(system.size(inside) or 0)

    def is_file(self) -> bool:
        system, inside = self._found
        return bool(system.isfile(inside))

    def is_dir(self) -> bool:
        """True if there is a folder, or the file system takes the URL for the beginning of others."""
        system, inside = self._found
        return bool(system.isdir(inside))

    def below(self) -> Iterator[tuple[RemotePath, tuple[str, ...]]]:
        """The files in the folder and its folders, each with the parts of its path below the folder."""
        system, inside = self._found
        for found in system.find(inside):
            name = str(found)
            parts = PurePosixPath(name).relative_to(PurePosixPath(inside)).parts
            yield RemotePath(str(system.unstrip_protocol(name))), parts


Place = Path | RemotePath
"""A file of this machine, or one behind a URL."""


def place_of(path: str) -> Place:
    """The place that a path or a URL of a configuration names."""
    own = as_path(path)
    return RemotePath(own) if is_url(own) else Path(own)


@contextmanager
def arrow_input(place: Place) -> Iterator[Path | BinaryIO]:
    """The source that Arrow reads a file from: a path, which it opens itself, or a stream."""
    if isinstance(place, RemotePath):
        with place.open("rb") as stream:
            yield stream
    else:
        yield place


def size_of(place: Place) -> int:
    """The number of bytes of a file; 0 where its file system doesn't know. Private, of a private table."""
    return place.size if isinstance(place, RemotePath) else place.stat().st_size


def files_below(folder: Place) -> Iterator[tuple[Place, tuple[str, ...]]]:
    """The files in a folder and its folders, each with the parts of its path below the folder."""
    if isinstance(folder, RemotePath):
        yield from folder.below()
        return
    for file in folder.rglob("*"):
        if file.is_file():
            yield file, file.relative_to(folder).parts
