"""The verification of a bundle by a stranger who holds its public folder and this package, and nothing else.

Seven checks: files against their checksums, the manifest against its JSON Schema, statistics rebuilt from the
measurements, views against the synthetic table, the guarantee recomputed from the mechanisms, the verdict
from counts, rows and exam, and the signature. Without a signature, a bundle
that somebody has changed and given new checksums is found only if it contradicts itself.

Invariant: a finding names the file at fault. No damaged or hostile file ends a verification with anything but
findings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsynth.bundle.checksums import (
    CHECKSUMS,
    SIGNATURE,
    UNLISTED,
    checksums_text,
    public_files,
    sha256_of,
)
from dpsynth.bundle.manifest import manifest_text
from dpsynth.bundle.manifest_schema import manifest_schema
from dpsynth.bundle.recipient.bundle import (
    MANIFEST,
    Bundle,
    BundleRefused,
    check_format,
    no_bundle,
    read_manifest,
)
from dpsynth.bundle.recipient.rebuilt_statistics import rebuilt
from dpsynth.bundle.recipient.recomputed_guarantee import guarantee_findings
from dpsynth.bundle.recipient.recomputed_verdict import verdict_findings
from dpsynth.bundle.signature import is_public_key, signer_of
from dpsynth.errors import DpsynthError
from dpsynth.wing import Point

_LONGEST = 1 << 24
CHECKED_VIEWS: Point[Callable[[Bundle], tuple[list[str], list[tuple[str, str]]]]] = Point("checked views")
"""What was found to be right of the views of a bundle, and faults, each a file and a sentence."""


@dataclass(frozen=True)
class Finding:
    """A fault of a bundle: the file at fault, and a sentence on it."""

    file: str
    sentence: str


@dataclass(frozen=True)
class Verification:
    """The result of a verification.

    Attributes:
        findings: what is wrong; empty for a good bundle.
        proven: sentences on what was found to be right.
        cautions: sentences on what can't be proven.
        signed_by: the public key of a valid signature; None without one.
    """

    findings: tuple[Finding, ...]
    proven: tuple[str, ...]
    cautions: tuple[str, ...]
    signed_by: str | None

    def to_json(self) -> dict[str, object]:
        """The verification as JSON values."""
        return {
            "good": self.good,
            "signed_by": self.signed_by,
            "findings": [{"file": f.file, "sentence": f.sentence} for f in self.findings],
            "proven": list(self.proven),
            "cautions": list(self.cautions),
        }

    @property
    def good(self) -> bool:
        """True if nothing is wrong."""
        return not self.findings


def verified(path: str | Path, key: str | None = None) -> Verification:
    """The verification of a bundle.

    Args:
        path: the folder of a release, or its ``public`` folder.
        key: the public key that must have signed it, known from elsewhere; None takes any key, or none.

    Raises:
        BundleRefused: there is no bundle, or one of another format; or ``key`` is no public key.
    """
    if key is not None and not is_public_key(key):
        raise BundleRefused(f"{key!r} is no public key: it must be ed25519: and 64 hexadecimal digits.")
    given = Path(path)
    folder = next((f for f in (given / "public", given) if _is_bundle(f)), None)
    if folder is None:
        raise no_bundle(given)
    findings = list(_changed(folder))
    signed_by, of_signature = _signature(folder, key)
    findings += of_signature
    if findings:
        _refuse_other_format(folder)
        return Verification(tuple(findings), (), (), signed_by)
    bundle = Bundle(folder, read_manifest(folder))
    check_format(bundle.manifest, folder)
    try:
        findings += _manifest_findings(bundle)
        if findings:
            return Verification(tuple(findings), (), (), signed_by)
        proven = [f"{len(public_files(folder))} files are as they were when their checksums were written."]
        proven += [f"{MANIFEST} keeps to its schema."]
        if bundle.manifest["signed_by"] not in (None, signed_by):
            findings.append(Finding(MANIFEST, "names another key than the one that signed the bundle."))
        guarantee, of_guarantee = guarantee_findings(bundle)
        statistics, of_statistics = rebuilt(bundle)
        views, of_views = _views(bundle)
        verdict, of_verdict = verdict_findings(bundle)
    except DpsynthError as error:
        return Verification((Finding(_named(folder, str(error)), str(error)),), (), (), signed_by)
    findings += [Finding(*fault) for fault in (*of_guarantee, *of_statistics, *of_views, *of_verdict)]
    findings += list(_unreadable(bundle))
    if key is not None:
        proven.append(f"The checksums are signed by {signed_by}, the key that was given.")
    caution = () if key is not None else (_caution(signed_by),)
    return Verification(
        tuple(findings), (*proven, *guarantee, *statistics, *views, *verdict), caution, signed_by
    )


def _views(bundle: Bundle) -> tuple[list[str], list[tuple[str, str]]]:
    if bundle.manifest.get("views") is None:
        return [], []
    check = CHECKED_VIEWS.filled()
    if check is None:
        return [], [(MANIFEST, "lists views, and the wing proof, which checks them, is not installed here.")]
    return check(bundle)


def _is_bundle(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (MANIFEST, CHECKSUMS))


def _refuse_other_format(folder: Path) -> None:
    """Refuse a bundle of an earlier format by name, in place of what it lacks."""
    try:
        manifest = read_manifest(folder)
    except BundleRefused:
        return
    if isinstance(manifest.get("format"), str) and not (folder / CHECKSUMS).exists():
        check_format(manifest, folder)


def _changed(folder: Path) -> Iterator[Finding]:
    """Files that are not what the file of checksums says."""
    try:
        with (folder / CHECKSUMS).open("rb") as file:
            written = file.read(_LONGEST).decode("ascii")
    except (OSError, UnicodeDecodeError):
        yield Finding(CHECKSUMS, "is missing or can't be read.")
        return
    files = [name for name in public_files(folder) if name not in UNLISTED]
    listed: dict[str, str] = {}
    for line in written.splitlines():
        digest, _, name = line.partition("  ")
        listed[name] = digest
    for name in sorted(listed.keys() - set(files)):
        yield Finding(name, f"is named in {CHECKSUMS} and is not there.")
    found: dict[str, str] = {}
    for name in files:
        try:
            found[name] = sha256_of(folder / name)
        except OSError:
            yield Finding(name, "can't be read.")
            return
        if name not in listed:
            yield Finding(name, f"is not named in {CHECKSUMS}.")
        elif found[name] != listed[name]:
            yield Finding(name, f"is not what {CHECKSUMS} says.")
    if found.keys() == listed.keys() and written != checksums_text(found):
        yield Finding(CHECKSUMS, "is not as dpsynth writes it.")


def _signature(folder: Path, key: str | None) -> tuple[str | None, list[Finding]]:
    """The public key that signed the checksums, and what is wrong with the signature."""
    path = folder / SIGNATURE
    if not path.is_file():
        try:
            promised = read_manifest(folder).get("signed_by")
        except BundleRefused:
            promised = None
        if promised is not None or key is not None:
            return None, [Finding(SIGNATURE, "is missing: the bundle has no signature.")]
        return None, []
    try:
        content = (folder / CHECKSUMS).read_bytes()
        with path.open("rb") as file:
            signer = signer_of(content, file.read(_LONGEST).decode("ascii", "replace"))
    except OSError:
        signer = None
    if signer is None:
        return None, [Finding(SIGNATURE, f"is no signature of {CHECKSUMS}.")]
    if key is not None and signer != key:
        return signer, [Finding(SIGNATURE, f"is by the key {signer}, not by {key}.")]
    return signer, []


def _caution(signed_by: str | None) -> str:
    """The trust that is left without a key that is known from elsewhere."""
    if signed_by is None:
        return (
            "There is no signature: somebody who changed files and their checksums together, without "
            "contradicting the bundle, is not found."
        )
    return (
        f"The checksums are signed by {signed_by}. Compare it with the key that the publisher has made known "
        "elsewhere, or give that one with --key."
    )


def _manifest_findings(bundle: Bundle) -> Iterator[Finding]:
    """Faults of the manifest: against its schema, and against the files that are there."""
    from jsonschema import Draft202012Validator

    written = (bundle.folder / MANIFEST).read_text(encoding="utf-8")
    errors = Draft202012Validator(manifest_schema()).iter_errors(bundle.manifest)
    faults = sorted(f"{'.'.join(map(str, e.absolute_path)) or 'it'}: {e.message[:200]}" for e in errors)
    for words in faults[:10]:
        yield Finding(MANIFEST, f"doesn't keep to its schema: {words}.")
    if faults:
        return
    if manifest_text(bundle.manifest) != written:
        yield Finding(MANIFEST, "is not as dpsynth writes it.")
    files = {name for name in public_files(bundle.folder) if name not in UNLISTED and name != MANIFEST}
    listed: Mapping[str, Any] = bundle.manifest["files"]
    for name in sorted(files ^ listed.keys()):
        yield Finding(MANIFEST, f"and the folder disagree on the file {name}.")
    for name in sorted(files & listed.keys()):
        path = bundle.folder / name
        facts = {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
        if facts != listed[name]:
            yield Finding(name, f"is not what {MANIFEST} says.")


def _unreadable(bundle: Bundle) -> Iterator[Finding]:
    """Files that a recipient's commands can't read."""
    parts: Mapping[str, Callable[[], object]] = {
        "model.npz": lambda: bundle.model,
        "rows.npz": lambda: bundle.rows,
        "synthetic": lambda: _check_synthetic(bundle),
    }
    for name, part in parts.items():
        try:
            part()
        except DpsynthError as error:
            yield Finding(name, str(error))


def _check_synthetic(bundle: Bundle) -> None:
    frame = bundle.synthetic
    names = [part.name for part in bundle.layout.parts]
    if len(frame) != bundle.manifest["synthetic_rows"] or not set(names) <= set(map(str, frame.columns)):
        raise DpsynthError("The synthetic table has other rows or columns than the manifest says.")


def _named(folder: Path, sentence: str) -> str:
    """The file of a bundle that a sentence names."""
    return next((name for name in public_files(folder) if name in sentence), MANIFEST)
