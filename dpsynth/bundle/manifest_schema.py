"""The JSON Schema of the manifest, for recipients, for registries, and for ``dpsynth verify``.

``python -m dpsynth.bundle.manifest_schema > schemas/manifest.schema.json`` writes it. Keys that it doesn't
name are allowed, so that a bundle of a later version with more facts still keeps to it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from dpsynth.bundle.manifest import FORMAT
from dpsynth.statistics.verdict import USES

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

Schema = Mapping[str, object]

_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_FLAG: Schema = {"type": "boolean"}
_LOSS: Schema = {"type": ["number", "null"], "minimum": 0}
_PROBABILITY: Schema = {"type": "number", "minimum": 0, "exclusiveMaximum": 1}
_SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_WHOLE: Schema = {"type": "integer", "minimum": 0}
_SHA256: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def _object(described: Mapping[str, Schema], *optional: str, about: str = "") -> Schema:
    required = [key for key in described if key not in optional]
    found: Schema = {"type": "object", "properties": described, "required": required}
    return {"description": about, **found} if about else found


def _list(items: Schema, about: str = "") -> Schema:
    found: Schema = {"type": "array", "items": items}
    return {"description": about, **found} if about else found


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def manifest_schema() -> Schema:
    """The schema as JSON values."""
    loss_of: dict[str, Schema] = {"epsilon": _LOSS, "delta": _or_null(_PROBABILITY)}
    guarantee: dict[str, Schema] = {
        "epsilon": {"type": "number", "minimum": 0, "description": "Rounded up."},
        "delta": _PROBABILITY,
        "rho": {**_LOSS, "description": "Zero-concentrated rho; null under pure epsilon."},
        "mu": {**_LOSS, "description": "mu of Gaussian DP; null under other accountants."},
        "approximate_delta": _PROBABILITY,
        "unit": {**_TEXT, "description": "The privacy unit in words."},
        "rows_without_id": {"enum": ["left_out", "together", None]},
        "neighbours": {"enum": ["add_remove", "replace_one"]},
        "accountant": {
            "type": "string",
            "enum": ["sequential", "zcdp", "gdp", "local"],
        },
        "groups": _list(
            _object({"units": _WHOLE, **loss_of}), "The guarantees of units that change together; null: none."
        ),
        "other_relation": _object({"neighbours": {"enum": ["add_remove", "replace_one"]}, **loss_of}),
        "in_words": _TEXTS,
    }
    mechanism: dict[str, Schema] = {
        "question": {**_TEXT, "description": "What was asked: count, marginal, choose, errors, ..."},
        "columns": _or_null(_TEXTS),
        "merged_values": _FLAG,
        "candidates": {"type": ["integer", "null"]},
        "mechanism": _TEXT,
        "parameters": {"type": "object", "description": "All that the cost follows from."},
        "scale": {"type": ["number", "null"]},
        "sensitivity": _TEXT,
        "epsilon": _LOSS,
        "rho": _LOSS,
        "delta": _PROBABILITY,
    }
    column: dict[str, Schema] = {
        "name": _TEXT,
        "type": _TEXT,
        "labels": _TEXTS,
        "missing": {"type": "object"},
    }
    statistic: dict[str, Schema] = {
        "file": _TEXT,
        "title": _TEXT,
        "kind": _TEXT,
        "columns": _TEXTS,
        "measured": _FLAG,
    }
    statistic["limits"] = {"enum": ["95 %", "noise only", "none"], "description": "What intervals cover."}
    statistic["assumption"] = {**_TEXT, "description": "Of a table by the model; otherwise empty."}
    too_low: Schema = {**_TEXT, "description": "Of counts and sums of rows, where max_rows cuts rows off."}
    asked: Schema = {"type": "object", "description": "The request, where kind and columns don't say it all."}
    mean_error = _or_null(_object({"number": _WHOLE, "mean_error": _SHARE, "low": _SHARE, "high": _SHARE}))
    exam: dict[str, Schema] = {
        "answered": {**_FLAG, "description": "False if an interruption lost the answer."},
        "marginals": _WHOLE,
        "rows": {**_WHOLE, "description": "Number of rows that the synthetic counts were scaled to."},
        "noise": _TEXT,
        "scale": {"type": "number"},
        "standard_error": {"type": "number", "description": "Of one error, a share of the rows."},
        "pairs": mean_error,
        "pairs_by_basis": {"type": "object", "additionalProperties": mean_error},
        "triples": mean_error,
        "limits": _TEXT,
    }
    unanswered = tuple(key for key in exam if key not in {"answered", "marginals", "rows"})
    merged = {"values": _WHOLE, "groups": _WHOLE, "held_together": _list(_TEXTS)}
    structure: dict[str, Schema] = {
        "method": _TEXT,
        "cliques": _list(_TEXTS, "The sets of columns that were chosen to be measured together."),
        "lost": _list(_TEXTS, "Chosen and paid for, but never answered."),
        "measured_together": _list(_TEXTS, "The largest sets of columns that were measured together."),
        "known_from_elsewhere": _list(_TEXTS, "Those of earlier releases or of a public table."),
        "model": _list(
            _object({"columns": _TEXTS, "on": _or_null(_WHOLE)}),
            "The model's tree: sets of columns, and the position of the set that each hangs on.",
        ),
        "merged_values": _object(
            {
                "why": _TEXT,
                "below_rows": {"type": "number"},
                "columns": {"type": "object", "additionalProperties": _object(merged)},
            }
        ),
    }
    judged: dict[str, Schema] = {
        "columns": _TEXTS,
        "verdict": {"enum": list(USES)},
        "why": _TEXT,
        "error": {"type": ["number", "null"], "minimum": 0, "description": "A share of the rows."},
        "basis": {**_TEXT, "description": "How the relation of a pair was had."},
        "beyond_noise": {**_SHARE, "description": "Distance from the column's own counts beyond noise."},
        "changed": {**_SHARE, "description": "Share of a column's cells that rules changed."},
    }
    verdict: dict[str, Schema] = {
        "in_words": {**_TEXTS, "maxItems": 5},
        "columns": _list(_object(judged)),
        "pairs": _list(_object(judged)),
        "rows": {**_TEXT, "description": "A sentence if counts of rows are much too low; otherwise empty."},
    }
    part: dict[str, Schema] = {"estimate": _SHARE, "low": _SHARE, "high": _SHARE}
    by_rows: dict[str, Schema] = {
        "from_rows": _list(_WHOLE, "The least number of rows of each range; the last has no end."),
        "units": _list({"type": "integer"}, "Noisy numbers of units with so many rows."),
        "noise": _TEXT,
        "scale": {"type": "number"},
    }
    counted_up_to: Schema = {**_WHOLE, "description": "Rows of a unit beyond these are left out of account."}
    bounding: dict[str, Schema] = {
        "max_rows": {**_WHOLE, "description": "The most rows of a unit that are counted."},
        "units_by_rows": _object(by_rows),
        "units_above": _object(part, about="The share of the units that have more rows."),
        "rows_cut_off": _object(
            {**part, "counted_up_to": counted_up_to},
            about="The share of the rows; of all of them, at least low.",
        ),
        "limits": _TEXT,
        "in_words": _TEXT,
        "too_low": {**_TEXT, "description": "A sentence if counts of rows are surely too low; else empty."},
    }
    audience: dict[str, Schema] = {
        "name": _TEXT,
        "audiences": _list(
            _object({"name": _TEXT, "epsilon": _LOSS}), "All audiences, in rising order of epsilon."
        ),
        "answers_of": {
            "type": "object",
            "additionalProperties": _TEXT,
            "description": "Files with the joint answers of audiences of smaller epsilons.",
        },
    }
    sampling: dict[str, Schema] = {
        "rate": {**_SHARE, "description": "Probability with which a unit is in the sample."},
        "rows_a_unit": {**_WHOLE, "description": "The most rows of a unit that count."},
    }
    warning = {"kind": _TEXT, "column": _TEXT, "serious": _FLAG, "sentence": _TEXT, "remedy": _TEXT}
    public: dict[str, Schema] = {"columns": _TEXTS, "rows": {"type": ["integer", "null"], "minimum": 0}}
    rules: dict[str, Schema] = {"rules": _list(_object({"rule": _TEXT, "kept": _TEXT})), "in_words": _TEXTS}
    top: dict[str, Schema] = {
        "format": {"const": FORMAT},
        "release": {**_TEXT, "description": "Name of the release in its configuration."},
        "release_id": _TEXT,
        "rehearsal": {**_FLAG, "description": "True if the table was made up: nothing is about anybody."},
        "date": {"type": "string", "format": "date"},
        "period": {"type": ["object", "null"]},
        "trust": {**_TEXT, "description": "Who has to be trusted: a curator (central), or nobody (local)."},
        "audience": _or_null(
            _object(audience, about="The audience of the bundle; null where it is the only one.")
        ),
        "sampling": _or_null(
            _object(sampling, about="The secret sample that all answers are about; null without one.")
        ),
        "verdict": _object(verdict, "rows", about="Each column and pair: to be used, with care, or not."),
        "contribution_bounding": _or_null(
            _object(
                bounding, about="The rows that max_rows cuts off; null where rows are units, or not asked."
            )
        ),
        "guarantee": _object(guarantee, about="The guarantee, composed of the journal's events."),
        "not_protected": {**_TEXTS, "description": "What the guarantee doesn't cover."},
        "cautions": {**_TEXTS, "description": "How far to believe the numbers."},
        "warnings": _list(_object(warning)),
        "budget_requested": {"type": "object"},
        "mechanisms": _list(_object(mechanism, "parameters"), "One for each charged question, in order."),
        "structure": _object(structure),
        "earlier_releases": {"type": ["object", "null"]},
        "public_table": {"type": ["object", "null"]},
        "public_marginals": _list(_object(public)),
        "source": {
            "type": ["object", "null"],
            "description": "The form of the private table's file, as configured; null if it is no file.",
        },
        "columns": _list(_object(column, "labels", "missing"), "The public schema."),
        "found_with_budget": {"type": "object", "additionalProperties": _TEXTS},
        "found_in_words": _TEXT,
        "constraints": _object(rules),
        "local": {"type": ["object", "null"], "description": "The collection of respondents' reports."},
        "synthetic_rows": _WHOLE,
        "exam": _or_null(_object(exam, *unanswered, about="Measured errors of the synthetic table.")),
        "statistics": _list(_object({**statistic, "too_low": too_low, "asked": asked}, "too_low", "asked")),
        "views": _or_null(_views()),
        "maximum_set_overlap": {"type": ["integer", "null"], "minimum": 1},
        "minimum_set_size": {"type": ["integer", "null"], "minimum": 2},
        "signed_by": {"type": ["string", "null"], "pattern": "^ed25519:[0-9a-f]{64}$"},
        "software": {"type": "object", "additionalProperties": _TEXT},
        "files": {
            "type": "object",
            "additionalProperties": _object({"bytes": _WHOLE, "sha256": _SHA256}),
            "description": "Every other public file but the checksums and their signature.",
        },
    }
    return {
        "$schema": _DIALECT,
        "title": "dpsynth bundle manifest",
        **_object(
            top, "audience", "contribution_bounding", "sampling", "source", "views", "maximum_set_overlap"
        ),
    }


def _views() -> Schema:
    """Views in the form of older disclosure control."""
    table: dict[str, Schema] = {"file": _TEXT, "columns": _TEXTS, "counts_left_out": _WHOLE}
    level: dict[str, Schema] = {
        "level": _WHOLE,
        "of": _WHOLE,
        "groups": {**_TEXTS, "description": "The group of each value, in the order of the column's labels."},
    }
    anonymous: dict[str, Schema] = {
        "file": _TEXT,
        "k": {"type": "integer", "minimum": 2},
        "quasi_identifiers": _TEXTS,
        "l": {"type": "integer", "minimum": 1},
        "sensitive": _TEXTS,
        "rows": _WHOLE,
        "rows_left_out": _WHOLE,
        "suppress_at_most": _SHARE,
        "loss": {**_SHARE, "description": "Iyengar's loss metric: 0 for no generalisation."},
        "columns_left_out": {**_TEXTS, "description": "Computed from quasi-identifiers."},
        "generalised": {"type": "object", "additionalProperties": _object(level)},
    }
    rounding: dict[str, Schema] = {
        "base": {"type": "integer", "minimum": 2},
        "method": {"enum": ["nearest", "unbiased"]},
    }
    return _object(
        {
            "adds_to_the_guarantee": {**_TEXT, "description": "Nothing."},
            "suppress_below": {"type": ["integer", "null"], "minimum": 2},
            "rounding": _or_null(_object(rounding)),
            "counts": _list(_object(table)),
            "k_anonymous": _or_null(_object(anonymous)),
        },
        about="Views of the synthetic table in the form of older disclosure control.",
    )


def schema_text() -> str:
    """The schema as it stands in the file."""
    return json.dumps(manifest_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.buffer.write(schema_text().encode("utf-8"))
