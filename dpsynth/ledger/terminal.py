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
    """Print a dataset's account in two lines, and a third where releases have not ended."""
    account, number = view.account, len(view.lines)
    out.print(
        f"{printable(account.dataset)}: {views.share_in_words(account.share_used)} of the cap is used, "
        f"ε = {views.figure(account.epsilon_used)} of {account.cap.shown(up=False)}, by {number:,} "
        f"release{'s' * (number != 1)} since {account.opened}, for {printable(account.unit)}."
    )
    for sentence in views.unit_change_in_words(account):
        out.print(printable(sentence))
    out.print(" ".join(views.runway_in_words(view)))
    if view.unfinished:
        names = ", ".join(entry.release_id for entry in view.unfinished[:5])
        more = len(view.unfinished) - 5
        some = f" and {more:,} more" if more > 0 else ""
        out.print(
            f"Not ended, and counted in full: {names}{some}. Finish each with dpsynth run CONFIG --resume "
            "ID, or give it up with dpsynth run CONFIG --abandon ID."
        )


def print_account(out: Console, view: AccountView) -> None:
    """Print a dataset's account with all of its releases."""
    account = view.account
    out.print(printable(account.dataset), style="bold")
    out.print(
        f"Protects {printable(account.unit)} ({account.neighbours}). In the ledger since {account.opened}."
    )
    for sentence in views.unit_change_in_words(account):
        out.print(printable(sentence))
    if account.changed is not None:
        out.print(f"Reason of the change: {printable(account.changed.reason)}")
    out.print(
        f"{_bar(account.share_used)} {views.share_in_words(account.share_used)} of the cap: "
        f"ε = {views.figure(account.epsilon_used)} of {account.cap.shown(up=False)}"
    )
    out.print(views.filter_in_words(account))
    for sentence in views.sources_in_words(account):
        out.print(printable(sentence))
    for change in account.caps[1:]:
        out.print(f"Cap since {change.created}: {change.shown()} ({printable(change.reason)})")
    out.print(f"\n{printable(views.guarantee_in_words(view))}")
    _print_table(out, _statements(view), "lrrw")
    out.print()
    narrow = out.width < _WIDE
    _print_table(out, _releases(view, narrow=narrow), "lwlrrrl" if narrow else "lwwlrrrrll")
    for sentence in (*views.audiences_in_words(account), *views.runway_in_words(view)):
        out.print(printable(sentence))
    for entry in view.unfinished:
        out.print(
            f"Release {entry.release_id} has not ended and counts in full. Unless it is running, finish it "
            f"with dpsynth run CONFIG --resume {entry.release_id}, or give it up with dpsynth ledger "
            f'abandon {entry.release_id} --config CONFIG --reason "…"'
        )


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


def _releases(view: AccountView, *, narrow: bool) -> list[tuple[str, ...]]:
    """A head and a line for each release; only the main columns on a narrow terminal."""
    rows = [("id", "release", "period", "state", "ε alone", "δ", "share", "so far", "reserved", "ended")]
    for line in view.lines:
        entry = line.entry
        amount = entry.cost.amount
        rows.append(
            (
                entry.release_id,
                entry.release,
                entry.occasion or "",
                entry.state,
                views.figure(amount.epsilon),
                digits(amount.delta, up=True),
                views.share_in_words(line.share),
                views.share_in_words(line.so_far),
                f"{entry.created}",
                f"{entry.ended or ''}",
            )
        )
    return [row[:1] + row[2:5] + row[6:9] for row in rows] if narrow else [*rows]


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
