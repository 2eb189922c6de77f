"""A ledger with a policy lets a release through if it was approved, and no other.

On either database. Each way around approval is tried; what was refused stands in the chain.
"""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from itertools import product
from pathlib import Path
from unittest import mock

import pytest

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import NOTHING
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.errors import BudgetRefused, ConfigError, NotApproved
from dpsynth.ledger import store as ledger_store
from dpsynth.ledger.chain import Row
from dpsynth.ledger.contents import of_dataset, of_reservation
from dpsynth.ledger.ledger import Ledger
from dpsynth.wings.governance import asking
from dpsynth.wings.governance import governed as rules
from dpsynth.wings.governance.asking import Uses, approve, ask, revoke, set_policy
from dpsynth.wings.governance.signed import KEY, signed
from tests.ledger.forging import chained_anew, store
from tests.ledger.reservations import EVENTS, cost
from tests.ledger.reservations import asking as usual
from tests.thinned import some
from tests.wings.governance.boards import (
    approved,
    asked,
    governed,
    granted,
    key,
    kinds,
    now,
    policy,
    public,
    reserved,
    state,
    wanted,
)


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key is named by the environment."""
    monkeypatch.delenv(KEY, raising=False)


def test_a_ledger_without_a_policy_is_as_it_always_was(database: str) -> None:
    ledger = Ledger(database)
    ledger.reserve(wanted("r1"))
    with pytest.raises(BudgetRefused):
        ledger.reserve(wanted("r2", epsilon="5"))
    assert kinds(ledger) == ["dataset", "reserved"]
    content = json.loads(ledger.rows()[1].content)
    assert sorted(content) == [
        "audiences", "cost", "holder", "occasion", "other_people", "parallel", "part", "release", "source",
        "spec",
    ]  # fmt: skip
    with ledger._store.transaction() as connection:
        assert connection.execute(ledger_store.select(ledger_store._ledger.c.format)).scalar() == 6


def test_a_release_that_two_people_approved_is_let_through_once(database: str) -> None:
    ledger = governed(database)
    request = asked(ledger)
    assert approved(ledger, request, "boris") == 1
    assert approved(ledger, request, "dora") == 0
    assert reserved(ledger).state == "reserved"
    ledger.settle("r1", cost("0.1"), EVENTS, "run")
    with pytest.raises(NotApproved, match=r"is used up\. Ask anew with: dpsynth request CONFIG"):
        reserved(ledger, "r2")
    assert kinds(ledger) == [
        "policy", "requested", "approved", "approved", "dataset", "reserved", "closed", "refused",
    ]  # fmt: skip
    assert ledger.verify().problems == ()
    row = json.loads(ledger.rows()[5].content)
    assert (row["request"], row["config"], row["plan"]) == (request.id, "c" * 64, "d" * 64)


def nobody_asked(ledger: Ledger) -> None:
    reserved(ledger)


def asked_alone(ledger: Ledger) -> None:
    asked(ledger)
    reserved(ledger)


def one_approval(ledger: Ledger) -> None:
    approved(ledger, asked(ledger), "boris")
    reserved(ledger)


def one_key_twice(ledger: Ledger) -> None:
    approved(ledger, asked(ledger), "boris", "boris")


def taken_back(ledger: Ledger) -> None:
    revoke(ledger, granted(ledger).id, key("boris"))
    reserved(ledger)


def taken_back_by_two(ledger: Ledger) -> None:
    request = granted(ledger)
    for name in ("boris", "clara"):
        revoke(ledger, request.id, key(name))
    reserved(ledger)


def given_again(ledger: Ledger) -> None:
    request = granted(ledger)
    revoke(ledger, request.id, key("boris"))
    approved(ledger, request, "boris")


def taken_back_by_another(ledger: Ledger) -> None:
    revoke(ledger, granted(ledger).id, key("dora"))


def by_the_requester(ledger: Ledger) -> None:
    approved(ledger, asked(ledger, by="boris"), "clara", "boris")


def by_a_stranger(ledger: Ledger) -> None:
    approved(ledger, asked(ledger), "boris", "eve")


def asked_by_a_stranger(ledger: Ledger) -> None:
    asked(ledger, by="eve")


def after(**changed: object) -> Callable[[Ledger], None]:
    """What is run isn't what was approved."""

    def run(ledger: Ledger) -> None:
        granted(ledger)
        reserved(ledger, **changed)

    return run


def used_twice(ledger: Ledger) -> None:
    granted(ledger)
    reserved(ledger)
    reserved(ledger, "r2")


def once_too_often(ledger: Ledger) -> None:
    granted(ledger, Uses(occasions=3))
    for number in range(4):
        reserved(ledger, f"r{number}", occasion=f"2026-0{number + 1}")


def of_another_period(ledger: Ledger) -> None:
    granted(ledger, Uses(occasion="2026-01"))
    reserved(ledger, occasion="2026-02")


def resumed_with(**changed: object) -> Callable[[Ledger], None]:
    """A release that is under way goes on as another one."""

    def run(ledger: Ledger) -> None:
        granted(ledger)
        reserved(ledger)
        reserved(ledger, **changed)

    return run


def a_weaker_policy(ledger: Ledger) -> None:
    set_policy(ledger, policy(approvals=1), key("anna"), "faster", now())
    set_policy(ledger, policy(approvals=1), key("anna"), "faster", now())


def a_weaker_policy_by_a_stranger(ledger: Ledger) -> None:
    set_policy(ledger, policy(approvals=1), key("eve"), "faster", now())


def a_higher_cap(ledger: Ledger) -> None:
    granted(ledger)
    reserved(ledger)
    ledger.change_cap("people", Amount(1000), "more")


def another_unit(ledger: Ledger) -> None:
    granted(ledger)
    reserved(ledger)
    ledger.abandon("r1", None, [])
    ledger.change_unit("people", Neighbours("add_remove", "p", 1), 1, "x")


def beyond_the_cap(ledger: Ledger) -> None:
    granted(ledger, epsilon="5")
    reserved(ledger, epsilon="5")


BEFORE = r"request \S+ was made before {} changed"

WAYS: dict[str, tuple[Callable[[Ledger], None], str]] = {
    "nobody asked": (nobody_asked, "nobody has asked for this one"),
    "nobody approved": (asked_alone, "has 0 of 2 approvals"),
    "one approved": (one_approval, "has 1 of 2 approvals"),
    "one key twice": (one_key_twice, "has approved it already"),
    "an approval that was taken back": (taken_back, "has 1 of 2 approvals"),
    "approvals that too many took back": (taken_back_by_two, "0 of 2 approvals, and too few .* Ask anew"),
    "an approval that was taken back, again": (given_again, "took that approval back, for good"),
    "taken back by another": (taken_back_by_another, "has no approval of it"),
    "approved by whoever asked": (by_the_requester, "whoever asks may not approve"),
    "approved by a stranger": (by_a_stranger, "is no approver's key"),
    "asked by a stranger": (asked_by_a_stranger, "ask for a release, and ed25519:.* is not among them"),
    "another configuration": (after(config="e" * 64), BEFORE.format("the configuration")),
    "another plan": (after(plan="e" * 64), BEFORE.format("the plan")),
    "another source": (after(source="/data/others.csv", dataset="people"), BEFORE.format("the source.*")),
    "another price": (after(epsilon="0.2"), BEFORE.format("the price")),
    "another account": (
        after(dataset="others", other_people="so they say", source="/data/people.csv"),
        BEFORE.format("the account"),
    ),
    "another name": (after(release="monthly"), "nobody has asked for this one"),
    "other audiences": (
        after(audiences=(("public", cost("0.1").amount.epsilon),)),
        BEFORE.format("the audiences"),
    ),
    "another unit": (after(unit="one event"), BEFORE.format("the configuration")),
    "a claim of other people": (after(other_people="so they say"), BEFORE.format("the configuration")),
    "used twice": (used_twice, "was for one release, and is used up"),
    "once more than asked for": (once_too_often, "was for 3 releases, and is used up"),
    "another period": (of_another_period, "is for 2026-01, and this is 2026-02"),
    "resumed with another configuration": (resumed_with(config="e" * 64), "refuses to go on .* the config"),
    "resumed with another source": (
        resumed_with(source="/data/others.csv", dataset="people"),
        "refuses to go on .* the source",
    ),
    "a weaker policy": (a_weaker_policy, "refuses another policy: .* lacks 2 of 2 approvals"),
    "a weaker policy by a stranger": (a_weaker_policy_by_a_stranger, "is not among them"),
    "a higher cap": (a_higher_cap, "change a cap or a unit, and no key was given"),
    "persons in place of rows": (another_unit, "change a cap or a unit, and no key was given"),
    "beyond the cap": (beyond_the_cap, "it asks for ε = 5"),
}


@pytest.mark.parametrize(
    ("database", "way"),
    [*product(["sqlite"], WAYS), *some(product(["postgresql"], WAYS), 1)],
    indirect=["database"],
)
def test_a_way_around_approval_is_refused_and_stands_in_the_chain(database: str, way: str) -> None:
    ledger = governed(database)
    around, words = WAYS[way]
    with pytest.raises(BudgetRefused, match=words) as refused:
        around(ledger)
    assert refused.value.exit_code == 3 and "\n" not in str(refused.value)
    last = ledger.rows()[-1]
    assert (last.kind, json.loads(last.content)["why"]) == ("refused", str(refused.value))
    assert kinds(ledger).count("refused") == 1
    assert ledger.verify().problems == ()
    # Nothing was reserved that wasn't approved.
    assert all(r.release_id in state(ledger).request_of for b in ledger.balances() for r in b.releases)


def test_an_approval_ends_with_its_last_day_whatever_the_clock_says(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = governed(database)
    granted(ledger, Uses(occasions=None, until=date(2026, 12, 31)))
    for day, let_through in (("2026-12-31", True), ("2027-01-01", False), ("2026-12-30", False)):
        monkeypatch.setattr(ledger_store, "today", lambda day=day: date.fromisoformat(day))
        if let_through:
            reserved(ledger, day)
        else:
            # The refusal is dated, so that a clock that is put back revives nothing.
            with pytest.raises(NotApproved, match="was for releases until 2026-12-31"):
                reserved(ledger, day)


def test_an_approval_for_several_releases_is_for_that_many(database: str) -> None:
    ledger = governed(database)
    granted(ledger, Uses(occasions=2))
    for number in range(2):
        assert reserved(ledger, f"r{number}", occasion=f"2026-0{number + 1}").occasion
    with pytest.raises(NotApproved, match="was for 2 releases, and is used up"):
        reserved(ledger, "r3", occasion="2026-03")
    # An occasion that was released is shown again, for nothing.
    assert reserved(ledger, "r4", occasion="2026-01").release_id == "r0"


def test_a_release_of_which_nothing_was_asked_gives_its_approval_back(database: str) -> None:
    ledger = governed(database)
    granted(ledger)
    reserved(ledger)
    ledger.abandon("r1", NOTHING, [], "nothing was asked of the table", "run")
    assert reserved(ledger, "r2").state == "reserved"
    ledger.abandon("r2", cost("0.01"), EVENTS, "given up", "run")
    with pytest.raises(NotApproved, match="is used up"):
        reserved(ledger, "r3")
    assert ledger.verify().problems == ()


def test_a_release_from_before_the_policy_goes_on_without_approval(database: str) -> None:
    Ledger(database).reserve(wanted("r0"))
    ledger = governed(database)
    assert reserved(ledger, "r0").state == "reserved"
    ledger.take("r0", "another run")
    ledger.settle("r0", cost("0.1"), EVENTS, "another run")
    assert ledger.verify().problems == ()


def test_a_refusal_says_who_may_still_approve_and_how(database: str) -> None:
    ledger = governed(database)
    request = asked(ledger)
    approved(ledger, request, "clara")
    with pytest.raises(NotApproved) as refused:
        reserved(ledger)
    boris, dora = public("boris", "dora")
    assert str(refused.value).endswith(
        f"its policy asks for 2 approvals of a release, and request {request.id} has 1 of 2 approvals. Still "
        f"to approve: 1 of {boris}, {dora}, each with: dpsynth approve {request.id} --config CONFIG --key "
        "FILE. Nothing was read and nothing was charged."
    )


# Forged rows: put into the database by somebody who knows how rows are stored and hashed.


def entering(ledger: Ledger, *more: tuple[str, str, str | None, dict[str, object]]) -> None:
    """Put rows at the end of a ledger, with hashes that fit."""
    rows = list(ledger.rows())
    last = rows[-1]
    added = [
        Row(0, kind, dataset, name, dumped(content), last.created, "", "")
        for kind, dataset, name, content in more
    ]
    store(ledger, chained_anew([*rows, *added], len(rows)))


def dumped(content: dict[str, object]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def forged(content: str, **changed: object) -> dict[str, object]:
    return json.loads(content) | changed


def without_approval(ledger: Ledger, beside: str) -> None:
    """An old client, or none: the rows of a release as if there were no policy."""
    other = Ledger(beside)
    other.reserve(usual("r9"))
    entering(ledger, *((r.kind, r.dataset, r.release_id, json.loads(r.content)) for r in other.rows()))


def naming_a_request(ledger: Ledger, _: str) -> None:
    """The rows of a release that names a request which lacks an approval."""
    request, release = asked(ledger), wanted("r9")
    approved(ledger, request, "boris")
    content = of_reservation(release, governed=True) | {"request": request.id}
    opened = of_dataset(release, Fraction(0))
    entering(ledger, ("dataset", "people", None, opened), ("reserved", "people", "r9", content))


def of_another_ledger(ledger: Ledger, beside: str) -> None:
    """Approvals of the same request in a ledger that began alike."""
    other = governed(beside)
    real = asking.secrets.token_hex
    # Whoever asks may give both requests one name.
    with mock.patch.object(asking.secrets, "token_hex", lambda size: "00" * 4 if size == 4 else real(size)):
        there, here = granted(other), asked(ledger)
    assert (there.terms, there.id) == (here.terms, here.id)
    approvals = [row for row in other.rows() if row.kind == "approved"]
    entering(ledger, *(("approved", "people", None, forged(row.content)) for row in approvals))


def of_another_request(ledger: Ledger, _: str) -> None:
    """An approval of one request, under the name of another."""
    granted(ledger)
    row = next(row for row in ledger.rows() if row.kind == "approved")
    entering(ledger, ("approved", row.dataset, None, forged(row.content, request=asked(ledger).id)))


def with_another_key(ledger: Ledger, _: str) -> None:
    """An approval in the name of somebody who didn't sign it."""
    request = asked(ledger)
    content = signed(key("eve"), rules.about_request(request.digest), {"request": request.id})
    entering(ledger, ("approved", "people", None, content | {"by": key("boris").public}))


def with_an_altered_signature(ledger: Ledger, _: str) -> None:
    request = asked(ledger)
    content = signed(key("boris"), rules.about_request(request.digest), {"request": request.id})
    flipped = f"{int(str(content['signature'])[0], 16) ^ 1:x}{str(content['signature'])[1:]}"
    entering(ledger, ("approved", "people", None, content | {"signature": flipped}))


def twice_by_one(ledger: Ledger, _: str) -> None:
    request = asked(ledger)
    content = signed(key("boris"), rules.about_request(request.digest), {"request": request.id})
    entering(ledger, *[("approved", "people", None, content)] * 2)


def approved_after_it_was_taken_back(ledger: Ledger, _: str) -> None:
    """The row of an approval, put in again after somebody took it back."""
    revoke(ledger, granted(ledger).id, key("boris"))
    row = next(row for row in ledger.rows() if row.kind == "approved")
    entering(ledger, ("approved", "people", None, forged(row.content)))


def taken_back_in_the_name_of_another(ledger: Ledger, _: str) -> None:
    request = granted(ledger)
    content = signed(key("eve"), rules.about_revocation(request.digest), {"request": request.id})
    entering(ledger, ("revoked", "people", None, content | {"by": key("boris").public}))


def another_policy(ledger: Ledger, _: str) -> None:
    """A policy by somebody's key, that nobody approved."""
    weaker = policy(approvals=1).model_dump(mode="json")
    content = {"policy": weaker, "request": None, "purpose": "", "nonce": ""}
    about = rules.about("policy", "", None, ledger.rows()[-1].hash)
    entering(ledger, ("policy", "", None, signed(key("boris"), about, content)))


def the_policy_taken_out(ledger: Ledger, _: str) -> None:
    """All rows chained anew without the policy: what was signed after it doesn't fit any more."""
    granted(ledger)
    reserved(ledger)
    store(ledger, chained_anew([row for row in ledger.rows() if row.kind != "policy"]))


def a_cheaper_request(ledger: Ledger, _: str) -> None:
    """A request whose price was changed after it was approved."""
    granted(ledger)
    rows = list(ledger.rows())
    at = [row.kind for row in rows].index("requested")
    content = json.loads(rows[at].content)
    content["terms"]["cost"]["epsilon"] = "1/2"
    rows[at] = replace(rows[at], content=dumped(content))
    store(ledger, chained_anew(rows, at))


def a_cap_without_a_key(ledger: Ledger, _: str) -> None:
    granted(ledger)
    reserved(ledger)
    cap = {"epsilon": "99", "delta": "1/1000"}
    entering(ledger, ("cap", "people", None, {"cap": cap, "approximate_share": "0", "reason": "more"}))


FORGERIES = [
    approved_after_it_was_taken_back, taken_back_in_the_name_of_another,
    without_approval, naming_a_request, of_another_ledger, of_another_request, with_another_key,
    with_an_altered_signature, twice_by_one, another_policy, the_policy_taken_out, a_cheaper_request,
    a_cap_without_a_key,
]  # fmt: skip


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_a_ledger_with_a_row_that_its_policy_did_not_allow_is_refused(
    database: str, tmp_path: Path, forge: Callable[[Ledger, str], None]
) -> None:
    ledger = governed(database)
    forge(ledger, f"sqlite:///{tmp_path / 'beside.db'}")
    other = Ledger(database)
    for use in (lambda: other.reserve(wanted("r8")), other.balances, lambda: asked(other)):
        with pytest.raises(ConfigError, match="is damaged at row"):
            use()
    assert other.verify().problems


def test_rows_that_somebody_signed_hold_where_they_stand_alone(database: str) -> None:
    """A signed request is no request at another place: it is signed with the hash of the row before."""
    ledger = governed(database)
    asked(ledger)
    row = ledger.rows()[-1]
    entering(ledger, (row.kind, row.dataset, None, forged(row.content)))
    with pytest.raises(ConfigError, match="it has a signature that doesn't fit"):
        ledger.read()


def test_a_version_that_knows_no_policy_refuses_the_ledger(tmp_path: Path) -> None:
    """Such a version reads format 6 alone, and knows none of the kinds of rows."""
    ledger = governed(f"sqlite:///{tmp_path / 'ledger.db'}")
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as database:
        assert database.execute("SELECT format FROM dpsynth_ledger").fetchall() == [(7,)]
    assert ledger.verify().problems == ()


def test_a_key_of_the_ledger_that_may_not_run_runs_nothing(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    for name in ("rosa", "eve", "boris"):
        pem = key(name)._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (tmp_path / name).write_bytes(pem)
    ledger = governed(database, may_run=public("rosa"))
    granted(ledger)
    with pytest.raises(NotApproved, match=f"run a release, and no key was given. .* {KEY}"):
        reserved(ledger)
    monkeypatch.setenv(KEY, str(tmp_path / "eve"))
    with pytest.raises(NotApproved, match=f"{key('eve').public} is not among them"):
        reserved(ledger)
    monkeypatch.setenv(KEY, str(tmp_path / "rosa"))
    assert reserved(ledger).state == "reserved"
    monkeypatch.setenv(KEY, str(tmp_path / "eve"))
    with pytest.raises(NotApproved, match="is not among them"):
        reserved(ledger)
    with pytest.raises(NotApproved, match="is not among them"):
        ledger.take("r1", "stolen")
    with pytest.raises(NotApproved, match="change a cap"):
        ledger.change_cap("people", Amount(5), "more")
    monkeypatch.setenv(KEY, str(tmp_path / "boris"))
    assert ledger.change_cap("people", Amount(5), "more").cap == Amount(5)
    assert ledger.verify().problems == ()


def test_a_policy_is_changed_only_by_approval_of_the_present_approvers(database: str) -> None:
    ledger, weaker = governed(database), policy(approvals=1)
    request = set_policy(ledger, weaker, key("anna"), "there are few of us", now())
    assert request is not None and state(ledger).policy == policy()
    assert approved(ledger, request, "boris") == 1
    with pytest.raises(NotApproved, match="lacks 1 of 2 approvals"):
        set_policy(ledger, weaker, key("anna"), "there are few of us", now())
    assert approved(ledger, request, "dora") == 0
    assert state(ledger).policy == policy()
    assert set_policy(ledger, weaker, key("anna"), "there are few of us", now()) is None
    assert state(ledger).policy == weaker
    approved(ledger, asked(ledger), "clara")
    assert reserved(ledger).state == "reserved"
    # What was approved once, for one policy, isn't approved for good.
    back = set_policy(ledger, policy(), key("anna"), "back", now())
    assert back is not None
    approved(ledger, back, "boris")
    assert set_policy(ledger, policy(), key("anna"), "back", now()) is None
    assert set_policy(ledger, weaker, key("anna"), "again", now()) is not None
    assert state(ledger).policy == policy()
    assert ledger.verify().problems == ()


def test_approvals_of_somebody_who_is_no_approver_any_more_do_not_count(database: str) -> None:
    ledger = governed(database)
    request = granted(ledger)
    without = policy(approvers=public("boris", "dora"))
    change = set_policy(ledger, without, key("anna"), "clara has left", now())
    assert change is not None
    approved(ledger, change, "boris", "dora")
    assert set_policy(ledger, without, key("anna"), "clara has left", now()) is None
    with pytest.raises(NotApproved, match=f"request {request.id} has 1 of 2 approvals"):
        reserved(ledger)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"approvals": 4}, "at most 3"),
        ({"approvals": 0}, "at least 1"),
        ({"approvers": []}, "at least one public key"),
        ({"approvers": ["ed25519:12"]}, "list of public keys"),
        ({"approvers": public("boris", "boris")}, "a key twice"),
        ({"may_request": []}, "somebody asks with a new key"),
        ({"may_request": public("boris"), "approvals": 3}, "may not approve what they ask"),
        ({"readers": public("boris")}, "not a known key"),
    ],
)
def test_a_policy_that_protects_nothing_or_can_never_be_met_is_refused(
    changed: dict[str, object], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        policy(**changed)


@pytest.mark.parametrize("purpose", ["", "  ", "a\nb", "x" * 1001])
def test_a_request_says_what_for(database: str, purpose: str) -> None:
    with pytest.raises(ConfigError, match="purpose"):
        ask(governed(database), wanted(""), Uses(), key("anna"), purpose, now())


def test_a_request_is_for_a_day_to_come_and_a_ledger_with_a_policy(database: str) -> None:
    with pytest.raises(ConfigError, match="has no policy"):
        asked(Ledger(database))
    yesterday = now().date() - timedelta(days=1)
    with pytest.raises(ConfigError, match="a day to come"):
        asked(governed(database), Uses(until=yesterday))
    with pytest.raises(ConfigError, match="has no request nothing"):
        approve(Ledger(database), "nothing", key("boris"), lambda *_: None)
