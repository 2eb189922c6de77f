"""The beginning of a run: source accepted, journal begun or found, budget reserved, release taken.

Invariant: nothing is reserved or written for a table that can't be read. An occasion is released once: a
second run shows the existing bundle.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth.accounting.slices import Slice
from dpsynth.config import CompiledSpec, Spec
from dpsynth.config.files.place import same_table
from dpsynth.curator.journal import Journal
from dpsynth.errors import BudgetRefused, ConfigError, Interrupted, SourceError, TakenOver
from dpsynth.ledger.balance import BETWEEN, Balance, ReleaseEntry, Reservation
from dpsynth.ledger.refusals import taken_over
from dpsynth.pipeline.earlier_releases import Reused, earlier_releases
from dpsynth.pipeline.inputs import Inputs, accept_source, check_public_table, inputs_of, is_locked
from dpsynth.pipeline.measuring import accept_engine
from dpsynth.pipeline.reservation import Occasion, occasion_of, reservation_of, table_of
from dpsynth.pipeline.steps import Tell, silently

if TYPE_CHECKING:
    from dpsynth.ledger.ledger import Ledger, Reading
from dpsynth.pipeline.release_run import (
    UNCHARGED,
    ReleaseRun,
    alone_in,
    check_outputs,
    clear,
    discard,
    found_journal,
    given_up,
    journal_of,
    partial_of,
    started_journal,
    withdraw,
)


@dataclass(frozen=True)
class Request:
    """The request for a run, from the command line or a caller.

    Attributes:
        outputs: folder under which ``<release>/<release id>`` appears.
        period: label of the slice to release; left out: the last slice that has ended.
        rehearsal: True if the table is made up, and the bundle is marked so.
        notice: a public sentence to tell once the release is reserved; "" for none.
        allowance: the most epsilon that all releases of its name may cost together; None without a bound.
    """

    outputs: Path = Path("outputs")
    resume: str | None = None
    period: str | None = None
    rehearsal: bool = False
    notice: str = ""
    allowance: Fraction | None = None


DEFAULT_REQUEST = Request()


def begin(inputs: Inputs, request: Request, tell: Tell = silently) -> ReleaseRun:
    """Accept the source, start or find the journal, then reserve the whole budget in the ledger.

    The journal comes first: a reservation without a journal means that the journal was lost, and with it the
    record of draws. For a new release that the ledger would take, the source is accepted before both, so no
    broken source is ever charged. A release that is resumed is taken over from the run that held it.

    Raises:
        ConfigError: the config, the period or the ledger can't be used.
        BudgetRefused: the ledger refuses.
        SourceError: the table can't be read.
        TakenOver: the release was finished with the answers of another copy.
        Interrupted: the ledger went away before it said whether it has the reservation.
    """
    from dpsynth.ledger.ledger import Ledger

    spec, now = inputs.spec, datetime.now(UTC)
    _check_signing_key(inputs)
    check_outputs(request.outputs, spec.sources)
    ledger = Ledger(spec.ledger.url, spec.ledger.head)
    known = ledger.read()
    account = known.account_of(table_of(spec), request.resume)
    if (last := known.clock_behind) is not None:
        tell(
            f"The clock says {now.date()}, and the ledger's last entry is of {last}: what is entered now is "
            "dated by the later. Check the clock; periods and schedules go by it."
        )
    if account is not None:
        _tell_of_the_unfinished(account.releases, spec.release, request.resume, tell)
    if request.resume is None:
        begun = _new(inputs, request, ledger, known, account, now, tell)
    else:
        begun = _resumed(inputs, request, request.resume)
    run = _reserved_run(inputs, request, ledger, begun, tell)
    if request.notice:
        tell(request.notice)
    return run


def _check_signing_key(inputs: Inputs) -> None:
    """Read the key that is to sign the bundle, so that a wrong one stops no release at its end."""
    _ = inputs.signing_key


def check_beginning(spec: Spec, request: Request) -> None:
    """Check whatever ``begin`` would refuse before it reserves; nothing is written or reserved.

    For a caller that has something costly to start first, such as an orchestrator's server.

    Raises:
        ConfigError, BudgetRefused, SourceError: as ``begin``.
    """
    from dpsynth.ledger.ledger import Ledger

    inputs, ledger, now = inputs_of(spec), Ledger(spec.ledger.url, spec.ledger.head), datetime.now(UTC)
    _check_signing_key(inputs)
    check_outputs(request.outputs, spec.sources)
    if spec.public_table is not None:
        check_public_table(inputs)
    if request.resume is not None:
        begun = _resumed(inputs, request, request.resume)
        begun.journal.close()
        wanted = reservation_of(inputs.compiled, inputs.plan, begun.occasion, request.resume)
        ledger.foreseen(ledger.read(), wanted)
        return
    occasion = occasion_of(spec, now, request.period)
    wanted = reservation_of(inputs.compiled, inputs.plan, occasion, _new_id(now))
    # An orchestrator that has not started has no vault yet; the release itself accepts the source later.
    folder, opens = request.outputs / spec.release, not any(map(is_locked, spec.sources))
    _check_new(inputs, ledger, ledger.read(), wanted, occasion, folder, opens=opens)


def _new_id(now: datetime) -> str:
    return f"{now:%Y%m%d}-{secrets.token_hex(4)}"


@dataclass(frozen=True, eq=False)
class _Begun:
    """A release with a journal, begun or found, that is not yet recorded in the ledger; held by this run."""

    release_id: str
    occasion: Occasion
    journal: Journal
    holder: str


def _resumed(inputs: Inputs, request: Request, release_id: str) -> _Begun:
    journal = found_journal(inputs.compiled, request.outputs / inputs.spec.release, release_id)
    occasion = _occasion_on_record(journal)
    if request.period is not None and request.period != occasion.label:
        raise ConfigError(
            f"Release {release_id} is that of {occasion.label or 'the whole table'}, so it can't be finished "
            f"with --period {request.period}. Leave out --period."
        )
    return _Begun(release_id, occasion, journal, secrets.token_hex(16))


def _new(
    inputs: Inputs,
    request: Request,
    ledger: Ledger,
    known: Reading,
    account: Balance | None,
    now: datetime,
    tell: Tell,
) -> _Begun:
    occasion, folder = occasion_of(inputs.spec, now, request.period), request.outputs / inputs.spec.release
    release_id, holder = "rehearsal-" * request.rehearsal + _new_id(now), secrets.token_hex(16)
    wanted = reservation_of(inputs.compiled, inputs.plan, occasion, release_id)
    wanted = replace(wanted, allowance=request.allowance)
    for hint in _check_new(inputs, ledger, known, wanted, occasion, folder):
        tell(hint)
    reused = _reused(inputs, request, occasion, account, tell)
    header = _header(inputs, occasion, reused, release_id, now) | {"ledger": known.name}
    if account is not None and account.changed is not None:
        # It takes a while to import.
        from dpsynth.ledger.views import unit_change_in_words

        header["unit_changed"] = list(unit_change_in_words(account))
    if request.rehearsal:
        header["rehearsal"] = True
    with alone_in(folder):
        clear(folder, ledger, tell)
        journal = started_journal(partial_of(folder, release_id), header, holder)
    return _Begun(release_id, occasion, journal, holder)


def _check_new(
    inputs: Inputs,
    ledger: Ledger,
    known: Reading,
    wanted: Reservation,
    occasion: Occasion,
    folder: Path,
    *,
    opens: bool = True,
) -> list[str]:
    hints = list(known.hints(wanted, folder))
    if ledger.foreseen(known, wanted) is not None:
        return []
    try:
        if opens:
            accept_source(inputs, occasion)
            accept_engine(inputs)
    except SourceError as error:
        raise SourceError(f"{error} {UNCHARGED}") from None
    return hints


def _reserved_run(inputs: Inputs, request: Request, ledger: Ledger, begun: _Begun, tell: Tell) -> ReleaseRun:
    folder, journal, holder = request.outputs / inputs.spec.release, begun.journal, begun.holder
    wanted = reservation_of(inputs.compiled, inputs.plan, begun.occasion, begun.release_id)
    try:
        entry = _reserved(ledger, replace(wanted, holder=holder, allowance=request.allowance))
        if entry.release_id != begun.release_id:
            journal.close()
            discard(partial_of(folder, begun.release_id))
            journal = _shown_again(inputs.compiled, folder, entry, tell)
        if entry.state == "closed":
            if entry.digest != journal.digest:
                raise taken_over(entry.release_id, entry.state)
        elif entry.holder != holder:
            _take(ledger, entry.release_id, journal, holder)
    except BaseException as error:
        if isinstance(error, TakenOver):
            withdraw(partial_of(folder, begun.release_id))
        journal.close()
        if request.resume is None and isinstance(error, BudgetRefused | ConfigError):
            discard(partial_of(folder, begun.release_id))
        raise
    name, by_id = entry.release_id, request.resume is not None
    sources = [source.split(BETWEEN) for source in (entry.source, wanted.source)]
    if by_id and not all(map(same_table, *sources)):
        began, now = map(", ".join, sources)
        tell(f"Release {name} began with the table {began}, and goes on with {now}. They must be the same.")
    journal.sealed = entry.state == "closed"
    journal.fence = functools.partial(ledger.fence, name, holder)
    final, partial = folder / name, partial_of(folder, name)
    return ReleaseRun(entry.dataset, name, begun.occasion, final, partial, ledger, journal, holder, by_id)


def _take(ledger: Ledger, release_id: str, journal: Journal, holder: str) -> None:
    journal.hold(holder)
    try:
        ledger.take(release_id, holder)
    except ConfigError as error:
        raise Interrupted(
            f"{error} Whether release {release_id} may go on here can't be told until the ledger is back. "
            f"Nothing was read. Go on with: --resume {release_id}"
        ) from None


def _reused(
    inputs: Inputs, request: Request, occasion: Occasion, account: Balance | None, tell: Tell
) -> Reused | None:
    reuse, plan = inputs.spec.reuse, inputs.plan
    if not (reuse.same_period or reuse.earlier_periods):
        return None
    found, left_out = earlier_releases(
        account,
        plan.cost.amount,
        occasion.part,
        inputs.compiled.columns,
        request.outputs,
        same_period=reuse.same_period,
        earlier_periods=reuse.earlier_periods,
    )
    for sentence in left_out:
        tell(sentence)
    return found


def _header(
    inputs: Inputs, occasion: Occasion, reused: Reused | None, release_id: str, now: datetime
) -> dict[str, object]:
    spec, plan, part = inputs.spec, inputs.plan, occasion.part
    return {
        "release": spec.release,
        "id": release_id,
        "spec": inputs.compiled.fingerprint,
        "terms": {
            "measure": plan.measure.name,
            "epsilon": str(plan.whole.epsilon),
            "delta": str(plan.whole.spent_delta),
            **({} if plan.sampling is None else {"sample_rate": str(plan.sampling.rate)}),
        },
        "date": now.date().isoformat(),
        "occasion": occasion.label,
        "part": None if part is None else part.to_json(),
        "reused": None if reused is None else reused.to_journal(),
        "public": inputs.public_sha256,
        "seed": secrets.randbits(64) if spec.sample.seed is None else spec.sample.seed,
        "key": secrets.token_hex(32),
    }


def _occasion_on_record(journal: Journal) -> Occasion:
    label, part = journal.header["occasion"], journal.header["part"]
    return Occasion(
        None if label is None else str(label), Slice.from_json(part) if isinstance(part, Mapping) else None
    )


def _reserved(ledger: Ledger, wanted: Reservation) -> ReleaseEntry:
    """Reserve the budget; ask once more if the ledger went away before it answered."""
    try:
        return ledger.reserve(wanted)
    except ConfigError as error:
        try:
            recorded = ledger.release(wanted.release_id)
        except ConfigError:
            raise Interrupted(
                f"{error} Whether release {wanted.release_id} was reserved can't be told until the ledger is "
                f"back. Nothing was read. Go on with: --resume {wanted.release_id}"
            ) from None
        if recorded is None or recorded.state != "reserved":
            raise
        return recorded


def _shown_again(compiled: CompiledSpec, folder: Path, entry: ReleaseEntry, tell: Tell) -> Journal:
    what = f"{entry.occasion} of release '{compiled.spec.release}'"
    begun = "was released" if entry.state == "closed" else "was begun"
    if entry.spec != compiled.whole_fingerprint:
        raise ConfigError(
            f"{what} {begun} on {entry.created} as {entry.release_id}, with another config, and a period is "
            "released once. Go back to that config; or give this one another name with the key release, and "
            "it is released and charged anew."
        )
    if journal_of(folder, entry.release_id) is None:
        more = (
            "Copy it back from where it was released"
            if entry.state == "closed"
            else f"Run where it was begun, or {given_up(entry.release_id)}"
        )
        raise ConfigError(
            f"{what} {begun} on {entry.created} as {entry.release_id}, and a period is released once; but "
            f"{folder} has nothing of it. {more}."
        )
    if entry.state == "closed":
        tell(f"{what} was released on {entry.created}: its bundle is shown again, and nothing is charged.")
    else:
        tell(f"{what} was begun on {entry.created} as {entry.release_id} and not finished: it goes on.")
    return found_journal(compiled, folder, entry.release_id)


def _tell_of_the_unfinished(
    releases: Sequence[ReleaseEntry], name: str, resume: str | None, tell: Tell
) -> None:
    left = [r for r in releases if r.state == "reserved" and r.release == name and r.release_id != resume]
    for release in left:
        of = "" if release.occasion is None else f" of {release.occasion}"
        tell(
            f"Release {release.release_id}{of} has been reserved since {release.created} and has not ended. "
            f"Unless it is running, finish it with --resume {release.release_id}, or "
            f"{given_up(release.release_id)}"
        )
