"""The figures and pictures of the page for a board are those that the package computes."""

import importlib.util
import re
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import pytest

from dpsynth.accounting.measures import GDP

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "choosing.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def computed() -> ModuleType:
    found = importlib.util.spec_from_file_location("choosing_pictures", DOCS / "choosing_pictures.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_pictures_are_those_of_the_script(computed: ModuleType) -> None:
    for name, picture in computed.pictures().items():
        assert (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8") == picture
        assert f"](pictures/{name}.svg)" in PAGE and len(picture) < 10_000


def test_the_tables_of_the_page_are_computed(computed: ModuleType) -> None:
    rows = re.findall(r"^\| ([\d.]+) \| (over 99\.9|[\d.]+) % \| (\d+) persons \|", PAGE, re.MULTILINE)
    assert [row[0] for row in rows] == ["0.1", "0.5", "1", "3", "10"]
    for epsilon, right, group in rows:
        assert (computed.guesses(epsilon), f"{computed.smallest_group(epsilon):.0f}") == (right, group)
    fits = dict(re.findall(r"^\| ([\d.]+) \| (\d+) \|$", PAGE, re.MULTILINE))
    assert fits.keys() == set(computed.MONTHLY)
    assert all(computed.months(epsilon) == int(number) for epsilon, number in fits.items())


def test_the_sentences_of_the_page_are_computed(computed: ModuleType) -> None:
    assert "Twelve releases of ε = 1 come to ε = 2.58 together" in PAGE
    assert f"{computed.total('1', 12):.2f}" == "2.58"
    assert "noise grows by three tenths" in PAGE
    price = [GDP.budget(Fraction(1), Fraction(1, 10**power)) for power in (6, 9)]
    assert (price[0] / price[1]) ** 0.5 == pytest.approx(1.3, abs=0.01)
    assert "has room for ε = 0.75 each" in PAGE
    bound = GDP.budget(Fraction(3), Fraction(1, 10**5))
    assert 24 <= bound / GDP.budget(Fraction("0.75"), Fraction(1, 10**9)) < 30


def test_the_config_of_the_page_is_one(tmp_path: Path) -> None:
    from dpsynth.config import load

    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    columns = "source: {path: a.csv}\ncolumns: {age: {type: integer, min: 0, max: 110}}\n"
    (tmp_path / "visits.yaml").write_text(text + columns)
    assert load(tmp_path / "visits.yaml").ledger.dataset == "visits"
