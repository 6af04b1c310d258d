"""Functions of other engines that Spark does not have, or has otherwise.

A name is not a meaning: DuckDB's cast to an integer rounds, Polars' division of integers goes down. Readers of
these engines' conditions map to an entry of Spark's where it means the same, and to one of these where not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from indextables.core.expr.functions.arithmetic import affine, float_images, half_up, one_image
from indextables.core.expr.functions.function import (
    Function,
    Signature,
    Site,
    bounded,
    outside_kind,
    periodic,
    whole,
)
from indextables.core.expr.functions.instants import DATE, TIMESTAMP, TIMESTAMP_NTZ
from indextables.core.expr.functions.number_types import DOUBLE, FLOAT, INT, LONG, is_integer
from indextables.core.expr.functions.rounding import double_to_integer, half_away
from indextables.core.expr.functions.text import STRING, Folded
from indextables.core.expr.image import Array, Image, Pieces
from indextables.core.expr.nodes import Mode
from indextables.core.expr.vectors import float_ordinals, floats_of
from indextables.core.types import DataType, DecimalType, PrimitiveType, is_float

_MODES: Final = (Mode.ANSI, Mode.TRY)
_MILLION: Final = 1_000_000


def _one_float(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    return (tuple(types), types[0]) if len(types) == 1 and is_float(types[0]) else None


def _of_floats(f: Callable[[Any], Any]) -> Callable[[Site], Sequence[Image] | None]:
    return lambda site: float_images(site, f)


def _root(site: Site) -> Sequence[Image]:
    def f(x: Array) -> Array:
        return float_ordinals(np.sqrt(floats_of(x, site.argument)), site.space)

    low, end = site.argument.universe
    return (Pieces(site.argument, site.space, np.array([0]), np.array([end - 1]), f, nan=(low, 0)),)


def _to_known_integer(types: Sequence[DataType], known: DataType | None) -> Signature | None:
    if known is None or not is_integer(known):
        return None
    is_number = is_float(types[0]) or isinstance(types[0], DecimalType)
    return (tuple(types), known) if is_number else None


def _truncated_cast(site: Site) -> Sequence[Image] | None:
    """Returns a double as an integer towards zero; 2**63 is no bigint, unlike in Spark."""
    if not is_float(site.types[0]):
        return None
    has_top = site.result != LONG
    return (double_to_integer(site, np.trunc, outside_kind(site.mode), top_is_taken=has_top),)  # type: ignore[arg-type]


def _rounded_cast(site: Site) -> Sequence[Image]:
    """Returns a number as an integer: a double to the nearest even one, a decimal with halves away from zero."""
    if isinstance(site.types[0], DecimalType):
        unit = 10 ** site.types[0].scale
        return (bounded(site, lambda x: half_up(x, unit)),)
    # the double next to the largest bigint is one beyond it
    has_top = site.result != LONG
    return (double_to_integer(site, np.rint, outside_kind(site.mode), top_is_taken=has_top),)  # type: ignore[arg-type]


def _same_integers(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    one, two = types
    return (tuple(types), one) if one == two and is_integer(one) else None


def _floor_quotient(site: Site) -> Sequence[Image] | None:
    k = site.constants[1]
    if site.varying != 0 or not k:
        return None
    # the least value divided by -1 wraps to itself
    return one_image(affine(site, -1, 0, Mode.LEGACY)) if k == -1 else (whole(site, lambda x: x // k),)


def _floor_remainder(site: Site) -> Sequence[Image] | None:
    k = site.constants[1]
    if site.varying != 0 or k <= 0:
        return None

    def starts(low: int, high: int) -> Array:
        return np.arange(low // k, high // k + 1, dtype=np.int64) * k

    return (periodic(site, starts, lambda x: x % k, (0, k), lambda low, high: (high - low) / k),)


def _one_time(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    return (tuple(types), types[0]) if types[0] in {DATE, TIMESTAMP, TIMESTAMP_NTZ} else None


def _in_calendar(site: Site) -> Sequence[Image]:
    low, end = site.argument.universe
    # two hundred thousand years of microseconds
    first, last = (-2 * _MILLION, 4 * _MILLION) if site.types[0] == DATE else (-6 * 10**18, 6 * 10**18)
    ends = np.array([first]), np.array([last])
    return (
        Pieces(site.argument, site.space, *ends, lambda x: x, anything=(low, first, last + 1, end)),
    )


def _one_text(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    return ((STRING,), STRING) if list(types) == [STRING] else None


_FLOATS: Final = ((DOUBLE,), (FLOAT,))
_MONEY: Final = DecimalType(10, 2)
_BYTE: Final = PrimitiveType("byte")
_QUOTIENTS: Final = ((INT, 7), (INT, -3), (INT, -1))

FUNCTIONS: Final = tuple(
    Function(name, signature, images, modes=modes, samples=samples, of_spark=False)
    for name, signature, images, modes, samples in (
        ("floor of float", _one_float, _of_floats(np.floor), (Mode.ANSI,), _FLOATS),
        ("ceil of float", _one_float, _of_floats(np.ceil), (Mode.ANSI,), _FLOATS),
        ("trunc of float", _one_float, _of_floats(np.trunc), (Mode.ANSI,), _FLOATS),
        ("round of float", _one_float, _of_floats(half_away), (Mode.ANSI,), _FLOATS),
        ("round to even", _one_float, _of_floats(np.rint), (Mode.ANSI,), _FLOATS),
        ("square root", _one_float, _root, (Mode.ANSI,), _FLOATS),
        (
            "rounded cast",
            _to_known_integer,
            _rounded_cast,
            _MODES,
            ((DOUBLE, INT), (DOUBLE, LONG), (FLOAT, _BYTE), (_MONEY, INT), (_MONEY, _BYTE)),
        ),
        ("truncated cast", _to_known_integer, _truncated_cast, _MODES, ((DOUBLE, INT), (FLOAT, LONG))),
        ("floor quotient", _same_integers, _floor_quotient, (Mode.ANSI,), _QUOTIENTS),
        ("floor remainder", _same_integers, _floor_remainder, (Mode.ANSI,), ((INT, 7), (INT, 1))),
        # some engines have an infinite date and time, and times beyond which nothing is computed
        ("in calendar", _one_time, _in_calendar, (Mode.ANSI,), ((DATE,), (TIMESTAMP,), (TIMESTAMP_NTZ,))),
        # in which letters become which others engines differ, but not in which become ASCII
        ("lower in some way", _one_text, lambda _: (Folded(str.lower),), (Mode.ANSI,), ((STRING,),)),
        ("upper in some way", _one_text, lambda _: (Folded(str.upper),), (Mode.ANSI,), ((STRING,),)),
    )
)  # fmt: skip
