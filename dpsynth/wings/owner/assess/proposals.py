"""Rules that the private table keeps and the config doesn't state, for the owner's eyes.

A sample gives the candidates, and all rows are counted for them, in one pass. The rules that are left load
together with those of the config. Rules are asked of values as the table has them. A computed column may be
off by its last decimal, since amounts that were rounded one by one need not add up exactly.

Invariant: a rule that was found is private, and is proposed only. What is written into a config must be known
without the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import yaml

from dpsynth.columns.expression import Call, Reference, value_of
from dpsynth.columns.layout import Layout
from dpsynth.columns.rules import Checks, RuleRefused, Rules, Unobeyed, Witness, rules_of, witness_of
from dpsynth.columns.rules.rule import Condition, Sum, Tie
from dpsynth.config.grammar import MAX_RULES
from dpsynth.wings.owner.assess.dependencies import dependencies
from dpsynth.wings.owner.assess.findings import Finding
from dpsynth.wings.owner.assess.relations import SHARE, Candidate, Stated, relations
from dpsynth.wings.owner.assess.row_sample import RowSample, TypedRows, as_numbers


@dataclass(frozen=True)
class Obedience:
    """Rows that a rule is about, and those that break it.

    Attributes:
        rule: the rule as it is written.
        rows: rows in which it is true or false: all values that it needs are there.
        broken: those in which it is false; of a tie, rows whose value has another partner in most rows.
    """

    rule: str
    rows: int
    broken: int

    @property
    def share(self) -> float:
        return 1.0 - self.broken / max(self.rows, 1)

    @property
    def where(self) -> str:
        if not self.broken:
            return f"in every one of {self.rows:,} rows" if self.rows else "no row has all values"
        return f"in all but {self.broken:,} of {self.rows:,} rows"


@dataclass(eq=False)
class ObedienceTally:
    """The rows that obey each of some rules, counted batch by batch."""

    rules: Rules
    _rows: dict[int, int] = field(default_factory=dict)
    _broken: dict[int, int] = field(default_factory=dict)
    _pairs: dict[int, pa.Table] = field(default_factory=dict)

    def add(self, batch: TypedRows) -> None:
        for condition in self.rules.conditions:
            self._count(condition.number, *_of_condition(condition, self.rules, batch))
        for total in self.rules.sums.values():
            self._count(total.number, *_of_sum(total, self.rules, batch))
        for tie in self.rules.ties:
            self._add_pairs(tie, batch)

    def _count(self, number: int, rows: int, broken: int) -> None:
        self._rows[number] = self._rows.get(number, 0) + rows
        self._broken[number] = self._broken.get(number, 0) + broken

    def _add_pairs(self, tie: Tie, batch: TypedRows) -> None:
        left, right = batch.keys(tie.left), batch.keys(tie.right)
        both = pc.and_(left.is_valid(), right.is_valid())
        found = pa.table({"left": left, "right": right, "rows": np.ones(batch.rows, np.int64)}).filter(both)
        known = self._pairs.get(tie.number)
        found = found if known is None else pa.concat_tables([known, found])
        counted = found.group_by(["left", "right"]).aggregate([("rows", "sum")])
        self._pairs[tie.number] = counted.rename_columns(["left", "right", "rows"])

    def found(self) -> tuple[Obedience, ...]:
        """The rows that obey each rule, in the order of the rules."""
        for tie in self.rules.ties:
            pairs = self._pairs.get(tie.number)
            if pairs is not None:
                self._rows[tie.number] = pc.sum(pairs.column("rows")).as_py() or 0
                sides = ("left", "right") if tie.both else ("left",)
                self._broken[tie.number] = max(_off_partner(pairs, side) for side in sides)
        return tuple(
            Obedience(text, self._rows.get(number, 0), self._broken.get(number, 0))
            for number, text in enumerate(self.rules.written)
        )


def obedience(rules: Rules, rows: TypedRows) -> tuple[Obedience, ...]:
    """The rows of some that obey each rule."""
    tally = ObedienceTally(rules)
    tally.add(rows)
    return tally.found()


def _of_condition(condition: Condition, rules: Rules, batch: TypedRows) -> tuple[int, int]:
    operands = batch.operands(rules.names(condition.formula, into_sums=False))
    values = value_of(condition.formula, operands, batch.rows)
    known = batch.rows - values.null_count
    return known, known - (pc.sum(values).as_py() or 0)


def _of_sum(total: Sum, rules: Rules, batch: TypedRows) -> tuple[int, int]:
    operands = batch.operands((total.target, *rules.names(total.formula, into_sums=False)))
    wanted = as_numbers(value_of(total.formula, operands, batch.rows))
    target = operands[total.target]
    off = np.abs(as_numbers(target.values) - wanted)
    decimals = target.kind.decimals
    # A whole number is that number; an amount is off by rounding of itself or of its parts.
    most = 1.001 * 10.0**-decimals if decimals else 1e-6
    return int(np.isfinite(off).sum()), int((off > most).sum())


def _off_partner(pairs: pa.Table, side: str) -> int:
    """Rows whose value of one side has another partner in most rows."""
    most = pairs.group_by([side]).aggregate([("rows", "max")])
    return int((pc.sum(pairs.column("rows")).as_py() or 0) - (pc.sum(most.column("rows_max")).as_py() or 0))


_MOST = 30
"""Most rules that are proposed: those without which the most rows would be impossible."""

_LIFT = 20
"""Least ratio of the rows that would break a rule by chance to those that do."""

_TIGHT = 96


Words = Callable[[str], tuple[str, str, tuple[str, ...]]]
"""The table, the rule and all rules that it comes to, of a rule of linked tables that are read as one."""


@dataclass(frozen=True)
class Proposal:
    """A rule worth stating, with the rows that obey it; of linked tables, with its table."""

    obeyed: Obedience
    tuned: bool
    table: str = ""


def proposals(
    sample: RowSample,
    rules: Rules,
    layout: Layout,
    again: Callable[[], Iterable[TypedRows]],
    words: Words | None = None,
) -> tuple[Proposal, ...]:
    """The rules that nearly all rows keep, the most useful first.

    Args:
        sample: rows of the table.
        rules: the rules of the config, which are not proposed again.
        layout: the layout of the synthetic table.
        again: reads all rows of the table once more; used only if the sample is not all of it.
        words: of linked tables, those of a rule. It is then proposed if it holds wherever its rows stand.
    """
    rows = sample.sampled()
    found = [*relations(rows), *dependencies(rows)]
    candidates = _chosen(found if words is None else _everywhere(found, words), rules)
    counted = _counted(candidates, layout, [rows] if sample.whole else again())
    kept = [
        c
        for c in candidates
        if all(_holds(counted[rule], c) or (c.stated and not counted[rule].rows) for rule in c.rules)
    ]
    return tuple(
        Proposal(_together(said.rule, [counted[rule] for rule in said.rules]), candidate.tuned, said.table)
        for candidate in _enforceable(kept, rules.written, layout)
        for said in candidate.stated or (Stated("", rule, (rule,)) for rule in candidate.rules)
    )


def _everywhere(found: Iterable[Candidate], words: Words) -> Iterable[Candidate]:
    """Candidates about linked tables, each once, with the rules of all places of its table."""
    whole: dict[tuple[Stated, ...], Candidate] = {}
    for candidate in found:
        stated = tuple(Stated(*words(rule)) for rule in candidate.rules)
        rules = tuple(rule for said in stated for rule in said.rules)
        first = whole.get(stated, replace(candidate, rules=rules, stated=stated))
        implied, chance = first.implies | candidate.implies, max(first.chance, candidate.chance)
        whole[stated] = replace(first, chance=chance, implies=implied)
    return whole.values()


def _together(rule: str, obeyed: Sequence[Obedience]) -> Obedience:
    return Obedience(rule, sum(o.rows for o in obeyed), sum(o.broken for o in obeyed))


def _chosen(found: Iterable[Candidate], rules: Rules) -> list[Candidate]:
    """The candidates that don't follow from others or from the config, the most useful first."""
    stated = [frozenset(rules.columns(number)) for number in range(len(rules.written))]
    ordered = sorted(found, key=lambda c: (-round(c.chance, 2), len(c.columns), c.rules))
    ordered = [c for c in ordered if not any(c.columns <= columns for columns in stated)]
    decided = _decided(rules)
    ordered = [c for c in ordered if "missing" not in c.rules[0] or c.columns.isdisjoint(decided)]
    implied = {pair for candidate in ordered for pair in candidate.implies}
    sums = [c.columns for c in ordered if len(c.columns) > 2]
    kept = [
        c
        for c in ordered
        if c.order not in implied and not (c.weak and any(c.columns < columns for columns in sums))
    ]
    return kept[: 3 * _MOST]


def _decided(rules: Rules) -> set[str]:
    """Columns whose missing cells one rule decides, as in rows of linked tables that aren't there."""
    found = set()
    for condition in rules.conditions:
        match condition.formula:
            case Call("==", (_, Call("not", (Call("missing", (Reference(column),)),)))):
                found.add(column)
    return found


def _counted(
    candidates: Sequence[Candidate], layout: Layout, batches: Iterable[TypedRows]
) -> dict[str, Obedience]:
    """All rows that obey each rule by itself, by rule."""
    tallies: dict[str, ObedienceTally] = {}
    for candidate in candidates:
        for rule in candidate.rules:
            try:
                tallies[rule] = ObedienceTally(rules_of([rule], layout))
            except RuleRefused:
                continue
    for batch in batches:
        for tally in tallies.values():
            tally.add(batch)
    none = Obedience("", 0, 0)
    return {rule: none for c in candidates for rule in c.rules} | {
        rule: tally.found()[0] for rule, tally in tallies.items()
    }


def _holds(obeyed: Obedience, candidate: Candidate) -> bool:
    """True if nearly all rows obey, and far more than would by chance."""
    broken = 1.0 - obeyed.share
    return bool(obeyed.rows) and broken <= 1.0 - SHARE and _LIFT * broken <= candidate.chance


def _enforceable(candidates: Sequence[Candidate], stated: Sequence[str], layout: Layout) -> list[Candidate]:
    """The candidates that load together with the rules of a config, at most ``_MOST`` rules."""
    kept: list[Candidate] = []
    for candidate in candidates:
        if sum(len(c.stated or c.rules) for c in (*kept, candidate)) > _MOST:
            break
        if len(stated) + sum(len(c.rules) for c in (*kept, candidate)) > MAX_RULES:
            continue
        try:
            rules_of([*stated, *_written(kept), *candidate.rules], layout)
        except RuleRefused:
            continue
        kept.append(candidate)
    while isinstance(refused := _searched([*stated, *_written(kept)], layout), Unobeyed):
        lost = {[*stated, *_written(kept)][number] for number in refused.numbers}
        last = next((c for c in reversed(kept) if lost & {*c.rules}), None)
        if last is None:
            break
        kept.remove(last)
    return kept


def _written(candidates: Iterable[Candidate]) -> list[str]:
    return [rule for candidate in candidates for rule in candidate.rules]


def _searched(written: Sequence[str], layout: Layout) -> Witness | Unobeyed:
    """A row that obeys rules, as the loading of a config looks for it."""
    rules = rules_of(written, layout)
    private = {column.name for column in layout.columns if column.search is not None}
    public = {number for number in range(len(written)) if private.isdisjoint(rules.columns(number))}
    return witness_of(Checks(rules.only(public), layout))


def _once(stated: Sequence[Obedience], words: Words) -> Iterator[Obedience]:
    """The rows that obey each rule of linked tables, of all places together."""
    left = {obeyed.rule: obeyed for obeyed in stated}
    for obeyed in stated:
        _, said, rules = words(obeyed.rule)
        if left.keys() >= {*rules}:
            yield _together(said, [left.pop(rule) for rule in rules])
        elif obeyed.rule in left:
            yield left.pop(obeyed.rule)


def about_rules(
    stated: Sequence[Obedience], proposed: Sequence[Proposal], words: Words | None = None
) -> Iterator[Finding]:
    """Findings about the rules of a config, and about those that it might have."""
    stated = stated if words is None else [*_once(stated, words)]
    for obeyed in (o for o in stated if o.broken):
        yield Finding(
            "constraints",
            obeyed.broken,
            f"{obeyed.broken:,} of {obeyed.rows:,} rows break {obeyed.rule}",
            "a release counts them like all others, and no synthetic row breaks it: see that it is the rule "
            "that you mean"
            if obeyed.share < SHARE
            else "",
        )
    if stated and not any(obeyed.broken for obeyed in stated):
        every = "The rule" if len(stated) == 1 else f"All {len(stated):,} rules"
        yield Finding("constraints", 0, f"{every} of the config hold{'s' * (len(stated) == 1)} in every row")
    if proposed:
        many = "a rule" if len(proposed) == 1 else f"{len(proposed):,} rules"
        yield Finding(
            "constraints",
            sum(p.obeyed.broken for p in proposed),
            f"nearly all rows keep {many} that the config doesn't state; synthetic rows keep what is stated",
            "state those that follow from what the columns mean, so that anyone could say them without the "
            "table" + (", after the rules that the config has" if stated else ""),
            _block(proposed),
            tuned=any(p.tuned for p in proposed),
        )


def _block(proposed: Sequence[Proposal]) -> str:
    """The rules as YAML, each with the rows that obey it; of linked tables, below their names."""
    if not proposed[0].table:
        return "\n".join(["constraints:", *_lines(proposed, "  ")])
    lines = ["tables:"]
    for table in dict.fromkeys(p.table for p in proposed):
        own = [p for p in proposed if p.table == table]
        lines += [f"  {table}:", "    constraints:", *_lines(own, " " * 6)]
    return "\n".join(lines)


def _lines(proposed: Sequence[Proposal], blanks: str) -> Iterator[str]:
    for proposal in proposed:
        rule = proposal.obeyed.rule
        plain = yaml.safe_dump([rule], default_flow_style=False, allow_unicode=True, width=10_000).strip()
        aside = f"# {proposal.obeyed.where}"
        short = f"{blanks}{plain.ljust(40)}  {aside}"
        yield from [short] if len(short) <= _TIGHT else [f"{blanks}{aside}", f"{blanks}{plain}"]
