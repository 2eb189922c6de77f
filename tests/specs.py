"""A configuration of some columns, for tests that open no table."""

from collections.abc import Mapping, Sequence

from dpsynth.config import Spec, from_mapping


def spec_of(columns: Mapping[str, object], rules: Sequence[object] = (), **sections: object) -> Spec:
    """The configuration of columns and rules, with other sections by name; left out, epsilon is 1."""
    rest = {"constraints": list(rules), **sections} if rules else sections
    return from_mapping({"source": {"path": "t.csv"}, "privacy": {"epsilon": 1}, "columns": columns, **rest})
