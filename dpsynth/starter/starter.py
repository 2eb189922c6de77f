"""The starter file: its path, the schema beside it, and its permissions.

Invariant: no file is overwritten. Only its owner can read a file with guesses from the private table.
"""

from __future__ import annotations

import os
from pathlib import Path

from dpsynth.config.json_schema import schema_text
from dpsynth.config.yaml_reader import MAX_BYTES, parse_yaml
from dpsynth.errors import ConfigError, DpsynthError
from dpsynth.starter.sketch import Draft
from dpsynth.starter.writing import config_text, release_name, values_of

SCHEMA = "dpsynth.schema.json"


def write_starter(draft: Draft, target: Path, command: str) -> list[Path]:
    """Write the configuration, and the schema for editors if there is none near it.

    Args:
        draft: the sketches of the columns.
        target: the configuration's file.
        command: the command that the user ran, for the first comment.

    Returns:
        The files that were written, the configuration first.

    Raises:
        ConfigError: the file exists, or would be too large.
        DpsynthError: the file can't be written.
    """
    must_be_new(target)
    near = next((f for f in ("schemas", "../schemas") if (target.parent / f / SCHEMA).is_file()), None)
    text = starter_text(draft, target.stem, near or "schemas", command)
    written = [target]
    try:
        _write(target, text, 0o600 if draft.looked else 0o666)
        if near is None:
            written.append(target.parent / "schemas" / SCHEMA)
            written[-1].parent.mkdir(parents=True, exist_ok=True)
            _write(written[-1], schema_text(), 0o666)
    except OSError as error:
        raise DpsynthError(
            f"{written[-1]} can't be written: {error.strerror or type(error).__name__}."
        ) from None
    return written


def must_be_new(target: Path) -> None:
    """Refuse a file that exists, before anything is read.

    Raises:
        ConfigError: the file exists.
    """
    if os.path.lexists(target):
        raise ConfigError(f"There is a file {target} already, and it is kept. Give another name with --out.")


def starter_text(draft: Draft, name: str, schemas: str, command: str) -> str:
    """The configuration's text, read back and compared.

    Args:
        draft: the sketches of the columns.
        name: the name of the configuration's file, without its ending.
        schemas: folder of the JSON Schema, from the configuration's folder.
        command: the command that the user ran.

    Raises:
        ConfigError: the text would be too large to be read.
    """
    text = config_text(draft, release_name(name), f"{schemas}/{SCHEMA}", command)
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
