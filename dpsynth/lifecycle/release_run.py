"""A release under way: how it begins, is found again, and ends, on disk and in the ledger.

Invariant: from the moment the table may be asked anything, the ledger holds a reservation of the
whole budget; it is let go only when the journal shows that nothing was asked. Nothing is reserved, nor
written, for a table that can't be read. And an occasion (a period, or a tick of the schedule) is
released once: who comes second is shown what is there.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth.accounting import events
from dpsynth.accounting.accountants import amount_of
from dpsynth.accounting.amount import Amount
from dpsynth.accounting.cost import NOTHING, Cost, spent
from dpsynth.accounting.guarantee import Guarantee
from dpsynth.accounting.measures import measure_named
from dpsynth.config import Spec
from dpsynth.curator.journal import Journal
from dpsynth.domain.slices import Slice
from dpsynth.errors import BudgetRefused, ConfigError, DpsynthError, Interrupted, SourceError
from dpsynth.evidence.earlier_releases import earlier_releases
from dpsynth.evidence.reused import Reused
from dpsynth.ledger.balance import Balance, ReleaseEntry, Reservation
from dpsynth.plan.occasion import Occasion, occasion_of
from dpsynth.plan.plan import Plan
from dpsynth.plan.reservation import reservation_of

if TYPE_CHECKING:
    from dpsynth.ledger.ledger import Ledger

_JOURNAL = Path("private", "journal.jsonl")
_UNCHARGED = "Nothing was charged."

Tell = Callable[[str], None]
"""Takes a public sentence for whoever runs the release."""

Accept = Callable[[Occasion], None]
"""Raises SourceError unless the table that a release is about can be read."""


def silently(sentence: str) -> None:
    """Tell nobody."""
    del sentence


def unseen(occasion: Occasion) -> None:
    """Accept a table without a look."""
    del occasion


@dataclass
class Work:
    """One release under way: where it stands on disk and in the ledger.

    Attributes:
        release_id: names it for ever.
        occasion: what it is the release of.
        final, partial: its folder when it is whole, and until then.
        ledger: holds its reservation.
        journal: holds what was asked.
    """

    release_id: str
    occasion: Occasion
    final: Path
    partial: Path
    ledger: Ledger
    journal: Journal

    @property
    def date(self) -> str:
        """The ISO date on which the release began."""
        return str(self.journal.header["date"])

    @property
    def seed(self) -> int:
        """Of post-processing; a resumed release draws the same rows again."""
        return int(str(self.journal.header["seed"]))

    @property
    def reused(self) -> Reused | None:
        """The releases whose answers are evidence; None if the config asks for none."""
        return Reused.from_journal(self.journal.header["reused"])

    @property
    def public(self) -> str | None:
        """SHA-256 of the public table that is evidence; None without one."""
        found = self.journal.header.get("public")
        return None if found is None else str(found)

    @property
    def key(self) -> bytes:
        """The secret that decides which rows of a person are kept."""
        return bytes.fromhex(str(self.journal.header["key"]))

    @property
    def published(self) -> bool:
        """Whether the bundle is whole and in place."""
        return self.final.exists()

    def __enter__(self) -> Work:
        """Itself: what follows is the release."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Decide what becomes of the reservation when a step has failed."""
        asked = bool(self.journal.entries)
        self.journal.close()
        if error is None or (self.journal.sealed and isinstance(error, Exception)):
            return
        if not asked and isinstance(error, Exception):
            with suppress(DpsynthError):
                self.ledger.abandon(self.release_id, NOTHING, [], "nothing was asked of the table")
                _discard(self.partial)
                if isinstance(error, SourceError):
                    error.args = (f"{error} {_UNCHARGED}",)
                return
        rest = f"Its budget stays reserved; finish it with: --resume {self.release_id}"
        if not isinstance(error, Exception):
            raise Interrupted(f"Release {self.release_id} was interrupted. {rest}") from None
        if isinstance(error, DpsynthError):
            error.args = (f"{error} Release {self.release_id} is not finished. {rest}",)


def begin(
    spec: Spec,
    plan: Plan,
    outputs: Path,
    resume: str | None = None,
    period: str | None = None,
    tell: Tell = silently,
    public: str | None = None,
    accept: Accept = unseen,
) -> Work:
    """Accept the source, start or find the journal, then reserve the whole budget in the ledger.

    The journal comes first: a reservation without one means that it was lost, and then
    nobody can say what was drawn. Before both, a new release that the ledger would take has its
    source accepted, so that no charge is ever made for one that is broken.

    Args:
        spec: the checked config.
        plan: how it will spend.
        outputs: folder under which ``<release>/<release id>`` appears.
        resume: id of a release to finish.
        period: label of the slice to release; left out: the last one that has ended.
        tell: is told what was found.
        public: SHA-256 of the public table that is evidence, if there is one.
        accept: looks whether the table can be read.

    Raises:
        ConfigError: the config, the period or the ledger can't be used.
        BudgetRefused: the ledger refuses.
        SourceError: the table can't be read.
        Interrupted: the ledger went away before it said whether it has the reservation.
    """
    from dpsynth.ledger.ledger import Ledger

    now = datetime.now(UTC)
    ledger = Ledger(spec.ledger.url, spec.ledger.head)
    account = ledger.balance(spec.ledger.dataset)
    if (last := ledger.clock_behind()) is not None:
        tell(
            f"The clock says {now.date()}, and the ledger's last entry is of {last}: what is entered now is "
            "dated by the later. Check the clock; periods and schedules go by it."
        )
    folder = outputs / spec.release
    if account is not None:
        _tell_of_the_unfinished(account.releases, spec.release, resume, tell)
    if resume is not None:
        journal = _found(spec, folder, resume)
        occasion = _recorded(journal)
        if period is not None and period != occasion.label:
            raise ConfigError(
                f"Release {resume} is that of {occasion.label or 'the whole table'}, so it can't be finished "
                f"with --period {period}. Leave out --period."
            )
        release_id = resume
    else:
        occasion = occasion_of(spec, now, period)
        release_id = f"{now:%Y%m%d}-{secrets.token_hex(4)}"
        if ledger.foreseen(reservation_of(spec, plan, occasion, release_id)) is None:
            try:
                accept(occasion)
            except SourceError as error:
                raise SourceError(f"{error} {_UNCHARGED}") from None
        reused = _reused(spec, plan, occasion, account, outputs, tell)
        with _alone_in(folder):
            _clear(folder, ledger, tell)
            journal = _started(spec, plan, occasion, reused, public, folder, release_id, now, ledger.name)
    try:
        entry = _reserved(ledger, reservation_of(spec, plan, occasion, release_id))
        if entry.release_id != release_id:
            journal.close()
            _discard(partial_of(folder, release_id))
            journal = _shown_again(spec, folder, entry, tell)
    except (BudgetRefused, ConfigError):
        journal.close()
        if resume is None:
            _discard(partial_of(folder, release_id))
        raise
    journal.sealed = entry.state == "closed"
    name = entry.release_id
    return Work(name, occasion, folder / name, partial_of(folder, name), ledger, journal)


def settle(work: Work, plan: Plan, guarantee: Guarantee) -> None:
    """Close the release in the ledger at what its journal adds up to.

    Raises:
        Interrupted: the ledger can't be reached; the bundle is there, and resuming settles.
    """
    recorded = [e.event for e in work.journal.entries]
    delta = amount_of(recorded, plan.measure, plan.delta).delta
    amount = Amount(min(Fraction(guarantee.epsilon), plan.epsilon), delta)
    try:
        work.ledger.settle(work.release_id, spent(recorded, amount), [events.to_json(e) for e in recorded])
    except DpsynthError as error:
        if isinstance(error.__cause__, ConfigError):
            raise Interrupted(f"{error} The bundle is whole and stands in {work.final}.") from None
        raise


def spent_by(path: Path, release_id: str) -> tuple[Cost, list[dict[str, object]]]:
    """What the charges in a release's journal come to, and its events.

    Raises:
        ConfigError: the file can't be read, or is another release's, which would undercharge this one.
        DpsynthError: it is damaged, or its release is running.
    """
    try:
        journal = Journal.open(path)
    except OSError as error:
        raise ConfigError(f"The journal {path} can't be read: {error.strerror}.") from None
    journal.close()
    if journal.header["id"] != release_id:
        raise ConfigError(
            f"{path} is not the journal of release {release_id}. Name its own, or leave out --journal and "
            "--config: then it is charged all that it reserved."
        )
    terms = journal.header["terms"]
    assert isinstance(terms, Mapping)
    found = [e.event for e in journal.entries]
    measure = measure_named(str(terms["measure"]))
    delta = Fraction(str(terms["delta"]))
    told = amount_of(found, measure, delta or None)
    epsilon = min(told.epsilon, Fraction(str(terms["epsilon"])))
    amount = Amount(epsilon, told.delta) if found else Amount()
    return spent(found, amount), [events.to_json(e) for e in found]


def _reused(
    spec: Spec, plan: Plan, occasion: Occasion, account: Balance | None, outputs: Path, tell: Tell
) -> Reused | None:
    """The earlier releases that serve as evidence, as they are now."""
    same, earlier = spec.reuse.same_period, spec.reuse.earlier_periods
    if not (same or earlier):
        return None
    found, left_out = earlier_releases(
        account,
        Amount(plan.epsilon, plan.spent_delta),
        occasion.part,
        spec.table_columns(),
        outputs,
        same_period=same,
        earlier_periods=earlier,
    )
    for sentence in left_out:
        tell(sentence)
    return found


def _started(
    spec: Spec,
    plan: Plan,
    occasion: Occasion,
    reused: Reused | None,
    public: str | None,
    folder: Path,
    release_id: str,
    now: datetime,
    ledger: str,
) -> Journal:
    part = occasion.part
    header: dict[str, object] = {
        "release": spec.release,
        "id": release_id,
        "ledger": ledger,
        "spec": spec.fingerprint(),
        "terms": {
            "measure": plan.measure.name,
            "epsilon": str(plan.epsilon),
            "delta": str(plan.spent_delta),
        },
        "date": now.date().isoformat(),
        "occasion": occasion.label,
        "part": None if part is None else part.to_json(),
        "reused": None if reused is None else reused.to_journal(),
        "public": public,
        "seed": secrets.randbits(64) if spec.sample.seed is None else spec.sample.seed,
        "key": secrets.token_hex(32),
    }
    partial = partial_of(folder, release_id)
    try:
        return Journal.create(partial / _JOURNAL, header)
    except OSError:
        _discard(partial)
        raise


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Nobody else begins a release in a folder, or clears it, while this lasts."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise ConfigError(
            f"The folder for bundles {folder} can't be made: {error.strerror}. Give another with --out."
        ) from None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _clear(folder: Path, ledger: Ledger, tell: Tell) -> None:
    """Remove what runs left that died before they had reserved, and tell of all that is not reserved."""
    for partial in sorted(folder.glob(".*.partial")):
        release_id = partial.name[1:].removesuffix(".partial")
        path = partial / _JOURNAL
        if ledger.release(release_id) is not None:
            continue
        # Whoever makes a journal holds the folder: one without a whole line is nobody's.
        if not path.exists() or b"\n" not in path.read_bytes():
            shutil.rmtree(partial, ignore_errors=True)
        else:
            try:
                journal = Journal.open(path)
            except DpsynthError:
                # It is running, or is damaged.
                continue
            if journal.header["ledger"] != ledger.name:
                journal.close()
                continue
            if journal.entries:
                journal.close()
                tell(
                    f"{partial} has answers of release {release_id}, and the ledger {ledger.name} knows of "
                    "no such release: it was restored from an older copy, or begun anew."
                )
                continue
            shutil.rmtree(partial, ignore_errors=True)
            journal.close()
        tell(f"{partial} was left by a run that died before it had reserved or asked anything: removed.")


def _found(spec: Spec, folder: Path, release_id: str) -> Journal:
    """The journal of a release that was begun, checked against the spec."""
    if not release_id.replace("-", "").isalnum():
        raise ConfigError(f"'{release_id}' is no release id: one looks like 20300131-0a1b2c3d.")
    path = journal_of(folder, release_id)
    if path is None:
        raise ConfigError(
            f"There is no release {release_id} to resume under {folder}: no journal is there. If it "
            f"was deleted, what the release reserved stays charged; {_given_up(release_id)}"
        )
    journal = Journal.open(path)
    if journal.header["id"] != release_id:
        journal.close()
        raise ConfigError(
            f"{path} is the journal of release {journal.header['id']}, and not of {release_id}. Bring its "
            "own back, or resume the other in its own folder."
        )
    if journal.header["spec"] != spec.fingerprint():
        journal.close()
        raise ConfigError(
            f"The config has changed since release {release_id} began, so its answers can't be used with it. "
            "Resume with the config that it began with, or start a new release."
        )
    return journal


def partial_of(folder: Path, release_id: str) -> Path:
    """Where a release stands until it is whole."""
    return folder / f".{release_id}.partial"


def journal_of(folder: Path, release_id: str) -> Path | None:
    """The journal of a release that is whole or under way, if there is one."""
    places = (place / _JOURNAL for place in (folder / release_id, partial_of(folder, release_id)))
    return next((path for path in places if path.is_file()), None)


def _recorded(journal: Journal) -> Occasion:
    label, part = journal.header["occasion"], journal.header["part"]
    return Occasion(
        None if label is None else str(label), Slice.from_json(part) if isinstance(part, Mapping) else None
    )


def _reserved(ledger: Ledger, wanted: Reservation) -> ReleaseEntry:
    """Reserve; a ledger that went away before it answered is asked once more what it has."""
    try:
        return ledger.reserve(wanted)
    except ConfigError as error:
        try:
            known = ledger.release(wanted.release_id)
        except ConfigError:
            raise Interrupted(
                f"{error} Whether release {wanted.release_id} was reserved can't be told until the ledger is "
                f"back. Nothing was read. Go on with: --resume {wanted.release_id}"
            ) from None
        if known is None or known.state != "reserved":
            raise
        return known


def _shown_again(spec: Spec, folder: Path, entry: ReleaseEntry, tell: Tell) -> Journal:
    """The journal of the release that an occasion has had already."""
    what = f"{entry.occasion} of release '{spec.release}'"
    begun = "was released" if entry.state == "closed" else "was begun"
    if entry.spec != spec.whole_fingerprint():
        raise ConfigError(
            f"{what} {begun} on {entry.created} as {entry.release_id}, with another config, and a period is "
            "released once. Go back to that config; or give this one another name with the key release, and "
            "it is released and charged anew."
        )
    if journal_of(folder, entry.release_id) is None:
        more = (
            "Copy it back from where it was released"
            if entry.state == "closed"
            else f"Run where it was begun, or {_given_up(entry.release_id)}"
        )
        raise ConfigError(
            f"{what} {begun} on {entry.created} as {entry.release_id}, and a period is released once; but "
            f"{folder} has nothing of it. {more}."
        )
    if entry.state == "closed":
        tell(f"{what} was released on {entry.created}: its bundle is shown again, and nothing is charged.")
    else:
        tell(f"{what} was begun on {entry.created} as {entry.release_id} and not finished: it goes on.")
    return _found(spec, folder, entry.release_id)


def _tell_of_the_unfinished(
    releases: Sequence[ReleaseEntry], name: str, resume: str | None, tell: Tell
) -> None:
    left = [r for r in releases if r.state == "reserved" and r.release == name and r.release_id != resume]
    for release in left:
        of = "" if release.occasion is None else f" of {release.occasion}"
        tell(
            f"Release {release.release_id}{of} has been reserved since {release.created} and has not ended. "
            f"Unless it is running, finish it with --resume {release.release_id}, or "
            f"{_given_up(release.release_id)}"
        )


def _given_up(release_id: str) -> str:
    return f'give it up with: dpsynth ledger abandon {release_id} --config CONFIG --reason "..."'


def _discard(partial: Path) -> None:
    """Remove the folder of a release that asked nothing, and the one above if nothing else is there."""
    shutil.rmtree(partial, ignore_errors=True)
    with suppress(OSError):
        partial.parent.rmdir()
