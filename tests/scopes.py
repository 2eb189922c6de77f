"""Names of places in the code that hold wherever a file lies: a function, a class, a constant of a module.

Planted faults and explained mutants are named by them and by a piece of the source, so that a function may
move to another file without a list that has to follow.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from pathlib import Path


def scope_of(statement: ast.AST, outer: str) -> str | None:
    """The qualified name that a statement opens inside another; None where it opens none."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return f"{outer}.{name}".lstrip(".")
        case (
            ast.Assign(targets=[ast.Name(id=name) | ast.Tuple(elts=[ast.Name(id=name), *_])])
            | ast.AnnAssign(target=ast.Name(id=name))
        ) if not outer:
            return name
    return None


def scopes(tree: ast.Module) -> Iterator[tuple[str, int, int]]:
    """Each scope of a module: qualified name, first line with decorators, last line."""
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, outer = waiting.pop()
        for child in ast.iter_child_nodes(node):
            name = scope_of(child, outer)
            if name is not None:
                assert isinstance(child, ast.stmt)
                decorators = getattr(child, "decorator_list", [])
                first = min(node.lineno for node in (child, *decorators))
                yield name, first, child.end_lineno or child.lineno
            waiting.append((child, outer if name is None else name))


def is_named(where: str, module: str, name: str) -> bool:
    """Whether a scope of a module is what a qualified name says, with or without modules before it."""
    before = where.removesuffix(name)
    return where.endswith(name) and (not before or f".{module}.".endswith(f".{before}"))


def occurrences(root: Path, where: str, piece: str) -> list[tuple[Path, int]]:
    """The files and offsets at which a piece of source stands in the scopes of a name.

    Args:
        root: the folder with ``dpsynth`` and ``flows``.
        where: a qualified name, with or without modules before it.
        piece: what is looked for.
    """
    found: set[tuple[Path, int]] = set()
    for path in _sources(root):
        text = _text_of(path, path.stat().st_mtime_ns)
        if piece not in text:
            continue
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        lines = text.splitlines(keepends=True)
        starts = [0, *accumulate(map(len, lines))]
        around = [
            (starts[first - 1], starts[last])
            for name, first, last in _scopes_in(text)
            if is_named(where, module, name)
        ]
        for start, end in around:
            found |= {
                (path, start + match.start()) for match in re.finditer(re.escape(piece), text[start:end])
            }
    return sorted(found)


@cache
def _text_of(path: Path, written: int) -> str:
    """The text of a file as it was written at a time, in nanoseconds."""
    del written
    return path.read_text(encoding="utf-8")


@cache
def _scopes_in(text: str) -> tuple[tuple[str, int, int], ...]:
    return tuple(scopes(ast.parse(text)))


@cache
def _sources(root: Path) -> tuple[Path, ...]:
    return tuple(sorted(path for folder in ("dpsynth", "flows") for path in (root / folder).rglob("*.py")))
