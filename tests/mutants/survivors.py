"""The mutants that no test kills, and why none can or need: those of ``survivors.txt``.

A function is named by its qualified name; where two modules have one of that name, with its module.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.mutations import Mutant
from tests.scopes import is_named

_LISTED = re.findall(
    r"^(\S*?)(?:: (.+?)(?: #(\d+))?)? => (.+)$",
    Path(__file__).with_suffix(".txt").read_text(encoding="utf-8"),
    re.MULTILINE,
)

FUNCTIONS = {function: reason for function, change, _, reason in _LISTED if not change}
"""Function, and the reason that all its survivors share."""

SURVIVORS = {(function, change, int(nth or 0)): reason for function, change, nth, reason in _LISTED if change}
"""Function, the beginning of the change, and its number among the same changes; and the reason."""


def reason_of(mutant: Mutant) -> str | None:
    """The reason why a mutant survives; None if there is none."""
    by_function = (reason for function, reason in FUNCTIONS.items() if is_in(mutant, function))
    by_change = (reason for named, reason in SURVIVORS.items() if _is_named(mutant, named))
    return next(by_function, None) or next(by_change, None)


def is_in(mutant: Mutant, function: str) -> bool:
    """Whether a mutant is in the function of a name."""
    return is_named(function, mutant.module, mutant.function)


def _is_named(mutant: Mutant, named: tuple[str, str, int]) -> bool:
    function, change, nth = named
    return mutant.nth == nth and mutant.change.startswith(change) and is_in(mutant, function)


def unclear(mutants: Sequence[Mutant]) -> list[tuple[str, str, int]]:
    """The explanations that are of no mutant, or of several."""
    return [named for named in SURVIVORS if sum(_is_named(mutant, named) for mutant in mutants) != 1]
