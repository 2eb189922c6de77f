"""More rows follow the released table's targets, have what is given, and obey constraints, in any pieces."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth.bundle.recipient import open_bundle
from dpsynth.bundle.recipient.more_rows import more_rows, write_rows
from dpsynth.errors import DpsynthError
from dpsynth.model import Wanted
from tests.thinned import some


@pytest.fixture(scope="module")
def bundle(made):
    return open_bundle(made.public)


def frame(bundle, number, given=None, seed=5, chunk=700):
    table = pa.concat_tables(more_rows(bundle, number, given, seed, chunk))
    assert table.num_rows == number
    return table.to_pandas()


def test_rows_have_the_schema_of_the_released_table_and_identifiers_of_their_own(bundle):
    rows = frame(bundle, 2000)
    released = pq.read_table(bundle.folder / "synthetic.parquet")
    assert next(iter(more_rows(bundle, 3, seed=1))).schema.equals(released.schema)
    assert rows["id"].tolist() == [f"P{i:03d}" for i in range(1, 2001)]
    assert rows["double"].tolist() == pytest.approx((rows["age"] * 2.5).tolist())
    assert not (rows["smoker"] & (rows["age"] < 20)).any(), "the constraint holds"


def test_a_seed_repeats_rows_and_none_makes_new_ones(bundle):
    pd.testing.assert_frame_equal(bundle.sample(50, seed=4), bundle.sample(50, seed=4))
    assert not bundle.sample(50).equals(bundle.sample(50))
    assert len(bundle.sample(0)) == 0


def test_no_more_is_drawn_than_a_piece_at_once(bundle):
    sizes = [table.num_rows for table in more_rows(bundle, 1000, None, 1, 300)]
    assert sizes == [300, 300, 300, 100]


def agreeing(tables):
    """The part of rows in which women smoke and men don't."""
    rows = pa.concat_tables(tables).to_pandas()
    return ((rows["sex"] == "F") == rows["smoker"]).mean()


def test_every_piece_is_refined_to_the_targets_of_the_bundle(bundle):
    pair, source = ("sex", "smoker"), bundle.rows
    counts = np.array([[0.0, 300.0], [300.0, 0.0]])
    far = replace(source, wanted=Wanted((pair,), {pair: counts}, {pair: 1.0}, source.wanted.values_of, 600.0))
    left = replace(source, wanted=Wanted((), {}, {}, source.wanted.values_of, 600.0))
    assert agreeing(left.tables(1400, 3)) < 0.75
    # The constraint keeps people below 20 from smoking.
    assert all(agreeing([piece]) > 0.75 for piece in far.tables(1400, 3, piece=700))


GIVEN = {
    "sex=F": lambda r: r["sex"] == "F",
    "age=20 to 29": lambda r: r["age"].between(20, 29),
    "age=33": lambda r: r["age"] == 33,
    "age >= 65 and smoker": lambda r: (r["age"] >= 65) & r["smoker"],
    "smoker=yes": lambda r: r["smoker"],
    "city=(missing)": lambda r: r["city"].isna(),
    "=pay ü=[25, 50)": lambda r: r["=pay ü"].between(25, 49.999),
    "`=pay ü` > age": lambda r: r["=pay ü"] > r["age"],
    "seen >= '2020-11-15'": lambda r: pd.to_datetime(r["seen"]) >= "2020-11-15",
    "double < 100 or city == 'Aa'": lambda r: (r["age"] < 40) | (r["city"] == "Aa"),
}


@pytest.mark.parametrize("given", some(GIVEN, 3))
def test_every_row_has_what_is_given(bundle, given):
    rows = frame(bundle, 400, [given], chunk=250)
    assert GIVEN[given](rows).all()
    assert rows["id"].is_unique
    assert not (rows["smoker"] & (rows["age"] < 20)).any()


def test_several_conditions_and_a_mapping_hold_together(bundle):
    rows = bundle.sample(200, given={"sex": "F", "smoker": "no"}, seed=1)
    assert (rows["sex"] == "F").all() and not rows["smoker"].any()
    rows = bundle.sample(200, given=["sex=M", "age < 40", "city == 'Aa'"], seed=1)
    assert (rows["sex"] == "M").all() and (rows["age"] < 40).all() and (rows["city"] == "Aa").all()


def test_conditional_rows_have_the_models_conditional_shares(bundle):
    rows = frame(bundle, 4000, ["sex=F"], chunk=4000)
    model = bundle.model.marginal(("sex", "age"))[0]
    columns = {c.name: c for c in bundle.rows.layout.columns}
    codes = columns["age"].encode(pa.array(rows["age"].astype(str)))
    shares = np.bincount(codes, minlength=len(model)) / len(rows)
    assert np.abs(shares - model / model.sum()).sum() < 0.25


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("sex=X", "'sex' has no value 'X'; its values are labelled F, M"),
        ("age=old", "'age' has no value 'old'"),
        ("age=NaN", "'age' has no value 'NaN'"),
        ("age=Infinity", "'age' has no value 'Infinity'"),
        ("age=200", "'age' has no value '200'"),
        ("age > 200", "no row with what is given"),
        ("smoker and age < 20", "no row with what is given"),
        ("nobody=3", "'nobody' is no column that the model holds"),
        ("age # 3", "can't be read from"),
        ("age", "comes to a number"),
        ("", "has the end where"),
        ("id == 'P001'", "an identifier"),
        ({"nobody": 1}, "no column that the model holds"),
        ({"sex": None}, "has no value 'None'"),
    ],
)
def test_what_no_row_can_have_is_refused(bundle, given, words):
    with pytest.raises(DpsynthError, match=words):
        list(more_rows(bundle, 10, given, 1))


@pytest.mark.parametrize("number", [-1, 1 << 40])
def test_a_number_of_rows_that_is_none_is_refused(bundle, number):
    with pytest.raises(DpsynthError, match="number of rows must be from 0"):
        bundle.sample(number)


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_a_file_has_the_rows_whole_or_is_not_there(bundle, tmp_path, name):
    path = tmp_path / name
    assert write_rows(more_rows(bundle, 900, "sex=F", 2, 400), bundle.rows.layout, path) == 900
    wanted = pa.concat_tables(more_rows(bundle, 900, "sex=F", 2, 400))
    if name.endswith("parquet"):
        assert pq.read_table(path).equals(wanted)
    else:
        assert path.read_text(encoding="utf-8").count("\n") == 901
        assert path.read_text(encoding="utf-8").startswith("id,age,sex,'=pay ü,city,")
    with pytest.raises(DpsynthError, match="exists already"):
        write_rows(iter(()), bundle.rows.layout, path)

    def failing():
        yield from more_rows(bundle, 10, None, 1)
        raise DpsynthError("stop")

    with pytest.raises(DpsynthError, match="stop"):
        write_rows(failing(), bundle.rows.layout, tmp_path / f"other{name}")
    assert [p.name for p in tmp_path.iterdir()] == [name]
