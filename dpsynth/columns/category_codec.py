"""Codecs of named values: categories from a closed list, ordered or not, and booleans.

Invariant: each value is written as it was declared, and that text is read as this value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.codec import INVALID, Codes, Intervals, Readings, Texts, Truths, exact_texts, readings_of
from dpsynth.columns.expression import Kind
from dpsynth.columns.number_texts import listed_numbers, parse_numbers

_TRUTHS = {"true": 1, "t": 1, "yes": 1, "y": 1, "1": 1, "1.0": 1, "on": 1,
           "false": 0, "f": 0, "no": 0, "n": 0, "0": 0, "0.0": 0, "off": 0}  # fmt: skip


@dataclass(frozen=True)
class CategoryCodec:
    """A closed list of categories, with an optional cell for all others.

    Values given as integers also match cells such as "3.0" and decode to integers. Ordered
    texts decode to an Arrow dictionary that keeps their order.
    """

    values: tuple[str | int, ...]
    other: str | None = None
    ordered: bool = False

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The categories as text, then the label of all other values if it is not among them."""
        texts = tuple(str(v) for v in self.values)
        return texts if self.other is None or self.other in texts else (*texts, self.other)

    @property
    def _whole_numbers(self) -> bool:
        return all(isinstance(v, int) for v in self.values)

    @property
    def kind(self) -> Kind:
        """Whole numbers where every category is an integer, otherwise texts."""
        return Kind("number" if self.arrow_type == pa.int64() else "text")

    @property
    def arrow_type(self) -> pa.DataType:
        """int64 where every category is an integer, otherwise string, or an ordered dictionary of them."""
        if self._whole_numbers and self.other is None:
            return pa.int64()
        return pa.dictionary(pa.int32(), pa.string(), ordered=True) if self.ordered else pa.string()

    @property
    def closed(self) -> bool:
        """True."""
        return True

    @property
    def catch_all(self) -> tuple[int, ...]:
        """The cell of all other values, if there is one."""
        return () if self.other is None else (self.labels.index(self.other),)

    @property
    def continuous(self) -> bool:
        """False."""
        return False

    @property
    def schema(self) -> dict[str, object]:
        """The order of the categories, and the label of all other values if there is one."""
        return {"ordered": self.ordered} | ({} if self.other is None else {"other": self.other})

    @cached_property
    def centres(self) -> NDArray[np.float64] | None:
        """The numbers that the categories are: integers, or texts such as "2,5 %" in an ordered list."""
        if self.arrow_type == pa.int64():
            return np.array(self.values, dtype=np.float64)
        return listed_numbers(self.labels) if self.ordered else None

    @property
    def half_widths(self) -> NDArray[np.float64] | None:
        """Zeros where the categories are numbers, otherwise None."""
        return None if self.centres is None else np.zeros(len(self.values))

    @property
    def cell_values(self) -> Intervals | Texts:
        """The categories, as numbers where all are integers."""
        if self.centres is None or self.arrow_type != pa.int64():
            return exact_texts(self.labels)
        return Intervals(self.centres, self.centres)

    @property
    def steps(self) -> None:
        """None: each category is a cell of its own."""
        return None

    def encode(self, texts: pa.StringArray) -> Codes:
        """Position of each text in the list; unknown texts to ``other`` or INVALID."""
        found = pc.index_in(texts, pa.array(self.labels, pa.string()))
        codes = found.fill_null(INVALID).to_numpy(zero_copy_only=False).astype(np.int64)
        if self._whole_numbers:
            numbers = parse_numbers(texts)
            order = np.argsort(np.array(self.values, dtype=np.float64), kind="stable")
            ranked = np.array(self.values, dtype=np.float64)[order]
            spot = np.minimum(np.searchsorted(ranked, numbers), len(ranked) - 1)
            codes = np.where((codes == INVALID) & (ranked[spot] == numbers), order[spot], codes)
        if self.other is not None:
            present = ~np.asarray(texts.is_null())
            codes = np.where((codes == INVALID) & present, self.labels.index(self.other), codes)
        return np.asarray(codes, dtype=np.int64)

    def parsed(self, texts: pa.StringArray) -> pa.Array:
        """Categories; a text outside the list stands for all others where these have a cell."""
        codes = self.encode(texts)
        values = pa.array(self.values if self.arrow_type == pa.int64() else self.labels)
        return values.take(pa.array(codes, mask=codes == INVALID))

    def readings(self, texts: pa.StringArray) -> Readings:
        """OTHER for texts outside the list; a text that is the label of all others is a value."""
        return readings_of(self.encode(texts), texts, self.labels, self.other)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """The category of each code."""
        del rng
        if self.arrow_type == pa.int64():
            return pa.array(self.values, pa.int64()).take(pa.array(codes))
        labels = pa.array(self.labels, pa.string())
        if self.ordered:
            return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), labels, ordered=True)
        return labels.take(pa.array(codes))

    def text(self, values: pa.Array) -> pa.StringArray:
        """The category as text."""
        return pc.cast(values, pa.string())

    def with_density(self, counts: NDArray[np.float64], least: float) -> CategoryCodec:
        """The same: each cell has one value."""
        del counts, least
        return self


@dataclass(frozen=True)
class BooleanCodec:
    """False and true, written as two declared texts; usual spellings of both are read."""

    false: str = "false"
    true: str = "true"

    @property
    def kind(self) -> Kind:
        """Truth values."""
        return Kind("truth")

    @property
    def ordered(self) -> bool:
        """False."""
        return False

    @property
    def closed(self) -> bool:
        """True."""
        return True

    @property
    def catch_all(self) -> tuple[int, ...]:
        """None."""
        return ()

    @property
    def continuous(self) -> bool:
        """False."""
        return False

    @property
    def schema(self) -> dict[str, object]:
        """Empty: the labels are all of it."""
        return {}

    @property
    def labels(self) -> tuple[str, ...]:
        """The two texts, false first."""
        return (self.false, self.true)

    @property
    def arrow_type(self) -> pa.DataType:
        """bool."""
        return pa.bool_()

    @property
    def centres(self) -> NDArray[np.float64]:
        """0 and 1, so that a mean is a share."""
        return np.array([0.0, 1.0])

    @property
    def half_widths(self) -> NDArray[np.float64]:
        """Zeros."""
        return np.zeros(2)

    @property
    def cell_values(self) -> Truths:
        """False and true."""
        return Truths(np.array([False, True]))

    @property
    def steps(self) -> None:
        """None: each category is a cell of its own."""
        return None

    def encode(self, texts: pa.StringArray) -> Codes:
        """0 or 1; the declared texts first, then the usual spellings in any case."""
        # Arrow and Python lower some letters differently, so one of them lowers both sides.
        false, true = pc.utf8_lower(pa.array([self.false, self.true])).to_pylist()
        spellings = _TRUTHS | {false: 0, true: 1}
        lower = pc.utf8_lower(texts)
        found = pc.index_in(lower, pa.array(list(spellings), pa.string()))
        truth = np.array([*spellings.values(), INVALID], dtype=np.int64)
        spelt = found.fill_null(len(spellings)).to_numpy(zero_copy_only=False)
        return np.asarray(truth[spelt], dtype=np.int64)

    def parsed(self, texts: pa.StringArray) -> pa.Array:
        """Truths."""
        codes = self.encode(texts)
        return pa.array(codes == 1, pa.bool_(), mask=codes == INVALID)

    def readings(self, texts: pa.StringArray) -> Readings:
        """VALUE or NONE."""
        return readings_of(self.encode(texts), texts, self.labels)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """True where the code is 1."""
        del rng
        return pa.array(codes == 1, pa.bool_())

    def text(self, values: pa.Array) -> pa.StringArray:
        """The declared texts."""
        return pc.if_else(values, self.true, self.false)

    def with_density(self, counts: NDArray[np.float64], least: float) -> BooleanCodec:
        """The same: each cell has one value."""
        del counts, least
        return self
