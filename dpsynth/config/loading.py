"""Loading: a checked Spec from a file, or from plain values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from dpsynth.columns.section import Value
from dpsynth.config.document import Document, checked, read_yaml
from dpsynth.config.files.form import named_form
from dpsynth.config.grammar import Spec
from dpsynth.config.source import Source
from dpsynth.errors import ConfigError


def load(path: str | Path, *, source: str | None = None) -> Spec:
    """Read and check a configuration file.

    Args:
        source: path of a table file that replaces the configuration's source.

    Raises:
        ConfigError: the file can't be read, a key is unknown, or a value isn't allowed; the
            message names file, line and key.
    """
    return checked(Spec, *_read(path, source))


def load_unreviewed(path: str | Path, *, source: str | None = None) -> tuple[Spec, tuple[str, ...]]:
    """Read a configuration for its owner's check, which may come before the guesses are reviewed.

    Columns with a gap that is still to be filled in are left out. Nothing is planned or run by it.

    Returns:
        The configuration, and what is still under review.

    Raises:
        ConfigError: as ``load``, but for a list under review.
    """
    values, document = _read(path, source)
    listed, tables = values.get("review"), values.get("tables")
    if not isinstance(listed, list) or not all(isinstance(key, str) for key in listed):
        return checked(Spec, values, document), ()
    del values["review"]
    for table in (values, *(tables.values() if isinstance(tables, dict) else ())):
        if isinstance(table, dict) and "columns" in table:
            table["columns"] = _without_gaps(table["columns"])
    return checked(Spec, values, document), tuple(map(str, listed))


def _without_gaps(columns: Value) -> Value:
    if not isinstance(columns, dict):
        return columns
    gaps = {c for c, d in columns.items() if d is None or (isinstance(d, dict) and None in d.values())}
    return {name: declared for name, declared in columns.items() if name not in gaps}


def from_mapping(values: Mapping[str, Value], *, name: str = "configuration") -> Spec:
    """Check a configuration given as plain values, with the rules and errors of ``load``."""
    return checked(Spec, values, Document(name, dict(values), {}))


def _read(path: str | Path, source: str | None) -> tuple[dict[str, Value], Document]:
    """The values of a configuration file, with its name and another source filled in, and the file."""
    document = read_yaml(path)
    values = dict(document.values)
    values.setdefault("release", Path(path).stem)
    if source is not None:
        values["source"] = _overridden(values.get("source"), str(source))
    return values, document


def _overridden(declared: Value, path: str) -> dict[str, Value]:
    source: dict[str, Value] = {"path": path}
    if isinstance(declared, dict):
        named, compression, _ = named_form(path)
        kind = named or declared.get("format")
        if named is None:
            source["format"] = kind
            if compression is None and "compression" in declared:
                source["compression"] = declared["compression"]
        # What the configuration says of the cells holds of the other file too.
        where = ("header_row", "skip")
        keys = {"csv": ("separator", "encoding", "multiline", *where), "xlsx": ("sheet", *where)}
        kept = ("totals", *keys.get(str(kind), ()))
        source |= {key: declared[key] for key in kept if key in declared}
    try:
        Source.model_validate(source)
    except ValidationError:
        raise ConfigError(
            f"The source '{path}' given in place of the configuration's own can't be used: its name must end "
            "in .csv, .tsv, .parquet or .xlsx, or the configuration must say source.format."
        ) from None
    return source
