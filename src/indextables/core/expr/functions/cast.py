"""Casts between types that have an order, as Spark does them in each mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from indextables.core.expr.functions import text_casts
from indextables.core.expr.functions.arithmetic import affine, half_up
from indextables.core.expr.functions.function import (
    Blur,
    Function,
    Signature,
    Site,
    array_of,
    bounded,
    whole,
)
from indextables.core.expr.functions.instants import (
    MICROS_OF_DAY,
    days_to_instants,
    days_to_micros,
    floor_to,
    local_to_instant,
    to_local,
)
from indextables.core.expr.functions.number_types import ALL_MODES, as_decimal, is_integer
from indextables.core.expr.functions.rounding import double_to_integer
from indextables.core.expr.functions.spelled import spelled
from indextables.core.expr.image import Array, Image, Outcome, Pieces
from indextables.core.expr.nodes import Mode
from indextables.core.expr.vectors import float_ordinals, floats_of
from indextables.core.states import TOP, space_of
from indextables.core.types import DataType, DecimalType, PrimitiveType, is_float, is_orderable

_BOOLEAN: Final = PrimitiveType("boolean")
_TIMES: Final = ("date", "timestamp", "timestamp_ntz")


def _signature(types: Sequence[DataType], known: DataType | None) -> Signature | None:
    (source,) = types
    if known is None or not (is_orderable(source) and is_orderable(known)):
        return None
    return (source,), known


def _cast(site: Site) -> Sequence[Image] | None:
    source, target = site.types[0], site.result
    if source == target:
        return (whole(site, lambda x: x),)
    if target == PrimitiveType("string") and (steps := spelled(source, site.zone)) is not None:
        return steps
    if target == PrimitiveType("string") or source == PrimitiveType("binary"):
        return (Blur(site.argument, site.space, (b"", TOP)),)
    if source == PrimitiveType("string"):
        return (_from_text(site),)
    if _is_time(source) or _is_time(target):
        return _time_cast(site, source, target)
    if source == _BOOLEAN:
        return (_from_boolean(site, target),)
    if target == _BOOLEAN:
        return (_to_boolean(site),)
    return _number_cast(site, source, target)


def _is_time(dtype: DataType) -> bool:
    return isinstance(dtype, PrimitiveType) and dtype.name in _TIMES


def _from_text(site: Site) -> Image:
    """Returns that a text may be any value, NaN where the type has it, and no value at all."""
    raises = site.mode is Mode.ANSI
    return Blur(site.argument, site.space, site.space.universe, may_null=not raises, may_raise=True)


def _from_boolean(site: Site, target: DataType) -> Image:
    one = int(space_of(target).ordinal(1.0 if is_float(target) else 1))
    zero = int(space_of(target).ordinal(0.0 if is_float(target) else 0))
    return whole(site, lambda x: np.where(x > 0, one, zero))


def _to_boolean(site: Site) -> Image:
    low, end = site.argument.universe
    first, last = (array_of(ends, site.argument) for ends in ([low, 0, 1], [-1, 0, end - 1]))
    return Pieces(site.argument, site.space, first, last, lambda x: (x != 0).astype(np.int64), of_nan=1)


# Numbers


def _number_cast(site: Site, source: DataType, target: DataType) -> Sequence[Image] | None:
    if is_integer(target):
        return _to_integer(site, source)
    if isinstance(target, DecimalType):
        own = as_decimal(source)
        if own is None:
            return None  # a double becomes a decimal by its digits as Java prints them
        shift = target.scale - own.scale
        up, down = 10 ** max(shift, 0), 10 ** max(-shift, 0)
        return (bounded(site, lambda x: half_up(x * up, down)),)
    if is_float(target):
        return _to_float(site, source)
    return None


def _to_integer(site: Site, source: DataType) -> Sequence[Image] | None:
    match source:
        case DecimalType(_, scale) if site.mode is not Mode.LEGACY:
            unit = 10**scale
            return (bounded(site, lambda x: np.where(x < 0, -(-x // unit), x // unit)),)
        case _ if is_integer(source):
            found = affine(site, 1, 0)
            return None if found is None else (found,)
        case PrimitiveType("double" | "float"):
            if site.mode is Mode.LEGACY and site.result.name in {"byte", "short"}:  # type: ignore[union-attr]
                return None  # by way of an int, whose upper bits are lost
            outcome: dict[Mode, Outcome] = {Mode.ANSI: "error", Mode.TRY: "null", Mode.LEGACY: 0}
            return (double_to_integer(site, np.trunc, outcome[site.mode]),)
        case _:
            return None


def _to_float(site: Site, source: DataType) -> Sequence[Image] | None:
    single = site.result == PrimitiveType("float")
    number: Callable[[Array], Any]
    match source:
        case DecimalType(precision, scale):
            if single or precision > 38:
                return None
            unit = 10**scale
            number = lambda x: (x.astype(object) / unit).astype(np.float64)  # noqa: E731
        case _ if is_integer(source):
            number = lambda x: x.astype(np.float32 if single else np.float64)  # noqa: E731
        case _:
            number = lambda x: floats_of(x, site.argument)  # noqa: E731

    def f(x: Array) -> Array:
        with np.errstate(over="ignore"):
            return float_ordinals(number(x), site.space)

    return (whole(site, f),)


# Dates and times


def _time_cast(site: Site, source: DataType, target: DataType) -> Sequence[Image] | None:
    zone = site.zone
    match source, target:
        case PrimitiveType("timestamp"), PrimitiveType("timestamp_ntz"):
            return (to_local(zone),)
        case PrimitiveType("timestamp"), PrimitiveType("date"):
            return (to_local(zone), floor_to(MICROS_OF_DAY))
        case PrimitiveType("timestamp_ntz"), PrimitiveType("date"):
            return (floor_to(MICROS_OF_DAY),)
        case PrimitiveType("timestamp_ntz"), PrimitiveType("timestamp"):
            return (local_to_instant(zone),)
        case PrimitiveType("date"), PrimitiveType("timestamp"):
            return (days_to_instants(zone),)
        case PrimitiveType("date"), PrimitiveType("timestamp_ntz"):
            return (days_to_micros(),)
        case PrimitiveType("timestamp"), PrimitiveType("long"):
            return (whole(site, lambda x: x // 1_000_000),)
        case PrimitiveType("timestamp"), PrimitiveType("double"):
            return (whole(site, lambda x: float_ordinals(x.astype(np.float64) / 1e6, site.space)),)
        case _:
            return None


_PAIRS: Final = (
    *(
        (a, b)
        for a in ("byte", "short", "integer", "long")
        for b in ("byte", "integer", "long", "double", "float")
    ),
    *((a, b) for a in ("double", "float") for b in ("integer", "long", "double", "float")),
    *((a, b) for a in _TIMES for b in _TIMES),
    *((a, "boolean") for a in ("integer", "double")),
    *(("boolean", b) for b in ("integer", "double")),
    ("timestamp", "long"),
    *(("string", b) for b in ("integer", "long", "double", "boolean", "date", "timestamp")),
    *((a, "string") for a in ("byte", "long", "date", "boolean", "timestamp", "timestamp_ntz")),
)

_DECIMALS: Final = (
    (PrimitiveType("boolean"), DecimalType(20, 0)),
    (PrimitiveType("long"), DecimalType(20, 0)),
    (PrimitiveType("long"), DecimalType(10, 2)),
    (DecimalType(38, 0), PrimitiveType("long")),
    (DecimalType(38, 10), DecimalType(10, 2)),
    (DecimalType(10, 2), DecimalType(38, 18)),
    (DecimalType(38, 2), PrimitiveType("double")),
    (DecimalType(10, 2), PrimitiveType("boolean")),
)
FUNCTIONS: Final = (
    Function(
        "cast",
        _signature,
        _cast,
        text_casts.rows,
        modes=ALL_MODES,
        zoned=True,
        samples=(*((PrimitiveType(a), PrimitiveType(b)) for a, b in _PAIRS), *_DECIMALS),  # type: ignore[arg-type]
    ),
)
"""The type cast to is the type of the call; in `samples` it stands after the argument."""
