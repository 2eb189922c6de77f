"""A board with keys, a policy of its own, and a ledger's releases that it is asked for."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpsynth.bundle.signature import SigningKey
from dpsynth.ledger.balance import ReleaseEntry, Reservation
from dpsynth.ledger.ledger import Ledger
from dpsynth.wings.governance.asking import Uses, approve, ask, governed_by, set_policy
from dpsynth.wings.governance.governed import Governed, Request
from dpsynth.wings.governance.policy import Policy
from tests.ledger.reservations import asking

ONCE = Uses()


@cache
def key(name: str) -> SigningKey:
    """The key of somebody, the same whenever they are named."""
    return SigningKey(Ed25519PrivateKey.from_private_bytes(name.encode().ljust(32, b".")))


def public(*names: str) -> list[str]:
    """The public keys of some people."""
    return [key(name).public for name in names]


def policy(**changed: object) -> Policy:
    """Two of three approve what anna asks for, or boris."""
    usual = {
        "approvals": 2,
        "approvers": public("boris", "clara", "dora"),
        "may_request": public("anna", "boris"),
    }
    return Policy.model_validate(usual | changed)


def now() -> datetime:
    """The clock's time."""
    return datetime.now(UTC)


def wanted(release_id: str = "r1", **changed: object) -> Reservation:
    """A release as a run would ask the ledger for it."""
    usual = {"config": "c" * 64, "plan": "d" * 64, "source": "/data/people.csv"}
    return asking(release_id, **(usual | changed))


def governed(url: str, **changed: object) -> Ledger:
    """A ledger with a policy."""
    ledger = Ledger(url)
    assert set_policy(ledger, policy(**changed), key("boris"), "agreed by the board", now()) is None
    return ledger


def asked(ledger: Ledger, uses: Uses = ONCE, by: str = "anna", **changed: object) -> Request:
    """A request for a release."""
    return ask(ledger, wanted("", **changed), uses, key(by), "open data of the year", now())


def approved(ledger: Ledger, request: Request, *names: str) -> int:
    """Approve a request by some people; how many approvals it lacks."""
    return [approve(ledger, request.id, key(name), lambda *_: None)[1] for name in names][-1]


def granted(ledger: Ledger, uses: Uses = ONCE, **changed: object) -> Request:
    """A request with the approvals that it needs."""
    request = asked(ledger, uses, **changed)
    assert approved(ledger, request, "boris", "clara") == 0
    return request


def reserved(ledger: Ledger, release_id: str = "r1", **changed: object) -> ReleaseEntry:
    """Reserve, as a run does."""
    entry = wanted(release_id, **changed)
    ledger.foreseen(ledger.read(), entry)
    return ledger.reserve(replace(entry, holder="run"))


def state(ledger: Ledger) -> Governed:
    """The policy as the ledger has it now."""
    return governed_by(ledger.read())


def kinds(ledger: Ledger) -> list[str]:
    """The kinds of a ledger's rows, in order."""
    return [row.kind for row in ledger.rows()]
