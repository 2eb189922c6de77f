"""A check and an evaluation of a private table, called in Python by its owner.

Both are private, and are those of ``dpsynth check`` and ``dpsynth evaluate``.

Invariant: a table in memory stays closed in its ``MemoryTable``. Nothing is charged, and no ledger is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dpsynth.api.keys import SHORT
from dpsynth.api.releasing import described_by, spelt_in_python
from dpsynth.config import Spec
from dpsynth.config.section import Guessed
from dpsynth.errors import ConfigError
from dpsynth.pipeline.inputs import MemoryTable
from dpsynth.pipeline.result import Release
from dpsynth.wings.owner.assess.checking import Check, check
from dpsynth.wings.owner.assess.evaluation import Evaluation, evaluate
from dpsynth.wings.owner.assess.utility_files import write_evaluation

__all__ = ["Check", "Evaluation", "checked", "evaluated"]

_ASSUMED = {"epsilon": 1, "dataset": "table"}
"""Keys of a release that a check doesn't rest on, so that they may be left out of it."""


def checked(
    source: Spec | MemoryTable | Path, spec: Spec | None, period: str | None, keys: Mapping[str, object]
) -> Check:
    """The check of a table; see ``dpsynth.check``."""
    by_keys = spec is None and not isinstance(source, Spec)
    with spelt_in_python():
        found, table = described_by(source, spec, _completed(keys) if by_keys else keys)
        return check(found, period, table)


def _completed(keys: Mapping[str, object]) -> dict[str, object]:
    """The keys, with those that a check doesn't rest on, and with guesses as they are, but for gaps."""
    found = dict(keys)
    for short, (section, key) in SHORT.items():
        given = found.get(section)
        if short in _ASSUMED and not (isinstance(given, Mapping) and key in given):
            found.setdefault(short, _ASSUMED[short])
    columns = found.get("columns")
    if isinstance(columns, Mapping):
        found["columns"] = {
            name: dict(declared) if isinstance(declared, Guessed) else declared
            for name, declared in columns.items()
            if not (isinstance(declared, Guessed) and None in declared.values())
        }
    return found


def evaluated(
    bundle: Release | str | Path,
    against: Spec | MemoryTable | Path | None,
    config: str | Path | None,
    targets: Sequence[str],
) -> Evaluation:
    """The evaluation of a bundle; see ``dpsynth.evaluate``."""
    if isinstance(against, Spec):
        raise ConfigError("A release is compared with a table, not with a spec: hand over the table.")
    folder = bundle.folder / bundle.audience if isinstance(bundle, Release) else Path(bundle)
    with spelt_in_python():
        found = evaluate(folder, against, None if config is None else Path(config), targets)
        write_evaluation(found)
    return found
