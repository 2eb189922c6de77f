"""Keys of the section ``engine``: workers of Dask, and the certificates by which they are known."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from dpsynth.columns.section import Checked, JsonSchema, Section, Text, refused
from dpsynth.config.source import Engine as ByThisProcess

LOCAL = "local"
_ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})")
_THIS_MACHINE = {"localhost", "127.0.0.1", "[::1]"}


class DaskAddress(Checked):
    """The word local, or the address of a scheduler of Dask's."""

    def check(self, value: object) -> str:
        """The word or the address."""
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


class Engine(ByThisProcess):
    """What counts the private table."""

    dask: Annotated[str, DaskAddress()] | None = Field(
        default=None,
        description="Count with Dask: local starts a worker for each processor of this machine; an address "
        "such as tls://host:8786 names a scheduler that runs already. Left out: this process counts.",
    )
    tls: Tls | None = Field(default=None, description="Certificates for a tls:// address under dask.")

    def model_post_init(self, context: object, /) -> None:
        encrypted = self.dask is not None and self.dask.startswith("tls://")
        if encrypted and self.tls is None:
            raise refused(
                "is needed for a tls:// address: {ca: ca.pem, cert: mine.pem, key: mine.key}", "tls"
            )
        if not encrypted and self.tls is not None:
            raise refused("is for a tls:// address under engine.dask; remove it", "tls")

    @property
    def by_workers(self) -> bool:
        return self.dask is not None

    @property
    def scheduler(self) -> str:
        assert self.dask is not None
        return self.dask

    @property
    def named(self) -> str:
        if self.dask is None:
            return super().named
        if self.dask == LOCAL:
            return "Dask, with a worker for each processor of this machine"
        return f"Dask, with the workers of the scheduler at {self.dask}"
