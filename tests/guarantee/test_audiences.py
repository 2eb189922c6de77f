"""Audiences: each bundle's own guarantee, and the joint one, exactly and by replay on neighbours."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsynth.accounting import events
from dpsynth.accounting.composition import amount_of
from dpsynth.accounting.measures import GDP
from dpsynth.config import Spec, from_mapping
from dpsynth.config.privacy import Audience
from dpsynth.curator import Curator
from dpsynth.errors import DpsynthError
from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.spine import run
from dpsynth.plan import plan as planning
from dpsynth.wings.proof.audit.replay import observe
from tests.guarantee.losses import excess_delta
from tests.guarantee.wild_tables import base_table, found_on, neighbours, privacy_of, spec_for, write

NARROW, WIDE = 2.0, 3.0
"""Epsilons so near to each other that the second tier's budget, not reduced, would be far too much."""
DELTA = 1e-3
FAR = 7.0
"""Standard deviations beyond which noise has less than 1e-11 of its probability."""


def coin_config(folder: Path, privacy: Mapping[str, object]) -> Spec:
    """One column of two values: a tier asks one marginal of it, and under add_remove the total."""
    table = folder / "coin.csv"
    table.write_text("coin\n" + "0\n1\n" * 20)
    return from_mapping(
        {
            "release": "coin",
            "source": {"path": str(table)},
            "privacy": {"on_empty": "go", **privacy},
            "audiences": {"public": {"epsilon": NARROW}, "partners": {"epsilon": WIDE}},
            "ledger": {"url": f"sqlite:///{folder}/ledger.db"},
            "structure": {"method": "independent"},
            "columns": {"coin": {"type": "category", "values": ["0", "1"], "missing": False}},
        }
    )


def published_events(folder: Path, audience: str) -> list[Any]:
    manifest = json.loads((folder / audience / "manifest.json").read_text())
    return [
        events.from_json({"mechanism": m["mechanism"], **m["parameters"]}) for m in manifest["mechanisms"]
    ]


def released(folder: Path, privacy: Mapping[str, object]) -> Path:
    return run(coin_config(folder, privacy), Request(folder / "out")).folder


def test_all_bundles_together_reach_the_largest_epsilon_and_none_exceeds_its_own(tmp_path: Path) -> None:
    """Laplace noise: the largest log ratio of a joint outcome is the sum of those of the answers."""
    folder = released(tmp_path, {"neighbours": "add_remove"})
    for audience, epsilon in (("public", NARROW), ("partners", WIDE)):
        asked = published_events(folder, audience)
        # One row more moves the total and one cell by 1 each, and the other cell not at all.
        joint = sum(1 / event.scale for event in asked)
        assert joint <= epsilon
        assert joint == pytest.approx(epsilon, rel=1e-9)
    assert len(published_events(folder, "partners")) == 2 * len(published_events(folder, "public")) == 4


def test_a_third_and_a_fourth_audience_reach_their_own_epsilon_and_none_exceeds_it(tmp_path: Path) -> None:
    epsilons = {"one": 0.5, "two": 1.25, "three": 1.5, "four": 4.0}
    audiences = {name: Audience(epsilon=epsilon) for name, epsilon in epsilons.items()}
    spec = coin_config(tmp_path, {"neighbours": "add_remove"}).model_copy(update={"audiences": audiences})
    folder = run(spec, Request(tmp_path / "out")).folder
    for place, (name, epsilon) in enumerate(epsilons.items(), 1):
        asked = published_events(folder, name)
        assert len(asked) == 2 * place
        joint = sum(1 / event.scale for event in asked)
        assert joint <= epsilon
        assert joint == pytest.approx(epsilon, rel=1e-9)


def gaussian_delta(scales: Sequence[float], epsilon: float) -> float:
    """The least delta at an epsilon of answers about two cells, of which a row's exchange moves both by 1.

    Every integer outcome of all answers is enumerated, and outcomes of the same log ratio are gathered.
    """
    one = other = np.zeros(1)
    for scale in scales:
        reach = np.arange(-int(FAR * scale) - 2, int(FAR * scale) + 3)
        weights = -(reach**2) / (2 * scale**2)
        weights -= np.log(np.exp(weights).sum())
        moved = np.full(reach.shape, -np.inf)
        moved[1:] = weights[:-1]
        for up in (moved, np.append(weights[1:], -np.inf)):
            one = (one[:, None] + weights).ravel()
            other = (other[:, None] + up).ravel()
        one, other = _by_loss(one, other)
    p, q = np.exp(one)[None], np.exp(other)[None]
    return max(excess_delta(p, q, epsilon), excess_delta(q, p, epsilon))


def _by_loss(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities with outcomes of the same log ratio gathered: the loss depends on the ratio alone."""
    ratio = np.round(np.where(np.isinf(other), np.inf, one - other), 9)
    found, place = np.unique(ratio, return_inverse=True)
    del found
    with np.errstate(divide="ignore"):
        gathered = [np.log(np.bincount(place, np.exp(logs))) for logs in (one, other)]
    return gathered[0], gathered[1]


GAUSSIAN = {"delta": DELTA, "neighbours": "replace_one"}


def test_each_audience_keeps_its_delta_by_enumeration_of_all_outcomes(tmp_path: Path) -> None:
    folder = released(tmp_path, GAUSSIAN)
    found = {}
    for audience, epsilon in (("public", NARROW), ("partners", WIDE)):
        scales = [event.sigma for event in published_events(folder, audience)]
        found[audience] = gaussian_delta(scales, epsilon)
        # Discrete noise counts as continuous noise of a variance that is 0.6 smaller, which leaves some.
        assert DELTA / 20 < found[audience] <= DELTA
    # Two releases of these epsilons by themselves would exceed the larger one's delta.
    apart = [*(event.sigma for event in published_events(folder, "public"))]
    apart.append(float(GDP.gaussian_sigma(1 / float(GDP.budget(Fraction(3), Fraction(DELTA))))))
    assert gaussian_delta(apart, WIDE) > DELTA


def test_a_second_tier_whose_budget_is_not_reduced_is_caught(tmp_path, monkeypatch) -> None:
    sound = planning.tiers_of

    def added_up(*arguments):
        first, second = sound(*arguments)
        return first, replace(second, budget=first.budget + second.budget)

    monkeypatch.setattr(planning, "tiers_of", added_up)
    with pytest.raises(DpsynthError, match="adds up to epsilon"):
        released(tmp_path, GAUSSIAN)


def test_a_first_tier_that_spends_what_is_kept_for_the_second_is_caught(tmp_path, monkeypatch) -> None:
    sound = Curator.keeping
    monkeypatch.setattr(Curator, "keeping", lambda self, kept: sound(self, Fraction(0)))
    with pytest.raises(DpsynthError, match="adds up to epsilon"):
        released(tmp_path, GAUSSIAN)


def test_tiers_of_any_epsilons_cost_the_largest(tmp_path: Path) -> None:
    folder = released(tmp_path, GAUSSIAN)
    for audience, epsilon in (("public", NARROW), ("partners", WIDE)):
        amount = amount_of(published_events(folder, audience), GDP, Fraction(DELTA))
        assert epsilon * 0.999 < amount.epsilon <= epsilon


def with_audiences(spec: Spec) -> Spec:
    """The config with an audience of a quarter of its epsilon besides."""
    epsilon = spec.privacy.epsilon
    return spec.model_copy(
        update={"audiences": {"public": Audience(epsilon=epsilon / 4), "partners": Audience(epsilon=epsilon)}}
    )


KINDS = list(product(("add_remove", "replace_one"), ("row", "person"), ("gaussian", "laplace")))


@pytest.mark.parametrize(
    ("relation", "unit", "noise", "tries"),
    [
        ("add_remove", "person", "gaussian", 2),
        *(pytest.param(*kind, 12, marks=pytest.mark.slow) for kind in KINDS),
    ],
)
def test_a_neighbour_changes_no_question_of_any_tier(
    tmp_path: Path, relation: str, unit: str, noise: str, tries: int
) -> None:
    rng = random.Random(f"{relation}{unit}{noise}")
    rows = base_table(rng)
    spec = with_audiences(spec_for(write(tmp_path / "x.csv", rows), privacy_of(relation, unit, noise)))
    record = observe(spec, tmp_path / "out")
    assert [a.question["ask"] for a in record.asked].count("exam") == 2
    changed = islice(neighbours(rows, relation, unit, rng), tries)
    assert list(found_on(tmp_path, spec, record, changed)) == []
