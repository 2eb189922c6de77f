"""Repairs: changes of a text after which a column's codec reads it.

A text that no value explains is explained by the first repair that helps: another spelling of a declared
value, a number or a date in another format. The codec itself decides what helps, so a new kind of column
needs nothing here.

Invariant: a repair is tried on texts and changes no table.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dpsynth.columns.codec import Codec, Reading
from dpsynth.columns.expression import MOMENTS
from dpsynth.columns.moment_formats import ISO, MomentFormat, MomentKind
from dpsynth.columns.number_texts import NumberFormat

Texts = Mapping[str, int]
"""Number of cells of each text."""

MARKERS = frozenset(
    {"na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none", "nil", "?", "-", "--", ".", "..", "..."}
    | {"0000-00-00", "unknown", "missing", "(missing)", "not available", "not known", "n.a.", "k.a.", "s/o"}
)
"""Texts that programs and people write for nothing, in lower case."""

_DAYS = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d",
         "%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%b-%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y",
         "%d-%b-%y", "%b-%Y", "%m/%Y", "%Y-%m", "%Y%m", "%Y", "%Y-%m-%d")  # fmt: skip
_TIMES = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p", "%H.%M", "%H%M")
_SPOKEN: Mapping[MomentKind, tuple[str, ...]] = {
    "date": _DAYS,
    "datetime": tuple(f"{day} {time}" for day in (*_DAYS[:13], "%Y-%m-%d") for time in _TIMES[:4]),
    "time": _TIMES,
}
_AMOUNT = re.compile(r"^([^0-9+-]*)[+-]?([^0-9+-]*)([0-9][0-9., '\u00a0\u202f_]*?)([^0-9]*)$")
_MOST_AROUND = 20
_TRIED = 2_000
_ENOUGH = 0.5


@dataclass(frozen=True)
class Explained:
    """Texts that one repair explains.

    Attributes:
        texts: the texts.
        what: the kind of the texts, in words: "numbers written with ...".
        remedy: what to do.
        write: the keys to write; empty where the table itself has to change.
        values: the declared values that the texts stand for, by text; empty if they are none.
    """

    texts: Texts
    what: str
    remedy: str
    write: Mapping[str, object]
    values: Mapping[str, str]


def explained(codec: Codec, texts: Texts) -> tuple[list[Explained], dict[str, int]]:
    """The repairs that explain some texts, and the texts that none explains.

    Args:
        codec: the codec, which reads none of the texts as a value.
        texts: cells of each text.
    """
    found, left = [], dict(texts)
    for repair in (_encodings, _markers, _spellings, _amounts, _moments, _serials, _shapes):
        for one in repair(codec, left) if left else ():
            found.append(one)
            left = {text: count for text, count in left.items() if text not in one.texts}
    return found, left


def _read(codec: Codec, texts: Iterable[str | None]) -> np.ndarray:
    """True for the texts that a codec reads as values, or clips."""
    readings = codec.readings(pa.array(list(texts), pa.string()))
    return np.isin(readings, (Reading.VALUE, Reading.BELOW, Reading.ABOVE))


def _picked(texts: Texts, good: Iterable[bool]) -> dict[str, int]:
    return {text: count for (text, count), hit in zip(texts.items(), good, strict=True) if hit}


# Bytes


def _encodings(codec: Codec, texts: Texts) -> Iterator[Explained]:
    """Texts with bytes that were read in another encoding than they were written in."""
    del codec
    lost = {text: count for text, count in texts.items() if "\N{REPLACEMENT CHARACTER}" in text}
    if lost:
        yield Explained(
            lost,
            "bytes that are not UTF-8",
            "say how the file is encoded under source, most often encoding: windows-1252",
            {},
            {},
        )
    twice = {text: count for text, count in texts.items() if text not in lost and _undone(text) != text}
    if twice:
        yield Explained(
            twice,
            "UTF-8 that was read in another encoding",
            "say encoding: utf-8 under source; if it is there, the file was written wrongly: write it again",
            {},
            {},
        )


def _undone(text: str) -> str:
    try:
        return text.encode("cp1252").decode("utf-8")
    except UnicodeError:
        return text


# Nothing


def _markers(codec: Codec, texts: Texts) -> Iterator[Explained]:
    """Texts that usually mean missing; "none" is a value among names, such as no degree."""
    marks = MARKERS - {"none"} if codec.closed and codec.kind.word == "text" else MARKERS
    found = {text: count for text, count in texts.items() if text.casefold() in marks}
    if found:
        written = sorted(found)
        yield Explained(
            found,
            "a word for nothing",
            "say that they mean missing",
            {"missing": written[0] if len(written) == 1 else written},
            {},
        )


# Spellings of declared values


def _spellings(codec: Codec, texts: Texts) -> Iterator[Explained]:
    """Other spellings of declared values: case, blanks, quotes, accents in another composition."""
    if not codec.closed:
        return
    declared = {_canonical(label): label for label in reversed(codec.labels)}
    meant = {text: declared[plain] for text in texts if (plain := _canonical(text)) in declared}
    if not meant:
        return
    found = {text: texts[text] for text in meant}
    ways = [way for way, plain in _WAYS if any(plain(t) == plain(label) for t, label in meant.items())]
    yield Explained(
        found,
        f"a declared value in another spelling ({ways[0] if ways else 'case and blanks'})",
        "spell values alike here and in the table; where it spells one in several ways, make them one there",
        {},
        meant,
    )


def _canonical(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(c for c in plain if c.isalnum()) or plain


_WAYS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("another case", str.casefold),
    ("blanks or signs", lambda text: "".join(c for c in text.casefold() if c.isalnum())),
    ("accents", _canonical),
)


# Numbers


def _amounts(codec: Codec, texts: Texts) -> Iterator[Explained]:
    """Numbers with separators, signs of currency, units or a decimal comma."""
    if codec.kind.word != "number" or codec.closed:
        return
    tried = dict(list(texts.items())[:_TRIED])
    ways = {form: _read(codec, _plain_numbers(form, tried)) for form in _forms(tried)}
    if not ways:
        return
    cells = np.array(list(tried.values()))
    best = max(ways, key=lambda form: (int(cells[ways[form]].sum()), -len(form.facts)))
    if not ways[best].any():
        return
    found = _picked(texts, _read(codec, _plain_numbers(best, texts)))
    like = [f for f in ways if ways[f].sum() == ways[best].sum() and f.decimal != best.decimal]
    doubt = (
        "; whether a sign stands between thousands or before decimals can't be told, so ask who wrote it"
        if like and codec.kind.decimals
        else ""
    )
    yield Explained(
        found,
        f"numbers written with {_in_words(best)}{doubt}",
        "say how numbers are written",
        {"format": best.facts},
        {},
    )


def _forms(texts: Texts) -> list[NumberFormat]:
    """Formats that some texts may be written in."""
    around: dict[tuple[str, str], int] = {("", ""): 1}
    signs: set[str] = set()
    for text, count in texts.items():
        if match := _AMOUNT.match(text):
            before, inner, digits, after = match.groups()
            pair = (before + inner).lstrip(), after.rstrip()
            around[pair] = around.get(pair, 0) + count
            signs |= set(digits) - set("0123456789")
    blanks = {" ", "\u00a0", "\u202f"}
    thousands = ["", *sorted({" " if s in blanks else s for s in signs if s in ",.'_" or s in blanks})]
    decimals = [".", ","] if "," in signs else ["."]
    common = sorted(around, key=lambda pair: -around[pair])[:4]
    return [
        NumberFormat(thousands=between, decimal=point, prefix=before, suffix=after)
        for before, after in common
        for point in decimals
        for between in thousands
        if between != point and max(len(before), len(after)) <= _MOST_AROUND
        if (before, after, point, between) != ("", "", ".", "")
        if (before + after).isprintable() and not set(before + after) & _TELLING
    ]


# They say that a number is negative or a bound, or begin a formula.
_TELLING = frozenset("=+-@()<>≤≥")


def _plain_numbers(form: NumberFormat, texts: Texts) -> list[str | None]:
    numbers = form.read(pa.array(list(texts), pa.string()))
    return [None if np.isnan(number) else repr(float(number)) for number in numbers]


def _in_words(form: NumberFormat) -> str:
    words = []
    if form.thousands:
        words.append(f"{_NAMES[form.thousands]} between thousands")
    if form.decimal == ",":
        words.append("a comma before the decimals")
    if form.prefix:
        words.append(f"'{form.prefix}' in front")
    if form.suffix:
        words.append(f"'{form.suffix}' behind")
    return " and ".join(words)


_NAMES = {",": "a comma", ".": "a full stop", " ": "a blank", "'": "an apostrophe", "_": "an underscore"}


# Dates and times


def _moments(codec: Codec, texts: Texts) -> Iterator[Explained]:
    """Dates and times in another format, or of another kind."""
    own = MOMENTS.get(codec.kind.word)
    if own is None:
        return
    tried = dict(list(texts.items())[:_TRIED])
    cells = np.array(list(tried.values()))
    for kind in (own, *(k for k in _SPOKEN if k != own)):
        ways = {form: _moments_read(kind, form, tried) for form in _SPOKEN[kind]}
        if kind != own:
            ways[ISO[kind]] = _moments_read(kind, ISO[kind], tried)
        best = max(ways, key=lambda form: int(cells[ways[form]].sum()))
        read = int(cells[ways[best]].sum())
        if read < _ENOUGH * cells.sum():
            continue
        like = [form for form, good in ways.items() if form != best and int(cells[good].sum()) == read]
        found = _picked(texts, _moments_read(kind, best, texts))
        keys: dict[str, object] = {} if kind == own else {"type": kind}
        if best != ISO[kind]:
            keys["format"] = best
        doubt = f" or {' or '.join(like)}, which can't be told from the cells" if kind == own and like else ""
        yield Explained(found, f"{_PLURALS[kind]} written as {best}{doubt}", "say so", keys, {})
        return


_PLURALS = {"date": "dates", "datetime": "dates with times", "time": "times of day"}


def _moments_read(kind: MomentKind, form: str, texts: Texts) -> np.ndarray:
    """True for texts that look like a format and are moments in it."""
    moments = MomentFormat(kind, form).read(pa.array(list(texts), pa.string()))
    signs = [c for c in re.sub("%.", "", form) if not c.isalnum()]
    alike = [[c for c in text if not c.isalnum()] == signs for text in texts]
    return ~np.isnat(moments) & np.array(alike, dtype=np.bool_)


def _serials(codec: Codec, texts: Texts) -> Iterator[Explained]:
    """Day numbers of a spreadsheet, and seconds since 1970, where a date is expected."""
    if codec.kind.word not in ("date", "datetime"):
        return
    days = {t: n for t, n in texts.items() if re.fullmatch(r"[1-6][0-9]{4}(\.[0-9]+)?", t)}
    if days:
        words = "write the dates out in the table; in a spreadsheet, give the column the format of a date"
        yield Explained(days, "day numbers of a spreadsheet", words, {}, {})
    seconds = {t: n for t, n in texts.items() if re.fullmatch(r"[0-9]{10}([0-9]{3})?(\.[0-9]+)?", t)}
    if seconds:
        yield Explained(
            seconds, "seconds or milliseconds since 1970", "write the dates out in the table", {}, {}
        )


# Codes with a pattern


def _shapes(codec: Codec, texts: Texts) -> Iterator[Explained]:
    """Codes in lower case, with blanks and signs, or without their leading zeros."""
    if codec.closed or codec.kind.word != "text":
        return
    left = dict(texts)
    for what, remedy, change in _CHANGES:
        good = _read(codec, [change(text) for text in left])
        found = _picked(left, good)
        if found:
            yield Explained(found, what, remedy, {}, {})
            left = {text: count for text, count in left.items() if text not in found}
    for length in range(2, 20):
        good = _read(codec, [text.zfill(length) if text.isdigit() else None for text in left])
        found = _picked(left, good)
        if found:
            words = "keep it a text where the table is made: a program that took it for a number dropped them"
            yield Explained(found, "codes that lost their leading zeros", words, {}, {})
            return


_CHANGES: Sequence[tuple[str, str, Callable[[str], str]]] = (
    ("codes in lower case", "allow it in pattern, or make it one case in the table", str.upper),
    ("codes in capitals", "allow it in pattern, or make it one case in the table", str.lower),
    (
        "codes with blanks or signs between",
        "write them into pattern, or leave them out of the table",
        lambda text: "".join(c for c in text if c.isalnum()),
    ),
)


def shape(text: str) -> str:
    """The shape of a text: digits as 9, runs of letters as one, signs as they are.

    >>> shape("12,345.00 EUR"), shape("Smith, J.")
    ('99,999.99 A', 'Aa, A.')
    """
    digits = re.sub("[0-9]", "9", text)
    small = re.sub(r"(?:(?![9A-Z\W_])\w)+", "a", digits)
    return re.sub("[A-Z]+", "A", small)
