"""Progress: shares for whoever watches, amounts on a terminal, nothing else anywhere."""

from __future__ import annotations

import itertools
from contextlib import suppress

import pytest

from dpsynth.lifecycle import progress
from dpsynth.lifecycle.progress import EVERY, StepWatcher, in_words, lines_for_steps, showing, watched


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass: one between any two looks."""
    ticks = itertools.count()
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(ticks)))


@pytest.mark.usefixtures("clock")
def test_a_watcher_gets_every_step_and_shares_of_long_ones_alone_and_seldom() -> None:
    heard: list[tuple[str, float]] = []
    passed: list[str] = []

    class Watcher(StepWatcher):
        def begun(self, step: str) -> None:
            passed.append(f"begin {step}")

        def advanced(self, step: str, share: float) -> None:
            heard.append((step, share))

        def ended(self, step: str) -> None:
            passed.append(f"end {step}")

    with watched(StepWatcher()), watched(Watcher()):
        with showing("sample rows", "rows") as advance:
            for done in range(1, 11):
                advance(1000 * done, 10_000)
        with showing("a short one") as advance:
            advance(1, 1)
        with suppress(ValueError), showing("one that fails"):
            raise ValueError
    assert {step for step, _ in heard} == {"sample rows"}
    assert len(heard) == 10 // EVERY and all(0 < share <= 1 for _, share in heard)
    with showing("unwatched") as advance:
        advance(1, 1)
    assert passed == [
        "begin sample rows",
        "end sample rows",
        "begin a short one",
        "end a short one",
        "begin one that fails",
    ]


def test_without_a_terminal_a_step_is_a_line_without_numbers_or_nothing(capsys) -> None:
    for lines in (True, False):
        around = lines_for_steps() if lines else watched(StepWatcher())
        with around, showing("sample rows", "rows") as advance:
            advance(5, 10)
        assert capsys.readouterr().err == ("Step: sample rows\n" if lines else "")


def test_rate_and_time_left_follow_from_what_is_done() -> None:
    assert in_words(2_000_000, 8_000_000, 4.0, "rows").endswith("500,000 rows/s, 0:00:12 left")
    assert "left" not in in_words(8, 8, 4.0, "rows") and in_words(0, None, 1.0, "rows") == ""
