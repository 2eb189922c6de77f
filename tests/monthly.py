"""A real ledger of a release a month, on a calendar of the test's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from fractions import Fraction
from zlib import crc32

import pytest

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import planned, spent
from dpsynth.accounting.events import ExponentialEvent, LaplaceEvent, RecordedEvent, to_json
from dpsynth.accounting.measures import PURE, ZCDP
from dpsynth.accounting.slices import Slice, span_of
from dpsynth.ledger import store as ledger_tables
from dpsynth.ledger.balance import Balance, Filter, Reservation
from dpsynth.ledger.ledger import Ledger

EVENTS: tuple[RecordedEvent, ...] = (*[LaplaceEvent(40.0, 1)] * 8, *[ExponentialEvent(50.0, 1)] * 3)
"""What each release asks: less than it reserves."""


@dataclass
class Months:
    """A dataset of a ledger, whose clock stands two days after the month that is released.

    ``seen`` has the account as it was after each change.
    """

    ledger: Ledger
    dataset: str = "visits"
    name: str = "visits"
    unit: str = "one row"
    filter: Filter = ZCDP
    epsilon: str = "1"
    delta: str = "1e-9"
    cap: tuple[str, str] = ("4", "1e-6")
    approximate_delta: str = "0"
    parallel: bool = False
    source: str = ""
    other_people: str = ""
    today: date = date(2026, 1, 1)
    seen: list[tuple[date, Balance]] = field(default_factory=list)

    def on_its_clock(self, monkeypatch: pytest.MonkeyPatch) -> Months:
        """Itself, after the ledger was given its clock."""
        monkeypatch.setattr(ledger_tables, "today", lambda: self.today)
        return self

    def reserve(self, month: int, occasion: str | None = None) -> str:
        """Reserve for a month, counted from January 2026; the release's id."""
        label = f"{2026 + month // 12}-{month % 12 + 1:02}"
        span = span_of(label)
        assert span is not None
        self.today = max(self.today, span[1] + timedelta(days=2))
        measure = self.filter
        amount = Amount(Fraction(self.epsilon), Fraction(0 if measure == PURE else self.delta))
        approximate_delta = Fraction(self.approximate_delta)
        budget = measure.budget(amount.epsilon, (amount.delta - approximate_delta) or None)
        entry = self.ledger.reserve(
            Reservation(
                release_id=f"{self.today:%Y%m%d}-{crc32(f'{self.dataset} {occasion or label}'.encode()):08x}",
                dataset=self.dataset,
                unit=self.unit,
                neighbours="add_remove",
                cap=Amount(*map(Fraction, self.cap)),
                filter=self.filter,
                suits=self.filter,
                cost=planned(measure, "laplace", budget, amount, approximate_delta),
                release=self.name,
                occasion=occasion or label,
                part=Slice("visited", label, *span),
                parallel=self.parallel,
                holder="first",
                source=self.source,
                other_people=self.other_people,
            )
        )
        self.seen.append((self.today, self.account))
        return entry.release_id

    def settle(self, release_id: str, *, days: int = 0) -> None:
        """Close a release some days later, at nine tenths of the epsilon that it reserved."""
        self.today += timedelta(days=days)
        known = self.ledger.release(release_id)
        assert known is not None
        amount = Amount(known.reserved.amount.epsilon * Fraction(9, 10), known.reserved.amount.delta)
        self.ledger.settle(release_id, spent(EVENTS, amount), [to_json(e) for e in EVENTS], known.holder)
        self.seen.append((self.today, self.account))

    def abandon(self, release_id: str, reason: str = "lost") -> None:
        """Give a release up, charged with all that it reserved."""
        self.ledger.abandon(release_id, None, [], reason)
        self.seen.append((self.today, self.account))

    def release(self, *months: int) -> None:
        """Reserve and close, month by month."""
        for month in months:
            self.settle(self.reserve(month))

    @property
    def account(self) -> Balance:
        """As the ledger has it now."""
        found = self.ledger.balance(self.dataset)
        assert found is not None
        return found
