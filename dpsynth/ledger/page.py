"""The ledger as one page for its owner.

Invariant: the page shows every name and reason as text, whatever it holds. It runs no script and fetches
nothing; its content security policy forbids both. Everything on it is in the ledger, which holds nothing
private; no bundle holds the page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from math import isfinite

from markupsafe import Markup, escape

from dpsynth.accounting.amount import digits
from dpsynth.accounting.comparison import NAMES
from dpsynth.ledger import views
from dpsynth.ledger.chart import Chart, chart
from dpsynth.ledger.views import AccountView
from dpsynth.page_templates import environment

_LINES_SHOWN = 24
_LONGEST = 4.5
"""Length of the longest bar in the list of releases, in widths of a letter."""


@dataclass(frozen=True)
class Chain:
    """The state of the chain of the ledger's rows.

    Attributes:
        name: the ledger's name, without a password.
        rows: number of rows.
        head: the hash of the last row.
        problems: the faults in words; none where it is intact.
        head_file: true if the chain was compared with a head file.
    """

    name: str
    rows: int
    head: str
    problems: tuple[str, ...]
    head_file: bool


@dataclass(frozen=True)
class Bar:
    """One accountant's epsilon, and its length in per cent of the longest."""

    name: str
    epsilon: str
    delta: str
    why: str
    adaptive: bool
    least: bool
    length: float


def ledger_html(accounts: Sequence[AccountView], chain: Chain, today: date) -> str:
    """The page.

    Args:
        accounts: one for each dataset to show.
        chain: of all rows of the ledger.
        today: a UTC date.
    """
    pages = environment()
    pages.filters["share"] = views.share_in_words
    pages.filters["up"] = views.figure
    pages.filters["six"] = lambda value: digits(value, up=True)
    pages.filters["down"] = lambda value: digits(value, up=False)
    pages.filters["at"] = lambda value: f"{value:.2f}%"
    pages.filters["unbroken"] = unbroken
    pages.filters["rem"] = lambda value: f"{value:.2f}rem"
    shown = [_shown(view, today) for view in accounts]
    return pages.get_template("ledger.html.j2").render(
        accounts=shown, chain=chain, today=today, lines_shown=_LINES_SHOWN
    )


def unbroken(text: str) -> Markup:
    """A sentence as HTML in which no line ends within an equation or a date."""
    whole = str(escape(text)).replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    return Markup(re.sub(r"\b\d{4}-\d\d-\d\d\b", r'<span class="day">\g<0></span>', whole))


def _shown(view: AccountView, today: date) -> dict[str, object]:
    picture: Chart | None = chart(view, today)
    return {
        "view": view,
        "account": view.account,
        "chart": picture,
        "gauge": _gauge(view),
        "bars": _bars(view),
        "guarantee": views.guarantee_in_words(view),
        "runway": views.runway_in_words(view),
        "cap": views.cap_in_words(view.account),
        "sources": (
            *views.unit_change_in_words(view.account),
            *views.sources_in_words(view.account),
        ),
        "length": _lengths(view),
        "asked": {line.entry.release_id: views.asked_in_words(line) for line in view.lines},
    }


def _gauge(view: AccountView) -> tuple[float, float]:
    """Per cent of the cap of ended releases, and of unfinished ones."""
    settled, used = (100 * min(share, 1.0) for share in (view.settled, view.account.share_used))
    return settled, max(used - settled, 0.0)


def _lengths(view: AccountView) -> dict[str, float]:
    """Lengths of the releases' bars; the dearest release has the longest."""
    most = max((line.share for line in view.lines), default=0.0)
    measurable = isfinite(most) and most > 0
    return {line.entry.release_id: _LONGEST * line.share / most if measurable else 0.0 for line in view.lines}


def _bars(view: AccountView) -> list[Bar]:
    longest = max((s.epsilon or 0.0 for s in view.statements), default=0.0) or 1.0
    return [
        Bar(
            name=NAMES[s.accountant],
            epsilon=views.epsilon_of(s),
            delta=views.delta_of(s),
            why=s.why,
            adaptive=s.adaptive,
            least=s is view.least,
            length=100 * (s.epsilon or 0.0) / longest,
        )
        for s in view.statements
    ]
