"""What accountants say of many releases together, and how many of them each filter lets through.

    python benchmarks/composition.py [--releases 120] [--epsilons 0.05 0.2 1] [--delta 1e-5] [--cap 10]

First table: epsilon at --delta of so many releases, each planned for an epsilon (and for 1e-9, but the pure
ones) and spending it on ten answers about columns, nine choices and nine about pairs. In brackets
its ratio to the privacy loss distribution's. "mixed" is a third of each kind.
Second table: how many releases planned for an epsilon a cap of (--cap, --delta) lets through by each filter,
one after another: each reserves what it is planned for, and then counts for what its answers came to.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from functools import cache
from math import inf
from time import perf_counter

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.calibration import exponential_within, gaussian_within, laplace_within
from dpsynth.accounting.composition import Cost, planned, spent
from dpsynth.accounting.events import RecordedEvent
from dpsynth.accounting.measures import GDP, PURE, ZCDP, Measure
from dpsynth.ledger.views import Composed
from dpsynth.wings.proof.accountants.comparison import statements

OWN = Fraction(1, 10**9)
KINDS: dict[str, tuple[Measure, str]] = {
    "gaussian": (GDP, "gaussian"),
    "gaussian, rho": (ZCDP, "gaussian"),
    "laplace, rho": (ZCDP, "laplace"),
    "pure": (PURE, "laplace"),
}


def budget(kind: str, epsilon: Fraction) -> Fraction:
    """What a release may spend under its measure."""
    return KINDS[kind][0].budget(epsilon, OWN)


@cache
def made(kind: str, epsilon: Fraction) -> Composed:
    """A release that has spent its budget."""
    measure, noise = KINDS[kind]
    parts = {"columns": (10, Fraction(2, 10)), "choices": (9, Fraction(2, 10)), "pairs": (9, Fraction(6, 10))}
    events: list[RecordedEvent] = []
    for step, (times, share) in parts.items():
        price = budget(kind, epsilon) * share / times
        if step == "choices":
            events += [exponential_within(price, measure, 1)] * times
        elif noise == "laplace":
            events += [laplace_within(price, measure, 1)] * times
        else:
            events += [gaussian_within(price, 1, measure)] * times
    total = sum((measure.cost(event) for event in events), Fraction(0))
    delta = Fraction(0) if measure == PURE else OWN
    return Composed(spent(events, Amount(measure.epsilon(total, delta or None), delta)), tuple(events))


def reserved(kind: str, epsilon: Fraction) -> Cost:
    """What a release counts for that is planned for an epsilon."""
    measure, noise = KINDS[kind]
    delta = Fraction(0) if measure == PURE else OWN
    return planned(measure, noise, budget(kind, epsilon), Amount(epsilon, delta))


def let_through(kind: str, epsilon: Fraction, cap: Amount) -> list[int | None]:
    """How many releases fit under sequential, zcdp and gdp; None where the filter doesn't know their cost."""
    first, then = reserved(kind, epsilon), made(kind, epsilon).cost
    bounds = [
        (cap.epsilon, first.amount.epsilon, then.amount.epsilon),
        (cap.delta, first.amount.delta, then.amount.delta),
        (ZCDP.budget(cap.epsilon, cap.delta), first.rho, then.rho),
        (GDP.budget(cap.epsilon, cap.delta), first.half_mu_squared, then.half_mu_squared),
    ]
    by_epsilon, by_delta, *others = (
        None if asked is None or spent is None else (bound - asked) // spent + 1 if spent else inf
        for bound, asked, spent in bounds
    )
    return [min(by_epsilon, by_delta), *others]


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--releases", type=int, default=120)
    parser.add_argument(
        "--epsilons", nargs="+", type=Fraction, default=[Fraction(e) for e in ("1/20", "1/5", "1")]
    )
    parser.add_argument("--delta", type=Fraction, default=Fraction(1, 10**5))
    parser.add_argument("--cap", type=Fraction, default=Fraction(10))
    arguments = parser.parse_args()
    names = ("pld", "rdp", "zcdp", "gdp", "advanced", "sequential")
    print(f"{'releases':>14}{'planned':>9}" + "".join(f"{name:>16}" for name in names) + f"{'seconds':>9}")
    mixture = ("gaussian", "laplace, rho", "pure")
    for kinds in [mixture, *((kind,) for kind in KINDS)]:
        for epsilon in arguments.epsilons:
            releases = [made(kinds[n % len(kinds)], epsilon) for n in range(arguments.releases)]
            begun = perf_counter()
            found = {s.accountant: s.epsilon for s in statements(releases, arguments.delta)}
            seconds = perf_counter() - begun
            floor = found["pld"]
            cells = "".join(
                f"{'none':>16}"
                if (value := found[name]) is None or floor is None
                else f"{value:9.3f} ({value / floor:4.2f})"
                for name in names
            )
            name = "mixed" if kinds == mixture else kinds[0]
            print(f"{name:>14}{float(epsilon):9.3g}{cells}{seconds:9.2f}", flush=True)
    cap = Amount(arguments.cap, arguments.delta)
    print(
        f"\n{'releases':>14}{'planned':>9}" + "".join(f"{name:>12}" for name in ("sequential", "zcdp", "gdp"))
    )
    for kind in KINDS:
        for epsilon in arguments.epsilons:
            cells = "".join(f"{'unknown' if n is None else n:>12}" for n in let_through(kind, epsilon, cap))
            print(f"{kind:>14}{float(epsilon):9.3g}{cells}")


if __name__ == "__main__":
    main()
