"""``dpsynth collect`` and ``dpsynth aggregate``: the local model, where respondents trust nobody.

Invariant: collect prints public facts and counts of reports, never a cell.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from dpsynth.errors import ConfigError, spelt_out

Config = Annotated[Path, typer.Argument(help="The collection's YAML file, with trust: local.")]


def collect(  # noqa: PLR0913 (options of a command)
    config: Config,
    answer: Annotated[
        list[str] | None, typer.Option(help="An answer of one record, such as cheated=yes; one a column.")
    ] = None,
    respondent: Annotated[
        str, typer.Option(help="With --answer: a name for whose record it is. It stays on this side.")
    ] = "me",
    records: Annotated[
        Path | None, typer.Option(help="In place of --answer: a file with a record a respondent.")
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="With --records: the column that says whose a record is.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for reports.")] = Path("reports"),
    memory: Annotated[
        Path | None, typer.Option(help="File that remembers what was reported on this side; keep it.")
    ] = None,
    cap: Annotated[
        float | None, typer.Option(help="Most epsilon of a respondent's reports of all collections.")
    ] = None,
    form: Annotated[str, typer.Option("--format", help="jsonl or parquet.")] = "jsonl",
) -> None:
    """Randomise records at the respondent's side; the last line printed is the file of reports."""
    from dpsynth.config import load
    from dpsynth.wings.local.collecting import Side, collect_file, collect_record, usual_memory

    if (answer is None) == (records is None):
        raise ConfigError("Give one record with --answer COLUMN=VALUE, or a file of records with --records.")
    if (records is None) != (id_column is None):
        raise ConfigError("--records and --id go together: each respondent reports once, and --id says who.")
    if form not in ("jsonl", "parquet"):
        raise ConfigError("--format must be jsonl or parquet.")
    if cap is not None and not 0 < cap < float("inf"):
        raise ConfigError("--cap must be above 0.")
    spec = load(config)
    side = Side(memory or usual_memory(), out, f".{form}", None if cap is None else Fraction(repr(cap)))
    if records is not None and id_column is not None:
        sent = collect_file(spec, records, id_column, side)
    else:
        sent = collect_record(spec, _answers(answer or []), respondent, side)
    some = f"{sent.reports:,} report{'s' * (sent.reports != 1)}"
    print(
        f"{some} of {spec.release}, safe to send, at ε = {float(sent.epsilon):.4g} a respondent. Asked "
        "again, this side sends the same.",
        file=sys.stderr,
    )
    print(sent.path)


def aggregate(
    config: Config,
    reports: Annotated[Path, typer.Argument(help="Folder of reports, .jsonl and .parquet.")],
    out: Annotated[Path, typer.Option(help="Folder for bundles.")] = Path("outputs"),
) -> None:
    """Make a release from the reports of respondents; the last line printed is the bundle's folder."""
    from dpsynth.cli.printing import let_arrow_start_without_pandas
    from dpsynth.config import load

    let_arrow_start_without_pandas()
    from dpsynth.wings.local.aggregating import aggregate as aggregated
    from dpsynth.wings.local.collection import Collection

    release = aggregated(load(config), reports, out)
    collection = release.collection
    assert isinstance(collection, Collection)
    left = {"repeated": collection.repeated, **dict(collection.faults)}
    words = ", ".join(f"{number:,} {what}" for what, number in left.items() if number)
    print(f"{collection.reports:,} reports used{f'; left out: {words}' if words else ''}.")
    if collection.broken_files:
        print(f"{collection.broken_files:,} files could not be read to their end.")
    promise = release.guarantee
    tables = len(release.tables)
    print(f"Released {release.drawn.rows:,} synthetic rows and {tables} table{'s' * (tables != 1)}.")
    for line in release.verdict.lines:
        print(f"Verdict: {spelt_out(line)}")
    print(f"Guarantee: ε = {promise.epsilon:.6g} for each respondent, who had to trust nobody.")
    if (shuffled := collection.shuffled) is not None:
        print(
            f"Shuffled by a trusted shuffler: ε = {shuffled.epsilon:.4g}, δ = {shuffled.delta:.3g} centrally."
        )
    print(f"To hand over: {release.folder / 'public'} (begin with report.html).")
    print(release.folder)


def _answers(texts: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name in found:
            raise ConfigError("--answer must be COLUMN=VALUE, such as --answer cheated=yes, once a column.")
        found[name] = value
    return found
