"""``dpsynth report``: the report of a bundle, made anew from its public folder alone.

Invariant: a report in a public folder is never replaced by one that its manifest's checksum doesn't fit.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import typer

from dpsynth.errors import ConfigError


def report(
    bundle: Annotated[Path, typer.Argument(help="A release's folder, or its folder public/ alone.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to write it; left out: report.html in the public folder.")
    ] = None,
) -> None:
    """Write a release's report anew, from its public files alone."""
    from jinja2 import TemplateError

    from dpsynth.bundle.pages import report_html
    from dpsynth.bundle.report_source import REPORT, damaged, read_source

    public = public_folder(bundle)
    source = read_source(public)
    try:
        page = report_html(source).encode("utf-8")
    except (ValueError, LookupError, TypeError, AttributeError, TemplateError):
        raise damaged(public) from None
    if out is None:
        out = public / REPORT
        listed = source.checksum(REPORT)
        if listed is not None and listed != hashlib.sha256(page).hexdigest():
            raise ConfigError(
                "The report that this version of dpsynth makes is not the one whose checksum stands in "
                f"{public / 'manifest.json'}: another version made the release, or a file of it was changed. "
                "Write it elsewhere with --out FILE; the one in the bundle is left as it is."
            )
    try:
        partial = out.with_name(f".{out.name}.partial")
        partial.write_bytes(page)
        partial.replace(out)
    except OSError as error:
        raise ConfigError(
            f"{out} can't be written: {error.strerror}. Name another file with --out."
        ) from None
    print(out)


def public_folder(bundle: Path) -> Path:
    """The public folder of a bundle, which may be named itself."""
    return bundle / "public" if (bundle / "public").is_dir() else bundle
