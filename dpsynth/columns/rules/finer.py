"""Finer cells for numbers that rules are about.

A bin of a number is wide where many rows lie, and a rule needs to know where in it a row lies: a bill is the
sum of two parts, a tenure is below an experience. So rows are decoded as they would be without rules, and
columns of numbers get pieces of bins for cells before rows are repaired.

Invariant: a piece lies in one bin. Its columns stand for the same values, and hold no density but that of
pieces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpsynth.columns.codec import Codes
from dpsynth.columns.layout import Layout
from dpsynth.columns.numeric_codec import NumericCodec
from dpsynth.columns.rules.partners import Marginal
from dpsynth.columns.rules.rule import Rules

_PIECES, _MOST = 80, 24
"""Pieces of a column, if they had as many rows each; and pieces of a bin, at most."""


@dataclass(frozen=True, eq=False)
class Finer:
    """A layout of which some columns have finer cells.

    Attributes:
        before: the layout of the table.
        layout: the same with finer cells.
        cell_of: for each finer column, the code in the table of each of its codes.
    """

    before: Layout
    layout: Layout
    cell_of: Mapping[str, Codes]

    @classmethod
    def of(cls, rules: Rules, layout: Layout, marginal: Marginal) -> Finer:
        """Finer cells of the columns of numbers that rules name, and of those that are drawn with these.

        Args:
            rules: the rules.
            layout: the layout of the table.
            marginal: the model's marginals, which say where pieces should be.
        """
        tied = {c for pair in rules.pairs for c in pair}
        wanted = set(rules.named)
        together = [{j.first, j.second} for j in layout.joint if not wanted.isdisjoint((j.first, j.second))]
        wanted = wanted.union(*together) - tied
        parts, cell_of = {part.name: part for part in layout.parts}, {}
        for column in layout.columns:
            codec = column.codec
            if column.name not in wanted or not isinstance(codec, NumericCodec) or codec.cell_values.single:
                continue
            counts = np.maximum(marginal((column.name,))[: len(codec.labels)], 0.0)
            shares = counts / max(float(counts.sum()), 1.0)
            fine, cells = codec.divided(np.clip(np.ceil(_PIECES * shares), 1, _MOST).astype(np.int64))
            others = np.arange(len(codec.labels), column.size)
            cell_of[column.name] = np.concatenate([cells, others])
            parts[column.name] = replace(column, codec=fine)
        joint = tuple(j for j in layout.joint if cell_of.keys().isdisjoint((j.first, j.second)))
        tilts = tuple(t for t in layout.tilts if t.column not in cell_of)
        before = replace(layout, joint=joint, tilts=tilts)
        return (
            cls(layout, replace(before, parts=tuple(parts.values())), cell_of)
            if cell_of
            else cls(layout, layout, {})
        )

    @cached_property
    def inside(self) -> Layout:
        """The table's layout, without the densities of finer columns, which are in their cells."""
        return replace(self.before, joint=self.layout.joint, tilts=self.layout.tilts)

    def coarse(self, codes: Mapping[str, Codes]) -> dict[str, Codes]:
        """The table's codes of rows."""
        return {c: self.cell_of[c][own] if c in self.cell_of else own for c, own in codes.items()}

    def fine(self, codes: Mapping[str, Codes], rng: np.random.Generator) -> dict[str, Codes]:
        """The finer codes of rows that are drawn inside their bins as without rules.

        Args:
            codes: the table's codes, int64[rows] of each modelled column.
            rng: draws the values.
        """
        if not self.cell_of:
            return dict(codes)
        drawn = {c.name: c.decode(codes[c.name], rng) for c in self.before.columns}
        values, found = self.before.within_bins(codes, drawn, rng), dict(codes)
        for column in self.layout.columns:
            if column.name in self.cell_of:
                assert isinstance(column.codec, NumericCodec)
                numbers = values[column.name].to_numpy(zero_copy_only=False).astype(np.float64)
                cells = column.codec.codes_of(np.nan_to_num(numbers))
                labels, own = len(column.codec.labels), codes[column.name]
                # Missing cells and distinct markers follow the bins.
                bins = self.cell_of[column.name][labels - 1] + 1
                found[column.name] = np.where(own < bins, cells, own - bins + labels)
        return found
