"""Membership inference from the synthetic table alone, by the best published attacks on such tables.

The attacker knows all rows but one unit's, the config, and the code. So they make releases of their own, with
the unit and without it, and learn from these what a release with the unit looks like: one third of all
releases. Every attack gives each release a score. Which attack is used, and from which score on it says that
the unit is there, is decided on a second part (``lower_bounds.lower_bound``), and judged on the rest.

All attacks see a release through the rows that agree with the unit in some columns: the exact values of other
cells tell nothing about a unit that can't be in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.columns.column import codes_of, each_once
from dpsynth.columns.finished_table import FinishedTable
from dpsynth.errors import DpsynthError
from dpsynth.wings.proof.audit.replay import Transcript

Scores = NDArray[np.float64]

MOST_SETS = 300
"""Largest number of pairs of columns, and of larger sets, that are looked at."""
_SHRUNK = 0.5
"""The part of the covariances that is taken to be 0: shares of many sets are learnt from few releases."""
_NEARNESS = 0.2
"""The weight of a row that differs from the unit in one more column, relative to one without."""


@dataclass(frozen=True)
class Sight:
    """The attacker's view of a release, and of one of their own.

    Attributes:
        names: the columns of the synthetic table, sorted.
        agrees: bool[rows, columns], where a synthetic row agrees with the unit's.
        asked: the sets of columns whose marginals were asked; of the attacker's own releases only.
    """

    names: tuple[str, ...]
    agrees: NDArray[np.bool_]
    asked: frozenset[tuple[str, ...]]

    def count(self, columns: Sequence[str]) -> int:
        """The number of rows that agree in all of some columns; of all rows for none."""
        at = [self.names.index(name) for name in columns]
        return int(self.agrees[:, at].all(axis=1).sum())


def sight(transcript: Transcript, target: Mapping[str, pa.StringArray]) -> Sight:
    """The sight of a release.

    Args:
        transcript: the transcript of a release, with its synthetic table.
        target: column to the texts of the unit's rows, of which the first counts.

    Raises:
        DpsynthError: the release has not made its table.
    """
    layout, table = transcript.layout, transcript.synthetic
    if layout is None or table is None:
        raise DpsynthError("The release that is audited has made no table.")
    codes = FinishedTable.of(layout, table, max(table.num_rows, 1)).coded.whole()
    columns = sorted(layout.columns, key=lambda column: column.name)
    agrees = [
        np.asarray(codes[c.name]) == each_once(partial(codes_of, c), target[c.name].slice(0, 1))[0]
        for c in columns
    ]
    questions = (a.question for a in transcript.asked if a.question["ask"] == "marginal")
    asked = frozenset(_names(question["columns"]) for question in questions)
    return Sight(tuple(c.name for c in columns), np.stack(agrees, axis=1), asked)


def _names(columns: object) -> tuple[str, ...]:
    return tuple(sorted(map(str, columns))) if isinstance(columns, list | tuple) else ()


@dataclass(frozen=True)
class Learnt:
    """The lessons that the attacker has learnt from releases of their own.

    Attributes:
        sets: sets of columns: none, every column, pairs, and larger sets that were asked.
        asked: float64[sets], the share of releases in which each was asked.
        inside, outside: float64[releases, sets], numbers of rows that agree, with the unit and without it.
    """

    sets: tuple[tuple[str, ...], ...]
    asked: NDArray[np.float64]
    inside: NDArray[np.float64]
    outside: NDArray[np.float64]

    @staticmethod
    def of(inside: Sequence[Sight], outside: Sequence[Sight]) -> Learnt:
        """Learn from some releases of each kind."""
        own = [*inside, *outside]
        names = own[0].names
        often = Counter(found for one in own for found in one.asked if set(found) <= set(names))
        larger = [found for found, _ in often.most_common() if len(found) > 2][:MOST_SETS]
        pairs = sorted(combinations(names, 2), key=lambda pair: -often[pair])[:MOST_SETS]
        sets = ((), *((name,) for name in names), *pairs, *larger)
        asked = np.array([often[columns] / len(own) for columns in sets])
        return Learnt(sets, asked, _counts(inside, sets), _counts(outside, sets))


def _counts(seen: Iterable[Sight], sets: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    return np.array([[one.count(columns) for columns in sets] for one in seen], dtype=np.float64)


def _densities(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares of the rows; the first set is that of all rows. None is 0."""
    shares: NDArray[np.float64] = counts / np.maximum(counts[:, :1], 1) + 1e-3
    return shares


def _focal_points(learnt: Learnt, seen: Sequence[Sight]) -> Scores:
    """Density ratios at the unit's cell of each marginal, weighed by how often the strategy asks it.

    MAMA-MIA (Golob, Pentyala, Maratkhan and De Cock 2025). The density without the unit is that of the
    attacker's own releases.
    """
    without = _densities(learnt.outside).mean(axis=0)
    ratios = _densities(_counts(seen, learnt.sets)) / without
    scores: Scores = np.minimum(ratios, 10.0) @ learnt.asked
    return scores


def _shadow_queries(learnt: Learnt, seen: Sequence[Sight]) -> Scores:
    """A classifier of counts of the unit's cells, trained on shadow releases.

    The attack of Houssiau et al. (2022) and Meeus et al. (2023), with a linear discriminant of shrunk
    covariances: under Gaussian noise it is the likelihood ratio.
    """
    moved = learnt.inside.mean(axis=0) - learnt.outside.mean(axis=0)
    apart = [kind - kind.mean(axis=0) for kind in (learnt.inside, learnt.outside)]
    together = np.concatenate(apart)
    covariance = together.T @ together / max(len(together) - 2, 1)
    kept = np.diag(np.diag(covariance))
    shrunk = (1 - _SHRUNK) * covariance + _SHRUNK * kept
    floor = np.trace(covariance) / len(moved) / 10 + 1e-12
    weights = np.linalg.solve(shrunk + floor * np.eye(len(moved)), moved)
    scores: Scores = _counts(seen, learnt.sets) @ weights
    return scores


def _density(learnt: Learnt, seen: Sequence[Sight]) -> Scores:
    """The density of rows about the unit: DOMIAS (van Breugel, Sun, Qian and van der Schaar 2023).

    The density without the unit is the same for all of these releases, so that their ratio has its order.
    """
    del learnt
    return np.array([float((_NEARNESS ** _apart(one)).mean()) if len(one.agrees) else 0.0 for one in seen])


def _nearest(learnt: Learnt, seen: Sequence[Sight]) -> Scores:
    """Nearness of the nearest row, in columns that differ; the commonest attack (Chen et al. 2020)."""
    del learnt
    return np.array([-float(_apart(one).min(initial=len(one.names))) for one in seen])


def _apart(one: Sight) -> NDArray[np.int64]:
    """The number of columns in which each row differs from the unit."""
    return np.asarray((~one.agrees).sum(axis=1), dtype=np.int64)


ATTACKS: Mapping[str, Callable[[Learnt, Sequence[Sight]], Scores]] = {
    "focal points": _focal_points,
    "shadow queries": _shadow_queries,
    "density": _density,
    "nearest row": _nearest,
}
"""Attacks on the synthetic table by their names."""


def scored(inside: Sequence[Sight], outside: Sequence[Sight]) -> dict[str, tuple[Scores, Scores]]:
    """The scores of every attack for all releases but the third from which they have learnt.

    Args:
        inside: sights of releases with the unit.
        outside: sights of releases without it.
    """
    own, others = len(inside) // 3, len(outside) // 3
    learnt = Learnt.of(inside[:own], outside[:others])
    return {
        name: (attack(learnt, inside[own:]), attack(learnt, outside[others:]))
        for name, attack in ATTACKS.items()
    }


def promising(scores: Mapping[str, tuple[Scores, Scores]]) -> str:
    """The attack that does best on the third of its scores on which thresholds are chosen too."""

    def order(name: str) -> float:
        one, two = scores[name]
        high, low = one[: len(one) // 3], two[: len(two) // 3]
        above = (high[:, None] > low).mean() + (high[:, None] == low).mean() / 2 if len(high) else 0.5
        return float(abs(above - 0.5))

    return max(scores, key=order)
