"""The policy of a ledger by its rows: who asked, who approved, what was used, and what was withdrawn.

Each row is entered in its order, when it is written and whenever the ledger is read again. So a row that was
put in place by something else than the ledger, such as a reservation that nobody approved, is found by
whoever reads it next, and the ledger is then refused as damaged.

Invariant: at every row, each release that was reserved under a policy stands for one use of a request that

- as many approvers had approved as the policy of that time asked, each by a signature of this very request in
  this very ledger, nobody twice, and not who asked unless the policy lets them;
- is about the same configuration, plan, source, price and account;
- was not used as often as it was approved for, nor after its last day.

A release that ended at no cost at all gives its use back, as its budget. A day is that of a row, which is
never before that of the row before: a clock that is put back revives nothing for longer than since then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from dpsynth.accounting.composition import NOTHING
from dpsynth.errors import NotApproved
from dpsynth.figures import listed
from dpsynth.ledger.balance import ReleaseEntry, Reservation
from dpsynth.ledger.chain import FIRST, Kind, Row
from dpsynth.ledger.contents import MalformedContent, of_reservation, read
from dpsynth.wings.governance.policy import DOES, Policy, Role
from dpsynth.wings.governance.signed import KEY, NOTICE, Content, acting_key, signed, signer

Find = Callable[[str], ReleaseEntry | None]

TERMS = (
    "release",
    "spec",
    "source",
    "other_people",
    "parallel",
    "cost",
    "audiences",
    "config",
    "plan",
    "unit",
    "neighbours",
)
"""The facts of a reservation that are approved, with its account."""

_WORDS = {
    "config": "the configuration",
    "plan": "the plan",
    "source": "the source",
    "cost": "the price",
    "audiences": "the audiences",
    "dataset": "the account",
    "release": "the name of the release",
}

_ROLE_OF: Mapping[str, Role] = {
    "reserved": "may_run",
    "resumed": "may_run",
    "cap": "may_change_cap",
    "unit": "may_change_cap",
}
"""The role that a row of the ledger's own needs; the others need none."""

_RESUMED_AS = ("dataset", "release", "source", "config")
"""The facts that a release that goes on shares with its request: another version may plan it otherwise."""


def terms_of(content: Content, dataset: str) -> dict[str, object]:
    """The facts of a reservation's row that are approved."""
    return {"dataset": dataset, **{name: content[name] for name in TERMS}}


def about(kind: str, dataset: str, release_id: str | None, last: str) -> tuple[str, ...]:
    """The subject of a signature of a row, after the row with a hash."""
    return ("row", kind, dataset, release_id or "", last)


def about_request(digest: str) -> tuple[str, ...]:
    """The subject of an approval: the row of a request, by its hash."""
    return ("approval", digest)


def about_revocation(digest: str) -> tuple[str, ...]:
    """The subject of a signature that takes an approval back."""
    return ("revocation", digest)


@dataclass(frozen=True)
class Request:
    """A request, and what has become of it.

    Attributes:
        digest: the hash of its row, which approvals sign.
        content: its facts, as in the row.
        by: the public key of whoever asked.
        approved_by: public keys, in order.
        revoked_by: those who took their approval back, for good.
        releases: the releases that it was used for.
        done: True if it was to change the policy, and did.
    """

    digest: str
    content: Content
    by: str
    created: date
    approved_by: tuple[str, ...] = ()
    revoked_by: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    done: bool = False

    @property
    def id(self) -> str:
        return str(self.content["id"])

    @property
    def policy(self) -> Policy | None:
        """The policy that it asks for; None if it asks for a release."""
        found = self.content["policy"]
        return None if found is None else Policy.model_validate(found)

    @property
    def terms(self) -> Mapping[str, object]:
        found = self.content["terms"]
        return found if isinstance(found, Mapping) else {}

    @property
    def most(self) -> int | None:
        """How many releases it is for; None for any number until its last day."""
        found = self.content["occasions"]
        return found if isinstance(found, int) else None

    @property
    def until(self) -> date | None:
        """The last day on which it may be used."""
        found = self.content["until"]
        return date.fromisoformat(found) if isinstance(found, str) else None

    def used(self, release: Find) -> int:
        """How many releases have used it up; one that ended at no cost hasn't."""
        entries = [release(name) for name in self.releases]
        return sum(e is not None and (e.state != "abandoned" or e.cost != NOTHING) for e in entries)

    def differs(self, terms: Content, names: Sequence[str] = ()) -> str:
        """The facts that aren't as they were asked for, in words; "" where all are."""
        found = [name for name in names or ("dataset", *TERMS) if self.terms.get(name) != terms[name]]
        named = [words for name, words in _WORDS.items() if name in found]
        return listed(named or ["the configuration"]) if found else ""


@dataclass(frozen=True)
class Withdrawal:
    """A notice of a release, as a row has it."""

    content: Content
    by: str

    @property
    def whole(self) -> bool:
        """True if the release is withdrawn; False for an erratum."""
        return self.content["kind"] == "withdrawn"


@dataclass
class Governed:
    """A ledger's policy, while rows are entered."""

    policy: Policy | None = None
    requests: dict[str, Request] = field(default_factory=dict)
    request_of: dict[str, str] = field(default_factory=dict)
    notices: dict[str, tuple[Withdrawal, ...]] = field(default_factory=dict)

    @property
    def in_force(self) -> bool:
        return self.policy is not None

    def copy(self) -> Governed:
        return replace(
            self, requests=dict(self.requests), request_of=dict(self.request_of), notices=dict(self.notices)
        )

    # Rows.

    def enter(self, row: Row, content: Content, created: date, release: Find) -> None:
        if row.kind == "policy":
            self._enter_policy(row, content)
        elif row.kind == "withdrawn":
            self._enter_notice(content, release)
        elif self.policy is None:
            if row.kind in ("requested", "approved", "revoked", "refused"):
                raise MalformedContent("is of a policy, and none is in force")
        elif row.kind == "requested":
            self._enter_request(self.policy, row, content, created)
        elif row.kind == "approved":
            found, by = self._signed_request(content, about_request)
            if (why := self.unfit(self.policy, found, by)) is not None:
                raise MalformedContent(f"approves request {found.id}, and {why}")
            self.requests[found.id] = replace(found, approved_by=(*found.approved_by, by))
        elif row.kind == "revoked":
            found, by = self._signed_request(content, about_revocation)
            if (why := self.unrevocable(found, by)) is not None:
                raise MalformedContent(f"takes an approval of request {found.id} back, and {why}")
            self.requests[found.id] = replace(found, revoked_by=(*found.revoked_by, by))
        elif row.kind == "refused":
            read(content, "why", str)
        elif row.kind in _ROLE_OF:
            self._enter_own(self.policy, row, content, created, release)

    def _enter_policy(self, row: Row, content: Content) -> None:
        by, wanted = _signer_of(row, content), Policy.model_validate(content["policy"])
        read(content, "nonce", str)
        if self.policy is None:
            if content["request"] is not None:
                raise MalformedContent("refers to a request, and there was no policy")
        else:
            found = self.requests.get(read(content, "request", str))
            if found is None or found.done or found.policy != wanted or self.lacking(found):
                raise MalformedContent("changes the policy, and that was not approved")
            if not self.policy.allows("may_request", by):
                raise MalformedContent("changes the policy, by somebody who may not")
            self.requests[found.id] = replace(found, done=True)
        self.policy = wanted

    def _enter_request(self, policy: Policy, row: Row, content: Content, created: date) -> None:
        by = _signer_of(row, content)
        if not policy.allows("may_request", by):
            raise MalformedContent("asks for a release, by somebody who may not")
        found = Request(row.hash, content, by, created)
        # Whatever it lacks shows here, and not only when it is used.
        _ = (found.policy, found.terms, found.until, read(content, "purpose", str))
        if read(content, "id", str) in self.requests:
            raise MalformedContent("has the name of another request")
        self.requests[found.id] = found

    def _signed_request(
        self, content: Content, about: Callable[[str], tuple[str, ...]]
    ) -> tuple[Request, str]:
        found = self.requests.get(read(content, "request", str))
        by = None if found is None else signer(about(found.digest), content)
        if found is None or by is None:
            raise MalformedContent("is about no request of this ledger, or its signature doesn't fit")
        return found, by

    def _enter_notice(self, content: Content, release: Find) -> None:
        by, name = signer(NOTICE, content), read(content, "release_id", str)
        if by is None:
            raise MalformedContent("withdraws a release, and its signature doesn't fit")
        if (why := self.unwithdrawable(name, content, by, release)) is not None:
            raise MalformedContent(f"withdraws release {name}, and {why}")
        self.notices[name] = (*self.notices.get(name, ()), Withdrawal(content, by))

    def _enter_own(self, policy: Policy, row: Row, content: Content, created: date, release: Find) -> None:
        role = _ROLE_OF[row.kind]
        by = _signer_of(row, content) if "signature" in content else None
        if not policy.allows(role, by):
            raise MalformedContent(f"is of somebody who may not {DOES[role]}")
        if row.kind == "reserved":
            found = self.requests.get(read(content, "request", str))
            if found is None or self._unusable(found, content, row.dataset, created, release):
                raise MalformedContent(f"reserves for release {row.release_id}, and that was not approved")
            self.requests[found.id] = replace(found, releases=(*found.releases, str(row.release_id)))
            self.request_of[str(row.release_id)] = found.id

    # Questions.

    def lacking(self, found: Request) -> int:
        """How many approvals a request still lacks."""
        assert self.policy is not None
        return max(0, self.policy.approvals - len(self._standing(found)))

    def _standing(self, found: Request) -> tuple[str, ...]:
        """The keys whose approvals of a request count."""
        assert self.policy is not None
        kept = [key for key in found.approved_by if key not in found.revoked_by]
        return self.policy.counted(kept, found.by)

    def unfit(self, policy: Policy, found: Request, by: str) -> str | None:
        """Why a key can't approve a request, in words; None if it can."""
        if by not in policy.approvers:
            return f"{by} is no approver's key"
        if by in found.revoked_by:
            return f"{by} took that approval back, for good"
        if by in found.approved_by:
            return f"{by} has approved it already"
        if by == found.by and not policy.requester_may_approve:
            return f"{by} asked for it, and whoever asks may not approve"
        if found.done:
            return "it was carried out already"
        return None

    def unrevocable(self, found: Request, by: str) -> str | None:
        """Why a key can't take an approval back, in words; None if it can."""
        if by not in found.approved_by or by in found.revoked_by:
            return f"{by} has no approval of it"
        if found.done:
            return "it was carried out already"
        return None

    def unwithdrawable(self, name: str, content: Content, by: str, release: Find) -> str | None:
        """Why a notice can't be made, in words; None if it can."""
        entry = release(name)
        if entry is None or entry.state != "closed":
            return "there is no finished release of that name in the ledger"
        if self.policy is not None and not self.policy.allows("may_withdraw", by):
            return f"{by} may not withdraw a release, by the policy"
        if content["kind"] == "withdrawn" and any(n.whole for n in self.notices.get(name, ())):
            return "it was withdrawn already"
        return None

    def _unusable(
        self, found: Request, content: Content, dataset: str, day: date, release: Find
    ) -> str | None:
        """Why a request doesn't stand for a reservation, in words; None if it does."""
        asked = f"request {found.id}"
        if found.policy is not None:
            return f"{asked} is about the policy"
        if changed := found.differs(terms_of(content, dataset)):
            return f"{asked} was made before {changed} changed"
        wanted = found.content["occasion"]
        if wanted is not None and wanted != content["occasion"]:
            return f"{asked} is for {wanted}, and this is {content['occasion'] or 'the whole table'}"
        if found.most is not None and found.used(release) >= found.most:
            releases = "one release" if found.most == 1 else f"{found.most:,} releases"
            return f"{asked} was for {releases}, and is used up"
        if found.until is not None and day > found.until:
            return f"{asked} was for releases until {found.until}"
        if self.lacking(found):
            assert self.policy is not None
            has = self.policy.approvals - self.lacking(found)
            return f"{asked} has {has:,} of {self.policy.approvals:,} approvals"
        return None

    def check(
        self, wanted: Reservation, recorded: ReleaseEntry | None, day: date, release: Find, ledger: str
    ) -> None:
        assert self.policy is not None
        content = of_reservation(wanted, governed=True)
        if recorded is None:
            problems = {
                r.id: self._unusable(r, content, wanted.dataset, day, release) for r in self._near(content)
            }
            if None not in problems.values():
                raise NotApproved(
                    f"The ledger {ledger} refuses release {wanted.release_id}: {self._missing(problems)} "
                    "Nothing was read and nothing was charged."
                )
        elif recorded.release_id in self.request_of and recorded.state == "reserved":
            found = self.requests[self.request_of[recorded.release_id]]
            if changed := found.differs(terms_of(content, wanted.dataset), _RESUMED_AS):
                raise NotApproved(
                    f"The ledger {ledger} refuses to go on with release {recorded.release_id}: "
                    f"{changed} changed since request {found.id} was approved. Go on with what "
                    "was approved, or give the release up. Nothing was read."
                )
        if recorded is None or recorded.state == "reserved":
            key = acting_key()
            _check_role(self.policy, "may_run", None if key is None else key.public, ledger)

    def _near(self, content: Content) -> list[Request]:
        """The requests about a release of the same name, the latest last."""
        return [r for r in self.requests.values() if r.terms.get("release") == content["release"]]

    def planned(self, wanted: Reservation, day: date, release: Find) -> str:
        assert self.policy is not None
        content, problems = of_reservation(wanted, governed=True), dict[str, str | None]()
        for found in self._near(content):
            of_its_own = {**content, "occasion": found.content["occasion"]}
            problems[found.id] = why = self._unusable(found, of_its_own, wanted.dataset, day, release)
            if why is None:
                said = [f"request {found.id} is approved by {', '.join(self._standing(found))}."]
                said += [f"For {of_its_own['occasion']} alone."] if of_its_own["occasion"] else []
                said += [f"Used {found.used(release):,} of {found.most:,} times."] if found.most else []
                return " ".join([*said, *([f"Until {found.until}."] if found.until else [])])
        return f"the ledger would refuse this release: {self._missing(problems)}"

    def _missing(self, problems: Mapping[str, str | None]) -> str:
        """The facts lacking in all requests about a release, after a colon."""
        assert self.policy is not None
        start = (
            f"its policy asks for {self.policy.approvals:,} "
            f"approval{'s' * (self.policy.approvals != 1)} of a release, and "
        )
        lacking = {
            n: self.lacking(self.requests[n]) for n, why in problems.items() if "approvals" in (why or "")
        }
        may = {
            n: [k for k in self.policy.approvers if self.unfit(self.policy, self.requests[n], k) is None]
            for n in lacking
        }
        # What is nearest to a release: a request that lacks approvals alone, else the latest.
        waiting = [n for n in lacking if len(may[n]) >= lacking[n]]
        nearest = (waiting or list(problems))[-1:]
        if not nearest:
            return f"{start}nobody has asked for this one. Ask with: {_ASK}."
        (name,) = nearest
        why = problems[name]
        if waiting:
            return (
                f"{start}{why}. Still to approve: {lacking[name]:,} of {', '.join(may[name])}, "
                f"each with: dpsynth approve {name} --config CONFIG --key FILE."
            )
        few = ", and too few approvers are left who may give one" * (name in lacking)
        return f"{start}{why}{few}. Ask anew with: {_ASK}."

    def sealed(
        self,
        last: Row | None,
        kind: Kind,
        dataset: str,
        release_id: str | None,
        content: Content,
        day: date,
        release: Find,
    ) -> Content:
        role = _ROLE_OF.get(kind)
        if self.policy is None or role is None:
            return content
        key = acting_key()
        _check_role(self.policy, role, None if key is None else key.public, "")
        if kind == "reserved":
            usable = (r for r in self._near(content) if not self._unusable(r, content, dataset, day, release))
            content = {**content, "request": next(r.id for r in usable)}
        if key is None or not self.policy.keys_of(role):
            return content
        before = FIRST if last is None else last.hash
        return signed(key, about(kind, dataset, release_id, before), content)


_ASK = 'dpsynth request CONFIG --purpose "..." --key FILE'


def _signer_of(row: Row, content: Content) -> str:
    found = signer(about(row.kind, row.dataset, row.release_id, row.previous), content)
    if found is None:
        raise MalformedContent("has a signature that doesn't fit")
    return found


def _check_role(policy: Policy, role: Role, key: str | None, ledger: str) -> None:
    if policy.allows(role, key):
        return
    whose = f"{key} is not among them" if key is not None else "no key was given"
    raise NotApproved(
        f"The policy of the ledger{' ' * bool(ledger)}{ledger} lets {', '.join(policy.keys_of(role))} "
        f"{DOES[role]}, and {whose}. Name the file of such a key with --key, or, where a command has no such "
        f"option, with the environment variable {KEY}. Nothing was changed and nothing was read."
    )


def check_role(policy: Policy | None, role: Role, key: str, ledger: str) -> None:
    """``NotApproved`` unless a policy lets a key do something."""
    if policy is not None:
        _check_role(policy, role, key, ledger)
