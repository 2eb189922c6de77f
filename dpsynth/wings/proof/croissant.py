"""Croissant metadata of a release: what the public files are and what each column holds, as JSON-LD.

Version 1.0 of the format, by its specification (mlcommons.org/croissant/1.0). It wants a licence, an address
and a creator as well. Those are the publisher's to give, and nothing is made up for them.

Invariant: public facts only; equal manifests make equal metadata.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import pyarrow as pa

from dpsynth.bundle.csv_files import neutralise
from dpsynth.bundle.manifest import Facts, File, Manifest
from dpsynth.bundle.row_files import TABLE, table_names

_CONTEXT: Facts = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}

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
