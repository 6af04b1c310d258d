"""Turns expressions into conditions that statistics can answer where they can, and computes them over rows."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import reduce
from typing import Final, TypeAlias, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.bind.bind import bind
from indextables.core.bind.coerce import kind_of
from indextables.core.predicate.col import literal
from indextables.core.predicate.nodes import (
    And,
    BoolRef,
    Compare,
    CompareOp,
    Constant,
    IsIn,
    IsNan,
    IsNull,
    IsTrue,
    Literal,
    NanRule,
    Not,
    Opaque,
    Or,
    Predicate,
    Ref,
)
from indextables.core.types import (
    DataType,
    DecimalType,
    FieldPath,
    PrimitiveType,
    StructType,
    is_float,
    parse_path,
    resolve,
    schema_from_arrow,
    type_name,
)
from indextables.errors import PredicateError, UnknownColumnError
from indextables.parquet.read.row_filter import column, is_evaluable, to_row_mask
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
    columns_in,
)

_OPS: Final[dict[ComparisonOp, CompareOp]] = {
    "==": "=",
    "!=": "=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_FLIPPED: Final[dict[ComparisonOp, ComparisonOp]] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NUMBERS: Final = frozenset({"integer", "double", "decimal"})
Values: TypeAlias = pa.ChunkedArray | pa.Scalar
"""What an expression computes: a value for each row, or one for all of them."""


def find_column(schema: StructType, name: str) -> tuple[FieldPath, DataType]:
    """Returns the column of exactly that name, or else the nested field that the dots in it spell."""
    try:
        return resolve(schema, (name,))
    except UnknownColumnError:
        if "." not in name:
            raise
    return resolve(schema, parse_path(name))


def to_predicate(expression: Expression, schema: StructType) -> Predicate:
    """Returns a condition that is TRUE exactly for the rows the expression keeps, and never NULL."""
    match expression:
        case Logic(op, parts):
            conditions = [to_predicate(part, schema) for part in parts]
            return _COMBINE[op](conditions)
        case Inverse(inner):
            return Not(to_predicate(inner, schema))
        case Value(bool() as value):
            return Constant(value)
        case _:
            leaf = leaf_predicate(expression, schema)
            paths = (find_column(schema, name)[0] for name in columns_in(expression))
            return leaf if leaf is not None else Opaque(str(expression), tuple(dict.fromkeys(paths)))


_COMBINE: Final[dict[str, Callable[[list[Predicate]], Predicate]]] = {
    "&": lambda parts: _joined(And, parts),
    "|": lambda parts: _joined(Or, parts),
    # no condition is ever NULL here, so exclusive or needs no third case
    "^": lambda parts: reduce(lambda a, b: Or((And((a, Not(b))), And((Not(a), b)))), parts),
}


def _joined(kind: type[And | Or], parts: list[Predicate]) -> Predicate:
    """Returns the conditions with one IS TRUE around those that have one each, so that the binder sees lists among them."""
    tests = tuple(part.child for part in parts if isinstance(part, IsTrue))
    others = tuple(part for part in parts if not isinstance(part, IsTrue))
    return kind((IsTrue(kind(tests)), *others)) if tests else kind(others)


def leaf_predicate(expression: Expression, schema: StructType) -> Predicate | None:
    """Returns the condition of a single test on stored columns; None if the expression computes something."""
    match expression:
        case Column(name):
            path, dtype = find_column(schema, name)
            if dtype != PrimitiveType("boolean"):
                raise PredicateError(
                    f"column {name!r} is {type_name(dtype)}, not a condition",
                    hint=f"compare it with something: q[{name!r}] > 0",
                )
            return IsTrue(BoolRef(Ref(path)))
        case Comparison(op, Column() as left, Column() | Value() as right):
            return _comparison(op, left, right, schema)
        case Comparison(op, Value() as left, Column() as right):
            return _comparison(_FLIPPED.get(op, op), right, left, schema)
        case Member(Column(name), values):
            path, dtype = find_column(schema, name)
            known = tuple(_constant(value, dtype, name) for value in values if not is_missing(value))
            return IsTrue(IsIn(Ref(path), known, NanRule.IEEE))
        case Missing(Column(name)):
            path, dtype = find_column(schema, name)
            missing = IsNull(Ref(path))
            return Or((missing, IsNan(Ref(path)))) if is_float(dtype) else missing
        case Comparison() | Member() | Missing() | Matches() | Value() | Arithmetic() | Absolute():
            return None
        case Logic() | Inverse():
            return None
        case _:
            assert_never(expression)


def _comparison(op: ComparisonOp, left: Column, right: Column | Value, schema: StructType) -> Predicate:
    path, dtype = find_column(schema, left.name)
    other: Ref | Literal
    if isinstance(right, Column):
        other = Ref(find_column(schema, right.name)[0])
    else:
        other = _constant(right.value, dtype, left.name, weak=type(right.value) is float)
    found = IsTrue(Compare(_OPS[op], Ref(path), other, NanRule.IEEE))
    return Not(found) if op == "!=" else found


def _constant(value: object, dtype: DataType, name: str, *, weak: bool = False) -> Literal:
    constant = literal(value)
    kind = kind_of(constant)
    if not is_missing(value) and not _comparable(dtype, kind):
        raise PredicateError(
            f"column {name!r} is {type_name(dtype)} and cannot be compared with {value!r}",
            hint="compare it with a value of its own type",
            column=name,
        )
    if weak and isinstance(value, float) and dtype == PrimitiveType("float"):
        # As in pandas, a bare Python float takes the column's precision: 0.1 finds 0.1.
        return Literal(_single(value))
    return constant


def _single(value: float) -> float:
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def is_missing(value: object) -> bool:
    """Returns True for None and NaN, which are the same to pandas."""
    constant = literal(value).value
    return constant is None or (isinstance(constant, float) and math.isnan(constant))


def _comparable(dtype: DataType, kind: str) -> bool:
    match dtype:
        case DecimalType() | PrimitiveType("byte" | "short" | "integer" | "long" | "float" | "double"):
            return kind in _NUMBERS
        case PrimitiveType("date" | "timestamp" | "timestamp_ntz"):
            return kind in {"date", "timestamp", "timestamp_ntz", "string"}
        case PrimitiveType(name):
            return kind == name
        case _:
            return False


# Expressions over rows: a computation gives numbers, a condition gives True or False and never NULL.

_COMPARE: Final[dict[ComparisonOp, Callable[[Values, Values], Values]]] = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_COMPUTE: Final[dict[ArithmeticOp, Callable[[Values, Values], Values]]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
    "/": pc.divide,
    "**": pc.power,
}
_LOGIC: Final[dict[str, Callable[[Values, Values], Values]]] = {"&": pc.and_, "|": pc.or_, "^": pc.xor}


def mask_of(expression: Expression, data: pa.Table, timezone: str) -> Values:
    """Returns one bit per row, True where the condition is; as in pandas, it is never NULL."""
    schema = schema_from_arrow(data.schema)
    bound = bind(to_predicate(expression, schema), schema, timezone=timezone)
    if is_evaluable(bound):
        return to_row_mask(bound, data)
    truth = _mask(expression, data, schema, timezone)
    return pa.repeat(truth, data.num_rows) if isinstance(truth, pa.Scalar) else truth


def _mask(expression: Expression, data: pa.Table, schema: StructType, timezone: str) -> Values:
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


def _computed_mask(expression: Expression, data: pa.Table, schema: StructType) -> Values:
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


def _is_member(found: Values, values: tuple[object, ...]) -> Values:
    """Compares integers by their value and all else as doubles, where 0.0 equals -0.0. NaN is in no list."""
    listed = [_number_constant(value).as_py() for value in values if not is_missing(value)]
    if pa.types.is_integer(found.type) and all(isinstance(value, int) for value in listed):
        return pc.is_in(pc.cast(found, pa.int64()), value_set=pa.array(listed, pa.int64()))
    zero = pa.scalar(0.0)  # lists are hashed, and -0.0 has another hash
    wanted = pc.add(pa.array(list(map(float, listed)), pa.float64()), zero)
    return pc.is_in(pc.add(pc.cast(found, pa.float64(), safe=False), zero), value_set=wanted)


def numbers(expression: Expression, data: pa.Table, schema: StructType | None = None) -> Values:
    """Returns the values an expression computes; NULL where one of its columns is NULL."""
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


def _number_column(name: str, data: pa.Table, schema: StructType) -> pa.ChunkedArray:
    values = column(data, find_column(schema, name)[0])
    if pa.types.is_decimal(values.type):
        return pc.cast(values, pa.float64())
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        raise PredicateError(
            f"column {name!r} is {values.type}, and arithmetic needs numbers", column=name
        )
    return values


def _number_constant(value: object) -> pa.Scalar:
    if isinstance(value, np.floating) and not isinstance(value, np.float64):
        return pa.scalar(float(value), pa.float32())
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        raise PredicateError(f"{value!r} is not a number", hint="arithmetic needs numbers")
    if isinstance(plain, int) and not -(2**63) <= plain < 2**63:  # as an unsigned one it would wrap
        raise PredicateError(f"{value!r} is not a 64-bit integer", hint="write it as a float")
    return pa.scalar(plain)


def _compute(op: ArithmeticOp, left: Values, right: Values) -> Values:
    if op == "**" and not pa.types.is_integer(right.type):
        raise PredicateError("an exponent must be an integer", hint="use an integer, as in ArcticDB")
    left, right = _common(left, right)
    whole = pa.types.is_integer(left.type)
    if op == "/" or (op == "**" and whole and pc.min(pc.fill_null(right, 0)).as_py() < 0):
        left, right = (pc.cast(side, pa.float64(), safe=False) for side in (left, right))
    return _COMPUTE[op](left, right)


def _common(left: Values, right: Values) -> tuple[Values, Values]:
    """Returns both sides as int64, as float32 if neither needs more, or as float64."""
    types = (left.type, right.type)
    if all(map(pa.types.is_integer, types)):
        wanted = pa.int64()
    elif any(_is_single(side) for side in (left, right)) and all(map(_fits_single, (left, right))):
        wanted = pa.float32()
    else:
        wanted = pa.float64()
    return pc.cast(left, wanted, safe=False), pc.cast(right, wanted, safe=False)


def _is_single(side: Values) -> bool:
    return bool(side.type == pa.float32())


def _fits_single(side: Values) -> bool:
    # a bare Python float takes the precision of the column beside it
    return _is_single(side) or (isinstance(side, pa.Scalar) and pa.types.is_floating(side.type))


def _widened(values: Values) -> Values:
    return pc.cast(values, pa.int64()) if pa.types.is_integer(values.type) else values
