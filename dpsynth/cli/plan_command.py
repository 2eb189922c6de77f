"""``dpsynth plan``: what a release would protect, cost and tell, before any data is read.

Invariant: plain sentences come first; shares, scales and losses in the field's measures only with --detail.
All of it follows from the config and the ledger.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from dpsynth.cli.accountants_table import print_accountants
from dpsynth.cli.plan_errors import Facts, errors_in_words, sampling_in_words
from dpsynth.cli.printing import json_text
from dpsynth.errors import ConfigError
from dpsynth.wing import Point

if TYPE_CHECKING:
    from dpsynth.config import Spec


class PrintPlan(Protocol):
    """Prints what a collection under trust: local would protect, ask and tell."""

    def __call__(self, spec: Spec, respondents: int | None, *, detail: bool, as_json: bool) -> None:
        """Print it, in words or as JSON."""
        ...


WITHOUT_CURATOR: Point[PrintPlan] = Point("plan without a curator")


def plan(
    config: Annotated[Path, typer.Argument(help="The release's YAML file.")],
    rows: Annotated[
        int | None,
        typer.Option(min=1, help="Rows of the table, public or assumed: errors are told in per cent."),
    ] = None,
    error: Annotated[
        float | None,
        typer.Option(help="With --rows: per cent that noise may move in a column, for the ε that it needs."),
    ] = None,
    detail: Annotated[
        bool, typer.Option("--detail", help="Show shares, mechanisms, noise scales and losses too.")
    ] = False,
    side_by_side: Annotated[
        bool, typer.Option("--accountants", help="Compare all accountants, for this plan.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    source: Annotated[str | None, typer.Option(help="A table to use in place of the config's.")] = None,
) -> None:
    """Say what a release would protect, cost and tell; reads no data."""
    from dpsynth.cli.arrow_start import let_arrow_start_without_pandas
    from dpsynth.config import load
    from dpsynth.pipeline.forecast import SHARE, accountants, forecast

    if error is not None and rows is None:
        raise ConfigError("--error has no use without --rows: it is a share of the rows.")
    if error is not None and not 0 < error < 100:
        raise ConfigError("--error must lie between 0 and 100: a share of the rows in per cent.")
    spec = load(config, source=source)
    if side_by_side and spec.trust == "local":
        raise ConfigError("--accountants has no use with trust: local: a respondent's epsilon counts.")
    if spec.trust == "local":
        if error is not None:
            raise ConfigError("--error has no use with trust: local.")
        without_curator = WITHOUT_CURATOR.filled()
        if without_curator is None:
            raise ConfigError("trust: local needs the wing local, which is not installed here.")
        without_curator(spec, rows, detail=detail, as_json=as_json)
        return
    let_arrow_start_without_pandas()
    facts = forecast(spec, rows, SHARE if error is None else error / 100)
    if side_by_side:
        facts["accountants"] = accountants(spec)
    if as_json:
        print(json_text(facts))
    else:
        describe(facts, detail=detail)


def describe(facts: Facts, *, detail: bool = False) -> None:
    """Print a forecast for people: some fifteen short lines, with all that follows from it on request."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    for line in _in_words(facts):
        console.print(Text(line))
    if detail:
        from dpsynth.cli.plan_detail import print_detail

        print_detail(facts, console)
    if "accountants" in facts:
        print_accountants(facts["accountants"], console)
    for note in facts["notes"]:
        console.print(Text(f"Note: {note}"))
    more = [] if detail else ["--detail: groups of people, rules, pairs, memory, the budget step by step"]
    if facts["expected_errors"]["rows"] is None:
        more.insert(0, "--rows N: errors in per cent of a table of N rows")
    hint = f" More with {'; '.join(more)}." if more else ""
    console.print(f"No data was read.{hint}")


def _in_words(facts: Facts) -> Iterator[str]:
    yield f"{facts['release']}: {facts['columns']} columns of dataset {facts['dataset']}"
    yield f"Protected: {facts['unit']}."
    yield _guarantee(facts)
    yield f"Not protected: {facts['unit_leaves_unprotected']}"
    if facts["sampling"] is not None:
        yield sampling_in_words(facts["sampling"], facts["expected_errors"]["rows"])
    if facts["audiences"]:
        yield from _audiences(facts["audiences"])
    else:
        yield _questions(facts)
        yield from errors_in_words(facts)
    if facts["constraints"]:
        number = len(facts["constraints"])
        yield f"Every synthetic row obeys {'the rule' if number == 1 else f'{number} rules'} of the config."
    yield _ledger(facts["ledger"])
    yield from facts["ledger"]["unit_changed"]
    yield _time(facts)


def _time(facts: Facts) -> str:
    """Time and memory; of so many rows, if their number is known."""
    engine, rough = facts["engine"], facts["rough_forecast"]
    tiers = max(len(facts["audiences"]), 1)
    if engine["rows"] is not None:
        return (
            f"Time and memory: roughly {engine['seconds']:,.0f} s and {engine['megabytes']:,.0f} MB for "
            f"{engine['rows']:,} rows."
        )
    return (
        f"Time and memory: roughly {tiers * rough['seconds']:,.0f} s and {rough['megabytes']:,.0f} MB, and "
        f"for each million rows {_seconds(tiers * rough['seconds_per_million_rows'])} and "
        f"{rough['megabytes_per_million_rows']:,.0f} MB more."
    )


def _seconds(seconds: float) -> str:
    """Some seconds: whole ones, or tenths of a few."""
    return f"{seconds:,.0f} s" if seconds >= 2 else f"{seconds:.1f} s"


def _audiences(tiers: Sequence[Facts]) -> Iterator[str]:
    """The bundles, in the order in which they are asked for: each adds to the answers of those before."""
    for place, tier in enumerate(tiers):
        before = "" if not place else f" It has all answers for {tiers[place - 1]['audience']} as well."
        yield (
            f"For {tier['audience']}: {_promised(tier)}. Whoever reads that bundle"
            f"{' and those before' * bool(place)} is right at most {_guess(tier)} % of the time.{before}"
        )
        yield from (f"  {line}" for line in (_questions(tier), *errors_in_words(tier)))


def _guess(facts: Facts) -> str:
    from dpsynth.figures import guess_percent

    return guess_percent(facts["epsilon"], facts["delta"])


def _promised(facts: Facts) -> str:
    return f"ε = {facts['epsilon']:g}" + (f", δ = {facts['delta']:g}" if facts["delta"] else "")


def _guarantee(facts: Facts) -> str:
    """The guarantee of the whole release, as the success of a guess."""
    unit = facts["unit"].split(":")[0]
    exchanged = facts["neighbours"] == "replace_one"
    question = f"which of two versions of {unit} is" if exchanged else f"if {unit} is"
    return (
        f"{_promised(facts)} ({facts['neighbours']}): whoever guesses {question} in the table is right at "
        f"most {_guess(facts)} % of the time, and 50 % by tossing a coin."
    )


def _questions(facts: Facts) -> str:
    """The questions that are asked of the table."""
    by_step = {step["step"]: step["questions"] for step in facts["steps"]}
    searched = sum(number for step, number in by_step.items() if step.startswith("domain: "))
    asked = []
    if "cutoff" in by_step:
        asked.append("how many rows max_rows cuts off")
    if searched:
        asked.append(f"{searched} search{'es' * (searched != 1)} for what is not declared")
    if "one_way" in by_step:
        asked.append(f"{len(facts['expected_errors']['columns'])} single columns")
    for step, words in (("sums", "table{} of sums"), ("quantiles", "table{} of counts inside bins")):
        if step in by_step:
            asked.append(f"{by_step[step]} {words.format('s' * (by_step[step] != 1))}")
    if "marginals" in by_step:
        number = by_step["marginals"]
        chosen = ", chosen privately" if "structure" in by_step else ""
        tables = f"table{'s' * (number != 1)} of columns together"
        asked.append(f"at most {number} {tables} ({facts['structure']}{chosen})")
    if "exam" in by_step:
        asked.append(f"{by_step['exam']} distances of the finished table, its exam")
    rows = "" if facts["rows_public"] else " The number of rows is private, and noisy too."
    return f"Asked: {_listed(asked)}.{rows}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _ledger(ledger: Facts) -> str:
    """The account before and after the release, and what happens to the next ones."""
    from dpsynth.accounting.known_measures import measure_named

    before, after, cap = ledger["before"], ledger["after"], ledger["cap"]
    at = f" (at δ = {cap['delta']})" if measure_named(ledger["filter"]).needs_delta else ""
    words = (
        f"Ledger: ε = {before['epsilon']} of the cap's {cap['epsilon']} is spent, {before['share']:.0%}; "
        f"{after['epsilon']} after this release, {after['share']:.0%}{at}."
    )
    if not ledger["allowed"]:
        return f"{words} The ledger would refuse this release."
    if ledger["parallel"]:
        return f"{words} Each period counts for itself: releases of other periods don't add to it."
    more = f"{ledger['more_after']:,}" if ledger["more_after"] else "No"
    due = ledger["first_refused"]
    until = f"; the first to be refused is due on {due}" if due else ""
    return f"{words} {more} more release{'s' * (ledger['more_after'] != 1)} like it fit{until}."
