"""Valid configurations, and a way to load a changed one from a file."""

import textwrap

import pytest

from dpsynth.columns.kinds import layout_of
from dpsynth.config import load

SMALL = """\
source: {path: data/table.csv}
privacy: {epsilon: 1.0, delta: 1.0e-9}
columns:
  age: {type: integer, min: 0, max: 110}
  sex: {type: category, values: [F, M]}
  income: {type: number, min: 0, max: 1000}
  member: {type: boolean}
"""

FOUND = """\
source: {path: table.csv}
privacy: {epsilon: 1, delta: 1.0e-9}
columns:
  city: {type: category, open: true, values: [Oslo]}
  job: {type: category, open: true}
  cost: {type: number, bounds: private, edges: tree}
  age: {type: integer, min: 0, max: 110, edges: quantiles, bins: 20}
  post: {type: text, pattern: '[0-9]{5}', levels: [1, 3, 5]}
  sex: {type: category, values: [F, M]}
"""
"""Columns of which something is to be found."""


@pytest.fixture
def load_text(tmp_path):
    """Load a text as the file small.yaml."""

    def loaded(text, **options):
        path = tmp_path / "small.yaml"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return load(path, **options)

    return loaded


@pytest.fixture
def load_with(load_text):
    """Load the small configuration with lines added, or with one text replaced by another."""

    def loaded(added="", replace=None, **options):
        text = SMALL
        if replace is not None:
            assert replace[0] in text
            text = text.replace(*replace)
        return load_text(text + added, **options)

    return loaded


@pytest.fixture
def load_column(load_text):
    """The column ``x`` of a configuration that declares it so, in the cells that it declares."""

    def loaded(declared):
        text = f"source: {{path: t.csv}}\nprivacy: {{epsilon: 1}}\ncolumns:\n  x: {declared}\n"
        return layout_of(load_text(text).columns).columns[0]

    return loaded
