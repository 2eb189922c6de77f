"""The manifest for others: an entry of the deployments registry, and Croissant metadata."""

import hashlib
import json
import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from urllib.parse import quote, unquote

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from rdflib import DCAT, RDF, RDFS, XSD, Graph, Namespace, URIRef
from rdflib.compare import isomorphic

from dpsynth.accounting.events import Guarantee
from dpsynth.accounting.slices import Slice
from dpsynth.bundle.manifest import Manifest
from dpsynth.columns.disclosed import Chosen, Provenance
from dpsynth.wings.proof.catalogues import CATALOGUES, FROM_THE_CURATOR, registry_entry
from tests.bundle.conftest import NAMES
from tests.cli.here import Command

SECTIONS = {
    "product": {"name", "data_curators", "intended_use", "data_product_type", "data_product_region",
                "description", "publication_date", "data_product_sector"},
    "dp_flavor": {"name", "input_metric", "bound_on_input_distance", "output_measure",
                  "bound_on_output_distance", "data_domain", "unprotected_quantities"},
    "privacy_loss": {"privacy_unit", "privacy_unit_description", "privacy_parameters",
                     "privacy_parameters_description"},
    "model": {"model_name", "model_name_description", "actors", "release_type", "release_type_description",
              "data_source_type", "data_source_type_description", "access_type", "access_type_description"},
    "accounting": {"post_processing", "composition"},
    "implementation": {"pre_processing_eda_hyperparameter_tuning", "mechanisms", "justification"},
    "resources": {"sources"},
}  # fmt: skip
"""The fields of the registry's third tier."""


def manifest_of(folder: Path) -> dict[str, object]:
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


def plain(values: object) -> object:
    """JSON values, as a reader gets them."""
    return json.loads(json.dumps(values))


def empty(values: object, path: str = "") -> set[str]:
    """Paths of fields that are null or empty."""
    if isinstance(values, dict):
        return {p for key, value in values.items() for p in empty(value, f"{path}.{key}".lstrip("."))}
    return {path} if values in (None, "", [], {}) else set()


def test_an_entry_answers_every_field_of_the_third_tier_but_the_curators_own(written) -> None:
    entry = registry_entry(Manifest.read(written()))
    assert entry["tier"] == 3 and entry["to_be_given_by_the_curator"] == list(FROM_THE_CURATOR)
    for section, fields in SECTIONS.items():
        assert fields <= entry["deployment"][section].keys(), section
    asked = {f"deployment.{s}.{f}" for s, fields in SECTIONS.items() for f in fields}
    assert empty(entry) & asked == set(FROM_THE_CURATOR)


def test_an_entry_states_the_guarantee_and_the_mechanisms_of_the_manifest(written) -> None:
    folder = written()
    manifest = manifest_of(folder)
    deployment = registry_entry(Manifest.read(folder))["deployment"]
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.5, "delta": 1e-6, "rho": 0.05}
    assert deployment["dp_flavor"]["name"] == "Zero-concentrated DP"
    assert "one unit more or less" in deployment["dp_flavor"]["input_metric"]
    assert sum(group["answers"] for group in deployment["implementation"]["mechanisms"]) == len(
        manifest["mechanisms"]
    )
    spent = sum(event["rho"] for event in manifest["mechanisms"])
    assert sum(group["rho"] for group in deployment["implementation"]["mechanisms"]) == pytest.approx(spent)
    assert set(manifest["not_protected"]) <= set(deployment["dp_flavor"]["unprotected_quantities"])


def test_persons_and_pure_epsilon_are_named_as_such(written) -> None:
    pure = Guarantee(
        0.5, 0.0, None, "one person: all rows with the same id, at most 5", "replace_one", "sequential"
    )
    deployment = registry_entry(Manifest.read(written(guarantee=pure, nameless="left_out")))["deployment"]
    assert deployment["dp_flavor"]["name"] == "Pure DP" and deployment["dp_flavor"]["also_stated_as"] is None
    assert deployment["privacy_loss"]["privacy_unit"] == "one person: all rows with the same id"
    assert deployment["privacy_loss"]["contribution_bound"].endswith("at most 5")


@pytest.mark.parametrize("formats", [("csv", "parquet"), ("csv",), ("parquet",)])
def test_croissant_lists_every_file_with_its_checksum_and_every_column_where_it_stands(
    written, formats
) -> None:
    folder = written(formats=formats)
    found = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
    assert found["conformsTo"] == "http://mlcommons.org/croissant/1.1" and found["@type"] == "sc:Dataset"
    listed = {file["@id"]: file for file in found["distribution"]}
    others = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert listed.keys() == others - {"manifest.json", *CATALOGUES, "SHA256SUMS"}
    for name, file in listed.items():
        content = (folder / name).read_bytes()
        assert file["sha256"] == hashlib.sha256(content).hexdigest()
        assert file["contentSize"] == f"{len(content)} B" and file["contentUrl"] == name
    (records,) = found["recordSet"]
    sources = {field["source"]["fileObject"]["@id"] for field in records["field"]}
    assert len(sources) == 1 and sources <= listed.keys()
    table = folder / sources.pop()
    read = pq.read_table(table) if table.suffix == ".parquet" else pyarrow.csv.read_csv(table)
    assert [field["source"]["extract"]["column"] for field in records["field"]] == read.column_names
    assert [field["name"] for field in records["field"]] == [
        c["name"] for c in manifest_of(folder)["columns"]
    ]
    assert [field["dataType"] for field in records["field"]] == [
        "sc:Integer",
        "sc:Text",
        "sc:Boolean",
        "sc:Float",
    ]
    assert all(field["@id"] == quote(f"rows/{field['name']}") for field in records["field"])


DP, DPV = Namespace("urn:dpsynth:terms:"), Namespace("https://w3id.org/dpv#")
CR, SCHEMA = Namespace("http://mlcommons.org/croissant/"), Namespace("https://schema.org/")
BASE = "https://example.org/bundle/"
croissant_text = CATALOGUES["croissant.json"]


def linked(text: str) -> Graph:
    """The triples of metadata, as a reader of linked data gets them."""
    return Graph().parse(data=text, format="json-ld", publicID=BASE)


def test_the_guarantee_stands_in_the_metadata_as_linked_data(written) -> None:
    manifest = Manifest.read(written())
    graph, promise = linked(croissant_text(manifest)), manifest.guarantee
    (dataset,) = graph.subjects(RDF.type, SCHEMA.Dataset)
    (stated,) = graph.objects(dataset, DPV.hasTechnicalMeasure)
    assert {DPV.DifferentialPrivacy, DP.Guarantee} == {*graph.objects(stated, RDF.type)}
    one = {name: graph.value(stated, DP[name], any=False) for name in ("epsilon", "delta", "rho", "unit")}
    assert {name: value.toPython() for name, value in one.items()} == {
        name: getattr(promise, name) for name in one
    }
    assert graph.value(stated, DP.mu) is None and promise.mu is None
    assert graph.value(stated, DP.neighbours) == DP[promise.neighbours]
    profile = {
        (graph.value(at, DP.epsilon).toPython(), graph.value(at, DP.delta).toPython())
        for at in graph.objects(stated, DP.profile)
    }
    assert profile == {(at.epsilon, at.delta) for at in promise.profile}
    bounds = {
        (graph.value(at, DP.falseAlarms).toPython(), graph.value(at, DP.recognisedAtMost).toPython())
        for at in graph.objects(stated, DP.tradeOff)
    }
    assert bounds == {(at.false_alarms, at.at_most) for at in promise.recognition}
    answers = [graph.value(one, DP.answers).toPython() for one in graph.objects(stated, DP.mechanism)]
    assert sum(answers) == len(manifest.mechanisms)
    assert {*map(str, graph.objects(stated, DP.notProtected))} == set(manifest.not_protected)


def test_what_is_public_without_noise_is_listed_by_kind_and_column(written) -> None:
    origin = Provenance(
        looked_at=(NAMES[0],), chosen=Chosen(on="t.csv", among={"a.yaml": 0.01}, name="a.yaml")
    )
    part = Slice("day", "2026-05", date(2026, 5, 1), date(2026, 6, 1))
    manifest = Manifest.read(written(found={NAMES[1]: ("values",)}, part=part, provenance=origin))
    outside = manifest.disclosed_outside
    of = {
        kind: [fact.get("column") for fact in outside if fact["kind"] == kind]
        for kind in ("column", "domain")
    }
    assert of == {"column": [*NAMES], "domain": [NAMES[0], *NAMES[2:]]}
    (look,) = (fact for fact in outside if fact["kind"] == "look")
    assert look["column"] == NAMES[0] and look["what"].startswith(
        f"What a look at the private table told of {NAMES[0]}"
    )
    (choice,) = (fact["what"] for fact in outside if fact["kind"] == "choice")
    assert "the candidate a.yaml" in choice and "on t.csv" in choice and "a.yaml: 1.00 %" in choice
    assert {fact["kind"] for fact in outside if "column" not in fact} == {
        "name",
        "choice",
        "period",
        "statistic",
    }
    asked = [table.title for table in manifest.statistics if table.kind != "one_way"]
    assert len(asked) == sum(fact["kind"] == "statistic" for fact in outside) > 0
    graph = linked(croissant_text(manifest))
    listed = [*graph.objects(None, DP.disclosedOutside)]
    kinds = sorted(str(graph.value(fact, DP.kind)) for fact in listed)
    assert kinds == sorted(fact["kind"] for fact in outside)
    # Each is about a field of the table of rows.
    about = {*graph.objects(None, DP.about)}
    assert about == {*graph.subjects(RDF.type, CR.Field)} and len(about) == len(NAMES)
    told = set(registry_entry(manifest)["deployment"]["dp_flavor"]["unprotected_quantities"])
    assert {fact["what"] for fact in outside} <= told


DCT = Namespace("http://purl.org/dc/terms/")


def test_a_portal_reads_the_files_and_the_guarantee_by_dcat(written) -> None:
    folder = written(terms="Cite us. <b>Really</b>")
    manifest = Manifest.read(folder)
    graph = linked((folder / "dcat.jsonld").read_text(encoding="utf-8"))
    (dataset,) = graph.subjects(RDF.type, DCAT.Dataset)
    assert str(dataset) == BASE
    # What the profile demands of each dataset and of each file, in the types that it demands.
    title, described, issued = (
        graph.value(dataset, DCT[name]) for name in ("title", "description", "issued")
    )
    assert (title.language, described.language) == ("en", "en") and str(title) == manifest.release
    assert all(sentence in str(described) for sentence in manifest.guarantee.in_words)
    assert issued.datatype == XSD.date and issued.toPython().isoformat() == manifest.date
    rights = graph.value(dataset, DCT.accessRights)
    assert graph.value(rights, RDF.type) == DCT.RightsStatement
    assert str(graph.value(rights, RDFS.label)) == "Cite us. <b>Really</b>"
    files = [*graph.objects(dataset, DCAT.distribution)]
    assert {graph.value(one, RDF.type) for one in files} == {DCAT.Distribution}
    listed = {}
    for one in files:
        address = graph.value(one, DCAT.accessURL)
        assert isinstance(address, URIRef) and address == graph.value(one, DCAT.downloadURL)
        assert str(graph.value(one, DCAT.mediaType)).startswith(
            "https://www.iana.org/assignments/media-types/"
        )
        checksum = graph.value(one, URIRef("http://spdx.org/rdf/terms#checksum"))
        value = graph.value(checksum, URIRef("http://spdx.org/rdf/terms#checksumValue"))
        assert value.datatype == XSD.hexBinary
        size = graph.value(one, DCAT.byteSize)
        assert size.datatype == XSD.nonNegativeInteger
        name = unquote(str(address).removeprefix(BASE))
        content = (folder / name).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (
            size.toPython(),
            value.toPython().hex(),
        )
        listed[name] = one
    assert {"synthetic.csv", "measurements.parquet", "report.html"} <= listed.keys()
    # The guarantee is that of the other catalogue, word for word.
    other = guarantee_in(linked(croissant_text(manifest)))
    assert len(other) > 20 and isomorphic(guarantee_in(graph), other)


def guarantee_in(graph: Graph) -> Graph:
    """The triples below a stated guarantee."""
    found, below = Graph(), [*graph.subjects(RDF.type, DP.Guarantee)]
    for node in below:
        for triple in graph.triples((node, None, None)):
            found.add(triple)
            below += [triple[2]] * (triple[1] != DP.about and (triple[2], None, None) in graph)
    return found


def test_each_term_of_the_vocabulary_is_documented_and_used(written) -> None:
    page = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`dp:(\w+)`", page))
    used: set[str] = set()
    gaussian = Guarantee(1.0, 1e-6, 0.02, "one row", "replace_one", "gdp", mu=0.2)
    for folder in (written(), written(guarantee=gaussian)):
        graph = linked(croissant_text(Manifest.read(folder)))
        used |= {
            str(node).removeprefix(str(DP))
            for triple in graph
            for node in triple
            if isinstance(node, URIRef) and str(node).startswith(str(DP))
        }
        # A name without an address would be dropped by a reader.
        assert "discrete Gaussian" in {*map(str, graph.objects(None, SCHEMA.name))}
    assert used == documented


def test_the_manifest_has_the_checksum_of_the_metadata(written) -> None:
    folder = written()
    content = (folder / "croissant.json").read_bytes()
    assert manifest_of(folder)["files"]["croissant.json"]["sha256"] == hashlib.sha256(content).hexdigest()


def test_the_command_prints_the_manifest_or_the_entry(written, publication, dpsynth: Command) -> None:
    folder = written(of=replace(publication, rehearsal=True))
    plain = dpsynth("manifest", str(folder))
    assert plain.code == 0 and json.loads(plain.out) == manifest_of(folder)
    entry = dpsynth("export", str(folder), "--as", "registry")
    assert entry.code == 0 and json.loads(entry.out) == json.loads(
        json.dumps(registry_entry(Manifest.read(folder)))
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "it has no manifest.json"), ("[1]", "damaged"), ("{", "damaged"), ("{}", "of the format None")],
)
def test_a_folder_without_a_manifest_is_a_mistake(tmp_path: Path, text, said: str, dpsynth: Command) -> None:
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)
    for code, *words in ((1 if text is None else 2, "manifest"), (1, "export", "--as", "registry")):
        ended = dpsynth(*words, str(tmp_path))
        if (words[0], text) != ("manifest", "{}"):
            assert (ended.code, ended.out) == (code, "") and said in ended.err
            assert ended.err.count("\n") == 1
