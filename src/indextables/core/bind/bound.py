"""Comparisons with a literal that the column's type does not hold, from the values it does hold."""

from __future__ import annotations

import struct
from typing import Any, assert_never

from indextables.core.bind.coerce import Cut, kind_of
from indextables.core.predicate.nodes import (
    And,
    Compare,
    CompareOp,
    Constant,
    IsIn,
    IsNull,
    Literal,
    NanRule,
    Not,
    Opaque,
    Or,
    Predicate,
    Ref,
)
from indextables.core.predicate.to_sql import to_sql
from indextables.core.predicate.tree import fold, rebuild
from indextables.core.types import INTEGERS, DataType, DecimalType, PrimitiveType, StructType, resolve
from indextables.errors import UnknownColumnError


def unless_null(ref: Ref, value: bool) -> Predicate:
    """Returns this constant for every value, but NULL for a NULL."""
    unknown = Constant(None)
    return Or((Not(IsNull(ref)), unknown)) if value else And((IsNull(ref), unknown))


def compare_cut(op: CompareOp, ref: Ref, dtype: DataType, cut: Cut, nan: NanRule) -> Predicate:
    """Returns the comparison with a literal that lies between, or spans several of, the column's values."""
    match op:
        case "<":
            return _below(ref, dtype, cut, cut.first, nan)
        case "<=":
            return _below(ref, dtype, cut, cut.after, nan)
        case ">":
            return _from(ref, dtype, cut, cut.after, nan)
        case ">=":
            return _from(ref, dtype, cut, cut.first, nan)
        case "=":
            return within(ref, dtype, cut, nan)
        case "<>":
            return Not(within(ref, dtype, cut, nan))
        case "<=>":
            return And((Not(IsNull(ref)), within(ref, dtype, cut, nan)))
        case _:
            assert_never(op)


def _below(ref: Ref, dtype: DataType, cut: Cut, end: int, nan: NanRule) -> Predicate:
    steps = cut.steps
    if end <= steps.low or end > steps.high:
        return unless_null(ref, end > steps.high)
    return Compare("<=", ref, Literal(steps.value(end - 1), dtype), nan)


def _from(ref: Ref, dtype: DataType, cut: Cut, start: int, nan: NanRule) -> Predicate:
    steps = cut.steps
    if start <= steps.low or start > steps.high:
        return unless_null(ref, start <= steps.low)
    return Compare(">=", ref, Literal(steps.value(start), dtype), nan)


def within(ref: Ref, dtype: DataType, cut: Cut, nan: NanRule) -> Predicate:
    """Returns what equals the literal: what lies between the first and the last value that does."""
    if cut.first >= cut.after:
        return unless_null(ref, value=False)
    return And((_from(ref, dtype, cut, cut.first, nan), _below(ref, dtype, cut, cut.after, nan)))


# Conditions of engines whose coercions are not Spark's: only what needs no coercion is read.

_WHY = "engines differ in how they compare {kind} with this column"


def uncoerced(predicate: Predicate, schema: StructType) -> Predicate:
    """Returns the same condition, Opaque wherever a literal is not of its column's own kind.

    Every engine compares two integers alike. A text with a date, a naive time with an instant, or a
    double with a decimal, each compares in its own way, and a double as a literal of a float column
    is rounded by some and not by others.
    """

    def visit(node: Predicate, inner: tuple[Predicate, ...]) -> Predicate:
        match node:
            case Compare(_, Ref(path), Literal() as value) | Compare(_, Literal() as value, Ref(path)):
                return _checked(node, schema, path, (value,))
            case IsIn(Ref(path), values):
                return _checked(node, schema, path, values)
            case _:
                return rebuild(node, inner)

    return fold(predicate, visit)


def _checked(
    node: Predicate, schema: StructType, path: tuple[str, ...], values: tuple[Literal, ...]
) -> Predicate:
    try:
        found, dtype = resolve(schema, path, case_sensitive=True)
    except UnknownColumnError:
        return Opaque(to_sql(node), (), "it names no column of the table")
    for value in values:
        if not is_of_kind(value, dtype):
            return Opaque(to_sql(node), (found,), _WHY.format(kind=kind_of(value)))
    return node


def is_of_kind(literal: Literal, dtype: DataType) -> bool:
    """Returns whether every engine compares this literal with such a column by its value alone."""
    kind = kind_of(literal)
    match dtype:
        case _ if kind == "null":
            return True
        case PrimitiveType(name) if name in INTEGERS:
            return kind in {"integer", "decimal"} or (kind == "double" and _is_small(literal.value))
        case DecimalType():
            return kind in {"integer", "decimal"}
        case PrimitiveType("double"):
            return kind == "double" or (kind == "integer" and _is_small(literal.value))
        case PrimitiveType("float"):
            return kind in {"double", "integer"} and _is_single(literal.value)
        case PrimitiveType(name):
            return kind == name
        case _:
            return False


def _is_small(value: float) -> bool:
    """Returns whether integers as large as this one are doubles without rounding."""
    return abs(value) < 2**53


def _is_single(value: Any) -> bool:
    try:
        single = struct.unpack("<f", struct.pack("<f", value))[0]
    except (OverflowError, struct.error):
        return False
    return bool(single == value) or value != value  # noqa: PLR0124  NaN is unlike itself
