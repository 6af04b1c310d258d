"""Arithmetic: `+ - * / div %`, unary minus and abs, as Spark computes them in each mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np

from indextables.core.expr.functions.function import (
    Function,
    Signature,
    Site,
    array_of,
    bounded,
    outside_kind,
    periodic,
    whole,
)
from indextables.core.expr.functions.number_types import (
    ALL_MODES,
    DOUBLE,
    INT,
    LONG,
    as_decimal,
    binary,
    integral,
    is_integer,
    number,
    product_type,
    quotient_type,
    same_integer,
    sum_type,
)
from indextables.core.expr.functions.several import ranges_of_quotient, ranges_of_two, rows_of_two
from indextables.core.expr.image import Array, Image, Pieces
from indextables.core.expr.nodes import Literal, Mode
from indextables.core.expr.vectors import float_ordinals, floats_of
from indextables.core.states import Ordinals, complement, space_of
from indextables.core.types import DataType, DecimalType, PrimitiveType, is_float

_MOST_WRAPS: Final = 1000
_MASK: Final = 2**64 - 1

# Integers: a * x + b, exactly, wrapping, or without a result beyond the type.


def affine(site: Site, a: int, b: int, mode: Mode | None = None) -> Pieces | None:
    """Returns `a * x + b` over integers in the result's type; None where it wraps too often."""
    mode = mode or site.mode
    argument, result = site.argument, site.space
    (low, end), (least, beyond) = argument.universe, result.universe
    size, f = beyond - least, _wrapping(a, b, result)
    if a == 0:
        return None
    bottom, top = sorted((a * low + b, a * (end - 1) + b))
    wraps = (
        range(1)
        if mode is not Mode.LEGACY
        else range((bottom - least) // size, (top - least) // size + 1)
    )
    if len(wraps) > _MOST_WRAPS:
        return None
    pieces = []
    for turn in wraps:
        # the x with least + turn * size <= a * x + b <= that + size - 1
        one, two = least + turn * size - b, least + (turn + 1) * size - 1 - b
        start, stop = (-(-one // a), two // a) if a > 0 else (-(-two // a), one // a)
        if max(start, low) <= min(stop, end - 1):
            pieces.append((max(start, low), min(stop, end - 1)))
    pieces.sort()
    first, last = (array_of([pair[i] for pair in pieces], argument) for i in (0, 1))
    if mode is Mode.LEGACY:
        return Pieces(argument, result, first, last, f)
    inside = tuple(cut for one, two in pieces for cut in (one, two + 1))
    outside = complement(inside, (low, end)) if inside else (low, end)
    return Pieces(argument, result, first, last, f, **{outside_kind(mode): outside})  # type: ignore[arg-type]


def _wrapping(a: int, b: int, result: Ordinals) -> Callable[[Array], Array]:
    """Returns a * x + b as the processor computes it: what is too large for the type wraps around."""
    times, plus = (np.uint64(k & _MASK).astype(np.int64) for k in (a, b))
    half = -result.universe[0]

    def f(x: Array) -> Array:
        with np.errstate(over="ignore"):
            y = x * times + plus
        return y if half == 2**63 else ((y + half) & (2 * half - 1)) - half

    return f


# Numbers with a point.


def _real(site: Site, f: Callable[[Any], Any]) -> Callable[[Array], Array]:
    def on_ordinals(x: Array) -> Array:
        with np.errstate(all="ignore"):
            return float_ordinals(f(floats_of(x, site.argument)), site.space)

    return on_ordinals


def _as_number(value: float, dtype: DataType) -> Any:
    return np.float32(value) if dtype == PrimitiveType("float") else np.float64(value)


def float_images(site: Site, f: Callable[[Any], Any]) -> Sequence[Image]:
    """Returns a function of floating numbers that is monotone over all of them."""
    return (whole(site, _real(site, f)),)


def half_up(number: Array, divisor: int) -> Array:
    """Returns the quotient rounded to the nearest integer, halves away from zero; Python's integers."""
    size = (2 * abs(number) + divisor) // (2 * divisor)
    return np.where(number < 0, -size, size)


def scaled(site: Site, a: int, b: int, scale: int) -> Pieces:
    """Returns `(a * x + b)`, which has `scale` digits after the point, rounded to the result's decimal type."""
    assert isinstance(site.result, DecimalType)
    shift = site.result.scale - scale
    up, down = 10 ** max(shift, 0), 10 ** max(-shift, 0)
    return bounded(site, lambda x: half_up((a * x + b) * up, down))


def _unscaled(value: Any, dtype: DecimalType) -> int:
    return space_of(dtype).ordinal(value)  # type: ignore[no-any-return]


def _constant(site: Site) -> tuple[Any, bool]:
    """Returns the constant of two arguments, and whether it is the first of them."""
    return site.constants[1 - site.varying], site.varying == 1


def _sum(sign: int) -> Callable[[Site], Sequence[Image] | None]:
    """Returns the image of `x + k`, `x - k` or `k - x`."""

    def images(site: Site) -> Sequence[Image] | None:
        k, is_first = _constant(site)
        of_x, of_k = (sign, 1) if is_first else (1, sign)
        if isinstance(site.result, DecimalType):
            mine, other = site.types[site.varying], site.types[1 - site.varying]
            assert isinstance(mine, DecimalType)
            assert isinstance(other, DecimalType)
            scale = max(mine.scale, other.scale)
            b = of_k * _unscaled(k, other) * 10 ** (scale - other.scale)
            return (scaled(site, of_x * 10 ** (scale - mine.scale), b, scale),)
        if is_float(site.result):
            k_number = _as_number(k, site.result)
            return float_images(site, lambda x: of_x * x + of_k * k_number) if np.isfinite(k) else None
        return one_image(affine(site, of_x, of_k * k))

    return images


def one_image(image: Image | None) -> Sequence[Image] | None:
    """Returns the images of a function that needs a single step, if it has one."""
    return None if image is None else (image,)


def _product(site: Site) -> Sequence[Image] | None:
    k, _ = _constant(site)
    if isinstance(site.result, DecimalType):
        mine, other = site.types[site.varying], site.types[1 - site.varying]
        assert isinstance(mine, DecimalType)
        assert isinstance(other, DecimalType)
        factor = _unscaled(k, other)
        return (scaled(site, factor, 0, mine.scale + other.scale),) if factor else None
    if is_float(site.result):
        k_number = _as_number(k, site.result)
        return float_images(site, lambda x: x * k_number) if np.isfinite(k) and k else None
    return one_image(affine(site, k, 0))


_MOST_SCALE: Final = 39
"""Digits after the point that Spark computes of a quotient of decimals before it rounds to the result's type."""


def _decimal_quotient(site: Site, divisor: int, one: DecimalType, two: DecimalType) -> Sequence[Image]:
    assert isinstance(site.result, DecimalType)
    up, down = 10 ** (two.scale + _MOST_SCALE), abs(divisor) * 10**one.scale
    sign, rest = (1 if divisor > 0 else -1), 10 ** (_MOST_SCALE - site.result.scale)
    return (bounded(site, lambda x: half_up(half_up(sign * x * up, down), rest)),)


def _quotient_result(types: Sequence[DataType], constants: Sequence[Any]) -> DataType | None:
    """Returns the type of a quotient of decimals, in which a constant integer has just its own digits."""
    sizes = [
        DecimalType(len(str(abs(constant))), 0) if isinstance(constant, int) else as_decimal(kind)
        for kind, constant in zip(types, constants, strict=True)
    ]
    one, two = sizes
    if one is None or two is None or not any(isinstance(kind, DecimalType) for kind in types):
        return None
    return quotient_type(one, two)


def _quotient(site: Site) -> Sequence[Image] | None:
    k, is_first = _constant(site)
    one, two = site.types
    if isinstance(site.result, DecimalType):
        if is_first or not k or not (isinstance(one, DecimalType) and isinstance(two, DecimalType)):
            return None
        return _decimal_quotient(site, _unscaled(k, two), one, two)
    if not is_float(site.result) or not np.isfinite(k):
        return None
    k_number = _as_number(k, site.result)
    if not is_first:
        return float_images(site, lambda x: x / k_number) if k else None
    (low, end), f = site.argument.universe, _real(site, lambda x: k_number / x)
    first, last = np.array([low, 1]), np.array([-1, end - 1])
    return (Pieces(site.argument, site.space, first, last, f, **{outside_kind(site.mode): (0, 1)}),)  # type: ignore[arg-type]


def _whole_quotient(site: Site) -> Sequence[Image] | None:
    k, is_first = _constant(site)
    if is_first or k == 0:
        return None
    if k == -1:
        return one_image(affine(site, -1, 0))
    return (whole(site, lambda x: java_div(x, k)),)


def java_div(x: Array, k: Any) -> Array:
    """Returns x / k as Java divides integers: towards zero, whatever the signs."""
    floor = x // k
    return floor + ((x % k != 0) & ((x < 0) != (k < 0)))


def java_mod(x: Array, k: Any) -> Array:
    """Returns what is left of x: it has the sign of x."""
    return x - java_div(x, k) * k


def _remainder(site: Site) -> Sequence[Image] | None:
    k, is_first = _constant(site)
    if is_first or k == 0 or not is_integer(site.result):
        return None
    size = abs(k)
    if size == 2**63:
        return None

    def starts(low: int, high: int) -> Array:
        # Downwards of zero the pieces end at the multiples, upwards they begin there; one lies around zero.
        below = np.arange(-(-low // size) - 1, 0, dtype=np.int64) * size + 1
        above = np.arange(1, high // size + 1, dtype=np.int64) * size
        found = np.concatenate([below[(below > low) & (below <= high)], above[above > low]])
        return np.append(np.array([low]), found)

    within = (1 - size, size)
    count = lambda low, high: (high - low) / size  # noqa: E731
    return (periodic(site, starts, lambda x: java_mod(x, size), within, count),)


def _positive_remainder(site: Site) -> Sequence[Image] | None:
    k, is_first = _constant(site)
    if is_first or not is_integer(site.result) or k <= 0:
        return None

    def starts(low: int, high: int) -> Array:
        return np.arange(low // k, high // k + 1, dtype=np.int64) * k

    return (periodic(site, starts, lambda x: x % k, (0, k), lambda low, high: (high - low) / k),)


def _negated(site: Site) -> Sequence[Image] | None:
    if is_integer(site.result):
        return one_image(affine(site, -1, 0))
    return (whole(site, lambda x: -x),)  # ordinals of floats and decimals are symmetric


def _absolute(site: Site) -> Sequence[Image] | None:
    low, end = site.argument.universe
    if not is_integer(site.result):
        first, last = array_of([low, 0], site.argument), array_of([-1, end - 1], site.argument)
        return (Pieces(site.argument, site.space, first, last, abs),)
    if site.mode is not Mode.LEGACY:
        first, last = np.array([low + 1, 0]), np.array([-1, end - 1])
        kind = {outside_kind(site.mode): (low, low + 1)}
        return (Pieces(site.argument, site.space, first, last, abs, **kind),)  # type: ignore[arg-type]
    # the least value has no positive one: it stays as it is
    first, last = np.array([low, low + 1, 0]), np.array([low, -1, end - 1])
    return (Pieces(site.argument, site.space, first, last, lambda x: np.where(x == low, x, abs(x))),)


def _double(types: Sequence[DataType], _: DataType | None) -> Signature | None:
    is_number = is_float(types[0]) or as_decimal(types[0]) is not None
    return ((DOUBLE,), DOUBLE) if is_number else None


def _root(site: Site) -> Sequence[Image]:
    low, end = site.argument.universe
    ends = np.array([0]), np.array([end - 1])
    return (Pieces(site.argument, site.space, *ends, _real(site, np.sqrt), nan=(low, 0)),)


_INT: Final = INT
_KINDS: Final = (PrimitiveType("byte"), _INT, LONG)
_MONEY: Final = DecimalType(10, 2)
_NUMBERS: Final = (
    *((kind, k) for kind in _KINDS for k in (1, -7, 100)),
    (DOUBLE, 0.5),
    (DOUBLE, -3.0),
    (_MONEY, 7),
    (DecimalType(30, 10), Literal(Decimal("-1.25"), DecimalType(3, 2))),
)

FUNCTIONS: Final = (
    Function(
        "+",
        binary(sum_type),
        _sum(1),
        rows_of_two(lambda a, b: a + b),
        ranges_of_two(lambda a, b: a + b, [(0, 0)], [(1, 1)]),
        ALL_MODES,
        samples=_NUMBERS,
    ),
    Function(
        "-",
        binary(sum_type),
        _sum(-1),
        rows_of_two(lambda a, b: a - b),
        ranges_of_two(lambda a, b: a - b, [(0, 1)], [(1, 0)]),
        ALL_MODES,
        samples=(*_NUMBERS, (3, _INT), (-5, LONG), (0.1, DOUBLE)),
    ),
    Function(
        "*",
        binary(product_type),
        _product,
        rows_of_two(lambda a, b: a * b),
        ranges_of_two(lambda a, b: a * b),
        ALL_MODES,
        samples=_NUMBERS,
    ),
    Function(
        "/",
        binary(quotient_type, fraction=True),
        _quotient,
        rows_of_two(lambda a, b: a / b, divides=True),
        ranges_of_quotient,
        ALL_MODES,
        samples=(
            *((DOUBLE, 3.0), (DOUBLE, -0.5), (10.0, DOUBLE)),
            *((_MONEY, Literal(Decimal(k), DecimalType(3, 1))) for k in ("33.0", "-10.7")),
            (DecimalType(38, 10), Literal(Decimal(7), DecimalType(1, 0))),
        ),
        result=_quotient_result,
    ),
    Function(
        "div", integral, _whole_quotient, modes=ALL_MODES, samples=((LONG, 7), (LONG, -3), (LONG, -1))
    ),
    Function(
        "%", same_integer, _remainder, modes=ALL_MODES, samples=((LONG, 7), (_INT, -10), (LONG, 1))
    ),
    Function(
        "pmod", same_integer, _positive_remainder, modes=ALL_MODES, samples=((LONG, 7), (_INT, 10))
    ),
    Function(
        "negative", number, _negated, modes=ALL_MODES, samples=((LONG,), (_INT,), (DOUBLE,), (_MONEY,))
    ),
    Function("sqrt", _double, _root, catalyst="Sqrt", samples=((DOUBLE,),)),
    Function(
        "abs", number, _absolute, modes=ALL_MODES, samples=((LONG,), (_INT,), (DOUBLE,), (_MONEY,))
    ),
)
