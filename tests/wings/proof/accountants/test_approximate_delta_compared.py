"""The accountants side by side count the delta of selections, and none says less than the truth."""

from dataclasses import replace
from fractions import Fraction

import pytest

from dpsynth.accounting.composition import amount_of, spent
from dpsynth.accounting.events import (
    GaussianEvent,
    LaplaceEvent,
    RecordedEvent,
    SelectionEvent,
    ThresholdEvent,
)
from dpsynth.accounting.measures import GDP, PURE, ZCDP, Measure
from dpsynth.ledger.views import Composed, least
from dpsynth.wings.proof.accountants.comparison import statements
from tests.accounting.exact import exact_epsilon
from tests.ledger.reservations import HALF, NONE, sought_cost
from tests.thinned import some

SOUGHT = SelectionEvent(0.2, 2e-9, 1)
DELTA = Fraction(1, 10**6)


def release(*events: RecordedEvent, measure: Measure = GDP) -> Composed:
    return Composed(spent(events, amount_of(events, measure, Fraction(1, 10**8))), events)


def epsilons(releases: list[Composed], delta: Fraction = DELTA) -> dict[str, float | None]:
    return {found.accountant: found.epsilon for found in statements(releases, delta)}


@pytest.mark.parametrize("times", some([1, 40, 240], 1))
@pytest.mark.parametrize("measure", [PURE, GDP])
def test_no_accountant_says_less_of_selections_than_the_truth(times: int, measure: Measure) -> None:
    noise = LaplaceEvent(5.0, 1) if measure == PURE else GaussianEvent(12.0, 1)
    releases = [release(SOUGHT, noise, measure=measure)] * times
    told = 1 - (1 - SOUGHT.delta0) ** times
    coins = {LaplaceEvent(1 / SOUGHT.epsilon0, 1): times}
    coins[noise] = coins.get(noise, 0) + times  # type: ignore[index]
    truth = exact_epsilon(coins, float(DELTA), told) * (1 - 1e-9)  # type: ignore[arg-type]
    found = epsilons(releases)
    assert found["pld"] is not None
    for name, epsilon in found.items():
        assert name == "sequential" or epsilon is None or epsilon >= truth, name
    assert found["pld"] <= truth * 1.02


def test_lapses_left_out_would_be_below_the_truth() -> None:
    releases = [release(replace(SOUGHT, delta0=9e-9), GaussianEvent(12.0, 1))] * 110
    sound = epsilons(releases)
    assert sound["pld"] is not None and sound["gdp"] is not None
    truth = exact_epsilon(
        {LaplaceEvent(5.0, 1): 110, GaussianEvent(12.0, 1): 110}, float(DELTA), 1 - (1 - 9e-9) ** 110
    )
    assert sound["pld"] >= truth * (1 - 1e-9)
    forgotten = [Composed(replace(r.cost, approximate_delta=NONE), r.events) for r in releases]
    found = epsilons(forgotten)
    assert found["pld"] is not None and found["pld"] < truth


def test_selections_that_use_up_delta_leave_only_the_sum() -> None:
    releases = [release(replace(SOUGHT, delta0=9e-9), GaussianEvent(12.0, 1))] * 120
    found = statements(releases, DELTA)
    assert [s.accountant for s in found if s.epsilon is not None] == ["sequential"]
    assert "What finding values takes of δ adds up to 1.08e-6" in found[3].why
    assert least(found).accountant == "sequential"
    assert epsilons(releases, 2 * DELTA)["gdp"] is not None


def test_of_a_reservation_with_lapses_the_rest_of_delta_is_what_is_known() -> None:
    """Under zcdp with Gaussian noise only (epsilon, delta - lapse) is, and the lapse counts once."""
    cost = replace(sought_cost(Fraction(1, 10), Fraction(1, 10**8), HALF, ZCDP), half_mu_squared=None)
    found = epsilons([Composed(cost)] * 50)
    truth = exact_epsilon({LaplaceEvent(10.0, 1): 50}, float(DELTA), 1 - (1 - 1e-8) ** 50)
    assert found["gdp"] is None and found["pld"] is not None
    assert truth * (1 - 1e-9) <= found["pld"] <= truth * 1.02


def test_thresholds_count_as_their_gaussian_noise_beside_their_lapse() -> None:
    event = ThresholdEvent(15.0, 120, 1)
    assert 0 < event.delta < Fraction(1, 10**14)
    with_names, without = (
        epsilons([release(*[e] * 9)]) for e in (event, GaussianEvent(event.sigma, event.partitions))
    )
    for name in ("zcdp", "gdp", "rdp", "pld"):
        assert with_names[name] == pytest.approx(without[name], rel=1e-6)
