"""The mutants of ``dpsynth/ledger/`` that no test kills, and why none can or need."""

from tests.mutants.reasons import (
    BESIDE_OURS,
    BY_POSTGRES,
    NO_POWER,
    OF_THE_COMMAND,
    OUR_BEGIN,
    SCHEMA,
    SECONDS,
    SPEED,
    STEPS,
    STRICT,
    TIE,
    TYPES,
    WORDS,
)

ONE_BY_ONE: dict[str, dict[tuple[str, str, int], str]] = {
    "ledger/store.py": {
        ("", "True -> False", 0): SCHEMA,
        ("", "True -> False", 1): SCHEMA,
        **{("", "False -> True", i): SCHEMA for i in range(9)},
        ("append", "True -> False", 1): STRICT,
        ("Store.__init__", "options['isolation_level'] = 'READ COMMITTED' -> pass", 0): BY_POSTGRES,
        ("Store.exists", "0 -> 1", 0): "No database is of one byte.",
        ("Store.transaction", "True -> False", 0): "The list has an entry either way.",
        ("_prepare_sqlite", "connection.isolation_level = None -> pass", 0): OUR_BEGIN,
        ("_prepare_sqlite", "cursor.execute('PRAGMA fullfsync = ON') -> pass", 0): NO_POWER,
        ("_prepare_sqlite", "cursor.execute('PRAGMA cell_size_check = ON') -> pass", 0): BESIDE_OURS,
        ("_prepare_sqlite", "cursor.execute('PRAGMA trusted_schema = OFF') -> pass", 0): BESIDE_OURS,
        ("_prepare_sqlite", "cursor.close() -> pass", 0): "A cursor that is closed once it is collected.",
        ("", "if TYPE_CHECKING", 0): TYPES,
        ("", "30 -> 31", 0): SECONDS,
        ("", "10 -> 11", 0): SECONDS,
        ("", "120 -> 121", 0): SECONDS,
        ("Store.__init__", "options['connect_args'] = {'timeout': BUSY_SECONDS} -> pass", 0): SECONDS,
        (
            "Store.__init__",
            "options['connect_args'] = {'connect_timeout': CONNECT_SECONDS} -> pass",
            0,
        ): SECONDS,
    },
    "ledger/chain.py": {
        ("_short", "len(repr(value)) < 80 -> len(repr(value)) <= 80", 0): WORDS,
        ("_short", "80 -> 81", 0): WORDS,
    },
    "ledger/balance.py": {
        ("", "1000000 -> 1000001", 0): WORDS,
        ("ReleaseEntry", "False -> True", 0): "Events are compared; no set or mapping has releases in it.",
        ("Balance.left", "True -> False", 0): STRICT,
        ("Balance.fits", "True -> False", 0): STRICT,
        ("_share", "True -> False", 0): STRICT,
        ("Balance.largest_epsilon", "1 -> 2", 4): STEPS,
        ("Balance.largest_epsilon", "1 -> 2", 5): STEPS,
        ("Balance.largest_epsilon", "50 -> 51", 0): STEPS,
        ("Balance.largest_epsilon", "2 -> 3", 0): STEPS,
        ("Balance.largest_epsilon", "epsilon > 0 -> epsilon >= 0", 0): "An epsilon of 0 costs nothing.",
        (
            "Balance.largest_epsilon",
            "self._count(measure, measure.budget(epsilon, delta)) > left[0]",
            0,
        ): TIE,
        ("", "500 -> 501", 0): WORDS,
        ("_fits", "False -> True", 0): "Without a part it counts for the whole table either way.",
    },
    "ledger/refusals.py": {
        ("", "1000 -> 1001", 0): WORDS,
        ("check_reason", "len(said) > _LONGEST_REASON -> len(said) >= _LONGEST_REASON", 0): WORDS,
    },
    "ledger/privacy_filter.py": {
        ("plus", "True -> False", 0): STRICT,
        ("within", "True -> False", 0): STRICT,
        ("_most_at_a_value", "True -> False", 0): STRICT,
        ("_most_on_a_day", "True -> False", 0): STRICT,
        ("_holds", "part.start is None or part.stop is None ->", 0): "A slice has both days or neither.",
    },
    "ledger/ledger.py": {
        ("Sessions.refuse_if_lost", "False -> True", 0): "The head file is there, so it is not made.",
    },
    "ledger/contents.py": {
        ("_Account", "False -> True", 0): "Nothing was counted before the first release, so nothing is over.",
        ("_Account.keeps_to_its_cap", "for c in near if c.part is not None and", 0): SPEED,
        (
            "_Account.keeps_to_its_cap",
            "c.part is not None and c.part.overlaps(part) -> c.part is not None or",
            0,
        ): SPEED,
    },
}
"""By file: function, the beginning of the change, and its number among the same changes; and the reason."""

FUNCTIONS: dict[tuple[str, str], str] = {
    ("ledger/views.py", "facts"): OF_THE_COMMAND,
    ("ledger/views.py", "_budget_share"): OF_THE_COMMAND,
    ("ledger/views.py", "_release"): OF_THE_COMMAND,
}
"""Functions whose survivors are all alike: what uses their result holds for any."""
