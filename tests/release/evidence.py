"""What a release left behind, read and added up without the product's own code."""

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pyarrow.parquet as pq

_DIGITS = Context(prec=60)
_PI = Fraction(355, 113)
"""As charged: pi from above."""
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
    """What one neighbour is, stated by the test: the journal's own sensitivities are not believed.

    Attributes:
        exchanged: whether a unit is exchanged, or comes or goes.
        rows: most rows of a unit.
        heaviest: the largest weight of a candidate; 1 where the workload favours no column.
    """

    exchanged: bool = False
    rows: int = 1
    heaviest: int = 1

    @property
    def l1(self) -> int:
        """k rows leave; under replace-one another k come."""
        return 2 * self.rows if self.exchanged else self.rows

    @property
    def l2_squared(self) -> int:
        """k^2, or k^2 in each of two cells."""
        return 2 * self.rows**2 if self.exchanged else self.rows**2

    def moved(self, charge: Record) -> tuple[int, int]:
        """How far a unit moves the integers that a charge is for: in L1, and in squared L2."""
        question = charge["question"]
        assert isinstance(question, dict)
        if question["ask"] in ("marginal", "counts"):
            # By weights each of n rows counts floor(W/n) times, which is W together at most.
            counted = replace(self, rows=question.get("weights", self.rows))
            return counted.l1, counted.l2_squared
        if question["ask"] == "medians":
            return self.l1, self.l1**2
        if question["ask"] == "rows":
            # A unit stands in one range of numbers of rows.
            return (2, 2) if self.exchanged else (1, 1)
        if question["ask"] == "values":
            # A unit counts once for a value.
            return self.l1, self.l1
        if question["ask"] == "sums":
            most = self.l1 * question["limit"]
            return most, most**2
        if question["ask"] == "choose":
            return self.heaviest * self.l1, (self.heaviest * self.l1) ** 2
        assert question["ask"] in {"errors", "exam"}
        number = question["candidates"]["number"]
        return number * self.l1, number * self.l1**2

    def epsilon(self, charge: Record) -> Fraction:
        """Pure epsilon of a charge."""
        event = charge["event"]
        assert isinstance(event, dict)
        if event["mechanism"] == "partition selection":
            return self.moved(charge)[0] * Fraction(event["epsilon0"])
        factor = {"discrete Laplace": 1, "exponential mechanism": 2}[event["mechanism"]]
        return Fraction(factor * self.moved(charge)[0]) / Fraction(event["scale"])

    def rho(self, charge: Record) -> Fraction:
        """zCDP rho of a charge."""
        event = charge["event"]
        assert isinstance(event, dict)
        if event["mechanism"] in ("discrete Gaussian", "discrete Gaussian threshold"):
            return Fraction(self.moved(charge)[1]) / Fraction(event["sigma"]) ** 2 / 2
        if event["mechanism"] == "partition selection":
            return self.moved(charge)[1] * Fraction(event["epsilon0"]) ** 2 / 2
        divisor = {"discrete Laplace": 2, "exponential mechanism": 8}[event["mechanism"]]
        return self.epsilon(charge) ** 2 / divisor

    def half_mu_squared(self, charge: Record) -> Fraction:
        """mu^2/2 of a charge under Gaussian DP: noise with its loss for whole numbers, or a choice."""
        event = charge["event"]
        assert isinstance(event, dict)
        if event["mechanism"] in ("discrete Gaussian", "discrete Gaussian threshold"):
            variance = Fraction("0.999") * Fraction(event["sigma"]) ** 2 - Fraction("0.6")
            return Fraction(self.moved(charge)[1]) / variance / 2
        assert event["mechanism"] == "exponential mechanism"
        return _PI * self.epsilon(charge) ** 2 / 16

    def approximate_delta(self, charge: Record) -> Fraction:
        """Probability that a charge for naming values names one that a unit alone has."""
        event = charge["event"]
        assert isinstance(event, dict)
        if event["mechanism"] == "partition selection":
            return self.moved(charge)[0] * Fraction(event["delta0"])
        if event["mechanism"] != "discrete Gaussian threshold":
            return Fraction(0)
        with mpmath.workdps(60):
            spread, reach = 2 * mpmath.mpf(event["sigma"]) ** 2, int(50 * event["sigma"])
            weights = [mpmath.exp(-(mpmath.mpf(k) ** 2) / spread) for k in range(reach)]
            tail = mpmath.fsum(weights[event["threshold"] - 1 :]) / (2 * mpmath.fsum(weights) - 1)
            return self.moved(charge)[0] * Fraction(mpmath.nstr(tail, 50))

    def total(
        self,
        found: Sequence[Record],
        delta: str | None,
        accountant: str = "zcdp",
        apart: Fraction = Fraction(0),
    ) -> Decimal:
        """Epsilon that a journal's charges add up to, as "zcdp" or "gdp" has it; pure if delta is None.

        Of delta, ``apart`` was kept for naming values, whether or not they took all of it.
        """
        paid = charges(found)
        if delta is None:
            return _decimal(sum(map(self.epsilon, paid), Fraction(0)))
        left = Fraction(delta) - max(apart, sum(map(self.approximate_delta, paid), Fraction(0)))
        if accountant == "gdp":
            return gdp_epsilon(sum(map(self.half_mu_squared, paid), Fraction(0)), left)
        assert accountant == "zcdp"
        return zcdp_epsilon(_decimal(sum(map(self.rho, paid), Fraction(0))), _decimal(left))


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


def gdp_epsilon(half_mu_squared: Fraction, delta: Fraction) -> Decimal:
    """Epsilon with [Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)] exp(0.0003 mu^2) = delta.

    Balle and Wang 2018, theorem 8, with the factor for whole numbers; by bisection in 60 digits.
    """
    with mpmath.workdps(60):
        mu = mpmath.sqrt(2 * mpmath.mpf(half_mu_squared.numerator) / half_mu_squared.denominator)
        allowed = mpmath.mpf(delta.numerator) / delta.denominator / mpmath.exp(3 * mu**2 / 10**4)
        low, high = mpmath.mpf(0), mu**2 + 40 * mu
        for _ in range(200 if mu else 0):
            middle = (low + high) / 2
            beyond = mpmath.exp(middle) * mpmath.ncdf(-mu / 2 - middle / mu)
            if mpmath.ncdf(mu / 2 - middle / mu) - beyond > allowed:
                low = middle
            else:
                high = middle
        return Decimal(mpmath.nstr(high, 60))


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
    assert there(public) == {*manifest["files"], "manifest.json", "SHA256SUMS"}
    for name, facts in manifest["files"].items():
        content = (public / name).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (facts["bytes"], facts["sha256"]), name
    return manifest
