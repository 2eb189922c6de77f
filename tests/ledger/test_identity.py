"""A table is known by what it is: its source, or a declared name, and never by a configuration's file."""

import json
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest

from dpsynth.accounting.amount import Amount
from dpsynth.errors import ConfigError
from dpsynth.ledger import balance as identity
from dpsynth.ledger.balance import Reservation, Table, name_of
from dpsynth.ledger.ledger import Ledger
from tests.ledger.forging import chained_anew, store
from tests.ledger.reservations import ASK, EVENTS, asking, cost

VISITS = "/srv/data/visits.csv"


@pytest.fixture
def ledger(database: str) -> Ledger:
    return Ledger(database)


def undeclared(release_id: str, source: str = VISITS, **other: object) -> Reservation:
    """A release of a table whose configuration names no dataset; its own name is that of its file."""
    return asking(release_id, **{"dataset": "", "source": source, "release": "a config", **other})  # type: ignore[arg-type]


def accounts(ledger: Ledger) -> dict[str, list[str]]:
    return {a.dataset: [r.release_id for r in a.releases] for a in ledger.balances()}


def test_a_copy_of_a_config_counts_in_the_account_of_its_table(ledger: Ledger) -> None:
    ledger.reserve(undeclared("r1"))
    ledger.reserve(undeclared("r2", release="copy of a config"))
    assert accounts(ledger) == {"visits": ["r1", "r2"]}
    assert ledger.balances()[0].sources == {VISITS}
    assert ledger.verify().problems == ()


def test_a_fresh_cap_for_a_copy_would_be_seen(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: the dataset is named after the release, as it once was."""
    monkeypatch.setattr("dpsynth.ledger.ledger.dataset_of", lambda table, *_: table.dataset or table.release)
    with pytest.raises(AssertionError):
        test_a_copy_of_a_config_counts_in_the_account_of_its_table(ledger)


def test_a_source_that_an_earlier_version_recorded_as_a_url_is_the_same_table(ledger: Ledger) -> None:
    ledger.reserve(undeclared("r1", source=f"file://{VISITS}"))
    ledger.reserve(undeclared("r2", release="by its path"))
    assert accounts(ledger) == {"visits": ["r1", "r2"]}
    ledger.reserve(undeclared("r3", release="far", source="s3://clinic/a.csv"))
    ledger.reserve(undeclared("r4", release="far too", source="s3a://clinic//./a.csv"))
    assert accounts(ledger)["a"] == ["r3", "r4"]


def test_a_second_account_for_a_source_is_refused_and_changes_nothing(ledger: Ledger) -> None:
    ledger.reserve(undeclared("r1"))
    rows = ledger.rows()
    for use in (ledger.reserve, ledger.read().foreseen):
        with pytest.raises(ConfigError) as refused:
            use(undeclared("r2", dataset="visits again"))
        said = str(refused.value)
        for words in (
            VISITS,
            "'visits'",
            "ledger.dataset: visits",
            "ledger.other_people",
            "nothing was charged",
        ):
            assert words in said
    assert ledger.rows() == rows


def test_a_second_account_for_other_people_is_declared_once_and_its_reason_stays(ledger: Ledger) -> None:
    ledger.reserve(undeclared("r1"))
    why = "the table is emptied each January"
    made = ledger.reserve(undeclared("r2", dataset="visits 2027", other_people=why))
    assert (made.dataset, made.source, made.other_people) == ("visits 2027", VISITS, why)
    # It is on record from now on.
    ledger.reserve(undeclared("r3", dataset="visits 2027"))
    assert accounts(ledger) == {"visits": ["r1"], "visits 2027": ["r2", "r3"]}
    with pytest.raises(ConfigError, match=r"several accounts in .*: 'visits', 'visits 2027'. Name the one"):
        ledger.reserve(undeclared("r4"))
    assert ledger.verify().problems == ()


def test_a_declared_name_holds_for_any_source_that_is_new(ledger: Ledger) -> None:
    """Each month another file, about the same people."""
    for month in (1, 2):
        ledger.reserve(undeclared(f"r{month}", f"/srv/visits-{month}.csv", dataset="visits"))
    assert accounts(ledger) == {"visits": ["r1", "r2"]}
    ledger.reserve(undeclared("r3", "/srv/visits-1.csv"))
    assert accounts(ledger) == {"visits": ["r1", "r2", "r3"]}


def test_the_same_release_of_the_next_file_counts_with_the_first(ledger: Ledger) -> None:
    ledger.reserve(undeclared("r1", "/srv/visits-1.csv"))
    ledger.reserve(undeclared("r2", "/srv/visits-2.csv"))
    assert accounts(ledger) == {"visits-1": ["r1", "r2"]}


def test_a_table_of_the_same_name_elsewhere_is_asked_about(ledger: Ledger) -> None:
    """It may be the first one, moved."""
    ledger.reserve(undeclared("r1"))
    moved = undeclared("r2", "/archive/visits.csv", release="another config")
    with pytest.raises(
        ConfigError, match=r"has a dataset 'visits' of /srv/data/visits.csv. .* moved or renamed"
    ):
        ledger.reserve(moved)
    ledger.reserve(replace(moved, dataset="visits"))
    ledger.reserve(undeclared("r3", "/elsewhere/visits.csv", release="third config", dataset="other visits"))
    assert accounts(ledger) == {"visits": ["r1", "r2"], "other visits": ["r3"]}


def test_a_table_in_memory_is_known_by_its_declared_name_only(ledger: Ledger) -> None:
    ledger.reserve(undeclared("r1", "", dataset="people"))
    ledger.reserve(undeclared("r2", "", dataset="people", release="other name"))
    assert accounts(ledger) == {"people": ["r1", "r2"]} and ledger.balances()[0].sources == frozenset()
    with pytest.raises(ConfigError, match=r"ledger.dataset is missing: a table in memory has no path"):
        ledger.reserve(undeclared("r3", ""))


def test_a_resumed_release_keeps_its_account_wherever_its_table_is_now(ledger: Ledger) -> None:
    ledger.reserve(undeclared("r1"))
    assert ledger.reserve(undeclared("r1", "/archive/visits.csv")).dataset == "visits"
    ledger.settle("r1", cost("0.1"), EVENTS)
    assert ledger.reserve(undeclared("r1", "/archive/visits.csv")).state == "closed"


def test_of_two_first_releases_at_once_both_count_in_one_account(database: str) -> None:
    together, told = threading.Barrier(8), list[str]()

    def first(number: int) -> None:
        ledger = Ledger(database)
        together.wait()
        told.append(ledger.reserve(undeclared(f"r{number}", release=f"config {number}")).dataset)

    racers = [threading.Thread(target=first, args=(i,)) for i in range(8)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert told == ["visits"] * 8
    assert sorted(accounts(Ledger(database))["visits"]) == [f"r{i}" for i in range(8)]


def test_rows_whose_source_makes_no_sense_are_refused_though_their_hashes_are_right(ledger: Ledger) -> None:
    ledger.reserve(undeclared("r1"))
    first, second = ledger.rows()
    for key, value in (("source", None), ("source", 7), ("other_people", ["x"])):
        content = json.dumps({**json.loads(second.content), key: value})
        store(ledger, chained_anew([first, replace(second, content=content)], 1))
        assert ledger.verify().problems == (f"row 2: it has no {key} that can be read",)


def test_the_source_that_is_recorded_is_that_behind_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpsynth.config import load
    from dpsynth.pipeline.reservation import table_of

    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "visits.csv").write_text("a\n")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "round.csv").symlink_to(tmp_path / "round.csv")
    monkeypatch.chdir(tmp_path)
    config = {"privacy": {"epsilon": 1}, "columns": {"a": {"type": "boolean"}}}
    seen = set()
    for path in ("real/visits.csv", "link/visits.csv", "./link/../real/visits.csv", "round.csv"):
        Path("config.yaml").write_text(json.dumps({**config, "source": {"path": path}}))
        seen.add(table_of(load("config.yaml")).source)
    assert seen == {str(tmp_path / "real" / "visits.csv"), str(tmp_path / "round.csv")}


def test_each_source_of_linked_tables_has_one_account(tmp_path: Path) -> None:
    """A child table alone, or below another root, is of the same people; a link is no other file."""
    files = {name: tmp_path / f"{name}.csv" for name in ("homes", "persons", "doctors")}
    for file in files.values():
        file.touch()
    (tmp_path / "link.csv").symlink_to(files["persons"])
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    assert linked(tmp_path, "homes", "persons").source == f"{files['homes']}\0{files['persons']}"
    ledger.reserve(of_tables("r1", linked(tmp_path, "homes", "persons"), "people"))
    assert accounts(ledger) == {"people": ["r1"]}
    assert ledger.balances()[0].sources == {str(files["homes"]), str(files["persons"])}
    rows = ledger.rows()
    for other in (
        Table("", str(tmp_path / "link.csv"), "alone"),
        Table("", str(files["homes"]), "alone"),
        linked(tmp_path, "doctors", "persons"),
        linked(tmp_path, "doctors", "link"),
    ):
        with pytest.raises(ConfigError, match=r"has an account in .*, 'people', and .* a second cap"):
            ledger.reserve(of_tables("r2", other, "others"))
        assert ledger.rows() == rows
    ledger.reserve(of_tables("r3", Table("", str(files["persons"]), "alone"), "people"))
    why = "doctors are protected, whose visits are no patient's"
    ledger.reserve(of_tables("r4", linked(tmp_path, "doctors", "persons"), "doctors", other_people=why))
    assert accounts(ledger) == {"doctors": ["r4"], "people": ["r1", "r3"]}
    assert ledger.verify().problems == ()


def test_linked_tables_of_which_one_has_another_account_are_refused(ledger: Ledger) -> None:
    """The account of the root would say nothing of what was released of the child."""
    ledger.reserve(undeclared("r1", "/srv/homes.csv", dataset="homes"))
    ledger.reserve(undeclared("r2", "/srv/persons.csv", dataset="persons"))
    both = Table("", "/srv/homes.csv\0/srv/persons.csv", "both")
    for dataset, other in (("homes", "persons"), ("persons", "homes")):
        with pytest.raises(ConfigError, match=rf"^/srv/{other}.csv has an account in .*, '{other}', and"):
            ledger.reserve(of_tables("r3", both, dataset))


def linked(folder: Path, *tables: str) -> Table:
    """The tables of a configuration, each below the one before, as the ledger knows them."""
    from dpsynth.config import from_mapping
    from dpsynth.pipeline.reservation import table_of

    found: dict[str, dict[str, object]] = {
        name: {
            "source": {"path": str(folder / f"{name}.csv")},
            "columns": {"a": {"type": "boolean"}},
            **({"parent": {"table": above, "key": "id", "max_children": 2}} if above else {"key": "id"}),
        }
        for name, above in zip(tables, ("", *tables), strict=False)
    }
    return table_of(
        from_mapping(
            {
                "release": "-".join(tables),
                "tables": found,
                "privacy": {"epsilon": 1},
                "ledger": {"dataset": "linked"},
            }
        )
    )


def of_tables(release_id: str, table: Table, dataset: str, **other: object) -> Reservation:
    return undeclared(release_id, table.source, dataset=dataset, release=table.release, **other)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("/srv/Visits of 2026.csv", "Visits-of-2026"),
        ("/srv/visits.2026.csv", "visits.2026"),
        ("/srv/visits.parquet.zst", "visits"),
        ("/srv/Größe.csv", "Größe"),
        ("/srv/???.csv", "table"),
        ("/srv/" + "x" * 300, "x" * 100),
    ],
)
def test_a_new_account_is_named_after_the_file(source: str, name: str) -> None:
    assert name_of(source) == name
    assert identity.dataset_of(Table("", source, "r"), (), "a ledger") == name


def test_the_cap_of_a_config_that_states_none_is_the_recorded_one(ledger: Ledger) -> None:
    """The default is for new accounts: a cap that was raised is not lowered again by silence."""
    ledger.reserve(asking("r1"))
    ledger.change_cap("people", Amount(Fraction(2), ASK.cap.delta), "agreed")
    wide = replace(asking("r2", "1.5"), cap_declared=False)
    assert ledger.read().foreseen(wide) is None
    with pytest.raises(Exception, match=r"the cap in this configuration, ledger.cap, of ε = 1"):
        ledger.read().foreseen(replace(wide, cap_declared=True))
    ledger.reserve(wide)
    assert ledger.verify().problems == ()


def known(dataset: str, *releases: str, sources: tuple[str, ...] = ()) -> SimpleNamespace:
    """An account as far as names are concerned; one without sources is of tables in memory."""
    of = [SimpleNamespace(release=release) for release in releases]
    return SimpleNamespace(dataset=dataset, releases=of, sources=frozenset(sources))


def test_a_new_table_is_no_concern_of_accounts_of_other_names_and_releases() -> None:
    others = [known("a", "x", sources=("/a.csv",)), known("b", "y")]
    assert identity.dataset_of(Table("", VISITS, "new"), others, "l") == "visits"
    with pytest.raises(ConfigError, match=r"has a dataset 'visits' of a table that is not recorded"):
        identity.dataset_of(Table("", VISITS, "new"), [*others, known("visits", "z")], "l")


def test_one_release_of_its_name_among_others_tells_the_account() -> None:
    accounts = [
        known("a", "monthly", "yearly", sources=("/a.csv",)),
        known("b", "weekly", sources=("/b.csv",)),
    ]
    assert identity.dataset_of(Table("", "/new.csv", "yearly"), accounts, "l") == "a"
    accounts.append(known("c", "yearly", sources=("/c.csv",)))
    with pytest.raises(ConfigError, match=r"^Release 'yearly' has several accounts .*'a', 'c'"):
        identity.dataset_of(Table("", "/new.csv", "yearly"), accounts, "l")
    accounts.append(known("d", "other", sources=("/a.csv",)))
    with pytest.raises(ConfigError, match=r"^/a.csv has several accounts .*'a', 'd'"):
        identity.dataset_of(Table("", "/a.csv", "yearly"), accounts, "l")


def test_a_table_in_memory_of_a_declared_name_is_of_no_accounts_source() -> None:
    accounts = [known("a", "x", sources=("/a.csv",))]
    assert identity.dataset_of(Table("frame", "", "r"), accounts, "l") == "frame"
