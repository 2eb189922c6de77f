"""Rehearsals: the whole release of a made-up table, in a ledger and a folder of its own.

The steps, the noise and the bundle are those of a release. The table is made up from the config, so no
private table is read, and nothing is charged. Its columns depend on each other a little: half of all cells
follow one hidden number of their row. It says nothing about the private table, and its errors say little.

Invariant: a rehearsal opens neither the source nor the config's ledger. Its bundle is marked as one in its
name, its manifest and its pages, and lies apart from those of releases.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpsynth.accounting.slices import Slice
from dpsynth.columns.column import Column, NumberSearch
from dpsynth.columns.numeric import NumericCodec
from dpsynth.config import Spec
from dpsynth.config.source import Source
from dpsynth.errors import DpsynthError
from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.inputs import Inputs, inputs_of, names_to_read
from dpsynth.pipeline.release_run import alone_in, check_outputs
from dpsynth.pipeline.reservation import Occasion, occasion_of
from dpsynth.pipeline.result import Release
from dpsynth.pipeline.spine import run
from dpsynth.pipeline.steps import Tell, silently

ROWS = 10_000
"""Default number of made-up rows."""

REHEARSALS = "rehearsals"
"""Folder of rehearsals among the bundles of releases."""

_WORK = ".work-"
_TOGETHER = 0.5
_MISSING, _MARKED = 0.05, 0.01


@dataclass(frozen=True)
class Rehearsal:
    """A rehearsal that can be run.

    Attributes:
        spec: the config, with the made-up table as its source, and a ledger of its own.
        shown: the folder in which its bundle is kept.
    """

    spec: Spec
    request: Request
    shown: Path

    def kept(self, release: Release) -> Release:
        """The release, with its bundle moved out of the folder of the run."""
        target = self.shown / release.folder.name
        self.shown.mkdir(parents=True, exist_ok=True)
        release.folder.rename(target)
        audiences = {name: replace(one, folder=target) for name, one in release.audiences.items()}
        return replace(release, folder=target, audiences=audiences)


@contextmanager
def rehearsal_of(
    spec: Spec, outputs: Path, rows: int | None = None, period: str | None = None
) -> Iterator[Rehearsal]:
    """A rehearsal of a config; all of it but the bundle that was kept is removed at the end.

    Leftovers of rehearsals that were killed are removed at the beginning.

    Raises:
        ConfigError: there is no plan, the period is none, or the folder can't be made.
    """
    # The products of a made-up table are made up.
    spec = spec.model_copy(update={"regression": None})
    inputs = inputs_of(spec)
    occasion = occasion_of(spec, datetime.now(UTC), period)
    check_outputs(outputs, spec.sources)
    folder = outputs / REHEARSALS
    with alone_in(folder):
        _clear(folder)
        work = folder / f"{_WORK}{secrets.token_hex(8)}"
        work.mkdir(mode=0o700)
        lock = _locked(work)
    try:
        path = work / "made-up.parquet"
        # The table is post-processing of nothing: any generator will do.
        number = rows or inputs.compiled.public_marginals.rows or ROWS
        pq.write_table(made_up_table(inputs, occasion, number, np.random.default_rng()), path)
        ledger = spec.ledger.model_copy(
            update={"url": f"sqlite:///{(work / 'ledger.db').absolute()}", "head": None}
        )
        source = Source.model_validate({"path": str(path)})
        changed = {"source": source, "ledger": ledger, "engine": spec.engine.in_this_process}
        made_up = spec.model_copy(update=changed)
        yield Rehearsal(made_up, Request(work, None, period, rehearsal=True), folder / spec.release)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        os.close(lock)


def rehearse(
    spec: Spec,
    *,
    rows: int | None = None,
    outputs: str | Path = "outputs",
    period: str | None = None,
    tell: Tell = silently,
) -> Release:
    """Run all steps of a release on a made-up table: nothing private is read, and nothing charged.

    Args:
        spec: the checked config; neither its source nor its ledger is opened.
        rows: number of made-up rows; left out: the public number of rows, or 10 000.
        outputs: folder under which ``rehearsals/<release>/<rehearsal id>`` appears.
        period: label of the slice to make up, if the config has periods.

    Raises:
        ConfigError, BudgetRefused: a release of the config would not begin either.
        DpsynthError: the rehearsal was stopped; nothing of it is left.
        StepFailed: an unforeseen error, its details withheld.
    """
    with rehearsal_of(spec, Path(outputs), rows, period) as rehearsal:
        try:
            return rehearsal.kept(run(rehearsal.spec, rehearsal.request, tell=tell))
        except KeyboardInterrupt:
            raise DpsynthError(
                "The rehearsal was stopped. Nothing was charged, and nothing of it is left."
            ) from None


def _locked(work: Path) -> int:
    descriptor = os.open(work, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _clear(folder: Path) -> None:
    for work in folder.glob(f"{_WORK}*"):
        try:
            lock = _locked(work)
        except OSError:
            # Its rehearsal is running.
            continue
        shutil.rmtree(work, ignore_errors=True)
        os.close(lock)


def made_up_table(inputs: Inputs, occasion: Occasion, rows: int, rng: np.random.Generator) -> pa.Table:
    """A made-up table of a config's schema: texts in every column that a release reads.

    A cell's place in its column's domain follows, half of the time, one hidden number of its row, and is
    uniform otherwise. One cell in 20 is missing where cells may be, and one in 100 has each distinct
    marker. A person has 1 to ``max_rows`` rows. All rows lie in the slice.
    """
    part, hidden = occasion.part, rng.random(rows)
    texts = {c.name: _cells(_declared(c), hidden, rng) for c in inputs.compiled.columns if not c.part_of}
    near = inputs.plan.neighbours
    if near.person is not None:
        texts[near.person] = _persons(rows, near.max_rows, rng)
    if near.per is not None and near.per.column not in texts:
        texts[near.per.column] = _within(_A_YEAR, rows, rng)
    if part is not None:
        texts[part.column] = _within(part, rows, rng)
    return pa.table({name: texts[name] for name in names_to_read(inputs, occasion)})


def _declared(column: Column) -> Column:
    search = column.search
    if isinstance(search, NumberSearch) and search.low is not None and search.high is not None:
        edges = (search.low, search.high + search.integer / 2)
        codec = NumericCodec(edges, search.decimals, search.integer, search.form)
        return replace(column, codec=codec, search=None)
    return replace(column, search=None)


def _cells(column: Column, hidden: NDArray[np.float64], rng: np.random.Generator) -> pa.StringArray:
    rows, values = len(hidden), len(column.codec.labels)
    turned = hidden if rng.random() < _TOGETHER else 1.0 - hidden
    spots = np.where(rng.random(rows) < _TOGETHER, turned, rng.random(rows))
    codes = np.minimum((spots * values).astype(np.int64), values - 1)
    shares = [_MISSING] * column.missing + [_MARKED] * len(column.distinct)
    ends = np.cumsum(shares)
    drawn = np.searchsorted(ends, rng.random(rows), side="right") if shares else np.zeros(rows, np.int64)
    codes = np.where(drawn < len(shares), values + drawn, codes)
    return column.text(column.decode(codes, rng), column.distinct_texts(codes))


_A_YEAR = Slice("", "2000", date(2000, 1, 1), date(2001, 1, 1))


def _persons(rows: int, most: int, rng: np.random.Generator) -> pa.StringArray:
    each = rng.integers(1, most + 1, rows)
    persons = np.repeat(np.arange(rows), each)[:rows]
    return pa.array([f"made-up-{person + 1}" for person in persons.tolist()], pa.string())


def _within(part: Slice, rows: int, rng: np.random.Generator) -> pa.StringArray:
    if part.start is None or part.stop is None:
        return pa.array([part.label] * rows, pa.string())
    days = rng.integers(0, (part.stop - part.start).days, rows)
    return pa.array([(part.start + timedelta(days=day)).isoformat() for day in days.tolist()], pa.string())
