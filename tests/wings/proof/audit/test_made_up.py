"""Every neighbour of a made-up table differs from it in one unit."""

from collections import Counter
from datetime import UTC, datetime
from itertools import islice

import numpy as np
import pytest

from dpsynth.config import from_mapping
from dpsynth.pipeline.inputs import inputs_of
from dpsynth.pipeline.reservation import occasion_of
from dpsynth.wings.proof.audit.made_up import MadeUpTable, extreme_pair, made_up, neighbours, rarest

MAX_ROWS = 3


def table_of(relation: str, unit: str) -> MadeUpTable:
    person = {"unit": {"column": "who", "max_rows": MAX_ROWS}} if unit == "person" else {}
    spec = from_mapping(
        {
            "source": {"path": "nowhere.csv"},
            "privacy": {"epsilon": 1, "neighbours": relation, **person},
            "columns": {
                "age": {"type": "integer", "min": 0, "max": 99, "bins": 10},
                "sex": {"type": "category", "values": ["F", "M"]},
            },
        }
    )
    return made_up(inputs_of(spec), occasion_of(spec, datetime.now(UTC)), 40, 7)


def units(table: MadeUpTable) -> Counter[object]:
    """The units of a table: rows, or each person's rows together."""
    if table.near.person is None:
        return Counter(table.rows)
    at = table.names.index("who")
    # As the curator names persons: case and blanks don't count.
    persons: dict[str, Counter[object]] = {}
    for row in table.rows:
        name = " ".join(row[at].casefold().split())
        if name:
            persons.setdefault(name, Counter())[tuple(c for i, c in enumerate(row) if i != at)] += 1
    return Counter({(name, frozenset(rows.items())): 1 for name, rows in persons.items()})


@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_a_neighbour_differs_in_one_unit(relation: str, unit: str) -> None:
    base = table_of(relation, unit)
    for table in (base, base.holding(base.rows[:1]), base.holding([])):
        for neighbour in islice(neighbours(table, np.random.default_rng(1)), 60):
            gone, come = units(table) - units(neighbour.table), units(neighbour.table) - units(table)
            changed = (gone.total(), come.total())
            if relation == "replace_one":
                assert max(changed) <= 1, neighbour.change
            else:
                assert sum(changed) <= 1, neighbour.change


@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_the_extreme_pair_differs_in_a_unit_of_as_many_rows_as_count(relation: str, unit: str) -> None:
    present, absent, row = extreme_pair(table_of(relation, unit))
    most = MAX_ROWS if unit == "person" else 1
    come = Counter(present.rows) - Counter(absent.rows)
    assert come == {row: most}
    assert (Counter(absent.rows) - Counter(present.rows)).total() == (
        most if relation == "replace_one" else 0
    )


def test_the_rarest_row_has_the_rarest_cells() -> None:
    table = table_of("add_remove", "row")
    usual, odd = ("1", "F"), ("98", "M")
    assert rarest(table.holding([usual] * 9 + [odd])) == odd
