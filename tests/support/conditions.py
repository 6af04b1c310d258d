"""Random condition trees over a table's columns, in the grammar where Spark and DuckDB agree."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from indextables.core.predicate.nodes import (
    And,
    BoolRef,
    Compare,
    IsIn,
    IsNan,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Ref,
    StartsWith,
)
from indextables.core.types import DataType, PrimitiveType, StructType, is_float, leaves
from support.strategies import values_of

OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "<=>")


def conditions(schema: StructType, values: dict[tuple[str, ...], list[Any]]) -> st.SearchStrategy:
    """Trees of conditions; constants are often values that occur, so that edges are hit."""
    columns = [leaf for leaf in leaves(schema) if not isinstance(leaf.type, StructType)]
    leaf = st.one_of([_leaf(found.path, found.type, values[found.path]) for found in columns])
    pairs = [(a, b) for a in columns for b in columns if a.path < b.path and a.type == b.type]
    if pairs:
        compare = st.builds(
            lambda op, pair: Compare(op, Ref(pair[0].path), Ref(pair[1].path)),
            st.sampled_from(OPERATORS),
            st.sampled_from(pairs),
        )
        leaf = st.one_of(leaf, compare)
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(lambda a, b: And((a, b)), inner, inner),
            st.builds(lambda a, b: Or((a, b)), inner, inner),
            inner.map(Not),
        ),
        max_leaves=5,
    )


def _leaf(path: tuple[str, ...], kind: DataType, present: list[Any]) -> st.SearchStrategy[Predicate]:
    ref = Ref(path)
    some = values_of(kind)
    if present:
        some = st.one_of(st.sampled_from(present), st.sampled_from(present), some)
    constant = st.one_of(some, some, some, st.none()).map(lambda value: _literal(value, kind))
    options: list[st.SearchStrategy[Predicate]] = [
        st.builds(lambda op, value: Compare(op, ref, value), st.sampled_from(OPERATORS), constant),
        st.builds(lambda values: IsIn(ref, tuple(values)), st.lists(constant, min_size=1, max_size=4)),
        st.just(IsNull(ref)),
    ]
    if kind == PrimitiveType("string"):
        options.append(some.map(lambda value: StartsWith(ref, value[:2])))
    if kind == PrimitiveType("boolean"):
        options.append(st.just(BoolRef(ref)))
    if is_float(kind):
        options.append(st.just(IsNan(ref)))
    return st.one_of(options)


def _literal(value: Any, kind: DataType) -> Literal:
    # -0.0 is written as a constant like any other; NaN has a spelling in both dialects
    if isinstance(value, float) and math.isnan(value):
        return Literal(math.nan, kind)
    return Literal(value, None if value is None else kind)
