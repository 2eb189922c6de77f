"""The journal charges before it draws, answers the same again, and never forgets a charge."""

import json
import os
import stat

import numpy as np
import pytest

from dpsynth.accounting.events import ExponentialEvent, GaussianEvent, LaplaceEvent, SelectionEvent, to_json
from dpsynth.curator import Journal, Lost
from dpsynth.curator.journal import is_paused
from dpsynth.errors import DpsynthError
from tests.forked import in_child

EVENTS = [GaussianEvent(3.3, 2), LaplaceEvent(0.1, 4), ExponentialEvent(7.7, 1)]
QUESTIONS = [
    {"ask": "marginal", "columns": ["a", "b"]},
    {"ask": "marginal", "columns": []},
    {"ask": "choose"},
]
ANSWERS = [np.arange(-3, 3).reshape(2, 3), np.array(2**40), np.array([-(2**63), 2**63 - 1])]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "private" / "journal.jsonl"


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def never():
    raise AssertionError("noise was drawn again")


def filled(path, answered=3):
    """A journal of three questions, the last of which were interrupted while drawing."""
    journal = Journal.create(path, {"key": "00", "release": "r"})
    for i, (question, event, answer) in enumerate(zip(QUESTIONS, EVENTS, ANSWERS, strict=True)):
        if i < answered:
            journal.answer(question, event, lambda answer=answer: answer)
        elif i == answered:
            with pytest.raises(KeyboardInterrupt):
                journal.answer(question, event, interrupted)
    journal.close()
    return path


def interrupted():
    raise KeyboardInterrupt


def replay(journal, upto=3):
    return [journal.answer(q, e, never) for q, e in list(zip(QUESTIONS, EVENTS, strict=True))[:upto]]


def test_a_charge_is_on_disk_before_its_noise_is_drawn_and_the_answer_before_it_is_seen(path):
    journal = Journal.create(path, {})
    seen = []

    def draw():
        seen.append(lines(path)[-1])
        return np.array([5])

    journal.answer(QUESTIONS[0], EVENTS[0], draw)
    charge = {"kind": "charge", "seq": 0, "question": QUESTIONS[0], "event": to_json(EVENTS[0])}
    assert seen == [charge]
    assert [r["kind"] for r in lines(path)] == ["open", "charge", "answer"]


def test_charges_and_the_answers_before_them_are_synced_before_noise_is_drawn(path, monkeypatch):
    synced = []
    monkeypatch.setattr("os.fsync", lambda fd: synced.append(path.read_bytes().count(b"\n")))
    journal = Journal.create(path, {})
    before = len(synced)
    for question, event in zip(QUESTIONS, EVENTS, strict=True):
        journal.answer(question, event, lambda: synced.append("draw") or np.array(1))
    assert synced[before:] == [2, "draw", 4, "draw", 6, "draw"]
    assert path.read_bytes().count(b"\n") == 7


def test_questions_asked_together_are_all_charged_in_one_sync_and_each_is_drawn_once(path, monkeypatch):
    synced = []
    journal = Journal.create(path, {})
    journal.fence = lambda: synced.append("fence")
    monkeypatch.setattr("os.fsync", lambda fd: synced.append(path.read_bytes().count(b"\n")))
    journal.charge(list(zip(QUESTIONS, EVENTS, strict=True)))
    assert len(list(journal.asked())) == 0
    for question, event, answer in zip(QUESTIONS, EVENTS, ANSWERS, strict=True):
        drawn = journal.answer(question, event, lambda answer=answer: synced.append("draw") or answer)
        np.testing.assert_array_equal(drawn, answer)
    assert synced == ["fence", 4, "draw", "draw", "draw"]
    digest = journal.digest
    journal.close()
    again = Journal.open(path)
    again.charge(list(zip(QUESTIONS, EVENTS, strict=True)))
    replay(again)
    assert again.digest == digest


@pytest.mark.parametrize("drawn", [0, 1, 2])
def test_of_questions_charged_together_those_not_answered_are_lost_and_stay_charged(path, drawn):
    asked = list(zip(QUESTIONS, EVENTS, strict=True))
    journal = Journal.create(path, {})
    journal.charge(asked)
    for question, event in asked[:drawn]:
        journal.answer(question, event, lambda: np.array(1))
    journal.close()
    again = Journal.open(path)
    again.charge(asked)
    assert [isinstance(found, Lost) for found in replay(again)] == [i >= drawn for i in range(3)]
    assert [e.event for e in again.asked()] == EVENTS and len(lines(path)) == 1 + 3 + 3


def test_charges_torn_by_a_kill_are_lost_and_only_those_that_lack_are_charged(path):
    asked = list(zip(QUESTIONS, EVENTS, strict=True))
    journal = Journal.create(path, {})
    journal.charge(asked)
    journal.close()
    path.write_bytes(path.read_bytes()[:-5])
    again = Journal.open(path)
    again.charge(asked)
    assert [r.get("seq") for r in lines(path)] == [None, 0, 1, 2]
    assert isinstance(again.answer(*asked[0], never), Lost)
    assert isinstance(again.answer(*asked[1], never), Lost)
    assert again.answer(*asked[2], lambda: np.array(5)).item() == 5


def test_another_question_than_those_charged_together_is_refused(path):
    journal = Journal.create(path, {})
    journal.charge(list(zip(QUESTIONS, EVENTS, strict=True)))
    with pytest.raises(DpsynthError, match="another question at number 0"):
        journal.answer(QUESTIONS[1], EVENTS[1], never)


def test_a_journal_read_again_gives_identical_answers_without_drawing(path):
    journal = Journal.open(filled(path))
    size = path.stat().st_size
    for found, answer in zip(replay(journal), ANSWERS, strict=True):
        assert found.dtype == np.int64 and found.shape == answer.shape
        np.testing.assert_array_equal(found, answer)
    assert [e.event for e in journal.entries] == EVENTS
    assert path.stat().st_size == size


def test_after_the_record_ends_new_questions_are_charged_and_drawn(path):
    journal = Journal.open(filled(path, answered=2))
    replay(journal, 2)
    assert isinstance(journal.answer(QUESTIONS[2], EVENTS[2], never), Lost)
    assert journal.answer(QUESTIONS[2], EVENTS[2], lambda: np.array(9)).item() == 9
    assert [r["kind"] for r in lines(path)][-3:] == ["lost", "charge", "answer"]


def test_an_unanswered_charge_is_lost_once_and_stays_charged_for_ever(path):
    filled(path, answered=1)
    for _ in range(3):
        journal = Journal.open(path)
        assert len(list(journal.asked())) == 0
        replay(journal, 1)
        assert isinstance(journal.answer(QUESTIONS[1], EVENTS[1], never), Lost)
        assert [e.event for e in journal.asked()] == EVENTS[:2]
        journal.close()
    assert [r["kind"] for r in lines(path)].count("lost") == 1


def test_an_error_while_drawing_leaves_the_charge(path):
    journal = Journal.create(path, {})
    with pytest.raises(ZeroDivisionError):
        journal.answer(QUESTIONS[0], EVENTS[0], lambda: np.array(1 // 0))
    assert [e.event for e in journal.asked()] == EVENTS[:1]
    journal.close()
    assert len(Journal.open(path).entries) == 1


@pytest.mark.parametrize("torn", [b"{", b'{"kind":"charge","seq":3', b'{"kind":"lost","seq":0}', b"\xff\x00"])
def test_an_unfinished_last_line_is_cut_off_and_the_rest_is_whole(path, torn):
    whole = filled(path).read_bytes()
    path.write_bytes(whole + torn)
    journal = Journal.open(path)
    assert path.read_bytes() == whole
    replay(journal)
    assert journal.answer({"ask": "new"}, EVENTS[0], lambda: np.array(1)).item() == 1
    journal.close()
    assert len(Journal.open(path).entries) == 4


def test_a_file_cut_at_any_byte_is_refused_or_gives_the_same_answers_and_charges(path):
    whole = filled(path).read_bytes()
    kinds = [r["kind"] for r in lines(path)]
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        complete = whole[:cut].count(b"\n")
        if complete == 0:
            with pytest.raises(DpsynthError, match="damaged"):
                Journal.open(path)
            continue
        journal = Journal.open(path)
        assert len(journal.entries) == kinds[:complete].count("charge")
        for entry, answer in zip(journal.entries, ANSWERS, strict=False):
            if entry.outcome is not None:
                np.testing.assert_array_equal(entry.outcome, answer)
        journal.close()


def changed(number, change):
    def damage(content):
        rows = content.splitlines(keepends=True)
        rows[number] = change(rows[number])
        return b"".join(rows)

    return damage


DAMAGES = {
    "garbage in the header": changed(0, lambda line: b"x" + line),
    "half a charge": changed(1, lambda line: line[: len(line) // 2] + b"\n"),
    "a blank line": changed(2, lambda line: b"\n" + line),
    "no charge before its answer": changed(1, lambda line: b""),
    "a charge and its answer gone": lambda c: b"".join(
        c.splitlines(keepends=True)[i] for i in (0, 3, 4, 5, 6)
    ),
    "an answer twice": changed(2, lambda line: line * 2),
    "an unknown mechanism": changed(3, lambda line: line.replace(b"Laplace", b"Lagrange")),
    "no beginning": changed(0, lambda line: line.replace(b'"open"', b'"note"')),
    "an unknown kind": changed(2, lambda line: line.replace(b"answer", b"reply")),
    "an answer of another shape": changed(2, lambda line: line.replace(b"[2,3]", b"[2,4]")),
    "bytes that are no text": changed(4, lambda line: b"\xff\xfe" + line),
    "a list in place of a record": changed(4, lambda line: b"[1]\n"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_line_that_is_not_the_last_is_refused_and_changes_nothing(path, damage):
    broken = damage(filled(path).read_bytes())
    path.write_bytes(broken)
    with pytest.raises(DpsynthError, match=r"damaged .* can't be resumed"):
        Journal.open(path)
    assert path.read_bytes() == broken


@pytest.mark.parametrize("number", [4, 6])
def test_a_journal_of_another_version_is_refused_as_such_and_stays_as_it_was(path, number):
    other = filled(path).read_bytes().replace(b'"format":5', f'"format":{number}'.encode())
    path.write_bytes(other)
    for _ in range(2):
        with pytest.raises(DpsynthError, match=rf"format {number}; this one reads 5.* stays charged"):
            Journal.open(path)
    assert path.read_bytes() == other


def test_a_pause_is_on_record_until_the_next_question_is_charged(path):
    journal = Journal.open(filled(path))
    assert not journal.paused and not is_paused(path)
    before = journal.digest
    journal.pause("heed warnings")
    assert journal.paused and is_paused(path) and journal.digest == before
    journal.close()
    again = Journal.open(path)
    assert again.paused and not again.at_end
    replay(again)
    assert again.at_end
    again.hold("me")
    assert is_paused(path)
    again.answer(QUESTIONS[0], EVENTS[0], lambda: ANSWERS[0])
    assert not again.paused and not is_paused(path)
    again.close()
    assert not Journal.open(path).paused


@pytest.mark.parametrize("texts", [(), ("",), ("b", "a", "\u00e9\u2028\U0001f4a5", '"\\', "a" * 1000)])
def test_texts_are_answered_again_as_they_were(path, texts):
    question, event = {"ask": "values"}, SelectionEvent(0.1, 1e-9, 3)
    journal = Journal.create(path, {})
    assert journal.answer(question, event, lambda: texts) == texts
    journal.close()
    again = Journal.open(path)
    assert again.entries[0].event == event
    assert again.answer(question, event, never) == texts


@pytest.mark.parametrize(
    ("question", "event"),
    [
        ({"ask": "marginal", "columns": ["b", "a"]}, EVENTS[0]),
        (QUESTIONS[0], GaussianEvent(3.4, 2)),
        (QUESTIONS[0], GaussianEvent(3.3, 1)),
        (QUESTIONS[0], LaplaceEvent(3.3, 2)),
    ],
)
def test_another_question_or_price_than_the_recorded_one_is_refused(path, question, event):
    journal = Journal.open(filled(path))
    with pytest.raises(DpsynthError, match="another question at number 0"):
        journal.answer(question, event, never)


def opened_elsewhere(path):
    def work(told):
        try:
            Journal.open(path)
            said = "opened"
        except DpsynthError as error:
            said = str(error)
        os.write(told, said.encode())

    code, said = in_child(work, 60)
    assert code == 0
    return said


def test_a_second_process_is_refused_until_the_first_lets_go(path):
    journal = Journal.create(path, {})
    assert opened_elsewhere(path).startswith("Another process is writing")
    journal.close()
    assert opened_elsewhere(path) == "opened"


@pytest.mark.parametrize("damage", [b'"format":1', b'"form":5'])
def test_a_journal_that_is_refused_is_let_go_at_once(path, damage):
    """Also while somebody keeps the error, and what it refers to."""
    path.write_bytes(filled(path).read_bytes().replace(b'"format":5', damage))
    with pytest.raises(DpsynthError) as kept:
        Journal.open(path)
    with pytest.raises(DpsynthError) as again:
        Journal.open(path)
    assert str(again.value) == str(kept.value)


def test_folders_above_a_new_journal_are_made(tmp_path):
    path = tmp_path / "new" / "release" / "journal"
    journal = Journal.create(path, {})
    assert not journal.paused and not journal.sealed
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_file_and_its_folder_are_for_the_owner_only(path):
    Journal.create(path, {})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_journal_is_never_started_over_another(path):
    before = filled(path).read_bytes()
    with pytest.raises(FileExistsError):
        Journal.create(path, {})
    assert path.read_bytes() == before


def test_the_header_comes_back_as_it_was_written(path):
    header = Journal.open(filled(path)).header
    assert header == {"kind": "open", "format": 5, "key": "00", "release": "r"}


def test_a_release_that_the_ledger_has_closed_answers_from_its_record_and_draws_nothing_more(path):
    journal = Journal.open(filled(path))
    journal.sealed = True
    assert len(replay(journal)) == 3
    before = path.read_bytes()
    with pytest.raises(DpsynthError, match="the ledger has closed"):
        journal.answer({"ask": "choose"}, EVENTS[2], never)
    assert path.read_bytes() == before
