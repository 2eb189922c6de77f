"""A release under way: its folder, its journal, its place in the ledger, and its end.

Invariant: from the moment the table may be asked anything, the ledger holds a reservation of the whole
budget, which is released only if the journal shows that nothing was asked. A release that has asked something
is never charged less than its journal says; nor less than it reserved, where only that bounds it
(``dpsynth.accounting.composition.charge``). Nothing is reserved or written for a table that can't be read. An
occasion (a period, or a tick of the schedule) is released once: a second run shows the existing bundle. Only
one run at a time begins a release in a folder, or clears it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth.accounting import events
from dpsynth.accounting.amount import float_up
from dpsynth.accounting.composition import NOTHING, Cost, amount_of, compose, cost_of
from dpsynth.accounting.events import Guarantee
from dpsynth.accounting.measures import measure_named
from dpsynth.accounting.subsampling import Sampling
from dpsynth.config import CompiledSpec
from dpsynth.config.files.place import is_part_of
from dpsynth.config.source import Source
from dpsynth.curator.journal import Entry, Journal, is_paused
from dpsynth.errors import ConfigError, DpsynthError, Interrupted, Paused, SourceError, StepFailed, TakenOver
from dpsynth.pipeline.earlier_releases import Reused
from dpsynth.pipeline.reservation import Occasion
from dpsynth.pipeline.steps import Tell
from dpsynth.plan.plan import Plan

if TYPE_CHECKING:
    from dpsynth.ledger.balance import ReleaseEntry
    from dpsynth.ledger.ledger import Ledger


JOURNAL = Path("private", "journal.jsonl")


def partial_of(folder: Path, release_id: str) -> Path:
    """Path of a release that is not complete."""
    return folder / f".{release_id}.partial"


def make_partial(partial: Path) -> None:
    """Make the folder of a release that is not complete."""
    partial.mkdir(mode=0o700)


def withdraw(partial: Path) -> None:
    """Remove what an unfinished release would have published; its journal stays.

    For a copy of a release that was finished elsewhere: its answers are a second draw for one charge.
    """
    for path in partial.glob("*"):
        if path.name != JOURNAL.parts[0]:
            shutil.rmtree(path, ignore_errors=True)


def journal_of(folder: Path, release_id: str) -> Path | None:
    """Path of the journal of a release, complete or under way; None if there is none."""
    journals = (place / JOURNAL for place in (folder / release_id, partial_of(folder, release_id)))
    return next((path for path in journals if path.is_file()), None)


def unfinished_journal(folders: Iterable[Path], release_id: str, resume: str) -> Path | None:
    """Path of the journal of an unfinished release, in the first of some folders for bundles that has it.

    Args:
        resume: the way to close the release, for the message, if its bundle is whole.

    Raises:
        ConfigError: the release has a whole bundle.
    """
    places = list(folders)
    whole = next((folder / release_id for folder in places if (folder / release_id).exists()), None)
    if whole is not None:
        raise ConfigError(
            f"Release {release_id} has a whole bundle in {whole}; only its end is missing in the ledger. "
            f"Close it with: {resume}"
        )
    found = (journal_of(folder, release_id) for folder in places)
    return next((path for path in found if path is not None), None)


def waits_for_its_owner(folder: Path, release_id: str) -> bool:
    """True if an unfinished release is paused, by its journal."""
    path = journal_of(folder, release_id)
    return path is not None and is_paused(path)


def check_outputs(outputs: Path, sources: Sequence[Source]) -> None:
    """Check that bundles are written to a folder of this machine, outside of the private table's own folder.

    Raises:
        ConfigError: they wouldn't be.
    """
    # A path that is made of a URL has lost one of its slashes.
    if re.match(r"[a-z][a-z0-9+.-]*:/", str(outputs)):
        raise ConfigError(
            f"Bundles are written to a folder of this machine, and {outputs} is a URL. Give another: --out."
        )
    for path in [source.path for source in sources if source.path]:
        if is_part_of(str(outputs), path):
            raise ConfigError(
                f"The folder for bundles {outputs} lies in the private table's folder {path}, whose files "
                "are read as rows of the table. Give another with --out."
            )


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """A lock on a folder: no other run begins a release in it, or clears it."""
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


def clear(folder: Path, ledger: Ledger, tell: Tell) -> None:
    """Remove leftovers of runs that died before they reserved, and report folders without reservation."""
    for partial in sorted(folder.glob(".*.partial")):
        release_id = partial.name[1:].removesuffix(".partial")
        path = partial / JOURNAL
        entry = ledger.release(release_id)
        if entry is not None:
            if entry.state == "closed":
                tell(
                    f"Release {release_id} is settled, and its bundle was not put in its place. Unless it is "
                    f"running, finish it, for nothing more, with --resume {release_id}"
                )
            continue
        # A run that makes a journal holds the folder: a journal without a whole line is of a dead run.
        if not path.exists() or b"\n" not in path.read_bytes():
            shutil.rmtree(partial, ignore_errors=True)
        else:
            try:
                journal = Journal.open(path)
            except DpsynthError:
                # The release is running, or its journal is damaged.
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


def started_journal(partial: Path, header: dict[str, object], holder: str) -> Journal:
    """A new journal with its first line, held by the run that begins it."""
    try:
        make_partial(partial)
        journal = Journal.create(partial / JOURNAL, header)
        journal.hold(holder)
    except OSError:
        discard(partial)
        raise
    return journal


def found_journal(compiled: CompiledSpec, folder: Path, release_id: str) -> Journal:
    """The journal of a release that was begun, checked against the config."""
    if not release_id.replace("-", "").isalnum():
        raise ConfigError(f"'{release_id}' is no release id: one looks like 20300131-0a1b2c3d.")
    path = journal_of(folder, release_id)
    if path is None:
        raise ConfigError(
            f"There is no release {release_id} to resume under {folder}: no journal is there. If it "
            f"was deleted, what the release reserved stays charged; {given_up(release_id)}"
        )
    if (partial := partial_of(folder, release_id)) in path.parents:
        # Builds before 0.1.0 left it open to all users.
        partial.chmod(0o700)
    journal = Journal.open(path)
    if journal.header["id"] != release_id:
        journal.close()
        raise ConfigError(
            f"{path} is the journal of release {journal.header['id']}, and not of {release_id}. Bring its "
            "own back, or resume the other in its own folder."
        )
    if journal.lacks_charges:
        journal.close()
        raise ConfigError(
            f"{path} had more answers than it has: an older copy was put back in its place, and what was "
            "drawn since would be drawn again. Bring the latest one back. If there is none, all that the "
            f"release reserved stays charged; give it up with: dpsynth ledger abandon {release_id} "
            '--ledger URL --reason "..."'
        )
    if journal.header["spec"] != compiled.fingerprint:
        journal.close()
        raise ConfigError(
            f"The config has changed since release {release_id} began, so its answers can't be used with it. "
            "Resume with the config that it began with, or start a new release."
        )
    return journal


def discard(partial: Path) -> None:
    """Remove the folder of a release that asked nothing, and the folder above if it is empty."""
    shutil.rmtree(partial, ignore_errors=True)
    with suppress(OSError):
        partial.parent.rmdir()


def given_up(release_id: str) -> str:
    """Advice on giving up a release."""
    return f'give it up with: dpsynth ledger abandon {release_id} --config CONFIG --reason "..."'


UNCHARGED = "Nothing was charged."


@dataclass
class ReleaseRun:
    """One release under way, with its state on disk and in the ledger.

    The folder of an unfinished release can be copied, and resumed in both folders; still there is one bundle:

    1.  Each run that begins or resumes a release writes a random name of its own into the journal, and then
        into the ledger. From then on this run is the holder, and no other.
    2.  Before each charge a run checks in the ledger that it is still the holder. If not, it stops.
    3.  The bundle is written to a partial folder. The ledger closes the release and records the digest of all
        questions and answers, in one transaction in which the run must be the holder.
    4.  The bundle is put in its place, by one rename.

    The third step is decisive. The check before a charge and the draw after it are two moments, so two copies
    may both draw for one charge. But the ledger closes a release once. A run that finds it closed with
    another digest than that of its own journal publishes nothing. The bundle that it wrote is removed, and
    what it drew stays in its journal. That is not charged in addition to the other draws: only the owner can
    read it, who has the table. Until the ledger has closed the release, the partial folder can be entered by
    its owner alone. A run that died between the third and the fourth is resumed: it gets the recorded
    answers, may ask nothing, and puts the same bundle in its place.

    Attributes:
        final, partial: its folder when it is complete, and before.
        holder: the name under which the ledger lets this run go on.
        by_id: true if the run was asked for by the release's id; a run that found the release by itself,
            because its occasion was begun, decides nothing for its owner.
    """

    dataset: str
    release_id: str
    occasion: Occasion
    final: Path
    partial: Path
    ledger: Ledger
    journal: Journal
    holder: str
    by_id: bool = False
    _ends: ExitStack = field(default_factory=ExitStack, repr=False)

    def at_end(self, end: Callable[[], None]) -> None:
        """Have a function called once when all questions are asked, or the run ends before."""
        self._ends.callback(end)

    def all_asked(self) -> None:
        self._ends.close()

    @property
    def date(self) -> str:
        return str(self.journal.header["date"])

    @property
    def seed(self) -> int:
        """Seed of post-processing; a resumed release draws the same rows again."""
        return int(str(self.journal.header["seed"]))

    @property
    def reused(self) -> Reused | None:
        return Reused.from_journal(self.journal.header["reused"])

    @property
    def unit_changed(self) -> tuple[str, ...]:
        """Sentences on releases of the account that protected rows, as it stood when this one began."""
        found = self.journal.header.get("unit_changed", ())
        return tuple(map(str, found)) if isinstance(found, list | tuple) else ()

    @property
    def public_sha256(self) -> str | None:
        found = self.journal.header.get("public")
        return None if found is None else str(found)

    @property
    def rehearsal(self) -> bool:
        """True if the table is made up: ledger and journal are then of no use once the run has ended."""
        return self.journal.header.get("rehearsal") is True

    @property
    def key(self) -> bytes:
        """The secret that decides which rows of a person are kept."""
        return bytes.fromhex(str(self.journal.header["key"]))

    @property
    def published(self) -> bool:
        return self.final.exists()

    def __enter__(self) -> ReleaseRun:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Release or keep the reservation if a step has failed."""
        self.all_asked()
        nothing_asked = not self.journal.entries and self.journal.has_all_of(self.holder)
        sealed = self.journal.sealed
        if isinstance(error, TakenOver):
            withdraw(self.partial)
        self.journal.close()
        if error is None or isinstance(error, TakenOver | Paused) or self.rehearsal:
            return
        # A foreseen error says by itself what is to be done: lines that are gone do not come back.
        foreseen = isinstance(error, DpsynthError) and not isinstance(error, Interrupted | StepFailed)
        if sealed and (foreseen or (self.published and isinstance(error, Exception))):
            return
        if nothing_asked and not sealed and isinstance(error, Exception):
            with suppress(DpsynthError):
                self.ledger.abandon(
                    self.release_id, NOTHING, [], "nothing was asked of the table", self.holder
                )
                discard(self.partial)
                if isinstance(error, SourceError):
                    error.args = (f"{error} {UNCHARGED}",)
                return
        budget = "Its budget is settled" if sealed else "Its budget stays reserved"
        rest = f"{budget}; finish it with: --resume {self.release_id}"
        if not isinstance(error, Exception):
            raise Interrupted(f"Release {self.release_id} was interrupted. {rest}") from None
        if isinstance(error, DpsynthError):
            error.args = (f"{error} Release {self.release_id} is not finished. {rest}",)


def charges(plan: Plan, journal: Journal) -> Sequence[Entry]:
    """The charges up to the end of a tier, whose last question has just been asked.

    A release that is resumed may have charges of later tiers on record. To the last tier all charges count.
    """
    return tuple(journal.asked()) if plan.later else journal.entries


def composed(plan: Plan, journal: Journal) -> Guarantee:
    """The guarantee composed of the journal's events, checked against the plan."""
    charged = [e.event for e in charges(plan, journal)]
    guarantee = compose(charged, plan.measure, plan.tier.asked_delta, plan.neighbours, plan.selection_delta)
    if plan.sampling is not None:
        of_sample = amount_of(charged, plan.measure, plan.tier.asked_delta, plan.selection_delta)
        guarantee = plan.sampling.of_whole(guarantee, of_sample.epsilon, plan.tier.spent_delta)
    if guarantee.epsilon > float_up(plan.tier.epsilon) or guarantee.delta > float(plan.tier.spent_delta):
        raise DpsynthError(
            f"The journal {journal.path} adds up to epsilon {guarantee.epsilon:g}, more than the "
            f"{float(plan.tier.epsilon):g} planned. Nothing is published; please report this."
        )
    return guarantee


def settle(work: ReleaseRun, plan: Plan) -> None:
    """Close the release in the ledger at its journal's total cost, with the digest of its answers.

    Raises:
        TakenOver: another copy of the release went on or was settled, or it was abandoned.
        Interrupted: the ledger can't be reached; the bundle is written, and resuming settles.
    """
    work.all_asked()
    recorded = [e.event for e in work.journal.entries]
    work.journal.sync()
    try:
        work.ledger.settle(
            work.release_id,
            cost_of(recorded, plan.measure, plan.tier.epsilon, plan.tier.asked_delta, plan.sampling),
            [events.to_json(e) for e in recorded],
            work.holder,
            work.journal.digest,
        )
    except DpsynthError as error:
        if isinstance(error.__cause__, ConfigError):
            raise Interrupted(f"{error} The bundle is written, and appears once it is settled.") from None
        raise
    work.journal.sealed = True


def spent_by(path: Path, release_id: str, holder: str) -> tuple[Cost, list[dict[str, object]]]:
    """Total cost of the charges in a release's journal as ``cost_of``, and its events.

    Raises:
        ConfigError: the file can't be read, is another release's, or may lack charges that were made to
            another copy. Each of these would undercharge the release.
        DpsynthError: the journal is damaged, or its release is running.
    """
    try:
        journal = Journal.open(path)
    except OSError as error:
        raise ConfigError(f"The journal {path} can't be read: {error.strerror}.") from None
    has_all = journal.has_all_of(holder)
    journal.close()
    if journal.header["id"] != release_id:
        raise ConfigError(
            f"{path} is not the journal of release {release_id}. Name its own, or leave out --journal and "
            "--config: then it is charged all that it reserved."
        )
    if not has_all:
        raise ConfigError(
            f"{path} is a copy of the journal of release {release_id}, or an older one, or another copy "
            "went on, so it may not have all that was asked. Name the journal in the folder where the "
            "release began and ran last, or leave out --journal and --config: then it is charged all that it "
            "reserved."
        )
    terms = journal.header["terms"]
    assert isinstance(terms, Mapping)
    found = [e.event for e in journal.entries]
    measure = measure_named(str(terms["measure"]))
    sampling = Sampling(Fraction(str(terms["sample_rate"]))) if terms.get("sample_rate") else None
    delta = Fraction(str(terms["delta"])) / (1 if sampling is None else sampling.rate)
    cost = cost_of(found, measure, Fraction(str(terms["epsilon"])), delta or None, sampling)
    return cost, [events.to_json(e) for e in found]


@dataclass(frozen=True)
class Ending:
    """The end of a release that will not be finished, before it is entered in the ledger.

    Attributes:
        path: its journal; None where there is none.
        cost, events: those of the journal; None and none without one.
    """

    book: Ledger
    entry: ReleaseEntry
    path: Path | None
    cost: Cost | None
    events: list[dict[str, object]]

    @classmethod
    def of(
        cls, url: str, head: str | Path | None, release_id: str, journal: Callable[[], Path | None]
    ) -> Ending:
        """The end of a release that the ledger at a URL, with its head file, has as reserved.

        Raises:
            ConfigError: the ledger has no such release, it has ended, or its journal can't be used.
        """
        # It takes SQLAlchemy with it.
        from dpsynth.ledger.ledger import Ledger

        book = Ledger(url, head)
        entry = book.release(release_id)
        if entry is None:
            raise ConfigError(f"The ledger has no release {release_id}; dpsynth ledger show lists them.")
        if entry.state != "reserved":
            raise ConfigError(
                f"Release {release_id} has ended: it is {entry.state} at {entry.cost.amount.shown()}. Only "
                "one that is reserved can be abandoned."
            )
        path = journal()
        if path is None:
            return cls(book, entry, None, None, [])
        return cls(book, entry, path, *spent_by(path, release_id, entry.holder))

    @property
    def sentence(self) -> str:
        """What the release counts for once it is abandoned."""
        # It takes scipy with it, which no release needs.
        from dpsynth.ledger.views import share_in_words

        entry, account = self.entry, self.book.balance(self.entry.dataset)
        assert account is not None
        reserved, left = entry.reserved, self.cost
        if left is None:
            counts = "all of that, for no journal was found"
        elif not (account.filter.needs_delta or left.pure):
            counts = "all of that: its ε at its δ is that of the release as a whole, wherever it ends"
        else:
            counts = f"{share_in_words(account.share_of(left))} of the cap, as {self.path} says"
        return (
            f"Release {entry.release_id} of dataset '{entry.dataset}' reserved {reserved.amount.shown()}: "
            f"{share_in_words(account.share_of(reserved))} of the cap. Abandoned, it counts for {counts}. "
            "It can't be resumed afterwards."
        )

    def enter(self, why: str) -> None:
        entry = self.entry
        holder = None if self.path is None else entry.holder
        self.book.abandon(entry.release_id, self.cost, self.events, why, holder)
