"""``dpsynth ledger`` says what the ledger has, and what it changes stays in the chain."""

import io
import json
import re
import shutil
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import NOTHING
from dpsynth.accounting.measures import PURE, ZCDP
from dpsynth.curator.journal import Journal
from dpsynth.errors import BudgetRefused, ConfigError
from dpsynth.ledger.ledger import Ledger
from tests.cli.here import Command, Ended
from tests.monthly import EVENTS, Months

DOCS = Path(__file__).parents[2] / "docs" / "ledger.md"


class Here:
    """The working directory, the command in this process, and a dataset of the ledger."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.folder, self._monkeypatch = folder, monkeypatch
        self._dpsynth = Command(folder, monkeypatch, capsys)
        self.months = self.dataset()

    def dataset(self, head: Path | None = None, **terms: object) -> Months:
        ledger = Ledger(f"sqlite:///{self.folder / 'ledger.db'}", head)
        return Months(ledger, **terms).on_its_clock(self._monkeypatch)  # type: ignore[arg-type]

    def call(self, *arguments: str) -> Ended:
        return self._dpsynth("ledger", *arguments)

    def refused(self, *arguments: str, code: int = 2) -> str:
        """The error of a command that must fail and leave the ledger as it is."""
        before = self.rows
        ended = self.call(*arguments)
        assert (ended.code, self.rows) == (code, before), ended
        assert ended.err.startswith("Error: ") and ended.err.count("\n") == 1, ended
        return ended.err

    def sql(self, statement: str) -> None:
        with sqlite3.connect(self.folder / "ledger.db") as connection:
            connection.execute(statement)

    @property
    def rows(self) -> list[tuple[object, ...]]:
        if not (self.folder / "ledger.db").exists():
            return []
        with sqlite3.connect(self.folder / "ledger.db") as connection:
            return connection.execute("SELECT * FROM dpsynth_rows").fetchall()

    def journal(self, release_id: str, asked: int, folder: str = ".{}.partial") -> Path:
        """A journal of a release of the config, with so many charges."""
        path = self.folder / "outputs/visits" / folder.format(release_id) / "private/journal.jsonl"
        terms = {"measure": "zcdp", "epsilon": "1", "delta": "1e-9"}
        journal = Journal.create(path, {"id": release_id, "terms": terms})
        journal.hold("first")
        for number, event in enumerate(EVENTS[:asked]):
            journal.answer({"ask": number}, event, _no_answer)
        journal.close()
        return path

    def config(self, **ledger: object) -> str:
        """A config of the dataset."""
        text = {
            "release": "visits",
            "source": {"path": "visits.csv"},
            "privacy": {"epsilon": 1, "delta": 1e-9, "noise": "laplace"},
            "ledger": {"dataset": "visits", "cap": {"epsilon": 4, "delta": 1e-6}, **ledger},
            "columns": {"sex": {"type": "category", "values": ["F", "M"]}},
            "schedule": {"cron": "0 3 1 1 *", "timezone": "UTC"},
        }
        (self.folder / "visits.yaml").write_text(json.dumps(text))
        return "visits.yaml"


def _no_answer() -> np.ndarray:
    return np.zeros(1, np.int64)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(tmp_path, monkeypatch, capsys)


def test_show_says_what_was_spent_by_whom_and_what_to_do_with_what_is_open(here: Here) -> None:
    here.months.release(0, 1)
    open_one = here.months.reserve(2)
    here.call("cap", "visits", "--epsilon", "5", "--reason", "agreed by the board")
    shown = here.call("show", "--detail")
    assert shown.code == 0 and shown.err == ""
    assert "\x1b" not in shown.out
    for said in ("visits", "add_remove", "zCDP", "(least)", "agreed by the board", "2026-03", "reserved"):
        assert said in shown.out
    assert f"dpsynth run CONFIG --resume {open_one}" in shown.out
    assert f"dpsynth run CONFIG --abandon {open_one}" in shown.out
    # The first screens have one number of each kind: no ε of releases, and no accountant.
    for first in (here.call("show").out, here.call("show", "visits").out):
        assert "GDP" not in first and "accountant" not in first and "ε alone" not in first
        assert first.count("% of the cap") == 1 and first.count("█") == shown.out.count("█") > 0
    lines = [line for line in shown.out.splitlines() if re.match(r"\d{8}-[0-9a-f]{8} ", line)]
    assert len(lines) == 3 and all("2026-0" in line for line in lines)
    assert re.search(r"\d+ more releases like the last one .* the first to be refused on 20", shown.out)


def test_show_is_four_lines_a_dataset_and_a_fifth_for_what_has_not_ended(here: Here) -> None:
    here.months.release(0, 1)
    payroll = here.dataset(dataset="payroll")
    payroll.release(0)
    open_one = payroll.reserve(1)
    lines = here.call("show").out.splitlines()
    assert len(lines) == 10
    assert re.fullmatch(r"visits: [\d.]+ % of the cap is used, by 2 releases since 2026-02-03\.", lines[0])
    assert re.fullmatch("█+░+", lines[1]) and lines[3] == "Protected: one row."
    assert re.match(r"\d+ more releases like the last one", lines[2]) and lines[4] == ""
    assert lines[5].startswith("payroll: ") and lines[9] == (
        f"Not ended, and counted in full: {open_one}. Unless it is running, finish it with dpsynth run "
        f"CONFIG --resume {open_one}, or give it up with dpsynth run CONFIG --abandon {open_one}."
    )


def test_show_names_the_tables_and_why_there_is_a_second_dataset(here: Here) -> None:
    here.months.source, here.months.other_people = "/srv/visits.csv", "emptied each January"
    here.months.release(0)
    shown = here.call("show", "visits").out
    assert "Released tables: /srv/visits.csv." in shown and "same table: emptied each January" in shown
    (told,) = json.loads(here.call("show", "--json").out)
    assert told["sources"] == ["/srv/visits.csv"]
    assert told["releases"][0]["other_people"] == "emptied each January"
    here.call("report")
    assert "Released tables: /srv/visits.csv." in Path("ledger.html").read_text(encoding="utf-8")


def test_a_narrow_terminal_breaks_no_figure(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    here.months.release(0, 1)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", here.call("show", "--detail").out).splitlines()
    assert max(map(len, lines)) <= 80
    for entry in here.months.account.releases:
        (line,) = [line for line in lines if line.startswith(entry.release_id)]
        assert f"{entry.occasion}" in line and f"{entry.created}" in line


def test_json_figures_are_not_below_the_ledgers_own(here: Here) -> None:
    here.months.epsilon = "0.7"
    here.months.release(0, 1, 2)
    account = here.months.account
    (told,) = json.loads(here.call("show", "--json").out)
    for told_one, entry in zip(told["releases"], account.releases, strict=True):
        assert Fraction(told_one["epsilon"]) >= entry.cost.amount.epsilon
        assert Fraction(told_one["delta"]) >= entry.cost.amount.delta
        assert told_one["answers"] == {"discrete Laplace": 8, "exponential mechanism": 3}
    assert Fraction(told["epsilon_used"]) >= account.epsilon_used
    assert Fraction(told["cap"]["delta"]) <= account.cap.delta
    # The planted fault: 0.7 as a float, to the nearest, is less than 0.7.
    assert Fraction(float(account.releases[0].cost.amount.epsilon)) < account.releases[0].cost.amount.epsilon


def test_names_cannot_steer_the_terminal(here: Here) -> None:
    months = here.dataset(dataset="a\x1b[31m[bold]b", name="r\x1b]0;t\x07", unit="u\x1b[2J")
    months.reserve(0, occasion="\x1b[1A")
    for options in ((), ("--detail",)):
        shown = here.call("show", *options)
        assert shown.code == 0 and "\x1b" not in shown.out and "\x07" not in shown.out
        assert "a?[31m[bold]b" in shown.out


def test_only_the_dataset_asked_for_is_shown_and_an_unknown_one_is_named(here: Here) -> None:
    here.months.release(0)
    here.dataset(dataset="payroll").release(0)
    assert len(json.loads(here.call("show", "--json").out)) == 2
    (told,) = json.loads(here.call("show", "payroll", "--json").out)
    assert told["dataset"] == "payroll"
    error = here.refused("show", "salaries")
    assert "'salaries'" in error and "'visits'" in error and "'payroll'" in error


@pytest.mark.parametrize("command", [("show",), ("verify",), ("export",), ("report",)])
def test_a_ledger_that_is_not_there_is_an_error_and_is_not_made(here: Here, command: tuple[str]) -> None:
    assert "working directory" in here.refused(*command)
    assert not list(here.folder.iterdir())


def test_a_config_names_ledger_dataset_head_and_schedule(here: Here) -> None:
    head = here.folder / "ledger.head"
    months = here.dataset(head, filter=PURE, cap=("4", "0"))
    months.release(0, 1)
    here.dataset(head, dataset="payroll").release(0)
    (told,) = json.loads(here.call("show", "--json", "--config", here.config(head="ledger.head")).out)
    assert told["dataset"] == "visits" and told["runway"]["every_days"] is None
    year = datetime.now(UTC).year
    assert told["runway"]["fits"] == 2
    assert told["runway"]["refused"] == f"{year + 3}-01-01"
    assert "noted down" not in here.call("verify", "--config", "visits.yaml").out


def test_verify_says_intact_only_of_a_ledger_that_is(here: Here) -> None:
    here.months.release(0, 1)
    found = here.call("verify")
    assert found.code == 0 and f"5 rows, intact, head {here.rows[-1][-1]}" in found.out
    assert "older copy" in found.out
    # The planted fault: a figure made smaller in one row.
    here.sql("UPDATE dpsynth_rows SET content = replace(content, ':\"1\"', ':\"0\"') WHERE number = 3")
    damaged = here.call("verify")
    assert damaged.code == 1 and "row 3" in damaged.out and "intact" not in damaged.out


def test_verify_finds_all_that_is_wrong(here: Here) -> None:
    here.months.release(0, 1, 2)
    here.sql("UPDATE dpsynth_rows SET created = '2020-01-01' WHERE number = 2")
    here.sql("DELETE FROM dpsynth_rows WHERE number = 5")
    damaged = here.call("verify")
    assert damaged.code == 1
    assert "row 2" in damaged.out and "row 5" in damaged.out and len(damaged.out.splitlines()) >= 2


def test_an_older_copy_is_found_with_a_head_file_and_only_with_one(here: Here) -> None:
    here.months.release(0)
    shutil.copy("ledger.db", "older.db")
    begun = here.call("head", "--head", "away.head")
    assert begun.code == 0 and "row 3" in begun.out
    here.dataset(Path("away.head")).release(1)
    assert here.call("verify", "--head", "away.head").code == 0
    shutil.copy("older.db", "ledger.db")
    assert here.call("verify").code == 0
    stale = here.call("verify", "--head", "away.head")
    assert stale.code == 1 and "older copy" in stale.out
    assert "older copy" in here.refused("show", "--head", "away.head")


def test_a_head_file_that_contradicts_the_ledger_is_not_begun_anew(here: Here) -> None:
    assert "--head" in here.refused("head")
    here.months.release(0)
    shutil.copy("ledger.db", "older.db")
    here.months.release(1)
    assert here.call("head", "--head", "away.head").code == 0
    kept = Path("away.head").read_bytes()
    assert here.call("head", "--head", "away.head").code == 0
    shutil.copy("older.db", "ledger.db")
    assert "away.head" in here.refused("head", "--head", "away.head")
    assert Path("away.head").read_bytes() == kept


def recipe() -> str:
    (found,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.DOTALL)
    return found


def recomputed(file: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", recipe(), file], capture_output=True, text=True, timeout=60)


def test_a_stranger_recomputes_the_chain_from_an_export_with_ten_lines(here: Here) -> None:
    here.months.release(0, 1)
    here.dataset(dataset='é"\\ \N{SNAIL}').release(0)
    exported = here.call("export", "--out", "rows.jsonl")
    assert exported.code == 0 and len(recipe().strip().splitlines()) <= 10
    assert here.call("export").out == Path("rows.jsonl").read_text(encoding="utf-8")
    assert recomputed("rows.jsonl").stdout.strip() == here.rows[-1][-1]
    whole = Path("rows.jsonl").read_text(encoding="utf-8")
    lines = whole.splitlines(keepends=True)
    planted = {
        "edited": whole.replace(r":\"1\"", r":\"0\"", 1),
        "missing": "".join(lines[:2] + lines[3:]),
        "reordered": "".join([*lines[:2], lines[3], lines[2], *lines[4:]]),
    }
    for what, text in planted.items():
        assert text != whole
        Path(what).write_text(text, encoding="utf-8")
        assert recomputed(what).returncode != 0, what


def test_the_docs_name_every_command_and_options_that_there_are(here: Here) -> None:
    named = re.findall(r"dpsynth ledger ([a-z]+)((?: [^`\n]*)?)", DOCS.read_text(encoding="utf-8"))
    known = {"show", "report", "cap", "abandon", "verify", "head", "export", "unit", "policy"}
    assert {command for command, _ in named} == known
    for command, rest in named:
        helped = here.call(command, "--help").out
        for option in re.findall(r"--[a-z]+", rest):
            assert option in helped, (command, option)


def test_a_raised_cap_is_exact_and_in_the_chain_with_its_reason(here: Here) -> None:
    here.months.filter, here.months.cap = PURE, ("1.5", "0")
    here.months.release(0)
    with pytest.raises(BudgetRefused):
        here.months.reserve(1)
    changed = here.call("cap", "visits", "--epsilon", "2.1", "--reason", "  agreed by\n the board ")
    assert changed.code == 0
    assert "was ε = 1.5, δ = 0 and is ε = 2.1, δ = 0" in changed.out
    assert "1 more fit, and 0 before" in changed.out and "lower ledger.cap" in changed.out
    account = here.months.account
    assert account.cap == Amount(Fraction(21, 10)) and account.caps[-1].reason == "agreed by the board"
    here.months.cap = ("2.1", "0")
    here.months.reserve(1)
    assert here.call("verify").code == 0


def test_an_account_of_rows_goes_on_with_persons_for_a_reason_on_record(here: Here) -> None:
    here.months.release(0, 1)
    config = here.config()
    text = json.loads((here.folder / config).read_text())
    text["privacy"]["unit"] = {"column": "who", "max_rows": 3}
    (here.folder / config).write_text(json.dumps(text))
    asked = ("unit", "--config", config, "--reason", "a form a year")
    assert "must be a whole number, or unknown" in here.refused(*asked, "--most-rows", "few")
    assert "uses up to 3 of each" in here.refused(*asked, "--most-rows", "2")
    changed = here.call(*asked, "--most-rows", "3")
    assert (
        changed.code == 0
        and "protects one person: all rows with the same who, at most 3, from now on" in changed.out
    )
    for command in (("show",), ("show", "--detail")):
        shown = here.call(*command).out
        assert "nobody has more than 3 rows in any of them" in shown
    assert "Reason of the change: a form a year" in shown
    here.call("report")
    assert "nobody has more than 3 rows in any of them" in (here.folder / "ledger.html").read_text()
    assert here.call("verify").code == 0
    assert "Only an account that protects rows" in here.refused(*asked, "--most-rows", "5")


def test_a_share_of_delta_for_finding_values_is_set_aside_and_shown(here: Here) -> None:
    here.months.release(0)
    here.months.approximate_delta = "5e-10"
    with pytest.raises(ConfigError, match=r"ledger cap 'visits' --approximate-share 0\.5 --config CONFIG"):
        here.months.reserve(1)
    assert "for finding values" not in here.call("show", "--detail").out
    changed = here.call("cap", "visits", "--approximate-share", "0.1", "--reason", "agreed")
    assert changed.code == 0
    assert "was ε = 4, δ = 1e-6 and is ε = 4, δ = 1e-6 (0.1 of δ for finding values)" in changed.out
    here.months.reserve(1)
    shown = here.call("show", "--detail").out
    assert "Of the cap's δ, 1e-7 is kept for finding values, and 5e-10 of that is used." in shown
    assert "δ = 1e-6 (0.1 of δ for finding values) (agreed)" in shown
    (told,) = json.loads(here.call("show", "--json").out)
    assert (
        told["cap"]["approximate_share"] == told["caps"][1]["approximate_share"] == pytest.approx(0.1)
        and told["caps"][0]["approximate_share"] == 0
    )
    assert [release["approximate_delta"] for release in told["releases"]] == [0.0, 5e-10]
    for month in range(2, 4):
        here.months.delta, here.months.approximate_delta = "1e-7", "4.9e-8"
        here.months.reserve(month)
    assert "of the δ for finding values it takes 4.9e-8, and 1.5e-9 is left." in here.call("show").out
    assert here.call("report").code == 0
    assert "1e-7 is kept for finding values" in Path("ledger.html").read_text(encoding="utf-8")


def test_a_cap_below_what_is_counted_is_allowed_and_refuses_every_release(here: Here) -> None:
    here.months.release(0)
    lowered = here.call("cap", "visits", "--epsilon", "0.01", "--reason", "no more")
    assert lowered.code == 0 and "every further release is refused" in lowered.out
    here.months.epsilon = "0.000001"
    with pytest.raises(BudgetRefused):
        here.months.reserve(1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--reason", "x"), "--epsilon"),
        (("--epsilon", "ten", "--reason", "x"), "--epsilon"),
        (("--epsilon", "-1", "--reason", "x"), "--epsilon"),
        (("--epsilon", "inf", "--reason", "x"), "--epsilon"),
        (("--delta", "1", "--reason", "x"), "--delta"),
        (("--approximate-share", "1", "--reason", "x"), "--approximate-share"),
        (("--delta", "nan", "--reason", "x"), "--delta"),
        (("--epsilon", "5", "--reason", "  "), "--reason"),
        (("--epsilon", "5", "--reason", "\x1b[31m"), "--reason"),
    ],
)
def test_a_cap_that_is_no_cap_or_has_no_reason_changes_nothing(
    here: Here, arguments: tuple[str, ...], said: str
) -> None:
    here.months.release(0)
    assert said in here.refused("cap", "visits", *arguments)


def test_an_abandoned_release_is_charged_what_its_journal_says(here: Here) -> None:
    release_id = here.months.reserve(0)
    here.journal(release_id, asked=3)
    ended = here.call(
        "abandon", release_id, "--reason", "the table was wrong", "--config", here.config(), "--yes"
    )
    assert ended.code == 0, ended
    (entry,) = here.months.account.releases
    assert (entry.state, entry.reason) == ("abandoned", "the table was wrong")
    assert len(entry.events) == 3 and entry.cost.rho == sum(ZCDP.cost(e) for e in EVENTS[:3])
    assert 0 < entry.cost.rho < entry.reserved.rho
    # An epsilon at a delta holds for the release as a whole.
    assert entry.cost.amount == entry.reserved.amount
    assert re.search(
        r"reserved ε = 1, δ = 1e-9: \S+ % of the cap\. Abandoned, it counts for \S+ % of", ended.out
    )
    assert here.call("verify").code == 0


def test_an_abandoned_release_without_a_journal_is_charged_all_that_it_reserved(here: Here) -> None:
    release_id = here.months.reserve(0)
    ended = here.call("abandon", release_id, "--reason", "lost", "--config", here.config(), "--yes")
    assert ended.code == 0 and "no journal was found" in ended.out
    (entry,) = here.months.account.releases
    assert entry.state == "abandoned" and entry.cost == entry.reserved != NOTHING


def test_the_journal_of_another_release_charges_nobody(here: Here) -> None:
    release_id, other = here.months.reserve(0), here.months.reserve(1)
    # The planted fault: by this journal the first would be charged nothing.
    empty = here.journal(other, asked=0)
    asked = ("abandon", release_id, "--reason", "lost", "--yes", "--journal")
    assert f"not the journal of release {release_id}" in here.refused(*asked, str(empty))
    assert "can't be read" in here.refused(*asked, "nowhere.jsonl")
    Path("text").write_text("hello\n")
    assert "is damaged" in here.refused(*asked, "text", code=1)


def test_a_journal_that_may_lack_charges_charges_nobody(here: Here) -> None:
    """A copy of it, and one that another run went on from."""
    release_id = here.months.reserve(0)
    journal = here.journal(release_id, asked=3)
    copy = shutil.copy(journal, "copy.jsonl")
    asked = ("abandon", release_id, "--reason", "lost", "--yes", "--journal")
    assert "may not have all that was asked" in here.refused(*asked, str(copy))
    here.months.ledger.take(release_id, "second")
    assert "may not have all that was asked" in here.refused(*asked, str(journal))


def test_a_release_whose_bundle_is_whole_is_closed_and_not_abandoned(here: Here) -> None:
    release_id = here.months.reserve(0)
    here.journal(release_id, asked=11, folder="{}")
    error = here.refused("abandon", release_id, "--reason", "x", "--yes", "--config", here.config())
    assert f"--resume {release_id}" in error


def test_what_has_ended_or_never_was_is_not_abandoned(here: Here) -> None:
    here.months.release(0)
    (entry,) = here.months.account.releases
    assert "closed" in here.refused("abandon", entry.release_id, "--reason", "x", "--yes")
    assert "no release r9" in here.refused("abandon", "r9", "--reason", "x", "--yes")


class Typed(io.StringIO):
    """What somebody types on a terminal."""

    def isatty(self) -> bool:
        return True


def test_nothing_is_abandoned_unless_somebody_agrees(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("abandon", here.months.reserve(0), "--reason", "lost")
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert "--yes" in here.refused(*asked)
    for answer in ("n\n", "\n", ""):
        monkeypatch.setattr("sys.stdin", Typed(answer))
        ended = here.call(*asked)
        assert ended.code == 1 and "Nothing was changed." in ended.out
        assert here.months.account.releases[0].state == "reserved"
    monkeypatch.setattr("sys.stdin", Typed("y\n"))
    assert here.call(*asked).code == 0
    assert here.months.account.releases[0].state == "abandoned"


def test_the_report_is_written_whole_or_not_at_all(here: Here) -> None:
    here.months.release(0)
    written = here.call("report", "--out", "page.html")
    assert written.code == 0 and written.out.splitlines()[-1] == "page.html"
    page = Path("page.html").read_text(encoding="utf-8")
    assert "2026-01" in page and here.rows[-1][-1] in page and "No head file was given" in page
    assert "can't be written" in here.refused("report", "--out", "nowhere/page.html", code=1)
    assert sorted(p.name for p in here.folder.iterdir()) == ["ledger.db", "page.html"]


def test_a_password_in_the_ledgers_url_is_not_shown(here: Here) -> None:
    url = "postgresql://someone:secret@127.0.0.1:1/nothing"
    for command in ("show", "export", "report"):
        assert "secret" not in here.refused(command, "--ledger", url)
    unreachable = here.call("verify", "--ledger", url)
    assert unreachable.code == 1 and "secret" not in unreachable.out + unreachable.err


def test_the_command_line_starts_without_what_only_the_ledger_needs() -> None:
    heavy = ("sqlalchemy", "rich", "jinja2", "pydantic", "numpy")
    code = f"import sys, dpsynth.cli.app; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
