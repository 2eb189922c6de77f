"""What private bins cost on real columns, beside bins of one width between the true ends."""

import os
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth.plan.spending import planned_searches
from dpsynth.strategy.discovery import codec_of, discover, equal_widths
from dpsynth.testing import FakeDoor
from dpsynth.wings.owner.starter.examples import write_example
from tests.strategy.discovery.real_columns import distance
from tests.strategy.discovery.searched import number_search, sought
from tests.thinned import some

DATA = Path(os.environ.get("DPSYNTH_DATA", "/nonexistent"))
PRICE = Fraction(1, 5000)  # of a column of rows; each count has some 100 rows of noise


def distances(values, decimals, edges="tree"):
    """Of private bins, and of as many of one width between the true ends, to the column."""
    unit = 10**decimals
    search = number_search(edges, 32, decimals=decimals)
    column = sought(search)
    plan = planned_searches([column], PRICE, Fraction(0))
    found = [
        discover(FakeDoor.of_column(values, np.random.default_rng(seed)), [column], plan)["x"]
        for seed in range(5)
    ]
    ends = int(np.floor(values.min())) * unit, int(np.ceil(values.max())) * unit
    declared = codec_of(search, equal_widths(*ends, 32))
    return np.mean([distance(values, codec) for codec in found]), distance(values, declared)


@pytest.mark.skipif(not DATA.is_dir(), reason="DPSYNTH_DATA names no folder of real tables")
@pytest.mark.parametrize(
    "name", some(["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"], 2)
)
def test_a_private_tree_tells_adult_better_than_bins_of_one_width(name):
    values = pd.read_csv(DATA / "adult.csv", usecols=[name])[name].to_numpy(float)
    private, declared = distances(values, 0)
    assert private < max(declared, 0.02)


@pytest.mark.skipif(find_spec("statsmodels") is None, reason="the package statsmodels isn't installed")
@pytest.mark.parametrize("name", some(["income", "outpdol", "drugdol", "meddol", "inpdol", "mdvis"], 2))
def test_a_private_tree_tells_spending_far_better_than_bins_of_one_width(tmp_path, name):
    write_example("randhie", tmp_path)
    values = pd.read_csv(tmp_path / "data" / "randhie.csv", usecols=[name])[name].dropna().to_numpy(float)
    private, declared = distances(values, 0 if name == "mdvis" else 2)
    assert private < max(declared / 2, 0.05)
