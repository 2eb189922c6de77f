"""The exclusive ors that `plan` says will be found, by the public numbers by which the scan is asked."""

import pytest

from dpsynth.cli.plan_command import errors_in_words
from dpsynth.config import from_mapping
from dpsynth.pipeline.forecast import forecast


def facts_of(tmp_path, rows=20_000, columns=12, epsilon=1.0, delta=1e-9, structure="auto", missing=False):
    return forecast(
        from_mapping(
            {
                "source": {"path": "x.csv"},
                "ledger": {"url": f"sqlite:///{tmp_path}/ledger.db"},
                "privacy": {"epsilon": epsilon, **({"delta": delta} if delta else {"noise": "laplace"})},
                "columns": {f"c{i}": {"type": "boolean", "missing": missing} for i in range(columns)}
                | {"age": {"type": "integer", "min": 0, "max": 9, "missing": False}},
                "structure": structure,
            }
        ),
        rows,
    )


def said(facts):
    return [line for line in errors_in_words(facts) if "exclusive or" in line.lower()]


def test_a_plan_says_which_exclusive_ors_are_found_and_for_what_part_of_the_budget(tmp_path):
    facts = facts_of(tmp_path)
    told = facts["expected_errors"]["exclusive_ors"]
    assert (told["columns_of_two_values"], told["at_most"]) == (12, 5) and 0 < told["share"] < 0.05
    assert said(facts) == [
        "An exclusive or of up to 5 of the 12 columns of two values is found, among those whose pairs show "
        f"little. To look for it takes at most {100 * told['share']:.2g} % of the budget."
    ]


@pytest.mark.parametrize(("epsilon", "most"), [(0.05, 0), (0.15, 3), (0.25, 4), (3.0, 5)])
def test_sets_are_larger_the_larger_epsilon_is_and_too_small_a_one_is_said_to_lose_all(
    tmp_path, epsilon, most
):
    facts = facts_of(tmp_path, epsilon=epsilon)
    assert facts["expected_errors"]["exclusive_ors"]["at_most"] == most
    (line,) = said(facts)
    assert ("would be lost" in line) == (not most)


def test_a_column_with_a_place_for_missing_cells_counts(tmp_path):
    told = facts_of(tmp_path, missing=True)["expected_errors"]["exclusive_ors"]
    assert told["columns_of_two_values"] == 12


@pytest.mark.parametrize(
    "other",
    [{"columns": 3}, {"structure": "mst"}, {"delta": None}, {"rows": None}],
)
def test_nothing_is_said_where_no_scan_could_be_asked(tmp_path, other):
    facts = facts_of(tmp_path, **other)
    assert facts["expected_errors"].get("exclusive_ors") is None
    assert said(facts) == []
