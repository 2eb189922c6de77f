"""Earlier releases of a dataset whose answers serve as evidence for a new release.

Their list is fixed when a release begins, and kept in its journal with a checksum of each, so that a resumed
release goes on with the same evidence or ends with an error.

Invariant: only published files are read, and only of releases that the ledger has as closed, whose cost is
counted. Reading them has no further cost (``dpsynth.strategy.evidence.evidence``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from dpsynth.accounting.amount import Amount, float_up
from dpsynth.columns.column import Column, domain_of
from dpsynth.columns.measurement import Observation
from dpsynth.columns.slices import Slice
from dpsynth.errors import ConfigError
from dpsynth.ledger.balance import Balance, ReleaseEntry
from dpsynth.strategy.evidence.evidence import (
    Answered,
    Evidence,
    UnusableMeasurements,
    discrepancy,
    read_measurements,
)
from dpsynth.strategy.evidence.reused import EarlierRelease, Reused

MOST_PERIODS = 24
"""Largest number of earlier periods that are used: the last ones."""
AGREEMENT = 6.0
"""Largest discrepancy, in standard deviations beyond noise, of answers about the same rows."""


def earlier_releases(
    account: Balance | None,
    adding: Amount,
    part: Slice | None,
    columns: Sequence[Column],
    outputs: Path,
    *,
    same_period: bool,
    earlier_periods: bool,
) -> tuple[Reused, tuple[str, ...]]:
    """The releases that serve as evidence, and a public sentence on each that can't.

    The ledger has one unit for a dataset, and releases from before a change of it don't serve: so the
    contributions to all that do were bounded alike. But where
    a person has more rows than the contribution bound, each release draws the rows that count anew: answers
    about the same slice are then about nearly the same rows.

    Args:
        account: the dataset's account before this release reserved; None if there is none.
        adding: (epsilon, delta) of this release.
        part: the slice that it is about; None for the whole table, of which each release is a period.
        columns: its public schema, which an earlier release must have had too.
        outputs: folder of the bundles, each in ``<release>/<release id>``.
        same_period: true to use answers about the same slice.
        earlier_periods: true to use answers about earlier slices.
    """
    closed = [
        e for e in ([] if account is None else account.releases) if e.state == "closed" and e.changed is None
    ]
    wanted = [(e, 0) for e in closed if same_period and part is not None and e.part == part]
    if earlier_periods:
        wanted += _before(closed, part)
    found, left_out = [], []
    for entry, periods in wanted:
        path = _path(outputs, entry.release, entry.release_id)
        try:
            read_measurements(path, columns)
            digest = _checked(path)
        except UnusableMeasurements as error:
            left_out.append(f"Release {entry.release_id} is not used as evidence: {error}.")
            continue
        found.append(EarlierRelease(entry.release, entry.release_id, entry.part, periods, digest))
    # Of releases that nothing bounds for persons, the bundle says so.
    known = None if account is None else account.of_unit
    before = Amount() if known is None else Amount(known.epsilon_used, known.delta_used)
    so_far = before + adding
    return Reused(tuple(found), (float_up(so_far.epsilon), float_up(so_far.delta))), tuple(left_out)


def answers_of(reused: Reused | None, columns: Sequence[Column], outputs: Path) -> tuple[Answered, ...]:
    """The answers of the releases that serve as evidence.

    Raises:
        ConfigError: a bundle is gone, or has changed since this release began.
    """
    found = []
    for release in () if reused is None else reused.releases:
        path = _path(outputs, release.release, release.release_id)
        try:
            if _digest(path) != release.sha256:
                raise UnusableMeasurements("its measurements.parquet is not what it was")
            found.append(read_measurements(path, columns))
        except UnusableMeasurements as error:
            raise ConfigError(
                f"This release began with the answers of release {release.release_id} as evidence, and can't "
                f"go on without: {error}. Put {path} back as it was."
            ) from None
    return tuple(found)


def weighted_evidence(
    reused: Reused | None,
    answers: Sequence[Answered],
    columns: Sequence[Column],
    singles: Sequence[Observation],
    public: Answered | None = None,
) -> tuple[Evidence, Reused | None]:
    """The evidence of earlier releases, and the record of its use.

    Args:
        reused: the earlier releases as found when this release began; None where the config asks for none.
        answers: the answers of each of them.
        columns: the public schema.
        singles: the total and the one-way answers of this release.
        public: the counts of a public table.
    """
    domain = domain_of(columns)
    pairs = [] if reused is None else list(zip(reused.releases, answers, strict=True))
    same = [(r, a) for r, a in pairs if not r.periods]
    differing = frozenset(r.release_id for r, a in same if discrepancy(singles, a.singles) > AGREEMENT)
    evidence = Evidence.of(
        domain,
        singles,
        [a for r, a in same if r.release_id not in differing],
        [(r.periods, a) for r, a in pairs if r.periods],
        public,
    )
    return evidence, None if reused is None else replace(reused, differing=differing)


def basis_of(evidence: Evidence) -> str:
    """The name of the basis of a table by a model that holds evidence."""
    periods, public = bool(evidence.before), evidence.public is not None
    found = ["earlier periods"] * periods + ["a public table"] * public
    return f"model with {' and '.join(found)}" if found else "model"


def _before(closed: Sequence[ReleaseEntry], part: Slice | None) -> list[tuple[ReleaseEntry, int]]:
    """Releases of earlier periods, each with its age in periods, the last ones first."""
    earlier = [e for e in reversed(closed) if _is_before(e.part, part)]
    # Values have no order but that of their releases; the sort keeps it.
    earlier.sort(key=lambda e: (e.part and e.part.start) or date.min, reverse=True)
    periods: dict[object, int] = {}
    found = []
    for entry in earlier:
        ago = periods.setdefault(entry.part or entry.release_id, len(periods) + 1)
        if ago <= MOST_PERIODS:
            found.append((entry, ago))
    return found


def _is_before(other: Slice | None, part: Slice | None) -> bool:
    """True if a slice, of which a release is closed already, is an earlier period than another."""
    if part is None or other is None:
        return part is other
    if part.column != other.column or part.overlaps(other):
        return False
    return part.start is other.start or (
        part.start is not None and other.start is not None and other.start < part.start
    )


def _path(outputs: Path, release: str, release_id: str) -> Path:
    return outputs / release / release_id / "public" / "measurements.parquet"


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UnusableMeasurements("its measurements.parquet can't be opened") from error


def _checked(path: Path) -> str:
    """The checksum of a file, which agrees with its bundle's manifest."""
    digest = _digest(path)
    try:
        listed = json.loads((path.parent / "manifest.json").read_text(encoding="utf-8"))
        recorded = listed["files"][path.name]["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnusableMeasurements("its manifest.json can't be read") from error
    if digest != recorded:
        raise UnusableMeasurements("its measurements.parquet is not what its manifest says")
    return digest
