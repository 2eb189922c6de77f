"""What a release left behind, read and added up without the product's own code."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

_DIGITS = Context(prec=60)
Record = dict[str, object]


def records(journal: Path) -> list[Record]:
    """The whole lines of a journal; what a kill left of the last one is dropped."""
    whole, _, _ = journal.read_bytes().rpartition(b"\n")
    return [json.loads(line) for line in whole.splitlines()]


def charges(found: Sequence[Record]) -> list[Record]:
    """The charges among a journal's lines."""
    return [r for r in found if r["kind"] == "charge"]


def named(question: object) -> str:
    """A question as text, to count by."""
    return json.dumps(question, sort_keys=True)


@dataclass(frozen=True)
class Protection:
    """What one neighbour is, stated by the test: the journal's own sensitivities are not believed."""

    exchanged: bool = False
    rows: int = 1

    @property
    def l1(self) -> int:
        """k rows leave; under replace-one another k come."""
        return 2 * self.rows if self.exchanged else self.rows

    @property
    def l2_squared(self) -> int:
        """k^2, or k^2 in each of two cells."""
        return 2 * self.rows**2 if self.exchanged else self.rows**2

    def epsilon(self, event: object) -> Fraction:
        """Pure epsilon of an event."""
        assert isinstance(event, dict)
        factor = {"discrete Laplace": 1, "exponential mechanism": 2}[event["mechanism"]]
        return Fraction(factor * self.l1) / Fraction(event["scale"])

    def rho(self, event: object) -> Fraction:
        """zCDP rho of an event."""
        assert isinstance(event, dict)
        if event["mechanism"] == "discrete Gaussian":
            return Fraction(self.l2_squared) / Fraction(event["sigma"]) ** 2 / 2
        divisor = {"discrete Laplace": 2, "exponential mechanism": 8}[event["mechanism"]]
        return self.epsilon(event) ** 2 / divisor

    def total(self, found: Sequence[Record], delta: str | None) -> Decimal:
        """Epsilon that a journal's charges add up to; pure if delta is None."""
        events = [r["event"] for r in charges(found)]
        if delta is None:
            return _decimal(sum(map(self.epsilon, events), Fraction(0)))
        return zcdp_epsilon(_decimal(sum(map(self.rho, events), Fraction(0))), Decimal(delta))


def _decimal(value: Fraction) -> Decimal:
    return _DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))


def zcdp_epsilon(rho: Decimal, delta: Decimal) -> Decimal:
    """Least epsilon over alpha > 1 of alpha rho + ln(1/(alpha delta))/(alpha-1) + ln(1 - 1/alpha).

    Canonne, Kamath and Steinke 2020, proposition 12, in 60 digits by trisection.
    """
    if rho == 0:
        return Decimal(0)

    def bound(log_excess: Decimal) -> Decimal:
        excess = _DIGITS.exp(log_excess)
        alpha = excess + 1
        gain = -_DIGITS.ln(_DIGITS.multiply(alpha, delta)) / excess
        return _DIGITS.add(_DIGITS.multiply(alpha, rho), gain + _DIGITS.ln(excess / alpha))

    low, high = Decimal(-10), Decimal(30)
    for _ in range(150):
        third = (high - low) / 3
        if bound(low + third) < bound(high - third):
            high -= third
        else:
            low += third
    return max(Decimal(0), bound((low + high) / 2))


def answers(found: Sequence[Record]) -> list[tuple[list[str], list[int]]]:
    """Columns and values of each marginal on record, in order."""
    asked = charges(found)
    told = []
    for record in found:
        question = asked[int(str(record["seq"]))]["question"] if record["kind"] == "answer" else {}
        assert isinstance(question, dict)
        if question.get("ask") == "marginal":
            packed = record["answer"]
            assert isinstance(packed, dict)
            values = np.frombuffer(base64.b64decode(packed["int64"]), "<i8")
            told.append((question["columns"], values.tolist()))
    return told


def published_answers(public: Path) -> list[tuple[list[str], list[int]]]:
    """Columns and values of each noisy marginal in measurements.parquet, in order."""
    table = pq.read_table(public / "measurements.parquet")
    found: dict[int, tuple[list[str], list[int]]] = {}
    for number, noise, columns, value in zip(
        *(table[c].to_pylist() for c in ("measurement", "noise", "columns", "value")), strict=True
    ):
        if noise != "none":
            found.setdefault(number, (columns, []))[1].append(value)
    return list(found.values())


def there(folder: Path) -> set[str]:
    """Every file under a folder, by its path in it."""
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()}


def assert_whole(folder: Path) -> Record:
    """The manifest of a bundle, after checking every file against it."""
    public = folder / "public"
    manifest = json.loads((public / "manifest.json").read_text())
    assert there(public) == {*manifest["files"], "manifest.json"}
    for name, facts in manifest["files"].items():
        content = (public / name).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (facts["bytes"], facts["sha256"]), name
    return manifest
