"""Surrogate identifiers: a first one, and the following ones counted up.

Invariant: they depend neither on the private table nor on any answer about it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsynth.columns.formula_kinds import Kind

_ENDING = re.compile(r"(?s)(.*?)([0-9]{1,15})")


@dataclass(frozen=True)
class Surrogates:
    """A column of the synthetic table that numbers its rows.

    Attributes:
        name: name of the column.
        first: the first identifier, which ends in a digit. Digits are added when they run out.

    Raises:
        ValueError: ``first`` does not end in a digit.

    >>> Surrogates("id", "P98").values(3).to_pylist()
    ['P98', 'P99', 'P100']
    """

    name: str
    first: str = "1"

    def __post_init__(self) -> None:
        """Reject a first identifier that can't be counted up."""
        if _ENDING.fullmatch(self.first) is None:
            raise ValueError("must end in a digit, from which the following ones are counted up")

    @property
    def _parts(self) -> tuple[str, str]:
        found = _ENDING.fullmatch(self.first)
        assert found is not None
        return found[1], found[2]

    @property
    def kind(self) -> Kind:
        """Numbers or texts."""
        return Kind("number" if self.arrow_type == pa.int64() else "text")

    @property
    def arrow_type(self) -> pa.DataType:
        """int64 for plain numbers, otherwise string."""
        start, digits = self._parts
        return pa.int64() if not start and str(int(digits)) == digits else pa.string()

    def values(self, rows: int) -> pa.Array:
        """So many distinct identifiers."""
        start, digits = self._parts
        numbers = pa.array(np.arange(int(digits), int(digits) + rows))
        if self.arrow_type == pa.int64():
            return numbers
        padded = pc.utf8_lpad(pc.cast(numbers, pa.string()), len(digits), "0")
        return pc.binary_join_element_wise(start, padded, "")

    def following(self, rows: int) -> Surrogates:
        """The identifiers that follow so many.

        >>> Surrogates("id", "P098").following(2).first
        'P100'
        """
        start, digits = self._parts
        return Surrogates(self.name, f"{start}{int(digits) + rows:0{len(digits)}d}")

    def text(self, values: pa.Array) -> pa.StringArray:
        """Identifiers as they are written in a CSV file."""
        return pc.cast(values, pa.string())
