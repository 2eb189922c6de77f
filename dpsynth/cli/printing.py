"""Printing on any terminal: texts that its encoding lacks are spelt in ASCII.

Invariant: nothing that is printed ends a command with an error of encoding.

The start of Arrow without pandas, which saves each command 0.6 s.
"""

from __future__ import annotations

import codecs
import io
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from dpsynth.errors import ConfigError


class _NoPandas:
    """An import finder that hides pandas."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        del path, target
        if name == "pandas":
            raise ModuleNotFoundError(name)


def let_arrow_start_without_pandas() -> None:
    """Make the first Arrow array while pandas is hidden.

    Arrow imports pandas at its first array, 0.6 s and 100 MB, only to recognise a Series;
    it looks once, and pandas works as ever afterwards (apache/arrow issue 34994).
    """
    import pyarrow as pa

    sys.meta_path.insert(0, _NoPandas())  # type: ignore[arg-type]
    pa.array([0])
    sys.meta_path.pop(0)


_SPELT = "dpsynth-spelt"

_SPELLINGS: Mapping[str, str] = {
    "δ": "delta",
    "ε": "epsilon",
    "μ": "mu",
    "\N{GREEK SMALL LETTER RHO}": "rho",
    "\N{SUPERSCRIPT TWO}": "^2",
    "\N{PLUS-MINUS SIGN}": "+/-",
    "\N{INFINITY}": "infinite",
    "\N{NO-BREAK SPACE}": " ",
    "\N{EN DASH}": "-",
    "…": "...",
    "é": "e",
    "█": "#",
    "░": ".",
    "✓": "+",
}
"""Spellings of the characters that messages and pages of ours use."""


def _spelt(error: UnicodeError) -> tuple[str | bytes, int]:
    """An error handler of codecs: our own characters in words, others as escapes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    words = (_SPELLINGS.get(c) or c.encode("ascii", "backslashreplace").decode() for c in lacking)
    return "".join(words), error.end


def say_what_the_terminal_can() -> None:
    """Let standard output and standard error spell what their encoding lacks."""
    codecs.register_error(_SPELT, _spelt)
    _reconfigure(_SPELT)


def _reconfigure(errors: str) -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)


def json_text(value: object) -> str:
    """A value as JSON, with escapes where the terminal has no Unicode."""
    return json.dumps(value, indent=2, ensure_ascii=not _is_unicode())


def write_page(out: Path, page: bytes) -> None:
    """Write a page whole or not at all, and print where; ConfigError if it can't be written."""
    if out.is_dir():
        raise ConfigError(f"{out} is a folder. Name a file with --out.")
    try:
        partial = out.with_name(f".{out.name}.partial")
        partial.write_bytes(page)
        partial.replace(out)
    except OSError as error:
        raise ConfigError(
            f"{out} can't be written: {error.strerror}. Name another file with --out."
        ) from None
    print(out)


def print_yaml(text: str) -> None:
    """Print a configuration; its quoted texts read escapes back as the characters that they stand for."""
    if not _is_unicode():
        _reconfigure("backslashreplace")
    print(text, end="")


def _is_unicode() -> bool:
    return (sys.stdout.encoding or "ascii").lower().replace("-", "").startswith("utf")
