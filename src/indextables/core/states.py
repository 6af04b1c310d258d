"""Sets of values as sorted cuts: exact union, intersection and complement over any total order.

A *cut* is a place between two neighbouring values. A set is a flat tuple of cuts
`(start, end, start, end, …)`, strictly increasing; each pair holds what lies between its two cuts.
Because every set in one order is built from the same cuts, two sets that hold the same values are
equal tuples: (1, 2) over integers *is* the empty set.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from itertools import chain, islice
from operator import lt
from typing import Any, Final, Literal, Protocol, TypeAlias, assert_never, final

from indextables.core.stats.truncation_options import next_prefix
from indextables.core.types import (
    DataType,
    DecimalType,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
    is_orderable,
)

Cut: TypeAlias = Any
Cuts: TypeAlias = tuple[Cut, ...]
EMPTY: Final[Cuts] = ()


@final
class _Extreme:
    """A cut beyond every other: comparable with anything, equal only to itself."""

    __slots__ = ("_above",)

    def __init__(self, *, above: bool) -> None:
        self._above = above

    def __lt__(self, other: object) -> bool:
        return not self._above and other is not self

    def __gt__(self, other: object) -> bool:
        return self._above and other is not self

    def __le__(self, other: object) -> bool:
        return not self > other

    def __ge__(self, other: object) -> bool:
        return not self < other

    def __repr__(self) -> str:
        return "+∞" if self._above else "-∞"


BOTTOM: Final = _Extreme(above=False)
TOP: Final = _Extreme(above=True)


def union(sets: Sequence[Cuts]) -> Cuts:
    """Returns what at least one of the sets holds.

    >>> union([(1, 3), (3, 5), (9, 10)])
    (1, 5, 9, 10)
    """
    filled = sorted((cuts for cuts in sets if cuts), key=len, reverse=True)
    if sum(map(len, filled[1:])) > _FEW:
        return _covered(filled, 1)
    found = filled[0] if filled else EMPTY
    for cuts in filled[1:]:
        for start, end in zip(cuts[::2], cuts[1::2], strict=True):
            found = _with_interval(found, start, end)
    return found


_FEW: Final = 16
"""At most this many cuts are put into a long set one by one."""


def _with_interval(cuts: Cuts, start: Cut, end: Cut) -> Cuts:
    # what ends where this begins, or begins where it ends, becomes one with it
    before, after = bisect_left(cuts, start), bisect_right(cuts, end)
    inner = ((start,) if before % 2 == 0 else EMPTY) + ((end,) if after % 2 == 0 else EMPTY)
    return cuts[:before] + inner + cuts[after:]


def intersection(sets: Sequence[Cuts]) -> Cuts:
    """Returns what all of the sets hold; there must be one at least.

    >>> intersection([(1, 6), (0, 2, 4, 9)])
    (1, 2, 4, 6)
    """
    return _covered(sets, len(sets)) if all(sets) else EMPTY


def complement(cuts: Cuts, universe: Cuts) -> Cuts:
    """Returns what the universe (one interval) holds and the set does not.

    >>> complement((0, 2, 4, 9), (0, 9))
    (2, 4)
    """
    start, end = universe
    inner = cuts[1:] if cuts and cuts[0] == start else (start, *cuts)
    return inner[:-1] if inner[-1] == end else (*inner, end)


def holds(cuts: Cuts, below: Cut) -> bool:
    """Returns whether the value right above the cut `below` is in the set."""
    return bisect_right(cuts, below) % 2 == 1


def _covered(sets: Sequence[Cuts], needed: int) -> Cuts:
    """Returns where at least `needed` of the sets lie over each other: one sweep over all cuts at once."""
    if len(sets) == 1:
        return sets[0]
    starts = sorted(chain.from_iterable(cuts[::2] for cuts in sets))
    ends = sorted(chain.from_iterable(cuts[1::2] for cuts in sets))
    if needed == 1 and all(map(lt, ends, islice(starts, 1, None))):
        return tuple(chain.from_iterable(zip(starts, ends, strict=True)))  # nothing touches: a long IN
    found: list[Cut] = []
    depth = opened = closed = 0
    while closed < len(ends):
        # All that starts or ends at one cut counts together, so that touching intervals merge.
        cut = min(starts[opened], ends[closed]) if opened < len(starts) else ends[closed]
        before = depth >= needed
        while opened < len(starts) and starts[opened] == cut:
            opened, depth = opened + 1, depth + 1
        while closed < len(ends) and ends[closed] == cut:
            closed, depth = closed + 1, depth - 1
        if before != (depth >= needed):
            found.append(cut)
    return tuple(found)


# Three-valued logic over the states of one column: its values, NaN and NULL.
#
# A condition on one column divides the states into those that make it TRUE, FALSE and NULL. Folding
# AND, OR and NOT on these sets, and asking statistics only once at the end, keeps what plain bitsets
# forget: that both sides of `a = 1 AND a = 2` speak of the same value.


@dataclass(frozen=True, slots=True)
class States:
    """A set of states: values by their cuts, and whether NULL and NaN belong to it."""

    cuts: Cuts = ()
    null: bool = False
    nan: bool = False

    @property
    def is_empty(self) -> bool:
        """Returns no state belongs to it."""
        return not (self.cuts or self.null or self.nan)


NOTHING: Final = States()
ONLY_NULL: Final = States(null=True)


def any_of(sets: Sequence[States]) -> States:
    """States that at least one of the sets holds."""
    return States(union([s.cuts for s in sets]), any(s.null for s in sets), any(s.nan for s in sets))


def all_of(sets: Sequence[States]) -> States:
    """States that every one of the sets holds."""
    return States(
        intersection([s.cuts for s in sets]), all(s.null for s in sets), all(s.nan for s in sets)
    )


def without(universe: States, taken: States) -> States:
    """States of the universe (all values, or none) that are not taken."""
    cuts = complement(taken.cuts, universe.cuts) if universe.cuts else ()
    return States(cuts, universe.null and not taken.null, universe.nan and not taken.nan)


@dataclass(frozen=True, slots=True)
class Truth:
    """For which states a condition may be TRUE, FALSE and NULL, and may raise; inexact ones overlap."""

    true: States
    false: States
    null: States
    error: States = NOTHING

    def __invert__(self) -> Truth:
        return Truth(self.false, self.true, self.null, self.error)

    @property
    def not_true(self) -> States:
        """Returns the states for which the condition may be FALSE or NULL."""
        return any_of([self.false, self.null])

    @property
    def not_surely_true(self) -> States:
        """Returns the states for which the condition may be anything but TRUE: an error is another outcome."""
        return self.not_true if self.error.is_empty else any_of([self.not_true, self.error])

    @property
    def needed(self) -> States:
        """Returns the states for which a row has to be read: it may be wanted, or raise as it would anywhere else."""
        return self.true if self.error.is_empty else any_of([self.true, self.error])


def conjunction(parts: Sequence[Truth]) -> Truth:
    """Returns the AND of at least one condition on the same column."""
    if len(parts) == 1:
        return parts[0]
    nowhere_false = all_of([any_of([p.true, p.null]) for p in parts])
    return Truth(
        true=all_of([p.true for p in parts]),
        false=any_of([p.false for p in parts]),
        null=all_of([nowhere_false, any_of([p.null for p in parts])]),
        error=_errors(parts),
    )


def _errors(parts: Sequence[Truth]) -> States:
    """Returns where an AND may raise: some part may, and none is surely FALSE."""
    if all(p.error.is_empty for p in parts):
        return NOTHING
    not_false = all_of([any_of([p.true, p.null, p.error]) for p in parts])
    return all_of([not_false, any_of([p.error for p in parts])])


def disjunction(parts: Sequence[Truth]) -> Truth:
    """Returns the OR of at least one condition on the same column: the dual of AND.

    It may raise where any part may, although another is TRUE: an engine may come to that part first.
    """
    found = ~conjunction([~part for part in parts])
    errors = [part.error for part in parts if not part.error.is_empty]
    return replace(found, error=any_of(errors)) if errors else found


# The values of a type as places on a line, so that every comparison is one of integers or bytes.
#
# Integers, dates, timestamps and booleans stand for themselves. A decimal is its unscaled integer. A
# float is the integer its bits sort by. Text and binary are their bytes (UTF-8 sorts as code points
# do, UTF-16 does not). So neighbours are known: nothing lies between 1 and 2 in an integer column, nor
# between 1.0 and the next double, nor between 'a' and 'a\0'.

Kind: TypeAlias = Literal["integer", "single", "double", "decimal", "bytes", "unordered"]
_BITS: Final[Mapping[str, int]] = {
    "byte": 8,
    "short": 16,
    "integer": 32,
    "long": 64,
    "date": 32,
    "timestamp": 64,
    "timestamp_ntz": 64,
}
_EXACT: Final = Context(prec=100)


class Space(Protocol):
    """What the leaf tables need to know of a column's values."""

    @property
    def values(self) -> States:
        """Returns every value that is not NULL, NaN among them where the type has it."""
        ...

    @property
    def is_ordered(self) -> bool:
        """Returns whether values can be told apart at all."""
        ...

    def below(self, value: Any) -> Cut:
        """Returns the cut right below a value."""
        ...

    def above(self, value: Any) -> Cut:
        """Returns the cut right above a value."""
        ...

    def point(self, value: Any) -> Cuts:
        """Returns one value and no other."""
        ...

    def points(self, values: Collection[Any]) -> Cuts:
        """Returns these values and no others."""
        ...

    def prefixed(self, prefix: Any) -> Cuts:
        """Returns the values that begin with a prefix."""
        ...


@dataclass(frozen=True, slots=True)
class Ordinals:
    """The space of one type: each value is an ordinal (int or bytes) that sorts as the value does."""

    kind: Kind
    values: States
    """V: every value that is not NULL, NaN among them for floats."""
    ordinal: Callable[[Any], Any]

    @property
    def is_ordered(self) -> bool:
        """Returns whether values can be told apart; otherwise all of them are one place."""
        return self.kind != "unordered"

    @property
    def universe(self) -> Cuts:
        """Returns the first and the last cut of the type."""
        return self.values.cuts

    def below(self, value: Any) -> Cut:
        """Returns the cut right below a physical value."""
        return self.ordinal(value)

    def above(self, value: Any) -> Cut:
        """Returns the cut right above a physical value: right below its successor."""
        return self.point(value)[1]

    def point(self, value: Any) -> Cuts:
        """Returns one physical value and no other."""
        ordinal = self.ordinal(value)
        return (ordinal, ordinal + self._step)

    def points(self, values: Collection[Any]) -> Cuts:
        """Returns these physical values and no others, by one sort of all of them.

        >>> space_of(PrimitiveType("long")).points([7, 3, 4, 3])
        (3, 5, 7, 8)
        """
        starts = sorted(set(map(self.ordinal, values)))
        ends = [start + self._step for start in starts]
        touching = set(ends).intersection(starts)
        if touching:
            starts = [start for start in starts if start not in touching]
            ends = [end for end in ends if end not in touching]
        return tuple(chain.from_iterable(zip(starts, ends, strict=True)))

    @property
    def _step(self) -> Any:
        """Returns what makes an ordinal its successor."""
        return b"\0" if self.kind == "bytes" else 1

    def prefixed(self, prefix: Any) -> Cuts:
        """Returns the texts, or binaries, that begin with a prefix."""
        end = next_prefix(prefix)
        return (self.ordinal(prefix), TOP if end is None else self.ordinal(end))


def space_of(dtype: DataType, metadata: Mapping[str, Any] | None = None) -> Ordinals:
    """Returns the space of a type.

    Where values have no usable order, all of them are one single place.
    """
    if not is_orderable(dtype, metadata or {}):
        return _UNORDERED
    match dtype:
        case DecimalType(precision, scale):
            most = 10**precision
            return Ordinals("decimal", States((1 - most, most)), lambda v: unscaled(v, scale))
        case PrimitiveType("boolean"):
            return Ordinals("integer", States((0, 2)), int)
        case PrimitiveType("float"):
            return _floats("single", sortable_single)
        case PrimitiveType("double"):
            return _floats("double", sortable_double)
        case PrimitiveType("string"):
            return Ordinals("bytes", States((b"", TOP)), lambda v: v.encode("utf-8", "surrogatepass"))
        case PrimitiveType("binary"):
            return Ordinals("bytes", States((b"", TOP)), bytes)
        case PrimitiveType(name) if name in _BITS:
            half = 2 ** (_BITS[name] - 1)
            return Ordinals("integer", States((-half, half)), int)
        case PrimitiveType() | ListType() | MapType() | StructType():
            return _UNORDERED
        case _:
            assert_never(dtype)


def _floats(kind: Kind, ordinal: Callable[[float], int]) -> Ordinals:
    universe = (ordinal(float("-inf")), ordinal(float("inf")) + 1)
    return Ordinals(kind, States(universe, nan=True), ordinal)


_UNORDERED: Final = Ordinals("unordered", States((0, 1)), lambda _: 0)


def sortable_double(value: float) -> int:
    """Returns an integer that sorts as the double does.

    >>> sortable_double(-0.0) == sortable_double(0.0) == sortable_double(5e-324) - 1
    True
    """
    bits: int = struct.unpack("<q", struct.pack("<d", value + 0.0))[0]
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def sortable_single(value: float) -> int:
    """Returns an integer that sorts as the float does, which the value must be."""
    bits: int = struct.unpack("<i", struct.pack("<f", value + 0.0))[0]
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF)


def unscaled(value: Decimal | int, scale: int) -> int:
    """Returns the integer a decimal is, `scale` digits after the point counted in; the value must fit.

    >>> unscaled(Decimal("-12.5"), 3)
    -12500
    """
    # The default context rounds to 28 digits.
    number = _EXACT.scaleb(Decimal(value), scale)
    if number != number.to_integral_value():
        raise ValueError(f"{value} has more than {scale} digits after the point")
    return int(number)
