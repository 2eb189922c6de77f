"""The engine of a release: the private rows, loaded by this process or by workers.

Invariant: rows are read after the reservation, and lie behind the door. Which engine loads them changes no
question and no answer. An engine that can't be used is refused before anything is reserved.
"""

from __future__ import annotations

from typing import Protocol

from dpsynth.curator import Room, UnboundedEngine, UnitSample, load_rows
from dpsynth.errors import ConfigError
from dpsynth.pipeline.inputs import Inputs, cells_of
from dpsynth.pipeline.release_run import ReleaseRun
from dpsynth.wing import Point


class Workers(Protocol):
    """Several processes that count the private table together."""

    def accept(self, inputs: Inputs) -> None:
        """Check that they can be used.

        Raises:
            ConfigError: they aren't installed, or the table is in this process's memory.
            SourceError: they can't be reached, or may not hold private rows.
        """
        ...

    def rows_of(self, inputs: Inputs, run: ReleaseRun, sample: UnitSample | None) -> UnboundedEngine:
        """All rows of the release's slice and sample, coded, before contribution bounding.

        Raises:
            ConfigError, SourceError: the table can't be read, or the workers can't be used.
        """
        ...


WORKERS: Point[Workers] = Point("workers")


def accept_engine(inputs: Inputs) -> None:
    """Check that the engine can be used; a scheduler that runs already is asked for its workers.

    Raises:
        ConfigError, SourceError: it can't be used.
    """
    if inputs.spec.engine.dask is not None:
        _workers().accept(inputs)


def rows_of(inputs: Inputs, run: ReleaseRun) -> UnboundedEngine:
    """All rows of the release's slice and sample, coded, before contribution bounding.

    Args:
        inputs: the inputs of the release.
        run: the run; it ends what is started here.

    Raises:
        ConfigError, SourceError: the table can't be read, or the engine can't be used.
    """
    plan, engine, part = inputs.plan, inputs.spec.engine, run.occasion.part
    sampling = plan.sampling
    sample = None if sampling is None else UnitSample(sampling.threshold, run.key)
    # With a sealed journal every answer is there.
    asks = plan.neighbours.rows_public or not run.journal.sealed
    if engine.dask is not None and asks:
        return _workers().rows_of(inputs, run, sample)
    batches = cells_of(inputs, run.occasion) if asks else iter(())
    if sample is not None:
        batches = sample.of(batches, plan.neighbours)
    room = Room(engine.memory, run.partial / "private")
    return load_rows(batches, inputs.compiled.columns, plan.neighbours, run.key, part, plan.own.columns, room)


def _workers() -> Workers:
    workers = WORKERS.filled()
    if workers is None:
        raise ConfigError("engine.dask needs the wing cluster, which is not installed here.")
    return workers
