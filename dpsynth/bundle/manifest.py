"""The manifest: the facts, the guarantee and the mechanisms of a release, and every file's checksum.

Invariant: public facts only. No duration or time of day, no name of a machine, user or
path, and no hash of the private table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from dpsynth.accounting.neighbours import of_groups, other_relation
from dpsynth.bundle.explanation import (
    assumption,
    cautions,
    constraints_in_words,
    found_in_words,
    guarantee_words,
    merged_in_words,
    not_protected,
)
from dpsynth.bundle.publication import Publication
from dpsynth.bundle.signature import sha256_of
from dpsynth.columns.public_schema import public_schema
from dpsynth.statistics.structure_tree import largest, merged_columns, tree_facts
from dpsynth.strategy.evidence.reused import guarantee_with

FORMAT = "dpsynth bundle 2"
"""The version of the bundle's form. A later version may lack what a recipient's command reads."""


def file_facts(folder: Path, names: Sequence[str]) -> dict[str, dict[str, object]]:
    """Size in bytes and SHA-256 of each named file of a folder."""
    facts: dict[str, dict[str, object]] = {}
    for name in names:
        facts[name] = {"bytes": (folder / name).stat().st_size, "sha256": sha256_of(folder / name)}
    return facts


def manifest(publication: Publication, files: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
    """The manifest as JSON values, keys in the order in which they are written."""
    guarantee = publication.guarantee
    too_low = "" if publication.cut is None else publication.cut.too_low
    here = publication.measured_together
    earlier = [c for use in (publication.reused, publication.public_table) if use for c in use.cliques]
    return {
        "format": FORMAT,
        "release": publication.release,
        "release_id": publication.release_id,
        "rehearsal": publication.rehearsal,
        "date": publication.date,
        "period": None if publication.part is None else publication.part.to_json(),
        "trust": _trust(publication),
        "audience": None if publication.audience is None else publication.audience.to_json(),
        "sampling": None if publication.sampled is None else publication.sampled.to_json(),
        "verdict": publication.verdict.to_json(),
        "contribution_bounding": None if publication.cut is None else publication.cut.to_json(),
        "guarantee": {
            "epsilon": guarantee.epsilon,
            "delta": guarantee.delta,
            "rho": guarantee.rho,
            "mu": guarantee.mu,
            "approximate_delta": guarantee.approximate_delta,
            "unit": guarantee.unit,
            "rows_without_id": publication.nameless,
            "neighbours": guarantee.neighbours,
            "accountant": guarantee.accountant,
            "groups": of_groups(guarantee),
            "other_relation": other_relation(guarantee),
            "in_words": [*guarantee_words(publication), *guarantee_with(publication.reused)],
        },
        "not_protected": list(not_protected(publication)),
        "cautions": list(cautions(publication)),
        "warnings": [warning.to_json() for warning in publication.warnings],
        "budget_requested": dict(publication.budget),
        "mechanisms": [dict(event) for event in publication.events],
        "structure": {
            "method": publication.structure,
            "cliques": [list(clique) for clique in publication.cliques],
            "lost": [list(clique) for clique in publication.lost],
            "measured_together": [list(c) for c in largest(here)],
            "known_from_elsewhere": [list(c) for c in largest(earlier)],
            "model": tree_facts(publication.model.tree, [c.name for c in publication.columns]),
            "merged_values": {
                "why": merged_in_words(publication),
                "below_rows": publication.merged_below,
                "columns": {
                    merged.column: {
                        "values": merged.values,
                        "groups": merged.groups,
                        "held_together": [list(labels) for labels in merged.held],
                    }
                    for merged in merged_columns(publication.columns, publication.compression)
                },
            },
        },
        "earlier_releases": None if publication.reused is None else publication.reused.to_json(),
        "public_table": None if publication.public_table is None else publication.public_table.to_json(),
        "public_marginals": [
            {"columns": list(m.clique), "rows": publication.public_marginals.rows if m.counted else None}
            for m in publication.public_marginals.marginals
        ],
        "source": None if publication.form is None else asdict(publication.form),
        "columns": public_schema(publication.layout),
        "found_with_budget": {column: list(finds) for column, finds in publication.found.items()},
        "found_in_words": found_in_words(publication),
        "constraints": {
            "rules": [asdict(way) for way in publication.constraints],
            "in_words": list(constraints_in_words(publication)),
        },
        "local": None if publication.collection is None else publication.collection.to_json(),
        "synthetic_rows": publication.synthetic.rows,
        "exam": None if publication.exam is None else publication.exam.to_json(),
        "statistics": [
            {
                "file": f"statistics/{statistic.name}.csv",
                "title": statistic.title,
                "kind": statistic.kind,
                "columns": list(statistic.columns),
                "measured": statistic.measured,
                "assumption": assumption(statistic, here, earlier),
                "limits": statistic.limits,
                **({"too_low": too_low} if too_low and statistic.counts_rows else {}),
                **({} if statistic.asked is None else {"asked": statistic.asked}),
            }
            for statistic in publication.statistics
        ],
        "views": None if publication.views is None else publication.views.to_json(),
        "minimum_set_size": publication.minimum_set_size,
        "maximum_set_overlap": publication.maximum_set_overlap,
        "signed_by": publication.signed_by,
        "software": dict(publication.versions),
        "files": {name: dict(facts) for name, facts in files.items()},
    }


def _trust(publication: Publication) -> str:
    """Who has to be trusted: a curator with all rows, or nobody."""
    return "central" if publication.collection is None else "local, ε per respondent"


def manifest_text(content: Mapping[str, object]) -> str:
    """JSON with two spaces of indent, keys in order, and a final line feed."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False, default=str) + "\n"
