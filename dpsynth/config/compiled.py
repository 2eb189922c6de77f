"""A configuration worked out once: all that its steps go by, in one value.

Invariant: public, and made of the configuration alone. No step works any of it out again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from hashlib import sha256

from dpsynth.config.columns import layout_of
from dpsynth.config.grammar import Spec
from dpsynth.config.public_marginals import public_marginals_of
from dpsynth.domain.column import Column, domain_of
from dpsynth.domain.domain import Domain
from dpsynth.domain.layout import Layout
from dpsynth.domain.public_marginals import PublicMarginals
from dpsynth.domain.workload import Workload
from dpsynth.rules import Rules, rules_of


@dataclass(frozen=True, eq=False)
class CompiledSpec:
    """A spec, and what follows from it.

    Attributes:
        spec: the checked configuration.
        layout: of the synthetic table, its columns in the configuration's order. A column whose domain is to
            be found stands there with as many cells as it may come to.
        rules: that every synthetic row obeys.
        public_marginals: stated counts or shares of some columns together.
        workload: which marginals matter, and how much; all of three columns if nothing is said.
    """

    spec: Spec
    layout: Layout
    rules: Rules
    public_marginals: PublicMarginals
    workload: Workload

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that are read and modelled."""
        return self.layout.columns

    @cached_property
    def domain(self) -> Domain:
        """The domain of ``columns``."""
        return domain_of(self.columns)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 in hex of all that decides which questions a release asks of the private table.

        That is: the dataset's name, the privacy section, the columns as they were worked out, the
        structure section, the pairs of columns of requested statistics, which are measured first, how
        the table is cut into slices, which earlier answers serve as evidence, and the constraints, whose ties
        are measured first too. Where the table lies, how much may be spent on it in all, when, and whatever
        else is published from the answers don't count, so these may change when a release is resumed. Which
        slice a release is about is not in the configuration; its journal says.
        """
        return _digest(self._questions)

    @cached_property
    def whole_fingerprint(self) -> str:
        """SHA-256 in hex of all that decides the bundle.

        All but where the table and the ledger lie, how much may be spent in all and how that is added
        up, and when: a release of the same occasion with the same digest is the same release.
        """
        published = {key: getattr(self.spec, key).model_dump() for key in ("sample", "publish")}
        return _digest({**self._questions, "release": self.spec.release, **published})

    @cached_property
    def _questions(self) -> dict[str, object]:
        spec = self.spec
        columns = [column.recorded for column in self.columns]
        return {
            "dataset": spec.ledger.dataset,
            "privacy": spec.privacy.model_dump(),
            "unit": type(spec.privacy.unit).__name__,
            "columns": columns,
            "structure": spec.structure.model_dump(),
            "pairs": [list(r.columns) for r in spec.publish.statistics if len(r.columns) == 2],
            "period": None if spec.period is None else spec.period.model_dump(),
            "reuse": spec.reuse.model_dump(),
            # Only where there are some: releases from before there could be any stay what they were.
            **({"constraints": list(spec.constraints)} if spec.constraints else {}),
            # The journal says which file it is.
            **({} if spec.public_table is None else {"public": True}),
            **(
                {"known": [(m.columns, m.cells) for m in spec.public_marginals]}
                if spec.public_marginals
                else {}
            ),
        }


def compiled(spec: Spec) -> CompiledSpec:
    """A spec worked out; done once a release."""
    layout = layout_of(spec.columns)
    columns = {column.name: column for column in layout.columns}
    return CompiledSpec(
        spec,
        layout,
        rules_of(spec.constraints, layout),
        public_marginals_of(spec.public_marginals, columns),
        spec.structure.workload_over(tuple(columns)),
    )


def _digest(facts: dict[str, object]) -> str:
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), default=_canonical)
    return sha256(text.encode("ascii")).hexdigest()


def _canonical(value: object) -> str:
    """Equal decimals as equal texts: 1, 1.0 and 1e0 are all "1"."""
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    raise TypeError(f"{type(value).__name__} has no canonical text")
