"""Bulk noise is exact: every threshold is where it should be, and every tie is decided (hazard 12)."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from dpsynth.curator import samplers
from tests.guarantee.exact_noise import KINDS, SCALES, cumulative, decided
from tests.thinned import some, thinned


def misplaced(table: samplers._Table, digits: int = 60) -> int:
    """How many floors F_k are not within (2^63 T_k - 2, 2^63 T_k]."""
    exact = cumulative(table.kind, table.scale, digits)
    exact = exact + [Decimal(1)] * (len(table.floors) - len(exact))
    wrong = 0
    with localcontext() as context:
        context.prec = 100
        for floor, true in zip(table.floors.tolist(), exact, strict=False):
            wrong += not floor <= true * 2**63 < floor + 2
    return wrong


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", some([1e-300, 0.05, 0.3, 1.0, 7.5, 50.1, 100.0], 3))
def test_every_threshold_agrees_with_sixty_decimal_digits(kind: str, scale: float) -> None:
    assert misplaced(samplers._table(kind, scale)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_threshold_of_a_large_table_agrees_too(kind: str) -> None:
    assert misplaced(samplers._table(kind, 1e4), digits=30) == 0


def moved(table: samplers._Table, k: int) -> samplers._Table:
    """The same table with threshold k off by 2^-20 of the cell that ends there."""
    floors = table.floors.copy()
    floors[k] += int(floors[k] - floors[k - 1]) >> 20
    return replace(table, floors=floors)


@pytest.mark.parametrize("kind", KINDS)
def test_a_threshold_moved_by_a_millionth_of_its_cell_would_be_seen(kind: str) -> None:
    assert misplaced(moved(samplers._table(kind, 7.5), 12)) == 1


@pytest.mark.parametrize(("bits", "kind", "scale"), thinned([63, 127, 191], KINDS, [0.3, 7.5, 100.0]))
def test_enclosures_hold_the_truth_at_every_precision(kind: str, scale: float, bits: int) -> None:
    known = samplers._cumulative(kind, scale, bits)
    for lower, true in zip(known.sums, cumulative(kind, scale), strict=False):
        exact = Fraction(true)
        # Decimals stop at 110 digits, further than any enclosure here.
        assert Fraction(lower, known.total_upper) <= exact <= Fraction(lower + known.error, known.total_lower)
    assert Fraction(known.total_upper - known.total_lower + known.error, known.total_lower) < Fraction(
        1, 2**bits
    )


@pytest.mark.parametrize("exponent", ["1e-30", "1/7", "1", "19/10", "50", "88.5", "1000"])
def test_exponentials_are_enclosed_within_few_units(exponent: str) -> None:
    exact = Fraction(exponent)
    lower, upper = samplers._exp_minus(exact, 150)
    with localcontext() as context:
        context.prec = 120
        true = (-Decimal(exact.numerator) / exact.denominator).exp() * 2**150
    assert lower <= true <= upper <= lower + 4


# Ties: the word source is scripted, which only this module's private function allows.


def scripted(words: Iterable[int]) -> samplers.Words:
    rest = iter(words)
    return lambda number: np.array([next(rest) for _ in range(number)], dtype=np.uint64)


def near_ties(kind: str, scale: float) -> list[tuple[int, list[int]]]:
    """Words of 63 bits at, just below and just above each threshold, with words that decide them."""
    top = 2**64 - 1
    scripts = []
    for true in cumulative(kind, scale):
        with localcontext() as context:
            context.prec = 200
            whole = int(true * 2**191)
        first, second, third = whole >> 128, whole >> 64 & top, whole & top
        if 1 - true < Decimal(2) ** -120:
            break
        if 0 < third < top:
            scripts += [(first, [second, third + by]) for by in (-1, 1)]
        for word in range(max(first - 1, 0), min(first + 3, 2**63)):
            scripts += [
                (word, [more, 1]) for more in (0, second - 1, second + 1, top - 1) if 0 <= more <= top
            ]
    return scripts


def disagreements(table: samplers._Table) -> int:
    """Scripted draws that are not what exact arithmetic makes of the same bits, both signs."""
    wrong = 0
    for n, (word, more) in enumerate(near_ties(table.kind, table.scale)):
        sign = n % 2
        # What the first words decide, no further word changes.
        drawn = samplers._draw(table, 1, scripted([word << 1 | sign, *more, 2**63, 2**63]))
        wrong += int(drawn[0]) != (-1) ** sign * decided(table.kind, table.scale, [word, *more])
    return wrong


TIED = [("gaussian", 0.3), ("gaussian", 1.0), ("gaussian", 7.5), ("laplace", 0.3), ("laplace", 1.0)]


@pytest.mark.parametrize(("kind", "scale"), some(TIED, 2))
def test_ties_are_decided_by_the_next_words_as_exact_arithmetic_decides(kind: str, scale: float) -> None:
    assert len(near_ties(kind, scale)) > 30
    assert disagreements(samplers._table(kind, scale)) == 0


@pytest.mark.parametrize(("kind", "scale"), some(TIED, 2))
def test_floors_one_unit_low_as_the_proof_allows_decide_alike(kind: str, scale: float) -> None:
    table = samplers._table(kind, scale)
    assert disagreements(replace(table, floors=table.floors - 1, guide=np.full_like(table.guide, -1))) == 0


@pytest.mark.parametrize(("kind", "scale"), some(TIED, 2))
def test_a_table_cut_short_decides_alike(kind: str, scale: float) -> None:
    table = samplers._table(kind, scale)
    assert disagreements(replace(table, floors=table.floors[:3], guide=np.full_like(table.guide, -1))) == 0


@pytest.mark.parametrize(("kind", "scale"), some(TIED, 2))
def test_enclosures_as_wide_as_a_word_only_ask_for_more_words(monkeypatch, kind: str, scale: float) -> None:
    table, sound = samplers._table(kind, scale), samplers._cumulative

    def wide(kind, scale, bits):
        known = sound(kind, scale, bits)
        off = known.total_upper >> bits - 4
        return replace(known, sums=[s - off for s in known.sums], error=known.error + 2 * off)

    monkeypatch.setattr(samplers, "_cumulative", wide)
    assert disagreements(table) == 0


def test_a_word_beyond_the_known_sums_asks_for_more(monkeypatch) -> None:
    table, sound = samplers._table("gaussian", 7.5), samplers._cumulative

    def short(kind, scale, bits):
        known = sound(kind, scale, bits)
        return replace(known, sums=known.sums[:2]) if bits == 127 else known

    monkeypatch.setattr(samplers, "_cumulative", short)
    word = (int(table.floors[4]) + int(table.floors[5])) // 2
    assert samplers._extend(table, word, scripted([2**63, 2**63])) == 5


@pytest.mark.parametrize(("more", "refused"), [(-1, False), (1, True)])
def test_a_table_that_is_not_known_to_within_one_part_is_refused(
    monkeypatch, more: int, refused: bool
) -> None:
    known = samplers._cumulative("gaussian", 7.5, 63)
    most = (known.total_lower >> 63) - (known.total_upper - known.total_lower)
    monkeypatch.setattr(samplers, "_cumulative", lambda *_: replace(known, error=most + more))
    make = samplers._table.__wrapped__
    if not refused:
        assert len(make("gaussian", 7.5).floors) == len(known.sums)
        return
    with pytest.raises(ArithmeticError, match="not known"):
        make("gaussian", 7.5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tail_that_may_not_fall_is_refused(monkeypatch, kind: str) -> None:
    monkeypatch.setattr(samplers, "_exp_minus", lambda exponent, precision: (0, 1 << precision))
    with pytest.raises(ArithmeticError, match="tail"):
        samplers._cumulative(kind, 7.5, 63)


@pytest.mark.parametrize("loose", [0, 1])
def test_the_error_covers_that_of_either_factor(monkeypatch, loose: int) -> None:
    """A factor is known worse than it is: sums then fall short by more, and their error says so."""
    true, sound, calls = samplers._cumulative("gaussian", 7.5, 63), samplers._exp_minus, []

    def wide(exponent, precision):
        calls.append(exponent)
        lower, upper = sound(exponent, precision)
        return lower - (1 << 50) * (len(calls) == 1 + loose), upper

    monkeypatch.setattr(samplers, "_exp_minus", wide)
    found = samplers._cumulative("gaussian", 7.5, 63)
    assert max(a - b for a, b in zip(true.sums, found.sums, strict=True)) > 1 << 50
    assert all(a <= b + found.error for a, b in zip(true.sums, found.sums, strict=True))
    assert true.total_lower <= found.total_upper


@pytest.mark.parametrize("lower", [0, 1])
def test_ties_settled_without_further_words_would_be_seen(monkeypatch, lower: int) -> None:
    def unsound(table, word, words):
        return bisect_right(table.floors.tolist(), word) - lower

    monkeypatch.setattr(samplers, "_extend", unsound)
    assert disagreements(samplers._table("gaussian", 7.5)) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_word_of_all_reaches_beyond_the_table(kind: str) -> None:
    table = samplers._table(kind, 7.5)
    words = [2**64 - 1, 2**64 - 1, 2**64 - 2**40]
    (drawn,) = samplers._draw(table, 1, scripted(words))
    assert -drawn == decided(kind, 7.5, [2**63 - 1, *words[1:]])
    assert -drawn > len(table.floors)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
def test_the_guide_says_what_a_search_of_the_thresholds_says(kind: str, scale: float) -> None:
    table = samplers._table(kind, scale)
    buckets = np.flatnonzero(table.guide >= 0)
    first = buckets.astype(np.int64) << table.shift
    for word in (first, first + (1 << table.shift) - 1):
        found = np.searchsorted(table.floors, word, side="right")
        assert np.array_equal(found, table.guide[buckets])
        assert found.max() < len(table.floors)
        assert (word - table.floors[np.maximum(found, 1) - 1] >= 2)[found > 0].all()


def test_a_bucket_that_a_tie_reaches_into_has_no_guide() -> None:
    edge = 2**55
    guide, shift = samplers._guide(np.array([edge - 1, 5 * edge, 9 * edge + 7]))
    assert shift == 55
    assert guide[:10].tolist() == [-1, -1, 1, 1, 1, -1, 2, 2, 2, -1]
    assert (guide[10:] == -1).all()
