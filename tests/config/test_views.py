"""Views are checked before anything is read: no view can fail once the budget is spent."""

from __future__ import annotations

import pytest

from dpsynth.errors import ConfigError
from dpsynth.wings.proof.disclosure.keys import MOST_CELLS
from tests.config.test_refusals import message_of

PUBLISH = "publish:\n  statistics: [{crosstab: [age, sex]}]\n"
ANONYMOUS = "publish:\n  k_anonymity: {k: 5, quasi_identifiers: [age, sex]"

REFUSED = [
    ("publish: {suppress_below: 10}", "publish.suppress_below has no use without a table of counts"),
    ("publish: {rounding: 5}", "publish.rounding has no use without a table of counts"),
    (PUBLISH + "  suppress_below: 1", "publish.suppress_below must be a whole number of at least 2"),
    (PUBLISH + "  rounding: {base: 5, method: up}", "publish.rounding.method must be nearest or unbiased"),
    (PUBLISH + "  rounding: 1", "publish.rounding.base must be a whole number of at least 2"),
    (
        "publish:\n  statistics: [{crosstab: [age, sex, income]}]\n  suppress_below: 5",
        f"at most {MOST_CELLS:,} are allowed",
    ),
    (
        "publish: {k_anonymity: {k: 1, quasi_identifiers: [age]}}",
        "publish.k_anonymity.k must be a whole number of at least 2",
    ),
    ("publish: {k_anonymity: {k: 5, quasi_identifiers: [agee]}}", "names 'agee', which is not among columns"),
    (
        ANONYMOUS + ", hierarchies: {income: {widths: [5]}}}",
        "publish.k_anonymity.hierarchies.income is none of quasi_identifiers",
    ),
    (ANONYMOUS + ", hierarchies: {age: {widths: [5, 12]}}}", "must rise, each a multiple of the one before"),
    (
        ANONYMOUS + ", hierarchies: {sex: {widths: [5]}}}",
        "publish.k_anonymity.hierarchies.sex.widths is for columns of numbers",
    ),
    (
        ANONYMOUS + ", hierarchies: {age: {units: [year]}}}",
        "publish.k_anonymity.hierarchies.age.units is for dates and times",
    ),
    (
        ANONYMOUS + ", hierarchies: {age: {prefixes: [1]}}}",
        "publish.k_anonymity.hierarchies.age.prefixes is for columns of texts",
    ),
    (ANONYMOUS + ", hierarchies: {sex: {groups: [[F, N]]}}}", "holds 'N', which is no value of 'sex'"),
    (ANONYMOUS + ", hierarchies: {sex: {groups: [[F, F]]}}}", "holds the value 'F' twice"),
    (ANONYMOUS + ", hierarchies: {sex: {groups: [F, M]}}}", "must hold groups of values"),
    (ANONYMOUS + ", hierarchies: {sex: {groups: [[]]}}}", "must be a group"),
    (
        ANONYMOUS + ", hierarchies: {sex: {groups: [[F]], prefixes: [1]}}}",
        "must have one of the keys groups, widths, units and prefixes",
    ),
    (ANONYMOUS + ", hierarchies: {sex: {prefixes: [1, 2]}}}", "must fall"),
    (
        ANONYMOUS + ", l_diversity: {l: 2, sensitive: [sex]}}",
        "publish.k_anonymity.l_diversity.sensitive[0] names 'sex', a quasi-identifier",
    ),
    (ANONYMOUS + ", suppress_at_most: 2}", "suppress_at_most must be a number of at least 0 and at most 1"),
]


@pytest.mark.parametrize(("added", "words"), REFUSED)
def test_a_view_that_can_not_be_made_is_refused(load_with, added, words):
    assert words in message_of(load_with, added)


def test_too_many_levels_are_refused(load_with):
    widths = ", ".join(str(5 * 2**power) for power in range(80))
    added = (
        "publish:\n  k_anonymity: {k: 2, quasi_identifiers: [age, income], hierarchies: "
        f"{{age: {{widths: [{widths}]}}, income: {{widths: [{widths}]}}}}}}"
    )
    with pytest.raises(ConfigError, match="combinations of levels; at most"):
        load_with(added)


def test_tables_of_values_to_be_found_are_refused(load_with):
    added = "publish:\n  statistics: [{crosstab: [city, sex]}]\n  suppress_below: 5"
    column = ("  member: {type: boolean}", "  member: {type: boolean}\n  city: {type: category, open: true}")
    with pytest.raises(ConfigError, match="those of 'city' are to be found"):
        load_with(added, replace=column)


def test_a_base_alone_rounds_to_the_nearest(load_with):
    spec = load_with(PUBLISH + "  rounding: 5\n  suppress_below: 10")
    assert (spec.publish.rounding.base, spec.publish.rounding.method) == (5, "nearest")


def test_groups_may_have_names_or_none(load_with):
    text = ANONYMOUS + ", hierarchies: {sex: {groups: GROUPS}}}"
    listed = load_with(text.replace("GROUPS", "[[F, M]]")).publish.k_anonymity.hierarchies["sex"]
    named = load_with(text.replace("GROUPS", "{all: [F, M]}")).publish.k_anonymity.hierarchies["sex"]
    assert listed.groups == ((None, ("F", "M")),) and named.groups == (("all", ("F", "M")),)
