"""Expressions as conditions that statistics can answer: exact where they can be, else opaque."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import reduce
from typing import Any, Final, assert_never

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
    type_name,
)
from indextables.errors import PredicateError, UnknownColumnError
from indextables.table.query.expressions import (
    Absolute,
    Arithmetic,
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
_FLIPPED: Final[dict[CompareOp, CompareOp]] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NUMBERS: Final = frozenset({"integer", "double", "decimal"})


def find_column(schema: StructType, name: str) -> tuple[FieldPath, DataType]:
    """The column of exactly that name, else the nested field that the dots in it spell."""
    try:
        return resolve(schema, (name,))
    except UnknownColumnError:
        if "." not in name:
            raise
    return resolve(schema, parse_path(name))


def to_predicate(expression: Expression, schema: StructType) -> Predicate:
    """A condition that is TRUE exactly for the rows the expression keeps, never NULL."""
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
    # no part is ever NULL, so this is all there is to exclusive or
    "^": lambda parts: reduce(lambda a, b: Or((And((a, Not(b))), And((Not(a), b)))), parts),
}


def _joined(kind: type[And | Or], parts: list[Predicate]) -> Predicate:
    """One IS TRUE around several: the binder then finds the lists among them."""
    tests = tuple(part.child for part in parts if isinstance(part, IsTrue))
    others = tuple(part for part in parts if not isinstance(part, IsTrue))
    return kind((IsTrue(kind(tests)), *others)) if tests else kind(others)


def leaf_predicate(expression: Expression, schema: StructType) -> Predicate | None:
    """The condition of a single test on columns as they are stored, None if it computes something."""
    match expression:
        case Column(name):
            path, dtype = find_column(schema, name)
            if dtype != PrimitiveType("boolean"):
                raise PredicateError(
                    f"column {name!r} is {type_name(dtype)}, not a condition",
                    hint=f"compare it with something: q[{name!r}] > 0",
                )
            return IsTrue(BoolRef(Ref(path)))
        case Comparison(op, Column(), Column() | Value()) | Comparison(op, Value(), Column()):
            return _comparison(op, expression.left, expression.right, schema)
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


def _comparison(op: ComparisonOp, left: Any, right: Any, schema: StructType) -> Predicate:
    compare: CompareOp = _OPS[op]
    if isinstance(left, Value):
        left, right, compare = right, left, _FLIPPED.get(compare, compare)
    path, dtype = find_column(schema, left.name)
    other: Ref | Literal
    if isinstance(right, Column):
        other = Ref(find_column(schema, right.name)[0])
    else:
        other = _constant(right.value, dtype, left.name, weak=type(right.value) is float)
    found = IsTrue(Compare(compare, Ref(path), other, NanRule.IEEE))
    return Not(found) if op == "!=" else found


def _constant(value: Any, dtype: DataType, name: str, *, weak: bool = False) -> Literal:
    constant = literal(value)
    kind = kind_of(constant)
    if not is_missing(value) and not _comparable(dtype, kind):
        raise PredicateError(
            f"column {name!r} is {type_name(dtype)} and cannot be compared with {value!r}",
            hint="compare it with a value of its own type",
            column=name,
        )
    if weak and dtype == PrimitiveType("float"):
        # As in pandas, a bare Python float takes the column's precision: 0.1 finds 0.1.
        return Literal(_single(value))
    return constant


def _single(value: float) -> float:
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def is_missing(value: Any) -> bool:
    """Whether a constant is None or NaN, which pandas knows as one."""
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
