"""An occasion is released once, whatever happens, and a period's release is about its rows alone."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dpsynth.errors import ConfigError
from dpsynth.pipeline.steps import Step
from tests.release.keeper import Keeper
from tests.release.killed import DIED
from tests.release.place import Ended, Place, people, release

MONTHLY: dict[str, object] = {"period": {"column": "notes", "every": "month"}}


def dated(place: Place, count: int = 600) -> None:
    """Rows of which each third is of another month; F's are of March alone.

    A month's 200 rows lie ten standard deviations above the number that would be warned of.
    """
    months = ("2026-02-10", "2026-03-05", "2026-04-28")
    rows = [[*row[:-1], months[i % 3]] for i, row in enumerate(people(count))]
    for row in rows:
        row[2] = "F" if row[-1] == months[1] else "M"
    place.table(rows)


@pytest.fixture
def monthly(place: Place) -> Place:
    dated(place)
    place.configure(**MONTHLY)
    return place


def kept(place: Place, folder: Path) -> dict[str, bytes]:
    whole = place.folder / folder
    return {p.relative_to(whole).as_posix(): p.read_bytes() for p in whole.rglob("*") if p.is_file()}


def only_note(ended: Ended) -> str:
    (line,) = ended.err.splitlines()
    assert line.startswith("Note: ")
    return line


def test_a_period_is_released_once_and_shown_again_at_no_cost(keeper: Keeper, monthly: Place) -> None:
    first = keeper.run(monthly, "--period", "2026-03")
    assert first.code == 0 and first.err == ""
    files, rows = kept(monthly, first.folder), monthly.ledger.rows()
    (monthly.folder / "people.csv").unlink()
    again = keeper.run(monthly, "--period", "2026-03")
    assert again.out == first.out
    note = only_note(again)
    assert "2026-03 of release 'people' was released on" in note and "nothing is charged" in note
    assert kept(monthly, first.folder) == files and monthly.ledger.rows() == rows


def test_a_periods_release_is_about_its_rows_alone(keeper: Keeper, monthly: Place) -> None:
    monthly.configure(**MONTHLY, privacy={"epsilon": 1000}, ledger={"cap": {"epsilon": 100_000}})
    for label, share in (("2026-02", 0.0), ("2026-03", 1.0), ("2026-04", 0.0), ("2026-05", None)):
        done = keeper.run(monthly, "--period", label)
        public = monthly.folder / done.folder / "public"
        manifest = json.loads((public / "manifest.json").read_text())
        assert (manifest["period"]["label"], manifest["period"]["column"]) == (label, "notes")
        assert manifest["period"]["start"] == f"{label}-01"
        assert f"rows of {label} alone" in (public / "report.html").read_text()
        table = pq.read_table(public / "synthetic.parquet")
        if share is None:
            assert table.num_rows <= 2
        else:
            assert abs(table.num_rows - 200) <= 2
            sexes = table["sex"].to_pylist()
            assert abs(sexes.count("F") / len(sexes) - share) < 0.05


def test_without_a_label_it_is_the_last_period_that_has_ended(keeper: Keeper, monthly: Place) -> None:
    done = keeper.run(monthly)
    manifest = json.loads((monthly.folder / done.folder / "public" / "manifest.json").read_text())
    assert manifest["period"]["label"] < manifest["date"][:7]
    refused = keeper.run(monthly, "--period", "2999-01")
    assert refused.code == 2 and "has not ended" in refused.err and refused.err.count("\n") == 1
    assert len(monthly.ledger.balances()[0].releases) == 1


def test_a_period_is_not_released_with_another_config_under_the_same_name(
    keeper: Keeper, monthly: Place
) -> None:
    assert keeper.run(monthly, "--period", "2026-03").code == 0
    rows = monthly.ledger.rows()
    monthly.configure(**MONTHLY, sample={"seed": 8})
    refused = keeper.run(monthly, "--period", "2026-03")
    assert refused.code == 2 and refused.out == ""
    assert "with another config, and a period is released once" in refused.err
    assert monthly.ledger.rows() == rows and not list(monthly.folder.glob("outputs/people/.*"))
    monthly.configure(**MONTHLY, sample={"seed": 8}, release="others")
    assert keeper.run(monthly, "--period", "2026-03").code == 0
    assert len(monthly.ledger.rows()) == len(rows) + 2


def test_where_the_table_lies_and_what_may_be_spent_is_no_part_of_the_config_in_this(
    keeper: Keeper, monthly: Place
) -> None:
    first = keeper.run(monthly, "--period", "2026-03")
    dated(monthly, 900)
    (monthly.folder / "people.csv").rename(monthly.folder / "moved.csv")
    monthly.configure(**MONTHLY, source={"path": "moved.csv"}, ledger={"cap": {"epsilon": 999}})
    assert keeper.run(monthly, "--period", "2026-03").out == first.out


def test_a_bundle_that_is_gone_is_not_made_anew(keeper: Keeper, monthly: Place) -> None:
    done = keeper.run(monthly, "--period", "2026-03")
    (monthly.folder / done.folder).rename(monthly.folder / "archive")
    rows = monthly.ledger.rows()
    refused = keeper.run(monthly, "--period", "2026-03")
    assert refused.code == 2 and "Copy it back" in refused.err and done.folder.name in refused.err
    assert monthly.ledger.rows() == rows


def test_an_unfinished_release_of_a_period_goes_on_when_it_is_run_again(
    keeper: Keeper, monthly: Place
) -> None:
    stopped = keeper.run(monthly, "--period", "2026-03", stop=(f"begin {Step.FIT}", 1))
    assert stopped.code == DIED
    (entry,) = monthly.ledger.balances()[0].releases
    again = keeper.run(monthly, "--period", "2026-03")
    assert again.code == 0 and again.folder.name == entry.release_id
    assert any("not finished: it goes on" in line for line in again.err.splitlines())
    assert len(monthly.ledger.balances()[0].releases) == 1


def test_a_run_tells_of_other_periods_that_were_not_finished(keeper: Keeper, monthly: Place) -> None:
    assert keeper.run(monthly, "--period", "2026-03", stop=(f"begin {Step.FIT}", 1)).code == DIED
    (entry,) = monthly.ledger.balances()[0].releases
    other = keeper.run(monthly, "--period", "2026-04")
    assert other.code == 0
    note = only_note(other)
    assert f"Release {entry.release_id} of 2026-03 has been reserved since" in note and "abandon" in note


def test_an_abandoned_periods_release_is_paid_for_and_the_period_free(keeper: Keeper, monthly: Place) -> None:
    assert keeper.run(monthly, "--period", "2026-03", stop=(f"begin {Step.FIT}", 1)).code == DIED
    (entry,) = monthly.ledger.balances()[0].releases
    monthly.ledger.abandon(entry.release_id, None, [], "the machine is gone")
    done = keeper.run(monthly, "--period", "2026-03")
    assert done.code == 0 and done.folder.name != entry.release_id
    refused = keeper.run(monthly, "--resume", entry.release_id)
    assert refused.code == 2 and "was abandoned" in refused.err


def test_a_resumed_release_keeps_its_period(keeper: Keeper, monthly: Place) -> None:
    assert keeper.run(monthly, "--period", "2026-03", stop=(f"begin {Step.FIT}", 1)).code == DIED
    (entry,) = monthly.ledger.balances()[0].releases
    refused = keeper.run(monthly, "--resume", entry.release_id, "--period", "2026-04")
    assert refused.code == 2 and "Leave out --period" in refused.err
    done = keeper.run(monthly, "--resume", entry.release_id)
    manifest = json.loads((monthly.folder / done.folder / "public" / "manifest.json").read_text())
    assert manifest["period"]["label"] == "2026-03"


def test_parts_that_nobody_is_in_two_of_count_for_the_dearest(keeper: Keeper, monthly: Place) -> None:
    apart = {"period": {"column": "notes", "every": "month", "composition": "parallel"}}
    shares = {}
    for name, config in (("one by one", MONTHLY), ("apart", apart)):
        ledger = {"dataset": name, "other_people": "so that the two accounts can be compared"}
        monthly.configure(**config, ledger=ledger, release=name.replace(" ", "-"))
        for label in ("2026-02", "2026-03"):
            assert keeper.run(monthly, "--period", label).code == 0
        account = monthly.ledger.balance(name)
        assert account is not None and len(account.releases) == 2
        shares[name] = account.share_used
        planned = keeper.call(monthly, "plan", "config.yaml", "--json")
        assert planned.code == 0, planned.err
        expected = json.loads(planned.out)["ledger"]
        assert expected["before"]["share"] == pytest.approx(account.share_used, abs=1e-6)
        assert (expected["after"]["share"] > expected["before"]["share"]) == (name == "one by one")
    assert shares["apart"] == pytest.approx(shares["one by one"] / 2, rel=0.01)


def test_a_schedule_without_periods_makes_one_release_a_tick(keeper: Keeper, place: Place) -> None:
    place.configure(schedule={"cron": "0 3 1 1 *", "timezone": "Europe/Paris"})
    first, again = keeper.run(place), keeper.run(place)
    assert again.out == first.out and "nothing is charged" in only_note(again)
    (entry,) = place.ledger.balances()[0].releases
    assert entry.occasion is not None and "-01-01T03:00+01:00" in entry.occasion


def test_without_either_each_run_is_a_new_release(keeper: Keeper, place: Place) -> None:
    assert keeper.run(place).out != keeper.run(place).out
    assert [r.occasion for r in place.ledger.balances()[0].releases] == [None, None]


def test_python_is_told_what_was_found_if_it_asks(monthly: Place) -> None:
    import dpsynth

    done = release(monthly)
    spec = dpsynth.load(monthly.folder / "config.yaml", source=str(monthly.folder / "people.csv"))
    heard: list[str] = []
    again = dpsynth.release(spec, outputs=monthly.folder / "outputs", tell=heard.append)
    assert again.folder == done.folder and again.guarantee == done.guarantee
    # A month may be too small for its noise, and is warned of.
    assert "shown again" in heard[0] and heard[1:] == [w.paragraph for w in again.warnings]
    with pytest.raises(ConfigError, match="--period must name a month"):
        dpsynth.release(spec, outputs=monthly.folder / "outputs", period="March")
