"""How far a table has moved, by noisy counts: what is chance, what is change, and what are other rows."""

import numpy as np
import pytest

from dpsynth.columns.measurement import Measurement, pooled_counts
from dpsynth.model.reused_answers import discrepancy, drifts
from tests.forked import printed_by

SIZES = {"a": 40, "b": 12, "c": 3}
SIGMA = 15.0


def shares(seed):
    rng = np.random.default_rng(seed)
    return {c: rng.dirichlet(np.full(size, 2.0)) for c, size in SIZES.items()}


def rows(of, number, rng):
    """Counts of a table drawn from some shares."""
    return {c: rng.multinomial(number, p) for c, p in of.items()}


def answers(counts, rng, noise="gaussian", sigma=SIGMA):
    """Noisy one-way answers, with the total."""
    total = sum(next(iter(counts.values())))
    draw = rng.normal if noise == "gaussian" else rng.laplace
    scale = sigma if noise == "gaussian" else sigma / np.sqrt(2)
    singles = [
        Measurement((c,), np.rint(v + draw(0, scale, v.size)).astype(np.int64), noise, scale)
        for c, v in counts.items()
    ]
    return [Measurement((), np.array(round(total + draw(0, scale))), noise, scale), *singles]


def moved(of, far, seed):
    """Shares that have gone a way to others."""
    other = shares(seed)
    return {c: (1 - far) * p + far * other[c] for c, p in of.items()}


def test_rows_of_one_population_have_changed_by_what_chance_does():
    """Planted: noise that were taken for change would come to seven times the rows here."""
    of, found = shares(0), []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        now = answers(rows(of, 20_000, rng), rng, sigma=40.0)
        before = [(k, answers(rows(of, 10_000, rng), rng, sigma=40.0)) for k in range(1, 6)]
        found += [(c.ratio, c.squared / 20_000) for c in drifts(now, before)]
    ratios, change = np.array(found).T
    assert np.abs(ratios - 2).max() < 0.05
    assert change.min() >= 2.9, "never less than two samples of one population differ by: 1 + r"
    assert np.median(change) < 4


def test_what_the_shares_moved_by_is_found_and_grows_with_the_time_between():
    """A drift that were taken for chance would make old answers count like new ones."""
    of, found = shares(0), []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        far = [moved(of, k / 20, 1) for k in range(7)]
        now = answers(rows(far[0], 20_000, rng), rng)
        before = [(k, answers(rows(far[k], 20_000, rng), rng)) for k in range(1, 7)]
        found.append([c.squared for c in drifts(now, before)])
    told = np.mean(found, axis=0)
    assert (np.diff(told) > 0).all()
    last = [np.square(20_000 * (far[6][c] - of[c])).sum() for c in SIZES]
    assert 0.4 * np.mean(last) < told[-1] < 2 * np.mean(last)


def test_numbers_of_rows_alone_are_no_change():
    of = shares(0)
    rng = np.random.default_rng(3)
    now = answers(rows(of, 30_000, rng), rng)
    (same,) = drifts(now, [(1, answers(rows(of, 3_000, rng), rng))])
    assert same.ratio == pytest.approx(10, rel=0.1)
    assert same.squared < 5 * (1 + same.ratio) * 30_000


def test_nothing_earlier_and_no_column_in_common_are_no_change():
    now = answers({"a": np.array([5, 7])}, np.random.default_rng(0))
    assert drifts(now, []) == ()
    (other,) = drifts(now, [(1, answers({"b": np.array([12, 12])}, np.random.default_rng(0)))])
    assert other.squared == pytest.approx((1 + other.ratio) * sum(now[1].values), rel=5)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_answers_about_the_same_rows_agree_and_about_others_do_not(noise):
    of, same, others = shares(0), [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        counts = rows(of, 20_000, rng)
        first, again = (answers(counts, rng, noise) for _ in range(2))
        same.append(discrepancy(first, again))
        others.append(discrepancy(first, answers(rows(moved(of, 0.05, 1), 20_000, rng), rng, noise)))
    assert max(same) < 6, "never left out by chance"
    assert abs(np.mean(same)) < 0.3
    assert min(others) > 6, "a twentieth of all rows exchanged is seen"


def test_answers_about_one_column_count_by_their_precision():
    exact = Measurement(("a",), np.array([10, 20]), "gaussian", 1.0)
    rough = Measurement(("a",), np.array([20, 40]), "gaussian", 3.0)
    ((values, variance),) = pooled_counts([exact, rough]).values()
    assert np.allclose(values, [11, 22]) and variance == pytest.approx(0.9)
    public = Measurement((), np.array(30), "none", 0.0)
    pair = Measurement(("a", "b"), np.array([[10, 20]]), "gaussian", 1.0)
    assert pooled_counts([public, pair]) == {}


def test_drifts_and_discrepancies_do_not_depend_on_the_seed_of_hashes():
    """A release that is resumed is another process, and must come to the same estimates bit by bit."""
    program = (
        "import numpy as np\n"
        "from dpsynth.columns.measurement import Measurement\n"
        "from dpsynth.model.reused_answers import discrepancy, drifts\n"
        "rng = np.random.default_rng(1)\n"
        "def single(i):\n"
        "    return Measurement((f'column {i}',), rng.integers(0, 900, 7), 'laplace', 3.7 + i / 7)\n"
        "one, two = ([single(i) for i in range(9)] for _ in '12')\n"
        "print(drifts(one, [(1, two)]), repr(discrepancy(one, two)))\n"
    )
    assert len({*printed_by(program, "12")}) == 1
