"""Polars' expressions as conditions."""

from __future__ import annotations

import json
from typing import Any, Final

import polars as pl

from indextables.core.bind.bound import unless_null
from indextables.core.predicate.nodes import (
    BoolRef,
    Compare,
    CompareOp,
    Constant,
    IsIn,
    IsNan,
    IsNull,
    IsTrue,
    Literal,
    Not,
    Opaque,
    Or,
    Predicate,
    Ref,
    StartsWith,
)
from indextables.engines.arrow.conditions import literal_of

_COMPARISONS: Final[dict[str, CompareOp]] = {
    "Eq": "=",
    "NotEq": "<>",
    "Lt": "<",
    "LtEq": "<=",
    "Gt": ">",
    "GtEq": ">=",
    "EqValidity": "<=>",
}
_AS_THEY_ARE: Final = {
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "UInt8",
    "UInt16",
    "UInt32",
    "String",
    "Boolean",
}
_CLOSED: Final[dict[str, tuple[CompareOp, CompareOp]]] = {
    "Both": (">=", "<="),
    "Left": (">=", "<"),
    "Right": (">", "<="),
    "None": (">", "<"),
}


def predicate_of(expression: pl.Expr) -> Predicate:
    """Returns the condition an expression is; what statistics cannot answer is Opaque.

    The shape is read from Polars' JSON. Most literals are not: there NaN and infinities are null, and a
    list is one number per byte; Polars itself evaluates them.
    """
    try:
        return _condition(json.loads(expression.meta.serialize(format="json")), expression)
    except (RecursionError, ValueError, pl.exceptions.PolarsError) as error:
        return Opaque("a Polars expression", (), f"it cannot be read: {type(error).__name__}")


def _condition(tree: Any, expression: pl.Expr) -> Predicate:
    match tree:
        case {"BinaryExpr": {"left": left, "op": op, "right": right}}:
            return _binary(op, left, right, expression)
        case {"Function": {"input": inputs, "function": function}}:
            return _function(function, inputs, expression)
        case {"Column": str(name)}:
            return BoolRef(Ref((name,)))
        case {"Literal": _}:
            value = _evaluated(expression)
            if value is not None and (value.value is None or isinstance(value.value, bool)):
                return Constant(value.value)
    return _opaque(expression)


def _binary(op: str, left: Any, right: Any, expression: pl.Expr) -> Predicate:
    two, one = expression.meta.pop()  # the last operand comes first
    match op:
        case "And" | "LogicalAnd":
            return _condition(left, one) & _condition(right, two)
        case "Or" | "LogicalOr":
            return _condition(left, one) | _condition(right, two)
        case "NotEqValidity":
            found = _compare("<=>", left, right, (one, two))
            return _opaque(expression) if found is None else Not(found)
        case _ if op in _COMPARISONS:
            return _known(_compare(_COMPARISONS[op], left, right, (one, two)), expression)
        case _:
            return _opaque(expression)


def _known(condition: Predicate | None, expression: pl.Expr) -> Predicate:
    return _opaque(expression) if condition is None else condition


def _compare(op: CompareOp, left: Any, right: Any, sides: tuple[pl.Expr, pl.Expr]) -> Predicate | None:
    one, two = _operand(left, sides[0]), _operand(right, sides[1])
    if one is None or two is None or (isinstance(one, Literal) and isinstance(two, Literal)):
        return None
    return Compare(op, one, two)


def _function(function: Any, inputs: list[Any], expression: pl.Expr) -> Predicate:
    parts = list(reversed(expression.meta.pop()))
    if function == {"Boolean": "Not"}:
        return Not(_condition(inputs[0], parts[0]))
    ref = _reference(inputs[0]) if inputs else None
    if ref is None:
        return _opaque(expression)
    match function:
        case {"Boolean": "IsNull"}:
            return IsNull(ref)
        case {"Boolean": "IsNotNull"}:
            return Not(IsNull(ref))
        case {"Boolean": "IsNan"}:
            return _is_nan(ref)
        case {"Boolean": "IsNotNan"}:
            return Not(_is_nan(ref))
        case {"Boolean": {"IsBetween": {"closed": closed}}} if closed in _CLOSED:
            return _known(_between(ref, _CLOSED[closed], inputs, parts), expression)
        case {"Boolean": {"IsIn": {"nulls_equal": bool(nulls_equal)}}}:
            return _known(_is_in(ref, inputs[1], parts[1], nulls_equal=nulls_equal), expression)
        case {"StringExpr": "StartsWith"}:
            prefix = _operand(inputs[1], parts[1])
            if isinstance(prefix, Literal) and isinstance(prefix.value, str):
                return StartsWith(ref, prefix.value)
    return _opaque(expression)


def _is_nan(ref: Ref) -> Predicate:
    # NULL for NULL, where SQL's isnan is FALSE
    return Or((IsNan(ref), unless_null(ref, value=False)))


def _between(
    ref: Ref, ops: tuple[CompareOp, CompareOp], inputs: list[Any], parts: list[pl.Expr]
) -> Predicate | None:
    ends = [_operand(tree, part) for tree, part in zip(inputs[1:], parts[1:], strict=True)]
    if len(ends) != 2 or ends[0] is None or ends[1] is None:
        return None
    return Compare(ops[0], ref, ends[0]) & Compare(ops[1], ref, ends[1])


def _is_in(ref: Ref, tree: Any, part: pl.Expr, *, nulls_equal: bool) -> Predicate | None:
    if "Literal" not in tree:
        return None
    column = pl.select(part).to_series()
    listed = column.explode() if isinstance(column.dtype, pl.List | pl.Array) else column
    if isinstance(column.dtype, pl.List) and column.list.len().to_list() == [0]:
        listed = listed.clear()  # an empty list explodes to one NULL
    values = [literal_of(scalar) for scalar in listed.to_arrow()]
    known = tuple(value for value in values if value is not None and value.value is not None)
    if any(value is None for value in values):
        return None
    if nulls_equal:
        found = IsTrue(IsIn(ref, known))
        return Or((IsNull(ref), found)) if len(known) < len(values) else found
    # a NULL in the list matches nothing, and makes nothing unknown
    return IsIn(ref, known) if known else unless_null(ref, value=False)


def _operand(tree: Any, expression: pl.Expr) -> Ref | Literal | None:
    if "Literal" in tree:
        return _exact(tree["Literal"]) or _evaluated(expression)
    return _reference(tree)


def _exact(literal: Any) -> Literal | None:
    """Returns integers, texts and truth values, which JSON has as they are.

    To evaluate them takes Polars longer.
    """
    match literal:
        case {"Dyn": {"Int": int(value)}} if -(2**63) <= value < 2**63:
            return Literal(value)
        case {"Scalar": dict(scalar)}:
            ((kind, value),) = scalar.items()
            return Literal(value) if kind in _AS_THEY_ARE else None
        case _:
            return None


def _evaluated(expression: pl.Expr) -> Literal | None:
    values = pl.select(expression).to_series()
    if len(values) != 1 or isinstance(values.dtype, pl.Enum):  # an Enum has an order of its own
        return None
    return literal_of(values.to_arrow()[0])


def _reference(tree: Any) -> Ref | None:
    match tree:
        case {"Column": str(name)}:
            return Ref((name,))
        case {"Function": {"input": [inner], "function": {"StructExpr": {"FieldByName": str(name)}}}}:
            parent = _reference(inner)
            return None if parent is None else Ref((*parent.path, name))
        case _:
            return None


def _opaque(expression: pl.Expr) -> Opaque:
    columns = tuple((name,) for name in dict.fromkeys(expression.meta.root_names()))
    return Opaque(str(expression), columns, "only Polars can evaluate it")
