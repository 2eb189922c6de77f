"""Samplers: everything random that decides an answer is drawn here, exactly and from a cryptographic source.

OpenDP's samplers draw single values, small arrays and choices; ours draw large arrays, from the same
distributions, and coins of partition selection. Which of the two draws noise depends on scale and number of
cells only. That number is public, except in partition selection; there it doesn't matter either.

Timing: not constant. Generation, sign, guide and addition take the same steps whatever is drawn, but memory
caches respond to the word, the number of binary searches depends on the draws, and an extended word takes up
to a second. The values that noise is added to decide no step, except for sums beyond int64. Durations are
therefore never published.

Invariant: no float decides a released number, no seed reaches a draw, and each draw has exactly the
distribution claimed, for the exact rational value of the float scale. A scale of zero is refused.
"""

from __future__ import annotations

import os
import secrets
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, islice, repeat
from math import ceil, log, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace, make_noisy_max
from opendp.measures import zero_concentrated_divergence
from opendp.metrics import l1_distance, l2_distance, linf_distance
from opendp.mod import Measurement, enable_features

from dpsynth.accounting.events import GaussianEvent, LaplaceEvent, SelectionEvent

enable_features("contrib")

Counts = NDArray[np.int64]
Kind = Literal["gaussian", "laplace"]
Words = Callable[[int], NDArray[np.uint64]]
"""A source of independent uniform 64-bit words, by their number."""

MAX_REACH = 2**19
"""Longest table, in thresholds: a Gaussian sigma of 53 000, a Laplace scale of 10 900."""
_MIN_CELLS = 128
_CELLS_A_CHUNK = 2**16
_BITS = 63
_GUARD = 72
"""Fixed-point bits beyond those of the word: rounding costs fewer than 3 log2(MAX_REACH) + 4 of them."""


# Noise and choices


def _positive(scale: float) -> float:
    if not scale > 0:
        raise ValueError("a noise scale must be positive")
    return scale


@lru_cache(maxsize=64)
def _gaussian(sigma: float) -> Measurement:
    return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), _positive(sigma))


@lru_cache(maxsize=64)
def _laplace(scale: float) -> Measurement:
    return make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), _positive(scale))


@lru_cache(maxsize=64)
def _gumbel_max(scale: float) -> Measurement:
    space = vector_domain(atom_domain(T="i64")), linf_distance(T="i64")
    return make_noisy_max(*space, zero_concentrated_divergence(), _positive(scale))


def add_gaussian(values: Counts, sigma: float) -> Counts:
    """Add discrete Gaussian noise, P(x) ~ exp(-x^2/(2 sigma^2)), to each value.

    Sensitivity: L2 distance between neighbouring ``values``, D2, given by the caller.
    Distribution: N_Z(0, sigma^2) independently a value (Canonne, Kamath, Steinke 2020).
    Cost: rho = D2^2/(2 sigma^2), ``accounting.events.GaussianEvent``.
    """
    if pays_in_bulk("gaussian", _positive(sigma), values.size):
        return add_in_bulk("gaussian", sigma, values)
    return np.array(_gaussian(sigma)(values.ravel()), dtype=np.int64).reshape(values.shape)


def add_laplace(values: Counts, scale: float) -> Counts:
    """Add discrete Laplace noise, P(x) ~ exp(-|x|/scale), to each value.

    Sensitivity: L1 distance between neighbouring ``values``, D1, given by the caller.
    Distribution: discrete Laplace independently a value (Canonne, Kamath, Steinke 2020).
    Cost: epsilon = D1/scale, ``accounting.events.LaplaceEvent``.
    """
    if pays_in_bulk("laplace", _positive(scale), values.size):
        return add_in_bulk("laplace", scale, values)
    return np.array(_laplace(scale)(values.ravel()), dtype=np.int64).reshape(values.shape)


def add_noise(event: GaussianEvent | LaplaceEvent, values: Counts) -> Counts:
    """Values with the noise that an event charges for."""
    if isinstance(event, GaussianEvent):
        return add_gaussian(values, event.sigma)
    return add_laplace(values, event.scale)


def choose_index(scores: Counts, scale: float) -> int:
    """Choose an index by the exponential mechanism, Pr[i] ~ exp(scores[i]/scale).

    Sensitivity: largest change of any score between neighbours, D, given by the caller;
    scores may move either way.
    Distribution: report-noisy-max with Gumbel noise, which is the exponential mechanism.
    Cost: epsilon = 2 D/scale, and rho = epsilon^2/8, ``accounting.events.ExponentialEvent``.
    """
    return int(_gumbel_max(scale)(scores))


# Noise for large arrays


def pays_in_bulk(kind: Kind, scale: float, cells: int) -> bool:
    """True if a table for this positive scale is small, and used by enough cells to save time."""
    reach = _reach(kind, scale, _BITS)
    return cells >= _MIN_CELLS and reach <= MAX_REACH and reach <= 16 * cells


def add_in_bulk(kind: Kind, scale: float, values: Counts) -> Counts:
    """Add independent discrete noise to each value, saturating at the ends of int64 as OpenDP does.

    Sensitivity: given by the caller, as for ``add_gaussian`` and ``add_laplace``.
    Distribution: P(x) ~ exp(-x^2/(2 scale^2)) ("gaussian") or exp(-|x|/scale) ("laplace"), on the integers.
    Cost: rho = D2^2/(2 scale^2), or epsilon = D1/scale.

    Proof, by inversion of the cumulative distribution. Let T_k = P(|X| <= k), and U uniform on [0, 1), its
    bits drawn one after another. The k with T_{k-1} <= U < T_k has the law of |X|. One 64-bit word gives a
    fair sign (its last bit; on zero it changes nothing) and the first 63 bits of U, the integer w: 2^63 U
    lies in [w, w+1).

    1. ``_cumulative`` encloses each T_k by integer arithmetic alone. The table holds integers F_k with
       F_k <= 2^63 T_k < F_k + 2.
    2. So w < F_k proves U < T_k, and w >= F_k + 2 proves U >= T_k. With F_{k-1} + 2 <= w < F_k for some k,
       whatever bits follow, the draw is k.
    3. Any other w (two of 2^63 for each threshold, and the few beyond the table) is extended by 64 more
       bits of U, against enclosures that much narrower, until the same two comparisons prove one k. The
       answer is that of the whole U, therefore exact; a word is left open with probability below 1e-12.

    Step 2 is one look into a guide, an array on the first bits of w that holds k where a whole bucket of
    words has the same one, and binary search for the words of other buckets.

    Args:
        kind: "gaussian" or "laplace".
        scale: sigma or b, positive; its table must have at most ``MAX_REACH`` thresholds.
        values: int64, any shape.

    Returns:
        int64, the shape of ``values``.

    Raises:
        ValueError: the scale is zero, negative, infinite, not a number, or too large.
    """
    if not (scale > 0 and _reach(kind, scale, _BITS) <= MAX_REACH):
        raise ValueError("a bulk noise scale must be positive, and within its table's limit")
    table = _table(kind, float(scale))
    exact = values.astype(np.int64, order="C", casting="safe", copy=False).ravel()
    noisy = np.empty_like(exact)
    for start in range(0, len(exact), _CELLS_A_CHUNK):
        part = exact[start : start + _CELLS_A_CHUNK]
        noisy[start : start + len(part)] = _saturating_sum(part, _draw(table, len(part), _system_words))
    return noisy.reshape(values.shape)


def _system_words(number: int) -> NDArray[np.uint64]:
    return np.frombuffer(os.urandom(8 * number), dtype=np.uint64)


def _saturating_sum(a: Counts, b: Counts) -> Counts:
    total = a + b
    wrapped = np.flatnonzero(((a ^ total) & (b ^ total)) < 0)
    if len(wrapped):
        ends = np.iinfo(np.int64)
        total[wrapped] = np.where(b[wrapped] < 0, ends.min, ends.max)
    return total


@dataclass(frozen=True, eq=False)
class _Table:
    """Thresholds of one distribution.

    Attributes:
        floors: int64[k], F_k with F_k <= 2^63 P(|X| <= k) < F_k + 2.
        guide: int32[2^g], |X| for the words that begin with these g bits; -1 where that is open.
        shift: 63 - g.
    """

    kind: Kind
    scale: float
    floors: Counts
    guide: NDArray[np.int32]
    shift: int


def _draw(table: _Table, cells: int, words: Words) -> Counts:
    """Independent draws int64[cells]: one word a cell, then more for each word left open."""
    raw = words(cells)
    first = (raw >> np.uint64(1)).view(np.int64)
    size = table.guide[first >> table.shift].astype(np.int64)
    mixed = np.flatnonzero(size < 0)
    if len(mixed):
        word = first[mixed]
        found = np.searchsorted(table.floors, word, side="right")
        size[mixed] = found
        below = table.floors[np.maximum(found - 1, 0)]
        tied = (found > 0) & (word - below < 2)
        for i in np.flatnonzero(tied | (found == len(table.floors))).tolist():
            size[mixed[i]] = _extend(table, int(word[i]), words)
    negative = (raw & np.uint64(1)).view(np.int64)
    signed: Counts = (size ^ -negative) + negative
    return signed


def _extend(table: _Table, word: int, words: Words) -> int:
    """|X| for a U that begins with this word, from as many further words as that takes."""
    bits = _BITS
    while True:
        bits += 64
        word = word << 64 | int(words(1)[0])
        known = _cumulative(table.kind, table.scale, bits)
        # Both comparisons of the proof's step 2, cleared of denominators.
        k = bisect_left(known.sums, -(-(word + 1) * known.total_upper >> bits))
        if k == len(known.sums):
            continue
        if k == 0 or known.sums[k - 1] + known.error << bits <= word * known.total_lower:
            return k


@lru_cache(maxsize=4)
def _table(kind: Kind, scale: float) -> _Table:
    known = _cumulative(kind, scale, _BITS)
    lower, upper = known.total_lower, known.total_upper
    # (s + error)/lower - s/upper <= (upper - lower + error)/lower for every sum s.
    if upper - lower + known.error << _BITS > lower:
        raise ArithmeticError("thresholds are not known to within one part in 2^63")
    floors = np.fromiter(((s << _BITS) // upper for s in known.sums), np.int64, len(known.sums))
    guide, shift = _guide(floors)
    return _Table(kind, scale, floors, guide, shift)


def _guide(floors: Counts) -> tuple[NDArray[np.int32], int]:
    """Number of floors below each bucket of words; -1 if open: near a floor or beyond the table."""
    size = min(max(len(floors).bit_length() + 5, 8), 20)
    shift = _BITS - size
    guide = np.searchsorted(floors >> shift, np.arange(2**size)).astype(np.int32)
    guide[guide == len(floors)] = -1
    for within in (0, 1):
        guide[np.minimum(floors, 2**_BITS - 1 - within) + within >> shift] = -1
    return guide, shift


@dataclass(frozen=True, eq=False)
class _Cumulative:
    """Weights w(0) + 2 w(1) + ... + 2 w(k), where w(0) = 1, in fixed point.

    Attributes:
        sums: for each k a lower bound; with ``error`` added, an upper bound.
        total_lower: lower bound of the sum over all k.
        total_upper: upper bound of it.
    """

    sums: list[int]
    error: int
    total_lower: int
    total_upper: int


def _reach(kind: Kind, scale: float, bits: int) -> float:
    """Approximate start of the tail below 2^-(bits+6). No proof uses it; the tail is bounded separately."""
    tail = log(2) * (bits + 6)
    return scale * (sqrt(2 * tail) if kind == "gaussian" else tail) + 2


def _cumulative(kind: Kind, scale: float, bits: int) -> _Cumulative:
    """Enclosures of the thresholds, narrower than 2^-bits.

    w(x+1) = w(x) r(x) and r(x+1) = r(x) q; r(0) = exp(-1/(2 sigma^2)) and q = exp(-1/sigma^2), or
    r(0) = exp(-1/b) and q = 1. Every product is rounded down. Of factors at most 1 that are short by
    a and b units, it is short by at most a + b + 1; so r(x) by (x+1)(e+1) where e is the larger error of
    r(0) and q, w(x) by x(x+1)(e+1), and a sum of n weights, doubled, by 2n times that. Beyond the
    last weight w(n), the r(x) don't grow: the rest is at most w(n) r(n)/(1 - r(n)).
    """
    precision = bits + _GUARD
    one = 1 << precision
    n = ceil(_reach(kind, scale, bits))
    exact = Fraction(scale)
    ratios: Iterable[int]
    if kind == "gaussian":
        r, r_upper = _exp_minus(1 / (2 * exact**2), precision)
        q, q_upper = _exp_minus(1 / exact**2, precision)
        ratios = accumulate(repeat(q), lambda a, b: a * b >> precision, initial=r)
        short = max(r_upper - r, q_upper - q) + 1
    else:
        r, r_upper = _exp_minus(1 / exact, precision)
        ratios = repeat(r)
        short = r_upper - r + 1

    sums, total, weight, ratio = [one], one, one, r
    for ratio in islice(ratios, n):
        weight = weight * ratio >> precision
        total += 2 * weight
        sums.append(total)
    # The last ratio used is r(n-1), no smaller than r(n).
    weight_upper, ratio_upper = weight + n * (n + 1) * short, ratio + (n + 1) * short
    if ratio_upper >= one:
        raise ArithmeticError("the tail can't be bounded at this precision")
    rest = -(-weight_upper * ratio_upper // (one - ratio_upper))
    error = 2 * n * n * (n + 1) * short
    return _Cumulative(sums, error, total, total + error + 2 * rest)


def _exp_minus(exponent: Fraction, precision: int) -> tuple[int, int]:
    """Integers with lower <= 2^precision exp(-exponent) <= upper, a few units apart; exponent > 0.

    The series of exp(y) at y = exponent/2^h < 2^-7, whose terms from any one on add up to less than its
    double; then its inverse, squared h times. Lower bounds are rounded down, upper bounds up.
    """
    if exponent >= precision:
        return 0, 1
    halvings = 8 + max(0, exponent.numerator.bit_length() - exponent.denominator.bit_length())
    work = precision + halvings + 16
    one = 1 << work
    y = (exponent.numerator << work) // (exponent.denominator << halvings)
    lower, term_lower, upper, term_upper, i = one, one, one, one, 0
    while term_upper > 1:
        i += 1
        term_lower = term_lower * y // (i << work)
        term_upper = -(-term_upper * (y + 1) // (i << work))
        lower, upper = lower + term_lower, upper + term_upper
    # The terms that were left out sum to less than the last term.
    lower, upper = one * one // (upper + term_upper), -(-one * one // lower)
    for _ in range(halvings):
        lower, upper = lower * lower >> work, -(-upper * upper >> work)
    return lower >> work - precision, -(-upper >> work - precision)


# Partition selection

BITS = 128
"""A probability is a whole number of 2^-128."""
_ONE = 1 << BITS
_LARGEST_EPSILON = 64
"""Largest epsilon0 that is used; beyond it nearly every value of two units is selected anyway."""


def select(units: NDArray[np.int64], event: SelectionEvent) -> NDArray[np.bool_]:
    """Mask of the values that are selected, each independently.

    Sensitivity: given by the caller in ``event.partitions``, the most values whose number of units
    changes, each by one.
    Distribution: a value of n units is selected with probability p(n), see below; one of none never.
    Cost: ``accounting.events.SelectionEvent``.

    The probabilities are those of Desfontaines, Voss and Gipson (2022), theorem 1, rounded to the safe side.
    With p(0) = 0, p(n + 1) is the largest probability that keeps the outcomes for one value, of n and of n +
    1 units, within (epsilon0, delta0) of each other, in both directions, selected or not:

        p(n + 1) <= e^epsilon0 p(n) + delta0,    1 - p(n) <= e^epsilon0 (1 - p(n + 1)) + delta0,

    and at most 1. A rational number just below replaces e^epsilon0, and delta0, p(n + 1) and the numbers
    subtracted from 1 are rounded so that both hold for the multiples of 2^-128 themselves. The other two
    inequalities hold as p rises.

    Args:
        units: int64[values], the number of units of each, at least 0.
    """
    levels, which = np.unique(units, return_inverse=True)
    chances = list(chances_at(levels.tolist(), event))
    found = (secrets.randbits(BITS) < chances[level] for level in which.tolist())
    return np.fromiter(found, np.bool_, len(units))


def chances_at(levels: list[int], event: SelectionEvent) -> Iterator[int]:
    """The probability of selection at each of some rising numbers of units, in units of 2^-128."""
    growth = _exponential_below(min(Fraction(event.epsilon0), Fraction(_LARGEST_EPSILON)))
    delta = min(int(Fraction(event.delta0) * _ONE), _ONE)
    n, chance, settled = 0, 0, False
    for level in levels:
        while n < level and not settled:
            n, before = n + 1, chance
            chance = _next(chance, growth, delta)
            settled = chance == before
        yield chance


def _next(chance: int, growth: int, delta: int) -> int:
    left = _ONE - chance - delta
    if left <= 0:
        return _ONE
    return min((growth * chance >> BITS) + delta, _ONE + (-left << BITS) // growth)


def _exponential_below(x: Fraction) -> int:
    """A whole number of 2^-128 at most e^x and hardly below it, for x from 0: the exponential series.

    All terms are positive and each is rounded down, so their sum is below that of the series.
    """
    total, term, k = _ONE, _ONE, 0
    while term:
        k += 1
        term = term * x.numerator // (x.denominator * k)
        total += term
    return total
