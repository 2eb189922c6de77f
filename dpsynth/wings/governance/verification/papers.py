"""The two papers of a verification: the recipient's question, and the owner's answer.

A figure t of the private table is near a claimed figure c if |c - t| is at most a share w of |t|. The answer
has limits of t at 95 %, from its own noise. Where every t within the limits is near c, the claim holds; where
none is, it doesn't; otherwise it can't be told. So a false "holds", or a false "does not hold", has a
probability of at most 5 % for each figure, whatever the table.

Invariant: a question is made of what is published, and an answer of a question and of noisy answers. Both are
JSON of known keys, and an answer can be judged again by whoever has it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from math import isfinite, isnan
from pathlib import Path
from typing import Annotated, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field

from dpsynth.bundle.recipient.bundle import Bundle
from dpsynth.bundle.recipient.query import MOST_GROUPS, Answer, answered
from dpsynth.bundle.signature import CHECKSUMS, SigningKey, sha256_of, signer_of
from dpsynth.errors import ConfigError, DpsynthError
from dpsynth.wings.governance.verification.regression import coefficients

Outcome = Literal["holds", "does not hold", "can't be told"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
ODDS = 0.05
"""The largest probability of a false word on one figure."""

_LARGEST = 10_000_000


class _Paper(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)

    @property
    def text(self) -> str:
        return json.dumps(self.model_dump(mode="json"), indent=2, ensure_ascii=False, sort_keys=True) + "\n"


_Text = Annotated[str, Field(max_length=10_000)]
_Group = dict[_Text, _Text]


class Claim(_Paper):
    """A figure that a bundle gives: of a group, or of all rows."""

    group: _Group
    figure: float


class Question(_Paper):
    """A recipient's question.

    Attributes:
        release: the release whose bundle it is about.
        checksums: SHA-256 of the bundle's file of checksums.
        question: as ``dpsynth query`` takes it.
        within: the share of the private table's figure that a claim may be off.
    """

    format: Literal["dpsynth question 1"] = "dpsynth question 1"
    release: _Text
    checksums: _Text
    question: _Text
    within: Annotated[float, Field(gt=0, lt=1)]
    claims: Annotated[list[Claim], Field(min_length=1, max_length=MOST_GROUPS)]


class Told(_Paper):
    """The outcome of one claim, and the limits of the private table's figure at 95 %; null without limits."""

    group: _Group
    figure: float
    low: float | None
    high: float | None
    outcome: Outcome


class Verified(_Paper):
    """An owner's answer.

    Attributes:
        asked: SHA-256 of the question's text.
        answered_by: the release that asked the private table.
        epsilon, delta: what that cost, for one unit.
        told: an outcome for each claim, in order.
        odds: the largest probability that noise makes the word on one claim false.
    """

    format: Literal["dpsynth answer 1"] = "dpsynth answer 1"
    asked: _Text
    question: Question
    answered_by: _Text
    epsilon: float
    delta: float
    unit: _Text
    told: list[Told]
    odds: float = ODDS

    def faults(self) -> list[str]:
        """Sentences on all that doesn't follow from the rest of it."""
        found = []
        if self.asked != digest(self.question):
            found.append("It is about another question than the one it names.")
        claims = [(one.group, one.figure) for one in self.question.claims]
        if [(one.group, one.figure) for one in self.told] != claims:
            found.append("It tells of other figures than were asked about.")
        for one in self.told:
            if one.outcome != outcome(one.figure, one.low, one.high, self.question.within):
                found.append(f"It says '{one.outcome}' where its own limits say something else.")
        return found


def digest(question: Question) -> str:
    """SHA-256 of a question's text."""
    return sha256(question.text.encode()).hexdigest()


def outcome(claimed: float, low: float | None, high: float | None, within: float) -> Outcome:
    """Whether a claim is near every figure between two limits, near none, or neither can be told."""
    if low is None or high is None:
        return "can't be told"

    # The share is below 1, so a figure that is near has the sign of the claim.
    def near(truth: float) -> bool:
        return abs(claimed - truth) <= within * abs(truth)

    if near(low) and near(high):
        return "holds"
    # Figures near the claim are an interval around it: limits that hold some of it, but none of it at their
    # ends, hold the claim.
    return "can't be told" if near(low) or near(high) or low <= claimed <= high else "does not hold"


def ask(bundle: Bundle, text: str, within: float) -> tuple[Question, Answer]:
    """The question about what a bundle answers, and the answer; QuestionRefused if nothing can be asked."""
    found = coefficients(bundle, text) or answered(bundle, text)
    claims = [
        Claim(group=dict(zip(found.question.by, row.labels, strict=True)), figure=row.estimate.value)
        for row in found.rows
        if not isnan(row.estimate.value)
    ]
    if not claims:
        raise DpsynthError("The bundle has no figure to ask about: each is undefined, or withheld.")
    asked = Question(
        release=bundle.facts.release_id,
        checksums=sha256_of(bundle.folder / CHECKSUMS),
        question=found.question.written,
        within=within,
        claims=claims,
    )
    return asked, found


def tell(question: Question, found: Answer, guarantee: tuple[float, float, str], release_id: str) -> Verified:
    """The answer to a question, by what a release of its own says.

    Args:
        found: the same question, answered by that release.
        guarantee: epsilon, delta and unit of that release.
    """
    limits = {
        row.labels: (row.estimate.low, row.estimate.high)
        for row in found.rows
        if row.estimate.sound and isfinite(row.estimate.low) and isfinite(row.estimate.high)
    }
    told = []
    for claim in question.claims:
        low, high = limits.get(tuple(claim.group.values()), (None, None))
        word = outcome(claim.figure, low, high, question.within)
        told.append(Told(group=claim.group, figure=claim.figure, low=low, high=high, outcome=word))
    epsilon, delta, unit = guarantee
    return Verified(
        asked=digest(question),
        question=question,
        answered_by=release_id,
        epsilon=epsilon,
        delta=delta,
        unit=unit,
        told=told,
    )


P = TypeVar("P", Question, Verified)


def read(path: Path, kind: type[P]) -> tuple[P, bytes]:
    """A paper from its file, and the file's bytes.

    Raises:
        ConfigError: the file can't be read, or is no such paper.
    """
    what = "question" if kind is Question else "answer"
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}.") from None
    try:
        if len(data) > _LARGEST:
            raise ValueError("too long")
        return kind.model_validate_json(data), data
    except ValueError:
        raise ConfigError(f"{path} is no {what} that dpsynth {what} has written.") from None


def write(path: Path, paper: Question | Verified, key: SigningKey | None = None) -> None:
    """Write a paper to a new file, and its signature to a file beside it.

    Raises:
        DpsynthError: the file exists, or can't be written.
    """
    content = paper.text.encode()
    files: Mapping[Path, bytes] = {path: content}
    if key is not None:
        files = {signature_of(path): key.signature_text(content).encode(), **files}
    try:
        for name, data in files.items():
            with name.open("xb") as file:
                file.write(data)
    except FileExistsError:
        raise DpsynthError(f"{path} exists already, or its signature does. Give a new name.") from None
    except OSError as error:
        raise DpsynthError(f"{path} can't be written: {error.strerror}.") from None


def signature_of(path: Path) -> Path:
    """The file of a paper's signature."""
    return path.with_name(f"{path.name}.sig")


def signed_by(path: Path, content: bytes) -> str | None:
    """The public key that signed a paper; None without a signature.

    Raises:
        DpsynthError: the signature is not that of the paper.
    """
    beside = signature_of(path)
    if not beside.exists():
        return None
    found = signer_of(content, beside.read_text(encoding="ascii", errors="replace"))
    if found is None:
        raise DpsynthError(f"{beside} is not the signature of {path}: one of them was changed.")
    return found
