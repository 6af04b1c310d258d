"""Expressions on rows: numbers where they compute, and for conditions True or False, never NULL."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, Final, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.bind.bind import bind
from indextables.core.types import StructType, schema_from_arrow
from indextables.errors import PredicateError
from indextables.parquet.read.row_filter import column, is_evaluable, to_row_mask
from indextables.table.query.evaluate import find_column, is_missing, leaf_predicate, to_predicate
from indextables.table.query.expressions import (
    Absolute,
    Arithmetic,
    ArithmeticOp,
    Column,
    Comparison,
    ComparisonOp,
    Expression,
    Inverse,
    Logic,
    Matches,
    Member,
    Missing,
    Value,
)

_COMPARE: Final[dict[ComparisonOp, Callable[[Any, Any], Any]]] = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_COMPUTE: Final[dict[ArithmeticOp, Callable[[Any, Any], Any]]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
    "/": pc.divide,
    "**": pc.power,
}
_LOGIC: Final[dict[str, Callable[[Any, Any], Any]]] = {"&": pc.and_, "|": pc.or_, "^": pc.xor}


def mask_of(expression: Expression, data: pa.Table, timezone: str) -> Any:
    """One bit per row: the condition's truth, which pandas knows only as True or False."""
    schema = schema_from_arrow(data.schema)
    bound = bind(to_predicate(expression, schema), schema, timezone=timezone)
    if is_evaluable(bound):
        return to_row_mask(bound, data)
    truth = _mask(expression, data, schema, timezone)
    return pa.repeat(truth, data.num_rows) if isinstance(truth, pa.Scalar) else truth


def _mask(expression: Expression, data: pa.Table, schema: StructType, timezone: str) -> Any:
    match expression:
        case Logic(op, parts):
            return reduce(_LOGIC[op], (_mask(part, data, schema, timezone) for part in parts))
        case Inverse(inner):
            return pc.invert(_mask(inner, data, schema, timezone))
        case Value(bool() as value):
            return pa.scalar(value)
    leaf = leaf_predicate(expression, schema)
    if leaf is not None:
        return to_row_mask(bind(leaf, schema, timezone=timezone), data)
    return _computed_mask(expression, data, schema)


def _computed_mask(expression: Expression, data: pa.Table, schema: StructType) -> Any:
    match expression:
        case Comparison(op, left, right):
            sides = (numbers(left, data, schema), numbers(right, data, schema))
            return pc.fill_null(_COMPARE[op](*_common(*sides)), op == "!=")
        case Member(inner, values):
            return _is_member(numbers(inner, data, schema), values)
        case Missing(inner):
            return pc.is_null(numbers(inner, data, schema), nan_is_null=True)
        case Matches(Column(name), pattern):
            texts = column(data, find_column(schema, name)[0])
            if not pa.types.is_string(texts.type):
                raise PredicateError(f"column {name!r} is {texts.type}, and regex_match searches text")
            return pc.fill_null(pc.match_substring_regex(texts, pattern), False)
        case _:
            raise PredicateError(
                f"{expression} is not a condition", hint="filter by a comparison, or use apply()"
            )


def _is_member(found: Any, values: tuple[Any, ...]) -> Any:
    """Integers by their value, everything else as doubles, of which there is one zero; NaN is in no list."""
    listed = [_number_constant(value).as_py() for value in values if not is_missing(value)]
    if pa.types.is_integer(found.type) and all(isinstance(value, int) for value in listed):
        return pc.is_in(pc.cast(found, pa.int64()), value_set=pa.array(listed, pa.int64()))
    zero = pa.scalar(0.0)  # lists are hashed, and -0.0 has another hash
    wanted = pc.add(pa.array(list(map(float, listed)), pa.float64()), zero)
    return pc.is_in(pc.add(pc.cast(found, pa.float64(), safe=False), zero), value_set=wanted)


def numbers(expression: Expression, data: pa.Table, schema: StructType | None = None) -> Any:
    """The values an expression computes, NULL where one of its columns is NULL."""
    schema = schema or schema_from_arrow(data.schema)
    match expression:
        case Column(name):
            return _number_column(name, data, schema)
        case Value(value):
            return _number_constant(value)
        case Absolute(inner):
            return pc.abs(_widened(numbers(inner, data, schema)))
        case Arithmetic(op, left, right):
            return _compute(op, numbers(left, data, schema), numbers(right, data, schema))
        case Comparison() | Member() | Missing() | Matches() | Logic() | Inverse():
            raise PredicateError(
                f"{expression} is a condition, not a number", hint="filter by it: q[…]"
            )
        case _:
            assert_never(expression)


def _number_column(name: str, data: pa.Table, schema: StructType) -> Any:
    values = column(data, find_column(schema, name)[0])
    if pa.types.is_decimal(values.type):
        return pc.cast(values, pa.float64())
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        raise PredicateError(
            f"column {name!r} is {values.type}, and arithmetic needs numbers", column=name
        )
    return values


def _number_constant(value: Any) -> pa.Scalar:
    if isinstance(value, np.floating) and not isinstance(value, np.float64):
        return pa.scalar(float(value), pa.float32())
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        raise PredicateError(f"{value!r} is not a number", hint="arithmetic needs numbers")
    if isinstance(plain, int) and not -(2**63) <= plain < 2**63:  # as an unsigned one it would wrap
        raise PredicateError(f"{value!r} is no 64-bit integer", hint="write it as a float")
    return pa.scalar(plain)


def _compute(op: ArithmeticOp, left: Any, right: Any) -> Any:
    if op == "**" and not pa.types.is_integer(right.type):
        raise PredicateError("an exponent must be an integer", hint="as in ArcticDB")
    left, right = _common(left, right)
    whole = pa.types.is_integer(left.type)
    if op == "/" or (op == "**" and whole and pc.min(pc.fill_null(right, 0)).as_py() < 0):
        left, right = (pc.cast(side, pa.float64(), safe=False) for side in (left, right))
    return _COMPUTE[op](left, right)


def _common(left: Any, right: Any) -> tuple[Any, Any]:
    """Both as int64, or as float32 where nothing is wider, or as float64."""
    types = (left.type, right.type)
    if all(map(pa.types.is_integer, types)):
        wanted = pa.int64()
    elif any(_is_single(side) for side in (left, right)) and all(map(_fits_single, (left, right))):
        wanted = pa.float32()
    else:
        wanted = pa.float64()
    return pc.cast(left, wanted, safe=False), pc.cast(right, wanted, safe=False)


def _is_single(side: Any) -> bool:
    return bool(side.type == pa.float32())


def _fits_single(side: Any) -> bool:
    # a bare Python float takes the precision of the column beside it
    return _is_single(side) or (isinstance(side, pa.Scalar) and pa.types.is_floating(side.type))


def _widened(values: Any) -> Any:
    return pc.cast(values, pa.int64()) if pa.types.is_integer(values.type) else values
