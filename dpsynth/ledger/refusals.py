"""Checks before a reservation, by the account and its privacy filter, and hints for whoever releases.

Invariant: a reservation is admitted only if the costs of all releases of the dataset, this one in full, keep
to the cap by the dataset's filter. A refusal names the request, the remainder and the remedy. Refusals and
hints are made of the ledger and the config alone, and nothing depends on a hint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from fractions import Fraction
from operator import attrgetter
from pathlib import Path

from dpsynth.accounting.amount import Amount, digits
from dpsynth.accounting.composition import Cost
from dpsynth.accounting.neighbours import EVENT, ROW, Neighbours, neighbours_in_words, protected
from dpsynth.config.files.place import same_table
from dpsynth.errors import BudgetRefused, ConfigError, DpsynthError, TakenOver
from dpsynth.ledger.balance import Balance, ReleaseEntry, Reservation, State, runway
from dpsynth.ledger.filters import figures


def hints(wanted: Reservation, dataset: str, accounts: Sequence[Balance], bundles: Path) -> Iterator[str]:
    """Sentences about a new release that its owner may not expect."""
    account = next((a for a in accounts if a.dataset == dataset), None)
    if account is None:
        yield from _of_a_new_account(dataset, accounts)
        return
    # Linked tables have several sources, and always name their dataset.
    named = wanted.dataset or not account.sources
    if not named and not any(same_table(wanted.source, source) for source in account.sources):
        yield (
            f"{wanted.source} is new to dataset '{account.dataset}', which has {_listed(account.sources)}, "
            "and it counts there. If it is about other people, name a dataset of its own with ledger.dataset."
        )
    if wanted.cap_declared and not wanted.cap.within(account.cap):
        yield (
            f"ledger.cap in this configuration, {wanted.cap.shown(up=False)}, is above the recorded "
            f"{account.cap.shown(up=False)} of dataset '{account.dataset}', and the recorded one holds. If "
            f"it may be raised: {raising(account.dataset, wanted.cap, account.cap)}"
        )
    same = [r for r in account.releases if r.spec == wanted.spec and r.state == "closed"]
    if wanted.occasion is None and same:
        bundle = bundles / same[-1].release_id
        where = f", its bundle is {bundle}" if bundle.is_dir() else ""
        yield (
            f"This configuration was released on {same[-1].created} as {same[-1].release_id}{where}. This is "
            f"a further release, number {len(account.releases) + 1} of dataset '{account.dataset}', and is "
            f"charged {wanted.cost.amount.shown()} once more."
        )


def raising(dataset: str, cap: Amount, recorded: Amount) -> str:
    """The command that raises a recorded cap to another."""
    delta = "" if cap.delta <= recorded.delta else f" --delta {digits(cap.delta, up=False)}"
    epsilon = "" if cap.epsilon <= recorded.epsilon else f" --epsilon {digits(cap.epsilon, up=False)}"
    return f"dpsynth ledger cap '{dataset}'{epsilon}{delta} --config CONFIG --reason WHY"


def _of_a_new_account(dataset: str, accounts: Sequence[Balance]) -> Iterator[str]:
    if accounts:
        yield (
            f"This opens dataset '{dataset}' in the ledger, with a cap of its own, beside "
            f"{_listed(a.dataset for a in accounts)}. If the same people are in one of these, name it with "
            "ledger.dataset, so that they have one cap."
        )


def _listed(names: Sequence[str] | frozenset[str] | Iterator[str]) -> str:
    found = sorted(names)
    return ", ".join(f"'{name}'" for name in found[:5]) + (" and others" if len(found) > 5 else "")


_MOST_ROWS = 10_000

_LONGEST_REASON = 1000


def check_protection(entry: Reservation, account: Balance) -> None:
    """ConfigError unless a reservation has the unit, the relation and the filter of the account.

    Guarantees about rows and about persons, or under two relations, don't add up. Guarantees with two
    contribution bounds do. A release from before a change of the unit keeps its own.
    """
    recorded = next((r for r in account.releases if r.release_id == entry.release_id), None)
    change = account.changed if recorded is None else recorded.changed
    unit = account.unit if recorded is None or change is None else change.before
    if (protected(entry.unit), entry.neighbours) != (protected(unit), account.neighbours):
        raise ConfigError(
            f"Dataset '{entry.dataset}' is in the ledger with the unit '{unit}' and the relation "
            f"{account.neighbours}, and this config has '{entry.unit}' and {entry.neighbours}. Their costs "
            f"can't be added up. {_way_on(entry, account)} Nothing was read and nothing was charged."
        )
    most = neighbours_in_words("add_remove", entry.unit).max_rows
    known = None if recorded is not None or change is None else change.most_rows
    if known is not None and most > known:
        raise ConfigError(
            "The ledger has on record that nobody has more than "
            f"{_rows(known)} in dataset '{entry.dataset}', and this config uses up to {_rows(most)} of each "
            f"(max_rows, or at_most). Write at most {known:,}. Nothing was read and nothing was charged."
        )
    if entry.filter is not None and entry.filter != account.filter:
        raise ConfigError(
            f"Dataset '{entry.dataset}' is in the ledger with the filter {account.filter.accountant}, for "
            f"good, and ledger.filter is {entry.filter.accountant}. Leave it out, or write "
            f"{account.filter.accountant}."
        )


def _way_on(entry: Reservation, account: Balance) -> str:
    persons = neighbours_in_words("add_remove", entry.unit).person is not None
    if account.unit not in (ROW, EVENT) or not persons or entry.neighbours != account.neighbours:
        return "Use the recorded unit and relation: an account goes on protecting what it protects."
    return (
        "To protect persons from now on, in the same account, say how many rows one of them has at most in "
        f"the releases so far: dpsynth ledger unit '{entry.dataset}' --config CONFIG --most-rows NUMBER "
        "--reason WHY. If nobody knows, write --most-rows unknown."
    )


def _rows(number: int) -> str:
    return f"{number:,} row{'s' * (number != 1)}"


def check_unit(near: Neighbours, most_rows: int | None, account: Balance) -> None:
    """ConfigError unless an account of rows may go on with a unit of persons."""
    about = f"Dataset '{account.dataset}'"
    if account.unit not in (ROW, EVENT):
        raise ConfigError(
            f"{about} protects '{account.unit}'. Only an account that protects rows can go on with persons."
        )
    if near.person is None or near.relation != account.neighbours:
        raise ConfigError(
            f"{about} protects rows, under {account.neighbours}, and this config has '{near.unit}' and "
            f"{near.relation}. Write the persons as privacy.unit, such as "
            "{column: patient_id, max_rows: 4}, and keep the neighbours."
        )
    if most_rows is not None and near.relation != "add_remove":
        raise ConfigError(
            f"{about} is under {near.relation}, where the number of rows is public. Somebody who is "
            "exchanged may bring more rows or fewer, and no number of exchanged rows makes up for that. "
            "Write --most-rows unknown."
        )
    if most_rows is not None and not 1 <= most_rows <= _MOST_ROWS:
        raise ConfigError(f"--most-rows must be a whole number from 1 to {_MOST_ROWS:,}, or unknown.")
    if most_rows is not None and near.max_rows > most_rows:
        raise ConfigError(
            f"Nobody has more than {_rows(most_rows)}, by --most-rows, and this config uses up to "
            f"{near.max_rows:,} of each (max_rows, or at_most). Write at most {most_rows:,} there, or a "
            "larger --most-rows."
        )
    unfinished = [release.release_id for release in account.releases if release.state == "reserved"]
    if unfinished:
        raise ConfigError(
            f"{about} has releases that have not ended: {', '.join(unfinished[:20])}. Finish each with "
            "dpsynth run CONFIG --resume ID, or give it up with dpsynth ledger abandon ID. Then change the "
            "unit."
        )


def check_reason(reason: str, what: str) -> str:
    """The reason for a change, without blanks around it; ConfigError where there is none to keep."""
    said = reason.strip()
    if not said or not said.isprintable() or len(said) > _LONGEST_REASON:
        raise ConfigError(
            f"To change {what} takes a reason (--reason) of 1 to {_LONGEST_REASON} printable characters."
        )
    return said


def check_counted(entry: Reservation, account: Balance) -> None:
    """ConfigError where the filter can't bound the cost of the release, or keeps no delta for it."""
    if figures(account.filter, entry.cost) is None:
        raise ConfigError(
            f"Dataset '{entry.dataset}' adds up its releases by the filter {account.filter.accountant}, "
            "which can't bound a release of Gaussian noise under the accountant zcdp. Set "
            "privacy.accountant: gdp."
        )
    if account.filter.needs_delta and entry.cost.approximate_delta and not account.approximate_share:
        raise ConfigError(
            f"Dataset '{entry.dataset}' keeps no part of its cap's delta for finding values (columns with "
            "open: true), as none of its releases has sought any. List the values instead, or have a part "
            f"kept, if the budget may be used so, with: dpsynth ledger cap '{entry.dataset}' "
            f"--approximate-share {digits(entry.approximate_share, up=True)} --config CONFIG "
            "--reason WHY. Other releases then have that much less of the delta."
        )


def check_resumed(entry: Reservation, recorded: ReleaseEntry) -> None:
    """ConfigError unless a recorded release makes the same request as before."""
    same = attrgetter("dataset", "release", "occasion", "part", "parallel")
    if (same(entry), entry.cost) != (same(recorded), recorded.reserved):
        raise ConfigError(
            f"Release {entry.release_id} already stands in the ledger for dataset '{recorded.dataset}' at "
            f"{recorded.reserved.amount.shown()}. A resumed release needs the config that it began with."
        )
    if recorded.state == "abandoned":
        raise ConfigError(
            f"Release {entry.release_id} was abandoned, and what it had left has been given back. "
            "Start a new release."
        )


def check_allowance(entry: Reservation, account: Balance) -> None:
    """BudgetRefused where the releases of a name would have cost more together than their allowance."""
    if entry.allowance is None:
        return
    same = [r.cost.amount.epsilon for r in account.releases if r.release == entry.release]
    if sum(same, entry.cost.amount.epsilon) > entry.allowance:
        raise BudgetRefused(
            f"The standing budget for questions is spent: verification.epsilon allows all releases "
            f"'{entry.release}' ε = {digits(entry.allowance, up=False)} together. They were given "
            f"ε = {digits(sum(same, Fraction(0)), up=True)}, and this one asks for "
            f"ε = {digits(entry.cost.amount.epsilon, up=True)}. Nothing was read and nothing was charged."
        )


def check_allowed(entry: Reservation, account: Balance, ledger: str, today: date) -> None:
    """The privacy filter: BudgetRefused unless a reservation and all before it fit under the cap.

    The cap is the account's; a lower cap in the config holds for this reservation, a higher cap has no
    effect.
    """
    cap = entry.cap_under(account.cap)
    lasting = not account.filter.needs_delta or cap.delta > 0
    if lasting and account.allows(entry.cost, entry.part if entry.parallel else None, cap):
        return
    raise BudgetRefused(" ".join(_refusal(entry, account, cap, ledger, today)))


def _refusal(entry: Reservation, account: Balance, cap: Amount, ledger: str, today: date) -> Iterator[str]:
    used, asked = Amount(account.epsilon_used, account.delta_used), entry.cost.amount
    part = f" for {entry.part.label}" if entry.part is not None and entry.parallel else ""
    whose = "its cap" if cap == account.cap else "the cap in this configuration, ledger.cap,"
    yield (
        f"The ledger {ledger} refuses release {entry.release_id}: it asks for {asked.shown()}{part}, and "
        f"what the releases of dataset '{entry.dataset}' count for comes to {used.shown()} of "
        f"{whose} of {cap.shown(up=False)} (filter {account.filter.accountant})."
    )
    if cap.delta == 0 and account.filter.needs_delta:
        yield f"The cap's delta is 0, so the filter {account.filter.accountant} lets nothing through."
    if entry.cap_declared and cap != entry.cap:
        yield f"This configuration's cap of {entry.cap.shown(up=False)} doesn't raise the recorded one."
    yield _what_fits(entry, account, cap)
    forecast = runway(account, today)
    if forecast is not None and forecast.fits and not forecast.disjoint and cap == account.cap:
        end = (
            ""
            if forecast.refused is None
            else f"; at the pace so far the first to be refused is due on {forecast.refused}"
        )
        yield f"Of releases like the last one, {forecast.fits:,} more fit{end}."
    pending = [release.release_id for release in account.releases if release.state == "reserved"]
    if pending:
        some = f"{', '.join(pending[:20])}{', ...' if len(pending) > 20 else ''}"
        yield f"These releases have not ended and can be resumed or given up: {some}."
    yield f"Ask for less with privacy.epsilon and privacy.delta, or, {_raising(entry, account, cap)}."
    yield "Nothing was read and nothing was charged."


def _raising(entry: Reservation, account: Balance, cap: Amount) -> str:
    own = "raise ledger.cap in this configuration"
    if not account.releases:
        return f"if it may be raised, {own}"
    recorded = f"with: dpsynth ledger cap '{entry.dataset}' --epsilon NEW --config CONFIG --reason WHY"
    if cap == account.cap:
        return f"if it may be raised, raise the cap {recorded}"
    if account.allows(entry.cost, entry.part if entry.parallel else None):
        return f"if it may be raised, {own}: the recorded cap of {account.cap.shown(up=False)} allows it"
    return (
        f"if they may be raised, {own}, and the recorded one of {account.cap.shown(up=False)}, which would "
        f"refuse it too, {recorded}"
    )


def _what_fits(entry: Reservation, account: Balance, cap: Amount) -> str:
    delta, capped = entry.cost.amount.delta, account.under(cap)
    own_delta = delta - entry.cost.approximate_delta if entry.suits.needs_delta else delta
    part = entry.part if entry.parallel else None
    own = capped if part is None else capped.of_part(part)
    if min(capped.left) >= 0:
        if own.filter.needs_delta and own.left[1] < entry.cost.approximate_delta:
            some = digits(own.left[1], up=False)
            return f"Of the delta that is kept for finding values, {some} is left."
        if fitting := own.largest_epsilon(own_delta, entry.suits):
            at = f" at δ = {digits(delta, up=True)}" if delta else ""
            return f"One of an epsilon up to {digits(fitting, up=False)}{at} would still fit."
        if not own.filter.needs_delta and own.left[0] > 0:
            return f"Of delta, {digits(own.left[1], up=False)} is left."
    return "Nothing is left."


def check_cap(cap: Amount, account: Balance, approximate_share: Fraction) -> None:
    """ConfigError unless an account's filter can keep to a cap, and to its share of approximate delta."""
    needed = account.filter.needs_delta
    if cap.delta >= 1 or (needed and not cap.delta):
        raise ConfigError(
            f"The filter of dataset '{account.dataset}' is {account.filter.accountant}, so the delta of its "
            f"cap must be {'above 0 and ' if needed else ''}below 1. To refuse all further spending, set "
            "epsilon to 0."
        )
    if approximate_share and not needed:
        raise ConfigError(
            f"The filter of dataset '{account.dataset}' is sequential, which adds up every delta alike. "
            "Leave out --approximate-share."
        )
    if not 0 <= approximate_share < 1:
        raise ConfigError("The share of a cap's delta that is kept for finding values lies between 0 and 1.")


_TAKEN = {
    "reserved": (
        "is being finished elsewhere: another copy of its folder was resumed after this one, and the ledger "
        "lets that one go on. What this copy was answered may not be published. Let the other finish, and "
        "remove this copy; or, if the other can't finish, take the release back here with: --resume {id}"
    ),
    "closed": (
        "was finished elsewhere: the ledger has closed it with the answers of another copy of its folder. "
        "What this copy was answered may not be published. Remove it, and use the other's bundle."
    ),
    "abandoned": (
        "was abandoned in the ledger. What it was answered may not be published. Start a new release."
    ),
}


def taken_over(release_id: str, state: State) -> TakenOver:
    """The refusal of a run whose release has another holder, or has ended."""
    return TakenOver(f"Release {release_id} {_TAKEN[state].format(id=release_id)}")


def check_holder(recorded: ReleaseEntry, holder: str) -> None:
    """TakenOver unless a release is under way and a run is its holder."""
    if recorded.state != "reserved" or recorded.holder != holder:
        raise taken_over(recorded.release_id, recorded.state)


def check_end(recorded: ReleaseEntry, state: State, charge: Cost) -> None:
    """DpsynthError unless a release may end in a state at a charge."""
    if recorded.state != "reserved":
        raise DpsynthError(
            f"Release {recorded.release_id} is already {recorded.state} in the ledger at "
            f"{recorded.cost.amount.shown()}; it can't become {state} at {charge.amount.shown()}."
        )
    if not charge.within(recorded.reserved):
        raise DpsynthError(
            f"The journal of release {recorded.release_id} adds up to {_shown(charge)}, more than the "
            f"{_shown(recorded.reserved)} that it reserved. The reservation stands. This is a fault of "
            "the software; please report it as SECURITY.md says."
        )


def _shown(cost: Cost) -> str:
    half = cost.half_mu_squared
    mu = "no bound on mu" if half is None else f"mu^2/2 = {digits(half, up=True)}"
    approximate_delta = (
        f", approximate δ {digits(cost.approximate_delta, up=True)}" if cost.approximate_delta else ""
    )
    return f"{cost.amount.shown()} (rho = {digits(cost.rho, up=True)}, {mu}{approximate_delta})"
