"""Dates and timestamps as Spark reads them from text, on the proleptic Gregorian calendar.

Text that is not surely readable is None: the caller then leaves the condition to the engine.
"""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from indextables.core.expr.nodes import Literal
from indextables.core.types import PrimitiveType
from indextables.errors import PredicateError

DAY: Final = 86_400_000_000
"""Microseconds of a day."""

DATE: Final = PrimitiveType("date")
TIMESTAMP: Final = PrimitiveType("timestamp")
TIMESTAMP_NTZ: Final = PrimitiveType("timestamp_ntz")

_YEAR: Final = r"([+-]?)(\d{4,7})"
_DATE: Final = re.compile(rf"{_YEAR}(?:-(\d\d?)(?:-(\d\d?)(?:[ T].*)?)?)?", re.DOTALL | re.ASCII)
_TIMESTAMP: Final = re.compile(
    rf"{_YEAR}(?:-(\d\d?)(?:-(\d\d?)"
    r"(?:[ T](\d\d?)(?::(\d\d?)(?::(\d\d?)(?:\.(\d{0,9}))?)?)? ?([A-Za-z+-][\w/+:-]*)?)?)?)?",
    re.ASCII,
)
_SURE_ZONE: Final = re.compile(r"Z|UTC|GMT|UT|(?:UTC|GMT|UT)?[+-].*|\w+/.*", re.ASCII)
_EPOCH: Final = dt.date(1970, 1, 1).toordinal()
_EPOCH_TIME: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001
_MICRO: Final = dt.timedelta(microseconds=1)


class Timestamp(NamedTuple):
    """Local microseconds, and the zone the text itself named."""

    micros: int
    zone: dt.tzinfo | None


def days_from_civil(year: int, month: int, day: int) -> int | None:
    """Days since 1970-01-01 of any year, also before 1 and after 9999; None if there is no such day.

    >>> days_from_civil(1970, 1, 2), days_from_civil(2023, 2, 29), days_from_civil(10000, 1, 1)
    (1, None, 2932897)
    """
    # Four hundred years repeat exactly, so any year can be counted in one Python knows.
    cycles, within = divmod(year - 1, 400)
    try:
        return dt.date(within + 1, month, day).toordinal() - _EPOCH + cycles * 146_097
    except ValueError:
        return None


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Returns year, month and day; the inverse of `days_from_civil`."""
    cycles, within = divmod(days + _EPOCH - 1, 146_097)
    date = dt.date.fromordinal(within + 1)
    return date.year + 400 * cycles, date.month, date.day


def parse_date(text: str) -> int | None:
    """Returns the days CAST(text AS DATE) gives: 2024, 2024-1 and 2024-01-01 with anything after it.

    >>> parse_date("1970-1-2T23:59"), parse_date("tomorrow")
    (1, None)
    """
    found = _DATE.fullmatch(text.strip(" \t\r\n"))
    return _days(found) if found else None


def _days(found: re.Match[str]) -> int | None:
    year = int(found[2]) * (-1 if found[1] == "-" else 1)
    return days_from_civil(year, int(found[3] or 1), int(found[4] or 1))


def parse_timestamp(text: str) -> Timestamp | None:
    """Returns the local time CAST(text AS TIMESTAMP) reads, and the zone if the text ends in one.

    >>> parse_timestamp("1970-01-01 00:00:01Z")
    Timestamp(micros=1000000, zone=datetime.timezone.utc)
    """
    found = _TIMESTAMP.fullmatch(text.strip(" \t\r\n"))
    days = _days(found) if found else None
    if found is None or days is None:
        return None
    hour, minute, second = (int(part or 0) for part in found.group(5, 6, 7))
    # Java and Python disagree on what EST and its like mean.
    zone = find_zone(found[9]) if found[9] and _SURE_ZONE.fullmatch(found[9]) else None
    if hour > 23 or minute > 59 or second > 59 or (found[9] and zone is None):
        return None
    # Spark keeps six digits and drops the rest without rounding.
    fraction = int((found[8] or "")[:6].ljust(6, "0"))
    return Timestamp(
        days * DAY + (hour * 3600 + minute * 60 + second) * 1_000_000 + fraction,
        zone,
    )


def to_instant(local_micros: int, zone: dt.tzinfo) -> int | None:
    """Returns the instant of a local time as Java resolves it; None outside the years Python knows.

    A time that a clock change skipped moves forward by the gap, one that happened twice is the first:
    for Python both are fold=0.
    """
    if zone is dt.UTC:
        return local_micros
    try:
        local = _EPOCH_TIME + local_micros * _MICRO
        offset = zone.utcoffset(local)
    except OverflowError:
        return None
    assert offset is not None
    return local_micros - offset // _MICRO


def date_literal(days: int) -> Literal:
    """Returns a date constant; years that Python has no date for stay days."""
    try:
        return Literal(dt.date.fromordinal(days + _EPOCH))
    except (ValueError, OverflowError):
        return Literal(days, DATE)


def timestamp_literal(micros: int, *, zoned: bool) -> Literal:
    """Returns a timestamp constant; years that Python has no datetime for stay microseconds."""
    try:
        naive = _EPOCH_TIME + micros * _MICRO
    except OverflowError:
        return Literal(micros, TIMESTAMP if zoned else TIMESTAMP_NTZ)
    return Literal(naive.replace(tzinfo=dt.UTC) if zoned else naive)


def date_text(days: int) -> str:
    """Returns the date as SQL spells it; years above 9999 have a sign, as Spark wants them."""
    year, month, day = civil_from_days(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{month:02}-{day:02}"


def timestamp_text(micros: Any) -> str:
    """Returns the local time as SQL spells it, with six digits after the second."""
    days, rest = divmod(micros, DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{date_text(int(days))} {clock}.{int(fraction):06}"


# Zones by their names.

_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d\d?)(?::(\d\d)(?::(\d\d))?)?", re.ASCII)


@lru_cache(maxsize=256)
def find_zone(name: str) -> dt.tzinfo | None:
    """Returns the zone of that name or fixed offset, None if there is no such zone."""
    if name.upper() in {"Z", "UTC", "GMT", "UT"}:
        return dt.UTC
    if found := _OFFSET.fullmatch(name):
        hours, minutes, seconds = (int(part or 0) for part in found.group(2, 3, 4))
        if hours > 18 or minutes > 59 or seconds > 59:
            return None
        offset = dt.timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return dt.timezone(-offset if found[1] == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def session_zone(name: str) -> dt.tzinfo:
    """Returns the zone that local times without one are read in, or PredicateError."""
    zone = find_zone(name) if isinstance(name, str) else None
    if zone is None:
        raise PredicateError(
            f"no time zone is called {name!r}",
            hint="use a name such as UTC, Europe/Berlin or +02:00; named zones need the system's time "
            "zone files or the package tzdata",
            timezone=name,
        )
    return zone


def is_fixed(zone: dt.tzinfo) -> bool:
    """Returns whether the zone's offset never changes, so that local order is the order of instants."""
    return isinstance(zone, dt.timezone)
