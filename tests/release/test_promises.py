"""What a release promises: the guarantee, the number of rows, and what the ledger remembers."""

import base64
import hashlib
import itertools
import json
import re
import zipfile
from pathlib import Path
from typing import NoReturn

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpsynth.accounting.composition import NOTHING
from dpsynth.errors import DpsynthError
from dpsynth.model import load
from dpsynth.pipeline import measuring as counting_engine
from dpsynth.pipeline import spine as pipeline
from tests.release import evidence
from tests.release.keeper import Keeper
from tests.release.place import BY_PERSON, Place, people, release
from tests.thinned import some, thinned

PRIVACY = {
    "gaussian": {"noise": "gaussian", "delta": 1e-6},
    "laplace with delta": {"noise": "laplace", "delta": 1e-6, "accountant": "zcdp"},
    "laplace": {"noise": "laplace", "delta": None},
    "laplace added up plainly": {"noise": "laplace", "delta": 1e-6, "accountant": "sequential"},
}
COMBINATIONS = [
    *itertools.product(("gaussian", "laplace"), ("add_remove", "replace_one"), ("row", "person")),
    ("laplace with delta", "add_remove", "person"),
    ("laplace with delta", "replace_one", "row"),
    ("laplace added up plainly", "add_remove", "row"),
]


@pytest.mark.parametrize(
    ("kind", "relation", "unit", "method"),
    some(
        thinned(
            tuple(PRIVACY),
            ("add_remove", "replace_one"),
            ("row", "person"),
            ("auto", "mst"),
            possible=lambda *case: case[:3] in COMBINATIONS,
            strength=1,
        ),
        2,
    ),
)
def test_the_published_guarantee_is_what_the_journal_adds_up_to(
    keeper: Keeper, place: Place, kind: str, relation: str, unit: str, method: str
) -> None:
    """Hazards 2, 3, 5, 6 and 8: added up here in 60 digits, with this test's own sensitivities."""
    privacy = {**PRIVACY[kind], "neighbours": relation} | (BY_PERSON if unit == "person" else {})
    place.configure(privacy=privacy, structure={"method": method})
    folder = place.folder / keeper.run(place).folder
    found = evidence.records(folder / "private" / "journal.jsonl")
    protection = evidence.Protection(relation == "replace_one", 3 if unit == "person" else 1)
    pure = privacy["delta"] is None or privacy.get("accountant") == "sequential"
    promised = evidence.assert_whole(folder)["guarantee"]
    assert isinstance(promised, dict)
    counted = (None, "zcdp") if pure else ("1e-6", promised["accountant"])
    exact = protection.total(found, *counted)
    assert exact <= promised["epsilon"] <= float(exact) * (1 + 1e-12)
    assert 0.999 < promised["epsilon"] <= 1.0
    assert promised["delta"] == (0.0 if pure else 1e-6)
    assert promised["neighbours"] == relation
    assert ("at most 3" in promised["unit"]) == (unit == "person")
    for seq, charge in enumerate(evidence.charges(found)):
        fewer = [r for r in found if r is not charge]
        assert float(protection.total(fewer, *counted)) < promised["epsilon"], seq
    half = evidence.Protection(relation == "replace_one", 2 if unit == "person" else 1)
    if unit == "person":
        assert float(half.total(found, *counted)) < 0.9 * promised["epsilon"]


def test_the_same_sampling_seed_never_gives_the_same_measurements(keeper: Keeper, place: Place) -> None:
    """Hazard 13."""
    told = []
    for _ in range(2):
        folder = place.folder / keeper.run(place).folder
        told.append([values for _, values in evidence.published_answers(folder / "public")])
    assert all(a != b for a, b in zip(*told, strict=True) if len(a) > 3)
    assert told[0] != told[1]


def hashes_of(raw: bytes) -> set[bytes]:
    """Common digests of a text, as they may stand in a file."""
    digests = [hashlib.new(name, raw).digest() for name in ("md5", "sha1", "sha256", "sha512", "blake2b")]
    return {d.hex().encode() for d in digests} | {base64.b64encode(d) for d in digests} | set(digests)


def holding(public: Path, wanted: set[bytes]) -> list[str]:
    """The public files that hold one of some byte strings."""
    texts = {name: (public / name).read_bytes() for name in evidence.there(public)}
    return [name for name, text in texts.items() if any(digest in text for digest in wanted)]


def test_no_public_file_holds_a_hash_of_the_private_table_or_of_a_row(keeper: Keeper, place: Place) -> None:
    """Hazard 35: a plain hash lets anyone confirm a guess."""
    public = place.folder / keeper.run(place).folder / "public"
    (source,) = place.folder.glob("*.csv")
    raw = source.read_bytes()
    wanted = set().union(*map(hashes_of, (raw, raw.strip(), *raw.splitlines())))
    assert holding(public, wanted) == []
    (public / "README.md").write_bytes(hashlib.sha256(raw).hexdigest().encode())
    assert holding(public, wanted) == ["README.md"]


NUMBER = re.compile(r"(?<![\d.])\d[\d,]*(?![\d.]*\d)")


def numbers_in(public: Path) -> set[int]:
    """Every whole number that stands in a public file."""
    seen: set[int] = set()
    for name in evidence.there(public):
        path = public / name
        if path.suffix == ".parquet":
            for column in pq.read_table(path).columns:
                values = np.array([v for v in column.to_pylist() if isinstance(v, int | float)], dtype=float)
                seen.update(np.rint(values[np.isfinite(values)]).astype(np.int64).tolist())
            seen.add(pq.read_metadata(path).num_rows)
        elif path.name == "rows.npz":
            with np.load(path) as arrays:
                found = [np.ravel(arrays[name]) for name in arrays.files if name != "header.json"]
            header = zipfile.ZipFile(path).read("header.json").decode()
            values = np.concatenate([*found, [float(json.loads(header)["total"])]]).astype(float)
            seen.update(np.rint(values[np.isfinite(values)]).astype(np.int64).tolist())
        elif path.suffix == ".npz":
            model = load(path)
            for values in (model.total, *model.beliefs):
                seen.update(np.rint(np.ravel(values)).astype(np.int64).tolist())
        else:
            text = path.read_text()
            seen.update(int(t.replace(",", "")) for t in NUMBER.findall(text) if len(t) < 15)
            seen.add(len(text.splitlines()) - 1)
    return seen


@pytest.mark.parametrize(
    ("privacy", "exact"),
    some(
        [
            ({"neighbours": "replace_one"}, True),
            ({"neighbours": "add_remove"}, False),
            ({"neighbours": "replace_one", **BY_PERSON}, False),
        ],
        1,
    ),
    ids=["rows exchanged", "rows added", "persons exchanged"],
)
def test_the_number_of_rows_is_public_only_where_neighbours_have_the_same(
    keeper: Keeper, place: Place, privacy: dict[str, object], exact: bool
) -> None:
    """Hazard 21: a number that stands in each of four bundles by chance is one in millions."""
    count = 1511
    place.table([(f"only{i}", *row[1:]) for i, row in enumerate(people(count))])
    place.configure(privacy={"epsilon": 0.2, **privacy})
    publics = [place.folder / keeper.run(place).folder / "public" for _ in range(4)]
    always = set.intersection(*map(numbers_in, publics))
    assert (count in always) == exact
    totals = [json.loads((p / "manifest.json").read_text())["synthetic_rows"] for p in publics]
    assert (set(totals) == {count}) == exact
    measured = [pq.read_table(p / "measurements.parquet").to_pylist() for p in publics]
    total = {(r["noise"], r["scale"]) for table in measured for r in table if r["columns"] == []}
    assert (total == {("none", 0.0)}) == exact


def test_the_ledger_lets_two_releases_through_and_refuses_the_third(keeper: Keeper, place: Place) -> None:
    """Hazard 31: what was spent outlives the process."""
    place.configure(ledger={"cap": {"epsilon": 2.5}, "filter": "sequential"})
    for spent in (1.0, 2.0):
        assert keeper.run(place).code == 0
        balance = place.balance
        assert balance is not None and 0.999 * spent < balance.epsilon_used <= spent
        assert {entry.state for entry in balance.releases} == {"closed"}
    before, balance = place.files, place.balance
    third = keeper.run(place)
    assert third.code == 3 and third.out == "" and third.err.count("\n") == 1
    assert (place.files, place.balance) == (before, balance)
    assert not list(place.folder.glob("outputs/people/.*"))


def failing(*_: object) -> NoReturn:
    raise ValueError("a cell")


FAILING = [
    *("measure_one_way", "fit_model", "write", "settle"),
    *(pytest.param(step, marks=pytest.mark.slow) for step in ("select", "tabulate", "publish")),
]


@pytest.mark.parametrize("step", some(FAILING, 2))
def test_a_failure_after_the_first_charge_gives_nothing_back(
    place: Place, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Hazard 30; and the release can be finished when the cause is gone."""
    inner = getattr(pipeline, step)

    def half(*arguments: object) -> NoReturn:
        if step in ("measure_one_way", "select"):
            inner(*arguments)
        failing()

    monkeypatch.setattr(pipeline, step, half)
    with pytest.raises(DpsynthError, match=r"ValueError; details withheld.*resume='\S+'$") as caught:
        release(place)
    name = str(caught.value).split("'")[-2]
    balance = place.balance
    assert balance is not None
    (entry,) = balance.releases
    assert entry.state == ("closed" if step == "publish" else "reserved")
    assert 0.999 < entry.cost.amount.epsilon <= 1 and entry.reserved.amount.epsilon == 1
    assert entry.state == "closed" or entry.cost == entry.reserved
    monkeypatch.setattr(pipeline, step, inner)
    done = release(place, resume=name)
    evidence.assert_whole(done.folder)
    assert (done.release_id, place.ledger.state(name)) == (name, "closed")


def test_a_failure_before_the_first_charge_costs_and_leaves_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting_engine, "load_rows", failing)
    with pytest.raises(DpsynthError, match="ValueError; details withheld"):
        release(place)
    balance = place.balance
    assert balance is not None and balance.share_used == 0
    assert [(r.state, r.cost) for r in balance.releases] == [("abandoned", NOTHING)]
    assert place.files == set() and not list(place.folder.glob("outputs/people/.*"))
