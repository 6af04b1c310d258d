"""Dates and times as Spark reads them, in years Python has and in years it has not."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.core.expr.datetimes import (
    civil_from_days,
    date_text,
    days_from_civil,
    parse_date,
    parse_timestamp,
    timestamp_text,
    to_instant,
)
from indextables.core.expr.datetimes import session_zone
from indextables.errors import PredicateError
from support.times import DATES, TIMES


@pytest.mark.parametrize(("text", "days"), DATES)
def test_dates_are_read_as_spark_reads_them(text: str, days: int | None) -> None:
    """Short parts, missing parts, text after the date; None where Spark gives an error."""
    assert parse_date(text) == days


@pytest.mark.parametrize(("text", "micros", "has_zone"), TIMES)
def test_times_are_read_as_spark_reads_them(text: str, micros: int | None, has_zone: bool) -> None:
    """The local time, and whether the text names its zone; None where only Spark can say."""
    found = parse_timestamp(text)
    assert (found.micros if found else None) == micros
    assert bool(found and found.zone) is has_zone


@given(st.integers(-(2**31), 2**31 - 1))
def test_every_day_has_a_date_and_back(days: int) -> None:
    """The calendar repeats every 400 years, also where Python's ends."""
    assert days_from_civil(*civil_from_days(days)) == days


@given(st.dates())
def test_python_agrees_where_it_has_a_calendar(date: dt.date) -> None:
    """Years 1 to 9999."""
    days = date.toordinal() - dt.date(1970, 1, 1).toordinal()
    assert days_from_civil(date.year, date.month, date.day) == days
    assert parse_date(date_text(days)) == days


@given(st.integers(-(2**62), 2**62))
def test_a_written_time_is_read_back(micros: int) -> None:
    """Any microsecond, years with a sign too."""
    found = parse_timestamp(timestamp_text(micros))
    assert found is not None
    assert found.micros == micros


ZONES = ["UTC", "+05:30", "Europe/Berlin", "America/New_York", "Pacific/Apia", "Asia/Kathmandu"]


@given(st.sampled_from(ZONES), st.integers(-700_000, 2_900_000))
def test_midnights_never_go_back(zone: str, day: int) -> None:
    """What makes a date column comparable with an instant."""
    here = session_zone(zone)
    first, second = (to_instant(d * 86_400_000_000, here) for d in (day, day + 1))
    assert first is not None
    assert second is not None
    assert first <= second


def test_an_unknown_zone_names_a_way_out() -> None:
    """The package tzdata, on systems without zone files."""
    with pytest.raises(PredicateError, match="tzdata"):
        session_zone("Nowhere/City")
