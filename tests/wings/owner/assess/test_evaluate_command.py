"""``dpsynth evaluate`` writes into ``private/`` alone, and tells nothing anywhere else."""

import json
import shutil
import stat
import sys
from pathlib import Path

import pytest

from tests.bundle.test_axe import SERIOUS, WIDE, needs_axe, violations
from tests.chromium import PHONE, faults, needs_chromium
from tests.cli.here import Command
from tests.release import canaries
from tests.release.canaries import CANARIES, found_in
from tests.release.place import BY_PERSON, Ended, Place, furnished, release

WRITTEN = {"private/utility.html", "private/utility.json"}
Evaluated = tuple[Place, Path, dict[Path, bytes], Ended]


def everything(folder: Path) -> dict[Path, bytes]:
    """All files of a folder."""
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.suffix != ".pyc"}


def new_or_changed(before: dict[Path, bytes], folder: Path, bundle: Path) -> set[str]:
    """Files of a folder that are new, changed or gone, by their paths in the bundle where they are in it."""
    after = everything(folder)
    found = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    return {str(path.relative_to(bundle)) if path.is_relative_to(bundle) else str(path) for path in found}


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Evaluated:
    """A release of a table with canaries: place, bundle, all files before, and how the command ended."""
    place = furnished(tmp_path_factory.mktemp("evaluated"))
    place.table(canaries.table())
    place.configure(privacy={**BY_PERSON, "epsilon": 20}, constraints=["age >= 0"])
    bundle = release(place).folder
    before = everything(place.home)
    ended = place.call(
        [
            *(sys.executable, "-m", "dpsynth", "evaluate", str(bundle), "--against", "people.csv"),
            *("--target", "smoker", "--target", "income"),
        ]
    )
    return place, bundle, before, ended


@pytest.fixture
def dpsynth(
    evaluated: Evaluated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """The command in the place of that release."""
    return Command(evaluated[0].folder, monkeypatch, capsys)


def test_an_evaluation_writes_two_files_into_private_and_nothing_else(evaluated: Evaluated) -> None:
    place, bundle, before, ended = evaluated
    assert ended.code == 0 and ended.err == "", ended
    assert new_or_changed(before, place.home, bundle) == WRITTEN
    for name in WRITTEN:
        assert stat.S_IMODE((bundle / name).stat().st_mode) == 0o600
    assert found_in([p for p in (bundle / "public").rglob("*") if p.is_file()]) == {}


def test_a_file_in_public_would_be_noticed(evaluated: Evaluated, tmp_path: Path) -> None:
    """The planted fault: a page that is written into the public half."""
    _, bundle, _, _ = evaluated
    copy = tmp_path / "bundle"
    shutil.copytree(bundle, copy)
    before = everything(copy)
    shutil.copy(copy / "private" / "utility.html", copy / "public" / "utility.html")
    (copy / "public" / "manifest.json").open("a").write("\n")
    assert new_or_changed(before, copy, copy) == {"public/utility.html", "public/manifest.json"}


def test_what_is_printed_names_the_page_and_no_figure(evaluated: Evaluated) -> None:
    _, bundle, _, ended = evaluated
    first, last = ended.out.splitlines()
    assert first.startswith("PRIVATE, never to be shared: ") and first.endswith("Nothing was charged.")
    assert ended.folder == bundle / "private" / "utility.html" and last == str(ended.folder)
    assert {line for line in ended.under_way if not line.startswith("Step: ")} == set()


def test_page_and_json_begin_with_their_warning_and_run_nothing(evaluated: Evaluated) -> None:
    _, bundle, _, _ = evaluated
    page = (bundle / "private" / "utility.html").read_text(encoding="utf-8")
    body = page.split("<body>")[1].strip()
    assert body.splitlines()[0].startswith(
        '<p class="rehearsal private" role="region" aria-label="Notice"><strong>PRIVATE, never'
    )
    assert "<title>PRIVATE" in page and "default-src 'none'" in page and "<script" not in page
    facts = json.loads((bundle / "private" / "utility.json").read_text(encoding="utf-8"))
    assert next(iter(facts)) == "private" and "never to be shared" in facts["private"]
    assert facts["rows"]["synthetic"] > 0 and len(facts["columns"]) == 5 and len(facts["pairs"]) == 10
    assert set(facts["predictions"]) == set(facts["regressions"]) == {"smoker", "income"}
    assert [v["rule"] for v in facts["violations"]] == ["age >= 0"]
    assert facts["violations"][0]["synthetic"] == 0


def test_a_second_evaluation_replaces_the_first_and_says_the_same(
    evaluated: Evaluated, dpsynth: Command
) -> None:
    """Both in one process: with another number of threads the last digits of their sums differ."""
    bundle = evaluated[1]
    command = ("evaluate", str(bundle), "--config", "config.yaml", "--target", "smoker", "--target", "income")
    assert dpsynth(*command).code == 0
    first = everything(bundle)
    assert dpsynth(*command).code == 0
    assert new_or_changed(first, bundle, bundle) == set()


@pytest.mark.slow
@needs_chromium
def test_the_page_is_whole_labelled_and_legible_at_desktop_and_phone_width(
    evaluated: Evaluated, tmp_path: Path
) -> None:
    _, bundle, _, _ = evaluated
    assert faults([(bundle / "private" / "utility.html").read_text(encoding="utf-8")], tmp_path) == []


@pytest.mark.slow
@needs_chromium
@needs_axe
@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_axe_finds_nothing_serious_in_the_page(evaluated: Evaluated, tmp_path: Path, width: int) -> None:
    _, bundle, _, _ = evaluated
    page = (bundle / "private" / "utility.html").read_text(encoding="utf-8")
    assert [v for v in violations(page, tmp_path, width) if v[0] in SERIOUS] == []


MISTAKES = {
    "no bundle": (["nowhere"], 2, "nowhere is no bundle: it has no public/manifest.json."),
    "no table": (["BUNDLE"], 2, "Name the private table with --against TABLE, or the release's config"),
    "no such table": (["BUNDLE", "--against", "gone.csv"], 4, "There is no file gone.csv"),
    "a table without columns": (["BUNDLE", "--against", "other.csv"], 4, "other.csv has no column"),
    "a table of another ending": (["BUNDLE", "--against", "config.yaml"], 4, "config.yaml has no column"),
    "an unknown target": (
        ["BUNDLE", "--against", "people.csv", "--target", "sx"],
        2,
        "--target sx: the release has no such column that is read from the table; it has age, sex,",
    ),
    "a target twice": (
        ["BUNDLE", "--against", "people.csv", "--target", "sex", "--target", "sex"],
        2,
        "--target sex is given twice.",
    ),
    "the private half": (["BUNDLE/private", "--against", "people.csv"], 2, "is no bundle"),
}


@pytest.mark.parametrize("name", list(MISTAKES))
def test_a_mistake_is_told_in_one_paragraph(evaluated: Evaluated, name: str, dpsynth: Command) -> None:
    place, bundle, _, _ = evaluated
    arguments, code, said = MISTAKES[name]
    (place.folder / "other.csv").write_text("a,b\n1,2\n")
    ended = dpsynth("evaluate", *(a.replace("BUNDLE", str(bundle)) for a in arguments))
    assert (ended.code, ended.out) == (code, "") and said in ended.err, ended
    told = Ended.of(ended.code, ended.out, ended.err).err
    assert (
        told.startswith("Error: ")
        and told.count("\n") == 1
        and not any(canary in ended.err for canary in CANARIES.values())
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rehearsal": True}, "is a rehearsal: its table was made up"),
        ({"columns": 3}, "is no manifest of a bundle: it is damaged."),
        ({"source": {"kind": "odt"}}, "source is no form of a file"),
        ({"columns": [{"name": "x", "labels": ["a"]}]}, "is no manifest of a bundle: it is damaged."),
        (
            {"columns": [{"name": "x", "type": "odd", "labels": ["a"], "missing": {"modelled": False}}]},
            "has the column 'x', of no kind that is known",
        ),
    ],
)
def test_a_manifest_that_does_not_serve_is_refused(
    evaluated: Evaluated, tmp_path: Path, change: dict[str, object], said: str, dpsynth: Command
) -> None:
    _, bundle, _, _ = evaluated
    copy = tmp_path / "bundle"
    shutil.copytree(bundle, copy)
    manifest = json.loads((copy / "public" / "manifest.json").read_text(encoding="utf-8"))
    (copy / "public" / "manifest.json").write_text(json.dumps({**manifest, **change}))
    ended = dpsynth("evaluate", str(copy), "--against", "people.csv")
    assert (ended.code, ended.out) == (2, "") and said in ended.err
    shutil.rmtree(copy / "private")
    (copy / "public" / "manifest.json").write_text(json.dumps(manifest))
    ended = dpsynth("evaluate", str(copy), "--against", "people.csv")
    assert ended.code == 2 and "has no folder private/" in ended.err


def test_an_unforeseen_error_withholds_what_it_quotes(
    evaluated: Evaluated, monkeypatch: pytest.MonkeyPatch, dpsynth: Command
) -> None:
    _, bundle, _, _ = evaluated

    def fail(*_: object) -> None:
        raise ValueError("cell p1 of people.csv")

    monkeypatch.setattr("dpsynth.wings.owner.assess.evaluation.agreement", fail)
    ended = dpsynth("evaluate", str(bundle), "--against", "people.csv")
    assert (ended.code, ended.out) == (1, "") and "p1" not in ended.err
    assert "Step 'look for rows that agree' failed: ValueError; details withheld" in ended.err
