"""Earlier releases of the dataset whose answers a release uses again.

Wherever a number rests on an earlier release, the bundle says so. The guarantee of a release counts its own
answers; those of earlier releases were counted before, and the bundle says that too.

Invariant: only published files are read, and only of releases that the ledger has as closed, whose cost is
counted. What is used is fixed when a release begins, before anything is charged, with a checksum of each: a
resumed release goes on with the same answers or ends with an error.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from dpsynth.accounting.amount import Amount, float_up
from dpsynth.accounting.slices import Slice
from dpsynth.bundle.recipient.opened import notices_beside
from dpsynth.columns.column import Column, domain_of
from dpsynth.columns.domain import Clique
from dpsynth.columns.measurement import Observation
from dpsynth.errors import ConfigError
from dpsynth.ledger.balance import Balance, ReleaseEntry
from dpsynth.model.measurement_file import Answered, UnusableMeasurements, read_measurements
from dpsynth.model.reused_answers import ReusedAnswers, discrepancy

MOST_PERIODS = 24
"""Largest number of earlier periods that are used: the last ones."""

AGREEMENT = 6.0
"""Largest discrepancy, in standard deviations beyond noise, of answers about the same rows."""


@dataclass(frozen=True)
class EarlierRelease:
    """An earlier release that serves as evidence.

    Attributes:
        part: the slice that it is about; None for the whole table.
        periods: its age in periods; 0 for the same slice.
        sha256: digest of its measurements.parquet.
    """

    release: str
    release_id: str
    part: Slice | None
    periods: int
    sha256: str

    @property
    def named(self) -> str:
        return self.release_id + (f" ({self.part.label})" if self.part is not None else "")

    def to_json(self) -> dict[str, object]:
        return {
            "release": self.release,
            "release_id": self.release_id,
            "period": None if self.part is None else self.part.to_json(),
            "periods_ago": self.periods,
            "measurements_sha256": self.sha256,
        }

    @staticmethod
    def from_json(values: Mapping[str, object]) -> EarlierRelease:
        """The release that ``to_json`` wrote.

        Raises:
            KeyError, ValueError: the values are not those of a release.
        """
        part = values["period"]
        return EarlierRelease(
            str(values["release"]),
            str(values["release_id"]),
            Slice.from_json(part) if isinstance(part, Mapping) else None,
            int(str(values["periods_ago"])),
            str(values["measurements_sha256"]),
        )


@dataclass(frozen=True)
class Reused:
    """The earlier releases that a release used.

    Attributes:
        so_far: (epsilon, delta) of all releases of the dataset up to this one, by the ledger, rounded up.
        differing: ids of candidates about the same slice that were left out: their single columns differ from
            this release's by more than noise, so the slice's rows have changed.
        cliques: the cliques of their joint answers that are in the model.
    """

    releases: tuple[EarlierRelease, ...]
    so_far: tuple[float, float]
    differing: frozenset[str] = frozenset()
    cliques: tuple[Clique, ...] = ()

    @property
    def same(self) -> tuple[EarlierRelease, ...]:
        """The releases whose answers were averaged in."""
        return tuple(r for r in self.releases if not r.periods and r.release_id not in self.differing)

    @property
    def before(self) -> tuple[EarlierRelease, ...]:
        return tuple(r for r in self.releases if r.periods)

    @property
    def used(self) -> tuple[EarlierRelease, ...]:
        return (*self.same, *self.before)

    @property
    def left_out(self) -> tuple[EarlierRelease, ...]:
        return tuple(r for r in self.releases if r.release_id in self.differing)

    def to_journal(self) -> dict[str, object]:
        """The facts that are fixed when a release begins, for its journal's header."""
        return {"releases": [r.to_json() for r in self.releases], "so_far": list(self.so_far)}

    @staticmethod
    def from_journal(header: object) -> Reused | None:
        """The value that ``to_journal`` wrote; None for null.

        Raises:
            KeyError, ValueError: ``to_journal`` did not write the header.
        """
        if not isinstance(header, Mapping):
            return None
        epsilon, delta = header["so_far"]
        return Reused(
            tuple(EarlierRelease.from_json(r) for r in header["releases"]), (float(epsilon), float(delta))
        )

    def to_json(self) -> dict[str, object]:
        return {
            "releases": [r.to_json() | {"use": self._use(r)} for r in self.releases],
            "measured_together": [list(clique) for clique in self.cliques],
            "all_releases_so_far": {"epsilon": self.so_far[0], "delta": self.so_far[1]},
        }

    def _use(self, release: EarlierRelease) -> str:
        if release.release_id in self.differing:
            return "left out: answers differ"
        return "in the model, at a discount" if release.periods else "averaged in"


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
    contributions to all that do were bounded alike. But where a person has more rows than the contribution
    bound, each release draws the rows that count anew: answers about the same slice are then about nearly the
    same rows.

    Args:
        account: the dataset's account before this release reserved; None if there is none.
        adding: (epsilon, delta) of this release.
        part: the slice that it is about; None for the whole table, of which each release is a period.
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
            if any(notice.withdrawn for notice in notices_beside(path.parent, entry.release_id)):
                raise UnusableMeasurements("it was withdrawn")
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
) -> tuple[ReusedAnswers, Reused | None]:
    """The evidence of earlier releases and of a public table, and the record of the releases' use.

    ``singles`` are the total and the one-way answers of this release.
    """
    domain = domain_of(columns)
    pairs = [] if reused is None else list(zip(reused.releases, answers, strict=True))
    same = [(r, a) for r, a in pairs if not r.periods]
    differing = frozenset(r.release_id for r, a in same if discrepancy(singles, a.singles) > AGREEMENT)
    evidence = ReusedAnswers.of(
        domain,
        singles,
        [a for r, a in same if r.release_id not in differing],
        [(r.periods, a) for r, a in pairs if r.periods],
        public,
    )
    return evidence, None if reused is None else replace(reused, differing=differing)


def _before(closed: Sequence[ReleaseEntry], part: Slice | None) -> list[tuple[ReleaseEntry, int]]:
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
    digest = _digest(path)
    try:
        listed = json.loads((path.parent / "manifest.json").read_text(encoding="utf-8"))
        recorded = listed["files"][path.name]["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnusableMeasurements("its manifest.json can't be read") from error
    if digest != recorded:
        raise UnusableMeasurements("its measurements.parquet is not what its manifest says")
    return digest
