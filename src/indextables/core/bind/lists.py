"""IN lists: Spark compares column and list in one common type, which can change what a value means."""

from __future__ import annotations

from itertools import repeat
from typing import Final

from indextables.core.bind.coerce import digits_of, is_valid_text
from indextables.core.bind.kinds import kind_of
from indextables.core.predicate.nodes import Literal
from indextables.core.types import INTEGERS, DataType, DecimalType, PrimitiveType


def plain_values(dtype: DataType, values: tuple[Literal, ...]) -> tuple[Literal, ...] | None:
    """The usual list, integers or text of the column's own type, bound in one quick pass."""
    if any([literal.type is not None for literal in values]):  # noqa: C419  a generator takes twice as long
        return None
    listed = [literal.value for literal in values]
    kinds = set(
        map(type, listed)
    )  # not of the distinct values: 1.0, which is the same key as 1, counts
    raw = dict.fromkeys(listed)
    match dtype:
        case PrimitiveType(name) if name in INTEGERS and kinds == {int}:
            limit = 2 ** (INTEGERS[name] - 1)
            fits = -limit <= min(raw) and max(raw) < limit
        case PrimitiveType("string") if kinds == {str}:
            fits = is_valid_text("".join(raw))
        case _:
            return None
    return tuple(map(Literal, raw, repeat(dtype))) if fits else None


def as_double(literal: Literal) -> Literal:
    """One double in an IN list makes Spark compare the whole list as doubles."""
    if kind_of(literal) not in {"integer", "decimal"} or abs(literal.value) > 10**38:
        return literal
    return Literal(float(literal.value))


_LIST_KINDS: Final[dict[str, tuple[frozenset[str], ...]]] = {
    "date": (frozenset({"date", "string"}), frozenset({"timestamp"}), frozenset({"timestamp_ntz"})),
    "timestamp": (frozenset({"timestamp", "timestamp_ntz", "date", "string"}),),
    "timestamp_ntz": (frozenset({"timestamp_ntz", "date", "string"}), frozenset({"timestamp"})),
}


def one_common_type(dtype: DataType, kinds: set[str], values: tuple[Literal, ...]) -> bool:
    """Whether Spark's common type for column and list gives each value the meaning it has alone."""
    match dtype:
        case PrimitiveType(name) if name in _LIST_KINDS:
            return any(kinds <= allowed for allowed in _LIST_KINDS[name])
        case PrimitiveType(name) if name in INTEGERS:
            # text next to integers is read as bigint, next to anything else it moves the type
            exact = "decimal" not in kinds or "double" in kinds or _list_fits_38(dtype, values)
            return exact and ("string" not in kinds or kinds <= {"string", "integer"})
        case DecimalType():
            exact = "double" in kinds or kinds == {"string"} or _list_fits_38(dtype, values)
            return exact and ("string" not in kinds or kinds == {"string"})
        case _:
            return True


def _list_fits_38(dtype: DataType, values: tuple[Literal, ...]) -> bool:
    """Whether one decimal type of at most 38 digits holds the column and every number of the list."""
    sizes = [_decimal_size(value) for value in values if kind_of(value) in {"integer", "decimal"}]
    match dtype:
        case DecimalType(precision, scale):
            sizes.append((precision - scale, scale))
        case _:
            sizes.append((20, 0))
    return max(whole for whole, _ in sizes) + max(after for _, after in sizes) <= 38


def _decimal_size(literal: Literal) -> tuple[int, int]:
    if isinstance(literal.value, int):  # here Spark goes by the type, not by the digits
        return (10 if abs(literal.value) < 2**31 else 20), 0
    return digits_of(literal.value) if literal.value.is_finite() else (39, 0)
