"""Numbers as people read them. A reported epsilon, delta or probability is never rounded down."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from math import exp, isfinite

_LARGEST_EXPONENT = 700.0
_PLAIN_LIMITS = (1e-4, 1e9)
_SMALL_ERROR = 10.0

NOTHING = "\N{EN DASH}"
"""The text of a missing number."""


def rounded_up(value: float, digits: int = 4) -> str:
    """A number with some significant digits, never below the value.

    >>> rounded_up(1.00001), rounded_up(1.0), rounded_up(1e-9)
    ('1.001', '1', '1e-9')
    """
    if not isfinite(value):
        return "infinite"
    up = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(value)).normalize()
    # The shortest decimal of a float stands for it, though its exact value may be a hair above.
    shortest = Decimal(repr(value)).normalize()
    if len(shortest.as_tuple().digits) <= digits:
        up = shortest
    if up != 0 and not _PLAIN_LIMITS[0] <= abs(up) < _PLAIN_LIMITS[1]:
        return f"{up:e}".replace("E", "e").replace("e+", "e")
    return f"{up:,f}"


def size_in_words(size: int) -> str:
    """An amount of memory or of a file, in units of 1 000.

    >>> size_in_words(15), size_in_words(150_000_000), size_in_words(2_000_000_000)
    ('15 bytes', '150 MB', '2 GB')
    """
    units = ("bytes", "kB", "MB", "GB", "TB")
    place = min(max(len(str(size)) - 1, 0) // 3, len(units) - 1)
    return f"{size / 1000**place:.3g} {units[place]}"


def odds_factor(epsilon: float) -> str:
    """e^epsilon, rounded up."""
    return rounded_up(exp(min(epsilon, _LARGEST_EXPONENT)))


def guess_percent(epsilon: float, delta: float) -> str:
    """The largest probability, in per cent, of distinguishing two neighbours that are equally likely.

    At most (e^epsilon + delta)/(1 + e^epsilon), as the total variation distance is at most
    (e^epsilon - 1 + 2 delta)/(e^epsilon + 1) (Kairouz, Oh and Viswanath 2015).
    """
    share = (1.0 + delta * exp(-epsilon)) / (1.0 + exp(-epsilon))
    return rounded_up(100.0 * min(share, 1.0), 3)


def _with_minus(digits: str) -> str:
    return digits.replace("-", "\N{MINUS SIGN}")


def count(value: float | None) -> str:
    """An estimated number of rows; noise may have made it negative."""
    return NOTHING if value is None else _with_minus(f"{value:z,.0f}")


def number(value: float | None, error: float | None = None) -> str:
    """A number with the decimals that its error leaves meaningful, or four digits without one."""
    if value is None:
        return NOTHING
    yardstick = abs(error or value / 100.0)
    decimals = next((d for d in range(6) if yardstick * 10**d >= 2.0), 6 if yardstick else 0)
    return _with_minus(f"{value:z,.{decimals}f}")


def margin(error: float | None) -> str:
    """Half the width of an interval, e.g. "± 12"; "" where unknown."""
    if error is None:
        return ""
    return f"± {error:,.0f}" if error >= _SMALL_ERROR else f"± {error:,.1f}"


def grouped(label: str) -> str:
    """A label with separators in its whole numbers of five digits and more.

    >>> grouped("20000 to 49999"), grouped("[0.12345, 2013)"), grouped("1500000")
    ('20,000 to 49,999', '[0.12345, 2013)', '1,500,000')
    """
    return re.sub(r"(?<![\w.,])[0-9]{5,}(?![\w])", lambda digits: f"{int(digits[0]):,}", label)


def percent(share: float | None) -> str:
    """A share in per cent."""
    return NOTHING if share is None else _with_minus(f"{100.0 * share:z.1f} %")


def listed(names: Sequence[str]) -> str:
    """Names as a list in words.

    >>> listed(("age", "sex", "city"))
    'age, sex and city'
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
