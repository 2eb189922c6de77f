"""The forecast of a release: its plan, and the ledger before and after.

Invariant: a forecast reads the config and the ledger, never the table, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsynth.accounting.amount import Amount, digits
from dpsynth.accounting.composition import of_groups, other_relation
from dpsynth.accounting.slices import Slice
from dpsynth.columns.calendar import invents_time_of_day
from dpsynth.columns.rules import enforcement_of
from dpsynth.config import CompiledSpec, Spec, compiled
from dpsynth.config.period import LONGEST_LABEL, Period
from dpsynth.ledger.balance import Balance, CapChange, Reservation, first_balance, first_entry
from dpsynth.ledger.refusals import check_cap, check_counted, check_protection
from dpsynth.pipeline.reservation import Occasion, next_releases, occasion_of, reservation_of, table_of
from dpsynth.plan.expected_errors import (
    STRONG,
    WEAK,
    CountErrors,
    column_errors,
    enough_columns,
    enough_epsilon,
    exam_within,
    pair_errors,
    sampling_error,
)
from dpsynth.plan.plan import Found, Plan, make_plan, promised
from dpsynth.plan.resources import bytes_of_row, bytes_of_source_row
from dpsynth.strategy import strategy_of
from dpsynth.strategy.exclusive_ors import FEWEST_COLUMNS, TWO, scan_of
from dpsynth.wing import Point

if TYPE_CHECKING:
    from dpsynth.ledger.ledger import Reading

CRITERIA: Point[Callable[[CompiledSpec, Plan, int], Iterator[str]]] = Point(
    "criteria beforehand", "governance"
)
"""Says of acceptance criteria whether they could be told, for a plan and a number of rows."""

SHARE = 0.01
"""Default share of the rows that noise may move in a column."""


def forecast(spec: Spec, rows: int | None = None, share: float = SHARE) -> dict[str, Any]:
    """The forecast as plain JSON values.

    Args:
        rows: the number of rows of the table, public or assumed; None: errors are in rows alone.
        share: the share of the rows that noise may move in a column, for the epsilon that it needs.

    Raises:
        ConfigError: the plan can't be made, or the ledger can't be read.
    """
    from dpsynth.ledger.ledger import Ledger

    compiled_spec = compiled(spec)
    plans = plans_of(compiled_spec)
    plan = plans[-1]
    known = Ledger(spec.ledger.url, spec.ledger.head).read()
    account = known.dataset_of(table_of(spec))
    return {
        "release": spec.release,
        "dataset": account,
        "columns": len(spec.columns),
        **plan.to_json(),
        "groups": of_groups(promised(plan)),
        "other_relation": other_relation(promised(plan)),
        "expected_errors": _errors(compiled_spec, plan, rows, share),
        "sampling": _sampling(compiled_spec, plan, rows),
        "audiences": [
            {**tier.to_json(), "expected_errors": _errors(compiled_spec, tier, rows, share)}
            for tier in plans
            if tier.tier.audience
        ],
        "constraints": [asdict(way) for way in enforcement_of(compiled_spec.rules, compiled_spec.layout)],
        "ledger": _ledger(compiled_spec, plan, known.balance(account), account),
        "approval": approval(compiled_spec, plan, known),
        "embargo": spec.embargo,
        "engine": _engine(compiled_spec, plan, rows),
        "notes": [
            *spec.warnings(),
            *_moments(compiled_spec),
            *known.hints(reservation_to_come(compiled_spec, plan), Path()),
        ],
    }


def _moments(compiled_spec: CompiledSpec) -> Iterator[str]:
    for parted in compiled_spec.layout.parted:
        units = [f"{parted.unit}s", *(f"{part.name}" for part in parted.parts)]
        yield f"Of {parted.column.name} these are measured, each as a column: {', '.join(units)}."
    invented = [column.name for column in compiled_spec.columns if invents_time_of_day(column)]
    if invented:
        yield (
            f"The time of day of {', '.join(invented)} is invented: no hour is measured, and all are equally "
            "likely. With parts: [hour] of such a column its hours are measured."
        )


def _sampling(compiled_spec: CompiledSpec, plan: Plan, rows: int | None) -> dict[str, object] | None:
    """The sample of units, beside the same release without one; None if all units are asked."""
    if plan.sampling is None:
        return None
    privacy = compiled_spec.spec.privacy.model_copy(update={"sample_rate": None})
    again = compiled(compiled_spec.spec.model_copy(update={"privacy": privacy}))
    without, columns = plans_of(again)[0], compiled_spec.columns
    of_sample = plan.sampling.of_sample(Amount(plan.tier.epsilon, plan.tier.delta or Fraction(0)))
    return {
        "rate": float(plan.sampling.rate),
        "epsilon_of_sample": float(of_sample.epsilon),
        "delta_of_sample": float(of_sample.delta),
        "columns": [
            {
                "columns": list(one.columns),
                "error_by_noise": one.error,
                "error_by_sampling": None if rows is None else sampling_error(plan, rows / one.cells),
                "error_without_sampling": other.error,
            }
            for one, other in zip(column_errors(plan, columns), column_errors(without, columns), strict=True)
        ],
    }


def _engine(compiled_spec: CompiledSpec, plan: Plan, rows: int | None) -> dict[str, object]:
    summed = len(plan.own.columns)
    person = plan.neighbours.person is not None
    sizes = [None if c.kept_as_text else c.size for c in compiled_spec.columns]
    period = compiled_spec.spec.period
    beside = {*plan.neighbours.columns, *([] if period is None else [period.column])}
    others = len(beside - {c.name for c in compiled_spec.columns})
    read = bytes_of_source_row(compiled_spec.columns, others)
    engine = compiled_spec.spec.engine
    each, memory = bytes_of_row(sizes, summed, person=person), engine.memory
    # The rows of persons are copied when contributions are bounded, so half of the memory is for either.
    held = memory // 2 if person else memory
    known = rows if rows is not None else compiled_spec.public_marginals.rows
    facts: dict[str, object] = {
        "name": engine.named,
        "workers": engine.by_workers,
        "memory": memory,
        "bytes_of_a_row": each,
        "source": _source(compiled_spec.spec),
        "read_bytes_of_a_row": round(read, 1),
        "rows": known,
    }
    if known is None:
        return facts
    whole = plan.forecast.of_rows(known, held=held, coded=known * each)
    return {
        **facts,
        "read_bytes": round(known * read),
        "coded_bytes": known * each,
        # How many workers share them isn't known here.
        "cache_bytes": known * each if known * each > held and not engine.by_workers else 0,
        "seconds": round(whole.seconds, 1),
        "megabytes": round(whole.megabytes, 1),
    }


def _source(spec: Spec) -> str:
    source = spec.source
    if source.in_memory or source.in_database:
        return "memory" if source.in_memory else "database"
    return str(source.format) if source.compression is None else f"{source.format}.{source.compression}"


def reservation_to_come(compiled_spec: CompiledSpec, plan: Plan) -> Reservation:
    """The reservation of a run to come, without its id; its period, or tick, is not named yet."""
    spec, label = compiled_spec.spec, "the next"
    part = None if spec.period is None else Slice(spec.period.column, label)
    once = spec.period is None and spec.schedule is None
    return reservation_of(compiled_spec, plan, Occasion(None if once else label, part), "")


def approval(compiled_spec: CompiledSpec, plan: Plan, known: Reading) -> str | None:
    """Who has approved a release, or must still; None where the ledger has no policy."""
    policy = known.book.policy
    if policy is None:
        return None
    wanted = known.named(reservation_to_come(compiled_spec, plan))
    return policy.planned(wanted, known.day, known.release)


def plans_of(compiled_spec: CompiledSpec) -> list[Plan]:
    """The plan of each tier; of a release of one bundle its only one."""
    plans = [plan_of(compiled_spec)]
    while plans[-1].later:
        plans.append(plan_of(compiled_spec, Found(plans[-1], compiled_spec.columns, next_tier=True)))
    return plans


def plan_of(compiled_spec: CompiledSpec, found: Found | None = None) -> Plan:
    """The plan of a compiled config, by its own strategy; ConfigError where there is none."""
    structure = compiled_spec.spec.structure
    return make_plan(compiled_spec, strategy_of(structure.method, structure.cliques or ()), found)


def _errors(compiled_spec: CompiledSpec, plan: Plan, rows: int | None, share: float) -> dict[str, object]:
    columns = column_errors(plan, compiled_spec.columns)
    if rows is None:
        return {"rows": None, "columns": [_counts(column) for column in columns]}
    pairs = pair_errors(compiled_spec, plan, rows)

    def errors_of(spec: Spec) -> tuple[CountErrors, ...]:
        # The epsilon that a bundle needs does not depend on those of other audiences.
        again = compiled(spec.model_copy(update={"audiences": {}}))
        return column_errors(plans_of(again)[0], again.columns)

    found = enough_epsilon(compiled_spec.spec, rows, share, errors_of)
    epsilon = None if found is None else float(found)
    return {
        "rows": rows,
        "columns": [_counts(column, rows) for column in columns],
        "pairs_measured_at_most": plan.outlined.cliques,
        "exam_within": exam_within(plan, rows),
        "criteria": _criteria(compiled_spec, plan, rows),
        "exclusive_ors": _exclusive_ors(compiled_spec, plan, rows),
        "pairs": [_counts(pair, rows) for pair in pairs],
        "relations_show": {"weak": WEAK, "strong": STRONG},
        "columns_that_would_do": enough_columns(columns, rows),
        "epsilon_that_would_do": {
            "share_moved": share,
            "epsilon": None if epsilon is None else float(epsilon),
        },
    }


def _criteria(compiled_spec: CompiledSpec, plan: Plan, rows: int) -> list[str]:
    asked = compiled_spec.spec.accept is not None
    return list(CRITERIA.needed("accept")(compiled_spec, plan, rows)) if asked else []


def _exclusive_ors(compiled_spec: CompiledSpec, plan: Plan, rows: int) -> dict[str, object] | None:
    """The largest exclusive or that is looked for; None where none is, as of too few columns of two values.

    A column that has a place for missing cells counts, as that is merged where hardly any cell is missing.
    """
    sizes = {c.name: c.size - c.missing for c in compiled_spec.columns if c.search is None}
    of_two = sum(size == TWO for size in sizes.values())
    if plan.structure != "auto" or plan.outlined.rounds < 2 or of_two < FEWEST_COLUMNS:
        return None
    budget = plan.budget * (plan.shares.structure + plan.shares.marginals)
    scan = scan_of(
        sizes,
        compiled_spec.workload,
        rows,
        budget,
        lambda price, number: plan.bought.parities(price, number).stddev,
    )
    most, price = (scan.most, scan.price) if scan else (0, Fraction(0))
    return {"columns_of_two_values": of_two, "at_most": most, "share": float(price / plan.budget)}


def _counts(errors: CountErrors, rows: int | None = None) -> dict[str, object]:
    """Errors as plain JSON values; if the number of rows is given, with what noise moves and hides."""
    hidden = (
        {} if rows is None else {"share_moved": errors.moved(rows), "correlation": errors.correlation(rows)}
    )
    # One of each pair of columns: a copy by ``asdict`` would take longer than the plan.
    return {**vars(errors), "columns": list(errors.columns), **hidden}


def _ledger(
    compiled_spec: CompiledSpec, plan: Plan, recorded: Balance | None, account: str
) -> dict[str, object]:
    spec = compiled_spec.spec
    now, period = datetime.now(UTC), spec.period
    releases = () if recorded is None else recorded.releases
    released = [r.occasion for r in releases if r.occasion is not None]
    parallel = period is not None and period.composition == "parallel"
    part = _next_part(period, spec, now, released) if period is not None and parallel else None
    wanted = replace(reservation_of(compiled_spec, plan, Occasion(None, part), ""), dataset=account)
    if recorded is not None:
        check_protection(wanted, recorded)
    before = recorded or first_balance(wanted, now.date())
    check_counted(wanted, before)
    cap = wanted.cap_under(before.cap)
    check_cap(cap, before, before.approximate_share)
    capped = replace(
        before, caps=(*before.caps, CapChange(cap, now.date(), approximate_share=before.approximate_share))
    )
    after = replace(capped, releases=(*before.releases, first_entry(wanted, now.date())))
    more = after.fits(wanted.cost)
    due = [] if parallel else next_releases(spec, now, more + 2, released)
    sentences: tuple[str, ...] = ()
    if before.changed is not None:
        # It takes longer to import than a plan.
        from dpsynth.ledger.views import unit_change_in_words

        sentences = unit_change_in_words(before)
    return {
        "filter": before.filter.accountant,
        "unit_changed": list(sentences),
        "cap": {"epsilon": digits(cap.epsilon, up=False), "delta": digits(cap.delta, up=False)},
        "before": _counted(capped),
        "after": _counted(after),
        "allowed": capped.allows(wanted.cost, part),
        "parallel": parallel,
        "more_after": more,
        "first_refused": due[more + 1].date().isoformat() if len(due) > more + 1 else None,
    }


def _next_part(period: Period, spec: Spec, now: datetime, released: list[str]) -> Slice:
    if period.every == "value":
        return Slice(period.column, "?" * (LONGEST_LABEL + 1))
    present = occasion_of(spec, now)
    if present.label in released and (due := next_releases(spec, now, 1, released)):
        present = occasion_of(spec, due[0])
    assert present.part is not None
    return present.part


def _counted(account: Balance) -> dict[str, object]:
    return {"epsilon": digits(account.epsilon_used, up=True), "share": round(account.share_used, 6)}
