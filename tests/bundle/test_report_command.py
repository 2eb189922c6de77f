"""``dpsynth report``: the same bytes from the public folder alone, or no report in the bundle."""

import json
import shutil
from pathlib import Path

import pytest

from dpsynth.bundle.pages import report_html
from dpsynth.bundle.report_source import read_source
from tests.cli.here import Command
from tests.thinned import some


@pytest.mark.parametrize("kind", ["publication", "merged"])
def test_the_report_is_made_of_the_public_files_alone(written, kind, request):
    folder = written(of=request.getfixturevalue(kind))
    assert report_html(read_source(folder)).encode() == (folder / "report.html").read_bytes()


def test_a_report_that_was_deleted_is_written_again(written, tmp_path: Path, dpsynth: Command) -> None:
    folder = written()
    before = (folder / "report.html").read_bytes()
    (folder / "report.html").unlink()
    said = dpsynth("report", str(folder))
    assert (said.code, said.err) == (0, "") and said.out.strip() == str(folder / "report.html")
    assert (folder / "report.html").read_bytes() == before
    bundle = tmp_path / "bundle"
    shutil.copytree(folder, bundle / "public")
    assert dpsynth("report", str(bundle)).code == 0
    elsewhere = tmp_path / "my report.html"
    assert dpsynth("report", str(bundle), "--out", str(elsewhere)).code == 0
    assert elsewhere.read_bytes() == before


def test_a_changed_file_changes_no_report_in_the_bundle(written, dpsynth: Command) -> None:
    folder = written()
    before = (folder / "report.html").read_bytes()
    table = next((folder / "statistics").glob("one_way-age*.csv"))
    lines = table.read_text().splitlines()
    table.write_text("\n".join([lines[0], *lines[2:], lines[1]]) + "\n")
    said = dpsynth("report", str(folder))
    assert (said.code, said.out) == (2, "") and "is not the one whose checksum stands in" in said.err
    assert (folder / "report.html").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "said"),
    some(
        [
            (lambda folder: (folder / "manifest.json").unlink(), "it has no manifest.json."),
            (lambda folder: next((folder / "statistics").iterdir()).unlink(), "it has no "),
            (lambda folder: (folder / "manifest.json").write_text("{"), "a file of it is damaged"),
            (lambda folder: (folder / "manifest.json").write_text("[]"), "a file of it is damaged"),
            (
                lambda folder: (folder / "manifest.json").write_text(
                    json.dumps({"statistics": [], "files": {}})
                ),
                "a file of it is damaged",
            ),
            (
                lambda folder: next((folder / "statistics").iterdir()).write_text("a\n1\n"),
                "a file of it is damaged",
            ),
        ],
        2,
    ),
)
def test_a_damaged_bundle_is_refused_in_one_paragraph(written, change, said: str, dpsynth: Command) -> None:
    folder = written()
    change(folder)
    ended = dpsynth("report", str(folder))
    code = 2 if (folder / "manifest.json").exists() else 1
    assert (ended.code, ended.out) == (code, "") and said in ended.err and ended.err.count("\n") == 1


def test_a_place_that_can_not_be_written_is_a_mistake(written, tmp_path: Path, dpsynth: Command) -> None:
    ended = dpsynth("report", str(written()), "--out", str(tmp_path / "no" / "such.html"))
    assert ended.code == 2 and "can't be written: No such file or directory." in ended.err
    ended = dpsynth("report", str(written()), "--out", ".")
    assert ended.code == 2 and ended.err == "Error: . is a folder. Name a file with --out.\n"
