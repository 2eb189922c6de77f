"""The pictures and figures of choosing.md: ``python docs/choosing_pictures.py`` writes docs/pictures/.

Every figure is computed by the package itself: the odds of a guess, the plan of a table of ten columns, and
the ledger's account of monthly releases.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from math import log10, tanh
from pathlib import Path

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import planned
from dpsynth.accounting.measures import GDP
from dpsynth.config import Spec, compiled
from dpsynth.figures import guess_percent
from dpsynth.ledger.balance import Balance, CapChange, ReleaseEntry
from dpsynth.plan.expected_errors import column_errors
from dpsynth.plan.plan import make_plan
from dpsynth.strategy import strategy_of

PICTURES = Path(__file__).parent / "pictures"

EPSILONS = ("0.1", "0.3", "0.5", "1", "2", "3", "5", "10")
CAP = Amount(Fraction(10), Fraction(1, 10**5))
MONTHLY = ("0.5", "1", "2", "3")

INK, BLUE, PALE, RED = "#334155", "#3b6fb6", "#94a3b8", "#b4432f"
LEFT, BOTTOM = 24, 180
"""The corner of each picture, which is 640 wide and 220 high."""


def guesses(epsilon: str) -> str:
    """Right guesses, in per cent, of a reader who knows all but whether one person is in the table."""
    shown = guess_percent(float(epsilon), 0.0)
    return "over 99.9" if shown == "100" else shown


def smallest_group(epsilon: str) -> float:
    """The smallest group that can be told from nothing, in rows: ten columns of eight values."""
    spec = Spec.from_dict(
        {
            "ledger": {"dataset": "example"},
            "privacy": {"epsilon": Decimal(epsilon), "delta": Decimal("1e-9")},
            "columns": {
                f"c{i}": {"type": "category", "values": [f"v{j}" for j in range(8)], "missing": False}
                for i in range(10)
            },
        }
    )
    works = compiled(spec)
    plan = make_plan(works, strategy_of("auto", ()))
    return column_errors(plan, works.columns)[0].smallest


def account(epsilon: str, releases: int) -> Balance:
    """A ledger's account under the cap, with so many releases of Gaussian noise at delta 1e-9."""
    amount = Amount(Fraction(epsilon), Fraction(1, 10**9))
    cost = planned(GDP, "gaussian", GDP.budget(amount.epsilon, amount.delta), amount, Fraction(0))
    day = date(2026, 1, 1)
    entries = (
        ReleaseEntry(f"r{i}", "example", state="closed", reserved=cost, cost=cost, created=day, ended=day)
        for i in range(releases)
    )
    return Balance("example", "one person", "add_remove", GDP, (CapChange(CAP, day),), tuple(entries), day)


def months(epsilon: str) -> int:
    """Monthly releases that fit under the cap."""
    return account(epsilon, 1).fits(account(epsilon, 1).releases[0].cost) + 1


def total(epsilon: str, releases: int) -> float:
    """The epsilon of all releases together, as the ledger counts it."""
    return float(account(epsilon, releases).epsilon_used)


def pictures() -> dict[str, str]:
    """The pictures as SVG, by name."""
    right = [tanh(float(epsilon) / 2) for epsilon in EPSILONS]
    groups = [smallest_group(epsilon) for epsilon in EPSILONS]
    return {
        "guesses": _bars(
            "right guesses, at most (the ground line is a coin: 50 %)",
            right,
            [f"{guesses(epsilon)} %" for epsilon in EPSILONS],
        ),
        "groups": _bars(
            "smallest group that shows, in persons (on a logarithmic scale)",
            [log10(group) / 4 for group in groups],
            [f"{group:,.0f}" for group in groups],
        ),
        "months": _growing(),
    }


def _bars(what: str, shares: Sequence[float], labels: Sequence[str]) -> str:
    """A bar for each epsilon, of a share of the height, and its label."""
    parts = [_text(LEFT, 16, what, "start")]
    for i, (share, label, epsilon) in enumerate(zip(shares, labels, EPSILONS, strict=True)):
        x, high = LEFT + i * 72, max(2.0, 130 * share)
        parts += [
            f'<rect x="{x}" y="{BOTTOM - high:.1f}" width="46" height="{high:.1f}" fill="{BLUE}"/>',
            _text(x + 23, BOTTOM - high - 6, label),
            _text(x + 23, BOTTOM + 18, f"ε = {epsilon}"),
        ]
    return _picture(what, parts)


def _growing() -> str:
    """The sums of monthly releases under the cap."""
    what, right, high = "ε of all releases together", 540, 150
    top = BOTTOM - high * float(CAP.epsilon) / 11
    parts = [
        _text(LEFT, 16, what, "start"),
        f'<path d="M{LEFT} {top:.1f}H{right}" stroke="{RED}" fill="none"/>',
        _text(right + 6, top - 4, "cap: ε = 10", "start", RED),
    ]
    for epsilon, colour in zip(("0.5", "1", "2"), (PALE, BLUE, INK), strict=True):
        last = min(months(epsilon), 121)
        spots = [
            f"{LEFT + (right - LEFT) * n / 121:.1f} {BOTTOM - high * total(epsilon, n) / 11:.1f}"
            for n in range(1, last + 1, 3)
        ]
        end = spots[-1].split()
        parts += [
            f'<path d="M{" L".join(spots)}" stroke="{colour}" stroke-width="2.5" fill="none"/>',
            _text(float(end[0]) + 6, float(end[1]) + 16, f"ε = {epsilon} each", "start", INK),
        ]
    parts += [
        _text(LEFT + (right - LEFT) * n / 121, BOTTOM + 18, f"{n}") for n in (1, 12, 24, 36, 48, 60, 90, 120)
    ]
    return _picture(what, [*parts, _text(right + 24, BOTTOM + 18, "releases", "start")])


def _text(x: float, y: float, words: str, anchor: str = "middle", colour: str = INK) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{words}</text>'


def _picture(what: str, parts: Sequence[str]) -> str:
    axis = f'<path d="M{LEFT} {BOTTOM}H600" stroke="{PALE}" fill="none"/>'
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 220" role="img" font-family="sans-serif" '
        f'font-size="13"><title>{what}</title><rect width="640" height="220" fill="white"/>\n'
        + "\n".join([axis, *parts])
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for name, picture in pictures().items():
        (PICTURES / f"{name}.svg").write_text(picture, encoding="utf-8")
