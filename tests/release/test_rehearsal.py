"""A rehearsal runs every step on a made-up table: it reads no source, charges nothing, and looks like one."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpsynth.columns.codec import Reading
from dpsynth.config import from_mapping, load
from dpsynth.errors import BudgetRefused, ConfigError, DpsynthError
from dpsynth.ledger.ledger import Ledger
from dpsynth.pipeline.inputs import inputs_of
from dpsynth.pipeline.rehearsal import made_up_table, rehearse
from dpsynth.pipeline.reservation import Occasion, occasion_of
from dpsynth.pipeline.steps import Step
from dpsynth.wings.owner.starter import draft_of
from tests.release.keeper import Keeper, Stop
from tests.release.place import BY_PERSON, Ended, Place, furnished
from tests.release.stopping import stopped_at
from tests.thinned import some

MARK = "rehears"
SMALL = ("--rehearse", "--rows", "100")


@pytest.fixture
def empty(place: Place) -> Place:
    """A place without its table."""
    (place.folder / "people.csv").unlink()
    return place


@pytest.fixture(scope="module")
def rehearsed(keeper: Keeper, tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, Ended]:
    """A place without a table, and how a rehearsal in it ended."""
    place = furnished(tmp_path_factory.mktemp("rehearsed"))
    (place.folder / "people.csv").unlink()
    return place, keeper.run(place, "--rehearse", "--rows", "400")


def test_a_rehearsal_needs_no_source_and_makes_no_ledger(rehearsed: tuple[Place, Ended]) -> None:
    place, ended = rehearsed
    assert ended.code == 0 and "no source was opened, and no ledger" in ended.out, ended
    assert {p.name for p in place.folder.iterdir()} == {"config.yaml", "outputs"}
    assert not list(place.home.glob("prefect/*")) and not list(place.home.glob("tmp/*"))
    assert ended.folder.parts[:3] == ("outputs", "rehearsals", "people")
    assert {p.name for p in (place.folder / "outputs" / "rehearsals").iterdir()} == {"people"}


def test_a_rehearsal_is_marked_in_its_name_its_manifest_and_the_first_line_of_its_pages(
    rehearsed: tuple[Place, Ended],
) -> None:
    place, ended = rehearsed
    public = place.folder / ended.folder / "public"
    assert ended.folder.name.startswith("rehearsal-")
    manifest = json.loads((public / "manifest.json").read_text())
    assert manifest["rehearsal"] is True and manifest["release_id"] == ended.folder.name
    assert manifest["synthetic_rows"] > 300 and len(manifest["statistics"]) == 7
    assert (public / "README.md").read_text().startswith("**REHEARSAL, no release:")
    report = (public / "report.html").read_text()
    body = report[report.index("<body>") + len("<body>") :].lstrip()
    assert body.startswith(
        '<p class="rehearsal" role="region" aria-label="Notice"><strong>REHEARSAL, no release:'
    )
    assert "<title>REHEARSAL" in report
    journal = (place.folder / ended.folder / "private" / "journal.jsonl").read_text().splitlines()
    assert json.loads(journal[0])["rehearsal"] is True
    assert MARK in ended.out.splitlines()[0].lower()


def test_init_takes_nothing_over_from_a_rehearsal(rehearsed: tuple[Place, Ended]) -> None:
    """What a release found is public by then; what a rehearsal found is made up."""
    place, ended = rehearsed
    with pytest.raises(ConfigError, match="manifest of a rehearsal"):
        draft_of(place.folder / ended.folder / "public" / "manifest.json")


def test_a_rehearsal_leaves_the_ledger_as_it_was_and_releases_beside_it_are_none(
    keeper: Keeper, place: Place
) -> None:
    first = keeper.run(place)
    public = place.folder / first.folder / "public"
    assert json.loads((public / "manifest.json").read_text())["rehearsal"] is False
    assert not any("REHEARSAL" in (public / page).read_text() for page in ("README.md", "report.html"))
    ledger = (place.folder / "ledger.db").read_bytes()
    assert keeper.run(place, *SMALL).code == 0
    assert (place.folder / "ledger.db").read_bytes() == ledger


STOPS = [
    pytest.param(("begin write made-up.parquet", 1), marks=pytest.mark.slow),
    pytest.param(("begin ledger entry", 1), marks=pytest.mark.slow),
    ("begin draw", 3),
    ("os.rename bundle", 1),
]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
@pytest.mark.parametrize("stop", STOPS, ids=str)
def test_a_killed_rehearsal_leaves_no_reservation_and_the_next_one_removes_what_is_left(
    keeper: Keeper, empty: Place, stop: Stop
) -> None:
    assert keeper.run(empty, *SMALL, stop=stop).code == -signal.SIGKILL
    assert not (empty.folder / "ledger.db").exists()
    folder = empty.folder / "outputs" / "rehearsals"
    assert [p.name[:6] for p in folder.iterdir()] == [".work-"]
    assert keeper.run(empty, *SMALL).code == 0
    assert [p.name for p in folder.iterdir()] == ["people"]
    assert not (empty.folder / "ledger.db").exists()


def test_a_rehearsal_that_runs_is_not_removed_by_another(keeper: Keeper, empty: Place) -> None:
    keeper.begin(empty, *SMALL, pauses=[("begin draw", 2)])
    keeper.reached()
    rehearse(load(empty.folder / "config.yaml"), rows=50, outputs=empty.folder / "outputs")
    keeper.go_on()
    assert keeper.end().code == 0


@pytest.mark.parametrize(
    "by", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)], ids=lambda by: by.name
)
def test_a_rehearsal_that_is_stopped_says_so_and_leaves_nothing(
    keeper: Keeper, empty: Place, by: signal.Signals
) -> None:
    ended = keeper.run(empty, *SMALL, stop=("begin draw", 3), by=by)
    assert ended.code == 1 and ended.out == ""
    assert ended.err == "Error: The rehearsal was stopped. Nothing was charged, and nothing of it is left.\n"
    assert not empty.files


def test_rows_and_resume_are_refused_where_they_have_no_use(keeper: Keeper, place: Place) -> None:
    alone = keeper.run(place, "--rows", "9")
    assert alone.code == 2 and "--rows has no use without --rehearse" in alone.err
    resumed = keeper.run(place, "--rehearse", "--resume", "20300131-0a1b2c3d")
    assert resumed.code == 2 and "begun anew" in resumed.err
    assert not place.files


def test_what_a_release_would_be_refused_for_is_refused_in_a_rehearsal(empty: Place) -> None:
    empty.configure(ledger={"cap": {"epsilon": 0.1, "delta": 0.01}})
    with pytest.raises(BudgetRefused):
        rehearse(load(empty.folder / "config.yaml"), outputs=empty.folder / "outputs")
    assert not empty.files


def test_a_failing_step_says_no_word_of_a_reservation(empty: Place) -> None:
    with stopped_at(Step.SELECT, ValueError("unforeseen")), pytest.raises(DpsynthError) as failed:
        rehearse(load(empty.folder / "config.yaml"), outputs=empty.folder / "outputs")
    assert "--resume" not in str(failed.value) and "reserved" not in str(failed.value)
    assert not empty.files


# The made-up table


def config(**columns: object) -> dict[str, object]:
    """A config of some columns, and little else."""
    return {"release": "r", "source": {"path": "t.csv"}, "privacy": {"epsilon": 1}, "columns": columns}


WIDE = config(
    age={"type": "integer", "min": 17, "max": 90, "missing": False},
    pay={"type": "number", "min": 5, "max": 100, "format": {"thousands": ",", "prefix": "$"}},
    city={"type": "category", "values": ["Aa", "Bb"], "other": "rest", "missing": ["?", "NA"]},
    grade={"type": "ordered", "values": [1, 2, 3], "missing": {"distinct": ["refused"]}},
    seen={"type": "date", "min": "2020-01-01", "max": "2021-12-31", "format": "%d/%m/%Y"},
    code={"type": "text", "pattern": "[A-Z]{2}[0-9]", "keep": 1},
    stay={"type": "duration", "min": "PT0S", "max": "P9D"},
    smoker={"type": "boolean", "values": ["no", "yes"]},
    name={"type": "identifier", "surrogates": "P001"},
    twice={"type": "derived", "formula": "age * 2"},
)
TO_FIND = config(
    a={"type": "category", "open": True},
    b={"type": "number", "bounds": "private"},
    c={"type": "integer", "min": 1000, "max": 5000, "edges": "tree"},
    d={"type": "text", "pattern": "[A-Z]{2}[0-9]", "levels": [1, 2]},
) | {"privacy": {"epsilon": 3, "delta": 0.000001}}


@pytest.fixture
def released(tmp_path: Path) -> Iterator[Path]:
    """The folder for bundles."""
    yield tmp_path / "outputs"
    assert not list((tmp_path / "outputs" / "rehearsals").glob(".work-*"))


@pytest.mark.parametrize("values", some([WIDE, TO_FIND], 1), ids=["declared", "to find"])
def test_every_kind_of_column_can_be_rehearsed(released: Path, values: dict[str, object]) -> None:
    done = rehearse(from_mapping(values), rows=3000, outputs=released)  # type: ignore[arg-type]
    # The noisy number of rows has a standard deviation of about 110.
    assert done.table.num_rows > 1000 and (done.folder / "public" / "manifest.json").is_file()


def test_every_cell_of_a_made_up_table_is_read_as_a_value_or_missing() -> None:
    inputs = inputs_of(from_mapping(WIDE))  # type: ignore[arg-type]
    made = made_up_table(inputs, Occasion(None, None), 4000, np.random.default_rng(1))
    assert made.column_names == ["age", "pay", "city", "grade", "seen", "code", "stay", "smoker"]
    for column in inputs.compiled.columns:
        texts = made[column.name].combine_chunks()
        values = column.values_of(texts)
        readings = column.codec.readings(values)[np.asarray(values.is_valid())]
        assert (readings == Reading.VALUE).all(), column.name
        missing = values.null_count / len(values)
        assert 0.03 < missing < 0.08 if column.missing else missing == 0
        assert set(column.encode(texts)) == set(range(column.size))


def test_columns_of_a_made_up_table_depend_on_each_other() -> None:
    inputs = inputs_of(from_mapping(WIDE))  # type: ignore[arg-type]
    made = made_up_table(inputs, Occasion(None, None), 4000, np.random.default_rng(1))
    codes = [c.encode(made[c.name].combine_chunks()) for c in inputs.compiled.columns[:3]]
    assert abs(np.corrcoef(codes[0], codes[1])[0, 1]) > 0.15


def test_persons_have_as_many_rows_as_they_may_and_rows_lie_in_the_period() -> None:
    from datetime import UTC, datetime

    values = WIDE | {
        "privacy": {"epsilon": 1, **BY_PERSON},
        "period": {"column": "visited", "every": "month"},
    }
    spec = from_mapping(values)  # type: ignore[arg-type]
    occasion = occasion_of(spec, datetime.now(UTC), "2024-02")
    made = made_up_table(inputs_of(spec), occasion, 1000, np.random.default_rng(1))
    each = np.unique(made["person"].to_pylist(), return_counts=True)[1]
    assert set(each) == {1, 2, 3}
    days = made["visited"].to_pylist()
    assert min(days) == "2024-02-01" and max(days) == "2024-02-29"


def test_a_rehearsal_of_a_period_by_value_is_of_that_value(released: Path) -> None:
    values = WIDE | {"period": {"column": "site", "every": "value"}}
    done = rehearse(from_mapping(values), rows=3000, period="north", outputs=released)  # type: ignore[arg-type]
    manifest = json.loads((done.folder / "public" / "manifest.json").read_text())
    assert manifest["period"]["label"] == "north"
    assert pq.read_metadata(done.folder / "public" / "synthetic.parquet").num_rows > 1000


def test_a_ledger_url_that_nobody_can_reach_is_never_reached(released: Path) -> None:
    values = WIDE | {"ledger": {"url": "postgresql://nobody.invalid/none", "dataset": "d"}}
    with pytest.raises(ConfigError):
        Ledger("postgresql://nobody.invalid/none").balance("d")
    assert rehearse(from_mapping(values), rows=3000, outputs=released).table.num_rows > 1000  # type: ignore[arg-type]
