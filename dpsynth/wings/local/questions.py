"""The choice of the questions to respondents, by predicted error.

Nothing can be asked twice in the local model, so all questions are fixed beforehand, from public facts. Each
further question takes answers, or epsilon, from all others. A pair of columns is worth a question if the
noise of its answer is not far above what the columns' relation may be.

Errors are forecast as the share of respondents that noise moves between the cells of a marginal, the expected
total variation distance. A relation is taken to move ``RELATION`` of the respondents. If noise moves T of
them, an estimate that weighs the answer by that is off by T R/sqrt(T^2 + R^2), and R without an answer.

Invariant: public, and the same for every respondent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import inf, pi, sqrt

from dpsynth.columns.domain import Clique, Domain
from dpsynth.config.compiled import CompiledSpec
from dpsynth.wings.local.keys import TWO_VALUED, section_of
from dpsynth.wings.local.randomisers.randomiser import Randomiser, mean_variance

RELATION = 0.1
"""Share of the respondents that the relation of two columns is taken to move."""
_TRIED = 64
"""Numbers of pairs that are tried."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The way in which questions are answered.

    Attributes:
        domain: the columns.
        respondents: number of respondents to expect.
        one: True if each answers one question; False if each answers all.
        randomiser: the randomiser for a number of cells, where so many questions are asked.
        most_cells: largest number of cells of a question.
    """

    domain: Domain
    respondents: int
    one: bool
    randomiser: Callable[[int, int], Randomiser]
    most_cells: int

    def variance(self, cells: int, questions: int) -> float:
        """The expected variance of the share of a cell, by one of so many questions: noise and sampling.

        A respondent who answers one question of m is a sample of 1/m of all; the share of a cell in it has
        the variance s(1-s)(m-1)/n, at equal shares s = 1/cells.
        """
        each = mean_variance(self.randomiser(cells, questions))
        if not self.one:
            return each / self.respondents
        sampling = (questions - 1) / cells * (1 - 1 / cells)
        return (each * questions + sampling) / self.respondents


def cliques_asked(compiled: CompiledSpec, layout: Layout) -> tuple[Clique, ...]:
    """The cliques that respondents are asked about; every column is in one of them.

    ``independent``, or a protocol for two values: single columns. ``fixed``: the listed cliques, and the
    columns in none alone. ``auto``: pairs of the workload, those of fewest cells first, as many as make the
    forecast error least, and the columns in none of them alone.
    """
    structure, domain = compiled.spec.structure, layout.domain
    two_valued = structure.method == "auto" and section_of(compiled.spec).protocol in TWO_VALUED
    if structure.method == "independent" or two_valued:
        return _covering(domain, ())
    if structure.method == "fixed":
        return _covering(domain, [domain.canonical(clique) for clique in structure.cliques or ()])
    weights = _weights(compiled)
    wanted = [domain.canonical(r.columns) for r in compiled.spec.publish.statistics if len(r.columns) > 1]
    wanted = [c for c in dict.fromkeys(wanted) if domain.cells(c) <= layout.most_cells]
    pairs = sorted(
        (p for p in weights if domain.cells(p) <= layout.most_cells and p not in wanted),
        key=lambda pair: domain.cells(pair) / weights[pair],
    )
    numbers = sorted({round(i * len(pairs) / _TRIED) for i in range(_TRIED + 1)})
    ways = [_covering(domain, [*wanted, *pairs[:number]]) for number in numbers]
    return min(ways, key=lambda way: expected_loss(compiled, layout, way))


def expected_loss(compiled: CompiledSpec, layout: Layout, cliques: Sequence[Clique]) -> float:
    """The forecast error of all weighted pairs, by these questions; infinite if there is none of a column.

    That of a pair is the error of its relation, and half of the errors of its columns.
    """
    domain, questions = layout.domain, len(cliques)
    variance = cache(lambda cells: layout.variance(cells, questions))
    precision = dict.fromkeys(domain.columns, 0.0)
    noise: dict[Clique, float] = {}
    for clique in cliques:
        cells = domain.cells(clique)
        moved = _moved(cells, variance(cells))
        for two in combinations(clique, 2):
            noise[two] = min(noise.get(two, inf), moved)
        for column in clique:
            precision[column] += domain.sizes[column] / (cells * variance(cells))
    singles = {c: _moved(domain.sizes[c], 1 / p) if p else inf for c, p in precision.items()}
    weights = _weights(compiled)
    if not weights:
        return sum(singles.values())
    loss = 0.0
    for pair, weight in weights.items():
        relation = RELATION / sqrt(1 + (RELATION / noise.get(pair, inf)) ** 2)
        loss += weight * (relation + sum(singles[c] for c in pair) / 2)
    return loss


def _moved(cells: int, variance: float) -> float:
    """The share of the respondents that normal noise moves between cells."""
    return cells * sqrt(2 * variance / pi) / 2


def _weights(compiled: CompiledSpec) -> dict[Clique, float]:
    """The weight of each pair that the workload holds."""
    workload, domain = compiled.workload, compiled.domain
    if len(domain.columns) < 2:
        return {}
    table = workload.pair_weights()
    at = {c: i for i, c in enumerate(workload.columns)}
    weights = {(a, b): float(table[at[a], at[b]]) for a, b in combinations(domain.columns, 2)}
    return {pair: weight for pair, weight in weights.items() if weight > 0}


def _covering(domain: Domain, cliques: Sequence[Clique]) -> tuple[Clique, ...]:
    """The cliques, and every column in none of them alone."""
    held = {c for clique in cliques for c in clique}
    return (*dict.fromkeys(cliques), *((c,) for c in domain.columns if c not in held))
