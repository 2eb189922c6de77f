"""The inputs of a release, compiled before its budget is reserved, and its private table before it is opened.

Invariant: inputs are public, but for a private table in memory, which stays closed in its ``MemoryTable``. A
file of the private table is opened only to check that it can be read. The address of a database, with its
password, is looked up when rows are read, and stays in this process: no step hands it on, no message quotes
it, and nothing writes it down.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from dpsynth.bundle.signature import SigningKey, key_in
from dpsynth.config import CompiledSpec, Spec, compiled
from dpsynth.config.files import FileForm
from dpsynth.config.files.opening import unheard
from dpsynth.config.files.place import Place, is_part_of, place_of
from dpsynth.config.source import Source
from dpsynth.curator import (
    Batch,
    DatabaseTable,
    MemoryTable,
    MemoryTables,
    as_texts,
    check_source,
    names_of,
    read_batches,
    read_cells,
)
from dpsynth.curator.rows.csv_lines import BrokenRows
from dpsynth.errors import ConfigError
from dpsynth.model import Triangulation
from dpsynth.pipeline.reservation import Occasion
from dpsynth.plan.plan import Plan, make_plan
from dpsynth.strategy import Strategy, strategy_of
from dpsynth.strategy.public_table import PublicTable
from dpsynth.wing import Point

SECRET = "secret/"
"""Beginning of the names of Prefect's Secret blocks."""

_held: dict[str, str] = {}


def hold(name: str, address: str) -> None:
    """Keep the address of a name of ``source.url_from``; ``flows`` does so for Prefect's Secret blocks."""
    _held[name] = address


def is_locked(source: Source) -> bool:
    """True if the address is in a vault that this process hasn't been given it from."""
    name = source.url_from
    return name is not None and name.startswith(SECRET) and name not in _held


def address_of(source: Source) -> tuple[str, str]:
    """The URL of a source's database, and the words for it in messages.

    Raises:
        ConfigError: it isn't found, or is no URL.
    """
    if source.url is not None:
        return source.url, f"The database {source.url}"
    name = str(source.url_from)
    named = f"The database of source.url_from: {name}"
    address = _held.get(name) or os.environ.get(name, "")
    if not address:
        if name.startswith(SECRET):
            raise ConfigError(
                f"source.url_from names the Secret block {name.removeprefix(SECRET)}, which only Prefect "
                "reads: run with --prefect, or name an environment variable."
            )
        raise ConfigError(
            f"source.url_from names the environment variable {name}, and it isn't set. Set it to the "
            "database's URL, such as postgresql://reader:PASSWORD@host/clinic."
        )
    try:
        make_url(address)
    except ArgumentError:
        raise ConfigError(
            f"{named} has no URL of a database in it, such as postgresql://reader:PASSWORD@host/clinic."
        ) from None
    return address, named


SIGNING_KEY = "DPSYNTH_SIGNING_KEY"
"""Name of the environment variable with the file of a signing key, where the config names none."""

__all__ = [
    "Inputs",
    "MemoryTable",
    "MemoryTables",
    "accept_source",
    "cells_of",
    "check_public_table",
    "file_of",
    "inputs_of",
    "names_to_read",
    "table_of_rows",
    "with_public_table",
]


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of a release.

    Attributes:
        plan: the plan before domain discovery.
        table: the private table, if it was handed over in memory. All else is public.
    """

    compiled: CompiledSpec
    strategy: Strategy
    plan: Plan
    public_table: PublicTable | None = None
    table: MemoryTable | None = None

    @property
    def spec(self) -> Spec:
        return self.compiled.spec

    @property
    def signing_key(self) -> SigningKey | None:
        """The key that signs the bundle: that of the config, or else of the environment; None without one.

        It is read when it is needed, so that no step hands it on.

        Raises:
            ConfigError: there is no key in the file.
        """
        return key_in(self.spec.publish.sign, SIGNING_KEY)

    @property
    def public_sha256(self) -> str | None:
        return None if self.public_table is None else self.public_table.sha256


def inputs_of(spec: Spec, table: MemoryTable | None = None) -> Inputs:
    """The compiled config, its strategy and its plan; a table in memory takes the place of the config's file.

    Raises:
        ConfigError: there is no plan, no model within the bound holds the public marginals, or there is no
            table.
    """
    if spec.trust == "local":
        raise ConfigError(
            "trust: local has no table to open: respondents report with dpsynth collect CONFIG, and their "
            "reports are released with dpsynth aggregate CONFIG REPORTS."
        )
    if table is None and spec.source.in_memory:
        raise ConfigError(
            "source is missing: say where the table is, such as source: {path: data/table.csv}, or hand over "
            "a table in memory: dpsynth.release(frame, spec)."
        )
    strategy, worked_out = strategy_of(spec.structure.method, spec.structure.cliques or ()), compiled(spec)
    plan = make_plan(worked_out, strategy)
    _check_model_size(worked_out, plan)
    return Inputs(worked_out, strategy, plan, table=table)


def _check_model_size(compiled_spec: CompiledSpec, plan: Plan) -> None:
    public = compiled_spec.public_marginals
    if not public.marginals:
        return
    cells = Triangulation.of(compiled_spec.domain, [*public.cliques, *plan.wanted]).cells
    if cells > plan.max_cells:
        raise ConfigError(
            f"The model needs {cells:,} cells for the marginals under public_marginals and the pairs of "
            f"publish.statistics; {plan.max_cells:,} are allowed. State fewer columns together, or raise "
            "structure.max_model_mb. Nothing was charged."
        )


def check_public_table(inputs: Inputs) -> list[str]:
    """The declared columns that the public table has, by its header.

    Raises:
        ConfigError, SourceError: the public table can't be used.
    """
    spec, columns = inputs.spec, inputs.compiled.columns
    assert spec.public_table is not None
    path, form = Path(spec.public_table.path), spec.public_table.form
    if not path.is_file():
        raise ConfigError(
            f"public_table.path: there is no file {path}; relative paths start at the working "
            "directory. Nothing was charged."
        )
    if any(is_part_of(str(path), own.path) for own in spec.sources if own.path):
        raise ConfigError(
            "public_table.path must be another file than source.path, and none in its folder: what a public "
            "table says is released as it is, and protected by nothing. Nothing was charged."
        )
    header = names_of(path, form)
    names = list(dict.fromkeys(c.source for c in columns if c.source in header))
    if not names:
        raise ConfigError(f"public_table.path: {path} has none of the columns that the config declares.")
    return names


@unheard()
def with_public_table(inputs: Inputs) -> Inputs:
    """The inputs with the public table, read by the same careful reader as the private one.

    Raises:
        ConfigError, SourceError: the public table can't be used.
    """
    names, spec, columns = check_public_table(inputs), inputs.spec, inputs.compiled.columns
    assert spec.public_table is not None
    path = Path(spec.public_table.path)
    batches = read_batches(path, names, spec.public_table.form, keep_broken=False)
    return replace(inputs, public_table=PublicTable.of(path, batches, columns))


def accept_source(inputs: Inputs, occasion: Occasion) -> None:
    """Check the beginning of the private table for errors that would stop its reading.

    Raises:
        ConfigError, SourceError: the table can't be read.
    """
    table = table_of_rows(inputs)
    if table is not None:
        table.check(names_to_read(inputs, occasion))
        return
    path, form = file_of(inputs)
    check_source(path, names_to_read(inputs, occasion), form)


def cells_of(
    inputs: Inputs, occasion: Occasion, broken: BrokenRows | None = None, columns: Sequence[str] | None = None
) -> Iterator[Batch]:
    """The cells of the private table, from memory, from the config's database or from its file.

    Args:
        broken: counts of broken rows that grow as a file is read, for its owner's eyes; None for a release.
        columns: the columns to read, for its owner's eyes; None for those that a release reads.
    """
    names = names_to_read(inputs, occasion) if columns is None else columns
    table, near = table_of_rows(inputs), inputs.plan.neighbours
    if table is not None:
        found = table.batches(names)
    else:
        path, form = file_of(inputs)
        found = read_cells(
            path, names, form, keep_broken=near.person is None, keep_empty=near.rows_public, broken=broken
        )
    by = inputs.spec.regression
    if by is None or not {*by.columns} <= {*names}:
        return found
    # Products of a row's own cells. A column that is read, as of persons, stays as it is.
    return ({**by.products(next(as_texts([batch]))), **batch} for batch in found)


class LinkedRows(Protocol):
    """The rows of several linked tables, read as one table."""

    @property
    def names(self) -> list[str]:
        """The names of its columns."""

    def check(self, columns: Sequence[str]) -> None:
        """Raise SourceError if the beginnings of the tables show that ``batches`` would."""

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Some columns of all rows, batch by batch."""


LINKED: Point[Callable[[Spec, MemoryTable | None], LinkedRows]] = Point("wide table", "tables")


def table_of_rows(inputs: Inputs) -> MemoryTable | DatabaseTable | LinkedRows | None:
    """The private table in memory, in a database or of several tables; None if it is a file.

    Raises:
        ConfigError: the address of the database isn't found, or its query may not be row by row.
    """
    source = inputs.spec.source
    # A made-up table takes the place of all tables: its columns are those of the wide table.
    if inputs.spec.tables is not None and source.elsewhere:
        return LINKED.needed("tables")(inputs.spec, inputs.table)
    return inputs.table if inputs.table is not None or source.query is None else queried(source)


def queried(source: Source) -> DatabaseTable:
    """The rows of a query; see ``table_of_rows``."""
    address, named = address_of(source)
    if (doubt := source.doubt(address)) is not None:
        raise ConfigError(f"source.query {doubt}.")
    return DatabaseTable(address, str(source.query), named)


def names_to_read(inputs: Inputs, occasion: Occasion) -> list[str]:
    """Names of the columns that a release reads, with the columns of the person and the period."""
    unit, part = inputs.plan.neighbours.columns, occasion.part
    by = inputs.spec.regression
    names = [c.source for c in inputs.compiled.columns] if by is None else [*by.columns]
    more = [*unit, *([] if part is None else [part.column])]
    return list(dict.fromkeys([*names, *more]))


def file_of(inputs: Inputs) -> tuple[Place, FileForm]:
    """The private table's path and form.

    Raises:
        ConfigError: the config names no file.
    """
    source = inputs.spec.source
    if source.path is None:
        raise ConfigError(
            "This needs source.path: the table of this configuration is no file. Give one with --source."
        )
    return place_of(source.path), source.form
