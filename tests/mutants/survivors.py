"""The mutants that no test kills, and why none can or need: those of all rooms together."""

from __future__ import annotations

from collections.abc import Sequence

from tests.mutants import survivors_of_accounting, survivors_of_curator, survivors_of_ledger
from tests.mutants.mutations import Mutant

_ROOMS = (survivors_of_accounting, survivors_of_curator, survivors_of_ledger)

FUNCTIONS = {key: reason for room in _ROOMS for key, reason in room.FUNCTIONS.items()}
"""File and function, and the reason that all its survivors share."""

SURVIVORS = {
    (file, *found): reason
    for room in _ROOMS
    for file, of_file in room.ONE_BY_ONE.items()
    for found, reason in of_file.items()
}
"""File, function, the beginning of the change, and its number among the same changes; and the reason."""


def reason_of(mutant: Mutant) -> str | None:
    """The reason why a mutant survives; None if there is none."""
    whole = FUNCTIONS.get((mutant.file.removeprefix("dpsynth/"), mutant.function))
    return whole or next((reason for named, reason in SURVIVORS.items() if _is_named(mutant, named)), None)


def _is_named(mutant: Mutant, named: tuple[str, str, str, int]) -> bool:
    file, function, change, nth = named
    return (mutant.file, mutant.function, mutant.nth) == (
        f"dpsynth/{file}",
        function,
        nth,
    ) and mutant.change.startswith(change)


def unclear(mutants: Sequence[Mutant], file: str) -> list[tuple[str, str, str, int]]:
    """The explanations of a file that are of no mutant, or of several."""
    return [
        named
        for named in SURVIVORS
        if named[0] == file and sum(_is_named(mutant, named) for mutant in mutants) != 1
    ]
