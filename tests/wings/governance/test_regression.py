"""Questions about a regression: products of a row's own cells, what a row moves, limits that hold."""

import json
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import product
from math import isnan
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import dpsynth
from dpsynth.bundle.recipient.query import QuestionRefused
from dpsynth.columns.sums import Centring, MeasuredSums
from dpsynth.config import compiled, from_mapping
from dpsynth.curator import MemoryTable
from dpsynth.errors import ConfigError
from dpsynth.ledger.ledger import Ledger
from dpsynth.pipeline.inputs import cells_of, inputs_of
from dpsynth.pipeline.reservation import occasion_of
from dpsynth.wings.governance.verification import commands
from dpsynth.wings.governance.verification.papers import OUTCOMES, Verified, read
from dpsynth.wings.governance.verification.regression import GRID, Regression, regression_in
from tests.wings.governance import boards
from tests.wings.governance.test_verification import asked, bundle, configured, plain, sub, values

__all__ = ["bundle"]

ASKED = "coefficients of `=pay ü` ~ age + smoker + city"
CELLS = {
    "age": ["0", "40", "89", "120", "x", None],
    "smoker": ["no", "yes"],
    "city": ["Aa", "-Bb", 'C "c"', "?"],
    "=pay ü": ["0", "55.5", "100", "-3", "many", ""],
}
WHOLE = Centring((GRID**2,), GRID**2)


def regression(folder: Path, text: str = ASKED) -> Regression:
    found = regression_in(text, compiled(from_mapping(plain(values(folder)))).layout)
    assert found is not None
    return found[0]


def texts_of(cells: Mapping[str, Sequence[object]]) -> dict[str, pa.StringArray]:
    return {name: pa.array(own, pa.string()) for name, own in cells.items()}


def test_no_row_moves_the_sum_of_a_product_further_than_its_limit_and_some_row_moves_each_so_far(tmp_path):
    """Rows of all these cells, unusable ones among them; products follow from the row itself alone."""
    of, rows = regression(tmp_path), [*product(*CELLS.values())]
    texts = texts_of(dict(zip(CELLS, zip(*rows, strict=True), strict=True)))
    together = of.multiplied(texts)
    usable = [city != "?" and pay not in ("", "many") for _, _, city, pay in rows]
    for cells in together.values():
        assert cells.is_valid().to_pylist() == usable
        assert max(map(abs, cells.drop_null().to_pylist())) == GRID**2
    for spot in range(0, len(rows), 7):
        alone = of.multiplied({name: own.slice(spot, 1) for name, own in texts.items()})
        assert all(cells[0] == together[name][spot] for name, cells in alone.items())


def test_coefficients_of_rows_are_those_of_least_squares(tmp_path):
    rng = np.random.default_rng(1)
    rows = {name: rng.choice(np.array(cells, object), 400) for name, cells in CELLS.items()}
    found = [one.value for one in regression(tmp_path).of_rows(texts_of(rows))]
    table = pd.DataFrame(rows)
    table["age"] = pd.to_numeric(table["age"], errors="coerce").clip(0, 89).fillna(0)
    table["=pay ü"] = pd.to_numeric(table["=pay ü"], errors="coerce").clip(0, 100)
    table = table[table["city"] != "?"].dropna()
    values_of = [table["smoker"] == "yes", table["city"] == "-Bb", table["city"] == 'C "c"']
    terms = np.column_stack([np.ones(len(table)), table["age"], *values_of]).astype(float)
    np.testing.assert_allclose(found, np.linalg.lstsq(terms, table["=pay ü"])[0][1:], rtol=2e-3)


def measured(
    exact: Mapping[str, int], noise: str, scale: float, rng: np.random.Generator
) -> list[MeasuredSums]:
    draw, unit = rng.normal if noise == "gaussian" else rng.laplace, scale * GRID**2
    noisy = {formula: np.array(value + round(draw(0, unit))) for formula, value in exact.items()}
    return [MeasuredSums(formula, (), value, noise, unit, WHOLE) for formula, value in noisy.items()]


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_limits_of_one_term_hold_as_often_as_they_say(noise, tmp_path):
    rng, of = np.random.default_rng(2), regression(tmp_path, "coefficient(age) of smoker ~ age")
    age = rng.integers(0, 90, 3000)
    smoker = np.where(rng.random(3000) < age / 100, "yes", "no")
    texts = texts_of({"age": age.astype(str), "smoker": smoker})
    exact = {formula: pc.sum(cells).as_py() for formula, cells in of.multiplied(texts).items()}
    (true,), held, wide = of.of_rows(texts), [], []
    for _ in range(1000):
        (one,) = of.by_sums(measured(exact, noise, 20.0, rng))
        held.append(one.low <= true.value <= one.high)
        wide.append(one.high - one.low)
    # With Laplace noise they are those of all draws together, and wider than they have to be.
    assert 0.95 < np.mean(held) <= (0.999 if noise == "gaussian" else 1)
    assert np.median(wide) < 0.5 * true.value


def test_nothing_is_told_of_columns_that_are_alike_or_of_sums_that_were_cut_off(tmp_path):
    rng, of = np.random.default_rng(3), regression(tmp_path, "coefficients of `=pay ü` ~ age + smoker")
    smoker = rng.random(3000) < 0.5
    rows = {"age": np.where(smoker, "89", "0"), "smoker": np.where(smoker, "yes", "no")}
    texts = texts_of({**rows, "=pay ü": rng.integers(0, 100, 3000).astype(str)})
    exact = {formula: pc.sum(cells).as_py() for formula, cells in of.multiplied(texts).items()}
    assert all(isnan(one.value) for one in of.of_rows(texts))
    for _ in range(50):
        assert all(isnan(one.low) for one in of.by_sums(measured(exact, "gaussian", 5.0, rng)))
    sure = regression(tmp_path, "coefficient(age) of `=pay ü` ~ age")
    found = measured({formula: exact[formula] for formula in sure.products}, "gaussian", 0.1, rng)
    assert not isnan(sure.by_sums(found)[0].low)
    assert isnan(
        sure.by_sums([replace(found[0], centring=Centring((GRID**2,), GRID**2 - 1)), *found[1:]])[0].low
    )


def test_a_question_about_a_regression_is_answered_by_its_sums_alone_and_judged_by_their_limits(
    bundle, tmp_path, capsys
):
    path = asked(bundle, tmp_path, "coefficients of `=pay ü` ~ age + smoker")
    claims = json.loads(path.read_text())["claims"]
    assert [one["group"]["term"] for one in claims] == ["age", "(smoker == 'yes')"]
    config, out = configured(tmp_path), tmp_path / "a.json"
    commands.answer(config, path, out=out, outputs=tmp_path / "outputs")
    (made,) = (tmp_path / "outputs/people-questions").glob("2*")
    opened = dpsynth.open_bundle(made)
    assert opened.verify().findings == ()
    assert all(one.centring == WHOLE for one in opened.sums) and len(opened.sums) == 8
    told, _ = read(out, Verified)
    for one, limits in zip(
        told.told, regression(tmp_path, told.question.question).by_sums(opened.sums), strict=True
    ):
        ends = (None, None) if isnan(limits.low) else (limits.low, limits.high)
        assert (one.low, one.high) == ends and one.outcome in OUTCOMES
    (entry,) = Ledger(f"sqlite:///{tmp_path}/ledger.db").read().balances()[0].releases
    assert entry.release_id == told.answered_by and 0.9 < told.epsilon <= 1
    commands.check_answer(out, None)
    assert "coefficients of `=pay ü` ~ age + smoker, to within 20 %" in capsys.readouterr().out


def test_a_column_of_persons_that_is_named_like_a_product_stays_that_of_the_persons(tmp_path):
    unit = {"column": "1 * age", "max_rows": 2}
    found = sub(tmp_path, "coefficient(age) of smoker ~ age", privacy={"epsilon": 1, "unit": unit})
    spec, rows = from_mapping(found), {"age": ["1", "89"], "smoker": ["no", "yes"], "1 * age": ["Ann", "Bob"]}
    inputs = inputs_of(spec, MemoryTable(pa.table(rows)))
    (batch,) = cells_of(inputs, occasion_of(spec, boards.now(), None))
    assert batch["1 * age"].to_pylist() == ["Ann", "Bob"]
    assert batch["age * age"].to_pylist() == [(736 - GRID) ** 2, GRID**2]


def test_another_regression_or_other_ends_of_its_columns_is_another_question(tmp_path):
    found = [sub(tmp_path, f"coefficient(age) of `=pay ü` ~ age{more}") for more in ("", " + smoker")]
    other = deepcopy(found[0])
    other["regression"]["columns"]["age"]["max"] = 80
    assert len({compiled(from_mapping(one)).fingerprint for one in (*found, other)}) == 3


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("coefficient of age", "has the form: coefficient"),
        ("coefficient(age) of smoker ~ age where age > 3", "has where where"),
        (
            "coefficient(age) of smoker ~ sex",
            "asks for the coefficient of 'age', which doesn't stand after ~",
        ),
        ("coefficient(agee) of smoker ~ agee", "did you mean 'age'"),
        ("coefficient(age) of age ~ age", "names a column twice"),
        ("coefficient(age) of city ~ age", "a column of two values"),
        ("coefficient(seen) of age ~ seen", "numbers between declared ends"),
        ("coefficient(double) of age ~ double", "no column that is counted"),
    ],
)
def test_a_regression_that_there_can_not_be_is_refused_in_words(tmp_path, question, words):
    with pytest.raises(QuestionRefused, match=re.escape(words)):
        sub(tmp_path, question)


def test_a_regression_is_refused_beside_what_would_make_its_limits_wrong(tmp_path):
    text = "coefficient(age) of smoker ~ age"
    with pytest.raises(ConfigError, match=r"privacy\.sample_rate must be left out with regression"):
        from_mapping(sub(tmp_path, text, privacy={"epsilon": 1, "delta": 1e-6, "sample_rate": 0.5}))
    found = sub(tmp_path, text)
    with pytest.raises(ConfigError, match="is no product of this regression"):
        from_mapping({**found, "columns": {**found["columns"], "pay": {"type": "boolean"}}})
