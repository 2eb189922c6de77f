"""Every planted cause is warned of, and a healthy table is not, whatever the noise."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import ceil

import numpy as np
import pytest

from dpsynth.columns.measurement import ExactTotal, Measurement
from dpsynth.statistics.single_columns import DataWarning, empty_table
from tests.examples import cases
from tests.statistics.columns import Asked
from tests.thinned import some, thinned

ROWS = 8000
ACCOUNTS = {
    "gdp": {"accountant": "gdp", "epsilon": 4},
    "zcdp": {"accountant": "zcdp", "epsilon": 4},
    "pure": {"delta": None, "epsilon": 20},
    "persons": {"unit": {"column": "id", "max_rows": 3}, "epsilon": 12},
    "rows exchanged": {"neighbours": "replace_one", "epsilon": 6},
}

COLUMNS: Mapping[str, Mapping[str, object]] = {
    "sex": {"type": "category", "values": ["F", "M"]},
    "town": {"type": "category", "values": ["Zürich", "Genève", "Bern"], "other": "elsewhere"},
    "income": {"type": "number", "min": 0, "max": 100000, "bins": 20},
    "seen": {"type": "date", "min": "2024-01-01", "max": "2024-12-31", "unit": "month"},
    "smokes": {"type": "boolean", "missing": False},
}
"""As their owner declares them."""


def table(rng: np.random.Generator, rows: int = ROWS) -> dict[str, list[str]]:
    """A table that is read as it is declared, with a few empty cells."""
    months, days = rng.integers(1, 13, rows), rng.integers(1, 29, rows)
    return {
        "sex": rng.choice(["F", "M", ""], rows, p=[0.5, 0.45, 0.05]).tolist(),
        "town": rng.choice(["Zürich", "Genève", "Bern", "Chur"], rows, p=[0.4, 0.3, 0.2, 0.1]).tolist(),
        "income": [f"{x:.0f}" for x in np.minimum(rng.lognormal(10, 0.7, rows), 99_999)],
        "seen": [f"2024-{m:02}-{d:02}" for m, d in zip(months, days, strict=True)],
        "smokes": rng.choice(["true", "false"], rows, p=[0.2, 0.8]).tolist(),
    }


Spoil = Callable[[str], str]
Planted = tuple[str, Spoil, str, bool]
PLANTED: dict[str, Planted] = {
    "F and M for Female and Male": (
        "sex",
        lambda x: {"F": "Female", "M": "Male"}.get(x, x),
        "empty_column",
        True,
    ),
    "another case": ("sex", str.lower, "empty_column", True),
    "another date format": ("seen", lambda x: "/".join(reversed(x.split("-"))), "empty_column", True),
    "undeclared thousands separators": ("income", lambda x: f"{int(x):,}", "empty_column", True),
    "bounds off by 1000 above": ("income", lambda x: f"{int(x) * 1000}", "one_value", True),
    "bounds off by 1000 below": ("income", lambda x: f"{int(x) / 1000:.3f}", "one_value", True),
    "codes for names, and other": ("town", lambda x: str(len(x)), "one_value", True),
    "unread, where nothing may be missing": ("smokes", lambda x: f"is {x}", "one_value", True),
    "two values in three unread": (
        "town",
        lambda x: x if x == "Bern" else f"{x} (city)",
        "unseen_values",
        False,
    ),
    "another encoding": (
        "town",
        lambda x: x.replace("ü", "\N{REPLACEMENT CHARACTER}"),
        "unseen_values",
        False,
    ),
    "mostly empty": ("sex", str, "mostly_missing", False),
}


def spoilt(rng: np.random.Generator, cause: str) -> dict[str, list[str]]:
    column, spoil, *_ = PLANTED[cause]
    found = table(rng)
    if cause == "mostly empty":
        keep = rng.random(ROWS) < 0.3
        return found | {column: [x if k else "" for x, k in zip(found[column], keep, strict=True)]}
    return found | {column: [spoil(x) for x in found[column]]}


@pytest.mark.parametrize(("cause", "account"), thinned(list(PLANTED), list(ACCOUNTS), strength=1))
def test_every_planted_cause_is_warned_of_and_nothing_else(
    rng: np.random.Generator, cause: str, account: str
) -> None:
    asked = Asked(COLUMNS, **ACCOUNTS[account])
    counts = asked.counts(spoilt(rng, cause))
    column, _, kind, serious = PLANTED[cause]
    for _ in range(cases(20, least=5)):
        (found,) = asked.warnings(counts, rng)
        assert (found.column, found.kind, found.serious) == (column, kind, serious)
        assert found.sentence.startswith(f"Column {column}: ") and "dpsynth check CONFIG" in found.paragraph


@pytest.mark.parametrize("account", ACCOUNTS)
@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_below_its_noise_is_warned_of_and_nothing_is_said_of_its_columns(
    rng: np.random.Generator, rows: int, account: str
) -> None:
    asked = Asked(COLUMNS, **ACCOUNTS[account])
    counts = asked.counts(table(rng, rows))
    for _ in range(cases(20, least=5)):
        (found,) = asked.warnings(counts, rng)
        assert (found.kind, found.column, found.serious) == ("small_table", None, True)


def healthy_draws(draws: int) -> list[tuple[DataWarning, ...]]:
    """Warnings of tables of many sizes, from those just above their noise on."""
    rng = np.random.default_rng(11)
    found = []
    for account in ACCOUNTS.values():
        asked = Asked(COLUMNS, **account)
        for rows in (600, 2000, 20000):
            counts = asked.counts(table(rng, rows))
            found += [asked.warnings(counts, rng) for _ in range(draws)]
    return found


def test_a_healthy_table_gives_no_warning() -> None:
    assert not any(healthy_draws(40))


@pytest.mark.slow
def test_a_healthy_table_gives_no_warning_in_a_hundred_thousand_releases() -> None:
    """At most 1 in 10 000 may, and hardly any does: most limits are far from being passed."""
    assert sum(bool(warnings) for warnings in healthy_draws(7000)) <= 10


def test_limits_that_are_ten_times_too_narrow_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpsynth.statistics import single_columns as noisy_rows

    sound = noisy_rows.NoisyRows.share

    def narrow(self, answer, codes):
        return sound(replace(self, deviations=self.deviations / 10), answer, codes)

    monkeypatch.setattr(noisy_rows.NoisyRows, "share", narrow)
    rng, asked = (
        np.random.default_rng(5),
        Asked({"sex": COLUMNS["sex"], "smokes": COLUMNS["smokes"]}, epsilon=0.1),
    )
    texts = {"sex": ["", "M"] * 400, "smokes": ["true", "false"] * 400}
    counts = asked.counts(texts)
    assert any(asked.warnings(counts, rng) for _ in range(200))


def test_one_value_of_a_middle_bin_is_said_and_stops_nothing(rng: np.random.Generator) -> None:
    asked = Asked(COLUMNS)
    (found,) = asked.warnings(asked.counts(table(rng) | {"income": ["52000"] * ROWS}), rng)
    assert (found.kind, found.serious) == ("one_value", False) and "nothing is wrong" in found.remedy


def test_a_column_that_was_searched_for_stops_nothing_and_has_another_remedy(
    rng: np.random.Generator,
) -> None:
    asked = Asked(COLUMNS)
    counts = asked.counts(table(rng) | {"town": ["x"] * ROWS})
    (found,) = asked.warnings(counts, rng, found={"town"})
    assert (found.kind, found.serious) == ("one_value", False) and "searched for" in found.remedy


def test_the_column_of_a_slice_may_lie_in_one_place(rng: np.random.Generator) -> None:
    asked = Asked(COLUMNS)
    counts = asked.counts(table(rng) | {"seen": ["2024-12-05"] * ROWS})
    assert [w.column for w in asked.warnings(counts, rng)] == ["seen"]
    assert asked.warnings(counts, rng, slice_column="seen") == ()


def test_a_rare_value_is_none_of_the_unseen_where_every_cell_is_read(rng: np.random.Generator) -> None:
    asked = Asked(COLUMNS)
    texts = table(rng) | {"town": ["Zürich", "Genève"] * (ROWS // 2)}
    assert asked.warnings(asked.counts(texts), rng) == ()


def test_columns_with_public_counts_are_not_asked_for_and_nothing_is_said_of_them(
    rng: np.random.Generator,
) -> None:
    asked = Asked(COLUMNS)
    counts = asked.counts(spoilt(rng, "another case"))
    del counts["sex"]
    assert asked.warnings(counts, rng) == ()
    assert asked.warnings({}, rng) == ()


def test_a_warning_says_its_figures_and_what_was_declared(rng: np.random.Generator) -> None:
    asked = Asked(COLUMNS)
    (found,) = asked.warnings(asked.counts(spoilt(rng, "another date format")), rng)
    assert re.search("about (99|100) % of its cells are missing .noise allows 9", found.sentence)
    assert "'2024-01' to '2024-12', with the format %Y-%m-%d" in found.remedy
    figures = found.figures
    assert figures["low"] <= figures["share"] <= figures["high"] == 1.0


@pytest.mark.parametrize("scale", some([0.01, 0.3, 0.5, 0.51, 0.6, 0.77, 1, 1.5, 2, 3.7, 10, 33.3, 400], 5))
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_an_empty_table_seems_empty_and_one_of_a_few_deviations_does_not(noise: str, scale: float) -> None:
    """By the exact law of the noise: 0.975 of all empty tables, and hardly one of six deviations."""
    reach = int(25 * scale) + 30
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-(values**2) / (2 * scale**2) if noise == "gaussian" else -abs(values) / scale)
    chances = weights / weights.sum()

    def paused(rows: int) -> float:
        seem = [bool(empty_table(Measurement((), np.array(v), noise, scale))) for v in values + rows]
        return float(chances[seem].sum())

    limit = max(v for v in values if empty_table(Measurement((), np.array(v), noise, scale)))
    stddev = Measurement((), np.array(0), noise, scale).stddev
    assert paused(0) >= 0.975 - 1e-9
    assert paused(2 * int(limit) + 1) <= 0.025 + 1e-9
    if scale >= 10:
        assert paused(ceil(6 * stddev)) <= (0.00005 if noise == "gaussian" else 0.0025)
        # The limit is no larger than it need be.
        assert paused(0) < 0.98


def test_a_table_that_seems_empty_says_what_noise_allows_it() -> None:
    found = empty_table(Measurement((), np.array(40), "gaussian", 100.0))
    assert found is not None and (found.kind, found.column, found.serious) == ("small_table", None, True)
    assert found.figures == {"rows": 40.0, "low": 0.0, "high": 411.9}
    assert found.sentence == (
        "The table seems to have 40 rows (noise allows up to 412): it can't be told from an empty one."
    )


def test_a_public_number_of_rows_is_taken_at_its_word() -> None:
    assert empty_table(ExactTotal.of(1)) is None
    found = empty_table(ExactTotal.of(0))
    assert found is not None and found.serious and found.sentence == "The table has no rows."
