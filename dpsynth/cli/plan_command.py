"""``dpsynth plan``: what a release would protect, cost and tell, before any data is read.

Invariant: plain sentences come first; shares, scales and losses in the field's measures only with --detail.
All of it follows from the config and the ledger.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsynth.cli.accountants_table import print_accountants
from dpsynth.cli.plan_errors import Facts, errors_in_words, span_of_rows
from dpsynth.cli.printing import json_text
from dpsynth.errors import ConfigError

if TYPE_CHECKING:
    from dpsynth.config import Spec


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
    from dpsynth.cli.release_command import let_arrow_start_without_pandas
    from dpsynth.config import load
    from dpsynth.lifecycle.forecast import SHARE, accountants, forecast

    if error is not None and rows is None:
        raise ConfigError("--error has no use without --rows: it is a share of the rows.")
    if error is not None and not 0 < error < 100:
        raise ConfigError("--error must lie between 0 and 100: a share of the rows in per cent.")
    spec = load(config, source=source)
    if side_by_side and spec.trust == "local":
        raise ConfigError("--accountants has no use with trust: local: a respondent's epsilon counts.")
    if spec.trust == "local":
        _plan_local(spec, rows, error, detail=detail, as_json=as_json)
        return
    let_arrow_start_without_pandas()
    facts = forecast(spec, rows, SHARE if error is None else error / 100)
    if side_by_side:
        facts["accountants"] = accountants(spec)
    if as_json:
        print(json_text(facts))
    else:
        describe(facts, detail=detail)


def _plan_local(spec: Spec, rows: int | None, error: float | None, *, detail: bool, as_json: bool) -> None:
    """Say what a collection under trust: local would protect, ask and tell."""
    from dpsynth.cli.local_plan import local_plan_in_words
    from dpsynth.lifecycle.collecting import contract_for
    from dpsynth.local.forecast import local_forecast

    if error is not None:
        raise ConfigError("--error has no use with trust: local.")
    facts = local_forecast(contract_for(spec), rows)
    if as_json:
        print(json_text(facts))
        return
    for line in local_plan_in_words(facts, detail=detail):
        print(line)
    print("No data was read." if detail else "No data was read. More with --detail: every question.")


def describe(facts: Facts, *, detail: bool = False) -> None:
    """Print a forecast for people."""
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
    more = [] if detail else ["--detail: the budget step by step"]
    if facts["expected_errors"]["rows"] is None:
        more.insert(0, "--rows N: errors in per cent of a table of N rows")
    hint = f" More with {'; '.join(more)}." if more else ""
    console.print(f"No data was read.{hint}")


def _in_words(facts: Facts) -> Iterator[str]:
    yield f"{facts['release']}: {facts['columns']} columns of dataset {facts['dataset']}"
    yield _protected(facts)
    yield f"Not protected by this unit: {facts['unit_leaves_unprotected']}"
    yield _groups(facts)
    if facts["sampling"] is not None:
        yield _sampling(facts["sampling"], facts["expected_errors"]["rows"])
    if facts["audiences"]:
        yield from _audiences(facts["audiences"])
    else:
        yield from _questions(facts)
        yield from errors_in_words(facts)
    if facts["constraints"]:
        yield "Every synthetic row obeys:"
        yield from (f"  {way['rule']}: {way['kept']}." for way in facts["constraints"])
    yield from _ledger(facts["ledger"])
    rough = facts["rough_forecast"]
    tiers = max(len(facts["audiences"]), 1)
    yield (
        f"Time and memory: roughly {tiers * rough['seconds']:,.0f} s and {rough['megabytes']:,.0f} MB, and "
        f"for each million rows {_seconds(tiers * rough['seconds_per_million_rows'])} and "
        f"{rough['megabytes_per_million_rows']:,.0f} MB more."
    )
    yield from _engine(facts["engine"])


def _seconds(seconds: float) -> str:
    """Some seconds: whole ones, or tenths of a few."""
    return f"{seconds:,.0f} s" if seconds >= 2 else f"{seconds:.1f} s"


_READ = {
    "csv": "about {} of text, beside the cells of columns that are not declared",
    "parquet": "at most about {}: so much is the text of the declared columns, which Parquet packs",
    "xlsx": "about {} of text, when it is unpacked",
    "database": "about {}: so much is the text of the declared columns",
}
"""Words for the bytes read of each kind of source."""


def _read(engine: Facts) -> Iterator[str]:
    """The bytes that are read of the source, by declared columns and rows."""
    from dpsynth.presentation.figures import size_in_words

    kind, _, packed = engine["source"].partition(".")
    if kind not in _READ:
        return
    each = f"{engine['read_bytes_of_a_row']:,.0f} bytes a row"
    size = each if engine["rows"] is None else size_in_words(engine["read_bytes"])
    packing = f"; the .{packed} file has fewer" if packed else ""
    yield f"Read are {_READ[kind].format(size)}{packing}."


def _engine(engine: Facts) -> Iterator[str]:
    """The bytes read, the coded rows, where they lie, and time and memory of so many rows."""
    from dpsynth.presentation.figures import size_in_words

    yield from _read(engine)
    memory = size_in_words(engine["memory"])
    if engine["workers"]:
        yield f"Rows are read and counted by {engine['name']}; charges and noise stay in this process."
    if engine["rows"] is None:
        by = " by each worker" if engine["workers"] else ""
        yield (
            f"Rows are coded to {engine['bytes_of_a_row']:,} bytes each; up to {memory} of them are held in "
            f"memory{by} (engine.memory), more in a private file without a name."
        )
        return
    coded = size_in_words(engine["coded_bytes"])
    if engine["workers"]:
        yield (
            f"{engine['rows']:,} rows are coded to {coded}, held by the workers, up to {memory} each in "
            f"memory. This process alone would take roughly {engine['seconds']:,.0f} s and "
            f"{engine['megabytes']:,.0f} MB in all."
        )
        return
    place = "in memory"
    if engine["cache_bytes"]:
        place = f"in a private file without a name, as engine.memory is {memory}"
    yield (
        f"{engine['rows']:,} rows are coded to {coded}, held {place}: roughly {engine['seconds']:,.0f} s and "
        f"{engine['megabytes']:,.0f} MB in all."
    )


def _sampling(sampling: Facts, rows: int | None) -> str:
    """The sample of units, and whether the release would be better without it."""
    asked = (
        f"Sample: a secret sample of the units is asked, {100 * sampling['rate']:g} % of them, at "
        f"ε = {sampling['epsilon_of_sample']:.4g} of its own."
    )
    columns = sampling["columns"]
    if not columns:
        return asked
    noise, without = (
        span_of_rows([column[key] for column in columns], rows)
        for key in ("error_by_noise", "error_without_sampling")
    )
    words = f"{asked} By noise a count of a single column is off by {noise} on average"
    if rows is not None:
        sampled = span_of_rows([column["error_by_sampling"] for column in columns], rows)
        words += f", and by the sample by {sampled} more"
    worse = sum(
        c["error_by_noise"] + (c["error_by_sampling"] or 0) > c["error_without_sampling"] for c in columns
    )
    verdict = (
        "it would be better in every column without the sample: leave out privacy.sample_rate"
        if worse == len(columns)
        else f"it would be better in {worse} of {len(columns)} columns without the sample"
    )
    return f"{words}. Without the sample it would be off by {without}: {verdict}."


def _audiences(tiers: Sequence[Facts]) -> Iterator[str]:
    """The bundles, in the order in which they are asked for: each adds to the answers of those before."""
    for place, tier in enumerate(tiers):
        delta = f", δ = {tier['delta']:g}" if tier["delta"] else ""
        before = "" if not place else f"; it has all answers for {tiers[place - 1]['audience']} as well"
        yield (
            f"For {tier['audience']}: whoever reads that bundle{' and those before' if place else ''} "
            f"guesses right at most {_guess(tier)} % of the time: ε = {tier['epsilon']:g}{delta}{before}."
        )
        yield from (f"  {line}" for line in (*_questions(tier), *errors_in_words(tier)))


def _guess(facts: Facts) -> str:
    from dpsynth.presentation.figures import guess_percent

    return guess_percent(facts["epsilon"], facts["delta"])


def _protected(facts: Facts) -> str:
    """The unit, and the guarantee of the whole release."""
    unit, exchanged = facts["unit"], facts["neighbours"] == "replace_one"
    short = unit.split(":")[0]
    question = (
        f"which of two versions of {short} the table holds" if exchanged else f"if {short} is in the table"
    )
    delta = f", δ = {facts['delta']:g}" if facts["delta"] else ""
    return (
        f"Protected: {unit}. Whoever guesses {question} is right half of the time by tossing a coin, and at "
        f"most {_guess(facts)} % of the time after reading all of the "
        f"release: that is ε = {facts['epsilon']:g}{delta} ({facts['neighbours']})."
    )


def _groups(facts: Facts) -> str:
    """The guarantee of several units together, and under the other relation."""
    several = ", ".join(f"{group['units']}: {_promise(group, facts['delta'])}" for group in facts["groups"])
    other = facts["other_relation"]
    exchanged = (
        f"; if one were exchanged for another (replace_one): {_promise(other, facts['delta'])}"
        if other["neighbours"] == "replace_one"
        else "; if one were left out (add_remove): nothing, as their number is public"
    )
    return f"Together, by the number of units that change: {several}{exchanged}."


def _promise(amount: Facts, delta: float) -> str:
    if amount["epsilon"] is None:
        return "no promise"
    at = "" if amount["delta"] == delta else f" at δ = {amount['delta']:.2g}"
    return f"ε = {amount['epsilon']:.3g}{at}"


def _questions(facts: Facts) -> Iterator[str]:
    """The questions, the pairs that are measured whatever is chosen, and the rules."""
    by_step = {step["step"]: step["questions"] for step in facts["steps"]}
    asked = []
    searched = sum(number for step, number in by_step.items() if step.startswith("domain: "))
    if searched:
        asked.append(f"{searched} search{'es' * (searched != 1)} for what is not declared")
    if "one_way" in by_step:
        asked.append(f"the counts of {len(facts['expected_errors']['columns'])} single columns")
    if "sums" in by_step:
        asked.append(f"{by_step['sums']} table{'s' * (by_step['sums'] != 1)} of sums")
    if "quantiles" in by_step:
        number = by_step["quantiles"]
        asked.append(f"{number} table{'s' * (number != 1)} of counts within bins for quantiles")
    if "marginals" in by_step:
        number = by_step["marginals"]
        chosen = ", chosen privately" if "structure" in by_step else ""
        asked.append(
            f"at most {number} table{'s' * (number != 1)} of columns together{chosen} (structure "
            f"{facts['structure']})"
        )
    if "exam" in by_step:
        asked.append(
            f"at the end the distances of {by_step['exam']} sets of columns from the finished synthetic table"
        )
    rows = "public" if facts["rows_public"] else "private, so it is noisy too"
    yield f"Asked: {_listed(asked)}. The number of rows is {rows}."
    if facts["wanted_pairs"]:
        pairs = ", ".join(" with ".join(pair) for pair in facts["wanted_pairs"])
        why = "constraints and the statistics" if facts.get("constraints") else "statistics"
        yield f"Measured for the {why} asked for: {pairs}."
    yield from (_measured("Mean", mean, "sums") for mean in facts["means"])
    yield from (_measured("Quantiles", each, "finer counts") for each in facts["quantiles"])


def _measured(what: str, figure: Facts, own: str) -> str:
    """The way in which a figure is measured, with the interval to be expected.

    Args:
        what: the figure.
        figure: its facts.
        own: the way beside counts.
    """
    name = " by ".join([figure["column"], *figure["by"]])
    unit = f" times {figure['half_width_in']}" if "range" in figure["half_width_in"] else ""
    way, other = (own, "counts") if figure["measured_by"] == own else ("counts", own)
    better, worse = (f"±{figure[f'half_width_by_{w}'.replace(' ', '_')]:.2g}" for w in (way, other))
    return (
        f"{what} of {name}: by {way}, {better}{unit} to be expected in a group of average size out "
        f"of {figure['rows']:,} rows, against {worse} by {other}."
    )


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _ledger(ledger: Facts) -> Iterator[str]:
    from dpsynth.accounting.known_measures import measure_named

    before, after = ledger["before"], ledger["after"]
    cap = ledger["cap"]
    at = f" at δ = {cap['delta']}" if measure_named(ledger["filter"]).needs_delta else ""
    yield (
        f"Ledger: the cap is ε = {cap['epsilon']}, δ = {cap['delta']}. Releases come to "
        f"ε = {before['epsilon']}{at} before this one, {before['share']:.0%} of the cap, and to "
        f"ε = {after['epsilon']} after it, {after['share']:.0%}."
    )
    if not ledger["allowed"]:
        yield "The ledger would refuse this release."
    elif ledger["parallel"]:
        yield "Each period counts for itself: releases of other periods don't add to it."
    else:
        more = f"{ledger['more_after']:,}" if ledger["more_after"] else "no"
        until = (
            f"; the first to be refused is due on {ledger['first_refused']}"
            if ledger["first_refused"]
            else ""
        )
        yield f"After it, {more} more release{'s' * (ledger['more_after'] != 1)} like it fit{until}."
