"""Known vulnerabilities of the pinned packages, by pip-audit, and plain words where nobody could be asked.

    python -m releasing.advisories [--lock FILE]

pip-audit says "No known vulnerabilities found", and exits with 0, also where the index knows of no advisories
at all and every package was skipped. Here the exit code is 0 only if each package was looked up and none is
affected; 1 if one is affected; 2 if some could not be looked up.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from releasing.bill_of_materials import ROOT

_COMMAND = ["-m", "pip_audit", "--disable-pip", "--no-deps", "--progress-spinner", "off", "--format", "json"]


class Looked(TypedDict, total=False):
    """What pip-audit says of a package."""

    name: str
    version: str
    skip_reason: str
    vulns: Sequence[Mapping[str, object]]


def verdict(packages: Sequence[Looked]) -> tuple[int, list[str]]:
    """The exit code, and the lines that say why."""
    lines = []
    for package in packages:
        for found in package.get("vulns", ()):
            fixed = found.get("fix_versions") or "no version"
            lines.append(f"{package['name']} {package.get('version')}: {found['id']}, mended in {fixed}")
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    looked = len(packages) - len(skipped)
    if not looked:
        lines.append("No index of advisories is to be had here: nothing was checked.")
    elif skipped:
        lines.append(f"{len(skipped)} packages could not be looked up: {', '.join(skipped)}.")
    affected = any(package.get("vulns") for package in packages)
    lines.append(f"{looked} of {len(packages)} pinned packages were looked up.")
    return 1 if affected else 2 if skipped or not looked else 0, lines


def main() -> int:
    """Ask, and print."""
    parser = argparse.ArgumentParser(description="known vulnerabilities of the pinned packages")
    parser.add_argument("--lock", type=Path, default=ROOT / "requirements.lock")
    lock = parser.parse_args().lock
    command = [sys.executable, *_COMMAND, "-r", str(lock)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        said = done.stderr.strip().splitlines()
        print(said[-1] if said else "pip-audit said nothing.")
        packages = []
    code, lines = verdict(packages)
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main())
