"""The exact discrete distributions, by direct exponentials in decimals: no recurrence, no binary."""

from bisect import bisect_right
from collections.abc import Iterable
from decimal import Decimal, localcontext
from functools import cache

KINDS = ("gaussian", "laplace")
SCALES = (0.3, 1.0, 7.5, 100.0, 1e4)
DIGITS = 110


@cache
def cumulative(kind: str, scale: float, digits: int = DIGITS) -> list[Decimal]:
    """P(|X| <= k), correct to nearly that many digits, until they no longer tell it from 1."""
    with localcontext() as context:
        context.prec = digits + 10
        context.Emin = -(10**9)
        exact, least = Decimal(scale), Decimal(10) ** -(digits + 5)
        sums, k = [Decimal(1)], 0
        while True:
            k += 1
            exponent = Decimal(k) ** 2 / (2 * exact**2) if kind == "gaussian" else k / exact
            weight = 2 * (-exponent).exp()
            if weight < least:
                return [s / sums[-1] for s in sums]
            sums.append(sums[-1] + weight)


def decided(kind: str, scale: float, bits: Iterable[int]) -> int:
    """|X| for a U that begins with 63 bits and then words of 64, all of which it takes to know."""
    exact = cumulative(kind, scale)
    first, *more = bits
    low, size = first, 63
    for word in more:
        low, size = low << 64 | word, size + 64
    with localcontext() as context:
        context.prec = 200
        low_end, high_end = Decimal(low) / 2**size, Decimal(low + 1) / 2**size
    k = bisect_right(exact, low_end)
    assert k < len(exact), "the script leaves this draw open"
    assert high_end <= exact[k], "the script leaves this draw open"
    return k
