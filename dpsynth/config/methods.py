"""Registry of the methods that ``structure.method`` may name, one line each.

The line of a method holds the facts that the configuration and a plan need. Its algorithm is in the file
of the same name in ``dpsynth.strategy``. The checks on loading, the error messages, the JSON Schema and the
registry of strategies are all made from these lines.

Invariant: made of public facts; nothing here depends on a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """A structure method: the facts that the configuration and a plan need.

    Attributes:
        name: the word in the config, and the name of the file in ``dpsynth.strategy``.
        does: the rest of a sentence that begins with the name, such as "measures a tree of pairs".
        chooses: True if the structure step asks questions: private choices or noisy distances.
        measures: True if the marginals step asks questions: columns are measured together.
        lists_cliques: True if the method needs ``structure.cliques``; all other methods refuse that key.
    """

    name: str
    does: str
    chooses: bool = True
    measures: bool = True
    lists_cliques: bool = False


_LISTED = (
    Method("independent", "measures single columns only", chooses=False, measures=False),
    Method("mst", "measures a tree of pairs"),
    Method("privbayes", "measures the families of a Bayesian network"),
    Method("aim", "measures cliques one by one"),
    Method("one_shot", "measures a tree of cliques at once"),
    Method("fixed", "measures the cliques that the config lists", chooses=False, lists_cliques=True),
    Method("auto", "measures what serves most tables best"),
)

METHODS: Mapping[str, Method] = {method.name: method for method in _LISTED}
"""Methods by name, in the order in which messages list them."""

FORMER = (("aim_gdp", "aim"),)
"""Methods that are gone, and the one to write in place of each."""
