"""A literal in the domain of the column it is compared with, exactly as Spark (ANSI) coerces.

Spark often casts the *column*: an int against 5.5 is compared as decimal, a long against 1e16 as
double, a date against a timestamp as timestamp. Where that cast keeps the order, the values of the
column that are equal to, below or above the literal can be found exactly; the literal becomes a
`Cut` between them. Where it does not, or where Spark would refuse, the answer is `Unknown`.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Context, Decimal
from typing import Final

from indextables.core.bind.coerce_time import for_date, for_timestamp, for_timestamp_ntz
from indextables.core.bind.cuts import (
    FLOAT32,
    Coerced,
    Exact,
    Steps,
    Unknown,
    exact_cut,
    float32_at,
    search_cut,
)
from indextables.core.bind.kinds import kind_of, mismatch
from indextables.core.predicate.nodes import Literal
from indextables.core.types import INTEGERS, DataType, DecimalType, PrimitiveType, type_name

_INTEGER_TEXT: Final = re.compile(r"[+-]?\d{1,4000}", re.ASCII)  # int() refuses more than 4300
_FLOAT_TEXT: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_SPECIAL_FLOATS: Final = re.compile(r"[+-]?inf(?:inity)?|nan", re.IGNORECASE)
_BOOLEANS: Final = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}
# 38 digits on either side of the point; the default context would round to 28.
_WIDE: Final = Context(prec=100)
_SAFE_DOUBLE: Final = 2**53


def coerce(literal: Literal, dtype: DataType, zone: dt.tzinfo, *, ordering: bool) -> Coerced:
    """The literal, which is not NULL, among the values of `dtype`; `ordering` for < <= > >=."""
    match dtype:
        case DecimalType():
            return _for_decimal(literal, dtype)
        case PrimitiveType("byte" | "short" | "integer" | "long" as name):
            return _for_integer(literal, INTEGERS[name], dtype, ordering=ordering)
        case PrimitiveType("float" | "double"):
            return _for_float(literal, dtype)
        case PrimitiveType("date"):
            return for_date(literal, zone)
        case PrimitiveType("timestamp"):
            return for_timestamp(literal, zone)
        case PrimitiveType("timestamp_ntz"):
            return for_timestamp_ntz(literal, zone)
        case PrimitiveType("boolean"):
            return _for_boolean(literal)
        case PrimitiveType("string"):
            return _for_string(literal)
        case PrimitiveType("binary"):
            return _for_binary(literal)
        case _:
            return Unknown(f"values of type {type_name(dtype)} have no order")


def _for_integer(literal: Literal, bits: int, dtype: DataType, *, ordering: bool) -> Coerced:
    steps = Steps(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    match literal.value:
        case int() as value if kind_of(literal) == "integer":
            return exact_cut(steps, value)
        case Decimal() as value if value.is_finite():
            # Spark rounds both sides when the common decimal needs more than 38 digits, but not
            # under < <= > >=, where it compares with the nearest integer.
            if not ordering and not _fits_38(value, _INTEGER_DIGITS[bits], 0):
                return Unknown("the common decimal type needs more than 38 digits")
            return exact_cut(steps, value)
        case float() as value:
            if math.isfinite(value) and (bits <= 32 or abs(value) < _SAFE_DOUBLE):
                return exact_cut(steps, value)
            return search_cut(steps, float, value)
        case str() as text:
            found = _INTEGER_TEXT.fullmatch(text.strip(" \t\r\n"))
            if found and -(2**63) <= int(found[0]) < 2**63:
                return exact_cut(steps, int(found[0]))
            return Unknown(f"{text!r} is not a bigint")
        case _:
            return mismatch(literal, dtype)


_INTEGER_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 20}


def _for_decimal(literal: Literal, dtype: DecimalType) -> Coerced:
    top, unit = 10**dtype.precision - 1, 10**dtype.scale
    steps = Steps(-top, top, lambda number: _decimal(number, dtype.scale))
    match literal.value:
        case int() | Decimal() as value if _is_exact_number(literal):
            if not _fits_38(Decimal(value), dtype.precision - dtype.scale, dtype.scale):
                return Unknown("the common decimal type needs more than 38 digits")
            return exact_cut(steps, Decimal(value).scaleb(dtype.scale, _WIDE))
        case float() as value:
            return search_cut(steps, lambda number: number / unit, value)
        case str() as text if (parsed := parse_float(text)) is not None:
            return search_cut(steps, lambda number: number / unit, parsed)
        case _:
            return mismatch(literal, dtype)


def _is_exact_number(literal: Literal) -> bool:
    return kind_of(literal) in {"integer", "decimal"} and Decimal(literal.value).is_finite()


def _decimal(unscaled: int, scale: int) -> Decimal:
    return Decimal(unscaled).scaleb(-scale, _WIDE)


def _fits_38(value: Decimal, whole_digits: int, scale: int) -> bool:
    """Whether a type that holds both the literal and the column's values has at most 38 digits."""
    whole, after_point = digits_of(value)
    return max(whole, whole_digits) + max(after_point, scale) <= 38


def digits_of(value: Decimal) -> tuple[int, int]:
    """Digits before and after the point, as the literal is written."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return max(len(digits) + exponent, 0), max(-exponent, 0)


def _for_float(literal: Literal, dtype: DataType) -> Coerced:
    match literal.value:
        case str() as text:
            value = parse_float(text)
        case int() | float() | Decimal() as number if kind_of(literal) in {
            "integer",
            "double",
            "decimal",
        }:
            value = _to_double(number)
        case _:
            return mismatch(literal, dtype)
    if value is None:
        return Unknown(f"{literal.value!r} is not a double")
    if math.isnan(value):
        return Exact(math.nan)  # one object for all: a NaN is no equal of another as a dict key
    if dtype == PrimitiveType("double"):
        return Exact(value)
    return search_cut(FLOAT32, float32_at, value)


def _to_double(number: float | Decimal) -> float | None:
    try:
        return float(number)
    except OverflowError:
        return None


def parse_float(text: str) -> float | None:
    """The double CAST(text AS DOUBLE) gives, None where it may be an error.

    >>> parse_float(" 1.5e3 "), parse_float("-Infinity"), parse_float("0x10")
    (1500.0, -inf, None)
    """
    bare = text.strip(" \t\r\n")
    readable = _FLOAT_TEXT.fullmatch(bare) or _SPECIAL_FLOATS.fullmatch(bare)
    return float(bare) if readable else None


def _for_boolean(literal: Literal) -> Coerced:
    value = literal.value
    if isinstance(value, str):
        value = _BOOLEANS.get(value.strip(" \t\r\n").lower())
    return Exact(value) if isinstance(value, bool) else mismatch(literal, PrimitiveType("boolean"))


def _for_string(literal: Literal) -> Coerced:
    if not isinstance(literal.value, str):
        return Unknown(f"Spark casts the string column to {kind_of(literal)}")
    return (
        Exact(literal.value)
        if is_valid_text(literal.value)
        else Unknown("the text is not valid Unicode")
    )


def _for_binary(literal: Literal) -> Coerced:
    match literal.value:
        case bytes() | bytearray() | memoryview() as value:
            return Exact(bytes(value))
        case str() as text if is_valid_text(text):
            return Exact(text.encode())
        case _:
            return mismatch(literal, PrimitiveType("binary"))


def is_valid_text(text: str | bytes) -> bool:
    """Whether UTF-8 can hold it: a lone surrogate is a Python character, but no Unicode."""
    if isinstance(text, bytes):
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
