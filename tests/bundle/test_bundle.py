import csv
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from dpsynth.accounting.events import Guarantee
from dpsynth.bundle import commit, restore, write_public
from dpsynth.columns.layout import Layout
from dpsynth.errors import DpsynthError
from dpsynth.model import load
from tests.thinned import some


def read_csv(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file, strict=True))


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_manifest_lists_every_other_file_with_its_checksum(written):
    folder = written()
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert set(manifest["files"]) == files_of(folder) - {"manifest.json", "SHA256SUMS"}
    for name, facts in manifest["files"].items():
        content = (folder / name).read_bytes()
        assert facts == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def test_the_same_publication_gives_the_same_bytes(written):
    first, second = written(), written()
    assert files_of(first) == files_of(second)
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in files_of(first))


def test_csv_and_parquet_hold_the_same_table_under_the_original_names(written, publication, rows):
    folder = written()
    table = pq.read_table(folder / "synthetic.parquet")
    assert table.equals(rows(publication.synthetic.rows))
    header, *lines = read_csv(folder / "synthetic.csv")
    assert restore(pa.array(header)).to_pylist() == table.column_names
    for place, column in enumerate(publication.columns):
        cells = restore(pa.array([line[place] for line in lines], pa.string()))
        assert cells.to_pylist() == column.text(table.column(place).combine_chunks()).to_pylist()


def test_formulas_are_neutralised_and_numbers_are_not(written):
    header, *lines = read_csv(written() / "synthetic.csv")
    assert header[1].startswith("'=plan")
    assert {line[1] for line in lines} == {"'=1+1", "-5", "''x", 'a,"b"\nc', "'-"}
    pay = {line[3] for line in lines} - {""}
    assert any(text.startswith("-0.") for text in pay) and not any(text.startswith("'") for text in pay)


def test_missing_is_written_as_the_columns_marker(written):
    _, *lines = read_csv(written() / "synthetic.csv")
    assert "NA" in {line[0] for line in lines} and "" in {line[3] for line in lines}


def test_csv_quotes_only_where_needed_and_ends_lines_with_lf(written):
    content = (written() / "synthetic.csv").read_bytes()
    assert b"\r" not in content and content.endswith(b"\n")
    assert b'"a,""b""\nc"' in content and b'"yes"' not in content


def test_only_the_formats_asked_for_are_written(written):
    assert "synthetic.parquet" not in files_of(written(formats=("csv",)))
    assert "synthetic.csv" not in files_of(written(formats=("parquet",)))


@pytest.mark.parametrize("count", [0, 1])
def test_tables_without_rows_or_with_one_are_written(written, rows, count):
    folder = written(table=rows(count))
    assert len(read_csv(folder / "synthetic.csv")) == 1 + count
    assert pq.read_table(folder / "synthetic.parquet").num_rows == count


def test_a_table_of_one_column_keeps_its_empty_cells(written, publication):
    column = publication.columns[3]
    table = pa.table({column.name: pa.array([None, 0.5, None], pa.float64())})
    kept = {"singles": publication.singles[:1], "answers": (), "statistics": (), "cliques": ()}
    folder = written(layout=Layout((column,)), table=table, **kept)
    assert pyarrow.csv.read_csv(folder / "synthetic.csv").num_rows == 3


@pytest.mark.parametrize("kind", ["publication", "merged"])
def test_a_stranger_can_put_the_measurements_together_again(written, kind, request):
    publication = request.getfixturevalue(kind)
    table = pq.read_table(written(of=publication) / "measurements.parquet")
    metadata = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    schema = {column["name"]: column["labels"] for column in json.loads(metadata["dpsynth.columns"])}
    groups = json.loads(metadata["dpsynth.groups"])
    assert groups == {c: g.tolist() for c, g in publication.compression.groups.items()}
    summary = json.loads(metadata["dpsynth.measurements"])
    number = table["measurement"].to_numpy()
    assert number.max() + 1 == len(summary) == len(publication.singles) + len(publication.answers)
    for index, measurement in enumerate((*publication.singles, *publication.answers)):
        cells = table.filter(pa.array(number == index))
        codes = cells["codes"].to_pylist()
        rebuilt = np.zeros(summary[index]["shape"], np.int64)
        for code, value in zip(codes, cells["value"].to_pylist(), strict=True):
            rebuilt[tuple(code)] = value
        assert (rebuilt == measurement.values).all()
        assert tuple(summary[index]["columns"]) == measurement.clique
        assert set(map(tuple, cells["columns"].to_pylist())) == {measurement.clique}
        by_group = set(summary[index]["by_group"])
        assert by_group == (
            set(groups) & set(measurement.clique) if index >= len(publication.singles) else set()
        )
        for code, labels in zip(codes, cells["labels"].to_pylist(), strict=True):
            for column, k, label in zip(measurement.clique, code, labels, strict=True):
                held = [n for n, g in zip(schema[column], groups.get(column, ()), strict=False) if g == k]
                assert label == (" | ".join(held) if column in by_group else schema[column][k])
        assert set(cells["standard_deviation"].to_pylist()) == {measurement.stddev}


def test_statistics_files_hold_the_tables(written, publication):
    folder = written()
    for statistic in publication.statistics:
        header, *lines = read_csv(folder / "statistics" / f"{statistic.name}.csv")
        assert restore(pa.array(header)).to_pylist() == statistic.table.column_names
        assert {line[-1] for line in lines} == {"measured" if statistic.measured else "model"}
        place = header.index("estimate")
        estimates = [line[place] for line in lines]
        expected = statistic.table["estimate"].to_pylist()
        assert [float(text) if text else None for text in estimates] == pytest.approx(expected)


def test_manifest_states_guarantee_mechanisms_and_structure(written, publication):
    manifest = json.loads((written() / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["guarantee"]["epsilon"] == 1.5 and manifest["guarantee"]["neighbours"] == "add_remove"
    assert manifest["mechanisms"] == [dict(event) for event in publication.events]
    assert manifest["structure"]["cliques"] == [list(clique) for clique in publication.cliques]
    assert manifest["columns"][0]["edges"] == [0.0, 10.0, 20.0, 21.0]
    assert manifest["synthetic_rows"] == 40


def test_no_file_holds_a_time_of_day_or_the_machine(written):
    folder = written()
    for name in files_of(folder):
        content = (folder / name).read_bytes().decode("utf-8", "replace")
        assert not re.search(r"\d\d:\d\d:\d\d|\d\dT\d\d:\d\d", content), name
        assert str(folder.parent) not in content and str(Path.cwd()) not in content, name


class Page(HTMLParser):
    """Collects tags, texts and addresses of a page, and checks that tags close in order."""

    VOID = frozenset({"meta", "br", "img", "link", "hr", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.texts = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for key, value in attrs if key in {"href", "src"}]
        self.ids += [value for key, value in attrs if key == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts += data


@pytest.mark.parametrize("kind", ["publication", "merged"])
def test_report_runs_nothing_fetches_nothing_and_escapes_names(written, kind, request):
    publication = request.getfixturevalue(kind)
    folder = written(of=publication)
    text = (folder / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == [] and "script" not in page.tags and "link" not in page.tags
    assert "default-src 'none'" in text and "url(" not in text and "@import" not in text
    targets = {f"#{name}" for name in page.ids} | files_of(folder)
    assert set(page.addresses) <= targets
    assert len(page.ids) == len(set(page.ids))
    for column in publication.columns:
        assert column.name in page.texts


def test_report_and_readme_say_what_is_guaranteed_and_what_is_not(written):
    folder = written()
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    report = Page((folder / "report.html").read_text(encoding="utf-8")).texts
    readme = (folder / "README.md").read_text(encoding="utf-8")
    for sentence in (*manifest["guarantee"]["in_words"], *manifest["not_protected"]):
        assert sentence in report and sentence in readme
    assert "by the model" in report and "by the model" in readme


def test_each_table_by_the_model_says_what_it_takes_for_granted(written, publication):
    text = (written() / "report.html").read_text(encoding="utf-8")
    articles = {
        name: Page(body).texts
        for name, body in re.findall(r'<article id="([^"]*)"(.*?)</article>', text, re.S)
    }
    by_columns = {statistic.columns: statistic for statistic in publication.statistics}
    plan, seen = publication.columns[1].name, publication.columns[2].name
    assert f"related here only through {plan}." in articles[by_columns["age", seen].name]
    assert "taken to be independent" in articles[by_columns["age", "pay"].name]
    assert "together" not in articles[by_columns["age", plan].name]


def test_nothing_is_said_of_the_model_where_all_was_measured(written, publication):
    measured = tuple(statistic for statistic in publication.statistics if statistic.measured)
    folder = written(statistics=measured)
    assert "by the model" not in (folder / "report.html").read_text(encoding="utf-8")
    assert "by the model" not in (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["publication", "merged"])
def test_readme_shows_awkward_names_as_text(written, kind, request):
    folder = written(of=request.getfixturevalue(kind))
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert re.search(r"(?<!\\)<script", readme) is None


def test_exact_row_count_is_owned_up_to_under_replace_one_only(written, publication):
    def sentences(guarantee: Guarantee) -> str:
        manifest = json.loads((written(guarantee=guarantee) / "manifest.json").read_text(encoding="utf-8"))
        return " ".join(manifest["not_protected"])

    person = "one person: all rows with the same id, at most 5"
    assert "The number of rows" not in sentences(publication.guarantee)
    assert "The number of rows" in sentences(replace(publication.guarantee, neighbours="replace_one"))
    assert "The number of rows" not in sentences(
        replace(publication.guarantee, neighbours="replace_one", unit=person)
    )


BY_MEASURE = {
    "sequential": (Guarantee(1.0, 0.0, None, "", "", "sequential"), "2", "5", "20"),
    "zcdp": (Guarantee(1.0, 1e-6, 0.02435597035953837, "", "", "zcdp"), "2.112", "5.84", "31.67"),
    "gdp": (
        Guarantee(1.0, 1e-6, 0.02801443616718291, "", "", "gdp", mu=0.23670418740353077),
        "2.123",
        "5.927",
        "33.03",
    ),
}


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("accountant", some(list(BY_MEASURE), 2))
def test_what_several_rows_or_ids_have_is_worked_out_for_the_account_in_use(
    written, publication, accountant, neighbours
):
    one, *figures = BY_MEASURE[accountant]
    two, five, twenty = (f"ε = {figure}" for figure in figures)
    end = "." if accountant == "sequential" else " at the same δ."
    for unit, of in (("one row", "rows"), ("one person: all rows with the same id, at most 5", "ids")):
        guarantee = replace(one, unit=unit, neighbours=neighbours)
        folder = written(guarantee=guarantee)
        said = " ".join(json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["not_protected"])
        groups = f"with 2 {of} it is {two}, with 5 {of} it is {five}, with 20 {of} it is {twenty}{end}"
        assert groups in said
        assert groups in (folder / "README.md").read_text(encoding="utf-8")
        assert (f"counts as a change of two persons, with {two}" in said) == (
            of == "ids" and neighbours == "add_remove"
        )
        assert "times the ε" not in said and "twice" not in said


def test_where_values_were_named_a_group_has_its_own_delta_or_nothing(written, publication):
    guarantee = Guarantee(1.0, 1e-6, 0.028, "one row", "add_remove", "gdp", mu=0.237, approximate_delta=5e-7)
    folder = written(guarantee=guarantee)
    said = " ".join(json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["not_protected"])
    assert "with 2 rows it is ε = 2 with δ = 3.719e-6, with 5 rows it is ε = 5 with δ = 8.58e-5, with" in said
    assert "with 20 rows it is no guarantee that says anything." in said


def test_pure_dp_independent_structure_and_lost_cliques_are_reported(written, publication):
    pure = Guarantee(
        0.5, 0.0, None, "one person: all rows with the same id, at most 5", "add_remove", "sequential"
    )
    events = tuple({**event, "epsilon": 0.1, "rho": None} for event in publication.events)
    lost = (publication.cliques[0],)
    folder = written(
        guarantee=pure, events=events, cliques=lost, answers=(), structure="independent", lost=lost
    )
    report = Page((folder / "report.html").read_text(encoding="utf-8")).texts
    assert "no columns were measured together" in report and "δ" not in report.split("How it was made")[2]
    assert "interrupted and resumed" in report


def test_nothing_is_written_into_a_folder_that_holds_something(tmp_path, publication):
    (tmp_path / "old").touch()
    with pytest.raises(DpsynthError):
        write_public(tmp_path, publication)
    assert files_of(tmp_path) == {"old"}


def test_commit_shows_the_whole_bundle_at_once(tmp_path):
    partial, final = tmp_path / ".partial", tmp_path / "r-1"
    (partial / "public").mkdir(parents=True)
    (partial / "public" / "manifest.json").write_text("{}")
    commit(partial, final)
    assert not partial.exists() and files_of(final) == {"public/manifest.json"}


@pytest.mark.parametrize("kind", ["folder", "empty folder", "file", "dangling link"])
def test_commit_never_overwrites(tmp_path, kind):
    partial, final = tmp_path / ".partial", tmp_path / "r-1"
    partial.mkdir()
    (partial / "new").touch()
    if kind == "file":
        final.touch()
    elif kind == "dangling link":
        final.symlink_to(tmp_path / "nowhere")
    else:
        final.mkdir()
    if kind == "folder":
        (final / "old").touch()
    with pytest.raises(DpsynthError):
        commit(partial, final)
    assert files_of(partial) == {"new"}
    assert kind != "folder" or files_of(final) == {"old"}


def test_the_model_file_holds_the_model_that_the_rows_were_drawn_from(publication, written):
    model = load(written() / "model.npz")
    assert model.tree == publication.model.tree and model.total == publication.model.total
    for column in publication.columns:
        np.testing.assert_array_equal(
            model.marginal((column.name,)), publication.model.marginal((column.name,))
        )
