"""Whatever the answers are: places that are valid and take every value, within the price, the same again."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.columns.codec import INVALID
from dpsynth.columns.column import NumberSearch, PrefixSearch, ValueSearch
from dpsynth.columns.text import alphabets, texts_of
from dpsynth.plan.spending import planned_searches
from dpsynth.strategy import discovery as searches_module
from dpsynth.strategy.discovery import discover
from dpsynth.testing import FakeDoor
from tests.examples import examples
from tests.strategy.discovery.searched import number_search, sought
from tests.thinned import thinned

ALLOWANCE = Fraction(1, 1000)
LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@st.composite
def number_searches(draw):
    edges = draw(st.sampled_from(["equal", "quantiles", "tree"]))
    integer = draw(st.booleans())
    decimals = 0 if integer else draw(st.integers(0, 9))
    ends = (None, None)
    if edges != "equal" and draw(st.booleans()):
        top = 10**15 if integer else 2**53 // 10**decimals
        low = draw(st.integers(-top, top))
        high = draw(st.integers(low, top))
        ends = (float(low), float(high))
        if not integer and low == high:
            ends = (None, None)
    return number_search(edges, draw(st.integers(1, 200)), ends, decimals, integer)


PATTERNS = [(r"\d{5}", 5), (r"[AB]\d-x[A-Z]{2}", 6), ("xyz", 3), (r"[A-Z]\d{4}", 5)]


@st.composite
def prefix_searches(draw):
    pattern, length = draw(st.sampled_from(PATTERNS))
    levels = draw(st.lists(st.integers(1, length), min_size=1, max_size=3, unique=True))
    levels = tuple(sorted(levels))
    least = texts_of(alphabets(pattern)[: levels[0]])
    if least > 500:
        levels, least = (1, *levels[1:]), texts_of(alphabets(pattern)[:1])
    return PrefixSearch(pattern, tuple(sorted(set(levels))), draw(st.integers(least, least + 500)))


TEXTS = st.lists(st.text(alphabet="abc()<misng>", min_size=1, max_size=4), max_size=12, unique=True)


@st.composite
def value_searches(draw):
    known = tuple(draw(TEXTS)[:4])
    other = draw(st.sampled_from(["other", "a", "(missing)x"]))
    return ValueSearch(
        tuple(k for k in known if k != "(missing)"), len(known) + draw(st.integers(0, 5)), other
    )


SEARCHES = st.one_of(number_searches(), number_searches(), value_searches(), prefix_searches())


def wild_answers(kind, seed):
    rng = np.random.default_rng(seed)
    return {
        "none": lambda n: np.zeros(n, dtype=np.int64),
        "least": lambda n: np.full(n, LEAST),
        "most": lambda n: np.full(n, MOST),
        "extremes": lambda n: rng.choice(np.array([LEAST, -1, 0, 1, MOST]), n),
        "anything": lambda n: rng.integers(LEAST, MOST, n),
        "small": lambda n: rng.integers(-100, 3000, n),
        "last": lambda n: (np.arange(n) == n - 1) * 10**9,
        "first": lambda n: (np.arange(n) == 0) * 10**9,
    }[kind]


KINDS = ["none", "least", "most", "extremes", "anything", "small", "last", "first"]


def ran(search, kind="small", seed=0, named=(), make=FakeDoor.of_column, **more):
    column = sought(search, distinct=("refused",))
    door = make(
        np.zeros(0), np.random.default_rng(seed), wild_answers=wild_answers(kind, seed), named=named, **more
    )
    searches = planned_searches([column], ALLOWANCE, Fraction(1, 10**9))
    found = discover(door, [column], searches)
    assert set(found) == {"x"}
    assert door.spent <= sum(s.price for s in searches) <= ALLOWANCE
    return found["x"], door, column


@examples(200)
@given(SEARCHES, st.sampled_from(KINDS), st.booleans(), TEXTS, st.integers(0, 99))
def test_no_answer_breaks_a_search_and_its_places_take_every_value(search, kind, exact, named, seed):
    codec, _, column = ran(search, kind, seed, named, exact=exact)
    labels = (*codec.labels, *column.labels[len(column.codec.labels) :])
    assert len(set(labels)) == len(labels) > 0
    rng = np.random.default_rng(0)
    codes = np.arange(len(codec.labels))
    back = codec.encode(codec.text(codec.decode(codes, rng)))
    assert back.tolist() == codes.tolist()
    if isinstance(search, NumberSearch):
        texts = ["0", "-1", "1e15", "-1e300", "1e300", "1e400", "0.005", "3", "-0", "99999999999999.5"]
        assert (codec.encode(pa.array(texts)) != INVALID).all()
        assert codec.encode(pa.array(["-1e300", "1e300"])).tolist() == [0, len(codes) - 1]
        assert len(codes) <= search.bins
        if search.low is None:
            assert codec.edges[-1] - codec.edges[0] >= 1
        else:
            assert search.low == codec.edges[0] and search.high <= codec.edges[-1] <= search.high + 0.5
    elif isinstance(search, ValueSearch):
        assert codec.labels[: len(search.known)] == search.known
        assert len(codec.values) <= max(search.most, 1) and codec.other == search.other
        assert (codec.encode(pa.array(["zzz", *search.known])) != INVALID).all()
    else:
        assert len(codec.prefixes) <= search.most
        every = [p for p in codec.prefixes for q in codec.prefixes if p != q and q.startswith(p)]
        assert not every, "one beginning begins another"
        positions = alphabets(search.pattern)
        texts = ["".join(rng.choice(list(letters)) for letters in positions) for _ in range(200)]
        assert (codec.encode(pa.array(texts)) != INVALID).all()


@pytest.mark.parametrize(("edges", "seed"), thinned(["equal", "quantiles", "tree"], range(20), strength=1))
def test_the_same_answers_lead_to_the_same_questions(edges, seed):
    search = number_search(edges)
    (codec, door, _), (again, other, _) = (ran(search, "small", seed) for _ in range(2))
    assert codec == again and door.asked == other.asked


@pytest.mark.parametrize("edges", ["quantiles", "tree"])
def test_a_search_that_asks_at_twice_its_price_is_caught(monkeypatch, edges):
    search = number_search(edges, ends=(0.0, 1e6))
    ran(search)
    name = {"quantiles": "quantile_cuts", "tree": "tree_cuts"}[edges]
    plain = getattr(searches_module, name)
    monkeypatch.setattr(searches_module, name, lambda *args: plain(*args[:-1], 2 * args[-1]))
    with pytest.raises(AssertionError):
        ran(search)


def test_the_searches_of_several_columns_stay_apart():
    columns = [
        sought(number_search("tree")),
        sought(number_search("equal")),
        sought(ValueSearch((), 3, "other")),
    ]
    columns = [type(c)(name, c.codec, search=c.search) for name, c in zip("abc", columns, strict=True)]
    searches = planned_searches(columns, ALLOWANCE, Fraction(1, 10**9))
    door = FakeDoor.of_column(
        np.zeros(0), np.random.default_rng(0), wild_answers=wild_answers("last", 0), named=("u", "v")
    )
    found = discover(door, columns, searches)
    assert set(found) == {"a", "b", "c"} and door.spent <= ALLOWANCE
    assert found["c"].labels == ("u", "v", "other")
