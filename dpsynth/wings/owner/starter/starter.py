"""The starter file: its path and its permissions.

Invariant: no file is overwritten. Only its owner can read a file with guesses from the private table.
"""

from __future__ import annotations

import os
from pathlib import Path

from dpsynth.config.document import MAX_BYTES, parse_yaml
from dpsynth.errors import ConfigError, DpsynthError
from dpsynth.wings.owner.starter.sketch import Draft
from dpsynth.wings.owner.starter.writing import config_text, release_name, values_of

_SCHEMAS = ("dpsynth.schema.json", "schemas/dpsynth.schema.json", "../schemas/dpsynth.schema.json")
"""Places of the JSON Schema for editors, from the configuration's folder."""


def write_starter(draft: Draft, target: Path, command: str) -> Path:
    """Write the configuration, and nothing else. It names the schema for editors if one is near.

    Args:
        draft: the sketches of the columns.
        target: the configuration's file.
        command: the command that the user ran, for the first comment.

    Returns:
        The file that was written.

    Raises:
        ConfigError: the file exists, or would be too large.
        DpsynthError: the file can't be written.
    """
    must_be_new(target)
    near = next((f for f in _SCHEMAS if (target.parent / f).is_file()), None)
    text = starter_text(draft, target.stem, near, command)
    try:
        _write(target, text, 0o600 if draft.looked else 0o666)
    except OSError as error:
        raise DpsynthError(f"{target} can't be written: {error.strerror or type(error).__name__}.") from None
    return target


def must_be_new(target: Path) -> None:
    """Refuse a file that exists, before anything is read.

    Raises:
        ConfigError: the file exists.
    """
    if os.path.lexists(target):
        raise ConfigError(f"There is a file {target} already, and it is kept. Give another name with --out.")


def starter_text(draft: Draft, name: str, schema: str | None, command: str) -> str:
    """The configuration's text, read back and compared.

    Args:
        draft: the sketches of the columns.
        name: the name of the configuration's file, without its ending.
        schema: path of the JSON Schema from the configuration's folder; None where there is none.
        command: the command that the user ran.

    Raises:
        ConfigError: the text would be too large to be read.
    """
    text = config_text(draft, release_name(name), schema, command)
    if len(text.encode("utf-8")) > MAX_BYTES:
        raise ConfigError(
            f"The configuration would be larger than {MAX_BYTES:,} bytes, too large to be read. Describe "
            "fewer columns."
        )
    if parse_yaml(text, "the configuration").values["columns"] != (values_of(draft) or None):
        raise RuntimeError("the configuration does not say what was to be written")
    return text


def _write(path: Path, text: str, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
