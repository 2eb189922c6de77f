"""Checks that the rules of a configuration can be kept, each by itself and all together.

Invariant: some row obeys all rules that pass, as far as the columns' values are public.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsynth.columns.layout import Layout
from dpsynth.columns.rules import Checks, RuleRefused, Rules, Unobeyed, rules_of, witness_of
from dpsynth.config.section import nearest, refused

_SECTION = "constraints"


def check_rules(written: Sequence[str], layout: Layout) -> Rules:
    """The rules that are written as texts; refused if no row was found that obeys them.

    Paths in errors start at the top of the configuration.
    """
    try:
        rules = rules_of(written, layout)
    except RuleRefused as error:
        guess = nearest(error.unknown, error.known) if error.unknown else ""
        raise refused(f"{error}{guess}", _SECTION, error.number) from None
    searched = {column.name for column in layout.columns if column.search is not None}
    public = {n for n in range(len(written)) if searched.isdisjoint(rules.columns(n))}
    found = witness_of(Checks(rules.only(public), layout))
    if isinstance(found, Unobeyed):
        raise _unobeyed(found.numbers, rules)
    return rules


def _unobeyed(numbers: tuple[int, ...], rules: Rules) -> Exception:
    advice = "Rows were tried that hold a value in every column, but those of which a rule says 'is missing'"
    if len(numbers) == 1:
        return refused(
            f"is obeyed by no row of the declared values that was found. {advice}", _SECTION, *numbers
        )
    if len(numbers) == 2:
        other, number = numbers
        words = f"and {_SECTION}[{other}], '{rules.written[other]}', leave no row of the declared values"
        return refused(f"{words}: none was found that obeys both. {advice}", _SECTION, number)
    listed = ", ".join(f"'{rules.written[number]}'" for number in numbers)
    words = f"leave no row of the declared values: none was found that obeys {listed} together"
    return refused(f"{words}. {advice}", _SECTION)
