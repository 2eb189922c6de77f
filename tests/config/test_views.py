"""Views are checked before anything is read: no view can fail once the budget is spent."""

import pytest

from dpsynth.errors import ConfigError

PUBLISH = "publish:\n  statistics: [{crosstab: [age, sex]}]\n"
ANONYMOUS = "publish:\n  k_anonymity: {k: 5, quasi_identifiers: [age, sex]"


def test_too_many_levels_are_refused(load_with):
    widths = ", ".join(str(5 * 2**power) for power in range(80))
    added = (
        "publish:\n  k_anonymity: {k: 2, quasi_identifiers: [age, income], hierarchies: "
        f"{{age: {{widths: [{widths}]}}, income: {{widths: [{widths}]}}}}}}"
    )
    with pytest.raises(ConfigError, match="combinations of levels; at most"):
        load_with(added)


def test_a_base_alone_rounds_to_the_nearest(load_with):
    spec = load_with(PUBLISH + "  rounding: 5\n  suppress_below: 10")
    assert (spec.publish.rounding.base, spec.publish.rounding.method) == (5, "nearest")


def test_groups_may_have_names_or_none(load_with):
    text = ANONYMOUS + ", hierarchies: {sex: {groups: GROUPS}}}"
    listed = load_with(text.replace("GROUPS", "[[F, M]]")).publish.k_anonymity.hierarchies["sex"]
    named = load_with(text.replace("GROUPS", "{all: [F, M]}")).publish.k_anonymity.hierarchies["sex"]
    assert listed.groups == ((None, ("F", "M")),) and named.groups == (("all", ("F", "M")),)
