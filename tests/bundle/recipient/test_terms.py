"""Terms of use stand where a recipient reads first, and where answers and rows come out."""

import json
from pathlib import Path

import pytest

import dpsynth
from dpsynth.bundle.recipient.verification import verified
from dpsynth.cli.recipient_commands import query, sample
from dpsynth.config import compiled
from dpsynth.errors import ConfigError
from tests.bundle.recipient.conftest import COLUMNS, released
from tests.specs import spec_of

TERMS = "Not for <b>decisions</b> on persons; ask té@example.org."


def test_terms_stand_in_every_place_where_somebody_reads_first(tmp_path, capsys):
    public = Path(released(tmp_path, terms=TERMS).folder) / "public"
    assert json.loads((public / "manifest.json").read_text())["terms"] == TERMS
    readme, report = ((public / name).read_text() for name in ("README.md", "report.html"))
    assert readme.index("Terms of use") < readme.index("## The verdict")
    said = "Not for &lt;b&gt;decisions&lt;/b&gt; on persons"
    assert said in report and report.index(said) < report.index('id="verdict"')
    assert json.loads((public / "croissant.json").read_text())["usageInfo"] == TERMS
    capsys.readouterr()
    query(public, "count by sex")
    assert capsys.readouterr().out.splitlines()[-1] == f"Terms of use: {TERMS}"
    sample(public, 3)
    shown = capsys.readouterr()
    assert shown.err.startswith("Terms of use: Not for") and len(shown.out.splitlines()) == 4
    assert dpsynth.open_bundle(public).query("count").to_json()["terms"] == TERMS
    assert verified(public).good


def test_terms_are_a_line_of_text_and_part_of_what_is_released():
    with pytest.raises(ConfigError, match=r"publish\.terms"):
        spec_of(COLUMNS, publish={"terms": "two\nlines"})
    without, with_terms = (compiled(spec_of(COLUMNS, publish=p)) for p in ({}, {"terms": TERMS}))
    assert without.fingerprint == with_terms.fingerprint
    assert without.whole_fingerprint != with_terms.whole_fingerprint
