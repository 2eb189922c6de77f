"""Columns that are computed from others after rows were drawn.

Invariant: derived columns are never read from the source, which need not have them. A formula is
parsed by a small grammar, and never run as a program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from dpsynth.columns.declaration import MAX_DOMAIN_SIZE, CellText, Declared, Described, cell_text
from dpsynth.columns.expression import (
    MOST_DECIMALS,
    Expression,
    Kind,
    Operand,
    Reference,
    kind_of,
    parse,
    references,
    value_of,
)
from dpsynth.columns.number_texts import (
    FORMAT_HELP,
    LARGEST_STEP,
    PLAIN,
    NumberFormat,
    NumberNotation,
    fixed_texts,
    form_of,
)
from dpsynth.columns.section import Checked, JsonSchema, Section, Text, Whole, refused

_LARGEST_INTEGER = 10**15


@dataclass(frozen=True)
class Result(Checked):
    """A text or a whole number, as declared."""

    def check(self, value: object) -> str | int:
        cell_text(value, "a text or a whole number")
        if isinstance(value, int) and abs(value) > _LARGEST_INTEGER:
            raise refused("is too large for a number; put it in quotes")
        assert isinstance(value, str | int)
        return value

    def json_schema(self) -> JsonSchema:
        return {"type": ["string", "integer"]}


class DerivedColumn(Section):
    """A column computed from others of the synthetic table. It is not read from the source."""

    STAND_INS: ClassVar[Declared] = {}

    type: Literal["derived"] = Field(description="Kind of column.")
    formula: Annotated[str, Text("a formula such as pay + bonus", longest=1000)] = Field(
        description="Formula of the values: a column, or a formula such as pay + bonus, "
        "first(postcode, 2), year(seen) or if(age < 18, 'child', 'adult')."
    )
    map: Mapping[str, Annotated[str | int, Result()]] | None = Field(
        default=None, description="Value for each text that the formula gives, such as {Bachelors: 13}."
    )
    other: Annotated[str | int, Result()] | None = Field(
        default=None, description="With map: what all other texts stand for. Left out: they are missing."
    )
    decimals: Annotated[int, Whole(at_least="0", at_most=str(MOST_DECIMALS))] | None = Field(
        default=None, description="Decimals of a number. Left out: as many as what it is computed from has."
    )
    format: NumberNotation | None = Field(default=None, description=FORMAT_HELP)
    missing: Annotated[str, CellText("the text of missing cells")] | None = Field(
        default=None, description="Text of a missing value. Left out: an empty cell."
    )

    def model_post_init(self, context: object, /) -> None:
        try:
            formula = parse(self.formula)
        except ValueError as error:
            raise refused(str(error), "formula") from None
        if not any(True for _ in references(formula)):
            raise refused("names no column", "formula")
        if self.map is None and self.other is not None:
            raise refused("is only of use with map", "other")
        if self.map is not None and not self.map:
            raise refused("must not be empty", "map")
        if self.map is not None and len(self.map) > MAX_DOMAIN_SIZE:
            raise refused(f"must have at most {MAX_DOMAIN_SIZE:,} entries", "map")

    @classmethod
    def from_schema(cls, described: Described) -> Declared | None:
        if "computed_from" not in described:
            return None
        found: Declared = {"type": "derived", "formula": described["computed_from"]}
        found |= {key: described[key] for key in ("map", "decimals", "format") if key in described}
        if described.get("other") is not None:
            found["other"] = described["other"]
        if described.get("missing_is_written"):
            found["missing"] = described["missing_is_written"]
        return found

    def part(self, name: str) -> Derived:
        return Derived(
            name,
            self.formula,
            parse(self.formula),
            map=tuple((self.map or {}).items()),
            other=self.other,
            decimals=self.decimals,
            form=form_of(self.format),
            marker=self.missing or "",
        )


@dataclass(frozen=True)
class Derived:
    """A column of the synthetic table that is computed from others.

    Attributes:
        written: the text of the formula.
        map: texts that the formula may come to, and the value of each. Empty: the formula's value itself is
            the column's.
        other: the value of all other texts; None: they are missing.
        decimals: decimals of numbers; None: as many as the formula's operands have.
        form: the format of numbers.
        marker: the text of a missing cell.
    """

    name: str
    written: str
    formula: Expression
    map: tuple[tuple[str, str | int], ...] = ()
    other: str | int | None = None
    decimals: int | None = None
    form: NumberFormat = PLAIN
    marker: str = ""

    def kind(self, kinds: Mapping[str, Kind]) -> Kind:
        """The kind of the column's values, from the kinds of the columns that it is computed from.

        Raises:
            ValueError: the formula can't be computed from these kinds; the message gives the reason.
        """
        found = kind_of(self.formula, kinds)
        if self.map:
            if found.word != "text" and not isinstance(self.formula, Reference):
                raise ValueError("must come to a text, or be a column alone, for map to look up")
            results = [result for _, result in self.map] + ([] if self.other is None else [self.other])
            return Kind("number" if all(isinstance(r, int) for r in results) else "text")
        if found.word not in ("number", "text", "truth"):
            raise ValueError(f"comes to a {found.word}; only numbers, texts and comparisons can be computed")
        return found if self.decimals is None or found.word != "number" else Kind("number", self.decimals)

    def operand(self, operands: Mapping[str, Operand], rows: int) -> Operand:
        kind = self.kind({name: operand.kind for name, operand in operands.items()})
        if self.map:
            values = self._looked_up(operands, rows, kind)
        else:
            values = value_of(self.formula, operands, rows)
            if kind.word == "number":
                values = rounded(values, kind.decimals)
        return Operand(kind, values, self._written(values, kind))

    def _looked_up(self, operands: Mapping[str, Operand], rows: int, kind: Kind) -> pa.Array:
        if isinstance(self.formula, Reference):
            texts = operands[self.formula.column].texts
        else:
            texts = value_of(self.formula, operands, rows)
        keys = pa.array([key for key, _ in self.map], pa.string())
        results = [*(result for _, result in self.map), self.other, None]
        convert = int if kind.word == "number" else str
        values = pa.array(
            [None if r is None else convert(r) for r in results],
            pa.int64() if kind.word == "number" else pa.string(),
        )
        found = pc.fill_null(pc.index_in(texts, keys), len(keys)).to_numpy(zero_copy_only=False)
        missing = np.asarray(texts.is_null())
        return values.take(pa.array(np.where(missing, len(keys) + 1, found)))

    def _written(self, values: pa.Array, kind: Kind) -> pa.StringArray:
        if kind.word == "number":
            return self.form.write(fixed_texts(values, kind.decimals))
        return pc.cast(values, pa.string())

    def text(self, values: pa.Array, kind: Kind) -> pa.StringArray:
        return pc.fill_null(self._written(values, kind), self.marker)


def rounded(values: pa.Array, decimals: int) -> pa.Array:
    """Numbers at some decimals, int64 without any; missing where a double can't hold them exactly."""
    found = pc.round(values, decimals)
    exact = pc.less_equal(pc.abs(found), LARGEST_STEP / 10.0**decimals)
    kept = pc.if_else(exact, found, pa.scalar(None, pa.float64()))
    return kept if decimals else pc.cast(kept, pa.int64())
