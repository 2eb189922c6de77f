"""Releases with audiences: the folders of all bundles appear at once, each made of its own answers alone."""

import base64
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from dpsynth.bundle.recipient import BundleRefused, open_bundle
from dpsynth.bundle.recipient.verification import verified
from dpsynth.config import Spec, from_mapping
from dpsynth.errors import DpsynthError, Interrupted
from dpsynth.ledger import views
from dpsynth.ledger.ledger import Ledger
from dpsynth.pipeline import outputs
from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.result import Release
from dpsynth.pipeline.spine import run
from dpsynth.wings.owner.assess.evaluation import evaluate, write_evaluation

T = TypeVar("T")

ROWS = 400
AUDIENCES = {"public": {"epsilon": 0.5}, "partners": {"epsilon": 2}}


def spec_in(folder: Path, audiences: Mapping[str, object] = AUDIENCES) -> Spec:
    rng = np.random.default_rng(1)
    table, numbers = folder / "people.csv", rng.integers(0, 3, (ROWS, 2))
    lines = [f"{a},{(a + b) % 3},{min(b, 1)}" for a, b in numbers.tolist()]
    table.write_text("\n".join(["home,work,car", *lines]) + "\n")
    places = {"type": "category", "values": ["0", "1", "2"], "missing": False}
    return from_mapping(
        {
            "release": "people",
            "source": {"path": str(table)},
            "privacy": {"delta": 1e-6, "on_empty": "go"},
            "audiences": dict(audiences),
            "ledger": {"url": f"sqlite:///{folder}/ledger.db", "dataset": "people"},
            "columns": {"home": places, "work": places, "car": {**places, "values": ["0", "1"]}},
            "publish": {"statistics": [{"crosstab": ["home", "work"]}]},
        }
    )


def stopping(at: str) -> Callable[[str, Callable[[], T]], T]:
    """Runs steps, and dies of a signal at the beginning of one."""

    def step(name: str, action: Callable[[], T]) -> T:
        if name == at:
            raise KeyboardInterrupt
        return action()

    return step


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> tuple[Spec, Release]:
    folder = tmp_path_factory.mktemp("audiences")
    spec = spec_in(folder)
    return spec, run(spec, Request(folder / "out"))


def manifest_of(folder: Path) -> dict[str, object]:
    return json.loads((folder / "manifest.json").read_text())


def test_each_audience_has_a_folder_with_its_own_guarantee(released: tuple[Spec, Release]) -> None:
    _, release = released
    public, partners = (manifest_of(release.folder / name) for name in ("public", "partners"))
    assert public["guarantee"]["epsilon"] == pytest.approx(0.5)
    assert partners["guarantee"]["epsilon"] == pytest.approx(2)
    first = len(public["mechanisms"])
    assert partners["mechanisms"][:first] == public["mechanisms"] and len(partners["mechanisms"]) > first
    assert list(release.audiences) == ["public", "partners"]
    assert release.guarantee == release.audiences["partners"].guarantee
    assert release.audiences["public"].handed_over == release.folder / "public"


def test_the_public_bundle_says_of_the_other_its_name_and_its_epsilon_alone(
    released: tuple[Spec, Release],
) -> None:
    folder = released[1].folder / "public"
    found = manifest_of(folder)
    assert found["audience"] == {
        "name": "public",
        "audiences": [{"name": "public", "epsilon": 0.5}, {"name": "partners", "epsilon": 2.0}],
        "answers_of": {},
    }
    named = {path.name for path in folder.rglob("*") if path.is_file() and b"partners" in path.read_bytes()}
    assert named == {"README.md", "croissant.json", "dcat.jsonld", "manifest.json", "report.html"}


def test_the_ledger_is_charged_the_largest_epsilon_once(released: tuple[Spec, Release]) -> None:
    spec, release = released
    account = Ledger(spec.ledger.url).balance("people")
    (entry,) = account.releases
    assert entry.cost.amount.epsilon <= 2 and entry.reserved.amount.epsilon == 2
    assert entry.audiences == (("public", Fraction(1, 2)), ("partners", Fraction(2)))
    (sentence,) = views.audiences_in_words(account)
    assert f"{release.release_id} has bundles for public (ε = 0.5), partners (ε = 2)" in sentence


@pytest.mark.parametrize("name", [pytest.param("public", marks=pytest.mark.slow), "partners"])
def test_a_recipient_verifies_and_asks_each_bundle(released: tuple[Spec, Release], name: str) -> None:
    folder = released[1].folder / name
    checked = verified(folder)
    assert checked.good, checked.findings
    assert any("number by number" in sentence for sentence in checked.proven)
    answer = open_bundle(folder).query("count where home == '0' and work == '0'")
    assert answer.frame["basis"].tolist() == ["measured"]


def test_the_answers_of_both_tiers_make_the_errors_of_the_larger_audience_smaller(
    released: tuple[Spec, Release],
) -> None:
    folder = released[1].folder
    errors = {}
    for name in ("public", "partners"):
        direct = open_bundle(folder / name).measured
        errors[name] = direct.cell_variance(("home", "work"))
    partners = open_bundle(folder / "partners")
    alone = [m.variance for m in partners.answers.answers if set(m.clique) >= {"home", "work"}]
    assert errors["partners"] < min(alone) and errors["partners"] < errors["public"]


def test_an_answer_of_the_first_tier_that_no_mechanism_pays_for_is_found(
    released: tuple[Spec, Release], tmp_path: Path
) -> None:
    copy = tmp_path / "partners"
    shutil.copytree(released[1].folder / "partners", copy)
    bundle = open_bundle(copy)
    (name,) = {file for file, _ in bundle.earlier_answers}
    of_the_first = len(manifest_of(released[1].folder / "public")["mechanisms"])
    unpaid = bundle.facts.model_copy(update={"mechanisms": bundle.facts.mechanisms[of_the_first:]})
    from dpsynth.bundle.recipient.verification import guarantee_findings

    _, faults = guarantee_findings(replace(bundle, facts=unpaid))
    assert any(file == name for file, _ in faults)


def test_the_folder_of_all_bundles_is_refused_by_name_if_none_is_public(tmp_path: Path) -> None:
    for name in ("staff", "partners"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text("{}")
    with pytest.raises(
        BundleRefused, match="several audiences: give the folder of one of them, partners or staff"
    ):
        open_bundle(tmp_path)


@pytest.mark.slow
def test_each_bundle_is_evaluated_into_a_private_folder_of_its_own(released: tuple[Spec, Release]) -> None:
    spec, release = released
    page = write_evaluation(evaluate(release.folder / "partners", Path(spec.source.path)))
    assert page == release.folder / "private" / "partners" / "utility.html"
    assert not list((release.folder / "partners").glob("utility*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "at",
    [
        "choose and measure marginals for public",
        "write the bundle for public",
        "go on to the next audience",
        "measure single columns for partners",
        "examine the table for partners",
        "settle the ledger",
        "publish the bundle",
    ],
)
def test_a_release_that_dies_at_any_step_shows_both_bundles_or_none(tmp_path: Path, at: str) -> None:
    spec, place = spec_in(tmp_path), tmp_path / "out"
    with pytest.raises(Interrupted):
        run(spec, Request(place), run_step=stopping(at))
    assert [path for path in (place / "people").iterdir() if not path.name.startswith(".")] == []
    (partial,) = (place / "people").glob(".*.partial")
    charged = charges(partial)
    done = run(spec, Request(place, partial.name[1:].removesuffix(".partial")))
    assert charges(done.folder)[: len(charged)] == charged
    assert all(verified(done.folder / name).good for name in AUDIENCES)
    assert Ledger(spec.ledger.url).balance("people").releases[0].state == "closed"


def charges(folder: Path) -> list[str]:
    lines = (folder / "private" / "journal.jsonl").read_text().splitlines()
    return [line for line in lines if '"kind":"charge"' in line]


def with_other_answers(tmp_path: Path) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The public bundle as first written, and as written again beside other answers of the second tier."""
    spec, place = spec_in(tmp_path), tmp_path / "out"
    with pytest.raises(Interrupted):
        run(spec, Request(place), run_step=stopping("compose the guarantee for partners"))
    (partial,) = (place / "people").glob(".*.partial")
    before = {p.name: p.read_bytes() for p in (partial / "public").rglob("*") if p.is_file()}
    last = len(manifest_of(partial / "public")["mechanisms"])
    journal, lines = partial / "private" / "journal.jsonl", []
    for line in journal.read_text().splitlines():
        record = json.loads(line)
        if record["kind"] == "answer" and record["seq"] == len(charges(partial)) - 1:
            numbers = np.frombuffer(base64.b64decode(record["answer"]["int64"]), "<i8") + 7
            record["answer"]["int64"] = base64.b64encode(numbers.tobytes()).decode()
            assert record["seq"] >= last
        lines.append(json.dumps(record, separators=(",", ":")))
    journal.write_text("\n".join(lines) + "\n")
    done = run(spec, Request(place, partial.name[1:].removesuffix(".partial")))
    return before, {p.name: p.read_bytes() for p in (done.folder / "public").rglob("*") if p.is_file()}


def test_the_first_bundle_is_the_same_whatever_the_second_tier_answers(tmp_path: Path) -> None:
    before, after = with_other_answers(tmp_path)
    assert before == after


@pytest.mark.slow
def test_a_first_bundle_with_charges_of_the_second_tier_would_be_noticed(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(outputs, "charges", lambda plan, journal: journal.entries)
    before, after = with_other_answers(tmp_path)
    assert before != after


@pytest.mark.slow
def test_a_first_tier_composed_of_all_charges_is_refused_when_it_is_resumed(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("dpsynth.pipeline.release_run.charges", lambda plan, journal: journal.entries)
    with pytest.raises(DpsynthError, match="adds up to epsilon"):
        with_other_answers(tmp_path)
