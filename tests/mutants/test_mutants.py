"""Mutants are what they are said to be, and explanations of survivors are of mutants that there are."""

from __future__ import annotations

import ast
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

from tests.mutants import session
from tests.mutants.files import FILES
from tests.mutants.mutations import Module, Mutant
from tests.mutants.survivors import FUNCTIONS, SURVIVORS, unclear
from tests.scopes import is_named

ROOT = Path(__file__).resolve().parents[2]

SOURCE = '''
"""A text with 1 number."""
HALF = 0.5

class Account:
    limit: int = 3

    @property
    def double(self) -> int:
        """Twice, not 3 times."""
        return 2 * self.limit

    def spend(self, cost: float, least: int = 0) -> bool:
        if cost > self.limit and not least:
            raise ValueError(f"more than {self.limit + 1}")
        self.record(cost)
        return min(cost, least) <= HALF

    def record(self, cost): ...
'''


@pytest.fixture
def module(tmp_path: Path) -> Module:
    path = tmp_path / "account.py"
    path.write_text(SOURCE, encoding="utf-8")
    return Module(path, "account.py")


def test_what_decides_is_changed_and_what_only_speaks_is_not(module: Module) -> None:
    assert [f"{m.function}: {m.change}" for m in module.mutants] == [
        "HALF: 0.5 -> 0.35",
        "Account: 3 -> 4",
        "Account.double: 2 * self.limit -> 2 / self.limit",
        "Account.double: 2 -> 3",
        "Account.spend: 0 -> 1",
        "Account.spend: if cost > self.limit and (not least) -> if not (cost > self.limit and (not least))",
        "Account.spend: cost > self.limit and (not least) -> cost > self.limit or not least",
        "Account.spend: cost > self.limit -> cost >= self.limit",
        "Account.spend: not least -> least",
        "Account.spend: raise ValueError(f'more than {self.limit + 1}') -> pass",
        "Account.spend: self.record(cost) -> pass",
        "Account.spend: min(cost, least) <= HALF -> min(cost, least) < HALF",
        "Account.spend: min -> max",
    ]


def test_a_mutant_differs_in_one_place_and_the_module_stays(module: Module) -> None:
    before = ast.dump(module.tree)
    texts = [ast.unparse(module.tree_with(mutant)) for mutant in module.mutants]
    assert len(set(texts)) == len(texts) and ast.unparse(module.tree) not in texts
    assert ast.dump(module.tree) == before
    assert len({mutant.key for mutant in module.mutants}) == len(module.mutants)


@pytest.mark.parametrize(
    ("change", "asked", "expected"),
    [
        ("2 -> 3", "Account().double", 9),
        ("raise", "Account().spend(9)", True),
        ("min -> max", "Account().spend(0, 1)", False),
        ("0 -> 1", "Account().spend(9)", False),
        ("3 -> 4", "Account().double", 8),
        ("0.5 ->", "HALF", 0.35),
    ],
)
def test_a_mutant_takes_the_place_of_what_was_imported(
    module: Module, monkeypatch: pytest.MonkeyPatch, change: str, asked: str, expected: object
) -> None:
    owner = ModuleType("account")
    exec(compile(module.tree, str(module.path), "exec"), vars(owner))
    monkeypatch.setitem(session.sys.modules, "account", owner)
    monkeypatch.setattr(session, "ROOT", module.path.parent)
    owner.__file__ = str(module.path)
    functions = [owner.Account.double.fget, owner.Account.spend, owner.Account.record]
    assert all(isinstance(function, FunctionType) for function in functions)
    mutant = next(m for m in module.mutants if m.change.startswith(change))
    assert session._put_in(module, mutant, functions) == ""
    assert eval(asked, vars(owner)) == expected


@pytest.fixture(scope="module")
def mutants() -> list[Mutant]:
    return [mutant for files in FILES.values() for f in files for mutant in Module(ROOT / f, f).mutants]


@pytest.fixture(scope="module")
def places(mutants: list[Mutant]) -> set[tuple[str, str, str]]:
    """Module, function and file of all mutants."""
    return {(mutant.module, mutant.function, mutant.file) for mutant in mutants}


def test_survivors_that_are_explained_are_there(mutants: list[Mutant]) -> None:
    assert unclear(mutants) == []
    assert unclear([]) == list(SURVIVORS)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_whose_survivors_are_explained_is_in_one_file(
    places: set[tuple[str, str, str]], function: str
) -> None:
    assert len({file for module, inside, file in places if is_named(function, module, inside)}) == 1


def test_the_files_are_there() -> None:
    assert all(files and all((ROOT / file).is_file() for file in files) for files in FILES.values())
