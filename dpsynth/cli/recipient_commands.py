"""The commands of a recipient, who has the public folder of a bundle: verify, query, sample; and keygen.

Invariant: they parse, call and print; what they print goes to standard output as a whole, or not at all.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dpsynth.cli.printing import json_text

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
