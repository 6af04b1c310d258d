"""A filter for Parquet row groups that never excludes a row the condition is TRUE for."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from functools import reduce
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.conditions.predicate import (
    And,
    BoolRef,
    Compare,
    CompareOp,
    Constant,
    IsIn,
    IsNull,
    IsTrue,
    Literal,
    NanRule,
    Not,
    Or,
    Predicate,
    Ref,
    StartsWith,
)
from indextables.core.conditions.rewrite import fold
from indextables.core.statistics.prefix import next_prefix
from indextables.core.types import DataType, is_float, type_to_arrow

_MAX_PARTS: Final = 200
"""Alternatives of an OR, and values of a list, beyond which judging a row group costs more than it saves."""

_INVERSE: Final[dict[CompareOp, CompareOp]] = {
    "=": "<>",
    "<>": "=",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
}
_COMPARE: Final[dict[CompareOp, Callable[[Any, Any], Any]]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<=>": lambda a, b: a == b,
}


class _Sides(NamedTuple):
    """What holds for every row that is TRUE, and for every row that is FALSE; None says nothing."""

    true: Any
    false: Any


_NOTHING: Final = _Sides(None, None)


def to_pushdown(
    predicate: Predicate,
    file_schema: pa.Schema | None = None,
    *,
    without_nan: Collection[str] = (),
) -> Any | None:
    """An Arrow expression that holds for every row the bound condition is TRUE for, None if none is known.

    With the schema of a file, only columns that the file stores in the table's own type are used: an
    absent or a widened one would not mean the same. `without_nan` names the columns known to hold no
    NaN in the file.
    """
    clean = frozenset(name.lower() for name in without_nan)

    def visit(node: Predicate, inner: tuple[_Sides, ...]) -> _Sides:
        return _sides(node, inner, file_schema, clean)

    return fold(predicate, visit).true


def _sides(
    node: Predicate, inner: tuple[_Sides, ...], schema: pa.Schema | None, clean: frozenset[str]
) -> _Sides:
    match node:
        case And():
            return _Sides(_all(side.true for side in inner), _any([side.false for side in inner]))
        case Or():
            return _Sides(_any([side.true for side in inner]), _all(side.false for side in inner))
        case Not():
            return _Sides(inner[0].false, inner[0].true)
        case IsTrue():
            return _Sides(inner[0].true, None)
        case Constant(value):
            never = pc.scalar(False)
            return _Sides(None if value else never, never if value or value is None else None)
        case Compare(op, Ref(path), Literal(value, dtype), nan) if name := _stored(path, dtype, schema):
            return _compare(
                op, pc.field(name), value, dtype, nan, may_be_nan=_may_be_nan(name, dtype, clean)
            )
        case IsIn(Ref(path), (Literal(_, dtype), *_)) if name := _stored(path, dtype, schema):
            return _Sides(_is_in(node, pc.field(name), dtype), None)
        case StartsWith(Ref(path), str() as prefix) if name := _named(path, pa.string(), schema):
            return _Sides(_starts_with(pc.field(name), prefix), None)
        case BoolRef(Ref(path)) if name := _named(path, pa.bool_(), schema):
            return _Sides(pc.field(name) == pc.scalar(True), pc.field(name) == pc.scalar(False))
        case IsNull(Ref(path)) if name := _named(path, None, schema):
            return _Sides(pc.field(name).is_null(), pc.field(name).is_valid())
        case _:
            return _NOTHING


def _all(parts: Iterable[Any]) -> Any | None:
    known = [part for part in parts if part is not None][:_MAX_PARTS]
    return reduce(lambda a, b: a & b, known) if known else None


def _any(parts: list[Any]) -> Any | None:
    if not parts or len(parts) > _MAX_PARTS or any(part is None for part in parts):
        return None
    return reduce(lambda a, b: a | b, parts)


def _stored(path: tuple[str, ...], dtype: DataType | None, schema: pa.Schema | None) -> str | None:
    return _named(path, type_to_arrow(dtype), schema) if dtype is not None else None


def _named(path: tuple[str, ...], dtype: pa.DataType | None, schema: pa.Schema | None) -> str | None:
    """The column's name in the file, None for nested fields and columns stored in another type."""
    if len(path) > 1 or schema is None:
        return path[0] if len(path) == 1 else None
    found = [f for f in schema if f.name.lower() == path[0].lower()][:1]
    return found[0].name if found and dtype in {None, found[0].type} else None


def _may_be_nan(name: str, dtype: DataType | None, clean: frozenset[str]) -> bool:
    return dtype is not None and is_float(dtype) and name.lower() not in clean


def _compare(
    op: CompareOp, field: Any, value: Any, dtype: DataType | None, nan: NanRule, *, may_be_nan: bool
) -> _Sides:
    if isinstance(value, float) and math.isnan(value):
        return _NOTHING
    assert dtype is not None
    constant = pc.scalar(_scalar(value, dtype))

    def holds(op: CompareOp, *, nan_too: bool) -> Any | None:
        # Adding `OR is_nan(x)` would not save NaN: where the bounds of a row group are equal, Arrow
        # takes every x in it for that number, also inside is_nan.
        return None if may_be_nan and nan_too else _COMPARE[op](field, constant)

    on_top = op in {">", ">="} and nan is NanRule.SPARK
    true = holds(op, nan_too=op == "<>" or on_top)
    if op == "<=>":  # FALSE for NULL as well
        return _Sides(true, None)
    return _Sides(true, holds(_INVERSE[op], nan_too=op != "<>" and not on_top))


def _is_in(node: IsIn, field: Any, dtype: DataType | None) -> Any | None:
    assert dtype is not None
    values = [literal.value for literal in node.values if literal.value is not None]
    if not values:
        return pc.scalar(False)
    if any(isinstance(value, float) and math.isnan(value) for value in values):
        return None
    if len(values) > _MAX_PARTS or is_float(dtype):  # a hashed list knows two zeros, bounds know one
        low, high = (pc.scalar(_scalar(pick(values), dtype)) for pick in (min, max))
        return (field >= low) & (field <= high)
    return field.isin(pa.array([_scalar(value, dtype) for value in values]))


def _starts_with(field: Any, prefix: str) -> Any:
    after = next_prefix(prefix)
    starts = field >= pc.scalar(prefix)
    return starts & (field < pc.scalar(after)) if after is not None else starts


def _scalar(value: Any, dtype: DataType) -> pa.Scalar:
    arrow = type_to_arrow(dtype)
    return (
        pa.scalar(value, pa.int32()).cast(arrow)
        if pa.types.is_date32(arrow)
        else pa.scalar(value, arrow)
    )
