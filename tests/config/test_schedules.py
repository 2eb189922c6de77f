"""Ticks are instants in order, none twice, whatever the clocks do, and each run has its own occasion."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.config import Schedule
from dpsynth.config import period as schedule_module
from dpsynth.config.period import ticks
from dpsynth.errors import ConfigError
from dpsynth.pipeline.reservation import latest_tick
from tests.examples import examples
from tests.thinned import some, thinned

# Clocks go by an hour, by half of one, at midnight, and by a whole day.
CHANGES = [
    ("Europe/Paris", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ("Europe/Paris", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC)),
    ("America/Santiago", datetime(2026, 9, 6, 4, tzinfo=UTC)),
    ("America/Santiago", datetime(2026, 4, 5, 3, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
    ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),
    ("UTC", datetime(2026, 3, 1, tzinfo=UTC)),
]
CRONS = [
    "30 2 * * *",
    "0 12 30 12 *",
    "*/30 * * * *",
    "15 * * * *",
    "0 0 * * *",
    "10,35 2 * * *",
    "0 3 * * mon",
    "45 1-3 * * *",
]


def next_ticks(schedule, after, count):
    return list(islice(ticks(schedule, after), count))


def scheduled(cron, zone="UTC"):
    return Schedule(cron=cron, timezone=zone)


def shown(moments):
    return [moment.isoformat(timespec="minutes") for moment in moments]


def test_a_month_later_it_is_the_same_time_by_the_clock():
    monthly = scheduled("0 3 1 * *", "Europe/Paris")
    assert shown(next_ticks(monthly, datetime(2026, 2, 28, tzinfo=UTC), 3)) == [
        "2026-03-01T03:00+01:00", "2026-04-01T03:00+02:00", "2026-05-01T03:00+02:00",
    ]  # fmt: skip
    assert next_ticks(monthly, datetime(2026, 2, 28, tzinfo=UTC), 0) == []


def test_a_tick_is_after_the_instant_and_may_be_the_latest_at_it():
    daily = scheduled("0 3 * * *", "Europe/Paris")
    (tick,) = next_ticks(daily, datetime(2026, 5, 1, 1, tzinfo=UTC), 1)
    assert shown([tick]) == ["2026-05-02T03:00+02:00"]
    instant = timedelta(microseconds=1)
    assert next_ticks(daily, tick - instant, 1) == [tick]
    assert latest_tick(daily, tick) == latest_tick(daily, tick + instant) == tick
    assert shown([latest_tick(daily, tick - instant)]) == ["2026-05-01T03:00+02:00"]


def test_a_time_that_is_skipped_in_spring_comes_once_and_earlier():
    daily = scheduled("30 2 * * *", "Europe/Paris")
    assert shown(next_ticks(daily, datetime(2026, 3, 27, 12, tzinfo=UTC), 3)) == [
        "2026-03-28T02:30+01:00", "2026-03-29T01:30+01:00", "2026-03-30T02:30+02:00",
    ]  # fmt: skip
    hourly = scheduled("30 * * * *", "Europe/Paris")
    assert shown(next_ticks(hourly, datetime(2026, 3, 29, tzinfo=UTC), 2)) == [
        "2026-03-29T01:30+01:00", "2026-03-29T03:30+02:00",
    ]  # fmt: skip


def test_a_time_that_comes_twice_in_autumn_is_a_tick_the_first_time_only():
    daily = scheduled("30 2 * * *", "Europe/Paris")
    first, second = next_ticks(daily, datetime(2026, 10, 24, 12, tzinfo=UTC), 2)
    assert shown([first, second]) == ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]
    for minutes in (59, 60, 61):
        now = first.astimezone(UTC) + timedelta(minutes=minutes)
        local = now.astimezone(daily.zone)
        assert (local.hour, local.fold) == (2, 1)
        assert latest_tick(daily, now) == latest_tick(daily, local) == first
        assert next_ticks(daily, local, 1) == [second]


@pytest.mark.parametrize(("cron", "where"), some(thinned(CRONS, CHANGES, strength=1), 3))
def test_ticks_rise_and_do_not_depend_on_where_one_starts(cron, where):
    zone, change = where
    schedule = scheduled(cron, zone)
    start, stop = change - timedelta(days=3), change + timedelta(days=3)
    every = [tick for tick in islice(ticks(schedule, start), 400) if tick <= stop]
    assert all(a < b for a, b in pairwise(every))
    for minutes in range(-155, 155, 15):
        moment = change + timedelta(minutes=minutes)
        later = [tick for tick in every if tick > moment]
        assert next_ticks(schedule, moment, len(later)) == later
        past = [tick for tick in every if tick <= moment]
        if past:
            assert latest_tick(schedule, moment) == past[-1]


def runs_that_share_an_occasion(cron, zone, change):
    """Runs as Prefect starts them whose latest tick is that of the run before."""
    from prefect.server.schemas.schedules import CronSchedule

    start = change - timedelta(days=2)
    prefect = CronSchedule(cron=cron, timezone=zone)
    runs = asyncio.run(prefect.get_dates(60, start, change + timedelta(days=9)))
    occasions = [latest_tick(scheduled(cron, zone), run) for run in runs]
    return sum(a == b for a, b in pairwise(occasions))


@pytest.mark.parametrize(("zone", "change"), some(CHANGES, 3))
def test_each_run_that_prefect_starts_has_an_occasion_of_its_own(zone, change):
    assert [cron for cron in CRONS if runs_that_share_an_occasion(cron, zone, change)] == []


def test_a_skipped_time_that_came_later_than_prefect_runs_it_is_caught(monkeypatch):
    """Planted: of the two readings of a time that is skipped, the later."""
    monkeypatch.setattr(schedule_module, "min", max, raising=False)
    assert any(runs_that_share_an_occasion(cron, *CHANGES[0]) for cron in CRONS)


MINUTES = st.sampled_from(["0", "30", "*/15", "5,50", "59"])
HOURS = st.sampled_from(["*", "0", "2", "1-3", "23", "*/6"])
DAYS = st.sampled_from(["*", "1", "31", "29", "L", "*/10"])
MONTHS = st.sampled_from(["*", "2", "feb,mar", "3,10", "*/5"])
WEEKDAYS = st.sampled_from(["*", "sun", "1-5", "mon#1", "L5", "7"])


@examples(60)
@given(
    st.tuples(MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS),
    st.sampled_from(sorted({zone for zone, _ in CHANGES})),
    st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1)),
)
def test_the_latest_tick_is_the_one_before_the_next(fields, zone, now):
    now = now.replace(tzinfo=UTC)
    try:
        schedule = scheduled(" ".join(fields), zone)
    except ValueError:
        return
    latest = latest_tick(schedule, now)
    assert latest <= now
    following = next_ticks(schedule, latest - timedelta(seconds=1), 2)
    assert following[0] == latest and following[1] > now


@pytest.mark.parametrize(
    "cron",
    [
        "0 3 29 2 *",
        "0 3 L * *",
        "0 3 * * mon#1",
        "0 3 * * 5#3",
        "0 3 1 jan,JUL *",
        "0-30/10 22-2 * * *",
        "0 0 13 * fri",
    ],
)
def test_prefect_reads_the_same_from_a_cron_that_is_allowed(cron):
    from prefect._internal.schemas.validators import validate_cron_string
    from prefect.server.schemas.schedules import CronSchedule

    start = datetime(2026, 1, 1, tzinfo=UTC)
    assert validate_cron_string(cron) == cron
    theirs = asyncio.run(CronSchedule(cron=cron, timezone="UTC").get_dates(20, start + timedelta(seconds=1)))
    assert shown(next_ticks(scheduled(cron), start, 20)) == shown(theirs)


def test_a_leap_day_has_a_latest_tick_years_later():
    leap = scheduled("0 3 29 2 *", "Europe/Paris")
    assert shown([latest_tick(leap, datetime(2031, 5, 5, tzinfo=UTC))]) == ["2028-02-29T03:00+01:00"]
    assert shown(next_ticks(leap, datetime(2097, 5, 5, tzinfo=UTC), 1)) == ["2104-02-29T03:00+01:00"]


def test_a_cron_that_had_no_tick_in_living_memory_is_an_error_and_no_endless_search(monkeypatch):
    monkeypatch.setattr("dpsynth.pipeline.reservation._LOOK_BACK", (timedelta(days=1),))
    with pytest.raises(ConfigError, match=r"schedule\.cron has had no tick"):
        latest_tick(scheduled("0 3 29 2 *"), datetime(2026, 5, 5, tzinfo=UTC))
