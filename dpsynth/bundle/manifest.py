"""The manifest of a bundle: its facts, its guarantee and mechanisms, and the checksum of every file.

``Manifest`` is its one description. A release is written by it, recipients read by it, and the JSON Schema is
that of its fields. Keys that it doesn't name are allowed, so that a bundle of a later version with more facts
still keeps to it. ``make schema`` writes the schema.

Invariant: public facts only. No duration or time of day, no name of a machine, user or path, and no hash of
the private table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)
from pydantic.json_schema import GenerateJsonSchema

from dpsynth.accounting.composition import of_groups, of_other_deltas, of_recognition, other_relation
from dpsynth.accounting.events import Guarantee
from dpsynth.accounting.neighbours import Nameless, Relation
from dpsynth.bundle.explanation import Words, assumption
from dpsynth.bundle.publication import Publication
from dpsynth.bundle.signature import sha256_of
from dpsynth.bundle.structure_tree import TreeClique, largest
from dpsynth.columns.column import merged_columns
from dpsynth.columns.domain import Clique
from dpsynth.columns.layout import Layout
from dpsynth.columns.measurement import Classified
from dpsynth.columns.public_schema import public_schema, published_layout
from dpsynth.columns.rules.grids import Enforcement
from dpsynth.columns.statistic_kinds import Asked, request_of
from dpsynth.errors import DpsynthError
from dpsynth.model import JunctionTree
from dpsynth.statistics.exam import Basis
from dpsynth.statistics.sampled_estimates import SampledUnits
from dpsynth.statistics.single_columns import DataWarning
from dpsynth.statistics.verdict import Criterion, Judgement, Verdict

MANIFEST = "manifest.json"

Format = Literal["dpsynth bundle 2"]

FORMAT = get_args(Format)[0]
"""The version of the bundle's form. A later version may lack what a recipient's command reads."""

_LARGEST = 1 << 28

Facts = Mapping[str, Any]
Texts = tuple[str, ...]
Cliques = tuple[Clique, ...]
Whole = Annotated[int, Field(ge=0)]
Loss = Annotated[float, Field(ge=0)]
Probability = Annotated[float, Field(ge=0, lt=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Part(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class Audience(Part):
    name: str
    epsilon: Loss | None


class StatedAudience(Part):
    """The audience of the bundle; null where it is the only one."""

    name: str
    audiences: tuple[Audience, ...] = Field(description="All audiences, in rising order of epsilon.")
    answers_of: dict[str, str] = Field(
        description="Files with the joint answers of audiences of smaller epsilons."
    )


class StatedVerdict(Part):
    """Each column and pair: to be used, with care, or not."""

    in_words: Texts = Field(max_length=5)
    columns: tuple[Judgement, ...]
    pairs: tuple[Judgement, ...]
    rows: str = Field("", description="A sentence if counts of rows are much too low; otherwise empty.")
    criteria: tuple[Criterion, ...] = Field((), description="The acceptance criteria that were declared.")
    links: str = Field("", description="A sentence on how rows follow each other; empty where none does.")

    @property
    def verdict(self) -> Verdict:
        return Verdict(self.columns, self.pairs, self.rows, self.criteria, self.links)


class Limited(Part):
    estimate: Share
    low: Share
    high: Share


class UnitsAbove(Limited):
    """The share of the units that have more rows."""


class RowsCutOff(Limited):
    """The share of the rows; of all of them, at least low."""

    counted_up_to: Whole = Field(description="Rows of a unit beyond these are left out of account.")


class UnitsByRows(Part):
    from_rows: tuple[Whole, ...] = Field(
        description="The least number of rows of each range; the last has no end."
    )
    units: tuple[int, ...] = Field(description="Noisy numbers of units with so many rows.")
    noise: str
    scale: float


class ContributionBounding(Part):
    """The rows that max_rows cuts off; null where rows are units, or not asked."""

    max_rows: Whole = Field(description="The most rows of a unit that are counted.")
    units_by_rows: UnitsByRows
    units_above: UnitsAbove
    rows_cut_off: RowsCutOff
    limits: str
    in_words: str
    too_low: str = Field(description="A sentence if counts of rows are surely too low; else empty.")


class LossOfGroup(Part):
    units: Whole
    epsilon: Loss | None
    delta: Probability | None


class LossAtDelta(Part):
    epsilon: Loss
    delta: Probability


class Recognition(Part):
    false_alarms: Share = Field(description="How often somebody is taken to be in the table who is not.")
    at_most: Share = Field(description="The chance that a unit in the table is taken to be in it.")


class LossOfRelation(Part):
    neighbours: Relation
    epsilon: Loss | None
    delta: Probability | None


class StatedGuarantee(Part):
    """The guarantee, composed of the journal's events."""

    epsilon: Loss = Field(description="Rounded up.")
    delta: Probability
    rho: Loss | None = Field(description="Zero-concentrated rho; null under pure epsilon.")
    mu: Loss | None = Field(description="mu of Gaussian DP; null under other accountants.")
    approximate_delta: Probability
    unit: str = Field(description="The privacy unit in words.")
    rows_without_id: Nameless | None
    neighbours: Relation
    accountant: Literal["sequential", "zcdp", "gdp", "local"]
    groups: tuple[LossOfGroup, ...] = Field(
        description="The guarantees of units that change together; null: none."
    )
    other_relation: LossOfRelation
    profile: tuple[LossAtDelta, ...] = Field((), description="The guarantee at several deltas.")
    recognition: tuple[Recognition, ...] = Field(
        (), description="Bounds for whoever wants to find out that a unit is in the table."
    )
    in_words: Texts


class Mechanism(Part):
    question: str = Field(description="What was asked: count, marginal, choose, errors, ...")
    columns: Texts | None
    merged_values: bool
    candidates: int | None
    mechanism: str
    parameters: dict[str, Any] = Field({}, description="All that the cost follows from.")
    scale: float | None
    sensitivity: str
    epsilon: Loss | None
    rho: Loss | None
    delta: Probability


class MergedColumn(Part):
    values: Whole
    groups: Whole
    held_together: tuple[Texts, ...]


class MergedValues(Part):
    why: str
    below_rows: float
    columns: dict[str, MergedColumn]


class Structure(Part):
    method: str
    cliques: Cliques = Field(description="The sets of columns that were chosen to be measured together.")
    lost: Cliques = Field(description="Chosen and paid for, but never answered.")
    measured_together: Cliques = Field(description="The largest sets of columns that were measured together.")
    known_from_elsewhere: Cliques = Field(description="Those of earlier releases or of a public table.")
    model: tuple[TreeClique, ...] = Field(
        description="The model's tree: sets of columns, and the position of the set that each hangs on."
    )
    merged_values: MergedValues


class StatedPublicMarginal(Part):
    columns: Clique
    rows: Whole | None


class PublishedColumn(Part):
    name: str
    type: str
    labels: Texts = ()
    missing: dict[str, Any] = {}


def _described(column: dict[str, Any]) -> dict[str, Any]:
    PublishedColumn.model_validate_json(json.dumps(column, default=str), strict=True)
    return column


Described = Annotated[
    dict[str, Any], AfterValidator(_described), WithJsonSchema(TypeAdapter(PublishedColumn).json_schema())
]
"""A column of the public schema, whose keys are those of its kind, in their order."""


class Constraints(Part):
    rules: tuple[Enforcement, ...]
    in_words: Texts


class ErrorOfMarginals(Part):
    number: Whole
    mean_error: Share
    low: Share
    high: Share


class StatedExam(Part):
    """Measured errors of the synthetic table."""

    answered: bool = Field(description="False if an interruption lost the answer.")
    marginals: Whole
    rows: Whole = Field(description="Number of rows that the synthetic counts were scaled to.")
    classified: tuple[Classified, ...] = Field((), description="Of classifiers of the synthetic rows.")
    noise: str = ""
    scale: float = 0.0
    standard_error: float = Field(0.0, description="Of one error, a share of the rows.")
    pairs: ErrorOfMarginals | None = None
    pairs_by_basis: dict[str, ErrorOfMarginals | None] = {}
    triples: ErrorOfMarginals | None = None
    links: ErrorOfMarginals | None = Field(None, description="Of columns and those of the row before.")
    limits: str = ""


class Statistic(Part):
    file: str
    title: str
    kind: str
    columns: Clique
    measured: bool
    assumption: str = Field(description="Of a table by the model; otherwise empty.")
    limits: Literal["95 %", "noise only", "none"] = Field(description="What intervals cover.")
    too_low: str = Field("", description="Of counts and sums of rows, where max_rows cuts rows off.")
    asked: dict[str, Any] | None = Field(
        None, description="The request, where kind and columns don't say it all."
    )

    @property
    def request(self) -> Asked | None:
        """The request that the table answers; None of a kind of another version.

        Raises:
            ConfigError: there is no such request.
        """
        if self.asked is not None:
            return request_of(self.asked)
        if self.kind in ("one_way", "crosstab"):
            return request_of({"crosstab": self.columns})
        *by, of = self.columns or ("",)
        return request_of({"mean": of, **({"by": by} if by else {})}) if self.kind == "mean" else None


class CountsView(Part):
    file: str
    columns: Clique
    counts_left_out: Whole


class Generalised(Part):
    level: Whole
    of: Whole
    groups: Texts = Field(description="The group of each value, in the order of the column's labels.")


class KAnonymous(Part):
    file: str
    k: int = Field(ge=2)
    quasi_identifiers: Texts
    l: int = Field(ge=1)  # noqa: E741
    sensitive: Texts
    rows: Whole
    rows_left_out: Whole
    suppress_at_most: Share
    loss: Share = Field(description="Iyengar's loss metric: 0 for no generalisation.")
    columns_left_out: Texts = Field(description="Computed from quasi-identifiers.")
    generalised: dict[str, Generalised]


class Rounding(Part):
    base: int = Field(ge=2)
    method: Literal["nearest", "unbiased"]


class StatedViews(Part):
    """Views of the synthetic table in the form of older disclosure control."""

    adds_to_the_guarantee: str = Field(description="Nothing.")
    suppress_below: Annotated[int, Field(ge=2)] | None
    rounding: Rounding | None
    counts: tuple[CountsView, ...]
    k_anonymous: KAnonymous | None


class File(Part):
    bytes: Whole
    sha256: Sha256


_COMPOSED = ("epsilon", "delta", "rho", "mu", "approximate_delta", "unit", "neighbours", "accountant")
"""Facts of a composed guarantee that the manifest states as they are."""

_AS_PUBLISHED = (
    "release", "release_id", "rehearsal", "date", "warnings", "minimum_set_size",
    "terms", "signed_by", "disclosed_outside",
)  # fmt: skip
"""Facts of a publication that the manifest states as they are."""


class Manifest(Part):
    model_config = ConfigDict(title="dpsynth bundle manifest")

    format: Format
    release: str = Field(description="Name of the release in its configuration.")
    release_id: str
    rehearsal: bool = Field(description="True if the table was made up: nothing is about anybody.")
    date: str = Field(json_schema_extra={"format": "date"})
    period: dict[str, Any] | None
    trust: str = Field(description="Who has to be trusted: a curator (central), or nobody (local).")
    audience: StatedAudience | None = None
    sampling: SampledUnits | None = Field(
        None, description="The secret sample that all answers are about; null without one."
    )
    verdict: StatedVerdict
    contribution_bounding: ContributionBounding | None = None
    guarantee: StatedGuarantee
    not_protected: Texts = Field(description="What the guarantee doesn't cover.")
    disclosed_outside: tuple[dict[str, str], ...] = Field(
        (), description="What is public without noise: its kind, the column that it is about, and what."
    )
    cautions: Texts = Field(description="How far to believe the numbers.")
    warnings: tuple[DataWarning, ...]
    budget_requested: dict[str, Any]
    mechanisms: tuple[Mechanism, ...] = Field(description="One for each charged question, in order.")
    structure: Structure
    earlier_releases: dict[str, Any] | None
    public_table: dict[str, Any] | None
    public_marginals: tuple[StatedPublicMarginal, ...]
    source: dict[str, Any] | None = Field(
        None, description="The form of the private table's file, as configured; null if it is no file."
    )
    columns: tuple[Described, ...] = Field(description="The public schema.")
    found_with_budget: dict[str, Texts]
    found_in_words: str
    constraints: Constraints
    local: dict[str, Any] | None = Field(description="The collection of respondents' reports.")
    synthetic_rows: Whole
    exam: StatedExam | None
    statistics: tuple[Statistic, ...]
    views: StatedViews | None = None
    tables: dict[str, Any] | None = Field(
        None, description="The linked tables that the rows stand for, and their keys; null of one table."
    )
    terms: str | None = Field(None, description="Terms of use for recipients.")
    minimum_set_size: Annotated[int, Field(ge=2)] | None
    signed_by: Annotated[str, Field(pattern="^ed25519:[0-9a-f]{64}$")] | None
    software: dict[str, str]
    files: dict[str, File] = Field(
        description="Every other public file but the checksums and their signature."
    )

    @staticmethod
    def of(publication: Publication, words: Words) -> Manifest:
        cut = publication.cut
        too_low = "" if cut is None else cut.too_low
        here = publication.measured_together
        reused, public = publication.reused, publication.public_table
        earlier = [c for use in (reused, public) if use for c in use.cliques]
        verdict, guarantee = publication.verdict, publication.guarantee
        facts = {
            "format": FORMAT,
            **{name: getattr(publication, name) for name in _AS_PUBLISHED},
            "period": None if publication.part is None else publication.part.to_json(),
            "trust": "central" if publication.collection is None else "local, ε per respondent",
            "audience": None if publication.audience is None else publication.audience.to_json(),
            "sampling": publication.sampled,
            "verdict": {
                "in_words": verdict.lines,
                "columns": verdict.columns,
                "pairs": verdict.pairs,
                "rows": verdict.rows,
                "criteria": verdict.criteria,
                **({"links": verdict.links} if verdict.links else {}),
            },
            "contribution_bounding": None if cut is None else cut.to_json(),
            "guarantee": {
                **{name: getattr(guarantee, name) for name in _COMPOSED},
                "rows_without_id": publication.nameless,
                "groups": of_groups(guarantee),
                "other_relation": other_relation(guarantee),
                "profile": of_other_deltas(guarantee),
                "recognition": of_recognition(guarantee),
                "in_words": words.guarantee,
            },
            "not_protected": words.not_protected,
            "cautions": words.cautions,
            "budget_requested": publication.budget,
            "mechanisms": publication.events,
            "structure": {
                "method": publication.structure,
                "cliques": publication.cliques,
                "lost": publication.lost,
                "measured_together": largest(here),
                "known_from_elsewhere": largest(earlier),
                "model": tree_cliques(publication.model.tree, [c.name for c in publication.columns]),
                "merged_values": {
                    "why": words.merged,
                    "below_rows": publication.merged_below,
                    "columns": {
                        merged.column: {
                            "values": merged.values,
                            "groups": merged.groups,
                            "held_together": merged.held,
                        }
                        for merged in merged_columns(publication.columns, publication.compression)
                    },
                },
            },
            "earlier_releases": reused and {"in_words": words.reuse, **reused.to_json()},
            "public_table": public and {"in_words": words.public_table, **public.to_json()},
            "public_marginals": [
                {"columns": m.clique, "rows": publication.public_marginals.rows if m.counted else None}
                for m in publication.public_marginals.marginals
            ],
            "source": publication.form,
            "columns": public_schema(publication.layout),
            "found_with_budget": publication.found,
            "found_in_words": words.found,
            "constraints": {"rules": publication.constraints, "in_words": words.constraints},
            "local": None if publication.collection is None else publication.collection.to_json(),
            "synthetic_rows": publication.synthetic.rows,
            "exam": None if publication.exam is None else publication.exam.to_json(),
            "statistics": [
                {
                    "file": f"statistics/{statistic.name}.csv",
                    "title": statistic.title,
                    "kind": statistic.kind,
                    "columns": statistic.columns,
                    "measured": statistic.measured,
                    "assumption": assumption(statistic, here, earlier),
                    "limits": statistic.limits,
                    **({"too_low": too_low} if too_low and statistic.counts_rows else {}),
                    **({} if statistic.asked is None else {"asked": statistic.asked}),
                }
                for statistic in publication.statistics
            ],
            "views": None if publication.views is None else publication.views.to_json(),
            **({} if publication.database is None else {"tables": publication.database.to_json()}),
            "software": publication.versions,
            "files": {},
        }
        return Manifest.model_validate(facts)

    @staticmethod
    def read(folder: Path) -> Manifest:
        """The manifest of a public folder.

        Raises:
            BundleRefused: there is none that can be read, it is of another format, or it is damaged.
        """
        values = read_values(folder)
        check_format(values, folder)
        try:
            return Manifest.of_values(values)
        except ValidationError as error:
            raise BundleRefused(
                f"{folder / MANIFEST} is damaged: {_sentences(error)[0]}. `dpsynth verify` says which files "
                "were changed."
            ) from None

    @staticmethod
    def of_values(values: Facts) -> Manifest:
        """The manifest that has some JSON values.

        Raises:
            ValidationError: they don't keep to the schema.
        """
        return Manifest.model_validate_json(json.dumps(values), strict=True)

    def listing(self, folder: Path, names: Sequence[str]) -> Manifest:
        added = {
            name: File(bytes=(folder / name).stat().st_size, sha256=sha256_of(folder / name))
            for name in names
        }
        return self.model_copy(update={"files": {**self.files, **added}})

    @property
    def values(self) -> dict[str, Any]:
        return self.model_dump(exclude_unset=True)

    @property
    def central(self) -> bool:
        """True if a curator drew the noise; False if respondents randomised their own records."""
        return self.local is None

    @property
    def composed(self) -> Guarantee:
        stated, sampled = self.guarantee, self.sampling
        rate = None if sampled is None else sampled.rate
        return Guarantee(**{name: getattr(stated, name) for name in _COMPOSED}, sample_rate=rate)

    @property
    def relations(self) -> Basis:
        """The sets of columns that the model rests on."""
        public = tuple(marginal.columns for marginal in self.public_marginals)
        return Basis(self.structure.measured_together, public, self.structure.known_from_elsewhere)

    @property
    def modelled(self) -> Mapping[str, Facts]:
        """The descriptions of the columns that were read from the private table, and of parts, by name."""
        described = [d for column in self.columns for d in (column, *column.get("parts", ()))]
        return {str(facts["name"]): facts for facts in described if "labels" in facts}

    @property
    def layout(self) -> Layout:
        """The columns of the table, without densities inside bins.

        Raises:
            UnknownColumn: a column can't be read.
        """
        # The grammar takes decimals.
        return published_layout(json.loads(json.dumps(self.columns), parse_float=Decimal))

    @property
    def too_low(self) -> str:
        """A sentence if counts of rows are surely too low, as rows were cut off; otherwise ""."""
        return "" if self.contribution_bounding is None else self.contribution_bounding.too_low


def tree_cliques(tree: JunctionTree, columns: Sequence[str]) -> list[TreeClique]:
    """The cliques of a model's junction tree, without the columns of groups.

    A clique that lies inside of the one it hangs on is left out, and what hung on it hangs there.

    Args:
        tree: the junction tree; a column of groups is named after the column of its values.
        columns: the columns of the release.
    """
    order = {name: place for place, name in enumerate(columns)}
    of = {name: name if name in order else name.rpartition(" (groups")[0] for name in tree.domain.columns}
    members = [{of[name] for name in clique} & order.keys() for clique in tree.cliques]
    parents: dict[int, int] = {edge.child: edge.parent for edge in tree.edges}
    inside = {0: 0}
    kept = [0]
    for child, parent in parents.items():
        on = inside[parent]
        if members[child] <= members[on]:
            inside[child] = on
            continue
        inside[child] = child
        if members[on] < members[child]:
            # The larger one takes the place of the one it hangs on.
            members[on] = members[child]
            inside[child] = on
            continue
        kept.append(child)
    place = {clique: spot for spot, clique in enumerate(kept)}
    found: list[TreeClique] = []
    for clique in kept:
        above = inside[parents[clique]] if clique in parents else clique
        joined = above != clique and members[above] & members[clique]
        names = tuple(sorted(members[clique], key=order.__getitem__))
        found.append(TreeClique(names, place[above] if joined else None))
    return found


class BundleRefused(DpsynthError):
    """A folder that is no bundle of this version, or a file of a bundle that can't be used."""


def read_values(folder: Path) -> dict[str, Any]:
    """The JSON values of the manifest of a public folder, of whatever format.

    Raises:
        BundleRefused: it can't be read, or is no JSON object.
    """
    path = folder / MANIFEST
    try:
        if path.stat().st_size > _LARGEST or not path.is_file():
            raise BundleRefused(f"{path} is no file, or larger than any manifest.")
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BundleRefused(f"{path} can't be opened: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise BundleRefused(f"{path} is damaged: it is no JSON.") from None
    if not isinstance(found, dict):
        raise BundleRefused(f"{path} is damaged: it is no JSON object.")
    return found


def check_format(values: Facts, folder: Path) -> None:
    """Refuse a bundle of another version.

    Raises:
        BundleRefused: its manifest names another format.
    """
    written = values.get("format")
    if written == FORMAT:
        return
    software = values.get("software")
    by = software.get("dpsynth") if isinstance(software, dict) else None
    named = f" It was written by dpsynth {by}; use that version." if isinstance(by, str) else ""
    raise BundleRefused(
        f"{folder} holds a bundle of the format {written!r}, and this version of dpsynth reads {FORMAT!r}."
        f"{named}"
    )


def schema_faults(values: Facts) -> list[str]:
    """The values of a manifest that its schema doesn't allow, each as a place and a reason."""
    try:
        Manifest.of_values(values)
    except ValidationError as error:
        return _sentences(error)
    return []


def _sentences(error: ValidationError) -> list[str]:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return sorted(f"{'.'.join(map(str, e['loc'])) or 'it'}: {e['msg'][:200]}" for e in found)


def manifest_text(values: Facts) -> str:
    """JSON with two spaces of indent, keys in order, and a final line feed."""
    return json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False, default=str) + "\n"


class _Untitled(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: object) -> bool:
        del schema
        return False


def manifest_schema() -> dict[str, Any]:
    """The JSON Schema, for recipients and for registries."""
    schema = Manifest.model_json_schema(schema_generator=_Untitled)
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema}


def schema_text() -> str:
    """The schema as it stands in the file."""
    return json.dumps(manifest_schema(), indent=2, ensure_ascii=False) + "\n"
