"""A run is the release of one slice, of one tick, or of nothing in particular; the clock alone decides."""

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest

from dpsynth.accounting.slices import Slice, span_of
from dpsynth.errors import ConfigError
from dpsynth.pipeline.reservation import FARTHEST, Occasion, _to_come, next_releases, occasion_of
from tests.thinned import some

MONTHLY = "period: {column: visited, every: month}\n"
SCHEDULE = "schedule: {{cron: {cron}, timezone: {zone}}}\n"
NOW = datetime(2026, 3, 14, 12, tzinfo=UTC)


def schedule(cron, zone="Europe/Paris"):
    return SCHEDULE.format(cron=cron, zone=zone)


def part(label):
    return Slice("visited", label, *span_of(label))


def test_without_period_and_schedule_each_run_is_a_new_release(load_with):
    assert occasion_of(load_with(), NOW) == Occasion(None, None)


def test_with_a_schedule_it_is_the_latest_tick_in_the_time_of_its_zone(load_with):
    spec = load_with(schedule("0 3 1 * *"))
    assert occasion_of(spec, NOW) == Occasion("2026-03-01T03:00+01:00", None)
    assert occasion_of(spec, datetime(2026, 4, 1, 1, tzinfo=UTC)).label == "2026-04-01T03:00+02:00"
    assert occasion_of(spec, datetime(2026, 4, 1, 0, 59, tzinfo=UTC)).label == "2026-03-01T03:00+01:00"


def test_with_a_period_it_is_the_last_slice_that_has_ended(load_with):
    assert occasion_of(load_with(MONTHLY), NOW) == Occasion("2026-02", part("2026-02"))
    assert occasion_of(load_with(MONTHLY + schedule("0 3 * * *")), NOW).label == "2026-02"


@pytest.mark.parametrize(
    ("zone", "label"), [("UTC", "2026-03"), ("Asia/Tokyo", "2026-03"), ("America/Lima", "2026-02")]
)
def test_a_slice_ends_at_midnight_in_the_zone_of_the_schedule(load_with, zone, label):
    first_of_april = datetime(2026, 4, 1, 0, 30, tzinfo=UTC)
    assert occasion_of(load_with(MONTHLY + schedule("0 3 1 * *", zone)), first_of_april).label == label
    assert occasion_of(load_with(MONTHLY), first_of_april).label == "2026-03"


def test_a_label_names_an_earlier_slice(load_with):
    spec = load_with(MONTHLY)
    assert occasion_of(spec, NOW, "2025-11") == Occasion("2025-11", part("2025-11"))
    with pytest.raises(ConfigError, match="has not ended"):
        occasion_of(spec, NOW, "2026-03")
    with pytest.raises(ConfigError, match="must name a month"):
        occasion_of(spec, NOW, "")


def test_a_label_without_a_period_is_refused(load_with):
    for added in ("", schedule("0 3 1 * *")):
        with pytest.raises(
            ConfigError, match="--period has no use with this config, which has no key period"
        ):
            occasion_of(load_with(added), NOW, "2026-02")


def test_a_value_must_be_named(load_with):
    spec = load_with("period: {column: site, every: value}\n")
    assert occasion_of(spec, NOW, "07") == Occasion("7", Slice("site", "7"))
    with pytest.raises(
        ConfigError, match=r"--period is missing: with period\.every: value, say which value of the"
    ):
        occasion_of(spec, NOW)


def test_runs_missed_and_runs_repeated_have_one_occasion(load_with):
    for spec in (
        load_with(schedule("0 3 * * mon")),
        load_with(MONTHLY),
        load_with(MONTHLY + schedule("0 3 * * *")),
    ):
        moments = [NOW + timedelta(hours=h) for h in range(0, 24, 5)]
        assert len({occasion_of(spec, moment) for moment in moments}) == 1


def first_refused(spec, fits, released=()):
    """When the first release is due that a budget for so many does not allow; None if that is not known."""
    found = next_releases(spec, NOW, fits + 1, released)
    return found[fits].isoformat(timespec="minutes") if len(found) > fits else None


def test_a_budget_for_some_releases_ends_at_the_tick_after_them(load_with):
    spec = load_with(schedule("0 3 1 * *"))
    assert next_releases(spec, NOW, 0) == []
    assert first_refused(spec, 0) == "2026-04-01T03:00+02:00"
    assert first_refused(spec, 3) == "2026-07-01T03:00+02:00"
    assert first_refused(spec, 120) == "2036-04-01T03:00+02:00"


def test_ticks_whose_slice_was_released_cost_nothing(load_with):
    spec = load_with(MONTHLY + schedule("0 3 * * *"))
    assert first_refused(spec, 0) == "2026-03-15T03:00+01:00"
    assert first_refused(spec, 0, {"2026-02"}) == "2026-04-01T03:00+02:00"
    assert first_refused(spec, 2, {"2026-02", "2026-04"}) == "2026-07-01T03:00+02:00"
    weekly = load_with(schedule("0 3 * * mon"))
    assert first_refused(weekly, 0, {"2026-03-16T03:00+01:00"}) == "2026-03-23T03:00+01:00"


@pytest.mark.parametrize("zone", some(["UTC", "Europe/Paris", "Asia/Tokyo", "America/Santiago"], 2))
def test_what_is_foreseen_is_what_happens(load_with, zone):
    for added in (schedule("30 0 * * *", zone), MONTHLY + schedule("'0 0 1,2 * *'", zone), MONTHLY):
        spec = load_with(added)
        for moment, label in islice(_to_come(spec, NOW), 250):
            assert occasion_of(spec, moment).label == label


def test_without_a_schedule_a_period_sets_the_pace(load_with):
    assert first_refused(load_with(MONTHLY), 0) == "2026-04-01T00:00+00:00"
    assert first_refused(load_with(MONTHLY), 9) == "2027-01-01T00:00+00:00"
    yearly = load_with(MONTHLY.replace("month", "year"))
    assert first_refused(yearly, 20) == "2047-01-01T00:00+00:00"


def test_without_a_pace_or_beyond_all_plans_there_is_no_end(load_with):
    assert first_refused(load_with(), 3) is None
    assert first_refused(load_with("period: {column: site, every: value}\n"), 3) is None
    assert first_refused(load_with(MONTHLY), FARTHEST) is None
    assert first_refused(load_with(MONTHLY.replace("month", "year")), FARTHEST) is None
    assert first_refused(load_with(schedule("0 3 29 2 *")), FARTHEST) is None
    assert first_refused(load_with(schedule("'* * * * *'")), 10**30) is None
    assert first_refused(load_with(schedule("'* * * * *'")), FARTHEST - 1) is not None
