"""Collections called in Python: the same code and the same promises as by the commands."""

import json
import re
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import dpsynth
from dpsynth.errors import BudgetRefused, ConfigError, SourceError
from tests.wings.local.collections import spec_of

PAGE = Path(__file__).parents[3] / "docs" / "local.md"
RECORD = {"sex": "F", "plan": "b", "age": 3}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPSYNTH_MEMORY", str(tmp_path / "memory.jsonl"))
    return


def sent(folder: str = "reports") -> list[str]:
    """The lines of all reports."""
    return [line for path in Path(folder).glob("*.jsonl") for line in path.read_text().splitlines()]


@pytest.mark.skipif(not PAGE.is_file(), reason="the pages are those of a checkout")
def test_the_code_of_the_page_runs_from_top_to_bottom() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    release = names["release"]
    assert isinstance(release.tables, dict)
    assert release.collection.reports == 401
    assert abs(release.statistics["cheated"].share[1] - 0.3) < 5.2 * 0.0433
    assert (release.folder / "public" / "report.html").is_file()


def test_a_record_is_reported_once_whatever_it_says_later() -> None:
    found = [dpsynth.collect(spec_of(), {**RECORD, "age": age}) for age in (3, 7)]
    assert len(set(sent())) == 1 and [one.reports for one in found] == [1, 1]
    dpsynth.collect(spec_of(), RECORD, whose="another")
    assert len(set(sent())) == 2


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table])
def test_a_table_in_memory_gives_the_reports_that_its_file_gives(make: type) -> None:
    columns = {"who": ["a", "b", "c"], "sex": ["F", "M", "F"], "plan": ["a", "b", "c"], "age": [0, 3, 7]}
    pd.DataFrame(columns).to_csv("people.csv", index=False)
    dpsynth.collect(spec_of(), make(columns), whose="who", out="one")
    dpsynth.collect(spec_of(), "people.csv", whose="who", out="two")
    assert sorted(sent("one")) == sorted(sent("two")) and len(sent("one")) == 3


def test_values_of_python_are_read_as_cells_of_a_table_are() -> None:
    columns = {"day": {"type": "date", "min": "2020-01-01", "max": "2020-01-04", "missing": False}}
    spec = spec_of(30, columns)
    for number, day in enumerate((date(2020, 1, 2), pd.Timestamp("2020-01-02"), "2020-01-02")):
        dpsynth.collect(spec, {"day": day}, whose=str(number))
    answers = {json.loads(line)["answers"][0][1] for line in sent()}
    # At epsilon 30 an answer is the truth but once in 10^12.
    assert len(answers) == 1


def test_a_cap_bounds_all_collections_together() -> None:
    first = dpsynth.collect(spec_of(), RECORD, cap=1.5)
    with pytest.raises(BudgetRefused, match=r"cap of 1\.5"):
        dpsynth.collect(spec_of(release="another"), RECORD, cap=1.5)
    assert first.epsilon == Fraction(1) and len(sent()) == 1


@pytest.mark.parametrize(
    ("records", "more", "error", "says"),
    [
        ({"sex": "F"}, {}, SourceError, "plan is left out"),
        ({**RECORD, "plan": None}, {}, SourceError, "plan is empty"),
        ({**RECORD, "plan": "Kilroy"}, {}, SourceError, "none of its values"),
        (pd.DataFrame([RECORD]), {}, ConfigError, "whose must name the column"),
        (pd.DataFrame([RECORD]), {"whose": "name"}, SourceError, "name"),
        (pd.DataFrame([{**RECORD, "who": None}]), {"whose": "who"}, SourceError, "nothing in column who"),
        (RECORD, {"cap": 0}, ConfigError, "cap must be above 0"),
        (RECORD, {"form": "csv"}, ConfigError, "form must be"),
    ],
)
def test_what_cannot_be_reported_is_refused_without_a_word_of_the_record(
    records: object, more: dict[str, object], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says) as refused:
        dpsynth.collect(spec_of(), records, **more)  # type: ignore[arg-type]
    assert "Kilroy" not in str(refused.value) and not Path("reports").exists()


def test_a_config_of_a_curator_is_refused() -> None:
    central = dpsynth.Spec.from_dict(
        {
            "privacy": {"epsilon": 1},
            "ledger": {"dataset": "d"},
            "columns": {"sex": {"type": "category", "values": ["F", "M"]}},
        }
    )
    for call in (lambda: dpsynth.collect(central, {"sex": "F"}), lambda: dpsynth.aggregate(central, ".")):
        with pytest.raises(ConfigError, match="trust must be local"):
            call()


def test_too_few_reports_are_refused() -> None:
    dpsynth.collect(spec_of(local={"ask": "one"}), RECORD)
    with pytest.raises(SourceError, match="Collect more"):
        dpsynth.aggregate(spec_of(local={"ask": "one"}), "reports")
