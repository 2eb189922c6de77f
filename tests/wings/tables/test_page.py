"""The page on linked tables: its commands say what it shows, and its configuration is one."""

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
import yaml

from dpsynth.bundle.recipient import open_bundle
from dpsynth.config import from_mapping
from tests.cli.here import Command

PAGE = (Path(__file__).parents[3] / "docs" / "tables.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"\d(?:[\d,.]*\d)?")


@pytest.mark.usefixtures("seeded_noise")
def test_the_commands_of_the_page_do_what_it_shows(dpsynth: Command) -> None:
    pytest.importorskip("statsmodels")
    blocks = re.findall(r"^```\n(\$ dpsynth .*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    for told in [told for block in blocks for told in block.split("$ ")[1:]]:
        command, *lines = told.splitlines()
        words = shlex.split(command)[1:]
        if words[1].startswith("outputs/"):
            (words[1],) = map(str, Path().glob("outputs/randhie-linked/*/public"))
        done = dpsynth(*words)
        assert done.code == 0, done
        said = NUMBER.sub("0", done.out + done.err)
        for line in lines:
            assert line == "..." or NUMBER.sub("0", line) in said, (line, said)
    (guess,) = re.findall(r"^```\n(  randhie_years:.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert guess in Path("configs/mine.yaml").read_text()
    (public,) = Path().glob("outputs/randhie-linked/*/public")
    for name, header in re.findall(r"==> tables/(\w+)\.csv <==\n(.*)\n", PAGE):
        assert (public / "tables" / f"{name}.csv").read_text().startswith(f"{header}\n")
    tables, whole = open_bundle(public).tables, open_bundle(public).join("years")
    assert len(whole) == len(tables["years"]) and {"mdvis", "coins", "costly_years"} <= {*whole}
    more = pd.read_csv("more/tables/persons.csv")
    assert len(more) == 1000 and (more.coins == 0).all()
    costly = (whole.meddol > 1000).groupby(whole.zper).sum()
    counted = tables["persons"].set_index("zper").costly_years.reindex(costly.index)
    assert (counted == costly).all()


def test_the_configurations_of_the_page_are_two() -> None:
    found = map(yaml.safe_load, re.findall(r"^```yaml\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE))
    keys = {"privacy": {"epsilon": 1, "delta": 1e-6}, "ledger": {"dataset": "page"}}
    first, second = (from_mapping({**keys, **text}) for text in found)
    assert "years_5_meddol" in first.columns
    assert "visits == 1 implies visits_other_ward != 'ICU'" in second.constraints


def test_every_key_of_a_table_is_on_the_page() -> None:
    from dpsynth.wings.tables.keys import LinkedTable, Parent

    listed = re.findall(r"^\| `(\w+)` \| ", PAGE, re.MULTILINE)
    assert listed == list(LinkedTable.model_fields)
    assert all(f"`{key}`" in PAGE for key in Parent.model_fields)
