"""Where a literal falls among the values of a discrete type, found by exact arithmetic or search."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, TypeAlias

_FLOAT32_INFINITY: Final = 0x7F800000


@dataclass(frozen=True, slots=True)
class Steps:
    """The values of a discrete type, numbered in their order from `low` to `high`."""

    low: int
    high: int
    value: Callable[[int], Any] = lambda number: number


@dataclass(frozen=True, slots=True)
class Exact:
    """A value the column itself can hold, and the only one that equals the literal."""

    value: Any


@dataclass(frozen=True, slots=True)
class Cut:
    """The literal's place: values numbered `first` to before `after` equal it, often none or several."""

    steps: Steps
    first: int
    after: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """Only the engine can compare these, for this reason."""

    why: str


Coerced: TypeAlias = Exact | Cut | Unknown


def exact_cut(steps: Steps, value: float | Decimal | Fraction) -> Exact | Cut:
    """The place of a real number among integers.

    >>> exact_cut(Steps(-128, 127), 5), exact_cut(Steps(-128, 127, abs), 5.5).after
    (Exact(value=5), 6)
    """
    first, after = math.ceil(value), math.floor(value) + 1
    return _simplest(steps, _clamp(first, steps), _clamp(after, steps))


def search_cut(steps: Steps, image: Callable[[int], float], value: float) -> Exact | Cut:
    """The place of a literal among the images of the steps under a cast that keeps their order."""
    if math.isnan(value):  # greater than every number
        return Cut(steps, steps.high + 1, steps.high + 1)
    first = _first_where(steps, lambda number: image(number) >= value)
    after = _first_where(steps, lambda number: image(number) > value)
    return _simplest(steps, first, after)


def _simplest(steps: Steps, first: int, after: int) -> Exact | Cut:
    return Exact(steps.value(first)) if after == first + 1 else Cut(steps, first, after)


def _clamp(number: int, steps: Steps) -> int:
    return max(steps.low, min(number, steps.high + 1))


def _first_where(steps: Steps, holds: Callable[[int], bool]) -> int:
    low, high = steps.low, steps.high + 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def float32_at(number: int) -> float:
    """The float32 numbered so that order is kept: 0 is 0.0, its neighbours are 1 and -1."""
    single: float = struct.unpack("<f", struct.pack("<I", abs(number)))[0]
    return -single if number < 0 else single


FLOAT32: Final = Steps(-_FLOAT32_INFINITY, _FLOAT32_INFINITY, float32_at)
"""Every float32 but NaN, which is above them all."""
