"""Acceptance criteria: refused where they can't be had, judged with the odds stated, and heeded.

The errors that are judged here are known, so false words can be counted.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpsynth
from dpsynth.accounting.calibration import noise_variance
from dpsynth.bundle.manifest import MANIFEST
from dpsynth.bundle.recipient.verification import verified
from dpsynth.bundle.row_files import restore
from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.column import Column, domain_of
from dpsynth.columns.domain import Domain
from dpsynth.columns.finished_table import CodedRows, FinishedTable
from dpsynth.columns.measurement import Classified, Examined, NoisyDistances
from dpsynth.columns.statistic_kinds import Mean
from dpsynth.config import compiled, from_mapping
from dpsynth.errors import ConfigError, Paused
from dpsynth.pipeline.forecast import forecast, plans_of
from dpsynth.pipeline.rehearsal import rehearse
from dpsynth.pipeline.result import Release
from dpsynth.statistics.exam import Basis, Exam
from dpsynth.statistics.verdict import NO_VERDICT, Finished, Judgement, Verdict
from dpsynth.wings.governance.acceptance import training
from dpsynth.wings.governance.acceptance.judging import _limits, _limits_of_mean, deviations, judged
from dpsynth.wings.governance.acceptance.training import trained
from tests.bundle.recipient.conftest import COLUMNS, table
from tests.bundle.recipient.test_verify import sealed
from tests.examples import cases
from tests.thinned import thinned

DOMAIN = Domain({"a": 2, "b": 3, "c": 4, "d": 5})
PAIRS = tuple(combinations(DOMAIN.columns, 2))
ROWS = 1000
SCALE = 40.0


def finished(
    distances: np.ndarray | None = None,
    noise: str = "gaussian",
    verdict: Verdict = NO_VERDICT,
    figures: Mapping[str, list[object]] | None = None,
    codes: Mapping[str, list[int]] | None = None,
    guesses: Sequence[Classified] = (),
) -> Finished:
    """The facts of a release whose exam has the distances of all pairs, in order, and then of c."""
    examined = [*(Examined("pair", pair) for pair in PAIRS), Examined("criterion", ("c",))]
    noisy = None if distances is None else NoisyDistances((*PAIRS, ("c",)), distances, noise, SCALE)
    pieces = [{name: np.array(found, np.uint8)[part] for name, found in (codes or {}).items()}
              for part in (slice(0, 3), slice(3, None))]  # fmt: skip
    return Finished(
        verdict,
        Exam(examined, noisy, ROWS, DOMAIN, Basis([]), tuple(guesses)),
        DOMAIN,
        (Mean(mean="d", by=("a",)),),
        [pd.DataFrame(figures or {})],
        lambda: iter(pieces),
    )


def outcome(facts: Finished, **criterion: object) -> str:
    (found,) = judged([criterion], facts)
    return found.outcome


@pytest.mark.parametrize(
    ("noise", "confidence", "of"), thinned(["gaussian", "laplace"], [0.95, 0.7], [["b", "a"], "pairs"])
)
def test_a_false_word_is_as_rare_as_is_said_and_no_rarer_than_it_need_be(noise, confidence, of):
    rng, runs = np.random.default_rng(5), 2000
    sd = sqrt(noise_variance(noise, SCALE))
    true, said = 600, {"met": 0, "not met": 0}
    for _ in range(runs):
        drawn = rng.normal(0, SCALE, 7) if noise == "gaussian" else rng.laplace(0, SCALE, 7)
        facts = finished(np.floor(true + drawn).astype(np.int64), noise)
        # The error is 600 of 2 000: just above what is allowed, and just below.
        said["met"] += outcome(facts, error_of=of, at_most=0.2999, confidence=confidence) == "met"
        said["not met"] += outcome(facts, error_of=of, at_most=0.3, confidence=confidence) == "not met"
    assert noise == "gaussian" or sd == pytest.approx(sqrt(2) * SCALE, rel=0.01)
    allowed = (1 - confidence) * runs
    spread = 4 * sqrt(allowed)
    for word, times in said.items():
        assert times < allowed + spread, (word, times)
        # With half of the noise, or with two-sided limits, half as many or fewer would be.
        assert times > 0.75 * allowed - spread, (word, times)


GUESSES = np.array([[150, 700], [90, 60], [0, 0]])
"""Rows of three values that are guessed wrong, and right: 76 % of all; 82, 40 and 0 % of each."""
SCORES = {
    "accuracy": (760 / 1000, GUESSES),
    "balanced_accuracy": ((700 / 850 + 60 / 150) / 2, GUESSES[:2]),
}


def counted(target: str, aim: str, values: np.ndarray, noise: str, scale: float) -> Classified:
    wrong, right = map(tuple, values.T.tolist())
    return Classified(target, aim, wrong, right, noise, scale)


def guessed(values: np.ndarray, noise: str, score: str, scale: float) -> Finished:
    return finished(guesses=[counted("c", score.replace("_", " "), values, noise, scale)])


@pytest.mark.parametrize(
    ("noise", "confidence", "score", "scale"),
    # The first case is always tried: there limits by half of the noise of a mean would be seen. So is one of
    # accuracy with the largest noise, where limits by half of the noise would be.
    thinned(
        ["gaussian", "laplace"],
        [0.95, 0.7],
        [*reversed(SCORES)],
        [4.0, 0.4, 40.0],
        by=lambda *case: (*case[:3], case[3] if case[2] == "accuracy" else 4.0),
        strength=1,
    ),
)
def test_a_false_word_on_a_classifier_is_as_rare_as_is_said(noise, confidence, score, scale):
    # Half of the noise of a mean would not be seen in fewer runs than 700.
    rng, runs = np.random.default_rng(6), cases(700, part=1 if scale == 4.0 else 2)
    (true, exact), said = SCORES[score], {"met": 0, "not met": 0}
    for _ in range(runs):
        drawn = (
            rng.normal(0, scale, exact.shape) if noise == "gaussian" else rng.laplace(0, scale, exact.shape)
        )
        facts = guessed(np.rint(exact + drawn).astype(np.int64), noise, score, scale)
        asked = {"classifier": "c", "score": score, "confidence": confidence}
        said["met"] += outcome(facts, at_least=true + 1e-6, **asked) == "met"
        said["not met"] += outcome(facts, at_least=true - 1e-6, **asked) == "not met"
    allowed = (1 - confidence) * runs
    for word, times in said.items():
        # Seeded draws are those of this file, whatever the product does.
        assert times < allowed + 3 * sqrt(allowed), (word, times)
        # The mean over values has limits for each besides, so it is surer than it has to be.
        if scale == {"accuracy": 40.0, "balanced_accuracy": 4.0}[score]:
            least = 0.6 if score == "accuracy" else 0.3
            assert times > least * allowed - 4 * sqrt(allowed), (word, times)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize(("each", "narrower"), [(1000, 0.3), (150, 1.0)])
def test_limits_of_a_mean_are_those_of_the_narrower_way(noise, each, narrower):
    values = np.array([[3 * each // 10, 7 * each // 10]] * 20)
    wide = deviations(noise, 0.05 / 20) * 10.0
    low, high = _limits_of_mean(values, noise, 10.0, 0.05, 20 * each)
    by_each = _limits(values[:1], wide)
    assert by_each[0] <= low < 0.7 < high <= by_each[1]
    assert high - low <= narrower * (by_each[1] - by_each[0]) + 1e-9
    # The way is chosen by another count, and not by the noise of these.
    assert _limits_of_mean(values, noise, 10.0, 0.05, 60) == pytest.approx(by_each)


@pytest.mark.parametrize(
    "weights", [[1], [1] * 2, [1] * 8, [0.2, 0.8], [0.02, 0.98], [0.05, 0.05, 0.95, 0.95]]
)
def test_no_sum_of_laplace_noises_exceeds_its_reach_more_often_than_is_said(weights):
    """By the characteristic function of the sum, scaled to variance 1."""
    step = 0.004
    at = np.arange(-40, 40, step)
    waves = 2 * np.pi * np.fft.fftfreq(len(at), step)
    parts = np.array(weights) / sqrt(sum(w * w for w in weights))
    density = np.fft.ifft(np.prod([1 / (1 + (w * waves) ** 2 / 2) for w in parts], axis=0)).real
    above = 1 - np.cumsum(np.roll(density, len(at) // 2))
    for beyond in (0.5, 0.3, 0.1, 0.05, 0.02, 0.01, 0.001):
        assert np.interp(deviations("laplace", beyond), at, above) <= 1.01 * beyond


def test_a_classifier_is_told_where_it_is_far_off_and_not_where_noise_hides_it():
    facts = guessed(GUESSES, "gaussian", "accuracy", 5.0)
    (met,) = judged([{"classifier": "c", "at_least": 0.7}], facts)
    assert (met.outcome, met.odds) == ("met", pytest.approx(0.05))
    assert met.why.startswith("It is 74 % at least") or met.why.startswith("It is 75 % at least")
    assert met.why.endswith("The most frequent value alone would be right for about 85 %.")
    assert outcome(facts, classifier="c", at_least=0.9) == "not met"
    assert outcome(facts, classifier="c", at_least=0.76) == "can't be told"
    # Neither another score nor another column was asked about.
    for other in ({"classifier": "c", "score": "balanced_accuracy"}, {"classifier": "d"}):
        (lost,) = judged([{**other, "at_least": 0.1}], facts)
        assert (lost.outcome, lost.odds) == ("can't be told", 0) and "lost" in lost.why
    for empty in (np.zeros((3, 2), np.int64), -GUESSES):
        for score in SCORES:
            nothing = guessed(empty, "laplace", score, 5.0)
            for least in (0.01, 0.99):
                assert outcome(nothing, classifier="c", score=score, at_least=least) == "can't be told"
    assert outcome(finished(), classifier="c", at_least=0.1) == "can't be told"


def test_what_is_far_off_is_told_and_what_is_near_is_not():
    facts = finished(np.array([600, 900, 20, 500, 500, 500, 60]))
    assert outcome(facts, error_of=["a", "b"], at_most=0.4) == "met"
    assert outcome(facts, error_of=["c", "a"], at_most=0.4) == "not met"
    assert outcome(facts, error_of=["a", "d"], at_most=0.02) == "can't be told"
    assert outcome(facts, error_of="c", at_most=0.1) == "met"
    assert outcome(facts, error_of="pairs", at_most=0.3) == "met"
    assert outcome(finished(), error_of="pairs", at_most=0.3) == "can't be told"


def test_shares_in_use_are_those_of_the_verdict():
    columns = tuple(Judgement((name,), "use" if name < "d" else "with care", "") for name in DOMAIN.columns)
    pairs = tuple(Judgement(pair, "use" if pair[0] == "a" else "don't use", "") for pair in PAIRS)
    facts = finished(verdict=Verdict(columns, pairs))
    assert outcome(facts, in_use="columns", at_least=0.75) == "met"
    assert outcome(facts, in_use="columns", at_least=0.76) == "not met"
    assert outcome(facts, in_use="pairs", at_least=0.5) == "met"
    assert outcome(facts, in_use="pairs", at_least=0.51) == "not met"
    assert outcome(finished(), in_use="pairs", at_least=0) == "not met"


FIGURES = {
    "a": ["x", "y"],
    "estimate": [100.0, -50.0],
    "low": [95.0, -54.0],
    "high": [104.0, -49.0],
    "grouping_error": [1.0, 0.0],
    "limits": ["95 %", "95 %"],
}


@pytest.mark.parametrize(
    ("changes", "within", "expected"),
    [
        ({}, 0.081, "met"),
        # The lower limit of -50 is 4 off, 8 %.
        ({}, 0.079, "can't be told"),
        ({"grouping_error": [4.0, 0.0]}, 0.081, "can't be told"),
        ({"limits": ["95 %", "noise only"]}, 1, "can't be told"),
        ({"low": [95.0, None]}, 1, "can't be told"),
        ({"estimate": [100.0, 0.0]}, 10, "can't be told"),
    ],
)
def test_a_table_of_figures_is_met_if_the_limits_of_all_lie_within(changes, within, expected):
    facts = finished(figures={**FIGURES, **changes})
    assert outcome(facts, statistic={"mean": "d", "by": ["a"]}, within=within) == expected


def test_rows_that_are_alone_with_their_values_are_counted_over_all_pieces():
    codes = {"a": [0, 0, 1, 1, 0, 1], "b": [2, 2, 0, 1, 1, 0], "c": [0] * 6, "d": [4] * 6}
    facts = finished(codes=codes)
    # (1, 1) and (0, 1) of a and b occur once; (1, 0) occurs once in each piece.
    assert outcome(facts, unique_in=["a", "b"], at_most=0.34) == "met"
    assert outcome(facts, unique_in=["a", "b"], at_most=0.33) == "not met"
    assert outcome(facts, unique_in=["d"], at_most=0) == "met"


def config(folder: Path, accept: object, **changes: object) -> dict[str, object]:
    return {
        "release": "people",
        "source": {"path": str(table(folder / "people.csv"))},
        "privacy": {"epsilon": 3.0, "delta": 1e-6, "on_empty": "go"},
        "ledger": {"url": f"sqlite:///{folder}/ledger.db"},
        "columns": COLUMNS,
        "publish": {"statistics": [{"mean": "age", "by": "sex"}, {"crosstab": ["sex", "city"]}]},
        "accept": accept,
    } | changes


@pytest.mark.parametrize(
    ("criterion", "changes", "words"),
    [
        ({"error_of": "pair", "at_most": 0.1}, {}, "criteria[0].error_of names 'pair', which is no column"),
        (
            {"error_of": ["age", "agee"], "at_most": 0.1},
            {},
            "is counted (did you mean 'age'?)",
        ),
        ({"error_of": ["age", "id"], "at_most": 0.1}, {}, "names 'id', which is no column that is counted"),
        ({"error_of": ["age", "age"], "at_most": 0.1}, {}, "error_of[1] repeats 'age'"),
        ({"error_of": [], "at_most": 0.1}, {}, "must be the word pairs, a column, or a list of columns"),
        ({"error_of": "age", "at_most": 1.1}, {}, "at_most must be"),
        ({"error_of": "age", "at_most": 0.1, "confidence": 0.4}, {}, "confidence must be"),
        ({"error_of": "age"}, {}, "at_most is missing"),
        (
            {"error_off": "age"},
            {},
            "must have one of the keys error_of, classifier, in_use, statistic",
        ),
        ({"classifier": "smokes", "at_least": 0.5}, {}, "names 'smokes', which is no column that is counted"),
        ({"classifier": ["smoker"], "at_least": 0.5}, {}, "classifier must be"),
        (
            {"classifier": "age", "at_least": 0.5},
            {"columns": {**COLUMNS, "age": {"type": "integer", "min": 0, "max": 89, "bins": 60}}},
            "names a column that has not from two to 50 values",
        ),
        ({"classifier": "sex"}, {}, "at_least is missing"),
        ({"classifier": "sex", "score": "auc", "at_least": 0.5}, {}, "must be accuracy or balanced_accuracy"),
        (
            {"classifier": "sex", "at_least": 0.5},
            {"privacy": {"epsilon": 3.0, "delta": 1e-6, "split": {"exam": 0}}},
            "classifier needs the exam, which asks the private table",
        ),
        ({"in_use": "pair", "at_least": 0.5}, {}, "must be columns or pairs"),
        ({"statistic": {"mean": "age"}, "within": 0.1}, {}, "list the same table under publish.statistics"),
        (
            {"unique_in": list(COLUMNS)[1:7], "at_most": 0.1, "x": 1},
            {},
            "criteria[0].x is not a known key; the keys",
        ),
        (
            {"error_of": "age", "at_most": 0.1},
            {"privacy": {"epsilon": 3.0, "delta": 1e-6, "split": {"exam": 0}}},
            "needs the exam, which asks the private table: privacy.split.exam must not be 0",
        ),
        (
            {"error_of": "age", "at_most": 0.1},
            {"privacy": {"epsilon": 3.0, "delta": 1e-6, "sample_rate": 0.5}},
            "needs the exam, which there is not with privacy.sample_rate",
        ),
    ],
)
def test_criteria_that_can_not_be_had_are_refused_before_anything_is_charged(
    tmp_path, criterion, changes, words
):
    with pytest.raises(ConfigError) as refusal:
        from_mapping(config(tmp_path, {"criteria": [criterion]}, **changes))
    assert words in str(refusal.value), str(refusal.value)


def test_only_what_is_measured_for_criteria_is_another_question(tmp_path):
    def facts(accept: object) -> tuple[str, str, list[tuple[str, ...]]]:
        made = compiled(from_mapping(config(tmp_path, accept)))
        named = [e.clique for e in plans_of(made)[0].exam if e.kind == "criterion"]
        return made.fingerprint, made.whole_fingerprint, named

    without = facts(None)
    asked = {"criteria": [{"in_use": "pairs", "at_least": 0.5}, {"error_of": "pairs", "at_most": 0.1}]}
    free = facts(asked)
    assert free[0] == without[0] and free[1] != without[1] and free[2] == []
    assert facts({**asked, "on_fail": "publish"}) == free
    guesses = [{"classifier": "sex", "at_least": least} for least in (0.1, 0.2)]
    one, other = (facts({"criteria": [guess]}) for guess in guesses)
    assert one[0] == other[0] != without[0] and one[1] != other[1] and one[2] == []
    assert facts({"criteria": [{**guesses[0], "score": "balanced_accuracy"}]})[0] not in (one[0], without[0])
    sets = [{"error_of": c, "at_most": 0.1} for c in (["sex"], ["city", "age"], ["smoker", "sex", "age"])]
    more = facts({"criteria": sets})
    assert more[0] != without[0] and more[2] == [("sex",), ("age", "sex", "smoker")]


CRITERIA = [
    {"error_of": "pairs", "at_most": 0.9},
    {"error_of": ["smoker", "sex", "age"], "at_most": 0.9, "confidence": 0.99},
    {"in_use": "columns", "at_least": 0},
    {"statistic": {"mean": "age", "by": "sex"}, "within": 5},
    {"unique_in": ["age", "sex"], "at_most": 0.5},
    {"unique_in": ["sex"], "at_most": 0},
    {"classifier": "smoker", "at_least": 0.01, "confidence": 0.9},
    {"classifier": "sex", "score": "balanced_accuracy", "at_least": 0.01},
    {"error_of": "sex", "at_most": 0, "confidence": 0.999999},
]


def coded(rows: int, pieces: int, seed: int = 1) -> FinishedTable:
    """Rows of a column of three values that follows from two others, of which one value is never drawn."""
    rng = np.random.default_rng(seed)
    codes = {"x": rng.integers(0, 5, rows), "y": rng.integers(0, 4, rows)}
    codes["z"] = np.where(codes["x"] >= 3, 1, np.where(rng.random(rows) < 0.1, 3, 0))
    whole = CodedRows()
    for part in np.array_split(np.arange(rows), pieces):
        whole.add({name: own[part].astype(np.uint8) for name, own in codes.items()})
    return FinishedTable(whole, rows)


THREE = [
    Column("x", CategoryCodec(tuple("abcd"))),
    Column("y", CategoryCodec(tuple("abc"))),
    Column("z", CategoryCodec(("no", "yes", "never"))),
]


@pytest.mark.parametrize("aim", ["accuracy", "balanced accuracy"])
def test_a_classifier_learns_what_the_rows_say_and_is_the_same_however_they_are_cut(monkeypatch, aim):
    rule = trained(coded(3000, 1), THREE, "z", aim)
    assert rule.fits(domain_of(THREE)) and rule.classes == 3
    others = coded(1000, 1, seed=2).coded.whole()
    known = others["z"] < 3
    assert rule.right(others)[known].all() and not rule.right(others)[~known].any()
    assert trained(coded(3000, 7), THREE, "z", aim).sha256 == rule.sha256
    assert trained(coded(3000, 1, seed=3), THREE, "z", aim).sha256 != rule.sha256
    # A value that no synthetic row has is never guessed.
    every = {"x": np.repeat(np.arange(5), 4), "y": np.tile(np.arange(4), 5)}
    assert not rule.right({**every, "z": np.full(20, 2)}).any()
    monkeypatch.setattr(training, "MOST_TRAINED", 500)
    few = trained(coded(3000, 7), THREE, "z", aim)
    assert few.sha256 != rule.sha256 and few.right(others)[known].mean() > 0.95


def test_a_classifier_of_one_value_guesses_that_and_one_of_no_rows_guesses_something():
    rows = CodedRows()
    rows.add({"x": np.arange(4, dtype=np.uint8), "y": np.zeros(4, np.uint8), "z": np.full(4, 1, np.uint8)})
    every = {name: np.arange(3) for name in "xyz"}
    assert trained(FinishedTable(rows, 4), THREE, "z", "accuracy").right(every).tolist() == [0, 1, 0]
    none = trained(FinishedTable(CodedRows(), 1), THREE, "z", "balanced accuracy")
    assert none.right(every).tolist() == [1, 0, 0]


def test_a_classifier_that_counts_all_values_alike_guesses_the_rare_one():
    rng = np.random.default_rng(4)
    x = rng.integers(0, 2, 4000)
    rows = CodedRows()
    z = (rng.random(4000) < np.where(x == 1, 0.3, 0.05)).astype(np.uint8)
    rows.add({"x": x.astype(np.uint8), "y": np.zeros(4000, np.uint8), "z": z})
    for aim, rare in (("accuracy", 0), ("balanced accuracy", 1)):
        rule = trained(FinishedTable(rows, 4000), THREE, "z", aim)
        assert rule.right({"x": np.array([1]), "y": np.array([0]), "z": np.array([1])}).tolist() == [rare]


def read_texts(path: Path) -> dict[str, pa.StringArray]:
    found = pd.read_csv(path, dtype=str, keep_default_na=False)
    # Names and cells that begin like a formula have a mark before them.
    names = restore(pa.array(found.columns, pa.string())).to_pylist()
    return {n: restore(pa.array(found[c], pa.string())) for n, c in zip(names, found, strict=True)}


def released(folder: Path, on_fail: str, criteria: object, told: list[str] | None = None) -> Release:
    spec = from_mapping(config(folder, {"criteria": criteria, "on_fail": on_fail}))
    return dpsynth.release(spec, outputs=folder / "outputs", tell=(told if told is not None else []).append)


def test_a_release_that_is_published_says_in_its_first_lines_which_criteria_it_meets(tmp_path):
    told: list[str] = []
    made = released(tmp_path, "publish", CRITERIA, told)
    (public,) = tmp_path.glob("outputs/people/*/public")
    stated = json.loads((public / MANIFEST).read_text())["verdict"]
    outcomes = [one["outcome"] for one in stated["criteria"]]
    # An error of 0 is told to be met by noise alone, one time in a million.
    assert outcomes == ["met"] * 8 + ["can't be told"]
    odds = [one["odds"] for one in stated["criteria"]]
    assert odds == pytest.approx([0.05, 0.01, 0, 0.05, 0, 0, 0.1, 0.05, 1e-6])
    line = "Criteria: 8 met, 0 not met, 1 can't be told."
    assert stated["in_words"][1] == line == made.verdict.lines[1]
    failed = "Can't be told: At most 0.0 % of the rows are off in sex."
    assert stated["in_words"][2].startswith(failed) and any(words.startswith(failed) for words in told)
    assert line in (public / "README.md").read_text()
    report = (public / "report.html").read_text()
    assert all(one["words"] in report for one in stated["criteria"])
    assert "a probability of 1.0 % at most" in report
    assert dpsynth.open_bundle(public).verdict.criteria == made.verdict.criteria
    assert verified(public).good


def forged(manifest: dict[str, dict[str, list[dict[str, object]]]]) -> None:
    manifest["verdict"]["criteria"][-1]["outcome"] = "met"


def milder(manifest: dict[str, dict[str, list[dict[str, object]]]]) -> None:
    manifest["verdict"]["criteria"][-1]["asked"] = {"error_of": ["sex"], "at_most": 0.5}


def unreadable(manifest: dict[str, dict[str, list[dict[str, object]]]]) -> None:
    manifest["verdict"]["criteria"][-1]["asked"] = {"error_of": 3}


@pytest.mark.parametrize("change", [forged, milder, unreadable])
def test_a_criterion_that_does_not_follow_from_the_bundle_is_found_though_its_seals_are_new(tmp_path, change):
    released(tmp_path, "publish", CRITERIA)
    (public,) = tmp_path.glob("outputs/people/*/public")
    sealed(public, change)
    assert [finding.file for finding in verified(public).findings] == [MANIFEST]


def test_a_release_that_fails_a_criterion_waits_for_its_owner_and_is_shown_if_she_says_so(tmp_path):
    failing = [
        *CRITERIA[:2],
        {"in_use": "pairs", "at_least": 1},
        {"error_of": "sex", "at_most": 0, "confidence": 0.999999},
    ]
    with pytest.raises(Paused) as paused:
        released(tmp_path, "stop", failing)
    assert "before it is shown, because it fails 2 of its 4 criteria" in str(paused.value)
    assert "With accept.on_fail: publish there is no pause." in str(paused.value)
    assert not [*tmp_path.glob("outputs/people/2*/public")]
    spec = from_mapping(config(tmp_path, {"criteria": failing}))
    again = dpsynth.release(spec, outputs=tmp_path / "outputs", resume=paused.value.release_id)
    assert [one.outcome for one in again.verdict.unmet] == ["not met", "can't be told"]
    (public,) = tmp_path.glob("outputs/people/*/public")
    assert verified(public).good


def test_a_rehearsal_does_not_wait_whatever_it_fails(tmp_path):
    failing = {"criteria": [{"error_of": "sex", "at_most": 0, "confidence": 0.999999}], "on_fail": "stop"}
    spec, told = from_mapping(config(tmp_path, failing)), list[str]()
    made = rehearse(spec, rows=300, outputs=tmp_path / "outputs", tell=told.append)
    assert verified(made.handed_over).good and len(made.verdict.unmet) == 1
    assert any("0 % of the rows are off in sex" in sentence for sentence in told), told


def test_a_release_that_meets_all_criteria_does_not_wait(tmp_path):
    assert released(tmp_path, "stop", CRITERIA[:-1]).verdict.unmet == ()


def test_the_plan_says_which_criteria_can_be_told(tmp_path):
    criteria = [
        {"error_of": ["sex", "age"], "at_most": 0.05},
        {"error_of": "age", "at_most": 0.0001},
        {"in_use": "pairs", "at_least": 0.5},
    ]
    spec = from_mapping(config(tmp_path, {"criteria": criteria}))
    told = forecast(spec, rows=2_000)["expected_errors"]["criteria"]
    assert len(told) == 2
    assert "It is told as met, more likely than not, where it is 3." in told[0]
    assert told[1].startswith("At most 0.0 % of the rows are off in age. At this ε it can't be told")


GUESSED = [
    {"classifier": "smoker", "at_least": 0.9999, "confidence": 0.6},
    {"classifier": "smoker", "at_least": 0.9999, "score": "balanced_accuracy"},
    {"classifier": "sex", "at_least": 0.5},
]


def test_guesses_are_charged_as_planned_and_a_release_that_goes_on_pays_for_them_once(tmp_path):
    with pytest.raises(Paused) as paused:
        released(tmp_path, "stop", GUESSED)
    (journal,) = tmp_path.glob("outputs/people/**/journal.jsonl")
    before = [json.loads(line) for line in journal.read_text().splitlines()]
    asked = [line["question"] for line in before if line["kind"] == "charge"]
    assert [q["columns"] for q in asked if q["ask"] == "classified"] == [["smoker"], ["smoker"], ["sex"]]
    assert len({q["classifier"] for q in asked if q["ask"] == "classified"}) == 3
    spec = from_mapping(config(tmp_path, {"criteria": GUESSED}))
    again = dpsynth.release(spec, outputs=tmp_path / "outputs", resume=paused.value.release_id)
    (journal,) = tmp_path.glob("outputs/people/**/journal.jsonl")
    after = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [line for line in after if line["kind"] in ("charge", "answer")] == [
        line for line in before if line["kind"] in ("charge", "answer")
    ]
    (plan,) = plans_of(compiled(spec))
    assert again.exam is not None
    (public,) = tmp_path.glob("outputs/people/*/public")
    stated = json.loads((public / MANIFEST).read_text())
    charges = {m["question"]: m["rho"] for m in stated["mechanisms"]}
    assert charges["classified"] == pytest.approx(float(plan.exam_price) / 10, rel=0.01)
    assert charges["exam"] == pytest.approx(float(plan.exam_price) * 0.7, rel=0.01)
    assert [found.scale for found in again.exam.classified] == [
        plan.bought.counts(plan.exam_price / 10).scale
    ] * 3


def test_the_true_scores_lie_within_the_limits_that_a_release_states(tmp_path):
    criteria = [{"classifier": name, "at_least": 0.5} for name in ("smoker", "sex")]
    accept = {"criteria": criteria, "on_fail": "publish"}
    ledger = {"url": f"sqlite:///{tmp_path}/ledger.db", "cap": {"epsilon": 300, "delta": 0.1}}
    spec = from_mapping(config(tmp_path, accept, privacy={"epsilon": 200, "delta": 1e-6}, ledger=ledger))
    made = dpsynth.release(spec, outputs=tmp_path / "outputs", tell=lambda _: None)
    columns = compiled(spec).columns
    (public,) = tmp_path.glob("outputs/people/*/public")
    real, own = (
        {c.name: c.encode(texts[c.name]).astype(c.code_type) for c in columns}
        for texts in (read_texts(tmp_path / "people.csv"), read_texts(public / "synthetic.csv"))
    )
    rows = CodedRows()
    rows.add(own)
    for found in made.exam.classified:
        rule = trained(FinishedTable(rows, 1), columns, found.target, found.aim)
        known = real[found.target] < rule.classes
        right = int(rule.right(real)[known].sum())
        within = 6 * found.stddev * sqrt(rule.classes)
        assert within < 20 and abs(sum(found.right) - right) < within
        assert abs(sum(found.wrong) - (known.sum() - right)) < within


def forged_guesses(manifest: dict[str, dict[str, list[dict[str, object]]]]) -> None:
    manifest["exam"]["classified"][0]["right"] = [100, 200]


def shorter_guesses(manifest: dict[str, dict[str, list[dict[str, object]]]]) -> None:
    manifest["exam"]["classified"][0]["wrong"] = [100]


@pytest.mark.parametrize("change", [forged_guesses, shorter_guesses])
def test_guesses_that_give_another_outcome_are_found(tmp_path, change):
    released(tmp_path, "publish", GUESSED)
    (public,) = tmp_path.glob("outputs/people/*/public")
    assert verified(public).good
    sealed(public, change)
    assert [finding.file for finding in verified(public).findings] == [MANIFEST]


def quieter_guesses(manifest: dict[str, dict[str, list[dict[str, float]]]]) -> None:
    manifest["exam"]["classified"][1]["scale"] *= 0.7


def quieter_exam(manifest: dict[str, dict[str, float]]) -> None:
    manifest["exam"]["scale"] *= 0.7


@pytest.mark.parametrize(("change", "about"), [(quieter_guesses, "smoker"), (quieter_exam, "all rows")])
def test_an_exam_whose_stated_noise_was_not_charged_is_found(tmp_path, change, about):
    released(tmp_path, "publish", GUESSED)
    (public,) = tmp_path.glob("outputs/people/*/public")
    sealed(public, change)
    words = f"holds an answer about {about} that no mechanism of manifest.json is for."
    assert words in [finding.sentence for finding in verified(public).findings]


def test_the_plan_says_from_which_score_on_a_criterion_can_be_told(tmp_path):
    criteria = [
        {"classifier": "sex", "at_least": 0.6},
        {"classifier": "sex", "at_least": 0.6, "score": "balanced_accuracy"},
        {"classifier": "sex", "at_least": 0.9999},
    ]
    spec = from_mapping(config(tmp_path, {"criteria": criteria}))
    told = forecast(spec, rows=2_000)["expected_errors"]["criteria"]
    assert ["told as met, more likely than not" in words for words in told] == [True, True, False]
    assert "Ask for less, or a lower confidence" in told[2]
    needed = [float(words.split(" % or more")[0].split()[-1]) for words in told[:2]]
    assert 60 < needed[0] < needed[1] < 100
    # A score of just that is told as met by half of all noises.
    (plan,) = plans_of(compiled(spec))
    noise = plan.bought.counts(plan.exam_price / 10)
    rng, right = np.random.default_rng(3), needed[0] / 100
    exact = np.array([[1 - right, right]] * 2) * 1000
    drawn = [np.rint(exact + rng.normal(0, noise.stddev, (2, 2))).astype(np.int64) for _ in range(400)]
    met = [outcome(finished(guesses=[counted("sex", "accuracy", d, "gaussian", noise.scale)]),
                   classifier="sex", at_least=0.6) == "met" for d in drawn]  # fmt: skip
    assert 0.35 < np.mean(met) < 0.65
