"""Which earlier releases serve as evidence, that they stay the same, and what is said of them."""

import json
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import planned
from dpsynth.accounting.measures import PURE
from dpsynth.accounting.slices import Slice, span_of
from dpsynth.bundle import compute_statistics
from dpsynth.bundle.explanation import Words, assumption
from dpsynth.columns.statistic_kinds import Crosstab
from dpsynth.errors import ConfigError
from dpsynth.ledger.balance import Balance, CapChange, ReleaseEntry, ReleaseFacts
from dpsynth.model import LeastSquares
from dpsynth.model.measurement_file import Answered
from dpsynth.pipeline.earlier_releases import (
    MOST_PERIODS,
    EarlierRelease,
    Reused,
    answers_of,
    earlier_releases,
    weighted_evidence,
)
from dpsynth.statistics.sources import Sources
from tests.bundle.conftest import write_bundle

TODAY = date(2026, 5, 1)
COST = planned(PURE, "laplace", Fraction(1, 2), Amount(Fraction(1, 2), Fraction(1, 10**8)))


def slice_of(label: str, column: str = "seen") -> Slice:
    return Slice(column, label, *(span_of(label) or (None, None)))


def entry(
    release_id: str, part: Slice | None, state: str = "closed", release: str = "monthly"
) -> ReleaseEntry:
    occasion = None if part is None else part.label
    facts = ReleaseFacts(release_id, "people", release, "spec", occasion, part)
    return ReleaseEntry(**vars(facts), state=state, reserved=COST, cost=COST, created=TODAY)  # type: ignore[arg-type]


def account(*entries: ReleaseEntry) -> Balance:
    cap = (CapChange(Amount(Fraction(9), Fraction(1, 10**6)), TODAY),)
    return Balance("people", "one row", "add_remove", PURE, cap, entries, TODAY)


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    return tmp_path / "outputs"


@pytest.fixture
def found(outputs, publication):
    """Looks for evidence among releases whose bundles are all there."""

    def look(part, *entries, same=False, earlier=False, columns=publication.columns, missing=()):
        for e in entries:
            folder = outputs / e.release / e.release_id / "public"
            if e.release_id not in missing and not folder.exists():
                folder.mkdir(parents=True)
                # Numbers of its own for each, so that one can't be taken for another.
                singles = (replace(publication.singles[0], scale=2.0 + len(list(outputs.rglob("public")))),)
                of = replace(publication, singles=(*singles, *publication.singles[1:]), formats=("csv",))
                write_bundle(folder, of)
        return earlier_releases(
            account(*entries),
            Amount(Fraction(1, 4), Fraction(0)),
            part,
            columns,
            outputs,
            same_period=same,
            earlier_periods=earlier,
        )

    return look


MARCH = slice_of("2026-03")


def ids(reused: Reused) -> list[tuple[str, int]]:
    return [(r.release_id, r.periods) for r in reused.releases]


def test_answers_about_the_same_slice_are_those_of_closed_releases_of_it(found):
    entries = (
        entry("r1", MARCH),
        entry("r2", MARCH, "reserved"),
        entry("r3", MARCH, "abandoned"),
        entry("r4", slice_of("2026-02")),
        entry("r5", slice_of("2026-03", "born")),
        entry("r6", None),
        entry("r7", slice_of("2026-Q1")),
        entry("r8", MARCH, release="other"),
    )
    reused, left_out = found(MARCH, *entries, same=True)
    assert ids(reused) == [("r1", 0), ("r8", 0)] and left_out == ()
    assert ids(found(MARCH, *entries)[0]) == []
    assert ids(found(None, *entries, same=True)[0]) == [], "rows of a whole table may have changed"


def test_earlier_periods_are_counted_back_from_the_last_and_later_ones_are_none(found):
    months = ["2026-01", "2026-04", "2025-12", "2026-02", "2026-03", "2025-11"]
    entries = [entry(f"r{m}", slice_of(m)) for m in months]
    entries += [
        entry("again", slice_of("2026-01"), release="other"),
        entry("open", slice_of("2025-10"), "reserved"),
    ]
    entries += [
        entry("q", slice_of("2026-Q1")),
        entry("q4", slice_of("2025-Q3")),
        entry("b", slice_of("2025-09", "b")),
    ]
    reused, _ = found(MARCH, *entries, earlier=True)
    expected = [("r2026-02", 1), ("again", 2), ("r2026-01", 2), ("r2025-12", 3), ("r2025-11", 4), ("q4", 5)]
    assert ids(reused) == expected
    both, _ = found(MARCH, *entries, earlier=True, same=True)
    assert ids(both) == [("r2026-03", 0), *expected]


def test_of_values_and_of_whole_tables_those_released_before_are_earlier(found):
    entries = [
        entry("a", slice_of("north", "region")),
        entry("b", slice_of("south", "region")),
        entry("c", None),
    ]
    entries += [entry("d", slice_of("north", "region"), release="other"), entry("e", None), entry("f", MARCH)]
    assert ids(found(slice_of("east", "region"), *entries, earlier=True)[0]) == [("d", 1), ("b", 2), ("a", 1)]
    assert ids(found(None, *entries, earlier=True)[0]) == [("e", 1), ("c", 2)]


def test_no_more_than_the_last_periods_are_looked_back_at(found):
    labels = [f"{2000 + m // 12}-{m % 12 + 1:02}" for m in range(MOST_PERIODS + 3)]
    reused, _ = found(MARCH, *(entry(f"r{m}", slice_of(m)) for m in labels), earlier=True)
    assert [r.periods for r in reused.releases] == list(range(1, MOST_PERIODS + 1))
    assert reused.releases[-1].release_id == f"r{labels[3]}"


def test_bundles_that_are_gone_other_or_not_what_their_manifest_says_are_left_out_and_named(
    found, outputs, publication
):
    entries = [entry("gone", MARCH), entry("edited", MARCH), entry("good", MARCH), entry("bare", MARCH)]
    found(MARCH, *entries, same=True, missing=("gone",))
    edited = outputs / "monthly" / "edited" / "public" / "measurements.parquet"
    edited.write_bytes((outputs / "monthly" / "good" / "public" / "measurements.parquet").read_bytes())
    (outputs / "monthly" / "bare" / "public" / "manifest.json").write_text("{")
    reused, left_out = found(MARCH, *entries, same=True, missing=("gone",))
    assert ids(reused) == [("good", 0)]
    assert [name for s in left_out for name in ("gone", "edited", "bare") if f" {name} " in s] == [
        "gone",
        "edited",
        "bare",
    ]
    assert "can't be opened" in left_out[0] and "manifest says" in left_out[1]
    none, why = found(MARCH, entries[2], same=True, columns=publication.columns[1:])
    assert ids(none) == [] and "other columns" in why[0]


def test_a_release_that_goes_on_has_the_evidence_it_began_with_or_stops(found, outputs, publication):
    """Planted: the bundle of another release in its place, sound in itself."""
    entries = [entry("r1", MARCH), entry("r2", slice_of("2026-02")), entry("r3", slice_of("2026-01"))]
    reused, _ = found(MARCH, *entries, same=True, earlier=True)
    again = Reused.from_journal(json.loads(json.dumps(reused.to_journal())))
    assert again == reused
    first = answers_of(again, publication.columns, outputs)
    assert [a.singles[0].scale for a in first] == [3.0, 4.0, 5.0]
    place = outputs / "monthly" / "r2" / "public"
    place.rename(place.with_name("aside"))
    with pytest.raises(ConfigError, match=r"r2 as evidence.*can't be opened.*Put .* back"):
        answers_of(again, publication.columns, outputs)
    (outputs / "monthly" / "r3" / "public").rename(place)
    with pytest.raises(ConfigError, match="not what it was"):
        answers_of(again, publication.columns, outputs)


def test_where_no_evidence_is_wanted_there_is_none(publication, outputs):
    assert Reused.from_journal(None) is None
    assert answers_of(None, publication.columns, outputs) == ()
    evidence, reused = weighted_evidence(None, (), publication.columns, publication.singles)
    assert reused is None and evidence.columns == () and evidence.direct() == ()


def answered(publication, seed, shift=0) -> Answered:
    rng = np.random.default_rng(seed)
    singles = tuple(
        replace(m, values=m.values + shift + np.rint(rng.normal(0, 2.5, m.values.shape)).astype(np.int64))
        for m in publication.singles
    )
    return Answered(singles, publication.answers, publication.compression)


def releases(*periods: int) -> Reused:
    listed = tuple(
        EarlierRelease("monthly", f"r{i}", slice_of(f"2026-0{9 - p}"), p, "0" * 64)
        for i, p in enumerate(periods)
    )
    return Reused(listed, (0.75, 1e-6))


def test_answers_said_to_be_about_the_same_rows_are_left_out_where_they_can_not_be(publication):
    """Planted: a slice to which rows were added since."""
    told = [answered(publication, 1), answered(publication, 2, shift=60), answered(publication, 3, shift=60)]
    evidence, reused = weighted_evidence(releases(0, 0, 1), told, publication.columns, publication.singles)
    assert reused.differing == {"r1"}
    assert evidence.same == (told[0],) and [a for _, a in evidence.before] == [told[2]]
    words = " ".join(Words.of(replace(publication, reused=reused)).reuse)
    assert "r0 (2026-09), about the same rows, were averaged in" in words
    assert "r1 (2026-09), said to be about the same rows, were left out" in words
    assert [r["use"] for r in reused.to_json()["releases"]] == [
        "averaged in",
        "left out: answers differ",
        "in the model, at a discount",
    ]


def test_all_that_is_published_says_what_it_builds_on(written, publication):
    """The guarantee of a bundle made from earlier answers too is not this release's epsilon alone."""
    reused = replace(releases(0, 1, 2), cliques=((publication.columns[0].name, publication.columns[3].name),))
    folder = written(reused=reused)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    told = manifest["earlier_releases"]
    assert [r["release_id"] for r in told["releases"]] == ["r0", "r1", "r2"]
    assert [r["periods_ago"] for r in told["releases"]] == [0, 1, 2]
    assert {r["measurements_sha256"] for r in told["releases"]} == {"0" * 64}
    assert told["measured_together"] == [["age", "pay"]]
    assert told["all_releases_so_far"] == {"epsilon": 0.75, "delta": 1e-6}
    (said,) = [s for s in manifest["guarantee"]["in_words"] if "builds on the published answers" in s]
    assert "not by this one alone" in said and "0.75" in said
    for page in ("README.md", "report.html"):
        text = " ".join((folder / page).read_text(encoding="utf-8").replace("&#39;", "'").split())
        assert "not by this one alone" in text and "were averaged in" in text
        assert "rests on answers about earlier periods too" in text
    alone = written()
    assert json.loads((alone / "manifest.json").read_text(encoding="utf-8"))["earlier_releases"] is None
    for page in ("README.md", "report.html", "manifest.json"):
        assert "earlier release" not in (alone / page).read_text(encoding="utf-8")


def test_only_this_releases_answers_are_in_its_file_so_that_none_is_counted_twice(written, publication):
    facts = (written(reused=releases(0, 1)), written())
    files = [(folder / "measurements.parquet").read_bytes() for folder in facts]
    assert files[0] == files[1]


def test_tables_by_a_model_of_earlier_periods_say_so_and_measured_ones_do_not(publication):
    direct = LeastSquares(publication.model.tree.domain, publication.singles)
    tables = {
        earlier: compute_statistics(
            [Crosstab(crosstab=("age", "pay"))],
            Sources(
                publication.columns,
                direct,
                publication.model,
                basis=f"model{' with earlier periods' * earlier}",
            ),
        )
        for earlier in (False, True)
    }
    assert {t.table["basis"][0].as_py() for t in tables[True][:-1]} == {"measured"}
    assert set(tables[True][-1].table["basis"].to_pylist()) == {"model with earlier periods"}
    assert set(tables[False][-1].table["basis"].to_pylist()) == {"model"}
    table = tables[True][-1]
    assert "by earlier releases only" in assumption(table, (("age", "x"),), (("pay", "age"),))
    assert "through x" in assumption(table, (("age", "x"),), (("pay", "x"),))
    assert "taken to be independent" in assumption(table, (("age", "x"),))
