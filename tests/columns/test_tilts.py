"""Tilts move numbers within their bins by group, and leave all else as it is."""

import numpy as np
import pyarrow as pa
import pytest

from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.column import Column
from dpsynth.columns.joint_density import Tilt, tilted
from dpsynth.columns.numeric import NumericCodec

SITE = Column("site", CategoryCodec(("A", "B")), missing=False)
ROWS = 5000


def drawn(codec: NumericCodec) -> tuple[dict[str, Column], dict[str, np.ndarray], dict[str, pa.Array]]:
    """Columns, codes and values of rows, some of them missing."""
    column, rng = Column("cost", codec), np.random.default_rng(8)
    codes = {"site": rng.integers(0, 2, ROWS), "cost": rng.integers(0, column.size, ROWS)}
    values = {"site": SITE.decode(codes["site"], rng), "cost": column.decode(codes["cost"], rng)}
    return {"site": SITE, "cost": column}, codes, values


CODECS = [
    NumericCodec((-20.0, -5.0, 0.0, 1.0, 30.0), 0, integer=True),
    NumericCodec((0.0, 0.5, 10.0, 99.5), 2, integer=False),
]


@pytest.mark.parametrize("codec", CODECS, ids=["integers", "decimals"])
def test_numbers_stay_in_their_bins_move_by_group_and_missing_ones_stay_missing(codec):
    columns, codes, values = drawn(codec)
    tilt = Tilt("cost", ("site",), np.array([0.4, 2.5]))
    found = tilted([tilt], columns, codes, values, np.random.default_rng(1))["cost"]
    assert found.type == values["cost"].type and found.is_null().equals(values["cost"].is_null())
    read = columns["cost"].encode(columns["cost"].codec.text(found))
    present = np.asarray(found.is_valid())
    assert (read[present] == codes["cost"][present]).all()
    moved = found.to_pandas() - values["cost"].to_pandas()
    assert moved[codes["site"] == 0].min() >= 0 and moved[codes["site"] == 0].mean() > 0
    assert moved[codes["site"] == 1].max() <= 0 and moved[codes["site"] == 1].mean() < 0


def test_a_power_of_one_and_a_bin_of_one_value_leave_numbers_as_they_are():
    columns, codes, values = drawn(CODECS[0])
    rest = np.random.default_rng(1)
    assert tilted([Tilt("cost", (), np.array(1.0))], columns, codes, values, rest)["cost"].equals(
        values["cost"]
    )
    single = codes["cost"] == 2
    found = tilted([Tilt("cost", (), np.array(3.0))], columns, codes, values, rest)["cost"].to_pandas()
    assert (found[single] == 0).all()
