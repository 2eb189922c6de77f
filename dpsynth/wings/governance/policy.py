"""The policy of a ledger: how many approvals a release needs, and who may do what.

Invariant: public keys and numbers alone. A policy is what its file says; nothing is added to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from dpsynth.bundle.signature import is_public_key
from dpsynth.columns.section import Checked, Flag, JsonSchema, Section, Whole, refused

Role = Literal["may_request", "may_run", "may_change_cap", "may_withdraw"]

DOES: dict[Role, str] = {
    "may_request": "ask for a release",
    "may_run": "run a release",
    "may_change_cap": "change a cap or a unit",
    "may_withdraw": "withdraw a release",
}

_MOST = 1000


class PublicKeys(Checked):
    """Public keys, each once."""

    def check(self, value: object) -> tuple[str, ...]:
        listed = list(value) if isinstance(value, list | tuple) else [value]
        if len(listed) > _MOST or not all(isinstance(key, str) and is_public_key(key) for key in listed):
            raise refused(
                "must be a list of public keys, each ed25519: and 64 hexadecimal digits, as `dpsynth keygen "
                "FILE` prints it"
            )
        if len({*listed}) < len(listed):
            raise refused("has a key twice; one key is one person")
        return tuple(map(str, listed))

    def json_schema(self) -> JsonSchema:
        return {"type": "array", "items": {"type": "string"}}


class Policy(Section):
    """Who may do what with a ledger. A key that is in no list may do nothing but read."""

    approvals: Annotated[int, Whole(at_least="1", at_most="100")] = Field(
        default=2, description="How many approvers must have approved a request."
    )
    approvers: Annotated[tuple[str, ...], PublicKeys()] = Field(
        description="Public keys of those who approve."
    )
    may_request: Annotated[tuple[str, ...], PublicKeys()] = Field(
        default=(),
        description="Public keys of those who may ask for a release. Left out: anybody with a key, which "
        "needs requester_may_approve: true.",
    )
    may_run: Annotated[tuple[str, ...], PublicKeys()] = Field(
        default=(),
        description="Public keys of those who may run an approved release. Left out: whoever can write to "
        "the ledger.",
    )
    may_change_cap: Annotated[tuple[str, ...], PublicKeys()] = Field(
        default=(),
        description="Public keys of those who may change a cap or a unit. Left out: the approvers.",
    )
    may_withdraw: Annotated[tuple[str, ...], PublicKeys()] = Field(
        default=(), description="Public keys of those who may withdraw a release. Left out: the approvers."
    )
    requester_may_approve: Annotated[bool, Flag()] = Field(
        default=False, description="true: whoever asks for a release may be one of those who approve it."
    )

    def model_post_init(self, context: object, /) -> None:
        if not self.approvers:
            raise refused("must name at least one public key", "approvers")
        if self.approvals > len(self.approvers):
            raise refused(
                f"must be at most {len(self.approvers)}, the number of approvers: more could never approve",
                "approvals",
            )
        if not self.may_request and not self.requester_may_approve:
            raise refused(
                "is missing: if anybody may ask, somebody asks with a new key and approves with another. "
                "List the keys of those who may, or write requester_may_approve: true",
                "may_request",
            )
        others = [key for key in self.may_request if key not in self.approvers]
        if not self.requester_may_approve and not others and self.approvals > len(self.approvers) - 1:
            raise refused(
                f"must be at most {len(self.approvers) - 1}: everybody who may ask is an approver, and may "
                "not approve what they ask. Or name one more approver",
                "approvals",
            )

    def keys_of(self, role: Role) -> tuple[str, ...]:
        """The keys of those who have a role; none where everybody has it."""
        listed: tuple[str, ...] = getattr(self, role)
        return listed or (self.approvers if role in ("may_change_cap", "may_withdraw") else ())

    def allows(self, role: Role, key: str | None) -> bool:
        """True if whoever signs with a key, or with none, has a role."""
        keys = self.keys_of(role)
        return key in keys if keys else role == "may_run" or key is not None

    def counted(self, approved_by: Sequence[str], requester: str) -> tuple[str, ...]:
        """Those of some approvals that count for what somebody asked."""
        return tuple(
            key
            for key in self.approvers
            if key in approved_by and (self.requester_may_approve or key != requester)
        )

    def in_words(self) -> list[str]:
        """The policy as sentences."""
        said = [f"A release needs {self.approvals:,} of {len(self.approvers):,} approvals."]
        said += [f"May approve: {', '.join(self.approvers)}."]
        for role, does in DOES.items():
            keys = ", ".join(self.keys_of(role)) or (
                "whoever can write to the ledger" if role == "may_run" else "anybody with a key"
            )
            said.append(f"May {does}: {keys}.")
        may = "may" if self.requester_may_approve else "may not"
        return [*said, f"Whoever asks {may} approve it."]
