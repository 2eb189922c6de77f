"""The core without wings: what it does, what it says, and what it doesn't load."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]

CONFIG = """
release: visits
source: {path: visits.csv}
privacy: {epsilon: 2, delta: 1.0e-6, unit: row}
ledger: {url: "sqlite:///ledger.db", dataset: visits, cap: {epsilon: 10, delta: 1.0e-4}}
columns:
  age: {type: integer, min: 0, max: 89, bins: 18, missing: false}
  sex: {type: category, values: [F, M], missing: false}
publish: {statistics: [{mean: age, by: sex}]}
"""


def run(place: Path, *words: str, without: bool = True) -> subprocess.CompletedProcess[str]:
    """A command of the package in ``place/package``, or of the one under test."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    root = place / "package" if without else REPOSITORY
    return subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(root)!r}); {words[0]}", *words[1:]],
        cwd=place,
        env=kept,
        capture_output=True,
        text=True,
        timeout=120,
    )


EACH = """
from dpsynth.cli.app import main
for words in sys.argv[1:]:
    sys.argv = ['dpsynth', *words.split('|')]
    try:
        main()
    except SystemExit as stop:
        print(f'Ended: {stop.code or 0}', flush=True)
"""
"""Commands of one process after another, each in one word."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, a config, and the package without its wings."""
    place = tmp_path_factory.mktemp("core")
    # Compiled modules are copied with their dates, and so needn't be compiled again.
    ignored = shutil.ignore_patterns("wings")
    shutil.copytree(REPOSITORY / "dpsynth", place / "package" / "dpsynth", ignore=ignored)
    rows = (f"{i * 7 % 90},{'FM'[i % 2]}\n" for i in range(1000))
    (place / "visits.csv").write_text("age,sex\n" + "".join(rows))
    (place / "visits.yaml").write_text(CONFIG)
    return place


def test_a_release_is_planned_run_verified_and_asked_without_any_wing(place: Path) -> None:
    done = run(place, EACH, "plan|visits.yaml", "run|visits.yaml|--plain")
    assert done.stdout.count("Ended: 0") == 2, done.stderr
    (public,) = place.glob("outputs/visits/*/public")
    manifest = json.loads((public / "manifest.json").read_text())
    assert manifest["synthetic_rows"] > 0 and "croissant.json" not in manifest["files"]
    for page in ("README.md", "report.html"):
        text = (public / page).read_text()
        assert "croissant" not in text and "dcat" not in text
    assert not (public.parents[1] / "index.html").exists()
    asked = run(place, EACH, f"verify|{public}", f"query|{public}|mean(age) by sex", "ledger|show")
    assert asked.stdout.count("Ended: 0") == 3, (asked.stdout, asked.stderr)


def test_without_its_wing_a_command_is_unknown(place: Path) -> None:
    commands = ("check", "evaluate", "audit", "collect")
    asked = run(place, EACH, *(f"{command}|visits.yaml" for command in commands))
    assert asked.stdout.count("Ended: 2") == len(commands)
    assert all(f"No such command '{command}'" in asked.stderr for command in commands)


def test_what_needs_a_wing_says_so_in_a_paragraph(place: Path) -> None:
    (place / "many.yaml").write_text(CONFIG + "engine: {dask: local}\n")
    (place / "tree.yaml").write_text(CONFIG + "structure: mst\n")
    asked = run(place, EACH, "run|many.yaml|--plain", "plan|tree.yaml")
    assert asked.stdout.count("Ended: 2") == 2 and "Traceback" not in asked.stderr
    assert "engine.dask needs the wing cluster" in asked.stderr
    assert "structure.method: mst needs the wing methods" in asked.stderr
    named = run(place, "import dpsynth; dpsynth.check")
    assert "has no attribute 'check'" in named.stderr


def test_no_wing_is_loaded_by_what_needs_none(place: Path) -> None:
    loaded = "[n for n in sys.modules if n.count('.') > 2 and n.startswith('dpsynth.wings.')]"
    told = f"{EACH.rstrip()}\n        print(*{loaded})\n"
    asked = run(place, told, "plan|visits.yaml", "run|visits.yaml|--plain", without=False)
    _, planned, released = asked.stdout.split("Ended: 0\n")
    # A run asks the owner's wing if this table was checked, and the wing of proof for two files.
    used = ("owner.checked_mark", "proof.catalogues", "proof.dataset_page")
    assert planned.startswith("\n") and released.split() == [f"dpsynth.wings.{name}" for name in used]
