"""Contents of the ledger's rows, to JSON and back, and the accounts that they add up to.

Invariant: amounts are exact rationals as text ("3", "1/1000000"); nothing is rounded on the way in or out.
Content that can't be read raises one of ``UNREADABLE``, whatever it is. A row that can't follow the rows
before it is refused, whatever it holds, in words that begin with its number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, Self, TypeVar

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import Cost, charge
from dpsynth.accounting.measures import MEASURES
from dpsynth.accounting.neighbours import EVENT, ROW, neighbours_in_words
from dpsynth.accounting.slices import Slice
from dpsynth.ledger.balance import Balance, CapChange, ReleaseEntry, Reservation, State, UnitChange
from dpsynth.ledger.chain import GOVERNING, KINDS, Kind, Row
from dpsynth.ledger.filters import (
    NOTHING_COUNTED,
    Counted,
    Figures,
    Filter,
    bound,
    figures,
    plus,
    total_of,
    within,
)
from dpsynth.wing import Point

UNREADABLE = (KeyError, ValueError, TypeError, AttributeError, RecursionError, ZeroDivisionError)
"""The errors that reading a damaged row may raise."""

_NO_FRACTION = "has a figure that is no fraction"

_RATIONAL = re.compile(r"[0-9]+(/[0-9]+)?")

_TEXTS = ("release", "spec", "holder", "source", "other_people")
"""The texts of a reservation's row."""

_COMPARED = ("config", "plan", "unit", "neighbours")

T = TypeVar("T")


class MalformedContent(ValueError):
    """A row whose content has a fault; the text has the row as its subject."""


def of_dataset(entry: Reservation, approximate_share: Fraction) -> dict[str, object]:
    """Content of the row that opens an account, which keeps a share of delta for partition selection."""
    return {
        "unit": entry.unit,
        "neighbours": entry.neighbours,
        "filter": (entry.filter or entry.suits).accountant,
        "cap": _amount_json(entry.cap),
        "approximate_share": str(approximate_share),
    }


def of_reservation(entry: Reservation, *, governed: bool = False) -> dict[str, object]:
    """Content of a reservation's row; where a policy is in force, with what it compares."""
    return {
        **({key: getattr(entry, key) for key in _COMPARED} if governed else {}),
        **{key: getattr(entry, key) for key in _TEXTS},
        "occasion": entry.occasion,
        "part": None if entry.part is None else entry.part.to_json(),
        "parallel": entry.parallel,
        "cost": _cost_json(entry.cost),
        "audiences": {name: str(epsilon) for name, epsilon in entry.audiences},
    }


def of_resumption(holder: str) -> dict[str, object]:
    """Content of the row by which another run goes on with a release."""
    return {"holder": holder}


def of_end(cost: Cost, events: Sequence[Mapping[str, object]], reason: str, digest: str) -> dict[str, object]:
    """Content of the row that ends a release."""
    return {
        "cost": _cost_json(cost),
        "events": [dict(event) for event in events],
        "reason": reason,
        "digest": digest,
    }


def of_cap(cap: Amount, approximate_share: Fraction, reason: str) -> dict[str, object]:
    """Content of a row that changes a cap."""
    return {"cap": _amount_json(cap), "approximate_share": str(approximate_share), "reason": reason}


def of_unit(unit: str, most_rows: int | None, reason: str) -> dict[str, object]:
    """Content of the row that changes an account's unit."""
    return {"unit": unit, "most_rows": most_rows, "reason": reason}


def facts(row: Row) -> Mapping[str, object]:
    """The facts of a row."""
    if row.kind not in KINDS:
        raise MalformedContent("is of no known kind")
    content = json.loads(row.content)
    if not isinstance(content, dict):
        raise MalformedContent("has no content")
    return content


def reserved(row: Row, content: Mapping[str, object], created: date) -> ReleaseEntry:
    """The release of a reservation's row."""
    cost, part, occasion = _cost(content["cost"]), content["part"], content["occasion"]
    audiences = read(content, "audiences", dict)
    texts: dict[str, Any] = {
        key: read(content, key, str) for key in ("release", "spec", "holder", "source", "other_people")
    }
    entry = ReleaseEntry(
        **texts,
        release_id=str(row.release_id),
        dataset=row.dataset,
        occasion=None if occasion is None else read(content, "occasion", str),
        part=None if part is None else Slice.from_json(read(content, "part", dict)),
        parallel=read(content, "parallel", bool),
        state="reserved",
        reserved=cost,
        cost=cost,
        created=created,
        audiences=tuple(
            sorted(((str(name), _rational(e)) for name, e in audiences.items()), key=lambda one: one[1])
        ),
    )
    if entry.parallel and entry.part is None:
        raise MalformedContent("reserves for a part and names none")
    return entry


def resumed(row: Row, content: Mapping[str, object], recorded: ReleaseEntry | None) -> ReleaseEntry:
    """A reserved release after the row by which another run becomes its holder."""
    if recorded is None or recorded.state != "reserved":
        raise MalformedContent(f"resumes release {row.release_id}, which is not under way")
    return replace(recorded, holder=read(content, "holder", str))


def holder_of(last: Row) -> str | None:
    """The run that may go on with a release, by the last row about it; None once it has ended."""
    return read(facts(last), "holder", str) if state_after(last) == "reserved" else None


def state_after(last: Row) -> State:
    """The state of a release, by the last row about it."""
    return "closed" if last.kind == "closed" else "abandoned" if last.kind == "abandoned" else "reserved"


def ended(
    row: Row, content: Mapping[str, object], created: date, recorded: ReleaseEntry | None
) -> ReleaseEntry:
    """A reserved release after the row that ends it."""
    if recorded is None or recorded.state != "reserved":
        raise MalformedContent(f"ends release {row.release_id}, which is not under way")
    cost, events = _cost(content["cost"]), read(content, "events", list)
    if not cost.within(recorded.reserved):
        raise MalformedContent(f"charges release {row.release_id} with more than it reserved")
    if not all(isinstance(event, dict) for event in events):
        raise MalformedContent("has events that are none")
    return replace(
        recorded,
        state=state_after(row),
        cost=charge(recorded.reserved, cost),
        ended=created,
        events=tuple(events),
        reason=read(content, "reason", str),
        digest=read(content, "digest", str),
    )


def cap_of(content: Mapping[str, object], created: date, reason: str, kind: Filter) -> CapChange:
    """The cap that a row puts in force, which a filter must be able to keep to."""
    given = read(content, "cap", dict)
    cap = Amount(_rational(given["epsilon"]), _rational(given["delta"]))
    approximate_share = _rational(content["approximate_share"])
    if cap.delta >= 1 or approximate_share >= 1 or (not cap.delta if kind.needs_delta else approximate_share):
        raise MalformedContent("has a cap that the filter can't keep to")
    return CapChange(cap, created, reason, approximate_share)


def unit_of(content: Mapping[str, object], created: date, before: str, neighbours: str) -> UnitChange:
    """The change of a unit that a row puts in force, after another unit under a neighbour relation."""
    unit, most = read(content, "unit", str), content["most_rows"]
    number = None if most is None else read(content, "most_rows", int)
    if before not in (ROW, EVENT):
        raise MalformedContent(f"changes the unit '{before}', which is no row")
    if neighbours_in_words("add_remove", unit).person is None:
        raise MalformedContent("changes the unit to one that is none of persons")
    if number is not None and (number < 1 or neighbours != "add_remove"):
        raise MalformedContent("has a number of rows that bounds nothing")
    return UnitChange(before, unit, number, created, read(content, "reason", str))


def read(content: Mapping[str, object], key: str, kind: type[T]) -> T:
    """A field, of exactly one type."""
    value = content[key]
    if type(value) is not kind:
        raise MalformedContent(f"has no {key} that can be read")
    return value


def _amount_json(amount: Amount) -> dict[str, str]:
    return {"epsilon": str(amount.epsilon), "delta": str(amount.delta)}


def _cost_json(cost: Cost) -> dict[str, str | None]:
    half = cost.half_mu_squared
    return {
        **_amount_json(cost.amount),
        "rho": str(cost.rho),
        "half_mu_squared": None if half is None else str(half),
        "approximate_delta": str(cost.approximate_delta),
    }


def _cost(record: object) -> Cost:
    if not isinstance(record, dict):
        raise MalformedContent("has no cost")
    half = record["half_mu_squared"]
    return _cost_of(
        *map(_figure, (record["epsilon"], record["delta"], record["rho"])),
        None if half is None else _figure(half),
        _figure(record["approximate_delta"]),
    )


# The releases of a ledger have the same few costs.
@lru_cache(maxsize=4096)
def _cost_of(epsilon: str, delta: str, rho: str, half: str | None, approximate_delta: str) -> Cost:
    return Cost(
        Amount(_fraction(epsilon), _fraction(delta)),
        _fraction(rho),
        None if half is None else _fraction(half),
        _fraction(approximate_delta),
    )


def _rational(text: object) -> Fraction:
    return _fraction(_figure(text))


def _figure(text: object) -> str:
    if not isinstance(text, str):
        raise MalformedContent(_NO_FRACTION)
    return text


def _fraction(text: str) -> Fraction:
    # A decimal such as 1e999999999 would take all memory there is.
    if not _RATIONAL.fullmatch(text):
        raise MalformedContent(_NO_FRACTION)
    return Fraction(text)


class InvalidRow(ValueError):
    """A row that can't follow the rows before it; the text begins with the row's number."""


class Governance(Protocol):
    """The policy of a ledger, by its rows so far: who may do what, and which releases are approved.

    ``enter`` takes every row, and raises ``MalformedContent`` where the policy of its time did not allow it.
    ``check`` raises ``NotApproved`` unless a release may be reserved on a day, or one that is recorded may go
    on; ``planned`` says so beforehand, whatever the occasion. ``sealed`` adds to the content of a row of the
    ledger's own what the policy wants in it, such as a signature, or raises ``NotApproved``. A release is
    found as it was before the row.
    """

    @property
    def in_force(self) -> bool: ...

    def copy(self) -> Self: ...

    def enter(
        self,
        row: Row,
        content: Mapping[str, object],
        created: date,
        release: Callable[[str], ReleaseEntry | None],
    ) -> None: ...

    def check(
        self,
        wanted: Reservation,
        recorded: ReleaseEntry | None,
        day: date,
        release: Callable[[str], ReleaseEntry | None],
        ledger: str,
    ) -> None: ...

    def planned(
        self, wanted: Reservation, day: date, release: Callable[[str], ReleaseEntry | None]
    ) -> str: ...

    def sealed(
        self,
        last: Row | None,
        kind: Kind,
        dataset: str,
        release_id: str | None,
        content: Mapping[str, object],
        day: date,
        release: Callable[[str], ReleaseEntry | None],
    ) -> Mapping[str, object]: ...


GOVERNANCE: Point[Callable[[], Governance]] = Point("policy of a ledger", "governance")
"""The policy of a ledger that has none yet."""


@dataclass
class _Account:
    """An account while rows are entered.

    Attributes:
        checked: true to check that each reservation kept to the cap that was in force.
        everyone: the filter's sums over the releases that are about the whole table, if that is checked.
        kept: true if all sums were within the cap at the last check.
    """

    dataset: str
    unit: str
    neighbours: str
    filter: Filter
    caps: list[CapChange]
    opened: date
    checked: bool
    everyone: Figures = NOTHING_COUNTED
    kept: bool = False
    releases: dict[str, ReleaseEntry] = field(default_factory=dict)
    parts: dict[str, Counted] = field(default_factory=dict)
    changed: UnitChange | None = None

    def change_unit(self, change: UnitChange) -> None:
        unfinished = next((r.release_id for r in self.releases.values() if r.state == "reserved"), None)
        if unfinished is not None:
            raise MalformedContent(f"changes the unit while release {unfinished} is under way")
        self.unit, self.changed, self.parts, self.everyone = change.unit, change, {}, NOTHING_COUNTED
        self.kept = False
        for name, entry in self.releases.items():
            self.releases[name] = replace(entry, changed=change)
            if self.checked:
                self.everyone = plus(self.everyone, self._figures(self.releases[name].counted.cost))

    def count(self, entry: ReleaseEntry) -> None:
        before, found = self.releases.get(entry.release_id), self._figures(entry.cost)
        self.releases[entry.release_id] = entry
        if entry.parallel:
            self.parts[entry.release_id] = entry.counted
        elif self.checked:
            self.everyone = plus(self.everyone, found)
            if before is not None:
                self.everyone = plus(self.everyone, tuple(-f for f in self._figures(before.cost)))

    def _figures(self, cost: Cost) -> Figures:
        found = figures(self.filter, cost)
        if found is None:
            raise MalformedContent("costs what the filter can't count")
        return found

    def keeps_to_its_cap(self, last: ReleaseEntry) -> bool:
        """True if all sums are within the cap, given that only the last release raised some."""
        part = last.counted.part
        near: Iterable[Counted] = self.parts.values()
        if self.kept and part is not None:
            # Only the sums of the persons in this part have grown.
            near = [c for c in near if c.part is not None and c.part.overlaps(part)]
        total = plus(self.everyone, total_of(self.filter, near))
        self.kept = within(total, bound(self.filter, self.caps[-1].cap, self.caps[-1].approximate_share))
        return self.kept

    def copy(self) -> _Account:
        return replace(self, caps=list(self.caps), releases=dict(self.releases), parts=dict(self.parts))

    def balance(self) -> Balance:
        return Balance(
            self.dataset,
            self.unit,
            self.neighbours,
            self.filter,
            tuple(self.caps),
            tuple(self.releases.values()),
            self.opened,
            self.changed,
        )


class Book:
    """Rows, entered one by one, and the accounts that they add up to."""

    def __init__(self, *, checking_caps: bool = False) -> None:
        self._checking_caps = checking_caps
        self._accounts: dict[str, _Account] = {}
        self._dataset_of: dict[str, str] = {}
        self._last = date.min
        self.governance: Governance | None = None

    def copy(self) -> Book:
        other = Book(checking_caps=self._checking_caps)
        other._accounts = {name: account.copy() for name, account in self._accounts.items()}
        other._dataset_of, other._last = dict(self._dataset_of), self._last
        other.governance = self.governance and self.governance.copy()
        return other

    @property
    def policy(self) -> Governance | None:
        return self.governance if self.governance is not None and self.governance.in_force else None

    def enter(self, row: Row) -> None:
        """Enter a row.

        Raises:
            InvalidRow: the row can't follow the rows before it.
        """
        try:
            created = date.fromisoformat(row.created)
            if created.isoformat() != row.created:
                raise MalformedContent("has no plain date")
            early, self._last = created < self._last, max(created, self._last)
            self._enter(row, facts(row), created)
        except UNREADABLE as error:
            # A parser's message may be long.
            words = str(error) if isinstance(error, MalformedContent) else "can't be read"
            raise InvalidRow(f"row {row.number}: it {words}") from error
        if early:
            raise InvalidRow(f"row {row.number}: it is dated before the row before")
        if self._checking_caps and row.kind == "reserved":
            account = self._accounts[row.dataset]
            if not account.keeps_to_its_cap(account.releases[str(row.release_id)]):
                what = f"for release {row.release_id} what the cap did not allow"
                raise InvalidRow(f"row {row.number}: it reserves {what}")

    def balance(self, dataset: str) -> Balance | None:
        account = self._accounts.get(dataset)
        return None if account is None else account.balance()

    def balances(self) -> tuple[Balance, ...]:
        return tuple(account.balance() for account in self._accounts.values())

    def release(self, release_id: str) -> ReleaseEntry | None:
        dataset = self._dataset_of.get(release_id)
        return None if dataset is None else self._accounts[dataset].releases[release_id]

    def _enter(self, row: Row, content: Mapping[str, object], created: date) -> None:
        if (row.release_id is None) != (row.kind in ("dataset", "cap", "unit", *GOVERNING)):
            raise MalformedContent("is not about what its kind is about")
        if row.kind in GOVERNING and self.governance is None:
            self.governance = GOVERNANCE.needed("A ledger with a policy, or with withdrawn releases,")()
        if self.governance is not None:
            self.governance.enter(row, content, created, self.release)
        if row.kind in GOVERNING:
            return
        if row.kind == "dataset":
            self._open(row, content, created)
            return
        account = self._accounts.get(row.dataset)
        if account is None:
            raise MalformedContent(f"is about the dataset {row.dataset!r}, which no row before it opens")
        if row.kind == "cap":
            account.caps.append(cap_of(content, created, read(content, "reason", str), account.filter))
            account.kept = False
        elif row.kind == "unit":
            account.change_unit(unit_of(content, created, account.unit, account.neighbours))
        elif row.kind == "reserved":
            if row.release_id in self._dataset_of:
                raise MalformedContent(f"reserves for release {row.release_id} a second time")
            entry = reserved(row, content, created)
            if entry.parallel and account.neighbours != "add_remove":
                raise MalformedContent(f"counts for a part only, under {account.neighbours}")
            account.count(entry)
            self._dataset_of[str(row.release_id)] = row.dataset
        elif row.kind == "resumed":
            account.count(resumed(row, content, account.releases.get(str(row.release_id))))
        else:
            account.count(ended(row, content, created, account.releases.get(str(row.release_id))))

    def _open(self, row: Row, content: Mapping[str, object], created: date) -> None:
        if row.dataset in self._accounts:
            raise MalformedContent(f"opens the dataset {row.dataset!r} a second time")
        kind = next((m for m in MEASURES if m.accountant == content["filter"]), None)
        if kind is None:
            raise MalformedContent("names no known filter")
        self._accounts[row.dataset] = _Account(
            row.dataset,
            read(content, "unit", str),
            read(content, "neighbours", str),
            kind,
            [cap_of(content, created, "", kind)],
            created,
            self._checking_caps,
        )


def problems_of(rows: Iterable[Row]) -> list[str]:
    """The rows that can't stand, each in words that begin with the row's number."""
    book, found = Book(checking_caps=True), []
    for row in rows:
        try:
            book.enter(row)
        except InvalidRow as error:
            found.append(str(error))
    return found
