"""Types of numbers: those Spark computes in, and those of results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from indextables.core.expr.functions.function import Signature
from indextables.core.expr.nodes import Mode
from indextables.core.types import INTEGERS, DataType, DecimalType, PrimitiveType, is_float

ALL_MODES: Final = (Mode.ANSI, Mode.LEGACY, Mode.TRY)
INT: Final = PrimitiveType("integer")
LONG: Final = PrimitiveType("long")
DOUBLE: Final = PrimitiveType("double")
FLOAT: Final = PrimitiveType("float")


def is_integer(dtype: DataType) -> bool:
    """Returns whether this is one of the four integer types."""
    return isinstance(dtype, PrimitiveType) and dtype.name in INTEGERS


def as_decimal(dtype: DataType) -> DecimalType | None:
    """Returns the decimal type that holds an integer type, or the decimal itself."""
    if isinstance(dtype, DecimalType):
        return dtype
    digits = {"byte": 3, "short": 5, "integer": 10, "long": 20}
    return DecimalType(digits[dtype.name], 0) if is_integer(dtype) else None  # type: ignore[union-attr]


def common_number(types: Sequence[DataType]) -> DataType | None:
    """Returns the type Spark takes numbers in together; None where one is no number, or decimals meet."""
    if any(not (is_integer(t) or is_float(t) or isinstance(t, DecimalType)) for t in types):
        return None
    if any(isinstance(t, DecimalType) for t in types):
        return DOUBLE if any(map(is_float, types)) else None
    if any(t == DOUBLE for t in types):
        return DOUBLE
    if any(map(is_float, types)):
        # Spark takes int and float as float, but long and float too, and rounds the long
        return PrimitiveType("float")
    order = list(INTEGERS)
    return max(types, key=lambda t: order.index(t.name))  # type: ignore[union-attr]


def _adjusted(precision: int, scale: int) -> DecimalType:
    """Returns the decimal of at most 38 digits that Spark makes of a wider one: it keeps 6 after the point."""
    if precision <= 38:
        return DecimalType(precision, scale)
    whole_digits = precision - scale
    return DecimalType(38, max(38 - whole_digits, min(scale, 6)))


def sum_type(one: DecimalType, two: DecimalType) -> DecimalType:
    """Returns the type of a sum of decimals."""
    scale = max(one.scale, two.scale)
    digits = max(one.precision - one.scale, two.precision - two.scale)
    return _adjusted(digits + scale + 1, scale)


def product_type(one: DecimalType, two: DecimalType) -> DecimalType:
    """Returns the type of a product of decimals."""
    return _adjusted(one.precision + two.precision + 1, one.scale + two.scale)


def quotient_type(one: DecimalType, two: DecimalType) -> DecimalType:
    """Returns the type of a quotient of decimals."""
    scale = max(6, one.scale + two.precision + 1)
    return _adjusted(one.precision - one.scale + two.scale + scale, scale)


def binary(
    decimal: Callable[[DecimalType, DecimalType], DecimalType] | None, *, fraction: bool = False
) -> Callable[[Sequence[DataType], DataType | None], Signature | None]:
    """Returns the signature of an operation on two numbers; `decimal` says the type of decimals, if known."""

    def signature(types: Sequence[DataType], known: DataType | None) -> Signature | None:
        common = common_number(types)
        if common is not None and fraction and is_integer(common):
            common = DOUBLE
        if common is not None:
            return (common, common), common
        one, two = (as_decimal(t) for t in types)
        if one is None or two is None or decimal is None:
            return None
        found = known if isinstance(known, DecimalType) else decimal(one, two)
        return (one, two), found

    return signature


def integral(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    """Returns bigints: what `div` takes and gives."""
    return ((LONG, LONG), LONG) if all(map(is_integer, types)) else None


def same_integer(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    """Returns the common integer type of both arguments."""
    common = common_number(types)
    return ((common, common), common) if common is not None and is_integer(common) else None


def number(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    """Returns a number's own type."""
    (kind,) = types
    is_number = is_integer(kind) or is_float(kind) or isinstance(kind, DecimalType)
    return ((kind,), kind) if is_number else None
