"""An audit in sentences, as JSON values, and as one page for those who are asked to believe its guarantee.

Invariant: the page runs no script and fetches nothing. It holds nothing about a private table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from dpsynth.page_templates import environment
from dpsynth.wings.proof.audit.auditing import Attacked, Audit
from dpsynth.wings.proof.audit.losses import LowerBound

ASKED: Mapping[str, str] = {
    "marginal": "counts",
    "errors": "distances",
    "choose": "choices",
    "exam": "the exam",
    "sums": "sums",
    "finer counts": "counts of pieces of bins",
    "counts": "counts of found domains",
    "medians": "quantiles",
    "values": "found values",
    "rows": "rows of a unit",
}
"""Names of the kinds of questions."""


def in_words(audit: Audit) -> Iterator[str]:
    """The audit, line by line; the last one is the verdict."""
    replayed = audit.replayed
    yield (
        f"{audit.release}, method {audit.method}, on made-up tables of {audit.rows:,} rows. No private table "
        "was opened, and no ledger charged."
    )
    yield f"Claimed: {claim_in_words(audit)}."
    yield ""
    yield (
        f"Replayed on {replayed.neighbours:,} neighbours, each with the recorded answers forced: "
        f"{replayed.questions:,} questions compared, and everything else that came out."
    )
    for reached in replayed.reached:
        yield (
            f"  {ASKED.get(reached.ask, reached.ask)}: {reached.questions:,} asked, moved by at most "
            f"{reached.largest:.3g} of the declared sensitivity."
        )
    yield f"  The dearest transcript cost {replayed.dearest:.4f} of the budget, exactly."
    yield many_in_words(audit)
    if audit.attacked is not None:
        yield ""
        yield from _attacks(audit, audit.attacked)
    yield ""
    if audit.faults:
        yield "This contradicts the claim:"
        yield from (f"  {fault}" for fault in audit.faults)
    else:
        yield f"Nothing contradicts the claim. {audit.seconds:.0f} s."


def many_in_words(audit: Audit) -> str:
    """The replays for many distances, in a sentence."""
    many = audit.many
    changes = "; ".join(change for change, _ in many.changes)
    largest = max((reached.largest for reached in many.reached), default=0.0)
    return (
        f"Asked for more distances at once, on the same terms ({changes}): moved by at most {largest:.3g} of "
        f"the declared sensitivity, and cost at most {many.dearest:.4f} of the budget."
    )


def claim_in_words(audit: Audit) -> str:
    """The guarantee that was claimed."""
    claim = audit.claim
    mu = f", mu = {claim.mu:.4g} of Gaussian DP" if claim.mu is not None else ""
    return f"ε = {claim.epsilon:g}, δ = {claim.delta:g}{mu} for {claim.unit} ({claim.relation})"


def _attacks(audit: Audit, attacked: Attacked) -> Iterator[str]:
    yield (
        f"Attacked: {attacked.releases:,} releases of a table, and as many of a neighbour. The attacker "
        "knows all other rows, the config and the code. By the claim at most "
        f"{audit.claim.right:.1%} of the guesses are right."
    )
    yield f"  With all answers: {bound_in_words(attacked.transcript)}."
    yield f"  With the synthetic table alone, by {attacked.chosen}: {bound_in_words(attacked.chosen_bound)}."
    others = [name for name in attacked.table if name != attacked.chosen]
    yield "    " + "; ".join(f"by {name} {guesses(attacked.table[name])}" for name in others) + "."
    yield f"  Noise: {attacked.noise.ratio:.4f} of the stated size, by {attacked.noise.draws:,} draws."


def guesses(bound: LowerBound) -> str:
    """The share of right guesses, with its limits."""
    low, high = bound.right_between
    return f"{bound.right:.1%} right [{low:.1%}, {high:.1%}]"


def bound_in_words(bound: LowerBound) -> str:
    """The success of an attacker, and the bounds that follow from it."""
    return (
        f"{guesses(bound)} of {2 * bound.releases:,} guesses, which shows ε ≥ {bound.epsilon:.3g} and "
        f"mu ≥ {bound.mu:.3g} with {bound.confidence:.0%} confidence"
    )


def as_facts(audit: Audit) -> Mapping[str, object]:
    """The audit as plain JSON values, with its faults."""
    return {**asdict(audit), "faults": list(audit.faults), "sound": not audit.faults}


def page(audit: Audit, command: str) -> str:
    """The page as HTML.

    Args:
        audit: the outcome.
        command: the command that makes it again.
    """
    pages = environment("wings/proof")
    pages.filters["bound"] = bound_in_words
    return pages.get_template("audit.html.j2").render(
        audit=audit,
        claim=claim_in_words(audit),
        many=many_in_words(audit),
        asked=ASKED,
        command=command,
    )
