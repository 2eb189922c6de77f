"""The draws of noise, held against the charges that are on disk at that moment."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpsynth.curator import samplers


def watched_draws(monkeypatch: pytest.MonkeyPatch, journal: Callable[[], Path]) -> list[tuple[int, int]]:
    """For each draw from now on: draws so far, this one included, and charges on disk in a journal."""
    seen: list[tuple[int, int]] = []

    def watched(sound: Any) -> Any:
        def draw(*arguments: Any) -> Any:
            lines = journal().read_text().splitlines()
            seen.append((len(seen) + 1, sum(json.loads(line)["kind"] == "charge" for line in lines)))
            return sound(*arguments)

        return draw

    for name in ("add_gaussian", "add_laplace", "choose_index"):
        monkeypatch.setattr(samplers, name, watched(getattr(samplers, name)))
    monkeypatch.setattr(samplers, "select", watched(samplers.select))
    return seen
