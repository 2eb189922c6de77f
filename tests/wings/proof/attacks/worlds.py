"""Worlds of games, made by hand."""

from dataclasses import replace
from math import sqrt

import numpy as np

from dpsynth.accounting.events import Guarantee
from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.column import Column
from dpsynth.columns.numeric import NumericCodec
from dpsynth.wings.proof.attacks.world import Counted, World
from dpsynth.wings.proof.disclosure.hierarchy import by_default

AGE = Column("age", NumericCodec(tuple(map(float, range(0, 101, 10))), 0, integer=True), missing=False)
CITY = Column("city", CategoryCodec(tuple("abcdef")), missing=False)
PAY = Column("pay", NumericCodec(tuple(map(float, range(0, 2100, 100))), 0, integer=True), missing=False)
COLUMNS = {column.name: column for column in (AGE, CITY, PAY)}


def guarantee(epsilon: float, neighbours: str = "replace_one", mu: float | None = None) -> Guarantee:
    """A guarantee: pure epsilon, or mu of Gaussian DP."""
    return Guarantee(
        epsilon=epsilon,
        delta=0.0 if mu is None else 1e-6,
        rho=None if mu is None else mu**2 / 2,
        unit="one row",
        neighbours=neighbours,
        accountant="sequential" if mu is None else "gdp",
        mu=mu,
    )


def world(mu: float = 0.5, rows: int = 400, faulty: float = 1.0) -> World:
    """A world whose release asked three tables of counts under Gaussian noise that makes mu.

    An exchanged row moves two cells of each table by 1, so that mu^2 is the sum of 2/sigma^2.

    Args:
        mu: of all answers together.
        rows: number of rows.
        faulty: a factor on all noise; below 1 the guarantee is broken.
    """
    rng = np.random.default_rng(5)
    codes = {name: rng.integers(0, column.size, rows) for name, column in COLUMNS.items()}
    cliques = (("pay",), ("age", "pay"), ("city", "pay"))
    scale = sqrt(2 * len(cliques)) / mu
    return World(
        title="a world",
        made_up=True,
        columns=COLUMNS,
        codes=codes,
        counted=tuple(Counted(clique, "gaussian", faulty * scale) for clique in cliques),
        unit_rows=1,
        # Epsilon of mu at delta 1e-6, generously.
        guarantee=guarantee(3.0 * mu + 2.0, mu=mu),
        quasi_identifiers=("age", "city"),
        sensitive="pay",
        k=5,
        hierarchies=(by_default(AGE), by_default(CITY)),
    )


def pure(epsilon: float) -> World:
    """A world whose release asked one table of counts under Laplace noise, as strong as epsilon allows."""
    whole = world()
    return replace(whole, counted=(Counted(("pay",), "laplace", 2 / epsilon),), guarantee=guarantee(epsilon))
