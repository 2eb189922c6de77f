"""``dpsynth manifest``: a bundle's manifest, as it is or as an entry of the deployments registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from dpsynth.cli.printing import json_text
from dpsynth.cli.report_command import public_folder
from dpsynth.errors import ConfigError
from dpsynth.wing import Point

REGISTRY_ENTRY = Point[Callable[[Mapping[str, Any]], dict[str, object]]]("registry entry")
"""From a manifest to an entry of the Differential Privacy Deployments Registry."""


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
    from dpsynth.bundle.report_source import damaged, read_manifest

    public = public_folder(bundle)
    found = read_manifest(public)
    if registry:
        entry = REGISTRY_ENTRY.filled()
        if entry is None:
            raise ConfigError("--registry needs the wing proof, which is not installed here.")
        try:
            found = entry(found)
        except (LookupError, TypeError, ValueError, AttributeError):
            raise damaged(public) from None
    print(json_text(found))
