"""The largest domain of a column, and bins as people declare them.

Invariant: bins follow from the declaration alone, by exact arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from pydantic_core import PydanticCustomError

from dpsynth.config.section import EMPTY, Checked, JsonSchema, Number, Whole, refused

MAX_DOMAIN_SIZE = 10_000
ONE_A_VALUE = 128
DEFAULT_BINS = 32
BOUNDS_HELP = (
    "private: find min and max with a part of the budget. Left out: they are given, which costs nothing."
)
EDGES_HELP = (
    "equal: bins of one width. log: bins that grow away from zero, each by the same factor, for money; zero, "
    "min and max have bins of their own. "
    "With a part of the budget: quantiles, bins of about as many rows each; tree, narrow bins where many "
    "rows are, single values among them, and wide ones elsewhere. Left out: tree with bounds: private. "
    "Otherwise equal if bins is given, or if min and max differ by less than a factor of 500, and log if "
    "not; without bins, min and max have bins of their own."
)
WITHIN_HELP = (
    "Density of the values inside a bin. linear: it follows the counts of the bins beside it, on a straight "
    "line through logarithms, so that small values are more frequent where counts fall from bin to bin; it "
    "costs nothing. uniform: all values are equally frequent."
)


@dataclass(frozen=True)
class Bins(Checked):
    """A number of bins, or the rising edges of bins as a tuple.

    A last edge that is given twice makes a bin of the largest value alone.
    """

    edge: Number

    def check(self, value: object) -> int | tuple[Decimal | int, ...]:
        """The number or the edges."""
        if value is None:
            raise refused(EMPTY)
        if not isinstance(value, list | tuple):
            number = Whole(at_least="1", at_most=str(MAX_DOMAIN_SIZE), advice="or a list of rising edges")
            return number.check(value)
        if len(value) < 2:
            raise refused("must be a number of bins, or a list of at least two rising edges")
        if len(value) > MAX_DOMAIN_SIZE + 1:
            raise refused(f"must have at most {MAX_DOMAIN_SIZE:,} bins")
        edges = tuple(self._edge(edge, i) for i, edge in enumerate(value))
        last = len(edges) - 1
        for i in range(1, len(edges)):
            alone = 1 < i == last and edges[i] == edges[i - 1]
            if edges[i] <= edges[i - 1] and not alone:
                raise refused("must be above the edge before it; edges rise", i)
        return edges

    def _edge(self, value: object, position: int) -> Decimal | int:
        try:
            return self.edge.check(value)
        except PydanticCustomError as error:
            raise refused((error.context or {})["words"], position) from None

    def json_schema(self) -> JsonSchema:
        """An integer or a list of edges."""
        edges = {
            "type": "array",
            "items": self.edge.json_schema(),
            "minItems": 2,
            "maxItems": MAX_DOMAIN_SIZE + 1,
        }
        return {"anyOf": [{"type": "integer", "minimum": 1, "maximum": MAX_DOMAIN_SIZE}, edges]}
