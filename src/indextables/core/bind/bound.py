"""Comparisons with a literal that the column's type does not hold, from the values it does hold."""

from __future__ import annotations

from typing import assert_never

from indextables.core.bind.cuts import Cut
from indextables.core.predicate.nodes import (
    And,
    Compare,
    CompareOp,
    Constant,
    IsNull,
    Literal,
    NanRule,
    Not,
    Or,
    Predicate,
    Ref,
)
from indextables.core.types import DataType


def unless_null(ref: Ref, value: bool) -> Predicate:
    """This constant for every value, but NULL for a NULL."""
    unknown = Constant(None)
    return Or((Not(IsNull(ref)), unknown)) if value else And((IsNull(ref), unknown))


def compare_cut(op: CompareOp, ref: Ref, dtype: DataType, cut: Cut, nan: NanRule) -> Predicate:
    """The comparison with a literal that lies between, or spans several of, the column's values."""
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
    """Equal to the literal: between the first and the last value that is."""
    if cut.first >= cut.after:
        return unless_null(ref, value=False)
    return And((_from(ref, dtype, cut, cut.first, nan), _below(ref, dtype, cut, cut.after, nan)))
