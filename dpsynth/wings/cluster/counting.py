"""The private rows of a release, loaded and counted by workers of Dask.

Invariant: an engine that can't be used is refused before anything is reserved.
"""

from __future__ import annotations

from pathlib import Path

from dpsynth.curator import MemoryTable, UnboundedEngine, UnitSample
from dpsynth.errors import ConfigError, Interrupted, SourceError
from dpsynth.pipeline.inputs import Inputs, file_of, names_to_read, table_of_rows
from dpsynth.pipeline.measuring import Workers
from dpsynth.pipeline.release_run import ReleaseRun
from dpsynth.pipeline.reservation import Occasion
from dpsynth.wings.cluster.dask_clusters import Certificates, local_workers, workers_at
from dpsynth.wings.cluster.dask_workers import missing_extra
from dpsynth.wings.cluster.keys import LOCAL, Engine
from dpsynth.wings.cluster.partitioned import Coding, PartitionedRows, Piece, WholeTable, pieces_of_file


class Dask(Workers):
    """Workers on this machine, or of a scheduler that runs already, as ``engine.dask`` says."""

    def accept(self, inputs: Inputs) -> None:
        engine = _engine(inputs)
        missing = missing_extra()
        if missing is not None:
            raise missing
        if inputs.table is not None:
            raise ConfigError(
                "engine.dask is for a table that workers can read by themselves, and this one is in the "
                "memory of this process. Leave out engine.dask, or write the table to Parquet files."
            )
        if engine.scheduler != LOCAL:
            workers_at(engine.scheduler, _certificates(engine)).close()

    def rows_of(self, inputs: Inputs, run: ReleaseRun, sample: UnitSample | None) -> UnboundedEngine:
        plan, engine, private = inputs.plan, _engine(inputs), run.partial / "private"
        if engine.scheduler == LOCAL:
            workers, end = local_workers(private / "dask")
            run.at_end(end)
        else:
            workers = workers_at(engine.scheduler, _certificates(engine))
            run.at_end(workers.close)
        coding = Coding(
            inputs.compiled.columns,
            plan.neighbours,
            run.key,
            run.occasion.part,
            plan.own.columns,
            sample,
            workers.room(engine.memory),
        )
        try:
            return PartitionedRows.read(workers, _pieces(inputs, run.occasion, workers.pieces), coding)
        except Interrupted as error:
            # Nothing was asked, so there is nothing to resume.
            raise SourceError(str(error)) from None


DASK = Dask()


def _engine(inputs: Inputs) -> Engine:
    assert isinstance(inputs.spec.engine, Engine)
    return inputs.spec.engine


def _pieces(inputs: Inputs, occasion: Occasion, most: int) -> list[Piece]:
    """The pieces of the private table, at most so many."""
    names, table = names_to_read(inputs, occasion), table_of_rows(inputs)
    if table is not None and not isinstance(table, MemoryTable):
        return [WholeTable(table, names)]
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
