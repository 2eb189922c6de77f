"""``dpsynth report``: the same bytes from the public folder alone, or no report in the bundle."""

import json
import shutil
from pathlib import Path

import pytest

from dpsynth.bundle.pages import report_html
from dpsynth.bundle.report_source import read_source
from tests.thinned import some
from tests.wings.owner.assess.test_check_command import called


@pytest.mark.parametrize("kind", ["publication", "merged"])
def test_the_report_is_made_of_the_public_files_alone(written, kind, request):
    folder = written(of=request.getfixturevalue(kind))
    assert report_html(read_source(folder)).encode() == (folder / "report.html").read_bytes()


def test_a_report_that_was_deleted_is_written_again(
    written, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = written()
    before = (folder / "report.html").read_bytes()
    (folder / "report.html").unlink()
    said = called(monkeypatch, capsys, "report", str(folder))
    assert (said.code, said.err) == (0, "") and said.out.strip() == str(folder / "report.html")
    assert (folder / "report.html").read_bytes() == before
    bundle = tmp_path / "bundle"
    shutil.copytree(folder, bundle / "public")
    assert called(monkeypatch, capsys, "report", str(bundle)).code == 0
    elsewhere = tmp_path / "my report.html"
    assert called(monkeypatch, capsys, "report", str(bundle), "--out", str(elsewhere)).code == 0
    assert elsewhere.read_bytes() == before


def test_a_changed_file_changes_no_report_in_the_bundle(
    written, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written()
    before = (folder / "report.html").read_bytes()
    table = next((folder / "statistics").glob("one_way-age*.csv"))
    lines = table.read_text().splitlines()
    table.write_text("\n".join([lines[0], *lines[2:], lines[1]]) + "\n")
    said = called(monkeypatch, capsys, "report", str(folder))
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
def test_a_damaged_bundle_is_refused_in_one_paragraph(
    written, change, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written()
    change(folder)
    ended = called(monkeypatch, capsys, "report", str(folder))
    assert (ended.code, ended.out) == (2, "") and said in ended.err and ended.err.count("\n") == 1


def test_a_place_that_can_not_be_written_is_a_mistake(
    written, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ended = called(monkeypatch, capsys, "report", str(written()), "--out", str(tmp_path / "no" / "such.html"))
    assert ended.code == 2 and "can't be written: No such file or directory." in ended.err
