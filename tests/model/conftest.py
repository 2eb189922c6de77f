"""Random small problems, and the explicit joint distribution that the engine must agree with."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest

from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.measurement import Measurement
from dpsynth.model import MarkovRandomField
from dpsynth.model.junction_tree import JunctionTree, junction_tree
from tests.examples import cases

NAMES = "abcdef"
SHAPED = [
    ("cycle", (2, 3, 2, 3), ("ab", "bc", "cd", "da")),
    ("cycle of five with a tail", (2, 2, 2, 2, 2, 3), ("ab", "bc", "cd", "de", "ea", "ef")),
    ("all pairs", (2, 2, 2, 2, 2), tuple("".join(p) for p in combinations("abcde", 2))),
    ("two parts and a lone column", (2, 3, 2, 3, 4), ("ab", "cd")),
    ("nothing asked", (3, 2, 4), ()),
    ("only the total", (3, 2), ("",)),
    ("single values", (1, 3, 1, 2), ("ab", "bc", "cd")),
    ("one column", (4,), ("a",)),
    ("one cell", (1,), ("a",)),
    ("nested", (2, 3, 2), ("abc", "ab", "b", "")),
]


@dataclass(frozen=True, eq=False)
class Problem:
    """A domain, cliques, and log-potentials on the cliques of their junction tree."""

    name: str
    domain: Domain
    cliques: tuple[Clique, ...]
    tree: JunctionTree
    potentials: tuple[np.ndarray, ...]

    @property
    def joint(self) -> tuple[np.ndarray, float]:
        """Probabilities of every cell of the whole domain, and log Z."""
        log_joint = np.zeros(self.domain.shape(self.domain.columns))
        for clique, potential in zip(self.tree.cliques, self.potentials, strict=True):
            log_joint = log_joint + along(potential, clique, self.domain.columns)
        peak = log_joint.max()
        weights = np.exp(log_joint - peak)
        return weights / weights.sum(), float(peak + np.log(weights.sum()))

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(list(self.name.encode()))


def along(values: np.ndarray, clique: Clique, columns: Clique) -> np.ndarray:
    """An array over ``clique`` as one that broadcasts over all columns."""
    moved = np.einsum(values, [columns.index(c) for c in clique], sorted(columns.index(c) for c in clique))
    return moved.reshape([s if c in clique else 1 for c, s in _sizes(values, clique, columns)])


def _sizes(values: np.ndarray, clique: Clique, columns: Clique) -> Iterator[tuple[str, int]]:
    for column in columns:
        yield column, values.shape[clique.index(column)] if column in clique else 1


def summed(joint: np.ndarray, columns: Clique, clique: Clique) -> np.ndarray:
    """The marginal of an explicit joint, axes in the clique's order."""
    return np.einsum(joint, range(len(columns)), [columns.index(c) for c in clique])


def _potentials(rng: np.random.Generator, tree: JunctionTree, holes: float) -> tuple[np.ndarray, ...]:
    """Random log-potentials, a share of them -inf, with at least one cell of the joint left."""
    spread = rng.choice([0.1, 1.0, 30.0, 500.0])
    kept = {c: int(rng.integers(s)) for c, s in tree.domain.sizes.items()}
    found = []
    for clique in tree.cliques:
        values = rng.normal(0, spread, tree.domain.shape(clique))
        closed = rng.random(values.shape) < holes
        closed[tuple(kept[c] for c in clique)] = False
        values[closed] = -np.inf
        found.append(values)
    return tuple(found)


def _random(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    columns = NAMES[: rng.integers(1, 7)]
    domain = Domain({c: int(rng.integers(1, 5)) for c in columns})
    cliques = []
    for _ in range(rng.integers(0, 7)):
        size = min(len(columns), int(rng.integers(0, 4)))
        cliques.append(tuple(str(c) for c in rng.permutation(list(columns))[:size]))
    tree = junction_tree(domain, cliques)
    potentials = _potentials(rng, tree, holes=0.0 if seed % 2 else 0.4)
    return Problem(f"seed {seed}", domain, tuple(cliques), tree, potentials)


def _shaped(name: str, sizes: tuple[int, ...], cliques: tuple[str, ...], holes: float) -> Problem:
    domain = Domain(dict(zip(NAMES, sizes, strict=False)))
    tree = junction_tree(domain, [tuple(c) for c in cliques])
    rng = np.random.default_rng(len(name))
    return Problem(
        f"{name}, holes {holes}", domain, tuple(map(tuple, cliques)), tree, _potentials(rng, tree, holes)
    )


@pytest.fixture(scope="session")
def problems() -> tuple[Problem, ...]:
    """Problems of 1 to 6 columns of 1 to 4 values: 20 of some shape, and 130 random ones in a whole run."""
    shaped = [_shaped(*shape, holes) for shape in SHAPED for holes in (0.0, 0.4)]
    return (*shaped, *(_random(seed) for seed in range(cases(130))))


def measured(problem: Problem, rows: int, *, total: bool = True) -> list[Measurement]:
    """Noisy counts of a problem's cliques around a random table of ``rows`` rows."""
    rng = problem.rng()
    columns = problem.domain.columns
    flat = rng.dirichlet(np.full(problem.domain.cells(columns), 0.3))
    table = rng.multinomial(rows, flat).reshape(problem.domain.shape(columns)).astype(float)
    cliques = [*problem.cliques, *problem.cliques[:1]] + ([()] if total else [])
    found = []
    for clique in cliques:
        noise, scale = ("gaussian", "laplace")[int(rng.integers(2))], float(rng.uniform(1, 12))
        counts = summed(table, columns, clique)
        drawn = rng.normal(0, scale, counts.shape)
        found.append(Measurement(clique, np.rint(counts + drawn).astype(np.int64), noise, scale))
    return found


@pytest.fixture(scope="session")
def marginal_of():
    """The function that sums an explicit joint."""
    return summed


@pytest.fixture(scope="session")
def measure():
    """The function that draws noisy measurements of a problem."""
    return measured


@pytest.fixture(scope="session")
def spread_over():
    """The function that lays an array over a clique along all columns."""
    return along


@pytest.fixture(scope="session")
def fields_of(problems):
    """The function that gives each problem, its field of so many rows, and its explicit joint."""

    def fields(rows):
        found = []
        for p in problems:
            joint, _ = p.joint
            beliefs = tuple(rows * summed(joint, p.domain.columns, c) for c in p.tree.cliques)
            found.append((p, MarkovRandomField(p.tree, beliefs, rows), joint))
        return found

    return fields
