"""An estimator of scikit-learn whose every fit is a release; scikit-learn's own checks hold for it."""

import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

import dpsynth
from dpsynth.errors import ConfigError, DpsynthError
from dpsynth.ledger.ledger import Ledger
from tests.api.tables import COLUMNS, frame

QUICK = {"structure": {"method": "independent"}, "privacy": {"on_empty": "go"}}
"""Quick releases, which don't pause for tables as small and odd as those of checks."""

NUMBERS = {"type": "number", "min": -10, "max": 10, "bins": 4}
PLENTY = {"url": "sqlite:///ledger.db", "cap": {"epsilon": 1_000_000, "delta": 0.1}}

CANNOT_APPLY = {
    "check_estimators_empty_data_messages": "it wants an error for a table without rows. The number of rows "
    "is private, and no error may depend on it."
}
"""Checks of scikit-learn that a differentially private estimator must fail, each with the reason."""
SKIPPED = {
    "check_pipeline_consistency": "scikit-learn skips it for an estimator that says it is not deterministic: "
    "no seed reaches the noise.",
    "check_array_api_input": "scikit-learn skips it unless SCIPY_ARRAY_API is set.",
}

QUICKLY_CHECKED = (
    "check_estimator_cloneable",
    "check_no_attributes_set_in_init",
    "check_estimators_fit_returns_self",
    "check_estimators_unfitted",
    "check_n_features_in",
    "check_complex_data",
    "check_fit1d",
    "check_get_params_invariance",
    "check_set_params",
    "check_parameters_default_constructible",
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def of_numbers() -> dpsynth.Synthesizer:
    """An estimator for the arrays of scikit-learn's checks."""
    return dpsynth.Synthesizer(columns=NUMBERS, dataset="checks", ledger=PLENTY, keys=QUICK)


def of_visits(**changes: object) -> dpsynth.Synthesizer:
    return dpsynth.Synthesizer(**{"columns": COLUMNS, "dataset": "visits", "keys": QUICK, **changes})


@pytest.mark.parametrize("name", QUICKLY_CHECKED)
def test_a_check_of_scikit_learn_holds(name: str) -> None:
    from sklearn.utils.estimator_checks import estimator_checks_generator

    found = [c for e, c in estimator_checks_generator(of_numbers()) if c.func.__name__ == name]
    assert found
    for check in found:
        check(of_numbers())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_all_checks_of_scikit_learn_hold_but_those_that_cannot_apply() -> None:
    from sklearn.utils.estimator_checks import check_dataframe_column_names_consistency, check_estimator

    found = check_estimator(of_numbers(), on_fail=None, expected_failed_checks=CANNOT_APPLY)
    states: dict[str, set[str]] = {}
    for check in found:
        states.setdefault(check["status"], set()).add(check["check_name"])
    assert states.keys() == {"passed", "xfail", "skipped"}, states.get("failed")
    assert states["xfail"] == set(CANNOT_APPLY) and states["skipped"] == set(SKIPPED)
    assert len(states["passed"]) >= 30
    check_dataframe_column_names_consistency("Synthesizer", of_numbers())


def test_a_fit_is_a_release_that_the_ledger_has(folder: Path) -> None:
    fitted = of_visits(epsilon=0.5).fit(frame())
    assert fitted.guarantee_.epsilon <= 0.5 and fitted.release_.guarantee is fitted.guarantee_
    assert fitted.n_features_in_ == 3 and list(fitted.feature_names_in_) == list(COLUMNS)
    rows = fitted.sample(50, random_state=1)
    assert len(rows) == 50 and list(rows.columns) == list(COLUMNS)
    assert rows.equals(fitted.sample(50, random_state=1))
    fitted.fit(frame(), y=np.zeros(1_000))
    account = Ledger(f"sqlite:///{folder / 'ledger.db'}", None).balance("visits")
    assert account is not None and [r.state for r in account.releases] == ["closed", "closed"]


def test_constraints_and_what_is_given_hold_in_every_row() -> None:
    fitted = of_visits(constraints=["cost <= age + 30"]).fit(frame())
    rows = fitted.sample(300, random_state=2, given={"sex": "F"})
    assert len(rows) == 300 and set(rows.sex) == {"F"} and (rows.cost <= rows.age + 30).all()
    free = of_visits().fit(frame()).sample(300)
    assert {"F", "M"} <= set(free.sex) and not (free.cost <= free.age + 30).all()
    with pytest.raises(ConfigError, match="constraints is given twice"):
        of_visits(constraints=["cost <= 9"], keys={"constraints": []}).fit(frame())


def test_what_was_saved_is_loaded_by_a_stranger_and_samples_the_same_rows(folder: Path) -> None:
    fitted = of_visits(epsilon=0.7).fit(frame())
    saved = fitted.save("shared")
    assert saved.parent == Path("shared/visits") and saved != fitted.release_.folder
    shutil.rmtree("outputs")
    shutil.rmtree(saved / "private")
    loaded = dpsynth.Synthesizer.load(saved)
    assert loaded.guarantee_ == fitted.guarantee_ and loaded.epsilon == fitted.guarantee_.epsilon
    assert loaded.sample(40, random_state=3).equals(fitted.sample(40, random_state=3))
    assert set(loaded.sample(40, given="sex=M").sex) == {"M"}
    assert str(loaded.release_.report()).endswith("public/report.html")
    with pytest.raises(DpsynthError, match="a copy already"):
        loaded.save("again")
    with pytest.raises(NotFittedError):
        of_visits().save("again")


def test_tables_of_any_library_and_arrays_are_fitted() -> None:
    of_arrow = of_visits().fit(pa.Table.from_pandas(frame()))
    assert of_arrow.n_features_in_ == 3 and isinstance(of_arrow.sample(3, given="sex=F"), pa.Table)
    array = of_visits(columns={"x1": NUMBERS}).fit(np.zeros((30, 3)))
    assert list(array.sample(3).columns) == ["x1"] and not hasattr(array, "feature_names_in_")


def test_linked_tables_are_fitted_by_name(folder: Path) -> None:
    homes = pd.DataFrame({"home": range(200), "rooms": [1 + i % 4 for i in range(200)]})
    people = pd.DataFrame({"home": [i // 2 for i in range(400)], "age": [i % 90 for i in range(400)]})
    tables = {
        "homes": {"key": "home", "columns": {"rooms": {"type": "integer", "min": 1, "max": 4}}},
        "people": {
            "parent": {"table": "homes", "key": "home", "max_children": 2},
            "columns": {"age": {"type": "integer", "min": 0, "max": 99}},
        },
    }
    fitted = dpsynth.Synthesizer(dataset="homes", keys={"tables": tables, "privacy": {"on_empty": "go"}})
    found = fitted.fit({"homes": homes, "people": people}).sample_tables(30, random_state=1)
    assert len(found["homes"]) == 30 and set(found["people"].home) <= set(found["homes"].home)
    again = dpsynth.Synthesizer.load(fitted.save("models")).sample_tables(30, random_state=1)
    assert all(again[name].equals(table) for name, table in found.items())


@pytest.mark.parametrize("table", [["canary-4711"] * 9, np.full((9, 2), 4711j), {"a": ["canary-4711"]}])
def test_a_refused_array_shows_no_cell(table: object) -> None:
    with pytest.raises((ValueError, DpsynthError)) as refused:
        of_visits().fit(table)
    assert "4711" not in str(refused.value) and refused.value.__context__ is None


def test_parameters_are_kept_as_given_and_checked_in_fit() -> None:
    from sklearn.base import clone

    odd = dpsynth.Synthesizer(epsilon=-1, columns=COLUMNS, dataset="visits")
    assert odd.get_params()["columns"] is COLUMNS and clone(odd).get_params() == odd.get_params()
    with pytest.raises(ConfigError, match=r"privacy\.epsilon"):
        odd.fit(frame())
    assert odd.set_params(epsilon=1, keys=QUICK).fit(frame()).sample(2) is not None
    for changes, words in (
        ({"columns": None}, "dpsynth.describe"),
        ({"dataset": None}, "ledger.dataset is missing"),
        ({"keys": {"epsilon": 2}}, "epsilon is given twice"),
        ({"keys": {"schedule": {}}}, "schedule is not a known key"),
    ):
        with pytest.raises(ConfigError, match=words):
            of_visits(**changes).fit(frame())


def test_nothing_is_sampled_before_a_fit() -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        of_visits().sample(3)


def test_a_fitted_estimator_holds_no_cell_of_its_table() -> None:
    told = frame().assign(note="canary-4711", sex="canary-4711")
    fitted = of_visits().fit(told)
    held = pickle.dumps(fitted)
    assert b"canary-4711" not in held and b"canary-4711" not in repr(fitted).encode()
    assert pickle.loads(held).sample(5, random_state=1).equals(fitted.sample(5, random_state=1))
    fitted.table_ = told
    assert b"canary-4711" in pickle.dumps(fitted)


def test_an_estimator_fits_in_a_pipeline_of_data_frames() -> None:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    pipeline = make_pipeline(FunctionTransformer(lambda table: table.head(200)), of_visits())
    assert pipeline.fit(frame())[-1].release_.synthetic.shape[1] == 3


def test_missing_and_mixed_cells_are_fitted() -> None:
    mixed = frame().astype(object)
    mixed.loc[0, "age"], mixed.loc[1, "cost"], mixed.loc[2, "sex"] = "many", None, pd.NA
    assert len(of_visits().fit(mixed).sample(4)) == 4
