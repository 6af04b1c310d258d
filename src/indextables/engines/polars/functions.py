"""Polars' functions as ours: a name is a meaning only with the types it is computed in.

Integers wrap around, `//` goes down, and a division by a constant is a multiplication by its reciprocal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from indextables.core.expr.nodes import Condition, Expression, Literal, Mode, Unknown, call
from indextables.core.expr.zones import UTC
from indextables.core.types import DataType, PrimitiveType, is_float

_NAMES: Final = {
    "Int8": "byte",
    "Int16": "short",
    "Int32": "integer",
    "Int64": "long",
    "Float32": "float",
    "Float64": "double",
    "String": "string",
    "Boolean": "boolean",
    "Date": "date",
    "Binary": "binary",
}
INTEGERS: Final = tuple(PrimitiveType(name) for name in ("byte", "short", "integer", "long"))
_BYTE, _SHORT, _INT, _LONG = INTEGERS
_FLOAT, _DOUBLE, _STRING, _DATE, _NTZ, _TZ = (
    PrimitiveType(name) for name in ("float", "double", "string", "date", "timestamp_ntz", "timestamp")
)
_DAY: Final = 86_400_000_000
_UNITS: Final = {
    "1y": "YEAR",
    "1q": "QUARTER",
    "1mo": "MONTH",
    "1w": "WEEK",
    "1d": "DAY",
    "1h": "HOUR",
    "1m": "MINUTE",
    "1s": "SECOND",
}


class Typed(NamedTuple):
    """A value and the type Polars computes it in; None if that is no type of a table's columns, or not known."""

    value: Expression
    type: DataType | None


def dtype_of(dtype: Any) -> DataType | None:
    """Returns a type of Polars, or its JSON, as ours."""
    match dtype:
        case {"Literal": inner}:
            return dtype_of(inner)
        case str() as name if name in _NAMES:
            return PrimitiveType(_NAMES[name])  # type: ignore[arg-type]
        case {"Datetime": ["Microseconds", zone]}:
            return _zoned(zone)
        case pl.Datetime(time_unit="us", time_zone=zone):
            return _zoned(zone)
        case pl.DataType():
            return dtype_of(str(dtype))
        case _:
            return None


def _zoned(zone: str | None) -> DataType | None:
    return _NTZ if zone is None else _TZ if zone == "UTC" else None


def cast_of(part: Typed, target: DataType | None, options: Any) -> Typed | None:
    """Returns a cast; None where Polars casts in a way that is not known."""
    value, source = part
    if source is None or target is None or isinstance(value, Unknown | Condition):
        return None
    if source == target:
        return part
    mode = {"Strict": Mode.ANSI, "NonStrict": Mode.TRY}.get(options)
    match source, target:
        case _ if source in INTEGERS and target in INTEGERS:
            widens = INTEGERS.index(source) < INTEGERS.index(target)
            if mode is None and not widens:
                return None
            return Typed(call("cast", value, type=target, mode=mode or Mode.ANSI), target)
        case _ if target in INTEGERS and is_float(source):
            name = "truncated cast"
        case _ if source in INTEGERS and target in {_FLOAT, _DOUBLE, _STRING}:
            name = "cast"
        case (_, _) if {source, target} == {_FLOAT, _DOUBLE}:
            name = "cast"
        case (PrimitiveType("date"), PrimitiveType("timestamp_ntz")) | (
            PrimitiveType("timestamp_ntz"),
            PrimitiveType("date"),
        ):
            return Typed(call("cast", _known(value), type=target, zone=UTC), target)
        case _:
            return None
    return None if mode is None else Typed(call(name, value, type=target, mode=mode), target)


def _known(value: Expression) -> Expression:
    return call("in calendar", value)


# Operators


def operation_of(op: str, one: Typed, two: Typed) -> Typed | None:
    """Returns `one op two`; None where it is not known what Polars makes of these types."""
    if any(isinstance(side.value, Unknown | Condition) for side in (one, two)):
        return None
    if op in {"Plus", "Minus"} and (moved := _moved(op, one, two)) is not None:
        return moved
    kind = one.type
    if kind is None or kind != two.type:
        return None
    if kind == _STRING:
        return Typed(call("concat", one.value, two.value), kind) if op == "Plus" else None
    if kind in INTEGERS:
        return _of_integers(op, one.value, two.value, kind)
    return _of_floats(op, one.value, two.value, kind) if kind in {_FLOAT, _DOUBLE} else None


_SYMBOLS: Final = {"Plus": "+", "Minus": "-", "Multiply": "*"}


def _of_integers(op: str, one: Expression, two: Expression, kind: DataType) -> Typed | None:
    if op in _SYMBOLS:
        return Typed(call(_SYMBOLS[op], _typed(one, kind), _typed(two, kind), mode=Mode.LEGACY), kind)
    if not isinstance(two, Literal) or not two.value:
        return None
    if op == "FloorDivide":
        return Typed(call("floor quotient", one, _typed(two, kind)), kind)
    if op == "Modulus" and two.value > 0:
        return Typed(call("floor remainder", one, _typed(two, kind)), kind)
    if op == "TrueDivide":
        wide = call("cast", one, type=_DOUBLE)
        return Typed(call("*", wide, Literal(1.0 / two.value, _DOUBLE)), _DOUBLE)
    return None


def _of_floats(op: str, one: Expression, two: Expression, kind: DataType) -> Typed | None:
    if op in _SYMBOLS:
        return Typed(call(_SYMBOLS[op], _typed(one, kind), _typed(two, kind)), kind)
    if op not in {"TrueDivide", "FloorDivide"} or not isinstance(two, Literal) or not two.value:
        return None
    if two.value != two.value or abs(two.value) == float("inf"):
        return None
    number = np.float32 if kind == _FLOAT else np.float64
    quotient = call("*", one, Literal(float(number(1.0) / number(two.value)), kind))
    return Typed(call("floor of float", quotient) if op == "FloorDivide" else quotient, kind)


def _typed(value: Expression, kind: DataType) -> Expression:
    return Literal(value.value, kind) if isinstance(value, Literal) else value


def _moved(op: str, one: Typed, two: Typed) -> Typed | None:
    """Returns a date or time with a constant duration added or taken away."""
    if op == "Plus" and one.type is None:
        one, two = two, one
    size = two.value.value if isinstance(two.value, Literal) else None
    if not isinstance(size, Duration) or one.type not in {_DATE, _NTZ, _TZ}:
        return None
    micros = size.micros if op == "Plus" else -size.micros
    if one.type == _DATE:
        if micros % _DAY or abs(micros) > _DAY * 1_000_000:
            return None
        return Typed(call("date_add", _known(one.value), Literal(micros // _DAY, _INT)), _DATE)
    if abs(micros) > 10**17:
        return None
    added = call("add_micros", _known(one.value), Literal(micros, _LONG), zone=UTC)
    return Typed(added, one.type)


class Duration(NamedTuple):
    """A constant length of time."""

    micros: int


# Functions

_Read = Callable[[Any, Sequence[Typed]], Typed | None]


def function_of(function: Any, parts: Sequence[Typed]) -> Typed | None:
    """Returns a function of values; None where it is none that is known, or not of these types."""
    if any(isinstance(part.value, Unknown | Condition) for part in parts) or not parts:
        return None
    match function:
        case {"TemporalExpr": str(name)}:
            return _temporal(name, parts)
        case {"TemporalExpr": {"TimeStamp": unit}}:
            return _timestamp(unit, parts[0])
        case {"StringExpr": {"ConcatHorizontal": {"delimiter": "", "ignore_nulls": False}}}:
            known = all(part.type == _STRING for part in parts)
            values = [_typed(part.value, _STRING) for part in parts]
            return Typed(call("concat", *values), _STRING) if known else None
        case {"StringExpr": str(name)}:
            return _of_text(name, parts)
        case {"Round": {"decimals": 0, "mode": mode}}:
            return _rounded(_MODES.get(mode), parts[0])
        case {"Pow": "Sqrt"} if parts[0].type in {_FLOAT, _DOUBLE}:
            return Typed(call("square root", parts[0].value), parts[0].type)
        case "Floor":
            return _rounded("floor of float", parts[0])
        case "Ceil":
            return _rounded("ceil of float", parts[0])
        case "Negate" | "Abs":
            return _signed(function, parts[0])
        case "Coalesce" | "FillNull":
            return _chosen("coalesce", parts)
        case "MaxHorizontal" | "MinHorizontal" if parts[0].type not in {_FLOAT, _DOUBLE}:
            return _chosen("greatest" if function.startswith("Max") else "least", parts)
        case _:
            return None


_MODES: Final = {"HalfToEven": "round to even", "HalfAwayFromZero": "round of float"}


def _rounded(name: str | None, part: Typed) -> Typed | None:
    if part.type in INTEGERS:
        return part
    known = name is not None and part.type in {_FLOAT, _DOUBLE}
    return Typed(call(name, part.value), part.type) if known else None  # type: ignore[arg-type]


def _signed(name: str, part: Typed) -> Typed | None:
    function = {"Negate": "negative"}.get(name, "abs")
    if part.type in INTEGERS:
        return Typed(call(function, part.value, mode=Mode.LEGACY), part.type)
    return Typed(call(function, part.value), part.type) if part.type in {_FLOAT, _DOUBLE} else None


def _chosen(name: str, parts: Sequence[Typed]) -> Typed | None:
    kind = parts[0].type
    if kind is None or any(part.type != kind for part in parts):
        return None
    return Typed(call(name, *(_typed(part.value, kind) for part in parts)), kind)


_DATE_PARTS: Final[Mapping[str, tuple[str, DataType, int]]] = {
    "Year": ("year", _INT, 0),
    "Quarter": ("quarter", _BYTE, 0),
    "Month": ("month", _BYTE, 0),
    "Day": ("day", _BYTE, 0),
    "OrdinalDay": ("dayofyear", _SHORT, 0),
    "WeekDay": ("weekday", _BYTE, 1),
}
_CLOCK: Final = {"Hour": "hour", "Minute": "minute", "Second": "second"}


def _temporal(name: str, parts: Sequence[Typed]) -> Typed | None:
    part, kind = parts[0], parts[0].type
    if kind not in {_DATE, _NTZ, _TZ}:
        return None
    known = _known(part.value)
    date = known if kind == _DATE else call("cast", known, type=_DATE, zone=UTC)
    if name in _DATE_PARTS:
        function, result, plus = _DATE_PARTS[name]
        found: Expression = call(function, date)
        found = call("+", found, Literal(plus, _INT)) if plus else found
        return Typed(found if result == _INT else call("cast", found, type=result), result)
    if name in _CLOCK and kind != _DATE:
        return Typed(call("cast", call(_CLOCK[name], known, zone=UTC), type=_BYTE), _BYTE)
    match name:
        case "Date":
            return Typed(date, _DATE)
        case "MonthEnd" if kind == _DATE:
            return Typed(call("last_day", known), _DATE)
        case "MonthStart" if kind == _DATE:
            return Typed(call("trunc", known, Literal("MONTH", _STRING)), _DATE)
        case "Truncate":
            return _truncated(part, parts[1])
        case _:
            return None


def _truncated(part: Typed, every: Typed) -> Typed | None:
    unit = _UNITS.get(str(every.value.value)) if isinstance(every.value, Literal) else None
    if unit is None:
        return None
    known, kind = _known(part.value), part.type
    if kind == _DATE:
        if unit not in {"YEAR", "QUARTER", "MONTH", "WEEK"}:
            return None
        return Typed(call("trunc", known, Literal(unit, _STRING)), _DATE)
    instant = known if kind == _TZ else call("cast", known, type=_TZ, zone=UTC)
    found = call("date_trunc", Literal(unit, _STRING), instant, zone=UTC)
    return Typed(found if kind == _TZ else call("cast", found, type=_NTZ, zone=UTC), kind)


def _timestamp(unit: str, part: Typed) -> Typed | None:
    name = {"Milliseconds": "unix_millis", "Microseconds": "unix_micros"}.get(unit)
    if name is None or part.type not in {_NTZ, _TZ}:
        return None
    known = _known(part.value)
    instant = known if part.type == _TZ else call("cast", known, type=_TZ, zone=UTC)
    return Typed(call(name, instant), _LONG)


def _of_text(name: str, parts: Sequence[Typed]) -> Typed | None:
    text = parts[0].value
    if parts[0].type != _STRING:
        return None
    numbers = [part.value.value if isinstance(part.value, Literal) else None for part in parts[1:]]
    match name, numbers:
        case "Lowercase", []:
            return Typed(call("lower in some way", text), _STRING)
        case "Uppercase", []:
            return Typed(call("upper in some way", text), _STRING)
        case "Head", [int(count)] if 0 < count < 2**31:
            return Typed(call("left", text, Literal(count, _INT)), _STRING)
        case "Slice", [int(start), int(count)] if 0 <= start < 2**30 and 0 < count < 2**31:
            places = Literal(start + 1, _INT), Literal(count, _INT)
            return Typed(call("substring", text, *places), _STRING)
        case (("StripChars" | "StripCharsStart" | "StripCharsEnd"), [" "]):
            return Typed(
                call({"StripChars": "trim", "StripCharsStart": "ltrim"}.get(name, "rtrim"), text),
                _STRING,
            )
        case _:
            return None
