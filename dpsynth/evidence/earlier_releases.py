"""Earlier releases of a dataset whose answers serve as evidence for a new one: which, and how.

Which they are is settled when a release begins, and kept in its journal with a checksum of each, so that
a release that is resumed goes on with the same evidence, or says that it can't.

Invariant: only what was published is read, and only of releases that the ledger has as closed: what they
cost is counted. Reading them costs nothing more (``model.earlier`` says why).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.rounding import float_up
from dpsynth.domain.column import Column, domain_of
from dpsynth.domain.measurement import Observation
from dpsynth.domain.slices import Slice
from dpsynth.errors import ConfigError
from dpsynth.evidence.drift import apart
from dpsynth.evidence.evidence import Answered, Evidence
from dpsynth.evidence.measurement_reading import UnusableMeasurements, read_measurements
from dpsynth.evidence.reused import EarlierRelease, Reused
from dpsynth.ledger.balance import Balance, ReleaseEntry

MOST_PERIODS = 24
"""Earlier periods that are looked back at; the last ones."""
AGREEMENT = 6.0
"""Standard deviations beyond noise from which on answers are taken not to be about the same rows."""


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

    The ledger has one unit for a dataset, so the rows of all were bounded alike. But where the unit is a
    person with more rows than it may have, each release draws anew which of them count: answers about
    the same slice are then about nearly the same rows.

    Args:
        account: the dataset's, as it was before this release reserved; None if there is none.
        adding: (epsilon, delta) of this release.
        part: the slice that it is about; None for the whole table, of which each release is a period.
        columns: its public schema, which the others must have had too.
        outputs: folder under which bundles stand as ``<release>/<release id>``.
        same_period: whether answers about the same slice are wanted.
        earlier_periods: whether answers about earlier slices are.
    """
    closed = [e for e in ([] if account is None else account.releases) if e.state == "closed"]
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
    before = Amount() if account is None else Amount(account.epsilon_used, account.delta_used)
    so_far = before + adding
    return Reused(tuple(found), (float_up(so_far.epsilon), float_up(so_far.delta))), tuple(left_out)


def answers_of(reused: Reused | None, columns: Sequence[Column], outputs: Path) -> tuple[Answered, ...]:
    """What each of the releases answered that serve as evidence.

    Raises:
        ConfigError: a bundle is gone, or not what it was when this release began.
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
    """The evidence that earlier releases are, and what is to be said of them.

    Args:
        reused: as found when this release began; None where the config asks for none.
        answers: of each of them.
        columns: the public schema.
        singles: the total and the one-way answers of this release.
        public: the counts of a public table.
    """
    domain = domain_of(columns)
    pairs = [] if reused is None else list(zip(reused.releases, answers, strict=True))
    same = [(r, a) for r, a in pairs if not r.periods]
    differing = frozenset(r.release_id for r, a in same if apart(singles, a.singles) > AGREEMENT)
    evidence = Evidence.of(
        domain,
        singles,
        [a for r, a in same if r.release_id not in differing],
        [(r.periods, a) for r, a in pairs if r.periods],
        public,
    )
    return evidence, None if reused is None else replace(reused, differing=differing)


def basis_of(evidence: Evidence) -> str:
    """What a table by a model that holds some evidence names as its basis."""
    periods, public = bool(evidence.before), evidence.public is not None
    found = ["earlier periods"] * periods + ["a public table"] * public
    return f"model with {' and '.join(found)}" if found else "model"


def _before(closed: Sequence[ReleaseEntry], part: Slice | None) -> list[tuple[ReleaseEntry, int]]:
    """Releases of earlier periods, each with how many periods ago, the last ones first."""
    earlier = [e for e in reversed(closed) if _is_before(e.part, part)]
    # Values have no order but that in which they were released; the sort keeps it.
    earlier.sort(key=lambda e: (e.part and e.part.start) or date.min, reverse=True)
    periods: dict[object, int] = {}
    found = []
    for entry in earlier:
        ago = periods.setdefault(entry.part or entry.release_id, len(periods) + 1)
        if ago <= MOST_PERIODS:
            found.append((entry, ago))
    return found


def _is_before(other: Slice | None, part: Slice | None) -> bool:
    """Whether a slice, of which a release is closed already, is an earlier period than another."""
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
    """The checksum of a file, the same as its bundle's manifest has."""
    digest = _digest(path)
    try:
        listed = json.loads((path.parent / "manifest.json").read_text(encoding="utf-8"))
        known = listed["files"][path.name]["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnusableMeasurements("its manifest.json can't be read") from error
    if digest != known:
        raise UnusableMeasurements("its measurements.parquet is not what its manifest says")
    return digest
