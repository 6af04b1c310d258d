"""Sets of values of one column, as query engines hand them over: ranges, and whether NULL and NaN count.

A value is a natural Python value of the column's own type. Nothing is coerced here: a text is never
a date, and values that do not compare with each other cannot be in one domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import total_ordering
from typing import Any, Final, TypeVar

from indextables.core.states import (
    BOTTOM,
    EMPTY,
    TOP,
    Cut,
    Cuts,
    States,
    all_of,
    any_of,
    holds,
    union,
    without,
)
from indextables.core.stats.truncation_options import next_prefix
from indextables.errors import PredicateError

_T = TypeVar("_T")


class Bound(Enum):
    """Where a marker stands: just below its value, on it, or just above it.

    Examples:
        >>> Range.greater_than(3).low
        Marker(value=3, bound=<Bound.ABOVE: 2>)
    """

    BELOW = 0
    EXACTLY = 1
    ABOVE = 2


@total_ordering
@dataclass(frozen=True, slots=True)
class Marker:
    """One end of a range; without a value it is the end of the line: ABOVE -∞, or BELOW +∞.

    >>> Marker(None, Bound.ABOVE) < Marker(34, Bound.EXACTLY) < Marker(34, Bound.ABOVE)
    True
    """

    value: Any
    bound: Bound

    def __post_init__(self) -> None:
        if self.value is None and self.bound is Bound.EXACTLY:
            raise PredicateError(
                "a marker without a value stands at an end of the line, not on a value",
                hint="NULL is no value: set null_allowed on the domain",
            )
        if is_nan(self.value):
            raise PredicateError(
                "NaN cannot be the end of a range", hint="set nan_allowed on the domain"
            )

    def __lt__(self, other: Marker) -> bool:
        return _comparing(lambda: bool(self._place < other._place))

    @property
    def _place(self) -> Any:
        if self.value is None:
            return BOTTOM if self.bound is Bound.ABOVE else TOP
        return (self.value, self.bound.value)


def is_nan(value: Any) -> bool:
    """Returns whether a value is the one that equals nothing, not even itself."""
    return isinstance(value, float | Decimal) and math.isnan(value)


def _comparing(compare: Callable[[], _T]) -> _T:
    try:
        return compare()
    except TypeError as error:
        raise PredicateError(
            f"values of one domain must compare with each other: {error}",
            hint="use one type; datetimes either all with a time zone or all without",
        ) from error


_START: Final = Marker(None, Bound.ABOVE)
_END: Final = Marker(None, Bound.BELOW)


@dataclass(frozen=True, slots=True)
class Range:
    """All values between two markers; never empty.

    >>> Range.at_least(34)
    Range(low=Marker(value=34, bound=<Bound.EXACTLY: 1>), high=Marker(value=None, bound=<Bound.BELOW: 0>))
    """

    low: Marker
    high: Marker

    def __post_init__(self) -> None:
        if self.low.bound is Bound.BELOW or self.high.bound is Bound.ABOVE:
            raise PredicateError(
                "a range starts EXACTLY at or ABOVE its low value and ends EXACTLY at or BELOW its high one"
            )
        if self.low > self.high:
            raise PredicateError(f"there is no value between {self.low} and {self.high}")

    @classmethod
    def all(cls) -> Range:
        """Returns every value.

        Returns:
            The range without ends.

        Examples:
            >>> 5 in Domain([Range.all()])
            True
        """
        return cls(_START, _END)

    @classmethod
    def equal(cls, value: Any) -> Range:
        """Returns one value.

        Args:
            value: The value, neither NULL nor NaN.

        Returns:
            The range.

        Examples:
            >>> Range.equal(3).is_point
            True
        """
        return cls(Marker(value, Bound.EXACTLY), Marker(value, Bound.EXACTLY))

    @classmethod
    def greater_than(cls, value: Any) -> Range:
        """Returns all values above one: `> value`.

        Args:
            value: The value below them, not one of them.

        Returns:
            The range.

        Examples:
            >>> 3 in Domain([Range.greater_than(3)])
            False
        """
        return cls(Marker(value, Bound.ABOVE), _END)

    @classmethod
    def at_least(cls, value: Any) -> Range:
        """Returns a value and all above it: `>= value`.

        Args:
            value: The least of them.

        Returns:
            The range.

        Examples:
            >>> 3 in Domain([Range.at_least(3)])
            True
        """
        return cls(Marker(value, Bound.EXACTLY), _END)

    @classmethod
    def less_than(cls, value: Any) -> Range:
        """Returns all values below one: `< value`.

        Args:
            value: The value above them, not one of them.

        Returns:
            The range.

        Examples:
            >>> 3 in Domain([Range.less_than(3)])
            False
        """
        return cls(_START, Marker(value, Bound.BELOW))

    @classmethod
    def at_most(cls, value: Any) -> Range:
        """Returns a value and all below it: `<= value`.

        Args:
            value: The greatest of them.

        Returns:
            The range.

        Examples:
            >>> 3 in Domain([Range.at_most(3)])
            True
        """
        return cls(_START, Marker(value, Bound.EXACTLY))

    @classmethod
    def between(cls, low: Any, high: Any) -> Range:
        """Returns all values between two, which belong to it: `BETWEEN low AND high`.

        Args:
            low: The least of them.
            high: The greatest of them.

        Returns:
            The range.

        Raises:
            PredicateError: `low` is above `high`, or they do not compare.

        Examples:
            >>> 5 in Domain([Range.between(3, 5)])
            True
        """
        return cls(Marker(low, Bound.EXACTLY), Marker(high, Bound.EXACTLY))

    @property
    def is_point(self) -> bool:
        """Returns True if it is known to hold one value only."""
        return self.low == self.high

    @property
    def cuts(self) -> Cuts:
        """Returns the range as cuts between values."""
        low, high = self.low, self.high
        start = BOTTOM if low.value is None else (low.value, int(low.bound is Bound.ABOVE))
        end = TOP if high.value is None else (high.value, int(high.bound is Bound.EXACTLY))
        return (start, end)


class Markers:
    """The space of values whose type nobody told: any that compare with each other, and NaN."""

    values: Final = States((BOTTOM, TOP), nan=True)
    is_ordered: Final = True

    def below(self, value: Any) -> Cut:
        """Returns the cut right below a value."""
        return (value, 0)

    def above(self, value: Any) -> Cut:
        """Returns the cut right above a value."""
        return (value, 1)

    def point(self, value: Any) -> Cuts:
        """Returns one value and no other."""
        return ((value, 0), (value, 1))

    def points(self, values: Collection[Any]) -> Cuts:
        """Returns these values and no others."""
        return union([EMPTY, *map(self.point, values)])

    def prefixed(self, prefix: Any) -> Cuts:
        """Returns the texts, or binaries, that begin with a prefix."""
        end = next_prefix(prefix)
        return ((prefix, 0), TOP if end is None else (end, 0))


MARKERS: Final = Markers()
_EVERYTHING: Final = States((BOTTOM, TOP), null=True, nan=True)


@dataclass(frozen=True, slots=True, init=False)
class Domain:
    """The values a column may have: ranges (kept sorted, disjoint and merged), NULL, NaN.

    >>> Domain([Range.between(3, 5), Range.between(1, 3)]) == Domain([Range.between(1, 5)])
    True
    """

    ranges: tuple[Range, ...]
    null_allowed: bool = False
    nan_allowed: bool = False

    def __init__(
        self, ranges: Iterable[Range] = (), null_allowed: bool = False, nan_allowed: bool = False
    ) -> None:
        cuts = _comparing(lambda: union([(), *(r.cuts for r in ranges)]))
        object.__setattr__(self, "ranges", _ranges(cuts))
        object.__setattr__(self, "null_allowed", null_allowed)
        object.__setattr__(self, "nan_allowed", nan_allowed)

    @classmethod
    def all(cls) -> Domain:
        """Returns every value, NULL and NaN.

        Returns:
            The domain that excludes nothing.

        Examples:
            >>> Domain.all().is_all
            True
        """
        return cls.of_states(_EVERYTHING)

    @classmethod
    def none(cls) -> Domain:
        """Returns the empty domain.

        Returns:
            The domain that no value is in, not even NULL.

        Examples:
            >>> None in Domain.none()
            False
        """
        return cls()

    @classmethod
    def of(cls, *values: Any) -> Domain:
        """Returns exactly these values; None is NULL, and NaN is NaN.

        Args:
            values: The values, of one type.

        Returns:
            The domain.

        Raises:
            PredicateError: The values do not compare with each other.

        Examples:
            >>> None in Domain.of(1, 2, None)
            True
        """
        points = [Range.equal(v) for v in values if v is not None and not is_nan(v)]
        return cls(points, None in values, any(map(is_nan, values)))

    @classmethod
    def of_states(cls, states: States) -> Domain:
        """Returns the domain of a set of states over markers.

        Args:
            states: The states, as `Domain.states` gives them.

        Returns:
            The domain.

        Examples:
            >>> Domain.of_states(Domain.of(1).states) == Domain.of(1)
            True
        """
        return cls(_ranges(states.cuts), states.null, states.nan)

    @property
    def states(self) -> States:
        """Returns the domain as a set of states over markers."""
        cuts = tuple(cut for r in self.ranges for cut in r.cuts)
        return States(cuts, self.null_allowed, self.nan_allowed)

    @property
    def is_none(self) -> bool:
        """Returns True if nothing is in it."""
        return self.states.is_empty

    @property
    def is_all(self) -> bool:
        """Returns True if everything is in it."""
        return self.states == _EVERYTHING

    def union(self, other: Domain) -> Domain:
        """Returns what is in one of the two, or in both.

        Args:
            other: The other domain, over values of one type with this one.

        Returns:
            Their union.

        Examples:
            >>> Domain.of(1).union(Domain.of(2)) == Domain.of(1, 2)
            True
        """
        return Domain.of_states(_comparing(lambda: any_of([self.states, other.states])))

    def intersect(self, other: Domain) -> Domain:
        """Returns what is in both.

        Args:
            other: The other domain, over values of one type with this one.

        Returns:
            Their intersection.

        Examples:
            >>> Domain.of(1, 2).intersect(Domain.of(2, 3)) == Domain.of(2)
            True
        """
        return Domain.of_states(_comparing(lambda: all_of([self.states, other.states])))

    def complement(self) -> Domain:
        """Returns what is not in it; NULL and NaN change sides like every value.

        Returns:
            The complement.

        Examples:
            >>> None in Domain.of(1).complement()
            True
        """
        return Domain.of_states(without(_EVERYTHING, self.states))

    def overlaps(self, other: Domain) -> bool:
        """Returns True if something is in both.

        Args:
            other: The other domain, over values of one type with this one.

        Returns:
            True or False.

        Examples:
            >>> Domain.of(1, 2).overlaps(Domain.of(2, 3))
            True
        """
        return not self.intersect(other).is_none

    def contains(self, other: Domain) -> bool:
        """Returns True if everything in the other is in this one too.

        Args:
            other: The other domain, over values of one type with this one.

        Returns:
            True or False.

        Examples:
            >>> Domain([Range.at_least(1)]).contains(Domain.of(2, 3))
            True
        """
        return self.intersect(other) == other

    def __contains__(self, value: Any) -> bool:
        if value is None or is_nan(value):
            return self.null_allowed if value is None else self.nan_allowed
        return _comparing(lambda: holds(self.states.cuts, (value, 0)))


def _ranges(cuts: Cuts) -> tuple[Range, ...]:
    return tuple(
        Range(_low(start), _high(end)) for start, end in zip(cuts[::2], cuts[1::2], strict=True)
    )


def _low(cut: Cut) -> Marker:
    return _START if cut is BOTTOM else Marker(cut[0], Bound.ABOVE if cut[1] else Bound.EXACTLY)


def _high(cut: Cut) -> Marker:
    return _END if cut is TOP else Marker(cut[0], Bound.EXACTLY if cut[1] else Bound.BELOW)
