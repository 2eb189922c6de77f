"""The page of all releases of a name: made of the bundles beside it, whole or not at all."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from dpsynth.accounting.events import Guarantee
from dpsynth.accounting.slices import Slice
from dpsynth.bundle.publication import BundleAudience
from dpsynth.wings.proof.dataset_page import (
    PAGE,
    Listed,
    Point,
    dataset_html,
    listed_releases,
    write_dataset_page,
)
from tests.chromium import faults, needs_chromium

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def releases(written, publication, tmp_path: Path) -> Path:
    """A folder with three releases of one name, one of them about a slice; one has only finished in part."""
    folder = tmp_path / "clinic"
    folder.mkdir()
    for number, (date, part) in enumerate(
        [("2026-03-01", None), ("2026-01-01", None), ("2026-03-01", Slice("seen", HOSTILE))]
    ):
        public = written(of=replace(publication, date=date, part=part, release_id=f"r-{number}"))
        (folder / f"r-{number}" / "private").mkdir(parents=True)
        (folder / f"r-{number}" / "private" / "journal.jsonl").write_text("secret")
        shutil.copytree(public, folder / f"r-{number}" / "public")
    (folder / ".r-9.partial" / "public").mkdir(parents=True)
    return folder


def test_all_finished_releases_are_listed_in_the_order_of_their_dates(releases: Path) -> None:
    found = listed_releases(releases)
    assert [one.release_id for one in found] == ["r-1", "r-0", "r-2"]
    assert found[0].epsilon == 1.5 and found[0].rows == Point(40.0, 1.96 * 2.5) and found[2].about == HOSTILE
    assert set(found[0].numbers) == {"mean of pay", 'seen, "ever" 🐌 = yes, per cent'}


def test_a_bundle_that_can_not_be_read_is_left_out(releases: Path) -> None:
    (releases / "r-0" / "public" / "manifest.json").write_text("{")
    next((releases / "r-1" / "public" / "statistics").iterdir()).unlink()
    assert [one.release_id for one in listed_releases(releases)] == ["r-2"]
    shutil.rmtree(releases / "r-2")
    write_dataset_page(releases)
    assert "There is none yet." in (releases / PAGE).read_text(encoding="utf-8")


def test_a_release_without_a_public_bundle_is_listed_by_its_audiences_and_no_noisy_number(
    releases: Path, written, publication
) -> None:
    epsilons = {"staff": 0.5, "partners": 1.5}
    for name in epsilons:
        bundle = written(of=replace(publication, release_id="r-4", audience=BundleAudience(name, epsilons)))
        shutil.copytree(bundle, releases / "r-4" / name)
    (listed,) = [one for one in listed_releases(releases) if one.release_id == "r-4"]
    assert listed.audiences == (("staff", 0.5), ("partners", 1.5))
    assert listed.rows is None and listed.numbers == {}
    write_dataset_page(releases)
    page = (releases / PAGE).read_text(encoding="utf-8")
    assert all(f'href="r-4/{name}/report.html"' in page for name in epsilons)
    assert 'href="r-4/public' not in page
    (releases / "r-4" / "partners" / "manifest.json").write_text("{")
    (releases / "r-4" / "staff" / "manifest.json").write_text('{"audience": null}')
    assert all(one.release_id != "r-4" for one in listed_releases(releases))


def test_the_page_is_of_public_facts_and_shows_names_as_text(releases: Path) -> None:
    write_dataset_page(releases)
    page = (releases / PAGE).read_text(encoding="utf-8")
    assert "secret" not in page and "private" not in page and "journal" not in page
    assert "<script" not in page and "&lt;script&gt;" in page and "default-src 'none'" in page
    links = re.findall(r'href="([^"]*)"', page)
    assert len(links) == 3 and all((releases / link).is_file() for link in links)


def test_the_same_bundles_make_the_same_page_and_a_lost_one_comes_back(releases: Path) -> None:
    write_dataset_page(releases)
    first = (releases / PAGE).read_bytes()
    (releases / PAGE).unlink()
    (releases / f".{PAGE}.new").write_text("half a page of a run that was killed")
    write_dataset_page(releases)
    assert (releases / PAGE).read_bytes() == first and not (releases / f".{PAGE}.new").exists()


def test_a_page_that_can_not_be_finished_leaves_the_old_one(releases: Path, monkeypatch) -> None:
    write_dataset_page(releases)
    first = (releases / PAGE).read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpsynth.wings.proof.dataset_page.os.fsync", fail)
    shutil.rmtree(releases / "r-0")
    with pytest.raises(OSError, match="No space"):
        write_dataset_page(releases)
    assert (releases / PAGE).read_bytes() == first


def one(value: float, reach: float | None = 2.0, about: str = "2026-01") -> Listed:
    promise = Guarantee(1.0, 1e-6, None, "one row", "add_remove", "gdp")
    numbers = {"mean of pay": Point(value, reach)}
    return Listed(
        "r",
        "2026-01-31",
        about,
        promise.epsilon,
        promise.delta,
        "one row",
        Point(40.0, None),
        3,
        numbers,
        False,
    )


def test_a_change_within_the_noise_is_called_so() -> None:
    page = dataset_html("clinic", [one(10.0), one(11.0), one(31.0), one(20.0)])
    found = re.findall(r"<td>(no change beyond the noise|up [\d.]+|down [\d.]+)</td>", page)
    assert found == ["no change beyond the noise", "up 20.0", "down 11.0"]
    assert page.count("<polyline") == 2 and page.count("<line ") == 4


@needs_chromium
def test_the_page_is_whole_labelled_and_legible_at_desktop_and_phone_width(
    releases: Path, tmp_path: Path
) -> None:
    write_dataset_page(releases)
    browser = tmp_path / "browser"
    browser.mkdir()
    assert faults([(releases / PAGE).read_text(encoding="utf-8")], browser) == []
    manifest = json.loads((releases / "r-0" / "public" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["release"] == "clinic"
