"""Rounded counts are multiples of the base, near the counts, the same each time, and right on average."""

import numpy as np
import pytest

from dpsynth.wings.proof.disclosure.linked_tables import rounded


@pytest.mark.parametrize("method", ["nearest", "unbiased"])
@pytest.mark.parametrize("base", [2, 3, 5, 10])
def test_rounded_counts_are_multiples_less_than_a_base_away(method, base):
    counts = np.arange(200)
    found = rounded(counts, base, method, map(str, counts))
    assert (found % base == 0).all() and (abs(found - counts) < base).all()
    assert (found[counts % base == 0] == counts[counts % base == 0]).all()
    if method == "nearest":
        assert (abs(found - counts) * 2 <= base).all()


def test_a_cell_of_a_release_is_always_rounded_the_same_way():
    counts = np.full(50, 7)
    names = [f"r1\nage\n{i}" for i in range(50)]
    first = rounded(counts, 5, "unbiased", names)
    assert (first == rounded(counts, 5, "unbiased", names)).all()
    assert set(first.tolist()) == {5, 10}
    assert (first != rounded(counts, 5, "unbiased", [f"r2{name}" for name in names])).any()


def test_rounding_without_bias_is_right_on_average():
    # Deterministic: the names are the draws. 4 standard errors of a mean of 20 000.
    for rest in range(1, 5):
        counts = np.full(20_000, 10 + rest)
        found = rounded(counts, 5, "unbiased", map(str, range(20_000)))
        spread = 5 * np.sqrt(rest / 5 * (1 - rest / 5) / 20_000)
        assert abs(found.mean() - (10 + rest)) < 4 * spread
