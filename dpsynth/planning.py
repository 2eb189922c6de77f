"""The forecast of a release: its plan, and what the ledger says before and after.

Invariant: reads the config and the ledger, never the table, and changes neither.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpsynth.accounting.amount import Amount, digits
from dpsynth.spec import Spec
from dpsynth.spec.plan import Plan, make_plan
from dpsynth.structure import strategy_of


def forecast(spec: Spec) -> dict[str, Any]:
    """Everything that is known of a release before it runs, as plain JSON values.

    Raises:
        ConfigError: the plan can't be made, or the ledger can't be read.
    """
    plan = make_plan(spec, strategy_of(spec.structure.method, spec.structure.cliques or ()))
    return {
        "release": spec.release,
        "dataset": spec.ledger.dataset,
        "columns": len(spec.columns),
        **plan.to_json(),
        "ledger": _ledger(spec, plan),
        "notes": list(spec.warnings()),
    }


def _ledger(spec: Spec, plan: Plan) -> dict[str, object]:
    from dpsynth.accounting.ledger import Ledger

    balance = Ledger(spec.ledger.url).balance(spec.ledger.dataset)
    wanted = Amount(Fraction(spec.ledger.cap.epsilon), Fraction(spec.ledger.cap.delta))
    cap = wanted if balance is None else balance.cap.capped(wanted)
    before = Amount() if balance is None else balance.spent + balance.reserved
    after = before + Amount(plan.epsilon, plan.spent_delta)
    return {
        "cap": _shown(cap, up=False),
        "before": _shown(before, up=True),
        "after": _shown(after, up=True),
        "left_after": _shown(cap.less(after), up=False),
        "allowed": after.within(cap),
    }


def _shown(amount: Amount, *, up: bool) -> dict[str, str]:
    return {"epsilon": digits(amount.epsilon, up=up), "delta": digits(amount.delta, up=up)}


def _range(scales: list[float]) -> str:
    low, high = min(scales), max(scales)
    return f"{low:.4g}" if low == high else f"{low:.3g} to {high:.3g}"


def describe(facts: dict[str, Any]) -> None:
    """Print a forecast for people."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True)
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
        console.print(f"Measured for the statistics asked for: {pairs}.")
    ledger = facts["ledger"]
    console.print(
        f"\nLedger: cap ε = {ledger['cap']['epsilon']}, δ = {ledger['cap']['delta']}; counted before "
        f"ε = {ledger['before']['epsilon']}, after ε = {ledger['after']['epsilon']}; left after "
        f"ε = {ledger['left_after']['epsilon']}, δ = {ledger['left_after']['delta']}."
    )
    if not ledger["allowed"]:
        console.print("[bold]The ledger would refuse this release.[/bold]")
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
