"""A recipient's question about a regression: sums of products of private rows, and their solution.

Each term is a number of a row on a public grid from -1 to 1, of 2 GRID steps: a column's, by its declared
ends, or 1 where it holds a value. Least squares solve A b = c, where A and c are the sums over all rows of
products of two terms, and of a term with the outcome. The release that answers has a column for each product,
whose sum is asked as that of any column is (``CountQuestions.sums``).

Limits. Let A' = A + E and c' = c + e be the noisy sums, R the inverse of A', and b' = R c'. For the true b,
A' b - c' = E b - e is linear in the noise. With a probability of 95 % no row of it is beyond r(b): with
Gaussian noise q times its standard deviation, where q is a quantile shared among the rows; with Laplace noise
the limit of all draws times the sum of the weights. Both are norms of (b, 1), so r(b) <= r(b') + T |b - b'|,
where T has the limits of the sums. By b - b' = R (A' b - c') it is |b - b'| <= |R| r(b') + M |b - b'| with
M = |R| T, and if the spectral radius of M is below 1, |b - b'| <= (1 - M)^-1 |R| r(b'). Otherwise nothing can
be told. It holds for all coefficients together, whatever the table is.

Invariant: the products of a row follow from public declarations and from that row alone, and no cell is an
error. A row that lacks one of the numbers has no product at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from math import log
from statistics import NormalDist
from typing import Annotated, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field

from dpsynth.bundle.recipient.bundle import Bundle
from dpsynth.bundle.recipient.opened import synthetic_texts
from dpsynth.bundle.recipient.query import Answer, AnswerRow, Question, QuestionRefused
from dpsynth.columns.column import Column, each_once
from dpsynth.columns.domain import Clique
from dpsynth.columns.expression import Reader, plain
from dpsynth.columns.kinds import ColumnSpec, layout_of
from dpsynth.columns.layout import Layout
from dpsynth.columns.section import Section, Text, Value, refused
from dpsynth.columns.sums import Centring, MeasuredSums
from dpsynth.config import Spec
from dpsynth.errors import nearest
from dpsynth.statistics.group_figures import UNDEFINED, Estimate

GRID = 2**15 - 1
MOST_TERMS = 10
"""Largest number of coefficients, the constant left out: each term is in a product with every other."""
_NONE = GRID + 1
_ONE = "1 * 1"
_ROUNDING = 1.02 / GRID
"""Bound on how far two numbers that are rounded to the grid move their product."""
SURE = 0.95
_SINGULAR = 1e10

_FORM = (
    "A question about a regression has the form: coefficient(hours) of income ~ age + hours + sex, or "
    "coefficients of income ~ age + hours + sex. ` ` stand around a column's name of several words."
)


@dataclass(frozen=True)
class Term:
    """A number of a row on the grid, by its formula.

    Attributes:
        half: the distance from 0 to 1 on the grid, in the column's unit.
        code: the value that it is about; None for a column of numbers.
        low: the number of rows with another value, on the grid.
    """

    formula: str
    column: Column
    half: float
    code: int | None = None
    low: int = 0

    def read(self, texts: pa.StringArray) -> NDArray[np.int64]:
        """The number of each text, int64; beyond the grid where it has none."""
        codes, steps = self.column.encode(texts), self.column.codec.steps
        if self.code is None and steps is not None:
            bins = np.minimum(codes, steps.bins - 1)
            step = np.clip(steps.of(self.column.values_of(texts)), steps.low[bins], steps.high[bins])
            found = np.rint(step * (2 * GRID / steps.last)).astype(np.int64) - GRID
        else:
            found = np.where(codes == self.code, GRID, self.low)
        return np.where(codes < len(self.column.codec.labels), found, _NONE)


def _terms(column: Column) -> tuple[Term, ...]:
    """The terms of a column; of values, one for each but the first. Empty if it can be no part."""
    name, codec = plain(column.name), column.codec
    if column.search is not None:
        return ()
    if column.centres is not None and codec.steps is not None:
        return (Term(name, column, codec.steps.last * codec.steps.unit / 2),) if codec.steps.last else ()
    half, low = (0.5, -GRID) if len(codec.labels) == 2 else (1.0, 0)
    values = [*enumerate(codec.labels)][1:] if codec.closed else []
    return tuple(Term(f"({name} == '{label}')", column, half, code, low) for code, label in values)


@dataclass(frozen=True)
class Regression:
    """An outcome by the terms of some columns, with a constant, by least squares."""

    outcome: Term
    terms: tuple[Term, ...]

    @classmethod
    def of(cls, outcome: str, on: Sequence[str], layout: Layout) -> Self:
        """The regression of columns; ValueError with the reason where there is none."""
        known = {column.name: column for column in layout.columns if not column.part_of}
        for name in (outcome, *on):
            if name not in known:
                raise ValueError(f"names '{name}', which is no column that is counted{nearest(name, known)}")
        if len({outcome, *on}) <= len(on):
            raise ValueError("names a column twice")
        found = {name: _terms(known[name]) for name in (outcome, *on)}
        none = [name for name, own in found.items() if len(own) != 1 and (not own or name == outcome)]
        if none:
            raise ValueError(
                f"names '{none[0]}': a regression is of numbers between declared ends, or of a column of two "
                "values, on such numbers and on columns of declared values"
            )
        terms = tuple(term for name in on for term in found[name])
        if len(terms) > MOST_TERMS:
            raise ValueError(f"has {len(terms)} coefficients, and {MOST_TERMS} are allowed: name fewer")
        return cls(found[outcome][0], terms)

    @cached_property
    def products(self) -> dict[str, tuple[Term, ...]]:
        """The products whose sums are asked for, by their formulas; 1 stands for no term."""
        pairs = [*combinations_with_replacement((None, *self.terms, self.outcome), 2)][:-1]
        found = {_formula(*pair): tuple(filter(None, pair)) for pair in reversed(pairs)}
        return {formula: found[formula] for formula in reversed(found) if formula}

    def multiplied(self, texts: Mapping[str, pa.StringArray]) -> dict[str, pa.Array]:
        """The products of rows, int64; null in each row that lacks one of the numbers."""
        read = {t: each_once(t.read, texts[t.column.name]) for t in (self.outcome, *self.terms)}
        lacking = np.logical_or.reduce([numbers > GRID for numbers in read.values()])
        full = np.full(len(lacking), GRID, np.int64)
        pairs = {f: [*(read[term] for term in terms), full, full][:2] for f, terms in self.products.items()}
        return {formula: pa.array(one * other, mask=lacking) for formula, (one, other) in pairs.items()}

    def of_rows(self, texts: Mapping[str, pa.StringArray]) -> list[Estimate]:
        """The coefficients of public rows."""
        found = {formula: pc.sum(cells).as_py() or 0 for formula, cells in self.multiplied(texts).items()}
        return [Estimate(one.value) for one in self._solved(found, {}, "none")]

    def by_sums(self, measured: Sequence[MeasuredSums]) -> list[Estimate]:
        """The coefficients of private rows, by the noisy sums of their products."""
        # A limit that doesn't reach to both ends of the grid would have cut something off.
        whole = {m.column: m for m in measured if m.centring == Centring((GRID**2,), GRID**2)}
        if self.products.keys() != whole.keys():
            return [UNDEFINED] * len(self.terms)
        scales = {formula: one.scale for formula, one in whole.items()}
        return self._solved({f: int(one.values) for f, one in whole.items()}, scales, whole[_ONE].noise)

    def _solved(self, sums: Mapping[str, int], scales: Mapping[str, float], noise: str) -> list[Estimate]:
        formulas, every = [*self.products], (None, *self.terms)
        # Which sum stands in each equation before each coefficient, and after all of them.
        left = np.array([[[f == _formula(a, b) for f in formulas] for b in every] for a in every], float)
        right = np.array([[f == _formula(term, self.outcome) for f in formulas] for term in every], float)
        exact = np.array([sums[f] / GRID**2 for f in formulas])
        if not np.linalg.cond(left @ exact) < _SINGULAR:
            return [UNDEFINED] * len(self.terms)
        inverse = np.linalg.inv(left @ exact)
        found = inverse @ right @ exact
        quantile = NormalDist().inv_cdf(1 - (1 - SURE) / (2 * len(every)))
        factor = -log(1 - SURE ** (1 / len(formulas))) if noise == "laplace" else quantile
        limits = factor * np.array([scales.get(f, 0.0) for f in formulas]) / GRID**2
        rounded = max((exact + limits)[formulas.index(_ONE)], 0.0) * _ROUNDING if scales else 0.0
        parts = np.abs(found @ left + right) * limits
        beyond = parts.sum(axis=1) if noise == "laplace" else np.sqrt((parts**2).sum(axis=1))
        loss = np.abs(inverse) @ (left @ limits + rounded)
        if np.abs(np.linalg.eigvals(loss)).max() >= 1:
            return [UNDEFINED] * len(self.terms)
        reach = np.abs(inverse) @ (beyond + rounded * (1 + np.abs(found).sum()))
        far = np.linalg.solve(np.eye(len(loss)) - loss, reach)
        units = (self.outcome.half / term.half for term in self.terms)
        ends = zip(found[1:].tolist(), far[1:].tolist(), units, strict=True)
        return [Estimate(u * b, u * (b - d), u * (b + d)) for b, d, u in ends]


def _formula(one: Term | None, other: Term | None) -> str:
    """The formula of the product of two terms, None being 1; empty where it is 0 in every row."""
    if one and other and one.column.name == other.column.name and one.code is not None:
        if one != other:
            return ""
        # The square of -1 and 1 is 1, that of 0 and 1 is itself.
        return _formula(None, None if one.low else one)
    return " * ".join(sorted("1" if term is None else term.formula for term in (one, other)))


class RegressionKeys(Section):
    """A regression whose products are counted in place of columns."""

    outcome: Annotated[str, Text("the name of a column")] = Field(description="The column explained.")
    on: tuple[str, ...] = Field(description="The columns that explain it.", min_length=1)
    columns: Mapping[str, ColumnSpec] = Field(description="The declarations of these columns.")

    @cached_property
    def regression(self) -> Regression:
        return Regression.of(self.outcome, self.on, layout_of(self.columns))

    def products(self, texts: Mapping[str, pa.StringArray]) -> dict[str, pa.Array]:
        return self.regression.multiplied(texts)

    def check(self, spec: Spec) -> None:
        try:
            other = next((name for name in spec.columns if name not in self.regression.products), None)
        except ValueError as error:
            raise refused(str(error), "regression") from None
        if other is not None:
            raise refused("is no product of this regression: let dpsynth answer write them", "columns", other)
        if spec.privacy.sample_rate is not None:
            raise refused("must be left out with regression, which is of all rows", "privacy", "sample_rate")
        if spec.engine.by_workers:
            raise refused("must be left out with regression, which one process counts", "engine", "dask")


def regression_in(text: str, layout: Layout) -> tuple[Regression, Clique] | None:
    """The regression that a question is about, and the formulas asked for; None for another question.

    Raises:
        QuestionRefused: it has no such form, or is not about columns of this table.
    """
    if not text.lstrip().startswith("coefficient"):
        return None
    try:
        asked, outcome, on = _parsed(Reader(text))
        found = Regression.of(outcome, on, layout)
        if asked is not None and asked not in on:
            raise ValueError(f"asks for the coefficient of '{asked}', which doesn't stand after ~")
    except ValueError as error:
        raise QuestionRefused(f"The question {error}. {_FORM}") from None
    return found, tuple(t.formula for t in found.terms if asked in (None, t.column.name))


def _parsed(reader: Reader) -> tuple[str | None, str, list[str]]:
    def step(*signs: str) -> None:
        for sign in signs:
            if not reader.step(sign):
                raise reader.wanted(sign)

    asked = None
    if not reader.step("coefficients"):
        step("coefficient", "(")
        asked = reader.column()
        step(")")
    step("of")
    outcome = reader.column()
    step("~")
    on = [reader.column()]
    while reader.step("+"):
        on.append(reader.column())
    reader.end()
    return asked, outcome, on


def keys_of(regression: Regression, declared: Mapping[str, Value]) -> dict[str, Value]:
    """The keys of the configuration of a release that asks for the sums of the products."""
    named = dict.fromkeys(term.column.name for term in (regression.outcome, *regression.terms))
    outcome, *on = named
    expected: Value = {"first": 1, "last": 1, "missing": 1}
    column: Value = {"type": "integer", "bins": [-(GRID**2), GRID**2], "expected": expected}
    own: Value = {name: declared[name] for name in named}
    return {
        "regression": {"outcome": outcome, "on": [*on], "columns": own},
        "columns": dict.fromkeys(regression.products, column),
        "publish": {"statistics": [{"mean": f} for f in regression.products], "formats": ["csv"]},
    }


def coefficients(bundle: Bundle, text: str, layout: Layout | None = None) -> Answer | None:
    """The coefficients that a question asks for; None if it is another question.

    Args:
        layout: that of the release that the question is about, whose answer is by the sums that the bundle
            has; None for the coefficients of the bundle's own rows.
    """
    asked = regression_in(text, layout or bundle.rows.layout)
    if asked is None:
        return None
    regression, formulas = asked
    if layout is None:
        found, basis = regression.of_rows(synthetic_texts(bundle)), "synthetic"
    else:
        found, basis = regression.by_sums(bundle.sums), "measured sum"
    interval = "None: of the synthetic rows." if layout is None else "95 % for all terms together: noise."
    named = zip((term.formula for term in regression.terms), found, strict=True)
    rows = tuple(AnswerRow((name,), one, None, basis) for name, one in named if name in formulas)
    return Answer(Question(text, "coefficient", by=("term",)), rows, interval)
