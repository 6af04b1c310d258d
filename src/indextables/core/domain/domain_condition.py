"""A domain of one column as a condition on it."""

from __future__ import annotations

from indextables.core.domain.domain import Bound, Domain, Range
from indextables.core.predicate.nodes import (
    And,
    Compare,
    CompareOp,
    Constant,
    IsIn,
    IsNan,
    IsNull,
    Literal,
    NanRule,
    Not,
    Or,
    Predicate,
    Ref,
)


def condition(ref: Ref, domain: Domain, *, has_nan: bool) -> Predicate:
    """TRUE for the values of the domain. NaN, if it counts at all, is in no range but a flag."""
    if domain.is_none or domain.is_all:
        return Constant(value=domain.is_all)
    points = [r.low.value for r in domain.ranges if r.is_point]
    parts: list[Predicate] = [IsNull(ref)] if domain.null_allowed else []
    if points:
        parts.append(IsIn(ref, tuple(Literal(value) for value in points)))
    nan_is_due = has_nan and domain.nan_allowed
    for each in (r for r in domain.ranges if not r.is_point):
        # Spark's NaN is above all numbers: an open end takes it in without a word.
        takes_nan = each.high.value is None and (nan_is_due or not has_nan)
        nan_is_due = nan_is_due and not takes_nan
        parts.append(_between(ref, each, NanRule.SPARK if takes_nan else NanRule.IEEE))
    if nan_is_due:
        parts.append(IsNan(ref))
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def _between(ref: Ref, range_: Range, nan: NanRule) -> Predicate:
    low, high = range_.low, range_.high
    parts: list[Predicate] = []
    if low.value is not None:
        op: CompareOp = ">" if low.bound is Bound.ABOVE else ">="
        parts.append(Compare(op, ref, Literal(low.value), nan))
    if high.value is not None:
        op = "<" if high.bound is Bound.BELOW else "<="
        parts.append(Compare(op, ref, Literal(high.value), nan))
    if parts:
        return parts[0] if len(parts) == 1 else And(tuple(parts))
    # Under IEEE's rule every value but NaN equals itself.
    return Not(IsNull(ref)) if nan is NanRule.SPARK else Compare("=", ref, ref, nan)
