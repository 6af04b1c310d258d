r"""The values of a type as places on a line, so that every comparison is one of integers or bytes.

Integers, dates, timestamps and booleans stand for themselves. A decimal is its unscaled integer. A
float is the integer its bits sort by. Text and binary are their bytes (UTF-8 sorts as code points
do, UTF-16 does not). So neighbours are known: nothing lies between 1 and 2 in an integer column, nor
between 1.0 and the next double, nor between 'a' and 'a\0'.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from itertools import chain
from typing import Any, Final, Literal, Protocol, TypeAlias, assert_never

from indextables.core.domain.states import TOP, Cut, Cuts
from indextables.core.domain.states_states import States
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
        """V: every value that is not NULL, NaN among them where the type has it."""
        ...

    @property
    def is_ordered(self) -> bool:
        """Whether values can be told apart at all."""
        ...

    def below(self, value: Any) -> Cut:
        """The cut right below a value."""
        ...

    def above(self, value: Any) -> Cut:
        """The cut right above a value."""
        ...

    def point(self, value: Any) -> Cuts:
        """One value and no other."""
        ...

    def points(self, values: Collection[Any]) -> Cuts:
        """These values and no others."""
        ...

    def prefixed(self, prefix: Any) -> Cuts:
        """The values that begin with a prefix."""
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
        """Whether values can be told apart; otherwise all of them are one place."""
        return self.kind != "unordered"

    @property
    def universe(self) -> Cuts:
        """The first and the last cut of the type."""
        return self.values.cuts

    def below(self, value: Any) -> Cut:
        """The cut right below a physical value."""
        return self.ordinal(value)

    def above(self, value: Any) -> Cut:
        """The cut right above a physical value: right below its successor."""
        return self.point(value)[1]

    def point(self, value: Any) -> Cuts:
        """One physical value and no other."""
        ordinal = self.ordinal(value)
        return (ordinal, ordinal + self._step)

    def points(self, values: Collection[Any]) -> Cuts:
        """These physical values and no others, by one sort of all of them.

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
        """What makes an ordinal its successor."""
        return b"\0" if self.kind == "bytes" else 1

    def prefixed(self, prefix: Any) -> Cuts:
        """The texts, or binaries, that begin with a prefix."""
        end = next_prefix(prefix)
        return (self.ordinal(prefix), TOP if end is None else self.ordinal(end))


def space_of(dtype: DataType, metadata: Mapping[str, Any] | None = None) -> Ordinals:
    """The space of a type; where values have no usable order, all of them are one single place."""
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
    """An integer that sorts as the double does.

    >>> sortable_double(-0.0) == sortable_double(0.0) == sortable_double(5e-324) - 1
    True
    """
    bits: int = struct.unpack("<q", struct.pack("<d", value + 0.0))[0]
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def sortable_single(value: float) -> int:
    """An integer that sorts as the float does, which the value must be."""
    bits: int = struct.unpack("<i", struct.pack("<f", value + 0.0))[0]
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF)


def unscaled(value: Decimal | int, scale: int) -> int:
    """The integer a decimal is, `scale` digits after the point counted in; the value must fit.

    >>> unscaled(Decimal("-12.5"), 3)
    -12500
    """
    # The default context rounds to 28 digits.
    number = _EXACT.scaleb(Decimal(value), scale)
    if number != number.to_integral_value():
        raise ValueError(f"{value} has more than {scale} digits after the point")
    return int(number)
