"""Figures of the code's structure: parameters, names bound, comparisons, docstrings, files and lines by room.

    python benchmarks/structure_figures.py [FOLDER] [--spine FILE:FUNCTION] [--release]

FOLDER is a checkout; left out, the one that this file is in. All but ``--release`` is read from the syntax
and runs nothing, so one copy of this script can measure two versions. ``--release`` runs a release of three
columns with the installed dpsynth, and counts how often the config's columns and rules are built.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

MEASURES = {"pure", "zcdp", "gdp"}
OPENINGS = ("What", "Whether", "How", "Which", "Where", "Who", "Why", "When")
MOST_PARAMETERS = 7
BUILT = ("layout", "table_columns", "rules")

CONFIG = """
source: {path: table.csv}
privacy: {epsilon: 1}
columns:
  a: {type: integer, min: 0, max: 9}
  b: {type: category, values: [x, y]}
  c: {type: boolean}
"""


def modules(root: Path) -> dict[Path, ast.Module]:
    """The syntax of each file of the product, by its path below the root."""
    paths = sorted([*root.glob("dpsynth/**/*.py"), *root.glob("flows/**/*.py")])
    return {path.relative_to(root): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """All functions and methods, by name; a method's after its class."""

    def below(node: ast.AST, before: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
        for child in ast.iter_child_nodes(node):
            name = before
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{before}.{child.name}" if before else child.name
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield name, child
            yield from below(child, name)

    return below(tree, "")


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Number of parameters that a caller sees."""
    a = function.args
    names = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"])) + (a.vararg is not None) + (a.kwarg is not None)


def bound(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Counter[str]:
    """Number of times that each name is bound in a function's own scope, parameters included."""
    a = function.args
    found = Counter(p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs))

    def walk(node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] += 1
            return
        if isinstance(node, ast.Lambda | ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] += 1
        for child in ast.iter_child_nodes(node):
            walk(child)

    for statement in function.body:
        walk(statement)
    return found


def compared_with_measures(tree: ast.Module) -> int:
    """Comparisons with the text of a measure, in lists of texts too."""
    return sum(
        any(isinstance(c, ast.Constant) and c.value in MEASURES for part in _sides(n) for c in ast.walk(part))
        for n in ast.walk(tree)
        if isinstance(n, ast.Compare)
    )


def _sides(compare: ast.Compare) -> list[ast.expr]:
    sides = [compare.left, *compare.comparators]
    return [s for s in sides if isinstance(s, ast.Constant | ast.Tuple | ast.Set | ast.List)]


def measures_written(tree: ast.Module) -> int:
    """Texts of measures, wherever they stand."""
    return sum(isinstance(n, ast.Constant) and n.value in MEASURES for n in ast.walk(tree))


def asked_kinds(tree: ast.Module) -> int:
    """Calls of isinstance that ask for a kind of column or of codec."""

    def named(node: ast.AST) -> bool:
        return any(
            isinstance(n, ast.Name) and n.id.endswith(("Places", "Column", "Codec")) and n.id != "Column"
            for n in ast.walk(node)
        )

    return sum(
        named(n.args[1])
        for n in ast.walk(tree)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "isinstance"
    )


def is_text(node: ast.AST) -> bool:
    """True if an expression is one text and nothing else."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def code_lines(tree: ast.Module) -> int:
    """Lines that hold code: no blank lines, comments or docstrings."""
    docs = {id(n) for n in ast.walk(tree) if isinstance(n, ast.Expr) and is_text(n.value)}
    held: set[int] = set()

    def walk(node: ast.AST) -> None:
        if id(node) in docs:
            return
        if is_text(node):
            held.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif hasattr(node, "lineno"):
            held.update((node.lineno, node.end_lineno or node.lineno))
        for child in ast.iter_child_nodes(node):
            walk(child)

    walk(tree)
    return len(held)


def docstrings(tree: ast.Module) -> list[str]:
    """All docstrings, those below attributes and constants included."""
    found = []
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and is_text(statement.value):
                found.append(str(ast.literal_eval(statement.value)).strip())
    return found


def count_builds(folder: Path) -> None:
    """Print how often one release builds what the config says of columns and rules."""
    import dpsynth

    home = str(Path(dpsynth.__file__).parent)
    (folder / "release.yaml").write_text(CONFIG)
    (folder / "table.csv").write_text(
        "a,b,c\n" + "".join(f"{i % 10},{'xy'[i % 2]},yes\n" for i in range(500))
    )
    calls: Counter[str] = Counter()

    def seen(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name in BUILT and code.co_filename.startswith(home):
            calls[code.co_name] += 1

    with contextlib.chdir(folder):
        for what in ("load", "release"):
            calls.clear()
            sys.setprofile(seen)
            if what == "load":
                spec = dpsynth.load("release.yaml")
            else:
                dpsynth.release(spec)
            sys.setprofile(None)
            print(f"calls during {what}: " + ", ".join(f"{name}() {calls[name]}" for name in BUILT))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument(
        "--spine", default="dpsynth/pipeline/spine.py:run", help="the function that runs all steps"
    )
    parser.add_argument("--release", action="store_true")
    args = parser.parse_args()
    trees = modules(args.folder)
    file, _, name = args.spine.partition(":")
    spine = dict(functions(trees[Path(file)]))[name]
    names = bound(spine)
    again = sorted(n for n, times in names.items() if times > 1)
    lines = (spine.end_lineno or 0) - spine.lineno + 1
    print(f"{args.spine}: {lines} lines, {len(names)} names bound, {len(again)} more than once: {again}")
    print(f"{file}: {len((args.folder / file).read_text(encoding='utf-8').splitlines())} lines")
    counted = [
        (parameters(f), f"{path}:{name}") for path, tree in trees.items() for name, f in functions(tree)
    ]
    counted.sort(key=lambda found: (-found[0], found[1]))
    many = [(number, where) for number, where in counted if number > MOST_PARAMETERS]
    print(f"functions of more than {MOST_PARAMETERS} parameters: {len(many)} (most: {counted[0][0]})")
    for number, where in many:
        print(f"  {number:3} {where}")
    for what, each in (
        ("comparisons with the text of a measure", compared_with_measures),
        ("texts of measures, anywhere", measures_written),
        ("isinstance on kinds of columns and codecs", asked_kinds),
    ):
        found = {path: each(tree) for path, tree in trees.items() if each(tree)}
        print(f"{what}: {sum(found.values())} in {len(found)} files")
    tuples = sum(ast.unparse(tree).count("tuple[Measurement, ...]") for tree in trees.values())
    print(f"annotations tuple[Measurement, ...]: {tuples}")
    texts = [text for tree in trees.values() for text in docstrings(tree)]
    opened = Counter(word for text in texts for word in OPENINGS if text.split(None, 1)[:1] == [word])
    print(f"docstrings: {len(texts)}; opening with {', '.join(f'{w} {n}' for w, n in opened.most_common())}")
    rooms: dict[str, list[int]] = {}
    for path, tree in trees.items():
        room = "/".join(path.parts[:2]) if len(path.parts) > 2 else f"{path.parts[0]}/*.py"
        rooms.setdefault(room, []).append(code_lines(tree))
    print("files and lines of code by room:")
    for room, numbers in sorted(rooms.items()):
        print(f"  {room:24} {len(numbers):4} files {sum(numbers):6,} lines")
    print(f"  {'all':24} {len(trees):4} files {sum(map(sum, rooms.values())):6,} lines")
    if args.release:
        with tempfile.TemporaryDirectory() as folder:
            os.environ.pop("DPSYNTH_DEBUG", None)
            count_builds(Path(folder))


if __name__ == "__main__":
    main()
