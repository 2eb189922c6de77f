"""The size of the model: the number of cells that it may have, and the number that it can reach.

Invariant: both follow from the config and from the columns' sizes.
"""

from __future__ import annotations

from collections.abc import Mapping

from dpsynth.columns.domain import Clique
from dpsynth.config.grammar import Spec
from dpsynth.config.methods import METHODS
from dpsynth.errors import ConfigError
from dpsynth.plan.outline import Outline, StrategyOutline
from dpsynth.plan.resources import cells_within

CELL_BYTES = 8


def model_cells(
    spec: Spec,
    outline: Outline,
    outlined: StrategyOutline,
    sizes: Mapping[str, int],
    wanted: tuple[Clique, ...],
) -> tuple[int, int]:
    """Number of cells that the model may have, and the number that it can reach."""
    structure = spec.structure
    allowed = outline.max_cells
    if structure.max_model_mb is not None:
        allowed = int(structure.max_model_mb * 1_000_000 / CELL_BYTES)
    given = _least_cells(sizes, wanted if outlined.cliques else ())
    # A method without choices can't leave out a clique.
    needed = max(given, outlined.cells) if not METHODS[outline.name].chooses else given
    if needed > allowed:
        raise ConfigError(
            f"The model needs {needed:,} cells ({needed * CELL_BYTES / 1e6:,.1f} MB) for the single columns "
            f"and for the pairs of constraints, publish.statistics or structure.cliques; {allowed:,} are "
            "allowed. "
            "Give the largest of them fewer bins or values, ask for less, or raise structure.max_model_mb."
        )
    if structure.max_seconds is not None:
        hinted = cells_within(float(structure.max_seconds), len(sizes), outlined.rounds + 1)
        allowed = max(needed, min(allowed, hinted))
    return allowed, max(needed, min(allowed, outlined.cells))


def _least_cells(sizes: Mapping[str, int], wanted: tuple[Clique, ...]) -> int:
    """Cells of a model of the wanted pairs, which make no cycle, and of the columns in none."""
    paired = {c for pair in wanted for c in pair}
    alone = sum(size for column, size in sizes.items() if column not in paired)
    return alone + sum(sizes[a] * sizes[b] for a, b in wanted)
