"""Expansion of a model of groups to a model of values, the inverse of domain compression.

Rare values of a column are fitted as groups (see ``domain.compression``). The one-way answers of the single
values are still used: their sums are the answers that groups are fitted to, and the rows of a group are
spread over its values by the same answers. Within its group a value is independent of all other columns.

Invariant: the expanded model has the same marginals over groups as the model of groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Compression, Domain
from dpsynth.columns.measurement import Observation, PublicCounts, pooled_counts
from dpsynth.model.denoising import NOBODY, outside, smoothed
from dpsynth.model.factor import Array, sum_in_order
from dpsynth.model.junction_tree import Edge, JunctionTree
from dpsynth.model.least_squares import on_simplex
from dpsynth.model.markov_random_field import MarkovRandomField

_NOBODY, _PART_OF_A_ROW = 1e-9, 1e-3
"""Least number of rows of a value, so that shares are defined: of any, and of one whose counts are public."""


@dataclass(frozen=True, eq=False)
class Expansion:
    """The expansion from groups to values.

    Attributes:
        domain: the columns and all their values.
        singles: the total and the one-way answers over ``domain``; several of one column are averaged by
            precision.
        numbers: for a column of numbers, how many of its first codes are numbers in order. Of these, values
            before the first and after the last significant step get no rows if others of their group can have
            them.
        values: for a column with places of missing cells, the number of its first places, which are values. A
            place of missing cells without a significant count gets no rows if others of its group can.
    """

    domain: Domain
    compression: Compression
    singles: tuple[Observation, ...]
    numbers: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def coarse(self) -> Domain:
        return self.compression.coarse(self.domain)

    @property
    def cells(self) -> int:
        """Additional cells of the expanded model: groups times values of each column."""
        return sum(self.compression.cells(self.domain).values())

    @cached_property
    def names(self) -> dict[str, str]:
        """The name of each column's groups in the model of values, for columns that have groups."""
        return _names(self.domain, self.compression.groups)

    @cached_property
    def sums(self) -> tuple[Observation, ...]:
        """The one-way answers over groups: sums of noisy counts, with the sums of their variances."""
        return self.summed(self.singles)

    def summed(self, answers: Iterable[Observation]) -> tuple[Observation, ...]:
        """Answers over values as answers over groups."""
        return tuple(self._summed(m) for m in answers)

    def _summed(self, measurement: Observation) -> Observation:
        if not any(c in self.compression.groups for c in measurement.clique):
            return measurement
        values, summed = measurement.values, measurement.summed
        counts = np.ones(values.shape, dtype=np.int64) if summed is None else summed
        for axis, column in enumerate(measurement.clique):
            if column in self.compression.groups:
                groups, size = self.compression.groups[column], self.coarse.sizes[column]
                values, counts = (_added(a, axis, groups, size) for a in (values, counts))
        return replace(measurement, values=values, summed=counts)

    def direct(self, answers: Iterable[Observation]) -> tuple[Observation, ...]:
        """Answers over values: the one-way answers, and the others summed over all groups of each column.

        That is a sum over all of its values too, with the noise of the summed cells.
        """
        return (*self.singles, *(self._without_groups(m) for m in answers))

    def _without_groups(self, measurement: Observation) -> Observation:
        merged = [i for i, c in enumerate(measurement.clique) if c in self.compression.groups]
        if not merged:
            return measurement
        kept = tuple(c for i, c in enumerate(measurement.clique) if i not in merged)
        counts = measurement.summed
        counts = np.ones(measurement.values.shape, dtype=np.int64) if counts is None else counts
        sums = (np.asarray(a.sum(axis=tuple(merged))) for a in (measurement.values, counts))
        return replace(measurement, clique=kept, values=next(sums), summed=next(sums))

    def model(self, of_groups: MarkovRandomField) -> MarkovRandomField:
        """The model of values, with a clique of groups and values for each compressed column.

        The groups are a column of their own, such as "age (groups)", just before the column of values. A
        group's rows are spread over its values, at least zero each, as close as possible to their smoothed
        noisy counts.
        """
        if not self.compression.groups:
            return of_groups
        names = self.names
        sizes: dict[str, int] = {}
        for column, size in self.domain.sizes.items():
            if column in names:
                sizes[names[column]] = self.coarse.sizes[column]
            sizes[column] = size
        tree, beliefs = of_groups.tree, list(of_groups.beliefs)
        cliques = [tuple(names.get(c, c) for c in clique) for clique in tree.cliques]
        edges = [Edge(e.child, e.parent, tuple(names.get(c, c) for c in e.separator)) for e in tree.edges]
        for column, name in names.items():
            home = tree.home((column,))
            assert home is not None
            rows = sum_in_order(of_groups.beliefs[home], tree.cliques[home], (column,))
            edges.append(Edge(len(cliques), home, (name,)))
            cliques.append((name, column))
            beliefs.append(self._spread(column, rows))
        expanded = JunctionTree(Domain(sizes), tuple(cliques), tuple(edges))
        return MarkovRandomField(expanded, tuple(beliefs), of_groups.total)

    def _counts(self, column: str) -> tuple[Array, float]:
        """Smoothed counts of a column's values, and the variance of their noise; without answers both 0."""
        pooled = pooled_counts(self.singles).get((column,))
        return (smoothed(*pooled), pooled[1]) if pooled else (np.zeros(self.domain.sizes[column]), 0.0)

    def shares(self, column: str, other: Compression) -> Array:
        """Shares of a column's groups in each of its groups of another grouping, float64[others, groups].

        Rows are spread in proportion to the smoothed noisy counts of the values; each line sums to 1.
        """
        size = self.domain.sizes[column]
        alone = np.arange(size)
        groups, others = (g.groups.get(column, alone) for g in (self.compression, other))
        # A group without rows is spread evenly.
        counts = np.maximum(self._counts(column)[0], _NOBODY)
        found = np.zeros((int(others.max()) + 1, int(groups.max()) + 1))
        np.add.at(found, (others, groups), counts)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def _spread(self, column: str, rows: Array) -> Array:
        if public := [m for m in self.singles if m.clique == (column,) and isinstance(m, PublicCounts)]:
            of_groups = np.equal.outer(np.arange(rows.size), self.compression.groups[column])
            of_groups = of_groups * np.maximum(public[0].values, _PART_OF_A_ROW)
            return np.asarray(of_groups * (rows / of_groups.sum(axis=1))[:, None])
        counts, variance = self._counts(column)
        numbers = self.numbers.get(column, 0)
        empty = np.zeros(counts.size, dtype=np.bool_)
        if variance > 0:
            empty[:numbers] = outside(counts[:numbers], variance)
            gone = self.values.get(column, counts.size)
            empty[gone:] = counts[gone:] <= NOBODY * sqrt(variance)
        groups = self.compression.groups[column]
        found = np.zeros((rows.size, groups.size))
        for group, count in enumerate(rows.tolist()):
            values = np.flatnonzero(groups == group)
            if not empty[values].all():
                values = values[~empty[values]]
            # A group without rows is spread like one row.
            shares = on_simplex(counts[values], max(count, 1.0))
            found[group, values] = shares * (count / shares.sum())
        return found


def _added(values: NDArray[np.int64], axis: int, groups: NDArray[np.integer], size: int) -> NDArray[np.int64]:
    transposed = np.moveaxis(values, axis, 0)
    found = np.zeros((size, *transposed.shape[1:]), dtype=np.int64)
    np.add.at(found, groups, transposed)
    return np.moveaxis(found, 0, axis)


def _names(domain: Domain, columns: Iterable[str]) -> dict[str, str]:
    """A name for each column's groups that no column has."""
    found: dict[str, str] = {}
    for column in domain.canonical(columns):
        name, number = f"{column} (groups)", 2
        while name in domain.sizes or name in found.values():
            name, number = f"{column} (groups {number})", number + 1
        found[column] = name
    return found
