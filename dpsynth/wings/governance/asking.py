"""Requests, approvals and changes of the policy, each a signed row of the ledger.

Invariant: nothing but public facts goes into a request: digests of configuration and plan, the path of the
source, names, the price, and the words of whoever asks. The source is never opened.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime

from dpsynth.bundle.signature import SigningKey
from dpsynth.config import Spec, compiled
from dpsynth.errors import ConfigError, NotApproved
from dpsynth.ledger.balance import Reservation
from dpsynth.ledger.chain import FIRST, Governing
from dpsynth.ledger.contents import of_reservation
from dpsynth.ledger.ledger import Ledger, Reading
from dpsynth.pipeline.forecast import plan_of, reservation_to_come
from dpsynth.pipeline.reservation import occasion_of
from dpsynth.wings.governance.governed import (
    Governed,
    Request,
    about,
    about_request,
    about_revocation,
    check_role,
    terms_of,
)
from dpsynth.wings.governance.policy import Policy
from dpsynth.wings.governance.signed import signed


@dataclass(frozen=True)
class Uses:
    """The releases that a request is for.

    Attributes:
        occasion: the label of the only period that it is for; None for any.
        occasions: the most releases; None for any number.
        until: the last day; None without one.
    """

    occasion: str | None = None
    occasions: int | None = 1
    until: date | None = None

    def in_words(self) -> str:
        """These releases, as the end of a sentence."""
        number = "any number of releases" if self.occasions is None else f"{self.occasions:,} releases"
        number = "one release" if self.occasions == 1 else number
        of = "" if self.occasion is None else f" of {self.occasion}"
        return f"{number}{of}{'' if self.until is None else f', until {self.until}'}"


def governed_by(page: Reading) -> Governed:
    """The policy of a ledger; that of none where it has none."""
    found = page.book.governance
    return found if isinstance(found, Governed) else Governed()


def reservation_for(spec: Spec, now: datetime, period: str | None) -> Reservation:
    """The reservation that a run of a configuration would make, whatever its rows; nothing is opened.

    Raises:
        ConfigError: there is no plan, no such period, or no table.
    """
    if spec.trust == "local":
        raise ConfigError(
            "trust: local has no table whose release could be approved: each respondent decides. Keep its "
            "ledger apart from one with a policy."
        )
    if period is not None:
        # Only a period that a run could name.
        occasion_of(spec, now, period)
    worked_out = compiled(spec)
    return reservation_to_come(worked_out, plan_of(worked_out))


def ask(
    ledger: Ledger, wanted: Reservation, uses: Uses, key: SigningKey, purpose: str, now: datetime
) -> Request:
    """Ask for releases like a reservation.

    Raises:
        NotApproved: the policy doesn't let the key ask.
        ConfigError: there is no policy, no purpose, or the ledger can't be used.
    """
    purpose = check_purpose(purpose)
    if uses.until is not None and uses.until < now.date():
        raise ConfigError(f"--until must be a day to come, such as {now.date()}.")
    with ledger.changing() as page:
        wanted = page.named(wanted)
        found = governed_by(page)
        if found.policy is None:
            raise ConfigError(
                f"The ledger {ledger.name} has no policy, so a release needs no approval. Set one with: "
                "dpsynth ledger policy --set FILE --key FILE."
            )
        terms = terms_of(of_reservation(wanted, governed=True), wanted.dataset)
        content = _content(now, purpose) | {
            "terms": terms,
            "occasion": uses.occasion,
            "occasions": uses.occasions,
            "until": None if uses.until is None else uses.until.isoformat(),
        }
        return _enter(page, found.policy, content, wanted.dataset, key)


def _content(now: datetime, purpose: str) -> dict[str, object]:
    return {
        "id": f"request-{now:%Y%m%d}-{secrets.token_hex(4)}",
        "purpose": purpose,
        "policy": None,
        "terms": None,
        "occasion": None,
        "occasions": 1,
        "until": None,
    }


def _enter(
    page: Reading, policy: Policy, content: dict[str, object], dataset: str, key: SigningKey
) -> Request:
    check_role(policy, "may_request", key.public, page.name)
    _add(page, "requested", dataset, content, key)
    return governed_by(page).requests[str(content["id"])]


def _add(page: Reading, kind: Governing, dataset: str, content: dict[str, object], key: SigningKey) -> None:
    last = page.rows[-1].hash if page.rows else FIRST
    page.add(kind, dataset, None, signed(key, about(kind, dataset, None, last), content))


def check_purpose(purpose: str) -> str:
    """A purpose without blanks around it; ConfigError where there is none to keep."""
    said = purpose.strip()
    if not said or not said.isprintable() or len(said) > 1000:
        raise ConfigError("A request needs a purpose (--purpose) of 1 to 1000 printable characters.")
    return said


def approve(
    ledger: Ledger, name: str, key: SigningKey, seen: Callable[[Request, Governed, Reading], None]
) -> tuple[Request, int]:
    """Approve a request; and how many approvals it still lacks.

    Args:
        seen: takes the request before it is signed, and raises an error if it isn't what is meant.

    Raises:
        NotApproved: the key is no approver's, has approved already, or is that of whoever asked.
        ConfigError: there is no such request, or the ledger can't be used.
    """
    with ledger.changing() as page:
        found, request = _known(page, name)
        assert found.policy is not None
        if (why := found.unfit(found.policy, request, key.public)) is not None:
            raise NotApproved(
                f"The ledger {ledger.name} refuses this approval of request {name}: {why}. Nothing was "
                "signed."
            )
        seen(request, found, page)
        content = signed(key, about_request(request.digest), {"request": name})
        page.add("approved", str(request.terms.get("dataset", "")), None, content)
        request = governed_by(page).requests[name]
        return request, governed_by(page).lacking(request)


def revoke(ledger: Ledger, name: str, key: SigningKey) -> Request:
    """Take an approval back, for good: what was released by it stays released.

    Raises:
        NotApproved: the key has no approval of the request, or the request was carried out.
        ConfigError: there is no such request, or the ledger can't be used.
    """
    with ledger.changing() as page:
        found, request = _known(page, name)
        if (why := found.unrevocable(request, key.public)) is not None:
            raise NotApproved(f"The ledger {ledger.name} has nothing to take back of request {name}: {why}.")
        content = signed(key, about_revocation(request.digest), {"request": name})
        page.add("revoked", str(request.terms.get("dataset", "")), None, content)
        return governed_by(page).requests[name]


def _known(page: Reading, name: str) -> tuple[Governed, Request]:
    found = governed_by(page)
    request = found.requests.get(name)
    if found.policy is None or request is None:
        names = ", ".join(r.id for r in found.requests.values() if found.lacking(r)) or "none"
        raise ConfigError(
            f"The ledger {page.name} has no request {name}. Requests that lack approvals: {names}."
        )
    return found, request


def set_policy(
    ledger: Ledger, wanted: Policy, key: SigningKey, purpose: str, now: datetime
) -> Request | None:
    """Put a policy in force, or ask for it where one is in force already.

    The first policy of a ledger needs no approval, as nobody was asked for any before it. From then on a
    policy is asked for like a release, and put in force by a second call, once it is approved.

    Returns:
        The request that lacks approvals; None where the policy is in force.

    Raises:
        NotApproved: the policy doesn't let the key ask, or the request lacks approvals still.
        ConfigError: there is no purpose, or the ledger can't be used.
    """
    purpose = check_purpose(purpose)
    with ledger.changing(create=True) as page:
        found = governed_by(page)
        if found.policy == wanted:
            return None
        request = None
        if found.policy is not None:
            asked = [r for r in found.requests.values() if r.policy == wanted and not r.done]
            if not asked:
                content = _content(now, purpose) | {"policy": wanted.model_dump(mode="json")}
                return _enter(page, found.policy, content, "", key)
            request = asked[-1]
            if lacking := found.lacking(request):
                raise NotApproved(
                    f"The ledger {ledger.name} refuses another policy: request {request.id}, which asks for "
                    f"it, lacks {lacking:,} of {found.policy.approvals:,} approvals. Each approver: dpsynth "
                    f"approve {request.id} --key FILE. The present policy stays in force."
                )
            check_role(found.policy, "may_request", key.public, page.name)
        content = {
            "policy": wanted.model_dump(mode="json"),
            "request": None if request is None else request.id,
            "purpose": purpose,
            # Ledgers that began alike would have the same rows, and an approval would hold in both.
            "nonce": secrets.token_hex(16),
        }
        _add(page, "policy", "", content, key)
        return None
