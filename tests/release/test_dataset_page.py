"""A release ends with the page of all releases of its name, and never fails because of it."""

from pathlib import Path

import pytest

from dpsynth.wings.proof.dataset_page import PAGE
from tests.release import canaries
from tests.release.canaries import found_in
from tests.release.place import BY_PERSON, Place, furnished, release


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, Path]:
    """Two releases of a table with canaries, one after the other, and the page after them."""
    place = furnished(tmp_path_factory.mktemp("listed"))
    place.table(canaries.table())
    place.configure(privacy=BY_PERSON)
    for _ in range(2):
        bundle = release(place).folder
    return place, bundle.parent / PAGE


def test_the_page_lists_both_releases_and_holds_no_cell(released: tuple[Place, Path]) -> None:
    _, page = released
    text = page.read_text(encoding="utf-8")
    assert "2 releases under this name" in text and text.count("public/report.html") == 2
    assert found_in([page]) == {}
    assert not list(page.parent.glob(".*"))


def test_a_page_that_can_not_be_written_fails_no_release(
    released: tuple[Place, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place, page = released
    before = page.read_bytes()

    def fail(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpsynth.wings.proof.dataset_page.write_dataset_page", fail)
    bundle = release(place).folder
    assert (bundle / "public" / "manifest.json").is_file() and page.read_bytes() == before
    assert place.balance is not None
    monkeypatch.undo()
    release(place)
    assert "4 releases under this name" in page.read_text(encoding="utf-8")
