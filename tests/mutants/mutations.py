"""The mutants of a module: each is its syntax tree with one small change.

Nothing that only speaks is changed: docstrings, texts, annotations, decorators, imports for types, and what
is inside a ``raise``.
"""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType

from tests.scopes import scope_of

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_REVERSED = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "ceil": "floor", "floor": "ceil"}
_SILENT = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Assert)


@dataclass(frozen=True)
class Mutant:
    """One small change of a module.

    Attributes:
        file: the module's file, from the root of the project.
        function: the qualified name of the innermost function, class or constant around it; empty elsewhere.
        first, last: the lines that are changed.
        change: the old piece and the new one, in words of Python.
        nth: the number of the same change in the same function before it.
        mark: a hash of the function as it is written.
        place: the node's parent, the field, and the position in it.
        new: the node that stands there instead.
    """

    file: str
    function: str
    first: int
    last: int
    change: str
    nth: int
    mark: str
    place: tuple[ast.AST, str, int | None]
    new: ast.AST

    @property
    def module(self) -> str:
        """The dotted name of its module."""
        return ".".join(Path(self.file).with_suffix("").parts)

    @property
    def key(self) -> str:
        """A name that lasts for as long as the function isn't changed."""
        return f"{self.file} {self.function or '(module)'} {self.change} #{self.nth} {self.mark}"


class Module:
    """A module's tree, and its mutants."""

    def __init__(self, path: Path, file: str) -> None:
        self.path, self.file = path, file
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)

    @cached_property
    def mutants(self) -> list[Mutant]:
        """All mutants, in the order of the file."""
        seen: dict[tuple[str, str, str], int] = {}
        found = []
        marks: dict[int, str] = {id(self.tree): ""}
        for function, place, old, new in _changes(self.tree, "", self.tree):
            if id(function[1]) not in marks:
                marks[id(function[1])] = hashlib.sha256(ast.dump(function[1]).encode()).hexdigest()[:8]
            mark = marks[id(function[1])]
            change = f"{_words(old)} -> {_words(new)}"
            nth = seen[function[0], mark, change] = seen.get((function[0], mark, change), -1) + 1
            found.append(Mutant(self.file, function[0], *_lines(old), change, nth, mark, place, new))
        return found

    def tree_with(self, mutant: Mutant) -> ast.Module:
        """A copy of the module's tree with one change."""
        parent, field, index = mutant.place
        held = getattr(parent, field)
        old = held if index is None else held[index]
        try:
            _put(mutant.place, _located(mutant.new, old))
            return copy.deepcopy(self.tree)
        finally:
            _put(mutant.place, old)

    def code_with(self, mutant: Mutant) -> dict[tuple[str, int], CodeType]:
        """The code of each function of the mutant, by qualified name and first line."""
        return functions_of(compile(self.tree_with(mutant), str(self.path), "exec"))


def functions_of(code: CodeType) -> dict[tuple[str, int], CodeType]:
    """The code of the functions inside some code, by qualified name and first line."""
    found = {}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found[inner.co_qualname, inner.co_firstlineno] = inner
            found.update(functions_of(inner))
    return found


def _located(new: ast.AST, old: ast.AST) -> ast.AST:
    if isinstance(old, ast.expr | ast.stmt):
        ast.fix_missing_locations(ast.copy_location(new, old))
    return new


def _lines(node: ast.AST) -> tuple[int, int]:
    """The lines of what changes: of a statement with a body its head."""
    if isinstance(node, ast.If | ast.While):
        return node.lineno, node.test.end_lineno or node.lineno
    if isinstance(node, ast.With):
        return node.lineno, node.lineno
    if isinstance(node, ast.comprehension):
        return node.target.lineno, node.ifs[-1].end_lineno or node.target.lineno
    assert isinstance(node, ast.expr | ast.stmt)
    return node.lineno, node.end_lineno or node.lineno


def _put(place: tuple[ast.AST, str, int | None], node: ast.AST) -> None:
    parent, field, index = place
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def _words(node: ast.AST) -> str:
    if isinstance(node, ast.If | ast.While):
        return f"{'if' if isinstance(node, ast.If) else 'while'} {ast.unparse(node.test)}"
    if isinstance(node, ast.With):
        return f"with {', '.join(map(ast.unparse, node.items))}"
    if isinstance(node, ast.comprehension):
        return ast.unparse(node).strip()
    return " ".join(ast.unparse(node).split())


def _changes(
    node: ast.AST, function: str, body: ast.AST
) -> Iterator[tuple[tuple[str, ast.AST], tuple[ast.AST, str, int | None], ast.AST, ast.AST]]:
    """Each change below a node: function, place, old and new."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases", "type_comment"):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST):
                continue
            for new in _instead(child, node, field):
                yield (function, body), (node, field, index), child, new
            if isinstance(child, _SILENT) or (isinstance(child, ast.AnnAssign) and child.value is None):
                continue
            scope = scope_of(child, function)
            yield from (_changes(child, scope, child) if scope else _changes(child, function, body))


def _instead(node: ast.AST, parent: ast.AST, field: str) -> Iterator[ast.AST]:
    """What may stand in a node's place."""
    match node:
        case ast.Compare():
            for i, op in enumerate(node.ops):
                ops = [*node.ops[:i], _COMPARED[type(op)](), *node.ops[i + 1 :]]
                yield ast.Compare(node.left, ops, node.comparators)
        case ast.BinOp():
            yield ast.BinOp(node.left, _COMPUTED.get(type(node.op), ast.Add)(), node.right)
        case ast.AugAssign():
            yield ast.AugAssign(node.target, _COMPUTED.get(type(node.op), ast.Add)(), node.value)
            yield ast.Pass()
        case ast.BoolOp():
            yield ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
        case ast.UnaryOp() if not isinstance(node.operand, ast.Constant):
            yield node.operand
        case ast.Constant():
            yield from _constants(node, parent)
        case ast.Name() if node.id in _NAMES and isinstance(parent, ast.Call) and field == "func":
            yield ast.Name(_NAMES[node.id], node.ctx)
        case ast.Attribute() if node.attr in _NAMES and isinstance(parent, ast.Call) and field == "func":
            yield ast.Attribute(node.value, _NAMES[node.attr], node.ctx)
        case ast.If() | ast.IfExp() | ast.While() if not _is_reversed_anyway(node.test):
            negated = copy.copy(node)
            negated.test = ast.UnaryOp(ast.Not(), node.test)
            yield negated
        case ast.comprehension() if node.ifs:
            yield ast.comprehension(node.target, node.iter, [], node.is_async)
        case ast.With() if all(item.optional_vars is None for item in node.items):
            yield ast.If(ast.Constant(True), node.body, [])
        case ast.Raise() | ast.Continue() | ast.Break():
            yield ast.Pass()
        case ast.Expr(value=ast.Call()):
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()


def _is_reversed_anyway(test: ast.expr) -> bool:
    match test:
        case ast.Compare(ops=[op]):
            return isinstance(op, _REVERSED)
        case ast.UnaryOp(op=ast.Not()) | ast.Constant() | ast.Name(id="TYPE_CHECKING"):
            return True
    return False


def _constants(node: ast.Constant, parent: ast.AST) -> Iterator[ast.Constant]:
    match node.value:
        case bool():
            yield ast.Constant(not node.value)
        case int():
            yield ast.Constant(node.value + 1)
        case float():
            yield ast.Constant(0.7 * node.value if node.value else 1.0)
        case str() if isinstance(parent, ast.Call) and _is_number(node.value):
            yield ast.Constant(f"{0.7 * float(node.value)!r}")


def _is_number(text: str) -> bool:
    try:
        return bool(float(text))
    except ValueError:
        return False
