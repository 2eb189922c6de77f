"""An account as JSON, for programs.

Invariant: costs and shares of the cap are rounded up to doubles, caps down. A share of a cap of 0 is null.
"""

from __future__ import annotations

from math import isfinite

from dpsynth.accounting.rounding import float_down, float_up
from dpsynth.ledger.balance import Balance, CapChange
from dpsynth.ledger.views import AccountView, Line, unit_change_in_words


def facts(view: AccountView) -> dict[str, object]:
    """An account as plain JSON values; costs rounded up to doubles, caps rounded down."""
    account, forecast = view.account, view.runway
    return {
        "dataset": account.dataset,
        "unit": account.unit,
        "neighbours": account.neighbours,
        "unit_changed": None
        if account.changed is None
        else {
            "since": account.changed.created.isoformat(),
            "before": account.changed.before,
            "most_rows": account.changed.most_rows,
            "reason": account.changed.reason,
            "in_words": list(unit_change_in_words(account)),
        },
        "opened": account.opened.isoformat(),
        "sources": sorted(account.sources),
        "filter": account.filter.accountant,
        "cap": _cap(account.caps[-1]),
        "caps": [
            {"since": change.created.isoformat(), **_cap(change), "reason": change.reason}
            for change in account.caps
        ],
        "epsilon_used": float_up(account.epsilon_used),
        "share_used": _share(account.share_used),
        "guarantees": [
            {"accountant": s.accountant, "epsilon": s.epsilon, "delta": s.delta, "adaptive": s.adaptive}
            for s in view.statements
        ],
        "least": view.least.accountant,
        "releases": [_release(line, account) for line in view.lines],
        "runway": None
        if forecast is None
        else {
            "like": forecast.like.release_id,
            "fits": forecast.fits,
            "other_parts_free": forecast.disjoint,
            "every_days": forecast.every,
            "last": None if forecast.last is None else forecast.last.isoformat(),
            "refused": None if forecast.refused is None else forecast.refused.isoformat(),
        },
    }


def _cap(change: CapChange) -> dict[str, object]:
    return {
        "epsilon": float_down(change.cap.epsilon),
        "delta": float_down(change.cap.delta),
        "approximate_share": float_down(change.approximate_share),
    }


def _share(share: float) -> float | None:
    return share if isfinite(share) else None


def _release(line: Line, account: Balance) -> dict[str, object]:
    entry = line.entry
    amount, part = entry.cost.amount, entry.part
    return {
        "id": entry.release_id,
        "release": entry.release,
        "period": entry.occasion,
        "part": None if part is None else part.to_json(),
        "parallel": entry.parallel,
        "state": entry.state,
        "epsilon": float_up(amount.epsilon),
        "delta": float_up(amount.delta),
        "unit": account.unit if entry.changed is None else entry.changed.before,
        "epsilon_of_unit": None
        if entry.cost_of_unit is None
        else float_up(entry.cost_of_unit.amount.epsilon),
        "approximate_delta": float_up(entry.cost.approximate_delta),
        "share": _share(line.share),
        "share_so_far": _share(line.so_far),
        "answers": dict(line.asked),
        "reserved": entry.created.isoformat(),
        "ended": None if entry.ended is None else entry.ended.isoformat(),
        "reason": entry.reason,
        "source": entry.source,
        "other_people": entry.other_people,
        "audiences": {name: float_up(epsilon) for name, epsilon in entry.audiences},
    }
