"""A bundle is opened by its public folder alone, and gives back what was published; others are refused."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth.bundle.recipient import BundleRefused, open_bundle
from dpsynth.errors import DpsynthError
from dpsynth.model.storage import opened, save_arrays
from tests.examples import cases

PAGE = Path(__file__).parents[3] / "docs" / "recipients.md"


def test_a_bundle_gives_back_the_release(made):
    bundle, release = open_bundle(made.release.folder), made.release
    pd.testing.assert_frame_equal(bundle.synthetic, release.synthetic)
    assert list(bundle.statistics) == list(release.statistics)
    for title, found in bundle.statistics.items():
        wanted = release.statistics[title]
        assert found.columns.tolist() == wanted.columns.tolist()
        assert found.attrs == wanted.attrs
        # A file has nine digits of its largest number.
        last = 1e-8 * float(wanted["estimate"].abs().max())
        np.testing.assert_allclose(found["estimate"], wanted["estimate"], rtol=1e-6, atol=last)
        first = wanted.columns[0]
        if first != "estimate":
            assert found[first].tolist() == wanted[first].tolist()
    assert bundle.model.fingerprint() == release.rows.model.fingerprint()
    found, own = bundle.rows.layout, release.rows.layout
    assert found.parts == own.parts == bundle.layout.with_density(release.rows.densities).parts
    assert [(d.first, d.second, d.counts.tolist()) for d in found.joint] == [
        (d.first, d.second, d.counts.tolist()) for d in own.joint
    ]
    assert bundle.rules == release.rows.rules
    assert bundle.manifest["release_id"] == release.release_id


def test_rows_of_a_bundle_are_those_of_the_release(made):
    bundle, release = open_bundle(made.public), made.release
    assert bundle.rows.seeded(50, 3).equals(release.rows.seeded(50, 3))
    kept, own = bundle.rows.wanted, release.rows.wanted
    assert (kept.pairs, kept.variances, kept.total) == (own.pairs, dict(own.variances), own.total)
    assert kept.counts.keys() == own.counts.keys()
    for pair, counts in own.counts.items():
        np.testing.assert_array_equal(kept.counts[pair], counts)


@pytest.mark.skipif(not PAGE.is_file(), reason="the pages are those of a checkout")
def test_a_bundle_has_all_that_the_page_for_recipients_names(made):
    names = set(re.findall(r"\bbundle\.(\w+)", PAGE.read_text(encoding="utf-8")))
    assert len(names) >= 11
    bundle = open_bundle(made.public)
    assert [name for name in sorted(names) if not hasattr(bundle, name)] == []


def test_nothing_private_is_read(made, copied):
    folder = copied()
    assert not (folder.parent / "private").exists()
    bundle = open_bundle(folder)
    assert len(bundle.synthetic) == len(made.release.synthetic)
    assert not bundle.measurements.empty and bundle.verify().good


@pytest.mark.parametrize("name", ["nothing", "empty"])
def test_a_folder_without_a_bundle_is_refused(tmp_path, name):
    (tmp_path / "empty").mkdir()
    with pytest.raises(BundleRefused, match=r"is no bundle: it has no manifest\.json"):
        open_bundle(tmp_path / name)


def test_a_bundle_of_an_earlier_version_is_refused_with_the_version_that_reads_it(copied):
    path = copied() / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"format": "dpsynth bundle 1"}))
    words = "format 'dpsynth bundle 1', and this version of dpsynth reads .* written by dpsynth 0.1.0"
    with pytest.raises(BundleRefused, match=words):
        open_bundle(path.parent)


@pytest.mark.parametrize("content", ["", "[]", "{", "[" * 10_000, "\x00", '{"format": "dpsynth bundle 2"}'])
def test_a_manifest_of_something_else_is_refused(copied, content):
    path = copied() / "manifest.json"
    path.write_text(content)
    with pytest.raises(BundleRefused):
        _ = open_bundle(path.parent).layout


FILES = ("manifest.json", "model.npz", "rows.npz", "measurements.parquet", "synthetic.parquet")


def everything(folder: Path) -> None:
    bundle = open_bundle(folder)
    for part in ("layout", "rules", "model", "rows", "answers", "statistics", "synthetic"):
        getattr(bundle, part)


def test_a_damaged_file_gives_a_plain_error_or_means_something(copied):
    folder, chance = copied(), np.random.default_rng(5)
    for _ in range(cases(400, part=32)):
        path = folder / FILES[chance.integers(len(FILES))]
        whole = path.read_bytes()
        at = int(chance.integers(len(whole)))
        torn = whole[:at] if chance.random() < 0.2 else whole[:at] + chance.bytes(1) + whole[at + 1 :]
        path.write_bytes(torn)
        try:
            everything(folder)
        except DpsynthError as error:
            assert "\n" not in str(error)
        path.write_bytes(whole)
    everything(folder)


@pytest.mark.parametrize("name", FILES)
def test_half_a_file_is_refused_by_its_name(copied, name):
    path = copied() / name
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DpsynthError, match=name.replace(".", r"\.")):
        everything(path.parent)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"format": "other"}, "its format is not"),
        ({"version": 2}, "its version is 2; this program reads version 1"),
        ({"more": 1}, "its header must have"),
        ({"total": 0}, "total is not a number of rows"),
        ({"total": float("nan")}, "total is not a number of rows"),
        ({"pairs": [["age", "nobody"]]}, "its pairs name no columns"),
        ({"pairs": [["age"]]}, "not sets of two to five columns"),
        ({"pairs": 3}, "its pairs are not a list"),
        ({"measured": [["age", "smoker", "sex"]]}, "measured pairs are not among"),
        ({"variances": [["age", "sex", -1.0]]}, "variances are not numbers"),
        ({"values_of": {"age": ["sex"]}}, "values_of are wrong"),
        ({"values_of": {"age": "age"}}, "its groups are too many"),
        ({"fixed": [["age"]]}, "its fixed are not lists of names"),
        ({"zeros": [["age", "age"]]}, "zeros name no columns of the model, or one twice"),
        ({"densities": {"sex": 1.0}}, "not those of columns of numbers"),
        ({"joint_densities": [["age", "sex"]]}, "joint densities are not of pairs"),
        ({"joint_densities": [["age"]]}, "joint densities are not of pairs"),
        ({"public_marginals": [{"columns": ["age"]}]}, "public_marginals are not described"),
    ],
)
def test_a_source_of_rows_of_another_model_is_refused(made, copied, changes, complaint):
    path = copied() / "rows.npz"
    header, arrays = parts(path, open_bundle(made.public))
    save_arrays(path, header | changes, arrays)
    with pytest.raises(DpsynthError, match=complaint):
        _ = open_bundle(path.parent).rows


def parts(path, bundle):
    """The header and the arrays of a file."""
    from dpsynth.bundle.row_source import _Header

    with opened(path, "a source of rows") as content:
        domain = bundle.model.tree.domain
        members = _Header.of(content.header, domain, bundle.layout).members(domain, bundle.layout)
        arrays = content.arrays(members)
    return content.header, {m.name: a for m, a in zip(members, arrays, strict=True)}


@pytest.mark.parametrize("number", [np.nan, -1.0, np.inf, 1e300])
def test_targets_that_are_no_counts_are_refused(made, copied, number):
    path = copied() / "rows.npz"
    header, arrays = parts(path, open_bundle(made.public))
    counts = arrays["counts_0"].copy()
    counts.flat[0] = number
    save_arrays(path, header, arrays | {"counts_0": counts})
    with pytest.raises(DpsynthError, match="are no counts"):
        _ = open_bundle(path.parent).rows
