"""The simulated world of the games: a table that is true there, and the release that is made of it.

Invariant: the table is made up from a configuration, or sampled from a bundle's public folder. The noise of
the simulated answers is that which the release's manifest states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isqrt
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpsynth.accounting.events import Guarantee
from dpsynth.bundle.manifest import KAnonymous, Manifest
from dpsynth.bundle.recipient.bundle import Bundle, open_bundle
from dpsynth.bundle.recipient.more_rows import more_rows
from dpsynth.cli.recipient_commands import opened_bundle
from dpsynth.columns.column import Column, codes_of, each_once
from dpsynth.columns.domain import Clique
from dpsynth.config import load
from dpsynth.errors import ConfigError, DpsynthError
from dpsynth.pipeline.rehearsal import rehearsal_of
from dpsynth.pipeline.spine import run
from dpsynth.wings.proof.disclosure.hierarchy import Hierarchy, Level, by_default
from dpsynth.wings.proof.disclosure.k_anonymity import Demand, generalised

ROWS = 2_000
"""Default number of rows of the table of a game."""
K = 5
_QUASI_IDENTIFIERS = 4
_NOISES = {"discrete Gaussian": "gaussian", "discrete Laplace": "laplace"}
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Choice:
    """A user's choices of a game; None leaves it to the release, or to a default.

    Attributes:
        rows: number of rows of the table.
        k: fewest rows of a group of the k-anonymous table.
        quasi_identifiers: the columns that the attacker knows of everybody.
        sensitive: the column that the attacker wants to know.
    """

    rows: int = ROWS
    k: int | None = None
    quasi_identifiers: tuple[str, ...] = ()
    sensitive: str | None = None


@dataclass(frozen=True)
class Counted:
    """A noisy table of counts of a release.

    Attributes:
        clique: its columns.
        noise: "gaussian" or "laplace".
        scale: sigma, or the scale of the Laplace distribution.
    """

    clique: Clique
    noise: str
    scale: float


@dataclass(frozen=True, eq=False)
class World:
    """The truth of a game, and what a release says of it.

    Attributes:
        title: the configuration or the bundle.
        made_up: true if the table was made up from a configuration.
        columns: the columns.
        codes: int64[rows] of each column.
        counted: the noisy tables of counts of the release.
        unit_rows: most rows of a unit; the attacked one has as many, all alike.
        guarantee: the release's.
        quasi_identifiers: what the attacker knows of everybody.
        sensitive: what the attacker wants to know.
        k: fewest rows of a group of the k-anonymous table.
        hierarchies: those of the quasi-identifiers.
    """

    title: str
    made_up: bool
    columns: Mapping[str, Column]
    codes: Mapping[str, Codes]
    counted: tuple[Counted, ...]
    unit_rows: int
    guarantee: Guarantee
    quasi_identifiers: tuple[str, ...]
    sensitive: str
    k: int
    hierarchies: tuple[Hierarchy, ...]

    @property
    def rows(self) -> int:
        return len(self.codes[self.sensitive])

    @property
    def about(self) -> tuple[Counted, ...]:
        """The noisy tables that have the sensitive column."""
        return tuple(c for c in self.counted if self.sensitive in c.clique)

    def groups(self) -> tuple[Codes, NDArray[np.bool_]]:
        """The k-anonymous table: the group of each row, and true for the rows that are kept."""
        codes = {name: self.codes[name] for name in self.quasi_identifiers}
        found = generalised(codes, self.hierarchies, (), Demand(self.k, left_out=0.05))
        group = np.zeros(self.rows, np.int64)
        for hierarchy, number in zip(self.hierarchies, found.levels, strict=True):
            level = hierarchy.levels[number]
            joint = group * len(level.labels) + level.groups[codes[hierarchy.column]]
            group = np.unique(joint, return_inverse=True)[1].reshape(-1)
        return group, found.kept


def world_of(on: Path, choice: Choice, rng: np.random.Generator) -> World:
    """The world of a configuration or of a bundle.

    Args:
        on: a configuration, whose release is rehearsed on a made-up table; or the folder of a bundle.
        choice: what the user chose.
        rng: any generator.

    Raises:
        ConfigError: it is neither, or has no such column, or the release has no counts of the column.
    """
    if on.is_dir():
        bundle = opened_bundle(on)
        if not bundle.facts.central:
            raise _of_the_local_model(on)
        layout = bundle.rows.layout
        drawn = pa.concat_tables(more_rows(bundle, choice.rows, None, int(rng.integers(2**31))))
        codes = _codes(layout.columns, layout.texts(drawn))
        return _world(f"release {bundle.facts.release}", bundle, codes, choice, made_up=False)
    spec = load(on)
    if spec.trust == "local":
        raise _of_the_local_model(on)
    with TemporaryDirectory(prefix="dpsynth-attack-") as folder:
        with rehearsal_of(spec, Path(folder), choice.rows) as rehearsal:
            table = pq.read_table(str(rehearsal.spec.source.path))
            released = rehearsal.kept(run(rehearsal.spec, rehearsal.request))
        # Of several audiences' bundles that of the largest epsilon tells most.
        bundle = open_bundle(released.handed_over)
        columns = bundle.layout.columns
        codes = _codes(columns, {c.source: table.column(c.source).combine_chunks() for c in columns})
        return _world(f"config {on.name}", bundle, codes, choice, made_up=True)


def _codes(columns: Sequence[Column], texts: Mapping[str, pa.StringArray]) -> dict[str, Codes]:
    return {
        column.name: each_once(partial(codes_of, column), texts[column.source]).astype(np.int64)
        for column in columns
    }


def _of_the_local_model(on: Path) -> ConfigError:
    return ConfigError(
        f"{on} is of the local model, and the attacks simulate the answers of a curator. Give the "
        "configuration of a curator's table, or a bundle of such a release."
    )


def _world(title: str, bundle: Bundle, codes: Mapping[str, Codes], choice: Choice, *, made_up: bool) -> World:
    facts = bundle.facts
    columns = {column.name: column for column in bundle.layout.columns}
    counted, unit_rows = _counted(facts)
    view = None if facts.views is None else facts.views.k_anonymous
    quasi, sensitive = _roles(columns, counted, choice, view)
    return World(
        title=title,
        made_up=made_up,
        columns=columns,
        codes=codes,
        counted=counted,
        unit_rows=unit_rows,
        guarantee=facts.composed,
        quasi_identifiers=quasi,
        sensitive=sensitive,
        k=choice.k or (K if view is None else view.k),
        hierarchies=tuple(_hierarchy(columns[name], view) for name in quasi),
    )


def _counted(facts: Manifest) -> tuple[tuple[Counted, ...], int]:
    """The noisy tables of counts of a release, and the most rows of a unit."""
    found: list[Counted] = []
    rows = 1
    exchanged = facts.guarantee.neighbours == "replace_one"
    for event in facts.mechanisms:
        if event.question not in ("marginal", "count") or event.mechanism not in _NOISES:
            continue
        noise, parameters = _NOISES[event.mechanism], event.parameters
        clique = event.columns or ()
        found.append(Counted(clique, noise, event.scale or 0.0))
        if clique:
            # An exchanged unit moves twice as many rows.
            moved = parameters["l2_squared"] // (1 + exchanged) if noise == "gaussian" else 0
            rows = max(rows, isqrt(moved) or int(parameters.get("l1", 1)) // (1 + exchanged), 1)
    if not any(c.clique for c in found):
        raise ConfigError("The release has no noisy tables of counts to attack.")
    return tuple(found), rows


def _roles(
    columns: Mapping[str, Column], counted: Sequence[Counted], choice: Choice, view: KAnonymous | None
) -> tuple[tuple[str, ...], str]:
    """The quasi-identifiers and the sensitive column: as chosen, as published, or the first few."""
    for name in (*choice.quasi_identifiers, *filter(None, (choice.sensitive,))):
        if name not in columns:
            raise ConfigError(f"{name} is no column of the release: choose of {', '.join(columns)}.")
    quasi = choice.quasi_identifiers or (() if view is None else view.quasi_identifiers)
    asked = {name for c in counted for name in c.clique}
    able = [name for name in columns if name in asked and name not in quasi]
    numbers = [name for name in able if columns[name].centres is not None]
    by_size = sorted(numbers or able, key=lambda name: -columns[name].size)
    sensitive = choice.sensitive or next(iter([*(() if view is None else view.sensitive), *by_size]), None)
    quasi = quasi or tuple(name for name in columns if name != sensitive)[:_QUASI_IDENTIFIERS]
    if sensitive is None or sensitive in quasi or sensitive not in asked or not quasi:
        raise ConfigError(
            "The attacks need a column to find out, whose counts the release has, beside the "
            "quasi-identifiers: choose them with --sensitive and --quasi-identifiers."
        )
    return quasi, sensitive


def _hierarchy(column: Column, view: KAnonymous | None) -> Hierarchy:
    """The hierarchy of a quasi-identifier: its own cells, the level that was published, everything."""
    published = None if view is None else view.generalised.get(column.name)
    whole = by_default(column)
    if published is None or len(published.groups) != column.size:
        return whole
    labels = tuple(dict.fromkeys(published.groups))
    groups = np.array([labels.index(label) for label in published.groups], np.int64)
    return Hierarchy(column.name, (whole.levels[0], Level(groups, labels), whole.levels[-1]))


def refuse_few(rows: int) -> None:
    """Refuse a table too small for a game.

    Raises:
        DpsynthError: it has too few rows.
    """
    if rows < 3 * K:
        raise DpsynthError(f"The games need a table of {3 * K} rows at least; this one has {rows}.")
