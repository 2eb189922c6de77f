"""Linked tables of a bundle, joined, and more of them.

Invariant: post-processing of the public folder. New rows come with all rows that belong to them.
"""

from __future__ import annotations

import secrets
import shutil
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from dpsynth.bundle.recipient.more_rows import Given, more_rows
from dpsynth.bundle.recipient.opened import OpenedBundle
from dpsynth.bundle.recipient.query import QuestionRefused
from dpsynth.errors import ConfigError, DpsynthError, nearest
from dpsynth.wings.tables.database import database, formats_of, shape_of, wide_rows
from dpsynth.wings.tables.keys import slot

if TYPE_CHECKING:
    import pandas as pd


def joined(
    bundle: OpenedBundle, tables: Mapping[str, pd.DataFrame], name: str, onto: str | None
) -> pd.DataFrame:
    """The rows of a table with the columns of the rows above, up to a table; see ``Bundle.join``."""
    shapes = {shape.name: shape for shape in shape_of(bundle).all}
    above = {child.name: shape for shape in shapes.values() for child in shape.children}
    unknown = next((asked for asked in (name, onto or name) if asked not in shapes), None)
    if unknown is not None:
        known = ", ".join(shapes)
        raise ConfigError(f"'{unknown}' is no table{nearest(unknown, shapes)}. Those are: {known}.")
    keys: dict[str, str] = {c: c for c in shapes[name].key + shapes[name].above}
    found, own = tables[name], name
    while own in above and own != onto:
        parent = above[own]
        # The key of each table below begins with that of its parent, by whatever names.
        refers = dict(zip(parent.key, (keys[c] for c in shapes[own].above), strict=True))
        more, own = tables[parent.name], parent.name
        keys = {c: refers.get(c, f"{own}.{c}" if c in found else c) for c in map(str, more)}
        found = found.merge(more.rename(columns=keys), on=list(refers.values()), validate="many_to_one")
    if onto not in (None, own):
        raise ConfigError(f"'{onto}' is not above {name}: join a table to one that its rows belong to.")
    return found


def sampled_tables(
    bundle: OpenedBundle, number: int, given: Given, seed: int | None, out: Path | None
) -> dict[str, pa.Table]:
    """New rows at the root with all rows below, written to a new folder if there is one.

    Raises:
        DpsynthError: no row has what is given, or the folder exists or can't be written.
        QuestionRefused: what is given can't be read, or names a column that isn't there.
    """
    if out is not None and out.exists():
        raise DpsynthError(f"{out} exists already. Give a new name.")
    shape, layout = shape_of(bundle), bundle.rows.layout
    try:
        rows = pa.concat_tables(more_rows(bundle, number, given, seed))
    except QuestionRefused as error:
        below = shape.children[0]
        column = f"{slot('', below.name, below.slots[0][0])}{below.columns[0]}"
        words = f"of tables below {shape.name}, numbers of rows and single rows, as {below.name} or {column}"
        raise QuestionRefused(f"{error} What is given names columns of {shape.name}, and {words}.") from None
    if any(table.roles < table.most for table in shape.all):
        # Further rows of one parent are those of parents like it: there are enough among the synthetic rows.
        rows = pa.concat_tables([rows, wide_rows(bundle).cast(rows.schema)])
    own = secrets.randbits(32) if seed is None else seed
    made = database(bundle.facts.release, shape, layout, rows, formats_of(bundle), own)
    first = {table.name: (*table.above, *table.key)[0] for table in shape.all}
    typed, texts = (
        {name: table.filter(pc.less_equal(table[first[name]], number)) for name, table in tables.items()}
        for tables in (made.typed, made.texts)
    )
    if out is not None:
        part = out.with_name(f".{secrets.token_hex(6)}.{out.name}")
        try:
            part.mkdir(parents=True)
            deque(replace(made, typed=typed, texts=texts).write(part), 0)
            part.replace(out)
        except OSError as error:
            raise DpsynthError(f"{out} can't be written: {error.strerror}.") from None
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return typed
