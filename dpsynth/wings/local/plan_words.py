"""``dpsynth plan`` of a collection in the local model, in words.

Invariant: all of it follows from the config, and from a number of respondents that is stated or assumed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from dpsynth.cli.printing import json_text
from dpsynth.config import Spec
from dpsynth.figures import guess_percent, rounded_up
from dpsynth.wings.local.collecting import contract_for
from dpsynth.wings.local.forecast import local_forecast


def print_plan(spec: Spec, respondents: int | None, *, detail: bool, as_json: bool) -> None:
    """Print what a collection would protect, ask and tell.

    Args:
        spec: a config with ``trust: local``.
        respondents: their number, if it is known.
        detail: True for every question too.
        as_json: True for the facts as JSON.
    """
    facts = local_forecast(contract_for(spec), respondents)
    if as_json:
        print(json_text(facts))
        return
    for line in local_plan_in_words(facts, detail=detail):
        print(line)
    print("No data was read." if detail else "No data was read. More with --detail: every question.")


def local_plan_in_words(facts: Mapping[str, Any], *, detail: bool) -> Iterator[str]:
    """The sentences of a forecast."""
    epsilon, number = facts["epsilon_per_respondent"], facts["respondents"]
    yield f"{facts['release']}: reports of {number:,} respondents, who trust nobody (trust: local)"
    yield (
        f"Protected: one respondent's whole record, with ε = {rounded_up(epsilon)}. Somebody who guesses "
        f"which of two records she has is right at most {guess_percent(epsilon, 0.0)} % of the time after "
        "reading her own report, and 50 % by tossing a coin."
    )
    questions = facts["questions"]
    ways = Counter(question["randomiser"] for question in questions)
    by = ", ".join(f"{many} by {name}" for name, many in ways.items())
    one = facts["answers_a_report"] == "one"
    answered = (
        "each respondent answers one of them, drawn at random" if one else "each respondent answers all"
    )
    yield f"Asked: {len(questions):,} question{'s' * (len(questions) != 1)} ({by}); {answered}."
    errors = facts["expected_errors"]
    for kind, of in (("column", 1), ("pair of columns", 2)):
        some = sorted((e for e in errors if len(e["columns"]) == of), key=lambda e: e["share_moved"])
        if some:
            yield _errors(kind, some)
    shuffled = facts["shuffled"]
    if shuffled is not None:
        yield (
            f"Shuffled: ε = {rounded_up(shuffled['epsilon'])} with δ = {shuffled['delta']:g} centrally, for "
            f"all reports together. {shuffled['assumption']}"
        )
    yield "Ledger: an entry without a charge. Each respondent's side keeps count of her own reports."
    if detail:
        yield f"Contract: {facts['contract']}"
        for question in questions:
            yield (
                f"  {' with '.join(question['columns'])}: {question['cells']:,} cells, "
                f"{question['randomiser']}, odds of an answer exactly {question['odds']}"
            )


def _errors(kind: str, errors: list[Mapping[str, Any]]) -> str:
    worst, middle, least = (_percent(errors[i]) for i in (-1, len(errors) // 2, 0))
    if len(errors) == 1:
        return f"Errors: randomising moves {worst} of the respondents between the values of a {kind}."
    return (
        f"Errors: randomising moves {least} to {worst} of the respondents between the values of a {kind} "
        f"(most in {' with '.join(errors[-1]['columns'])}), and {middle} in the median."
    )


def _percent(error: Mapping[str, Any]) -> str:
    return f"{100 * error['share_moved']:.2g} %"
