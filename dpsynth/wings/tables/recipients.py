"""Linked tables of a bundle, joined, and more of them.

Invariant: post-processing of the public folder. New rows come with all rows that belong to them.
"""

from __future__ import annotations

import secrets
import shutil
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.bundle.recipient.more_rows import (
    Given,
    Wish,
    having_rows,
    kept,
    more_rows,
    source_given,
    wish_of,
)
from dpsynth.bundle.recipient.opened import OpenedBundle
from dpsynth.bundle.recipient.query import QuestionRefused
from dpsynth.columns.expression import Call, Expression
from dpsynth.errors import ConfigError, DpsynthError, nearest
from dpsynth.wings.tables.database import database, formats_of, shape_of, wide_rows
from dpsynth.wings.tables.keys import DOTTED
from dpsynth.wings.tables.questions import Asked, NotBeside
from dpsynth.wings.tables.splitting import Split, met, split
from dpsynth.work_shares import telling

if TYPE_CHECKING:
    import pandas as pd

_PIECE = 1 << 18
"""Rows at the root that are drawn, split and tried together."""


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
    wish, asked, conditions = _required(bundle, given)
    own = secrets.randbits(32) if seed is None else seed
    source, tell = source_given(wish, bundle), telling("rows that have what is given", number)
    # Further rows of one parent are those of parents like it: there are enough among the synthetic rows.
    few = any(table.roles < table.most for table in asked.root.all)
    pool = [wide_rows(bundle)] if few else []

    def whole(rows: pa.Table, most: int) -> tuple[Split, int]:
        """Whole roots of a piece of wide rows."""
        rows = rows.take(pa.array(having_rows(wish, source.layout, rows)))
        beside = [other.cast(rows.schema) for other in pool]
        asked.split = split(pa.concat_tables([rows, *beside]), asked.root, asked.bundle.rows.layout, own)
        holds = np.arange(rows.num_rows)
        for condition in conditions:
            holds = holds[met(asked.values(condition, asked.root.name))[holds]]
        tell(len(holds[:most]))
        return asked.split.of_roots(holds[:most]), len(holds[:most])

    if conditions and number > 0:
        found = Split.together([*kept(source, number, seed, _PIECE, whole)])
    else:
        found, _ = whole(pa.concat_tables(more_rows(bundle, number, wish, seed)), number)
    made = database(bundle.facts.release, found, formats_of(bundle))
    if out is not None:
        part = out.with_name(f".{secrets.token_hex(6)}.{out.name}")
        try:
            part.mkdir(parents=True)
            deque(made.write(part), 0)
            part.replace(out)
        except OSError as error:
            raise DpsynthError(f"{out} can't be written: {error.strerror}.") from None
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return dict(made.typed)


def _required(bundle: OpenedBundle, given: Given) -> tuple[Wish, Asked, list[Expression]]:
    """Requirements of wide rows, and those of rows at the root that their tables alone can tell."""
    asked, codes = Asked(bundle), dict[str, NDArray[np.bool_]]()
    formulas, conditions, root = list[Expression](), list[Expression](), asked.root.name
    texts = [given] if isinstance(given, str) else given or ()
    for one in given.items() if isinstance(given, Mapping) else texts:
        found = _of_wide_rows(one, root, bundle)
        if found is None:
            condition = asked.required(one)
            conditions.append(condition)
            with suppress(NotBeside):
                formulas.append(asked.beside(condition, {root: ""}))
            continue
        formulas += [] if found.formula is None else [found.formula]
        codes |= {name: mask & codes.get(name, np.True_) for name, mask in found.codes.items()}
    whole = reduce(lambda a, b: Call("and", (a, b)), formulas) if formulas else None
    return Wish(codes, whole), asked, conditions


def _of_wide_rows(one: str | tuple[str, object], root: str, bundle: OpenedBundle) -> Wish | None:
    """A requirement of columns of the wide table, with or without the root's name; None of any other."""

    def alone(text: str) -> str:
        return DOTTED.sub(lambda m: m[0].partition(".")[2].lstrip() if m[1] == root else m[0], text)

    with suppress(QuestionRefused):
        return wish_of(alone(one) if isinstance(one, str) else {alone(one[0]): one[1]}, bundle)
    return None
