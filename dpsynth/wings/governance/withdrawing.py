"""The withdrawal of a release: a signed row of the ledger, and the file beside the bundle that follows.

Invariant: the row comes first. The file has what the ledger has of the release, so that whoever repeats a
command that was killed between the two gets the same file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dpsynth.bundle.signature import SigningKey
from dpsynth.errors import ConfigError, NotApproved
from dpsynth.ledger.ledger import Ledger
from dpsynth.ledger.refusals import check_reason
from dpsynth.wing import Point
from dpsynth.wings.governance.asking import governed_by
from dpsynth.wings.governance.notices import bundles_in, notice, write_notices

PAGE_OF_RELEASES: Point[Callable[[Path], None]] = Point("page of releases")
"""The page of all releases of a name, which says which are withdrawn."""


def withdraw(
    ledger: Ledger,
    release_id: str,
    kind: str,
    reason: str,
    replaced_by: str | None,
    key: SigningKey,
    outputs: Path,
) -> Path:
    """Withdraw a release, or note an error of it; the file of its notices.

    Args:
        kind: "withdrawn" or "erratum".
        outputs: the folder of bundles.

    Raises:
        NotApproved: the policy doesn't let the key, or the release was withdrawn already.
        ConfigError: there is no such release, no reason, or no bundle in the folder.
    """
    said = check_reason(reason, "what a bundle is said to be")
    with ledger.changing() as page:
        entry = page.release(release_id)
        if entry is None or entry.state != "closed":
            raise ConfigError(f"The ledger {ledger.name} has no finished release {release_id}.")
        folder = outputs / entry.release / release_id
        if not folder.is_dir():
            raise ConfigError(
                f"There is no bundle of release {release_id} in {outputs}, where its notice would lie. Name "
                "the folder for bundles with --out."
            )
        other = None if replaced_by is None else page.release(replaced_by)
        if replaced_by is not None and (other is None or other.state != "closed" or other is entry):
            raise ConfigError(
                f"--replaced-by {replaced_by}: the ledger {ledger.name} has no other finished release of "
                "that name."
            )
        found = governed_by(page)
        before = [n.content for n in found.notices.get(release_id, ())]
        if not any(_same(n, kind, said, replaced_by) for n in before):
            made = notice(
                key,
                {
                    "kind": kind,
                    "release": entry.release,
                    "release_id": release_id,
                    "date": page.day.isoformat(),
                    "reason": said,
                    "replaced_by": replaced_by,
                    "bundles": bundles_in(folder),
                },
            )
            if (why := found.unwithdrawable(release_id, made, key.public, page.release)) is not None:
                raise NotApproved(f"Release {release_id} can't be withdrawn: {why}.")
            page.add("withdrawn", entry.dataset, None, made)
        notices = [n.content for n in governed_by(page).notices[release_id]]
    try:
        path = write_notices(folder, notices)
        page_of_releases = PAGE_OF_RELEASES.filled()
        if page_of_releases is not None:
            page_of_releases(folder.parent)
    except OSError as error:
        raise ConfigError(
            f"Release {release_id} is withdrawn in the ledger, and its notice can't be written to {folder}: "
            f"{error.strerror}. Give the command once more."
        ) from None
    return path


def _same(one: object, kind: str, reason: str, replaced_by: str | None) -> bool:
    assert isinstance(one, dict)
    return (one["kind"], one["reason"], one["replaced_by"]) == (kind, reason, replaced_by)
