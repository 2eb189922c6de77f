"""Known marginals agree with each other, or are refused with what is wrong."""

import numpy as np
import pytest

from dpsynth.columns.measurement import Contradiction, PublicMarginal, PublicMarginals


def known(*columns, numbers, counted=True):
    return PublicMarginal(columns, np.array(numbers, dtype=float), counted)


SEX = known("sex", numbers=[40, 60])
BOTH = known("sex", "city", numbers=[[10, 20, 10], [30, 0, 30]])


def test_what_lies_within_another_is_said_once_and_the_rows_are_their_sum():
    found = PublicMarginals.of([SEX, BOTH])
    assert found.cliques == (("sex", "city"),) and found.rows == 100
    assert found.columns == {"sex", "city"}


def test_shares_of_some_columns_come_in_the_order_asked_for():
    found = PublicMarginals.of([BOTH])
    assert np.allclose(found.shares(("city", "sex")), BOTH.numbers.T / 100)
    assert np.allclose(found.shares(("city",)), [0.4, 0.2, 0.4])
    assert found.shares(("sex", "age")) is None and found.shares(()) is None


def test_shares_alone_leave_the_number_of_rows_private():
    assert PublicMarginals.of([known("sex", numbers=[4, 6], counted=False)]).rows is None
    assert PublicMarginals.of([known("age", numbers=[1, 1], counted=False), SEX]).rows == 100


def test_other_sums_are_refused():
    words = r"adds up to 99 rows, and public_marginals\[0\] to 100"
    with pytest.raises(Contradiction, match=words) as refused:
        PublicMarginals.of([SEX, known("age", numbers=[33, 66])])
    assert refused.value.position == 1


@pytest.mark.parametrize("counted", [True, False])
def test_other_numbers_of_a_shared_column_are_refused(counted):
    """Planted: one row moved from one value to the other."""
    PublicMarginals.of([BOTH, known("sex", numbers=[40, 60], counted=counted)])
    with pytest.raises(Contradiction, match=r"contradicts public_marginals\[0\].* for sex"):
        PublicMarginals.of([BOTH, known("sex", numbers=[41, 59], counted=counted)])


def test_each_comes_after_those_that_it_shares_columns_with():
    chain = [known(a, b, numbers=np.ones((2, 2))) for a, b in ("ab", "cd", "ef", "bc", "de")]
    cliques = PublicMarginals.of(chain).cliques
    for i, clique in enumerate(cliques[1:], start=1):
        assert set(clique) & {c for before in cliques[:i] for c in before}
