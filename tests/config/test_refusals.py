"""What can't be run is refused in one paragraph with file, line, key and what to write instead."""

from pathlib import Path

import pytest

from dpsynth.config import from_mapping
from dpsynth.errors import ConfigError
from tests.config.conftest import FOUND, SMALL

EPSILON = "epsilon: 1.0, delta: 1.0e-9"
BASES = {
    "small": SMALL,
    "found": FOUND,
    "column": """\
source: {path: t.csv}
privacy: {epsilon: 1}
columns:
  age: {type: integer, min: 0, max: 9}
  sex: {type: category, values: [F, M]}
  x: DECLARED
""",
    "local": """\
trust: local
privacy: {epsilon: 1.0}
columns:
  age: {type: integer, min: 0, max: 110}
  sex: {type: category, values: [F, M]}
""",
}


def refusals():
    """The cases of refusals.txt: a text, the line of what is wrong with it, and what is said."""
    _, *sections = Path(__file__).with_name("refusals.txt").read_text().split("\n[")
    for section in sections:
        head, *cases = section.splitlines()
        base, _, old = head.partition("]")
        before, found, after = BASES[base].partition(old.strip() or "the end")
        assert found or not old, head
        for case in filter(None, cases):
            written, _, said = case.partition("=> ")
            changed = before + written.rstrip().replace("\\n", "\n")
            yield pytest.param(changed + after, changed.count("\n") + 1, said, id=f"{base}: {written}")


def message_of(load, *args, **kwargs):
    with pytest.raises(ConfigError) as caught:
        load(*args, **kwargs)
    message = str(caught.value)
    assert caught.value.exit_code == 2
    assert "\n" not in message
    return message


@pytest.mark.parametrize(("text", "line", "said"), list(refusals()))
def test_a_config_is_refused_in_these_words(load_text, text, line, said):
    message = message_of(load_text, text)
    place, _, told = message[message.index("small.yaml") :].partition(": ")
    before, left_out, after = said.partition("…")
    if left_out:
        told = told[: len(before)] + "…" + told[len(told) - len(after) :]
    assert (place, told) == (f"small.yaml, line {line}", said)


MONTHLY = "period: {column: visited, every: month}\n"


@pytest.mark.parametrize("composition", ["sequential", "parallel"])
def test_a_period_without_add_remove_is_refused_with_the_reason(load_with, composition):
    period = f"period: {{column: visited, every: month, composition: {composition}}}\n"
    for unit in ("row", "{column: id, max_rows: 2}"):
        privacy = f"{EPSILON}, neighbours: replace_one, unit: {unit}"
        message = message_of(load_with, period, replace=(EPSILON, privacy))
        assert (
            "small.yaml, line 2: privacy.neighbours must be add_remove with a period: how many rows"
            in message
        )
        load_with(period, replace=(EPSILON, privacy.replace("replace_one", "add_remove")))


def test_a_period_by_the_column_of_persons_is_refused(load_with):
    privacy = f"{EPSILON}, unit: {{column: visited, max_rows: 2}}"
    message = message_of(load_with, MONTHLY, replace=(EPSILON, privacy))
    assert "line 8: period.column must be another column than privacy.unit.column" in message


def test_a_schedule_for_values_that_are_named_one_by_one_is_refused(load_with):
    schedule = "schedule: {cron: 0 3 1 * *, timezone: UTC}\n"
    message = message_of(load_with, "period: {column: site, every: value}\n" + schedule)
    assert "line 9: schedule has no use with period.every: value" in message
    load_with(MONTHLY + schedule)


def test_a_cron_that_starts_with_a_star_asks_for_quotes(load_with):
    message = message_of(load_with, "schedule:\n  cron: */5 * * * *\n  timezone: UTC\n")
    assert "line 9" in message and "Put a value that starts with '*' or '&' in quotes" in message
    load_with("schedule:\n  cron: '*/5 * * * *'\n  timezone: UTC\n")


@pytest.mark.parametrize(
    ("structure", "split", "words"),
    [
        (
            "independent",
            "one_way: 0.5, structure: 0.5",
            "split.structure must be 0 with structure.method ind",
        ),
        (
            "independent",
            "one_way: 0.5, marginals: 0.5",
            "split.marginals must be 0 with structure.method ind",
        ),
        (
            "{method: fixed, cliques: [[age, sex]]}",
            "one_way: 0.3, structure: 0.1, marginals: 0.6",
            "split.structure must be 0 with structure.method fixed, which measures the cliques that",
        ),
        ("{method: fixed, cliques: [[age, sex]]}", "one_way: 1", "split.marginals must be above 0 with"),
    ],
)
def test_a_share_for_a_step_that_a_method_does_not_have_is_refused(load_with, structure, split, words):
    privacy = f"{EPSILON}, split: {{{split}}}"
    assert words in message_of(load_with, f"structure: {structure}\n", replace=(EPSILON, privacy))


def test_shares_of_the_steps_that_a_method_has_are_accepted(load_with):
    for structure, split in [
        ("independent", "one_way: 0.9"),
        ("{method: fixed, cliques: [[age, sex]]}", "one_way: 0.3, marginals: 0.7"),
        ("one_shot", "one_way: 0.3, structure: 0.1, marginals: 0.6"),
    ]:
        load_with(f"structure: {structure}\n", replace=(EPSILON, f"{EPSILON}, split: {{{split}}}"))


def test_several_problems_are_told_in_the_order_of_the_file(load_with):
    message = message_of(
        load_with, "sample: {rows: none}\nstructure: {method: tree}\n", replace=(EPSILON, "epsilon: -1")
    )
    assert "small.yaml has 3 problems. Line 2: privacy.epsilon" in message
    assert (
        message.index("Line 2")
        < message.index("Line 8: sample.rows")
        < message.index("Line 9: structure.method")
    )


def test_many_problems_are_cut_short(load_text):
    columns = "".join(f"  c{i}: {{type: integer, min: 0}}\n" for i in range(9))
    message = message_of(load_text, "source: {path: a.csv}\nprivacy: {epsilon: 1}\ncolumns:\n" + columns)
    assert "has 9 problems" in message
    assert message.endswith("And 5 more.")
    assert len(message) < 1000


def test_tables_of_too_many_cells_are_refused_where_they_are_asked_for_and_only_there(load_text):
    columns = "".join(f"  {name}: {{type: number, min: 0, max: 1, bins: 5000}}\n" for name in "ab")
    wide = f"source: {{path: a.csv}}\nprivacy: {{epsilon: 1}}\ncolumns:\n{columns}"
    for method in ("independent", "mst", "auto"):
        load_text(wide + f"structure: {method}\n")
    assert "publish.statistics[0] has 25,010,001 cells" in message_of(
        load_text, wide + "structure: independent\npublish: {statistics: [{crosstab: [a, b]}]}\n"
    )
    assert "structure.cliques[0] has 25,010,001 cells; at most 10,000,000 are allowed" in message_of(
        load_text, wide + "structure: {method: fixed, cliques: [[a, b]]}\n"
    )


def test_a_source_given_on_the_command_line_is_checked_too(load_with):
    message = message_of(load_with, source="other.xls")
    assert "other.xls" in message
    assert ".csv, .tsv, .parquet or .xlsx" in message


def test_without_a_file_messages_still_name_the_key():
    message = message_of(
        from_mapping, {"source": {"path": "a.csv"}, "privacy": {"epsilon": -1}, "columns": {}}
    )
    assert message.startswith("configuration: privacy.epsilon must be")
