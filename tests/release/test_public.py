"""Releases with a public table: refused in time, the same when resumed, and said so."""

import csv
import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import dpsynth
from dpsynth.errors import ConfigError, DpsynthError, Interrupted
from dpsynth.pipeline.result import Release
from dpsynth.pipeline.steps import Step
from tests.release.place import HEADER, Place, people, release
from tests.release.stopping import stopped_at
from tests.seeded_noise import seed_noise


def write(place: Place, rows: Sequence[Sequence[str]], header: Sequence[str] = HEADER) -> None:
    with (place.folder / "public.csv").open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.fixture
def public(place: Place) -> Place:
    """A place with a public table of the same kind."""
    write(place, people(2000, seed=2))
    place.configure(public_table=str(place.folder / "public.csv"), structure={"method": "auto"})
    return place


def manifest(made: Release) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((made.folder / "public" / "manifest.json").read_text())
    return found


def untouched(place: Place) -> bool:
    """Whether nothing was reserved, let alone asked."""
    return place.balance is None and place.files == set()


def test_the_bundle_says_what_was_used(public: Place) -> None:
    made = release(public)
    told = manifest(made)["public_table"]
    content = (public.folder / "public.csv").read_bytes()
    assert told["sha256"] == hashlib.sha256(content).hexdigest() and told["rows"] == 2000
    assert told["columns"] == ["age", "sex", "income", "city", "smoker"]
    readme = (made.folder / "public" / "README.md").read_text()
    assert "2,000 rows that are not the private table's" in readme and "a public table" in readme
    assert "public table" in (made.folder / "public" / "report.html").read_text()
    bases = {t.table["basis"][0].as_py() for t in made.tables.values()}
    assert bases <= {"measured", "measured sum", "model with a public table"}


def test_its_cells_may_be_separated_otherwise_than_the_private_tables(public: Place) -> None:
    told = manifest(release(public))["public_table"]
    path = public.folder / "public.csv"
    path.write_text(path.read_text().replace(",", ";"))
    public.configure(public_table={"path": str(path), "separator": ";"}, structure={"method": "auto"})
    again = manifest(release(public))["public_table"]
    assert (again["rows"], again["columns"]) == (told["rows"], told["columns"])
    public.configure(public_table=str(path), structure={"method": "auto"})
    with pytest.raises(ConfigError, match="has none of the columns"):
        release(public)


def test_without_one_nothing_is_said_of_it(place: Place) -> None:
    made = release(place)
    assert manifest(made)["public_table"] is None
    assert "public table" not in (made.folder / "public" / "README.md").read_text()


def test_a_release_is_closer_to_its_table_with_a_like_one(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Income follows age in both tables, and the budget is far too small to find that out."""

    def rows(count: int, seed: int) -> list[tuple[str, ...]]:
        made = people(count, seed)
        return [(*r[:3], f"{min(99.9, int(r[1]) + float(r[3]) / 10):.1f}", *r[4:]) for r in made]

    place.table(rows(3000, 1))
    write(place, rows(3000, 2))
    errors = []
    for changes in ({"public_table": str(place.folder / "public.csv")}, {"public_table": None}):
        place.configure(structure={"method": "auto"}, privacy={"epsilon": 0.07, "delta": 1e-9}, **changes)
        # Now and then noise has it that a table is not believed: the best of three tells what it brings. The
        # noise is fixed, so that it is never all three.
        seed_noise(monkeypatch, seed=3)
        made = [release(place).synthetic for _ in range(3)]
        both = [np.corrcoef(t["age"].astype(float), t["income"].astype(float))[0, 1] for t in made]
        errors.append(min(abs(np.array(both) - 0.99)))
    assert errors[0] < 0.25 < errors[1]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no file"),
        (b"", "is empty"),
        (b"\xff\xfe\x00", "no CSV file"),
        (b"name,years\na,1\n", "has none of the columns"),
        (b"sex,sex\nF,M\n", "more than one column named 'sex'"),
        (b"sex,age\n", "has no rows"),
        (b"sex,age\nMale,3\nFemale,4\n", "no cell of column 'sex'"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_before_anything_is_reserved(
    public: Place, content: bytes | None, words: str
) -> None:
    path = public.folder / "public.csv"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DpsynthError, match=words) as refused:
        release(public)
    assert str(path) in str(refused.value) and untouched(public)


@pytest.mark.parametrize("way", ["same", "dotted", "link", "hard link", "URL", "both URLs", "in its folder"])
def test_the_private_table_is_never_taken_for_a_public_one(place: Place, way: str) -> None:
    private, link, hard = (place.folder / name for name in ("people.csv", "public.csv", "hard.csv"))
    link.symlink_to(private)
    hard.hardlink_to(private)
    url = f"file://{place.folder}/./people.csv"
    path = {"dotted": place.folder / "." / "x" / ".." / "people.csv", "link": link, "hard link": hard}.get(
        way, private
    )
    source = {"URL": url, "both URLs": f"file://{private}", "in its folder": f"file://{place.folder}"}
    place.configure(
        public_table=url if way == "both URLs" else str(path),
        source={
            "path": source.get(way, str(private)),
            "format": "parquet" if way == "in its folder" else "csv",
        },
        ledger={"url": place.url},
    )
    with pytest.raises(ConfigError, match=r"public_table(\.path)? must be another file than source\.path"):
        dpsynth.release(dpsynth.load(place.folder / "config.yaml"), outputs=place.folder / "outputs")
    assert untouched(place)


def interrupted(place: Place) -> str:
    """The id of a release that was stopped before its model was fitted."""

    with stopped_at(Step.FIT, KeyboardInterrupt()), pytest.raises(Interrupted) as stopped:
        release(place)
    return str(stopped.value).split("resume='")[1].split("'")[0]


def asked(made: Release) -> list[object]:
    return [(m["question"], m["columns"], m["scale"]) for m in manifest(made)["mechanisms"]]


def test_a_release_goes_on_with_the_same_public_table_and_says_if_it_cannot(
    public: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: other rows in the same file. Other questions would follow, and noise be drawn twice."""
    release_id = interrupted(public)
    path = public.folder / "public.csv"
    content = path.read_bytes()
    write(public, people(2000, seed=3))
    with pytest.raises(ConfigError, match=hashlib.sha256(content).hexdigest()) as refused:
        release(public, resume=release_id)
    assert f"resume='{release_id}'" in str(refused.value)
    account = public.balance
    assert account is not None and [r.state for r in account.releases] == ["reserved"]
    path.write_bytes(content)
    made = release(public, resume=release_id)
    assert made.release_id == release_id
    journal = (made.folder / "private" / "journal.jsonl").read_text().splitlines()
    charges = [line for line in journal if '"charge"' in line]
    assert len(charges) == len(asked(made)), "nothing was asked twice"


def test_earlier_releases_and_a_public_table_go_together(public: Place) -> None:
    first = release(public)
    public.configure(
        release="again",
        public_table=str(public.folder / "public.csv"),
        structure={"method": "auto"},
        reuse={"earlier_periods": True},
    )
    second = release(public)
    told = manifest(second)
    assert [r["release_id"] for r in told["earlier_releases"]["releases"]] == [first.release_id]
    assert told["public_table"]["rows"] == 2000
    bases = {t.table["basis"][0].as_py() for t in second.tables.values()}
    assert bases <= {"measured", "measured sum", "model with earlier periods and a public table"}
