"""The forecast of a release: its plan, and the ledger before and after.

Invariant: a forecast reads the config and the ledger, never the table, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from dpsynth.accounting.amount import digits
from dpsynth.accounting.measures import measure_of_accountant
from dpsynth.config import CompiledSpec, Spec, compiled
from dpsynth.config.period import LONGEST_LABEL, Period
from dpsynth.domain.slices import Slice
from dpsynth.ledger.balance import Balance, CapChange, first_balance, first_entry
from dpsynth.ledger.refusals import check_cap, check_counted, check_protection
from dpsynth.plan.occasion import Occasion, next_releases, occasion_of
from dpsynth.plan.plan import Plan, make_plan
from dpsynth.plan.reservation import reservation_of, table_of
from dpsynth.rules import enforcement_of
from dpsynth.structure import strategy_of


def forecast(spec: Spec) -> dict[str, Any]:
    """The forecast as plain JSON values.

    Raises:
        ConfigError: the plan can't be made, or the ledger can't be read.
    """
    from dpsynth.ledger.ledger import Ledger

    compiled_spec = compiled(spec)
    plan = make_plan(compiled_spec, strategy_of(spec.structure.method, spec.structure.cliques or ()))
    account = Ledger(spec.ledger.url, spec.ledger.head).dataset_of(table_of(spec))
    return {
        "release": spec.release,
        "dataset": account,
        "columns": len(spec.columns),
        **plan.to_json(),
        "constraints": [asdict(way) for way in enforcement_of(compiled_spec.rules, compiled_spec.layout)],
        "ledger": _ledger(compiled_spec, plan, account),
        "notes": list(spec.warnings()),
    }


def _ledger(compiled_spec: CompiledSpec, plan: Plan, account: str) -> dict[str, object]:
    """The dataset's account before and after the next release, by its filter."""
    from dpsynth.ledger.ledger import Ledger

    spec = compiled_spec.spec
    now, period = datetime.now(UTC), spec.period
    recorded = Ledger(spec.ledger.url, spec.ledger.head).balance(account)
    releases = () if recorded is None else recorded.releases
    released = [r.occasion for r in releases if r.occasion is not None]
    parallel = period is not None and period.composition == "parallel"
    part = _next_part(period, spec, now, released) if period is not None and parallel else None
    wanted = replace(reservation_of(compiled_spec, plan, Occasion(None, part), ""), dataset=account)
    if recorded is not None:
        check_protection(wanted, recorded)
    before = recorded or first_balance(wanted, now.date())
    check_counted(wanted, before)
    cap = wanted.cap_under(before.cap)
    check_cap(cap, before, before.approximate_share)
    capped = replace(
        before, caps=(*before.caps, CapChange(cap, now.date(), approximate_share=before.approximate_share))
    )
    after = replace(capped, releases=(*before.releases, first_entry(wanted, now.date())))
    more = after.fits(wanted.cost)
    due = [] if parallel else next_releases(spec, now, more + 2, released)
    return {
        "filter": before.filter.accountant,
        "cap": {"epsilon": digits(cap.epsilon, up=False), "delta": digits(cap.delta, up=False)},
        "before": _counted(capped),
        "after": _counted(after),
        "allowed": capped.allows(wanted.cost, part),
        "parallel": parallel,
        "more_after": more,
        "first_refused": due[more + 1].date().isoformat() if len(due) > more + 1 else None,
    }


def _next_part(period: Period, spec: Spec, now: datetime, released: list[str]) -> Slice:
    """The slice of the next release; if values name the slices, a value without a release."""
    if period.every == "value":
        return Slice(period.column, "?" * (LONGEST_LABEL + 1))
    present = occasion_of(spec, now)
    if present.label in released and (due := next_releases(spec, now, 1, released)):
        present = occasion_of(spec, due[0])
    assert present.part is not None
    return present.part


def _counted(account: Balance) -> dict[str, object]:
    return {"epsilon": digits(account.epsilon_used, up=True), "share": round(account.share_used, 6)}


def _range(scales: list[float]) -> str:
    low, high = min(scales), max(scales)
    return f"{low:.4g}" if low == high else f"{low:.3g} to {high:.3g}"


def _ledger_in_words(ledger: dict[str, Any]) -> Iterator[str]:
    before, after = ledger["before"], ledger["after"]
    cap = ledger["cap"]
    at = f" at δ = {cap['delta']}" if measure_of_accountant(ledger["filter"]).needs_delta else ""
    yield (
        f"Ledger: cap ε = {cap['epsilon']}, δ = {cap['delta']}, filter {ledger['filter']}. Releases come "
        f"to ε = {before['epsilon']}{at} before this one, {before['share']:.0%} of the cap, and to "
        f"ε = {after['epsilon']} after it, {after['share']:.0%}."
    )
    if not ledger["allowed"]:
        yield "[bold]The ledger would refuse this release.[/bold]"
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


_WIDTH = 100
"""Smallest width of a plan's table, in columns of text."""


def describe(facts: dict[str, Any]) -> None:
    """Print a forecast for people."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    # Without a terminal rich takes 80 columns, and would cut the cells of the table.
    console.width = max(console.width, _WIDTH)
    rows = "public" if facts["rows_public"] else "private, so it is noisy too"
    console.print(
        f"[bold]{facts['release']}[/bold]: {facts['columns']} columns of dataset {facts['dataset']}"
    )
    console.print(
        f"Guarantee asked for: ε = {facts['epsilon']:g}, δ = {facts['delta']:g} for {facts['unit']} "
        f"({facts['neighbours']}); the number of rows is {rows}."
    )
    rounds = facts["rounds"]
    console.print(
        f"Budget: {facts['budget']:.6g} of {facts['accounting']}; structure: {facts['structure']}"
        f"{f' in {rounds} rounds' if rounds > 1 else ''}.\n"
    )
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("step", "share", "answers", "mechanism", "noise scale", "expected error"):
        table.add_column(name, justify="left" if name in {"step", "mechanism"} else "right", no_wrap=True)
    for step in facts["steps"]:
        error = step["expected_error"]
        table.add_row(
            step["step"],
            f"{step['share']:.0%}",
            str(step["questions"]),
            step["mechanism"],
            _range([step["scale"], *step["scale_of"].values()]),
            "" if error is None else f"±{error:.3g}",
        )
    console.print(table)
    console.print("Scales and errors are in rows, of a cell or a distance on average. Sensitivities:")
    for line in dict.fromkeys(f"  {step['step']}: {step['sensitivity']}." for step in facts["steps"]):
        console.print(line)
    if facts["wanted_pairs"]:
        pairs = ", ".join(" with ".join(pair) for pair in facts["wanted_pairs"])
        why = "constraints and the statistics" if facts["constraints"] else "statistics"
        console.print(f"Measured for the {why} asked for: {pairs}.")
    if facts["constraints"]:
        console.print("Every synthetic row obeys:")
        for way in facts["constraints"]:
            console.print(Text(f"  {way['rule']}: {way['kept']}."))
    console.print("")
    for line in _ledger_in_words(facts["ledger"]):
        console.print(line)
    rough = facts["rough_forecast"]
    console.print(
        f"Model: at most {facts['model_cells_at_most']:,} cells, {facts['model_megabytes_at_most']:g} MB. "
        f"Roughly {rough['seconds']:,.0f} s and {rough['megabytes']:,.0f} MB of memory, and for each million "
        f"rows {rough['seconds_per_million_rows']:,.0f} s and {rough['megabytes_per_million_rows']:,.0f} MB "
        "more. "
        "No data was read."
    )
    for note in facts["notes"]:
        console.print(f"Note: {note}")
