"""``dpsynth manifest``: a bundle's manifest, as it is or as an entry of the deployments registry."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsynth.cli.printing import json_text
from dpsynth.cli.report_command import public_folder


def manifest(
    bundle: Annotated[Path, typer.Argument(help="A release's folder, or its folder public/ alone.")],
    registry: Annotated[
        bool,
        typer.Option(
            "--registry",
            help="Print it as an entry of the Differential Privacy Deployments Registry, with NIST SP "
            "800-226.",
        ),
    ] = False,
) -> None:
    """Print a release's manifest as JSON."""
    from dpsynth.publish.registry import registry_entry
    from dpsynth.publish.report_source import damaged, read_manifest

    public = public_folder(bundle)
    found = read_manifest(public)
    if registry:
        try:
            found = registry_entry(found)
        except (LookupError, TypeError, ValueError, AttributeError):
            raise damaged(public) from None
    print(json_text(found))
