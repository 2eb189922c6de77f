"""The privacy guarantee that is asked for, its audiences, and the ledger that caps the sum over releases.

The audiences of a release may learn different amounts, and are nested: one of a larger epsilon gets all that
those of a smaller epsilon get, and more. So all bundles together cost the largest epsilon, and not the sum.

Invariant: every budget is an exact decimal, never a float. In rising order of epsilon no delta falls, and no
two audiences have the same epsilon.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from dpsynth.accounting.measures import MEASURES, PURE, measure_named
from dpsynth.accounting.neighbours import Calendar, Nameless, Neighbours, PerPeriod, Relation
from dpsynth.accounting.subsampling import Sampling
from dpsynth.columns.section import (
    EMPTY,
    Checked,
    Choice,
    ColumnName,
    JsonSchema,
    Number,
    Section,
    Text,
    Whole,
    refused,
    without_default,
)

_NAME_WORDS = "a name of letters, digits, '-' and '_' that starts with a letter, since it names a folder"

_LONGEST, MOST_AUDIENCES = 40, 8

KEPT = "private"
"""The name of the folder that no audience gets."""


_EPSILON = Number(at_least="1e-6", at_most="1e9", advice="0.1 to 5 is usual")


class Audience(Section):
    """The guarantee of one audience: for all that it sees, the bundles of smaller epsilons included."""

    epsilon: Annotated[Decimal, _EPSILON] = Field(description="Privacy loss by all that the audience sees.")
    delta: Annotated[Decimal, Number(above="0", below="1")] | None = Field(
        default=None,
        json_schema_extra=without_default,
        description="Probability that the bound may fail. Left out: privacy.delta.",
    )


@dataclass(frozen=True)
class Promise:
    """The (epsilon, delta) that an audience is promised.

    Attributes:
        audience: its name; "" for a release that has one bundle.
    """

    audience: str
    epsilon: Fraction
    delta: Fraction | None


def promises_of(
    audiences: Mapping[str, Audience], epsilon: Decimal, delta: Decimal | None
) -> tuple[Promise, ...]:
    """The promises of a release in rising order of epsilon: one for each audience, or its only one."""
    given = None if delta is None else Fraction(delta)
    if not audiences:
        return (Promise("", Fraction(epsilon), given),)
    found = [
        Promise(name, Fraction(a.epsilon), given if a.delta is None else Fraction(a.delta))
        for name, a in audiences.items()
    ]
    return tuple(sorted(found, key=lambda promise: promise.epsilon))


def with_largest_epsilon(values: dict[str, object]) -> dict[str, object]:
    """A configuration whose privacy.epsilon, where it is left out, is the largest of its audiences."""
    audiences, privacy = values.get("audiences"), values.get("privacy", {})
    if not isinstance(audiences, Mapping) or not isinstance(privacy, Mapping) or "epsilon" in privacy:
        return values
    each = [a["epsilon"] for a in audiences.values() if isinstance(a, Mapping) and "epsilon" in a]
    numbers = [e for e in each if isinstance(e, int | float | Decimal) and not isinstance(e, bool)]
    return {**values, "privacy": {**privacy, "epsilon": max(numbers)}} if numbers else values


def check_audiences(audiences: Mapping[str, Audience], epsilon: Decimal, delta: Decimal | None) -> None:
    """Refuse audiences that are not nested, or whose folders would collide."""
    if not audiences:
        return
    if len(audiences) > MOST_AUDIENCES:
        raise refused(f"may name at most {MOST_AUDIENCES}", "audiences")
    seen: set[str] = set()
    for name, audience in audiences.items():
        plain = name.replace("-", "").replace("_", "")
        if not (plain.isascii() and plain.isalnum() and name[0].isalpha()) or len(name) > _LONGEST:
            raise refused(f"must be {_NAME_WORDS}, of at most {_LONGEST} characters", "audiences", name)
        if name.casefold() == KEPT:
            raise refused("must have another name: private is the folder that nobody gets", "audiences", name)
        if name.casefold() in seen:
            raise refused("differs from another audience in capitals only", "audiences", name)
        seen.add(name.casefold())
        if audience.delta is not None and (delta is None or audience.delta > delta):
            most = "left out, as privacy.delta is" if delta is None else f"at most privacy.delta, {delta}"
            raise refused(f"must be {most}", "audiences", name, "delta")
    for small, large in pairwise(promises_of(audiences, epsilon, delta)):
        if small.epsilon == large.epsilon:
            words = f"must differ from that of {small.audience}: audiences of one epsilon are one audience"
            raise refused(words, "audiences", large.audience, "epsilon")
        if small.delta is not None and large.delta is not None and large.delta < small.delta:
            words = f"must be at least that of {small.audience}, whose bundle this audience gets too"
            raise refused(words, "audiences", large.audience, "delta")
    most_epsilon = max(audience.epsilon for audience in audiences.values())
    if epsilon != most_epsilon:
        words = (
            f"must be the largest of the audiences, {most_epsilon}, or left out: that is what all bundles "
            "cost together"
        )
        raise refused(words, "privacy", "epsilon")


Noise = Literal["gaussian", "laplace"]

Accountant = Literal["auto", "sequential", "zcdp", "gdp"]

Filter = Accountant

OnEmpty = Literal["stop", "go"]

_Share = Annotated[Decimal, Number(at_least="0", at_most="1")]

_LEAST_SHARE = Decimal("0.0001")

_MOST_ALONE = {"exam": Decimal("0.5"), "cutoff": Decimal("0.1")}
"""Largest shares of steps beside which the other steps have the plan's shares."""

_DELTA = Number(above="0", below="1", advice="well below 1 divided by the number of rows")

USUAL_DELTA = Decimal("1e-9")
"""Delta of a configuration by ``dpsynth init``, and of keyword arguments in Python that leave it out."""


class Row(BaseModel):
    """Unit of privacy: one row, which may be an event."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"enum": ["row", "event"]})

    kind: Literal["row", "event"] = "row"

    @property
    def max_rows(self) -> int:
        return 1


_MOST_ROWS = 10_000

_DEFAULT_AT_MOST = 20


@dataclass(frozen=True)
class MostRows(Checked):
    """A whole number of rows, or private."""

    def check(self, value: object) -> int | str:
        if value == "private":
            return "private"
        if isinstance(value, str):
            raise refused(f"must be a whole number from 1 to {_MOST_ROWS}, or private")
        return Whole(at_least="1", at_most=str(_MOST_ROWS)).check(value)

    def json_schema(self) -> JsonSchema:
        return {"anyOf": [{"type": "integer", "minimum": 1, "maximum": _MOST_ROWS}, {"const": "private"}]}


class Per(Section):
    """The periods that make several units of a person's rows."""

    column: ColumnName = Field(description="Column of dates. It need not be among columns.")
    every: Annotated[Calendar, Choice(get_args(Calendar))] = Field(
        description="Length of a period; a week is Monday to Sunday. Rows without a date are one period."
    )


class History(Section):
    """The order of a person's rows, which the synthetic rows keep."""

    order_by: ColumnName = Field(
        description="Column by which the rows of a person follow each other, such as a date or a year. It is "
        "one of columns, with an order. Rows with equal values follow each other as in the table."
    )
    constant: tuple[ColumnName, ...] = Field(
        default=(),
        description="Columns with one value in all rows of a person, such as a year of birth. Synthetic "
        "persons have one too, and nothing is asked of a row and the one before. Rows of the table need not.",
    )
    rising: tuple[ColumnName, ...] = Field(
        default=(),
        description="Columns whose values never fall from row to row of a person, such as years of "
        "schooling. In the synthetic rows they don't. Rows of the table may.",
    )


class Person(Section):
    """Unit of privacy: all rows of one person, or of one household; or those of a period."""

    column: ColumnName = Field(description="Column that says whose row it is. It need not be among columns.")
    max_rows: Annotated[int | Literal["private"], MostRows()] = Field(
        description="Most rows of one person that are used; of more, a random choice is. Noise grows with "
        "it. private: found with a part of the budget."
    )
    at_most: Annotated[int, Whole(at_least="2", at_most=str(_MOST_ROWS))] | None = Field(
        default=None,
        description=f"With max_rows: private, the most that it may come to. Left out: {_DEFAULT_AT_MOST}.",
    )
    kind: Annotated[Literal["person", "household"], Choice(("person", "household"))] = Field(
        default="person", description="Whom the column tells apart; the guarantee is worded so."
    )
    per: Per | None = Field(
        default=None,
        description="Protects what a person does in one period, not the person. Left out: all rows are one.",
    )
    missing: Annotated[Nameless, Choice(get_args(Nameless))] = Field(
        default="left_out",
        description="Rows without an id. left_out: they are not used. together: they count as one person.",
    )
    history: History | None = Field(
        default=None,
        description="The synthetic rows come with new persons, in order, each given the one before. Left "
        "out: each synthetic row stands by itself.",
    )

    @property
    def bound(self) -> int:
        """Upper limit of the contribution bound: the most rows of one person that may be used."""
        if self.max_rows == "private":
            return self.at_most or _DEFAULT_AT_MOST
        return self.max_rows

    def model_post_init(self, context: object, /) -> None:
        if self.at_most is not None and self.max_rows != "private":
            raise refused("has no use beside a max_rows that is given; remove it", "at_most")
        if self.history is not None and self.bound == 1:
            raise refused("has no use with max_rows: 1: one row has no other one before it", "history")


def _unit_of(value: object) -> object:
    if value in ("row", "event"):
        return Row(kind=value)
    if isinstance(value, dict | Row | Person):
        return value
    raise refused("must be row, event, or a mapping such as {column: patient_id, max_rows: 4}")


Unit = Annotated[
    Annotated[Row, Tag("@row")] | Annotated[Person, Tag("@person")],
    Discriminator(lambda value: "@row" if isinstance(value, Row) else "@person"),
    BeforeValidator(_unit_of),
]
"""The unit of privacy."""


class Split(Section):
    """Shares of the budget by step, together at most 1; or that of the exam alone."""

    domain: _Share = Field(
        default=Decimal(0), description="For what is found of columns: ends, edges, values, beginnings."
    )
    one_way: _Share | None = Field(
        default=None,
        json_schema_extra=without_default,
        description="For the marginals of single columns. It is needed beside any share but exam.",
    )
    statistics: _Share = Field(
        default=Decimal(0), description="For means, sums and quantiles that are asked for and measured."
    )
    structure: _Share = Field(default=Decimal(0), description="For choosing which marginals to measure.")
    marginals: _Share = Field(default=Decimal(0), description="For the chosen marginals.")
    exam: _Share | None = Field(
        default=None,
        json_schema_extra=without_default,
        description="For the measured errors of the finished synthetic table. 0: none. Alone, the other "
        "shares are the plan's. Left out beside other shares: 0.",
    )
    cutoff: _Share | None = Field(
        default=None,
        json_schema_extra=without_default,
        description="For the share of the rows that max_rows cuts off. 0: it isn't asked. Alone, or with "
        "exam alone, the other shares are the plan's. Left out beside other shares: 0.",
    )

    @property
    def whole(self) -> bool:
        """True if the shares of all steps are given, not those of the exam and the cut-off alone."""
        return self.one_way is not None

    def model_post_init(self, context: object, /) -> None:
        if self.one_way == 0:
            raise refused("must be above 0; every strategy starts from the single columns", "one_way")
        alone = self.model_fields_set and self.model_fields_set <= set(_MOST_ALONE)
        if self.one_way is None and not alone:
            raise refused("is missing: give the share of the single columns, such as 0.3", "one_way")
        shares = {key: getattr(self, key) or Decimal(0) for key in type(self).model_fields}
        for key, share in shares.items():
            if 0 < share < _LEAST_SHARE:
                raise refused(f"must be 0 or at least {_LEAST_SHARE}", key)
        for key, most in _MOST_ALONE.items():
            if not self.whole and shares[key] > most:
                raise refused(f"must be at most {most} without the shares of the other steps", key)
        total = sum(shares.values())
        if total > 1:
            raise refused(f"must sum to at most 1; these shares sum to {total}")


class Privacy(Section):
    """The guarantee asked for."""

    epsilon: Annotated[Decimal, _EPSILON] = Field(description="Privacy loss: smaller is more private.")
    delta: Annotated[Decimal, _DELTA] | None = Field(
        default=None,
        description="Probability that the bound may fail. Left out: pure epsilon-DP with Laplace noise.",
    )
    noise: Annotated[Noise, Choice(get_args(Noise))] = Field(
        default="laplace",
        json_schema_extra=without_default,
        description="Left out: gaussian if delta is given, otherwise laplace.",
    )
    neighbours: Annotated[Relation, Choice(get_args(Relation))] = Field(
        default="add_remove",
        description="add_remove: one unit more or less. replace_one: one unit is exchanged; with rows as "
        "units, their number is public.",
    )
    unit: Unit = Field(
        default=Row(),
        description="row, event (a row), or {column: …, max_rows: …} for all rows of one person.",
    )
    accountant: Annotated[Accountant, Choice(get_args(Accountant))] = Field(
        default="auto",
        description="Composition of losses. sequential: epsilon. zcdp: rho. gdp: mu, gaussian noise. auto: "
        "the one with the least noise; sequential without delta.",
    )
    sample_rate: Annotated[Decimal, Number(at_least="1e-6", below="1", advice="such as 0.1")] | None = Field(
        default=None,
        description="Ask a secret random sample of the units, each in it with this probability: epsilon and "
        "delta are of the whole, and the sample is asked with less noise. Left out: all units.",
    )
    split: Split | None = Field(
        default=None, description="Shares of the budget by step. Left out: the plan's."
    )
    on_empty: Annotated[OnEmpty, Choice(("stop", "go"))] = Field(
        default="stop",
        description="If the noisy number of rows says that the table is empty, or the noisy single columns "
        "that one of them reads nothing. stop: pause before the rest of the budget is spent. go: release it, "
        "with a warning.",
    )

    @property
    def exam(self) -> Decimal | None:
        """The share of the exam; None for the default. A sample is not examined."""
        if self.sample_rate is not None:
            return Decimal(0)
        return self._share("exam")

    @property
    def cutoff(self) -> Decimal | None:
        """The share of the rows that a given bound cuts off; None for the default, 0 where nobody asks.

        Where the bound is found, the question for it tells that, too. A sample isn't asked.
        """
        if isinstance(self.unit, Row) or self.max_rows_private or self.sample_rate is not None:
            return Decimal(0)
        return self._share("cutoff")

    def _share(self, step: str) -> Decimal | None:
        if self.split is None or (getattr(self.split, step) is None and not self.split.whole):
            return None
        return getattr(self.split, step) or Decimal(0)

    @property
    def history(self) -> History | None:
        return getattr(self.unit, "history", None)

    @property
    def order_by(self) -> str:
        """The column by which the rows of a person follow each other; empty where that doesn't count."""
        return "" if self.history is None else self.history.order_by

    @property
    def max_rows_private(self) -> bool:
        return isinstance(self.unit, Person) and self.unit.max_rows == "private"

    @property
    def protected(self) -> Neighbours:
        """The neighbour relation and the unit, with the largest bound if the bound is to be found."""
        unit = self.unit
        if isinstance(unit, Row):
            return Neighbours(self.neighbours, kind=None if unit.kind == "row" else unit.kind)
        per = None if unit.per is None else PerPeriod(unit.per.column, unit.per.every)
        kind = None if unit.kind == "person" else unit.kind
        return Neighbours(self.neighbours, unit.column, unit.bound, unit.missing, kind, per)

    @property
    def sampling(self) -> Sampling | None:
        return None if self.sample_rate is None else Sampling(Fraction(self.sample_rate))

    @model_validator(mode="before")
    @classmethod
    def _written_out(cls, values: object) -> object:
        if not isinstance(values, dict):
            return values
        return {"noise": "laplace" if values.get("delta") is None else "gaussian", **values}

    def model_post_init(self, context: object, /) -> None:
        if self.noise not in PURE.noises and self.delta is None:
            raise refused("is missing: gaussian noise needs it, such as 1e-9. Or use noise: laplace", "delta")
        if self.accountant == "auto":
            return
        if self.accountant != PURE.accountant and self.delta is None:
            raise refused(
                f"is missing: accountant {self.accountant} needs it, such as 1e-9. "
                "Or use accountant: sequential",
                "delta",
            )
        measure = measure_named(self.accountant)
        if self.noise not in measure.noises:
            suited = ", ".join(m.accountant for m in MEASURES if self.noise in m.noises)
            raise refused(
                f"must be {suited} or auto with {self.noise} noise; {self.accountant} needs "
                f"{' or '.join(measure.noises)}",
                "accountant",
            )


class Cap(Section):
    """The most that all releases of a dataset may spend together."""

    epsilon: Annotated[Decimal, Number(at_least="1e-6", at_most="1e9")] = Field(
        default=Decimal(10), description="Sum over all releases."
    )
    delta: Annotated[Decimal, Number(at_least="0", below="1")] = Field(
        default=Decimal("1e-5"), description="Sum over all releases."
    )


_DatabaseUrl = Text(
    "the address of a database, such as sqlite:///ledger.db or postgresql://host/name",
    pattern=r"(sqlite|postgresql)(\+[a-z0-9_]+)?://.*",
    longest=1000,
)


class Ledger(Section):
    """The ledger: the record of spending across releases and processes."""

    url: Annotated[str, _DatabaseUrl] = Field(
        default="sqlite:///ledger.db",
        description="Database; an SQLite path is relative to the working directory.",
    )
    dataset: Annotated[str, Text("a name for the table")] = Field(
        default="",
        json_schema_extra=without_default,
        description="Name that spending is counted under, the same in all releases about the same people. "
        "Left out: the one that the ledger has for the source; for a new source, the name of its file.",
    )
    other_people: Annotated[str, Text("a sentence that says why nobody is in both", longest=1000)] = Field(
        default="",
        json_schema_extra=without_default,
        description="Why nobody in this release is in the releases of another dataset of the same source, "
        "so that both have a cap. It stays on record. Left out: a source has one dataset.",
    )
    cap: Cap = Field(default=Cap(), description="Most that may be spent. Left out: epsilon 10, delta 1e-5.")
    filter: Annotated[Filter, Choice(get_args(Filter))] = Field(
        default="auto",
        description="Composition of releases under the cap. sequential: epsilon and delta. zcdp: "
        "rho. gdp: mu. It is recorded with the dataset at its first release and stays. auto: the recorded "
        "one; for the first release, the one by which that adds up its own costs.",
    )
    head: Annotated[str, Text("the path of a file", longest=4000)] | None = Field(
        default=None,
        description="File that remembers the ledger's last row, on another disk: it shows that a ledger was "
        "put back from an older copy, or edited. Make it with dpsynth ledger head. Left out: none.",
    )

    def model_post_init(self, context: object, /) -> None:
        if self.head is None and "head" in self.model_fields_set:
            raise refused(EMPTY, "head")
        if self.other_people and not self.dataset:
            raise refused("needs dataset, the name of the account beside that of the source", "other_people")
