"""Views of older disclosure control keep what they say, and a stranger finds where one doesn't."""

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from dpsynth.bundle.recipient import open_bundle
from dpsynth.bundle.recipient.verification import verified
from dpsynth.wings.proof.disclosure.views import ADDS_NOTHING
from tests.bundle.recipient.test_verify import faults, sealed
from tests.thinned import some

BY_CITY = "views/counts-age-city.csv"
ANONYMOUS = "views/k_anonymous.csv"


def rows_of(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def changed(folder: Path, name: str, change: Callable[[list[dict[str, str]]], None]) -> dict[str, str]:
    """The findings in a bundle whose view was changed and sealed again."""
    rows = rows_of(folder, name)
    change(rows)
    with (folder / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)

    def recounted(manifest):
        if name == ANONYMOUS:
            facts = manifest["views"]["k_anonymous"]
            facts["rows"], facts["rows_left_out"] = len(rows), manifest["synthetic_rows"] - len(rows)
        for facts in manifest["views"]["counts"]:
            if facts["file"] == name:
                facts["counts_left_out"] = sum(row["rows"] == "" for row in rows)

    sealed(folder, recounted)
    return faults(folder)


def test_a_bundle_with_views_says_what_was_proven_of_them(made):
    proven = " ".join(verified(made.public).proven)
    assert "so that linear programming computes none of them" in proven
    assert "each combination of age, sex, city is in 5 rows or more, and 2 values of =pay ü" in proven
    assert proven.count("adds nothing to the guarantee") == 2


def test_manifest_report_and_readme_say_that_views_add_nothing(made):
    manifest = json.loads((made.public / "manifest.json").read_text())
    assert manifest["views"]["adds_to_the_guarantee"] == ADDS_NOTHING
    for page in ("report.html", "README.md"):
        assert ADDS_NOTHING in (made.public / page).read_text(encoding="utf-8")
    croissant = json.loads((made.public / "croissant.json").read_text())
    named = {file["name"] for file in croissant["distribution"]}
    assert {BY_CITY, "views/counts-sex-age.csv", ANONYMOUS} <= named <= manifest["files"].keys()


def test_counts_are_those_of_the_synthetic_rows_and_small_ones_are_left_out(made):
    synthetic = rows_of(made.public, "synthetic.csv")
    by_age = Counter(min(int(row["age"]) // 10, 8) for row in synthetic)
    view = rows_of(made.public, "views/counts-sex-age.csv")
    ages = {row["age"]: row["rows"] for row in view if not row["sex"] and row["age"]}
    assert len(ages) == 9
    for number, shown in enumerate(ages.values()):
        assert shown == "" or int(shown) == by_age[number]
    assert view[-1] == {"sex": "", "age": "", "rows": str(len(synthetic))}
    shown = [int(row["rows"]) for row in rows_of(made.public, BY_CITY) if row["rows"]]
    assert all(count == 0 or count >= 20 for count in shown)
    assert any(row["rows"] == "" for row in rows_of(made.public, BY_CITY))


def test_the_table_is_k_anonymous_and_l_diverse_by_brute_force(made):
    groups = defaultdict(list)
    for row in rows_of(made.public, ANONYMOUS):
        groups[row["age"], row["sex"], row["city"]].append(
            row["=pay ü"] if "=pay ü" in row else row["'=pay ü"]
        )
    assert groups
    assert all(len(pay) >= 5 and len(set(pay)) >= 2 for pay in groups.values())


def test_columns_computed_from_quasi_identifiers_are_left_out(made):
    names = rows_of(made.public, ANONYMOUS)[0].keys()
    assert "double" not in names and "id" in names
    facts = open_bundle(made.public).manifest["views"]["k_anonymous"]
    assert facts["columns_left_out"] == ["double"]


def first(rows: list[dict[str, str]], **wanted: bool) -> dict[str, str]:
    return next(row for row in rows if (row["rows"] == "") is wanted["hidden"])


def raised(rows):
    row = first(rows, hidden=False)
    row["rows"] = str(int(row["rows"]) + 10)


def filled(rows):
    first(rows, hidden=True)["rows"] = "900"


def relabelled(rows):
    rows[0]["age"] = rows[-2]["age"] + "0"


@pytest.mark.parametrize(
    ("change", "words"), [(raised, "other counts"), (filled, "other counts"), (relabelled, "other labels")]
)
def test_a_changed_view_of_counts_would_be_seen(copied, change, words):
    found = changed(copied(), BY_CITY, change)
    assert words in found[BY_CITY]


def test_a_count_that_is_shown_though_it_is_small_would_be_seen(copied):
    folder = copied()
    bundle = open_bundle(folder)
    true = Counter(zip(bundle.synthetic["age"] // 10, bundle.synthetic["city"].fillna("?"), strict=True))
    order = rows_of(folder, BY_CITY)
    ages = list(dict.fromkeys(row["age"] for row in order))

    def shown(rows):
        for row in rows:
            small = true[min(ages.index(row["age"]), 8), row["city"]]
            if row["rows"] == "" and row["age"] and row["city"] and 0 < small < 20:
                row["rows"] = str(small)
                return
        raise AssertionError("no small count is left out")

    assert "shows a count from 1 to below 20" in changed(folder, BY_CITY, shown)[BY_CITY]


def cut(rows):
    """All but two rows of one group are removed."""
    key = [rows[0][name] for name in ("age", "sex", "city")]
    members = [row for row in rows if [row[name] for name in ("age", "sex", "city")] == key]
    for row in members[2:]:
        rows.remove(row)


def narrowed(rows):
    rows[0]["age"] = "33 to 34"


def another(rows):
    rows[0]["smoker"] = "yes" if rows[0]["smoker"] == "no" else "no"


@pytest.mark.parametrize(
    ("change", "words"),
    [(cut, "fewer than 5 rows"), (narrowed, "fewer than 5 rows"), (another, "is not the synthetic table")],
)
def test_a_changed_k_anonymous_table_would_be_seen(copied, change, words):
    assert words in changed(copied(), ANONYMOUS, change)[ANONYMOUS]


@pytest.mark.parametrize(
    "change",
    some(
        [
            lambda views: views.update(suppress_below=None),
            lambda views: views.update(
                counts=[{"file": "../x.csv", "columns": ["age"], "counts_left_out": 0}]
            ),
            lambda views: views["counts"][0].update(columns=["nobody"]),
            lambda views: views["k_anonymous"].update(quasi_identifiers=["nobody"]),
            lambda views: views["k_anonymous"].update(rows=1),
            lambda views: views["k_anonymous"]["generalised"]["age"].update(groups=["*"]),
            lambda views: views.update(rounding={"base": 3, "method": "nearest"}),
        ],
        4,
    ),
)
def test_a_manifest_that_describes_other_views_would_be_seen(copied, change):
    folder = copied()
    sealed(folder, lambda manifest: change(manifest["views"]))
    assert faults(folder)
