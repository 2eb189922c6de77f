"""Whatever stands in a configuration, loading ends in a Spec or in one plain ConfigError."""

from decimal import Decimal
from itertools import product
from random import Random

import pytest

from dpsynth.config import compiled, from_mapping
from dpsynth.errors import ConfigError
from tests.examples import cases

WEIRD = [None, True, -1, 0, 10**18, Decimal("NaN"), Decimal("-Infinity"), Decimal("1e-290"), Decimal("0.5"),
         "", "x", "é\u202e", [], [[]], [None], [1, 2], ["a", "b"],
         {}, {"a": 1}, {"type": "integer"}]  # fmt: skip

WHOLE = {
    "release": "r",
    "source": {"path": "a.csv", "format": "csv", "separator": ";"},
    "privacy": {
        "epsilon": 1, "delta": Decimal("1e-9"), "noise": "gaussian", "neighbours": "add_remove",
        "unit": {"column": "id", "max_rows": 2}, "accountant": "zcdp",
        "split": {"domain": 0, "one_way": Decimal("0.2"), "structure": 0, "marginals": 0.5},
    },
    "ledger": {
        "url": "sqlite:///l.db", "dataset": "d", "cap": {"epsilon": 10, "delta": 0}, "filter": "gdp",
        "head": "/mnt/l.head",
    },
    "columns": {
        "i": {"type": "integer", "min": 0, "max": 9, "bins": 3, "missing": False, "default": 4},
        "n": {"type": "number", "min": 0, "max": 9, "bins": [0, 3, 9], "decimals": 1, "missing": ["?", -9]},
        "b": {"type": "boolean", "values": ["n", "y"], "missing": False, "default": True},
        "c": {"type": "category", "values": ["a", "b"], "other": "c", "open": False, "missing": True},
    },
    "structure": {
        "method": "fixed", "cliques": [["i", "b"], ["n", "b", "c"]], "max_model_mb": 80, "max_seconds": 30,
        "merge_rare": 3,
        "workload": {
            "ways": 2, "marginals": [{"columns": ["i", "n"], "weight": 2}], "weights": {"i": Decimal("0.5")},
            "targets": ["b"], "target_weight": 5,
        },
    },
    "sample": {"rows": 5, "seed": 1},
    "publish": {"formats": ["csv"], "statistics": [{"crosstab": ["i", "b"]}, {"mean": "n", "by": "c"}]},
    "period": {"column": "visited", "every": "month", "composition": "parallel"},
    "schedule": {"cron": "0 3 1 * *", "timezone": "Europe/Paris"},
    "reuse": {"same_period": True, "earlier_periods": True},
    "public_table": {"path": "public.parquet", "format": "parquet"},
    "public_marginals": [
        {"columns": ["b"], "counts": {"n": 3, "y": 4}},
        {"columns": ["c"], "shares": {"a": 1, "b": 2, "c": 3}},
    ],
}  # fmt: skip

TYPES = {
    "source": {"path": "a.csv"},
    "privacy": {"epsilon": 1},
    "columns": {
        "i": {"type": "integer", "min": 0, "max": 9},
        "c": {"type": "category", "values": ["a", "b"]},
        "o": {"type": "ordered", "values": [1, 2], "missing": {"distinct": ["x"], "markers": ["y"]}},
        "d": {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "unit": "week", "format": "%d.%m.%Y"},
        "dt": {"type": "datetime", "min": "2020-01-01", "max": "2020-02-01T12:00", "missing": False,
               "default": "2020-01-05"},
        "t": {"type": "time", "unit": "hour", "format": "%H:%M"},
        "du": {"type": "duration", "min": 0, "max": "90", "unit": "hour", "format": "minutes"},
        "x": {"type": "text", "pattern": "[0-9]{5}", "prefixes": ["75", 69], "other": "z"},
        "k": {"type": "text", "pattern": r"\d{3}", "keep": 1, "missing": False, "default": "123"},
        "id": {"type": "identifier", "surrogates": "P01"},
        "s": {"type": "derived", "formula": "i + 1", "decimals": 1,
              "format": {"width": 2, "decimal": ",", "prefix": "$", "suffix": "%"}, "missing": "."},
        "m": {"type": "derived", "formula": "c", "map": {"a": 1, "b": 2}, "other": 3},
    },
}  # fmt: skip


SOUGHT = {
    "source": {"path": "a.csv", "separator": ";"},
    "privacy": {
        "epsilon": 1, "delta": Decimal("1e-9"),
        "unit": {"column": "id", "max_rows": "private", "at_most": 9, "missing": "together"},
        "split": {"domain": Decimal("0.2"), "one_way": Decimal("0.2"), "structure": Decimal("0.1"),
                  "marginals": 0.5},
    },
    "columns": {
        "i": {"type": "integer", "bounds": "private", "edges": "tree", "bins": 8, "within": "uniform"},
        "n": {"type": "number", "min": 0, "max": 9, "edges": "quantiles", "bins": 4, "decimals": 1},
        "m": {"type": "number", "min": 0, "max": 100_000, "edges": "log", "decimals": 2},
        "t": {"type": "number", "min": 0, "max": 200_000, "edges": "log", "decimals": 2},
        "c": {"type": "category", "open": True, "values": ["a"], "most": 5, "other": "o"},
        "k": {"type": "category", "values": ["x", "y"]},
        "l": {"type": "category", "values": [1, 2]},
        "x": {"type": "text", "pattern": "[0-9]{5}", "levels": [1, 3], "most": 200},
        "d": {"type": "date", "min": "2020-01-01", "max": "2020-12-31"},
        "e": {"type": "date", "min": "2020-01-01", "max": "2020-12-31"},
    },
    "constraints": [
        "i < 3 implies k == 'x'", "d <= e or e is missing", "t == m + n", "k <-> l", "x determines k",
    ],
}  # fmt: skip


def paths(node, path=()):
    yield path
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield from paths(value, (*path, key))


def replaced(node, path, value):
    if not path:
        return value
    copy = dict(node) if isinstance(node, dict) else list(node)
    copy[path[0]] = replaced(node[path[0]], path[1:], value)
    return copy


@pytest.mark.parametrize(
    ("whole", "fewest"), [(WHOLE, 1200), (TYPES, 700), (SOUGHT, 700)], ids=["sections", "types", "sought"]
)
def test_any_value_in_any_place_is_either_accepted_or_a_config_error(whole, fewest):
    from_mapping(whole)
    refusals = 0
    every = list(product(paths(whole), WEIRD))
    some = Random(1).sample(every, cases(len(every), part=12))
    for path, value in some:
        changed = replaced(whole, path, value)
        if not isinstance(changed, dict):
            continue
        try:
            spec = from_mapping(changed)
        except ConfigError as error:
            assert "is not what is expected here" not in str(error), (path, value)
            refusals += 1
        else:
            assert len(compiled(spec).fingerprint) == len(compiled(spec).whole_fingerprint) == 64
    assert refusals > 0.9 * fewest * len(some) / len(every)
