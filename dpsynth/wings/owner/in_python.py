"""The owner's look at a table in Python: ``dpsynth.describe``, ``dpsynth.check`` and ``dpsynth.evaluate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from dpsynth.api.keys import Keys, Table
from dpsynth.api.releasing import held
from dpsynth.config import Spec
from dpsynth.pipeline.result import Release
from dpsynth.wings.owner.assessing import Check, Evaluation, checked, evaluated
from dpsynth.wings.owner.describing import Description, described


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
    closed = None if against is None else held(against)
    del against
    return evaluated(bundle, closed, config, targets)
