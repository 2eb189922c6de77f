"""A small table, a config of it, and what a check of both finds."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from dpsynth.config import from_mapping
from dpsynth.wings.owner.assess.checking import Check, check
from dpsynth.wings.owner.assess.findings import Finding


def csv_bytes(header: Sequence[str], rows: Sequence[Sequence[str]], encoding: str = "utf-8") -> bytes:
    """A CSV file."""
    written = io.StringIO()
    csv.writer(written).writerows([header, *rows])
    return written.getvalue().encode(encoding)


@dataclass(frozen=True)
class Checks:
    """Checks of tables in a folder."""

    folder: Path

    def of(
        self, content: bytes, columns: Mapping[str, object], label: str | None = None, **config: object
    ) -> Check:
        """The check of a file under a config of some columns."""
        path = self.folder / "t.csv"
        path.write_bytes(content)
        values = {
            "source": {"path": str(path)},
            "privacy": {"epsilon": 1, "delta": Decimal("1e-9")},
            "columns": columns,
            **config,
        }
        return check(from_mapping(values), label)  # type: ignore[arg-type]

    def of_column(self, declared: Mapping[str, object], cells: Sequence[str], **config: object) -> Check:
        """The check of a column ``x`` beside one that is always read."""
        rows = [(cell, "yes") for cell in cells]
        return self.of(csv_bytes(("x", "good"), rows), {"x": declared, "good": {"type": "boolean"}}, **config)


def about(found: Check, name: str) -> list[Finding]:
    """The findings about a column, or about a part of the config."""
    return [finding for finding in found.findings if finding.about == name]
