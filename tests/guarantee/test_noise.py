"""Noise has the distribution that its event claims (hazards 11-15)."""

import os
from collections.abc import Callable
from fractions import Fraction
from math import exp, inf
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

from dpsynth.accounting.events import GaussianEvent, LaplaceEvent
from dpsynth.accounting.measures import PURE, ZCDP
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.domain import Domain
from dpsynth.curator import Curator, Journal, Terms, samplers
from dpsynth.curator.table import PrivateTable
from tests.forked import in_child, printed_by
from tests.thinned import some, thinned

DRAWS = 60_000
SIGNIFICANCE = 1e-6

Sampler = Callable[[np.ndarray, float], np.ndarray]


def probabilities(kind: str, scale: float, reach: int) -> np.ndarray:
    """The exact distribution on -reach..reach, in doubles."""
    x = np.arange(-reach, reach + 1)
    weight = np.exp(-(x**2) / (2 * scale**2)) if kind == "gaussian" else np.exp(-np.abs(x) / scale)
    return weight / weight.sum()


def p_value(sampler: Sampler, kind: str, scale: float) -> float:
    """Chi-square test of zero-mean draws against the exact distribution, tails pooled."""
    draws = sampler(np.zeros(DRAWS, dtype=np.int64), scale)
    reach = int(40 * scale) + 40
    expected = DRAWS * probabilities(kind, scale, reach)
    seen = np.bincount(np.clip(draws + reach, 0, 2 * reach), minlength=2 * reach + 1)
    common = expected >= 20
    pooled = [expected[~common].sum(), seen[~common].sum()]
    gap = ((seen[common] - expected[common]) ** 2 / expected[common]).sum()
    gap += (pooled[1] - pooled[0]) ** 2 / max(pooled[0], 1.0)
    return float(chi2.sf(gap, common.sum()))


SAMPLERS = {"gaussian": samplers.add_gaussian, "laplace": samplers.add_laplace}


@pytest.mark.parametrize(
    ("bulk", "kind", "scale"), some(thinned([True, False], tuple(SAMPLERS), [3.0, 2.0, 1.0, 7.5]), 5)
)
def test_draws_follow_the_exact_discrete_distribution(
    monkeypatch: pytest.MonkeyPatch, kind: str, scale: float, bulk: bool
) -> None:
    monkeypatch.setattr(samplers, "pays_in_bulk", lambda *_: bulk)
    assert p_value(SAMPLERS[kind], kind, scale) > SIGNIFICANCE


@pytest.mark.parametrize("kind", SAMPLERS)
def test_a_bias_of_one_draw_in_ten_would_be_seen(kind: str) -> None:
    def biased(values, scale):
        drawn = SAMPLERS[kind](values, scale)
        drawn[::10] = np.abs(drawn[::10])
        return drawn

    assert p_value(biased, kind, 2.0) < SIGNIFICANCE


@pytest.mark.parametrize("kind", SAMPLERS)
def test_noise_at_0_7_of_its_scale_would_be_seen(kind: str) -> None:
    assert p_value(lambda v, s: SAMPLERS[kind](v, 0.7 * s), kind, 3.0) < SIGNIFICANCE


@pytest.mark.parametrize("kind", SAMPLERS)
@pytest.mark.parametrize("count", [2**31 - 1, 2**31, 2**31 + 1, 2**53 + 1])
def test_large_counts_do_not_wrap_or_round(kind: str, count: int) -> None:
    drawn = SAMPLERS[kind](np.full(200, count, dtype=np.int64), 1.0)
    assert drawn.dtype == np.int64
    assert np.abs(drawn - count).max() < 60


@pytest.mark.parametrize("kind", [*SAMPLERS, "choice"])
@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), -inf])
def test_a_scale_that_is_not_positive_is_refused(kind: str, scale: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        if kind == "choice":
            samplers.choose_index(np.array([1, 2]), scale)
        else:
            SAMPLERS[kind](np.zeros(1, dtype=np.int64), scale)


def _stream() -> tuple[int, ...]:
    return tuple(samplers.add_gaussian(np.zeros(32, dtype=np.int64), 1e6).tolist())


def test_forked_workers_do_not_share_a_stream() -> None:
    samplers.add_gaussian(np.zeros(8, dtype=np.int64), 1.0)
    ended = [in_child(lambda write: os.write(write, repr(_stream()).encode()), wall=60) for _ in range(8)]
    assert {code for code, _ in ended} == {0}
    assert len({said for _, said in ended if said}) == 8


def test_a_fixed_seed_everywhere_else_fixes_neither_the_noise_nor_what_is_named() -> None:
    program = (
        "import random, numpy; random.seed(0); numpy.random.seed(0)\n"
        "from dpsynth.curator import samplers\n"
        "from dpsynth.accounting.events import SelectionEvent\n"
        "print(samplers.add_gaussian(numpy.zeros(16, dtype='int64'), 1e6).tolist())\n"
        "print(samplers.select(numpy.full(256, 6), SelectionEvent(0.7, 0.01, 1)).tolist())"
    )
    one, other = map(str.splitlines, printed_by(program, "00"))
    assert len(one) == 2 and all(a != b for a, b in zip(one, other, strict=True))


# What a release really adds, against what its journal says of it.

CELLS = 4000


def journalled_spread(tmp_path: Path, kind: str, near: Neighbours) -> float:
    """Empirical variance of a curator's noise over the variance that its event claims."""
    domain = Domain({"a": CELLS})
    table = PrivateTable(domain, {"a": np.arange(CELLS, dtype=np.uint16)}, CELLS)
    journal = Journal.create(tmp_path / "journal.jsonl", {"id": "x"})
    measure = ZCDP if kind == "gaussian" else PURE
    curator = Curator(table, Terms(near, measure, Fraction(1, 2), kind), journal)
    (answer,) = curator.marginals([("a",)], Fraction(1, 2))
    (entry,) = journal.entries
    match entry.event:
        case GaussianEvent(sigma=sigma, l2_squared=l2):
            assert l2 == near.l2_squared
            claimed = sigma**2
        case LaplaceEvent(scale=b, l1=l1):
            assert l1 == near.l1
            claimed = 2 * exp(-1 / b) / (1 - exp(-1 / b)) ** 2
    journal.close()
    return float(np.var(answer.values - 1) / claimed)


PEOPLE = Neighbours("add_remove", "who", 20)


@pytest.mark.parametrize("kind", SAMPLERS)
def test_a_curator_adds_the_noise_that_its_journal_charges_for(tmp_path: Path, kind: str) -> None:
    assert 0.8 < journalled_spread(tmp_path, kind, PEOPLE) < 1.25


@pytest.mark.parametrize("kind", SAMPLERS)
def test_a_curator_that_adds_0_7_of_it_would_be_caught(tmp_path, monkeypatch, kind: str) -> None:
    name = f"add_{kind}"
    sound = getattr(samplers, name)
    monkeypatch.setattr(samplers, name, lambda values, scale: sound(values, 0.7 * scale))
    assert not 0.8 < journalled_spread(tmp_path, kind, PEOPLE) < 1.25
