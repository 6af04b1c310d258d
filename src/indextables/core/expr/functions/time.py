"""Functions of dates and times: their parts, truncation, and days, months and microseconds added."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from indextables.core.expr.functions.arithmetic import affine
from indextables.core.expr.functions.function import (
    Function,
    Range,
    Signature,
    Site,
    Windows,
    bounded,
    periodic,
    whole,
)
from indextables.core.expr.functions.instants import (
    DATE,
    MICROS_OF_DAY,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    beyond,
    known_span,
    pieces_between,
    to_local,
)
from indextables.core.expr.image import Array, Image, Pieces
from indextables.core.expr.nodes import Literal, Mode
from indextables.core.expr.vectors import Vector
from indextables.core.expr.zones import UTC, Zone
from indextables.core.states import space_of
from indextables.core.types import DataType, PrimitiveType

_INT: Final = PrimitiveType("integer")
_LONG: Final = PrimitiveType("long")
_STRING: Final = PrimitiveType("string")
_INTEGERS: Final = tuple(PrimitiveType(name) for name in ("byte", "short", "integer"))
_TIMES: Final = (TIMESTAMP, TIMESTAMP_NTZ)
_DAYS, _LOCALS = space_of(DATE), space_of(TIMESTAMP_NTZ)
_YEAR: Final = 365.2425

# The calendar, on arrays of days.


def years(days: Array) -> Array:
    """Returns the year of each day."""
    return days.astype("M8[D]").astype("M8[Y]").astype(np.int64) + 1970


def months(days: Array) -> Array:
    """Returns the number of each day's month, January 1970 being 0."""
    return days.astype("M8[D]").astype("M8[M]").astype(np.int64)


def first_of_month(number: Array) -> Array:
    """Returns the first day of numbered months."""
    return number.astype("M8[M]").astype("M8[D]").astype(np.int64)


def _first_of_year(year: Array) -> Array:
    return first_of_month((year - 1970) * 12)


def _of_date(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    return ((DATE,), _INT) if types[0] in {DATE, *_TIMES} else None


def _of_time(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    kind = types[0]
    if kind == DATE:
        return (TIMESTAMP,), _INT
    return ((kind,), _INT) if kind in _TIMES else None


def _year(site: Site) -> Sequence[Image]:
    return (replace(whole(site, years), inverse=_first_of_year),)


def _part_of_year(f: Callable[[Array], Array], end: int) -> Callable[[Site], Sequence[Image]]:
    def images(site: Site) -> Sequence[Image]:
        def starts(low: int, high: int) -> Array:
            first, last = (int(years(np.array([day]))[0]) for day in (low, high))
            return _first_of_year(np.arange(first, last + 1))

        return (periodic(site, starts, f, (1, end), lambda low, high: (high - low) / _YEAR),)

    return images


def _part_of_month(site: Site) -> Sequence[Image]:
    def starts(low: int, high: int) -> Array:
        first, last = (int(months(np.array([day]))[0]) for day in (low, high))
        return first_of_month(np.arange(first, last + 1))

    f = lambda x: x - first_of_month(months(x)) + 1  # noqa: E731
    return (periodic(site, starts, f, (1, 32), lambda low, high: 12 * (high - low) / _YEAR),)


def _part_of_week(shift: int, plus: int) -> Callable[[Site], Sequence[Image]]:
    """Returns the images of a day in a week that begins `shift` days after 1970-01-01, counted from `plus`."""

    def images(site: Site) -> Sequence[Image]:
        def starts(low: int, high: int) -> Array:
            return np.arange((low - shift) // 7, (high - shift) // 7 + 1) * 7 + shift

        f = lambda x: (x - shift) % 7 + plus  # noqa: E731
        return (periodic(site, starts, f, (plus, plus + 7), lambda low, high: (high - low) / 7),)

    return images


def _part_of_day(period: int, unit: int, end: int) -> Callable[[Site], Sequence[Image]]:
    """Returns the images of the hour, minute or second of a clock, which begins again after `period` microseconds."""

    def images(site: Site) -> Sequence[Image]:
        local = local_times(site)
        windows = local_windows(site.windows, site.zone if local else UTC)

        def starts(low: int, high: int) -> Array:
            return np.arange(low // period, high // period + 1) * period

        inner = Site((TIMESTAMP_NTZ,), site.result, site.constants, site.mode, UTC, windows)
        f = lambda x: x % period // unit  # noqa: E731
        count = lambda low, high: (high - low) / period  # noqa: E731
        return (*local, periodic(inner, starts, f, (0, end), count))

    return images


def local_times(site: Site) -> tuple[Pieces, ...]:
    """Returns what leads from the site's argument to local times: nothing for those without a zone."""
    return (to_local(site.zone),) if site.types[site.varying] == TIMESTAMP else ()


def local_windows(windows: Windows | None, zone: Zone) -> Windows | None:
    """Returns the local times that instants in these windows can have."""
    if windows is None:
        return None
    most, least = int(zone.offsets.max()), int(zone.offsets.min())
    found: list[tuple[int, int]] = []
    first, end = _LOCALS.universe
    for low, high in windows:
        start, stop = max(low + least, first), min(high + most, end - 1)
        if found and start <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(stop, found[-1][1]))
        else:
            found.append((start, stop))
    return tuple(found)


# Truncation

_UNITS: Final = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "YEAR"),
    "QUARTER": "QUARTER",
    **dict.fromkeys(("MONTH", "MON", "MM"), "MONTH"),
    "WEEK": "WEEK",
}
_CLOCK_UNITS: Final = {
    **dict.fromkeys(("DAY", "DD"), MICROS_OF_DAY),
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1000,
    "MICROSECOND": 1,
}


def truncated_days(days: Array, unit: str) -> Array:
    """Returns the first day of each day's year, quarter, month or week (Monday)."""
    match unit:
        case "YEAR":
            return first_of_month(months(days) // 12 * 12)
        case "QUARTER":
            return first_of_month(months(days) // 3 * 3)
        case "MONTH":
            return first_of_month(months(days))
        case _:
            return (days + 3) // 7 * 7 - 3


def _inside_calendar(site: Site, f: Callable[[Array], Array], margin: int = 400) -> Pieces:
    """Returns a monotone function of days, of which nothing is said near the ends of the type."""
    low, end = _DAYS.universe
    first, last = low + margin, end - 1 - margin
    ends = np.array([first]), np.array([last])
    return Pieces(site.argument, site.space, *ends, f, anything=(low, first, last + 1, end))


def _trunc_signature(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    kind, unit = types
    return ((DATE, _STRING), DATE) if kind in {DATE, *_TIMES} and unit == _STRING else None


def _trunc(site: Site) -> Sequence[Image] | None:
    unit = site.constants[1]
    if not isinstance(unit, str) or site.varying != 0 or unit.upper() not in _UNITS:
        return None
    return (_inside_calendar(site, lambda days: truncated_days(days, _UNITS[unit.upper()])),)


def _date_trunc_signature(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    unit, kind = types
    if unit != _STRING or kind not in {DATE, *_TIMES}:
        return None
    # Spark casts a time without a zone to an instant first
    return (_STRING, TIMESTAMP), TIMESTAMP


def _date_trunc(site: Site) -> Sequence[Image] | None:
    unit = site.constants[0]
    if not isinstance(unit, str) or site.varying != 1:
        return None
    zone = site.zone
    first, last = known_span(zone)
    if (days := _UNITS.get(unit.upper())) is not None:
        # a midnight that happens twice is the one with the offset the instant has, unlike that of a date
        f = lambda x: zone.to_instant(  # noqa: E731
            truncated_days(zone.to_local(x) // MICROS_OF_DAY, days) * MICROS_OF_DAY, zone.offset_at(x)
        )
    elif (size := _CLOCK_UNITS.get(unit.upper())) is not None:
        f = (lambda x: x // size * size) if size <= 1_000_000 else (lambda x: _on_clock(x, size, zone))
    else:
        return None
    ends = pieces_between(zone.starts, first, last)
    return (Pieces(site.argument, site.space, *ends, f, anything=beyond(first, last)),)


def _on_clock(x: Array, size: int, zone: Zone) -> Array:
    """Returns the instants truncated on the clock; one that happens twice keeps the offset it has."""
    offsets = zone.offset_at(x)
    return zone.to_instant((x + offsets) // size * size, offsets)


def _last_day(site: Site) -> Sequence[Image]:
    return (_inside_calendar(site, lambda days: first_of_month(months(days) + 1) - 1),)


def _last_day_signature(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    return ((DATE,), DATE) if types[0] in {DATE, *_TIMES} else None


# Adding


def _days_signature(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    date, days = types
    return ((DATE, _INT), DATE) if date in {DATE, *_TIMES} and days in _INTEGERS else None


def _days_added(sign: int) -> Callable[[Site], Sequence[Image] | None]:
    """Days wrap around like an int, under ANSI too."""

    def images(site: Site) -> Sequence[Image] | None:
        k = site.constants[1 - site.varying]
        slope = 1 if site.varying == 0 else sign
        constant = sign * k if site.varying == 0 else k
        found = affine(site, slope, constant, Mode.LEGACY)
        return None if found is None else (found,)

    return images


def _difference_signature(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    return ((DATE, DATE), _INT) if all(kind in {DATE, *_TIMES} for kind in types) else None


def _difference(site: Site) -> Sequence[Image] | None:
    k = site.constants[1 - site.varying]
    slope, constant = (1, -k) if site.varying == 0 else (-1, k)
    found = affine(site, slope, constant, Mode.LEGACY)
    return None if found is None else (found,)


def _wrapped(y: Array) -> Array:
    return (y + 2**31) % 2**32 - 2**31


def _difference_rows(site: Site, vectors: Sequence[Vector]) -> Vector:
    one, two = vectors
    nowhere = np.zeros_like(one.null)
    y = _wrapped(one.values - two.values)
    return Vector(site.result, y, one.null | two.null, nowhere, one.error | two.error)


def _difference_ranges(site: Site, parts: Sequence[Range]) -> Range:
    one, two = parts
    low, high = one.low - two.high, one.high - two.low
    wraps = (low < -(2**31)) | (high >= 2**31)
    low, high = np.where(wraps, -(2**31), low), np.where(wraps, 2**31 - 1, high)
    nowhere = np.zeros_like(one.null)
    value = one.value & two.value
    return Range(site.result, low, high, value, one.null | two.null, nowhere, one.error | two.error)


def _months_signature(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    date, count = types
    return ((DATE, _INT), DATE) if date in {DATE, *_TIMES} and count in _INTEGERS else None


def _months_added(site: Site) -> Sequence[Image] | None:
    k = site.constants[1]
    if site.varying != 0 or abs(k) > 12 * 10_000:
        return None

    later = partial(_months_later, k=k)
    return (_inside_calendar(site, later, margin=400 + 31 * abs(k)),)


def _months_later(days: Array, k: int) -> Array:
    """Returns days some months later: of a month that is too short the last day."""
    month = months(days)
    first, after = first_of_month(month + k), first_of_month(month + k + 1)
    return np.minimum(first + days - first_of_month(month), after - 1)


def _interval_signature(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    kind, size = types
    return ((kind, _LONG), kind) if kind in _TIMES and size == _LONG else None


def _interval_added(site: Site) -> Sequence[Image] | None:
    """Returns instants with an interval added: whole days on the clock, what is left as time that passes."""
    size = site.constants[1]
    if site.varying != 0 or abs(size) > MICROS_OF_DAY * 366 * 3000:
        return None
    zone = site.zone if site.types[0] == TIMESTAMP else UTC
    days, rest = divmod(abs(size), MICROS_OF_DAY)
    days, rest = (days, rest) if size >= 0 else (-days, -rest)
    first, last = known_span(zone)
    first, last = first + abs(size), last - abs(size)

    def f(x: Array) -> Array:
        if not days:
            return x + rest
        offsets = zone.offset_at(x)
        return zone.to_instant(x + offsets + days * MICROS_OF_DAY, offsets) + rest

    # f falls back where the new local time comes out of a gap: cut there, whatever the offset it had
    gaps = zone.local_starts[1:][zone.offsets[1:] > zone.offsets[:-1]] - days * MICROS_OF_DAY
    arrivals = [gaps - offset for offset in np.unique(zone.offsets)]
    starts = np.concatenate([zone.starts, *arrivals]) if days else zone.starts[:1]
    ends = pieces_between(starts, first, last)
    return (Pieces(site.argument, site.space, *ends, f, anything=beyond(first, last)),)


def _months_to_time_signature(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    kind, count = types
    return ((kind, _INT), kind) if kind in _TIMES and count in _INTEGERS else None


def _months_to_time(site: Site) -> Sequence[Image] | None:
    """Returns times with months added on the clock, each day of the last ones of a month on its own.

    Of a month that is too short several days become the last one, and the time of day begins again.
    """
    k = site.constants[1]
    if site.varying != 0 or abs(k) > 12 * 1000:
        return None
    zone = site.zone if site.types[0] == TIMESTAMP else UTC
    first, last = known_span(zone)
    margin = (31 * abs(k) + 31) * MICROS_OF_DAY
    first, last = first + margin, last - margin

    def f(x: Array) -> Array:
        offsets = zone.offset_at(x)
        days, clock = np.divmod(x + offsets, MICROS_OF_DAY)
        return zone.to_instant(_months_later(days, k) * MICROS_OF_DAY + clock, offsets)

    def starts(low: int, high: int) -> Array:
        ends = np.array([low, high]) // MICROS_OF_DAY
        begin, stop = months(ends + np.array([-2, 2])).tolist()
        firsts = first_of_month(np.arange(begin, stop + 2))
        days = (firsts[:, None] + np.array([-3, -2, -1, 0])) * MICROS_OF_DAY
        # what comes out of an hour that clocks skip falls back, too
        gaps = zone.local_starts[1:][zone.offsets[1:] > zone.offsets[:-1]]
        day, clock = np.divmod(gaps, MICROS_OF_DAY)
        out = (_months_later(day, -k)[:, None] + np.arange(4)) * MICROS_OF_DAY + clock[:, None]
        local = np.concatenate([days.ravel(), out.ravel()])
        cuts = np.concatenate([(local[:, None] - np.unique(zone.offsets)).ravel(), zone.starts])
        return np.append([low], np.unique(cuts[(cuts > low) & (cuts <= high)]))

    ends = np.array([first]), np.array([last])
    known = Pieces(site.argument, site.argument, *ends, lambda x: x, anything=beyond(first, last))
    a_day = 4 * len(np.unique(zone.offsets)) / 30
    count = lambda low, high: (high - low) / MICROS_OF_DAY * a_day  # noqa: E731
    return (known, periodic(_within_span(site, first, last), starts, f, site.space.universe, count))


def _within_span(site: Site, first: int, last: int) -> Site:
    """Returns the same call where values are only within a span."""
    if site.windows is None:
        return site
    cut = ((max(low, first), min(high, last)) for low, high in site.windows)
    return replace(site, windows=tuple(pair for pair in cut if pair[0] <= pair[1]))


# Numbers of seconds, and back


def _seconds(unit: int, *, truncates: bool = False) -> Callable[[Site], Sequence[Image]]:
    def images(site: Site) -> Sequence[Image]:
        if truncates:
            return (whole(site, lambda x: x // unit + ((x < 0) & (x % unit != 0))),)
        return (whole(site, lambda x: x // unit),)

    return images


def _seconds_signature(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    return ((TIMESTAMP,), _LONG) if types[0] in {TIMESTAMP, DATE} else None


def _unix_signature(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    return (
        ((TIMESTAMP,), _LONG) if types and types[0] in {TIMESTAMP, DATE} and len(types) == 1 else None
    )


def _from_seconds(unit: int) -> Callable[[Site], Sequence[Image]]:
    def images(site: Site) -> Sequence[Image]:
        # an overflow is an error in every mode
        ansi = Site(site.types, site.result, site.constants, Mode.ANSI, site.zone)
        return (bounded(ansi, lambda x: x * unit, lambda x: x * unit),)

    return images


def _from_seconds_signature(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    return ((_LONG,), TIMESTAMP) if types[0] in {*_INTEGERS, _LONG} else None


def _plain(source: DataType, target: DataType) -> Callable[..., Signature | None]:
    def signature(types: Sequence[DataType], _: DataType | None) -> Signature | None:
        return ((source,), target) if types[0] == source else None

    return signature


def _same(site: Site) -> Sequence[Image]:
    return (whole(site, lambda x: x),)


_HOUR: Final = 3_600_000_000
_ONE_DATE: Final = ((DATE,),)
_ONE_TIME: Final = ((TIMESTAMP,), (TIMESTAMP_NTZ,))
_TRUNCS: Final = tuple((DATE, unit) for unit in ("YEAR", "QUARTER", "MON", "WEEK"))
_DATE_TRUNCS: Final = tuple(
    (unit, TIMESTAMP) for unit in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
)
_INTERVALS: Final = tuple(
    (kind, Literal(size, _LONG))
    for kind in _TIMES
    for size in (_HOUR, -MICROS_OF_DAY, 36 * _HOUR, 40 * MICROS_OF_DAY)
)

FUNCTIONS: Final = (
    Function("year", _of_date, _year, catalyst="Year", samples=_ONE_DATE),
    Function(
        "quarter",
        _of_date,
        _part_of_year(lambda x: months(x) % 12 // 3 + 1, 5),
        catalyst="Quarter",
        samples=_ONE_DATE,
    ),
    Function(
        "month",
        _of_date,
        _part_of_year(lambda x: months(x) % 12 + 1, 13),
        catalyst="Month",
        samples=_ONE_DATE,
    ),
    Function("day", _of_date, _part_of_month, catalyst="DayOfMonth", samples=_ONE_DATE),
    Function(
        "dayofyear",
        _of_date,
        _part_of_year(lambda x: x - _first_of_year(years(x)) + 1, 367),
        catalyst="DayOfYear",
        samples=_ONE_DATE,
    ),
    Function("dayofweek", _of_date, _part_of_week(3, 1), catalyst="DayOfWeek", samples=_ONE_DATE),
    Function("weekday", _of_date, _part_of_week(4, 0), catalyst="WeekDay", samples=_ONE_DATE),
    Function(
        "hour",
        _of_time,
        _part_of_day(MICROS_OF_DAY, _HOUR, 24),
        zoned=True,
        catalyst="Hour",
        samples=_ONE_TIME,
    ),
    Function(
        "minute",
        _of_time,
        _part_of_day(_HOUR, 60_000_000, 60),
        zoned=True,
        catalyst="Minute",
        samples=_ONE_TIME,
    ),
    Function(
        "second",
        _of_time,
        _part_of_day(60_000_000, 1_000_000, 60),
        zoned=True,
        catalyst="Second",
        samples=_ONE_TIME,
    ),
    Function("trunc", _trunc_signature, _trunc, catalyst="TruncDate", samples=_TRUNCS),
    Function(
        "date_trunc",
        _date_trunc_signature,
        _date_trunc,
        zoned=True,
        catalyst="TruncTimestamp",
        samples=_DATE_TRUNCS,
    ),
    Function("last_day", _last_day_signature, _last_day, catalyst="LastDay", samples=_ONE_DATE),
    Function(
        "date_add",
        _days_signature,
        _days_added(1),
        catalyst="DateAdd",
        samples=((DATE, 7), (DATE, -40)),
    ),
    Function(
        "date_sub",
        _days_signature,
        _days_added(-1),
        catalyst="DateSub",
        samples=((DATE, 7), (Literal(100, DATE), _INT)),
    ),
    Function(
        "datediff",
        _difference_signature,
        _difference,
        _difference_rows,
        _difference_ranges,
        catalyst="DateDiff",
        samples=((DATE, Literal(100, DATE)), (Literal(100, DATE), DATE), (DATE, DATE)),
    ),
    Function(
        "add_months",
        _months_signature,
        _months_added,
        catalyst="AddMonths",
        samples=((DATE, 1), (DATE, -13)),
    ),
    Function(
        "add_months_to_time",
        _months_to_time_signature,
        _months_to_time,
        zoned=True,
        samples=tuple((kind, k) for kind in _TIMES for k in (1, -1, 12, -25)),
    ),
    Function("add_micros", _interval_signature, _interval_added, zoned=True, samples=_INTERVALS),
    Function(
        "unix_timestamp", _unix_signature, _seconds(1_000_000, truncates=True), samples=((TIMESTAMP,),)
    ),
    Function(
        "unix_seconds",
        _seconds_signature,
        _seconds(1_000_000),
        catalyst="UnixSeconds",
        samples=((TIMESTAMP,),),
    ),
    Function(
        "unix_millis",
        _seconds_signature,
        _seconds(1000),
        catalyst="UnixMillis",
        samples=((TIMESTAMP,),),
    ),
    Function("unix_micros", _seconds_signature, _same, catalyst="UnixMicros", samples=((TIMESTAMP,),)),
    Function("unix_date", _plain(DATE, _INT), _same, catalyst="UnixDate", samples=_ONE_DATE),
    Function(
        "date_from_unix_date",
        _plain(_INT, DATE),
        _same,
        catalyst="DateFromUnixDate",
        samples=((_INT,),),
    ),
    Function(
        "timestamp_seconds",
        _from_seconds_signature,
        _from_seconds(1_000_000),
        catalyst="SecondsToTimestamp",
        samples=((_LONG,),),
    ),
    Function(
        "timestamp_millis",
        _from_seconds_signature,
        _from_seconds(1000),
        catalyst="MillisToTimestamp",
        samples=((_LONG,),),
    ),
    Function(
        "timestamp_micros",
        _from_seconds_signature,
        _same,
        catalyst="MicrosToTimestamp",
        samples=((_LONG,),),
    ),
)
