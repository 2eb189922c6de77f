"""A release in the forms of catalogues: Croissant, DCAT-AP, the registry of deployments, NIST's guideline.

Croissant (version 1.1, mlcommons.org/croissant/1.1) says what public files are and what columns hold,
as JSON-LD. It wants a licence, an address and a creator as well. Those are the publisher's to give. DCAT-AP
(version 3), for portals of offices, says what files there are.

The third and most detailed tier of the Differential Privacy Deployments Registry asks for the flavour of
differential privacy, the unit, its parameters, the trust model, the accounting, and the implementation with
its reasons. A manifest answers all of it but for what only the curator knows; those fields are null and
listed. The entry has answers by NIST SP 800-226 too.

Invariant: every answer follows from the manifest, or holds of every release of this software; equal manifests
make equal entries, and nothing is made up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import pyarrow as pa

from dpsynth.accounting.neighbours import protected
from dpsynth.bundle.manifest import Facts, Manifest, Mechanism
from dpsynth.bundle.row_files import TABLE, neutralise, table_names
from dpsynth.page_templates import environment

FORMATS = {
    "csv": "text/csv",
    "gz": "application/gzip",
    "zst": "application/zstd",
    "parquet": "application/x-parquet",
    "npz": "application/octet-stream",
    "html": "text/html",
    "md": "text/markdown",
    "json": "application/json",
    "jsonld": "application/ld+json",
}
_TYPES = {
    "integer": "sc:Integer",
    "number": "sc:Float",
    "boolean": "sc:Boolean",
    "date": "sc:Date",
    "datetime": "sc:DateTime",
}
_SHOWN = 30
"""Number of values of a column that its description lists."""


def filled(template: str, manifest: Manifest, **facts: object) -> dict[str, object]:
    """A template of JSON, filled with a manifest and more facts."""
    pages = environment("wings/proof")
    pages.policies["json.dumps_kwargs"] = {"sort_keys": False}
    facts |= {"manifest": manifest, "mechanisms": grouped(manifest.mechanisms), "formats": FORMATS}
    values: dict[str, object] = json.loads(pages.get_template(template).render(**facts))
    return values


def croissant(manifest: Manifest) -> dict[str, object]:
    """The metadata of a release.

    Args:
        manifest: its manifest, with the size and checksum of each file that is listed.
    """
    files, columns = manifest.files, manifest.columns
    tables = table_names(files)
    # The Parquet file or folder is the last; it has types.
    source = tables[-1] if tables else None
    names = [str(facts["name"]) for facts in columns]
    # In the CSV file, names have passed the guard against formulas.
    guarded = neutralise(pa.array(names, pa.string())).to_pylist()
    written = names if source == f"{TABLE}.parquet" else guarded
    return filled(
        "croissant.json.j2",
        manifest,
        folders=[name for name in tables if name not in files],
        source=source,
        fields=list(zip(columns, written, strict=True)),
        types=_TYPES,
        described=_described,
    )


def as_text(values: Mapping[str, object]) -> str:
    """JSON values as the text of a file."""
    return json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


CATALOGUES: Mapping[str, Callable[[Manifest], str]] = {
    "croissant.json": lambda manifest: as_text(croissant(manifest)),
    "dcat.jsonld": lambda manifest: as_text(filled("dcat.json.j2", manifest)),
}
"""The files of a bundle for catalogues of data, by name."""


def _described(facts: Facts) -> str:
    if "computed_from" in facts:
        return f"Computed: {facts['computed_from']}"
    labels = cast("Sequence[str] | None", facts.get("labels"))
    if labels is None:
        return "Made up: an identifier that means nothing."
    shown = ", ".join(labels[:_SHOWN])
    return f"{facts['type']}: {shown}" + (f", … ({len(labels)} values)" if len(labels) > _SHOWN else "")


FROM_THE_CURATOR = tuple(
    f"deployment.product.{field}"
    for field in ("data_curators", "intended_use", "data_product_region", "data_product_sector")
)
"""The fields of the registry that no manifest answers."""


def registry_entry(manifest: Manifest) -> dict[str, object]:
    """The entry of a release as JSON values, by ``registry.json.j2``.

    Args:
        manifest: its manifest.
    """
    promise = manifest.guarantee
    parameters = {key: getattr(promise, key) for key in ("epsilon", "delta", "rho", "mu")}
    stated = {key: value for key, value in parameters.items() if value is not None}
    more = {"approximate_delta": promise.approximate_delta} if promise.approximate_delta else {}
    return filled(
        "registry.json.j2",
        manifest,
        from_the_curator=FROM_THE_CURATOR,
        parameters=parameters,
        stated=stated,
        lost=stated | more,
        unit=protected(promise.unit),
        domain=[_domain(facts) for facts in manifest.columns],
        unprotected=[*manifest.not_protected, *(fact["what"] for fact in manifest.disclosed_outside)],
    )


def _domain(facts: Facts) -> dict[str, object]:
    cells = cast("Sequence[str] | None", facts.get("labels"))
    return {"column": facts["name"], "type": facts["type"], "cells": None if cells is None else len(cells)}


def grouped(mechanisms: Sequence[Mechanism]) -> list[dict[str, object]]:
    """The mechanisms by question, kind and sensitivity, with the range of their scales."""
    groups: dict[tuple[str, str, str], list[Mechanism]] = {}
    for one in mechanisms:
        groups.setdefault((one.question, one.mechanism, one.sensitivity), []).append(one)
    found: list[dict[str, object]] = []
    for (question, mechanism, sensitivity), events in groups.items():
        scales = [e.scale for e in events if e.scale is not None]
        found.append(
            {
                "question": question,
                "mechanism": mechanism,
                "sensitivity": sensitivity,
                "answers": len(events),
                "scale": [min(scales), max(scales)] if scales else None,
                "rho": sum(e.rho for e in events if e.rho is not None),
            }
        )
    return found
