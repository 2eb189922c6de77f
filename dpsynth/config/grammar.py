"""The whole configuration: every key that a release may be given, and the checks across its sections.

Invariant: a Spec is a public value. It is made from the configuration alone, before any data are read, and
every Spec can be run: its draws can be decoded, some row obeys all of its rules as far as the columns' values
are public, and every number that it publishes counts the error of a secret sample of units.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from math import prod
from typing import Annotated, Literal, Protocol

import pyarrow as pa
from pydantic import Field, model_validator

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.column import Column, ValueSearch
from dpsynth.columns.declaration import MAX_DOMAIN_SIZE, check_expected
from dpsynth.columns.derived import Derived
from dpsynth.columns.disclosed import NO_PROVENANCE, Provenance
from dpsynth.columns.domain import Clique
from dpsynth.columns.expression import Reference
from dpsynth.columns.finished_table import Classifier, FinishedTable
from dpsynth.columns.kinds import ColumnSpec, layout_of
from dpsynth.columns.layout import FormulaRefused, Layout, companion
from dpsynth.columns.rules import Checks, RuleRefused, Rules, Unobeyed, condition_of, rules_of, witness_of
from dpsynth.columns.section import (
    EMPTY,
    Choice,
    Section,
    Text,
    Unreviewed,
    refuse_guessed,
    refuse_unreviewed,
    refused,
    unrepeated,
    without_default,
)
from dpsynth.config.document import Document, OfWing, checked, plain_mapping
from dpsynth.config.files.place import same_table
from dpsynth.config.period import Period, Reuse, Schedule
from dpsynth.config.privacy import (
    Audience,
    Ledger,
    Privacy,
    Promise,
    check_audiences,
    promises_of,
    with_largest_epsilon,
)
from dpsynth.config.public_data import PublicMarginalSpec, PublicTableSpec, public_marginals_of
from dpsynth.config.publish import Publish, Sample
from dpsynth.config.source import Engine, InMemory, Source
from dpsynth.config.structure import METHODS, Structure
from dpsynth.errors import ConfigError, nearest
from dpsynth.wing import Point

_RATE = ("privacy", "sample_rate")

_SHARES_OF_ALL_ROWS = {
    "exam": "the exam would tell how near the synthetic table is to the sample, and not to the table",
    "cutoff": "its intervals would leave out the error of sampling",
    "statistics": "all statistics are by counts there",
}
"""Shares of the budget for questions that have no use about a sample, and why."""

KINDS = ("crosstab", "mean")
"""The kinds of statistics whose intervals count the error of sampling."""


def check_sampling(spec: Spec, columns: Mapping[str, Column]) -> None:
    """Refuse settings that a secret sample can't be had with, or for which nobody has shown that it can."""
    privacy = spec.privacy
    if privacy.sample_rate is None:
        return
    if privacy.neighbours != "add_remove":
        raise refused(
            "must be left out with neighbours: replace_one. There the number of rows is public, and that of "
            "a secret sample is not; and the sample protects by whether a unit is in it, which is what "
            "add_remove hides. Use neighbours: add_remove",
            *_RATE,
        )
    if privacy.protected.per is not None:
        raise refused(
            "must be left out with unit.per: a person would be in the sample with all periods or with none, "
            "so her periods are not in it independently of each other",
            *_RATE,
        )
    if privacy.delta is not None and privacy.delta >= privacy.sample_rate:
        words = f"must be above privacy.delta, {privacy.delta}: the sample is asked at delta divided by it"
        raise refused(words, *_RATE)
    if spec.audiences:
        words = "must be left out with audiences: a sample for several of them is not supported"
        raise refused(words, *_RATE)
    if spec.reuse.same_period or spec.reuse.earlier_periods:
        words = "must be left out with reuse: earlier answers are about other rows than those of a new sample"
        raise refused(words, *_RATE)
    for key in ("public_table", "public_marginals"):
        if getattr(spec, key):
            raise refused(
                f"must be left out with {key}: what is public is about all rows, and the answers are about a "
                "sample",
                *_RATE,
            )
    for share, why in _SHARES_OF_ALL_ROWS.items():
        if privacy.split is not None and getattr(privacy.split, share):
            raise refused(f"must be 0 with privacy.sample_rate: {why}", "privacy", "split", share)
    for column in columns.values():
        if isinstance(column.search, ValueSearch):
            words = (
                "must be false with privacy.sample_rate: finding values has a delta of its own, which is not "
                "amplified together with the rest. List all values"
            )
            raise refused(words, "columns", column.name, "open")
    for i, statistic in enumerate(spec.publish.statistics):
        if statistic.kind not in KINDS or statistic.condition is not None:
            words = (
                f"is not supported with privacy.sample_rate, which has intervals for {' and '.join(KINDS)} "
                "without a condition. dpsynth query answers other questions about counts from the bundle"
            )
            raise refused(words, "publish", "statistics", i)


def check_layout(layout: Layout) -> None:
    """Refuse formulas that can't be computed, maps with gaps, and a name that is used twice.

    Paths in errors start at the top of the configuration.
    """
    parts = {part.name: part for part in layout.parts}
    try:
        _ = layout.kinds
    except FormulaRefused as error:
        guess = "" if error.unknown is None else nearest(error.unknown, parts)
        raise refused(f"{error}{guess}", "columns", error.column, "formula") from None
    for column in layout.columns:
        if column.part_of and column.name in parts:
            words = f"is the name of a part of '{column.part_of}' that is measured; rename it"
            raise refused(words, "columns", column.name)
        if column.distinct and not column.part_of and companion(column.name) in parts:
            words = f"is the name of the column for the missing markers of '{column.name}'; rename it"
            raise refused(words, "columns", companion(column.name))
    for part in parts.values():
        if isinstance(part, Derived) and part.map and isinstance(part.formula, Reference):
            looked_up = parts[part.formula.column]
            if isinstance(looked_up, Column):
                _map_suits(part, looked_up)


def _map_suits(derived: Derived, column: Column) -> None:
    """Refuse a map that leaves out a value of a closed list, or lists one that isn't there."""
    if not column.codec.closed:
        return
    path, values = ("columns", derived.name, "map"), column.codec.labels
    keys = [key for key, _ in derived.map]
    unknown = next((key for key in keys if key not in values), None)
    if unknown is not None:
        words = f"lists '{unknown}', which is no value of '{column.name}'{nearest(unknown, values)}"
        raise refused(words, *path)
    left_out = next((value for value in values if value not in keys), None)
    if left_out is not None and derived.other is None:
        raise refused(f"leaves out '{left_out}', a value of '{column.name}'; add it, or give other", *path)


_SECTION = "constraints"


def check_rules(written: Sequence[str], layout: Layout) -> Rules:
    """The rules that are written as texts; refused if no row was found that obeys them.

    Paths in errors start at the top of the configuration.
    """
    try:
        rules = rules_of(written, layout)
    except RuleRefused as error:
        guess = nearest(error.unknown, error.known) if error.unknown else ""
        raise refused(f"{error}{guess}", _SECTION, error.number) from None
    searched = {column.name for column in layout.columns if column.search is not None}
    public = {n for n in range(len(written)) if searched.isdisjoint(rules.columns(n))}
    found = witness_of(Checks(rules.only(public), layout))
    if isinstance(found, Unobeyed):
        raise _unobeyed(found.numbers, rules)
    return rules


def _unobeyed(numbers: tuple[int, ...], rules: Rules) -> Exception:
    advice = "Rows were tried that hold a value in every column, but those of which a rule says 'is missing'"
    if len(numbers) == 1:
        words = f"is obeyed by no row of the declared values that was found. {advice}"
        return refused(words, _SECTION, *numbers)
    if len(numbers) == 2:
        other, number = numbers
        words = f"and {_SECTION}[{other}], '{rules.written[other]}', leave no row of the declared values"
        return refused(f"{words}: none was found that obeys both. {advice}", _SECTION, number)
    listed = ", ".join(f"'{rules.written[number]}'" for number in numbers)
    words = f"leave no row of the declared values: none was found that obeys {listed} together"
    return refused(f"{words}. {advice}", _SECTION)


MAX_COLUMNS = 2_000

MAX_CELLS = 10_000_000

MAX_GROUPS = 10_000

MAX_RULES, MAX_LENGTH = 200, 60_000

LOUD_EPSILON = 10

NAMELESS = (
    "the ledger knows a table in memory by its name alone. Give it one, the same whenever it is released"
)

LOUD_DELTA = Decimal("1e-4")


class CollectionKeys(Protocol):
    """The section of the local model."""

    @staticmethod
    def refuse_central_keys(values: Mapping[str, object]) -> None:
        """Refuse the keys that a config has and that make no sense without a curator."""

    def check(self, epsilon: Decimal, method: str, searched: Iterable[str]) -> None:
        """Refuse a collection that can't be run.

        Args:
            searched: the columns of which something is to be found privately.
        """


COLLECTION: Point[type[CollectionKeys]] = Point("local")


class AcceptanceKeys(Protocol):
    """The section of acceptance criteria."""

    @property
    def sets(self) -> tuple[Clique, ...]:
        """The sets of columns whose errors the exam has to measure."""

    @property
    def targets(self) -> tuple[tuple[str, str], ...]:
        """The columns that classifiers of the finished table have to guess, and what each is trained for."""

    def classifiers(self, table: FinishedTable, columns: Sequence[Column]) -> Iterator[Classifier]:
        """Classifiers of the targets, trained on the rows of a finished table."""

    @property
    def stops(self) -> bool:
        """True if a release pauses of which not all criteria are met."""

    @property
    def stated(self) -> tuple[dict[str, object], ...]:
        """The criteria as JSON values."""

    def check(self, spec: Spec, columns: Mapping[str, Column]) -> None:
        """Refuse what the configuration can't give."""


class RegressionKeys(Protocol):
    """The section of a regression whose products are counted in place of columns."""

    @property
    def columns(self) -> Mapping[str, object]:
        """The columns that are read of the table, by name."""

    def products(self, texts: Mapping[str, pa.StringArray]) -> dict[str, pa.Array]:
        """The cells of the products of some rows, each from the texts of its own row alone."""

    def check(self, spec: Spec) -> None:
        """Refuse what the configuration can't give."""


WIDE: Point[Callable[[Mapping[str, object]], dict[str, object]]] = Point("wide configuration", "tables")
"""Makes of the values of a configuration with linked tables those of a table with a row for each root."""

CHECK_OF_VIEWS: Point[Callable[[Publish, Mapping[str, Column]], None]] = Point("check of views")
"""Refuses views that the columns can't give."""

HISTORY: Point[Callable[[Spec, Mapping[str, Column]], None]] = Point("check of histories", "histories")
"""Refuses settings with which rows can't follow each other, or for which nobody has shown it."""

_RELEASE_WORDS = (
    "a name of letters, digits, '.', '_' and '-' that starts with a letter or digit, since it names a folder "
    "(left out, it is the configuration file's own name)"
)

_RULE_WORDS = "a rule such as admitted <= discharged, in quotes"


def release_named(words: str) -> str:
    """A name for a release, from words.

    >>> release_named("Visits of 2024")
    'Visits-of-2024'
    """
    letters = re.sub(r"[^A-Za-z0-9._-]+", "-", words).strip("._-")
    return letters[:100].rstrip("._-") or "release"


class Spec(Section):
    """A configuration, checked and complete."""

    release: Annotated[
        str, Text(_RELEASE_WORDS, pattern=r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9_-])?", longest=100)
    ] = Field(
        default="release",
        json_schema_extra=without_default,
        description="Name of the release and of its folder. Left out: this file's name.",
    )
    trust: Annotated[Literal["central", "local"], Choice(("central", "local"))] = Field(
        default="central",
        description="central: a curator holds the private table. local: there is none, and respondents "
        "randomise their records themselves: dpsynth collect, dpsynth aggregate.",
    )
    source: Source = Field(description="The private table. Left out with tables, and with trust: local.")
    tables: Annotated[Mapping[str, Section] | None, OfWing("tables", optional=True)] = Field(
        default=None,
        description="Linked tables, by name, each with its source and its columns. Left out: one table.",
    )
    privacy: Privacy = Field(description="The guarantee asked for.")
    audiences: Mapping[str, Audience] = Field(
        default={},
        description="Bundles of one release for several audiences, each with the epsilon of all that it "
        "sees. All together cost the largest. Left out: one bundle.",
    )
    ledger: Ledger = Field(default=Ledger(), description="Record of spending, and its cap.")
    columns: Mapping[str, ColumnSpec] = Field(
        description="The columns to use, by name; all else is ignored. Domains come from public knowledge."
    )
    constraints: tuple[Annotated[str, Text(_RULE_WORDS, longest=MAX_LENGTH)], ...] = Field(
        default=(),
        max_length=MAX_RULES,
        description="Rules that every synthetic row obeys, from public knowledge: admitted <= discharged, "
        "total == a + b, age < 15 implies married == 'no', education <-> education_num.",
    )
    structure: Structure = Field(default=Structure(), description="Choice of the marginals to measure.")
    sample: Sample = Field(default=Sample(), description="The synthetic rows.")
    publish: Publish = Field(default=Publish(), description="Contents of the bundle.")
    accept: Annotated[AcceptanceKeys | None, OfWing("accept", optional=True)] = Field(
        default=None, description="Criteria that a finished release is judged by. Left out: none."
    )
    verification: Annotated[object | None, OfWing("verification", optional=True)] = Field(
        default=None, description="What may be spent on questions of recipients. Left out: nothing."
    )
    regression: Annotated[RegressionKeys | None, OfWing("regression", optional=True)] = Field(
        default=None,
        description="A regression whose products are counted in place of columns: what dpsynth answer "
        "--config-only writes for a question about one. Left out: none.",
    )
    embargo: Annotated[str | None, OfWing("embargo", optional=True)] = Field(
        default=None,
        description="Instant until which the finished bundle is kept encrypted, with its time zone, such as "
        "2026-12-24T09:00+01:00. Left out: it is published at once.",
    )
    provenance: Provenance = Field(
        default=NO_PROVENANCE, description="Where the configuration comes from: a look, a choice."
    )
    period: Period | None = Field(
        default=None, description="Slice of the table that a release is about. Left out: all rows."
    )
    schedule: Schedule | None = Field(
        default=None, description="When to release again: what dpsynth serve goes by. Left out: on command."
    )
    reuse: Reuse = Field(default=Reuse(), description="Reuse of earlier answers of the dataset.")
    public_table: PublicTableSpec | None = Field(
        default=None,
        description="A public table of the same kind, used as evidence at no cost. Left out: none.",
    )
    public_marginals: tuple[PublicMarginalSpec, ...] = Field(
        default=(),
        description="Marginals that are public, such as census totals. The model and the synthetic table "
        "agree with them, and they are not asked for.",
    )
    engine: Annotated[Engine, OfWing("engine", without=Engine)] = Field(
        default=Engine(), description="What counts the private table, and its memory."
    )
    local: Annotated[CollectionKeys | None, OfWing("local")] = Field(
        default=None, description="With trust: local: what respondents report."
    )
    review: Annotated[tuple[str, ...], Unreviewed()] = Field(
        default=(), description="Keys that someone has to check first. Nothing is run until it is empty."
    )

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Spec:
        """Check a configuration given in Python, with the keys of the YAML file.

        Without the key source it is about a table in memory: ``dpsynth.release(frame, spec)``. The key
        ledger.dataset is then needed.

        Args:
            values: lists may be tuples or arrays, numbers those of numpy, and dates those of datetime.

        Raises:
            ConfigError: a key is unknown, or a value isn't allowed; the message names the key.
        """
        refuse_guessed(values.get("columns"))
        plain = plain_mapping(values)
        source: dict[str, object] = {} if "source" in plain else {"source": InMemory()}
        return checked(cls, {**plain, **source}, Document("The configuration", plain, {}))

    def in_memory(self) -> Spec:
        """The same configuration for a table that is handed over in memory, in place of its file.

        Raises:
            ConfigError: the ledger would not know the table, as the dataset has no name.
        """
        if not self.ledger.dataset:
            raise ConfigError(
                f"ledger.dataset is missing: {NAMELESS}. Set it in the configuration, to the name of the "
                "account of its file, if there is one."
            )
        return self.model_copy(update={"source": InMemory()})

    @model_validator(mode="before")
    @classmethod
    def _read(cls, values: object) -> object:
        return values if isinstance(values, cls) else cls._completed(cls.known(values))

    @classmethod
    def _completed(cls, values: dict[str, object]) -> dict[str, object]:
        refuse_unreviewed(values.get("review", ()))
        for key in ("period", "schedule", "public_table"):
            if key in values and values[key] is None:
                # A key without a value was meant to say something: neither the whole table nor no schedule.
                raise refused(EMPTY, key)
        if values.get("tables") is not None:
            values = WIDE.needed("tables")(values)
        values = with_largest_epsilon(values)
        if values.get("trust") == "local":
            collection = COLLECTION.filled()
            if collection is None:
                words = "is not supported here: it needs the wing local, which is not installed"
                raise refused(words, "trust")
            collection.refuse_central_keys({k: v for k, v in values.items() if not isinstance(v, InMemory)})
            return {"local": {}, **values, "source": InMemory()}
        if "local" in values:
            raise refused("is for trust: local; remove it, or write trust: local", "local")
        ledger = values.get("ledger", {})
        source = values.get("source")
        named_alone = values.get("tables") or (isinstance(source, dict) and source.get("query") is not None)
        if named_alone and isinstance(ledger, dict) and not ledger.get("dataset"):
            words = (
                "is missing: the ledger knows the rows of a query, or of several tables, by a name alone. "
                "Give them one, the same for all that is asked about the same people"
            )
            raise refused(words, "ledger", "dataset")
        if isinstance(ledger, dict) and isinstance(source, InMemory):
            if "dataset" not in ledger:
                raise refused(f"is missing: {NAMELESS}, such as dataset='visits'", "ledger", "dataset")
            # No file has given the release its name.
            values.setdefault("release", release_named(str(ledger["dataset"])))
        return values

    def model_post_init(self, context: object, /) -> None:
        layout = self._named_columns()
        columns = self._sizes_checked(layout)
        for name, expected in self.expected.items():
            check_expected(columns[name], expected)
        check_layout(layout)
        self._statistics_checked(columns, layout)
        self._structure_checked(columns)
        for i, name in enumerate(self.provenance.looked_at):
            refuse_unknown(name, self.columns, "provenance", "looked_at", i)
        if self.local is not None:
            searched = [name for name, column in columns.items() if column.search is not None]
            self.local.check(self.privacy.epsilon, self.structure.method, searched)
        check_audiences(self.audiences, self.privacy.epsilon, self.privacy.delta)
        check_sampling(self, columns)
        if self.privacy.history is not None:
            HISTORY.needed("privacy.unit.history")(self, columns)
        if self.accept is not None:
            self.accept.check(self, {n: c for n, c in columns.items() if not c.part_of})
        if self.regression is not None:
            self.regression.check(self)
        self._privacy_suits_the_method(columns)
        self._searches_checked(columns)
        self._period_checked()
        if self.source.totals and self.privacy.neighbours == "replace_one":
            words = (
                "must be left out with neighbours: replace_one, where the number of rows is public: how many "
                "of them are totals is not. Take totals out of the table"
            )
            raise refused(words, "source", "totals")
        if self.source.chooses_rows and self.privacy.neighbours == "replace_one":
            words = (
                "has WHERE, and with neighbours: replace_one the number of rows is public: so would be how "
                "many rows pass it. Use neighbours: add_remove. Or, if it is public which rows pass, state "
                "so with source.row_by_row: true"
            )
            raise refused(words, "source", "query")
        unrepeated(self.constraints, "constraints")
        for pair in check_rules(self.constraints, layout).pairs:
            _countable(pair, columns, "constraints")
        self._public_checked(columns)

    @property
    def expected(self) -> dict[str, Mapping[str, Decimal | int]]:
        """The shares of cells that columns are expected to have, by column and by what takes them."""
        found = {name: getattr(declared, "expected", None) for name, declared in self.columns.items()}
        return {name: expected for name, expected in found.items() if expected}

    def _named_columns(self) -> Layout:
        if not self.columns:
            words = "must declare at least one, such as age: {type: integer, min: 0, max: 110}"
            raise refused(words, "columns")
        if len(self.columns) > MAX_COLUMNS:
            raise refused(f"must declare at most {MAX_COLUMNS:,} columns", "columns")
        for name in self.columns:
            if not name or not name.isprintable() or len(name) > 200:
                raise refused("must be a name of 1 to 200 printable characters", "columns", name)
        return layout_of(self.columns)

    def _sizes_checked(self, layout: Layout) -> dict[str, Column]:
        columns = {column.name: column for column in layout.columns}
        if not columns:
            raise refused("must declare at least one that is read from the source", "columns")
        for name, column in columns.items():
            if column.size < 2:
                raise refused("has one possible value only; remove the column", "columns", name)
            values = len(column.codec.labels)
            if values > MAX_DOMAIN_SIZE + 1:
                words = f"has {values:,} possible values; use fewer, at most {MAX_DOMAIN_SIZE:,}"
                raise refused(words, "columns", name)
        return columns

    def _statistics_checked(self, columns: Mapping[str, Column], layout: Layout) -> None:
        for i, statistic in enumerate(self.publish.statistics):
            path = ("publish", "statistics", i)
            for name in statistic.columns:
                self._modelled(name, columns, *path)
            for clique in statistic.cliques:
                _countable(clique, columns, *path)
            for name in statistic.numbers:
                if columns[name].centres is None:
                    words = f"asks for the {statistic.kind} of '{name}', whose values are not numbers"
                    raise refused(words, *path, statistic.kind)
            groups = prod(columns[name].size for name in statistic.groups)
            if groups > MAX_GROUPS:
                raise refused(f"has {groups:,} groups; at most {MAX_GROUPS:,} are allowed", *path, "by")
            if statistic.condition is not None:
                _check_condition(statistic.condition, layout, *path, "where")
        view = self.publish.k_anonymity
        written = {name: column for name, column in columns.items() if not column.part_of}
        for name, place in () if view is None else view.named:
            self._modelled(name, written, "publish", "k_anonymity", *place)
        if self.publish.views:
            check = CHECK_OF_VIEWS.filled()
            if check is None:
                words = "asks for views, which need the wing proof; it is not installed here"
                raise refused(words, "publish")
            check(self.publish, columns)

    def _modelled(self, name: str, columns: Mapping[str, Column], *path: str | int) -> None:
        if name in self.columns and name not in columns:
            kind = self.columns[name].type
            words = (
                f"names '{name}', which is not counted: columns of type {kind} are not read from the table"
            )
            raise refused(words, *path)
        refuse_unknown(name, columns, *path)

    def _structure_checked(self, columns: Mapping[str, Column]) -> None:
        structure = self.structure
        for name, path in structure.named():
            self._modelled(name, columns, "structure", *path)
        for i, clique in enumerate(structure.cliques or ()):
            _countable(clique, columns, "structure", "cliques", i)
        ways = None if structure.workload is None else structure.workload.ways
        if ways is not None and ways > len(columns):
            words = f"must be at most {len(columns)}, the number of columns"
            raise refused(words, "structure", "workload", "ways")

    def _privacy_suits_the_method(self, columns: Mapping[str, Column]) -> None:
        privacy, method = self.privacy, METHODS[self.structure.method]
        if privacy.split is None:
            return
        if privacy.exam and len(columns) == 1:
            words = "must be 0 for a table of one column: the exam is about columns together"
            raise refused(words, "privacy", "split", "exam")
        if privacy.split.cutoff and privacy.cutoff == 0:
            words = (
                "must be left out with max_rows: private, whose own question tells it"
                if privacy.max_rows_private
                else "must be 0 where no rows are cut off: only persons have max_rows"
            )
            raise refused(words, "privacy", "split", "cutoff")
        if not privacy.split.whole:
            return
        searches = privacy.max_rows_private or any(column.search is not None for column in columns.values())
        if searches != bool(privacy.split.domain):
            something = "must be above 0, as something is to be found of a column, or of max_rows"
            words = something if searches else "must be 0, as nothing is to be found of any column"
            raise refused(words, "privacy", "split", "domain")
        for key, needed in (("structure", method.chooses), ("marginals", method.measures)):
            share = getattr(privacy.split, key)
            if needed and not share:
                raise refused(f"must be above 0 with structure.method {method.name}", "privacy", "split", key)
            if share and not needed:
                words = f"must be 0 with structure.method {method.name}, which {method.does}"
                raise refused(words, "privacy", "split", key)

    def _searches_checked(self, columns: Mapping[str, Column]) -> None:
        searched = [column for column in columns.values() if column.search is not None]
        for column in searched:
            if isinstance(column.search, ValueSearch) and self.privacy.delta is None:
                words = (
                    f"is missing: columns.{column.name}.open: true needs it, such as 1e-9, since no epsilon "
                    "bounds the loss of a unit whose value nobody else has. Or list all values"
                )
                raise refused(words, "privacy", "delta")
        for key in ("same_period", "earlier_periods"):
            if not getattr(self.reuse, key):
                continue
            if self.audiences:
                words = (
                    "must be false with audiences: an earlier release may have been for another audience, so "
                    "a bundle could tell an audience more than its epsilon allows"
                )
                raise refused(words, "reuse", key)
            if searched:
                words = (
                    f"must be false while something is to be found of a column ({searched[0].name}): "
                    "releases would not agree on its cells. What an earlier release found is public, and can "
                    "be declared"
                )
                raise refused(words, "reuse", key)
            if self.privacy.max_rows_private:
                words = (
                    "must be false with privacy.unit.max_rows: private: each release would use another "
                    "number of rows of a person. What an earlier release found is public, and can be given "
                    "as max_rows"
                )
                raise refused(words, "reuse", key)

    def _period_checked(self) -> None:
        period = self.period
        if period is None:
            if self.reuse.same_period:
                raise refused("has no use without the key period", "reuse", "same_period")
            return
        if self.privacy.neighbours != "add_remove":
            words = (
                "must be add_remove with a period: how many rows fall in a period is private, and would not "
                "stay the same when a unit is exchanged"
            )
            raise refused(words, "privacy", "neighbours")
        if self.privacy.protected.person == period.column:
            words = "must be another column than privacy.unit.column: a slice is of many persons"
            raise refused(words, "period", "column")
        if period.every == "value" and self.schedule is not None:
            words = "has no use with period.every: value, whose values are named with --period one by one"
            raise refused(words, "schedule")

    def _public_checked(self, columns: Mapping[str, Column]) -> None:
        private = self.source.path
        if self.public_table is not None and private and same_table(self.public_table.path, private):
            words = (
                "must be another file than source.path: what a public table says is released as it is, and"
            )
            raise refused(f"{words} protected by nothing", "public_table", "path")
        for i, marginal in enumerate(self.public_marginals):
            for name in marginal.columns:
                self._modelled(name, columns, "public_marginals", i, "columns")
        public = public_marginals_of(self.public_marginals, columns)
        if public.marginals and self.constraints:
            raise refused(
                "must be left out where there are constraints: rows that are repaired because they "
                "violate one would not keep the public counts",
                "public_marginals",
            )
        method = METHODS[self.structure.method]
        if public.columns == columns.keys() and (len(columns) == 1 or not method.measures):
            words = f"covers every column, so structure.method {method.name} has nothing to ask"
            raise refused(words, "public_marginals")

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where private rows are: that of the table, and those of linked tables."""
        linked = [getattr(table, "source", None) for table in (self.tables or {}).values()]
        return (self.source, *(source for source in linked if source is not None))

    @property
    def protected(self) -> Neighbours:
        """The neighbour relation and the unit; see ``Privacy.protected``."""
        return replace(self.privacy.protected, linked=self.tables is not None)

    @property
    def promises(self) -> tuple[Promise, ...]:
        return promises_of(self.audiences, self.privacy.epsilon, self.privacy.delta)

    def warnings(self) -> tuple[str, ...]:
        """Advice about settings that are allowed but risky: one or two sentences each, public facts only."""
        found = []
        privacy = self.privacy
        if privacy.epsilon > LOUD_EPSILON:
            found.append(
                f"epsilon {privacy.epsilon} is above {LOUD_EPSILON}: a guarantee this weak protects little. "
                "0.1 to 5 is the usual range of one release."
            )
        if privacy.delta is not None and privacy.delta > LOUD_DELTA:
            found.append(
                f"delta {privacy.delta} is above {LOUD_DELTA}: it should be well below 1 divided by the "
                "number of rows, or whole rows could be published within the guarantee."
            )
        person = getattr(privacy.unit, "column", "")
        if person in self.columns and self.columns[person].type != "identifier":
            found.append(
                f"'{person}' says whose row it is and is also among columns, so the synthetic "
                "table will hold values of it. It is not needed there."
            )
        if self.period is not None and self.period.every == "value" and self.period.column in self.columns:
            found.append(
                f"'{self.period.column}' is the column of period.every: value and is also among columns. All "
                "rows of a release have the same value of it, so there it takes budget for nothing."
            )
        if self.source.row_by_row:
            found.append(
                "source.row_by_row: true states that one unit moves no more rows of source.query than "
                "privacy.unit allows for, and that no cell makes it fail. Nothing checks that, and all that "
                "the release promises rests on it. Its bundle says so."
            )
        return tuple(found)


def refuse_unknown(name: str, columns: Collection[str], *path: str | int) -> None:
    """Refuse a name that isn't among columns, at the path at which it is given."""
    if name not in columns:
        raise refused(f"names '{name}', which is not among columns{nearest(name, columns)}", *path)


def _check_condition(text: str, layout: Layout, *path: str | int) -> None:
    try:
        condition_of(text, layout)
    except RuleRefused as error:
        raise refused(f"'{text}' {error}", *path) from None


def _countable(clique: Iterable[str], columns: Mapping[str, Column], *path: str | int) -> None:
    cells = prod(columns[name].size for name in clique)
    if cells > MAX_CELLS:
        raise refused(f"has {cells:,} cells; at most {MAX_CELLS:,} are allowed", *path)
