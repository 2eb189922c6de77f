"""Inside a bin, draws follow the densities around it; their mean is the centre; and they stay inside."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dpsynth.columns import bins as module
from dpsynth.columns.bins import drawn, means, slopes
from dpsynth.columns.column import Column
from dpsynth.columns.layout import Layout
from dpsynth.columns.numeric import NumericCodec
from tests.examples import examples

QUICK = examples(200)


@st.composite
def bins(draw):
    """Runs of steps, one after another, some of one step, on either side of zero or far from it."""
    start = draw(st.integers(-2000, 2000) | st.integers(-(10**12), 10**12))
    widths = draw(st.lists(st.integers(1, 5) | st.integers(1, 10**7), min_size=1, max_size=8))
    cuts = start + np.concatenate([[0], np.cumsum(widths)])
    return cuts[:-1], cuts[1:] - 1


COUNTS = st.lists(st.floats(-1e4, 1e7), min_size=8, max_size=8).map(np.array)


def power_law(slope, cuts, rows=1e9):
    """Rows of each bin between cuts above zero, of a density x^slope."""
    power = slope + 1
    reach = np.log(cuts) if power == 0 else np.asarray(cuts, dtype=float) ** power / power
    shares = np.diff(reach)
    return rows * shares / shares.sum()


@given(bins(), COUNTS, st.floats(0.1, 1e4), st.integers(0, 2**32))
@QUICK
def test_whatever_the_counts_a_draw_stays_in_its_bin_and_so_does_its_mean(found, counts, least, seed):
    low, high = found
    slope = slopes(low, high, counts[: len(low)], least)
    assert np.isfinite(slope).all() and not slope[low == high].any()
    at = np.flatnonzero(slope)
    assume(at.size)
    many = np.repeat(at, 200)
    steps = drawn(low[many], high[many], slope[many], np.random.default_rng(seed))
    assert (low[many] <= steps).all() and (steps <= high[many]).all()
    centre = means(low[at], high[at], slope[at])
    assert (low[at] - 1e-3 * (high - low)[at] <= centre).all()
    assert (centre <= high[at] + 1e-3 * (high - low)[at]).all()


CASES = [
    (0, 9, -0.9), (0, 9, 0.7), (0, 1_000_000, -0.9), (0, 30_000, 5.0), (1, 2, -3.0), (1, 9, -1.0),
    (1, 99_999, -2.0), (1, 10**9, -0.3), (100, 199, 2.5), (10**6, 10**9, -1.0000001),
    (10**9, 10**9 + 10**7, 80.0), (1990, 1999, -900.0), (-199, -100, -2.0), (-1000, 0, -0.5), (7, 8, 40.0),
]  # fmt: skip


def off_centre(low, high, slope, centre):
    """How far the mean of many draws lies from a centre, in its standard errors, but for a thousandth."""
    many = np.full(100_000, low), np.full(100_000, high), np.full(100_000, float(slope))
    steps = drawn(*many, np.random.default_rng(3))
    beyond = np.maximum(np.abs(steps.mean() - centre) - 1e-3 * (high - low), 0)
    return float(beyond / (steps.std() / np.sqrt(steps.size) + 1e-12))


def centre_of(low, high, slope):
    return means(np.array([low]), np.array([high]), np.array([float(slope)]))[0]


@pytest.mark.parametrize(("low", "high", "slope"), CASES)
def test_a_centre_is_the_mean_of_what_is_drawn(low, high, slope):
    assert off_centre(low, high, slope, centre_of(low, high, slope)) < 5


def test_a_centre_that_forgets_what_is_cut_off_would_be_noticed(monkeypatch):
    """The planted fault: the mean of the density, not of its whole steps."""
    monkeypatch.setattr(module, "_shares", lambda at, *_: np.ones(at.shape))
    monkeypatch.setattr(
        module, "_moments", lambda at, *rest, whole=module._moments: whole(at, *rest) * (at.shape[1] == 1)
    )
    assert off_centre(1, 9, -1.0, centre_of(1, 9, -1.0)) > 5


@pytest.mark.parametrize("slope", [-3.0, -1.0, -0.5, 0.5, 2.0])
def test_a_power_law_is_followed_inside_every_bin(slope):
    cuts = np.array([1, 10, 40, 100, 1000, 5000])
    counts = power_law(slope, cuts)
    found = slopes(cuts[:-1], cuts[1:] - 1, counts, 1e-6)
    # Bins are stood for by their middles, which lie nearer to where the rows are the narrower they are.
    fine = np.arange(1000, 2000, 20)
    assert slopes(fine[:-1], fine[1:] - 1, power_law(slope, fine), 1e-6) == pytest.approx(slope, rel=0.01)
    assert (np.abs(found - slope) < 0.5 * abs(slope)).all()
    mirrored = slopes(1 - cuts[:0:-1], -cuts[-2::-1], counts[::-1], 1e-6)
    assert mirrored == pytest.approx(found[::-1])


def test_peaks_valleys_single_values_and_bins_across_zero_are_even():
    low, high = np.array([0, 10, 20, 30, 40]), np.array([9, 19, 29, 39, 49])
    assert slopes(low, high, np.array([1.0, 5.0, 100.0, 5.0, 1.0]), 1.0)[2] == 0
    assert slopes(low, high, np.array([100.0, 50.0, 1.0, 50.0, 100.0]), 1.0)[2] == 0
    spiky = slopes(np.array([0, 1, 10]), np.array([0, 9, 99]), np.array([1e6, 300.0, 300.0]), 1.0)
    assert spiky[0] == 0
    assert spiky[1:] == pytest.approx(slopes(np.array([1, 10]), np.array([9, 99]), np.full(2, 300.0), 1.0))
    assert not slopes(np.array([-5]), np.array([5]), np.array([9.0]), 1.0).any()
    assert (
        slopes(np.array([-50, -5, 6]), np.array([-6, 5, 60]), np.array([9.0, 900.0, 9.0]), 1.0).tolist()
        == [0] * 3
    )


def test_rows_of_outer_bins_with_nothing_but_noise_lie_near_the_other_bins():
    """Planted: drawn evenly, 30 rows that noise has put between -1000 and -21 are most of a correlation."""
    cuts = np.array([-1000, -350, -20, 0, 10, 30, 2000])
    low, high, counts = cuts[:-1], cuts[1:] - 1, np.array([20.0, -30.0, 900.0, 5000.0, 2000.0, 40.0])
    found = slopes(low, high, counts, 25.0)
    below, above = (
        drawn(low[[i] * 1000], high[[i] * 1000], found[[i] * 1000], np.random.default_rng(0)) for i in (1, 5)
    )
    assert np.quantile(below, 0.1) > -80 and np.quantile(above, 0.9) < 300
    # A bin of clearly more rows than noise keeps the trend of its neighbours, whatever lies beyond it.
    told = slopes(low, high, np.array([20.0, 300.0, 900.0, 5000.0, 2000.0, 40.0]), 25.0)
    assert 0 > told[1] > found[1]


def test_empty_bins_and_counts_below_zero_make_no_cliffs():
    cuts = np.array([1, 10, 100, 1000, 10_000])
    found = slopes(cuts[:-1], cuts[1:] - 1, np.array([500.0, 30.0, -40.0, 0.0]), 10.0)
    assert (np.abs(found) * np.log(10) <= 10 + 1e-9).all()
    assert (found < 0).all()


def test_a_falling_density_is_drawn_nearer_to_its_mean_than_an_even_one():
    """What it is for: amounts of money, log-normal, in a dozen bins; the planted fault turns slopes round."""
    rng = np.random.default_rng(0)
    money = np.exp(rng.normal(3.5, 1.5, 200_000)).clip(0.01, 9999)
    codec = NumericCodec((0.0, 0.01, 1.0, 5.0, 20.0, 80.0, 320.0, 1280.0, 10_000.0), 2, integer=False)
    counts = np.bincount(codec.codes_of(money), minlength=8).astype(float)

    def off(chosen):
        made = chosen.decode(codec.codes_of(money), np.random.default_rng(1)).to_numpy()
        cuts = [np.quantile(v, [0.5, 0.9, 0.99]) for v in (made, money)]
        return abs(made.mean() / money.mean() - 1), np.abs(cuts[0] / cuts[1] - 1).max()

    dense = codec.with_density(counts, 1.0)
    turned = NumericCodec(*[*vars(codec).values()][:3], slopes=tuple(-s for s in dense.slopes))
    assert off(dense)[0] < off(codec)[0] / 4 and off(dense)[1] < off(codec)[1] / 2
    assert off(turned)[0] > off(codec)[0]


def test_statistics_reckon_with_the_mean_of_what_is_drawn_and_how_far_a_value_may_lie_from_it():
    codec = NumericCodec((0.0, 10.0, 100.0, 1000.0), 0, True).with_density(
        np.array([800.0, 150.0, 50.0]), 1.0
    )
    codes = np.repeat(np.arange(3), 50_000)
    drawn_values = codec.decode(codes, np.random.default_rng(0)).to_numpy().reshape(3, -1)
    error = drawn_values.std(axis=1) / np.sqrt(50_000)
    assert (np.abs(drawn_values.mean(axis=1) - codec.centres) < 5 * error).all()
    assert (codec.centres < [4.5, 54.5, 549.5]).all()
    low, high = codec._grid
    assert (codec.half_widths == np.maximum(codec.centres - low, high - codec.centres)).all()


def test_columns_that_are_declared_even_stay_so_and_labels_and_codes_never_change():
    codec = NumericCodec((0.0, 10.0, 100.0, 1000.0), 0, True)
    layout = Layout((Column("a", codec), Column("b", codec, uniform=True), Column("c", codec)))
    counts = np.array([800.0, 150.0, 50.0, 7.0])
    a, b, c = layout.with_density({"a": (counts, 5.0), "b": (counts, 5.0)}).columns
    assert a.codec.slopes and b.codec == c.codec == codec
    assert a.labels == b.labels and a.codec.schema == b.codec.schema
    texts = pa.array([str(i) for i in range(1000)])
    assert a.encode(texts).tolist() == b.encode(texts).tolist()
