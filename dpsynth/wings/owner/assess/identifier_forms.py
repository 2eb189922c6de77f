"""Forms of identifiers, names and free text, told by the values of a column; and what its name says.

A column of such texts is never a column of a release unless its owner says so. Numbers with check digits are
told by these: of other numbers one in ten at most would pass, and nearly all of a column have to. A column's
name may say what whole numbers mean: parts of the calendar and the clock, or persons.

Invariant: a form is one of texts alone; it is private, as the texts are. A name alone decides nothing;
``profiling`` asks the cells too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

FEWEST = 20
"""Fewest different values of a column whose form is told."""

_MOST = 2_000
"""Most different values that are looked at."""
_NEARLY_ALL = 0.95
_MOST_NAMES = 0.5
"""Least part of the values of a column of names that have a common name at their beginning or end."""
_SPACED = 0.8
_WORDS_OF_A_TEXT = 5.0
"""Least mean number of words of free text."""
_LETTERS_OF_A_TEXT = 25
_LISTED_TEXTS = 50
"""Most different values of long labels, such as the answers of a questionnaire."""


@dataclass(frozen=True)
class Form:
    """A form that many values of a column have.

    Attributes:
        words: the noun for such values, in the plural.
        personal: True if one value belongs to one person; False for names, which namesakes share, and for
            free text.
    """

    words: str
    personal: bool = True


NAMES = Form("names of persons", personal=False)
FREE_TEXT = Form("free text", personal=False)


def form_of(texts: Sequence[str]) -> Form | None:
    """The form of different texts; None for values of no such form.

    >>> form_of([f"user{i}@example.org" for i in range(40)]).words
    'mail addresses'
    >>> form_of([f"E{i}.{j}" for i in range(10, 30) for j in range(9)]) is None
    True
    """
    if len(texts) < FEWEST:
        return None
    few = texts[:: max(1, len(texts) // _MOST)][:_MOST]
    for form, of_one in _FORMS:
        if _nearly_all(few, of_one):
            return form
    if any(any(c.isdigit() for c in text) for text in few[:FEWEST]):
        return FREE_TEXT if _is_free_text(few, len(texts)) else None
    if _are_names(few):
        return NAMES
    return FREE_TEXT if _is_free_text(few, len(texts)) else None


def _nearly_all(texts: Sequence[str], of_one: Callable[[str], bool]) -> bool:
    most = (1 - _NEARLY_ALL) * len(texts)
    wrong = 0
    for text in texts:
        wrong += not of_one(text)
        if wrong > most:
            return False
    return True


def _matching(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


_MAIL = _matching(r"[^@\s]+@[^@\s]+\.[^@\s.]+")
_UUID = _matching(r"\{?[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\}?")
_PHONE = _matching(r"\+[1-9][0-9 ()/.-]{6,20}|\(?00?[1-9][0-9]{1,4}\)?[ /-][0-9][0-9 -]{4,12}")
_SSN = _matching(r"[0-9]{3}-[0-9]{2}-[0-9]{4}")
_FISCAL_CODE = _matching(
    r"[A-Za-z]{6}[0-9LMNPQRSTUV]{2}[A-Za-z][0-9LMNPQRSTUV]{2}[A-Za-z][0-9LMNPQRSTUV]{3}[A-Za-z]"
)
_INSURANCE_NUMBER = _matching(r"[A-CEGHJ-PR-TW-Z]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]")
_CARE_NUMBER = _matching(r"[1-9][AC-HJKMNP-RT-Y][0-9AC-HJKMNP-RT-Y][0-9]-?[AC-HJKMNP-RT-Y][0-9AC-HJKMNP-RT-Y]"
                         r"[0-9]-?[AC-HJKMNP-RT-Y]{2}[0-9]{2}")  # fmt: skip


def _is_hash(text: str) -> bool:
    """True for 16 or more signs of hexadecimal digits or of base 64, letters and digits mixed."""
    body = text.removeprefix("0x")
    if len(body) < 16 or not re.fullmatch(r"[0-9A-Fa-f]+|[0-9A-Za-z+/_-]+=*", body):
        return False
    changes = sum(a.isdigit() != b.isdigit() for a, b in pairwise(body))
    return changes >= 3 or (len(body) >= 32 and re.fullmatch(r"[0-9A-Fa-f]+", body) is not None)


def _digits(text: str) -> list[int]:
    """The digits of a number, without blanks and signs between them; empty if there is more in it."""
    body = re.sub(r"[\s./-]", "", text)
    return [int(c) for c in body] if re.fullmatch("[0-9]+", body) else []


def _luhn(text: str) -> bool:
    found = _digits(text)
    doubled = [d if i % 2 == 0 else (2 * d - 9 if d > 4 else 2 * d) for i, d in enumerate(reversed(found))]
    return 9 <= len(found) <= 19 and any(found) and sum(doubled) % 10 == 0


def _weighed(weights: Sequence[int], modulus: int) -> Callable[[str], bool]:
    """Numbers of one length whose digits, times their weights, add up to a multiple."""

    def passes(text: str) -> bool:
        found = _digits(text)
        if len(found) != len(weights) or len(set(found)) == 1:
            return False
        return sum(d * w for d, w in zip(found, weights, strict=True)) % modulus == 0

    return passes


_SPANISH = "TRWAGMYFPDXBNJZSQVHLCKE"


def _spanish(text: str) -> bool:
    body = re.sub(r"[\s.-]", "", text).upper()
    if not re.fullmatch(r"[0-9XYZ][0-9]{7}[A-Z]", body):
        return False
    return _SPANISH[int(body[:-1].translate(str.maketrans("XYZ", "012"))) % 23] == body[-1]


def _iban(text: str) -> bool:
    body = text.replace(" ", "").upper()
    if not re.fullmatch(r"[A-Z]{2}[0-9]{2}[0-9A-Z]{10,30}", body):
        return False
    return int("".join(str(int(c, 36)) for c in body[4:] + body[:4])) % 97 == 1


def _complement(first: int, last: int) -> Callable[[str], bool]:
    """Numbers whose last two digits are 97 less the rest of the first ones, as in Belgium and France."""

    def passes(text: str) -> bool:
        found = "".join(map(str, _digits(text)))
        if len(found) != first + last:
            return False
        body, check = int(found[:first]), int(found[first:])
        return check in (97 - body % 97, 97 - (2 * 10**first + body) % 97)

    return passes


def _brazilian(text: str) -> bool:
    found = _digits(text)
    if len(found) != 11 or len(set(found)) == 1:
        return False
    for at in (9, 10):
        rest = sum(d * (at + 1 - i) for i, d in enumerate(found[:at])) * 10 % 11 % 10
        if rest != found[at]:
            return False
    return True


def _german_tax(text: str) -> bool:
    """Numbers of eleven digits by ISO 7064, modulo 11 and 10."""
    found = _digits(text)
    if len(found) != 11 or not found[0]:
        return False
    product = 10
    for digit in found[:10]:
        product = ((digit + product) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == found[10]


_FINNISH = "0123456789ABCDEFHJKLMNPRSTUVWXY"


def _finnish(text: str) -> bool:
    found = re.fullmatch(r"([0-9]{6})[-+A-FU-Y]([0-9]{3})([0-9A-Y])", text.upper())
    return found is not None and _FINNISH[int(found[1] + found[2]) % 31] == found[3]


_SWISS_WEIGHTS = _weighed((1, 3) * 6 + (1,), 10)

_FORMS: tuple[tuple[Form, Callable[[str], bool]], ...] = (
    (Form("mail addresses"), _MAIL),
    (Form("UUIDs"), _UUID),
    (Form("account numbers (IBAN)"), _iban),
    (Form("national numbers (DNI, NIE)"), _spanish),
    (Form("national numbers (codice fiscale)"), _FISCAL_CODE),
    (Form("national numbers (NI)"), _INSURANCE_NUMBER),
    (Form("national numbers (HETU)"), _finnish),
    (Form("national numbers (MBI)"), _CARE_NUMBER),
    (Form("national numbers (SSN)"), _SSN),
    (Form("national numbers (AHV)"), lambda text: text.startswith("756") and _SWISS_WEIGHTS(text)),
    (Form("national numbers (NHS)"), _weighed((10, 9, 8, 7, 6, 5, 4, 3, 2, 1), 11)),
    (Form("national numbers (BSN)"), _weighed((9, 8, 7, 6, 5, 4, 3, 2, -1), 11)),
    (Form("national numbers (PESEL)"), _weighed((1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1), 10)),
    (Form("national numbers (Belgium)"), _complement(9, 2)),
    (Form("national numbers (NIR)"), _complement(13, 2)),
    (Form("national numbers (CPF)"), _brazilian),
    (Form("national numbers (tax number)"), _german_tax),
    (Form("card or national numbers (Luhn)"), _luhn),
    (Form("telephone numbers"), _PHONE),
    (Form("hashes or keys"), _is_hash),
)


def _are_names(texts: Sequence[str]) -> bool:
    """True if most texts begin or end with a common name, and hold nothing but one to five words."""
    found = [re.findall(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*\.?", text) for text in texts]
    plain = [
        words for text, words in zip(texts, found, strict=True) if 1 <= len(words) <= 5 and len(text) <= 60
    ]
    if len(plain) < _NEARLY_ALL * len(texts):
        return False
    known = [
        any(word.casefold().rstrip(".") in _COMMON for word in (*words[:2], words[-1])) for words in plain
    ]
    if sum(known) >= _MOST_NAMES * len(texts):
        return True
    # Few of the names of the world are in the list: initials and commas tell as well.
    signed = sum(
        bool(
            re.fullmatch(
                r"[^\W\d_][\w'\u2019 -]+, ?[^\W\d_][\w'\u2019. -]*|[A-Z]\. ?[^\W\d_][\w'\u2019 -]+", t
            )
        )
        for t in texts
    )
    return signed >= _NEARLY_ALL * len(texts) and sum(known) >= len(texts) // 10


def _is_free_text(texts: Sequence[str], different: int) -> bool:
    """True for many long texts of several words."""
    if different <= _LISTED_TEXTS:
        return False
    words = [len(text.split()) for text in texts]
    long = sum(len(text) >= _LETTERS_OF_A_TEXT for text in texts)
    spaced = sum(number >= 3 for number in words)
    return sum(words) >= _WORDS_OF_A_TEXT * len(texts) and min(long, spaced) >= _SPACED * len(texts)


def _words(kind: str) -> frozenset[str]:
    lines = Path(__file__).with_name("words.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if line.startswith(f"{kind}: ") for word in line.split()[1:])


_COMMON = _words("names")
"""Common given names, then surnames, of many countries, in lower case."""


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


_NUMBERS = _words("numbers")

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
    ("thing", _words("things")),
    ("household", _words("households")),
    ("person", _words("persons")),
    ("account", _words("accounts")),
    ("event", _words("events")),
)


def names_a_person(name: str) -> bool:
    """True if a name is one of a person's number.

    >>> [names_a_person(name) for name in ("patient_id", "ID", "customerId", "paid", "grid", "site_id")]
    [True, True, True, False, False, False]
    """
    return named_whose(name) in ("person", "household", "number")
