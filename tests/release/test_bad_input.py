"""Broken cells are no news at all, and a full account is told before the table is opened."""

import csv
import io
import json
import re
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.release import evidence
from tests.release.keeper import Keeper
from tests.release.place import BY_PERSON, HEADER, Ended, Place, Row, people
from tests.thinned import some

ROWS = people(300)


def table_bytes(rows: Sequence[Sequence[str]], header: Sequence[str] = HEADER, end: str = "\n") -> bytes:
    written = io.StringIO()
    csv.writer(written, lineterminator=end).writerows([header, *rows])
    return written.getvalue().encode()


def without_warnings(err: str, manifest: dict[str, object]) -> str:
    """What was said besides the warnings, which follow from noisy answers and stand in the manifest."""
    warnings = manifest["warnings"]
    assert isinstance(warnings, list)
    notes = "".join(f"Note: {w['sentence']} {w['remedy']}\n" for w in warnings)
    assert notes in err
    return err.replace(notes, "")


@pytest.mark.parametrize("kind", some(["csv", "parquet"], 1))
def test_a_table_without_rows_is_a_table(keeper: Keeper, place: Place, kind: str) -> None:
    """Hazard 19: that it is empty is not to be seen in the schema, the code or the messages."""
    full = keeper.run(place)
    schema = evidence.assert_whole(place.folder / full.folder)["columns"]
    empty = place.folder / f"empty.{kind}"
    if kind == "csv":
        empty.write_bytes(table_bytes([]))
    else:
        pq.write_table(pa.table({name: pa.array([], pa.string()) for name in HEADER}), empty)
    done = keeper.run(place, "--source", empty.name)
    manifest = evidence.assert_whole(place.folder / done.folder)
    # Whatever is in the table, the note is of the release before.
    said = without_warnings(done.err, manifest)
    assert done.code == 0 and re.fullmatch("Note: This configuration was released on [^\n]+\n", said), done
    assert manifest["columns"] == schema


def test_a_budget_over_the_cap_is_refused_with_code_3_before_the_table_is_opened(
    keeper: Keeper, place: Place
) -> None:
    """The source doesn't exist, which is found out only by whoever opens it."""
    once = {"cap": {"epsilon": 1.5}, "filter": "sequential"}
    place.configure(ledger=once)
    assert keeper.run(place).code == 0
    before, balance = place.files, place.balance
    over = keeper.run(place, "--source", "nowhere.csv")
    assert over.code == 3 and "nowhere" not in over.err
    assert all(
        said in over.err for said in ("privacy.epsilon", "0.5", "Nothing was read and nothing was charged")
    )
    assert (place.files, place.balance) == (before, balance)
    place.configure(ledger=once, privacy={"epsilon": 0.4})
    late = keeper.run(place, "--source", "nowhere.csv")
    assert late.code == 4 and "nowhere.csv" in late.err


# Cells. Each case is a whole file that differs from a good one in what its cells hold.


def with_cells(column: str, values: Sequence[str]) -> list[Row]:
    """Good rows, but that one column holds these values."""
    place = HEADER.index(column)
    return [(*row[:place], value, *row[place + 1 :]) for row, value in zip(ROWS, values, strict=False)]


def line(text: bytes, where: int = 100) -> Callable[[], bytes]:
    """The good table with some bytes put between two lines."""

    def made() -> bytes:
        lines = table_bytes(ROWS).splitlines(keepends=True)
        return b"".join([*lines[:where], text, *lines[where:]])

    return made


MEGABYTE = 1 << 20
IN_CELLS: dict[str, tuple[str, tuple[str, ...]]] = {
    "not a number": ("income", ("NaN", "nan", "-nan", "inf", "-inf", "Infinity", "1e999", "-1e999", "-0")),
    "not a whole number": ("age", ("NaN", "inf", "1e999", "-1e999", "3.7", "9" * 400, "0x1f", "1_000", "٣")),
    "text in a number": ("income", ("abc", "12,5", "$5", "1e", "--1", "1.2.3", "=1+1")),
    "unknown category": ("city", ("Zz", "AA", "aa ", "'", '"', "\u202eaA")),
    "neither true nor false": ("smoker", ("maybe", "2", "-1", "nein")),
    "out of range": ("age", ("-1", "90", "-99999999999999999999", "1e300")),
    "missing": ("city", ("", " ", "?", "\t")),
    "formulas": ("city", ("=cmd()", "+1", "-1", "@x", "\t=1")),
    "quotes and lines": ("city", ('a "quoted" one', "two\nlines", "two\r\nlines", ",", '","')),
    "a long cell": ("city", ("x" * MEGABYTE,)),
    "a long number": ("income", ("1" * MEGABYTE,)),
    "odd persons": ("person", ("", "NaN", "1e999", "007", "7.0", "٣", "x" * MEGABYTE, "1" * 5000)),
}
"""Values of one column, each in a row of its own among the good ones."""


def cells_of(*cases: str) -> bytes:
    """The good table with such rows in its midst."""
    rows = [row for case in cases for row in with_cells(*IN_CELLS[case])]
    return table_bytes([*ROWS[:100], *rows, *ROWS[100:]])


FILES: dict[str, Callable[[], bytes]] = {
    "all cells at once": lambda: cells_of(*IN_CELLS),
    "missing everywhere": lambda: table_bytes([("",) * len(HEADER)] * 300),
    "not UTF-8": line(b"p1,3\xff,\xfe,\x80,\xc3\x28,\xff,\xff\n"),
    "NUL": line(b"p1,3\0,F\0,1\0,A\0a,n\0o,\0\0\n"),
    "a cell longer than a block": lambda: table_bytes(
        [*ROWS, *with_cells("notes", ("x" * (17 * MEGABYTE),))]
    ),
    "a short row": line(b"p1,33\n"),
    "a long row": line(b"p1,33,F,1.0,Aa,no,x,y,z\n"),
    "blank lines": line(b"\n\n   \n"),
    "a quote that is not closed": line(b'p1,33,"F,1.0,Aa,no,x\n'),
    "a quote that is not closed at the end": line(b'p1,33,"F,1.0,Aa,no,x\n', len(ROWS) + 1),
    "a quote inside": line(b'p1,33,F"F,1.0,"Aa"a,no,x\n'),
    "lines ended as on Windows": lambda: table_bytes(ROWS, end="\r\n"),
    "no end of the last line": lambda: table_bytes(ROWS)[:-1],
    "a byte order mark": lambda: b"\xef\xbb\xbf" + table_bytes(ROWS),
    "bytes after the end": line(b"\0\0\0", len(ROWS) + 1),
    "one person with all rows": lambda: table_bytes([("me", *row[1:]) for row in people(20_000)]),
}


def observed(place: Place, ended: Ended) -> dict[str, object]:
    """All of a release that must not depend on cells: what is not an answer, or made of answers."""
    assert ended.code == 0, ended
    folder = place.folder / ended.folder
    manifest = evidence.assert_whole(folder)
    charged = evidence.charges(evidence.records(folder / "private" / "journal.jsonl"))
    out = ended.out.replace(folder.name, "ID")
    return {
        # The verdict follows from noisy answers.
        "out": re.sub(
            r"^Verdict: .*\n",
            "",
            re.sub(r"^Released [\d,]+ synthetic rows?", "Released N synthetic rows", out),
            flags=re.M,
        ),
        "err": without_warnings(ended.err, manifest),
        # The exam names the finished table, which is made of noisy answers.
        "charges": re.sub(r'"table": "[0-9a-f]{64}"', '"table": "ITS DIGEST"', json.dumps(charged)),
        "columns": manifest["columns"],
        "guarantee": manifest["guarantee"],
        "not protected": manifest["not_protected"],
        "files": sorted(evidence.there(folder)),
    }


@pytest.fixture(scope="module")
def clean(keeper: Keeper, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What is observed of a good table."""
    folder = tmp_path_factory.mktemp("clean")
    place = Place(folder, folder)
    place.table(ROWS)
    fix_questions(place)
    return observed(place, keeper.run(place))


def fix_questions(place: Place) -> None:
    """Configure a release whose questions don't depend on its answers, as a chosen structure's do."""
    place.configure(structure={"method": "independent"}, privacy=BY_PERSON)


@pytest.mark.parametrize("case", some(list(FILES), 3))
def test_cells_change_neither_code_nor_message_nor_charge_nor_schema(
    keeper: Keeper, place: Place, clean: dict[str, object], case: str
) -> None:
    """Hazards 7, 18, 19, 22, 24, 25, 26 and 27."""
    (place.folder / "people.csv").write_bytes(FILES[case]())
    fix_questions(place)
    assert observed(place, keeper.run(place)) == clean


@pytest.mark.slow
@pytest.mark.parametrize("case", IN_CELLS)
def test_cells_of_one_kind_change_nothing_either(
    keeper: Keeper, place: Place, clean: dict[str, object], case: str
) -> None:
    """As above, where another kind can't hide it."""
    (place.folder / "people.csv").write_bytes(cells_of(case))
    fix_questions(place)
    assert observed(place, keeper.run(place)) == clean


def test_a_difference_would_be_seen(keeper: Keeper, place: Place, clean: dict[str, object]) -> None:
    """The planted fault: a category more, as if it had been taken from the table."""
    fix_questions(place)
    config = json.loads((place.folder / "config.yaml").read_text())
    config["columns"]["city"]["values"].append("Zz")
    (place.folder / "config.yaml").write_text(json.dumps(config))
    seen = observed(place, keeper.run(place))
    assert seen["columns"] != clean["columns"]


def test_a_chosen_structure_is_asked_for_alike_whatever_cells_hold(keeper: Keeper, place: Place) -> None:
    """Hazards 18 and 20: with mst, up to the pairs that noisy answers chose.

    How many pairs the next choice is among depends on which one was chosen before, so only the first
    choice's number is compared.
    """

    def asked(content: bytes) -> list[object]:
        (place.folder / "people.csv").write_bytes(content)
        done = keeper.run(place)
        journal = place.folder / done.folder / "private" / "journal.jsonl"
        questions = [r["question"] for r in evidence.charges(evidence.records(journal))]
        first = next(q["candidates"]["number"] for q in questions if q["ask"] == "choose")
        return [first, *((q["ask"], len(q.get("columns", ()))) for q in questions)]

    place.configure()
    good = asked(table_bytes(ROWS))
    assert asked(FILES["missing everywhere"]()) == good
    assert asked(b"\n".join([FILES["not UTF-8"](), cells_of("out of range")])) == good


@pytest.mark.parametrize(
    "case", some(["a short row", "a long row", "blank lines", "not UTF-8", "missing"], 1)
)
def test_where_the_number_of_rows_is_public_a_broken_row_is_still_a_row(
    keeper: Keeper, place: Place, case: str
) -> None:
    """Hazard 21: under replace-one n is published as it is, so it must not tell good rows from bad."""
    lines = table_bytes(ROWS).splitlines(keepends=True)
    lines[100] = {
        "a short row": b"p1,33\n",
        "a long row": b"p1,33,F,1.0,Aa,no,x,y,z\n",
        "blank lines": b"   \n",
        "not UTF-8": b"p1,3\xff,\xfe,\x80,\xc3\x28,\xff,\xff\n",
        "missing": b",,,,,,\n",
    }[case]
    (place.folder / "people.csv").write_bytes(b"".join(lines))
    place.configure(privacy={"neighbours": "replace_one"}, ledger={"dataset": "exchanged"})
    manifest = evidence.assert_whole(place.folder / keeper.run(place).folder)
    assert manifest["synthetic_rows"] == len(ROWS)
