"""The page of a dataset: all finished releases of one name, with their dates, guarantees and key numbers.

The page is made anew from the manifests and statistics of the bundles beside it, so it can't disagree with
them, and a page that was lost or is out of date comes back with the next release.

Invariant: public facts only. The page runs no script, fetches nothing, and shows every name as text. Of a
release for audiences none of which is ``public`` it has no noisy number: only what every audience is told.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt
from pathlib import Path

import numpy as np
from jinja2 import Environment

from dpsynth import figures
from dpsynth.bundle.manifest import Manifest
from dpsynth.bundle.recipient.opened import Notice, notices_beside
from dpsynth.bundle.report_source import ReportSource, read_source
from dpsynth.errors import DpsynthError
from dpsynth.page_templates import environment
from dpsynth.statistics.estimates import Z95
from dpsynth.statistics.tables import StatisticTable

PAGE = "index.html"
PUBLIC = "public"
_MOST_SHARES = 6
_MOST_MEANS = 6
_MARGIN = 8.0
"""Part of a picture's height, in per cent, that is left free at its top and bottom."""


@dataclass(frozen=True)
class Point:
    """One number of one release, with the half width of its 95 % interval; None where it has none."""

    value: float
    reach: float | None


@dataclass(frozen=True)
class Listed:
    """One release.

    Attributes:
        release_id: its folder.
        date: its date.
        about: the label of its slice; "" for the whole table.
        epsilon, delta: its guarantee; of the bundle of the smallest epsilon where none is public.
        unit: the privacy unit.
        rows: synthetic rows; their number is a noisy estimate, unless it is public. None without a public
            bundle.
        columns: number of columns of the table.
        numbers: key numbers by name.
        rehearsal: True if its table was made up.
        notices: what its owner made known of it since.
        audiences: names and epsilons of the audiences whose bundles are listed in place of a public one, in
            rising order; () where there is one.
    """

    release_id: str
    date: str
    about: str
    epsilon: float
    delta: float
    unit: str
    rows: Point | None
    columns: int
    numbers: Mapping[str, Point]
    rehearsal: bool
    audiences: tuple[tuple[str, float], ...] = ()
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True)
class Trend:
    """One key number over the releases: texts of each, and a line for a picture of 100 by 100.

    Attributes:
        name: of the number.
        shown: figure, margin and change since the release before, each a text, for each release; "" where
            a release doesn't have it.
        line: points of the line, as SVG writes them; "" with fewer than two.
        whiskers: place, low and high end of each interval, in the picture's units.
    """

    name: str
    shown: tuple[tuple[str, str, str], ...]
    line: str
    whiskers: tuple[tuple[float, float, float], ...]


def write_dataset_page(folder: Path) -> None:
    """Write the page of the releases in a folder, whole or not at all.

    Args:
        folder: the folder that holds a folder for each release.

    Raises:
        OSError: the page can't be written; an older one is left as it is.
    """
    page = folder / PAGE
    partial = folder / f".{PAGE}.new"
    with partial.open("w", encoding="utf-8", newline="\n") as file:
        file.write(dataset_html(folder.name, listed_releases(folder)))
        file.flush()
        os.fsync(file.fileno())
    partial.replace(page)


def listed_releases(folder: Path) -> tuple[Listed, ...]:
    """The finished releases in a folder, the oldest first; bundles that can't be read are left out."""
    found = []
    for place in sorted(folder.iterdir()):
        if place.name.startswith(".") or not place.is_dir():
            continue
        try:
            bundle = _widest(place)
            if bundle is not None:
                found.append(_listed(place.name, bundle, read_source(bundle)))
        except (DpsynthError, OSError, LookupError, TypeError, ValueError, AttributeError):
            continue
    return tuple(sorted(found, key=lambda one: (one.date, one.about, one.release_id)))


def _widest(place: Path) -> Path | None:
    """The public bundle of a release, or that of the audience of the smallest epsilon; None without any."""
    if (place / PUBLIC).is_dir():
        return place / PUBLIC
    for manifest in sorted(place.glob("*/manifest.json")):
        audience = Manifest.read(manifest.parent).audience
        return None if audience is None else place / audience.audiences[0].name
    return None


def _listed(release_id: str, bundle: Path, source: ReportSource) -> Listed:
    manifest, guarantee, public = source.manifest, source.manifest.guarantee, bundle.name == PUBLIC
    audiences = () if public or manifest.audience is None else manifest.audience.audiences
    rows = Point(float(manifest.synthetic_rows), _reach_of_rows(manifest))
    return Listed(
        release_id=release_id,
        date=manifest.date,
        about="" if manifest.period is None else manifest.period["label"],
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        unit=guarantee.unit.split(":")[0],
        rows=rows if public else None,
        columns=len(manifest.columns),
        numbers=_key_numbers(source) if public else {},
        rehearsal=manifest.rehearsal,
        audiences=tuple((a.name, a.epsilon or 0.0) for a in audiences),
        notices=notices_beside(bundle, manifest.release_id, manifest.signed_by),
    )


def _reach_of_rows(manifest: Manifest) -> float | None:
    """Half the width of the 95 % interval of the noisy number of rows; None where it was not asked for."""
    sampled = manifest.sampling
    for event in manifest.mechanisms:
        if event.question == "count" and event.scale is not None:
            variance = event.scale**2 * (2 if "Laplace" in event.mechanism else 1)
            if sampled is None:
                return Z95 * sqrt(variance)
            rows = np.array([float(manifest.synthetic_rows) * sampled.rate])
            return Z95 * sqrt(variance + float(sampled.variance(np.ones(1), rows))) / sampled.rate
    return None


def _key_numbers(source: ReportSource) -> dict[str, Point]:
    """Means over all rows, and the shares of the second value of columns with two."""
    found: dict[str, Point] = {}
    means = [s for s in source.statistics if s.kind == "mean" and len(s.columns) == 1]
    for statistic in means[:_MOST_MEANS]:
        point = _mean(statistic)
        if point is not None:
            found[statistic.title] = point
    shares = [s for s in source.statistics if s.kind == "one_way" and _values(source, s) == 2]
    for statistic in shares[:_MOST_SHARES]:
        label = str(statistic.table.column(0)[1].as_py())
        point = _share(statistic, 1)
        if point is not None:
            found[f"{statistic.title} = {label}, per cent"] = point
    return found


def _values(source: ReportSource, statistic: StatisticTable) -> int:
    """Number of named values of a column; 0 where it has bins."""
    facts = source.manifest.modelled[statistic.columns[0]]
    if "edges" in facts or "unit" in facts:
        return 0
    labels = facts["labels"]
    return sum(not label.startswith("(missing") for label in labels)


def _mean(statistic: StatisticTable) -> Point | None:
    """A mean over all rows, with half the width of its interval; None where it can't be given."""
    value, low, high = (statistic.table.column(name)[0].as_py() for name in ("estimate", "low", "high"))
    if value is None:
        return None
    return Point(value, None if low is None or high is None else (high - low) / 2)


def _share(statistic: StatisticTable, row: int) -> Point | None:
    """A share in per cent; None where it can't be given."""
    value, error = (statistic.table.column(name)[row].as_py() for name in ("share", "share_standard_error"))
    return None if value is None else Point(100.0 * value, None if error is None else 100.0 * Z95 * error)


@cache
def _environment() -> Environment:
    pages = environment("wings/proof")
    pages.filters["up"] = figures.rounded_up
    pages.filters["count"] = figures.count
    return pages


def dataset_html(name: str, releases: Sequence[Listed]) -> str:
    """The page.

    Args:
        name: the name of the releases.
        releases: the oldest first.
    """
    names = dict.fromkeys(key for one in releases for key in one.numbers)
    rows = [one.rows for one in releases]
    return (
        _environment()
        .get_template("dataset.html.j2")
        .render(
            name=name,
            releases=releases,
            newest=releases[-1] if releases else None,
            trends=[
                *([_trend("Synthetic rows", rows)] if any(rows) else []),
                *(_trend(key, [o.numbers.get(key) for o in releases]) for key in names),
            ],
        )
    )


def _trend(name: str, points: Sequence[Point | None]) -> Trend:
    ends = [
        end for p in points if p is not None for end in (p.value - (p.reach or 0), p.value + (p.reach or 0))
    ]
    least, most = min(ends, default=0.0), max(ends, default=1.0)
    span = (most - least) or 1.0

    def height(value: float) -> float:
        """Distance from the top, in the picture's units."""
        return round(100.0 - _MARGIN - (100.0 - 2 * _MARGIN) * (value - least) / span, 2)

    places = [round(100.0 * (spot + 0.5) / len(points), 2) for spot in range(len(points))]
    known = [(place, p) for place, p in zip(places, points, strict=True) if p is not None]
    shown, before = list[tuple[str, str, str]](), None
    for point in points:
        shown.append(("", "", "") if point is None else (*_texts(point), _change(before, point)))
        before = before if point is None else point
    return Trend(
        name,
        tuple(shown),
        " ".join(f"{place},{height(p.value)}" for place, p in known) if len(known) > 1 else "",
        tuple((x, height(p.value - p.reach), height(p.value + p.reach)) for x, p in known if p.reach),
    )


def _texts(point: Point) -> tuple[str, str]:
    if point.reach is None:
        return figures.count(point.value), ""
    return figures.number(
        point.value, point.reach / Z95
    ), f"± {figures.number(point.reach, point.reach / Z95)}"


def _change(before: Point | None, now: Point) -> str:
    """The change since the release before, in words: noise that covers it is said to."""
    if before is None:
        return ""
    change = now.value - before.value
    reach = ((now.reach or 0.0) ** 2 + (before.reach or 0.0) ** 2) ** 0.5
    text = (
        figures.number(abs(change), reach / Z95 if reach else None) if reach else figures.count(abs(change))
    )
    if reach and abs(change) <= reach:
        return "no change beyond the noise"
    if not change:
        return "the same"
    return f"{'up' if change > 0 else 'down'} {text}"
