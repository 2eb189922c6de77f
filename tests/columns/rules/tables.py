"""Layouts of made-up configurations, and rows from no model at all."""

import numpy as np

from dpsynth.columns.rules import Checks, Drawing, Tied, rules_of


def any_codes(layout, rng):
    """A source of rows in which every place of every column is as likely, whatever the others hold."""

    def draw(rows):
        return {c.name: rng.integers(0, c.size, rows) for c in layout.columns}

    return draw


def any_marginal(layout, rng):
    sizes = {c.name: c.size for c in layout.columns}
    return lambda clique: rng.random([sizes[c] for c in clique])


def obeying(rules, layout, rows, draw, marginal, rng):
    """A table in which no row violates a rule."""
    tied = Tied(rules, layout, marginal)
    return Drawing(tied, draw, rng).rows(*tied.repaired(draw(rows), rng)).table


def texts_of(layout, rules, rows=200, seed=0):
    """The synthetic table as it is written, from random places."""
    rng = np.random.default_rng(seed)
    found = obeying(
        rules_of(rules, layout), layout, rows, any_codes(layout, rng), any_marginal(layout, rng), rng
    )
    assert found.num_rows == rows
    return {name: texts.to_pylist() for name, texts in layout.texts(found).items()}


def checks_of(layout, rules):
    return Checks(rules_of(rules, layout), layout)
