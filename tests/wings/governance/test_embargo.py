"""The embargo: a finished bundle can't be read before its instant, and is opened whole, once."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import dpsynth
from dpsynth.bundle.recipient import open_bundle
from dpsynth.config import from_mapping
from dpsynth.errors import ConfigError, DpsynthError, Interrupted, NotApproved
from dpsynth.ledger.ledger import Ledger
from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.spine import run
from dpsynth.pipeline.steps import Step
from dpsynth.wings.governance import sealing
from dpsynth.wings.governance.asking import ask, reservation_for
from tests.cli.here import Command
from tests.forked import in_child
from tests.release.place import CONFIG, HEADER, changed, people
from tests.release.stopping import stopped_at
from tests.wings.governance.boards import ONCE, approved, governed, key, now

UNTIL = datetime(2093, 12, 24, 8, tzinfo=UTC)
SMALL = changed(CONFIG, {"columns": {"city": None, "income": None}, "publish": {"statistics": []}})
Contents = dict[str, bytes]


class Office:
    """A folder with a table, a config with an embargo, and a clock."""

    def __init__(self, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        """Write both."""
        self.run, self._patch = command, monkeypatch
        lines = [",".join(row) for row in (HEADER, *people(300))]
        Path("people.csv").write_text("\n".join(lines) + "\n")
        self.configure()
        self.clock(UNTIL - timedelta(days=1))

    def configure(self, **changes: object) -> None:
        """Write the config."""
        config = changed(SMALL, {"embargo": "2093-12-24T09:00+01:00", **changes})
        Path("config.yaml").write_text(json.dumps(config))

    def clock(self, now: datetime) -> None:
        """Set the clock by which embargoes go."""
        self._patch.setattr(sealing, "_now", lambda: now)

    def sealed(self) -> Path:
        """Run the release; its folder."""
        done = self.run("run", "config.yaml", "--plain")
        assert done.code == 0 and "is sealed until 2093-12-24 08:00 UTC" in done.err, done
        return Path(done.out.splitlines()[-1])

    def sealed_later(self) -> tuple[Path, Contents]:
        """The folder of a sealed release, and the files that it holds."""
        name, files = self.unsealed()
        run(dpsynth.load("config.yaml"), Request(resume=name))
        return Path("outputs/people", name), files

    def unsealed(self) -> tuple[str, Contents]:
        """A release that is stopped before it is published: its id, and the files that it will have."""
        with stopped_at(Step.PUBLISH, KeyboardInterrupt()), pytest.raises(Interrupted):
            dpsynth.release(dpsynth.load("config.yaml"))
        (partial,) = Path("outputs/people").glob(".*.partial")
        return partial.name[1:].removesuffix(".partial"), contents(partial, "public")


@pytest.fixture
def office(dpsynth: Command, monkeypatch: pytest.MonkeyPatch) -> Office:
    """An office in an empty folder."""
    return Office(dpsynth, monkeypatch)


def contents(folder: Path, *names: str) -> Contents:
    """Every file of some folders in a folder."""
    found = (path for name in names for path in sorted((folder / name).rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def test_nothing_of_a_bundle_can_be_read_before_its_instant(office: Office) -> None:
    folder, files = office.sealed_later()
    assert {p.name for p in folder.iterdir()} == {"private", "sealed"}
    assert (folder / "private").stat().st_mode & 0o077 == 0
    left = {p: p.read_bytes() for p in Path("outputs").rglob("*") if p.is_file() and "private" not in p.parts}
    assert sorted(p.name for p in left) == ["bundle.sealed", "index.html", "sealed.json"]
    assert len(left[folder / "sealed/bundle.sealed"]) % (sealing.PIECE + 16) == 0
    manifest = json.loads(files["public/manifest.json"])
    data = [content for name, content in files.items() if not name.endswith(".html")]
    telling = [content[len(content) // 2 :][:30] for content in data]
    telling.append(f"{manifest['synthetic_rows']:,} ".encode())
    telling += [json.dumps(line).encode() for line in manifest["verdict"]["in_words"]]
    for content in left.values():
        assert not any(one in content for one in telling), content[:200]
    for words in (
        ("verify", folder),
        ("query", folder, "count"),
        ("sample", folder, "--rows", "1"),
        ("verify", folder / "public"),
        ("publish", folder),
        ("review", folder, "--config", "config.yaml"),
        ("report", folder),
        ("manifest", folder),
    ):
        done = office.run(*words)
        assert done.code == 1 and f"Release {folder.name} is sealed until 2093-12-24 08:00 UTC" in done.err, (
            done
        )
    with pytest.raises(DpsynthError, match="is sealed until"):
        open_bundle(folder)


def test_it_is_opened_once_as_it_was_finished_and_is_good(office: Office) -> None:
    folder, files = office.sealed_later()
    before = office.run.files
    office.clock(UNTIL - timedelta(seconds=1))
    done = office.run("publish", folder)
    assert (
        done.code == 1
        and "By this machine's clock it is 2093-12-24 07:59 UTC. Nothing was opened." in done.err
    )
    assert office.run.files == before
    office.clock(UNTIL)
    done = office.run("publish", folder)
    assert (done.code, done.out) == (0, f"Published.\n{folder}\n"), done
    assert contents(folder, "public") == files
    assert {p.name for p in folder.iterdir()} == {"private", "public"}
    assert not (folder / "private/embargo.key").exists()
    assert office.run("verify", folder).code == 0
    assert folder.name in Path("outputs/people/index.html").read_text()
    # Whatever the clock says later, it stays open.
    opened = office.run.files
    office.clock(UNTIL - timedelta(days=400))
    done = office.run("publish", folder)
    assert (done.code, done.out) == (0, f"It is published already; nothing was changed.\n{folder}\n")
    assert office.run("verify", folder).code == 0 and office.run.files == opened


def test_a_release_under_embargo_is_charged_and_resumed_as_any_other(office: Office) -> None:
    name, _ = office.unsealed()
    (entry,) = Ledger("sqlite:///ledger.db").balances()[0].releases
    assert (entry.release_id, entry.state, entry.cost.amount.epsilon) == (name, "closed", 1)
    made = run(dpsynth.load("config.yaml"), Request(resume=name))
    assert made.table.num_rows and not made.handed_over.exists()
    # What is shown again stays sealed.
    again = run(dpsynth.load("config.yaml"), Request(resume=name))
    assert not again.handed_over.exists() and (again.folder / "sealed").is_dir()
    assert len(Ledger("sqlite:///ledger.db").balances()[0].releases) == 1


def test_an_embargo_that_has_ended_seals_nothing_and_a_rehearsal_is_not_sealed(office: Office) -> None:
    done = office.run("run", "config.yaml", "--rehearse")
    assert done.code == 0 and (Path(done.out.splitlines()[-1]) / "public").is_dir()
    office.clock(UNTIL)
    done = office.run("run", "config.yaml", "--plain")
    assert done.code == 0 and "has ended, so it is not sealed" in done.err
    folder = Path(done.out.splitlines()[-1])
    assert {p.name for p in folder.iterdir()} == {"private", "public"}


def test_bundles_of_all_audiences_are_sealed_and_opened_together(office: Office) -> None:
    office.configure(audiences={"partners": {"epsilon": 1}, "everyone": {"epsilon": 0.5}})
    folder = office.sealed()
    assert {p.name for p in folder.iterdir()} == {"private", "sealed"}
    office.clock(UNTIL)
    assert office.run("publish", folder).code == 0
    assert office.run("verify", folder / "partners").code == 0
    assert office.run("verify", folder / "everyone").code == 0


# Kills.


@contextmanager
def killed_before(number: int) -> Iterator[None]:
    """Kill this process before a change of the file system, counted from 0."""
    left = [number]
    kept = {(of, name): getattr(of, name) for of, names in CHANGES.items() for name in names}

    def counted(change: Callable[..., object]) -> Callable[..., object]:
        def changing(*arguments: object, **named: object) -> object:
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return change(*arguments, **named)

        return changing

    for (of, name), change in kept.items():
        setattr(of, name, counted(change))
    try:
        yield
    finally:
        for (of, name), change in kept.items():
            setattr(of, name, change)


CHANGES: dict[object, tuple[str, ...]] = {
    os: ("fsync", "sync", "rename", "replace", "unlink", "rmdir", "mkdir"),
    sealing: ("_nonce",),
}


EACH = pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])


def each_kill(
    prepare: Callable[[], None], change: Callable[[], object], check: Callable[[], None], every: int
) -> int:
    """Kill a change before each of its steps, or one in so many; the first that is beyond its last one."""
    for number in range(0, 500, every):
        prepare()

        def work(_: int, number: int = number) -> None:
            with killed_before(number):
                change()

        code, _said = in_child(work, 60)
        check()
        if code == 0:
            return number
        assert code == -signal.SIGKILL, code
    raise AssertionError("it has no end")


def brought_back(kept: Path) -> Callable[[], None]:
    """A function that puts outputs back as they were."""
    shutil.copytree("outputs", kept)

    def back() -> None:
        shutil.rmtree("outputs")
        shutil.copytree(kept, "outputs")

    return back


@EACH
def test_a_seal_that_is_killed_at_any_moment_is_made_whole_or_not_at_all(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    monkeypatch.setattr(sealing, "PIECE", 1 << 18)
    name, files = office.unsealed()
    spec, folder = dpsynth.load("config.yaml"), Path("outputs/people", name)
    partial = folder.parent / f".{name}.partial"

    def publishing() -> None:
        sealing.seal(partial, name, str(spec.embargo))
        sealing_committed(partial, folder)

    def look() -> None:
        if not folder.exists():
            # Closed to all but its owner, who goes on with it.
            assert partial.stat().st_mode & 0o077 == 0 or not (partial / "public").exists()
            run(spec, Request(resume=name))
        assert {p.name for p in folder.iterdir()} == {"private", "sealed"}
        office.clock(UNTIL)
        assert sealing.publish(folder) and contents(folder, "public") == files
        office.clock(UNTIL - timedelta(days=1))

    assert each_kill(brought_back(tmp_path / "kept"), publishing, look, every) > 20


def sealing_committed(partial: Path, final: Path) -> None:
    """The step after the seal."""
    from dpsynth.bundle import commit

    commit(partial, final)


@EACH
def test_an_opening_that_is_killed_at_any_moment_is_whole_or_not_begun_and_is_finished_later(
    office: Office, tmp_path: Path, every: int
) -> None:
    folder, files = office.sealed_later()
    office.clock(UNTIL)

    def look() -> None:
        there = contents(folder, "public")
        assert there in ({}, files)
        assert (folder / "sealed/bundle.sealed").is_file() or there == files
        office.run("publish", folder)
        assert {p.name for p in folder.iterdir()} == {"private", "public"}
        assert contents(folder, "public") == files and office.run("verify", folder).code == 0

    assert each_kill(brought_back(tmp_path / "kept"), lambda: sealing.publish(folder), look, every) > 12


def test_of_many_who_publish_at_once_one_does(office: Office) -> None:
    folder = office.sealed()
    office.clock(UNTIL)
    read, write = os.pipe()
    children = []
    for _ in range(8):
        child = os.fork()
        if not child:
            said = b"?"
            try:
                said = b"1" if sealing.publish(folder) else b"0"
            finally:
                os.write(write, said)
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    os.close(write)
    assert sorted(os.read(read, 100)) == sorted(b"10000000")
    os.close(read)
    assert office.run("verify", folder).code == 0


# What was changed or lost.


def flipped(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def other_instant(sealed: Path) -> None:
    path = sealed / "sealed.json"
    path.write_text(path.read_text().replace("2093", "2013"))


def other_folder(sealed: Path) -> None:
    path = sealed / "sealed.json"
    path.write_text(path.read_text().replace('"public"', '"private"'))


def exchanged(sealed: Path) -> None:
    """Two pieces of the content of one file: the archive alone would not show it."""
    path, each = sealed / "bundle.sealed", sealing.PIECE + 16
    data = path.read_bytes()
    at = len(data) // each // 2 * each
    swapped = data[at + each : at + 2 * each] + data[at : at + each]
    path.write_bytes(data[:at] + swapped + data[at + 2 * each :])


def cut_off(sealed: Path) -> None:
    path = sealed / "bundle.sealed"
    path.write_bytes(path.read_bytes()[: -(sealing.PIECE + 16)])


def cut_inside(sealed: Path) -> None:
    path = sealed / "bundle.sealed"
    path.write_bytes(path.read_bytes()[:-5])


DAMAGE: dict[str, Callable[[Path], None]] = {
    "a bit": lambda sealed: flipped(sealed / "bundle.sealed", 5000),
    "the key": lambda sealed: flipped(sealed.parent / "private/embargo.key", 3),
    "a short key": lambda sealed: (sealed.parent / "private/embargo.key").write_bytes(b"short") and None,
    "another instant": other_instant,
    "another folder": other_folder,
    "exchanged pieces": exchanged,
    "cut off": cut_off,
    "cut inside a piece": cut_inside,
    "nothing left": lambda sealed: (sealed / "bundle.sealed").write_bytes(b"") and None,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=[*DAMAGE])
def test_what_was_changed_is_not_opened(
    office: Office, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(sealing, "PIECE", 512)
    folder = office.sealed()
    damage(folder / "sealed")
    office.clock(UNTIL)
    done = office.run("publish", folder)
    assert done.code == 1 and "can't be decrypted: it, its key (" in done.err, done
    assert not (folder / "public").exists() and (folder / "sealed").is_dir()


@pytest.mark.parametrize("lost", ["private/embargo.key", "sealed/bundle.sealed"])
def test_a_bundle_whose_key_is_lost_is_made_again_from_its_journal_as_is_said(
    office: Office, lost: str
) -> None:
    folder, files = office.sealed_later()
    (folder / lost).unlink()
    partial = folder.parent / f".{folder.name}.partial"
    office.clock(UNTIL)
    done = office.run("publish", folder)
    assert done.code == 1 and f"remove {folder}/sealed, rename {folder} to {partial}," in done.err
    shutil.rmtree(folder / "sealed")
    folder.rename(partial)
    done = office.run("run", "config.yaml", "--plain", "--resume", folder.name)
    assert done.code == 0 and contents(folder, "public") == files, done
    assert len(Ledger("sqlite:///ledger.db").balances()[0].releases) == 1


@pytest.mark.parametrize("content", ["", "{}", "[]", "null", '{"format": 1}', '{"format": 2}', "\xff"])
def test_a_statement_that_is_none_is_refused_in_one_sentence(office: Office, content: str) -> None:
    folder = office.sealed()
    (folder / "sealed/sealed.json").write_bytes(content.encode("latin-1"))
    for words in (("publish", folder), ("verify", folder)):
        done = office.run(*words)
        assert done.code == 1 and "sealed.json can't be read: it was changed" in done.err, done


def test_a_folder_that_is_none_of_a_release_is_refused(office: Office) -> None:
    done = office.run("publish", "nowhere")
    assert done.code == 1 and "nowhere holds no release" in done.err and not Path("nowhere").exists()
    Path("empty").mkdir()
    done = office.run("publish", "empty")
    assert done.code == 1 and "holds no release, neither sealed nor open" in done.err


def test_a_release_that_was_withdrawn_under_embargo_is_not_opened(office: Office) -> None:
    folder = office.sealed()
    assert office.run("keygen", "anna.key").code == 0
    done = office.run(
        *("withdraw", folder.name, "--reason", "wrong table", "--config", "config.yaml", "--key", "anna.key")
    )
    assert done.code == 0, done
    office.clock(UNTIL)
    done = office.run("publish", folder)
    assert done.code == 1 and "was withdrawn while sealed" in done.err, done
    (said,) = sealing.publish_due(folder.parent)
    assert "was withdrawn while sealed" in said and not (folder / "public").exists()


def test_those_that_are_due_are_opened_and_no_others(office: Office) -> None:
    first = office.sealed()
    office.configure(embargo="2093-12-31T00:00Z")
    done = office.run("run", "config.yaml", "--plain")
    later = Path(done.out.splitlines()[-1])
    assert list(sealing.publish_due(first.parent)) == []
    office.clock(UNTIL)
    assert list(sealing.publish_due(first.parent)) == [
        f"The embargo of {first.name} has ended: {first} is published."
    ]
    assert (first / "public").is_dir() and not (later / "public").exists()
    assert list(sealing.publish_due(first.parent)) == []


# The key of the configuration.


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("2026-12-24T09:00+01:00", "2026-12-24T08:00:00+00:00"),
        ("2026-12-24 09:00:30Z", "2026-12-24T09:00:30+00:00"),
        ("2026-12-24T09:00", None),
        ("2026-12-24", None),
        ("tomorrow", None),
        ("0001-01-01T00:00+12:00", None),
        (5, None),
        (True, None),
    ],
)
def test_an_instant_has_a_time_zone(written: object, kept: str | None) -> None:
    config = changed(SMALL, {"embargo": written})
    if kept is not None:
        assert from_mapping(config).embargo == kept
        return
    with pytest.raises(ConfigError, match=r"embargo must be a date"):
        from_mapping(config)


def test_a_plan_says_until_when(office: Office) -> None:
    done = office.run("plan", "config.yaml")
    assert "Embargo: the finished bundle is kept encrypted until 2093-12-24T08:00:00+00:00.\n" in done.out


def test_an_embargo_is_part_of_what_is_approved(office: Office) -> None:
    ledger = governed("sqlite:///ledger.db")
    wanted = reservation_for(dpsynth.load("config.yaml"), now(), None)
    made = ask(ledger, wanted, ONCE, key("anna"), "open data", now())
    assert approved(ledger, made, "boris", "clara") == 0
    office.configure(embargo=None)
    with pytest.raises(NotApproved, match="was made before the configuration changed"):
        dpsynth.release(dpsynth.load("config.yaml"))
    office.configure()
    assert not dpsynth.release(dpsynth.load("config.yaml")).handed_over.exists()
