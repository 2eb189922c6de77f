"""An account on a terminal, or as plain lines where the output goes elsewhere.

Invariant: no name or reason can steer the terminal, whatever it holds.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from dpsynth.accounting.amount import digits
from dpsynth.accounting.comparison import NAMES
from dpsynth.ledger import views
from dpsynth.ledger.views import AccountView

_BAR = 40
_PIPED_WIDTH = 240
_WIDE = 110
_SIDES = {"id": "l", "release": "w", "period": "w", "state": "l", "ε alone": "r", "δ": "r", "share": "r",
          "so far": "r", "reserved": "l", "ended": "l"}  # fmt: skip
"""The columns of a list of releases, each with its side: see ``_print_table``."""
_COLUMNS = ("id", "period", "state", "share", "reserved")
_NARROW = ("id", "period", "state", "ε alone", "share", "so far", "reserved")


def console() -> Console:
    """The console of accounts: text without markup, in lines that no pipe breaks."""
    shown = Console(highlight=False, markup=False, emoji=False)
    if not shown.is_terminal:
        shown.width = _PIPED_WIDTH
        shown.soft_wrap = True
    return shown


def printable(text: str) -> str:
    r"""A text on one line, without characters that a terminal would obey.

    >>> printable("a\x1b[31m\nb")
    'a?[31m b'
    """
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def print_summary(out: Console, view: AccountView) -> None:
    """Print the share of a dataset's cap that is used, what still fits, and what has not ended."""
    account, number = view.account, len(view.lines)
    out.print(
        f"{printable(account.dataset)}: {views.share_in_words(account.share_used)} of the cap is used, "
        f"by {number:,} release{'s' * (number != 1)} since {account.opened}."
    )
    out.print(_bar(account.share_used))
    out.print(" ".join(views.runway_in_words(view)))
    out.print(f"Protected: {printable(account.unit)}.")
    for sentence in views.unit_change_in_words(account):
        out.print(printable(sentence))
    open_ones = view.unfinished
    if open_ones:
        names, one = ", ".join(entry.release_id for entry in open_ones[:5]), len(open_ones) == 1
        some = f" and {len(open_ones) - 5:,} more" if len(open_ones) > 5 else ""
        which = open_ones[0].release_id if one else "ID"
        out.print(
            f"Not ended, and counted in full: {names}{some}. Unless it is running, finish "
            f"{'it' if one else 'each'} with dpsynth run CONFIG --resume {which}, or give it up with dpsynth "
            f"run CONFIG --abandon {which}."
        )


def print_account(out: Console, view: AccountView, *, detail: bool = False) -> None:
    """Print a dataset's account with all of its releases.

    Args:
        out: the console.
        view: the account.
        detail: print ε and δ too, and the guarantee of all releases by each accountant.
    """
    account = view.account
    print_summary(out, view)
    if account.changed is not None:
        out.print(f"Reason of the change: {printable(account.changed.reason)}")
    for sentence in (*views.sources_in_words(account), *views.audiences_in_words(account)):
        out.print(printable(sentence))
    for change in account.caps[1:]:
        out.print(f"Cap since {change.created}: {change.shown()} ({printable(change.reason)})")
    out.print()
    if detail:
        out.print(printable(views.cap_in_words(account)))
        out.print(printable(views.guarantee_in_words(view)))
        _print_table(out, _statements(view), "lrrw")
        out.print()
    names = _COLUMNS if not detail else _NARROW if out.width < _WIDE else tuple(_SIDES)
    _print_table(out, _releases(view, names), "".join(_SIDES[name] for name in names))


def _bar(share: float) -> str:
    filled = min(_BAR, int(_BAR * min(share, 1.0) + 0.999))
    return "█" * filled + "░" * (_BAR - filled)


def _statements(view: AccountView) -> list[tuple[str, ...]]:
    """A head and a line for each accountant."""
    rows: list[tuple[str, ...]] = [("accountant", "ε", "δ", "")]
    for found in view.statements:
        name = f"{NAMES[found.accountant]}{' (least)' if found is view.least else ''}"
        rows.append((name, views.epsilon_of(found), views.delta_of(found), found.why))
    return rows


def _releases(view: AccountView, names: Sequence[str]) -> list[tuple[str, ...]]:
    """A head and a line for each release, with some columns."""
    rows = [tuple(names)]
    for line in view.lines:
        entry = line.entry
        amount = entry.cost.amount
        cells = {
            "id": entry.release_id,
            "release": entry.release,
            "period": entry.occasion or "",
            "state": entry.state,
            "ε alone": views.figure(amount.epsilon),
            "δ": digits(amount.delta, up=True),
            "share": views.share_in_words(line.share),
            "so far": views.share_in_words(line.so_far),
            "reserved": f"{entry.created}",
            "ended": f"{entry.ended or ''}",
        }
        rows.append(tuple(cells[name] for name in names))
    return rows


def _print_table(out: Console, rows: Sequence[Sequence[str]], sides: str) -> None:
    """Print a head and lines below it; "l", "r": to the left or right; "w": to the left, may be broken."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name, side in zip(rows[0], sides, strict=True):
        table.add_column(
            name, justify="right" if side == "r" else "left", no_wrap=side != "w", overflow="fold"
        )
    for row in rows[1:]:
        table.add_row(*(printable(cell) for cell in row))
    if out.is_terminal:
        out.print(table)
        return
    with out.capture() as text:
        out.print(table)
    for line in text.get().splitlines():
        out.print(line.rstrip())
