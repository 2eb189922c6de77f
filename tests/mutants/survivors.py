"""The mutants that no test kills, and why none can or need."""

from __future__ import annotations

from collections.abc import Sequence

from tests.mutants.mutations import Mutant

_STEPS = "Newton's method stops a step earlier or later, and the bound holds wherever it stops."
_START = "Newton's method starts elsewhere and comes to the same root."
_TIE = "Both sides are never equal: one is a logarithm or a root, rounded to fifty digits or more."
_MARGIN = "A margin far below the last digit of a float; that it goes to the safe side has a test."
_DIGITS = "More digits, or a margin that is still above the error of the digits there are."
_ALPHA = "Any alpha gives a valid epsilon; that the best one is found has tests of its own."
_SAME_FLOAT = "Both are equal only if both are floats, and then either branch gives that float."
_NOTHING_ASKED = "Nothing is asked either way; the condition spares the preparation."
_LAST_DIGIT = "The search begins a last digit further off, and ends at the first scale within the price."
_END = "Where a search ends that comes to the same threshold."
_NEVER_0 = "0.999 sigma^2 is never 0.6: 600/999 is no square of a fraction."
_CELL = "The code refers to its class in another way; without the call no question finds its journal."
_SECONDS = "How long somebody waits before he gives up; nothing that holds depends on it."
_WORDS = "The length of a word in a message."
_STRICT = "A guard against sequences of different lengths, of which there are none."
_ROOM = "A limit with room: numbers up to it, and up to its double, stay within int64."
_WORTHLESS = (
    "From which price on an answer that was lost is not asked for again; the budget holds either way."
)
_SPEED = "How much is done at a time, which changes no result."

_BY_FILE: dict[str, dict[tuple[str, str, int], str]] = {
    "accounting/events.py": {
        ("GaussianEvent.half_mu_squared", "variance > 0 -> variance >= 0", 0): _NEVER_0,
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
    "accounting/zero_concentrated.py": {
        ("", "60 -> 61", 0): _DIGITS,
        ("", "'1e-45' ->", 0): _DIGITS,
    },
    "accounting/accountants.py": {
        ("compose", "approximate_delta_of(found) <= set_aside ->", 0): _SAME_FLOAT,
        ("compose", "approximate_delta_of(found) <= delta ->", 0): _SAME_FLOAT,
    },
    "accounting/scales.py": {
        ("selection_within", "0.0 -> 1.0", 0): _LAST_DIGIT,
        ("threshold_within", "2 -> 3", 0): _END,
        ("threshold_within", "40 * Fraction(sigma) + 1 ->", 0): _END,
        ("threshold_within", "40 -> 41", 0): _END,
        ("threshold_within", "1 -> 2", 1): _END,
        ("threshold_within", "ThresholdEvent(sigma, high, partitions).delta > _proper(delta) ->", 0): _END,
        ("_within", "1e-15 -> 7e-16", 0): _LAST_DIGIT,
        ("_within", "1 + 1e-15 -> 1 - 1e-15", 0): _LAST_DIGIT,
        ("_within", "1e-15 -> 7e-16", 1): _LAST_DIGIT,
    },
    "accounting/partition_selection.py": {
        (
            "",
            "40 -> 41",
            0,
        ): "From 40 deviations on a tail is below every double, and the least of them stands for it.",
        (
            "SelectionEvent.scale",
            "1 / self.epsilon0 ->",
            0,
        ): "A figure for readers, from which nothing is computed.",
        ("SelectionEvent.scale", "1 -> 2", 0): "A figure for readers, from which nothing is computed.",
        ("ThresholdEvent.half_mu_squared", "variance > 0 -> variance >= 0", 0): _NEVER_0,
        ("tail_above", "with localcontext(EXACT)", 0): _DIGITS,
        ("tail_above", "1 + 4 * TAIL_ERROR -> 1 - 4 * TAIL_ERROR", 0): _DIGITS,
        ("tail_above", "4 -> 5", 0): _DIGITS,
        ("tail_above", "density(x) * mills_ratio(x) * (1 + 4 * TAIL_ERROR) ->", 0): _DIGITS,
    },
    "accounting/amount.py": {
        ("digits", "0 -> 1", 0): "Nothing and one are shown alike by either branch.",
    },
    "accounting/calibration.py": {
        ("", "True -> False", 0): "A type variable, for types alone.",
    },
    "accounting/cost.py": {
        ("Cost.__post_init__", "0 -> 1", 0): "Any number that is allowed stands for a missing one.",
    },
    "accounting/group.py": {
        ("", "80 -> 81", 0): _DIGITS,
        ("", "1 + Fraction(1, 10 ** 40) ->", 0): _DIGITS,
        ("", "1 -> 2", 1): _DIGITS,
        ("", "10 -> 11", 1): _DIGITS,
        ("", "40 -> 41", 0): _DIGITS,
        ("", "2000 -> 2001", 0): "The exponent of e from which on nothing is promised anyway.",
        ("_powers", "last / first * _MARGIN -> last / first / _MARGIN", 0): _DIGITS,
        ("group_amount", "grown < 1 -> grown <= 1", 0): _TIE,
    },
    "accounting/subsampling.py": {
        ("", "120 -> 121", 0): _DIGITS,
        ("", "1 -> 2", 0): _DIGITS,
        ("", "10 -> 11", 0): _DIGITS,
        ("", "60 -> 61", 0): _DIGITS,
    },
    "accounting/measures.py": {
        (
            "Measure.admits",
            "True -> False",
            0,
        ): "The tests of the curator kill it, where every question would be refused.",
    },
    "curator/journal.py": {
        (
            "Journal.create",
            "os.close(folder) -> pass",
            0,
        ): "A descriptor that stays open until the process ends.",
        (
            "Journal.open",
            "end < len(whole) -> end <= len(whole)",
            0,
        ): "A file without a torn line is cut to its own length.",
    },
    "curator/unit_sample.py": {
        ("UnitSample.rows", "start + number - 1 -> start + number + 1", 0): _SPEED,
        ("UnitSample._coins", "1 -> 2", 0): _SPEED,
    },
    "curator/loading.py": {
        ("LoadedRows.rows_of_units", "False -> True", 0): _SPEED,
        ("LoadedRows.bounded", "0 -> 1", 0): "A table without rows has no person of more rows than 1.",
    },
    "curator/door.py": {
        ("Curator.__init__", "super().__init__(terms, journal) -> pass", 0): _CELL,
        ("UnboundedCurator.__init__", "super().__init__(terms, journal) -> pass", 0): _CELL,
    },
    "ledger/chain.py": {
        ("_short", "len(repr(value)) < 80 -> len(repr(value)) <= 80", 0): _WORDS,
        ("_short", "80 -> 81", 0): _WORDS,
    },
    "ledger/identity.py": {
        ("", "if TYPE_CHECKING", 0): "Imports for types alone.",
    },
    "ledger/ledger.py": {
        ("Ledger.change_cap", "len(reason) > 1000 -> len(reason) >= 1000", 0): _WORDS,
        ("Ledger.change_cap", "1000 -> 1001", 0): _WORDS,
    },
    "ledger/store.py": {
        ("", "if TYPE_CHECKING", 0): "Imports for types alone.",
        ("", "30 -> 31", 0): _SECONDS,
        ("", "10 -> 11", 0): _SECONDS,
        ("", "120 -> 121", 0): _SECONDS,
        ("Store.__init__", "options['connect_args'] = {'timeout': BUSY_SECONDS} -> pass", 0): _SECONDS,
        (
            "Store.__init__",
            "options['connect_args'] = {'connect_timeout': CONNECT_SECONDS} -> pass",
            0,
        ): _SECONDS,
    },
    "ledger/privacy_filter.py": {
        ("plus", "True -> False", 0): _STRICT,
        ("within", "True -> False", 0): _STRICT,
        ("_most_at_a_value", "True -> False", 0): _STRICT,
        ("_most_on_a_day", "True -> False", 0): _STRICT,
        ("_holds", "part.start is None or part.stop is None ->", 0): "A slice has both days or neither.",
    },
    "ledger/sessions.py": {
        ("Sessions.refuse_if_lost", "False -> True", 0): "The head file is there, so it is not made.",
    },
    "curator/clique_choices.py": {
        ("CliqueChoices.choose_in_turn", "most <= 0 or not candidates ->", 0): _NOTHING_ASKED,
        ("CliqueChoices.choose_in_turn", "most <= 0 -> most < 0", 0): _NOTHING_ASKED,
    },
    "curator/partition_selection.py": {
        ("", "64 -> 65", 0): "The epsilon from which on nearly every value of two units is named anyway.",
        (
            "_next",
            "left <= 0 -> left < 0",
            0,
        ): "Where nothing is left the other branch comes to certainty too.",
    },
    "curator/noise.py": {
        ("", "enable_features('contrib') -> pass", 0): (
            "A statement that runs on import is not tried; without it OpenDP makes no mechanism at all."
        ),
    },
    "curator/privacy_filter.py": {
        ("", "1000 -> 1001", 0): _WORTHLESS,
        ("PrivacyFilter._ask", "event.delta > 0 -> event.delta >= 0", 0): (
            "An event without a delta is then compared with what is left, which is never below 0."
        ),
        ("PrivacyFilter._insist", "again <= price / WORTHLESS -> again < price / WORTHLESS", 0): _WORTHLESS,
    },
    "curator/scores.py": {
        ("", "1 -> 2", 1): _ROOM,
        ("", "36 -> 37", 0): _ROOM,
        ("", "1 << 22 -> 1 >> 22", 0): _SPEED,
        ("", "1 -> 2", 2): _SPEED,
        ("", "22 -> 23", 0): _SPEED,
        (
            "Distances.of",
            "for c in dict.fromkeys(candidates) if c not",
            0,
        ): _SPEED,
        ("Distances.of", "self._counts.prepare(missing) -> pass", 0): _SPEED,
    },
    "curator/marginals.py": {
        ("", "1 -> 2", 0): _SPEED,
        ("", "28 -> 29", 0): _SPEED,
        ("", "1 -> 2", 1): _SPEED,
        ("", "16 -> 17", 0): _SPEED,
        ("", "8 -> 9", 0): _SPEED,
        ("", "1 << 24 -> 1 >> 24", 0): _SPEED,
        ("", "1 -> 2", 2): _SPEED,
        ("", "24 -> 25", 0): _SPEED,
        ("MarginalQuestions.marginals", "1 -> 2", 0): "Equal weights of 2 are equal weights.",
        (
            "MarginalQuestions.marginals",
            "price <= allowance * parts[i] / still[0] / WORTHLESS -> "
            "price < allowance * parts[i] / still[0] / WORTHLESS",
            0,
        ): _WORTHLESS,
        (
            "MarginalQuestions.marginals",
            "allowance * parts[i] / still[0] -> allowance * parts[i] * still[0]",
            0,
        ): _WORTHLESS,
        ("MarginalQuestions.marginals", "allowance * parts[i] -> allowance / parts[i]", 0): _WORTHLESS,
    },
    "curator/exam.py": {
        ("", "1 << 22 -> 1 >> 22", 0): _SPEED,
        ("", "1 -> 2", 1): _SPEED,
        ("", "22 -> 23", 0): _SPEED,
        ("ExamQuestions._exact", "self._counts.prepare(batch) -> pass", 0): _SPEED,
        ("_counted", "piece.prepare(cliques) -> pass", 0): _SPEED,
    },
}

FUNCTIONS: dict[tuple[str, str], str] = {
    ("accounting/zero_concentrated.py", "_best_alpha"): _ALPHA,
    ("accounting/zero_concentrated.py", "_polished"): _ALPHA,
    ("curator/contribution_bounding.py", "_parts"): _SPEED,
    ("curator/counting.py", ""): _SPEED,
    ("curator/counting.py", "added_up"): _SPEED,
    ("curator/counting.py", "cores"): _SPEED,
    ("curator/loading.py", "LoadedRows.nbytes"): _SPEED,
    ("curator/marginals.py", "Store.keep"): _SPEED,
    ("curator/marginals.py", "ExactCounts.prepare"): _SPEED,
}
"""Functions whose survivors are all alike: what uses their result holds for any."""

SURVIVORS = {
    (file, *found): reason for file, of_file in _BY_FILE.items() for found, reason in of_file.items()
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
