"""The compiled configuration: all that the steps of a release derive from it, in one value.

Invariant: public, and made of the configuration alone. No step derives any of it again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from hashlib import sha256

from dpsynth.columns.column import Column, domain_of
from dpsynth.columns.disclosed import NO_PROVENANCE
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.kinds import layout_of
from dpsynth.columns.layout import Layout
from dpsynth.columns.measurement import PublicMarginals, ranges_of_rows
from dpsynth.columns.rules import Rules, rules_of
from dpsynth.columns.statistic_kinds import Mean, Quantiles, Sum
from dpsynth.columns.workload import Workload
from dpsynth.config.files.place import resolved
from dpsynth.config.grammar import Spec
from dpsynth.config.public_data import public_marginals_of
from dpsynth.config.publish import Publish

_PAIR = 2
_LINKS = {"key", "parent", "order_by"}
"""Keys of a linked table by which its rows are found and put in order."""

LONG_HISTORY = 8
"""Rows of a person from which on her first row is asked about; docs/histories.md."""


@dataclass(frozen=True, eq=False)
class CompiledSpec:
    """A spec and the public values that follow from it.

    Attributes:
        layout: the columns of the synthetic table, in the configuration's order. A column whose domain is to
            be found privately has the most cells that the search may give it.
        rules: the constraints that every synthetic row obeys.
        public_marginals: public counts or shares of some columns together.
        workload: the marginals that matter, with weights; by default all marginals of three columns.
    """

    spec: Spec
    layout: Layout
    rules: Rules
    public_marginals: PublicMarginals
    workload: Workload

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.layout.columns

    @property
    def summable(self) -> tuple[tuple[str, Clique], ...]:
        """The means and sums that are asked for of columns whose numbers can be summed, each once.

        Each is the column and the columns of its groups.
        """
        able = self._with_steps
        asked = [
            (request.of, request.groups)
            for request in self.spec.publish.statistics
            if isinstance(request, Mean | Sum) and request.where is None and request.of in able
        ]
        return tuple(dict.fromkeys(asked))

    @property
    def quantiles(self) -> tuple[tuple[str, Clique, tuple[float, ...]], ...]:
        """The quantiles that are asked for of columns whose numbers can be summed, with all their levels.

        Each is the column, the columns of its groups, and the levels, rising.
        """
        able, found = self._with_steps, dict[tuple[str, Clique], set[float]]()
        for request in self.spec.publish.statistics:
            if isinstance(request, Quantiles) and request.where is None and request.of in able:
                found.setdefault((request.of, request.groups), set()).update(map(float, request.at))
        return tuple((of, by, tuple(sorted(levels))) for (of, by), levels in found.items())

    @property
    def _with_steps(self) -> set[str]:
        return {column.name for column in self.columns if column.codec.steps is not None}

    @cached_property
    def domain(self) -> Domain:
        return domain_of(self.columns)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 in hex of all that decides which questions a release asks of the private table.

        It covers the dataset's name, the privacy section, the columns as compiled, the structure section,
        the means and the pairs of columns of requested statistics, the slices of the table, the earlier
        answers that serve as evidence, and the constraints. (Pairs of statistics and of constraints are
        measured first.) Of persons it covers the ranges of their rows that are asked for. Where there is an
        exam, it covers the sample section, all statistics and the columns of acceptance criteria: the exam
        asks about them. It doesn't cover the table's path, the cap, the schedule, what to do about warnings,
        or anything else that is published from the answers: these may change when a release is resumed. The
        slice of a release is in its journal, not in the configuration.
        """
        spec = self.spec
        ranges = {"ranges": self.ranges_of_rows} if self.ranges_of_rows else {}
        if spec.privacy.exam == 0:
            return digest_of({**self._questions, **ranges})
        asked = [list(r.columns) for r in spec.publish.statistics if len(r.columns) > _PAIR]
        exam: dict[str, object] = {"sample": spec.sample.model_dump(), "columns": asked}
        if spec.accept is not None and spec.accept.sets:
            exam["criteria"] = spec.accept.sets
        if spec.accept is not None and spec.accept.targets:
            exam["classified"] = spec.accept.targets
        return digest_of({**self._questions, **ranges, "exam": exam})

    @property
    def linked(self) -> Clique:
        """The columns that change from row to row of a person: each is counted with the row before."""
        history = self.spec.privacy.history
        constant = () if history is None else history.constant
        return tuple(c.name for c in self.columns if history and {c.name, c.part_of}.isdisjoint(constant))

    @property
    def lasting(self) -> Clique:
        """The linked columns that may fall, without the order: asked with the first row of long histories."""
        history, most = self.spec.privacy.history, self.spec.privacy.protected.max_rows
        kept = () if history is None else (history.order_by, *history.rising)
        return tuple(c for c in self.linked if c not in kept and most >= LONG_HISTORY)

    @property
    def ranges_of_rows(self) -> tuple[int, ...]:
        """The ranges of rows in which persons are counted, see ``UnitsByRows``; none if not asked."""
        privacy = self.spec.privacy
        found = privacy.max_rows_private or bool(privacy.order_by)
        return ranges_of_rows(privacy.protected.max_rows, each=found) if found or privacy.cutoff != 0 else ()

    @cached_property
    def whole_fingerprint(self) -> str:
        """SHA-256 in hex of all that decides the bundle.

        It leaves out the paths of table, ledger and signing key, the cap, the ledger's filter and the
        schedule. A release
        of the same occasion with the same digest is the same release.
        """
        published = {"sample": self.spec.sample.model_dump(), "publish": _published(self.spec.publish)}
        if self.spec.accept is not None:
            published["accept"] = {"criteria": self.spec.accept.stated}
        if self.spec.provenance != NO_PROVENANCE:
            published["provenance"] = self.spec.provenance.model_dump()
        return digest_of({**self._questions, "release": self.spec.release, **published})

    @property
    def digest(self) -> str:
        """SHA-256 in hex of every key, but the ledger's URL and what counts rows; paths are without links."""
        found = self.spec.model_dump(exclude={"engine": True, "ledger": {"url"}})
        for section, key in (("source", "path"), ("ledger", "head")):
            if found[section][key] is not None:
                found[section][key] = resolved(found[section][key])
        return digest_of(found)

    @cached_property
    def _questions(self) -> dict[str, object]:
        spec = self.spec
        columns = [column.recorded for column in self.columns]
        # Only where there are some: releases from before there could be any stay what they were.
        optional: dict[str, object] = {
            "constraints": list(spec.constraints),
            "sums": [[of, *by] for of, by in self.summable],
            "quantiles": [[of, *by, *at] for of, by, at in self.quantiles],
            "audiences": _audiences(spec) if spec.audiences else None,
            # The journal says which file it is.
            "public": spec.public_table is not None,
            "known": [(m.columns, m.cells) for m in spec.public_marginals],
            "regression": spec.regression and spec.model_dump(include={"regression"}),
            "tables": {n: t.model_dump(include=_LINKS) for n, t in (spec.tables or {}).items()},
        }
        return {
            # As it always was: before the ledger knew sources, the name of the release stood for the table.
            "dataset": spec.ledger.dataset or spec.release,
            "privacy": _privacy(spec),
            "unit": type(spec.privacy.unit).__name__,
            "columns": columns,
            "structure": spec.structure.model_dump(),
            "pairs": [list(r.columns) for r in spec.publish.statistics if len(r.columns) == _PAIR],
            "period": None if spec.period is None else spec.period.model_dump(),
            "reuse": spec.reuse.model_dump(),
            **{key: value for key, value in optional.items() if value},
        }


def compiled(spec: Spec) -> CompiledSpec:
    """The compiled spec; made once a release."""
    layout = layout_of(spec.columns, set(spec.columns) - _bound(spec))
    return CompiledSpec(
        spec,
        layout,
        rules_of(spec.constraints, layout),
        public_marginals_of(spec.public_marginals, layout.modelled),
        spec.structure.workload_over(tuple(layout.modelled)),
    )


def _bound(spec: Spec) -> set[str]:
    """Columns that keep the bins declared: something is asked, or known, about these bins.

    Columns that a statistic or a public marginal counts, or that a constraint computes or ties. In the local
    model, or if no values are merged, more cells would be more noise.
    """
    if spec.trust == "local" or not spec.structure.merge_rare:
        return set(spec.columns)
    found = {name for marginal in spec.public_marginals for name in marginal.columns}
    if spec.constraints:
        found |= rules_of(spec.constraints, layout_of(spec.columns)).computed
    for asked in spec.publish.statistics:
        found |= {*asked.columns}.difference(asked.numbers)
        found |= {c for some in asked.cliques if len(some) > 1 for c in some}
    return found


def _privacy(spec: Spec) -> dict[str, object]:
    """The privacy section, with shares newer than digests only where they count: those stay as they were."""
    newer = {"sample_rate"} if spec.privacy.sample_rate is None else set()
    found, split = spec.privacy.model_dump(exclude={"on_empty", *newer}), spec.privacy.split
    if not spec.privacy.order_by:
        found["unit"].pop("history", None)
    else:
        history = found["unit"]["history"]
        found["unit"]["history"] = {key: value for key, value in history.items() if value}
    if split is None:
        return found
    left_out = {key for key in ("exam", "cutoff") if getattr(split, key) is None}
    shares = split.model_dump(exclude={"statistics", *left_out})
    # The share was that of sums alone, and its name in digests is still that.
    return found | {"split": shares | ({"sums": split.statistics} if split.statistics else {})}


def _audiences(spec: Spec) -> list[list[str | None]]:
    """The promises in order; the name of an audience decides no question, but its folder."""
    return [[p.audience, str(p.epsilon), None if p.delta is None else str(p.delta)] for p in spec.promises]


def _published(publish: Publish) -> dict[str, object]:
    """The keys of a publication; a key that is newer than digests counts only where it is given."""
    found = publish.model_dump(exclude={"sign"})
    newer = {"minimum_set_size", "rounding", "rows_a_file", "terms"}
    return {k: v for k, v in found.items() if k not in newer or v is not None}


def digest_of(facts: dict[str, object]) -> str:
    """SHA-256 in hex of facts, whatever the order of their keys."""
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), default=_canonical)
    return sha256(text.encode("ascii")).hexdigest()


def _canonical(value: object) -> str:
    """Equal decimals as equal texts: 1, 1.0 and 1e0 are all "1"."""
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    raise TypeError(f"{type(value).__name__} has no canonical text")
