"""The mutants that no test kills, and why none can or need."""

from __future__ import annotations

from collections.abc import Iterator

from tests.mutants.mutations import Mutant

_STEPS = "Newton's method stops a step earlier or later, and the bound holds wherever it stops."
_START = "Newton's method starts elsewhere and comes to the same root."
_TIE = "Both sides are never equal: one is a logarithm or a root, rounded to fifty digits or more."
_MARGIN = "A margin far below the last digit of a float; that it goes to the safe side has a test."
_SPEED = "How much is done at a time, which changes no result."

_BY_FILE: dict[str, dict[tuple[str, str, int], str]] = {
    "accounting/events.py": {
        ("GaussianEvent.half_mu_squared", "variance > 0 -> variance >= 0", 0): (
            "0.999 sigma^2 is never 0.6: 600/999 is no square of a fraction."
        ),
    },
    "accounting/gaussian_dp.py": {
        ("", "'1e-70' -> '7e-71'", 0): _MARGIN,
        ("", "'1e-30' -> '7e-31'", 0): _STEPS,
        ("gdp_epsilon", "_delta(-mu / 2, mu).ln() <= allowed -> _delta(-mu / 2, mu).ln() < allowed", 0): _TIE,
        ("gdp_epsilon", "2 -> 3", 2): _START,
        (
            "gdp_epsilon",
            "x - lower <= _NEAR_ENOUGH * abs(x) -> x - lower < _NEAR_ENOUGH * abs(x)",
            0,
        ): _STEPS,
        ("gdp_epsilon", "_NEAR_ENOUGH * abs(x) -> _NEAR_ENOUGH / abs(x)", 0): _STEPS,
        ("gdp_epsilon", "_delta(lower, mu).ln() > allowed -> _delta(lower, mu).ln() >= allowed", 0): _TIE,
        ("gdp_budget", "2 -> 3", 0): _START,
        ("gdp_budget", "1 -> 2", 0): _START,
        ("gdp_budget", "abs(step) > _NEAR_ENOUGH * mu -> abs(step) >= _NEAR_ENOUGH * mu", 0): _STEPS,
        ("gdp_budget", "_NEAR_ENOUGH * mu -> _NEAR_ENOUGH / mu", 0): _STEPS,
    },
    "curator/noise.py": {
        ("", "enable_features('contrib') -> pass", 0): (
            "A statement that runs on import is not tried; without it OpenDP makes no mechanism at all."
        ),
    },
    "curator/privacy_filter.py": {
        ("", "1000 -> 1001", 0): "From which price on an answer that was lost is not asked for again.",
        ("PrivacyFilter._ask", "event.delta > 0 -> event.delta >= 0", 0): (
            "An event without a delta is then compared with what is left, which is never below 0."
        ),
        ("PrivacyFilter._insist", "again <= price / WORTHLESS -> again < price / WORTHLESS", 0): (
            "At exactly a thousandth of the price an answer is asked for once more, or not."
        ),
    },
    "curator/exam.py": {
        ("", "1 << 22 -> 1 >> 22", 0): _SPEED,
        ("", "1 -> 2", 1): _SPEED,
        ("", "22 -> 23", 0): _SPEED,
        ("ExamQuestions._exact", "self._counts.prepare(batch) -> pass", 0): _SPEED,
        ("_counted", "piece.prepare(cliques) -> pass", 0): _SPEED,
    },
}

SURVIVORS = {
    (file, *found): reason for file, of_file in _BY_FILE.items() for found, reason in of_file.items()
}


def reason_of(mutant: Mutant) -> str | None:
    """The reason why a mutant survives; None if there is none."""
    return SURVIVORS.get(_named(mutant))


def _named(mutant: Mutant) -> tuple[str, str, str, int]:
    return mutant.file.removeprefix("dpsynth/"), mutant.function, mutant.change, mutant.nth


def stale(mutants: Iterator[Mutant], file: str) -> set[tuple[str, str, str, int]]:
    """The explanations of a file whose mutants there are no more."""
    return {named for named in SURVIVORS if named[0] == file} - {_named(mutant) for mutant in mutants}
