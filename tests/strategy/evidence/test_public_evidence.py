"""A public table as evidence: what it weighs by how few rows it has and how far off it is."""

import numpy as np
import pytest

from dpsynth.columns.domain import Compression, Domain
from dpsynth.columns.measurement import Measurement
from dpsynth.model import Expansion, estimate
from dpsynth.model.measurement_file import Answered
from dpsynth.model.reused_answers import ReusedAnswers
from tests.examples import cases
from tests.thinned import some

DOMAIN = Domain({"a": 6, "b": 4})
NONE = Compression({})
ROWS = 8_000
JOINT = np.random.default_rng(0).dirichlet(np.full(24, 0.7)).reshape(6, 4)


def drawn(rng, rows, joint=JOINT):
    return rng.multinomial(rows, joint.ravel()).reshape(6, 4)


def exact(table, columns=("a", "b")):
    """What a public table counts."""
    sums = {"a": table.sum(1), "b": table.sum(0)}
    singles = [Measurement((), np.array(table.sum()), "none", 0.0)]
    singles += [Measurement((c,), sums[c], "gaussian", 1e-3) for c in columns]
    pair = (Measurement(("a", "b"), table, "gaussian", 1e-3),) if len(columns) == 2 else ()
    return Answered(tuple(singles), pair, NONE)


def own(table, rng, sigma=10.0):
    cliques = {(): table.sum(), ("a",): table.sum(1), ("b",): table.sum(0)}
    return [
        Measurement(c, np.rint(v + rng.normal(0, sigma, np.shape(v))).astype(np.int64), "gaussian", sigma)
        for c, v in cliques.items()
    ]


def told(public, rows=ROWS, joint=JOINT, seed=0):
    """What a public table of some rows tells of a private one, and the private one's pair."""
    rng = np.random.default_rng(seed)
    private = drawn(rng, ROWS)
    singles = own(private, rng)
    evidence = ReusedAnswers.of(DOMAIN, singles, (), (), public(drawn(rng, rows, joint)))
    expansion = Expansion(DOMAIN, NONE, (*singles, *evidence.columns))
    return evidence, evidence.public_joint(expansion, estimate(DOMAIN, expansion.sums).model), private


@pytest.mark.parametrize("rows", some([500, 8_000, 80_000], 1))
def test_a_like_table_is_off_by_as_much_as_its_rows_are_few_and_no_more(rows):
    """Planted: half of the variance that is stated would not hold what lies apart."""
    ratios = []
    for seed in range(cases(60, part=3)):
        _, (pair,), private = told(exact, rows, seed=seed)
        ratios.append(np.square(pair.values - private).sum() / (pair.variance * 24))
    assert 0.5 < np.mean(ratios) < 1.1


def test_a_table_with_another_mix_counts_for_little():
    other = JOINT * np.linspace(0.1, 2, 6)[:, None]
    _, (like,), _ = told(exact)
    evidence, far, _ = told(exact, joint=other / other.sum())
    assert evidence.public is not None
    assert all(m.stddev > 5 * like.stddev for m in far)
    assert all(m.stddev > 5 * like.stddev for m in evidence.columns)


def test_a_table_without_relations_tells_none():
    apart = np.outer(JOINT.sum(1), JOINT.sum(0))
    assert told(exact, joint=apart)[1] == ()


def test_a_column_that_the_public_table_lacks_is_left_to_the_release():
    evidence, joint, _ = told(lambda table: exact(table, ("a",)))
    assert [m.clique for m in evidence.columns] == [("a",)] and joint == ()


def test_what_a_public_table_says_is_never_taken_for_an_answer_about_the_private_one():
    evidence, joint, _ = told(exact)
    assert joint and evidence.direct() == () and evidence.same == ()
