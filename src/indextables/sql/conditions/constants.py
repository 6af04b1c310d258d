"""Constant expressions, folded only where the result is surely the one Spark computes.

Integers that overflow, divisions by zero and types whose rules Spark applies at run time are not
folded: `Unreadable` sends the whole condition to the engine.
"""

from __future__ import annotations

import calendar
import datetime as dt
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Final

from indextables.core.bind.coerce import digits_of, parse_float
from indextables.core.expr.datetimes import (
    DAY,
    date_literal,
    is_fixed,
    parse_date,
    parse_timestamp,
    timestamp_literal,
    to_instant,
)
from indextables.core.predicate.nodes import Literal

_EXACT: Final = Context(prec=100)
_NUMBER: Final = re.compile(r"(.*?)(BD|[LSYFD]?)")
_INTEGER_TEXT: Final = re.compile(r"[+-]?\d+", re.ASCII)
_WIDTHS: Final = {"Y": 8, "S": 16, "L": 64}
_INTEGER_TYPES: Final = {
    **dict.fromkeys(("TINYINT", "BYTE"), 8),
    **dict.fromkeys(("SMALLINT", "SHORT"), 16),
    **dict.fromkeys(("INT", "INTEGER"), 32),
    **dict.fromkeys(("BIGINT", "LONG"), 64),
}
_MONTHS: Final = {"YEAR": 12, "MONTH": 1}
_MICROS: Final = {
    "WEEK": 7 * DAY,
    "DAY": DAY,
    "HOUR": DAY // 24,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
}


class Unreadable(Exception):  # noqa: N818
    """This is SQL, but not a constant whose value is certain here."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Months or microseconds, never both; `whole_days` where every unit was a day or a week."""

    months: int
    micros: int
    whole_days: bool


def number(text: str, sign: int = 1) -> Literal:
    """Returns the literal a number is written as: 5 an integer, 1.5 a decimal, 1e3 and 1.5D doubles."""
    if text.isdecimal():
        return Literal(_integer(sign * int(text), None))
    found = _NUMBER.fullmatch(text.upper())
    assert found is not None
    digits, suffix = found[1], found[2]
    if suffix in {"F", "D"} or ("E" in digits and not suffix):
        return Literal(_double(sign * float(digits), single=suffix == "F"))
    if suffix == "BD" or "." in digits:
        return Literal(_decimal(_EXACT.multiply(Decimal(digits), sign)))
    return Literal(_integer(sign * int(digits), _WIDTHS.get(suffix)))


def _double(value: float, *, single: bool) -> float:
    if single:
        value = _to_float32(value)
    if math.isinf(value):
        raise Unreadable
    return value


def _to_float32(value: float) -> float:
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def _decimal(value: Decimal) -> Decimal:
    if sum(digits_of(value)) > 38:
        raise Unreadable
    return value


def _integer(value: int, bits: int | None) -> int | Decimal:
    if -(2**63) <= value < 2**63 and bits is None:
        return value
    if bits is None:  # too long for a bigint: Spark makes it a decimal
        return _decimal(Decimal(value))
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise Unreadable
    return value


def interval(amounts: list[tuple[str, str]]) -> Interval:
    """Returns the interval of (amount, unit) pairs; months and days do not mix in Spark."""
    units = [(unit.removesuffix("S"), text.strip()) for text, unit in amounts]
    if not units or not all(_INTEGER_TEXT.fullmatch(text) for _, text in units):
        raise Unreadable
    if all(unit in _MONTHS for unit, _ in units):
        return Interval(sum(_MONTHS[unit] * int(text) for unit, text in units), 0, whole_days=False)
    if all(unit in _MICROS for unit, _ in units):
        whole_days = all(unit in {"DAY", "WEEK"} for unit, _ in units)
        return Interval(0, sum(_MICROS[unit] * int(text) for unit, text in units), whole_days)
    raise Unreadable


def typed_literal(type_name: str, text: str, zone: dt.tzinfo) -> Literal:
    """Returns `DATE '…'`, `TIMESTAMP '…'` and their like; a time without a zone is in the session's."""
    if type_name == "DATE":
        days = parse_date(text)
        if days is None:
            raise Unreadable
        return date_literal(days)
    found = parse_timestamp(text)
    if found is None:
        raise Unreadable
    if type_name == "TIMESTAMP_NTZ":
        return timestamp_literal(found.micros, zoned=False)
    instant = to_instant(found.micros, found.zone or zone)
    if instant is None:
        raise Unreadable
    return timestamp_literal(instant, zoned=True)


def cast(literal: Literal, to: str, zone: dt.tzinfo) -> Literal:
    """Returns the constant as another type, for the casts whose result does not depend on settings."""
    match to, literal.value:
        case _, None:
            return literal
        case (("DATE" | "TIMESTAMP" | "TIMESTAMP_LTZ" | "TIMESTAMP_NTZ"), str() as text):
            return typed_literal(to, text, zone)
        case (("DOUBLE" | "FLOAT" | "REAL"), int() | float() | Decimal() | str() as value):
            return Literal(_as_float(value, single=to != "DOUBLE"))
        case ("STRING", str()) | ("BOOLEAN", bool()):
            return literal
        case _, int() | str() as value if to in _INTEGER_TYPES and not isinstance(value, bool):
            if isinstance(value, str) and not _INTEGER_TEXT.fullmatch(value.strip(" \t\r\n")):
                raise Unreadable
            return Literal(_integer(int(value), _INTEGER_TYPES[to]))
        case _:
            raise Unreadable


def _as_float(value: float | Decimal | str, *, single: bool) -> float:
    if isinstance(value, bool):
        raise Unreadable
    parsed = parse_float(value) if isinstance(value, str) else float(value)
    if parsed is None:
        raise Unreadable
    return _to_float32(parsed) if single else parsed


def calculate(op: str, left: Literal | Interval, right: Literal | Interval, zone: dt.tzinfo) -> Literal:
    """Returns `left op right`, exactly as Spark computes it."""
    if isinstance(left, Interval):
        if op != "+" or isinstance(right, Interval):
            raise Unreadable
        left, right = right, left
    assert isinstance(left, Literal)
    if isinstance(right, Interval):
        if op not in {"+", "-"} or left.type:
            raise Unreadable
        return _shift(left.value, right, -1 if op == "-" else 1, zone)
    a, b = left.value, right.value
    if left.type or right.type:  # a date or time beyond Python's calendar
        raise Unreadable
    if a is None or b is None:
        return Literal(None)
    if isinstance(b, dt.date) and op == "+":
        a, b = b, a
    if isinstance(a, dt.date) and not isinstance(a, dt.datetime):
        return _add_days(a, b, op)
    return Literal(_arithmetic(op, a, b))


def _arithmetic(op: str, a: Any, b: Any) -> Any:
    kinds = {type(a), type(b)}
    if not kinds <= {int, float, Decimal} or op not in _OPERATIONS:
        raise Unreadable
    if float in kinds or (op == "/" and kinds == {int}):
        return _float_arithmetic(op, float(a), float(b))
    if op == "/":  # the scale of a decimal quotient is a rule of its own
        raise Unreadable
    if Decimal in kinds:
        return _decimal_arithmetic(op, Decimal(a), Decimal(b))
    bits = 32 if all(-(2**31) <= side < 2**31 for side in (a, b)) else 64
    return _integer(_OPERATIONS[op](a, b), bits)


_OPERATIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}


def _float_arithmetic(op: str, a: float, b: float) -> float:
    if op == "/" and b == 0:
        raise Unreadable
    return float(_OPERATIONS[op](a, b))


def _decimal_arithmetic(op: str, a: Decimal, b: Decimal) -> Decimal:
    (whole_a, scale_a), (whole_b, scale_b) = digits_of(a), digits_of(b)
    if op == "*":
        needed = whole_a + scale_a + whole_b + scale_b + 1
        result = _EXACT.multiply(a, b)
    else:
        needed = max(whole_a, whole_b) + max(scale_a, scale_b) + 1
        result = _EXACT.add(a, b) if op == "+" else _EXACT.subtract(a, b)
    if needed > 38:  # Spark would round
        raise Unreadable
    return result


def _add_days(date: dt.date, days: Any, op: str) -> Literal:
    if type(days) is not int or op not in {"+", "-"}:
        raise Unreadable
    return _moved(date, days if op == "+" else -days)


def _moved(date: Any, days: int) -> Literal:
    try:
        return Literal(date + dt.timedelta(days=days))
    except OverflowError as error:
        raise Unreadable from error


def _shift(value: Any, by: Interval, sign: int, zone: dt.tzinfo) -> Literal:
    match value:
        case None:
            return Literal(None)
        case dt.datetime():
            # Spark adds days and months to the local time, which is the instant only without DST.
            if value.tzinfo is not None and not is_fixed(zone):
                raise Unreadable
            return Literal(_shift_time(value, by, sign, zone))
        case dt.date() if by.months:
            return Literal(_add_months(value, sign * by.months))
        case dt.date() if by.whole_days:
            return _moved(value, sign * by.micros // DAY)
        case _:
            raise Unreadable


def _shift_time(value: dt.datetime, by: Interval, sign: int, zone: dt.tzinfo) -> Any:
    try:
        if not by.months:
            return value + dt.timedelta(microseconds=sign * by.micros)
        if value.tzinfo is None:
            return _add_months(value, sign * by.months)
        return _add_months(value.astimezone(zone), sign * by.months).astimezone(dt.UTC)
    except OverflowError as error:
        raise Unreadable from error


def _add_months(value: Any, months: int) -> Any:
    """Returns the same day of another month, or its last day if there is no such day."""
    years, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    if not dt.MINYEAR <= years <= dt.MAXYEAR:
        raise Unreadable
    last = calendar.monthrange(years, month + 1)[1]
    return value.replace(year=years, month=month + 1, day=min(value.day, last))
