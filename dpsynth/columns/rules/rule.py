"""Rules of a configuration that every synthetic row obeys.

A rule is one of three. A condition is a formula that no row may make false. A sum is a number that is
computed from others. A tie gives each value of a column one value of another.

Missing cells are treated as in an SQL CHECK: a comparison with a missing cell is neither true nor false, and
a rule is obeyed if it isn't false. So a rule about missing cells uses ``is missing``.

Invariant: rules come from the configuration alone; the private table is never read for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from dpsynth.columns.derived import Derived
from dpsynth.columns.domain import Clique
from dpsynth.columns.expression import Expression, references


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
    """A tie: each value of ``left`` has one of ``right``; if ``both``, also the other way round."""

    number: int
    left: str
    right: str
    both: bool


class RuleRefused(ValueError):
    """A rule that can't be enforced: its place in the list, and the reason.

    ``unknown`` is the name of a column that doesn't exist, or a value that isn't declared; ``known`` are
    those that are.
    """

    def __init__(self, number: int, words: str, unknown: str = "", known: Iterable[str] = ()) -> None:
        """The refusal of a rule by its place, with the words of the message."""
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
        """Some of the rules, with their numbers among all rules."""
        return replace(
            self,
            conditions=tuple(c for c in self.conditions if c.number in numbers),
            turns=tuple(t for t in self.turns if isinstance(t, Derived) or t.number in numbers),
            ties=tuple(t for t in self.ties if t.number in numbers),
        )

    @cached_property
    def sums(self) -> Mapping[str, Sum]:
        """Sums by the column that they decide."""
        return {turn.target: turn for turn in self.turns if isinstance(turn, Sum)}

    @cached_property
    def pairs(self) -> tuple[Clique, ...]:
        """Pairs of tied columns."""
        return tuple((tie.left, tie.right) for tie in self.ties)

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
        """Modelled columns of a rule."""
        found: dict[str, None] = {}
        for condition in self.conditions:
            if condition.number == number:
                found |= dict.fromkeys(self.names(condition.formula))
        for total in self.sums.values():
            if total.number == number:
                found |= dict.fromkeys((total.target, *self.names(total.formula)))
        for tie in self.ties:
            if tie.number == number:
                found |= dict.fromkeys((tie.left, tie.right))
        return tuple(found)

    @cached_property
    def named(self) -> tuple[str, ...]:
        """Modelled columns of all rules."""
        return tuple(dict.fromkeys(c for i in range(len(self.written)) for c in self.columns(i)))
