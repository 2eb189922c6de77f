"""The mutants that no test kills, and why none can or need."""

from __future__ import annotations

from tests.mutants.mutations import Mutant

SURVIVORS: dict[tuple[str, str, str], str] = {}


def reason_of(mutant: Mutant) -> str | None:
    """The reason why a mutant survives; None if there is none."""
    return SURVIVORS.get((mutant.file.removeprefix("dpsynth/"), mutant.function, mutant.change))
