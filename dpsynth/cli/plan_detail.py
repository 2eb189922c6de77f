"""Details of a plan, which ``dpsynth plan --detail`` adds: groups, rules, pairs, memory, the budget by step.

Invariant: all of it follows from the config and the ledger.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpsynth.cli.plan_errors import Facts, pairs_in_words

_WIDTH = 100
"""Smallest width of the table of steps, in columns of text."""


def print_detail(facts: Facts, console: Console) -> None:
    """Print what follows for groups, statistics, pairs, rules and memory; then the budget by step."""
    for line in _in_words(facts):
        console.print(Text(line))
    # Without a terminal rich takes 80 columns, and would cut the cells of the table.
    console.width = max(console.width, _WIDTH)
    rounds = facts["rounds"]
    console.print(
        f"\nBudget: {facts['budget']:.6g} of {facts['accounting']}; structure: {facts['structure']}"
        f"{f' in {rounds} rounds' if rounds > 1 else ''}; the ledger's filter: {facts['ledger']['filter']}."
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
    console.print(
        "Scales and errors are in rows, of a cell or a distance on average; of sums, times a row's limit. "
        "Sensitivities:"
    )
    for line in dict.fromkeys(f"  {step['step']}: {step['sensitivity']}." for step in facts["steps"]):
        console.print(Text(line))
    console.print(
        f"Model: at most {facts['model_cells_at_most']:,} cells, {facts['model_megabytes_at_most']:g} MB.\n"
    )


def _range(scales: Sequence[float]) -> str:
    low, high = min(scales), max(scales)
    return f"{low:.4g}" if low == high else f"{low:.3g} to {high:.3g}"


def _in_words(facts: Facts) -> Iterator[str]:
    yield _groups(facts)
    for tier in facts["audiences"] or [facts]:
        yield from _measured_beforehand(tier)
        yield from pairs_in_words(tier["expected_errors"])
    if facts["constraints"]:
        yield "Every synthetic row obeys:"
        yield from (f"  {way['rule']}: {way['kept']}." for way in facts["constraints"])
    yield from _engine(facts["engine"])


def _measured_beforehand(facts: Facts) -> Iterator[str]:
    """The pairs that are measured whatever is chosen, and how each statistic is measured."""
    if facts["wanted_pairs"]:
        pairs = ", ".join(" with ".join(pair) for pair in facts["wanted_pairs"])
        why = "constraints and the statistics" if facts.get("constraints") else "statistics"
        yield f"Measured for the {why} asked for: {pairs}."
    yield from (_measured("Mean", mean, "sums") for mean in facts["means"])
    yield from (_measured("Quantiles", each, "finer counts") for each in facts["quantiles"])


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


_READ = {
    "csv": "about {} of text, and the cells of columns that are not declared",
    "parquet": "at most about {}, the text of the declared columns before Parquet packs it",
    "xlsx": "about {} of text, when it is unpacked",
    "database": "about {}, the text of the declared columns",
}
"""Words for the bytes read of each kind of source."""


def _read(engine: Facts) -> Iterator[str]:
    """The bytes that are read of the source, by declared columns and rows."""
    from dpsynth.figures import size_in_words

    kind, _, packed = engine["source"].partition(".")
    if kind not in _READ:
        return
    each = f"{engine['read_bytes_of_a_row']:,.0f} bytes a row"
    size = each if engine["rows"] is None else size_in_words(engine["read_bytes"])
    packing = f"; the .{packed} file has fewer" if packed else ""
    yield f"Read are {_READ[kind].format(size)}{packing}."


def _engine(engine: Facts) -> Iterator[str]:
    """The bytes read, the coded rows, where they lie, and time and memory of so many rows."""
    from dpsynth.figures import size_in_words

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
