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
    columns, rows = _worst_first(errors["columns"]) if errors["rows"] else errors["columns"], errors["rows"]
    together = next((step for step in facts["steps"] if step["step"] == "marginals"), None)
    if columns:
        off = span_of_rows([column["error"] for column in columns], rows)
        pair = "" if together is None else f", {together['expected_error']:,.0f} in one of columns together"
        yield f"Mean error: {off} in a count of a single column{pair}."
        smallest = span_of_rows([column["smallest"] for column in columns], rows)
        yield f"A group below {smallest}, by column, looks like nobody."
    if rows is None:
        return
    if columns:
        worst, middle = columns[0], columns[len(columns) // 2]
        yield (
            f"Noise moves {_percent(middle['share_moved'])} of the rows in the median column, "
            f"and {_percent(worst['share_moved'])} in {_named(worst)}, the worst."
        )
    if errors["pairs"]:
        yield _pairs(errors["pairs"], errors["pairs_measured_at_most"])
    if errors["exam_within"] is not None:
        yield f"The exam tells the error of a pair to within {_percent(errors['exam_within'])}."
    fewer, epsilon = errors["columns_that_would_do"], errors["epsilon_that_would_do"]
    if fewer is not None:
        yield (
            f"{len(columns)} columns on {rows:,} rows are too many: declare fewer columns (about {fewer} "
            "would do at this ε), or fewer bins and values."
        )
    if columns:
        found, limit = epsilon["epsilon"], _percent(epsilon["share_moved"])
        enough = f"ε = {found:g} would do" if found is not None else "No ε would do"
        yield f"{enough} for at most {limit} in every column."


def _by_strength(pairs: Sequence[Facts]) -> tuple[list[Facts], list[Facts], list[Facts]]:
    """Pairs in which weak relations show, only strong ones, and hardly any; the worst first in each."""
    from dpsynth.plan.expected_errors import STRONG, WEAK

    worst = _worst_first(pairs)
    hidden = [pair for pair in worst if pair["share_moved"] > STRONG]
    strong = [pair for pair in worst if WEAK < pair["share_moved"] <= STRONG]
    return worst[len(hidden) + len(strong) :], strong, hidden


def _pairs(pairs: Sequence[Facts], measured: int) -> str:
    """Numbers of pairs by the strength of the relation that shows."""
    weak, strong, hidden = _by_strength(pairs)
    return (
        f"Pairs: at most {measured:,} of {len(pairs):,} are measured. Weak relations show in {len(weak):,}, "
        f"only strong ones in {len(strong):,}, hardly any in {len(hidden):,}."
    )


def pairs_in_words(errors: Facts) -> Iterator[str]:
    """Relations that show in pairs of columns, and the worst pairs; nothing without a number of rows."""
    from dpsynth.plan.expected_errors import STRONG, WEAK

    if errors["rows"] is None or not errors["pairs"]:
        return
    weak, strong, hidden = _by_strength(errors["pairs"])
    yield (
        "A relation between two columns shows if it moves more rows than noise does. It shows for certain if "
        f"it moves twice as many. In {len(weak):,} pairs noise moves at most {_percent(WEAK)} of the rows, "
        f"in {len(strong):,} at most {_percent(STRONG)}, in {len(hidden):,} more."
    )
    if hidden:
        named = ", ".join(f"{_named(pair)} ({_percent(pair['share_moved'])})" for pair in hidden[:_NAMED])
        yield f"The worst pairs: {named}{', ...' if len(hidden) > _NAMED else ''}."
    seen = [pair["correlation"] for pair in errors["pairs"] if pair["correlation"] is not None]
    if hidden and seen:
        yield (
            "Two columns of numbers or dates may show a correlation even there. Most correlations above "
            f"{4 * min(seen):.2g} to {min(1.0, 4 * max(seen)):.2g} show, by pair; few of half that size do."
        )


def sampling_in_words(sampling: Facts, rows: int | None) -> str:
    """The sample of units, and whether the release would be better without it."""
    asked = (
        f"Sample: a secret sample of the units is asked, {100 * sampling['rate']:g} % of them, at "
        f"ε = {sampling['epsilon_of_sample']:.4g} of its own."
    )
    columns = sampling["columns"]
    if not columns:
        return asked
    noise, without = (
        span_of_rows([column[key] for column in columns], rows)
        for key in ("error_by_noise", "error_without_sampling")
    )
    words = f"{asked} By noise a count of a single column is off by {noise} on average"
    if rows is not None:
        sampled = span_of_rows([column["error_by_sampling"] for column in columns], rows)
        words += f", and by the sample by {sampled} more"
    worse = sum(
        c["error_by_noise"] + (c["error_by_sampling"] or 0) > c["error_without_sampling"] for c in columns
    )
    verdict = (
        "it would be better in every column without the sample: leave out privacy.sample_rate"
        if worse == len(columns)
        else f"it would be better in {worse} of {len(columns)} columns without the sample"
    )
    return f"{words}. Without the sample it would be off by {without}: {verdict}."


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
