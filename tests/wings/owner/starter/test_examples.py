"""An example can be written into any folder, and never over anything."""

import csv
import sys
from collections import Counter
from pathlib import Path

import pytest

from dpsynth import load
from dpsynth.errors import ConfigError, DpsynthError, SourceError
from dpsynth.wings.owner.starter import examples as example
from tests.thinned import some

EXAMPLES = ["adult", "minimal", "randhie", "randhie-found", "randhie-linked", "randhie-monthly"]


def test_the_examples_are_those_in_configs() -> None:
    assert list(example.names()) == EXAMPLES


@pytest.mark.parametrize("name", some(EXAMPLES, 2))
def test_an_example_is_complete_in_an_empty_folder(name: str, tmp_path: Path) -> None:
    written = {path.relative_to(tmp_path).as_posix() for path in example.write_example(name, tmp_path)}
    assert {f"configs/{name}.yaml", "schemas/dpsynth.schema.json"} <= written
    tables = {"adult": 0, "randhie-linked": 2}.get(name, 1)
    assert len({path for path in written if path.startswith("data/")}) == tables
    config = load(tmp_path / "configs" / f"{name}.yaml")
    read = [config.source, *(table.source for table in (config.tables or {}).values())]
    assert name == "adult" or {source.path for source in read} - {None} <= written
    there = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert there == written
    head, *_ = (tmp_path / "configs" / f"{name}.yaml").read_text().splitlines()
    assert (tmp_path / "configs" / head.split("$schema=")[1]).is_file()


def test_the_table_is_the_whole_experiment(tmp_path: Path) -> None:
    example.write_example("randhie", tmp_path)
    header, *rows = (tmp_path / "data" / "randhie.csv").read_text().splitlines()
    assert len(rows) == 20190 and header.count(",") == 44 and "zper" in header


def test_the_monthly_table_has_each_person_once_a_year_in_every_month(tmp_path: Path) -> None:
    example.write_example("randhie-monthly", tmp_path)
    with (tmp_path / "data" / "randhie-monthly.csv").open() as file:
        rows = [(row["zper"], row["visited"]) for row in csv.DictReader(file)]
    assert len(rows) == 20190 == len({(person, visited[:7]) for person, visited in rows})
    months = Counter(visited[:7] for _, visited in rows)
    assert sorted(months) == [f"{year}-{month:02}" for year in range(2025, 2030) for month in range(1, 13)]
    assert min(months.values()) > 50


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    for path in example.write_example("randhie", tmp_path):
        path.write_text("mine")
    assert example.write_example("randhie", tmp_path) == []
    assert {path.read_text() for path in tmp_path.rglob("*") if path.is_file()} == {"mine"}


def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    for name in ("randhei", "../configs/randhie", ""):
        with pytest.raises(
            ConfigError, match="adult, minimal, randhie, randhie-found, randhie-linked, randhie-monthly"
        ):
            example.write_example(name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_without_statsmodels_the_message_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(example, "find_spec", lambda _: None)
    with pytest.raises(SourceError, match=r'pip install "dpsynth\[demo\]"'):
        example.write_example("randhie", tmp_path)
    assert not list(tmp_path.iterdir())
    assert example.write_example("adult", tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "randhie.csv").write_text("brought along")
    assert example.write_example("randhie", tmp_path)


def test_a_folder_that_cannot_be_written_is_a_plain_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DpsynthError, match="can't be written"):
        example.write_example("randhie", tmp_path / "file")


def test_statsmodels_is_found_and_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "statsmodels", raising=False)
    example.write_example("minimal", tmp_path)
    assert "statsmodels" not in sys.modules
