r"""Codec of codes with a hierarchy, such as postcodes: their first characters.

Invariant: a decoded text matches the pattern and has its cell's prefix, and all such texts are equally
likely.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.cell_values import Texts
from dpsynth.columns.codec import INVALID, Codes, readings_of
from dpsynth.columns.formula_kinds import Kind
from dpsynth.columns.reading import Readings
from dpsynth.columns.text_patterns import Alphabets, alphabets, regex_of


@dataclass(frozen=True)
class TextCodec:
    r"""Prefixes of the texts of a pattern, none of them the beginning of another.

    Attributes:
        pattern: see ``text_patterns``.
        prefixes: one prefix a cell; each begins a text of the pattern.
        other: label of a cell for all texts of the pattern with another prefix. None: they are invalid.

    >>> p = TextCodec(r"\d{5}", ("75", "69", "130"))
    >>> p.labels
    ('75***', '69***', '130**')
    >>> p.encode(pa.array(["75011", "13055", "13100", "7501", "75 011"])).tolist()
    [0, 2, -1, -1, -1]
    """

    pattern: str
    prefixes: tuple[str, ...]
    other: str | None = None

    @cached_property
    def _positions(self) -> Alphabets:
        return alphabets(self.pattern)

    @property
    def kind(self) -> Kind:
        """Texts."""
        return Kind("text")

    @property
    def arrow_type(self) -> pa.DataType:
        """string."""
        return pa.string()

    @property
    def ordered(self) -> bool:
        """False."""
        return False

    @property
    def closed(self) -> bool:
        """False."""
        return False

    @property
    def catch_all(self) -> tuple[int, ...]:
        """The cell of all other texts, if there is one."""
        return () if self.other is None else (len(self.prefixes),)

    @property
    def continuous(self) -> bool:
        """False."""
        return False

    @property
    def schema(self) -> dict[str, object]:
        """Pattern and prefixes."""
        return {"pattern": self.pattern, "prefixes": list(self.prefixes)}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Prefixes with a star for each character that is drawn, then the label of all other texts."""
        found = []
        for prefix in self.prefixes:
            rest = self._positions[len(prefix) :]
            found.append(prefix + "".join(letters if len(letters) == 1 else "*" for letters in rest))
        return (*found, *(() if self.other is None else (self.other,)))

    @property
    def centres(self) -> None:
        """None: texts are no numbers."""
        return None

    @property
    def half_widths(self) -> None:
        """None: texts are no numbers."""
        return None

    @property
    def cell_values(self) -> Texts:
        """The texts with each prefix; the text of ``other`` may be in every cell."""

        def holding(text: str) -> NDArray[np.bool_]:
            if text == self.other:
                return np.ones(len(self.labels), dtype=np.bool_)
            return np.arange(len(self.labels)) == self.encode(pa.array([text], pa.string()))[0]

        return Texts(holding)

    @property
    def steps(self) -> None:
        """None: texts are no numbers."""
        return None

    def encode(self, texts: pa.StringArray) -> Codes:
        """Cell of the prefix of each text that matches the pattern."""
        codes = np.full(len(texts), INVALID, dtype=np.int64)
        for length in sorted({len(prefix) for prefix in self.prefixes}):
            cells = [i for i, prefix in enumerate(self.prefixes) if len(prefix) == length]
            prefixes = pa.array([self.prefixes[i] for i in cells], pa.string())
            found = pc.index_in(pc.utf8_slice_codeunits(texts, 0, length), prefixes)
            spot = found.fill_null(len(cells)).to_numpy(zero_copy_only=False)
            here = np.array([*cells, INVALID])[spot]
            codes = np.where(here == INVALID, codes, here)
        matches = np.asarray(pc.fill_null(pc.match_substring_regex(texts, regex_of(self._positions)), False))
        if self.other is None:
            return np.where(matches, codes, INVALID)
        other = np.asarray(pc.fill_null(pc.equal(texts, self.other), False)) | (matches & (codes == INVALID))
        return np.where(other, len(self.prefixes), np.where(matches, codes, INVALID))

    def parsed(self, texts: pa.StringArray) -> pa.Array:
        """Texts with a cell."""
        return pa.array(texts.to_pylist(), pa.string(), mask=self.encode(texts) == INVALID)

    def readings(self, texts: pa.StringArray) -> Readings:
        """OTHER for texts of the pattern without one of the prefixes."""
        return readings_of(self.encode(texts), texts, self.labels, self.other)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """The prefix, and a uniform draw for each position after it."""
        starts = pa.array([*self.prefixes, *(() if self.other is None else (self.other,))], pa.string())
        whole = len(self._positions)
        lengths = np.array([*map(len, self.prefixes), whole], dtype=np.int64)[codes]
        parts = [starts.take(pa.array(codes))]
        for position in range(int(lengths.min(initial=whole)), whole):
            letters = pa.array([*self._positions[position], ""], pa.string())
            drawn = rng.integers(0, len(letters) - 1, len(codes))
            parts.append(letters.take(pa.array(np.where(lengths <= position, drawn, len(letters) - 1))))
        return pc.binary_join_element_wise(*parts, "")

    def text(self, values: pa.Array) -> pa.StringArray:
        """The texts themselves."""
        return values

    def with_density(self, counts: NDArray[np.float64], least: float) -> TextCodec:
        """The codec itself: texts of a prefix are equally likely."""
        del counts, least
        return self


def every_prefix(positions: Alphabets, most: int) -> tuple[str, ...]:
    """The texts of some positions in the order of their characters, at most so many."""
    texts: Iterator[str] = ("".join(letters) for letters in product(*positions))
    return tuple(islice(texts, most))
