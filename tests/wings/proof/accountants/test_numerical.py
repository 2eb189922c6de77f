"""Questions to the library's accountants, in exact figures, and the use of their answers.

``test_comparison`` holds their answers themselves against other accountants.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import exp, expm1, inf, sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from dp_accounting import NeighboringRelation, RandomizedResponseDpEvent, ZCDpEvent
from dp_accounting.pld import pld_pmf, privacy_loss_distribution

from dpsynth.accounting.amount import Amount, float_down, float_up
from dpsynth.accounting.composition import Cost
from dpsynth.accounting.events import ExponentialEvent, GaussianEvent, LaplaceEvent
from dpsynth.accounting.measures import DELTA_GROWTH
from dpsynth.wings.proof.accountants import numerical
from dpsynth.wings.proof.accountants.numerical import Composition, pld_epsilon, rdp_epsilon

DELTA = Fraction(1, 10**6)
HALF = Fraction(1, 2)
BILLIONTH = Fraction(1, 10**9)


def composition(*parts: object) -> Composition:
    """Each part twice: an event, or a cost."""
    events = {part: 2 for part in parts if not isinstance(part, Cost)}
    return Composition(events, {part: 2 for part in parts if isinstance(part, Cost)})  # type: ignore[arg-type]


PURE_COST = Cost(Amount(HALF), Fraction(1, 8), Fraction(1, 8))
OTHER_COST = Cost(Amount(HALF, DELTA), Fraction(1, 9), Fraction(1, 9))


@pytest.mark.parametrize(
    ("part", "coin", "rho"),
    [
        (LaplaceEvent(2.0, 1), 0.5, None),
        (LaplaceEvent(100.0, 1), 0.01, None),
        (LaplaceEvent(1.0, 500), 500.0, None),
        (LaplaceEvent(101.0, 1), None, LaplaceEvent(101.0, 1).rho),
        (LaplaceEvent(1.0, 501), None, LaplaceEvent(1.0, 501).rho),
        (ExponentialEvent(2.0, 1), None, ExponentialEvent(2.0, 1).rho),
        (GaussianEvent(3.0, 2), None, GaussianEvent(3.0, 2).rho),
        (PURE_COST, 0.5, None),
        (OTHER_COST, None, Fraction(1, 9)),
    ],
    ids=str,
)
def test_pure_answers_are_randomised_responses_to_renyi_dp_and_others_their_rho(
    monkeypatch: pytest.MonkeyPatch, part: object, coin: float | None, rho: Fraction | None
) -> None:
    class Accountant:
        def __init__(self, orders: object, relation: object) -> None:
            assert orders is numerical._ORDERS and relation == NeighboringRelation.REPLACE_ONE
            self.composed: list[tuple[object, int]] = []

        def compose(self, event: object, count: int = 1) -> None:
            self.composed.append((event, count))

        def get_epsilon(self, delta: float) -> float:
            assert delta == float_down(DELTA)
            expected: list[tuple[object, int]] = [(ZCDpEvent(float_up(2 * rho if rho else Fraction(0))), 1)]
            if coin is not None:
                expected.insert(0, (RandomizedResponseDpEvent(2 / (exp(coin) + 1), 2), 2))
            assert self.composed == expected
            return 0.75

    monkeypatch.setattr("dp_accounting.rdp.RdpAccountant", Accountant)
    found = rdp_epsilon(composition(part), DELTA)
    assert found == Fraction(3, 4) * (1 + BILLIONTH) + BILLIONTH


def test_nothing_that_was_spent_is_nothing() -> None:
    assert rdp_epsilon(composition(), DELTA) == pld_epsilon(composition(), DELTA) == 0


class Law:
    """A privacy loss distribution that only knows what it is composed of."""

    asked: list[float]

    def __init__(self, parts: Counter[object], epsilon: float = 5.0, spare: tuple[float, ...] = ()) -> None:
        self.parts, self.epsilon, self.spare = parts, epsilon, list(spare)
        self.asked = []

    def self_compose(self, times: int) -> Law:
        return Law(
            Counter({part: n * times for part, n in self.parts.items()}), self.epsilon, tuple(self.spare)
        )

    def compose(self, other: Law) -> Law:
        return Law(self.parts + other.parts, self.epsilon, tuple(self.spare))

    def get_epsilon_for_delta(self, delta: float) -> float:
        self.asked.append(delta)
        seen.append(self)
        return self.epsilon

    def get_delta_for_epsilon(self, epsilon: float) -> float:
        assert epsilon < inf
        return self.asked[0] + (self.spare.pop(0) if self.spare else 0.0)


seen: list[Law] = []


@pytest.fixture
def laws(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The settings of what a law says; and no law is computed."""
    said = SimpleNamespace(epsilon=5.0, spare=(), deviations=[])
    seen.clear()

    def gaussian(deviation: float, *, value_discretization_interval: float) -> Law:
        said.deviations.append(deviation)
        return Law(Counter(["normal"]), said.epsilon, said.spare)

    monkeypatch.setattr(numerical, "_law", lambda part, step: Law(Counter([part]), said.epsilon, said.spare))
    monkeypatch.setattr(numerical, "_step", lambda *_: numerical._LARGEST_STEP)
    monkeypatch.setattr(privacy_loss_distribution, "from_gaussian_mechanism", gaussian)
    return said


LAPLACE, CHOICE, NORMAL = LaplaceEvent(2.0, 1), ExponentialEvent(2.0, 1), GaussianEvent(3.0, 2)


def test_every_answer_is_composed_once_at_the_delta_that_is_left(laws: SimpleNamespace) -> None:
    mu = Cost(Amount(Fraction(3), DELTA), Fraction(1), Fraction(1, 7))
    rest = Cost(Amount(Fraction(2), DELTA), Fraction(1), None, DELTA / 4)
    several = composition(LAPLACE, LaplaceEvent(3.0, 1), LaplaceEvent(4.0, 1), CHOICE, NORMAL, mu, rest)
    assert pld_epsilon(several, DELTA) == 5
    (law,) = seen
    amount = Amount(Fraction(2), 3 * DELTA / 4)
    parts = (LAPLACE, LaplaceEvent(3.0, 1), LaplaceEvent(4.0, 1), CHOICE, amount)
    assert law.parts == Counter({"normal": 1} | dict.fromkeys(parts, 2))
    half = 2 * (NORMAL.half_mu_squared or 0) + Fraction(2, 7)
    allowed = float(DELTA) * exp(-2 * float(DELTA_GROWTH) * float(half)) * (1 - 1e-9)
    assert law.asked == [allowed - 1e-12 * (1 + 11 / 1000)]
    assert laws.deviations == [1 / sqrt(float_up(2 * half)) * (1 - 1e-15)]


@pytest.mark.parametrize("number", range(1, 8))
def test_laws_are_composed_two_and_two_however_many_there_are(laws: SimpleNamespace, number: int) -> None:
    parts = [LaplaceEvent(2.0 + i, 1) for i in range(number)]
    laws.epsilon = 0.01
    assert pld_epsilon(composition(*parts), DELTA) == Fraction(0.01)
    assert seen[0].parts == Counter(dict.fromkeys(parts, 2))


def test_an_epsilon_rises_until_its_delta_is_within_the_one_allowed(laws: SimpleNamespace) -> None:
    # As much more as 6 and 1, then as much as is allowed.
    laws.spare = (6.0, 1.0, 0.0, 1.0)
    once = 5.0 + 1e-9 * (1 + 5.0)
    assert pld_epsilon(composition(NORMAL), DELTA) == Fraction(once + 1e-9 * (1 + once))
    laws.epsilon = inf
    assert pld_epsilon(composition(NORMAL), DELTA) is None


def test_pure_answers_never_cost_more_than_their_sum(laws: SimpleNamespace) -> None:
    pure = Cost(Amount(HALF), Fraction(1, 8), None)
    assert pld_epsilon(composition(LAPLACE, CHOICE, pure), DELTA) == 2 * (HALF + CHOICE.epsilon + HALF)
    laws.epsilon = 0.25
    assert pld_epsilon(composition(LAPLACE, pure), DELTA) == Fraction(1, 4)
    laws.epsilon = 5.0
    leaking = Cost(Amount(HALF, DELTA), Fraction(1, 8), None)
    for other in (leaking, NORMAL):
        assert pld_epsilon(composition(LAPLACE, pure, other), DELTA) == 5


def test_a_delta_within_the_margins_or_too_coarse_a_grid_gives_no_epsilon(
    laws: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pld_epsilon(composition(NORMAL), Fraction(1, 10**12)) is None
    monkeypatch.setattr(numerical, "_step", lambda *_: numerical._LARGEST_STEP * (1 + 1e-9))
    assert pld_epsilon(composition(NORMAL), DELTA) is None


@pytest.mark.parametrize(
    "part", [Amount(Fraction(1), HALF), Amount(Fraction(1)), ExponentialEvent(1.0, 1)], ids=str
)
def test_a_law_is_of_the_deltas_of_randomised_response_or_of_a_choice(
    monkeypatch: pytest.MonkeyPatch, part: Amount | ExponentialEvent
) -> None:
    told: list[tuple[float, np.ndarray, np.ndarray]] = []
    sound = pld_pmf.create_pmf_pessimistic_connect_dots
    monkeypatch.setattr(
        pld_pmf, "create_pmf_pessimistic_connect_dots", lambda *given: told.append(given) or sound(*given)
    )
    numerical._law(part, 0.03)
    ((step, points, deltas),) = told
    assert step == 0.03 and {-34, -33, 33, 34} <= {*points.tolist()} and len(points) == len(deltas)
    for point, delta in zip(points.tolist(), deltas.tolist(), strict=True):
        loss = point * step
        if isinstance(part, ExponentialEvent):
            most = float(part.epsilon)
            inside = min(max(loss, -most), most)
            between = expm1((inside - most) / 2) ** 2 / -expm1(-most)
            true = max(between, -expm1(loss))
        else:
            likely = 1 / (1 + exp(-1))
            kept = max(likely - exp(loss) * (1 - likely), 0) + max((1 - likely) - exp(loss) * likely, 0)
            true = float(part.delta) + (1 - float(part.delta)) * kept
        assert delta == pytest.approx(true, abs=1e-12)
