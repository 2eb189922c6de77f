"""The use of earlier releases and of a public table, as public facts.

Invariant: wherever a number rests on an earlier release or a public table, the bundle says so. The guarantee
of a release counts its own answers; the answers of earlier releases were counted before, and the bundle says
that too (``templates/words.txt.j2``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dpsynth.accounting.slices import Slice
from dpsynth.columns.domain import Clique


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
        """Its id, and the slice that it is about."""
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
        releases: all candidates.
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
        """The releases about earlier periods."""
        return tuple(r for r in self.releases if r.periods)

    @property
    def used(self) -> tuple[EarlierRelease, ...]:
        """The releases whose answers are in the model."""
        return (*self.same, *self.before)

    @property
    def left_out(self) -> tuple[EarlierRelease, ...]:
        """The releases whose answers differ."""
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


@dataclass(frozen=True)
class PublicUse:
    """The use of a public table.

    Attributes:
        sha256: digest of its file.
        columns: the private table's columns that it has.
        equivalent_rows: number of random rows of the private table's population with as much information.
        cliques: the pairs whose counts are in the model; none where their signal was too small.
    """

    sha256: str
    rows: int
    columns: tuple[str, ...]
    equivalent_rows: float
    cliques: tuple[Clique, ...] = ()

    def to_json(self) -> dict[str, object]:
        return {
            "sha256": self.sha256,
            "rows": self.rows,
            "columns": list(self.columns),
            "equivalent_rows": round(self.equivalent_rows, 1),
            "in_the_model_together": [list(clique) for clique in self.cliques],
        }
