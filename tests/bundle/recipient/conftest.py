"""Bundles of small releases, each made once."""

import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import dpsynth
from dpsynth.bundle.signature import make_key
from dpsynth.config import from_mapping
from dpsynth.pipeline.result import Release
from tests.seeded_noise import seed_noise

COLUMNS: Mapping[str, object] = {
    "id": {"type": "identifier", "surrogates": "P001"},
    "age": {"type": "integer", "min": 0, "max": 89, "bins": 9, "missing": False},
    "sex": {"type": "category", "values": ["F", "M"], "missing": False},
    "=pay ü": {"type": "number", "min": 0, "max": 100, "bins": 4, "decimals": 1},
    "city": {"type": "category", "values": ["Aa", "-Bb", 'C "c"'], "missing": "?"},
    "smoker": {"type": "boolean", "values": ["no", "yes"], "missing": False},
    "seen": {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "unit": "month", "missing": False},
    "double": {"type": "derived", "formula": "age * 2.5", "decimals": 1, "format": {"prefix": "$"}},
}
VIEWS: Mapping[str, object] = {
    "suppress_below": 20,
    "k_anonymity": {
        "k": 5,
        "quasi_identifiers": ["age", "sex", "city"],
        "hierarchies": {"age": {"widths": [20, 40]}, "city": {"groups": {"north": ["Aa", "-Bb"]}}},
        "l_diversity": {"l": 2, "sensitive": ["=pay ü"]},
        "suppress_at_most": 0.1,
    },
}
RULE = "age < 20 implies not smoker"


def table(path: Path, rows: int = 600) -> Path:
    """A table whose columns hang together."""
    chance = random.Random(3)
    lines = ["id,age,sex,=pay ü,city,smoker,seen"]
    for i in range(rows):
        age, sex = chance.randrange(90), chance.choice("FM")
        pay = f"{min(99.9, age + 10 * (sex == 'F') * chance.random()):.1f}" if chance.random() < 0.9 else ""
        city = chance.choice(("Aa", "-Bb", '"C ""c"""', "?"))
        smoker = "yes" if age >= 20 and chance.random() < 0.3 else "no"
        lines.append(f"{i},{age},{sex},{pay},{city},{smoker},2020-{chance.randrange(12) + 1:02d}-03")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@dataclass(frozen=True)
class Made:
    """A release, and the key that signed it."""

    release: Release
    public_key: str

    @property
    def public(self) -> Path:
        return self.release.folder / "public"


def released(folder: Path, changes: Mapping[str, object] | None = None, **publish: object) -> Release:
    """A release of the table, with some sections of the configuration replaced."""
    spec = from_mapping(
        {
            "release": "people",
            "source": {"path": str(table(folder / "people.csv"))},
            "privacy": {"epsilon": 3.0, "delta": 1e-6, "on_empty": "go"},
            "ledger": {"url": f"sqlite:///{folder}/ledger.db"},
            "columns": COLUMNS,
            "constraints": [RULE],
            "sample": {"seed": 7},
            "publish": {
                "statistics": [
                    {"crosstab": ["sex", "age"]},
                    {"crosstab": ["age", "city"]},
                    {"mean": "=pay ü", "by": "sex"},
                    {"mean": "age"},
                    {"sum": "=pay ü", "by": "sex"},
                ],
                **publish,
            },
        }
        | dict(changes or {})
    )
    return dpsynth.release(spec, outputs=folder / "outputs", tell=lambda _: None)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A signed release, of noise that is the same each time: it stands for any bundle."""
    folder = tmp_path_factory.mktemp("made")
    key = make_key(folder / "key.pem")
    with pytest.MonkeyPatch.context() as patch:
        seed_noise(patch, seed=1)
        release = released(folder, sign=str(folder / "key.pem"), minimum_set_size=10, **VIEWS)
    return Made(release, key.public)


@pytest.fixture
def copied(made: Made, tmp_path: Path) -> Callable[[], Path]:
    """Makes copies of its public folder, which a test may change; nothing private is beside them."""

    def copy() -> Path:
        return Path(shutil.copytree(made.public, tmp_path / f"copy{len(list(tmp_path.iterdir()))}"))

    return copy
