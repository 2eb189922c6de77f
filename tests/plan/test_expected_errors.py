"""Errors that a plan foretells are those of the noise, and of releases; what it says of them is plain."""

import itertools
import json
import os
import re
from dataclasses import replace
from decimal import Decimal
from math import sqrt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import dpsynth
from dpsynth.cli.plan_command import describe
from dpsynth.columns.domain import rare_when_ordered
from dpsynth.config import compiled, load
from dpsynth.curator.samplers import add_gaussian
from dpsynth.pipeline.forecast import forecast
from dpsynth.plan.expected_errors import (
    SEEN,
    WEAK,
    CountErrors,
    column_errors,
    enough_columns,
    enough_epsilon,
    pair_errors,
)
from dpsynth.plan.plan import make_plan
from dpsynth.strategy import strategy_of
from tests.specs import spec_of

PAGES = Path(__file__).parents[2]
ADULT = PAGES / "configs" / "adult.yaml"
TABLES = os.environ.get("DPSYNTH_DATA")


def planned(spec):
    """The compiled config and the plan."""
    worked_out = compiled(spec)
    return worked_out, make_plan(worked_out, strategy_of(spec.structure.method, spec.structure.cliques or ()))


def errors_of(spec):
    worked_out, plan = planned(spec)
    return column_errors(plan, worked_out.columns)


def many_columns(count, epsilon="1"):
    """A config of so many columns of 33 cells each."""
    declared = {f"c{i:02}": {"type": "number", "min": 0, "max": 100, "bins": 32} for i in range(count)}
    return spec_of(declared, privacy={"epsilon": Decimal(epsilon), "delta": Decimal("1e-9")})


def test_the_share_that_noise_moves_is_that_of_drawn_noise():
    """The total variation distance of counts with noise from counts without, on average over draws.

    Narrow bins are seen in 32 groups of neighbours, each of which has the noise of all of its bins.
    """
    spec = many_columns(5)
    worked_out, plan = planned(spec)
    (first, *_), rows = errors_of(spec), 5000
    scale = next(s for s in plan.steps if s.step == "one_way").scale_of["c00"]
    zeros = np.zeros(first.cells * 400, dtype=np.int64)
    each = worked_out.columns[0].size / first.cells
    assert first.cells == 32 and each > 3
    noise = add_gaussian(zeros, scale).reshape(400, first.cells) * sqrt(each)
    moved = np.abs(noise).sum(axis=1) / (2 * rows)
    assert first.moved(rows) == pytest.approx(moved.mean(), rel=0.05)
    assert first.error == pytest.approx(np.abs(noise).mean(), rel=0.05)
    assert first.smallest == pytest.approx(2 * noise.std(), rel=0.05)


def test_a_share_is_never_above_all_rows():
    assert CountErrors(("a",), 100, 50.0, 125.0).moved(10) == 1.0


def test_values_that_would_be_merged_count_for_no_cell_of_a_pair():
    worked_out, plan = planned(load(ADULT, source="t.csv"))
    few = {error.columns: error for error in pair_errors(worked_out, plan, 1_000)}
    many = {error.columns: error for error in pair_errors(worked_out, plan, 10_000_000)}
    sizes = worked_out.domain.sizes
    assert len(many) == len(sizes) * (len(sizes) - 1) // 2
    assert all(error.cells == sizes[a] * sizes[b] for (a, b), error in many.items())
    most, numbers = (
        int(1_000 / r) for r in (plan.merged_below, rare_when_ordered(1_000, plan.merged_below, 1_000))
    )
    assert few["workclass", "fnlwgt"].cells == most * numbers < many["workclass", "fnlwgt"].cells
    # Pairs of requested statistics keep all values.
    assert few["education", "income"].cells == many["education", "income"].cells


def wide(**keys):
    """A config of one column of numbers."""
    column = {"type": "number", "min": 0, "max": 100, "decimals": 1, **keys}
    columns = {"pay": column, "sex": {"type": "category", "values": ["F", "M"]}}
    return spec_of(columns, privacy={"epsilon": Decimal(1), "delta": Decimal("1e-9")})


def test_the_epsilon_that_would_do_does_and_the_next_lower_one_does_not():
    spec, rows, share = many_columns(12), 20_000, 0.02
    found = enough_epsilon(spec, rows, share, errors_of)
    assert found is not None and found.as_tuple().digits[2:] == ()

    def worst(epsilon):
        return max(error.moved(rows) for error in errors_of(many_columns(12, str(epsilon))))

    lower = found - Decimal(1).scaleb(found.adjusted() - 1)
    assert worst(found) <= share < worst(lower)


def test_no_epsilon_will_do_for_a_share_that_rounding_alone_exceeds():
    assert enough_epsilon(many_columns(3), 10, 1e-9, errors_of) is None


def test_as_many_columns_as_would_do_have_about_the_error_that_is_allowed():
    rows = 10_000
    everything = errors_of(many_columns(54))
    fewer = enough_columns(everything, rows)
    assert fewer is not None and fewer < 54
    left = errors_of(many_columns(fewer))
    middle = sorted(error.moved(rows) for error in left)[len(left) // 2]
    assert 0.6 * WEAK < middle < 1.25 * WEAK
    assert enough_columns(left, 2 * rows) is None
    assert enough_columns((), rows) is None


# Words


@pytest.fixture
def said(dpsynth):
    """What ``dpsynth plan`` prints of a config in an empty folder."""

    def plan(*arguments, config=ADULT):
        told = dpsynth("plan", config, *arguments)
        return told.code, told.out + told.err

    return plan


FIELD = ("mu^2/2", "Gaussian DP", "discrete Gaussian", "noise scale", "share", "Sensitivities", "filter")


def test_plain_sentences_come_first_and_the_fields_measures_only_with_detail(said):
    code, plain = said()
    assert code == 0 and not [words for words in FIELD if words in plain]
    for words in ("Protected: one row", "at most 73.2 %", "Asked: 15 single columns",
                  "Ledger: ", "Time and memory: ", "No data was read", "--rows N", "--detail"):  # fmt: skip
        assert words in plain
    _, detail = said("--detail", "--rows", "48842")
    assert all(words in detail for words in FIELD)
    assert plain.splitlines()[:4] == detail.splitlines()[:4]
    assert len(plain.splitlines()) <= 15 and len(said("--rows", "48842")[1].splitlines()) <= 15
    assert "--rows N" not in detail and "More with" not in detail


def test_errors_are_in_per_cent_of_the_rows_that_are_stated(said):
    _, text = said("--rows", "48842")
    facts = json.loads(said("--rows", "48842", "--json")[1])["expected_errors"]
    worst = max(facts["columns"], key=lambda column: column["share_moved"])
    assert worst["columns"] == ["hours-per-week"] and "in hours-per-week, the worst" in text
    assert f"{100 * worst['share_moved']:.2g} %" in text
    weak = sum(pair["share_moved"] <= 0.05 for pair in facts["pairs"])
    assert f"Weak relations show in {weak}," in text
    hidden = sum(pair["share_moved"] > 0.2 for pair in facts["pairs"])
    assert f"hardly any in {hidden}." in text
    _, detail = said("--rows", "48842", "--detail")
    assert f"at most 20 %, in {hidden} more" in detail and "age with hours-per-week (100 %)" in detail
    seen = {tuple(pair["columns"]): pair["correlation"] for pair in facts["pairs"]}
    assert seen["age", "sex"] is None and 0 < seen["age", "hours-per-week"] < 0.2
    shown = [correlation for correlation in seen.values() if correlation is not None]
    assert f"above {4 * min(shown):.2g} to {min(1.0, 4 * max(shown)):.2g} show, by pair" in detail
    epsilon = facts["epsilon_that_would_do"]["epsilon"]
    assert f"ε = {epsilon:g} would do for at most 1 % in every column" in text


def test_noise_moves_the_correlation_of_two_ordered_columns_by_what_is_forecast():
    """Ten by ten cells with noise; the seed is fixed."""
    rng, rows, scale = np.random.default_rng(2), 10_000, 40.0
    counts = np.full((10, 10), rows / 100)
    scores = (np.arange(10) - 4.5) / np.arange(10).std()
    noisy = counts + rng.normal(0, scale, (500, 10, 10))
    found = np.einsum("kij,i,j->k", noisy, scores, scores) / rows
    errors = CountErrors(("a", "b"), 100, 0.8 * scale, SEEN * scale, ordered=True)
    assert errors.correlation(rows) == pytest.approx(SEEN * found.std(), rel=1 / 7)
    assert errors.correlation(10) == 1 and replace(errors, ordered=False).correlation(rows) is None


def test_too_many_columns_for_the_rows_are_told_with_how_many_would_do(said, tmp_path):
    config = tmp_path / "wide.yaml"
    columns = {name: {"type": "number", "min": 0, "max": 1, "bins": 32} for name in map(str, range(30))}
    privacy = {"epsilon": 1.0, "delta": 1e-9}
    config.write_text(json.dumps({"source": {"path": "t.csv"}, "privacy": privacy, "columns": columns}))
    fewer = enough_columns(errors_of(load(config)), 8_000)
    _, text = said("--rows", "8000", config=config)
    assert f"30 columns on 8,000 rows are too many: declare fewer columns (about {fewer} would do" in text
    assert "are too many" not in said("--rows", "1000000", config=config)[1]


def test_the_error_that_the_epsilon_is_for_can_be_stated(said):
    assert "would do for at most 0.5 % in every column" in said("--rows", "48842", "--error", "0.5")[1]
    code, text = said("--error", "1")
    assert code == 2 and "--error has no use without --rows" in text
    code, text = said("--rows", "100", "--error", "100")
    assert code == 2 and "between 0 and 100" in text


def test_a_method_without_pairs_says_nothing_of_pairs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    spec = load(ADULT)
    alone = spec.model_copy(update={"structure": spec.structure.model_copy(update={"method": "independent"})})
    facts = forecast(alone, 48842)
    assert facts["expected_errors"]["pairs"] == []
    describe(facts)
    text = capsys.readouterr().out
    assert "Pairs" not in text and "together" not in text


def blocks(page, command):
    """What a page says that a command prints, in code blocks, without indents."""
    text = (PAGES / page).read_text(encoding="utf-8")
    found = re.findall(rf"^( *)\$ {re.escape(command)}\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    return ["".join(line[len(indent) :] for line in said.splitlines(keepends=True)) for indent, said in found]


@pytest.mark.skipif(not (PAGES / "docs").is_dir(), reason="the pages are those of a checkout")
def test_the_pages_show_what_the_command_prints(said, tmp_path):
    """A page that names another config than those that are shipped holds its keys."""
    (tmp_path / "configs").mkdir()
    for name in ("randhie.yaml", "randhie-found.yaml"):
        (tmp_path / "configs" / name).write_text((ADULT.parent / name).read_text(encoding="utf-8"))
    keys = re.search(r"```yaml\n(privacy:.*?)```", (PAGES / "docs" / "starting.md").read_text(), re.DOTALL)
    head = "release: mine\nsource: {path: data/randhie.csv}\nledger: {dataset: randhie}\n"
    (tmp_path / "configs" / "mine.yaml").write_text(head + keys[1])
    shown = {
        "README.md": "dpsynth plan configs/randhie.yaml --rows 20000",
        "docs/starting.md": "dpsynth plan configs/mine.yaml --rows 20000",
        "docs/statistics.md": "dpsynth plan configs/randhie.yaml --rows 20000 --detail",
        "docs/finding.md": "dpsynth plan configs/randhie-found.yaml --detail",
    }
    for page, command in shown.items():
        config, *options = command.split()[2:]
        _, printed = said(*options, config=config)
        lines = [line.rstrip() for line in printed.splitlines()]
        for block in blocks(page, command):
            wanted = [
                line.rstrip() for line in block.splitlines() if line not in ("...", "\N{HORIZONTAL ELLIPSIS}")
            ]
            assert wanted and [line for line in wanted if line not in lines] == [], page


# Against releases


@pytest.mark.slow
@pytest.mark.skipif(TABLES is None, reason="DPSYNTH_DATA names no folder of tables")
def test_relations_that_exceed_the_noise_are_found_in_releases_and_smaller_ones_are_not(tmp_path):
    """Adult at two budgets: how much of each pair's dependence a release keeps, by what the plan said.

    A relation is found if the synthetic pair is nearer to the table's by half than if the columns were
    independent.
    """
    table = Path(str(TABLES)) / "adult.csv"
    found: dict[str, list[bool]] = {"hidden": [], "shows": [], "surely": []}
    for epsilon in ("1", "0.1"):
        spec = load(ADULT, source=str(table))
        privacy = spec.privacy.model_copy(update={"epsilon": Decimal(epsilon)})
        ledger = spec.ledger.model_copy(update={"url": f"sqlite:///{tmp_path / 'ledger.db'}"})
        spec = spec.model_copy(update={"privacy": privacy, "ledger": ledger})
        worked_out, plan = planned(spec)
        read = pa.csv.ConvertOptions(column_types={c.name: pa.string() for c in worked_out.columns})
        private = pa.csv.read_csv(table, convert_options=read)
        real = {c.name: c.encode(private[c.name].combine_chunks()) for c in worked_out.columns}
        released = dpsynth.release(spec, outputs=tmp_path / "outputs").table
        texts = worked_out.layout.texts(released)
        drawn = {c.name: c.encode(texts[c.name]) for c in worked_out.columns}
        rows = private.num_rows
        noise = {e.columns: e.moved(rows) for e in pair_errors(worked_out, plan, rows)}
        for pair in itertools.combinations(real, 2):
            joint, alone = tables_of(real, pair, worked_out.domain.sizes)
            synthetic, _ = tables_of(drawn, pair, worked_out.domain.sizes)
            relation = np.abs(joint - alone).sum() / 2
            kept = np.abs(joint - synthetic).sum() / 2 < relation / 2
            said = relation / noise[pair]
            group = "hidden" if said < 0.5 else "surely" if said > 2 else "shows" if said > 1 else ""
            if group:
                found[group].append(kept)
    assert {group: len(pairs) >= 20 for group, pairs in found.items()} == dict.fromkeys(found, True)
    shares = {group: np.mean(pairs) for group, pairs in found.items()}
    assert shares["hidden"] < 0.03 and 0.2 < shares["shows"] < 0.8 and shares["surely"] > 0.85, shares


def tables_of(codes, pair, sizes):
    """Shares of two columns together, and those if they were independent."""
    a, b = pair
    joint = np.bincount(codes[a] * sizes[b] + codes[b], minlength=sizes[a] * sizes[b]).reshape(sizes[a], -1)
    shares = joint / joint.sum()
    return shares, np.outer(shares.sum(axis=1), shares.sum(axis=0))
