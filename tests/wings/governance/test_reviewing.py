"""The review file: what stands on it, that all of it is public, and how it looks in Chromium."""

import math
import re
from pathlib import Path
from statistics import NormalDist

import pytest

from dpsynth.accounting.measures import GDP
from dpsynth.wings.governance.reviewing import MARGIN, believed, beyond
from dpsynth.wings.governance.signed import KEY
from tests.chromium import faults, needs_chromium
from tests.cli.here import Command
from tests.release.canaries import CANARIES, forms
from tests.release.canaries import table as canary_table
from tests.wings.governance.test_released import Board

HEADINGS = [
    "Purpose", "People, and the unit of privacy", "What ε = 1 means", "Alternatives",
    "Disclosed outside of differential privacy", "Singling out, linkage and inference", "Criteria",
    "Exam and verdict", "Earlier releases, and what remains", "Sign-offs",
]  # fmt: skip
HOSTILE = "<script>alert(1)</script>"
CRITERIA = {"accept": {"criteria": [{"error_of": "pairs", "at_most": 0.9}], "on_fail": "publish"}}


@pytest.fixture
def board(dpsynth: Command, monkeypatch: pytest.MonkeyPatch) -> Board:
    """A board in an empty folder, with criteria."""
    monkeypatch.delenv(KEY, raising=False)
    made = Board(dpsynth)
    made.configure(**CRITERIA)
    return made


def section(page: str, name: str) -> str:
    """A part of the page as text."""
    found = re.search(rf'<section id="{name}".*?</section>', page, flags=re.DOTALL)
    assert found is not None
    return " ".join(re.sub(r"<[^>]+>", " ", found[0]).split())


def reviewed(board: Board, *words: str) -> str:
    """The page of a review."""
    done = board.run("review", *words, "--config", "config.yaml")
    assert done.code == 0 and done.out == "review.html\n", done
    return Path("review.html").read_text(encoding="utf-8")


def test_a_review_of_a_request_has_all_that_is_to_be_weighed(board: Board) -> None:
    board.configure(
        **CRITERIA, embargo="2093-12-24T09:00+01:00", verification={"epsilon": 0.5, "question": 0.1}
    )
    request = board.asked("--occasions", "3")
    board.approved(request, "boris")
    # No table is opened: there is none.
    Path("people.csv").unlink()
    page = reviewed(board, request)
    assert re.findall(r"<h2[^>]*>(.*?)</h2>", page) == HEADINGS
    assert "open data" in section(page, "purpose") and "asked for 3 releases" in section(page, "purpose")
    assert "kept encrypted until 2093-12-24T08:00:00+00:00." in section(page, "purpose")
    assert "each for ε = 0.1, all for ε = 0.5." in section(page, "purpose")
    assert page.count("On paper: name") == 2
    assert "one row" in section(page, "people")
    alternatives = section(page, "alternatives")
    for way in ("as asked", "half of ε", "a quarter of ε", "the first half of the columns"):
        assert way in alternatives
    assert "sex text F, M, (missing)" in section(page, "outside")
    assert "at most 90 %" in section(page, "criteria")
    assert "first release of its account" in section(page, "earlier")
    signed = section(page, "signed")
    assert f"requested {board.ledger.rows()[1].created} {board.public['anna']}" in signed
    assert f"approved {board.ledger.rows()[2].created} {board.public['boris']}" in signed
    assert "A release needs 2 of 2 approvals." in signed


def test_attacks_are_on_a_rehearsal_of_a_request_and_on_a_table_drawn_of_a_bundle(board: Board) -> None:
    board.configure(**CRITERIA, columns={"city": {"type": "category", "values": ["Aa", "Bb", "Cc"]}})
    request = board.granted()
    assert "None was run" in section(reviewed(board, request), "risks")
    before, rows = reviewed(board, request, "--attacks"), board.kinds
    assert board.run("run", "config.yaml", "--plain").code == 0
    (public,) = Path("outputs/people").glob("*/public")
    after = reviewed(board, str(public.parent), "--attacks")
    assert rows == board.kinds[:4]
    row = re.compile(
        r'rowheader">([^<]+)</th><td[^>]*>[^<]+</td><td[^>]*>([\d.]+) to [\d.]+ %</td><td[^>]*>([^<]+)<'
    )
    for page, made in (
        (before, "a rehearsal, whose rows are made up"),
        (after, "a table that was drawn of the public folder"),
    ):
        assert f"Games on {made}" in section(page, "risks")
        found = row.findall(page)
        assert {f[0] for f in found} == {
            *("Differencing", "Homogeneity", "Background", "Averaging", "Reconstruction")
        }
        # An exact table is lost, and against the release nobody is right more often than is promised.
        assert float(next(low for name, low, _ in found if name == "Differencing")) > 99
        bounded = [(float(low), most) for _, low, most in found if most != "no bound"]
        assert bounded and all(low <= float(most.removesuffix(" %")) for low, most in bounded)


def test_values_that_are_found_are_not_among_those_that_are_disclosed(board: Board) -> None:
    board.configure(columns={"sex": {"type": "category", "open": True}})
    assert "sex text found with a part of ε" in section(reviewed(board, board.asked()), "outside")


def test_less_of_epsilon_has_larger_errors(board: Board) -> None:
    page = reviewed(board, board.asked())
    rows = re.findall(
        r'rowheader">([^<]+)</th><td[^>]*>([\d.]+)</td><td[^>]*>\d+</td><td[^>]*>([\d.]+)<', page
    )
    errors = {name: float(error) for name, _, error in rows}
    assert errors["as asked"] < errors["half of ε"] < errors["a quarter of ε"]


def test_a_review_of_a_bundle_says_what_came_of_it(board: Board) -> None:
    board.granted()
    assert board.run("run", "config.yaml", "--plain").code == 0
    release = board.ledger.balances()[0].releases[0].release_id
    folder = f"outputs/people/{release}"
    page = reviewed(board, folder)
    assert "open data" in section(page, "purpose")
    assert re.search(
        "(Met|Not met|Can't be told|Cannot be told): ", section(page, "criteria").replace("&#39;", "'")
    )
    assert "Pairs of columns" in section(page, "exam")
    assert release in section(page, "earlier") and "closed" in section(page, "earlier")
    assert f"released as {release}" in section(page, "signed")
    words = ("withdraw", release, "--reason", HOSTILE, "--config", "config.yaml", "--key", "boris.key")
    assert board.run(*words).code == 0
    page = reviewed(board, folder)
    assert "WITHDRAWN on" in page and HOSTILE not in page
    # From the public folder alone.
    done = board.run("review", folder, "--out", "alone.html")
    alone = Path("alone.html").read_text(encoding="utf-8")
    assert done.code == 0 and "was not at hand" in section(alone, "earlier")


def test_a_review_is_of_the_request_and_of_no_other_configuration(board: Board) -> None:
    request = board.asked()
    board.configure(privacy={"epsilon": 2})
    done = board.run("review", request, "--config", "config.yaml")
    assert done.code == 2 and "what differs is the configuration, the plan and the price" in done.err
    assert not Path("review.html").exists()
    for words, said in (
        ((request,), "name its configuration"),
        (("nothing", "--config", "config.yaml"), "has no request nothing"),
        ((request, "--config", "config.yaml", "--out", "no/folder.html"), "is not for config.yaml"),
    ):
        done = board.run("review", *words)
        assert done.code == 2 and said in done.err


def test_names_and_reasons_are_text_and_the_page_fetches_nothing(board: Board) -> None:
    done = board.run("request", "config.yaml", "--purpose", HOSTILE, "--key", "anna.key")
    page = reviewed(board, done.out.splitlines()[-1])
    assert "<script" not in page and "&lt;script&gt;" in page
    assert "default-src 'none'" in page and not re.search(r"(?:src|href)=\"(?!#)", page)


def test_nothing_of_the_table_is_in_a_review_before_or_after(board: Board) -> None:
    board.table(canary_table())
    request = board.granted()
    pages = [reviewed(board, request, "--attacks")]
    assert board.run("run", "config.yaml", "--plain").code == 0
    (release,) = Path("outputs/people").glob("*/public")
    pages.append(reviewed(board, str(release.parent), "--attacks"))
    content = "".join(pages).encode()
    for canary in CANARIES.values():
        assert not any(form in content for form in forms(canary)), canary
    assert all("open data" in section(page, "purpose") for page in pages)


@needs_chromium
def test_the_page_is_whole_on_a_desk_and_on_a_phone(board: Board, tmp_path: Path) -> None:
    before = reviewed(board, board.granted())
    assert board.run("run", "config.yaml", "--plain").code == 0
    (release,) = Path("outputs/people").glob("*/public")
    after, browser = reviewed(board, str(release.parent)), tmp_path / "browser"
    browser.mkdir()
    assert faults([before, after], browser) == []


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
def test_beliefs_grow_further_with_no_larger_probability_than_is_said(epsilon: float, delta: float) -> None:
    """Of Gaussian noise, whose losses are known: by the tail of its privacy loss."""
    from fractions import Fraction

    mu = float(GDP.mu(GDP.budget(Fraction(epsilon), Fraction(delta))) or 0)
    loss = epsilon + math.log1p(MARGIN)
    tail = 1 - NormalDist(mu**2 / 2, mu).cdf(loss)
    assert 0 < tail <= beyond(delta)
    # It would not be delta itself.
    assert tail > delta
    assert believed(0.5, loss) == pytest.approx(math.exp(loss) / (1 + math.exp(loss)))
    assert 0.01 < believed(0.01, loss) < believed(0.5, loss)
