"""The review file: all that somebody has to weigh before a release, or after it, on one page to print.

Invariant: made of public facts alone: the configuration, its plan, the ledger, and the public folder of a
bundle. No private table is opened. The page runs no script, fetches nothing, and shows every name as text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path

from jinja2 import Environment

from dpsynth import figures
from dpsynth.accounting.composition import of_groups, of_recognition
from dpsynth.accounting.events import Guarantee
from dpsynth.accounting.neighbours import left_unprotected
from dpsynth.bundle.manifest import Manifest
from dpsynth.bundle.recipient.opened import Notice, notices_beside
from dpsynth.columns.disclosed import disclosed
from dpsynth.columns.layout import Layout
from dpsynth.columns.public_schema import public_schema
from dpsynth.config import CompiledSpec, Spec, compiled
from dpsynth.errors import DpsynthError
from dpsynth.ledger.ledger import Reading
from dpsynth.ledger.views import account_view, runway_in_words, share_in_words
from dpsynth.page_templates import environment
from dpsynth.pipeline.forecast import plan_of
from dpsynth.plan.expected_errors import column_errors
from dpsynth.plan.plan import Plan, promised
from dpsynth.wing import Point
from dpsynth.wings.governance.acceptance.keys import Accept
from dpsynth.wings.governance.asking import Uses, governed_by
from dpsynth.wings.governance.governed import Request
from dpsynth.wings.governance.policy import Policy
from dpsynth.wings.governance.verification.answering import Verification

GUESSES = (0.01, 0.1, 0.5)
"""Beliefs about a person beforehand, as probabilities."""

MARGIN = 0.01
"""By how much more than e^epsilon the bounds on beliefs let odds grow, where there is a delta."""

ATTACKS: Point[Callable[[Path], Mapping[str, object]]] = Point("attacks for a review", "proof")
"""Attacks on the rehearsal of a configuration's file, or on a bundle, as JSON values."""

_NAMED = 8
"""Most values of a column that are listed."""


@dataclass(frozen=True)
class Way:
    """One way to release, with the errors to expect.

    Attributes:
        error: mean expected error of a count of a single column, in rows.
        pair: that of a count of columns measured together; None where none are.
    """

    name: str
    epsilon: float
    columns: int
    error: float
    pair: float | None


@dataclass(frozen=True)
class Guess:
    """A belief about a person before, and the most that it can become by the release."""

    before: float
    after: float


@dataclass(frozen=True)
class Signed:
    """An act in the ledger: what, by which key, and when."""

    what: str
    by: str
    on: str


@dataclass(frozen=True)
class Earlier:
    """A release of the same account."""

    release_id: str
    release: str
    about: str
    epsilon: str
    state: str
    on: date


@dataclass(frozen=True)
class Account:
    """The account, and what remains of it."""

    dataset: str
    used: str
    cap: str
    runway: tuple[str, ...]
    releases: tuple[Earlier, ...]


@dataclass(frozen=True)
class Column:
    """The facts of a column that are public as they stand."""

    name: str
    type: str
    said: str


@dataclass(frozen=True)
class Review:
    """All that the page shows.

    Attributes:
        of: "request" or "bundle".
        purpose: in the words of whoever asked; "" where it isn't known.
        outside: what else is public without noise, as sentences.
        criteria: the acceptance criteria, judged for a bundle.
        exam: what the exam says; for a request what it will ask.
        signed: acts in the ledger.
        afterwards: what happens once it is finished: an embargo, answers to questions.
        attacks: what attacks came to; empty if none was run.
    """

    of: str
    name: str
    release: str
    purpose: str
    uses: str
    guarantee: Guarantee
    not_protected: tuple[str, ...]
    ways: tuple[Way, ...]
    columns: tuple[Column, ...]
    outside: tuple[str, ...]
    criteria: tuple[str, ...]
    exam: tuple[str, ...]
    policy: Policy | None
    signed: tuple[Signed, ...]
    account: Account | None
    notices: tuple[Notice, ...] = ()
    afterwards: tuple[str, ...] = ()
    attacks: Mapping[str, object] = field(default_factory=dict)

    @property
    def guesses(self) -> tuple[Guess, ...]:
        """Bounds on beliefs, which hold but for outcomes of the probability ``beyond``."""
        more = math.log1p(MARGIN) if self.guarantee.delta else 0.0
        return tuple(Guess(p, believed(p, self.guarantee.epsilon + more)) for p in GUESSES)

    @property
    def beyond(self) -> float:
        """The largest probability of the outcomes that raise a belief further."""
        return beyond(self.guarantee.delta)

    @property
    def recognised(self) -> list[dict[str, float]]:
        return of_recognition(self.guarantee)

    @property
    def groups(self) -> list[dict[str, float | None]]:
        return of_groups(self.guarantee)


def believed(before: float, epsilon: float) -> float:
    """The most that a belief can become: odds grow by at most e^epsilon.

    >>> believed(0.5, 0.0), round(believed(0.5, 1.0), 3), believed(0.1, 800.0)
    (0.5, 0.731, 1.0)
    """
    odds = before / (1 - before) * math.exp(min(epsilon, 700.0))
    return odds / (1 + odds)


def beyond(delta: float) -> float:
    """The largest probability of the outcomes by which odds grow by more than f e^epsilon; f is 1 + MARGIN.

    If a set of outcomes has probability p with a unit, and without it less than p / (f e^epsilon), then
    p <= e^epsilon p / (f e^epsilon) + delta, so p is at most delta / (1 - 1/f).
    """
    return min(1.0, delta * (1 + 1 / MARGIN))


def review_of_request(request: Request, spec: Spec, page: Reading) -> Review:
    """The review of a request, whose configuration it is."""
    worked_out = compiled(spec)
    plan = plan_of(worked_out)
    occasion = request.content["occasion"]
    uses = Uses(None if occasion is None else str(occasion), request.most, request.until)
    guarantee = promised(plan)
    return Review(
        of="request",
        name=request.id,
        release=spec.release,
        purpose=str(request.content["purpose"]),
        uses=uses.in_words(),
        guarantee=guarantee,
        not_protected=(left_unprotected(guarantee.unit),),
        ways=tuple(_ways(spec, plan, worked_out)),
        columns=_columns(worked_out.layout, {c.name for c in worked_out.columns if c.search is not None}),
        outside=_in_sentences(disclosed_beforehand(worked_out)),
        criteria=tuple(one.words for one in spec.accept.criteria) if isinstance(spec.accept, Accept) else (),
        exam=_exam(plan),
        policy=governed_by(page).policy,
        signed=_signed(page, request.id),
        account=_account(page, str(request.terms["dataset"])),
        afterwards=tuple(_afterwards(spec)),
    )


def review_of_bundle(public: Path, manifest: Manifest, page: Reading | None) -> Review:
    """The review of a bundle, by its public folder, with what the ledger has of it where that is at hand."""
    entry = None if page is None else page.release(manifest.release_id)
    found = None if page is None else governed_by(page)
    asked = None if found is None else found.requests.get(found.request_of.get(manifest.release_id, ""))
    return Review(
        of="bundle",
        name=manifest.release_id,
        release=manifest.release,
        purpose="" if asked is None else str(asked.content["purpose"]),
        uses="",
        guarantee=manifest.composed,
        not_protected=manifest.not_protected,
        ways=(),
        columns=_columns(manifest.layout, manifest.found_with_budget),
        outside=_in_sentences(manifest.disclosed_outside),
        criteria=tuple(one.line for one in manifest.verdict.criteria),
        exam=tuple(manifest.verdict.in_words),
        policy=None if found is None else found.policy,
        signed=() if asked is None or page is None else _signed(page, asked.id),
        account=None if entry is None or page is None else _account(page, entry.dataset),
        notices=notices_beside(public, manifest.release_id, manifest.signed_by),
    )


def _ways(spec: Spec, plan: Plan, worked_out: CompiledSpec) -> Iterator[Way]:
    """The release as asked, with less of epsilon, and with fewer columns; none where tiers share a budget."""
    yield _way("as asked", plan, worked_out)
    if spec.audiences:
        return
    for name, part in (("half of ε", 2), ("a quarter of ε", 4)):
        privacy = spec.privacy.model_copy(update={"epsilon": Decimal(spec.privacy.epsilon) / part})
        yield from _other(name, spec.model_copy(update={"privacy": privacy}))
    kept = dict(list(spec.columns.items())[: len(spec.columns) // 2])
    if not kept:
        return
    asked = tuple(s for s in spec.publish.statistics if {*s.columns} <= {*kept})
    fewer = {
        "columns": kept,
        "publish": spec.publish.model_copy(update={"statistics": asked}),
        "constraints": (),
        "public_marginals": (),
        "accept": None,
    }
    yield from _other("the first half of the columns", spec.model_copy(update=fewer))


def _other(name: str, spec: Spec) -> Iterator[Way]:
    # Not every part of a configuration is one by itself.
    try:
        worked_out = compiled(spec)
        yield _way(name, plan_of(worked_out), worked_out)
    except (DpsynthError, LookupError, ValueError):
        return


def _way(name: str, plan: Plan, worked_out: CompiledSpec) -> Way:
    errors = [one.error for one in column_errors(plan, worked_out.columns)]
    pair = next((s.to_json().get("expected_error") for s in plan.steps if s.step == "marginals"), None)
    return Way(
        name,
        float(plan.whole.epsilon),
        len(worked_out.columns),
        sum(errors) / len(errors) if errors else 0.0,
        pair if isinstance(pair, float) else None,
    )


def _columns(layout: Layout, found: Collection[str]) -> tuple[Column, ...]:
    return tuple(
        Column(str(described["name"]), str(described["type"]), _said(described, found))
        for described in public_schema(layout)
    )


def _said(described: Mapping[str, object], found: Collection[str]) -> str:
    if described["name"] in found:
        return "found with a part of ε"
    labels = described.get("labels")
    if not isinstance(labels, Sequence):
        return ""
    named = ", ".join(map(str, labels[:_NAMED]))
    return f"{named}, and {len(labels) - _NAMED:,} more" if len(labels) > _NAMED else named


def disclosed_beforehand(worked_out: CompiledSpec) -> tuple[Mapping[str, str], ...]:
    """The facts that a release of a configuration would make public without noise."""
    spec, public = worked_out.spec, worked_out.spec.public_table
    return tuple(
        disclosed(
            spec.release,
            worked_out.layout,
            spec.provenance,
            found=[c.name for c in worked_out.columns if c.search is not None],
            rules=spec.constraints,
            counts=[one.columns for one in spec.public_marginals],
            table="" if public is None else f"The public table {public.path}, used as evidence",
            period="" if spec.period is None else spec.period.column,
            asked=[" and ".join(one.columns) for one in spec.publish.statistics],
        )
    )


def _in_sentences(facts: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """The facts but those that the page's table of columns shows."""
    return tuple(fact["what"] for fact in facts if fact["kind"] not in ("column", "domain"))


def _afterwards(spec: Spec) -> Iterator[str]:
    if spec.embargo is not None:
        yield f"The finished bundle is kept encrypted until {spec.embargo}."
    if isinstance(spec.verification, Verification):
        yield (
            f"Questions of recipients may be answered: each for ε = {spec.verification.question}, all for "
            f"ε = {spec.verification.epsilon}. Each answer is a release of its own, with its own approval."
        )


def _exam(plan: Plan) -> tuple[str, ...]:
    if not plan.exam:
        return ("There will be none: the budget has no share for it.",)
    return (
        f"The finished table will be compared with the private one on {len(plan.exam):,} sets of columns, by "
        "noisy distances. Each column and pair gets a verdict: use, with care, or don't use.",
    )


def _signed(page: Reading, request_id: str) -> tuple[Signed, ...]:
    """The acts about a request, in the order of the chain."""
    found = []
    for row in page.rows:
        content = json.loads(row.content)
        about = content.get("id") if row.kind == "requested" else content.get("request")
        if about == request_id and row.kind in ("requested", "approved", "revoked", "reserved"):
            what = f"released as {row.release_id}" if row.kind == "reserved" else row.kind
            found.append(Signed(what, str(content.get("by", "whoever ran it")), row.created))
    return tuple(found)


def _account(page: Reading, dataset: str) -> Account | None:
    account = page.balance(dataset)
    if account is None:
        return None
    view = account_view(account, page.day)
    return Account(
        dataset,
        share_in_words(account.share_used),
        account.caps[-1].shown(),
        runway_in_words(view),
        tuple(
            Earlier(
                one.release_id,
                one.release,
                one.occasion or "",
                figures.rounded_up(float(one.cost.amount.epsilon)),
                one.state,
                one.created,
            )
            for one in account.releases
        ),
    )


@cache
def _environment() -> Environment:
    pages = environment("wings/governance")
    pages.filters["up"] = figures.rounded_up
    pages.filters["count"] = figures.count
    return pages


def review_html(review: Review) -> str:
    """The page."""
    return _environment().get_template("review.html.j2").render(review=review)
