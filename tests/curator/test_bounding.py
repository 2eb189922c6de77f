"""No person has more than k rows, which ones is chance, and nobody's rows depend on another's."""

import secrets
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.column import Column
from dpsynth.curator import load_rows, loaded_rows, units
from dpsynth.curator.units import numbered, person_codes, rows_kept, rows_of_persons
from tests.examples import examples

KEY = bytes(range(32))
VARIANTS = [
    ("7", " 7", "007", "7.0", "\uff17", "+7", "7e0", "\t7\n", "7.", "70e-1"),
    ("Ann", "ann", "ANN", " Ann ", "\uff21\uff4e\uff4e", "ann\u00a0"),
    ("-3", "-3.0", "-03", " -3"),
    ("0", "00", "0.0", "-0", "-0.0"),
    ("2.5", "2.50", "02.5", "25e-1"),
    ("Straße", "STRASSE", "strasse"),
    ("\ufb01n", "fin", "FIN"),
    ("é", "e\u0301", "É"),
    (
        None,
        "",
        " ",
        "\t\n",
        "\u3000",
        "\u200b",
        "\0",
        "nan",
        "NaN",
        "NA",
        "n/a",
        "<NA>",
        "NaT",
        "None",
        "NULL",
        "''",
    ),
    ("9", "\u200b9", "9\u200b", "\ufeff9", "9\0", "'9", '="009"', "\u0669", "9\u00ad", "\u202a9\u202c"),
    ("Ann Lee", "Ann  Lee", "Ann\u00a0Lee", "Ann\tLee", "ann\u2003lee"),
    ("A-1", "a\u20101", "a\u20131", "a\u22121", "a\u00ad-1"),
    ("O'Neil", "o\u2019neil", "O\u2018NEIL"),
    ("\u0131x", "Ix", "ix"),
    ("12345678901234567890", "+12345678901234567890", "0012345678901234567890", "12345678901234567890.0"),
]


def codes_of(ids):
    return person_codes(pa.array(ids, pa.string()), KEY)


def kept_rows(ids, max_rows, key=KEY):
    """Which row numbers are kept, by id."""
    kept = rows_kept(person_codes(pa.array(ids, pa.string()), key), max_rows, key)
    return {i: [n for n in np.flatnonzero(kept).tolist() if ids[n] == i] for i in set(ids)}


@pytest.mark.parametrize("variants", VARIANTS, ids=[str(v[0]) for v in VARIANTS])
def test_variants_of_an_id_are_one_person(variants):
    assert len(set(codes_of(variants).tolist())) == 1


def test_different_ids_are_different_people():
    firsts = [v[0] for v in VARIANTS]
    others = [
        "77",
        "8",
        "-7",
        "0.7",
        "7a",
        "7 0",
        "12345678901234567891",
        "12345678901234567889",
        "1-23",
        "12-3",
        "1,23",
        "12,3",
        "inf",
    ]
    assert len(set(codes_of(firsts + others).tolist())) == len(firsts + others)


def test_whole_numbers_beyond_the_range_of_doubles_digits_stay_apart():
    ids = [str(2**53 + i) for i in range(50)]
    assert len(set(codes_of(ids).tolist())) == 50


IDS = st.one_of(
    st.sampled_from([v for group in VARIANTS for v in group]),
    st.text(max_size=3),
    st.integers(-3, 3).map(str),
    st.floats().map(str),
    st.none(),
)


@given(st.lists(IDS, max_size=60), st.integers(1, 5))
@example(["a", "b", "a", "a", "c", "a"], 2)
@examples(200)
def test_at_most_k_rows_of_each_person_are_kept_and_all_where_there_are_no_more(ids, max_rows):
    persons = codes_of(ids)
    kept = rows_kept(persons, max_rows, KEY)
    before, after = Counter(persons.tolist()), Counter(persons[kept].tolist())
    assert after == {person: min(rows, max_rows) for person, rows in before.items()}


@given(st.lists(st.integers(0, 5), max_size=40), st.integers(0, 40), st.integers(1, 8), st.integers(1, 4))
@examples(200)
def test_adding_removing_or_changing_a_person_leaves_everybody_elses_rows_as_they_were(
    others, place, times, max_rows
):
    alone = [str(i) for i in others]
    joined = [*alone[:place], *["newcomer"] * times, *alone[place:]]
    scattered = list(alone)
    for n in range(times):
        scattered.insert((place + 3 * n) % (len(scattered) + 1), "another")
    without = rows_kept(codes_of(alone), max_rows, KEY)
    for ids, guest in ((joined, "newcomer"), (scattered, "another")):
        kept = rows_kept(codes_of(ids), max_rows, KEY)
        rest = np.array([i != guest for i in ids], dtype=bool)
        assert kept[rest].tolist() == without.tolist()


def test_a_person_of_a_hundred_thousand_rows_is_cut_to_k_and_the_rest_stays():
    ids = ["crowd"] * 100_000
    ids[::1000] = [f"p{i}" for i in range(100)]
    kept = rows_kept(codes_of(ids), 3, KEY)
    assert kept.sum() == 103 and kept[::1000].all()


def test_ids_made_to_collide_with_the_priorities_of_others_change_nothing():
    ids = ["a"] * 6 + [f"{c}:{n}" for c in codes_of(["a"]).tolist() for n in range(6)]
    kept = rows_kept(codes_of(ids), 2, KEY)
    assert kept[:6].sum() == 2 and kept[6:].all()
    assert kept[:6].tolist() == rows_kept(codes_of(ids[:6]), 2, KEY).tolist()


def test_every_set_of_k_rows_is_as_likely_as_any_other_over_keys():
    seen = Counter()
    persons = codes_of(["x"] * 5)
    runs = 3000
    for n in range(runs):
        kept = rows_kept(persons, 2, n.to_bytes(8, "big"))
        seen[tuple(np.flatnonzero(kept).tolist())] += 1
    assert len(seen) == 10
    statistic = sum((count - runs / 10) ** 2 / (runs / 10) for count in seen.values())
    assert statistic < 32.0  # the 99.98 % point of chi-square with 9 degrees of freedom


@pytest.mark.slow
def test_rows_of_a_million_are_kept_evenly_over_the_positions_of_their_persons(monkeypatch):
    """Persons of 9 rows in no order, in parts of a few persons; chi-square of 8 degrees of freedom."""
    monkeypatch.setattr(units, "ROWS_AT_ONCE", 1 << 16)
    persons = np.random.default_rng(3).permutation(np.repeat(np.arange(111_111), 9))
    coded = person_codes(pa.array(persons), KEY)
    kept = rows_kept(coded, 5, KEY)
    places = np.argsort(coded, kind="stable").reshape(-1, 9)
    assert (kept[places].sum(axis=1) == 5).all()
    seen, expected = kept[places].sum(axis=0), 111_111 * 5 / 9
    # Five of nine are kept, so positions are negatively related.
    statistic = ((seen - expected) ** 2 / expected).sum() * 8 / (9 - 5)
    assert statistic < 42.7  # the point of chi-square that one in a million goes beyond


def test_the_choice_depends_on_the_key_and_on_nothing_else():
    ids = ["x"] * 50
    assert kept_rows(ids, 5) == kept_rows(ids, 5)
    other = secrets.token_bytes(32)
    assert kept_rows(ids, 25, other) != kept_rows(ids, 25)


def test_where_the_rows_stand_changes_no_choice_among_one_persons_rows():
    ranks = kept_rows(["x"] * 9, 4)["x"]
    scattered = [f"y{n // 2}" if n % 2 else "x" for n in range(18)]
    assert [n // 2 for n in kept_rows(scattered, 4)["x"]] == ranks


def test_no_rows_at_all_are_bounded_too():
    assert rows_kept(codes_of([]), 3, KEY).shape == (0,)


def test_codes_are_the_same_across_batches_and_differ_between_keys():
    assert codes_of(["a", "b"]).tolist() == [*codes_of(["a"]).tolist(), *codes_of([" B "]).tolist()]
    assert person_codes(pa.array(["a"]), b"one").tolist() != person_codes(pa.array(["a"]), b"two").tolist()


@pytest.mark.parametrize("at_once", [17, 64])
def test_persons_are_bounded_and_counted_alike_however_many_are_held_at_once(monkeypatch, at_once):
    rng = np.random.default_rng(at_once)
    persons = codes_of([f"p{n}" for n in rng.integers(0, 40, 300)] + [str(n) for n in rng.integers(0, 9, 50)])
    expected = rows_kept(persons, 3, KEY)
    monkeypatch.setattr(units, "ROWS_AT_ONCE", at_once)
    assert rows_kept(persons, 3, KEY).tolist() == expected.tolist()
    assert sorted(rows_of_persons(persons)) == sorted(Counter(persons.tolist()).values())
    numbers = numbered(persons)
    assert len(set(zip(persons.tolist(), numbers.tolist(), strict=True))) == numbers.max() + 1
    assert numbers.max() + 1 == len(set(persons.tolist()))


def test_every_row_of_a_person_is_as_likely_to_be_kept_as_any_other(monkeypatch):
    monkeypatch.setattr(units, "ROWS_AT_ONCE", 20_000)
    people, rows, most = 20_000, 6, 2
    order = np.random.default_rng(3).permutation(np.repeat(np.arange(people), rows))
    kept = rows_kept(person_codes(pa.array(order), KEY), most, KEY)
    assert kept.sum() == people * most
    # Each row's rank among its person's rows, and how often that rank is kept.
    by_person = np.argsort(order, kind="stable").reshape(people, rows)
    seen = kept[by_person].sum(axis=0)
    expected = people * most / rows
    # Two of six without replacement: variances are smaller than the multinomial's by 1 - 1/5.
    assert ((seen - expected) ** 2 / expected / (1 - 1 / (rows - 1))).sum() < 60
    pairs = Counter(tuple(np.flatnonzero(row)) for row in kept[by_person])
    assert len(pairs) == 15
    assert sum((n - people / 15) ** 2 / (people / 15) for n in pairs.values()) < 70


def test_whole_numbers_are_one_person_however_they_are_typed_and_spelt():
    typed = [
        pa.array([7]),
        pa.array([7.0]),
        pa.array(["007"]),
        pa.array(["7"]),
        pa.array([" +7.0 "]),
        pa.array(["7e0"]),
    ]
    assert len({person_codes(cells, KEY)[0] for cells in typed}) == 1
    others = ["-7", "70", "7.5", "1000000000000000007", "10000000000000000000007", "x7"]
    assert len({*person_codes(pa.array(others), KEY).tolist(), person_codes(typed[0], KEY)[0]}) == 7


def rows_of(persons):
    column = Column("value", CategoryCodec(("0", "1")), missing=False)
    batch = {"who": pa.array(persons), "value": pa.array(["1"] * len(persons))}
    return load_rows([batch], (column,), Neighbours("add_remove", "who", 2), KEY)


def test_a_table_with_a_person_of_too_many_rows_is_never_made(monkeypatch):
    """A second look, should the bounding itself be wrong: one person of three rows beside others of one."""
    rows = rows_of(["a", "b", "b", "b", "c"])
    assert rows.bounded(2, KEY).rows == 4
    monkeypatch.setattr(loaded_rows, "rows_kept", lambda persons, *_: np.ones(len(persons), np.bool_))
    with pytest.raises(RuntimeError, match="bounding failed"):
        rows.bounded(2, KEY)
    assert rows.bounded(3, KEY).rows == 5


def test_rows_that_are_units_have_no_number_of_rows_to_be_found():
    column = Column("value", CategoryCodec(("0", "1")), missing=False)
    rows = load_rows([{"value": pa.array(["1"])}], (column,), Neighbours("add_remove"), KEY)
    with pytest.raises(ValueError, match="only a person"):
        rows.rows_of_units((1, 2, 3))
    assert rows_of(["a", "b", "b"]).rows_of_units((1, 2)).tolist() == [1, 1]


def test_one_is_not_nothing_however_it_is_spelt():
    ones, noughts = (person_codes(pa.array(texts), KEY) for texts in (["1", "1.0", "01"], ["0", "0.0", "-0"]))
    assert len(set(ones.tolist())) == len(set(noughts.tolist())) == 1 and ones[0] != noughts[0]


def test_whole_numbers_of_more_digits_than_an_integer_holds_are_people_too():
    texts = ["9500000000000000000.0", "9500000000000000001.0", "999999999999999999.0", "999999999999999999"]
    codes = person_codes(pa.array(texts), KEY).tolist()
    assert len(set(codes)) == 3 and codes[2] == codes[3]
