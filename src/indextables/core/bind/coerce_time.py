"""Dates and timestamps: literals in the domain of the column, in the session's time zone."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any, Final

from indextables.core.bind.cuts import Coerced, Cut, Exact, Steps, Unknown, exact_cut, search_cut
from indextables.core.bind.kinds import kind_of, mismatch
from indextables.core.predicate.datetimes import DAY, is_fixed, parse_date, parse_timestamp, to_instant
from indextables.core.predicate.nodes import Literal
from indextables.core.types import PrimitiveType

_DAYS: Final = Steps(-(2**31), 2**31 - 1)
_MICROS: Final = Steps(-(2**63), 2**63 - 1)
# Days that have a midnight in every zone, as far as Python's calendar goes.
_EPOCH: Final = dt.date(1970, 1, 1).toordinal()
_MICRO: Final = dt.timedelta(microseconds=1)
_KNOWN_DAYS: Final = Steps(
    dt.date(2, 1, 1).toordinal() - _EPOCH, dt.date(9998, 12, 31).toordinal() - _EPOCH
)


def _physical(literal: Literal) -> Any:
    """Days or microseconds of a date or timestamp literal."""
    value = literal.value
    if isinstance(value, dt.datetime):
        # astimezone(UTC) would leave Python's calendar for times next to its ends
        local = (value.replace(tzinfo=None) - dt.datetime(1970, 1, 1)) // _MICRO  # noqa: DTZ001
        return local - (value.utcoffset() or dt.timedelta()) // _MICRO
    return value.toordinal() - _EPOCH if isinstance(value, dt.date) else value


def for_date(literal: Literal, zone: dt.tzinfo) -> Coerced:
    """Against a date column, which Spark casts to midnights when the literal is a timestamp."""
    match kind_of(literal):
        case "date":
            return exact_cut(_DAYS, _physical(literal))
        case "string":
            days = parse_date(literal.value)
            return (
                Unknown(f"{literal.value!r} is not a date") if days is None else exact_cut(_DAYS, days)
            )
        case "timestamp_ntz":
            return exact_cut(_DAYS, Fraction(_physical(literal), DAY))
        case "timestamp":
            return _date_against_instant(_physical(literal), zone)
        case _:
            return mismatch(literal, PrimitiveType("date"))


def _date_against_instant(micros: Any, zone: dt.tzinfo) -> Coerced:
    """Midnights never go back: a skipped one moves to the end of the gap, at most to the next."""
    cut = search_cut(
        _KNOWN_DAYS, lambda day: to_instant(day * DAY, zone) or 0, micros
    )  # never None here
    if isinstance(cut, Exact):
        return cut
    if not _KNOWN_DAYS.low < cut.first <= cut.after <= _KNOWN_DAYS.high:
        return Unknown("the calendar does not reach that far")
    return Cut(_DAYS, cut.first, cut.after)


def for_timestamp(literal: Literal, zone: dt.tzinfo) -> Coerced:
    """Against a timestamp column: Spark casts every literal to an instant."""
    match kind_of(literal):
        case "timestamp":
            return exact_cut(_MICROS, _physical(literal))
        case "timestamp_ntz":
            return _at_instant(to_instant(_physical(literal), zone))
        case "date":
            return _at_instant(to_instant(_physical(literal) * DAY, zone))
        case "string":
            found = parse_timestamp(literal.value)
            if found is None:
                return Unknown(f"{literal.value!r} is not a timestamp")
            return _at_instant(to_instant(found.micros, found.zone or zone))
        case _:
            return mismatch(literal, PrimitiveType("timestamp"))


def _at_instant(micros: int | None) -> Coerced:
    return (
        Unknown("the calendar does not reach that far")
        if micros is None
        else exact_cut(_MICROS, micros)
    )


def for_timestamp_ntz(literal: Literal, zone: dt.tzinfo) -> Coerced:
    """Against a timestamp_ntz column, which Spark casts to instants when the literal is one."""
    match kind_of(literal):
        case "timestamp_ntz":
            return exact_cut(_MICROS, _physical(literal))
        case "date":
            return exact_cut(_MICROS, _physical(literal) * DAY)
        case "timestamp" if is_fixed(zone):
            offset = zone.utcoffset(None) or dt.timedelta()
            return exact_cut(_MICROS, _physical(literal) + offset // _MICRO)
        case "timestamp":
            # In a gap 02:30 becomes 03:30, after 03:00: the cast does not keep the order.
            return Unknown("Spark casts the timestamp_ntz column to the session's time zone")
        case "string":
            found = parse_timestamp(literal.value)
            if found is None or found.zone is not None:
                return Unknown(f"{literal.value!r} is not a timestamp without a zone")
            return exact_cut(_MICROS, found.micros)
        case _:
            return mismatch(literal, PrimitiveType("timestamp_ntz"))
