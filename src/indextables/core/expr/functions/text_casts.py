"""Casts of text to values, on rows: each distinct text is read once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from indextables.core.expr.datetimes import parse_date, parse_timestamp
from indextables.core.expr.functions.function import VARYING, Site
from indextables.core.expr.functions.number_types import is_integer
from indextables.core.expr.nodes import Mode
from indextables.core.expr.vectors import Vector
from indextables.core.expr.zones import Zone
from indextables.core.states import Ordinals, space_of
from indextables.core.types import DataType, DecimalType, PrimitiveType

_BLANKS: Final = " \t\r\n"
_INTEGER: Final = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_NUMBER: Final = re.compile(
    r"[+-]?(?:\d{1,400}\.?\d{0,400}|\.\d{1,400})(?:[eE][+-]?\d{1,3})?", re.ASCII
)
_SPECIAL: Final = re.compile(r"[+-]?inf(?:inity)?|nan", re.IGNORECASE)
_DIGIT: Final = re.compile(r"[0-9]")
_TRUTHS: Final = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), 1),
    **dict.fromkeys(("f", "false", "n", "no", "0"), 0),
}
_WIDE: Final = Context(prec=1000)

_Read = Callable[[str], Any]
"""Returns the ordinal of a text, 'nan', or None where it is not surely one."""


def rows(site: Site, vectors: Sequence[Vector]) -> Vector | None:
    """Returns the rows of a cast from text; None for those only an engine knows."""
    if site.constants != (VARYING,):
        return None
    if site.types[0] != PrimitiveType("string"):
        return None
    read = _reader(site.result, site.zone)
    return None if read is None else _from_text(site, vectors[0], read)


def _from_text(site: Site, texts: Vector, read: _Read) -> Vector:
    """Returns what the texts spell. Of one that is not surely a value it is never said that it is NULL.

    Under ANSI it raises. Else it is NULL if it holds no digit, and where it does only Spark can tell.
    """
    encoded = texts.values.dictionary_encode()
    distinct = [text or "" for text in encoded.dictionary.to_pylist()]
    found = [read(text.strip(_BLANKS)) for text in distinct]
    missing = np.array([value is None for value in found], np.bool_)
    strict = site.mode is Mode.ANSI
    raises = np.array(
        [
            value is None and (strict or _is_odd(text))
            for value, text in zip(found, distinct, strict=True)
        ],
        np.bool_,
    )
    nan = np.array([value == "nan" for value in found], np.bool_)
    wide = any(isinstance(value, int) and not -(2**63) <= value < 2**63 for value in found)
    plain = [value if isinstance(value, int) else 0 for value in found]
    at = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)
    if not distinct:
        plain, missing, raises, nan = [0], *(np.zeros(1, np.bool_) for _ in range(3))
    values = np.array(plain, object if wide or _needs_objects(site.result) else np.int64)[at]
    is_value = ~texts.null
    error = texts.error | (raises[at] & is_value)
    return Vector(site.result, values, texts.null | (missing & ~raises)[at], nan[at] & is_value, error)


def _needs_objects(dtype: DataType) -> bool:
    return isinstance(dtype, DecimalType) and dtype.precision > 18


def _is_odd(text: str) -> bool:
    """Returns whether Spark may read something in a text that we do not read."""
    return bool(_DIGIT.search(text)) or not text.isprintable()


def _reader(dtype: DataType, zone: Zone) -> _Read | None:
    space = space_of(dtype)
    match dtype:
        case _ if is_integer(dtype):
            return lambda text: _in_range(int(text), space) if _INTEGER.fullmatch(text) else None
        case DecimalType():
            return lambda text: _decimal(text, dtype, space)
        case PrimitiveType("double"):
            return lambda text: _double(text, space)
        case PrimitiveType("boolean"):
            return lambda text: _TRUTHS.get(text.lower())
        case PrimitiveType("date"):
            return lambda text: _in_range(parse_date(text), space)
        case PrimitiveType("timestamp"):
            return lambda text: _instant(text, zone)
        case _:
            return None


def _in_range(value: int | None, space: Ordinals) -> int | None:
    first, end = space.universe
    return value if value is not None and first <= value < end else None


def _double(text: str, space: Ordinals) -> Any:
    if not (_NUMBER.fullmatch(text) or _SPECIAL.fullmatch(text)):
        return None
    value = float(text)
    return "nan" if value != value else space.ordinal(value)  # noqa: PLR0124


def _decimal(text: str, dtype: DecimalType, space: Ordinals) -> int | None:
    if not _NUMBER.fullmatch(text):
        return None
    unscaled = Decimal(text).scaleb(dtype.scale, _WIDE)
    return _in_range(int(unscaled.quantize(Decimal(1), ROUND_HALF_UP, _WIDE)), space)


def _instant(text: str, zone: Zone) -> int | None:
    found = parse_timestamp(text)
    if found is None or not -(2**62) < found.micros < 2**62:
        return None
    if found.zone is not None:
        offset = found.zone.utcoffset(None)
        # a text that names a zone with changing offsets is rare enough to leave it
        return None if offset is None else found.micros - round(offset.total_seconds() * 1_000_000)
    until = zone.known_until
    if until is not None and not -until < found.micros < until:
        return None
    return int(zone.to_instant(np.array([found.micros]))[0])
