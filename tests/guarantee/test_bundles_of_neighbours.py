"""Bundles of neighbours: given the same answers, every byte that is published is the same.

All that a bundle holds is made of the configuration and of journalled answers. So a release that is
finished on a neighbour from the journal of the original publishes the original's bundle: schema, labels,
formats, words, statistics and rows, whatever the neighbour's cells are.
"""

import random
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from dpsynth.config import Spec
from dpsynth.errors import DpsynthError
from dpsynth.pipeline import measuring as counting_engine
from dpsynth.pipeline import spine as pipeline
from dpsynth.pipeline.beginning import Request
from tests.examples import cases
from tests.guarantee.wild_tables import RELATIONS, SOUGHT, UNITS, neighbour, privacy_of, recorded, write
from tests.thinned import thinned

EVERY_TYPE: Mapping[str, object] = {
    "id": {"type": "identifier", "surrogates": "P001"},
    "age": {"type": "duration", "format": "minutes", "min": "0", "max": "120", "unit": "hour"},
    "pay": {
        "type": "text",
        "pattern": "[0-9]",
        "keep": 1,
        "missing": {"distinct": ["?"], "markers": ["None"]},
    },
    "city": {"type": "ordered", "values": ["A", "B", "C"]},
    "well": {"type": "boolean"},
    "note": {"type": "category", "values": ["n", "y"], "other": "else"},
    "more0": {
        "type": "date",
        "min": "2020-01-01",
        "max": "2020-12-31",
        "unit": "year",
        "parts": ["month", "weekday"],
    },
    "more1": {"type": "datetime", "min": "2020-01-01", "max": "2020-01-03", "unit": "hour"},
    "more2": {"type": "time"},
    "more3": {"type": "number", "min": 0, "max": 30, "bins": 3, "decimals": 2, "format": {"prefix": "$"}},
    "twice": {"type": "derived", "formula": "more3 + more3"},
}
"""The columns read as every type there is; many cells are unusable as what they are taken for."""


def bundle(spec: Spec, left: Path, folder: Path, release_id: str) -> dict[str, bytes]:
    """What is published when a release that has asked all its questions is finished."""
    shutil.copytree(left, folder)
    done = pipeline.run(spec, Request(folder, release_id))
    public = done.folder / "public"
    return {p.relative_to(public).as_posix(): p.read_bytes() for p in public.rglob("*") if p.is_file()}


def of_neighbours(
    tmp_path: Path, columns: Mapping[str, object], relation: str, unit: str, noise: str = "gaussian"
) -> list[set[str]]:
    """For some neighbours the names of files that differ from the original's bundle."""
    privacy = privacy_of(relation, unit, noise) | {"delta": 1e-6}
    rng, rows, spec, record = recorded(tmp_path, privacy, columns=columns)
    assert record.release_id
    original = bundle(spec, tmp_path / "out", tmp_path / "original", record.release_id)
    found = []
    for i in range(cases(3, least=2)):
        path = write(tmp_path / f"y{i}.csv", neighbour(rows, relation, unit, rng))
        source = spec.source.model_copy(update={"path": str(path)})
        url = f"sqlite:///{tmp_path}/ledger-{random.randrange(10**9)}.db"
        other = spec.model_copy(
            update={"source": source, "ledger": spec.ledger.model_copy(update={"url": url})}
        )
        published = bundle(other, tmp_path / "out", tmp_path / f"other{i}", record.release_id)
        found.append({n for n in original.keys() | published if original.get(n) != published.get(n)})
    return found


@pytest.mark.parametrize(
    ("columns", "relation", "unit"),
    thinned((EVERY_TYPE, SOUGHT), RELATIONS, UNITS, strength=1),
    ids=lambda value: value if isinstance(value, str) else "sought" if value is SOUGHT else "every type",
)
def test_the_same_answers_make_the_same_bundle(
    tmp_path: Path, columns: Mapping[str, object], relation: str, unit: str
) -> None:
    assert not any(of_neighbours(tmp_path, columns, relation, unit))


@pytest.mark.parametrize("step", ["sample_rows", "tabulate"])
def test_a_bundle_that_tells_of_the_table_otherwise_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The exam names the table that it is about, so another table is refused; other files differ."""
    sound, made = counting_engine.load_rows, getattr(pipeline, step)
    rows: list[int] = []

    def counted(*arguments):
        loaded = sound(*arguments)
        rows.append(len(loaded.codes["well"]))
        return loaded

    def telling(*arguments):
        if step == "tabulate":
            return made(*arguments)[rows[-1] % 7 :]
        *known, _ = arguments
        return made(*known, np.random.default_rng(rows[-1]))

    monkeypatch.setattr(counting_engine, "load_rows", counted)
    monkeypatch.setattr(pipeline, step, telling)
    if step == "tabulate":
        assert any(of_neighbours(tmp_path, EVERY_TYPE, "add_remove", "person"))
        return
    with pytest.raises(DpsynthError, match="another question"):
        of_neighbours(tmp_path, EVERY_TYPE, "add_remove", "person")
