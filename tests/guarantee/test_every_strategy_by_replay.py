"""Whole releases with every strategy: nothing but answers depends on rows, and all that was planned is spent.

What a journal holds is added up again here, under each neighbour relation, unit and kind of noise.
"""

from fractions import Fraction
from itertools import islice
from pathlib import Path

import pytest

from dpsynth.accounting.calibration import Calibration, noise_named
from dpsynth.accounting.composition import compose
from dpsynth.config import Spec, compiled
from dpsynth.config.structure import METHODS
from dpsynth.curator import Curator, Journal
from dpsynth.curator.charging import PrivacyFilter, Terms
from dpsynth.errors import DpsynthError
from dpsynth.plan.plan import Plan, make_plan
from dpsynth.strategy import strategy_of
from tests.guarantee.wild_tables import farthest, found_on, neighbours, on_neighbour, privacy_of, recorded
from tests.thinned import some, thinned

TERMS = {
    "rows come and go, Gaussian": privacy_of("add_remove", "row", "gaussian", accountant="gdp"),
    "rows exchanged, Gaussian": privacy_of("replace_one", "row", "gaussian", accountant="gdp"),
    "persons come and go, Gaussian": privacy_of("add_remove", "person", "gaussian"),
    "persons exchanged, Gaussian": privacy_of("replace_one", "person", "gaussian", accountant="zcdp"),
    "rows come and go, pure": privacy_of("add_remove", "row", "laplace"),
    "persons exchanged, pure": privacy_of("replace_one", "person", "laplace"),
    "rows exchanged, Laplace with delta": privacy_of("replace_one", "row", "laplace", delta=1e-6),
}


def protection(method: str, terms: str) -> tuple[object, ...]:
    """A strategy, and what there is to its terms."""
    privacy = TERMS[terms]
    return method, privacy["neighbours"], "unit" in privacy, (privacy["noise"], "delta" in privacy)


ALL = thinned(sorted(METHODS), list(TERMS), by=protection)
WIDE = ("auto", "mst")
"""These get ten columns; of four, auto asks for the distances of all pairs, and chooses nothing."""
CHOOSING = ("mst", "aim")
"""These always make choices then; auto, privbayes and one_shot, if the budget and the noise let them."""


def journal_of(tmp_path: Path) -> Journal:
    (path,) = tmp_path.glob("out/replay/.*.partial/private/journal.jsonl")
    journal = Journal.open(path)
    journal.close()
    return journal


def plan_of(spec: Spec) -> Plan:
    return make_plan(compiled(spec), strategy_of(spec.structure.method, spec.structure.cliques or ()))


def planned_otherwise(plan: Plan, journal: Journal) -> list[str]:
    """The single columns whose first answer has another scale than the plan says."""
    first: dict[str, float] = {}
    for entry in journal.entries:
        columns = entry.question.get("columns", ())
        if entry.question["ask"] == "marginal" and len(columns) < 2:
            first.setdefault(columns[0] if columns else "(total)", entry.event.scale)
    (step,) = (step for step in plan.steps if step.scale_of)
    return [
        name for name, scale in step.scale_of.items() if first.get(name) != pytest.approx(scale, rel=1e-9)
    ]


def findings(spec: Spec, journal: Journal) -> list[str]:
    """What a journal holds that its plan does not say, or the other way round."""
    plan, entries = plan_of(spec), journal.entries
    spent = sum((plan.measure.cost(e.event) for e in entries), Fraction(0))
    found = []
    if spent > plan.budget:
        found.append("more was spent than planned")
    if spent < Fraction(99, 100) * plan.budget:
        found.append("less was spent than planned")
    guarantee = compose([e.event for e in entries], plan.measure, plan.tier.delta, spec.privacy.protected)
    if not 0.98 * float(plan.tier.epsilon) <= guarantee.epsilon <= plan.tier.epsilon:
        found.append("epsilon is another")
    if planned_otherwise(plan, journal):
        found.append("noise is another")
    last, exam = entries[-1], plan.steps[-1]
    if (last.question["ask"], last.event.scale) != (exam.step, pytest.approx(exam.scale, rel=1e-9)):
        found.append("the exam is another")
    asked = [e.question for e in entries]
    if sum(q["ask"] == "choose" for q in asked) > plan.outlined.choices:
        found.append("more choices than planned")
    if sum(q["candidates"]["number"] for q in asked if q["ask"] == "errors") > plan.outlined.errors:
        found.append("more distances than planned")
    return found


@pytest.mark.parametrize(("method", "terms"), some(ALL, 9))
def test_what_the_journal_holds_composes_to_the_planned_budget_and_to_nearly_all_of_it(
    tmp_path: Path, method: str, terms: str
) -> None:
    _, _, spec, _ = recorded(tmp_path, TERMS[terms], method, wide=method in WIDE)
    assert spec.structure.method == method
    journal = journal_of(tmp_path)
    assert findings(spec, journal) == []
    assert method not in CHOOSING or "choose" in {e.question["ask"] for e in journal.entries}


@pytest.mark.parametrize(
    ("method", "terms"),
    some(thinned(METHODS, list(TERMS), by=lambda *case: protection(*case)[:2], strength=1), 5),
)
def test_every_strategy_asks_the_same_of_a_neighbour(tmp_path: Path, method: str, terms: str) -> None:
    privacy = TERMS[terms]
    rng, rows, spec, record = recorded(tmp_path, privacy, method, wide=method in WIDE)
    unit = "person" if "unit" in privacy else "row"
    changed = islice(neighbours(rows, str(privacy["neighbours"]), unit, rng), 2)
    assert list(found_on(tmp_path, spec, record, changed)) == []


# Planted faults.


def found_with(tmp_path: Path, method: str, terms: str = "rows come and go, Gaussian") -> list[str]:
    _, _, spec, _ = recorded(tmp_path, TERMS[terms], method, wide=method in WIDE)
    return findings(spec, journal_of(tmp_path))


@pytest.mark.parametrize(
    "terms", some(thinned(list(TERMS), by=lambda terms: protection("auto", terms)[3:], strength=1), 1)
)
def test_noise_that_is_drawn_by_another_calibration_than_the_plans_would_be_seen(
    tmp_path: Path, monkeypatch, terms: str
) -> None:
    class Other(Calibration):
        def counts(self, price):
            return super().counts(price * Fraction(999, 1000))

    of_terms = property(lambda self: Other(self.neighbours, self.measure, noise_named(self.noise)))
    monkeypatch.setattr(Terms, "calibration", of_terms)
    assert "noise is another" in found_with(tmp_path, "auto", terms)


@pytest.mark.parametrize("method", some(sorted(METHODS), 1))
def test_a_budget_that_is_not_spent_would_be_seen(tmp_path: Path, monkeypatch, method: str) -> None:
    """A tenth of the whole is kept back, however many rounds there are and however small the last is."""
    sound = PrivacyFilter.remaining.fget

    def less(self):
        return max(sound(self) - self._terms.budget / 10, Fraction(0))

    monkeypatch.setattr(PrivacyFilter, "remaining", property(less))
    assert "less was spent than planned" in found_with(tmp_path, method)


@pytest.mark.parametrize("method", some(sorted(m.name for m in METHODS.values() if m.measures), 1))
def test_a_budget_that_is_spent_twice_would_be_seen(tmp_path: Path, monkeypatch, method: str) -> None:
    sound = PrivacyFilter._spent
    monkeypatch.setattr(PrivacyFilter, "_spent", lambda self, entries: sound(self, entries) / 2)
    assert "more was spent than planned" in found_with(tmp_path, method)


@pytest.mark.parametrize("terms", ["rows come and go, Gaussian", "rows come and go, pure"])
def test_a_strategy_that_looks_at_rows_is_caught(tmp_path: Path, monkeypatch, terms: str) -> None:
    sound = Curator.choose_in_turn

    def nosy(self, candidates, estimates, price, most, admissible, penalties=(), weights=()):
        off = [amount + self._table.rows % 2 for amount in penalties or [0] * len(candidates)]
        return sound(self, candidates, estimates, price, most, admissible, off, weights)

    monkeypatch.setattr(Curator, "choose_in_turn", nosy)
    _, rows, spec, record = recorded(tmp_path, TERMS[terms], "mst", wide=True)
    # The first of the farthest neighbours has a row more.
    with pytest.raises(DpsynthError, match="another question"):
        on_neighbour(tmp_path, spec, record, farthest(rows, "add_remove", "row")[0])
