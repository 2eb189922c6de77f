"""A table that can't be read costs nothing: nothing is reserved for it, or all of it is given back."""

import io
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth.accounting.amount import Amount
from dpsynth.pipeline import beginning
from dpsynth.pipeline.steps import Step
from tests.fuzz import csvs, parquets, tables, yamls
from tests.release.keeper import Keeper
from tests.release.place import HEADER, Ended, Place, environment, people

ROWS = people(300)
HALF = 200_000


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A folder with a good table, and a config that asks little of it."""
    work = tmp_path / "work"
    work.mkdir()
    made = Place(work, tmp_path)
    made.table(ROWS)
    made.configure(columns={"smoker": None, "city": None}, publish=None, structure={"method": "independent"})
    return made


@pytest.fixture(scope="module")
def broken_halfway() -> bytes:
    """A Parquet file of two groups of rows, of which pages of the second are broken."""
    columns = list(zip(*people(HALF), strict=True))
    group = pa.table({name: pa.array(cells) for name, cells in zip(HEADER, columns, strict=True)})
    written = io.BytesIO()
    with pq.ParquetWriter(written, group.schema, compression="snappy") as writer:
        writer.write_table(group)
        writer.write_table(group)
        writer.write_table(group)
    data = bytearray(written.getvalue())
    facts = pq.read_metadata(io.BytesIO(bytes(data)))
    page = facts.row_group(2).column(HEADER.index("age"))
    start = page.dictionary_page_offset or page.data_page_offset
    data[start : start + page.total_compressed_size] = b"\xff" * page.total_compressed_size
    return bytes(data)


def assert_refused(ended: Ended) -> None:
    assert ended.code == 4 and ended.out == "", ended
    paragraph = r"(Note: This configuration was released on [^\n]+\n)?Error: [^\n]+\.\n"
    assert re.fullmatch(paragraph, ended.err) and "Traceback" not in ended.err, ended.err


def test_of_a_broken_table_nothing_is_reserved_and_no_file_is_made(keeper: Keeper, place: Place) -> None:
    (place.folder / "people.csv").write_bytes(b"a,b\n1,2\n")
    before = sorted(place.folder.rglob("*"))
    ended = keeper.run(place)
    assert_refused(ended)
    assert ended.err.endswith("Nothing was charged.\n")
    assert sorted(place.folder.rglob("*")) == before


@pytest.mark.parametrize("fault", ["no such column", "no such file", "broken first rows"])
def test_of_a_broken_table_no_line_is_entered_in_a_ledger(keeper: Keeper, place: Place, fault: str) -> None:
    assert keeper.run(place).code == 0
    rows, files = place.ledger.rows(), place.files
    name = "other.csv"
    if fault == "no such column":
        (place.folder / name).write_bytes(b"age,sex\n1,F\n")
    elif fault == "broken first rows":
        name = "other.parquet"
        table = pa.table({n: pa.array(c) for n, c in zip(HEADER, zip(*ROWS, strict=True), strict=True)})
        pq.write_table(table, place.folder / name)
        data = bytearray((place.folder / name).read_bytes())
        data[4:2000] = bytes(1996)
        (place.folder / name).write_bytes(data)
    assert_refused(keeper.run(place, "--source", name))
    assert (place.ledger.rows(), place.files) == (rows, files)


def test_a_table_that_breaks_halfway_gives_back_all_that_was_reserved(
    keeper: Keeper, place: Place, broken_halfway: bytes
) -> None:
    assert keeper.run(place).code == 0
    before, files = place.balance, place.files
    (place.folder / "other.parquet").write_bytes(broken_halfway)
    ended = keeper.run(place, "--source", "other.parquet")
    note, refusal = ended.err.splitlines(keepends=True)
    assert note.startswith("Note: This configuration was released on ")
    assert_refused(replace(ended, err=refusal))
    assert ended.err.endswith("Nothing was charged.\n")
    after = place.balance
    assert before is not None and after is not None
    assert (after.epsilon_used, after.share_used) == (before.epsilon_used, before.share_used)
    assert after.releases[-1].state == "abandoned" and after.releases[-1].cost.amount == Amount()
    assert place.files == files
    assert keeper.run(place).code == 0


def test_killed_while_a_table_that_breaks_is_read_a_release_gives_all_back_when_resumed(
    keeper: Keeper, place: Place, broken_halfway: bytes
) -> None:
    (place.folder / "other.parquet").write_bytes(broken_halfway)
    assert keeper.run(place, "--source", "other.parquet", stop=(f"begin {Step.OPEN}", 1)).code < 0
    begun = place.balance
    assert begun is not None and begun.releases[-1].state == "reserved"
    assert_refused(keeper.run(place, "--source", "other.parquet", "--resume", begun.releases[-1].release_id))
    after = place.balance
    assert after is not None and after.epsilon_used == 0 and place.files == set()


def test_a_table_that_is_gone_when_a_release_with_answers_is_resumed_gives_nothing_back(
    keeper: Keeper, place: Place
) -> None:
    assert keeper.run(place, stop=(f"begin {Step.MERGE}", 1)).code < 0
    begun = place.balance
    assert begun is not None
    (reserved,) = begun.releases
    name = reserved.release_id
    (place.folder / "people.csv").rename(place.folder / "gone.csv")
    ended = keeper.run(place, "--resume", name)
    assert ended.code == 4 and ended.err.count("\n") == 1
    assert "Nothing was charged" not in ended.err and f"--resume {name}" in ended.err
    after = place.balance
    assert after is not None and after.releases[-1].holder != reserved.holder
    assert replace(after, releases=(replace(after.releases[-1], holder=reserved.holder),)) == begun
    (place.folder / "gone.csv").rename(place.folder / "people.csv")
    assert keeper.run(place, "--resume", name).code == 0


def test_what_was_released_is_shown_again_without_its_table(keeper: Keeper, place: Place) -> None:
    done = keeper.run(place)
    (place.folder / "people.csv").unlink()
    again = keeper.run(place, "--resume", done.folder.name)
    assert again.code == 0 and again.folder == done.folder


def test_a_release_that_reserves_before_its_table_is_accepted_is_caught(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpsynth.errors import SourceError
    from tests.release.place import release

    monkeypatch.setattr(beginning, "accept_source", lambda *_: None)
    (place.folder / "people.csv").write_bytes(b"a,b\n1,2\n")
    with pytest.raises(SourceError):
        release(place)
    assert [row.kind for row in place.ledger.rows()] == ["dataset", "reserved", "abandoned"]


def _fifo(path: Path) -> None:
    # Opening it would wait for ever.
    os.mkfifo(path)


NO_FILES: dict[str, Callable[[Path], object]] = {
    "folder": Path.mkdir,
    "fifo": _fifo,
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to nothing": lambda path: path.symlink_to("nothing"),
    "nothing": lambda path: None,
}


@pytest.mark.parametrize("what", NO_FILES)
def test_what_is_no_file_is_refused_without_waiting(keeper: Keeper, place: Place, what: str) -> None:
    path = place.folder / "other.csv"
    NO_FILES[what](path)
    for name in (path.name, "x" * 300 + ".csv", "people.csv/other.csv"):
        assert_refused(keeper.run(place, "--source", name))
    assert_refused(keeper.call(place, "init", path.name, "--out", "-"))
    assert not (place.folder / "ledger.db").exists() and not (place.folder / "outputs").exists()


def test_an_out_folder_that_can_t_be_made_is_refused_before_anything_is_charged(
    keeper: Keeper, place: Place
) -> None:
    for name in ("people.csv", "people.csv/x", "x" * 300):
        ended = keeper.run(place, "--out", name)
        assert ended.code == 2 and re.fullmatch(r"Error: [^\n]+--out\.\n", ended.err), ended
    assert not (place.folder / "ledger.db").exists()


REPRESENTATIVES = {
    *("few", "long cells", "odd cells", "odd header", "truncated"),
    *("broken footer", "odd columns", "odd types"),
}


@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_command_line_ends_in_a_bundle_or_in_one_paragraph_and_no_charge(
    keeper: Keeper, place: Place, kind: str, times: int
) -> None:
    """Through ``dpsynth run`` itself, in a process an input; a few kinds, and all of them more often."""
    config = json.loads((place.folder / "config.yaml").read_text())
    config["columns"] = {name: tables.COLUMNS[name] for name in ("age", "sex", "stay")}
    (place.folder / "config.yaml").write_text(json.dumps(config))
    ended_as = set()
    for name, make in (csvs.KINDS if kind == "csv" else parquets.KINDS).items():
        for number in range(times if times > 1 else name in REPRESENTATIVES):
            path = place.folder / f"table.{kind}"
            path.write_bytes(make(random.Random(f"command {name} {number}")))
            before = place.ledger.rows(), place.files
            ended = keeper.run(place, "--source", path.name)
            assert tables.CANARY not in ended.out + ended.err
            if ended.code:
                assert_refused(ended)
                assert ended.err.endswith("Nothing was charged.\n")
                rows = place.ledger.rows()
                assert (rows, place.files) == before or rows[-1].kind == "abandoned", name
            ended_as.add(ended.code)
    assert ended_as == {0, 4}


@pytest.mark.slow
@pytest.mark.parametrize("command", ["init", "plan"])
def test_the_other_commands_end_in_a_result_or_in_one_paragraph(tmp_path: Path, command: str) -> None:
    """As processes of their own."""
    (tmp_path / "work").mkdir()
    kinds = {"init": {"csv": csvs.KINDS, "parquet": parquets.KINDS}, "plan": {"yaml": yamls.KINDS}}[command]
    codes = set()
    for suffix, makes in kinds.items():
        for name, make in makes.items():
            for number in range(3):
                path = tmp_path / "work" / f"thing.{suffix}"
                path.write_bytes(make(random.Random(f"command {name} {number}")))
                more = ["--look", "--out", "-"] if command == "init" else ["--json"]
                done = subprocess.run(
                    [sys.executable, "-m", "dpsynth", command, path.name, *more],
                    cwd=tmp_path / "work",
                    env=environment(tmp_path),
                    capture_output=True,
                    timeout=120,
                )
                told = done.stderr.decode()
                assert "Traceback" not in told and tables.CANARY not in told, (name, number, told)
                said = re.search(r"^Error: [^\n]+\n\Z", told, re.M)
                assert done.returncode == 0 or said, (name, number, told)
                assert done.returncode in {0, 2, 4}, (name, number, told)
                codes.add(done.returncode)
                with suppress(ValueError):
                    assert command == "init" or done.returncode or json.loads(done.stdout)
    assert command == "plan" or len(codes) > 1
