"""Columns of a finished release, made again from the public schema in its manifest.

Invariant: the columns have exactly the public schema that they were made from, or there is an error.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import cast

from pydantic import TypeAdapter, ValidationError

from dpsynth.config.columns import KINDS, ColumnSpec
from dpsynth.config.declaration import Described
from dpsynth.config.schema_reading import missing_rule
from dpsynth.domain.column import Column
from dpsynth.domain.layout import Layout
from dpsynth.domain.public_schema import public_schema
from dpsynth.errors import ConfigError

_GRAMMAR: TypeAdapter[ColumnSpec] = TypeAdapter(ColumnSpec)


def released_columns(described: Sequence[object]) -> tuple[Column, ...]:
    """The modelled columns of a release, in the order of its table; computed and made-up ones are left out.

    Args:
        described: ``columns`` of a manifest, as plain JSON values.

    Raises:
        ConfigError: a column can't be made again from its description.
    """
    found = (_column(facts) for facts in described)
    return tuple(column for column in found if column is not None)


def _column(facts: object) -> Column | None:
    if not isinstance(facts, dict) or not isinstance(facts.get("name"), str):
        raise ConfigError("The manifest has a column without a name: it is no manifest.json of a bundle.")
    if "labels" not in facts:
        return None
    # The grammar takes decimals, which JSON's floats are the shortest texts of.
    exact = cast(Described, json.loads(json.dumps(facts), parse_float=Decimal))
    column = _declared(exact, facts["name"])
    if column is not None and not column.missing and "unusable_cells_become" in facts.get("missing", {}):
        became = facts["missing"]["unusable_cells_become"]
        if became in column.labels:
            column = replace(column, fallback=column.labels.index(became))
    if column is None or json.loads(json.dumps(public_schema(Layout((column,)))[0])) != facts:
        raise ConfigError(
            f"The manifest's description of column '{facts['name']}' can't be read by this version of "
            "dpsynth. Use the version that the manifest names under software."
        )
    return column


def _declared(described: Described, name: str) -> Column | None:
    """The column that the first fitting kind makes of a description; None where none fits."""
    for declaration in KINDS.values():
        declared = declaration.from_schema(described)
        if declared is None:
            continue
        try:
            part = _GRAMMAR.validate_python({**declared, **missing_rule(described)}).part(name)
        except ValidationError:
            return None
        return part if isinstance(part, Column) else None
    return None
