"""Hints about a table's account, for the person who is about to release.

Invariant: they are made of the configuration and the ledger alone, and nothing depends on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from dpsynth.accounting.amount import Amount, digits
from dpsynth.config.files.place import same_table
from dpsynth.ledger.balance import Balance, Reservation


def hints(wanted: Reservation, dataset: str, accounts: Sequence[Balance], bundles: Path) -> Iterator[str]:
    """Sentences about a new release that its owner may not expect.

    Args:
        wanted: the release, as its config has it.
        dataset: the name of its account.
        accounts: all accounts of the ledger.
        bundles: the folder of the release's bundles.
    """
    account = next((a for a in accounts if a.dataset == dataset), None)
    if account is None:
        yield from _of_a_new_account(dataset, accounts)
        return
    known = any(same_table(wanted.source, source) for source in account.sources)
    if not wanted.dataset and account.sources and not known:
        yield (
            f"{wanted.source} is new to dataset '{account.dataset}', which has {_listed(account.sources)}, "
            "and it counts there. If it is about other people, name a dataset of its own with ledger.dataset."
        )
    if wanted.cap_declared and not wanted.cap.within(account.cap):
        yield (
            f"ledger.cap in this configuration, {wanted.cap.shown(up=False)}, is above the recorded "
            f"{account.cap.shown(up=False)} of dataset '{account.dataset}', and the recorded one holds. If "
            f"it may be raised: {raising(account.dataset, wanted.cap, account.cap)}"
        )
    same = [r for r in account.releases if r.spec == wanted.spec and r.state == "closed"]
    if wanted.occasion is None and same:
        bundle = bundles / same[-1].release_id
        where = f", its bundle is {bundle}" if bundle.is_dir() else ""
        yield (
            f"This configuration was released on {same[-1].created} as {same[-1].release_id}{where}. This is "
            f"a further release, number {len(account.releases) + 1} of dataset '{account.dataset}', and is "
            f"charged {wanted.cost.amount.shown()} once more."
        )


def raising(dataset: str, cap: Amount, recorded: Amount) -> str:
    """The command that raises a recorded cap to another."""
    delta = "" if cap.delta <= recorded.delta else f" --delta {digits(cap.delta, up=False)}"
    epsilon = "" if cap.epsilon <= recorded.epsilon else f" --epsilon {digits(cap.epsilon, up=False)}"
    return f"dpsynth ledger cap '{dataset}'{epsilon}{delta} --config CONFIG --reason WHY"


def _of_a_new_account(dataset: str, accounts: Sequence[Balance]) -> Iterator[str]:
    if accounts:
        yield (
            f"This opens dataset '{dataset}' in the ledger, with a cap of its own, beside "
            f"{_listed(a.dataset for a in accounts)}. If the same people are in one of these, name it with "
            "ledger.dataset, so that they have one cap."
        )


def _listed(names: Sequence[str] | frozenset[str] | Iterator[str]) -> str:
    found = sorted(names)
    return ", ".join(f"'{name}'" for name in found[:5]) + (" and others" if len(found) > 5 else "")
