"""A release called in Python: of a table in memory, of a file, or by a checked spec.

Invariant: a table in memory is closed in its ``MemoryTable`` at once. The ledger is never left out: without
one that is named, the usual file in the working folder is used, and the caller is told. Each keyword has one
meaning: a short one is a key of the grammar, and the same key given in both ways is refused.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypedDict, get_args

from dpsynth.bundle.row_files import Library
from dpsynth.config import Spec
from dpsynth.config.privacy import USUAL_DELTA, Ledger
from dpsynth.errors import ConfigError, DpsynthError, Paused, nearest
from dpsynth.pipeline.beginning import DEFAULT_REQUEST, Request
from dpsynth.pipeline.inputs import MemoryTable, MemoryTables
from dpsynth.pipeline.release_run import Ending, unfinished_journal
from dpsynth.pipeline.result import Release
from dpsynth.pipeline.spine import run


class ArrowStream(Protocol):
    """A table that gives its columns as an Arrow stream: of pyarrow, Polars, DuckDB and others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Table: TypeAlias = "pd.DataFrame | ArrowStream"
"""A table in memory."""

Columns = Mapping[str, Mapping[str, object]]
Number = int | float | Decimal

NO_COLUMNS = (
    "columns is missing: declare each column to use, such as columns={'age': {'type': 'integer', 'min': 0, "
    "'max': 110}}. dpsynth.describe(table) guesses them, for review."
)

SHORT = {
    "epsilon": ("privacy", "epsilon"),
    "delta": ("privacy", "delta"),
    "unit": ("privacy", "unit"),
    "dataset": ("ledger", "dataset"),
}
"""Short keys, with the section and the key of the grammar that each stands for."""


class Keys(TypedDict, total=False):
    """Keys of a configuration, as keyword arguments.

    Attributes:
        epsilon: short for ``privacy={"epsilon": ...}``.
        delta: short for ``privacy={"delta": ...}``. Left out: 1e-9, as ``dpsynth init`` writes it. 0 asks for
            pure epsilon-DP, as does ``privacy={"noise": "laplace"}`` without a delta.
        unit: short for ``privacy={"unit": ...}``: "row", or ``{"column": "patient_id", "max_rows": 4}``.
        dataset: short for ``ledger={"dataset": ...}``: the name under which the ledger adds up all releases
            of this table.
        ledger: the ledger's file, the address of its database, or its whole section.
        columns: a declaration for each column to use, by name.
        tables: in place of columns, the sections of linked tables, by name.
        release: name of the release and of its folder; left out: the dataset's.
    """

    epsilon: Number
    delta: Number | None
    unit: str | Mapping[str, object]
    dataset: str
    ledger: str | Path | Mapping[str, object]
    columns: Columns
    tables: Mapping[str, Mapping[str, object]]
    release: str
    privacy: Mapping[str, object]
    constraints: Sequence[str]
    structure: Mapping[str, object]
    sample: Mapping[str, object]
    publish: Mapping[str, object]
    reuse: Mapping[str, object]
    public_table: str | Mapping[str, object]
    public_marginals: Sequence[Mapping[str, object]]
    engine: Mapping[str, object]


def spec_of(keys: Mapping[str, object], path: str | Path | None = None) -> Spec:
    """The spec that keyword arguments describe.

    Args:
        path: the file of the table; None for a table in memory.

    Raises:
        ConfigError: a key is unknown, given twice, or has a value that isn't allowed.
    """
    unknown = next((key for key in keys if key not in Keys.__annotations__), None)
    if unknown is not None:
        known = list(Keys.__annotations__)
        raise ConfigError(
            f"{unknown} is not a known key{nearest(unknown, known)}; the keys of a release are "
            f"{', '.join(known)}. A schedule, and a table with periods, need a spec: dpsynth.Spec.from_dict."
        )
    values = {key: value for key, value in keys.items() if key not in SHORT}
    if isinstance(values.get("ledger"), str | Path):
        values["ledger"] = {"url": address(values["ledger"])}
    for short, (section, key) in SHORT.items():
        if short in keys:
            values[section] = _joined(values.get(section, {}), short, section, key, keys[short])
    privacy = values.get("privacy", {})
    if isinstance(privacy, Mapping):
        values["privacy"] = _with_delta(privacy)
    if "columns" not in values and "tables" not in values:
        raise ConfigError(NO_COLUMNS)
    return Spec.from_dict(values if path is None else {"source": {"path": str(path)}, **values})


def _with_delta(privacy: Mapping[str, object]) -> dict[str, object]:
    """The section with a delta, unless pure epsilon-DP is asked for, which the grammar writes without one."""
    found = dict(privacy)
    pure = privacy.get("noise") == "laplace" or privacy.get("accountant") == "sequential"
    delta = found.setdefault("delta", None if pure else USUAL_DELTA)
    if isinstance(delta, Number) and not isinstance(delta, bool) and delta == 0:
        found["delta"] = None
    return found


def _joined(found: object, short: str, section: str, key: str, value: object) -> dict[str, object]:
    if not isinstance(found, Mapping):
        raise ConfigError(f"{section} must be a mapping of keys to values.")
    if key in found:
        raise ConfigError(f"{section}.{key} is given twice: as {short}, and under {section}. Keep one.")
    return {**found, key: value}


def address(ledger: object) -> str:
    """The address of a ledger, from that or from the path of its file."""
    return str(ledger) if "://" in str(ledger) else f"sqlite:///{Path(str(ledger)).expanduser()}"


if TYPE_CHECKING:
    import pandas as pd

_SPELT = (
    (re.compile(r"(?:dpsynth run CONFIG )?--resume ([0-9A-Za-z-]+)"), r"resume='\1'"),
    (re.compile(r"dpsynth check CONFIG"), "dpsynth.describe(table)"),
    (re.compile(r"--(against)( TABLE)?|(?<=with )--(config)"), r"the argument \1\3"),
    (re.compile(r"--target "), "targets: "),
    (re.compile(r"--debug writes them"), "the environment variable DPSYNTH_DEBUG=1 has them written"),
)
"""Advice of the command line, with its spelling in Python."""

_told: set[Path] = set()
"""Ledger files that the caller was told about in this process."""


def note(sentence: str) -> None:
    """Write a public note to the standard error stream."""
    print(f"Note: {sentence}", file=sys.stderr)


def held(source: object) -> Spec | MemoryTable | Path:
    """A spec, the path of a table, or a closed table in memory, or several by name.

    Raises:
        SourceError: it is none of these.
    """
    if isinstance(source, Spec | MemoryTable):
        return source
    if isinstance(source, Mapping):
        return MemoryTables(source)
    return Path(source) if isinstance(source, str | Path) else MemoryTable(source)


def released(
    source: Spec | MemoryTable | Path,
    spec: Spec | None,
    request: Request,
    tell: Callable[[str], None],
    keys: Mapping[str, object],
) -> Release:
    """Run a release; see ``dpsynth.release``."""
    if isinstance(request.period, Mapping):
        raise ConfigError(
            "period must be the label of a slice, such as '2026-03'. A table with periods is described by a "
            "spec: dpsynth.Spec.from_dict({..., 'period': {...}})."
        )
    return _run(*described_by(source, spec, keys), request, tell)


def described_by(
    source: Spec | MemoryTable | Path, spec: Spec | None, keys: Mapping[str, object]
) -> tuple[Spec, MemoryTable | None]:
    """The spec, by itself, beside a table or made of keys; and the table, if it is in memory.

    Raises:
        ConfigError: it is described twice, or not at all, or a key or value isn't allowed.
    """
    if isinstance(source, Spec):
        if spec is not None or keys:
            more = "another spec" if spec is not None else f"the key {next(iter(keys))}"
            raise ConfigError(f"A spec says all of a release by itself: remove {more}, or change the spec.")
        return source, None
    if spec is not None and keys:
        raise ConfigError(
            f"The key {next(iter(keys))} is given beside a spec: put it into the spec, or leave out the spec."
        )
    if isinstance(source, Path):
        if spec is not None:
            raise ConfigError(
                "A file goes into the spec: dpsynth.load(config, source=path), or the key source of "
                "Spec.from_dict. Beside a spec goes a table in memory."
            )
        return spec_of(keys, source), None
    return (spec_of(keys) if spec is None else spec.in_memory()), source


def _run(spec: Spec, table: MemoryTable | None, request: Request, tell: Callable[[str], None]) -> Release:
    def say(sentence: str) -> None:
        tell(_spelt(sentence))

    for warning in spec.warnings():
        say(warning)
    if table is not None:
        _tell_of_the_ledger(spec.ledger, say)
    try:
        with spelt_in_python():
            release = run(spec, request, table=table, tell=say)
    except Paused as paused:
        raise _paused(paused, spec.ledger, request) from None
    library: Library = next((k for k in get_args(Library) if table and table.library == k), "pandas")
    return _in_python(release, library)


def _in_python(release: Release, library: Library) -> Release:
    return replace(
        release,
        warnings=tuple(replace(w, remedy=_spelt(w.remedy)) for w in release.warnings),
        audiences={name: _in_python(one, library) for name, one in release.audiences.items()},
        library=library,
    )


@contextmanager
def spelt_in_python() -> Iterator[None]:
    """Errors of what is done inside have advice in the spelling of Python."""
    try:
        yield
    except Paused:
        raise
    except DpsynthError as error:
        error.args = (_spelt(str(error)),)
        raise


def _spelt(sentence: str) -> str:
    for pattern, words in _SPELT:
        sentence = pattern.sub(words, sentence)
    return sentence


def abandoned(release_id: str, ledger: str | Path | Mapping[str, str], outputs: Path) -> str:
    """End a release that will not be finished; see ``dpsynth.abandon``.

    Raises:
        ConfigError: the ledger has no such release, it has ended, or its journal is not there.
    """
    section = ledger if isinstance(ledger, Mapping) else {"url": address(ledger)}
    url, head = section.get("url", Ledger().url), section.get("head")
    ending = Ending.of(url, head, release_id, lambda: _journal(outputs, release_id))
    ending.enter("given up with dpsynth.abandon")
    return ending.sentence


def _journal(outputs: Path, release_id: str) -> Path:
    """The journal of an unfinished release.

    Raises:
        ConfigError: there is none, or the release has a whole bundle.
    """
    folders = (folder for folder in outputs.glob("*") if folder.is_dir())
    path = unfinished_journal(folders, release_id, f"resume='{release_id}'")
    if path is None:
        raise ConfigError(
            f"There is no journal of release {release_id} under {outputs}, so nobody knows what it asked. "
            "Name the folder in which it ran with outputs. If it is lost, the release can be charged all "
            f'that it reserved: dpsynth ledger abandon {release_id} --reason "..."'
        )
    return path


def _paused(paused: Paused, ledger: Ledger, request: Request) -> Paused:
    # The address of a server may hold a password.
    url = ledger.url if ledger.url.startswith("sqlite") else "URL"
    named = {"url": url} | ({} if ledger.head is None else {"head": ledger.head})
    arguments = [repr(paused.release_id)]
    if named != {"url": Ledger().url}:
        arguments.append(f"ledger={named!r}")
    if request.outputs != DEFAULT_REQUEST.outputs:
        arguments.append(f"outputs={str(request.outputs)!r}")
    return Paused(
        paused.release_id,
        [_spelt(warning) for warning in paused.warnings],
        paused.what,
        f"To go on as it is, release it once more with resume='{paused.release_id}'. To end it, so "
        f"that a corrected one can be released: dpsynth.abandon({', '.join(arguments)}). It returns what the "
        "release is charged.",
        paused.without,
    )


def _tell_of_the_ledger(ledger: Ledger, tell: Callable[[str], None]) -> None:
    if "url" in ledger.model_fields_set:
        return
    file = Path.cwd() / ledger.url.removeprefix("sqlite:///")
    if file in _told:
        return
    _told.add(file)
    table = f"'{ledger.dataset}'" if ledger.dataset else "the table"
    tell(
        f"The ledger is {file}. It adds up what all releases of {table} cost, and refuses more "
        f"than epsilon {ledger.cap.epsilon}: keep it. ledger='...' names another file."
    )
