"""One file has one address, however it is spelt; and two files are never taken for one."""

from pathlib import Path

import pytest

from dpsynth.config.files import place
from dpsynth.config.files.place import is_part_of, resolved, same_table


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A file, with a link, a hard link and a copy."""
    path = tmp_path / "data" / "t.csv"
    path.parent.mkdir()
    path.write_text("age\n3\n")
    (tmp_path / "link.csv").symlink_to(path)
    (tmp_path / "hard.csv").hardlink_to(path)
    (tmp_path / "copy.csv").write_bytes(path.read_bytes())
    (tmp_path / "folder").symlink_to(path.parent)
    return path


SPELLINGS = (
    "{0}/data/t.csv",
    "{0}/data/./t.csv",
    "{0}/data//x/../t.csv",
    "{0}/link.csv",
    "{0}/hard.csv",
    "{0}/folder/t.csv",
    "file://{0}/data/t.csv",
    "file://{0}/data/./t.csv",
    "file://localhost{0}/data/t.csv",
    "file://{0}/hard.csv",
    "local://{0}//data/t.csv",
    "file:{0}/data/t.csv",
)


def assert_one(table: Path) -> None:
    above = table.parents[1]
    spelt = [text.format(above) for text in SPELLINGS]
    assert [(a, b) for a in spelt for b in spelt if not same_table(a, b)] == []
    assert not any(same_table(text, str(above / "copy.csv")) for text in spelt)


def test_a_file_is_one_table_however_it_is_spelt_and_a_copy_is_another(table: Path) -> None:
    assert_one(table)


@pytest.mark.parametrize("fault", ["as_path", "_same_file"])
def test_a_spelling_that_passes_is_seen(table: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """The planted faults: URLs of this machine are URLs, and paths are compared as texts."""
    monkeypatch.setattr(place, fault, {"as_path": lambda path: path, "_same_file": lambda *_: False}[fault])
    with pytest.raises(AssertionError):
        assert_one(table)


def test_a_path_in_another_case_is_one_table_where_the_file_system_says_so(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shouted = table.with_name("T.CSV")
    assert not same_table(str(table), str(shouted))
    shouted.hardlink_to(table)  # As a file system that takes both has it.
    assert same_table(str(table), str(shouted))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://b/a/t.csv", "s3://b/a/./t.csv"),
        ("s3://b/a/t.csv", "s3a://b//a/t.csv"),
        ("s3://b/a/t.csv", "s3://b/a/x/../t.csv"),
        ("s3://b/visits/", "s3://b/visits"),
        ("gs://b/t.csv", "gcs://b/t.csv"),
        ("https://Host.org:443/t%20x.csv", "http://host.org./t x.csv"),
        ("sftp://host:22/t.csv", "ssh://host/t.csv"),
    ],
)
def test_a_url_is_one_table_however_it_is_spelt(one: str, other: str) -> None:
    assert same_table(one, other) and same_table(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://b/a/t.csv", "s3://b/a/T.csv"),
        ("s3://b/a/t.csv", "s3://c/a/t.csv"),
        ("s3://b/t.csv", "gs://b/t.csv"),
        ("http://host:8080/t.csv", "http://host/t.csv"),
        ("s3://b/t.csv", "/b/t.csv"),
    ],
)
def test_two_urls_are_two_tables(one: str, other: str) -> None:
    assert not same_table(one, other)


def test_a_file_in_the_folder_of_a_table_is_a_part_of_it(table: Path) -> None:
    above = table.parents[1]
    for part in ("data/t.csv", "folder/t.csv", "hard.csv", "data/new/x"):
        assert is_part_of(str(above / part), f"file://{above}/data"), part
    assert not is_part_of(str(above / "copy.csv"), str(above / "data"))
    assert is_part_of(str(above / "hard.csv"), str(table)) and not is_part_of(str(table), "s3://b/t.csv")


def test_a_url_of_this_machine_is_recorded_as_a_path(table: Path) -> None:
    assert resolved(f"file://{table.parents[1]}/./link.csv") == str(table)
    assert resolved("s3://b/./t.csv") == "s3://b/./t.csv"
