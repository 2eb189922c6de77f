"""A bundle is attacked by its public folder alone, with the noise that its manifest states."""

import numpy as np
import pytest

from dpsynth.bundle.recipient import open_bundle
from dpsynth.errors import ConfigError, DpsynthError
from dpsynth.wings.proof.attacks import Choice, play, world_of


def world(made, **choice):
    return world_of(made.public, Choice(rows=300, **choice), np.random.default_rng(1))


def test_the_world_of_a_bundle_is_sampled_and_has_the_noise_of_its_manifest(made):
    found = world(made)
    assert not found.made_up and found.rows == 300 and found.unit_rows == 1
    events = [e for e in open_bundle(made.public).manifest["mechanisms"] if e["question"] == "marginal"]
    stated = sorted((tuple(e["columns"]), e["scale"]) for e in events)
    assert sorted((c.clique, c.scale) for c in found.counted if c.clique) == stated
    for name, codes in found.codes.items():
        assert codes.min() >= 0 and codes.max() < found.columns[name].size


def test_roles_are_those_of_the_published_view_or_as_chosen(made):
    found = world(made)
    assert found.quasi_identifiers == ("age", "sex", "city") and found.sensitive == "=pay ü" and found.k == 5
    chosen = world(made, quasi_identifiers=("sex", "smoker"), sensitive="age", k=9)
    assert (chosen.quasi_identifiers, chosen.sensitive, chosen.k) == (("sex", "smoker"), "age", 9)
    assert [h.column for h in chosen.hierarchies] == ["sex", "smoker"]


def test_groups_of_the_world_are_k_anonymous(made):
    group, kept = world(made, k=7).groups()
    assert kept.any() and np.bincount(group[kept]).max() >= 7
    sizes = np.bincount(group[kept])
    assert sizes[sizes > 0].min() >= 7


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"sensitive": "nobody"}, "nobody is no column of the release"),
        ({"quasi_identifiers": ("sex",), "sensitive": "sex"}, "--sensitive and --quasi-identifiers"),
    ],
)
def test_roles_that_no_column_has_are_refused(made, choice, words):
    with pytest.raises(ConfigError, match=words):
        world(made, **choice)


def test_a_folder_that_is_no_bundle_is_refused(tmp_path):
    with pytest.raises(DpsynthError, match="is no bundle"):
        world_of(tmp_path, Choice(), np.random.default_rng(0))


def test_the_games_on_a_bundle_are_played(made):
    (one,) = play(world(made), ["background"], 200, np.random.default_rng(2))
    assert one.successes[0].rate == 1.0 and one.successes[-1].rate < 0.9
