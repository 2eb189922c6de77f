"""The mark that ``dpsynth check`` leaves beside a config, and that ``dpsynth run`` looks for.

A release can't see all that a check sees: its counts are noisy, and cells that are read wrongly may look like
any others. So a run says when its config was never checked against its table.

A mark is a digest of the columns as compiled, of how each source is read, and of which file it is: its place,
its number in the file system and the time when it was changed. Another table, or the next one under the same
name, wants another check; so do other columns.

Invariant: a mark follows from the config and the file's name and dates. No row, and no size, enters it.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth.config.files.place import is_url, resolved

if TYPE_CHECKING:
    from dpsynth.config import Spec

_MOST = 100
"""Most marks that are kept, the latest ones."""


def mark(config: Path, spec: Spec) -> None:
    """Note that a config was checked. Where its folder can't be written, nothing is noted."""
    file = _file(config)
    kept = [line for line in _marks(file) if line != _digest(spec)]
    text = "".join(f"{line}\n" for line in [*kept, _digest(spec)][-_MOST:])
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as opened:
            opened.write(text)
    except OSError:
        return


def never_checked(config: Path, spec: Spec) -> str:
    """The sentence for a config that was never checked against its table; "" for one that was."""
    if _digest(spec) in _marks(_file(config)):
        return ""
    return (
        f"This config was never checked against this table. dpsynth check {config} counts exactly, for your "
        "eyes only, what of each column is read."
    )


def _file(config: Path) -> Path:
    return config.with_name(f".{config.name}.checked")


def _marks(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return []


def _digest(spec: Spec) -> str:
    from dpsynth.config import compiled

    read = [(source, resolved(source.path) if source.path else "") for source in spec.sources]
    each = [
        {"source": source.model_dump(exclude={"path"}), "place": place, "file": _file_facts(place)}
        for source, place in read
    ]
    facts = {
        "columns": [column.recorded for column in compiled(spec).columns],
        "unit": spec.privacy.model_dump(include={"unit"}),
        **each[0],
        **({"linked": each[1:]} if each[1:] else {}),
    }
    return sha256(json.dumps(facts, default=str, sort_keys=True).encode()).hexdigest()


def _file_facts(place: str) -> list[int]:
    """The number of a file and the time of its last change; empty for what is no file here."""
    try:
        found = Path(place).stat() if place and not is_url(place) else None
    except OSError:
        found = None
    return [] if found is None else [found.st_ino, found.st_mtime_ns]
