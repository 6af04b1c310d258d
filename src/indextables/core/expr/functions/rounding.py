"""floor, ceil and round, and doubles as integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final

import numpy as np

from indextables.core.expr.functions.arithmetic import float_images, half_up, one_image
from indextables.core.expr.functions.function import (
    Function,
    Signature,
    Site,
    bounded,
    outside_kind,
    whole,
)
from indextables.core.expr.functions.number_types import (
    ALL_MODES,
    DOUBLE,
    INT,
    LONG,
    is_integer,
)
from indextables.core.expr.image import Array, Image, Mask, Outcome, Pieces, first_where
from indextables.core.expr.nodes import Mode
from indextables.core.expr.vectors import floats_of
from indextables.core.types import DataType, DecimalType, PrimitiveType, is_float


def _floor_signature(types: Sequence[DataType], known: DataType | None) -> Signature | None:
    match types:
        case [DecimalType(precision, scale) as own]:
            found = DecimalType(min(precision - scale + 1, 38), 0)
            return (own,), (known if isinstance(known, DecimalType) else found)
        case [kind] if is_float(kind):
            return (DOUBLE,), LONG
        case [kind] if is_integer(kind):
            return (LONG,), LONG
        case _:
            return None


def _rounded_down(kind: str) -> Callable[[Site], Sequence[Image] | None]:
    def images(site: Site) -> Sequence[Image] | None:
        match site.types[0]:
            case DecimalType(_, scale):
                unit = 10**scale
                exact = (lambda x: x // unit) if kind == "floor" else (lambda x: -(-x // unit))
                return (bounded(site, exact),)
            case PrimitiveType("double"):
                f = np.floor if kind == "floor" else np.ceil
                return one_image(double_to_integer(site, f, top_is_taken=False))
            case _:
                return (whole(site, lambda x: x),)

    return images


def double_to_integer(
    site: Site, rounded: Callable[[Any], Any], of_nan: Outcome = 0, *, top_is_taken: bool = True
) -> Pieces:
    """Returns a double as an integer: saturating where it is none, or without a result."""
    argument, result = site.argument, site.space
    (low, end), (least, beyond) = argument.universe, result.universe
    # a cast takes 2**63 for a bigint, as 2**63 - 1: Spark compares with the double next to that
    bottom, top = float(least), float(beyond - 1)

    def to_number(x: Array) -> Array:
        found: Array = rounded(floats_of(x, argument).astype(np.float64))
        return found

    def over(x: Array) -> Mask:
        numbers = to_number(x)
        hit: Mask = numbers > top if top_is_taken else numbers >= top
        return hit

    def f(x: Array) -> Array:
        numbers = to_number(x)
        inside = (numbers > -(2.0**63)) & (numbers < 2.0**63)
        whole_numbers = np.where(inside, numbers, 0.0).astype(np.int64)
        return np.where(numbers >= top, beyond - 1, np.where(numbers <= bottom, least, whole_numbers))

    ends = np.array([low]), np.array([end - 1])
    if site.mode is Mode.LEGACY:
        return Pieces(argument, result, *ends, f, of_nan=of_nan)
    (start,) = first_where(*ends, lambda x: to_number(x) >= bottom)
    (stop,) = first_where(*ends, over)
    gaps = tuple(cut for gap in ((low, start), (stop, end)) if gap[0] < gap[1] for cut in gap)
    outside = {outside_kind(site.mode): gaps}
    first, last = np.array([start]), np.array([stop - 1])
    return Pieces(argument, result, first, last, f, **outside, of_nan=of_nan)  # type: ignore[arg-type]


def _round_signature(types: Sequence[DataType], known: DataType | None) -> Signature | None:
    kind = types[0]
    places = (PrimitiveType("integer"),) * (len(types) - 1)
    if is_integer(kind) or kind == DOUBLE:
        return (kind, *places), kind
    return ((kind, *places), known) if isinstance(kind, DecimalType) and known is not None else None


def _round_result(types: Sequence[DataType], constants: Sequence[Any]) -> DataType | None:
    """Returns the decimal type of a rounded decimal, which may need one more digit before the point."""
    places = constants[1] if len(constants) > 1 else 0
    if not (isinstance(types[0], DecimalType) and isinstance(places, int)):
        return None
    digits, scale = types[0].precision - types[0].scale + 1, max(min(types[0].scale, places), 0)
    return DecimalType(min(max(digits, 1 - places) + scale, 38), scale)


def _rounded(site: Site) -> Sequence[Image] | None:
    """Returns the image of `round(x, n)`; of a double by the digits it is printed with."""
    places = site.constants[1] if len(site.constants) > 1 else 0
    if site.varying != 0 or places is None or abs(places) > 40:
        return None
    match site.types[0]:
        case DecimalType(_, scale):
            assert isinstance(site.result, DecimalType)
            down = 10 ** max(scale - places, 0)
            up = 10 ** max(places - scale, 0)
            fit = site.result.scale - max(places, 0)
            wider, lift = 10 ** max(fit, 0), 10 ** max(-places, 0)
            if fit < 0:
                return None
            return (bounded(site, lambda x: half_up(x * up, down) * lift * wider),)
        case PrimitiveType("double") if places == 0:
            return float_images(site, half_away)
        case PrimitiveType("double"):
            return float_images(site, lambda x: _half_up_as_printed(x, places))
        case kind if is_integer(kind):
            unit = 10 ** max(-places, 0)
            if unit == 1:
                return (whole(site, lambda x: x),)
            return (
                (bounded(site, lambda x: half_up(x, unit) * unit),) if site.mode is Mode.ANSI else None
            )
        case _:
            return None


_DIGITS: Final = Context(prec=1000)


def _half_up_as_printed(numbers: Any, places: int) -> Any:
    """Returns doubles rounded as decimals of the digits they are printed with, halves away from zero."""
    given = np.ravel(numbers).astype(np.float64)
    scaled = abs(given) * 10.0 ** min(places, 22)
    # far from a half, and small enough, the nearest whole number is sure, and dividing it rounds but once
    sure = (abs(scaled % 1 - 0.5) > 1e-4) & (scaled < 2.0**36) & (0 < places <= 22)
    found = np.where(sure, np.copysign(np.floor(scaled + 0.5) / 10.0 ** min(places, 22), given), given)
    step = Decimal(1).scaleb(-places, _DIGITS)
    for at in np.flatnonzero(~sure & np.isfinite(given)).tolist():
        exact = Decimal(repr(float(given[at])))
        found[at] = float(exact.quantize(step, ROUND_HALF_UP, _DIGITS))
    return found.reshape(np.shape(numbers))


def half_away(x: Any) -> Any:
    """Returns numbers rounded to whole ones, halves away from zero."""
    whole_part = np.trunc(x)
    return whole_part + np.sign(x) * (abs(x - whole_part) >= 0.5)


_INT: Final = INT
_MONEY: Final = DecimalType(10, 2)

FUNCTIONS: Final = (
    Function(
        "floor",
        _floor_signature,
        _rounded_down("floor"),
        modes=ALL_MODES,
        samples=((DOUBLE,), (LONG,), (_MONEY,)),
    ),
    Function(
        "ceil",
        _floor_signature,
        _rounded_down("ceil"),
        modes=ALL_MODES,
        samples=((DOUBLE,), (LONG,), (_MONEY,)),
    ),
    Function(
        "round",
        _round_signature,
        result=_round_result,
        images=_rounded,
        modes=ALL_MODES,
        samples=((DOUBLE,), (DOUBLE, 1), (DOUBLE, 2), (DOUBLE, -2), (LONG, -2), (_INT, 1)),
    ),
)
