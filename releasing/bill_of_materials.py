"""The bill of materials of a wheel: every package of the lock file, with its hashes, as CycloneDX JSON.

    python -m releasing.bill_of_materials dist/dpsynth-0.1.0-py3-none-any.whl

It is written beside the wheel, as ``.cdx.json``, with no time of day and no random number: the same lock file
and the same wheel give the same bytes. The hashes of a package are those of all files that the lock file
allows.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

ROOT = Path(__file__).resolve().parents[1]
_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Pinned:
    """An entry of the lock file.

    Attributes:
        requirement: name, version, and the environments in which it is installed.
        hashes: SHA-256 of each file that may be installed, in hex.
        wanted_by: names of the packages that need it; ``dpsynth`` for those of pyproject.toml.
    """

    requirement: Requirement
    hashes: tuple[str, ...]
    wanted_by: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name as the index writes it."""
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        """The one version that is allowed."""
        (specifier,) = self.requirement.specifier
        return specifier.version


def pinned(lock: str) -> list[Pinned]:
    """The entries of a lock file of uv, in its order."""
    found = []
    for entry in re.findall(r"^[^\s#].*(?:\n[ \t]+.*)*", lock, flags=re.MULTILINE):
        code, _, comment = entry.replace("(pyproject.toml)", "").partition("\n    # via")
        requirement = re.split(r"\s*\\|\s--hash", code, maxsplit=1)[0]
        hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})", code)
        found.append(Pinned(Requirement(requirement), tuple(hashes), tuple(re.findall(r"[\w.\-]+", comment))))
    return found


def bill_of(wheel: Path, lock: str) -> str:
    """The bill of materials of a wheel, as JSON text.

    Args:
        wheel: the wheel's file.
        lock: the text of the lock file.
    """
    name, version, *_ = parse_wheel_filename(wheel.name)
    content = wheel.read_bytes()
    whole = Component(
        name=name,
        version=str(version),
        type=ComponentType.APPLICATION,
        bom_ref=name,
        purl=PackageURL("pypi", name=name, version=str(version)),
        licenses=[LicenseExpression("Apache-2.0")],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=hashlib.sha256(content).hexdigest())],
    )
    entries = pinned(lock)
    parts = [_component(entry) for entry in entries]
    digest = hashlib.sha256(content + lock.encode()).hexdigest()
    bill = Bom(components=parts, serial_number=uuid.uuid5(uuid.NAMESPACE_URL, digest))
    bill.metadata.component = whole
    bill.metadata.timestamp = _NO_TIME
    named = {name: [whole]}
    for entry, part in zip(entries, parts, strict=True):
        named.setdefault(entry.name, []).append(part)
    needs: dict[str, list[Component]] = {}
    for entry, part in zip(entries, parts, strict=True):
        for by in entry.wanted_by:
            needs.setdefault(by, []).append(part)
    for by, components in named.items():
        for component in components:
            bill.register_dependency(component, needs.get(by, []))
    return JsonV1Dot6(bill).output_as_string(indent=1) + "\n"


def _component(entry: Pinned) -> Component:
    marker = entry.requirement.marker
    return Component(
        name=entry.name,
        version=entry.version,
        type=ComponentType.LIBRARY,
        bom_ref=f"{entry.name}=={entry.version}",
        purl=PackageURL("pypi", name=entry.name, version=entry.version),
        external_references=[
            ExternalReference(
                type=ExternalReferenceType.DISTRIBUTION,
                url=XsUri(f"https://pypi.org/project/{entry.name}/{entry.version}/"),
                hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in entry.hashes],
            )
        ],
        properties=[Property(name="environment", value=str(marker))] if marker else [],
    )


def main() -> None:
    """Write the bill of each wheel that is named."""
    parser = argparse.ArgumentParser(description="write the bill of materials of wheels")
    parser.add_argument("wheels", nargs="+", type=Path)
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    for wheel in parser.parse_args().wheels:
        written = wheel.with_suffix(".cdx.json")
        written.write_text(bill_of(wheel, lock), encoding="utf-8")
        print(written)


if __name__ == "__main__":
    main()
