"""Releases of tables in other forms: rows are kept, and nothing is charged for a broken file."""

import gzip
from pathlib import Path

import pyarrow.csv
import pytest

import dpsynth
from dpsynth.errors import SourceError
from tests.release.place import HEADER, Place, people

ROWS = people(400)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    work = tmp_path / "work"
    work.mkdir()
    return Place(work, tmp_path)


def released(place: Place, name: str, **source: str) -> None:
    place.configure(
        source={"path": str(place.folder / name), "separator": ";", **source},
        ledger={"url": place.url},
        privacy={"epsilon": 100.0},
        columns={"smoker": None, "city": None},
        publish=None,
        structure={"method": "independent"},
    )
    dpsynth.release(dpsynth.load(place.folder / "config.yaml"), outputs=place.folder / "outputs")


def text(rows: list[tuple[str, ...]]) -> str:
    return "".join(";".join(row) + "\n" for row in [HEADER, *rows])


def test_a_packed_table_in_another_encoding_with_an_unclosed_quote_is_released_whole(place: Place) -> None:
    rows = [*ROWS, ('"p\u00e9', *ROWS[0][1:]), *ROWS]
    (place.folder / "t.csv.gz").write_bytes(gzip.compress(text(rows).encode("cp1252")))
    released(place, "t.csv.gz", encoding="windows-1252")
    (bundle,) = place.folder.glob("outputs/*/*/public/synthetic.csv")
    assert abs(len(pyarrow.csv.read_csv(bundle)) - len(rows)) < 20


def test_an_archive_that_breaks_off_gives_back_all_that_was_reserved(place: Place) -> None:
    data = gzip.compress(text(ROWS * 200).encode(), 1)
    (place.folder / "t.csv.gz").write_bytes(data[: len(data) // 2])
    with pytest.raises(SourceError, match=r"can't be unpacked: .* Nothing was charged\."):
        released(place, "t.csv.gz")
    assert [row.kind for row in place.ledger.rows()] == ["dataset", "reserved", "abandoned"]


def test_a_table_with_another_separator_is_refused_before_anything_is_reserved(place: Place) -> None:
    (place.folder / "t.csv").write_text(text(ROWS))
    with pytest.raises(SourceError, match=r"set source\.separator: ';'\. Nothing was charged\."):
        released(place, "t.csv", separator=",")
    assert not place.ledger.rows()
