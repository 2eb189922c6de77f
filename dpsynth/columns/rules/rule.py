"""Rules of a configuration that every synthetic row obeys, read from their texts.

A rule is one of three. A condition is a formula that no row may make false. A sum is a number that is
computed from others. A tie gives each value of a column one value of another, the same in all its pairs.

Missing cells are treated as in an SQL CHECK: a comparison with a missing cell is neither true nor false, and
a rule is obeyed if it isn't false. So a rule about missing cells uses ``is missing``.

Invariant: rules come from the configuration alone; the private table is never read for them. Each rule that
was read can be enforced by itself, in any rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from dpsynth.columns.column import Column, ValueSearch
from dpsynth.columns.derived import Derived
from dpsynth.columns.domain import Clique
from dpsynth.columns.expression import (
    MOST_DECIMALS,
    QUOTED,
    Call,
    Expression,
    Kind,
    Literal,
    Reference,
    kind_of,
    parse,
    references,
    unquoted,
    whole_literal,
)
from dpsynth.columns.layout import Layout
from dpsynth.columns.moment_parts import of_parts, parts_of


@dataclass(frozen=True)
class Condition:
    """A formula that no row makes false; ``number`` is its place in the list of rules."""

    number: int
    formula: Expression


@dataclass(frozen=True)
class Sum:
    """A column whose numbers are computed in every row that has the column and all parts of its formula."""

    number: int
    target: str
    formula: Expression


@dataclass(frozen=True)
class Tie:
    """A tie: each value of ``left`` has one of ``right``, in all ties of a number; if ``both``, also back."""

    number: int
    left: str
    right: str
    both: bool

    @property
    def pair(self) -> Clique:
        return self.left, self.right


class RuleRefused(ValueError):
    """A rule that can't be enforced: its place in the list, and the reason.

    ``unknown`` is the name of a column that doesn't exist, or a value that isn't declared; ``known`` are
    those that are.
    """

    def __init__(self, number: int, words: str, unknown: str = "", known: Iterable[str] = ()) -> None:
        super().__init__(words)
        self.number = number
        self.unknown = unknown
        self.known = tuple(known)


@dataclass(frozen=True)
class Rules:
    """The rules of a table.

    Attributes:
        written: the texts of the rules.
        conditions: formulas that rows are checked against.
        turns: sums and derived columns, each after the columns from which it is computed.
        ties: ties, each after the one that decides its left column. No column is on the right of two.
    """

    written: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    turns: tuple[Sum | Derived, ...] = ()
    ties: tuple[Tie, ...] = ()

    def only(self, numbers: Collection[int]) -> Rules:
        return replace(
            self,
            conditions=tuple(c for c in self.conditions if c.number in numbers),
            turns=tuple(t for t in self.turns if isinstance(t, Derived) or t.number in numbers),
            ties=tuple(t for t in self.ties if t.number in numbers),
        )

    @cached_property
    def sums(self) -> Mapping[str, Sum]:
        return {turn.target: turn for turn in self.turns if isinstance(turn, Sum)}

    @cached_property
    def pairs(self) -> tuple[Clique, ...]:
        return tuple(tie.pair for tie in self.ties)

    @cached_property
    def partners(self) -> Mapping[str, int]:
        """The number of columns that conditions about two columns tie to each."""
        found: dict[str, set[str]] = {}
        for condition in self.conditions:
            names = self.names(condition.formula, into_sums=False)
            for column in names if len(names) == 2 else ():
                found.setdefault(column, set()).update(names)
        return {column: len(names) - 1 for column, names in found.items()}

    @cached_property
    def pinned(self) -> frozenset[str]:
        """Columns with one value in each place: the right column of a tie, and both if it holds both ways."""
        return frozenset(c for tie in self.ties for c in (tie.left, tie.right)[0 if tie.both else 1 :])

    def names(self, formula: Expression, *, into_sums: bool = True) -> tuple[str, ...]:
        """The columns that decide a formula, in the order of their mention.

        A derived column stands for the columns from which it is computed. A sum's column is included, and
        its parts too if ``into_sums``.
        """
        found: dict[str, None] = {}
        self._follow(formula, found, into_sums)
        return tuple(found)

    def _follow(self, formula: Expression, found: dict[str, None], into_sums: bool) -> None:
        for name in references(formula):
            if name in self._derived:
                self._follow(self._derived[name].formula, found, into_sums)
            elif name not in found:
                found[name] = None
                if into_sums and name in self.sums:
                    self._follow(self.sums[name].formula, found, into_sums)

    @cached_property
    def _derived(self) -> Mapping[str, Derived]:
        return {turn.name: turn for turn in self.turns if isinstance(turn, Derived)}

    def columns(self, number: int) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for condition in self.conditions:
            if condition.number == number:
                found |= dict.fromkeys(self.names(condition.formula))
        for total in self.sums.values():
            if total.number == number:
                found |= dict.fromkeys((total.target, *self.names(total.formula)))
        for tie in self.ties_of(number):
            found |= dict.fromkeys(tie.pair)
        return tuple(found)

    def ties_of(self, number: int) -> tuple[Tie, ...]:
        return tuple(tie for tie in self.ties if tie.number == number)

    @property
    def computed(self) -> frozenset[str]:
        """The columns of sums and of ties, and those that they are computed from."""
        found = {c for pair in self.pairs for c in pair}
        return frozenset(found.union(*((t.target, *self.names(t.formula)) for t in self.sums.values())))

    @cached_property
    def named(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(c for i in range(len(self.written)) for c in self.columns(i)))


T = TypeVar("T")


def connected(items: Iterable[T], columns: Callable[[T], Iterable[str]]) -> Iterator[list[T]]:
    """Groups of items that share columns, directly or through other items of the group."""
    left = list(items)
    while left:
        group, names = [left.pop(0)], set[str]()
        more = group
        while more:
            names = names.union(*map(columns, more))
            more = [item for item in left if not names.isdisjoint(columns(item))]
            left = [item for item in left if item not in more]
            group = [*group, *more]
        yield group


_LONGEST = 1000

_NAME = rf"(?:{QUOTED}|[^\W\d]\w*)"
_NAMES = rf"({_NAME}(?:\s*,\s*{_NAME})*)"
_TIE = re.compile(rf"\s*{_NAMES}\s*(<->|\bdetermines\b)\s*{_NAMES}\s*")


def tie_of(text: str) -> tuple[list[str], str, list[str]] | None:
    """The columns on the left of a tie, its sign, and those on the right; None of another rule."""
    if (found := _TIE.fullmatch(text)) is None:
        return None
    left, right = ([unquoted(name) for name in re.findall(_NAME, found[side])] for side in (1, 3))
    return left, found[2], right


def rules_of(written: Sequence[str], layout: Layout) -> Rules:
    """The rules in some texts about a table.

    Raises:
        RuleRefused: one of them can't be enforced. If all of them can be together, is found by ``witness``.
    """
    parts = layout.named
    conditions: list[Condition] = []
    sums: dict[str, Sum] = {}
    ties: list[Tie] = []
    for number, text in enumerate(written):
        tie = tie_of(text)
        if tie is not None:
            ties += _tied(number, *tie, parts)
            continue
        if "<->" in text:
            raise RuleRefused(number, "needs columns on each side of <->; ` ` stand around a name of words")
        found = _checked(number, text, layout, parts)
        if isinstance(found, Condition):
            conditions.append(found)
        elif found.target in sums:
            words = f"computes '{found.target}' a second time; write it for one of its parts"
            raise RuleRefused(number, words)
        else:
            sums[found.target] = found
    for tied in ties:
        for name in tied.pair:
            if name in sums:
                raise RuleRefused(tied.number, f"ties '{name}', which another rule computes")
    return Rules(tuple(written), tuple(conditions), tuple(_in_turn(layout, sums)), _in_order(ties))


def _tied(
    number: int, left: Sequence[str], sign: str, right: Sequence[str], parts: Mapping[str, object]
) -> Iterator[Tie]:
    if len(left) != len(right):
        raise RuleRefused(number, f"must have as many columns on the right of {sign} as on the left")
    for names in (left, right):
        first, *others = (_able(number, name, parts) for name in names)
        unlike = next((column for column in others if not _alike(first, column)), None)
        if unlike is not None:
            words = (
                f"gives '{first.name}' and '{unlike.name}' one mapping: declare them alike, by public bins"
            )
            raise RuleRefused(number, words)
    for one, other in zip(left, right, strict=True):
        if one == other:
            raise RuleRefused(number, "ties a column to itself")
        yield Tie(number, one, other, sign == "<->")


def _able(number: int, name: str, parts: Mapping[str, object]) -> Column:
    _known(number, name, parts)
    column = parts[name]
    if not isinstance(column, Column):
        words = f"ties '{name}', which is computed; tie the columns that it is computed from"
        raise RuleRefused(number, words)
    if column.part_of or parts_of(column):
        raise RuleRefused(
            number, f"ties '{name}', of which parts are measured; leave out parts of that column"
        )
    return column


def _alike(one: Column, other: Column) -> bool:
    # Labels that both have mean the same values.
    sure = all(c.one_text_a_code and isinstance(c.search, ValueSearch | None) for c in (one, other))
    return one.codec.kind == other.codec.kind and (sure or (one.labels == other.labels and not one.search))


def _known(number: int, name: str, parts: Mapping[str, object]) -> None:
    if name not in parts:
        words = f"names '{name}', which is no column of the synthetic table"
        raise RuleRefused(number, words, name, parts)
    if not isinstance(parts[name], Column | Derived):
        raise RuleRefused(number, f"names '{name}', an identifier: its values are made up and mean nothing")


def condition_of(text: str, layout: Layout) -> Expression:
    """The rule in a text, to be asked of rows rather than enforced: a comparison of columns' own values.

    Raises:
        RuleRefused: it is no rule, or names a column that is not read from the table.
    """
    formula = _parsed(0, text)
    read = {part.name: part for part in layout.parts if isinstance(part, Column)}
    for name in references(formula):
        _known(0, name, read)
    check_condition(0, formula, layout)
    return formula


def _checked(number: int, text: str, layout: Layout, parts: Mapping[str, object]) -> Condition | Sum:
    formula = of_parts(_parsed(number, text), parts)
    check_condition(number, formula, layout)
    return _sum_of(number, formula, layout.kinds, parts) or Condition(number, formula)


def _parsed(number: int, text: str) -> Expression:
    if len(text) > _LONGEST:
        raise RuleRefused(number, f"has more than {_LONGEST:,} signs")
    try:
        return parse(text)
    except ValueError as error:
        raise RuleRefused(number, str(error)) from None


def check_condition(number: int, formula: Expression, layout: Layout) -> None:
    """Refuse a formula that is no condition on rows of a table.

    Args:
        number: its place among the rules, for the refusal.

    Raises:
        RuleRefused: it names no column, or an unknown one, compares a column with a value that it doesn't
            have, or comes to something else than a truth.
    """
    parts = layout.named
    for name in references(formula):
        _known(number, name, parts)
    try:
        kind = kind_of(formula, layout.kinds)
    except ValueError as error:
        raise RuleRefused(number, str(error)) from None
    if kind.word != "truth":
        raise RuleRefused(number, f"comes to a {kind.word}; it must be a comparison")
    if not any(True for _ in references(formula)):
        raise RuleRefused(number, "names no column")
    _values_declared(number, formula, parts)


def _values_declared(number: int, formula: Expression, parts: Mapping[str, object]) -> None:
    if not isinstance(formula, Call):
        return
    for part, other in zip(formula.operands, reversed(formula.operands), strict=True):
        column = parts.get(part.column) if isinstance(part, Reference) else None
        if (
            isinstance(column, Column)
            and column.search is None
            and column.codec.closed
            and isinstance(other, Literal)
            and isinstance(other.value, str)
            and formula.operation in ("==", "!=")
            and other.value not in column.codec.labels
        ):
            words = f"compares '{column.name}' with '{other.value}', which is none of its values"
            raise RuleRefused(number, words, other.value, column.codec.labels)
    for operand in formula.operands:
        _values_declared(number, operand, parts)


def _sum_of(
    number: int, formula: Expression, kinds: Mapping[str, Kind], parts: Mapping[str, object]
) -> Sum | None:
    """The sum of a formula, if it is an equation for one column of numbers.

    Raises:
        RuleRefused: the column has fewer decimals than its computed value.
    """
    if not isinstance(formula, Call) or formula.operation != "==":
        return None
    for target, value in (formula.operands, formula.operands[::-1]):
        column = parts.get(target.column) if isinstance(target, Reference) else None
        if (
            not isinstance(column, Column)
            or not column.codec.continuous
            or not any(True for _ in references(value))
        ):
            continue
        decimals, able = _decimals(value, kinds), column.codec.kind.decimals
        if decimals is None or decimals > able:
            many = "any number of" if decimals is None else f"up to {decimals}"
            raise RuleRefused(
                number,
                f"comes to a number of {many} decimals, and '{column.name}' has {able}; "
                f"write {column.name} == round(..., {able})",
            )
        return Sum(number, column.name, value)
    return None


def _decimals(formula: Expression, kinds: Mapping[str, Kind]) -> int | None:
    """Largest number of decimals of a number; None if it is unlimited."""
    if not isinstance(formula, Call):
        return kind_of(formula, kinds).decimals
    name, operands = formula.operation, formula.operands
    if name == "round":
        return whole_literal(operands[1], "round", MOST_DECIMALS)
    numbers = [_decimals(o, kinds) for o in operands if kind_of(o, kinds).word == "number"]
    if name == "/" or None in numbers:
        return None
    known = [n for n in numbers if n is not None]
    return sum(known) if name == "*" else max(known, default=0)


def _in_turn(layout: Layout, sums: Mapping[str, Sum]) -> Iterator[Sum | Derived]:
    """Sums and derived columns, each after the columns from which it is computed.

    Raises:
        RuleRefused: a sum is computed from itself, directly or through other columns.
    """
    derived = {part.name: part for part in layout.parts if isinstance(part, Derived)}
    waiting: dict[str, Sum | Derived] = {**derived, **sums}
    known = layout.named.keys() - waiting.keys()
    while waiting:
        ready = [name for name, turn in waiting.items() if known.issuperset(references(turn.formula))]
        if not ready:
            stuck = next(turn for turn in waiting.values() if isinstance(turn, Sum))
            words = f"computes '{stuck.target}' from itself, by way of the columns that it names"
            raise RuleRefused(stuck.number, words)
        # What is computed from few columns, to many values, leaves least room to what else they are part of.
        for name in sorted(ready, key=lambda name: _room(waiting[name], layout)):
            known.add(name)
            yield waiting.pop(name)


def _room(turn: Sum | Derived, layout: Layout) -> tuple[int, int]:
    """Number of columns that a sum is computed from, and minus the cells of its own."""
    own = layout.named[turn.target] if isinstance(turn, Sum) else None
    return len({*references(turn.formula)}), -own.size if isinstance(own, Column) else 0


def _in_order(ties: Sequence[Tie]) -> tuple[Tie, ...]:
    """Ties in a direction in which no column is decided twice, each after the tie of its left column.

    Raises:
        RuleRefused: a column would be decided twice, or by itself.
    """
    part: dict[str, str] = {}

    def top(name: str) -> str:
        while part.get(name, name) != name:
            name = part[name]
        return name

    for tie in ties:
        if top(tie.left) == top(tie.right):
            words = f"ties '{tie.right}' to '{tie.left}' in a second way; remove one"
            raise RuleRefused(tie.number, f"{words} (a <-> b says both directions)")
        part[top(tie.right)] = top(tie.left)
    decided: dict[str, Tie] = {}
    for tie in ties:
        if not tie.both:
            _decide(tie, decided)
    turned: dict[int, bool] = {}
    # A tie that holds both ways starts at a column that is decided, if there is one.
    waiting = [tie for tie in ties if tie.both]
    reached = list(decided)
    while waiting:
        tie = next((t for t in waiting if t.left in reached or t.right in reached), waiting[0])
        waiting.remove(tie)
        turned.setdefault(tie.number, tie.right in reached)
        left, right = tie.pair[::-1] if turned[tie.number] else tie.pair
        _decide(Tie(tie.number, left, right, both=True), decided)
        reached += [left, right]
    found: list[Tie] = []
    while decided:
        ready = [right for right, tie in decided.items() if tie.left not in decided]
        found += [decided.pop(right) for right in ready]
    return tuple(found)


def _decide(tie: Tie, decided: dict[str, Tie]) -> None:
    if tie.right in decided:
        raise RuleRefused(tie.number, f"decides '{tie.right}', which another rule decides already")
    decided[tie.right] = tie
