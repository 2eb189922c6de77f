"""No structure: single columns only, as if they were independent of each other."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpsynth.domain.domain import Clique, Domain
from dpsynth.spec.plan import Shares
from dpsynth.structure.strategy import Chooser, Estimates


class Independent:
    """Measures nothing beyond the one-way marginals, and gives them the whole budget."""

    name = "independent"
    shares = Shares(Fraction(1), Fraction(0), Fraction(0))

    def choices(self, columns: int, wanted: int) -> int:
        """None."""
        del columns, wanted
        return 0

    def cliques(self, columns: int) -> int:
        """None."""
        del columns
        return 0

    def select(
        self,
        chooser: Chooser,
        domain: Domain,
        estimates: Estimates,
        allowance: Fraction,
        cell_error: float,
        wanted: Sequence[Clique],
    ) -> tuple[Clique, ...]:
        """No cliques, wanted or not, at no cost."""
        del chooser, domain, estimates, allowance, cell_error, wanted
        return ()
