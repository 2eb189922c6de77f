from dataclasses import dataclass

import numpy as np
import pytest

from dpsynth.bundle import compute_statistics
from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.column import Column, domain_of
from dpsynth.columns.measurement import Measurement
from dpsynth.columns.numeric import NumericCodec
from dpsynth.errors import ConfigError
from dpsynth.model import LeastSquares
from dpsynth.statistics.sources import Sources
from tests.bundle.requests import crosstab, mean_of

AGE = Column("age", NumericCodec((0.0, 10.0, 20.0), 0, integer=True), missing=True)
SEX = Column("sex", CategoryCodec(("F", "M")), missing=False)


@dataclass(frozen=True)
class AgeBySex:
    """A model of two columns; ``counts`` of shape (age codes, sex codes)."""

    counts: np.ndarray

    @property
    def total(self) -> float:
        return float(self.counts.sum())

    def marginal(self, clique: tuple[str, ...]) -> np.ndarray:
        if clique == ("age",):
            return self.counts.sum(axis=1)
        if clique == ("sex",):
            return self.counts.sum(axis=0)
        return self.counts if clique == ("age", "sex") else self.counts.T


MODEL = AgeBySex(np.array([[10.0, 0.0], [30.0, 0.0], [60.0, 0.1]]))
LOWER = AgeBySex(np.array([[7.0, 0.0], [30.0, 0.0], [60.0, 0.1]]))
HIGHER = AgeBySex(np.array([[14.0, 0.0], [30.0, 0.0], [60.0, 0.1]]))
REFITS = (LOWER, HIGHER)


class Unasked:
    """Answers that cover nothing, so that every table is the model's."""

    def covers(self, clique: tuple[str, ...]) -> bool:
        return False


def tables(*requests, replicates=REFITS):
    return compute_statistics(requests, Sources((AGE, SEX), Unasked(), MODEL, replicates))


def test_every_column_has_a_one_way_table_and_requests_follow_in_order():
    made = tables(mean_of("age", "sex"), crosstab(("sex", "age")), crosstab(("age", "sex")))
    assert [t.name for t in made] == [
        "one_way-age", "one_way-sex", "mean-age-by-sex", "crosstab-sex-age", "crosstab-age-sex",
    ]  # fmt: skip
    assert [t.title for t in made] == ["age", "sex", "age by sex", "sex and age", "age and sex"]


def test_standard_error_is_the_root_mean_square_distance_of_refits_from_the_model():
    table = tables()[0].table
    assert table["age"].to_pylist() == ["0 to 9", "10 to 20", "(missing)"]
    assert table["estimate"].to_pylist() == [10.0, 30.0, 60.1]
    expected = np.sqrt((3.0**2 + 4.0**2) / 2)
    # Where all refits agree, an error is one row.
    assert table["standard_error"].to_pylist() == pytest.approx([expected, 1.0, 1.0])
    assert table["low"][0].as_py() == pytest.approx(10 - 1.96 * expected)
    assert table["high"][0].as_py() == pytest.approx(10 + 1.96 * expected)


def test_share_is_of_all_rows_and_its_error_of_each_refits_own_total():
    table = tables()[0].table
    share = 10 / 100.1
    assert table["share"][0].as_py() == pytest.approx(share)
    error = np.sqrt(((7 / 97.1 - share) ** 2 + (14 / 104.1 - share) ** 2) / 2)
    assert table["share_standard_error"][0].as_py() == pytest.approx(error)


def test_intervals_of_counts_never_fall_below_zero():
    far = AgeBySex(MODEL.counts + np.array([[90.0, 0.0], [0.0, 0.0], [0.0, 0.0]]))
    assert tables(replicates=[far])[0].table["low"][0].as_py() == 0.0


def test_crosstab_cells_stand_in_the_order_of_their_labels():
    table = tables(crosstab(("sex", "age")))[2].table
    assert table.column_names[:2] == ["sex", "age"]
    assert table["sex"].to_pylist() == ["F", "F", "F", "M", "M", "M"]
    assert table["estimate"].to_pylist() == [10.0, 30.0, 60.0, 0.0, 0.0, 0.1]


def test_mean_leaves_missing_out_and_is_null_for_a_group_of_nobody():
    table = tables(mean_of("age", "sex"))[2].table
    assert table["sex"].to_pylist() == ["F", "M"]
    assert table["estimate"].to_pylist() == [(10 * 4.5 + 30 * 15.0) / 40, None]
    assert table["rows"].to_pylist() == [40.0, 0.0]
    assert table["grouping_error"].to_pylist() == [(10 * 4.5 + 30 * 5.0) / 40, None]
    # To first order, a row of the first bin moves the mean by its distance from it, by 40 rows.
    error = abs(4.5 - table["estimate"][0].as_py()) / 40 * np.sqrt((3.0**2 + 4.0**2) / 2)
    assert table["standard_error"][0].as_py() == pytest.approx(error)
    for name in ("standard_error", "low", "high"):
        assert table[name][1].as_py() is None


def test_mean_of_all_rows_has_one_row_and_no_label():
    made = tables(mean_of("age"))[2]
    assert made.name == "mean-age" and made.label_names == () and made.table.num_rows == 1


def test_interval_of_a_mean_stays_within_the_columns_bounds():
    far = AgeBySex(np.array([[40.0, 0.0], [0.0, 0.0], [60.0, 0.1]]))
    table = tables(mean_of("age"), replicates=[far])[2].table
    assert table["low"][0].as_py() == 0.0 and table["high"][0].as_py() == 20.0


def test_without_refits_errors_are_null_not_zero():
    table = tables(mean_of("age"), replicates=())[0].table
    assert table["standard_error"].null_count == table["low"].null_count == 3


def test_a_table_is_measured_if_the_answers_cover_its_columns_and_says_so_in_every_row():
    values = np.array([[10, -3], [30, 0], [60, 5]])
    pair = LeastSquares(domain_of((AGE, SEX)), [Measurement(("age", "sex"), values, "gaussian", 2.0)])
    singles = LeastSquares(domain_of((AGE, SEX)), [
        Measurement(("age",), values.sum(axis=1), "gaussian", 2.0),
        Measurement(("sex",), values.sum(axis=0), "gaussian", 2.0),
    ])  # fmt: skip
    requests = (crosstab(("sex", "age")), mean_of("age", "sex"), mean_of("age"))
    for direct, expected in ((pair, [True] * 5), (singles, [True, True, False, False, True])):
        made = compute_statistics(requests, Sources((AGE, SEX), direct, MODEL, REFITS))
        assert [t.measured for t in made] == expected
        basis = [set(t.table["basis"].to_pylist()) for t in made]
        assert basis == [{"measured" if measured else "model"} for measured in expected]


@pytest.mark.parametrize(
    "request_", [mean_of("sex"), mean_of("height"), crosstab(("age", "height")), crosstab(())]
)
def test_a_statistic_that_cannot_be_made_is_refused(request_):
    with pytest.raises(ConfigError):
        tables(request_)


def test_a_column_named_like_a_figure_keeps_its_labels_apart():
    columns = (
        Column("estimate", SEX.codec, missing=False),
        Column("column estimate", SEX.codec, missing=False),
    )

    class Even:
        total = 4.0

        def marginal(self, clique):
            return np.full((2,) * len(clique), 4.0 / 2 ** len(clique))

    table = compute_statistics(
        [crosstab(("estimate", "column estimate"))], Sources(columns, Unasked(), Even())
    )[2]
    assert len(set(table.table.column_names)) == table.table.num_columns
    assert table.label_names == ("column column estimate", "column estimate")


def test_names_are_safe_for_files_and_differ_in_more_than_case():
    names = ["a/b", "A b", "../..", "🐌", "<script>", "x" * 500, "x" * 501, "con", "é", "e"]
    columns = [Column(name, SEX.codec, missing=False) for name in names]

    class Even:
        total = 2.0

        def marginal(self, clique):
            return np.ones(2)

    made = [t.name for t in compute_statistics([], Sources(columns, Unasked(), Even()))]
    assert len({name.casefold() for name in made}) == len(names)
    assert all(
        set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") for name in made
    )
    assert max(map(len, made)) < 100
