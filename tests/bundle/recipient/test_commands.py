"""The recipient's commands: what they print, their exit codes, and that they need the public folder alone."""

import csv
import io
import json
import re

import pytest

from dpsynth.bundle.bundle import MANIFEST
from tests.cli.here import Command

PAGE_KEYS = {"question", "measure", "by", "interval", "verdict", "too_low", "minimum_set_size", "rows"}


@pytest.fixture
def dpsynth(tmp_path, monkeypatch, capsys):
    return Command(tmp_path, monkeypatch, capsys)


def test_verify_says_good_or_bad_by_its_exit_code_and_names_the_file(dpsynth, made, copied):
    good = dpsynth("verify", str(made.release.folder), "--key", made.public_key)
    assert (good.code, good.err) == (0, "") and good.out.endswith("The bundle is good.\n")
    folder = copied()
    text = (folder / "README.md").read_text()
    (folder / "README.md").write_text(text.replace("a", "b", 1))
    bad = dpsynth("verify", str(folder))
    assert bad.code == 1 and bad.out.endswith("The bundle is NOT good.\n")
    assert "README.md: is not what SHA256SUMS says.\n" in bad.out
    found = json.loads(dpsynth("verify", str(folder), "--json").out)
    assert found["good"] is False and found["findings"][0]["file"] == "README.md"
    (folder / "a\nThe bundle is good.").touch()
    assert "The bundle is good." not in dpsynth("verify", str(folder)).out.splitlines()


def test_a_bundle_of_an_earlier_version_is_one_paragraph(dpsynth, copied):
    path = copied() / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": "dpsynth bundle 1"}))
    (path.parent / "SHA256SUMS").unlink()
    for command in (("verify",), ("query", "count"), ("sample", "--rows", "3")):
        ended = dpsynth(command[0], str(path.parent), *command[1:])
        assert ended.code == 1 and ended.out == "" and ended.err.count("\n") == 1
        assert "of the format 'dpsynth bundle 1', and this version of dpsynth reads" in ended.err


def test_keygen_makes_a_key_that_signs(dpsynth):
    ended = dpsynth("keygen", "key.pem")
    assert ended.code == 0 and ended.out.splitlines()[-1].startswith("ed25519:")
    again = dpsynth("keygen", "key.pem")
    assert again.code == 1 and "never overwritten" in again.err


def test_query_prints_a_table_json_or_csv(dpsynth, made):
    question = "mean(age) by city where sex == 'F'"
    plain = dpsynth("query", str(made.public), question)
    header, *lines = plain.out.splitlines()
    assert header.split() == ["city", "estimate", "low", "high", "rows", "basis"]
    assert [line[:3] for line in lines[:3]] == ["Aa ", "-Bb", 'C "']
    assert re.match("Verdict on the synthetic table: (use|with care|don't use): ", lines[-2])
    assert lines[-1] == "Answers on fewer than 10 rows, by estimate, are withheld."
    found = json.loads(dpsynth("query", str(made.public), question, "--json").out)
    assert found.keys() == PAGE_KEYS and found["rows"][0]["group"] == {"city": "Aa"}
    rows = list(csv.DictReader(io.StringIO(dpsynth("query", str(made.public), question, "--csv").out)))
    assert float(rows[0]["estimate"]) == found["rows"][0]["estimate"] and rows[1]["city"] == "'-Bb"
    both = dpsynth("query", str(made.public), question, "--csv", "--json")
    assert both.code == 2 and "contradict each other" in both.err


def test_a_question_that_is_none_is_one_paragraph(dpsynth, made):
    ended = dpsynth("query", str(made.public), "mean(\x1b[31mage)")
    assert ended.code == 2 and ended.out == "" and ended.err.count("\n") == 1 and "\x1b" not in ended.err


def test_sample_prints_rows_or_writes_a_file(dpsynth, made):
    ended = dpsynth(
        "sample", str(made.public), "--rows", "20", "--given", "sex=F", "--given", "age < 40", "--seed", "3"
    )
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    assert ended.code == 0 and len(rows) == 20
    assert {row["sex"] for row in rows} == {"F"} and max(int(row["age"]) for row in rows) < 40
    written = dpsynth("sample", str(made.public), "--rows", "20", "--out", "more.parquet")
    assert (written.code, written.out) == (0, "20 rows in more.parquet.\n")
    assert sorted(dpsynth.files) == ["more.parquet"]


def test_a_key_that_is_not_there_stops_a_release_before_anything_is_charged(dpsynth, monkeypatch):
    (dpsynth.folder / "t.csv").write_text("a\n" + "yes\nno\n" * 50)
    (dpsynth.folder / "c.yaml").write_text(
        "source: {path: t.csv}\nprivacy: {epsilon: 1, delta: 1.0e-6}\ncolumns: {a: {type: boolean}}\n"
    )
    monkeypatch.setenv("DPSYNTH_SIGNING_KEY", "key.pem")
    ended = dpsynth("run", "c.yaml", "--plain")
    assert ended.code == 2 and "The signing key key.pem can't be opened: No such file" in ended.err
    assert sorted(dpsynth.files) == ["c.yaml", "t.csv"]
