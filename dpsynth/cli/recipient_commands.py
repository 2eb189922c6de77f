"""Commands about a bundle's public folder: verify, query, sample, report, manifest; and keygen.

Invariant: they parse, call and print; what they print goes to standard output as a whole, or not at all. A
report in a public folder is never replaced by one that its manifest's checksum doesn't fit.
"""

from __future__ import annotations

import hashlib
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsynth.cli.printing import json_text, write_page
from dpsynth.errors import ConfigError, spelt_out

if TYPE_CHECKING:
    from dpsynth.bundle.recipient import Bundle


def report(
    bundle: Annotated[Path, typer.Argument(help="A release's folder, or its folder public/ alone.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to write it; left out: report.html in the public folder.")
    ] = None,
) -> None:
    """Write a release's report anew, from its public files alone."""
    from jinja2 import TemplateError

    from dpsynth.bundle.pages import report_html
    from dpsynth.bundle.recipient.opened import public_folder
    from dpsynth.bundle.report_source import REPORT, damaged, read_source

    public = public_folder(bundle)
    source = read_source(public)
    try:
        page = report_html(source).encode("utf-8")
    except (ValueError, LookupError, TypeError, AttributeError, TemplateError):
        raise damaged(public) from None
    if out is None:
        out = public / REPORT
        listed = source.manifest.files.get(REPORT)
        if listed is not None and listed.sha256 != hashlib.sha256(page).hexdigest():
            raise ConfigError(
                "The report that this version of dpsynth makes is not the one whose checksum stands in "
                f"{public / 'manifest.json'}: another version made the release, or a file of it was changed. "
                "Write it elsewhere with --out FILE; the one in the bundle is left as it is."
            )
    write_page(out, page)


def manifest(
    bundle: Annotated[Path, typer.Argument(help="A release's folder, or its folder public/ alone.")],
) -> None:
    """Print a release's manifest as JSON."""
    from dpsynth.bundle.recipient.opened import public_folder
    from dpsynth.bundle.report_source import stated_values

    print(json_text(stated_values(public_folder(bundle))))


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
    notices: Annotated[
        str | None,
        typer.Option(
            help="The owner's notices.json, or its URL; left out: the one beside the bundle, if any."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check a bundle: files, manifest, statistics, guarantee, signature. The exit code is 0 if it is good."""
    from dpsynth.bundle.recipient.verification import verified

    found = verified(bundle, key, notices)
    if as_json:
        print(json_text(found.to_json()))
    else:
        for notice in found.notices:
            print(notice.sentence)
        for sentence in found.proven:
            print(f"✓ {sentence}")
        for sentence in found.cautions:
            print(f"- {sentence}")
        for finding in found.findings:
            print(f"{spelt_out(finding.file)}: {finding.sentence}")
        withdrawn = " It is WITHDRAWN." if found.withdrawn else ""
        print(f"The bundle is {'good' if found.good else 'NOT good'}.{withdrawn}")
    if not found.good or found.withdrawn:
        sys.stdout.flush()
        raise typer.Exit(1)


@app.command()
def keygen(file: Annotated[Path, typer.Argument(help="The new file of the private key.")]) -> None:
    """Make a key that signs bundles: a private file, and a public key to make known."""
    from dpsynth.bundle.signature import make_key

    key = make_key(file)
    print(f"{file} holds the private key. Whoever has it can sign in your name; keep it off shared disks.")
    print("To sign bundles, write in the config: publish: {sign: " + str(file) + "}")
    print("The public key, to be made known where recipients look, apart from the bundles:")
    print(key.public)


def opened_bundle(bundle: Path, *, tell: bool = True) -> Bundle:
    """A bundle; its notices go to standard error, before anything else."""
    from dpsynth.bundle.recipient import open_bundle

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opened = open_bundle(bundle)
    for notice in opened.notices if tell else ():
        print(notice.sentence, file=sys.stderr)
    return opened


@app.command()
def query(
    bundle: Folder,
    question: Annotated[str, typer.Argument(help='Such as "mean(cost) by sex where age >= 65".')],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Answer a question from what a bundle publishes: estimate, interval and basis; it costs no privacy."""
    if as_json and as_csv:
        raise ConfigError("--json and --csv contradict each other. Give one of them, or none.")
    opened = opened_bundle(bundle, tell=as_json or as_csv)
    answer = opened.query(question)
    if as_json:
        print(json_text(answer.to_json()))
    elif as_csv:
        print(answer.to_csv(), end="")
    else:
        print(answer)


@app.command()
def sample(
    bundle: Folder,
    rows: Annotated[int, typer.Option(min=1, help="Number of rows.")],
    given: Annotated[
        list[str] | None,
        typer.Option(
            help="What each row must have: sex=F, or a condition such as 'age >= 65'; of linked tables, "
            "'count(persons.age < 18) >= 2'. May be repeated."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A new file, .csv or .parquet, or of linked tables a new folder; left out: CSV on standard "
            "output."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Makes the rows repeatable.")] = None,
) -> None:
    """Draw more synthetic rows from a bundle, refined like the released ones; it costs no privacy."""
    from dpsynth.bundle.recipient.more_rows import more_rows, print_rows, write_rows
    from dpsynth.pipeline.steps import showing

    opened = opened_bundle(bundle)
    whole = opened.facts.tables is not None and out is not None and not out.suffix
    tables = None if whole else more_rows(opened, rows, given, seed)
    if opened.facts.terms:
        print(f"Terms of use: {spelt_out(opened.facts.terms)}", file=sys.stderr)
    if tables is None:
        with showing("Sample"):
            drawn = opened.sample_tables(rows, given=given, seed=seed, out=out)
        print(f"{', '.join(f'{len(own):,} rows of {name}' for name, own in drawn.items())} in {out}.")
    elif out is None:
        print_rows(tables, opened.rows.layout)
    else:
        print(f"{write_rows(tables, opened.rows.layout, out):,} rows in {out}.")
