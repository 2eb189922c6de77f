"""Column names that say what whole numbers mean: parts of the calendar and the clock, and persons.

Invariant: a name alone decides nothing; ``profiling`` asks the cells too.
"""

from __future__ import annotations

import re
from typing import Literal

_PARTS: dict[str, tuple[int, int]] = {
    "month": (1, 12),
    "day": (1, 31),
    "dom": (1, 31),
    "hour": (0, 23),
    "hr": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
    "quarter": (1, 4),
    "qtr": (1, 4),
    "week": (1, 53),
}


_WEEKDAYS = {"weekday", "wday", "dow"}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PERSONS = _words(
    """
    person persons patient patients subject participant respondent insured idcode client customer member user
    visitor taxpayer citizen resident passenger student pupil employee ssn mrn nhs bsn dni pid uid email mail
    patienten kunde kunden versicherter versicherten mitglied mitglieder teilnehmer klient klienten nutzer
    mitarbeiter schüler studierende paciente cliente klant
    """
)


_HOUSEHOLDS = _words("household households hh hhid family familie haushalt haushalts dwelling foyer")


_ACCOUNTS = _words("account accounts acct card policy konto karte karten police contract vertrag")


_NUMBERS = _words("id ids nr no num number nummer key ref code hash token")


_EVENTS = _words(
    """
    visit event order claim case encounter stay trip transaction booking invoice row record besuch fall
    auftrag rechnung buchung
    """
)


_THINGS = _words(
    """
    zip zipcode postcode postal post plz city town county state country region district street place location
    area tract block nation ort stadt land kreis ward department dept hospital clinic site centre center store
    shop branch school station unit bed room product products item article artikel produkt sku ean gtin isbn
    goods drug drugs medication ndc atc icd diag diagnosis diagnose procedure cpt hcpcs loinc code category
    class type group kind status grade date day month year time hour minute second datum tag monat jahr zeit
    amount price cost total sum balance income salary wage rate fee betrag preis kosten gehalt umsatz distance
    weight height length duration age count size flight plane tailnum aircraft vehicle route line carrier
    brand model job occupation profession industry language
    """
)


Whose = Literal["person", "household", "account", "number", "event", "thing"]
"""Owners of values that a column's name tells."""


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name in lower case.

    >>> words_of("birth_month"), words_of("patientID"), words_of("Day of Week")
    (('birth', 'month'), ('patient', 'id'), ('day', 'of', 'week'))
    """
    return tuple(word.lower() for word in re.findall("[A-ZÄÖÜ]?[a-zäöüß]+|[A-ZÄÖÜ]+(?![a-z])|[0-9]+", name))


def calendar_ends(name: str, low: int, high: int) -> tuple[int, int] | None:
    """First and last value of a part of the calendar or the clock, if that is what a column's name says.

    Args:
        name: of the column.
        low: the least number in it.
        high: the largest number in it.

    >>> calendar_ends("birth_month", 2, 11), calendar_ends("months", 2, 11), calendar_ends("hour", 0, 90)
    ((1, 12), None, None)
    >>> calendar_ends("day_of_week", 0, 6), calendar_ends("day_of_month", 3, 9)
    ((0, 6), (1, 31))
    """
    words = words_of(name)
    if not words:
        return None
    ends = _PARTS.get(words[-1])
    if words[-1] in _WEEKDAYS or words[-3:] == ("day", "of", "week"):
        ends = (0, 6) if low == 0 else (1, 7)
    elif words[-3:] == ("day", "of", "month"):
        ends = _PARTS["day"]
    return ends if ends is not None and ends[0] <= low <= high <= ends[1] else None


def named_whose(name: str) -> Whose | None:
    """Whose values a column has, by its name alone; None if the name says nothing.

    >>> [named_whose(name) for name in ("patient_id", "kunden_nr", "Card No.", "product_id")]
    ['person', 'person', 'account', 'thing']
    >>> [named_whose(name) for name in ("ID", "household", "visit number", "customer type", "paid")]
    ['number', 'household', 'event', 'thing', None]
    """
    words = words_of(name)
    if not words:
        return None
    # What a column is comes last in English; a number of something comes last as well.
    told = [word for word in words if word not in _NUMBERS] or list(words)
    for whose, known in _OWNERS:
        if told[-1] in known:
            return whose
    if words[-1] in _NUMBERS or words[0] in {"id", "idcode"}:
        return next((whose for whose, known in _OWNERS if known.intersection(told)), "number")
    return None


_OWNERS: tuple[tuple[Whose, frozenset[str]], ...] = (
    ("thing", _THINGS),
    ("household", _HOUSEHOLDS),
    ("person", _PERSONS),
    ("account", _ACCOUNTS),
    ("event", _EVENTS),
)


def names_a_person(name: str) -> bool:
    """True if a name is one of a person's number.

    >>> [names_a_person(name) for name in ("patient_id", "ID", "customerId", "paid", "grid", "site_id")]
    [True, True, True, False, False, False]
    """
    return named_whose(name) in ("person", "household", "number")
