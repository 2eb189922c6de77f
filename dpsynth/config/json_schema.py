"""The JSON Schema of a configuration, for completion and checks in editors.

``python -m dpsynth.config.json_schema > schemas/dpsynth.schema.json`` writes it. The same
grammar gives the same bytes. Rules beyond a schema (a statistic's columns exist, shares sum
to 1) are checked on loading.
"""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from typing import cast

from pydantic.json_schema import GenerateJsonSchema

from dpsynth.config.grammar import Spec

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None


class _Generator(GenerateJsonSchema):
    def encode_default(self, dft: object) -> object:
        """Budgets as numbers; pydantic would write a Decimal as a text."""
        return float(dft) if isinstance(dft, Decimal) else super().encode_default(dft)


def json_schema() -> dict[str, Json]:
    """The schema as JSON values."""
    schema = cast(dict[str, Json], Spec.model_json_schema(schema_generator=_Generator))
    tidy = cast(dict[str, Json], _tidied(schema))
    definitions = cast(dict[str, dict[str, Json]], tidy["$defs"])
    # The grammar's shorthands, which stand for models and so don't show in them.
    definitions["Row"] = {
        "enum": ["row", "event"],
        "description": "One neighbour is one row; an event is one.",
    }
    definitions["Structure"] = {
        "anyOf": [
            definitions["Structure"],
            cast(dict[str, dict[str, Json]], definitions["Structure"])["properties"]["method"],
        ]
    }
    del tidy["required"]
    local: Json = {"properties": {"trust": {"const": "local"}}, "required": ["trust"]}
    return {
        "$schema": _DIALECT,
        **tidy,
        "required": ["privacy"],
        # Under trust: local there is no private table; linked tables have their own sources and columns.
        "if": local,
        "then": {"required": ["columns"]},
        "else": {"anyOf": [{"required": ["source", "columns"]}, {"required": ["tables"]}]},
        "title": "dpsynth configuration",
    }


def _tidied(node: Json) -> Json:
    """The schema without pydantic's titles and without defaults that are whole sections."""
    if isinstance(node, list):
        return [_tidied(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept: dict[str, Json] = {}
    for key, value in node.items():
        if key == "properties" and isinstance(value, dict):
            kept[key] = {name: _tidied(field) for name, field in value.items()}
        elif key == "title" or (key == "default" and (value is None or isinstance(value, dict))):
            continue
        else:
            kept[key] = _tidied(value)
    return kept


def schema_text() -> str:
    """The schema as it stands in the file."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False, sort_keys=False) + "\n"


if __name__ == "__main__":
    sys.stdout.buffer.write(schema_text().encode("utf-8"))
