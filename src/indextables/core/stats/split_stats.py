"""How the bounds of one column are written to and read from the wire; worked out once per schema."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from indextables.core.stats.values import Physical
from indextables.core.stats.wire import Round, decoder, encoder
from indextables.core.types.columns import leaves
from indextables.core.types.types import (
    DataType,
    DecimalType,
    FieldPath,
    PrimitiveType,
    StructType,
    is_float,
    is_orderable,
)

Reading: TypeAlias = tuple[Physical | None, bool]
"""A bound, None if unknown; and whether it is a value as it was written, not one moved outward."""

# Of our own, every time has six digits after the point. Writers that keep milliseconds have cut the
# rest off: towards zero, which lowers a maximum, but raises a minimum before 1970.
_CUT: Final = re.compile(r"\.\d{1,5}(?!\d)", re.ASCII)
_CUT_MICROS: Final = 999


@dataclass(frozen=True, slots=True)
class BoundCodec:
    """The two directions for one leaf; `ordered` is False where it has no bounds at all."""

    path: FieldPath
    ordered: bool
    is_float: bool
    encode: Callable[[Any], Any]
    read_min: Callable[[Any], Reading]
    read_max: Callable[[Any], Reading]

    def read(self, low: Any, high: Any) -> tuple[Reading, Reading]:
        """Both bounds; where one is NaN the writer's comparisons were spoiled, and neither counts."""
        if not self.ordered or (self.is_float and (_is_nan(low) or _is_nan(high))):
            return (None, True), (None, True)
        return self.read_min(low), self.read_max(high)


def codecs_of(schema: StructType) -> dict[FieldPath, BoundCodec]:
    """The codec of every leaf, in the schema's order."""
    return _codecs(_Same(schema))


class _Same:
    """A schema by identity: comparing two by value costs more than a line of statistics."""

    __slots__ = ("schema",)

    def __init__(self, schema: StructType) -> None:
        self.schema = schema

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.schema is self.schema

    def __hash__(self) -> int:
        return id(self.schema)


@lru_cache(maxsize=64)
def _codecs(key: _Same) -> dict[FieldPath, BoundCodec]:
    return {
        leaf.path: BoundCodec(
            leaf.path,
            is_orderable(leaf.type, leaf.field.metadata),
            is_float(leaf.type),
            encoder(leaf.type),
            _reader(leaf.type, "down"),
            _reader(leaf.type, "up"),
        )
        for leaf in leaves(key.schema)
    }


def _reader(dtype: DataType, side: Round) -> Callable[[Any], Reading]:
    outward, exactly = decoder(dtype, side), decoder(dtype, None)

    def read_number(raw: Any) -> Reading:
        value = outward(raw)
        return value, value == exactly(raw)

    def read_instant(raw: Any) -> Reading:
        value = outward(raw)
        if not isinstance(value, int) or not _CUT.search(raw):
            return value, True
        return value + (_CUT_MICROS if side == "up" else -_CUT_MICROS), False

    match dtype:
        case PrimitiveType("float" | "double") | DecimalType():
            return read_number
        case PrimitiveType("timestamp" | "timestamp_ntz"):
            return read_instant
        case _:
            return lambda raw: (outward(raw), True)


def _is_nan(raw: Any) -> bool:
    return isinstance(raw, float) and math.isnan(raw)
