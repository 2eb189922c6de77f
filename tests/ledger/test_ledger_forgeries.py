"""Rows that make no sense are refused, though whoever wrote them knew how to hash them."""

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dpsynth.accounting.amount import Amount
from dpsynth.errors import DpsynthError
from dpsynth.ledger.chain import Row
from dpsynth.ledger.ledger import Ledger
from tests.ledger.forging import Rows, chained_anew, seven_rows, store
from tests.ledger.reservations import USES, account, asking, cost, month
from tests.thinned import some

Forgery = Callable[[Rows], Rows]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")


def adding(place: int, **changes: object) -> Forgery:
    """A copy of a row is added at the end, with some of its cells changed."""
    return lambda rows: [*rows, replace(rows[place - 1], **changes)]  # type: ignore[arg-type]


def telling(place: int, **facts: object) -> Forgery:
    """A row says something else."""
    return lambda rows: [*rows[: place - 1], with_facts(rows[place - 1], **facts), *rows[place:]]


def costing(place: int, **figures: object) -> Forgery:
    """A row says another cost."""
    return lambda rows: [*rows[: place - 1], with_cost(rows[place - 1], **figures), *rows[place:]]


def with_facts(row: Row, **facts: object) -> Row:
    content = {**json.loads(row.content), **facts}
    return replace(row, content=json.dumps({key: value for key, value in content.items() if value != "gone"}))


def with_cost(row: Row, **figures: object) -> Row:
    return with_facts(row, cost={**json.loads(row.content)["cost"], **figures})


UNREADABLE = "can't be read"
NONE_OF_THESE = ("1e999999999", "1/0", "-1", "", "0.1", "nan", "1" + "0" * 5000, 1, 0.5, None, " 1", "1/-1")

FORGERIES: dict[str, tuple[Forgery, str]] = {
    "an end of nothing": (adding(5, release_id="r9"), "row 8: it ends release r9, which is not under way"),
    "a second end": (adding(5), "row 8: it ends release r2, which is not under way"),
    "an end for more": (
        costing(5, epsilon="11/100"),
        "row 5: it charges release r2 with more than it reserved",
    ),
    "an end for who knows": (costing(5, half_mu_squared=None), "row 5: it charges release r2 with more than"),
    "a dataset twice": (adding(1), "row 8: it opens the dataset 'people' a second time"),
    "no dataset": (
        adding(2, dataset="others"),
        "row 8: it is about the dataset 'others', which no row before it",
    ),
    "a release twice": (adding(2), "row 8: it reserves for release r1 a second time"),
    "a release in two datasets": (
        lambda rows: adding(2, dataset="others")(adding(1, dataset="others")(rows)),
        "row 9: it reserves for release r1 a second time",
    ),
    "a date before": (adding(7, created="2020-01-01"), "row 8: it is dated before the row before"),
    "a date in other words": (adding(7, created="20300101"), "row 8: it has no plain date"),
    "no date": (adding(7, created="soon"), f"row 8: it {UNREADABLE}"),
    "no kind": (adding(7, kind="gift"), "row 8: it is of no known kind"),
    "no content": (adding(7, content=""), f"row 8: it {UNREADABLE}"),
    "a list": (adding(7, content="[1]"), "row 8: it has no content"),
    "a deep list": (adding(7, content="[" * 100_000), f"row 8: it {UNREADABLE}"),
    "a long number": (adding(7, content='{"cap": 1' + "0" * 5000 + "}"), f"row 8: it {UNREADABLE}"),
    "the cap of a release": (adding(7, release_id="r1"), "row 8: it is not about what its kind is about"),
    "a release without a name": (adding(2, release_id=None), "row 8: it is not about what its kind is about"),
    "half a cap": (telling(7, cap={"epsilon": "1"}), f"row 7: it {UNREADABLE}"),
    "a cap that is a number": (telling(7, cap=7), "row 7: it has no cap that can be read"),
    "a cap that caps nothing": (
        telling(7, cap={"epsilon": "1", "delta": "1"}),
        "row 7: it has a cap that the filter",
    ),
    "no reason": (telling(7, reason=None), "row 7: it has no reason that can be read"),
    "half a part": (telling(2, part={"column": "day"}), f"row 2: it {UNREADABLE}"),
    "parallel to what": (telling(2, parallel=True), "row 2: it reserves for a part and names none"),
    "almost true": (telling(2, parallel=1), "row 2: it has no parallel that can be read"),
    "no release": (telling(2, release="gone"), f"row 2: it {UNREADABLE}"),
    "no events": (telling(5, events=[1]), "row 5: it has events that are none"),
    "no filter": (telling(1, filter="best"), "row 1: it names no known filter"),
    "no unit": (telling(1, unit=None), "row 1: it has no unit that can be read"),
    "a filter without delta": (
        telling(1, filter="gdp", cap={"epsilon": "1", "delta": "0"}),
        "row 1: it has a cap that the filter can't keep to",
    ),
    "no mu": (
        lambda rows: costing(2, half_mu_squared=None)(telling(1, filter="gdp")(rows)),
        "row 2: it costs what the filter can't count",
    ),
    "a part of a table of fixed size": (
        lambda rows: telling(1, neighbours="replace_one")(
            telling(2, parallel=True, part=month("2026-01").to_json())(rows)
        ),
        "row 2: it counts for a part only, under replace_one",
    ),
    **{
        f"epsilon {e!r:.9}": (telling(7, cap={"epsilon": e, "delta": "0"}), "row 7: it ")
        for e in NONE_OF_THESE
    },
}


@pytest.mark.parametrize("name", some(list(FORGERIES), 16))
def test_rows_that_make_no_sense_are_refused_though_their_hashes_are_right(ledger: Ledger, name: str) -> None:
    rows = seven_rows(ledger)
    forge, said = FORGERIES[name]
    store(ledger, chained_anew(forge(rows)))
    first = ledger.verify().problems[0]
    assert first.startswith(said)
    for use in USES:
        with pytest.raises(DpsynthError) as error:
            use(ledger)
        assert f"is damaged at {first}. Restore it from a copy" in str(error.value)
    # The planted fault: the same rows as they were, put in place in the same way, are not refused.
    store(ledger, chained_anew(rows))
    assert ledger.verify().problems == () and account(ledger).releases[1].cost == cost("0.05")


@pytest.mark.parametrize("parallel", [False, True])
def test_a_reservation_that_the_cap_of_its_time_did_not_allow_is_found(
    ledger: Ledger, parallel: bool
) -> None:
    part = {"part": month("2026-01"), "parallel": parallel}
    ledger.reserve(asking("r1", "0.5", **part))
    ledger.reserve(asking("r2", "0.5", **part))
    ledger.settle("r1", cost("0.2"), [])
    ledger.change_cap("people", Amount(Fraction(3, 5)), "less")
    ledger.settle("r2", cost("0.1"), [])
    ledger.reserve(asking("r3", "0.3", **part))
    ledger.reserve(asking("r4", "0.5" if parallel else "0", part=month("2026-02"), parallel=parallel))
    rows = list(ledger.rows())
    assert ledger.verify().problems == ()
    lower = with_facts(rows[4], cap={"epsilon": "1/2", "delta": "0"})
    for moved, row in (([*rows[:3], rows[6], *rows[3:6], rows[7]], 4), ([*rows[:6], lower, *rows[6:]], 8)):
        store(ledger, chained_anew(moved))
        first = ledger.verify().problems[0]
        assert first == f"row {row}: it reserves for release r3 what the cap did not allow"
