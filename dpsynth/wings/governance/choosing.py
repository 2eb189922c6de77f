"""A choice among configurations that costs nothing: each is run on a stand-in for the private table.

Invariant: no source of a candidate is opened, and no ledger but one that is thrown away. So the choice is as
public as the stand-in, and nothing is charged.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import combinations
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpsynth.bundle.manifest import MANIFEST, Manifest
from dpsynth.bundle.recipient import open_bundle
from dpsynth.bundle.recipient.opened import synthetic_texts
from dpsynth.columns.disclosed import Chosen
from dpsynth.config import Spec, compiled, load
from dpsynth.config.document import parse_yaml
from dpsynth.config.files.place import is_part_of
from dpsynth.config.privacy import Row
from dpsynth.config.source import InTables, Source
from dpsynth.errors import ConfigError, SourceError
from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.inputs import inputs_of
from dpsynth.pipeline.rehearsal import ROWS, made_up_table
from dpsynth.pipeline.reservation import occasion_of
from dpsynth.pipeline.spine import run
from dpsynth.pipeline.steps import Tell, silently

CELLS = 12
"""Quantile cells of a column that has more values than that."""


@dataclass(frozen=True)
class Tried:
    """A candidate, and its mean error of a pair of columns in each run."""

    path: Path
    errors: tuple[float, ...]

    @property
    def error(self) -> float:
        return fmean(self.errors)

    @property
    def variance(self) -> float:
        """Of the mean; 0 for a single run."""
        return stdev(self.errors) ** 2 / len(self.errors) if len(self.errors) > 1 else 0.0


@dataclass(frozen=True)
class Choice:
    """The errors of the candidates, in the order in which they were given."""

    on: str
    tried: tuple[Tried, ...]

    @property
    def taken(self) -> Tried:
        """The first candidate whose mean error is not told apart from the least, by two standard errors."""
        best = min(self.tried, key=lambda one: one.error)
        return next(
            one
            for one in self.tried
            if one.error - best.error <= 2 * sqrt(one.variance + best.variance) or one is best
        )

    @property
    def stated(self) -> Chosen:
        # Folders are nobody's business, where names suffice.
        alike = len({one.path.name for one in self.tried}) < len(self.tried)
        names = {one.path: str(one.path) if alike else one.path.name for one in self.tried}
        errors = {names[one.path]: Decimal(f"{one.error:.6f}") for one in self.tried}
        return Chosen(on=self.on, among=errors, name=names[self.taken.path])

    @property
    def in_words(self) -> str:
        best = min(self.tried, key=lambda one: one.error)
        tied = f" {best.path} isn't told apart from it, and stands behind it."
        return f"{self.stated.words}{'' if best is self.taken else tied}"

    def written(self) -> str:
        """The text of the candidate that was taken, with the choice under ``provenance``.

        Raises:
            ConfigError: the choice has no place in it.
        """
        path, stated = self.taken.path, self.stated
        text = path.read_text(encoding="utf-8")
        texts = (stated.name, stated.on, *stated.among)
        name, on, *names = (json.dumps(one, ensure_ascii=False) for one in texts)
        errors = ", ".join(f"{one}: {error}" for one, error in zip(names, stated.among.values(), strict=True))
        line = f"  chosen: {{name: {name}, on: {on}, among: {{{errors}}}}}\n"
        section = re.search(r"^provenance:[ \t]*(#.*)?\n", text, re.MULTILINE)
        if section is None:
            text = f"{text.rstrip()}\n\nprovenance:\n{line}"
        else:
            text = f"{text[: section.end()]}{line}{text[section.end() :]}"
        try:
            parse_yaml(text, str(path))
        except ConfigError:
            raise ConfigError(
                f"{path} has no place for the choice. Write its section provenance as a block, with each key "
                "on a line of its own, and without the key chosen; or take it out."
            ) from None
        return text


def choose(configs: Sequence[Path], on: str | None, *, runs: int, tell: Tell = silently) -> Choice:
    """Run each configuration on a stand-in, and measure the errors of pairs that all candidates have.

    Args:
        on: a CSV file; None: a made-up table of the candidate with the most columns.

    Raises:
        ConfigError: there is nothing to choose from, the candidates aren't of one price, or the stand-in is
            the source of one of them.
        SourceError: the stand-in can't be read by one of them.
    """
    given = {path: load(path) for path in configs}
    _check(given, on)
    candidates = {path: _stripped(spec) for path, spec in given.items()}
    with tempfile.TemporaryDirectory() as folder:
        stand_in = on or _made_up([*candidates.values()], Path(folder))
        for path, one in candidates.items():
            linked = isinstance(one.source, InTables)
            found = (
                Source.model_validate({"path": stand_in}) if linked else load(path, source=stand_in).source
            )
            candidates[path] = one.model_copy(update={"source": found})
        real = _texts(stand_in, candidates[configs[0]])
        columns = [[c.name for c in compiled(one).columns if not c.part_of] for one in candidates.values()]
        common = [name for name in columns[0] if all(name in own for own in columns) and name in real]
        if not common:
            raise ConfigError("The candidates have no column in common, so there is nothing to compare.")
        tried: list[Tried] = []
        for path, spec in candidates.items():
            made = (_released(spec, Path(folder, f"{len(tried)}-{i}")) for i in range(runs))
            errors = [_error(real[common], own) for own in made]
            tried.append(Tried(path, tuple(errors)))
            tell(f"{path}: {100 * tried[-1].error:.2f} % of the rows are off in a pair of columns.")
    return Choice(_named(on), tuple(tried))


def _named(on: str | None) -> str:
    """The stand-in in words."""
    if on is not None and Path(on).with_name(MANIFEST).is_file():
        return f"a table of release {Manifest.read(Path(on).parent).release_id}"
    return "a made-up table" if on is None else Path(on).name


def _stripped(spec: Spec) -> Spec:
    """The configuration without what only a release of the private table needs; linked tables as one wide."""
    without = dict.fromkeys(("period", "schedule", "accept", "verification", "embargo"))
    publish = spec.publish.model_copy(update={"formats": ("csv",), "sign": None})
    privacy = spec.privacy.model_copy(update={"on_empty": "go"})
    kept: dict[str, object] = {"publish": publish, "privacy": privacy, "engine": spec.engine.in_this_process}
    if spec.tables is not None:
        # A wide row is a unit by itself.
        kept |= {"tables": None, "privacy": privacy.model_copy(update={"unit": Row()})}
    return spec.model_copy(update={**without, **kept})


def _check(candidates: Mapping[Path, Spec], on: str | None) -> None:
    if len(candidates) < 2:
        raise ConfigError("dpsynth choose needs two configurations or more, each another file.")
    first = next(iter(candidates))
    prices = {path: (spec.privacy.epsilon, spec.privacy.delta) for path, spec in candidates.items()}
    for path, spec in candidates.items():
        if spec.trust == "local" or spec.audiences:
            words = "has audiences" if spec.audiences else "has no curator (trust: local)"
            raise ConfigError(f"{path} {words}, and dpsynth choose compares single tables.")
        if prices[path] != prices[first]:
            raise ConfigError(
                f"privacy.epsilon and privacy.delta of {path} are not those of {first}, and more ε is always "
                "nearer. Give all candidates the same, and choose ε by dpsynth plan."
            )
        if on is not None and any(is_part_of(on, own.path) for own in spec.sources if own.path):
            raise ConfigError(
                f"--on names the source of {path}. A choice by the private table tells of it, and nobody "
                "would have paid for that. Name a public table, or the synthetic table of an earlier release."
            )


def _made_up(specs: Sequence[Spec], folder: Path) -> str:
    spec, path = max(specs, key=lambda one: len(one.columns)), folder / "made-up.parquet"
    occasion = occasion_of(spec, datetime.now(UTC), None)
    pq.write_table(made_up_table(inputs_of(spec), occasion, ROWS, np.random.default_rng()), path)
    return str(path)


def _released(spec: Spec, folder: Path) -> pd.DataFrame:
    ledger = spec.ledger.model_copy(update={"url": f"sqlite:///{folder}-ledger.db", "head": None})
    made = run(spec.model_copy(update={"ledger": ledger}), Request(folder, rehearsal=True), tell=silently)
    texts = synthetic_texts(open_bundle(made.folder))
    return pd.DataFrame({name: own.to_pandas() for name, own in texts.items()})


def _texts(path: str, spec: Spec) -> pd.DataFrame:
    """The cells of the stand-in as texts."""
    form = spec.source.form
    try:
        if form.kind == "parquet":
            return pd.read_parquet(path)
        return pd.read_csv(path, sep=form.separator, encoding=form.encoding, dtype=str, keep_default_na=False)
    except (OSError, ValueError):
        raise SourceError(f"The stand-in {path} can't be read. Name a CSV file of this machine.") from None


def _places(real: pd.Series, texts: pd.Series) -> NDArray[np.float64]:
    """Texts as numbers, if all of the stand-in's are, or as places among these; NaN where there is none."""
    numbers = pd.to_numeric(real, errors="coerce")
    if numbers.notna().equals(real != ""):
        return pd.to_numeric(texts, errors="coerce").to_numpy(float)
    order = {value: place for place, value in enumerate(sorted({*real} - {""}))}
    return texts.map(order).to_numpy(float)


def _cells(real: pd.Series, texts: pd.Series) -> NDArray[np.int64]:
    """The cell of each text, int64[rows], up to CELLS + 1: values of the stand-in, or quantiles of many."""
    given = _places(real, real)
    given = np.sort(given[~np.isnan(given)])
    starts = np.unique(given)
    if len(starts) > CELLS:
        starts = np.unique(given[np.arange(CELLS) * len(given) // CELLS])
    own = _places(real, texts)
    return np.where(np.isnan(own), CELLS + 1, np.searchsorted(starts, own, side="right")).astype(np.int64)


def _error(real: pd.DataFrame, synthetic: pd.DataFrame) -> float:
    """The mean over pairs of columns of half the sum of differences of shares; of one column, its own."""
    codes = [{name: _cells(real[name], table[name]) for name in real} for table in (real, synthetic)]
    errors = []
    for one, two in [*combinations(real, 2)] or [(name, name) for name in real]:
        joint = [own[one] * (CELLS + 2) + own[two] for own in codes]
        shares = [np.bincount(cells, minlength=(CELLS + 2) ** 2) / max(len(cells), 1) for cells in joint]
        errors.append(float(np.abs(shares[0] - shares[1]).sum()) / 2)
    return fmean(errors)
