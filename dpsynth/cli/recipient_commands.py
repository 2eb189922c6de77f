"""The commands of a recipient, who has the public folder of a bundle: verify, query, sample; and keygen.

Invariant: they parse, call and print; what they print goes to standard output as a whole, or not at all.
"""

from __future__ import annotations

import sys
from math import floor, isnan, log10
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsynth.cli.printing import json_text
from dpsynth.errors import ConfigError, spelt_out

if TYPE_CHECKING:
    from dpsynth.recipient.query import Answer

app = typer.Typer(add_completion=False)

Folder = Annotated[
    Path, typer.Argument(metavar="BUNDLE", help="The folder of a release, or its folder public.")
]


@app.command()
def verify(
    bundle: Folder,
    key: Annotated[
        str | None, typer.Option(help="The public key that must have signed it, such as ed25519:1f0c…")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check a bundle: files, manifest, statistics, guarantee, signature. The exit code is 0 if it is good."""
    from dpsynth.recipient.verification import verified

    found = verified(bundle, key)
    if as_json:
        print(json_text(found.to_json()))
    else:
        for sentence in found.proven:
            print(f"✓ {sentence}")
        for sentence in found.cautions:
            print(f"- {sentence}")
        for finding in found.findings:
            print(f"{finding.file}: {finding.sentence}")
        print("The bundle is good." if found.good else "The bundle is NOT good.")
    if not found.good:
        sys.stdout.flush()
        raise typer.Exit(1)


@app.command()
def keygen(file: Annotated[Path, typer.Argument(help="The new file of the private key.")]) -> None:
    """Make a key that signs bundles: a private file, and a public key to make known."""
    from dpsynth.publish.signature import make_key

    key = make_key(file)
    print(f"{file} holds the private key. Whoever has it can sign in your name; keep it off shared disks.")
    print("To sign bundles, write in the config: publish: {sign: " + str(file) + "}")
    print("The public key, to be made known where recipients look, apart from the bundles:")
    print(key.public)


@app.command()
def query(
    bundle: Folder,
    question: Annotated[str, typer.Argument(help='Such as "mean(cost) by sex where age >= 65".')],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    asked: Annotated[
        Path | None,
        typer.Option(help="Where questions are remembered, if the owner limits how far they overlap."),
    ] = None,
) -> None:
    """Answer a question from what a bundle publishes: estimate, interval and basis; it costs no privacy."""
    from dpsynth.recipient import open_bundle
    from dpsynth.recipient.set_overlap import Asked, default_memory

    if as_json and as_csv:
        raise ConfigError("--json and --csv contradict each other. Give one of them, or none.")
    opened = open_bundle(bundle)
    answer = opened.query(question, Asked(asked or default_memory(opened)))
    if as_json:
        print(json_text(answer.to_json()))
    elif as_csv:
        print(answer.to_csv(), end="")
    else:
        _print_answer(answer)


@app.command()
def sample(
    bundle: Folder,
    rows: Annotated[int, typer.Option(min=1, help="Number of rows.")],
    given: Annotated[
        list[str] | None,
        typer.Option(
            help="What each row must have: sex=F, or a condition such as 'age >= 65'. May be repeated."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A new file, .csv or .parquet; left out: CSV on standard output.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Makes the rows repeatable.")] = None,
) -> None:
    """Draw more synthetic rows from a bundle, refined like the released ones; it costs no privacy."""
    from dpsynth.recipient import open_bundle
    from dpsynth.recipient.more_rows import more_rows
    from dpsynth.recipient.row_files import print_rows, write_rows

    opened = open_bundle(bundle)
    tables = more_rows(opened, rows, given, seed)
    if out is None:
        print_rows(tables, opened.rows.layout)
        return
    print(f"{write_rows(tables, opened.rows.layout, out):,} rows in {out}.")


def _print_answer(answer: Answer) -> None:
    from dpsynth.recipient.query import FIGURES

    lines = [[*answer.question.by, *FIGURES]]
    for row in answer.rows:
        figures = (row.estimate.value, row.estimate.low, row.estimate.high, row.rows)
        lines.append([*row.labels, *map(_figure, figures), row.basis])
    texts = [[spelt_out(cell) for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    left = len(answer.question.by)
    for line in texts:
        cells = [
            cell.ljust(width) if place < left or place == len(line) - 1 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
    print(f"Interval: {answer.interval}")
    if answer.verdict:
        print(f"Verdict on the synthetic table: {spelt_out(answer.verdict)}")
    if answer.minimum_set_size is not None:
        print(f"Answers on fewer than {answer.minimum_set_size:,} rows, by estimate, are withheld.")
    if answer.maximum_set_overlap is not None:
        print(
            f"Answers on sets that share more than {answer.maximum_set_overlap:,} synthetic rows with that "
            "of an "
            "earlier question are withheld."
        )


def _figure(value: float | None) -> str:
    """A number with up to six digits, and all digits before the point."""
    if value is None or isnan(value):
        return ""
    digits = 6 if value == 0 else max(0, 5 - floor(log10(abs(value))))
    return f"{value:,.{min(digits, 6)}f}"
