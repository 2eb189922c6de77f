"""The structure of the code in figures, each beside its bar: rooms, files, lines, arrows, a walk, features.

    python -m releasing.house [--arrows] [--walk] [--features]

A room is a folder of ``dpsynth/``; a wing is a room under ``dpsynth/wings/``; the core is every room that is
no wing, with the modules at the top of ``dpsynth/`` but ``dpsynth.testing``, which no release needs. Code is
lines without blanks, comments and docstrings. An arrow is a pair of rooms of which one imports from the
other; it runs up if the layers in ``pyproject.toml`` say so. A circle is a set of modules that import each
other in a ring.

The walk is that of a reader who follows a configuration through ``dpsynth run``: a small release is run and
traced. A stop is a function that is first entered from another room, in the order in which that happens, but
for properties, which read as attributes; a move is a stop in another room than the stop before it.

A feature is known to a file if one of the names in its code (not in prose) is among the feature's words, as a
whole word between underscores or capitals. Files whose own name says the feature are its own.

It exits with 1 if a figure is beyond its bar. Bars only ever get tighter. What is not reached yet stands
beside them as the aim. Noise decides some steps of the release that is walked through, so its bars leave room
for them.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

from releasing.bill_of_materials import ROOT

WINGS = "wings"
ROOTS = ("dpsynth", "flows")


@dataclass(frozen=True)
class Bar:
    """The largest figure that is let through, and what is aimed at."""

    held: float
    aim: float


BARS: Mapping[str, Bar] = {
    "rooms of the core": Bar(13, 13),
    "files of the core": Bar(188, 200),
    "code of the core, lines": Bar(34_841, 28_000),
    "arrows between rooms of the core": Bar(75, 80),
    "arrows that run up": Bar(0, 0),
    "circles of modules": Bar(0, 0),
    "file names in several rooms of the core": Bar(1, 0),
    "docstrings for a line of code": Bar(0.30, 0.30),
    "lines of the whole": Bar(86_785, 60_000),
    "walk: stops": Bar(240, 140),
    "walk: files": Bar(86, 50),
    "walk: moves": Bar(118, 60),
}

FEATURES: Mapping[str, str] = {
    "period": r"periods?|occasions?",
    "rules": r"rules?|constraints?",
    "exam": r"exam|exams|examined",
    "audiences": r"audiences?|tiers?",
    "persons": r"persons?|max_rows",
    "secret sample": r"sampled|(?<!model_)sampling|unit_sample|subsampling",
    "reuse": r"reused?|evidence|earlier",
    "local model": r"local|respondents?|randomisers?",
}
"""``dpsynth.model.sampling`` draws synthetic rows, which is no secret sample of units."""

FEATURE_AIM = 8

_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True)
class Module:
    """A file of the product.

    Attributes:
        path: from the root of the project.
    """

    path: Path

    @property
    def name(self) -> str:
        """The dotted name."""
        parts = self.path.with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def room(self) -> str:
        """The room: ``model``, ``wings.local``, or the module itself at the top."""
        parts = self.path.with_suffix("").parts
        if parts[0] != "dpsynth":
            return parts[0]
        if len(parts) > 3 and parts[1] == WINGS:
            return f"{WINGS}.{parts[2]}"
        return parts[1] if len(parts) > 2 else parts[-1]

    @property
    def in_core(self) -> bool:
        """Whether it is part of the core."""
        beside = self.room.startswith(WINGS) or self.room == "testing"
        return not beside and self.path.parts[0] == "dpsynth"

    @property
    def is_room(self) -> bool:
        """Whether its room is a folder."""
        return len(self.path.parts) > 2

    @cached_property
    def text(self) -> str:
        """The source."""
        return (ROOT / self.path).read_text()

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def docstring_lines(self) -> set[int]:
        """The lines that hold docstrings, of attributes too."""
        lines: set[int] = set()
        for node in ast.walk(self.tree):
            for statement in (
                getattr(node, "body", ()) if not isinstance(node, ast.Lambda | ast.IfExp) else ()
            ):
                value = statement.value if isinstance(statement, ast.Expr) else None
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    lines.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
        return lines

    @cached_property
    def code_lines(self) -> int:
        """Lines without blanks, comments and docstrings."""
        held: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in _NO_CODE:
                held.update(range(token.start[0], token.end[0] + 1))
        return len(held - self.docstring_lines)

    @cached_property
    def words(self) -> str:
        """Every name that its code uses, each in small letters with underscores at both ends."""
        names: set[str] = set()
        for node in ast.walk(self.tree):
            for field in ("id", "attr", "arg", "name", "module", "asname"):
                value = getattr(node, field, None)
                if isinstance(value, str):
                    names.add(value)
        parted = (re.sub(r"(?<=[a-z])(?=[A-Z])|[.]", "_", name).lower() for name in names)
        return " ".join(f"_{name}_" for name in sorted(parted))

    def imports(self, modules: Mapping[str, Module]) -> set[Module]:
        """The modules of the product that it imports, those inside of functions and of annotations too."""
        found: set[Module] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [
                    whole if (whole := f"{node.module}.{alias.name}") in modules else node.module
                    for alias in node.names
                ]
            else:
                continue
            found.update(modules[name] for name in names if name in modules)
        return found - {self}


def product() -> dict[str, Module]:
    """All modules, by name."""
    paths = (path.relative_to(ROOT) for root in ROOTS for path in sorted((ROOT / root).rglob("*.py")))
    return {module.name: module for module in map(Module, paths)}


def layer_of() -> dict[str, int]:
    """The layer of every room, from the import contracts: the top one is 0."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return {
        name.strip().removeprefix("dpsynth."): place
        for place, row in enumerate(layers)
        for name in re.split("[|:]", row)
    }


def circles(edges: Mapping[str, set[str]]) -> list[tuple[str, ...]]:
    """Rings of imports; each is broken at one of its edges before the next is looked for."""
    left, found = {name: set(into) for name, into in edges.items()}, []
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            ring = tuple(error.args[1])
            found.append(ring)
            left[ring[1]].discard(ring[0])
        else:
            return found


def knowing(modules: Iterable[Module], words: str) -> list[Module]:
    """The files outside of a feature's own that know it."""
    known, own = re.compile(rf"_(?:{words})_"), re.compile(rf"(?:^|[_/])(?:{words})(?:$|[_/.])")
    return [module for module in modules if known.search(module.words) and not own.search(str(module.path))]


_TRACED = """
import json, os, sys
sys.path.insert(0, {root!r})
from dpsynth.cli.app import main
home, first, stops = os.path.join({root!r}, "dpsynth") + os.sep, set(), []
def room(file):
    parts = file[len(home):].split(os.sep)
    return ".".join(parts[:2]) if parts[0] == {wings!r} else parts[0]
def entered(frame, event, argument):
    code = frame.f_code
    if event != "call" or not code.co_filename.startswith(home) or code.co_name.startswith("<"):
        return
    before = frame.f_back
    while before is not None and not before.f_code.co_filename.startswith(home):
        before = before.f_back
    if before is None or room(before.f_code.co_filename) == room(code.co_filename) or code in first:
        return
    first.add(code)
    file = code.co_filename
    stops.append((room(file), file[len(home):], code.co_qualname, code.co_firstlineno))
sys.argv = ["dpsynth", "run", "walk.yaml", "--plain"]
sys.setprofile(entered)
try:
    main()
except SystemExit as end:
    sys.setprofile(None)
    with open("walk.json", "w") as file:
        json.dump(stops, file)
    raise
"""

_WALK = """
release: walk
source: {path: people.csv}
privacy: {epsilon: 1, delta: 1.0e-6, unit: row}
ledger: {url: "sqlite:///ledger.db", dataset: people, cap: {epsilon: 10, delta: 1.0e-4}}
columns:
  age: {type: integer, min: 0, max: 89, bins: 18, missing: false}
  sex: {type: category, values: [F, M], missing: false}
  income: {type: integer, min: 0, max: 4999, missing: false}
publish: {statistics: [{mean: income, by: sex}]}
"""


def walk(modules: Mapping[str, Module]) -> list[tuple[str, str, str]]:
    """Room, file and function of each stop of a traced release."""
    with tempfile.TemporaryDirectory() as folder:
        rows = (f"{i * 7 % 90},{'FM'[i % 2]},{i * 31 % 5000}\n" for i in range(2000))
        Path(folder, "people.csv").write_text("age,sex,income\n" + "".join(rows))
        Path(folder, "walk.yaml").write_text(_WALK)
        program = _TRACED.format(root=str(ROOT), wings=WINGS)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=folder, env=kept, capture_output=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"The release that is walked through failed: {done.stderr.decode()[-2000:]}")
        stops = json.loads(Path(folder, "walk.json").read_text())
    properties = _properties(modules)
    return [(room, file, name) for room, file, name, line in stops if (file, line) not in properties]


def _properties(modules: Mapping[str, Module]) -> set[tuple[str, int]]:
    """File below ``dpsynth/`` and first line of each property."""
    return {
        (module.path.relative_to("dpsynth").as_posix(), decorator.lineno)
        for module in modules.values()
        if module.path.parts[0] == "dpsynth"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if ast.unparse(decorator).endswith("property")
    }


def _printed_arrows(arrows: Mapping[tuple[str, str], int]) -> None:
    for (source, target), count in sorted(arrows.items()):
        print(f"  {source} -> {target}  {count}")


def figures(modules: Mapping[str, Module], stops: Sequence[tuple[str, str, str]]) -> dict[str, float]:
    """Every figure that has a bar."""
    core = [module for module in modules.values() if module.in_core]
    arrows, edges, layer = arrows_of(modules), _edges(modules), layer_of()
    names = Counter(
        (module.path.stem) for module in core if module.is_room and module.path.stem != "__init__"
    )
    in_core = {module.room for module in core}
    code = sum(module.code_lines for module in core)
    return {
        "rooms of the core": len({module.room for module in core if module.is_room}),
        "files of the core": len(core),
        "code of the core, lines": code,
        "arrows between rooms of the core": sum(
            source in in_core and target in in_core for source, target in arrows
        ),
        "arrows that run up": sum(layer.get(source, 0) > layer.get(target, 99) for source, target in arrows),
        "circles of modules": len(circles(edges)),
        "file names in several rooms of the core": sum(count > 1 for count in names.values()),
        "docstrings for a line of code": round(sum(len(module.docstring_lines) for module in core) / code, 3),
        "lines of the whole": sum(module.text.count("\n") for module in modules.values()),
        "walk: stops": len(stops),
        "walk: files": len({file for _, file, _ in stops}),
        "walk: moves": sum(one[0] != after[0] for one, after in pairwise(stops)),
    }


def _edges(modules: Mapping[str, Module]) -> dict[str, set[str]]:
    return {name: {into.name for into in module.imports(modules)} for name, module in modules.items()}


def arrows_of(modules: Mapping[str, Module]) -> Counter[tuple[str, str]]:
    """How many imports each pair of rooms has."""
    return Counter(
        (module.room, into.room)
        for module in modules.values()
        for into in module.imports(modules)
        if module.room != into.room
    )


def main() -> int:
    """Measure, print, and hold the figures against their bars."""
    parser = argparse.ArgumentParser(description="the structure of the code in figures")
    for name in ("arrows", "walk", "features"):
        parser.add_argument(f"--{name}", action="store_true", help=f"list the {name} too")
    asked = parser.parse_args()
    modules = product()
    stops = walk(modules)
    found = figures(modules, stops)
    width, beyond = max(map(len, BARS)), 0
    print(f"{'':{width}}  {'now':>9}  {'bar':>9}  {'aim':>9}")
    for name, value in found.items():
        bar = BARS[name]
        beyond += value > bar.held
        told = "  beyond its bar" if value > bar.held else ""
        print(f"{name:{width}}  {value:>9,}  {bar.held:>9,}  {bar.aim:>9,}{told}")
    for feature, words in FEATURES.items():
        files = knowing(modules.values(), words)
        print(f"{'known to files: ' + feature:{width}}  {len(files):>9}  {'':>9}  {FEATURE_AIM:>9}")
        if asked.features:
            print("".join(f"  {module.path}\n" for module in files), end="")
    if asked.arrows:
        _printed_arrows(arrows_of(modules))
        print("".join(f"  circle: {' -> '.join(ring)}\n" for ring in circles(_edges(modules))), end="")
    if asked.walk:
        print("".join(f"  {file}: {function}\n" for _, file, function in stops), end="")
    return int(beyond > 0)


if __name__ == "__main__":
    sys.exit(main())
