"""Asking for approval in Python: ``dpsynth.request``."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

from dpsynth.config import Spec
from dpsynth.errors import ConfigError
from dpsynth.ledger.ledger import Ledger
from dpsynth.wings.governance.asking import Uses, ask, reservation_for
from dpsynth.wings.governance.signed import given_key


def request(
    spec: Spec,
    /,
    *,
    purpose: str,
    key: str | Path | None = None,
    period: str | None = None,
    occasions: int | None = None,
    until: date | None = None,
    in_memory: bool = False,
) -> str:
    """Ask for approval of a release, in a ledger with a policy, as ``dpsynth request`` does.

    Args:
        purpose: what the release is for, for those who approve it.
        key: the file of your key; None for the one that the environment variable DPSYNTH_KEY names.
        period: the only period that it is for; None for any.
        occasions: for how many releases; None for 1, or with ``until`` for any number.
        until: the last day of its use; None without one.
        in_memory: True for a release of a table that is handed over in memory.

    Returns:
        The name of the request.

    Raises:
        NotApproved: the policy doesn't let the key ask.
        ConfigError: the ledger has no policy, there is no key, or a value isn't allowed.
    """
    if occasions is not None and occasions < 1:
        raise ConfigError("occasions must be a whole number from 1.")
    now, asked = datetime.now(UTC), spec.in_memory() if in_memory else spec
    uses = Uses(period, occasions if occasions is not None or until is not None else 1, until)
    ledger = Ledger(asked.ledger.url, asked.ledger.head)
    file = None if key is None else Path(key)
    return ask(ledger, reservation_for(asked, now, period), uses, given_key(file), purpose, now).id
