"""A stranger finds any change of a bundle, and a bundle that contradicts itself, by its public folder."""

import json
import os
import re
import shutil
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpsynth
from dpsynth.bundle.bundle import MANIFEST
from dpsynth.bundle.manifest import manifest_schema, manifest_text, schema_text
from dpsynth.bundle.recipient import BundleRefused
from dpsynth.bundle.recipient.verification import verified
from dpsynth.bundle.signature import (
    CHECKSUMS,
    SIGNATURE,
    UNLISTED,
    checksums_text,
    load_key,
    make_key,
    public_files,
    sha256_of,
    signer_of,
)
from dpsynth.errors import ConfigError, DpsynthError
from tests.event_log import log_of
from tests.examples import cases
from tests.thinned import some

ROOT = Path(__file__).resolve().parents[3]


def faults(folder: Path, key: str | None = None) -> dict[str, str]:
    """The findings of a verification by file."""
    found: dict[str, list[str]] = {}
    for finding in verified(folder, key).findings:
        found.setdefault(finding.file, []).append(finding.sentence)
    return {file: " ".join(sentences) for file, sentences in found.items()}


def sealed(folder: Path, change=lambda manifest: None) -> None:
    """Write manifest and checksums anew, as somebody would who hides a change, and drop the signature."""
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["signed_by"] = None
    change(manifest)
    for name in manifest["files"]:
        path = folder / name
        if path.exists():
            manifest["files"][name] = {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
    (folder / MANIFEST).write_text(manifest_text(manifest), encoding="utf-8")
    names = [n for n in public_files(folder) if n not in UNLISTED]
    (folder / CHECKSUMS).write_text(checksums_text({name: sha256_of(folder / name) for name in names}))
    (folder / SIGNATURE).unlink(missing_ok=True)


def test_a_bundle_is_good_for_whoever_knows_the_key(made):
    found = verified(made.release.folder, made.public_key)
    assert found.good and found.signed_by == made.public_key and not found.cautions
    assert len(found.proven) >= 5
    assert verified(made.public).cautions[0].startswith(f"The checksums are signed by {made.public_key}.")


def test_a_bundle_with_new_seals_and_no_change_is_good_and_says_what_is_not_proven(copied):
    folder = copied()
    sealed(folder)
    found = verified(folder)
    assert found.good and found.signed_by is None
    assert "no signature" in found.cautions[0]


def test_any_changed_byte_is_found(copied):
    folder, chance = copied(), np.random.default_rng(11)
    names = public_files(folder)
    assert {MANIFEST, CHECKSUMS, SIGNATURE, "rows.npz"} <= set(names)
    for number in range(cases(2000, part=40)):
        path = folder / names[number % len(names)]
        whole = path.read_bytes()
        at = int(chance.integers(len(whole)))
        other = bytes([(whole[at] + int(chance.integers(1, 256))) % 256])
        path.write_bytes(whole[:at] + other + whole[at + 1 :])
        found = faults(folder)
        assert found, f"{path.name} at {at}"
        named = path.relative_to(folder).as_posix() in found
        assert path.name == CHECKSUMS or (named and CHECKSUMS not in found)
        path.write_bytes(whole)
    assert verified(folder).good


def test_a_byte_that_is_changed_in_an_unsigned_bundle_is_found_too(copied):
    folder, chance = copied(), np.random.default_rng(12)
    sealed(folder)
    names = public_files(folder)
    for number in range(cases(400, part=10)):
        path = folder / names[number % len(names)]
        whole = path.read_bytes()
        at = int(chance.integers(len(whole)))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x20]) + whole[at + 1 :])
        assert faults(folder), f"{path.name} at {at}"
        path.write_bytes(whole)


@pytest.mark.parametrize("name", ["synthetic.csv", "model.npz", CHECKSUMS, SIGNATURE, MANIFEST])
def test_a_missing_file_is_named(copied, name):
    folder = copied()
    (folder / name).unlink()
    assert name in faults(folder)


@pytest.mark.parametrize("name", ["exam.csv", MANIFEST, CHECKSUMS, SIGNATURE, "more"])
def test_a_pipe_is_a_finding_and_is_not_waited_for(copied, name):
    folder = copied()
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    assert faults(folder) == {name: "is no file that can be read."}


def test_a_file_too_many_is_named(copied):
    folder = copied()
    (folder / "statistics" / "more.csv").write_text("a\n1\n")
    assert faults(folder) == {"statistics/more.csv": "is not named in SHA256SUMS."}


def test_a_file_that_the_checksums_name_and_the_manifest_does_not_is_found(copied):
    folder = copied()
    (folder / "more.csv").write_text("a\n1\n")
    sealed(folder)
    assert faults(folder) == {MANIFEST: "and the folder disagree on the file more.csv."}


def test_a_signature_by_another_key_is_found_by_whoever_knows_the_right_one(made, copied, tmp_path):
    folder, other = copied(), make_key(tmp_path / "other.pem")

    def claim(manifest):
        manifest["signed_by"] = other.public

    sealed(folder, claim)
    (folder / SIGNATURE).write_text(other.signature_text((folder / CHECKSUMS).read_bytes()))
    assert verified(folder).signed_by == other.public
    assert faults(folder, made.public_key)[SIGNATURE].startswith("is by the key ed25519:")


def test_an_unsigned_bundle_is_refused_where_a_key_is_given(made, copied):
    folder = copied()
    sealed(folder)
    assert faults(folder, made.public_key) == {SIGNATURE: "is missing: the bundle has no signature."}
    with pytest.raises(BundleRefused, match="is no public key"):
        verified(folder, "1f")


def more_epsilon(manifest):
    manifest["guarantee"]["epsilon"] /= 2


def less_noise(manifest):
    for mechanism in manifest["mechanisms"]:
        mechanism["parameters"]["sigma"] = 1.01 * mechanism["parameters"].get("sigma", 1.0)


def cheap_mechanism(manifest):
    manifest["mechanisms"][1]["rho"] /= 2


def left_out(manifest):
    """A mechanism left out, and the guarantee of the others."""
    from fractions import Fraction

    del manifest["mechanisms"][2]
    from dpsynth.accounting.composition import compose
    from dpsynth.accounting.events import from_json
    from dpsynth.accounting.measures import measure_named
    from dpsynth.accounting.neighbours import Neighbours

    published = manifest["guarantee"]
    events = [from_json({"mechanism": m["mechanism"], **m["parameters"]}) for m in manifest["mechanisms"]]
    measure = measure_named(published["accountant"])
    again = compose(events, measure, Fraction(repr(published["delta"])), Neighbours("add_remove"))
    for key in ("epsilon", "delta", "rho", "mu"):
        published[key] = getattr(again, key)


def no_mechanism(manifest):
    manifest["mechanisms"][0]["parameters"] = {"sigma": "much"}


@pytest.mark.parametrize(
    ("change", "file", "words"),
    [
        (more_epsilon, MANIFEST, "states epsilon ="),
        (less_noise, MANIFEST, "whose parameters cost"),
        (cheap_mechanism, MANIFEST, "states rho ="),
        (left_out, "measurements.parquet", "that no mechanism of manifest.json is for"),
        (no_mechanism, MANIFEST, "add up to no guarantee"),
        (lambda m: m.update(synthetic_rows=5), "synthetic", "other rows or columns"),
        (lambda m: m.update(rehearsal="no"), MANIFEST, "doesn't keep to its schema: rehearsal"),
        (lambda m: m.pop("guarantee"), MANIFEST, "doesn't keep to its schema: guarantee: Field required"),
        (
            lambda m: m["columns"][1].update(labels=["1"]),
            MANIFEST,
            "whose labels are not those of its values",
        ),
        (lambda m: m["constraints"]["rules"][0].update(rule="x <"), MANIFEST, "can't be used"),
        (lambda m: m["statistics"][0].update(measured=False), MANIFEST, "measured, or by the model, wrongly"),
    ],
)
def test_a_bundle_that_contradicts_itself_is_found_though_its_seals_are_new(copied, change, file, words):
    folder = copied()
    sealed(folder, change)
    found = faults(folder)
    assert words in found.get(file, ""), found


def better(manifest):
    worst = next(one for one in manifest["verdict"]["pairs"] if one["verdict"] != "use")
    worst["verdict"] = "use"


def better_derived(manifest):
    (derived,) = (one for one in manifest["verdict"]["columns"] if one["columns"] == ["double"])
    derived["verdict"] = "use" if derived["verdict"] != "use" else "don't use"


def flatter(manifest):
    manifest["guarantee"]["profile"][0]["epsilon"] *= 0.9


def milder(manifest):
    manifest["guarantee"]["groups"][0]["epsilon"] *= 0.9


def unrecognised(manifest):
    manifest["guarantee"]["recognition"][-1]["at_most"] *= 0.9


@pytest.mark.parametrize(
    ("change", "what"), [(flatter, "profile"), (unrecognised, "recognition"), (milder, "groups")]
)
def test_a_profile_that_does_not_follow_from_the_mechanisms_is_found(copied, change, what):
    folder = copied()
    sealed(folder, change)
    assert f"states another guarantee.{what} than its mechanisms give." in faults(folder)[MANIFEST]


def smaller(manifest):
    one = max(manifest["verdict"]["pairs"], key=lambda pair: pair["error"])
    one["error"] *= 0.9


def unchanged(manifest):
    (one,) = (one for one in manifest["verdict"]["columns"] if one["columns"] == ["smoker"])
    one["changed"] = 0.5


def milder(manifest):
    manifest["verdict"]["in_words"][0] = "Columns: all use."


def silent(manifest):
    del manifest["verdict"]["pairs"][0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (better, "says use of "),
        (better_derived, "of double; its files give "),
        (smaller, "gives other reasons for its verdict on "),
        (unchanged, "gives other reasons for its verdict on smoker"),
        (milder, "says the verdict in other words than it follows from"),
        (silent, "has verdicts on other columns than the bundle has"),
    ],
)
def test_a_verdict_that_does_not_follow_from_the_bundle_is_found_though_its_seals_are_new(
    copied, change, words
):
    folder = copied()
    sealed(folder, change)
    assert words in faults(folder)[MANIFEST]


def test_an_exam_with_smaller_errors_contradicts_the_verdict(copied):
    folder = copied()
    path = folder / "exam.csv"
    header, *lines = path.read_text().splitlines()
    spot = {name: place for place, name in enumerate(header.split(","))}
    rows = [line.split(",") for line in lines]
    worst = max((row for row in rows if row[0] == "pair"), key=lambda row: int(row[spot["distance"]]))
    less = int(worst[spot["distance"]]) // 2
    worst[spot["distance"]] = str(int(worst[spot["distance"]]) - less)
    of_rows = less / 2 / json.loads((folder / MANIFEST).read_text())["exam"]["rows"]
    for name in ("error", "low", "high"):
        worst[spot[name]] = str(max(float(worst[spot[name]]) - of_rows, 0.0))
    path.write_text("\n".join([header, *map(",".join, rows)]) + "\n")
    sealed(folder)
    assert "its verdict on" in faults(folder)[MANIFEST] or "its files give" in faults(folder)[MANIFEST]


@pytest.mark.parametrize("name", ["basis", "cells", "error", "standard_error", "low", "high"])
def test_a_figure_of_the_exam_that_does_not_follow_from_its_distance_is_found(copied, name):
    path = copied() / "exam.csv"
    header, first, *rest = path.read_text().splitlines()
    cells = first.split(",")
    cells[header.split(",").index(name)] = "independent" if name == "basis" else "0.5"
    path.write_text("\n".join([header, ",".join(cells), *rest, ""]))
    sealed(path.parent)
    assert f"in the column {name} than the measurements give" in faults(path.parent)["exam.csv"]


def test_the_verdict_of_a_good_bundle_is_recomputed(made):
    assert any(
        sentence.startswith("The verdicts on 7 columns and 15 pairs")
        for sentence in verified(made.public).proven
    )


@pytest.mark.parametrize("other", [lambda cell: f"{float(cell) + 1:.4f}", lambda cell: "x"])
def test_a_changed_statistic_is_found_though_its_seals_are_new(copied, other):
    folder = copied()
    path = folder / "statistics" / "one_way-sex.csv"
    lines = path.read_text().splitlines()
    cells = lines[1].split(",")
    cells[1] = other(cells[1])
    path.write_text("\n".join([lines[0], ",".join(cells), *lines[2:]]) + "\n")
    sealed(folder)
    assert "other numbers in the column estimate" in faults(folder)["statistics/one_way-sex.csv"]


def test_rows_that_another_file_of_the_table_does_not_have_are_found(copied):
    folder = copied()
    head, first, *rest = (folder / "synthetic.csv").read_text().splitlines()
    (folder / "synthetic.csv").write_text("\n".join([head, *rest, first, ""]))
    sealed(folder)
    assert "synthetic.csv and synthetic.parquet have different rows" in faults(folder)["synthetic"]


def test_a_changed_measurement_is_found_though_its_seals_are_new(copied):
    folder = copied()
    path = folder / "measurements.parquet"
    table = pq.read_table(path)
    values = table["value"].to_pylist()
    values[3] += 40
    place = table.schema.get_field_index("value")
    changed = table.set_column(place, table.schema.field(place), pa.array(values, pa.int64()))
    pq.write_table(changed, path, compression="zstd")
    sealed(folder)
    assert any("than the measurements give" in words for words in faults(folder).values())


@pytest.mark.parametrize("other", [{"noise": None}, {"scale": 0}, {"scale": 1e200}, {"sums": [2**63]}])
def test_sums_without_noise_that_there_is_are_a_finding_though_their_seals_are_new(copied, other):
    folder = copied()
    described = json.loads((folder / "sums.json").read_text())
    (folder / "sums.json").write_text(json.dumps([described[0] | other, *described[1:]]))
    sealed(folder)
    assert "is damaged" in faults(folder)["sums.json"]


def test_a_bundle_of_an_earlier_version_is_refused_by_its_version(copied):
    folder = copied()
    manifest = json.loads((folder / MANIFEST).read_text()) | {"format": "dpsynth bundle 1"}
    (folder / MANIFEST).write_text(json.dumps(manifest))
    for name in (CHECKSUMS, SIGNATURE, "rows.npz"):
        (folder / name).unlink()
    with pytest.raises(BundleRefused, match="of the format 'dpsynth bundle 1', and this version"):
        verified(folder)


def test_the_manifest_keeps_to_the_schema_and_the_schema_names_all_that_it_has(made):
    manifest = json.loads((made.public / MANIFEST).read_text())
    schema = manifest_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(manifest)
    assert set(manifest) <= set(schema["properties"]), "name the new facts in bundle/manifest.py"


def test_the_schema_in_the_repository_is_that_of_the_code():
    assert (ROOT / "schemas" / "manifest.schema.json").read_text(encoding="utf-8") == schema_text(), (
        "make schema"
    )


def test_a_key_is_never_overwritten_and_only_its_owner_reads_it(tmp_path):
    path = tmp_path / "key.pem"
    made = make_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_key(path).public == made.public
    assert re.fullmatch(r"ed25519:[0-9a-f]{64}", made.public)
    with pytest.raises(DpsynthError, match="never overwritten"):
        make_key(path)
    text = made.signature_text(b"content")
    assert signer_of(b"content", text) == made.public
    assert signer_of(b"contend", text) is None and signer_of(b"content", text.upper()) is None


@pytest.mark.parametrize("content", [None, b"", b"-----BEGIN PRIVATE KEY-----\n", b"\x00" * 50])
def test_a_file_of_something_else_is_no_key(tmp_path, content):
    path = tmp_path / "key.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match="signing key"):
        load_key(path)


def test_the_same_release_has_the_same_signature(made):
    folder = made.public
    text = (folder / SIGNATURE).read_text()
    assert signer_of((folder / CHECKSUMS).read_bytes(), text) == made.public_key


def test_a_link_in_a_bundle_is_followed_to_nothing_private(copied, tmp_path):
    folder = copied()
    shutil.rmtree(folder / "statistics")
    (folder / "statistics").symlink_to(tmp_path / "elsewhere")
    assert faults(folder)


def few_rows(manifest):
    found = manifest["contribution_bounding"]
    found["rows_cut_off"]["low"] = 0.0


def fewer_units(manifest):
    manifest["contribution_bounding"]["units_by_rows"]["units"][1] -= 100


def less_noise(manifest):
    manifest["contribution_bounding"]["units_by_rows"]["scale"] /= 2


def other_ranges(manifest):
    manifest["contribution_bounding"]["units_by_rows"]["from_rows"][1] += 1


def unsaid(manifest):
    manifest["verdict"]["rows"] = ""
    del manifest["verdict"]["in_words"][1]


def wordless(manifest):
    manifest["contribution_bounding"]["in_words"] = "Nothing was cut off."


@pytest.mark.parametrize(
    ("change", "words"),
    some(
        [
            (few_rows, "says other of the rows that were cut off"),
            (fewer_units, "says other of the rows that were cut off"),
            (wordless, "says other of the rows that were cut off"),
            (less_noise, "states other noise of the numbers of persons"),
            (other_ranges, "no figures of the rows that were cut off"),
            (unsaid, "says the verdict in other words"),
        ],
        3,
    ),
)
def test_what_is_said_of_rows_that_were_cut_off_is_recomputed(tmp_path, change, words):
    release = dpsynth.release(log_of(tmp_path, "many"), outputs=tmp_path / "out")
    folder = release.folder / "public"
    assert verified(folder).good
    sealed(folder, change)
    assert words in faults(folder)[MANIFEST]
