"""A choice among configurations, and what a release says of where its configuration comes from."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import dpsynth
from dpsynth import release
from dpsynth.bundle.manifest import Manifest
from dpsynth.columns.disclosed import Provenance
from dpsynth.config import Spec, compiled, load
from dpsynth.errors import ConfigError
from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.steps import Tell
from dpsynth.wings.governance.choosing import Choice, Tried, _error, choose
from dpsynth.wings.governance.reviewing import disclosed_beforehand
from tests.cli.here import Command

ROWS = 3000


def table(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, ROWS)
    return pd.DataFrame(
        {"a": a, "b": (a + rng.integers(0, 2, ROWS)) % 4, "n": a * 20 + rng.integers(0, 20, ROWS)}
    )


CONFIG = """\
release: people
source: {{path: people.csv}}
privacy: {{epsilon: {epsilon}, delta: 1.0e-6, on_empty: go}}
ledger: {{url: "sqlite:///ledger.db", cap: {{epsilon: 50, delta: 0.1}}}}
columns:
  a: {{type: category, values: ["0", "1", "2", "3"], missing: false}}
  b: {{type: category, values: ["0", "1", "2", "3"], missing: false}}
  n: {{type: integer, min: 0, max: 79, missing: false}}
structure: {method}
"""


@pytest.fixture
def here(dpsynth: Command) -> Command:
    """A folder with two candidates, of which one measures no pair, a private table and a public one."""
    Path("pairs.yaml").write_text("# ours\n" + CONFIG.format(epsilon=2, method="auto"))
    Path("singles.yaml").write_text(CONFIG.format(epsilon=2, method="independent"))
    table(1).to_csv("people.csv", index=False)
    table(2).to_csv("public.csv", index=False)
    return dpsynth


@pytest.mark.parametrize("on", [(), ("--on", "public.csv")])
def test_the_better_candidate_is_taken_and_its_release_says_so(here: Command, on: tuple[str, ...]) -> None:
    if not on:
        # No table is opened.
        Path("people.csv").unlink()
    done = here("choose", "singles.yaml", "pairs.yaml", *on, "--runs", "2", "--out", "chosen.yaml")
    assert done.code == 0, done
    assert done.out.splitlines()[-1] == "chosen.yaml" and "is the candidate pairs.yaml" in done.out
    # Neither a ledger nor a bundle is left.
    assert {path.name for path in Path().iterdir()} <= {
        "pairs.yaml", "singles.yaml", "people.csv", "public.csv", "chosen.yaml"
    }  # fmt: skip
    spec, before = load("chosen.yaml"), load("pairs.yaml")
    assert spec.provenance.chosen.name == "pairs.yaml"
    errors = spec.provenance.chosen.among
    assert 2 * errors["pairs.yaml"] < errors["singles.yaml"]
    assert spec.model_copy(update={"provenance": Provenance()}) == before
    assert Path("chosen.yaml").read_text().startswith("# ours\n")
    table(1).to_csv("people.csv", index=False)
    made = dpsynth.release(spec, outputs="outputs", tell=lambda _: None)
    stated = Manifest.read(made.folder / "public").disclosed_outside
    (choice,) = (fact["what"] for fact in stated if fact["kind"] == "choice")
    name = "public.csv" if on else "a made-up table"
    assert f"chosen for nothing by runs on {name}, without the private table" in choice
    assert choice in (made.folder / "public" / "report.html").read_text()


def test_a_choice_follows_from_the_stand_in_alone(here: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []

    def run(spec: Spec, request: Request, tell: Tell) -> None:
        del request, tell
        opened.append((spec.source.path, spec.ledger.url))
        raise KeyError

    monkeypatch.setattr("dpsynth.wings.governance.choosing.run", run)
    with pytest.raises(KeyError):
        choose([Path("pairs.yaml"), Path("singles.yaml")], "public.csv", runs=1)
    ((source, ledger),) = opened
    assert source == "public.csv" and ledger != load("pairs.yaml").ledger.url


@pytest.mark.parametrize(
    ("change", "words", "message"),
    [
        (None, ["--on", "people.csv"], "--on names the source of pairs.yaml"),
        (None, ["--on", "link.csv"], "--on names the source of pairs.yaml"),
        (None, ["--on", "nowhere.csv"], "nowhere.csv"),
        (("epsilon: 2", "epsilon: 3"), [], "are not those of pairs.yaml"),
        (("structure", "audiences: {in: {epsilon: 1}, all: {epsilon: 2}}\nstructure"), [], "has audiences"),
    ],
)
def test_what_is_no_free_choice_is_refused(here: Command, change, words, message) -> None:
    Path("link.csv").hardlink_to("people.csv")
    text = Path("pairs.yaml").read_text()
    Path("other.yaml").write_text(text if change is None else text.replace(*change))
    done = here("choose", "pairs.yaml", "other.yaml", *words, "--out", "chosen.yaml")
    assert done.code in (2, 4) and message in done.err, done
    assert not Path("chosen.yaml").exists() and not Path("ledger.db").exists()


def test_an_earlier_release_stands_in_by_its_name(here: Command) -> None:
    made = dpsynth.release(load("pairs.yaml"), outputs="outputs", tell=lambda _: None)
    on = made.folder / "public" / "synthetic.csv"
    done = here("choose", "singles.yaml", "pairs.yaml", "--on", on, "--runs", "1", "--out", "chosen.yaml")
    assert f"runs on a table of release {made.folder.name}, without" in done.out, done
    assert load("chosen.yaml").provenance.chosen.name == "pairs.yaml"


def test_linked_tables_are_compared_as_one_wide_table_and_none_of_them_is_opened(dpsynth: Command) -> None:
    region = {"region": {"type": "category", "values": ["N", "S"], "missing": False}}
    of = {"parent": {"table": "homes", "key": "home", "max_children": 2}, "columns": region}
    tables = {"homes": {"key": "home", "columns": region}, "persons": of}
    # All live where their home is, which no single column says.
    homes = pd.DataFrame({"home": range(1000), "region": ["N", "S"] * 500})
    given = {"homes": homes, "persons": pd.concat([homes, homes])}
    for method in ("independent", "auto"):
        named = {name: table | {"source": {"path": f"{name}.csv"}} for name, table in tables.items()}
        config = {"release": "homes", "tables": named, "structure": method,
                  "privacy": {"epsilon": 8, "delta": 1e-6}, "ledger": {"dataset": "homes"}}  # fmt: skip
        Path(f"{method}.yaml").write_text(yaml.safe_dump(config))
    made = release(given, tables=tables, epsilon=8, delta=1e-6, dataset="homes", tell=lambda _: None)
    before = dpsynth.files
    wide = made.folder / "public" / "synthetic.csv"
    for number, on in enumerate((("--on", wide), ())):
        out = f"chosen-{number}.yaml"
        done = dpsynth("choose", "independent.yaml", "auto.yaml", *on, "--runs", "1", "--out", out)
        assert done.code == 0, done
    chosen = load("chosen-0.yaml").provenance.chosen
    assert chosen.name == "auto.yaml" and chosen.on == f"a table of release {made.folder.name}"
    assert chosen.among["independent.yaml"] > 0.15
    assert chosen.among["auto.yaml"] < 0.05
    assert dpsynth.files.keys() - before.keys() == {"chosen-0.yaml", "chosen-1.yaml"}
    given["persons"].to_csv("persons.csv", index=False)
    done = dpsynth("choose", "independent.yaml", "auto.yaml", "--on", "persons.csv", "--out", "c.yaml")
    assert done.code == 2 and "--on names the source of independent.yaml" in done.err, done


def test_one_configuration_is_no_choice_and_no_file_is_replaced(here: Command) -> None:
    done = here("choose", "pairs.yaml", "pairs.yaml", "--out", "chosen.yaml")
    assert done.code == 2 and "two configurations or more" in done.err
    done = here("choose", "pairs.yaml", "singles.yaml", "--out", "singles.yaml")
    assert done.code == 2 and "singles.yaml exists already" in done.err


def test_the_first_of_candidates_that_are_not_told_apart_is_taken() -> None:
    paths = [Path("a"), Path("b"), Path("c")]

    def taken(*errors: tuple[float, ...]) -> str:
        return str(Choice("t", tuple(map(Tried, paths, errors))).taken.path)

    assert taken((0.11, 0.09), (0.10, 0.08), (0.3, 0.3)) == "a"
    assert taken((0.20, 0.21), (0.10, 0.08), (0.09, 0.11)) == "b"
    assert taken((0.10,), (0.09,), (0.2,)) == "b"


def test_the_error_is_the_share_of_rows_that_would_have_to_change() -> None:
    real = pd.DataFrame({"x": ["1", "1", "2", ""], "y": ["u", "v", "u", "u"]})
    assert _error(real, real) == 0
    # One row of four is another one; a text that the stand-in lacks counts as one.
    assert _error(real, real.assign(y=["u", "v", "u", "v"])) == pytest.approx(0.25)
    assert _error(real, real.assign(y=["u", "w", "u", "u"])) == pytest.approx(0.25)
    many = pd.DataFrame({"x": [str(i) for i in range(1200)]})
    assert _error(many, many.sample(frac=1, random_state=1)) == 0
    assert _error(many, pd.DataFrame({"x": ["1199"] * 1200})) == pytest.approx(11 / 12)


def test_a_choice_goes_into_a_section_that_is_there_and_into_no_other(here: Command) -> None:
    looked = Path("pairs.yaml").read_text() + "provenance:\n  looked_at: [n]\n"
    Path("looked.yaml").write_text(looked)
    choice = Choice("t.csv", (Tried(Path("looked.yaml"), (0.1,)), Tried(Path("singles.yaml"), (0.2,))))
    Path("chosen.yaml").write_text(choice.written())
    spec = load("chosen.yaml")
    assert spec.provenance.looked_at == ("n",)
    assert spec.provenance.chosen.on == "t.csv"
    # It is a choice already.
    with pytest.raises(ConfigError, match="has no place for the choice"):
        Choice("t.csv", (Tried(Path("chosen.yaml"), (0.1,)),)).written()
    Path("looked.yaml").write_text(
        looked.replace("provenance:\n  looked_at: [n]", "provenance: {looked_at: [n]}")
    )
    with pytest.raises(ConfigError, match="has no place for the choice"):
        choice.written()


FURTHER = {
    "constraint": "constraints: [\"a == '0' implies b != '3'\"]\n",
    "public counts": "public_marginals: [{columns: [a], shares: {'0': 0.2, '1': 0.3, '2': 0.3, '3': 0.2}}]\n",
}


@pytest.mark.parametrize("kind", FURTHER)
def test_what_a_request_says_is_disclosed_is_what_the_release_states(here: Command, kind: str) -> None:
    found = Path("pairs.yaml").read_text().replace("min: 0, max: 79", "bounds: private")
    Path("all.yaml").write_text(f"{found}provenance: {{looked_at: [b]}}\n{FURTHER[kind]}")
    spec = load("all.yaml")
    before = disclosed_beforehand(compiled(spec))
    made = dpsynth.release(spec, outputs="outputs", tell=lambda _: None)
    after = Manifest.read(made.folder / "public").disclosed_outside
    assert [*before] == [fact for fact in after if fact["kind"] != "statistic"]
    of = {kind: [f["column"] for f in after if f["kind"] == kind] for kind in ("column", "domain", "look")}
    # What is found with a part of the budget is covered by it.
    assert of == {"column": ["a", "b", "n"], "domain": ["a", "b"], "look": ["b"]}
    assert sum(fact["kind"] == kind for fact in after) == 1
