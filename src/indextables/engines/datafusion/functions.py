"""DataFusion's functions and casts as ours, by their names in its Substrait plans and by types."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from indextables.core.bind.bound import unless_null
from indextables.core.expr.nodes import Expression, Mode, call, refs_of
from indextables.core.expr.zones import UTC
from indextables.core.predicate.like import like
from indextables.core.predicate.nodes import (
    RESULT,
    And,
    Call,
    IsNan,
    Literal,
    Opaque,
    Or,
    Predicate,
    Ref,
    StartsWith,
    over,
)
from indextables.core.types import DataType, PrimitiveType, StructType, is_float
from indextables.engines.exchange.protobuf import Message
from indextables.engines.exchange.substrait import Typed

_INTEGERS: Final = tuple(PrimitiveType(name) for name in ("byte", "short", "integer", "long"))
_BYTE, _SHORT, _INT, _LONG = _INTEGERS
_FLOAT, _DOUBLE, _STRING, _DATE, _NTZ, _TZ = (
    PrimitiveType(name) for name in ("float", "double", "string", "date", "timestamp_ntz", "timestamp")
)
# numbers of the kinds of a type in Substrait's messages
_TYPES: Final = {
    2: _BYTE,
    3: _SHORT,
    5: _INT,
    7: _LONG,
    10: _FLOAT,
    11: _DOUBLE,
    12: _STRING,
    16: _DATE,
}
_MODES: Final = {1: Mode.TRY, 2: Mode.ANSI}
_UNITS: Final = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


def cast_of(part: Typed, described: Message, failure: int) -> Typed | None:
    """Returns a cast; None where it is not known what DataFusion makes of these types."""
    value, source = part
    target = next((_TYPES[number] for number in described if number in _TYPES), None)
    mode = _MODES.get(failure)
    if source is None or target is None or mode is None:
        return None
    if source == target:
        return part
    if target == _DATE:
        if source not in {_NTZ, _TZ}:
            return None
        return Typed(call("cast", call("in calendar", value), type=_DATE, zone=UTC), _DATE)
    if target in _INTEGERS and is_float(source):
        return Typed(call("truncated cast", value, type=target, mode=mode), target)
    known = source in _INTEGERS and target in {*_INTEGERS, _FLOAT, _DOUBLE, _STRING}
    if known or (source, target) == (_FLOAT, _DOUBLE):
        return Typed(call("cast", value, type=target, mode=mode), target)
    return None


def function_of(name: str, parts: Sequence[Typed]) -> Typed | Predicate | None:
    """Returns a function of values; None where it is none that is known, or not of these types."""
    read = _FUNCTIONS.get(name)
    return None if read is None or not parts else read(parts)


_Read = Callable[[Sequence[Typed]], "Typed | Predicate | None"]


def _like(parts: Sequence[Typed]) -> Predicate | None:
    side, pattern = parts[0].value, _text(parts[1])
    # its escape character is a backslash, or what a third argument says
    plain = all(isinstance(p.value, Literal) and p.value.value is None for p in parts[2:])
    if parts[0].type != _STRING or pattern is None or "\\" in pattern or not plain:
        return None
    found = like(RESULT, pattern)
    if found is None or not isinstance(side, Ref | Call):
        return None
    return over(side, lambda ref: StartsWith(ref, found.prefix, found.exact, found.pattern))


def _text(part: Typed) -> str | None:
    value = part.value.value if isinstance(part.value, Literal) else None
    return value if isinstance(value, str) else None


def _nan_test(parts: Sequence[Typed]) -> Predicate | None:
    side = parts[0].value
    if not isinstance(side, Ref | Call) or parts[0].type is None or not is_float(parts[0].type):
        return None
    return over(side, lambda ref: Or((IsNan(ref), unless_null(ref, value=False))))


def _arithmetic(symbol: str) -> _Read:
    def read(parts: Sequence[Typed]) -> Typed | None:
        if len(parts) != 2 or parts[0].type != parts[1].type:
            return None
        kind = parts[0].type
        if kind in _INTEGERS:
            return _of_integers(symbol, parts, kind)
        if kind not in {_FLOAT, _DOUBLE} or symbol == "%":
            return None
        if symbol == "/" and not (isinstance(parts[1].value, Literal) and parts[1].value.value):
            return None
        return Typed(call(symbol, *_values(parts)), kind)

    return read


def _of_integers(symbol: str, parts: Sequence[Typed], kind: DataType) -> Typed | None:
    values = _values(parts)
    if symbol in "+-*":
        return Typed(call(symbol, *values, mode=Mode.LEGACY), kind)
    divisor = values[1].value if isinstance(values[1], Literal) else None
    if not divisor or divisor == -1:
        return None
    if symbol == "%":
        return Typed(call("%", *values), kind)
    return Typed(call("cast", call("div", *values), type=kind), kind)


def _values(parts: Sequence[Typed]) -> list[Expression]:
    return [Literal(p.value.value, p.type) if isinstance(p.value, Literal) else p.value for p in parts]


def _of_floats(name: str) -> _Read:
    def read(parts: Sequence[Typed]) -> Typed | None:
        known = len(parts) == 1 and parts[0].type in {_FLOAT, _DOUBLE}
        return Typed(call(name, parts[0].value), parts[0].type) if known else None

    return read


def _signed(name: str, mode: Mode) -> _Read:
    def read(parts: Sequence[Typed]) -> Typed | None:
        kind = parts[0].type
        if kind not in {*_INTEGERS, _FLOAT, _DOUBLE}:
            return None
        return Typed(call(name, parts[0].value, mode=mode), kind)

    return read


_PARTS: Final = {
    "year": "year",
    "quarter": "quarter",
    "month": "month",
    "day": "day",
    "doy": "dayofyear",
}


def _date_part(parts: Sequence[Typed]) -> Typed | None:
    unit, kind = (_text(parts[0]) or "").lower(), parts[1].type
    if kind not in {_DATE, _NTZ, _TZ}:
        return None
    known = call("in calendar", parts[1].value)
    if unit in _PARTS:
        date = known if kind == _DATE else call("cast", known, type=_DATE, zone=UTC)
        return Typed(call(_PARTS[unit], date), _INT)
    if unit in {"hour", "minute", "second"} and kind != _DATE:
        return Typed(call(unit, known, zone=UTC), _INT)
    return None


def _date_trunc(parts: Sequence[Typed]) -> Typed | None:
    unit, kind = (_text(parts[0]) or "").lower(), parts[1].type
    if unit not in _UNITS or kind not in {_NTZ, _TZ}:
        return None
    known = call("in calendar", parts[1].value)
    instant = known if kind == _TZ else call("cast", known, type=_TZ, zone=UTC)
    found = call("date_trunc", Literal(unit.upper(), _STRING), instant, zone=UTC)
    return Typed(found if kind == _TZ else call("cast", found, type=_NTZ, zone=UTC), kind)


def _of_text(name: str) -> _Read:
    def read(parts: Sequence[Typed]) -> Typed | None:
        known = len(parts) == 1 and parts[0].type == _STRING
        return Typed(call(name, parts[0].value), _STRING) if known else None

    return read


def _piece(name: str) -> _Read:
    def read(parts: Sequence[Typed]) -> Typed | None:
        numbers = [p.value.value if isinstance(p.value, Literal) else None for p in parts[1:]]
        if parts[0].type != _STRING or not all(
            isinstance(number, int) and 0 < number < 2**31 for number in numbers
        ):
            return None
        places: list[Any] = [Literal(number, _INT) for number in numbers]
        return Typed(call(name, parts[0].value, *places), _STRING)

    return read


def _field(parts: Sequence[Typed]) -> Typed | None:
    side, name = parts[0], _text(parts[1])
    if not isinstance(side.value, Ref) or not isinstance(side.type, StructType) or name is None:
        return None
    found = next((f for f in side.type if f.name == name), None)
    return None if found is None else Typed(Ref((*side.value.path, name)), found.type)


def _ilike(parts: Sequence[Typed]) -> Predicate | None:
    """Returns what is known of ILIKE: how the text begins, in some case."""
    side, pattern = parts[0].value, _text(parts[1])
    if pattern is None or not isinstance(side, Ref | Call) or parts[0].type != _STRING:
        return None
    # the long s is an s in another case, and the kelvin sign a k: lower() makes no s of the first
    head = re.match(r"[^%_\\SsKk\x80-\U0010ffff]*", pattern)
    assert head is not None
    lowered = call("lower in some way", side)
    begins = over(lowered, lambda ref: StartsWith(ref, head[0].lower(), exact=False))
    return And((begins, Opaque(f"ILIKE {pattern!r}", tuple(refs_of(side)), "only DataFusion can tell")))


def _chosen(name: str) -> _Read:
    def read(parts: Sequence[Typed]) -> Typed | None:
        kind = parts[0].type
        # of NaN and of the two zeros engines have views of their own
        if kind is None or is_float(kind) or any(part.type != kind for part in parts):
            return None
        return Typed(call(name, *_values(parts)), kind)

    return read


def _joined(parts: Sequence[Typed]) -> Typed | None:
    known = all(part.type == _STRING for part in parts)
    return Typed(call("concat", *_values(parts)), _STRING) if known else None


def _joined_without_nulls(parts: Sequence[Typed]) -> Typed | None:
    empty = Literal("", _STRING)
    return _joined([Typed(call("coalesce", part, empty), kind) for part, kind in parts])


_FUNCTIONS: Final[Mapping[str, _Read]] = {
    "get_field": _field,
    "ilike": _ilike,
    "str_concat": _joined,
    "concat": _joined_without_nulls,
    **{name: _chosen(name) for name in ("nullif", "greatest", "least")},
    "like": _like,
    "isnan": _nan_test,
    "add": _arithmetic("+"),
    "subtract": _arithmetic("-"),
    "multiply": _arithmetic("*"),
    "divide": _arithmetic("/"),
    **dict.fromkeys(("mod", "modulus"), _arithmetic("%")),
    "abs": _signed("abs", Mode.ANSI),
    **dict.fromkeys(("negate", "negative"), _signed("negative", Mode.LEGACY)),
    "floor": _of_floats("floor of float"),
    "ceil": _of_floats("ceil of float"),
    "round": _of_floats("round of float"),
    "trunc": _of_floats("trunc of float"),
    "sqrt": _of_floats("square root"),
    "date_part": _date_part,
    "date_trunc": _date_trunc,
    "lower": _of_text("lower in some way"),
    "upper": _of_text("upper in some way"),
    **dict.fromkeys(("btrim", "trim"), _of_text("trim")),
    "left": _piece("left"),
    **dict.fromkeys(("substr", "substring"), _piece("substring")),
}
