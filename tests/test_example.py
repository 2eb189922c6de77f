"""An example can be written into any folder, and never over anything."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dpsynth import example
from dpsynth.errors import ConfigError, DpsynthError, SourceError

EXAMPLES = ["adult", "minimal", "randhie"]


def test_the_examples_are_those_in_configs() -> None:
    assert list(example.names()) == EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_complete_in_an_empty_folder(name: str, tmp_path: Path) -> None:
    written = {path.relative_to(tmp_path).as_posix() for path in example.write_example(name, tmp_path)}
    assert {f"configs/{name}.yaml", "schemas/dpsynth.schema.json"} <= written
    assert ("data/randhie.csv" in written) == (name != "adult")
    there = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert there == written
    head, *_ = (tmp_path / "configs" / f"{name}.yaml").read_text().splitlines()
    assert (tmp_path / "configs" / head.split("$schema=")[1]).is_file()


def test_the_table_is_the_whole_experiment(tmp_path: Path) -> None:
    example.write_example("randhie", tmp_path)
    header, *rows = (tmp_path / "data" / "randhie.csv").read_text().splitlines()
    assert len(rows) == 20190 and header.count(",") == 44 and "zper" in header


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    for path in example.write_example("randhie", tmp_path):
        path.write_text("mine")
    assert example.write_example("randhie", tmp_path) == []
    assert {path.read_text() for path in tmp_path.rglob("*") if path.is_file()} == {"mine"}


def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    for name in ("randhei", "../configs/randhie", ""):
        with pytest.raises(ConfigError, match="adult, minimal, randhie"):
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
