"""Examples to start from: a configuration, its schema for editors, and a public table from statsmodels.

Invariant: no existing file is changed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth.errors import ConfigError, DpsynthError, SourceError

if TYPE_CHECKING:
    import pandas as pd

_RANDHIE = Path("datasets", "randhie", "src", "randhie.csv")
"""Path of the examples' table in the statsmodels package."""
_TABLES: Mapping[str, tuple[str, ...]] = {
    "minimal": ("randhie.csv",),
    "randhie": ("randhie.csv",),
    "randhie-found": ("randhie.csv",),
    "randhie-linked": ("randhie-persons.csv", "randhie-years.csv"),
    "randhie-monthly": ("randhie-monthly.csv",),
}
_OF_A_YEAR = ("year", "mdvis", "outpdol", "meddol", "inpdol", "totadm")
"""Columns of the examples' table that tell of a year; most others tell of a person."""
_FIRST_YEAR = 2025
"""The calendar year that stands for the first of the five study years."""


def names() -> tuple[str, ...]:
    """Names of the examples, sorted."""
    return tuple(sorted(file.stem for file in _shipped("configs").glob("*.yaml")))


def write_example(name: str, folder: Path) -> list[Path]:
    """Write an example's config, the schema and, where statsmodels has it, the table.

    Args:
        name: one of ``names()``.
        folder: gets ``configs/NAME.yaml``, ``schemas/dpsynth.schema.json`` and
            ``data/randhie.csv``, or the files that the config names.

    Returns:
        The files that were written, without those that existed.

    Raises:
        ConfigError: there is no example of that name.
        SourceError: the table's package isn't installed; nothing was written.
        DpsynthError: the folder can't be written to.
    """
    known = names()
    if name not in known:
        raise ConfigError(f"There is no example '{name}'. The examples are: {', '.join(known)}.")
    wanted = {folder / "configs" / f"{name}.yaml": _shipped("configs") / f"{name}.yaml"}
    for schema in sorted(_shipped("schemas").glob("*.json")):
        wanted[folder / "schemas" / schema.name] = schema
    for table in _TABLES.get(name, ()):
        if not (folder / "data" / table).exists():
            wanted[folder / "data" / table] = _packaged_table(name)
    try:
        return [target for target, source in wanted.items() if _copied(source, target)]
    except OSError as error:
        raise DpsynthError(f"The example can't be written into {folder}: {error.strerror}.") from error


def _shipped(kind: str) -> Path:
    """A folder that a wheel carries inside the package, and a checkout beside it."""
    package = Path(str(files("dpsynth")))
    inside = package / kind
    return inside if inside.is_dir() else package.parent / kind


def _packaged_table(name: str) -> Path:
    # Found without importing it, which would take a second.
    package = find_spec("statsmodels")
    table = Path(package.origin).parent / _RANDHIE if package and package.origin else None
    if table is None or not table.is_file():
        raise SourceError(
            f"The table of the example '{name}' comes with the package statsmodels, which isn't installed. "
            'Install it with: pip install "dpsynth[demo]"'
        )
    return table


def _copied(source: Path, target: Path) -> bool:
    """Copy a file unless there is one; a copy that is cut short leaves none."""
    if target.exists():
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    _WRITERS.get(target.name, shutil.copyfile)(source, partial)
    partial.rename(target)
    return True


def _with_visits(source: Path, target: Path) -> None:
    """Copy the table with a made-up column ``visited``: each person has a day of the year, in every year."""
    rows = _read(source)
    year, person = _FIRST_YEAR - 1 + rows.year.astype(int), rows.zper.astype(int)
    days = (f"{y}-{1 + p % 12:02}-{1 + p // 12 % 28:02}" for y, p in zip(year, person, strict=True))
    _write(rows.assign(visited=[*days]), target)


def _persons(source: Path, target: Path) -> None:
    """Copy the first row of each person, without what tells of a year."""
    rows = _read(source).drop_duplicates("zper").drop(columns=[*_OF_A_YEAR])
    _write(rows.sort_values("zper", key=lambda person: person.astype(int)), target)


def _years(source: Path, target: Path) -> None:
    """Copy what tells of a year, and whose it is."""
    _write(_read(source)[["zper", *_OF_A_YEAR]], target)


def _read(source: Path) -> pd.DataFrame:
    import pandas as pd

    return pd.read_csv(source, dtype=str, keep_default_na=False)


def _write(rows: pd.DataFrame, target: Path) -> None:
    rows.to_csv(target, index=False, lineterminator="\r\n")


_WRITERS: Mapping[str, Callable[[Path, Path], object]] = {
    "randhie-monthly.csv": _with_visits,
    "randhie-persons.csv": _persons,
    "randhie-years.csv": _years,
}
