"""A declared column becomes the bins and cells that its declaration says, exactly."""

import numpy as np
import pyarrow as pa
import pytest


def encoded(column, *cells):
    return column.encode(pa.array(cells, pa.string())).tolist()


def values_of(column):
    """All values that each place decodes to in many draws."""
    codes = np.repeat(np.arange(len(column.codec.labels)), 4000)
    drawn = np.array(column.decode(codes, np.random.default_rng(1)).to_pylist()).reshape(-1, 4000)
    return [sorted(set(row)) for row in drawn]


@pytest.mark.parametrize(("low", "high"), [(0, 3), (-2, 2), (1, 1), (17, 90), (0, 127), (10**15 - 2, 10**15)])
def test_one_value_a_bin_up_to_128_values_the_last_one_too(load_column, low, high):
    column = load_column(f"{{type: integer, min: {low}, max: {high}}}")
    whole = list(range(low, high + 1))
    assert column.codec.labels == tuple(map(str, whole))
    assert column.centres.tolist() == whole
    assert not column.codec.half_widths.any()
    assert encoded(column, *map(str, whole)) == list(range(len(whole)))
    assert values_of(column) == [[v] for v in whole]
    assert encoded(column, str(high + 1), str(low - 1)) == [len(whole) - 1, 0]


def test_from_129_values_on_there_are_up_to_32_round_bins_and_the_ends_are_alone(load_column):
    column = load_column("{type: integer, min: 0, max: 128}")
    found = values_of(column)
    assert len(found) == 28
    assert sorted(v for values in found for v in values) == list(range(129))
    assert [len(values) for values in (found[0], found[-1])] == [1, 1]
    assert {len(values) for values in found[2:-2]} == {5}
    for code, values in enumerate(found):
        assert encoded(column, *map(str, values)) == [code] * len(values)


@pytest.mark.parametrize("bins", range(1, 12))
def test_any_number_of_bins_covers_the_whole_numbers_once(load_column, bins):
    column = load_column(f"{{type: integer, min: -3, max: 7, bins: {bins}}}")
    found = values_of(column)
    assert [v for values in found for v in values] == list(range(-3, 8))
    assert max(map(len, found)) - min(map(len, found)) <= 1
    assert [encoded(column, str(v)) for v in range(-3, 8)] == [[c] for c, vs in enumerate(found) for _ in vs]


def test_integer_edges_start_bins_and_the_last_is_inside(load_column):
    column = load_column("{type: integer, bins: [0, 10, 20, 110]}")
    assert column.codec.labels == ("0 to 9", "10 to 19", "20 to 110")
    assert encoded(column, "9", "9.99", "10", "19", "20", "110", "500", "-1") == [0, 0, 1, 1, 2, 2, 2, 0]
    assert column.centres.tolist() == [4.5, 14.5, 65.0]
    assert values_of(column)[2][-1] == 110
    assert load_column("{type: integer, bins: [0, 1, 2], min: 0, max: 2}").codec.labels == ("0", "1 to 2")


def test_fractions_are_cut_off(load_column):
    column = load_column("{type: integer, min: 0, max: 65}")
    assert encoded(column, "42.87748", "0.99", "64.999") == [42, 0, 64]


def test_a_number_has_bins_of_equal_width_and_by_default_ends_of_their_own(load_column):
    column = load_column("{type: number, min: 0, max: 1, bins: 32}")
    assert column.codec.edges == tuple(i / 32 for i in range(33))
    lazy = load_column("{type: number, min: 0, max: 1, decimals: 4}").codec
    assert load_column("{type: number, min: 0, max: 1, decimals: 4, edges: equal}").codec == lazy
    assert lazy.labels[0] == "0.0000" and lazy.labels[-1] == "1.0000" and len(lazy.labels) == 22
    assert np.diff(lazy.edges[2:-2]) == pytest.approx(0.05)


def test_edges_are_the_doubles_nearest_to_the_exact_fractions(load_column):
    assert load_column("{type: number, min: 0, max: 0.3, bins: 3}").codec.edges == (0.0, 0.1, 0.2, 0.3)
    assert load_column("{type: number, min: -0.1, max: 0.2, bins: 3}").codec.edges == (-0.1, 0.0, 0.1, 0.2)


def test_a_zero_of_its_own(load_column):
    column = load_column("{type: number, bins: [0, 0.01, 10, 250], decimals: 2}")
    assert column.codec.labels[0] == "0.00"
    assert encoded(column, "0", "0.0", "0.01", "9.99", "10", "99999", "-5") == [0, 0, 1, 1, 2, 2, 0]
    assert values_of(column)[0] == [0.0]


def test_decimals_of_huge_bounds_stay_exact(load_column):
    column = load_column("{type: number, bins: [0, 1000, 1e12]}")
    assert 1e12 * 10**column.codec.decimals <= 2**53


@pytest.mark.parametrize(
    ("missing", "place", "markers"),
    [
        ("true", True, ()),
        ("'?'", True, ("?",)),
        ("NA", True, ("NA",)),
        ("-9", True, ("-9",)),
        ("['?', NA, -9, '']", True, ("?", "NA", "-9", "")),
        ("[]", True, ()),
        ("false", False, ()),
    ],
)
def test_what_means_missing(load_column, missing, place, markers):
    column = load_column(f"{{type: integer, min: 0, max: 3, missing: {missing}}}")
    assert (column.missing, column.markers) == (place, markers)
    gone = 4 if place else 0
    assert encoded(column, "", None, "junk", *markers) == [gone] * (3 + len(markers))


@pytest.mark.parametrize(
    ("declared", "label"),
    [
        ("{type: integer, min: 5, max: 9, missing: false}", "5"),
        ("{type: integer, min: 5, max: 9, missing: false, default: 9}", "9"),
        ("{type: integer, bins: [0, 5, 9], missing: false, default: 7}", "5 to 9"),
        ("{type: number, min: 0, max: 4, bins: 2, missing: false, default: 2.5}", "[2, 4]"),
        ("{type: category, values: [a, b, c], missing: false}", "a"),
        ("{type: category, values: [a, b, c], missing: false, default: c}", "c"),
        ("{type: category, values: [1, 2], missing: false, default: 2}", "2"),
        ("{type: category, values: [a, b], other: rest, missing: false, default: rest}", "rest"),
        ("{type: boolean, missing: false}", "false"),
        ("{type: boolean, missing: false, default: true}", "true"),
        ("{type: boolean, values: [n, y], missing: false, default: y}", "y"),
        ('{type: boolean, values: ["1", "0"], missing: false, default: 0}', "0"),
    ],
)
def test_unusable_cells_become_the_default(load_column, declared, label):
    column = load_column(declared)
    (code,) = encoded(column, None)
    assert column.labels[code] == label
    assert len(column.labels) == len(column.codec.labels)


def test_categories_keep_their_order_and_kind(load_column):
    texts = load_column("{type: category, values: ['02', NO, '?', 12:30, '>50K']}")
    assert texts.codec.values == ("02", "NO", "?", "12:30", ">50K")
    assert texts.centres is None
    whole = load_column("{type: category, values: [25, 0, -50]}")
    assert whole.centres.tolist() == [25, 0, -50]
    assert encoded(whole, "0", "25.0", "-50", "7") == [1, 0, 2, 3]


def test_other_takes_unknown_texts_but_not_empty_cells(load_column):
    column = load_column("{type: category, values: [a, b], other: rest}")
    assert column.labels == ("a", "b", "rest", "(missing)")
    assert encoded(column, "a", "zzz", "", None) == [0, 2, 3, 3]


@pytest.mark.parametrize("values", ['["0", "1"]', "[0, 1]", "[NO, YES]", "[false, true]", "[Nein, Ja]"])
def test_booleans_read_their_own_texts_and_the_usual_ones(load_column, values):
    column = load_column(f"{{type: boolean, values: {values}}}")
    assert encoded(column, *column.codec.labels, "FALSE", "True", "maybe") == [0, 1, 0, 1, 2]
    assert column.centres.tolist() == [0, 1]
