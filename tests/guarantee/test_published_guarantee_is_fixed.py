"""The published guarantee depends neither on the table nor on what came out: all is spent.

Epsilon, delta and all figures beside them are a guarantee only if they were fixed beforehand. So each release
is made under outcomes that have nothing in common: all noise at one end and the first candidate chosen, or
all noise at the other end, of another table, and the last one chosen.
"""

import random
from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dpsynth.accounting.events import Guarantee
from dpsynth.accounting.measures import GDP, PURE
from dpsynth.config import compiled, from_mapping
from dpsynth.curator import Curator, Journal, samplers
from dpsynth.pipeline.spine import composed
from dpsynth.plan.plan import Plan, make_plan
from dpsynth.strategy import strategy_of
from dpsynth.testing import STRATEGIES
from dpsynth.wings.proof.audit.replay import observe
from tests.guarantee.wild_tables import COLUMNS, LISTED, MAX_ROWS, SOUGHT, base_table, privacy_of, write
from tests.thinned import some, thinned

TERMS = {
    "rows come and go, gdp": privacy_of("add_remove", "row", "gaussian", accountant="gdp"),
    "rows come and go, zcdp": privacy_of("add_remove", "row", "gaussian", accountant="zcdp"),
    "persons exchanged, gdp": privacy_of("replace_one", "person", "gaussian", accountant="gdp"),
    "rows exchanged, auto": privacy_of("replace_one", "row", "gaussian"),
    "rows come and go, pure": privacy_of("add_remove", "row", "laplace"),
    "persons exchanged, pure": privacy_of("replace_one", "person", "laplace"),
    "persons come and go, Laplace by rho": privacy_of("add_remove", "person", "laplace", delta=1e-6),
}
FEW = ("rows come and go, gdp", "rows come and go, pure")


def possible(method: str, terms: str, columns: int) -> bool:
    """Few columns with some terms alone."""
    return columns == 4 or (terms in FEW and method != "fixed")


def accounted(method: str, terms: str, columns: int) -> tuple[object, ...]:
    """A strategy, how its terms are accounted for, and the number of columns."""
    privacy = TERMS[terms]
    return (method, columns), (privacy["noise"], privacy.get("accountant"), columns)


CASES = thinned([*STRATEGIES, "fixed"], list(TERMS), (1, 2, 4), possible=possible, by=accounted, strength=1)
OUTCOMES = (+1, -1)


def forced(monkeypatch: pytest.MonkeyPatch, sign: int) -> None:
    """All noise at one end, so many scales out; choices of the first or last; all values named, or none."""

    def shifted(values: np.ndarray, scale: float) -> np.ndarray:
        return np.asarray(values + sign * round(50 * scale))

    monkeypatch.setattr(samplers, "add_gaussian", shifted)
    monkeypatch.setattr(samplers, "add_laplace", shifted)
    monkeypatch.setattr(samplers, "choose_index", lambda scores, scale: 0 if sign > 0 else len(scores) - 1)
    monkeypatch.setattr(samplers, "select", lambda units, event: np.full(len(units), sign > 0))


def published(
    tmp_path: Path,
    privacy: Mapping[str, object],
    method: str,
    columns: Mapping[str, object],
    monkeypatch: pytest.MonkeyPatch,
    sign: int,
) -> tuple[Plan, Guarantee]:
    """The plan, and what a release states that was told the utmost, of many rows or of none."""
    folder = tmp_path / f"{sign}"
    folder.mkdir()
    rows = base_table(random.Random(1)) if sign > 0 else []
    config = {
        "release": "forced",
        "source": {"path": str(write(folder / "x.csv", rows))},
        "privacy": dict(privacy),
        "ledger": {"url": f"sqlite:///{folder}/ledger.db"},
        "columns": dict(columns),
        "structure": {"method": method} | ({"cliques": LISTED} if method == "fixed" else {}),
    }
    spec = from_mapping(config)
    with monkeypatch.context() as patched:
        forced(patched, sign)
        observe(spec, folder / "out")
    (path,) = folder.glob("out/forced/.*.partial/private/journal.jsonl")
    journal = Journal.open(path)
    journal.close()
    plan = make_plan(compiled(spec), strategy_of(method, spec.structure.cliques or ()))
    return plan, composed(plan, journal)


def differing(plan: Plan, stated: list[Guarantee]) -> list[str]:
    """Figures that aren't the same under all outcomes, or not what was planned, but for the last digits."""
    delta = None if plan.tier.delta is None else plan.tier.delta - plan.selection_delta
    fixed = {
        "epsilon": float(plan.measure.epsilon(plan.budget, delta)),
        "delta": float(plan.tier.spent_delta),
        "approximate_delta": float(plan.selection_delta),
        "rho": None if plan.measure == PURE else float(plan.budget),
        "mu": float(2 * plan.budget) ** 0.5 if plan.measure == GDP else None,
        "unit": plan.neighbours.unit,
        "neighbours": plan.neighbours.relation,
        "accountant": plan.measure.accountant,
        "sample_rate": None,
    }
    assert set(fixed) == set(asdict(stated[0])), (
        "a figure is stated of which nobody asked whether it is fixed"
    )
    return [
        name
        for name, figure in fixed.items()
        for guarantee in stated
        if getattr(guarantee, name)
        != (pytest.approx(figure, rel=1e-12) if isinstance(figure, float) else figure)
    ]


def differing_of(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    privacy: Mapping[str, object],
    columns: Mapping[str, object],
) -> list[str]:
    made = [published(tmp_path, privacy, method, columns, monkeypatch, sign) for sign in OUTCOMES]
    return differing(made[0][0], [guarantee for _, guarantee in made])


@pytest.mark.parametrize(("method", "terms", "columns"), some(CASES, 9))
def test_whatever_comes_out_the_figures_are_those_fixed_beforehand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, terms: str, columns: int
) -> None:
    taken = dict(list(COLUMNS.items())[:columns])
    assert differing_of(tmp_path, monkeypatch, method, TERMS[terms], taken) == []


@pytest.mark.parametrize(
    "terms", some(["rows come and go, gdp", "persons come and go, Laplace by rho", "pure"], 1)
)
def test_what_is_found_first_changes_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terms: str
) -> None:
    """Naming values has a delta of its own, of which noise decides how much is taken."""
    pure = privacy_of("add_remove", "row", "laplace", delta=1e-6, accountant="sequential")
    privacy = TERMS.get(terms, pure)
    assert differing_of(tmp_path, monkeypatch, "mst", privacy, SOUGHT) == []


def test_the_most_rows_that_are_found_change_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = {"column": "who", "max_rows": "private", "at_most": MAX_ROWS}
    privacy = privacy_of("add_remove", "row", "gaussian", accountant="gdp") | {"unit": unit}
    assert differing_of(tmp_path, monkeypatch, "mst", privacy, SOUGHT) == []


# Planted faults.


def test_a_strategy_that_saves_when_nothing_is_to_be_seen_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = Curator.marginals

    def saving(self, cliques, allowance, weights=()):  # type: ignore[no-untyped-def]
        found = sound(self, cliques, allowance * Fraction(1, 2), weights)
        told = sum(float(m.values.sum()) for m in found if m is not None)
        return found if told < 0 else [*found[:-1], *sound(self, cliques[-1:], allowance * Fraction(1, 2))]

    monkeypatch.setattr(Curator, "marginals", saving)
    found = differing_of(tmp_path, monkeypatch, "aim", TERMS["rows come and go, gdp"], COLUMNS)
    assert {"epsilon", "rho", "mu"} <= set(found)
