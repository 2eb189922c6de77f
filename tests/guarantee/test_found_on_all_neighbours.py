"""The exact privacy loss of finding values and medians, over all small tables and all their neighbours.

A curator's own numbers and charges are taken; the distribution of what it would answer is exact.
"""

from dataclasses import astuple, replace
from fractions import Fraction
from functools import cache
from itertools import product
from math import prod

import numpy as np
import pyarrow as pa
import pytest

from dpsynth.accounting.calibration import Calibration
from dpsynth.accounting.composition import compose
from dpsynth.accounting.events import ExponentialEvent, SelectionEvent, ThresholdEvent
from dpsynth.accounting.measures import GDP, PURE, ZCDP
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.curator import Curator, samplers
from dpsynth.curator import domain_questions as seeking
from dpsynth.curator.charging import Terms
from dpsynth.curator.table import Texts
from dpsynth.testing import load_table
from tests.guarantee.exact_noise import cumulative
from tests.guarantee.losses import LOSS, excess_delta, log_distribution
from tests.guarantee.small_tables import NEIGHBOURS, Notes
from tests.guarantee.small_texts import COLUMN, VALUES, curator_on, neighbours_of, tables
from tests.thinned import some, thinned

KINDS = [(PURE, "laplace"), (ZCDP, "laplace"), (ZCDP, "gaussian"), (GDP, "gaussian")]
SLOW = pytest.mark.slow
NOISE = {PURE: "laplace", ZCDP: "laplace", GDP: "gaussian"}


def told(near: Neighbours) -> str:
    """A neighbour relation, as the names of tests have it."""
    return f"{near.relation} {near.unit}"


@cache
def pairs(near: Neighbours) -> tuple[np.ndarray, np.ndarray]:
    """Codec of all tables that have neighbours among all tables, and of these."""
    place = {table: i for i, table in enumerate(tables(near))}
    found = [(place[t], place[n]) for t in tables(near) for n in neighbours_of(t, near)]
    one, two = np.array(found).T
    return one, two


def on_pairs(near, of_table: dict) -> tuple[np.ndarray, np.ndarray]:
    whole = np.array([of_table[table] for table in tables(near)])
    one, two = pairs(near)
    return whole[one], whole[two]


# Values.


def tail(sigma: float, least: int) -> float:
    """P[X >= least] of discrete Gaussian noise."""
    if least <= 0:
        return 1 - tail(sigma, 1 - least)
    law = cumulative("gaussian", sigma, 30)
    return float(1 - law[least - 1]) / 2 if least <= len(law) else 0.0


def chance(units: int, event) -> float:
    """Probability that a value is named, of the distribution that the event speaks of."""
    if isinstance(event, SelectionEvent):
        return next(samplers.chances_at([units], event)) / 2**samplers.BITS
    return tail(event.sigma, event.threshold - units)


class Found:
    """What is named on every small table: the probability of each set of values, and what it is charged."""

    def __init__(self, monkeypatch, near, measure, kind, price, delta, known=()):
        self.near, chances = near, {}
        seen = {}

        def noted(held, event):
            seen.update(held=held, event=event)
            return []

        with monkeypatch.context() as patch:
            patch.setattr(seeking, "_selected", noted)
            # Thresholds take long to work out.
            patch.setattr(Calibration, "values", cache(Calibration.values))
            for table in tables(near):
                curator, notes = curator_on(table, near, measure, kind)
                assert curator.values_of(COLUMN, price, delta, known) == ()
                self.charged, self.event = notes.charged(measure), notes.entries[0].event
                held = seen["held"]
                assert set(held) <= set(VALUES) - set(known)
                chances[table] = tuple(held.get(v, 0) for v in VALUES), tuple(v in held for v in VALUES)
        self.sets = {}
        by_units = {n: chance(n, self.event) for units, _ in chances.values() for n in units}
        for table, (units, present) in chances.items():
            p = [by_units[n] if there else 0.0 for n, there in zip(units, present, strict=True)]
            self.sets[table] = [
                prod([q if named else 1 - q for q, named in zip(p, outcome, strict=True)])
                for outcome in product((False, True), repeat=len(VALUES))
            ]

    def delta_at(self, epsilon: float) -> float:
        """The most delta that any pair of neighbours loses at an epsilon."""
        return excess_delta(*on_pairs(self.near, self.sets), epsilon)


def guaranteed(found: Found, measure: str, delta: Fraction) -> float:
    """Epsilon that the accountant states for the charge alone."""
    return compose([found.event], measure, delta, found.near).epsilon


@pytest.mark.parametrize(
    ("near", "how", "price"),
    some(
        thinned(
            NEIGHBOURS,
            KINDS,
            (Fraction(1), Fraction(1, 20), Fraction(6)),
            by=lambda near, how, price: ((near.relation, how), (near.unit, how), price),
            strength=1,
        ),
        4,
    ),
)
def test_no_neighbour_of_any_small_table_loses_more_by_named_values_than_the_charge(
    monkeypatch, near, how, price
):
    delta, (measure, kind) = Fraction(1, 100), how
    found = Found(monkeypatch, near, measure, kind, price, delta)
    assert found.charged <= price and found.event.delta <= delta
    if measure == PURE:
        assert found.delta_at(float(found.event.epsilon)) <= float(found.event.delta) * (1 + 1e-9)
    for total in (Fraction(1, 50), Fraction(1, 5)):
        epsilon = guaranteed(found, measure, total)
        assert found.delta_at(epsilon) <= float(total)


@pytest.mark.parametrize(("near", "how"), some(thinned(NEIGHBOURS, KINDS, strength=1), 2))
def test_some_neighbour_loses_nearly_all_of_the_delta(monkeypatch, near, how):
    """At an epsilon as large as one likes: a value that nobody else holds is named or not."""
    measure, kind = how
    found = Found(monkeypatch, near, measure, kind, Fraction(1, 20), Fraction(1, 100))
    assert found.delta_at(50.0) > 0.4 * float(found.event.delta)


def test_values_that_are_known_are_not_asked_about(monkeypatch):
    found = Found(monkeypatch, NEIGHBOURS[0], PURE, "laplace", Fraction(1), Fraction(1, 100), VALUES[:2])
    assert all(sum(1 for p in sets if p > 0) <= 2**4 for sets in found.sets.values())


# Planted faults: each makes some pair of neighbours lose more than is charged.


def lone_values_overspent(monkeypatch, near, price=Fraction(1, 20)) -> list[bool]:
    """Whether values that one neighbour alone has lose more than the delta, with either noise."""
    events = [
        Found(monkeypatch, near, measure, kind, price, Fraction(1, 100))
        for measure, kind in (KINDS[0], KINDS[2])
    ]
    return [found.delta_at(50.0) > float(found.event.delta) * (1 + 1e-9) for found in events]


@pytest.mark.parametrize("near", [pytest.param(NEIGHBOURS[2], marks=SLOW), NEIGHBOURS[3]], ids=told)
def test_values_of_a_person_with_the_sensitivity_of_an_added_row_are_caught(monkeypatch, near):
    assert lone_values_overspent(monkeypatch, near) == [False, False]
    monkeypatch.setattr(Neighbours, "l1", 1)
    assert lone_values_overspent(monkeypatch, near) == [True, True]


def test_values_of_an_exchanged_row_with_the_sensitivity_of_an_added_one_are_caught(monkeypatch):
    """It leaves one value and comes to another."""

    def overspent() -> bool:
        found = Found(monkeypatch, NEIGHBOURS[1], PURE, "laplace", Fraction(1, 20), Fraction(3, 10))
        return found.delta_at(float(found.event.epsilon)) > float(found.event.delta)

    assert not overspent()
    monkeypatch.setattr(Neighbours, "l1", 1)
    assert overspent()


@pytest.mark.parametrize("near", [NEIGHBOURS[2], pytest.param(NEIGHBOURS[3], marks=SLOW)], ids=told)
def test_rows_counted_in_place_of_persons_are_caught(monkeypatch, near):
    assert lone_values_overspent(monkeypatch, near, Fraction(6)) == [False, False]
    monkeypatch.setattr(Texts, "counts", lambda self, unit, sound=Texts.counts: sound(self, None))
    assert lone_values_overspent(monkeypatch, near, Fraction(6)) == [True, True]


def test_values_named_with_twice_the_delta_that_is_charged_are_caught(monkeypatch):
    sound = samplers.chances_at
    monkeypatch.setattr(
        samplers, "chances_at", lambda levels, e: sound(levels, replace(e, delta0=2 * e.delta0))
    )
    assert lone_values_overspent(monkeypatch, NEIGHBOURS[0]) == [True, False]


def test_a_threshold_lower_than_is_charged_is_caught(monkeypatch):
    sound = Calibration.values

    def lower(self, price, delta):
        bought = sound(self, price, delta)
        if isinstance(bought.event, SelectionEvent):
            return bought
        return replace(bought, event=Lower(*astuple(bought.event)))

    class Lower(ThresholdEvent):
        delta = Fraction(1, 200)

    monkeypatch.setattr(Calibration, "values", lower)
    assert lone_values_overspent(monkeypatch, NEIGHBOURS[0]) == [False, True]


MANY = 3000


def named_as_often_as_claimed(measure: str, kind: str) -> bool:
    """Of values that a number of rows have each, by real draws."""
    price, delta = Fraction(1, 2) if measure == PURE else Fraction(1, 8), Fraction(1, 10)
    for rows in (1, 2, 4):
        cells = pa.array([f"v{i}" for i in range(MANY)] * rows, pa.string())
        terms = Terms(NEIGHBOURS[0], measure, Fraction(100), kind, delta)
        notes = Notes()
        curator = Curator(load_table([{"n": cells}], [COLUMN], NEIGHBOURS[0], b""), terms, notes)
        found = len(curator.values_of(COLUMN, price, delta))
        p = chance(rows, notes.entries[0].event)
        assert 0.005 < p < 0.995
        if abs(found - MANY * p) > 5.5 * (MANY * p * (1 - p)) ** 0.5:
            return False
    return True


@pytest.mark.parametrize(("measure", "kind"), KINDS)
def test_values_are_named_as_often_as_their_event_claims(measure, kind):
    assert named_as_often_as_claimed(measure, kind)


@pytest.mark.parametrize(("measure", "kind"), KINDS)
def test_values_named_with_0_7_of_the_noise_would_be_seen(monkeypatch, measure, kind):
    add, named = samplers.add_gaussian, samplers.select
    monkeypatch.setattr(samplers, "add_gaussian", lambda values, sigma: add(values, 0.7 * sigma))
    monkeypatch.setattr(samplers, "select", lambda n, e: named(n, replace(e, epsilon0=e.epsilon0 / 0.7)))
    assert not named_as_often_as_claimed(measure, kind)


# Medians.

CUTS = np.arange(7.0)
RUNS = {"one": [(0, 7)], "two": [(0, 4), (3, 7)], "a hole": [(4, 7), (1, 3)], "uneven": [(0, 3), (2, 7)]}


class Medians:
    """Choices in runs on every small table: the log-probability of all outcomes together, and the charge."""

    def __init__(self, monkeypatch, near, measure, price, runs):
        self.near, self.measure, self.logs = near, measure, {}
        for table in tables(near):
            curator, notes = curator_on(table, near, measure, NOISE[measure])
            parts = []

            def noted(scores, scale, parts=parts):
                parts.append(log_distribution(scores, scale))
                return 0

            with monkeypatch.context() as patch:
                patch.setattr(samplers, "choose_index", noted)
                curator.medians(COLUMN, CUTS, runs, price)
            assert len(parts) == len(runs) and len(notes.entries) == 1
            self.charged = float(notes.charged(measure))
            self.logs[table] = [sum(outcome) for outcome in product(*parts)]

    @property
    def loss(self) -> float:
        """The most that any pair of neighbours loses, in either order, under the measure of the charge."""
        return LOSS[self.measure](*on_pairs(self.near, self.logs))


@pytest.mark.parametrize(
    ("near", "measure", "runs", "price"),
    some(
        thinned(
            NEIGHBOURS,
            tuple(NOISE),
            tuple(RUNS),
            (Fraction(1, 50), Fraction(4)),
            by=lambda near, measure, runs, price: (
                (near.relation, measure),
                (near.unit, measure),
                (near.unit, price),
                runs,
            ),
            strength=1,
        ),
        3,
    ),
)
def test_no_neighbour_of_any_small_table_loses_more_by_medians_of_all_runs_than_one_charge(
    monkeypatch, near, measure, runs, price
):
    medians = Medians(monkeypatch, near, measure, price, RUNS[runs])
    assert medians.charged <= price
    assert medians.loss <= medians.charged * (1 + 1e-9)


LARGE = Fraction(30)
"""At a large epsilon the largest log ratio of a choice comes close to its bound."""


@pytest.mark.parametrize(
    ("near", "runs", "part"),
    some(
        [
            (NEIGHBOURS[0], "one", 0.9),
            pytest.param(NEIGHBOURS[0], "two", 0.9, marks=SLOW),
            (NEIGHBOURS[1], "two", 0.9),
            pytest.param(NEIGHBOURS[2], "one", 0.9, marks=SLOW),
            (NEIGHBOURS[2], "two", 0.9),
            # Two persons are too few for more.
            (NEIGHBOURS[3], "one", 0.45),
            pytest.param(NEIGHBOURS[3], "two", 0.45, marks=SLOW),
        ],
        2,
    ),
)
def test_some_neighbour_loses_nearly_all_of_the_charge_in_one_run_and_in_several(
    monkeypatch, near, runs, part
):
    medians = Medians(monkeypatch, near, PURE, LARGE, RUNS[runs])
    assert medians.loss > part * medians.charged


# Planted faults.


def overspent_medians(monkeypatch, near, runs) -> bool:
    medians = Medians(monkeypatch, near, PURE, LARGE, runs)
    return medians.loss > medians.charged * (1 + 1e-9)


@pytest.mark.parametrize(
    "near", [NEIGHBOURS[1], pytest.param(NEIGHBOURS[2], marks=SLOW), NEIGHBOURS[3]], ids=told
)
def test_medians_with_the_sensitivity_of_an_added_row_for_any_other_unit_are_caught(monkeypatch, near):
    assert not overspent_medians(monkeypatch, near, RUNS["two"])
    monkeypatch.setattr(Neighbours, "l1", 1)
    assert overspent_medians(monkeypatch, near, RUNS["two"])


@pytest.mark.parametrize(
    "near",
    [NEIGHBOURS[0], *(pytest.param(near, marks=SLOW) for near in NEIGHBOURS[1:3]), NEIGHBOURS[3]],
    ids=told,
)
def test_runs_that_share_values_are_caught(monkeypatch, near):
    runs = [(0, 7), (0, 7), (0, 7)]
    with pytest.raises(ValueError, match="share a value"):
        overspent_medians(monkeypatch, near, runs)
    monkeypatch.setattr(seeking, "_check_runs", lambda cuts, runs: None)
    assert overspent_medians(monkeypatch, near, runs)


def test_medians_taken_for_monotone_scores_are_caught(monkeypatch):
    halved = property(lambda self: Fraction(self.sensitivity) / Fraction(self.scale))
    monkeypatch.setattr(ExponentialEvent, "epsilon", halved)
    assert overspent_medians(monkeypatch, NEIGHBOURS[0], RUNS["one"])


def chosen_as_often_as_claimed(measure: str) -> bool:
    """Of many runs of three cuts, with scores -2, 0 and -2 each, by real draws in one answer."""
    cells = pa.array([str(3 * r + v) for r in range(MANY) for v in (0, 1)], pa.string())
    notes = Notes()
    terms = Terms(NEIGHBOURS[0], measure, Fraction(100), NOISE[measure])
    curator = Curator(load_table([{"n": cells}], [COLUMN], NEIGHBOURS[0], b""), terms, notes)
    # An epsilon of about 2.
    price = {PURE: Fraction(2), ZCDP: Fraction(1, 2), GDP: Fraction(3, 4)}[measure]
    runs = [(3 * r, 3 * r + 3) for r in range(MANY)]
    found = curator.medians(COLUMN, np.arange(3.0 * MANY), runs, price)
    p = np.exp(log_distribution(np.array([-2, 0, -2]), notes.entries[0].event.scale))[1]
    middle = np.count_nonzero(found % 3 == 1)
    return bool(abs(middle - MANY * p) < 5.5 * (MANY * p * (1 - p)) ** 0.5)


@pytest.mark.parametrize("measure", some(list(NOISE), 1))
def test_cuts_are_chosen_as_often_as_their_event_claims(measure):
    assert chosen_as_often_as_claimed(measure)


@pytest.mark.parametrize("measure", [PURE, *(pytest.param(m, marks=SLOW) for m in (ZCDP, GDP))])
def test_cuts_chosen_at_0_7_of_the_scale_would_be_seen(monkeypatch, measure):
    sound = samplers.choose_index
    monkeypatch.setattr(samplers, "choose_index", lambda scores, scale: sound(scores, 0.7 * scale))
    assert not chosen_as_often_as_claimed(measure)
