"""Aggregation: from a folder of reports to a bundle, by the steps of any release, at no charge."""

import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth.accounting.composition import NOTHING
from dpsynth.bundle.recipient import open_bundle
from dpsynth.bundle.recipient.verification import verified
from dpsynth.errors import ConfigError
from dpsynth.ledger.ledger import Ledger
from dpsynth.model.measurement_file import read_measurements
from dpsynth.pipeline.inputs import inputs_of
from dpsynth.pipeline.result import Release
from dpsynth.wings.local.aggregating import aggregate
from dpsynth.wings.local.collecting import contract_for as contract_of_spec
from dpsynth.wings.local.forecast import expected_variances, local_forecast
from dpsynth.wings.local.reporting import Memory, reports_of
from dpsynth.wings.local.reports import write_reports
from dpsynth.wings.proof.exports import Cube, codebook
from tests.bundle.recipient.test_archives import read, structure_of
from tests.cli.here import Command
from tests.wings.local.collections import Codes, contract_for, respondents, spec_of, texts_of, truth_of

PEOPLE = 1_500
MORE: Mapping[str, object] = {
    "local": {"respondents": PEOPLE, "shuffled": {"delta": 1e-6}},
    "structure": {"method": "fixed", "cliques": [["sex", "plan"], ["plan", "age"]]},
    "publish": {
        "statistics": [
            {"crosstab": ["sex", "plan"]},
            {"mean": "age", "by": "plan"},
            {"crosstab": ["sex", "age"]},
        ]
    },
    "constraints": ["sex == 'F' implies plan != 'c'"],
}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> tuple[Release, Codes, Path]:
    """A release of reports, its respondents and its folder."""
    folder = tmp_path_factory.mktemp("collection")
    ledger = {"ledger": {"url": f"sqlite:///{folder}/ledger.db"}}
    contract, codes = contract_for(3, **MORE), respondents(PEOPLE)
    with Memory(folder / "memory.jsonl") as memory:
        people = [str(i) for i in range(PEOPLE)]
        reports = reports_of(contract, people, texts_of(contract, codes), memory)
    write_reports(folder / "reports", reports[:700], contract.digest)
    write_reports(folder / "reports", reports[700:], contract.digest, ".parquet")
    release = aggregate(spec_of(3, **MORE, **ledger), folder / "reports", folder / "outputs")
    return release, codes, folder


def test_the_manifest_says_local(released: tuple[Release, Codes, Path]) -> None:
    release, _, _ = released
    manifest = json.loads((release.folder / "public" / "manifest.json").read_text())
    assert manifest["trust"] == "local, ε per respondent"
    assert manifest["guarantee"]["epsilon"] == manifest["local"]["epsilon_per_respondent"] == 3
    assert manifest["guarantee"]["delta"] == 0
    assert manifest["local"]["reports"] == PEOPLE
    assert manifest["local"]["contract"] == contract_for(3, **MORE).digest
    questions = manifest["local"]["questions"]
    assert sum(question["reports"] for question in questions) == PEOPLE
    assert all(Fraction(q["odds"]) <= Fraction(np.exp(3)) for q in questions)
    shuffled = manifest["local"]["shuffled"]
    assert 0 < shuffled["epsilon"] < 3
    assert "trusts" in shuffled["assumption"]
    assert any("respondents randomised" in sentence for sentence in manifest["guarantee"]["in_words"])
    assert "private table" not in " ".join(manifest["guarantee"]["in_words"][1:] + manifest["not_protected"])


def test_a_collection_goes_to_an_archive_and_to_an_office(released: tuple[Release, Codes, Path]) -> None:
    shown = open_bundle(released[0].folder).shown
    notes = read(codebook(shown, None)).iter("{ddi:codebook:2_5}notes")
    told = {note.get("type"): note.text for note in notes if note.get("type")}
    assert told["urn:dpsynth:terms:model"] == shown.manifest.trust == "local, ε per respondent"
    assert len(structure_of(Cube(shown, "S").structure()).get_data_structure_definitions()) == 1
    assert Cube(shown, "S").figures().count("\n") > 10


def test_the_ledger_has_an_entry_and_no_charge(released: tuple[Release, Codes, Path]) -> None:
    release, _, folder = released
    ledger = Ledger(f"sqlite:///{folder}/ledger.db")
    entry = ledger.release(release.release_id)
    assert entry is not None
    assert (entry.state, entry.cost) == ("closed", NOTHING)
    assert entry.events[0]["reports"] == PEOPLE
    assert ledger.verify().problems == ()


def test_the_ledger_of_a_collection_can_be_shown(
    released: tuple[Release, Codes, Path], dpsynth: Command
) -> None:
    ended = dpsynth("ledger", "show", "--ledger", f"sqlite:///{released[2]}/ledger.db")
    assert ended.code == 0 and "survey" in ended.out


def test_statistics_are_near_the_respondents_own(released: tuple[Release, Codes, Path]) -> None:
    release, codes, _ = released
    contract = contract_for(3, **MORE)
    for clique in [("sex",), ("plan",), ("age",), ("sex", "plan")]:
        table = release.statistics[" and ".join(clique)]
        assert set(table["basis"]) == {"measured"}
        truth = truth_of(contract, codes, clique).ravel()
        # 8 standard errors: by chance once in 10^14.
        assert (np.abs(table["estimate"] - truth) < 8 * table["standard_error"] + 1).all()
        assert table["estimate"].sum() == pytest.approx(PEOPLE)
    means = release.statistics["age by plan"]
    own = pd.DataFrame(codes).groupby("plan")["age"].mean().to_numpy()
    told = means["estimate"].notna().to_numpy()
    assert told.any()
    assert (np.abs(means["estimate"] - own)[told] < 8 * means["standard_error"][told] + 0.2).all()
    assert set(release.statistics["sex and age"]["basis"]) == {"model"}


def test_the_synthetic_table_has_the_respondents_and_the_rules(released: tuple[Release, Codes, Path]) -> None:
    release, _, _ = released
    table = release.synthetic
    assert len(table) == PEOPLE
    assert not ((table["sex"] == "F") & (table["plan"] == "c")).any()


def test_the_measurements_can_be_read_back(released: tuple[Release, Codes, Path]) -> None:
    release, _, _ = released
    contract = contract_for(3, **MORE)
    read = read_measurements(release.folder / "public" / "measurements.parquet", contract.compiled.columns)
    assert read is not None


def test_the_same_reports_make_the_same_release(
    released: tuple[Release, Codes, Path], tmp_path: Path
) -> None:
    release, _, folder = released
    spec = spec_of(3, **MORE, ledger={"url": f"sqlite:///{tmp_path}/ledger.db"})
    again = aggregate(spec, folder / "reports", tmp_path / "outputs")
    one, two = (r.folder / "public" / "synthetic.csv" for r in (release, again))
    assert one.read_bytes() == two.read_bytes()


def test_an_account_of_a_curators_table_takes_no_reports(
    released: tuple[Release, Codes, Path], tmp_path: Path
) -> None:
    _, _, folder = released
    import dpsynth

    url = f"sqlite:///{tmp_path}/ledger.db"
    columns = {"sex": {"type": "category", "values": ["F", "M"]}}
    central = {
        "privacy": {"epsilon": 1, "on_empty": "go"},
        "ledger": {"url": url, "dataset": "survey"},
        "columns": columns,
    }
    frame = pd.DataFrame({"sex": ["F", "M"] * 50})
    dpsynth.release(frame, dpsynth.Spec.from_dict(central), outputs=tmp_path / "outputs")
    with pytest.raises(ConfigError, match=r"ledger\.dataset"):
        aggregate(spec_of(3, **MORE, ledger={"url": url}), folder / "reports", tmp_path / "outputs")


def test_a_local_config_has_no_table_to_release() -> None:
    with pytest.raises(ConfigError, match="dpsynth collect"):
        inputs_of(spec_of())


def test_a_central_config_has_no_reports() -> None:
    from dpsynth.config import from_mapping

    central = from_mapping(
        {"source": {"path": "t.csv"}, "privacy": {"epsilon": 1}, "columns": {"sex": {"type": "boolean"}}}
    )
    with pytest.raises(ConfigError, match="trust must be local"):
        contract_of_spec(central)


def test_the_plan_forecasts_the_errors_that_come(released: tuple[Release, Codes, Path]) -> None:
    release, _, _ = released
    expected = expected_variances(contract_for(3, **MORE), PEOPLE)
    for clique in [("sex",), ("plan",), ("age",), ("sex", "plan")]:
        stated = np.mean(release.statistics[" and ".join(clique)]["standard_error"] ** 2)
        assert 0.5 < stated / expected[clique] < 1.5


def test_the_plan_in_words_and_as_json(tmp_path: Path, dpsynth: Command) -> None:
    config = tmp_path / "survey.yaml"
    config.write_text(
        "trust: local\nprivacy: {epsilon: 1}\nlocal: {shuffled: {delta: 1.0e-6}}\ncolumns:\n"
        "  sex: {type: category, values: [F, M], missing: false}\n"
        "  age: {type: integer, min: 0, max: 9}\n"
    )
    for arguments in (["--detail"], ["--rows", "500", "--json"]):
        ended = dpsynth("plan", config, *arguments)
        assert ended.code == 0
        said = ended.out
        if "--json" in arguments:
            facts = json.loads(said)
            assert facts == json.loads(json.dumps(local_forecast(contract_for_file(config), 500)))
            assert facts["respondents"] == 500
        else:
            assert "one respondent's whole record, with ε = 1." in said
            assert "Shuffled" in said
            assert "randomised response" in said


def contract_for_file(path: Path) -> object:
    from dpsynth.config import load

    return contract_of_spec(load(path))


def test_a_recipient_rebuilds_the_statistics_and_asks_for_intervals(
    released: tuple[Release, Codes, Path],
) -> None:
    release, _, _ = released
    public = release.folder / "public"
    found = verified(public)
    assert found.good, found
    assert any("number by number" in sentence for sentence in found.proven)
    table = release.statistics["sex"]
    asked = open_bundle(public).query("count by sex").rows
    assert [row.estimate.value for row in asked] == pytest.approx(list(table["estimate"]))
    ends = [row.estimate.high - row.estimate.low for row in asked]
    assert ends == pytest.approx(list(2 * 1.96 * table["standard_error"]), rel=1e-3)
