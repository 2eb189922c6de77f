"""What a release reads: a public table, and the private one behind its door.

Invariant: whoever calls ``open_door`` gets a door, never rows. The private table is looked at before the
reservation only to see that it can be read at all, and whole only after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dpsynth.config import Spec
from dpsynth.config.publication import Format
from dpsynth.curator import (
    Curator,
    Terms,
    UnboundedCurator,
    check_source,
    header_of,
    load_rows,
    read_batches,
)
from dpsynth.domain.column import Column
from dpsynth.domain.domain import Domain
from dpsynth.errors import ConfigError
from dpsynth.evidence.public_table import PublicTable
from dpsynth.lifecycle.release_run import Work
from dpsynth.model import Triangulation
from dpsynth.plan.occasion import Occasion
from dpsynth.plan.plan import Plan


def read_public(spec: Spec, columns: Sequence[Column]) -> PublicTable:
    """Read a public table, with the reader that knows of all that may be wrong with a file.

    Raises:
        ConfigError, SourceError: it can't be used.
    """
    assert spec.public is not None and spec.public.format is not None
    path, kind = Path(spec.public.path), spec.public.format
    if not path.is_file():
        raise ConfigError(
            f"public.path: there is no file {path}; relative paths start at the working directory. Nothing "
            "was charged."
        )
    private = Path(spec.source.path or "")
    if private.exists() and path.samefile(private):
        raise ConfigError(
            "public.path must be another file than source.path: what a public table says is released as it "
            "is, and protected by nothing. Nothing was charged."
        )
    separator = spec.public.separator
    header = header_of(path, kind, separator)
    names = [c.name for c in columns if c.name in header]
    if not names:
        raise ConfigError(f"public.path: {path} has none of the columns that the config declares.")
    batches = read_batches(path, names, kind, keep_broken=False, separator=separator)
    return PublicTable.of(path, batches, columns)


def check_room(plan: Plan, domain: Domain) -> None:
    """Refuse known marginals that no model within the bound can hold beside the wanted pairs.

    Raises:
        ConfigError: the model would be too large.
    """
    cells = Triangulation.of(domain, [*plan.known.cliques, *plan.wanted]).cells
    if plan.known.marginals and cells > plan.max_cells:
        raise ConfigError(
            f"The model needs {cells:,} cells for the marginals under known and the pairs of "
            f"publish.statistics; {plan.max_cells:,} are allowed. State fewer columns together, or raise "
            "structure.max_model_mb. Nothing was charged."
        )


def accept_source(spec: Spec, plan: Plan, occasion: Occasion) -> None:
    """See whether the table can be read, as far as its beginning tells.

    Raises:
        ConfigError, SourceError: it can't.
    """
    path, kind = _file_of(spec)
    check_source(path, _read_names(spec, plan, occasion), kind, separator=spec.source.separator)


def open_door(spec: Spec, plan: Plan, work: Work) -> Curator | UnboundedCurator:
    """Read the private table, bound each person's rows, and put a curator before it.

    Where the bound is to be found the rows are left as they are, behind a door that tells of their numbers.
    """
    path, kind = _file_of(spec)
    batches = read_batches(
        path,
        _read_names(spec, plan, work.occasion),
        kind,
        keep_broken=plan.neighbours.person is None,
        separator=spec.source.separator,
    )
    if work.journal.sealed and not plan.neighbours.rows_public:
        # The journal has every answer.
        batches = iter(())
    rows = load_rows(batches, spec.table_columns(), plan.neighbours, work.key, work.occasion.part)
    terms = Terms(plan.neighbours, plan.measure, plan.budget, plan.noise, plan.naming_delta)
    if plan.rows_price:
        return UnboundedCurator(rows, terms, work.journal, work.key)
    return Curator(rows.bounded(plan.neighbours.max_rows, work.key), terms, work.journal)


def _read_names(spec: Spec, plan: Plan, occasion: Occasion) -> list[str]:
    """The columns that a release is made of, those of the person and of the period included."""
    person, part = plan.neighbours.person, occasion.part
    names = [c.name for c in spec.table_columns()]
    more = [*([person] if person else []), *([] if part is None else [part.column])]
    return list(dict.fromkeys([*names, *more]))


def _file_of(spec: Spec) -> tuple[Path, Format]:
    source = spec.source
    if source.path is None or source.format is None:
        raise ConfigError("source.path is missing.")
    return Path(source.path), source.format
