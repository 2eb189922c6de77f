"""A release in the forms of catalogues: Croissant, the registry of deployments, NIST's guideline.

Croissant (version 1.0, mlcommons.org/croissant/1.0) says what public files are and what columns hold,
as JSON-LD. It wants a licence, an address and a creator as well. Those are the publisher's to give.

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
from dpsynth.bundle.manifest import Facts, File, Manifest, Mechanism, StatedGuarantee
from dpsynth.bundle.row_files import TABLE, neutralise, table_names

_OWN_TERMS = (
    "citeAs column extract field fileObject fileProperty fileSet format includes isLiveDataset jsonPath "
    "key md5 parentField path recordSet references regex repeated replace separator source subField "
    "transform"
)
"""Terms of Croissant's own vocabulary."""
_CONTEXT: Facts = dict(
    sorted(
        {
            **{term: f"cr:{term}" for term in _OWN_TERMS.split()},
            "@language": "en",
            "@vocab": "https://schema.org/",
            "conformsTo": "dct:conformsTo",
            "cr": "http://mlcommons.org/croissant/",
            "data": {"@id": "cr:data", "@type": "@json"},
            "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
            "dct": "http://purl.org/dc/terms/",
            "examples": {"@id": "cr:examples", "@type": "@json"},
            "sc": "https://schema.org/",
        }.items()
    )
)

_FORMATS = {
    ".csv": "text/csv",
    ".gz": "application/gzip",
    ".zst": "application/zstd",
    ".parquet": "application/x-parquet",
    ".npz": "application/octet-stream",
    ".html": "text/html",
    ".md": "text/markdown",
    ".json": "application/json",
}
_TYPES = {
    "integer": "sc:Integer",
    "number": "sc:Float",
    "boolean": "sc:Boolean",
    "date": "sc:Date",
    "datetime": "sc:DateTime",
}
_TABLE = "rows"
_TYPED = f"{TABLE}.parquet"
_SHOWN = 30
"""Number of values of a column that its description lists."""


def croissant(manifest: Manifest) -> dict[str, object]:
    """The metadata of a release.

    Args:
        manifest: its manifest, with the size and checksum of each file that is listed.
    """
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": manifest.release,
        "identifier": manifest.release_id,
        "version": "1.0.0",
        "datePublished": manifest.date,
        "isLiveDataset": False,
        "description": " ".join(
            [
                "A synthetic table and statistics of a private table, made from noisy answers alone under "
                "differential privacy. No row is that of a person.",
                *manifest.guarantee.in_words,
            ]
        ),
        "keywords": ["differential privacy", "synthetic data"],
        "distribution": [
            *(_file(name, file) for name, file in manifest.files.items()),
            *_folders(manifest.files),
        ],
        "recordSet": _records(manifest),
    }


def croissant_text(manifest: Manifest) -> str:
    """The metadata as they stand in the file."""
    return json.dumps(croissant(manifest), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


CATALOGUES: Mapping[str, Callable[[Manifest], str]] = {"croissant.json": croissant_text}
"""What this wing adds to a bundle for catalogues of data."""


def _file(name: str, file: File) -> dict[str, object]:
    ending = "." + name.rsplit(".", 1)[-1]
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{file.bytes} B",
        "encodingFormat": _FORMATS.get(ending, "application/octet-stream"),
        "sha256": file.sha256,
    }


def _folders(files: Mapping[str, File]) -> list[dict[str, object]]:
    """The table that lies in several files, as one set of them."""
    return [
        {
            "@type": "cr:FileSet",
            "@id": name,
            "name": name,
            "encodingFormat": _FORMATS[".parquet"],
            "includes": f"{name}/*.parquet",
        }
        for name in table_names(files)
        if name not in files
    ]


def _records(manifest: Manifest) -> list[dict[str, object]]:
    files, columns = manifest.files, manifest.columns
    tables = table_names(files)
    if not tables:
        return []
    # The Parquet file or folder is the last; it has types.
    source = tables[-1]
    names = [str(facts["name"]) for facts in columns]
    # In the CSV file, names have passed the guard against formulas.
    guarded = neutralise(pa.array(names, pa.string())).to_pylist()
    written = names if source == _TYPED else guarded
    kind = "fileObject" if source in files else "fileSet"
    return [
        {
            "@type": "cr:RecordSet",
            "@id": _TABLE,
            "name": _TABLE,
            "description": f"{manifest.synthetic_rows} synthetic rows.",
            "field": [
                _field(facts, name, {kind: {"@id": source}})
                for facts, name in zip(columns, written, strict=True)
            ],
        }
    ]


def _field(facts: Facts, column: str, source: Facts) -> dict[str, object]:
    name = str(facts["name"])
    return {
        "@type": "cr:Field",
        "@id": f"{_TABLE}/{name}",
        "name": name,
        "description": _described(facts),
        "dataType": _TYPES.get(str(facts["type"]), "sc:Text"),
        "source": {**source, "extract": {"column": column}},
    }


def _described(facts: Facts) -> str:
    if "computed_from" in facts:
        return f"Computed: {facts['computed_from']}"
    labels = cast("Sequence[str] | None", facts.get("labels"))
    if labels is None:
        return "Made up: an identifier that means nothing."
    shown = ", ".join(labels[:_SHOWN])
    return f"{facts['type']}: {shown}" + (f", … ({len(labels)} values)" if len(labels) > _SHOWN else "")


FROM_THE_CURATOR = (
    "deployment.product.data_curators",
    "deployment.product.intended_use",
    "deployment.product.data_product_region",
    "deployment.product.data_product_sector",
)
"""The fields that no manifest answers."""

_FLAVOURS = {
    "sequential": "Pure DP",
    "zcdp": "Zero-concentrated DP",
    "gdp": "Gaussian DP",
}
_RELATIONS = {
    "add_remove": "one unit more or less",
    "replace_one": "one unit exchanged for another, their number unchanged",
}
_MEASURES = {
    "sequential": "max divergence",
    "zcdp": "zero-concentrated divergence",
    "gdp": "Gaussian trade-off function",
}
_COMPOSITION = {
    "sequential": "The epsilons of all answers add up.",
    "zcdp": "The rhos of all answers add up; epsilon at the stated delta follows by the best order, "
    "rounded up.",
    "gdp": "The halved squares of mu of all answers add up; epsilon at the stated delta follows exactly, "
    "rounded up.",
}
_WHY = {
    "sequential": "Pure epsilon leaves no delta.",
    "zcdp": "Zero-concentrated DP composes many answers tightly.",
    "gdp": "Gaussian DP composes many answers exactly; zero-concentrated DP would state a larger epsilon.",
}


def registry_entry(manifest: Manifest) -> dict[str, object]:
    """The entry of a release as JSON values.

    Args:
        manifest: its manifest.
    """
    promise = manifest.guarantee
    return {
        "tier": 3,
        "status": "Draft",
        "rehearsal": manifest.rehearsal,
        "url_slug": manifest.release_id,
        "to_be_given_by_the_curator": list(FROM_THE_CURATOR),
        "deployment": {
            "product": _product(manifest),
            "dp_flavor": _flavour(manifest, promise),
            "privacy_loss": _loss(manifest, promise),
            "model": _model(manifest),
            "accounting": _accounting(manifest, promise),
            "implementation": _implementation(manifest, promise),
            "resources": {"sources": "manifest.json, measurements.parquet and report.html of the release."},
        },
        "nist_sp_800_226": _nist(manifest, promise),
    }


def _product(manifest: Manifest) -> dict[str, object]:
    about = manifest.period
    part = "" if about is None else f" It is about {about['label']} alone, by the column {about['column']}."
    return {
        "name": manifest.release,
        "data_curators": None,
        "intended_use": None,
        "data_product_type": "Synthetic dataset and summary statistics",
        "data_product_region": None,
        "data_product_sector": None,
        "description": f"{manifest.synthetic_rows:,} synthetic rows of {len(manifest.columns)} columns, "
        f"{len(manifest.statistics)} tables of "
        f"statistics with standard errors, all noisy measurements, and the fitted model.{part}",
        "publication_date": manifest.date,
    }


def _flavour(manifest: Manifest, promise: StatedGuarantee) -> dict[str, object]:
    accountant = promise.accountant
    approximate = bool(promise.delta)
    return {
        "name": _FLAVOURS[accountant],
        "also_stated_as": "Approximate DP"
        if approximate and _FLAVOURS[accountant] not in ("Pure DP", "Approximate DP")
        else None,
        "input_metric": f"{_RELATIONS[str(promise.neighbours)]} ({promise.neighbours})",
        "bound_on_input_distance": 1,
        "output_measure": _MEASURES[accountant],
        "bound_on_output_distance": {
            key: value for key, value in _parameters(promise).items() if value is not None
        },
        "data_domain": [_domain(facts) for facts in manifest.columns],
        "unprotected_quantities": [
            *manifest.not_protected,
            *_public_inputs(manifest),
        ],
    }


def _public_inputs(manifest: Manifest) -> list[str]:
    """Facts that entered a release from outside of the table, without noise."""
    found = []
    if manifest.public_table is not None:
        found.append("A public table was used as evidence; nothing protects what it says.")
    if manifest.public_marginals:
        found.append("Marginals that the configuration states as public knowledge.")
    if manifest.constraints.rules:
        found.append("Constraints that the configuration states as public knowledge.")
    return found


def _domain(facts: Facts) -> dict[str, object]:
    cells = cast("Sequence[str] | None", facts.get("labels"))
    return {"column": facts["name"], "type": facts["type"], "cells": None if cells is None else len(cells)}


def _parameters(promise: StatedGuarantee) -> dict[str, float | None]:
    return {key: getattr(promise, key) for key in ("epsilon", "delta", "rho", "mu")}


def _loss(manifest: Manifest, promise: StatedGuarantee) -> dict[str, object]:
    parameters = {key: value for key, value in _parameters(promise).items() if value is not None}
    if promise.approximate_delta:
        parameters["approximate_delta"] = promise.approximate_delta
    return {
        "privacy_unit": protected(promise.unit),
        "privacy_unit_description": " ".join(promise.in_words),
        "contribution_bound": promise.unit,
        "privacy_parameters": parameters,
        "privacy_parameters_description": "Computed from the events that were charged, not from the "
        "plan, and rounded up.",
        "budget_requested": manifest.budget_requested,
    }


def _model(manifest: Manifest) -> dict[str, object]:
    earlier = manifest.earlier_releases
    return {
        "model_name": "Central",
        "model_name_description": "One trusted curator holds the private table and adds all noise.",
        "actors": "The curator, who runs the release and is trusted with the table; recipients, who get the "
        "public folder alone and need not be trusted.",
        "release_type": "Many releases"
        if manifest.period is not None or earlier is not None
        else "Single release",
        "release_type_description": "A ledger adds up the losses of all releases of the table and refuses "
        "those above its cap.",
        "data_source_type": "Static",
        "data_source_type_description": "The table was read once, after the whole budget had been reserved.",
        "access_type": "Non-interactive",
        "access_type_description": "All questions were asked by the software, none by a recipient.",
    }


def _accounting(manifest: Manifest, promise: StatedGuarantee) -> dict[str, object]:
    approximate = promise.approximate_delta
    return {
        "post_processing": "A graphical model was fitted to the noisy answers; the synthetic table, the "
        "statistics and the report were made of it, of the answers and of public facts. The private table "
        "was not looked at again.",
        "composition": _COMPOSITION[promise.accountant]
        + (f" Finding values adds {approximate} to delta." if approximate else ""),
        "answers": len(manifest.mechanisms),
    }


def _implementation(manifest: Manifest, promise: StatedGuarantee) -> dict[str, object]:
    found = manifest.found_with_budget
    tuned = (
        f"Of {', '.join(found)}, ends, bins or values were found with a part of the budget."
        if found
        else "No domain was found from the table: all columns were declared."
    )
    return {
        "pre_processing_eda_hyperparameter_tuning": f"{tuned} Cells that can't be read count as a public "
        "value. Hyperparameters follow from the configuration and from noisy answers. Whether the "
        "configuration was chosen without looking at the table, only the curator can say.",
        "mechanisms": _grouped(manifest.mechanisms),
        "security": {
            "randomness": "Exact samplers of discrete distributions on the operating system's cryptographic "
            "source; no seed reaches them.",
            "floating_point": "No released number is drawn in floating point. Costs are exact fractions, "
            "rounded up.",
            "crashes": "Each answer is charged on disk before its noise is drawn, and recorded before it "
            "is seen.",
            "side_channels": "No time, size or exit code is published that depends on the table; who watches "
            "the curator's machine is not defended against.",
            "supply": "Dependencies are pinned by hash. Public files hold nothing that runs code when it "
            "is loaded.",
        },
        "software": manifest.software,
        "justification": [
            _WHY[promise.accountant],
            f"Strategy {manifest.structure.method} decides what to measure by noisy answers, and spends its "
            "whole budget whatever comes out, so the stated loss was fixed beforehand.",
        ],
    }


def _grouped(mechanisms: Sequence[Mechanism]) -> list[dict[str, object]]:
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


def _nist(manifest: Manifest, promise: StatedGuarantee) -> dict[str, object]:
    """Answers to the layers of the guideline's pyramid, from its top."""
    return {
        "privacy_parameters": _parameters(promise),
        "unit_of_privacy": promise.unit,
        "neighbours": promise.neighbours,
        "algorithms": "See deployment.implementation.mechanisms; proofs and tests are listed in the "
        "software's docs.",
        "accuracy": {
            "intervals": "Each statistic has a standard error and a 95 % interval.",
            "exam": manifest.values["exam"],
            "cautions": manifest.cautions,
        },
        "bias": "Small groups drown in noise, and relations that were not measured are missing; the "
        "report says which.",
        "correctness_of_the_implementation": "deployment.implementation.security",
        "trust_model": "Central; see deployment.model.",
        "access_control_and_data_collection": "The curator's own; they are outside of the software.",
    }
