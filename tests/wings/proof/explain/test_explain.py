"""Explanations say what follows from parameters, of mechanisms, plans and manifests alike."""

import json
from fractions import Fraction
from math import exp, log
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpsynth.accounting.amount import Amount
from dpsynth.cli.app import app
from dpsynth.errors import ConfigError
from dpsynth.figures import guess_percent
from dpsynth.wings.proof.accountants.advanced import advanced_epsilon, largest_each, textbook_epsilon
from dpsynth.wings.proof.explain import Question, facts, in_words, page, subject
from dpsynth.wings.proof.explain.subjects import MECHANISMS
from tests.thinned import some

CONFIG = """\
source: {path: people.csv}
privacy: {epsilon: 1.0, delta: 1.0e-6}
ledger: {dataset: people, cap: {epsilon: 10, delta: 1.0e-5}}
columns:
  age: {type: integer, min: 0, max: 89}
  sex: {type: category, values: ["<script>", M]}
"""
EXAMPLES = {
    "laplace": "laplace(scale=2, sensitivity=1)",
    "gaussian": "gaussian(sigma=2, sensitivity=1)",
    "exponential": "exponential(epsilon=0.5)",
    "randomized_response": "randomized_response(gamma=0.25)",
    "two_coins": "two_coins()",
    "pure": "pure(epsilon=1/801)",
    "approximate": "approximate(epsilon=1, delta=1e-6)",
    "zcdp": "zcdp(rho=0.05)",
    "gdp": "gdp(mu=0.5)",
}


def explained(text, **question):
    return facts(subject(text), Question(**question))


def test_every_mechanism_has_an_example_here():
    assert set(EXAMPLES) == set(MECHANISMS)


@pytest.mark.parametrize("text", some(EXAMPLES.values(), 4), ids=EXAMPLES)
def test_each_mechanism_is_told_in_words_as_json_and_on_a_page(text):
    about = subject(text)
    told = facts(about, Question(times=3, harm=100.0, cap=Amount(Fraction(10), Fraction(1, 10**5))))
    json.dumps(told, allow_nan=False)
    assert "\n".join(in_words(told))
    html = page(about, told)
    assert "nan" not in html.replace("finance", "")
    assert "<script" not in html
    assert html.count("<svg") == 3


def test_two_coins_are_warner_with_a_quarter_and_epsilon_ln_three():
    a, b = explained("two_coins()"), explained("randomized_response(gamma=0.25)")
    assert a["divergences"] == b["divergences"]
    assert a["divergences"]["max_divergence_nats"] == pytest.approx(log(3), abs=1e-12)
    assert a["attacker"]["right_at_most"] == pytest.approx(0.75, abs=1e-12)


def test_example_3_7_of_dwork_and_roth_both_ways():
    """10 000 answers at delta e^-32: 1/801 each comes to 1.0143, and 1 allows about 1/812.3 each."""
    delta = Fraction(exp(-32))
    assert float(textbook_epsilon(Fraction(1, 801), 10_000, delta)) == pytest.approx(1.0143, abs=5e-5)
    told = explained("pure(epsilon=1/801)", times=10_000, delta=delta, within=Fraction(1))
    assert told["together"]["textbook_epsilon"] == pytest.approx(1.0143, abs=5e-5)
    assert 1 / told["each_within"]["textbook"] == pytest.approx(812.3, abs=0.05)
    assert told["each_within"]["advanced"] > told["each_within"]["textbook"]


@pytest.mark.parametrize("times", [1, 7, 300])
def test_the_largest_epsilon_of_each_keeps_to_the_total_and_uses_it_up(times):
    delta = Fraction(1, 10**6)

    def spent(each):
        return advanced_epsilon([Amount(each)] * times, delta)

    each = largest_each(Fraction(2), times, spent)
    assert spent(each) <= 2
    assert spent(each * (1 + Fraction(1, 10**8))) > 2


def test_harm_grows_by_at_most_e_to_the_epsilon_and_by_less_where_a_test_can_tell_less():
    told = explained("pure(epsilon=0.5)", harm=1000.0, risk=0.01)["harm"]
    assert told["cost_without"] == 10.0
    assert told["cost_with_at_most"] == pytest.approx(10 * exp(0.5), rel=1e-9)
    likely = explained("pure(epsilon=0.5)", harm=1000.0, risk=0.9)["harm"]
    assert likely["risk_with_at_most"] == pytest.approx(1 - 0.1 * exp(-0.5), rel=1e-9)
    assert likely["risk_with_by_max_divergence"] == 1.0


def test_a_cap_holds_as_many_as_each_measure_lets_through():
    found = explained("pure(epsilon=0.5)", cap=Amount(Fraction(10), Fraction(0)))["cap"]
    assert found["releases"]["sequential"] == 20
    gaussian = explained("gdp(mu=0.5)", cap=Amount(Fraction(10), Fraction(1, 10**6)))["cap"]
    assert gaussian["releases"]["sequential"] < gaussian["releases"]["zcdp"] < gaussian["releases"]["gdp"]


def test_a_plan_and_its_manifest_are_the_same_guarantee(tmp_path):
    path = tmp_path / "people.yaml"
    path.write_text(CONFIG)
    planned = explained(str(path))
    right = planned["attacker"]["right_at_most"]
    assert 0.5 < right < 1 / (1 + exp(-1)) + 1e-6
    of_plan = subject(str(path)).guarantee
    # One figure for one thing: the explanation begins with that of plan and report.
    shown = f"{guess_percent(of_plan.epsilon, of_plan.delta)} %"
    assert f"at most {shown}, as plan and report say" in " ".join(in_words(planned))
    assert shown in page(subject(str(path)), planned)
    manifest = {"release": "people", "release_id": "x", "guarantee": {**vars(of_plan), "in_words": []}}
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "manifest.json").write_text(json.dumps(manifest))
    for place in (tmp_path, tmp_path / "public", tmp_path / "public" / "manifest.json"):
        again = explained(str(place))
        assert {k: again[k] for k in ("divergences", "attacker", "odds", "groups")} == {
            k: planned[k] for k in ("divergences", "attacker", "odds", "groups")
        }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("laplas(scale=2)", "no mechanism 'laplas'"),
        ("laplace(scale=2)", "parameters of laplace are"),
        ("laplace(scale=x, sensitivity=1)", "'scale=x' is no parameter"),
        ("laplace(scale=1e999, sensitivity=1)", "no number that can be used"),
        ("laplace(scale=0, sensitivity=1)", "scale of laplace must be between"),
        ("pure(epsilon=1/0)", "no number that can be used"),
        ("pure(epsilon=1000)", "epsilon of pure must be between"),
        ("randomized_response(gamma=0.5)", "gamma of randomized_response must be above 0 and below 1/2"),
        ("nowhere.yaml", "is no file and no mechanism"),
    ],
)
def test_a_subject_that_is_none_is_refused_with_the_ways_to_name_one(text, said):
    with pytest.raises(ConfigError, match=said.replace("(", r"\(")):
        subject(text)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"guarantee": {"epsilon": "x"}}', "\xff"])
def test_a_file_that_is_no_manifest_is_refused(tmp_path, content):
    path = tmp_path / "manifest.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigError, match="is no manifest of a release"):
        subject(str(path))


def test_the_command_prints_writes_a_page_and_refuses_in_one_paragraph(tmp_path):
    run = CliRunner().invoke
    file = tmp_path / "page.html"
    result = run(app, ["explain", "gdp(mu=0.5)", "--page", str(file)])
    assert result.exit_code == 0, result.output
    assert result.output.rstrip().endswith(str(file))
    assert "What can be found out about one unit" in file.read_text()
    told = json.loads(run(app, ["explain", "gdp(mu=0.5)", "--json"]).output)
    assert told["subject"] == "gdp(mu=0.5)"
    for options in (
        ["--risk", "0"],
        ["--delta", "1"],
        ["--within", "x"],
        ["--cap-epsilon", "3"],
        ["--harm", "-1"],
        ["--page", str(Path(tmp_path, "no", "page.html"))],
    ):
        failed = run(app, ["explain", "gdp(mu=0.5)", *options])
        assert isinstance(failed.exception, ConfigError), options
