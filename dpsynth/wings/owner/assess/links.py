"""Links between private tables, for ``dpsynth init`` of several: which one belongs to which, by what key.

They are guessed from the names of columns, or with ``--look`` from all rows, which are then held in memory.
References become a tree, whose root names persons, households or accounts where a table does.

Invariant: as in ``profiling``. How a look ends tells nothing about cells: what isn't found becomes a gap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, permutations
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyarrow as pa

from dpsynth.columns.identifier import NOBODY, canonical_id
from dpsynth.config.files import FileForm
from dpsynth.config.files.opening import unheard
from dpsynth.curator.rows.files import read_batches
from dpsynth.errors import ConfigError
from dpsynth.figures import listed
from dpsynth.pipeline.steps import guarded
from dpsynth.wings.owner.assess.column_guesses import profile
from dpsynth.wings.owner.assess.identifier_forms import named_whose, words_of
from dpsynth.wings.owner.assess.profiling import Rereadable, column_of, with_layout
from dpsynth.wings.owner.starter import guessed
from dpsynth.wings.owner.starter.sketch import Draft, Linked, Reference, Sketch

_OWNERS, _NUMBERS = {"person", "household", "account"}, ("id", "no", "nr", "num", "number", "key", "code")
_KEYS = {*_OWNERS, "number", "event"}
_KEY, _HELD, _MOST_SHARED = 0.99, 0.5, 8
"""Least shares of rows with a key of their own, and of rows that refer to one; columns tried as keys."""
_NO_KEY = r"\d[.,]0*[1-9]|^\d{1,4}[-./]\d{1,2}[-./]\d"  # numbers with decimals, and dates
_KEPT, _ROUND = 0.99, (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 200, 300, 500, 1000)
"""Least part of the rows that max_children keeps, and its values."""
_ALWAYS, _MOSTLY, _FEWEST = 0.999, 0.9, 50  # shares of rows with a parent's cell or an order, and rows
_ORDERS = re.compile(r"date|time|day|month|year|wave|round|order|seq|num|nr|no|start|begin|datum|jahr")


def _names_like(table: str) -> tuple[str, ...]:
    """A table's name as columns begin with it: patients is there in patient_id, too."""
    name = re.sub(r"[\W_]+", "", table).casefold()
    return (name, name.removesuffix("s"), name.removesuffix("es"), re.sub("ies$", "y", name))


def resembles(column: str, key: str, above: str) -> bool:
    """True if a column is called like a key of a table: the same, or after the table.

    >>> resembles("patient_id", "id", "patients"), resembles("hhID", "HH_ID", "houses")
    (True, True)
    """
    (name, *_), (of, *_), tables = _names_like(column), _names_like(key), _names_like(above)
    is_key = of in _NUMBERS or any(of == table + number for table in tables for number in _NUMBERS)
    return name == of or (is_key and any(name in (table, table + of) for table in tables))


def _named(drafts: Mapping[str, Draft]) -> Iterator[Reference]:
    """References by names of columns; where these don't tell which table is above, it is the first."""
    names = {table: [sketch.name for sketch in draft.columns] for table, draft in drafts.items()}
    for table, above in permutations(drafts, 2):
        pairs = [(c, k) for k in names[above] for c in ([k] if k in names[table] else names[table])]
        shared = [(c, k) for c, k in pairs if resembles(c, k, above)]
        told = [(c, k) for c, k in shared if named_whose(k) in _KEYS]
        told = told or [(c, k) for c, k in shared if len(shared) == 1 or k == names[above][0]]
        own = [sum(_names_like(c)[0].startswith(_names_like(t)) for c, _ in told) for t in (above, table)]
        first = [*drafts].index(above) < [*drafts].index(table)
        if told and (own[0], first) > (own[1], not first):
            yield Reference(table, tuple(c for c, _ in told), above, tuple(k for _, k in told))


def linked(drafts: Mapping[str, Draft], references: Sequence[Reference] | None = None) -> Draft:
    """A draft of linked tables, by references that are described, or by the names of their columns."""
    return _tree(drafts, [*_named(drafts)] if references is None else references)


def _tree(drafts: Mapping[str, Draft], references: Sequence[Reference]) -> Draft:
    """Tables as a tree, each below the deepest one that it refers to by the key of all tables above it."""
    root = _root(list(drafts), references)
    order, parents, reach, said = [root], dict[str, Reference](), _below(root, references), list[str]()
    while able := [r for r in references if r.above in order and r.table not in order]:
        # A table waits for all that it refers to.
        waits = {r.table for r in references if r.above in reach - {*order, r.table}}
        table = next((r for r in able if r.table not in waits), able[0]).table
        mine = [r for r in references if r.table == table]
        whole = [w for r in mine if r.above in order and (w := _whole(r, mine, parents.get(r.above)))]
        if whole:
            chosen = parents[table] = max(whole, key=lambda r: order.index(r.above))
            others = [w.above for w in whole if chosen.above not in _below(w.above, references)]
            said += [f"{table} refers to {o} too: is {chosen.above} its parent?" for o in others]
        order.append(table)
    keys = {r.above: r.key for r in [*references, *reversed(parents.values())] if r.above in (root, *parents)}
    # One table alone is no tree; what it is to the others is then to be filled in.
    kept = [root, *([name for name in order if name in parents] or [name for name in drafts if name != root])]
    for name in drafts.keys() - {*kept}:
        users = listed([r.table for r in references if r.above == name] or ["none"])
        up = listed([f"{r.above} by {listed(r.columns)}" for r in references if r.table == name] or ["none"])
        said.append(
            f"{name} is left out: it refers to {up} of the tables, and {users} to it. A row has one row "
            "above, and holds its whole key. Add that to it, or join it to the tables that refer to it."
        )
    tables = tuple(Linked(n, drafts[n], keys.get(n, ()), parents.get(n)) for n in kept)
    origin = dict.fromkeys(words for draft in drafts.values() for words in draft.origin)
    described = any(draft.described for draft in drafts.values())
    return Draft((*origin,), (), described, table=root, questions=tuple(sorted(said)), tables=tables)


def _below(name: str, references: Sequence[Reference]) -> set[str]:
    """A table and all that refer to it, directly or not."""
    found, seen = {name}, 0
    while len(found) > seen:
        seen = len(found)
        found |= {r.table for r in references if r.above in found}
    return found


def _root(names: Sequence[str], references: Sequence[Reference]) -> str:
    """The table whose rows are protected: the uppermost of persons, households or accounts if one is."""
    keys = {name: [k for r in references if r.above == name for k in r.key] for name in names}
    owners = [n for n in names if {*map(named_whose, (*_names_like(n), *keys[n]))} & _OWNERS]
    best = [n for n in owners if not any(n in _below(o, references) for o in owners if o != n)]
    best = best or owners or [n for n in names if all(r.table != n for r in references)] or [*names]
    return max(best, key=lambda name: len(_below(name, references)))


def _whole(found: Reference, mine: Sequence[Reference], higher: Reference | None) -> Reference | None:
    """A reference with the key of all tables above, so that each row says by itself whose it is."""
    if higher is None:
        return found
    pairs = dict(zip(found.key, found.columns, strict=True))
    top = [zip(r.key, r.columns, strict=True) for r in mine if r.above == higher.above]
    direct = {k: c for columns in top for k, c in columns}
    held = {c: pairs.get(c) or direct.get(k, "") for k, c in zip(higher.key, higher.columns, strict=True)}
    whole = held | {k: c for k, c in pairs.items() if k not in held}
    return Reference(found.table, (*whole.values(),), found.above, (*whole,)) if all(whole.values()) else None


class _Rows(NamedTuple):
    """The rows of a table: its cells as texts, and as ids in one spelling. Private."""

    form: FileForm
    texts: pd.DataFrame
    ids: pd.DataFrame

    def keys(self, columns: Sequence[str]) -> pd.DataFrame:
        """The first row of each key."""
        return self.ids[[*columns]].dropna().drop_duplicates().reset_index(names=" row")


@unheard()
def look_at_tables(drafts: Mapping[str, Draft], references: Sequence[Reference] | None = None) -> Draft:
    """A draft of linked tables, with what all rows tell of them; errors are those of ``look_at``.

    Args:
        references: those that are described; left out: found in the rows.

    Raises:
        ConfigError: a table has no file.
    """
    absent = next((name for name, draft in drafts.items() if draft.table is None), None)
    if absent is not None:
        raise ConfigError(f"--look needs the file of {absent}: give {absent}.csv after the description.")
    return guarded("look at the tables", partial(_looked, drafts, references))


def _looked(drafts: Mapping[str, Draft], references: Sequence[Reference] | None) -> Draft:
    rows = {name: _read(draft) for name, draft in drafts.items()}
    found = _tree(drafts, [*_references(rows)] if references is None else references)
    tables, above = list[Linked](), dict[str, pd.DataFrame]()
    for table in found.tables:
        own, owner, inherited = rows[table.name], None, rows[table.name].texts[[]]
        if table.parent is not None:
            owner = _owners(own, rows[table.parent.above], table.parent)
            inherited = above[table.parent.above].reindex(owner.fillna(-1)).reset_index(drop=True)
        above[table.name] = inherited.assign(**own.texts[own.texts.columns.difference(inherited.columns)])
        looked = _profiled(table, own, inherited, len(found.tables[0].key))
        tables.append(looked if owner is None else _in_turn(looked, own.texts, owner))
    asked = (*tables[0].draft.asked, *found.questions)
    return replace(found, tables=tuple(tables), questions=asked, looked=True)


def _read(draft: Draft) -> _Rows:
    path, names = Path(str(draft.table)), [s.name for s in draft.columns if s.declared is not None]

    def read(form: FileForm) -> Rereadable:
        return Rereadable(lambda: read_batches(path, names, form, keep_broken=False))

    form, schema = with_layout(draft.form, read), pa.schema([(name, pa.string()) for name in names])
    batches = [pa.record_batch(dict(batch), schema) for batch in read(form)]
    texts = pa.Table.from_batches(batches, schema).to_pandas()
    ids = texts.apply(lambda c: c.map({t: canonical_id(t) for t in c.unique()}).replace(NOBODY, None))
    return _Rows(form, texts, ids)


def _owners(own: _Rows, above: _Rows, reference: Reference) -> pd.Series[float]:
    """The row above of each row, NaN for none."""
    mine, theirs = [*reference.columns], [*reference.key]
    return own.ids[mine].merge(above.keys(theirs), "left", left_on=mine, right_on=theirs)[" row"]


def _references(rows: Mapping[str, _Rows]) -> Iterator[Reference]:
    """The references by columns with like names that rows bear out, by the fewest columns that tell them."""
    for table, above in permutations(rows, 2):
        own, other = rows[table], rows[above]
        pairs = [(str(c), str(k)) for k in other.texts for c in own.texts]
        shared = [(c, k) for c, k in pairs if resembles(c, k, above)]
        # Without a name of a key that both have, all names of keys are held against each other.
        if not any(named_whose(k) in _KEYS for _, k in shared):
            repeats = [c for c in map(str, own.texts) if len(own.keys([c])) < _KEY * len(own.ids)]
            shared += [(c, k) for c, k in pairs if c in repeats and {*map(named_whose, (c, k))} <= _KEYS]
        able = [(c, k) for c, k in shared if not other.texts[k].str.contains(_NO_KEY).any()][:_MOST_SHARED]
        tried = (zip(*several, strict=True) for n in (1, 2, 3) for several in combinations(able, n))
        for one in (Reference(table, columns, above, key) for columns, key in tried):
            once = len({*one.columns}) == len({*one.key}) == len(one.key)
            tells = once and len(other.keys(one.key)) >= _KEY * max(len(other.ids), 1)
            if tells and _owners(own, other, one).notna().mean() >= _HELD:
                # Of two tables that tell each other's rows the first is above.
                first = list(rows).index(above) < list(rows).index(table)
                yield from [one] * (first or len(own.keys(one.columns)) < _KEY * len(own.ids))
                break


def _profiled(table: Linked, own: _Rows, inherited: pd.DataFrame, root_key: int) -> Linked:
    """A table whose columns are guessed, where values and bounds are those of ten rows at the root."""
    whose = table.parent.columns[:root_key] if table.parent else ()
    # Of several columns one that tells fewer rows at the root apart is on the safe side.
    person, draft = max(whose, key=lambda c: own.ids[c].nunique(), default=None), table.draft
    for name in map(str, own.texts.columns.intersection(inherited.columns)):
        pairs = pd.DataFrame({"own": own.texts[name], "above": inherited[name]}).dropna()
        if len(pairs) >= _FEWEST and (pairs.own == pairs.above).mean() >= _ALWAYS:
            draft = draft.without(name, "Left out: the same as in a table above.")
    columns = [sketch.name for sketch in replace(table, draft=draft).columns if sketch.gaps]
    cells = {
        c: pa.array(own.texts[c].to_numpy(object), pa.string(), from_pandas=True) for c in {*columns, *whose}
    }
    look = profile([cells] if cells else [], columns, person, column_of)
    return replace(table, draft=replace(guessed(draft, look), form=own.form, looked=True))


def _in_turn(table: Linked, texts: pd.DataFrame, owner: pd.Series[float]) -> Linked:
    """A table with the order and the number of the rows of one row above."""
    number, lost, draft = owner.value_counts(), int(owner.isna().sum()), table.draft
    kept = (most for most in _ROUND if number.clip(upper=most).sum() >= _KEPT * number.sum())
    note = f"{len(owner):,} rows; a row above has {number.median():g} (median) to {number.max():,}, if any."
    note += f" {lost:,} rows have none above, and are left out." if lost else ""
    there = [sketch for sketch in table.columns if sketch.name in texts]
    ranked = [(worth, s.name) for s in there if (worth := _order(s, texts[s.name], owner))]
    worth, order = max(ranked, key=lambda one: one[0], default=((False,), ""))
    if worth[-1]:
        draft = draft.without(order, "Left out: synthetic rows are numbered in it, by order_by.")
    most, distinct = next(kept, _ROUND[-1]), bool(order) and not worth[-1] and worth[-2:-1] == (1,)
    return replace(table, draft=draft, most=most, order=order, distinct=distinct, note=note)


def _order(sketch: Sketch, texts: pd.Series[str], owner: pd.Series[float]) -> tuple[float, ...] | None:
    """Reasons for a column as the order of rows, or None; last if rows differ in it, if it numbers them."""
    kind, named = (sketch.declared or {}).get("type"), any(map(_ORDERS.fullmatch, words_of(sketch.name)))
    numbers, moment = pd.to_numeric(texts, errors="coerce"), kind in ("date", "datetime")
    value = numbers if numbers.notna().mean() >= _MOSTLY else texts.rank(method="dense")
    frame = pd.DataFrame({"owner": owner, "value": value}).dropna()
    steps = frame.groupby("owner").value.diff().dropna()
    rises, apart = float((steps > 0).mean()), 1 - float(frame.duplicated().sum()) / max(len(steps), 1)
    told = moment or (kind in ("integer", "ordered") and ((named and apart >= _KEY) or rises >= _MOSTLY))
    if len(steps) < _FEWEST or apart < _MOSTLY or not told:
        return None
    counted = (frame.groupby("owner").value.rank(method="first") == frame.value).mean() >= _KEY
    return apart >= _KEY, moment or named, round(rises, 2), apart * (kind != "ordered"), bool(counted)
