"""The leaf tables: for which states of its column each kind of leaf is TRUE, FALSE and NULL."""

from __future__ import annotations

from typing import Any, Final, TypeAlias, assert_never

from indextables.core.domain.space import Space
from indextables.core.domain.states import EMPTY, Cuts, complement
from indextables.core.domain.states_states import NOTHING, ONLY_NULL, States, Truth, any_of, without
from indextables.core.predicate.nodes import (
    BoolRef,
    Compare,
    CompareOp,
    Constant,
    IsIn,
    IsNan,
    IsNull,
    Literal,
    NanRule,
    StartsWith,
)

ColumnLeaf: TypeAlias = Compare | IsNull | IsNan | IsIn | StartsWith | BoolRef
"""A leaf that reads one column and nothing else."""

_NAN_ABOVE_ALL: Final = frozenset({">", ">=", "<>"})
_NAN_EQUALS_ITSELF: Final = frozenset({"=", "<=", ">=", "<=>"})


def truth_of(leaf: ColumnLeaf | Constant, space: Space) -> Truth:
    """The states that make the leaf TRUE, FALSE and NULL; exact unless the leaf itself is inexact."""
    match leaf:
        case Compare(op, _, Literal(value), nan):
            return _compare(op, value, nan, space)
        case Compare(op, _, _, nan):
            return _with_itself(op, nan, space)
        case IsNull():
            return Truth(ONLY_NULL, space.values, NOTHING)
        case IsNan():
            true = States(nan=space.values.nan)
            return Truth(true, without(_all(space), true), NOTHING)
        case IsIn(_, values, nan):
            return _is_in([v.value for v in values], nan, space)
        case StartsWith(_, prefix, exact):
            true = States(space.prefixed(prefix))
            return _unless_null(true, space) if exact else Truth(true, space.values, ONLY_NULL)
        case BoolRef():
            return _compare("=", True, NanRule.SPARK, space)
        case Constant(value):
            return _constant(value, space)
        case _:
            assert_never(leaf)


def _all(space: Space) -> States:
    return any_of([space.values, ONLY_NULL])


def _unless_null(true: States, space: Space) -> Truth:
    """TRUE for these states, FALSE for all other values, NULL for NULL."""
    return Truth(true, without(space.values, true), ONLY_NULL)


def _constant(value: bool | None, space: Space) -> Truth:
    every = _all(space)
    if value is None:
        return Truth(NOTHING, NOTHING, every)
    return Truth(every, NOTHING, NOTHING) if value else Truth(NOTHING, every, NOTHING)


def _compare(op: CompareOp, value: Any, nan: NanRule, space: Space) -> Truth:
    if op == "<=>":
        if value is None:
            return Truth(ONLY_NULL, space.values, NOTHING)
        equal = _compare("=", value, nan, space)
        return Truth(equal.true, equal.not_true, NOTHING)
    if value is None:
        return _constant(None, space)
    return _unless_null(_satisfying(op, value, nan, space), space)


def _satisfying(op: CompareOp, value: Any, nan: NanRule, space: Space) -> States:
    """The values v, NaN among them, for which `v op value` is TRUE."""
    has_nan = space.values.nan
    if value != value:  # noqa: PLR0124  the one value that is not equal to itself
        if nan is NanRule.IEEE:
            return space.values if op == "<>" else NOTHING
        cuts = space.values.cuts if op in {"<", "<=", "<>"} else EMPTY
        return States(cuts, nan=has_nan and op in _NAN_EQUALS_ITSELF)
    nan_satisfies = op == "<>" if nan is NanRule.IEEE else op in _NAN_ABOVE_ALL
    return States(_range(op, value, space), nan=has_nan and nan_satisfies)


def _range(op: CompareOp, value: Any, space: Space) -> Cuts:
    first, last = space.values.cuts
    match op:
        case "=" | "<=>":
            return space.point(value)
        case "<>":
            return complement(space.point(value), space.values.cuts)
        case "<":
            return _between(first, space.below(value))
        case "<=":
            return _between(first, space.above(value))
        case ">":
            return _between(space.above(value), last)
        case ">=":
            return _between(space.below(value), last)
        case _:
            assert_never(op)


def _between(start: Any, end: Any) -> Cuts:
    return (start, end) if start < end else EMPTY


def _with_itself(op: CompareOp, nan: NanRule, space: Space) -> Truth:
    """A column compared with itself: only NaN under IEEE rules is not equal to itself."""
    if op == "<=>":
        equal = _with_itself("=", nan, space)
        true = any_of([equal.true, ONLY_NULL])
        return Truth(true, without(_all(space), true), NOTHING)
    values = space.values
    if op in {"=", "<=", ">="}:
        true = States(values.cuts, nan=values.nan and nan is NanRule.SPARK)
    else:
        true = States(nan=values.nan and nan is NanRule.IEEE and op == "<>")
    return _unless_null(true, space)


def _is_in(values: list[Any], nan: NanRule, space: Space) -> Truth:
    if not values:
        return _constant(False, space)
    known = [v for v in values if v is not None]
    points = [v for v in known if v == v]  # noqa: PLR0124
    listed = States(
        space.points(points),
        nan=space.values.nan and nan is NanRule.SPARK and len(points) < len(known),
    )
    if len(known) == len(values):
        return _unless_null(listed, space)
    # `x IN (1, NULL)` is never FALSE: the NULL might have been x.
    return Truth(listed, NOTHING, any_of([without(space.values, listed), ONLY_NULL]))
