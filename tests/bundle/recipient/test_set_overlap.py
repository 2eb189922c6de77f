"""Questions whose sets overlap with earlier ones are withheld where the owner says so, and only there."""

from math import isnan

import pytest

from dpsynth.bundle.recipient import open_bundle
from dpsynth.bundle.recipient.query import Asked, default_memory
from dpsynth.errors import ConfigError


@pytest.fixture
def bundle(made, monkeypatch):
    opened = open_bundle(made.public)
    monkeypatch.setitem(vars(opened.facts), "minimum_set_size", None)
    monkeypatch.setitem(vars(opened.facts), "maximum_set_overlap", 5)
    return opened


def bases(answer):
    return [row.basis == "withheld" for row in answer.rows]


def test_a_set_that_differs_a_little_from_an_earlier_one_is_withheld(bundle):
    assert bases(bundle.query("mean(`=pay ü`) where age >= 40")) == [False]
    assert bases(bundle.query("mean(`=pay ü`) where age >= 40 and sex == 'F'")) == [True]
    withheld = bundle.query("count where age >= 30")
    assert bases(withheld) == [True] and isnan(withheld.rows[0].estimate.value)
    assert withheld.to_json()["maximum_set_overlap"] == 5


def test_the_same_set_and_a_set_apart_are_answered(bundle):
    assert bases(bundle.query("count where age >= 40")) == [False]
    assert bases(bundle.query("mean(age) where age >= 40")) == [False]
    assert bases(bundle.query("count where age < 40")) == [False]


def test_groups_of_one_question_are_sets_of_their_own(bundle):
    assert not any(bases(bundle.query("count by sex")))
    assert not any(bases(bundle.query("mean(age) by sex")))
    assert bases(bundle.query("count where sex == 'F'")) == [False]
    assert all(bases(bundle.query("count by smoker")))


def test_without_the_rule_nothing_is_withheld(bundle, monkeypatch):
    monkeypatch.setitem(vars(bundle.facts), "maximum_set_overlap", None)
    assert bases(bundle.query("count where age >= 40")) == [False]
    answer = bundle.query("count where age >= 30")
    assert bases(answer) == [False] and answer.maximum_set_overlap is None


def test_questions_are_remembered_in_a_file(bundle, tmp_path, monkeypatch):
    path = tmp_path / "asked" / "questions.txt"
    assert bases(bundle.query("count where age >= 40", Asked(path))) == [False]
    assert bases(bundle.query("count where age >= 30", Asked(path))) == [True]
    assert bases(bundle.query("count where age < 40", Asked(path))) == [False]
    assert path.read_text().splitlines() == ["count where age >= 40", "count where age < 40"]
    path.write_text("no question\n" + path.read_text())
    assert bases(bundle.query("count where age >= 30", Asked(path))) == [True]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_memory(bundle).parent == tmp_path / "dpsynth" / "questions"


def test_a_file_that_cannot_be_used_is_an_error(bundle, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="can't be written"):
        bundle.query("count where age >= 40", Asked(tmp_path / "file" / "questions.txt"))
