"""Column names that say what whole numbers mean: parts of the calendar and the clock, and persons.

Invariant: a name alone decides nothing; ``profiling`` asks the cells too.
"""

from __future__ import annotations

import re

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
_PERSONS = {
    *("id", "ids", "pid", "uid", "idcode", "ssn", "mrn", "nhs"),
    *("person", "persons", "patient", "patients", "subject", "participant", "respondent", "insured"),
    *("client", "customer", "member", "user", "visitor", "household", "taxpayer"),
    *("student", "pupil", "employee"),
}


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name in lower case.

    >>> words_of("birth_month"), words_of("patientID"), words_of("Day of Week")
    (('birth', 'month'), ('patient', 'id'), ('day', 'of', 'week'))
    """
    return tuple(word.lower() for word in re.findall("[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+", name))


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


def names_a_person(name: str) -> bool:
    """True if a name is one of a person's number.

    >>> [names_a_person(name) for name in ("patient_id", "ID", "customerId", "paid", "grid")]
    [True, True, True, False, False]
    """
    words = words_of(name)
    return bool(words) and (words[-1] in _PERSONS or words[0] in {"id", "idcode"})
