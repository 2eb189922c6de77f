"""The section verification: what may be spent on questions of recipients."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Self

from pydantic import Field, model_validator

from dpsynth.columns.section import Number, Section, refused


class Verification(Section):
    """The standing budget for questions of recipients."""

    epsilon: Annotated[Decimal, Number(above="0", at_most="100")] = Field(
        description="The largest sum of the ε of all answers. Each is charged to the ledger besides."
    )
    question: Annotated[Decimal, Number(above="0", at_most="10")] = Field(
        description="ε of one answer; its delta is privacy.delta."
    )

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.question > self.epsilon:
            raise refused("must be at most verification.epsilon, the sum of all", "question")
        return self

    @property
    def answers(self) -> int:
        """The number of answers that may be given."""
        return int(self.epsilon // self.question)
