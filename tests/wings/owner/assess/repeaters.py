"""Made-up tables in which persons repeat, by the form of what names them, and things that repeat."""

import hashlib
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

PERSONS = 1_500
Names = Callable[[np.random.Generator, int], list[str]]

_GIVEN, _FIRST, _SECOND = (
    text.split()
    for text in (
        "Anna Ben Clara David Emma Felix Greta Hans Ida Jan Karin Lukas Maria Nina Otto Paul Ruth Sven Tina",
        "Abend Birn Dorn Eich Feld Gold Hinter Kirch Linden Ober Reh Stein Wald Wein Winter",
        "acker bach baum berg brück feld hofer huber mann meier müller rode stett thal wald",
    )
)
_SURNAMES = [first + second for first in _FIRST for second in _SECOND]
_PLACES = "hausen dorf kirchen stadt berg tal see furt brück heim"


def _digits(rng: np.random.Generator, number: int) -> list[int]:
    return [int(d) for d in rng.integers(0, 10, number)]


def _different(number: int, make: Callable[[], str | None]) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < number:
        text = make()
        if text is not None:
            found[text] = None
    return list(found)


def _weighed(weights: Sequence[int], modulus: int, last: int, head: str = "") -> Names:
    """Numbers whose last digit, times ``last``, brings the weighed sum to a multiple."""

    def names(rng: np.random.Generator, number: int) -> list[str]:
        def one() -> str | None:
            body = [*map(int, head), *_digits(rng, len(weights) - len(head))]
            total = sum(d * w for d, w in zip(body, weights, strict=True))
            check = next((c for c in range(10) if (total + c * last) % modulus == 0), None)
            return None if check is None else "".join(map(str, [*body, check]))

        return _different(number, one)

    return names


def _luhn(length: int) -> Names:
    def names(rng: np.random.Generator, number: int) -> list[str]:
        def one() -> str:
            body = [4, *_digits(rng, length - 2)]
            twice = [2 * d - 9 * (2 * d > 9) if i % 2 == 0 else d for i, d in enumerate(reversed(body))]
            return "".join(map(str, [*body, -sum(twice) % 10]))

        return _different(number, one)

    return names


def _dni(rng: np.random.Generator, number: int) -> list[str]:
    def one() -> str:
        value = int(rng.integers(10**7, 10**8))
        return f"{value}{'TRWAGMYFPDXBNJZSQVHLCKE'[value % 23]}"

    return _different(number, one)


def _iban(rng: np.random.Generator, number: int) -> list[str]:
    def one() -> str:
        body = "".join(map(str, _digits(rng, 18)))
        return f"DE{98 - int(body + '131400') % 97:02}{body}"

    return _different(number, one)


def _nir(rng: np.random.Generator, number: int) -> list[str]:
    def one() -> str:
        body = f"{rng.integers(1, 3)}{''.join(map(str, _digits(rng, 12)))}"
        return f"{body}{97 - int(body) % 97:02}"

    return _different(number, one)


def _cpf(rng: np.random.Generator, number: int) -> list[str]:
    def one() -> str:
        body = _digits(rng, 9)
        for at in (9, 10):
            body.append(sum(d * (at + 1 - i) for i, d in enumerate(body)) * 10 % 11 % 10)
        text = "".join(map(str, body))
        return f"{text[:3]}.{text[3:6]}.{text[6:9]}-{text[9:]}"

    return _different(number, one)


def _hetu(rng: np.random.Generator, number: int) -> list[str]:
    def one() -> str:
        born = f"{rng.integers(1, 29):02}{rng.integers(1, 13):02}{rng.integers(20, 99)}"
        own = f"{rng.integers(2, 900):03}"
        return f"{born}-{own}{'0123456789ABCDEFHJKLMNPRSTUVWXY'[int(born + own) % 31]}"

    return _different(number, one)


def _letters(rng: np.random.Generator, number: int, of: str = "ABCDEFGHJKLMNPRSTUVWXYZ") -> str:
    return "".join(rng.choice(list(of), number))


def _people(pattern: str) -> Names:
    def names(rng: np.random.Generator, number: int) -> list[str]:
        pairs = [pattern.format(given, surname) for given in _GIVEN for surname in _SURNAMES]
        return [str(name) for name in rng.choice(pairs, number, replace=False)]

    return names


def _made(make: Callable[[np.random.Generator], str]) -> Names:
    return lambda rng, number: _different(number, lambda: make(rng))


def _in_a_row(pattern: str, first: int) -> Names:
    return lambda rng, number: [pattern.format(i) for i in range(first, first + number)]


FORMS: dict[str, tuple[str, Names]] = {
    "prefix": ("Patienten-Nr.", _in_a_row("P{:06}", 1000)),
    "prefix, five digits": ("customer_no", _in_a_row("C{:05}", 1000)),
    "zeros": ("account_number", _in_a_row("{:010}", 1000)),
    "zeros, five digits": ("member", _in_a_row("{:05}", 1)),
    "in a row": ("kunden_nr", _in_a_row("{}", 10001)),
    "in a row, seven digits": ("klant", _in_a_row("{}", 1000001)),
    "spread, eight digits": ("mrn", _made(lambda rng: str(rng.integers(10**7, 10**8)))),
    "case with a year": (
        "fall",
        _made(lambda rng: f"{rng.integers(2019, 2025)}-{rng.integers(0, 10**6):06}"),
    ),
    "policy": ("policy", _made(lambda rng: f"POL-{_letters(rng, 2)}-{rng.integers(0, 10**7):07}")),
    "card": ("card_no", _luhn(16)),
    "card in groups": (
        "pan",
        lambda rng, n: [f"{t[:4]} {t[4:8]} {t[8:12]} {t[12:]}" for t in _luhn(16)(rng, n)],
    ),
    "Luhn, ten digits": ("personnummer", _luhn(10)),
    "mail": ("email", _made(lambda rng: f"{_letters(rng, 6).lower()}@example.org")),
    "phone": ("phone", _made(lambda rng: f"+49 170 {rng.integers(10**6, 10**7)}")),
    "name": ("name", _people("{} {}")),
    "name, surname first": ("patient", _people("{1}, {0}")),
    "NHS": ("nhs_number", _weighed((10, 9, 8, 7, 6, 5, 4, 3, 2), 11, 1)),
    "NHS in groups": ("x1", lambda rng, n: [f"{t[:3]} {t[3:6]} {t[6:]}" for t in FORMS["NHS"][1](rng, n)]),
    "BSN": ("bsn", _weighed((9, 8, 7, 6, 5, 4, 3, 2), 11, -1)),
    "DNI": ("dni", _dni),
    "PESEL": ("pesel", _weighed((1, 3, 7, 9, 1, 3, 7, 9, 1, 3), 10, 1)),
    "AHV": ("ahv", _weighed((1, 3) * 6, 10, 1, "756")),
    "NIR": ("nir", _nir),
    "CPF": ("cpf", _cpf),
    "HETU": ("hetu", _hetu),
    "SSN": (
        "ssn",
        _made(lambda rng: f"{rng.integers(1, 900):03}-{rng.integers(1, 100):02}-{rng.integers(1, 10**4):04}"),
    ),
    "NI": (
        "ni",
        _made(
            lambda rng: f"A{_letters(rng, 1, 'BCEGHJ')}{rng.integers(0, 10**6):06}{_letters(rng, 1, 'ABCD')}"
        ),
    ),
    "IBAN": ("iban", _iban),
    "MD5": ("hash", lambda rng, n: [hashlib.md5(t.encode()).hexdigest() for t in map(str, range(n))]),
    "SHA-256": ("key", lambda rng, n: [hashlib.sha256(t.encode()).hexdigest() for t in map(str, range(n))]),
    "key in base 64": ("token", _made(lambda rng: _letters(rng, 22, "abcdefgABCDEFG0123456789-_"))),
    "UUID": ("uuid", lambda rng, n: [str(uuid.UUID(bytes=rng.bytes(16), version=4)) for _ in range(n)]),
}
"""Forms of what names a person: the usual name of such a column, and the values for some persons."""


def visits(form: str, column: str, seed: int = 0) -> dict[str, pa.StringArray]:
    """Visits of persons who have 1 to 8 of them, in any order."""
    rng = np.random.default_rng(seed)
    whose = np.repeat(np.arange(PERSONS), rng.integers(1, 9, PERSONS))
    rng.shuffle(whose)
    ids = np.array(FORMS[form][1](rng, PERSONS), object)
    sex = rng.choice(["F", "M"], PERSONS)
    return texts({column: ids[whose], "sex": sex[whose], "ward": rng.integers(1, 80, len(whose))})


def texts(columns: Mapping[str, Iterable[object]]) -> dict[str, pa.StringArray]:
    """Columns as a reader gives them."""
    return {name: pa.array([str(cell) for cell in cells], pa.string()) for name, cells in columns.items()}


def things(rng: np.random.Generator, rows: int) -> dict[str, Iterable[object]]:
    """Columns whose values repeat, and name no person."""
    weights = 1 / np.arange(1, 1201)
    popular = rng.choice(1200, rows, p=weights / weights.sum())
    cities = [a + b for a in ("Neu", "Alt", "Ober", "Bad ", "Groß ", "Klein ") for b in _PLACES.split()]
    days = np.datetime64("2024-01-01") + rng.integers(0, 366, rows)
    return {
        "diagnosis": [f"{'ABCDEFGHIJ'[i % 10]}{i // 10:02}.{i % 7}" for i in rng.integers(0, 700, rows)],
        "field_a": [f"SKU{i:05}" for i in popular],
        "product": [f"PRD-{i:05}" for i in rng.integers(0, 2000, rows)],
        "city": rng.choice(cities, rows),
        "zip": [f"{i:05}" for i in rng.integers(501, 99_951, rows)],
        "postcode": rng.integers(10_000, 12_000, rows),
        "seen": days,
        "at": [
            f"{day} {h:02}:{m:02}"
            for day, h, m in zip(days, rng.integers(0, 24, rows), rng.integers(0, 60, rows), strict=True)
        ],
        "amount": np.round(rng.lognormal(5, 1, rows), 2),
        "pay": (rng.lognormal(10.5, 0.5, rows) // 100 * 100).astype(int),
        "seconds": rng.integers(0, 3600, rows),
        "score": np.clip(rng.normal(20_000, 2_000, rows), 10_000, 30_000).astype(int),
        "ward": [f"Station {i}" for i in rng.integers(1, 80, rows)],
    }
