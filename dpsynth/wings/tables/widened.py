"""The configuration of the wide table that follows from the section of linked tables.

The wide table has a row for each row at the root of the tree: its own columns, the number of rows that each
child table has for it, and for each of these rows the child's columns once more, a number in their names.
Beyond the number of its rows they are missing, by constraints.

Invariant: public, and made of the configuration alone. A rule of a table is kept in every row of it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations, pairwise
from types import MappingProxyType
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from dpsynth.columns.declaration import Modelled
from dpsynth.columns.derived import DerivedColumn
from dpsynth.columns.expression import (
    MOMENTS,
    Call,
    Expression,
    Reference,
    kind_of,
    parse,
    plain,
    references,
    renamed,
)
from dpsynth.columns.kinds import ColumnSpec, layout_of
from dpsynth.columns.numeric import IntegerColumn
from dpsynth.columns.rules import RuleRefused, Rules, rules_of
from dpsynth.columns.rules.rule import tie_of
from dpsynth.columns.section import refused
from dpsynth.config.document import nested
from dpsynth.config.grammar import MAX_RULES, check_layout, check_rules
from dpsynth.config.source import InTables
from dpsynth.errors import nearest
from dpsynth.wings.tables.keys import (
    OTHER,
    Figure,
    LinkedTable,
    LinkedTables,
    children_of,
    key_column,
    most_of,
    roles_of,
    root_of,
    slot,
    slots_of,
    tables_above,
    undotted,
)

MOST_COLUMNS = 500
_EACH = 126
"""The largest max_children of which each number of rows has a cell of its own by itself."""
_FIRST_TWO, _LATER = 3, 2
"""How many times as much as others a pair of columns matters of the first two child rows, and of one of these
and the third."""
_FEW = Decimal("0.98")
"""Share of the cells of a first child row that may be missing without a warning."""

_IN_BACKTICKS = re.compile(r"`([^\W\d]\w*)\.((?:[^`]|``)+)`")


@dataclass(frozen=True)
class _Wide:
    """The columns and the rules of the wide table.

    Attributes:
        ties: for each tie of a child table, by its place there, the wide columns of each row's columns.
    """

    columns: dict[str, object]
    rules: list[str]
    ties: dict[tuple[str, int], list[Mapping[str, str]]]


def _in_all_rows(tie: str, rows: Sequence[Mapping[str, str]]) -> str:
    """A tie of a child table as one of all rows that are told apart: these have one mapping.

    Args:
        rows: for each row the wide table's columns by those of the table.
    """
    left, sign, right = tie_of(undotted(tie)) or ((), "", ())
    sides = (", ".join(plain(names[c]) for names in rows for c in side) for side in (left, right))
    return f" {sign} ".join(sides)


def _in_row(rule: str, names: Mapping[str, str], above: Mapping[str, str], there: Sequence[str]) -> str:
    """A rule of a table in one of its rows; see ``_widen``. It says nothing of a row that isn't there."""
    own = renamed(undotted(rule), {**above, **names})
    bare = not there or not _named(rule) or not _may_be(False, parse(undotted(rule)), names)
    return own if bare else f"{there[0]} < {there[1]} or ({own})"


def widened(values: Mapping[str, object]) -> dict[str, object]:
    """The values of a configuration with linked tables, as those of its wide table.

    Raises:
        PydanticCustomError: a key isn't allowed.
    """
    for key in ("columns", "constraints", "source"):
        if key in values and not getattr(values[key], "in_memory", False):
            words = f"is given beside tables: each table has its own {key}. Move it there"
            raise refused(words, key)
    try:
        tables = TypeAdapter(LinkedTables).validate_python(values["tables"])
    except ValidationError as error:
        raise nested(error, "tables") from None
    root = root_of(tables)
    for name in tables:
        _check_alone(tables, name)
    wide = _Wide({}, [], {})
    _widen(wide, tables, root, "", (), {})
    for (name, place), rows in wide.ties.items():
        wide.rules.append(_in_all_rows(tables[name].constraints[place], rows))
    if len(wide.rules) > MAX_RULES:
        words = f"need {len(wide.rules)} constraints; at most {MAX_RULES} are allowed. Lower roles"
        raise refused(words, "tables")
    return {
        **values,
        "tables": tables,
        "source": values.get("source", InTables()),
        "columns": wide.columns,
        "constraints": wide.rules,
        "privacy": _privacy(values.get("privacy"), tables),
        **_looked_at(values.get("provenance"), tables, wide),
        **_structure(values, tables, wide),
    }


def _structure(
    values: Mapping[str, object], tables: Mapping[str, LinkedTable], wide: _Wide
) -> dict[str, object]:
    """The section of structure, in which pairs of rows of one root matter more than other pairs.

    Most roots that have several rows have the first two, and these are alike; later ones are in few.
    """
    given = values.get("structure", "auto")
    given = {"method": given} if isinstance(given, str) else given
    if not isinstance(given, Mapping) or "workload" in given or given.get("method", "auto") != "auto":
        return {}
    modelled = [c for c, declared in wide.columns.items() if not isinstance(declared, DerivedColumn)]
    usual, pairs, root = len(modelled) - 2, [], root_of(tables)
    for child in children_of(tables, root):
        own = [c for c, declared in tables[child].columns.items() if isinstance(declared, Modelled)]
        starts = [slot("", child, label) for label, _ in slots_of(tables[child])[:3]]
        for first, second in combinations(starts, 2):
            times = _FIRST_TWO if second == starts[1] else _LATER
            weight = usual * (times - 1)
            pairs += [{"columns": [first + a, second + b], "weight": weight} for a in own for b in own]
    return {"structure": {**given, "workload": {"ways": 3, "marginals": pairs}}} if pairs else {}


def _privacy(given: object, tables: Mapping[str, LinkedTable]) -> object:
    """The section of privacy, whose unit is a row at the root with all that belongs to it."""
    if not isinstance(given, Mapping):
        return given
    root = root_of(tables)
    if given.get("unit", root) != root:
        words = f"must be {root}, the table at the root, or be left out: its rows are what is protected"
        raise refused(words, "privacy", "unit")
    split = given.get("split")
    shares = {"cutoff": 0, **split} if isinstance(split, Mapping) else {"cutoff": 0}
    unit = {"column": key_column(tables), "max_rows": 1, "kind": tables[root].unit or "person"}
    return {**given, "unit": unit, "split": shares}


def _looked_at(given: object, tables: Mapping[str, LinkedTable], wide: _Wide) -> dict[str, object]:
    """The section of provenance, where persons.age is that of each row told apart; without identifiers."""
    if not isinstance(given, Mapping) or not isinstance(given.get("looked_at"), list | tuple):
        return {}
    names: list[str] = []
    for name in map(str, given["looked_at"]):
        table, _, column = name.rpartition(".")
        row = rf"(\w+_)?{table}_(\d+|{OTHER})_" if table else rf"(\w+_(\d+|{OTHER})_)?" * (name in tables)
        row = "" if table == root_of(tables) else row
        found = [c for c in wide.columns if re.fullmatch(row + re.escape(column), c)]
        names += found or [name] * (table not in tables or column not in tables[table].columns)
    return {"provenance": {**given, "looked_at": names}}


def _check_alone(tables: Mapping[str, LinkedTable], name: str) -> None:
    """Refuse formulas and rules of a table that name what it doesn't have, at their own place."""
    table, children = tables[name], children_of(tables, name)
    layout, whole = layout_of(table.columns), layout_of(_declared(tables, name))
    known, key = _known(tables, name), ""
    try:
        check_layout(layout)
        read = [part.name for part in layout.columns if layout.kinds[part.name].word not in ("text", "truth")]
        if table.distinct and table.order_by not in read:
            words = (
                "needs order_by, and it among columns, as a number, a date or a time. Rows that are numbered"
            )
            raise refused(f"{words} in another column differ in it anyway: remove distinct", "distinct")
        for key, rules in (("constraints", table.constraints), ("at_most_one", table.at_most_one)):
            names = known if key == "constraints" else [*layout.named]
            for i, rule in enumerate(rules):
                unknown = next((c for c in _named(rule) if c not in names), None)
                if unknown is not None:
                    above = next((c for c in names if c.endswith(f".{unknown}")), "")
                    guess = f"; write {above}" if above else nearest(unknown, names)
                    raise refused(f"names '{unknown}', which is no column of {name}{guess}", key, i)
            if all(set(_named(rule)) <= whole.named.keys() for rule in rules):
                written = [f"not ({r})" if key == "at_most_one" else undotted(r) for r in rules]
                _check_across(check_rules(written, whole), tables, name)
    except PydanticCustomError as error:
        context = error.context or {}
        path = (key if part == "constraints" else part for part in context["path"])
        raise refused(context["words"], "tables", name, *path) from None
    for column in table.derived:
        if column in layout.named:
            raise refused("is also among columns; rename one", "tables", name, "derived", column)
        asked = table.derived[column]
        if asked.table not in children:
            words = (
                f"names '{asked.table}', which is no child table of {name}{nearest(asked.table, children)}"
            )
            raise refused(words, "tables", name, "derived", column)
        words = _no_condition(asked.where or "1 == 1", asked.table, tables[asked.table])
        if words:
            raise refused(words, "tables", name, "derived", column, "where")
        if isinstance(asked, Figure):
            words = _no_figure(asked, tables[asked.table])
            if words:
                raise refused(words, "tables", name, "derived", column, "of")


def _no_condition(where: str, name: str, table: LinkedTable) -> str:
    """The reason why a text is no condition on a row of a table; "" if it is one."""
    try:
        formula = parse(where)
        unknown = next((c for c in references(formula) if c not in table.columns), None)
        if unknown is not None:
            return f"names '{unknown}', which is no column of {name}{nearest(unknown, table.columns)}"
        word = kind_of(formula, layout_of(table.columns).kinds).word
    except ValueError as error:
        return str(error)
    return "" if word == "truth" else f"comes to a {word}: write a condition, such as age < 18"


def _no_figure(asked: Figure, table: LinkedTable) -> str:
    """The reason why a figure can't be computed of a column; "" if it can."""
    layout, ordered = layout_of(table.columns), asked.kind in ("min", "max")
    able = [
        c for c, kind in layout.kinds.items() if kind.word == "number" or (ordered and kind.word in MOMENTS)
    ]
    if asked.of in able and asked.of in table.columns:
        return ""
    what = "numbers, dates or times" if ordered else "numbers"
    guess = nearest(asked.of, able) if asked.of not in table.columns else ""
    return f"must be a column of {asked.table} of {what}; '{asked.of}' is none{guess}"


def _check_across(rules: Rules, tables: Mapping[str, LinkedTable], name: str) -> None:
    """Refuse rules about rows above that can't be kept in each of a table's rows."""
    above = _known(tables, name)[len(_below_named(tables, name)) :]
    chain = [name, *tables_above(tables, name)][:-1]
    further = next((t for t in chain if roles_of(tables[t]) < most_of(tables[t])), None)
    apart = f"and not all rows of {further} are told apart: set tables.{further}.parent.roles to "
    apart += str(most_of(tables[further])) if further else ""
    for tie in rules.ties:
        if tie.right in above:
            words = f"gives values to '{tie.right}', a column of rows above: write it on the left"
            raise refused(words, "constraints", tie.number)
        if further is not None and {*tie.pair} & {*above}:
            raise refused(f"ties columns of two tables, {apart}", "constraints", tie.number)
    for total in rules.sums.values():
        if total.target in above:
            words = f"computes '{total.target}', and may compute columns of {name} alone, on the left. To "
            words += "compare two, write <= and >="
            raise refused(words, "constraints", total.number)
        if further is not None and {*references(total.formula)} & {*above}:
            words = f"computes '{total.target}' from a row above, {apart}, or leave the column out"
            raise refused(words, "constraints", total.number)


def _declared(tables: Mapping[str, LinkedTable], name: str) -> dict[str, ColumnSpec]:
    """The columns of a table, and of those above by names such as patients.birth, with numbers of rows."""
    found: dict[str, ColumnSpec] = {**tables[name].columns}
    for above in tables_above(tables, name):
        names = {c: f"{above}.{c}" for c in (*tables[above].columns, *children_of(tables, above))}
        for column, declared in tables[above].columns.items():
            found[names[column]] = declared
            if isinstance(declared, DerivedColumn):
                formula = renamed(declared.formula, names)
                found[names[column]] = declared.model_copy(update={"formula": formula})
        for child in children_of(tables, above):
            number = {"type": "integer", "min": 0, "max": most_of(tables[child]) + 1}
            found[names[child]] = IntegerColumn.model_validate(number)
    return found


def _named(formula: str) -> Sequence[str]:
    try:
        return [*references(parse(undotted(formula)))]
    except ValueError:
        return []


def _widen(
    wide: _Wide,
    tables: Mapping[str, LinkedTable],
    name: str,
    prefix: str,
    there: Sequence[str],
    above: Mapping[str, str],
) -> None:
    """Add the columns and rules of one row of a table.

    Args:
        there: the condition under which the row is there, and the number that says so; none at the root.
        above: the wide table's columns by names of rows above, such as patients.birth.
    """
    table, children = tables[name], children_of(tables, name)
    names = {c: prefix + c for c in _below_named(tables, name)}
    below = len(tables_above(tables, name)) > 1
    named = {**above, **{f"{name}.{c}": own for c, own in names.items()}}

    def add(column: str, declared: object) -> None:
        if column in wide.columns or column == key_column(tables):
            words = f"and another column both come to '{column}' in the wide table; rename one"
            raise refused(words, "tables", name, "columns", column.removeprefix(prefix))
        wide.columns[column] = declared
        if len(wide.columns) > MOST_COLUMNS:
            raise refused(
                f"make a table of more than {MOST_COLUMNS} columns, with those of each row that may belong "
                f"to a row of {root_of(tables)}. Lower roles, or leave out columns",
                "tables",
            )

    for column, declared in table.columns.items():
        if isinstance(declared, DerivedColumn):
            formula = renamed(declared.formula, names)
            add(names[column], declared.model_copy(update={"formula": formula}))
        elif isinstance(declared, Modelled):
            add(names[column], _in_slot(declared, int(there[1])) if there else declared)
            if there:
                needed = declared.missing is False
                wide.rules.append(presence(names[column], there, needed=needed, below=below))
    for child in children:
        most = most_of(tables[child])
        number: dict[str, object] = {"type": "integer", "min": 0, "max": most + 1, "missing": bool(there)}
        # Each small number by itself, however large the largest: rules tell them apart.
        number |= {"edges": "log"} if most > _EACH else {}
        number |= {"expected": {"missing": 1, "first": 1}} if there else {"default": 0}
        add(names[child], number)
        if there:
            wide.rules.append(presence(names[child], there, needed=True, below=below))
        for label, least in slots_of(tables[child]):
            _widen(wide, tables, child, slot(prefix, child, label), (plain(names[child]), str(least)), named)
        starts = [slot(prefix, child, label) for label, _ in slots_of(tables[child])]
        for where in tables[child].at_most_one:
            met = [renamed(where, {c: start + c for c in tables[child].columns}) for start in starts]
            wide.rules.extend(f"not ({one}) or not ({other})" for one, other in combinations(met, 2))
        if tables[child].distinct:
            turns = [plain(f"{start}{tables[child].order_by}") for start in starts]
            wide.rules.extend(f"{one} < {later}" for one, later in pairwise(turns))
    for place, rule in enumerate(table.constraints):
        if there and tie_of(undotted(rule)):
            wide.ties.setdefault((name, place), []).append({**above, **names})
        else:
            wide.rules.append(_in_row(rule, names, above, there))


def _below_named(tables: Mapping[str, LinkedTable], name: str) -> list[str]:
    """The names that rules of a table may use: its columns, the numbers of child rows, and their columns."""
    found = [*tables[name].columns]
    for child in children_of(tables, name):
        found.append(child)
        for label, _ in slots_of(tables[child]):
            found += [slot("", child, label) + c for c in _below_named(tables, child)]
    return found


def _may_be(truth: bool, formula: Expression, missing: Container[str]) -> bool:
    """True unless a condition never comes to a truth where some columns are missing."""
    if not isinstance(formula, Call):
        return not (isinstance(formula, Reference) and formula.column in missing)
    sign, parts = formula.operation, formula.operands
    if sign == "not":
        return _may_be(not truth, parts[0], missing)
    if sign == "missing":
        return truth or any(_may_be(side, parts[0], missing) for side in (True, False))
    if sign in ("and", "or", "implies"):
        first = _may_be(truth != (sign == "implies"), parts[0], missing)
        second = _may_be(truth, parts[1], missing)
        return (first and second) if truth == (sign == "and") else (first or second)
    values = [[_may_be(side, part, missing) for side in (True, False)] for part in parts]
    apart = sign != "==" or truth or all(map(any, zip(*values, strict=True)))
    return sign == "if" or (apart and all(map(any, values)))


def _known(tables: Mapping[str, LinkedTable], name: str) -> list[str]:
    """The names that rules of a table may use: the same, and then those of the tables above."""
    above = (f"{t}.{c}" for t in tables_above(tables, name) for c in _below_named(tables, t))
    return [*_below_named(tables, name), *above]


def ties(table: LinkedTable) -> tuple[str, ...]:
    """The rules of a child table that give values of a column one of another, in all of its rows."""
    return tuple(rule for rule in table.constraints if table.parent and tie_of(undotted(rule)))


def across(tables: Mapping[str, LinkedTable], name: str) -> tuple[str, ...]:
    """The rules of a table that name columns of rows above."""
    own = {*_below_named(tables, name)}
    return tuple(rule for rule in tables[name].constraints if not own.issuperset(_named(rule)))


class _Row(NamedTuple):
    """A row beside a root's row; see ``_widen``."""

    table: str
    prefix: str
    there: Sequence[str] = ()
    above: Mapping[str, str] = MappingProxyType({})


def _rows(tables: Mapping[str, LinkedTable], row: _Row) -> Iterator[_Row]:
    """It, and all rows below."""
    yield row
    names = {f"{row.table}.{c}": row.prefix + c for c in _below_named(tables, row.table)}
    for child in children_of(tables, row.table):
        for label, least in slots_of(tables[child]):
            start, there = slot(row.prefix, child, label), (plain(row.prefix + child), str(least))
            yield from _rows(tables, _Row(child, start, there, {**row.above, **names}))


def in_words(tables: Mapping[str, LinkedTable], rule: str) -> tuple[str, str, tuple[str, ...]]:
    """A rule of the wide table as one of the table whose single rows it is about; else, as the root's.

    Returns:
        The table, the rule there, and all rules of the wide table that it comes to.
    """
    root = root_of(tables)
    beside = [*_rows(tables, _Row(root, ""))]
    rows = {row.prefix: row.table for row in beside}
    of = {
        prefix + own: (prefix, name)
        for prefix, name in rows.items()
        for own in (*tables[name].columns, *children_of(tables, name))
    }
    tie = tie_of(rule)
    if tie and len(tie[0]) > 1:
        # What a tie of a table comes to is one of all places.
        of_one = in_words(tables, f"{plain(tie[0][0])} {tie[1]} {plain(tie[2][0])}")
        return of_one if of_one[2] == (rule,) else (root, rule, (rule,))
    named = [of[c] for c in ((*tie[0], *tie[2]) if tie else references(parse(rule)))]
    lines = [start for start in rows if any(own.startswith(start) for own, _ in named)]
    start = max((s for s in lines if all(o.startswith(s) or s.startswith(o) for o, _ in named)), key=len)
    name = rows[start]
    names = {
        column: column.removeprefix(start) if own.startswith(start) else f"{table}.{column.removeprefix(own)}"
        for column, (own, table) in of.items()
    }
    said = _IN_BACKTICKS.sub(
        lambda m: f"{m[1]}.{plain(m[2].replace('``', '`'))}" if m[1] in tables else m[0], renamed(rule, names)
    )
    whole = layout_of(_declared(tables, name))
    try:
        if tie or {*_named(said)} <= whole.named.keys():
            _check_across(rules_of([undotted(said)], whole), tables, name)
    except (PydanticCustomError, RuleRefused):
        return root, rule, (rule,)
    own = [row for row in beside if row.table == name]
    if tie and start:
        names_of = ({**row.above, **{c: row.prefix + c for c in tables[name].columns}} for row in own)
        return name, said, (_in_all_rows(said, [*names_of]),)
    found = (
        _in_row(said, {c: row.prefix + c for c in _below_named(tables, name)}, row.above, row.there)
        for row in own
    )
    return name, said, (*found,)


def presence(column: str, there: Sequence[str], *, needed: bool, below: bool) -> str:
    """The rule by which a cell of a row that isn't there is missing, and others are not, if none may be.

    Args:
        below: True if the row above may not be there either: then the number of rows is missing.
    """
    number, least = there
    if needed:
        known = f"{number} is not missing and " if below else ""
        return f"({known}{number} >= {least}) == ({plain(column)} is not missing)"
    unknown = f"{number} is missing or " if below else ""
    return f"{unknown}{number} < {least} implies {plain(column)} is missing"


def _in_slot(declared: Modelled, number: int) -> Modelled:
    """The declaration of a child's column in one of its rows beside the parent's, where it may be missing.

    Most cells may be missing: rows that aren't there. That nothing of a column can be read is told by the
    first row.
    """
    given: Mapping[str, Decimal] = getattr(declared, "expected", None) or {}
    usual = _FEW if number == 1 else Decimal(1)
    expected = {**given, "missing": max(usual, given.get("missing", usual))}
    if declared.missing is not False:
        return declared.model_copy(update={"expected": expected})
    expected.pop("default", None)
    return declared.model_copy(update={"expected": expected, "missing": True, "default": None})
