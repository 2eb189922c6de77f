"""The files that are changed, and the tests that may kill a mutant.

Left out are ``curator/engine.py``, a protocol without code, and of the ledger what only draws and lays out:
``chart.py``, ``page.py`` and ``terminal.py``.
"""

from __future__ import annotations

_CURATOR = (
    "noise",
    "terms",
    "privacy_filter",
    "sum_questions",
    "exam",
    "journal",
    "scores",
    "marginals",
    "clique_choices",
    "partition_selection",
    "unit_sample",
    "unit_codes",
    "contribution_bounding",
    "door",
    "domain_questions",
    "counting",
    "loading",
    "coded_columns",
    "bulk_noise",
    "memory_table",
    "moment_guesses",
    "number_guesses",
    "finer_count_questions",
    "partitioned",
    "pieces",
    "dask_workers",
    "dask_clusters",
    "source",
    "table",
    "csv_lines",
    "csv_records",
    "cell_texts",
    "column_names",
    "kept_texts",
    "database_table",
    "database_readers",
    "profiling",
)
_ACCOUNTING = (
    "events",
    "rounding",
    "gaussian_dp",
    "zero_concentrated",
    "scales",
    "partition_selection",
    "group",
    "amount",
    "cost",
    "calibration",
    "noises",
    "measures",
    "accountants",
    "neighbours",
    "subsampling",
    "beside_noise",
    "fixed_order",
    "shuffling",
    "known_measures",
    "guarantee",
    "normal_tail",
    "advanced",
    "comparison",
    "numerical",
    "loss_pairs",
    "guesses",
)
_LEDGER = (
    "privacy_filter",
    "chain",
    "head_file",
    "identity",
    "ledger",
    "reading",
    "book",
    "store",
    "sessions",
    "contents",
    "balance",
    "facts",
    "runway",
    "tables",
    "refusals",
    "hints",
    "views",
)

_DOMAIN = ("person_ids",)

FILES = {
    room: tuple(f"dpsynth/{room}/{name}.py" for name in names)
    for room, names in (
        ("accounting", _ACCOUNTING),
        ("curator", _CURATOR),
        ("domain", _DOMAIN),
        ("ledger", _LEDGER),
    )
}

TESTS = {
    "accounting": ("tests/accounting", "tests/curator/test_unit_codes.py"),
    "curator": ("tests/curator", "tests/guarantee"),
    "domain": ("tests/domain/test_person_ids.py",),
    "ledger": ("tests/ledger",),
}
"""What is measured of each room's tests. Others are named on the command line."""
