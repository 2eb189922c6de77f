"""The verdict of a bundle, recomputed from its noisy counts, its rows and its exam, and compared.

So is what it says of rows that were cut off, from its noisy numbers of persons by their rows.

One thing is taken from the manifest: the share of a column's cells that rules changed as rows were drawn,
which the finished rows don't show. It changes no verdict, only a sentence.

Invariant: what can't be recomputed is said, never passed over.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import isclose, sqrt
from typing import cast

import numpy as np

from dpsynth.accounting.neighbours import Relation, neighbours_in_words
from dpsynth.bundle.recipient.bundle import MANIFEST, Bundle
from dpsynth.bundle.recipient.rows_as_text import synthetic_codes
from dpsynth.columns.column import domain_of
from dpsynth.columns.domain import Clique
from dpsynth.columns.examined import Examined, Kind
from dpsynth.columns.measurement import NoisyDistances
from dpsynth.statistics.cut_off import CutOff, Kept
from dpsynth.statistics.exam import Basis, Exam
from dpsynth.statistics.verdict import Judged, Judgement, Verdict
from dpsynth.strategy.evidence.drift import pooled_counts

_CLOSE = 1e-9
_MOST = 5
_LOCAL = "The verdict rests on counts of all reports together, which the bundle lacks: it was not recomputed."
_TIERS = "The verdict rests on another audience's answers, and no exam says on which: it was not recomputed."

Fault = tuple[str, str]
"""A file and a sentence on what is wrong with it."""


def verdict_findings(bundle: Bundle) -> tuple[list[str], list[Fault]]:
    """Sentences on what was recomputed, and faults."""
    if not bundle.central:
        return [_LOCAL], []
    try:
        cut, of_rows = _cut_off(bundle)
    except (KeyError, TypeError, ValueError, AttributeError):
        return [], [(MANIFEST, "has no figures of the rows that were cut off that can be read.")]
    if of_rows:
        return [], of_rows
    if bundle.earlier_answers and bundle.errors.empty:
        return [_TIERS], []
    stated = bundle.verdict
    try:
        again = _recomputed(bundle, stated).beside(cut)
    except (KeyError, TypeError, ValueError, IndexError):
        return [], [(MANIFEST, "has a verdict on other columns or files than the bundle has.")]
    faults = [(MANIFEST, words) for words in _differences(stated, again)]
    if not faults and list(bundle.manifest["verdict"]["in_words"]) != list(again.lines):
        faults.append((MANIFEST, "says the verdict in other words than it follows from."))
    if faults:
        return [], faults[:_MOST]
    return [
        f"The verdicts on {len(again.columns)} columns and {len(again.pairs)} pairs are what the noisy "
        "counts, the synthetic rows and the exam give."
    ], []


def _cut_off(bundle: Bundle) -> tuple[CutOff | None, list[Fault]]:
    """The rows that were cut off by the manifest's noisy numbers, and a fault if it says otherwise."""
    written, guarantee = bundle.manifest.get("contribution_bounding"), bundle.guarantee
    if written is None:
        return None, []
    near = neighbours_in_words(cast(Relation, guarantee.neighbours), guarantee.unit)
    found = CutOff.from_json(written, near, Kept.of(bundle.answers.singles))
    asked = [m["scale"] for m in bundle.manifest["mechanisms"] if m["question"] == "rows"]
    if asked[-1:] != [found.units.scale]:
        return found, [
            (MANIFEST, "states other noise of the numbers of persons by their rows than it charges.")
        ]
    if dict(written) != json.loads(json.dumps(found.to_json())):
        return found, [(MANIFEST, "says other of the rows that were cut off than its noisy numbers give.")]
    return found, []


def _recomputed(bundle: Bundle, stated: Verdict) -> Verdict:
    counts = {c: (values, sqrt(v)) for (c,), (values, v) in pooled_counts(bundle.answers.singles).items()}
    columns = {column.name: column for column in bundle.layout.columns}
    codes = {
        name: np.bincount(found, minlength=columns[name].size)
        for name, found in synthetic_codes(bundle).items()
    }
    basis, exam = _exam(bundle)
    exact = [int(a.values) for a in bundle.answers.singles if not a.clique and a.noise == "none"]
    return Judged.of(
        bundle.layout,
        codes,
        counts,
        rows=exact[0] if exact else round(bundle.model.total),
        basis=basis,
        exam=exam,
        changed={one.name: one.changed for one in stated.columns if one.name in columns},
    ).verdict()


def _basis(bundle: Bundle, examined: Mapping[Clique, str]) -> Basis:
    """The marginals that the rows rest on: those of the files of answers, and others as the manifest says.

    Of the answers of earlier audiences a model may leave some aside; the exam says of which pairs.
    """
    earlier = [{*answer.clique} for _, answered in bundle.earlier_answers for answer in answered.answers]
    held = [
        clique
        for clique, basis in examined.items()
        if basis == "measured" and any(columns.issuperset(clique) for columns in earlier)
    ]
    stated = bundle.shown.relations
    return Basis([*(a.clique for a in bundle.answers.answers), *held], stated.public, stated.earlier)


def _exam(bundle: Bundle) -> tuple[Basis, Exam | None]:
    """The exam, and the marginals that the rows rest on."""
    facts, table = bundle.manifest["exam"], bundle.errors
    kinds, bases = ([*table[name]] if len(table) else [] for name in ("kind", "basis"))
    names = [name for name in table.columns if name.startswith("column_")]
    cells = zip(*(table[name] for name in names), strict=True) if len(table) else ()
    cliques = [tuple(c for c in row if isinstance(c, str) and c) for row in cells]
    basis = _basis(bundle, dict(zip(cliques, bases, strict=True)))
    if facts is None:
        return basis, None
    examined = [Examined(cast(Kind, kind), clique) for kind, clique in zip(kinds, cliques, strict=True)]
    distances = None
    if facts["answered"]:
        values = table["distance"].to_numpy(dtype=np.int64)
        distances = NoisyDistances(tuple(cliques), values, facts["noise"], float(facts["scale"]))
    return basis, Exam(examined, distances, facts["rows"], domain_of(bundle.layout.columns), basis)


def _differences(stated: Verdict, again: Verdict) -> Iterator[str]:
    for one, two in ((stated.columns, again.columns), (stated.pairs, again.pairs)):
        if [j.columns for j in one] != [j.columns for j in two]:
            yield "has verdicts on other columns than the bundle has."
            continue
        for said, found in zip(one, two, strict=True):
            if said.verdict != found.verdict:
                yield f"says {said.verdict} of {said.name}; its files give {found.verdict}."
            elif not _alike(said, found):
                yield f"gives other reasons for its verdict on {said.name} than its files."


def _alike(said: Judgement, found: Judgement) -> bool:
    """True if all but rounding is the same."""
    if (said.why, said.basis) != (found.why, found.basis) or (said.error is None) != (found.error is None):
        return False
    numbers = ((said.error or 0.0, found.error or 0.0), (said.beyond_noise, found.beyond_noise))
    return all(isclose(a, b, rel_tol=_CLOSE, abs_tol=_CLOSE) for a, b in numbers)
