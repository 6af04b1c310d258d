"""Comparisons for which Spark casts the column: numbers of different kinds, text against numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.bind.coerce import kind_of
from indextables.core.expr.evaluate import is_computable, rows_of, why_not
from indextables.core.expr.image import Mask
from indextables.core.expr.nodes import refs_of
from indextables.core.expr.vectors import Vector, column_of
from indextables.core.predicate.like import like_regex
from indextables.core.predicate.nodes import (
    RESULT,
    And,
    BoolRef,
    Call,
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
    Over,
    Predicate,
    Ref,
    StartsWith,
)
from indextables.core.predicate.regex import arrow_regex
from indextables.core.predicate.to_sql import to_sql
from indextables.core.predicate.tree import fold
from indextables.core.types import FieldPath, path_text
from indextables.errors import PredicateError

__all__ = ["check_evaluable", "evaluable_part", "is_evaluable", "to_row_mask", "truth_of"]


def compare_with_casts(left: Any, right: Any) -> tuple[Any, Any]:
    """Returns both sides in Spark's common type; the right one is another column or a constant."""
    if isinstance(right, Literal):
        wanted = _number_type({kind_of(right)})
        return _to_number(left, wanted), pa.scalar(_number(right, wanted), wanted)
    kinds = (left.type, right.type)
    if any(map(pa.types.is_floating, kinds)):
        # not safe=True: Spark rounds a long to the nearest double as well
        return pc.cast(left, pa.float64(), safe=False), pc.cast(right, pa.float64(), safe=False)
    if pa.types.is_date(left.type):
        return left.cast(right.type), right
    if pa.types.is_date(right.type):
        return left, right.cast(left.type)
    return left, right


def is_in_with_casts(values: Any, node: IsIn) -> tuple[Any, IsIn]:
    """Returns a text column and a list of numbers, both as numbers."""
    wanted = _number_type({kind_of(literal) for literal in node.values})
    numbers = tuple(Literal(_number(literal, wanted)) for literal in node.values)
    return _to_number(values, wanted), replace(node, values=numbers)


def _number_type(kinds: set[str]) -> pa.DataType:
    return pa.int64() if kinds <= {"integer", "null"} else pa.float64()


def _number(literal: Literal, wanted: pa.DataType) -> Any:
    return (
        float(literal.value) if literal.value is not None and wanted == pa.float64() else literal.value
    )


def _to_number(texts: Any, wanted: pa.DataType) -> Any:
    """Returns CAST(text AS BIGINT or DOUBLE), which in ANSI mode refuses what is no number."""
    trimmed = pc.utf8_trim(texts, " \t\r\n")
    try:
        return pc.cast(trimmed, wanted)
    except pa.ArrowInvalid as error:
        name = "bigint" if wanted == pa.int64() else "double"
        raise PredicateError(
            f"a text column is compared with a number, but not every text is a {name}: {error}",
            hint="compare it with text in quotes: '255'",
        ) from error


# Bound conditions on rows, as Spark means them: three values, NaN on top, one zero, text by its bytes.

_COMPARE: Final[dict[CompareOp, Callable[[Any, Any], Any]]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def to_row_mask(predicate: Predicate, data: pa.Table | pa.RecordBatch) -> Any:
    """Returns one bit per row: True exactly where the bound condition is TRUE; FALSE and NULL are both False.

    PredicateError if a part of the condition needs an engine; `check_evaluable` says so beforehand.
    """
    return pc.fill_null(truth_of(predicate, data), False)


def truth_of(predicate: Predicate, data: pa.Table | pa.RecordBatch) -> Any:
    """Returns TRUE, FALSE or NULL per row; PredicateError where a function has no result for a row.

    An error in one part of an AND does not count where another part is FALSE, whatever their order.
    """

    def visit(node: Predicate, inner: tuple[_Rows, ...]) -> _Rows:
        if isinstance(node, Over | Compare) and (computed := _computed(node, data)) is not None:
            return computed
        truths = tuple(rows.truth for rows in inner)
        return _Rows(_truth(node, truths, data), _error(node, inner))

    found = fold(predicate, visit)
    if found.error is not None and (count := int(found.error.sum())):
        raise _no_result(predicate, count)
    truth = found.truth
    return pa.repeat(truth, data.num_rows) if isinstance(truth, pa.Scalar) else truth


class _Rows(NamedTuple):
    """What a condition is for each row, and which rows raise; None: none of them."""

    truth: Any
    error: Mask | None = None


def _error(node: Predicate, inner: tuple[_Rows, ...]) -> Mask | None:
    errors = [rows.error for rows in inner if rows.error is not None]
    if not errors:
        return None
    error: Mask = np.logical_or.reduce(errors)
    if isinstance(node, And | Or):
        decides = isinstance(node, Or)
        for rows in inner:
            # a part that raises decides nothing, whatever stands in its place
            decided = _mask(pc.fill_null(pc.equal(rows.truth, decides), False), len(error))
            error = error & ~(decided if rows.error is None else decided & ~rows.error)
    return error


def _mask(truth: Any, count: int) -> Mask:
    if isinstance(truth, pa.Scalar):
        return np.full(count, truth.as_py())
    found: Mask = (
        truth.to_numpy(zero_copy_only=False) if isinstance(truth, pa.Array) else truth.to_numpy()
    )
    return found


def _computed(node: Over | Compare, data: Any) -> _Rows | None:
    """Returns the rows of a condition on the value of a function; None for any other comparison."""
    match node:
        case Over(expression, condition):
            vector = _values(expression, node, data)
            table = pa.table({RESULT.path[0]: column_of(vector)})
            return _Rows(truth_of(condition, table), _any(vector.error))
        case Compare(op, Ref() | Call() as left, Ref() | Call() as right, nan) if isinstance(
            left, Call
        ) or isinstance(right, Call):
            one, two = _values(left, node, data), _values(right, node, data)
            truth = compare(op, column_of(one), column_of(two), nan)
            return _Rows(truth, _any(one.error | two.error))
        case _:
            return None


def _values(expression: Ref | Call, node: Predicate, data: Any) -> Vector:
    found = rows_of(expression, lambda path: column(data, path), data.num_rows)
    if found is None:
        raise _needs_engine(_function_opaque(expression, node))
    return found


def _any(error: Mask) -> Mask | None:
    return error if error.any() else None


def _function_opaque(expression: Ref | Call, node: Predicate) -> Opaque:
    return Opaque(
        to_sql(node),
        tuple(refs_of(expression)),
        why_not(expression) or "its rows can only be computed by an engine",
    )


def _no_result(predicate: Predicate, count: int) -> PredicateError:
    return PredicateError(
        f"`{to_sql(predicate)}` has no result for {count} row{'s' * (count > 1)}: a number is too large for "
        "its type, a divisor is zero, or a text is no number",
        hint="use the function's try_ form (try_cast, try_add, …), which is NULL there",
        rows=count,
    )


def check_evaluable(predicate: Predicate) -> None:
    """Raises PredicateError if rows cannot be filtered by the bound condition, naming the part to blame."""

    def visit(node: Predicate, _: tuple[None, ...]) -> None:
        match node:
            case Opaque(condition=None):
                raise _needs_engine(node)
            case StartsWith(exact=False, pattern=None, regex=None):
                raise _needs_engine(_half_known(node))
            case Over(expression, condition):
                check_evaluable(condition)
                if not is_computable(expression):
                    raise _needs_engine(_function_opaque(expression, node))
            case Compare(_, left, right):
                for side in (left, right):
                    if isinstance(side, Call) and not is_computable(side):
                        raise _needs_engine(_function_opaque(side, node))

    fold(predicate, visit)


def evaluable_part(predicate: Predicate) -> Predicate:
    """Returns the parts of an AND that rows can be filtered by; what it lets through is a superset."""
    parts = predicate.children if isinstance(predicate, And) else (predicate,)
    return And(tuple(part for part in parts if is_evaluable(part)))


def is_evaluable(predicate: Predicate) -> bool:
    """Returns whether rows can be filtered by the bound condition without an engine."""
    try:
        check_evaluable(predicate)
    except PredicateError:
        return False
    return True


def _half_known(node: StartsWith) -> Opaque:
    text = f"{path_text(node.ref.path)} starts with {node.prefix!r}, and more"
    return Opaque(text, (node.ref.path,), "only its prefix is known")


def _needs_engine(node: Opaque) -> PredicateError:
    because = f": {node.why}" if node.why else ""
    return PredicateError(
        f"rows cannot be filtered by `{node.text}` here{because}",
        hint="plan() still skips files by the other parts; filter in Spark, or in DuckDB or Polars over "
        "scan(), or rewrite this part as a comparison of a column with a constant",
        part=node.text,
        columns=tuple(map(path_text, node.columns)),
    )


def _truth(node: Predicate, inner: tuple[Any, ...], data: Any) -> Any:
    match node:
        case And():
            return _combine(pc.and_kleene, inner, empty=True)
        case Or():
            return _combine(pc.or_kleene, inner, empty=False)
        case Not():
            return pc.invert(inner[0])
        case IsTrue():
            return pc.fill_null(inner[0], False)
        case Constant(value):
            return pa.scalar(value, pa.bool_())
        case Opaque():
            return _opaque(node, data)
        case Over():
            raise AssertionError("computed before")
        case Compare() | IsNull() | IsNan() | IsIn() | StartsWith() | BoolRef():
            return _leaf(node, data)
        case _:
            assert_never(node)


def _combine(function: Callable[[Any, Any], Any], inner: tuple[Any, ...], *, empty: bool) -> Any:
    result = pa.scalar(empty)
    for truth in inner:
        result = function(result, truth)
    return result


def _leaf(node: Compare | IsNull | IsNan | IsIn | StartsWith | BoolRef, data: Any) -> Any:
    match node:
        case Compare(op, Ref(path), Ref(other), nan):
            return compare(op, column(data, path), column(data, other), nan)
        case Compare(op, Ref(path), Literal(value), nan):
            values = column(data, path)
            return compare(op, values, scalar(value, values.type), nan)
        case IsNull(ref):
            return pc.is_null(column(data, ref.path))
        case IsNan(ref):
            return pc.fill_null(pc.is_nan(column(data, ref.path)), False)
        case BoolRef(ref):
            return column(data, ref.path)
        case IsIn(ref):
            return _is_in(node, column(data, ref.path))
        case StartsWith(ref):
            return _starts_with(node, column(data, ref.path))
        case _:
            raise AssertionError(f"not bound: {node}")


def column(data: pa.Table | pa.RecordBatch, path: FieldPath) -> Any:
    """Returns the values at a path; a NULL struct has only NULLs inside."""
    values = data.column(path[0])
    for name in path[1:]:
        values = pc.struct_field(values, [name])
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    # most functions know no views
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(values.type)
    return values if plain is None else values.cast(plain)


def scalar(value: Any, dtype: pa.DataType) -> pa.Scalar:
    """Returns a physical value in the type of the column."""
    if pa.types.is_date32(dtype):
        return pa.scalar(value, pa.int32()).cast(dtype)
    return pa.scalar(value, dtype)


def compare(op: CompareOp, left: Any, right: Any, nan: NanRule) -> Any:
    """Returns `left op right` row by row."""
    if op == "<=>":
        same = pc.fill_null(compare("=", left, right, nan), False)
        return pc.or_(same, pc.and_(pc.is_null(left), pc.is_null(right)))
    truth = _COMPARE[op](left, right)
    if nan is NanRule.SPARK and pa.types.is_floating(left.type):
        return _with_nan_on_top(op, truth, pc.is_nan(left), pc.is_nan(right))
    return truth


def _with_nan_on_top(op: CompareOp, truth: Any, left: Any, right: Any) -> Any:
    """Returns IEEE's answer, corrected where a side is NaN. Not Kleene's OR: NULL <= NaN must stay NULL."""
    match op:
        case "=":
            return pc.or_(truth, pc.and_(left, right))
        case "<>":
            return pc.and_(truth, pc.invert(pc.and_(left, right)))
        case "<":
            return pc.or_(truth, pc.and_(pc.invert(left), right))
        case "<=":
            return pc.or_(truth, right)
        case ">":
            return pc.or_(truth, pc.and_(left, pc.invert(right)))
        case ">=":
            return pc.or_(truth, left)
        case _:
            raise AssertionError(op)


def _is_in(node: IsIn, values: Any) -> Any:
    if not node.values:
        return pa.scalar(False)
    wanted = _array(
        [literal.value for literal in node.values if literal.value is not None], values.type
    )
    if pa.types.is_floating(values.type):
        values, wanted = _one_of_each(values), _one_of_each(wanted)
    found = pc.is_in(values, value_set=wanted)
    has_null = any(literal.value is None for literal in node.values)
    unknown = pc.invert(found) if has_null else pc.is_null(values)
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)


def _one_of_each(values: Any) -> Any:
    """Returns the same numbers with one zero and one NaN.

    Lists are hashed by bits, and 0.0 / 0.0 has NaN's sign set.
    """
    one_zero = pc.add(values, pa.scalar(0.0, values.type))
    return pc.if_else(pc.is_nan(one_zero), pa.scalar(math.nan, values.type), one_zero)


def _array(values: list[Any], dtype: pa.DataType) -> pa.Array:
    return (
        pa.array(values, pa.int32()).cast(dtype)
        if pa.types.is_date32(dtype)
        else pa.array(values, dtype)
    )


def _starts_with(node: StartsWith, values: Any) -> Any:
    if node.exact:
        return pc.starts_with(values, pattern=node.prefix)
    if node.regex is not None:
        return pc.match_substring_regex(values, arrow_regex(node.regex))
    if node.pattern is None:
        raise _needs_engine(_half_known(node))
    return pc.match_substring_regex(values, like_regex(node.pattern))


def _opaque(node: Opaque, data: Any) -> Any:
    match node.condition:
        case IsNull(ref):
            return pc.is_null(column(data, ref.path))
        case Compare(op, Ref(path), right, nan):
            other = column(data, right.path) if isinstance(right, Ref) else right
            left, right = compare_with_casts(column(data, path), other)
            return compare(op, left, right, nan)
        case IsIn(ref) as condition:
            values, cast = is_in_with_casts(column(data, ref.path), condition)
            return _is_in(cast, values)
        case _:
            raise _needs_engine(node)
