"""Formulas over columns in their written form: ``pay + bonus``, ``if(age < 18, 'child', 'adult')``.

The grammar is small and parsed by hand: nothing in a configuration is ever run as a program.

    formula     choice ("implies" formula)?
    choice      conjunction ("or" conjunction)*
    conjunction negation ("and" negation)*
    negation    "not" negation | comparison
    comparison  sum (("==" | "!=" | "<" | "<=" | ">" | ">=") sum | "not"? "in" "[" sum ("," sum)* "]" |
                     "is" "not"? "missing")?
    sum         product (("+" | "-") product)*
    product     factor (("*" | "/") factor)*
    factor      "-" factor | number | 'text' | column | `column` | function "(" formula ("," formula)* ")" |
                "(" formula ")"

Invariant: a formula is a value. One that has a kind, which follows from the kinds of its columns, has a value
for every row, missing where one of its operands is; nothing in it can fail on a value. A logical operation
whose result does not depend on its missing operand has a value all the same, as in SQL; and a test for
missing always has one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsynth.columns.moment_formats import ISO, MomentFormat, MomentKind, Moments

MAX_DEPTH = 40

_WORDS = frozenset(("and", "or", "not", "in", "is", "missing", "implies", "determines", "if"))

# A name in backticks; one in the name is doubled.
QUOTED = r"`(?:[^`]|``)+`"

_TOKEN = re.compile(
    rf"\s*(?:(?P<number>[0-9]+(?:\.[0-9]+)?)|(?P<text>'[^']*'|\"[^\"]*\")|(?P<quoted>{QUOTED})"
    r"|(?P<word>[^\W\d]\w*)|(?P<sign>==|!=|<=|>=|[-+*/()<>,~\[\]]))"
)

COMPARISONS: Mapping[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
    "==": pc.equal, "!=": pc.not_equal, "<=": pc.less_equal, ">=": pc.greater_equal,
    "<": pc.less, ">": pc.greater,
}  # fmt: skip
"""Comparison operators."""


@dataclass(frozen=True)
class Literal:
    """A number or a text in a formula."""

    value: Decimal | str


@dataclass(frozen=True)
class Reference:
    """A column."""

    column: str


@dataclass(frozen=True)
class Call:
    """An operation: an operator's sign or a function's name, and its operands."""

    operation: str
    operands: tuple[Expression, ...]


Expression = Literal | Reference | Call


def parse(text: str) -> Expression:
    """The formula in a text.

    Raises:
        ValueError: it is no formula; the message gives the reason, in words that follow its name.

    >>> parse("`b c` * 2")
    Call(operation='*', operands=(Reference(column='b c'), Literal(value=Decimal('2'))))
    """
    reader = Reader(text)
    found = reader.formula(0)
    reader.end()
    return found


def references(expression: Expression) -> Iterator[str]:
    """The columns of a formula, in the order of their mention; one may come twice."""
    if isinstance(expression, Reference):
        yield expression.column
    elif isinstance(expression, Call):
        for operand in expression.operands:
            yield from references(operand)


def renamed(text: str, names: Mapping[str, str]) -> str:
    """A formula with other names of its columns, which are plain words.

    >>> renamed("year(seen) >= `born in` and in in [1]", {"seen": "seen_1", "born in": "born", "in": "come"})
    'year(seen_1) >= born and come in [1]'
    """
    ended = False

    def other(found: re.Match[str]) -> str:
        nonlocal ended
        word, called = found["word"], text[found.end() :].lstrip().startswith("(")
        operator = word in ("and", "or", "not") or (word is not None and ended)
        inside = word in ("is", "missing") or (word == "not" and ended)
        ended = inside if operator else found["sign"] in (None, ")", "]")
        name = word or unquoted(found["quoted"] or "")
        if operator or (word and called) or name not in names:
            return found[0]
        # What stands before a token belongs to the match.
        return found[0][: len(found[0]) - len(found[0].lstrip())] + plain(names[name])

    return _TOKEN.sub(other, text)


def plain(name: str) -> str:
    """The name of a column as it stands in a formula, in backticks where it is no plain word."""
    word = re.fullmatch(r"[^\W\d]\w*", name) and name not in _WORDS
    return name if word else f"`{name.replace('`', '``')}`"


def unquoted(name: str) -> str:
    """The name of a column from how it stands in a formula; any other part of it as it is."""
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


class Reader:
    """A parser of a text from left to right: of a formula, or of pieces between words of another grammar."""

    def __init__(self, text: str) -> None:
        """The parser at the beginning of a text; ValueError where a character belongs to no token."""
        self._tokens = list(_tokens(text))
        self._spot = 0

    def step(self, *signs: str) -> str | None:
        kind, token = self._peek()
        if kind in ("sign", "word") and token in signs:
            self._spot += 1
            return token
        return None

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._spot] if self._spot < len(self._tokens) else ("end", "the end")

    def wanted(self, what: str) -> ValueError:
        return ValueError(f"has {self._peek()[1]} where {what} should stand")

    def expect(self, sign: str, wanted: str = "") -> None:
        if not self.step(sign):
            raise self.wanted(wanted or sign)

    def end(self) -> None:
        """Refuse whatever follows by a ValueError."""
        if self._spot < len(self._tokens):
            raise self.wanted("an operator or the end")

    def column(self) -> str:
        """The name of the column, or of a measured part of it, that follows; ValueError if there is none."""
        kind, token = self._peek()
        if kind not in ("word", "quoted"):
            raise self.wanted("a column")
        self._spot += 1
        if kind == "word" and self.step("("):
            token = f"{token}({self.column()})"
            self.expect(")")
        return token

    def formula(self, depth: int = 0) -> Expression:
        """The formula that follows; ValueError if there is none."""
        if depth > MAX_DEPTH:
            raise ValueError("is nested too deeply")
        found = self._joined(self._conjunction, depth, "or")
        return Call("implies", (found, self.formula(depth + 1))) if self.step("implies") else found

    def _joined(self, operand: Callable[[int], Expression], depth: int, *signs: str) -> Expression:
        found = operand(depth)
        while sign := self.step(*signs):
            found = Call(sign, (found, operand(depth)))
        return found

    def _conjunction(self, depth: int) -> Expression:
        return self._joined(self._negation, depth, "and")

    def _negation(self, depth: int) -> Expression:
        if self.step("not"):
            if depth > MAX_DEPTH:
                raise ValueError("is nested too deeply")
            return Call("not", (self._negation(depth + 1),))
        found = self._sum(depth)
        if sign := self.step(*COMPARISONS):
            return Call(sign, (found, self._sum(depth)))
        if self.step("is"):
            negative = self.step("not")
            self.expect("missing")
            found = Call("missing", (found,))
        elif negative := self.step("not"):
            self.expect("in")
            found = self._listed(found, depth)
        elif self.step("in"):
            found = self._listed(found, depth)
        return Call("not", (found,)) if negative else found

    def _listed(self, value: Expression, depth: int) -> Expression:
        self.expect("[")
        found: Expression = Call("==", (value, self._sum(depth)))
        while self.step(","):
            found = Call("or", (found, Call("==", (value, self._sum(depth)))))
        self.expect("]", ", or ]")
        return found

    def _sum(self, depth: int) -> Expression:
        return self._joined(self._product, depth, "+", "-")

    def _product(self, depth: int) -> Expression:
        return self._joined(self.factor, depth, "*", "/")

    def factor(self, depth: int = 0) -> Expression:
        """The column, literal, call or formula in parentheses that follows; ValueError if there is none."""
        if depth > MAX_DEPTH:
            raise ValueError("is nested too deeply")
        if self.step("-"):
            return Call("negative", (self.factor(depth + 1),))
        if self.step("("):
            found = self.formula(depth + 1)
            self.expect(")")
            return found
        kind, token = self._peek()
        self._spot += 1
        if kind == "number":
            return Literal(Decimal(token))
        if kind == "text":
            return Literal(token[1:-1])
        if kind == "quoted":
            return Reference(token)
        if kind == "word" and token not in ("and", "or", "not"):
            return Call(token, self._operands(depth)) if self.step("(") else Reference(token)
        self._spot -= 1
        raise self.wanted("a column, a number, a 'text' or a function")

    def _operands(self, depth: int) -> tuple[Expression, ...]:
        found = [self.formula(depth + 1)]
        while self.step(","):
            found.append(self.formula(depth + 1))
        self.expect(")", ", or )")
        return tuple(found)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    spot, end = 0, len(text.rstrip())
    while spot < end:
        found = _TOKEN.match(text, spot)
        if found is None:
            rest = text[spot:].strip()
            advice = "; write == to compare" if rest.startswith("=") else ""
            raise ValueError(f"can't be read from '{rest[:20]}' on{advice}")
        kind = found.lastgroup or ""
        yield kind, unquoted(found[kind])
        spot = found.end()


MOST_DECIMALS = 9

_QUOTIENT = 6

_LONGEST = 1000

MOMENTS: dict[str, MomentKind] = {"date": "date", "datetime": "datetime", "time": "time"}
"""Kinds of moments, which can be compared with a text in ISO 8601."""

SPANS = {"days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}
"""Functions of the time between two moments, in seconds."""

_DAY = ("date", "datetime")
_CLOCK = ("datetime", "time")
_FIELDS: Mapping[str, tuple[tuple[str, str], Callable[[pa.Array], pa.Array]]] = {
    "year": (_DAY, pc.year), "month": (_DAY, pc.month), "day": (_DAY, pc.day),
    "weekday": (_DAY, lambda values: pc.day_of_week(values, count_from_zero=False)),
    "hour": (_CLOCK, pc.hour), "minute": (_CLOCK, pc.minute),
}  # fmt: skip
"""Functions of moments: the kinds that have them, and their values."""

FUNCTIONS = ("if", "min", "max", "round", "first", "last", "join", *_FIELDS, *SPANS)
"""The functions of formulas."""


@dataclass(frozen=True)
class Kind:
    """The kind of values.

    Attributes:
        word: "number", "text", "truth", "date", "datetime", "time" or "duration".
        decimals: largest number of decimals of numbers.
    """

    word: str
    decimals: int = 0


def kind_of(formula: Expression, kinds: Mapping[str, Kind]) -> Kind:
    """The kind of a formula's values.

    Args:
        formula: a formula over columns that all have a kind here.

    Raises:
        ValueError: an operation does not suit its operands; the message gives the reason, in words that
            follow the formula's name.
    """
    if isinstance(formula, Literal):
        if isinstance(formula.value, str):
            return Kind("text")
        return Kind("number", max(0, -int(formula.value.as_tuple().exponent)))
    if isinstance(formula, Reference):
        return kinds[formula.column]
    name, operands = formula.operation, formula.operands
    found = [kind_of(operand, kinds) for operand in operands]
    words = [kind.word for kind in found]
    decimals = max((kind.decimals for kind in found), default=0)
    if name in ("+", "-", "negative", "*", "/"):
        _need(words, ["number"] * len(words), f"'{name.replace('negative', '-')}'")
        if name == "*":
            decimals = sum(kind.decimals for kind in found)
        return Kind("number", min(_QUOTIENT if name == "/" else decimals, MOST_DECIMALS))
    if name == "missing":
        return Kind("truth")
    if name in ("and", "or", "not", "implies"):
        _need(words, ["truth"] * len(words), f"'{name}'")
        return Kind("truth")
    if name in COMPARISONS:
        _comparable(name, operands, words)
        return Kind("truth")
    if name in ("min", "max"):
        _need(words, ["number"] * max(2, len(words)), name)
        return Kind("number", decimals)
    if name == "round":
        _need(words, ["number"] * 2, "round(x, decimals)")
        return Kind("number", whole_literal(operands[1], "round(x, decimals)", MOST_DECIMALS))
    if name == "if":
        if (
            len(words) != 3
            or words[0] != "truth"
            or words[1] != words[2]
            or words[1] in (*MOMENTS, "duration")
        ):
            raise ValueError("needs if(comparison, a, b), with two numbers or two texts for a and b")
        return Kind(words[1], decimals)
    if name in ("first", "last"):
        written = isinstance(operands[0], Reference) or words[0] == "text"
        if len(words) != 2 or not written:
            raise ValueError(f"needs {name}(column, n), the first or last n characters")
        whole_literal(operands[1], f"{name}(column, n)", _LONGEST)
        return Kind("text")
    if name == "join":
        if not all(isinstance(o, Reference) or w == "text" for o, w in zip(operands, words, strict=True)):
            raise ValueError("needs join(a, b, ...) of columns and texts")
        return Kind("text")
    if name in _FIELDS:
        if len(words) != 1 or words[0] not in _FIELDS[name][0]:
            raise ValueError(f"needs {name}(column), the column being a {' or a '.join(_FIELDS[name][0])}")
        return Kind("number")
    if name in SPANS:
        if words not in (["duration"], ["date"] * 2, ["datetime"] * 2, ["time"] * 2):
            raise ValueError(f"needs {name}(from, to) of two dates, datetimes or times, or {name}(duration)")
        return Kind("number")
    raise ValueError(f"uses '{name}', which is no function; those known are {', '.join(FUNCTIONS)}")


def _need(words: list[str], wanted: list[str], what: str) -> None:
    if words != wanted:
        found = ", ".join(words)
        raise ValueError(f"uses {what} on {found}; it works on {len(wanted)} of kind {wanted[0]}")


def whole_literal(operand: Expression, what: str, most: int) -> int:
    """The whole number that an operand is; refused if it is anything else."""
    value = operand.value if isinstance(operand, Literal) else None
    if not isinstance(value, Decimal) or value != int(value) or not 0 <= value <= most:
        raise ValueError(f"needs {what} with a whole number from 0 to {most} in second place")
    return int(value)


def _comparable(sign: str, operands: tuple[Expression, ...], words: list[str]) -> None:
    for operand, this, other in zip(operands, words, reversed(words), strict=True):
        if isinstance(operand, Literal) and this == "text" and other in MOMENTS:
            if np.isnat(moment_of(str(operand.value), other)[0]):
                raise ValueError(f"compares with '{operand.value}', which is no {other} of ISO 8601")
            return
    if words[0] != words[1]:
        advice = "; a truth stands alone: member, or not member" * ("truth" in words)
        raise ValueError(f"compares a {words[0]} with a {words[1]}{advice}")
    if words[0] in ("text", "truth") and sign not in ("==", "!="):
        raise ValueError(f"asks which {words[0]} is larger; only == and != work on them")


def moment_of(text: str, kind: str) -> Moments:
    """The one moment in a text of ISO 8601, NaT if there is none."""
    return MomentFormat(MOMENTS[kind], ISO[MOMENTS[kind]]).read(pa.array([text]))


LARGEST = 10.0**15


@dataclass(frozen=True)
class Operand:
    """A column's values with their texts; null where missing.

    Attributes:
        texts: the values as they are written in a CSV file, null where missing.
    """

    kind: Kind
    values: pa.Array
    texts: pa.StringArray


def value_of(formula: Expression, operands: Mapping[str, Operand], rows: int) -> pa.Array:
    """Values of a formula that has a kind; numbers as float64, null where missing.

    Raises:
        KeyError: a column is not among the operands.
    """
    return _Values(operands, rows).of(formula)


class _Values:
    def __init__(self, operands: Mapping[str, Operand], rows: int) -> None:
        self._operands = operands
        self._rows = rows
        self._kinds = {name: operand.kind for name, operand in operands.items()}

    def _kind(self, formula: Expression) -> Kind:
        return kind_of(formula, self._kinds)

    def of(self, formula: Expression) -> pa.Array:
        if isinstance(formula, Literal):
            value = formula.value if isinstance(formula.value, str) else float(formula.value)
            return pa.repeat(value, self._rows)
        if isinstance(formula, Reference):
            return self._plain(self._operands[formula.column])
        name, parts = formula.operation, formula.operands
        if name in COMPARISONS:
            return self._compared(name, parts)
        if name in ("first", "last", "join"):
            return self._texts(name, parts)
        if name in SPANS:
            return self._span(name, parts)
        if name in _FIELDS:
            return pc.cast(_FIELDS[name][1](self.of(parts[0])), pa.float64())
        values = [self.of(part) for part in parts]
        if name == "if":
            chosen = pc.if_else(values[0].is_valid(), pc.if_else(values[0], values[1], values[2]), None)
            return pc.cast(chosen, values[1].type)
        if name in ("and", "or", "not"):
            logic = {"and": pc.and_kleene, "or": pc.or_kleene, "not": pc.invert}[name]
            return logic(*values)
        if name == "implies":
            return pc.or_kleene(pc.invert(values[0]), values[1])
        if name == "missing":
            return values[0].is_null()
        return self._numbers(name, parts, values)

    @staticmethod
    def _plain(operand: Operand) -> pa.Array:
        """Numbers as doubles, texts without a dictionary, all else as it is."""
        if operand.kind.word == "number":
            return pc.cast(operand.values, pa.float64())
        return operand.texts if operand.kind.word == "text" else operand.values

    def _numbers(self, name: str, parts: tuple[Expression, ...], values: list[pa.Array]) -> pa.Array:
        if name in ("min", "max"):
            return (pc.min_element_wise if name == "min" else pc.max_element_wise)(*values, skip_nulls=False)
        if name == "round":
            found = pc.round(values[0], whole_literal(parts[1], "round", MOST_DECIMALS))
        elif name == "negative":
            found = pc.negate(values[0])
        else:
            work = {"+": pc.add, "-": pc.subtract, "*": pc.multiply, "/": pc.divide}[name]
            found = work(*values)
        usable = pc.and_(pc.is_finite(found), pc.less_equal(pc.abs(found), LARGEST))
        return pc.if_else(usable, found, pa.scalar(None, pa.float64()))

    def _compared(self, sign: str, parts: tuple[Expression, ...]) -> pa.Array:
        values = [self.of(part) for part in parts]
        words = [self._kind(part).word for part in parts]
        for i, (part, other) in enumerate(zip(parts, reversed(words), strict=True)):
            if isinstance(part, Literal) and words[i] == "text" and other in MOMENTS:
                moment = moment_of(str(part.value), other).astype("M8[us]")[0]
                values[i] = pa.repeat(pa.scalar(int(moment.astype(np.int64)), pa.int64()), self._rows)
                values[1 - i] = microseconds(values[1 - i])
                return COMPARISONS[sign](*values)
        if words[0] == "number" and any(self._kind(part).decimals for part in parts):
            # What differs by less than the last decimal differs by arithmetic alone.
            values = [pc.round(v, MOST_DECIMALS) for v in values]
        elif words[0] in MOMENTS:
            values = [microseconds(v) for v in values]
        return COMPARISONS[sign](*values)

    def _texts(self, name: str, parts: tuple[Expression, ...]) -> pa.Array:
        def written(part: Expression) -> pa.StringArray:
            return self._operands[part.column].texts if isinstance(part, Reference) else self.of(part)

        if name == "join":
            return pc.binary_join_element_wise(*map(written, parts), "")
        length = whole_literal(parts[1], name, 1000)
        texts = written(parts[0])
        if name == "first":
            return pc.utf8_slice_codeunits(texts, 0, length)
        return pc.utf8_slice_codeunits(texts, -length) if length else pc.utf8_slice_codeunits(texts, 0, 0)

    def _span(self, name: str, parts: tuple[Expression, ...]) -> pa.Array:
        if len(parts) == 1:
            micros = pc.multiply(pc.cast(self.of(parts[0]), pa.int64()), 1_000_000)
        else:
            start, end = (microseconds(self.of(part)) for part in parts)
            micros = pc.subtract(end, start)
        # Whole ones: the quotient of integers is cut off towards zero.
        return pc.cast(pc.divide(micros, SPANS[name] * 1_000_000), pa.float64())


def microseconds(values: pa.Array) -> pa.Array:
    """Moments as microseconds since 1970, times of day since midnight."""
    if pa.types.is_time(values.type):
        return pc.cast(pc.cast(values, pa.time64("us")), pa.int64())
    if pa.types.is_duration(values.type):
        return pc.cast(pc.cast(values, pa.duration("us")), pa.int64())
    return pc.cast(pc.cast(values, pa.timestamp("us")), pa.int64())
