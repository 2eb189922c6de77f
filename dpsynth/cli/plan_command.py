"""``dpsynth plan``: what a release would protect, cost and tell, before any data is read.

Invariant: plain sentences come first; shares, scales, groups, rules and losses in the field's measures only
with --detail. All of it follows from the config and the ledger.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from dpsynth.cli.printing import json_text
from dpsynth.errors import ConfigError
from dpsynth.wing import Point

if TYPE_CHECKING:
    from rich.console import Console

    from dpsynth.config import Spec


Facts = Mapping[str, Any]
"""A forecast, as plain JSON values."""

_NAMED = 4
"""Most pairs of columns that are named."""


def errors_in_words(facts: Facts) -> Iterator[str]:
    """The errors to expect, in rows, and in per cent if the number of rows is given."""
    errors = facts["expected_errors"]
    columns, rows = _worst_first(errors["columns"]) if errors["rows"] else errors["columns"], errors["rows"]
    together = next((step for step in facts["steps"] if step["step"] == "marginals"), None)
    if columns:
        off = span_of_rows([column["error"] for column in columns], rows)
        pair = "" if together is None else f", {together['expected_error']:,.0f} in one of columns together"
        yield f"Mean error: {off} in a count of a single column{pair}."
        smallest = span_of_rows([column["smallest"] for column in columns], rows)
        yield f"A group below {smallest}, by column, looks like nobody."
    if rows is None:
        return
    if columns:
        worst, middle = columns[0], columns[len(columns) // 2]
        yield (
            f"Noise moves {_percent(middle['share_moved'])} of the rows in the median column, "
            f"and {_percent(worst['share_moved'])} in {_named(worst)}, the worst."
        )
    if errors["pairs"]:
        yield _pairs(errors)
    if errors["exam_within"] is not None:
        yield f"The exam tells the error of a pair to within {_percent(errors['exam_within'])}."
    yield from (f"Criterion: {words}" for words in errors["criteria"])
    if errors["exclusive_ors"] is not None:
        yield _exclusive_ors(errors["exclusive_ors"])
    fewer, epsilon = errors["columns_that_would_do"], errors["epsilon_that_would_do"]
    if fewer is not None:
        yield (
            f"{len(columns)} columns on {rows:,} rows are too many: declare fewer columns (about {fewer} "
            "would do at this ε), or fewer values."
        )
    if columns:
        found, limit = epsilon["epsilon"], _percent(epsilon["share_moved"])
        enough = f"ε = {found:g} would do" if found is not None else "No ε would do"
        yield f"{enough} for at most {limit} in every column."


def _by_strength(errors: Facts) -> tuple[list[Facts], list[Facts], list[Facts]]:
    """Pairs in which weak relations show, only strong ones, and hardly any; the worst first in each."""
    worst, limits = _worst_first(errors["pairs"]), errors["relations_show"]
    hidden = [pair for pair in worst if pair["share_moved"] > limits["strong"]]
    strong = [pair for pair in worst if limits["weak"] < pair["share_moved"] <= limits["strong"]]
    return worst[len(hidden) + len(strong) :], strong, hidden


def _pairs(errors: Facts) -> str:
    weak, strong, hidden = _by_strength(errors)
    measured, number = errors["pairs_measured_at_most"], len(errors["pairs"])
    return (
        f"Pairs: at most {measured:,} of {number:,} are measured. Weak relations show in {len(weak):,}, "
        f"only strong ones in {len(strong):,}, hardly any in {len(hidden):,}."
    )


def _exclusive_ors(found: Facts) -> str:
    columns = f"the {found['columns_of_two_values']} columns of two values"
    if not found["at_most"]:
        return f"An exclusive or of three or more of {columns} would be lost: too few rows for this ε."
    return (
        f"An exclusive or of up to {found['at_most']} of {columns} is found, among those whose pairs show "
        f"little. To look for it takes at most {_percent(found['share'])} of the budget."
    )


def pairs_in_words(errors: Facts) -> Iterator[str]:
    """Relations that show in pairs of columns, and the worst pairs; nothing without a number of rows."""
    if errors["rows"] is None or not errors["pairs"]:
        return
    weak, strong, hidden = _by_strength(errors)
    least, most = (_percent(errors["relations_show"][limit]) for limit in ("weak", "strong"))
    yield (
        "A relation between two columns shows if it moves more rows than noise does. It shows for certain if "
        f"it moves twice as many. In {len(weak):,} pairs noise moves at most {least} of the rows, "
        f"in {len(strong):,} at most {most}, in {len(hidden):,} more."
    )
    if hidden:
        named = ", ".join(f"{_named(pair)} ({_percent(pair['share_moved'])})" for pair in hidden[:_NAMED])
        yield f"The worst pairs: {named}{', ...' if len(hidden) > _NAMED else ''}."
    seen = [pair["correlation"] for pair in errors["pairs"] if pair["correlation"] is not None]
    if hidden and seen:
        yield (
            "Two columns of numbers or dates may show a correlation even there. Most correlations above "
            f"{4 * min(seen):.2g} to {min(1.0, 4 * max(seen)):.2g} show, by pair; few of half that size do."
        )


def sampling_in_words(sampling: Facts, rows: int | None) -> str:
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


def _worst_first(errors: Sequence[Facts]) -> list[Facts]:
    return sorted(errors, key=lambda error: -error["share_moved"])


def _named(errors: Facts) -> str:
    return " with ".join(errors["columns"])


def _percent(share: float) -> str:
    """A share in per cent, of two digits.

    >>> _percent(0.000123), _percent(0.0345), _percent(0.5)
    ('0.012 %', '3.5 %', '50 %')
    """
    digits = f"{100 * share:.2g}"
    return f"{float(digits):g} %"


def span_of_rows(numbers: Sequence[float], rows: int | None) -> str:
    """The least and the largest number of rows, with their shares of all rows if the number is given."""
    low, high = min(numbers), max(numbers)
    ends = (low,) if f"{low:,.0f}" == f"{high:,.0f}" else (low, high)
    span = " to ".join(f"{end:,.0f}" for end in ends)
    shares = "" if rows is None else f" ({' to '.join(_percent(min(end / rows, 1.0)) for end in ends)})"
    return f"{span} rows{shares}"


_WIDTH = 100
"""Smallest width of the table of steps, in columns of text."""


def print_detail(facts: Facts, console: Console) -> None:
    """Print what follows for groups, statistics, pairs, rules and memory; then the budget by step."""
    from rich.table import Table
    from rich.text import Text

    for line in _details_in_words(facts):
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


def _details_in_words(facts: Facts) -> Iterator[str]:
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
    from dpsynth.figures import size_in_words

    kind, _, packed = engine["source"].partition(".")
    if kind not in _READ:
        return
    each = f"{engine['read_bytes_of_a_row']:,.0f} bytes a row"
    size = each if engine["rows"] is None else size_in_words(engine["read_bytes"])
    packing = f"; the .{packed} file has fewer" if packed else ""
    yield f"Read are {_READ[kind].format(size)}{packing}."


def _engine(engine: Facts) -> Iterator[str]:
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


class PrintPlan(Protocol):
    """Prints what a collection under trust: local would protect, ask and tell."""

    def __call__(self, spec: Spec, respondents: int | None, *, detail: bool, as_json: bool) -> None: ...


WITHOUT_CURATOR: Point[PrintPlan] = Point("plan without a curator", "local")


class ComparedAccountants(Protocol):
    """The accountants side by side, for the plan of a config."""

    rows: list[dict[str, object]]
    """Plain JSON values of each."""

    def print_to(self, console: Console) -> None: ...


ACCOUNTANTS: Point[Callable[[Spec], ComparedAccountants]] = Point("accountants of a plan", "proof")


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
    from dpsynth.cli.printing import let_arrow_start_without_pandas
    from dpsynth.config import load
    from dpsynth.pipeline.forecast import SHARE, forecast

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
        WITHOUT_CURATOR.needed("trust: local")(spec, rows, detail=detail, as_json=as_json)
        return
    let_arrow_start_without_pandas()
    facts = forecast(spec, rows, SHARE if error is None else error / 100)
    compared = ACCOUNTANTS.needed("--accountants")(spec) if side_by_side else None
    if as_json:
        print(json_text(facts if compared is None else {**facts, "accountants": compared.rows}))
    else:
        describe(facts, compared, detail=detail)


def describe(facts: Facts, compared: ComparedAccountants | None = None, *, detail: bool = False) -> None:
    """Print a forecast for people: some fifteen short lines, with all that follows from it on request."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    for line in _in_words(facts):
        console.print(Text(line))
    if detail:
        print_detail(facts, console)
    if compared is not None:
        compared.print_to(console)
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
    if facts["approval"] is not None:
        yield f"Approval: {facts['approval']}"
    if facts["embargo"] is not None:
        yield f"Embargo: the finished bundle is kept encrypted until {facts['embargo']}."
    yield _time(facts)


def _time(facts: Facts) -> str:
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
    unit = facts["unit"].split(":")[0]
    exchanged = facts["neighbours"] == "replace_one"
    question = f"which of two versions of {unit} is" if exchanged else f"if {unit} is"
    return (
        f"{_promised(facts)} ({facts['neighbours']}): whoever guesses {question} in the table is right at "
        f"most {_guess(facts)} % of the time, and 50 % by tossing a coin."
    )


def _questions(facts: Facts) -> str:
    from dpsynth.figures import listed

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
    if "history" in by_step:
        asked.append(f"{by_step['history']} columns with the row before")
    if "marginals" in by_step:
        number = by_step["marginals"]
        chosen = ", chosen privately" if "structure" in by_step else ""
        tables = f"table{'s' * (number != 1)} of columns together"
        weights = ", by weights if they pay" if facts.get("by_weights_if_they_pay") else ""
        asked.append(f"at most {number} {tables} ({facts['structure']}{chosen}{weights})")
    if "exam" in by_step:
        asked.append(f"{by_step['exam']} distances of the finished table, its exam")
    guessed = dict.fromkeys(target for target, _ in facts["classified"])
    asked += [f"how often a classifier of {target} is right" for target in guessed]
    rows = "" if facts["rows_public"] else " The number of rows is private, and noisy too."
    return f"Asked: {listed(asked)}.{rows}"


def _ledger(ledger: Facts) -> str:
    before, after, cap = ledger["before"], ledger["after"], ledger["cap"]
    at = f" (at δ = {cap['delta']})" if ledger["filter"] != "sequential" else ""
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
