"""Differentially private synthetic data: one guarded door, a journal, a ledger, a bundle.

A release, from its configuration to its results:

    spec = dpsynth.load("configs/randhie.yaml")
    release = dpsynth.release(spec)
    release.synthetic, release.guarantee, release.statistics

A release of a data frame:

    guess = dpsynth.describe(frame)
    release = dpsynth.release(frame, epsilon=1, delta=1e-9, dataset="visits", columns=guess.reviewed({...}))

A collection without a curator, where each respondent randomises her own record:

    dpsynth.collect(spec, {"cheated": "yes"})     # at her side
    release = dpsynth.aggregate(spec, "reports")  # at the publisher's
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal
    from typing import Unpack

    from dpsynth.config import Spec
    from dpsynth.interactive.assessing import Check, Evaluation
    from dpsynth.interactive.describing import Description
    from dpsynth.interactive.keys import Keys, Table
    from dpsynth.interactive.synthesizer import Synthesizer
    from dpsynth.lifecycle.collecting import Sent
    from dpsynth.lifecycle.result import Release
    from dpsynth.recipient import Bundle

__version__ = "0.1.0"
__all__ = [
    "Spec",
    "Synthesizer",
    "__version__",
    "abandon",
    "aggregate",
    "check",
    "collect",
    "describe",
    "evaluate",
    "load",
    "open_bundle",
    "release",
]


def load(path: str | Path, *, source: str | None = None) -> Spec:
    """Read and check a config.

    Args:
        path: a YAML file.
        source: path of a table that replaces the config's.

    Raises:
        ConfigError: the file can't be read, or a key or value isn't allowed.
    """
    from dpsynth.config import load as read

    return read(path, source=source)


def release(
    source: Spec | Table | str | Path,
    spec: Spec | None = None,
    /,
    *,
    outputs: str | Path = "outputs",
    resume: str | None = None,
    period: str | None = None,
    tell: Callable[[str], None] | None = None,
    **keys: Unpack[Keys],
) -> Release:
    """Run a release: the same steps as ``dpsynth run --plain``, without an orchestrator.

    A table is released as a spec says, or as keyword arguments say, which are the keys of the YAML:

        dpsynth.release(spec)                # the spec names the file of the table
        dpsynth.release(frame, spec)
        dpsynth.release(frame, epsilon=1, delta=1e-9, dataset="visits", columns={...})

    Each call is a release of its own, and is charged to the ledger: the file ledger.db in the working folder,
    unless the key ledger names another.

    Args:
        source: a spec that names a file; or the table: a pandas DataFrame, a pyarrow Table, any table with
            ``__arrow_c_stream__`` such as one of Polars, or the path of a file.
        spec: with a table, all that is to be known of its release, in place of keyword arguments.
        outputs: folder under which the bundle appears as ``<release>/<release id>``.
        resume: id of an interrupted release to finish, with the same table.
        period: the slice of the table, such as "2026-03", if the spec has periods. Left out: the last
            one that has ended.
        tell: takes public sentences: warnings, and news of a release that is resumed or shown again. Left
            out: they are printed to the standard error stream.
        keys: see ``dpsynth.interactive.keys.Keys``. A table in memory needs ``dataset``, the name under
            which the ledger adds up its releases.

    Raises:
        Paused: the table seems to be empty, or its noisy single columns say that something was misread;
            ``resume`` goes on as it is.
        DpsynthError: ConfigError, BudgetRefused, SourceError and StepFailed, as the command
            line reports them.
    """
    from dpsynth.interactive.releasing import held, note, released
    from dpsynth.lifecycle.beginning import Request

    closed = held(source)
    # A traceback that shows local names has no row of it.
    del source
    request = Request(Path(outputs), resume, period)
    return released(closed, spec, request, note if tell is None else tell, keys)


def abandon(
    release_id: str, *, ledger: str | Path | Mapping[str, str] = "ledger.db", outputs: str | Path = "outputs"
) -> str:
    """End a release that will not be finished, charged with its journal, or in full where that is no bound.

    Args:
        release_id: an interrupted release, or one that was paused for its owner's decision.
        ledger: the ledger's file, the address of its database, or a mapping of ``url`` and ``head``.
        outputs: folder of bundles in which it ran.

    Returns:
        A sentence that says what the release counts for.

    Raises:
        ConfigError: the ledger has no such release, it has ended, or its journal is not there.
    """
    from dpsynth.interactive.releasing import abandoned

    return abandoned(release_id, ledger, Path(outputs))


def collect(
    spec: Spec,
    records: Mapping[str, object] | Table | str | Path,
    /,
    *,
    whose: str | None = None,
    out: str | Path = "reports",
    memory: str | Path | None = None,
    cap: int | float | Decimal | None = None,
    form: str = "jsonl",
) -> Sent:
    """Randomise records at the respondent's side, and write reports that are safe to send.

    It is ``dpsynth collect`` in Python, for a config with ``trust: local``:

        dpsynth.collect(spec, {"cheated": "yes"})                # one record
        dpsynth.collect(spec, frame, whose="student")            # a table with a record a respondent

    A report is drawn once, and remembered on this side before it is written. Whoever is asked again sends the
    same report, whatever her record says by then.

    Args:
        spec: the contract, which respondents and publisher share.
        records: one record, as a mapping from columns to values; or a table in memory, or the path of a file.
        whose: with a table: the column that says whose each record is. With one record: a name for whose it
            is, left out "me". It stays on this side.
        out: folder for reports.
        memory: the file that remembers what was reported on this side: keep it. Left out: the file that the
            environment variable DPSYNTH_MEMORY names, or one in the home folder.
        cap: most epsilon of a respondent's reports of all collections together.
        form: "jsonl" or "parquet".

    Returns:
        The file of reports, their number, and what each has cost its respondent.

    Raises:
        DpsynthError: ConfigError, SourceError or BudgetRefused; then nothing was sent.
    """
    from dpsynth.interactive.surveying import reported, side_of

    return reported(spec, records, whose, side_of(out, memory, cap, form))


def aggregate(spec: Spec, reports: str | Path, /, *, outputs: str | Path = "outputs") -> Release:
    """Make a release from the reports of respondents, who had to trust nobody.

    It is ``dpsynth aggregate`` in Python. Nothing is charged: each respondent has borne the epsilon of her
    own report. ``collection`` of the result says how many reports were used and left out.

    Args:
        spec: the contract that the reports were made by.
        reports: folder of reports.
        outputs: folder under which the bundle appears as ``<release>/<release id>``.

    Raises:
        DpsynthError: ConfigError if the config isn't of the local model, SourceError if there are too few
            reports.
    """
    from dpsynth.lifecycle.local_pipeline import aggregate as aggregated

    return aggregated(spec, Path(reports), Path(outputs))


def open_bundle(path: str | Path) -> Bundle:
    """A published bundle, for whoever holds its public folder: to read, query, sample and verify.

    Args:
        path: the folder of a release, or its ``public`` folder.

    Raises:
        DpsynthError: there is no bundle, or it is of another version.
    """
    from dpsynth.recipient import open_bundle as opened

    return opened(path)


def describe(source: Table | str | Path) -> Description:
    """A look at a private table: a guess of each column's declaration, for review by the table's owner.

    It reads all of the table, charges nothing, and releases nothing: it is ``dpsynth init --look`` in Python.
    The guesses are private facts. Bounds and values that are tuned to a table aren't private, and no noise
    protects them; so a release refuses them until ``reviewed`` hands them over.

    Args:
        source: the table, as for ``release``, or the path of its file.

    Raises:
        DpsynthError: SourceError if it can't be read, StepFailed for an unforeseen error.
    """
    from dpsynth.interactive.describing import described
    from dpsynth.interactive.releasing import held

    closed = held(source)
    del source
    return described(closed)


def check(
    source: Spec | Table | str | Path,
    spec: Spec | None = None,
    /,
    *,
    period: str | None = None,
    **keys: Unpack[Keys],
) -> Check:
    """A look at a private table as a release would read it: what is clipped, unknown, missing or unread.

    It is ``dpsynth check`` in Python, for the table's owner alone. It charges nothing and writes nothing.

        dpsynth.check(frame, columns=dpsynth.describe(frame).columns)    # guesses may be checked
        dpsynth.check(spec)

    Args:
        source: a spec that names a file, a table in memory, or the path of a file, as for ``release``.
        spec: with a table, all that is to be known of its release, in place of keyword arguments.
        period: the slice of the table, if the spec has periods. Left out: the last one that has ended.
        keys: those of ``release``; ``epsilon`` and ``dataset`` may be left out.

    Returns:
        The check. Shown, it has the words of the command line; ``frame`` has a row a column, ``findings`` has
        each finding with its remedy. All of it is private.

    Raises:
        DpsynthError: ConfigError, SourceError or StepFailed; none of them quotes a cell.
    """
    from dpsynth.interactive.assessing import checked
    from dpsynth.interactive.releasing import held

    closed = held(source)
    del source
    return checked(closed, spec, period, keys)


def evaluate(
    bundle: Release | str | Path,
    against: Table | str | Path | None = None,
    /,
    *,
    targets: Sequence[str] = (),
    config: str | Path | None = None,
) -> Evaluation:
    """A comparison of a release with its private table, for the table's owner alone.

    It is ``dpsynth evaluate`` in Python: it charges nothing, and writes into the bundle's folder ``private``.

    Args:
        bundle: the release, or the folder of its bundle.
        against: the private table, in memory or the path of its file; left out: the table of ``config``.
        targets: columns to predict, from synthetic and from private rows.
        config: the release's YAML file, for how the table's file is written.

    Returns:
        The evaluation. ``frame`` has the distances of columns and pairs, ``report()`` is its page. All of it
        is private.

    Raises:
        DpsynthError: ConfigError, SourceError or StepFailed; none of them quotes a cell.
    """
    from dpsynth.interactive.assessing import evaluated
    from dpsynth.interactive.releasing import held

    closed = None if against is None else held(against)
    del against
    return evaluated(bundle, closed, config, targets)


def __getattr__(name: str) -> object:
    # These take a tenth of a second and more to import.
    if name == "Spec":
        from dpsynth.config import Spec

        return Spec
    if name == "Synthesizer":
        from dpsynth.interactive.synthesizer import Synthesizer

        return Synthesizer
    raise AttributeError(f"module 'dpsynth' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
