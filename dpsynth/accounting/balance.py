"""A dataset's account: its cap, what its releases count for, and the filter that refuses more.

Invariant: a reservation is let through only when the epsilons and the deltas of all
releases of the dataset, this one in full, each sum to at most the cap's. That is basic
composition, valid also where later budgets and questions are chosen from earlier outputs
(Rogers, Roth, Ullman and Vadhan 2016, "Privacy odometers and filters").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Literal

from dpsynth.accounting.amount import Amount
from dpsynth.errors import BudgetRefused, ConfigError

State = Literal["reserved", "closed", "abandoned"]
"""Reserved counts in full; closed and abandoned count for what they were charged."""


@dataclass(frozen=True)
class Reservation:
    """What a release asks of a dataset's budget before it may open the table.

    Attributes:
        release_id: names the release for ever.
        dataset: the ledger's name of the private table.
        unit: the privacy unit in words.
        neighbours: "add_remove" or "replace_one".
        cap_epsilon, cap_delta: the cap that the config states, not rounded up.
        epsilon, delta: the most that the release can cost, not rounded down.

    Raises:
        TypeError, ValueError: a figure is a float, or negative.
    """

    release_id: str
    dataset: str
    unit: str
    neighbours: str
    cap_epsilon: Fraction
    cap_delta: Fraction
    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        """Reject inexact figures before anything is made of them."""
        _ = self.cost, self.cap

    @property
    def cost(self) -> Amount:
        """What is asked for."""
        return Amount(self.epsilon, self.delta)

    @property
    def cap(self) -> Amount:
        """The config's cap."""
        return Amount(self.cap_epsilon, self.cap_delta)


@dataclass(frozen=True)
class ReleaseEntry:
    """What one release counts for: its reservation while reserved, its charge afterwards.

    Attributes:
        created: UTC date; in an account, that of the reservation.
    """

    release_id: str
    dataset: str
    state: State
    epsilon: Fraction
    delta: Fraction
    created: date

    @property
    def cost(self) -> Amount:
        """The figures as an amount."""
        return Amount(self.epsilon, self.delta)


@dataclass(frozen=True)
class Balance:
    """A dataset's account.

    Attributes:
        unit, neighbours: what the dataset's guarantees are about, as first recorded.
        cap: as first recorded.
        releases: in the order of their reservations.
    """

    dataset: str
    unit: str
    neighbours: str
    cap: Amount
    releases: tuple[ReleaseEntry, ...] = ()

    @property
    def spent(self) -> Amount:
        """Sum over closed and abandoned releases."""
        return _total(release.cost for release in self.releases if release.state != "reserved")

    @property
    def reserved(self) -> Amount:
        """Sum over releases that have not ended."""
        return _total(release.cost for release in self.releases if release.state == "reserved")

    @property
    def left(self) -> Amount:
        """Cap less spent and reserved."""
        return self.cap.less(self.spent + self.reserved)


def _total(amounts: Iterable[Amount]) -> Amount:
    return sum(amounts, Amount())


def first_balance(entry: Reservation) -> Balance:
    """The account of a dataset that the ledger meets for the first time."""
    return Balance(entry.dataset, entry.unit, entry.neighbours, entry.cap)


def check_protection(entry: Reservation, account: Balance) -> None:
    """ConfigError unless a reservation protects the same thing as the account before it.

    Guarantees about rows and about persons, or under two relations, don't add up.
    """
    if (entry.unit, entry.neighbours) != (account.unit, account.neighbours):
        raise ConfigError(
            f"Dataset '{entry.dataset}' is in the ledger with the unit '{account.unit}' and the relation "
            f"{account.neighbours}, and this config has '{entry.unit}' and {entry.neighbours}. Their costs "
            "can't be added up. Use the recorded unit and relation, or another ledger.dataset with a cap "
            "of its own."
        )


def check_resumed(entry: Reservation, earlier: Sequence[ReleaseEntry]) -> None:
    """ConfigError unless a release that the ledger knows asks for what it asked before.

    Args:
        entry: what is asked for now.
        earlier: the release's reservation, then its end if it has one.
    """
    first, last = earlier[0], earlier[-1]
    if (first.dataset, first.cost) != (entry.dataset, entry.cost):
        raise ConfigError(
            f"Release {entry.release_id} already stands in the ledger for dataset '{first.dataset}' at "
            f"{first.cost.shown()}. A resumed release needs the config that it began with."
        )
    if last.state == "abandoned":
        raise ConfigError(
            f"Release {entry.release_id} was abandoned, and what it had left has been given back. "
            "Start a new release."
        )


def check_allowed(entry: Reservation, account: Balance, ledger: str) -> None:
    """The filter: BudgetRefused unless a reservation and all before it fit under the cap.

    The cap is the account's; a lower one in the config holds for this reservation, a higher
    one raises nothing.
    """
    cap = account.cap.capped(entry.cap)
    counted = account.spent + account.reserved
    if (counted + entry.cost).within(cap):
        return
    parts = [
        f"The ledger {ledger} refuses release {entry.release_id}: it asks for {entry.cost.shown()}, and "
        f"dataset '{entry.dataset}' has {cap.less(counted).shown(up=False)} left of its cap of "
        f"{cap.shown(up=False)} (spent: {account.spent.shown()}; reserved: {account.reserved.shown()})."
    ]
    if cap != account.cap:
        parts.append(f"This config's cap is lower than the recorded {account.cap.shown(up=False)}.")
    if cap != entry.cap:
        parts.append(
            f"This config's cap of {entry.cap.shown(up=False)} doesn't raise the one that was recorded first."
        )
    pending = [release.release_id for release in account.releases if release.state == "reserved"]
    if pending:
        parts.append(f"These releases have not ended and can be resumed: {', '.join(pending)}.")
    parts.append(
        "Ask for less with privacy.epsilon and privacy.delta. Nothing was read and nothing was charged."
    )
    raise BudgetRefused(" ".join(parts))
