"""Arithmetic where several arguments vary: rows, and what bounds say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final, TypeAlias

import numpy as np

from indextables.core.expr.functions.function import (
    Range,
    Site,
)
from indextables.core.expr.functions.number_types import (
    is_integer,
)
from indextables.core.expr.image import Array, Mask
from indextables.core.expr.nodes import Mode
from indextables.core.expr.vectors import Vector, float_ordinals, floats_of
from indextables.core.states import space_of
from indextables.core.types import PrimitiveType, is_float


def _integer_rows(
    compute: Callable[[Array, Array], Array], exact: Callable[[int, int], int]
) -> Callable[[Site, Sequence[Vector]], Vector | None]:
    """Returns the rows of an operation on integers; `exact` does it with Python's."""

    def rows(site: Site, vectors: Sequence[Vector]) -> Vector | None:
        if not is_integer(site.result):
            return None
        one, two = vectors
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            y = compute(one.values, two.values)
        least, beyond = site.space.universe
        size = compute(one.values.astype(np.float64), two.values.astype(np.float64))
        outside = (y < least) | (y > beyond - 1)
        for row in np.flatnonzero(abs(size) >= 2.0**62):
            true = exact(int(one.values[row]), int(two.values[row]))
            outside[row] = not least <= true < beyond
        if site.mode is Mode.LEGACY:
            y = y if beyond == 2**63 else ((y - least) & (2 * beyond - 1)) + least
            outside = np.zeros_like(outside)
        return joined(site, y, vectors, outside)

    return rows


def joined(site: Site, y: Array, vectors: Sequence[Vector], outside: Mask) -> Vector:
    """Returns results that are NULL where an argument is, and raise or are NULL where there is none."""
    null = np.logical_or.reduce([v.null for v in vectors])
    error = np.logical_or.reduce([v.error for v in vectors])
    nowhere = np.zeros_like(null)
    if site.mode is Mode.ANSI:
        return Vector(site.result, y, null, nowhere, error | (outside & ~null))
    return Vector(site.result, y, null | outside, nowhere, error)


def rows_of_two(op: Callable[[Any, Any], Any], *, divides: bool = False) -> Any:
    """Returns the rows of `one op two`, for integers, doubles and decimals."""
    integers = _integer_rows(op, op)

    def rows(site: Site, vectors: Sequence[Vector]) -> Vector | None:
        if is_integer(site.result) and not divides:
            return integers(site, vectors)
        if is_float(site.result):
            return _float_rows(site, vectors, op, divides=divides)
        return None

    return rows


def _float_rows(
    site: Site, vectors: Sequence[Vector], op: Callable[[Any, Any], Any], *, divides: bool
) -> Vector:
    one, two = (np.where(v.nan, np.nan, floats_of(v.values, space_of(v.type))) for v in vectors)
    with np.errstate(all="ignore"):
        y = op(one.astype(np.float64), two.astype(np.float64))
        if site.result == PrimitiveType("float"):
            y = op(one.astype(np.float32), two.astype(np.float32))
    outside = (two == 0) if divides else np.zeros(len(y), np.bool_)
    nan = np.isnan(y)
    found = joined(site, float_ordinals(np.where(nan, 0, y), site.space), vectors, outside)
    return Vector(found.type, found.values, found.null, nan, found.error)


Corner: TypeAlias = tuple[int, int]
"""Which end of each argument, 0 being its least value."""
_EVERY: Final = ((0, 0), (0, 1), (1, 0), (1, 1))


def ranges_of_two(
    op: Callable[[Any, Any], Any],
    least: Sequence[Corner] = _EVERY,
    most: Sequence[Corner] = _EVERY,
) -> Callable[[Site, Sequence[Range]], Range | None]:
    """Returns the bounds of an operation that is monotone in each argument: it is extreme at these corners."""

    def ranges(site: Site, parts: Sequence[Range]) -> Range | None:
        one, two = parts
        value = (one.value | one.nan) & (two.value | two.nan)
        null, error = one.null | two.null, one.error | two.error
        if is_float(site.result):
            low, high, nan = _float_corners(site, one, two, op)
            return Range(site.result, low, high, value, null, nan | one.nan | two.nan, error)
        if not is_integer(site.result):
            return None
        with np.errstate(all="ignore"):
            ends = [
                reduce(join, [op((one.low, one.high)[i], (two.low, two.high)[j]) for i, j in corners])
                for join, corners in ((np.minimum, least), (np.maximum, most))
            ]
        nan = np.zeros_like(null)
        if (whole := _whole(site, one, two, op)) is not None:
            return Range(site.result, ends[0], ends[1], value, null, nan, error, whole)
        low, high, outside = _inside_type(site, ends, one, two, op)
        null, error = _with_outside(site.mode, outside, null, error)
        return Range(site.result, low, high, value, null, nan, error)

    return ranges


def _with_outside(mode: Mode, outside: Mask, null: Mask, error: Mask) -> tuple[Mask, Mask]:
    if mode is Mode.ANSI:
        return null, error | outside
    return (null | outside, error) if mode is Mode.TRY else (null, error)


def _corners(op: Callable[[Any, Any], Any], one: Any, two: Any) -> list[Array]:
    return [op(a, b) for a in one for b in two]


def _whole(site: Site, one: Range, two: Range, op: Callable[[Any, Any], Any]) -> tuple[int, int] | None:
    """Returns between which integers all results lie; None where one may leave its type."""
    if not len(one.low):
        return None
    sides = [r.ends or (int(r.low.min()), int(r.high.max())) for r in (one, two)]
    found = _corners(op, *sides)
    least, beyond = site.space.universe
    return (min(found), max(found)) if least <= min(found) and max(found) < beyond else None


def _inside_type(
    site: Site, ends: Sequence[Array], one: Range, two: Range, op: Callable[[Any, Any], Any]
) -> tuple[Array, Array, Mask]:
    """Returns the bounds of integers, and where a result may leave its type."""
    low, high = ends
    least, beyond = site.space.universe
    with np.errstate(all="ignore"):
        rough = _corners(op, *((r.low.astype(float), r.high.astype(float)) for r in (one, two)))
    # near the end of 64 bits the products and sums themselves are not to be trusted
    far = reduce(np.maximum, [abs(number) for number in rough]) >= 2.0**62
    outside = far | (low < least) | (high > beyond - 1)
    return np.where(outside, least, low), np.where(outside, beyond - 1, high), outside


def _float_corners(
    site: Site, one: Range, two: Range, op: Callable[[Any, Any], Any]
) -> tuple[Array, Array, Mask]:
    sides = [[floats_of(end, space_of(r.type)) for end in (r.low, r.high)] for r in (one, two)]
    with np.errstate(all="ignore"):
        found = _corners(op, *sides)
    nan = reduce(np.logical_or, [np.isnan(number) for number in found])
    low, high = reduce(np.minimum, found), reduce(np.maximum, found)
    infinite = np.float32(np.inf) if site.result == PrimitiveType("float") else np.inf
    low, high = np.where(nan, -infinite, low), np.where(nan, infinite, high)
    return float_ordinals(low, site.space), float_ordinals(high, site.space), nan


def ranges_of_quotient(site: Site, parts: Sequence[Range]) -> Range | None:
    """Returns the bounds of `one / two`: anything where the divisor may be zero."""
    one, two = parts
    if not is_float(site.result):
        return None
    zero = (two.low <= 0) & (two.high >= 0)
    low, high, nan = _float_corners(site, one, two, lambda a, b: a / b)
    first, end = site.space.universe
    low, high = np.where(zero, first, low), np.where(zero, end - 1, high)
    value = (one.value | one.nan) & (two.value | two.nan)
    null, error = one.null | two.null, one.error | two.error
    null, error = (null, error | zero) if site.mode is Mode.ANSI else (null | zero, error)
    return Range(site.result, low, high, value, null, nan | zero | one.nan | two.nan, error)
