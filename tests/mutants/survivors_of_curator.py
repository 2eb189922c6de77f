"""The mutants of ``dpsynth/curator/`` that no test kills, and why none can or need."""

from tests.mutants.reasons import (
    BELOW_ERROR,
    BY_SEARCH,
    CELL,
    GUARD_BITS,
    MORE_WORDS,
    NOTHING_ASKED,
    ROOM,
    SPEED,
    TIE,
    WHO_DRAWS,
    WIDER,
    WORTHLESS,
)

ONE_BY_ONE: dict[str, dict[tuple[str, str, int], str]] = {
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
        ("UnitSample.rows", "start + number - 1 -> start + number + 1", 0): SPEED,
        ("UnitSample._coins", "1 -> 2", 0): SPEED,
    },
    "curator/loading.py": {
        ("LoadedRows.rows_of_units", "False -> True", 0): SPEED,
        ("LoadedRows.bounded", "0 -> 1", 0): "A table without rows has no person of more rows than 1.",
    },
    "curator/door.py": {
        ("Curator.__init__", "super().__init__(terms, journal) -> pass", 0): CELL,
        ("UnboundedCurator.__init__", "super().__init__(terms, journal) -> pass", 0): CELL,
    },
    "curator/unit_codes.py": {
        ("_period_codes", "False -> True", 0): SPEED,
    },
    "curator/clique_choices.py": {
        ("CliqueChoices.choose_in_turn", "most <= 0 or not candidates ->", 0): NOTHING_ASKED,
        ("CliqueChoices.choose_in_turn", "most <= 0 -> most < 0", 0): NOTHING_ASKED,
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
        ("", "1000 -> 1001", 0): WORTHLESS,
        ("PrivacyFilter._ask", "event.delta > 0 -> event.delta >= 0", 0): (
            "An event without a delta is then compared with what is left, which is never below 0."
        ),
        ("PrivacyFilter._insist", "again <= price / WORTHLESS -> again < price / WORTHLESS", 0): WORTHLESS,
    },
    "curator/scores.py": {
        ("", "1 -> 2", 1): ROOM,
        ("", "36 -> 37", 0): ROOM,
        ("", "1 << 22 -> 1 >> 22", 0): SPEED,
        ("", "1 -> 2", 2): SPEED,
        ("", "22 -> 23", 0): SPEED,
        (
            "Distances.of",
            "for c in dict.fromkeys(candidates) if c not",
            0,
        ): SPEED,
        ("Distances.of", "self._counts.prepare(missing) -> pass", 0): SPEED,
    },
    "curator/marginals.py": {
        ("", "1 -> 2", 0): SPEED,
        ("", "28 -> 29", 0): SPEED,
        ("", "1 -> 2", 1): SPEED,
        ("", "16 -> 17", 0): SPEED,
        ("", "8 -> 9", 0): SPEED,
        ("", "1 << 24 -> 1 >> 24", 0): SPEED,
        ("", "1 -> 2", 2): SPEED,
        ("", "24 -> 25", 0): SPEED,
        ("MarginalQuestions.marginals", "1 -> 2", 0): "Equal weights of 2 are equal weights.",
        (
            "MarginalQuestions.marginals",
            "price <= allowance * parts[i] / still[0] / WORTHLESS -> "
            "price < allowance * parts[i] / still[0] / WORTHLESS",
            0,
        ): WORTHLESS,
        (
            "MarginalQuestions.marginals",
            "allowance * parts[i] / still[0] -> allowance * parts[i] * still[0]",
            0,
        ): WORTHLESS,
        ("MarginalQuestions.marginals", "allowance * parts[i] -> allowance / parts[i]", 0): WORTHLESS,
    },
    "curator/contribution_bounding.py": {
        ("", "32 -> 33", 0): SPEED,
        (
            "",
            "100 -> 101",
            0,
        ): "Ids that are numbers of more than a hundred digits are told apart a digit further.",
    },
    "curator/exam.py": {
        ("", "31 -> 32", 1): "Where a number is cut in two before it is added up.",
        ("", "1 << 22 -> 1 >> 22", 0): SPEED,
        ("", "1 -> 2", 1): SPEED,
        ("", "22 -> 23", 0): SPEED,
        ("ExamQuestions._exact", "self._counts.prepare(batch) -> pass", 0): SPEED,
        ("_counted", "piece.prepare(cliques) -> pass", 0): SPEED,
    },
    "curator/bulk_noise.py": {
        ("add", "_reach(kind, scale, _BITS) <= MAX_REACH ->", 0): WHO_DRAWS,
        ("add", "False -> True", 0): SPEED,
        ("_saturating_sum", "b[wrapped] < 0 -> b[wrapped] <= 0", 0): "Noise of 0 wraps nothing around.",
        ("_saturating_sum", "0 -> 1", 1): "Noise of 0 wraps nothing around.",
        ("_draw", "size < 0 -> size <= 0", 0): BY_SEARCH,
        ("_draw", "0 -> 1", 0): BY_SEARCH,
        ("_draw", "word - below < 2 -> word - below <= 2", 0): MORE_WORDS,
        ("_draw", "2 -> 3", 0): MORE_WORDS,
        ("_extend", "1 -> 2", 1): MORE_WORDS,
        ("_extend", "known.sums[k - 1] + known.error << bits <= word * known.total_lower ->", 0): MORE_WORDS,
        ("_guide", "len(floors).bit_length() + 5 ->", 0): SPEED,
        ("_guide", "5 -> 6", 0): SPEED,
        ("_guide", "20 -> 21", 0): SPEED,
        ("_guide", "1 -> 2", 1): BY_SEARCH,
        ("_guide", "1 -> 2", 2): BY_SEARCH,
        ("_cumulative", "ratio_upper >= one -> ratio_upper > one", 0): TIE,
        ("_cumulative", "2 -> 3", 4): WIDER,
        ("_cumulative", "n + 1 -> n - 1", 2): "The sum of x(x + 1) is a third of what is stated.",
        ("_cumulative", "1 -> 2", 8): WIDER,
        ("_cumulative", "2 -> 3", 5): WIDER,
        ("_cumulative", "1 -> 2", 3): WIDER,
        ("_cumulative", "1 -> 2", 5): WIDER,
        ("_cumulative", "weight + n * (n + 1) * short ->", 0): BELOW_ERROR,
        ("_cumulative", "n + 1 -> n - 1", 0): BELOW_ERROR,
        ("_cumulative", "1 -> 2", 6): BELOW_ERROR,
        ("_cumulative", "ratio + (n + 1) * short ->", 0): BELOW_ERROR,
        ("_cumulative", "n + 1 -> n - 1", 1): BELOW_ERROR,
        ("_cumulative", "1 -> 2", 7): BELOW_ERROR,
    },
    "curator/coded_columns.py": {
        ("CodedColumns", "0 -> 1", 0): SPEED,
        ("CodedColumns.add", "self._bytes > self.room.memory ->", 0): SPEED,
        ("CodedColumns._append", "0 -> 1", 0): SPEED,
        ("CodedColumns._append", "used + len(cells) > len(held) ->", 0): SPEED,
        ("CodedColumns._append", "len(held) * _GROWTH ->", 0): SPEED,
        ("CodedColumns._write", "0 -> 1", 0): SPEED,
        ("CodedColumns.array", "False -> True", 0): "Nobody else refers to an array that is given up.",
        ("CodedColumns.array", "with file", 0): "A descriptor that stays open until it is collected.",
        ("CodedColumns.array", "file.flush() -> pass", 0): "The map seeks its end, which flushes too.",
    },
}
"""By file: function, the beginning of the change, and its number among the same changes; and the reason."""

FUNCTIONS: dict[tuple[str, str], str] = {
    ("curator/contribution_bounding.py", "_parts"): SPEED,
    ("curator/counting.py", ""): SPEED,
    ("curator/counting.py", "added_up"): SPEED,
    ("curator/counting.py", "cores"): SPEED,
    ("curator/loading.py", "LoadedRows.nbytes"): SPEED,
    ("curator/marginals.py", "Store.keep"): SPEED,
    ("curator/marginals.py", "ExactCounts.prepare"): SPEED,
    ("curator/bulk_noise.py", ""): WHO_DRAWS,
    ("curator/bulk_noise.py", "pays"): WHO_DRAWS,
    ("curator/bulk_noise.py", "_reach"): "The length of a table; the tail beyond it is bounded separately.",
    ("curator/coded_columns.py", ""): SPEED,
    ("curator/bulk_noise.py", "_exp_minus"): GUARD_BITS,
}
"""Functions whose survivors are all alike: what uses their result holds for any."""
