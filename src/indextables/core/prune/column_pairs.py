"""Three bits per split: may be TRUE, may be FALSE, may be NULL for some of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.domain.truth import View, truth_over
from indextables.core.expr.evaluate import range_of
from indextables.core.expr.functions import Range
from indextables.core.predicate.nodes import Call, CompareOp, NanRule, Over, Ref
from indextables.core.prune.bounds import Bounds, IntBounds, bounds_of
from indextables.core.prune.index import ColumnStatsIndex
from indextables.core.states import Ordinals, States, space_of
from indextables.core.stats.columns import FileMask, as_mask
from indextables.core.types import DecimalType, FieldPath, PrimitiveType


@dataclass(frozen=True, slots=True, eq=False)
class Masks:
    """Which outcomes a condition may have in each split; False only where statistics prove it."""

    true: FileMask
    false: FileMask
    null: FileMask
    error: FileMask | None = None
    """It may raise; None: nowhere."""

    def __invert__(self) -> Masks:
        return Masks(self.false, self.true, self.null, self.error)

    @property
    def needed(self) -> FileMask:
        """Returns where a row may be wanted, or raise as it would anywhere else."""
        return self.true if self.error is None else self.true | self.error

    @property
    def not_surely_true(self) -> FileMask:
        """Returns where the condition may be anything but TRUE."""
        other = self.false | self.null
        return other if self.error is None else other | self.error

    def seen(self, view: View) -> Masks:
        """Returns the outcomes after the NOTs and IS TRUEs around the condition."""
        masks = ~self if view.negated else self
        nowhere = np.zeros_like(self.true)
        match view.null_as:
            case None:
                return masks
            case True:
                return Masks(masks.true | masks.null, masks.false, nowhere, masks.error)
            case False:
                return Masks(masks.true, masks.false | masks.null, nowhere, masks.error)


def conjunction(parts: Sequence[Masks]) -> Masks:
    """Returns the AND of conditions on different columns: exact as far as the columns are independent.

    NULL needs one part that may be NULL while no part has to be FALSE.
    """
    nowhere_false = np.logical_and.reduce([p.true | p.null for p in parts])
    return Masks(
        true=np.logical_and.reduce([p.true for p in parts]),
        false=np.logical_or.reduce([p.false for p in parts]),
        null=nowhere_false & np.logical_or.reduce([p.null for p in parts]),
        error=_errors(parts),
    )


def _errors(parts: Sequence[Masks]) -> FileMask | None:
    """Returns where an AND may raise: some part may, and none is surely FALSE."""
    errors = [p.error for p in parts if p.error is not None]
    if not errors:
        return None
    not_false = np.logical_and.reduce([p.needed | p.null for p in parts])
    return not_false & np.logical_or.reduce(errors)  # type: ignore[no-any-return]


def disjunction(parts: Sequence[Masks]) -> Masks:
    """Returns the OR: the dual of AND."""
    return ~conjunction([~part for part in parts])


# One column compared with another, as far as their bounds can tell.
#
# Under Spark's rule NaN is the top of the line: a column that may be NaN has it as its upper end, and
# one that is nothing but NaN has it as its lower end too. Under IEEE's, NaN stands outside the line.


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """One side of the comparison; `lo` and `hi` are numpy integers or Arrow binaries."""

    lo: Any
    hi: Any
    may_null: FileMask
    may_nan: FileMask
    may_value: FileMask

    @property
    def some(self) -> FileMask:
        """Returns where it may be something else than NULL."""
        return self.may_value | self.may_nan


def compare_values(
    op: CompareOp, left: Ref | Call, right: Ref | Call, nan: NanRule, index: ColumnStatsIndex
) -> Masks:
    """Returns which outcomes `left op right` may have, where one side at least is a function."""
    one, two = (range_of(side, lambda ref: range_of_column(ref, index)) for side in (left, right))
    if one is None or two is None:
        every = np.ones(index.num_rows, np.bool_)
        return Masks(every, every, every, every)
    space = space_of(one.type)
    top = space.universe[1] - 1 if space.kind in {"single", "double"} else 0
    a, b = (_Column(r.low, r.high, r.null, r.nan, r.value) for r in (one, two))
    found = _compare(op, a, b, nan, top)
    error = one.error | two.error
    return Masks(found.true, found.false, found.null, error if error.any() else None)


def range_of_column(ref: Ref, index: ColumnStatsIndex) -> Range | None:
    """Returns a column's bounds as the range of a value; None for those that are no integers."""
    stats, bounds = index.column(ref.path), index.bounds(ref.path)
    if not isinstance(bounds, IntBounds) or ref.type is None:
        return None
    nowhere = np.zeros(index.num_rows, np.bool_)
    return Range(
        ref.type,
        bounds.lo,
        bounds.hi,
        stats.may_value,
        stats.may_null,
        stats.may_nan,
        nowhere,
        bounds.ends,
    )


def masks_over(leaf: Over, index: ColumnStatsIndex) -> Masks:
    """Returns which outcomes a condition on the value of a function may have, by that value's range."""
    found = truth_over(leaf)
    known = range_of(leaf.expression, lambda ref: range_of_column(ref, index))
    if found is None or known is None or known.low.dtype == object:
        every = np.ones(index.num_rows, np.bool_)
        return Masks(every, every, every, every)
    bounds = IntBounds(known.low, known.high, _ends=known.ends)

    def overlap(states: States) -> FileMask:
        hit = known.value & bounds.overlap(states.cuts) if states.cuts else np.zeros_like(known.value)
        hit = hit | known.null if states.null else hit
        return hit | known.nan if states.nan else hit

    true, false, null = (overlap(states) for states in (found.true, found.false, found.null))
    return Masks(true, false, null, known.error if known.error.any() else None)


def compare_columns(
    op: CompareOp, left: FieldPath, right: FieldPath, nan: NanRule, index: ColumnStatsIndex
) -> Masks:
    """Returns which outcomes `left op right` may have; columns without a common line may have any."""
    a, b = _column(left, index), _column(right, index)
    found = _common(left, right, index)
    if found is None:
        masks = Masks(a.some & b.some, a.some & b.some, a.may_null | b.may_null)
        return _null_safe(masks, a, b) if op == "<=>" else masks
    bounds, top = found
    return _compare(op, _on(a, bounds[0]), _on(b, bounds[1]), nan, top)


def _column(path: FieldPath, index: ColumnStatsIndex) -> _Column:
    stats = index.column(path)
    return _Column(None, None, stats.may_null, stats.may_nan, stats.may_value)


def _on(column: _Column, bounds: Bounds) -> _Column:
    return _Column(bounds.lo, bounds.hi, column.may_null, column.may_nan, column.may_value)


def _common(
    left: FieldPath, right: FieldPath, index: ColumnStatsIndex
) -> tuple[tuple[Bounds, Bounds], int] | None:
    """Returns both columns' bounds on one line and where NaN stands on it."""
    a, b = index.space(left), index.space(right)
    kinds = {a.kind, b.kind}
    if "unordered" in kinds:
        return None
    top = a.universe[1] if a.kind in {"single", "double"} else 0
    if kinds == {"decimal"}:
        return _decimals(left, right, index), 0
    if len(kinds) == 1:
        return (index.bounds(left), index.bounds(right)), top
    if kinds == {"single", "double"}:
        space = space_of(PrimitiveType("double"))
        return (_again(left, space, index), _again(right, space, index)), space.universe[1]
    return None


def _again(path: FieldPath, space: Ordinals, index: ColumnStatsIndex) -> Bounds:
    stats = index.column(path)
    return bounds_of(stats.lo, stats.hi, space)


def _decimals(left: FieldPath, right: FieldPath, index: ColumnStatsIndex) -> tuple[Bounds, Bounds]:
    """Decimals of any precision and scale, as unscaled integers of the larger scale."""
    columns = [index.column(path) for path in (left, right)]
    scale = max(stats.lo.type.scale for stats in columns)
    space = space_of(DecimalType(38, scale))
    a, b = (
        bounds_of(_rescaled(stats.lo, scale), _rescaled(stats.hi, scale), space) for stats in columns
    )
    return a, b


def _rescaled(decimals: Any, scale: int) -> Any:
    try:
        return decimals.cast(pa.decimal128(38, scale))
    except pa.ArrowInvalid:  # a value has no room for more digits: unknown is always true
        return pa.nulls(len(decimals), pa.decimal128(38, scale))


def _compare(op: CompareOp, a: _Column, b: _Column, nan: NanRule, top: int) -> Masks:
    match op:
        case "=":
            return _equal(a, b, nan)
        case "<>":
            return ~_equal(a, b, nan)
        case "<=>":
            return _null_safe(_equal(a, b, nan), a, b)
        case "<":
            return _less(a, b, nan, top, or_equal=False)
        case "<=":
            return _less(a, b, nan, top, or_equal=True)
        case ">":
            return _less(b, a, nan, top, or_equal=False)
        case ">=":
            return _less(b, a, nan, top, or_equal=True)
        case _:
            assert_never(op)


def _null_safe(masks: Masks, a: _Column, b: _Column) -> Masks:
    one_null = (a.may_null & b.some) | (b.may_null & a.some)
    return Masks(
        masks.true | (a.may_null & b.may_null), masks.false | one_null, np.zeros_like(masks.null)
    )


def _equal(a: _Column, b: _Column, nan: NanRule) -> Masks:
    both, values = a.some & b.some, a.may_value & b.may_value
    true = values & _may_be_less(a.lo, b.hi, or_equal=True) & _may_be_less(b.lo, a.hi, or_equal=True)
    one_value = values & _same(a.lo, a.hi) & _same(b.lo, b.hi) & _same(a.lo, b.lo)
    always = one_value & ~a.may_nan & ~b.may_nan
    if nan is NanRule.SPARK:
        true |= a.may_nan & b.may_nan
        always |= both & ~a.may_value & ~b.may_value
    return Masks(true, both & ~always, a.may_null | b.may_null)


def _less(a: _Column, b: _Column, nan: NanRule, top: int, *, or_equal: bool) -> Masks:
    both, values = a.some & b.some, a.may_value & b.may_value
    null = a.may_null | b.may_null
    if nan is NanRule.SPARK and (a.may_nan.any() or b.may_nan.any()):
        a, b = _with_nan_on_top(a, top), _with_nan_on_top(b, top)
        values = both
    true = values & _may_be_less(a.lo, b.hi, or_equal=or_equal)
    false = values & _may_be_less(b.lo, a.hi, or_equal=not or_equal)
    if nan is NanRule.IEEE:
        false |= both & (a.may_nan | b.may_nan)
    return Masks(true, false, null)


def _with_nan_on_top(column: _Column, top: int) -> _Column:
    lo = np.where(column.may_value, column.lo, top)
    hi = np.where(column.may_nan, top, column.hi)
    return _Column(lo, hi, column.may_null, column.may_nan, column.may_value)


def _may_be_less(low: Any, high: Any, *, or_equal: bool) -> FileMask:
    """Returns whether a value at or above `low` may be less than one at or below `high`."""
    if isinstance(low, np.ndarray):
        hit: FileMask = low <= high if or_equal else low < high
        return hit
    compare = pc.less_equal if or_equal else pc.less
    return as_mask(compare(low, high), unknown=True)


def _same(a: Any, b: Any) -> FileMask:
    if isinstance(a, np.ndarray):
        hit: FileMask = a == b
        return hit
    return as_mask(pc.equal(a, b))
