"""An audit in sentences, as JSON values, and as one page for those who are asked to believe its guarantee.

Invariant: the page runs no script and fetches nothing. It holds nothing about a private table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from dpsynth.page_templates import environment
from dpsynth.wings.proof.audit.auditing import Audit
from dpsynth.wings.proof.audit.losses import LowerBound

ASKED: Mapping[str, str] = {
    "marginal": "counts",
    "errors": "distances",
    "parities": "parities",
    "choose": "choices",
    "exam": "the exam",
    "classified": "right guesses of a classifier",
    "sums": "sums",
    "finer counts": "counts of pieces of bins",
    "counts": "counts of found domains",
    "medians": "quantiles",
    "values": "found values",
    "rows": "rows of a unit",
}
"""Names of the kinds of questions."""


def _filled(template: str, audit: Audit, **facts: object) -> str:
    pages = environment("wings/proof")
    pages.filters |= {"bound": _bound_in_words, "guesses": _guesses}
    told = {"claim": _claim_in_words(audit), "many": _many_in_words(audit), "asked": ASKED}
    return pages.get_template(template).render(audit=audit, **told, **facts)


def in_words(audit: Audit) -> list[str]:
    """The audit, line by line; the last one is the verdict."""
    return _filled("audit.text.j2", audit).rstrip("\n").split("\n")


def _many_in_words(audit: Audit) -> str:
    """The replays for many distances, in a sentence."""
    many = audit.many
    changes = "; ".join(change for change, _ in many.changes)
    largest = max((reached.largest for reached in many.reached), default=0.0)
    return (
        f"Asked for more distances at once, on the same terms ({changes}): moved by at most {largest:.3g} of "
        f"the declared sensitivity, and cost at most {many.dearest:.4f} of the budget."
    )


def _claim_in_words(audit: Audit) -> str:
    """The guarantee that was claimed."""
    claim = audit.claim
    mu = f", mu = {claim.mu:.4g} of Gaussian DP" if claim.mu is not None else ""
    return f"ε = {claim.epsilon:g}, δ = {claim.delta:g}{mu} for {claim.unit} ({claim.relation})"


def _guesses(bound: LowerBound) -> str:
    """The share of right guesses, with its limits."""
    low, high = bound.right_between
    return f"{bound.right:.1%} right [{low:.1%}, {high:.1%}]"


def _bound_in_words(bound: LowerBound) -> str:
    """The success of an attacker, and the bounds that follow from it."""
    return (
        f"{_guesses(bound)} of {2 * bound.releases:,} guesses, which shows ε ≥ {bound.epsilon:.3g} and "
        f"mu ≥ {bound.mu:.3g} with {bound.confidence:.0%} confidence"
    )


def as_facts(audit: Audit) -> Mapping[str, object]:
    """The audit as plain JSON values, with its faults."""
    return {**asdict(audit), "faults": list(audit.faults), "sound": not audit.faults}


def page(audit: Audit, command: str) -> str:
    """The page as HTML, with the command that makes it again."""
    return _filled("audit.html.j2", audit, command=command)
