"""The words of ``dpsynth plan`` for errors to expect: in rows, and in per cent of a public number of rows.

Invariant: everything follows from the forecast, so from the config alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Facts = Mapping[str, Any]
"""A forecast, as plain JSON values."""

_NAMED = 4
"""Most pairs of columns that are named."""


def errors_in_words(facts: Facts) -> Iterator[str]:
    """The errors to expect, in rows, and in per cent if the number of rows is given."""
    errors = facts["expected_errors"]
    columns, rows = errors["columns"], errors["rows"]
    together = next((step for step in facts["steps"] if step["step"] == "marginals"), None)
    pair = (
        "" if together is None else f", and a count of columns together by {together['expected_error']:,.0f}"
    )
    if columns:
        smallest = span_of_rows([column["smallest"] for column in columns], rows)
        off = span_of_rows([column["error"] for column in columns], rows)
        yield (
            f"Errors: a count of a single column is off by {off} on average{pair}. A group "
            f"smaller than {smallest}, by column, can't be told from nothing."
        )
    if rows is not None:
        yield from _errors_in_per_cent(facts, rows)


def _errors_in_per_cent(facts: Facts, rows: int) -> Iterator[str]:
    errors = facts["expected_errors"]
    columns, pairs = _worst_first(errors["columns"]), _worst_first(errors["pairs"])
    if columns:
        worst = columns[0]
        yield (
            f"Of {rows:,} rows noise moves {_percent(columns[-1]['share_moved'])} to "
            f"{_percent(worst['share_moved'])} between the values of a column (most in {_named(worst)}), and "
            f"{_percent(columns[len(columns) // 2]['share_moved'])} in the median column."
        )
    if errors["exam_within"] is not None:
        yield f"The exam tells the error of a pair of columns to within {_percent(errors['exam_within'])}."
    if pairs:
        yield _pairs(pairs, errors["pairs_measured_at_most"])
    fewer, epsilon = errors["columns_that_would_do"], errors["epsilon_that_would_do"]
    if fewer is not None:
        yield (
            f"{len(columns)} columns on {rows:,} rows are too many: declare fewer columns (about {fewer} "
            "would do at this ε), or fewer bins and values."
        )
    if columns:
        found = epsilon["epsilon"]
        limit = _percent(epsilon["share_moved"])
        yield (
            f"ε = {found:g} would do for at most {limit} in every column."
            if found is not None
            else f"No ε would do for at most {limit} in every column."
        )


def _pairs(pairs: Sequence[Facts], measured: int) -> str:
    from dpsynth.plan.expected_errors import STRONG, WEAK

    moved = [pair["share_moved"] for pair in pairs]
    weak = sum(share <= WEAK for share in moved)
    hidden = sum(share > STRONG for share in moved)
    words = (
        f"Of {len(pairs):,} pairs of columns at most {measured:,} are measured. A relation between two "
        "columns shows if it moves more rows than noise does, and surely if twice as many: in "
        f"{weak:,} pairs {_percent(WEAK)} of the rows will do, so weak relations show; in "
        f"{len(pairs) - weak - hidden:,} only strong ones show"
    )
    seen = [pair["correlation"] for pair in pairs if pair["correlation"] is not None]
    between = (
        " Between two columns of numbers or dates a correlation may show even so: most do above four times "
        f"{min(seen):.2g} to {max(seen):.2g} (by pair), few below twice that."
        if seen
        else ""
    )
    if not hidden:
        return f"{words}; in none noise hides all."
    named = ", ".join(
        f"{_named(pair)} ({_percent(pair['share_moved'])})" for pair in pairs[: min(hidden, _NAMED)]
    )
    return (
        f"{words}; in {hidden:,} noise moves more than {_percent(STRONG)} and hides nearly all: {named}"
        f"{', ...' if hidden > _NAMED else ''}.{between}"
    )


def _worst_first(errors: Sequence[Facts]) -> list[Facts]:
    return sorted(errors, key=lambda error: -error["share_moved"])


def _named(errors: Facts) -> str:
    return " with ".join(errors["columns"])


def _percent(share: float) -> str:
    """A share in per cent, of two digits.

    >>> _percent(0.000123), _percent(0.0345), _percent(0.5)
    ('0.012 %', '3.5 %', '50 %')
    """
    digits = f"{100 * share:.2g}"
    return f"{float(digits):g} %"


def span_of_rows(numbers: Sequence[float], rows: int | None) -> str:
    """The least and the largest number of rows, with their shares of all rows if the number is given."""
    low, high = min(numbers), max(numbers)
    ends = (low,) if f"{low:,.0f}" == f"{high:,.0f}" else (low, high)
    span = " to ".join(f"{end:,.0f}" for end in ends)
    shares = "" if rows is None else f" ({' to '.join(_percent(min(end / rows, 1.0)) for end in ends)})"
    return f"{span} rows{shares}"
