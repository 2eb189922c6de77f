"""What of a journal tells copies apart: its lock, its holders, its fence, and the digest of its answers."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dpsynth.accounting.events import GaussianEvent, LaplaceEvent
from dpsynth.curator import Journal
from dpsynth.curator.journal import is_paused
from dpsynth.errors import DpsynthError

OPEN_FILES = Path("/proc/self/fd")
QUESTION, EVENT = {"ask": "marginal", "columns": ["a"]}, LaplaceEvent(0.1, 4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "private" / "journal.jsonl"


def begun(path: Path, **header: object) -> Journal:
    return Journal.create(path, {"key": "00", "release": "r", **header})


def asked(journal: Journal, answer: int = 7, question: dict = QUESTION, event: object = EVENT) -> Journal:
    journal.answer(question, event, lambda: np.array([answer]))
    return journal


def interrupted(journal: Journal) -> Journal:
    with pytest.raises(KeyboardInterrupt):
        journal.answer(QUESTION, EVENT, lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    return journal


def again(journal: Journal) -> Journal:
    journal.close()
    return Journal.open(journal.path)


def test_a_journal_that_is_open_is_opened_by_nobody_else(path: Path) -> None:
    journal = begun(path)
    before = len(list(OPEN_FILES.iterdir()))
    for _ in range(20):
        with pytest.raises(DpsynthError, match="Another process is writing"):
            Journal.open(path)
    assert len(list(OPEN_FILES.iterdir())) < before + 10
    again(journal).close()


def test_a_new_journal_is_neither_paused_nor_closed_and_its_folder_is_synced(path: Path, monkeypatch) -> None:
    synced: list[int] = []
    sound = os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(os.fstat(number).st_ino) or sound(number))
    journal = begun(path)
    assert synced == [path.stat().st_ino, path.parent.stat().st_ino]
    assert not journal.paused and not journal.sealed and journal.at_end and not is_paused(path)


def test_what_comes_after_a_pause_ends_it_and_a_torn_line_is_no_news(path: Path) -> None:
    journal = begun(path)
    journal.pause("heed warnings")
    with path.open("ab") as file:
        file.write(b"{torn\n")
    assert is_paused(path)


FILES: dict[str, tuple[Callable[[Journal], object], bool]] = {
    "the only run": (lambda journal: journal.hold("one"), True),
    "a second run of the same file": (lambda journal: (journal.hold("zero"), journal.hold("one")), True),
    "nobody": (lambda journal: None, False),
    "another run": (lambda journal: journal.hold("two"), False),
    "a copy of another file": (
        lambda journal: (journal.holders.append(("zero", 1)), journal.hold("one")),
        False,
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_a_file_has_all_charges_only_if_each_run_wrote_to_it(path: Path, case: str) -> None:
    held, whole = FILES[case]
    journal = begun(path)
    held(journal)
    assert journal.has_all_of("one") is whole
    if case != "a copy of another file":
        assert again(journal).has_all_of("one") is whole


def put_back(path: Path, how: str) -> Journal:
    """A journal of three charges that is replaced by an older copy of it, as it is opened again."""
    journal = begun(path)
    journal.hold("one")
    old = asked(journal).path.read_bytes()
    asked(asked(journal)).close()
    if how == "as another file":
        path.unlink()
        path.touch(0o600)
        # As if the file system had given the same number again, which many do.
        (_, number), named = journal.holders[0], path.stat().st_ino
        old = old.replace(b'"file":%d' % number, b'"file":%d' % named)
    elif how == "torn":
        old = path.read_bytes()[:-5]
    with path.open("r+b") as file:
        file.truncate()
        file.write(old)
    return Journal.open(path)


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="needs extended attributes")
def test_an_older_journal_that_was_put_back_has_not_all_charges(path: Path) -> None:
    assert put_back(path, "into the same file").lacks_charges
    for how, whole in (("into the same file", False), ("as another file", False), ("torn", True)):
        path.unlink()
        journal = put_back(path, how)
        assert journal.has_all_of("one") is whole, how
        journal.close()


def test_an_older_journal_would_pass_without_its_mark(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault, and what holds where a file system takes no marks."""
    monkeypatch.setattr("dpsynth.curator.journal._mark", lambda *_: False)
    assert put_back(path, "into the same file").has_all_of("one")


def test_the_fence_is_asked_before_each_charge_and_for_no_recorded_answer(path: Path) -> None:
    passed: list[int] = []
    journal = begun(path)
    journal.fence = lambda: passed.append(len(path.read_bytes()))
    before = len(path.read_bytes())
    asked(journal)
    assert passed == [before]
    journal = again(journal)
    journal.fence = lambda: passed.append(0)
    asked(journal)
    assert passed == [before]


def test_a_charge_that_the_fence_refuses_leaves_nothing(path: Path) -> None:
    def refuse() -> None:
        raise DpsynthError("taken over")

    journal = begun(path)
    before = path.read_bytes()
    journal.fence = refuse
    with pytest.raises(DpsynthError, match="taken over"):
        asked(journal)
    assert path.read_bytes() == before and journal.entries == []


def test_the_digest_is_the_same_when_read_again_and_changes_with_everything_that_was_told(
    tmp_path: Path,
) -> None:
    histories: dict[str, Journal] = {
        "nothing": begun(tmp_path / "0"),
        "another key": begun(tmp_path / "1", key="01"),
        "an answer": asked(begun(tmp_path / "2")),
        "another answer": asked(begun(tmp_path / "3"), 8),
        "another question": asked(begun(tmp_path / "4"), question={"ask": "choose"}),
        "another price": asked(begun(tmp_path / "5"), event=GaussianEvent(3.3, 2)),
        "no answer yet": interrupted(begun(tmp_path / "6")),
        "two answers": asked(asked(begun(tmp_path / "7"))),
    }
    lost = again(interrupted(begun(tmp_path / "8")))
    asked(lost)
    histories["a lost answer"] = lost
    digests = {name: journal.digest for name, journal in histories.items()}
    assert len(set(digests.values())) == len(digests)
    for name, journal in histories.items():
        assert again(journal).digest == digests[name], name
    assert histories["nothing"].digest == "6773693692541afb4d7aa9ea1275c551a845a3c6f5c532e1e46303c6fa4043b1"


def test_the_order_of_keys_is_no_part_of_the_digest(path: Path, tmp_path: Path) -> None:
    journal = asked(begun(path))
    kept = journal.digest
    journal.close()
    turned = [dict(reversed(json.loads(line).items())) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(record) + "\n" for record in turned))
    assert Journal.open(path).digest == kept


def test_a_file_that_is_no_journal_and_one_without_its_first_charge_are_refused(path: Path) -> None:
    interrupted(asked(begun(path))).close()
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([whole[0], whole[3]]))
    with pytest.raises(DpsynthError, match="damaged"):
        Journal.open(path)
    path.write_bytes(whole[0].replace(b'"open"', b'"held"'))
    with pytest.raises(DpsynthError, match="damaged"):
        Journal.open(path)
