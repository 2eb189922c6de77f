"""The engine of a release: the private rows, loaded by this process or by workers of Dask.

Invariant: rows are read after the reservation, and lie behind the door. Which engine loads them changes no
question and no answer. An engine that can't be used is refused before anything is reserved.
"""

from __future__ import annotations

from pathlib import Path

from dpsynth.config.engine import LOCAL, Engine
from dpsynth.curator import (
    Certificates,
    Coding,
    DatabaseTable,
    PartitionedRows,
    Piece,
    Room,
    UnboundedEngine,
    UnitSample,
    WholeQuery,
    load_rows,
    local_workers,
    missing_extra,
    pieces_of_file,
    workers_at,
)
from dpsynth.errors import ConfigError, Interrupted, SourceError
from dpsynth.lifecycle.inputs import Inputs, cells_of, file_of, names_to_read, table_of_rows
from dpsynth.lifecycle.release_run import ReleaseRun
from dpsynth.plan.occasion import Occasion


def accept_engine(inputs: Inputs) -> None:
    """Check that the engine can be used; a scheduler that runs already is asked for its workers.

    Raises:
        ConfigError: Dask isn't installed, or the table is in this process's memory.
        SourceError: the scheduler can't be reached, or its workers may not hold private rows.
    """
    engine = inputs.spec.engine
    if engine.dask is None:
        return
    missing = missing_extra()
    if missing is not None:
        raise missing
    if inputs.table is not None:
        raise ConfigError(
            "engine.dask is for a table that workers can read by themselves, and this one is in the memory "
            "of this process. Leave out engine.dask, or write the table to Parquet files."
        )
    if engine.dask != LOCAL:
        workers_at(engine.dask, _certificates(engine)).close()


def rows_of(inputs: Inputs, run: ReleaseRun) -> UnboundedEngine:
    """All rows of the release's slice and sample, coded, before contribution bounding.

    Args:
        inputs: the inputs of the release.
        run: the run; it ends what is started here.

    Raises:
        ConfigError, SourceError: the table can't be read, or the engine can't be used.
    """
    plan, engine, part = inputs.plan, inputs.spec.engine, run.occasion.part
    summed, private = plan.own.columns, run.partial / "private"
    columns, sampling = inputs.compiled.columns, plan.sampling
    sample = None if sampling is None else UnitSample(sampling.threshold, run.key)
    # With a sealed journal every answer is there.
    asks = plan.neighbours.rows_public or not run.journal.sealed
    if engine.dask is None or not asks:
        batches = cells_of(inputs, run.occasion) if asks else iter(())
        if sample is not None:
            batches = sample.of(batches, plan.neighbours)
        room = Room(engine.memory, private)
        return load_rows(batches, columns, plan.neighbours, run.key, part, summed, room)
    if engine.dask == LOCAL:
        workers, end = local_workers(private / "dask")
        run.at_end(end)
    else:
        workers = workers_at(engine.dask, _certificates(engine))
        run.at_end(workers.close)
    coding = Coding(columns, plan.neighbours, run.key, part, summed, sample, workers.room(engine.memory))
    try:
        return PartitionedRows.read(workers, _pieces(inputs, run.occasion, workers.pieces), coding)
    except Interrupted as error:
        # Nothing was asked, so there is nothing to resume.
        raise SourceError(str(error)) from None


def _pieces(inputs: Inputs, occasion: Occasion, most: int) -> list[Piece]:
    """The pieces of the private table, at most so many."""
    names, table = names_to_read(inputs, occasion), table_of_rows(inputs)
    if isinstance(table, DatabaseTable):
        return [WholeQuery(table, names)]
    path, form = file_of(inputs)
    near = inputs.plan.neighbours
    # Workers of other machines may run in another folder.
    whole = path.absolute() if isinstance(path, Path) else path
    broken, empty = near.person is None, near.rows_public
    return [*pieces_of_file(whole, names, form, most, keep_broken=broken, keep_empty=empty)]


def _certificates(engine: Engine) -> Certificates | None:
    if engine.tls is None:
        return None
    return Certificates(Path(engine.tls.ca), Path(engine.tls.cert), Path(engine.tls.key))
