"""Comparisons for which Spark casts the column: numbers of different kinds, text against numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.bind.coerce import kind_of
from indextables.core.predicate.nodes import IsIn, Literal
from indextables.errors import PredicateError


def compare_with_casts(left: Any, right: Any) -> tuple[Any, Any]:
    """Both sides in Spark's common type; the right one is another column or a constant."""
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
    """A text column and a list of numbers, both as numbers."""
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
    """CAST(text AS BIGINT or DOUBLE), which in ANSI mode refuses what is no number."""
    trimmed = pc.utf8_trim(texts, " \t\r\n")
    try:
        return pc.cast(trimmed, wanted)
    except pa.ArrowInvalid as error:
        name = "bigint" if wanted == pa.int64() else "double"
        raise PredicateError(
            f"a text column is compared with a number, but not every text is a {name}: {error}",
            hint="compare it with text in quotes: '255'",
        ) from error
