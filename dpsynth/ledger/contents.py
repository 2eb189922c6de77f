"""The content of the ledger's rows, to JSON and back.

Invariant: amounts are exact rationals as text ("3", "1/1000000"); nothing is rounded on the way in or
out. Content that can't be read raises one of ``UNREADABLE``, whatever it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.cost import Cost, charge
from dpsynth.accounting.neighbours import EVENT, ROW, neighbours_in_words
from dpsynth.columns.slices import Slice
from dpsynth.ledger.balance import CapChange, ReleaseEntry, Reservation, State, UnitChange
from dpsynth.ledger.chain import KINDS, Row
from dpsynth.ledger.privacy_filter import Filter

UNREADABLE = (KeyError, ValueError, TypeError, AttributeError, RecursionError, ZeroDivisionError)
"""The errors that reading a damaged row may raise."""

_BEFORE = "0"
"""The approximate delta of rows of format 2, which have no such field; older rows call it ``lapse``."""

_UNSAID = ""
"""The holder and the digest of rows before format 4, and the declaration of rows before format 5."""

_NO_FRACTION = "has a figure that is no fraction"
_RATIONAL = re.compile(r"[0-9]+(/[0-9]+)?")
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


def of_reservation(entry: Reservation) -> dict[str, object]:
    """Content of a reservation's row."""
    return {
        "release": entry.release,
        "occasion": entry.occasion,
        "part": None if entry.part is None else entry.part.to_json(),
        "parallel": entry.parallel,
        "spec": entry.spec,
        "cost": _cost_json(entry.cost),
        "holder": entry.holder,
        "source": entry.source,
        "other_people": entry.other_people,
        # Only where there are some: an account without them stays readable by earlier versions.
        **(
            {"audiences": {name: str(epsilon) for name, epsilon in entry.audiences}}
            if entry.audiences
            else {}
        ),
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
    audiences = read(content, "audiences", dict) if "audiences" in content else {}
    entry = ReleaseEntry(
        release_id=str(row.release_id),
        dataset=row.dataset,
        release=read(content, "release", str),
        occasion=None if occasion is None else read(content, "occasion", str),
        part=None if part is None else Slice.from_json(read(content, "part", dict)),
        parallel=read(content, "parallel", bool),
        spec=read(content, "spec", str),
        state="reserved",
        reserved=cost,
        cost=cost,
        created=created,
        holder=_word(content, "holder"),
        source=read(content, "source", str) if "source" in content else None,
        other_people=_word(content, "other_people"),
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
    return _word(facts(last), "holder") if state_after(last) == "reserved" else None


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
        # Rows of earlier versions may hold less.
        cost=charge(recorded.reserved, cost),
        ended=created,
        events=tuple(events),
        reason=read(content, "reason", str),
        digest=_word(content, "digest"),
    )


def cap_of(content: Mapping[str, object], created: date, reason: str, kind: Filter) -> CapChange:
    """The cap that a row puts in force, which a filter must be able to keep to."""
    cap, approximate_share = (
        _amount(read(content, "cap", dict)),
        _rational(content.get("approximate_share", content.get("lapses", _BEFORE))),
    )
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


def _word(content: Mapping[str, object], key: str) -> str:
    return read(content, key, str) if key in content else _UNSAID


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


def _amount(record: Mapping[str, object]) -> Amount:
    return Amount(_rational(record["epsilon"]), _rational(record["delta"]))


def _cost(record: object) -> Cost:
    if not isinstance(record, dict):
        raise MalformedContent("has no cost")
    half = record["half_mu_squared"]
    return _cost_of(
        *map(_figure, (record["epsilon"], record["delta"], record["rho"])),
        None if half is None else _figure(half),
        _figure(record.get("approximate_delta", record.get("lapse", _BEFORE))),
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
