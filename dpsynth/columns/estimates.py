"""Public estimates of marginals, with which a curator compares the private table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique


class Estimates(Protocol):
    """Estimated counts of any marginal."""

    def marginal(self, clique: Clique) -> NDArray[np.float64]:
        """Estimated counts, axes in the clique's order."""
        ...

    def fingerprint(self) -> str:
        """A digest that changes whenever an estimate does."""
        ...


@runtime_checkable
class ManyEstimates(Protocol):
    """Estimates of many marginals together, at less work than one by one."""

    def marginals(self, cliques: Sequence[Clique]) -> Mapping[Clique, NDArray[np.float64]]:
        """Estimated counts by clique, axes in its order."""
        ...
