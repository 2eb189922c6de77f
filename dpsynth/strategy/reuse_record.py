"""The use of earlier releases and of a public table, as public facts and in plain words.

Invariant: wherever a number rests on an earlier release or a public table, the bundle says so. The guarantee
of a release counts its own answers; the answers of earlier releases were counted before, and the bundle says
that too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dpsynth.accounting.slices import Slice
from dpsynth.columns.domain import Clique
from dpsynth.figures import count, rounded_up

_NAMED = 6
"""Largest number of releases that a sentence names one by one."""


@dataclass(frozen=True)
class EarlierRelease:
    """An earlier release that serves as evidence.

    Attributes:
        release, release_id: its name and its id.
        part: the slice that it is about; None for the whole table.
        periods: its age in periods; 0 for the same slice.
        sha256: digest of its measurements.parquet.
    """

    release: str
    release_id: str
    part: Slice | None
    periods: int
    sha256: str

    def to_json(self) -> dict[str, object]:
        """The release as plain JSON values."""
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
        differing: ids of candidates about the same slice that were left out: their single columns differ
            from this release's by more than noise, so the slice's rows have changed.
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

    def to_journal(self) -> dict[str, object]:
        """The facts that are fixed when a release begins, as plain JSON values for its journal's header."""
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
        """The manifest's entry."""
        return {
            "in_words": [*guarantee_with(self), *cautions_with(self)],
            "releases": [r.to_json() | {"use": self._use(r)} for r in self.releases],
            "measured_together": [list(clique) for clique in self.cliques],
            "all_releases_so_far": {"epsilon": self.so_far[0], "delta": self.so_far[1]},
        }

    def _use(self, release: EarlierRelease) -> str:
        if release.release_id in self.differing:
            return "left out: answers differ"
        return "in the model, at a discount" if release.periods else "averaged in"


def guarantee_with(reused: Reused | None) -> tuple[str, ...]:
    """The part of earlier releases in the guarantee, as sentences; none where no release was used."""
    used = () if reused is None else (*reused.same, *reused.before)
    if reused is None or not used:
        return ()
    epsilon, delta = (f"=\N{NO-BREAK SPACE}{rounded_up(figure)}" for figure in reused.so_far)
    slack = f" and δ\N{NO-BREAK SPACE}{delta}" if reused.so_far[1] else ""
    return (
        "That is what this release adds to what was known before. It builds on the published answers of "
        f"{_named(used)} as well. To use them again costs nothing, but what they had cost stays: somebody "
        "whose rows they were about too is protected by all of these guarantees together, not by this one "
        "alone. All releases of this table up to this one keep together to "
        f"ε\N{NO-BREAK SPACE}{epsilon}{slack}.",
    )


def cautions_with(reused: Reused | None) -> tuple[str, ...]:
    """Cautions on numbers that rest on earlier releases, as sentences."""
    sentences = []
    if reused is not None and reused.same:
        sentences.append(
            f"The answers of {_named(reused.same)}, about the same rows, were averaged in. Errors and "
            "intervals are those of the average. That is right only if the rows are still the same. "
            "Where persons have more rows than the unit allows, each release drew anew which of them count."
        )
    if reused is not None and reused.differing:
        out = tuple(r for r in reused.releases if r.release_id in reused.differing)
        sentences.append(
            f"The answers of {_named(out)}, said to be about the same rows, were left out: the counts of "
            "single columns differ from those found now by more than noise does."
        )
    if reused is not None and reused.before:
        sentences.append(
            "The model, and the synthetic table with it, rests on answers about earlier periods too, those "
            f"of {_named(reused.before)}. They were scaled to the rows of now and count for less, by as much "
            "as single columns have changed since. Tables that were measured do not use them. In those by "
            "the model, whose basis is then “model with earlier periods”, errors allow for such a change and "
            "for no other: a relation that has changed in another way, and was not measured again, is shown "
            "as it was."
        )
    return tuple(sentences)


def _named(releases: Sequence[EarlierRelease]) -> str:
    """Earlier releases by their ids, or by their number where they are many."""
    names = [r.release_id + (f" ({r.part.label})" if r.part is not None else "") for r in releases]
    if len(names) > _NAMED:
        return f"{len(names)} earlier releases"
    if len(names) == 1:
        return f"the earlier release {names[0]}"
    return f"the earlier releases {', '.join(names[:-1])} and {names[-1]}"


@dataclass(frozen=True)
class PublicUse:
    """The use of a public table.

    Attributes:
        sha256: digest of its file.
        rows: number of rows.
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
        """The manifest's entry."""
        return {
            "in_words": list(cautions_with_public(self)),
            "sha256": self.sha256,
            "rows": self.rows,
            "columns": list(self.columns),
            "equivalent_rows": round(self.equivalent_rows, 1),
            "in_the_model_together": [list(clique) for clique in self.cliques],
        }


def cautions_with_public(public: PublicUse | None) -> tuple[str, ...]:
    """Cautions on numbers that rest on a public table, as sentences."""
    if public is None:
        return ()
    found = (
        f"The model, and the synthetic table with it, rests on a public table too, of {count(public.rows)} "
        "rows that are not the private table's. By how far its single columns are from those found here, it "
        f"was taken to tell as much as {count(public.equivalent_rows)} rows of the private table's kind "
        "would. The guarantee says nothing of whose rows it has. Tables that were measured do not use it."
    )
    if not public.cliques:
        return (f"{found} Only its single columns are in the model, as its pairs of columns say too little.",)
    return (
        f"{found} In those by the model errors allow for columns that differ, and for no more: a relation "
        "that is another in the private table, and was not measured, is shown as the public table has it.",
    )
