"""The engine section: what counts the private table, where, and how much memory it may take.

Invariant: nothing here decides a question or an answer. Exact counts are the same under every engine, so a
release may be resumed under another one.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Self

from pydantic import Field, model_validator

from dpsynth.config.section import EMPTY, Checked, JsonSchema, Section, Text, refused

_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) ?(KB|MB|GB|TB)", re.IGNORECASE)
LEAST, USUAL = 10**6, 2 * 10**9


class Memory(Checked):
    """An amount of memory, in bytes."""

    def check(self, value: object) -> int:
        """The number of bytes of a text such as 2 GB."""
        if value is None:
            raise refused(EMPTY)
        found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
        size = int(Decimal(found[1]) * _UNITS[found[2].upper()]) if found else 0
        if size < LEAST:
            raise refused("must be an amount of memory of at least 1 MB, such as 500 MB or 2 GB")
        return size

    def json_schema(self) -> JsonSchema:
        """A string."""
        return {"type": "string", "pattern": "^[0-9]{1,6}([.][0-9]{1,3})? ?[kKmMgGtT][bB]$"}


LOCAL = "local"
_ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})")
_THIS_MACHINE = {"localhost", "127.0.0.1", "[::1]"}


class DaskAddress(Checked):
    """The word local, or the address of a scheduler of Dask's."""

    def check(self, value: object) -> str:
        """The word or the address."""
        if value is None:
            raise refused(EMPTY)
        if value == LOCAL:
            return LOCAL
        found = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            raise refused(
                "must be local, for workers that are started on this machine, or the address of a scheduler "
                "such as tls://scheduler.example.org:8786"
            )
        if found[1] == "tcp" and found[2] not in _THIS_MACHINE:
            raise refused(
                "would send rows of the private table to another machine unencrypted: give the scheduler and "
                f"its workers certificates, write tls://{found[2]}:{found[3]}, and name this process's "
                "certificate under engine.tls"
            )
        return found[0]

    def json_schema(self) -> JsonSchema:
        """A string."""
        return {"type": "string", "pattern": "^(local|(tcp|tls)://.+:[0-9]+)$"}


class Tls(Section):
    """PEM files by which this process and a scheduler know each other."""

    ca: Annotated[str, Text("the path of a file", longest=1000)] = Field(
        description="Certificate of the authority that signed those of the scheduler and its workers."
    )
    cert: Annotated[str, Text("the path of a file", longest=1000)] = Field(
        description="Certificate of this process, signed by it too."
    )
    key: Annotated[str, Text("the path of a file", longest=1000)] = Field(
        description="Key of that certificate."
    )


class Engine(Section):
    """What counts the private table."""

    memory: Annotated[int, Memory()] = Field(
        default=USUAL,
        description="Most memory that the coded rows take, such as 500 MB or 2 GB; rows beyond it lie in a "
        "file without a name, in the release's private folder. With dask: in each worker. Left out: 2 GB.",
        json_schema_extra={"default": "2 GB"},
    )
    dask: Annotated[str, DaskAddress()] | None = Field(
        default=None,
        description="Count with Dask: local starts a worker for each processor of this machine; an address "
        "such as tls://host:8786 names a scheduler that runs already. Left out: this process counts.",
    )
    tls: Tls | None = Field(default=None, description="Certificates for a tls:// address under dask.")

    @model_validator(mode="after")
    def _sound(self) -> Self:
        encrypted = self.dask is not None and self.dask.startswith("tls://")
        if encrypted and self.tls is None:
            raise refused(
                "is needed for a tls:// address: {ca: ca.pem, cert: mine.pem, key: mine.key}", "tls"
            )
        if not encrypted and self.tls is not None:
            raise refused("is for a tls:// address under engine.dask; remove it", "tls")
        return self

    @property
    def in_this_process(self) -> Engine:
        """The same memory, with this process as the one that counts."""
        return self.model_copy(update={"dask": None, "tls": None})

    @property
    def named(self) -> str:
        """The engine in words."""
        if self.dask is None:
            return "this process"
        if self.dask == LOCAL:
            return "Dask, with a worker for each processor of this machine"
        return f"Dask, with the workers of the scheduler at {self.dask}"
