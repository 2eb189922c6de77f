"""A warning about the private table, as one value.

Invariant: every field is a public fact: made of noisy answers and of the configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

WarningKind = Literal[
    "small_table",
    "empty_column",
    "mostly_missing",
    "one_value",
    "unseen_values",
    "unexpected_share",
    "partly_missing",
    "partly_other",
    "perhaps_clipped",
]
"""Written in manifests, but for those of ``FOR_THE_OWNER``."""

FOR_THE_OWNER: frozenset[WarningKind] = frozenset({"partly_missing", "partly_other", "perhaps_clipped"})
"""Signs that a healthy column may show too: a question to the table's owner, and nothing to publish."""


@dataclass(frozen=True)
class DataWarning:
    """A sign that the table was not read as its owner thinks.

    Attributes:
        kind: the kind of sign.
        column: the column; None for the whole table.
        serious: true if the column, or the table, tells nothing, so that a release of it is worth nothing.
        figures: the noisy figures that it rests on, as JSON values.
        sentence: the finding, for anybody.
        remedy: the remedy, for the table's owner.
    """

    kind: WarningKind
    column: str | None
    serious: bool
    figures: Mapping[str, float | Sequence[str]]
    sentence: str
    remedy: str

    @property
    def published(self) -> bool:
        """True if it stands in the bundle; otherwise it is for the owner alone."""
        return self.kind not in FOR_THE_OWNER

    @property
    def paragraph(self) -> str:
        """Finding and remedy."""
        return f"{self.sentence} {self.remedy}"

    def to_json(self) -> dict[str, object]:
        """The warning as plain JSON values."""
        return asdict(self)
