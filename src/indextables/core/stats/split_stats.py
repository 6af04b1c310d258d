"""Statistics of one split, and their conversion to and from the `stats` object of an action.

How the bounds of a column are encoded and decoded is worked out once per schema (`BoundCodec`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeAlias

import pyarrow as pa

from indextables.core.stats.values import Omit, Physical, wire_type
from indextables.core.stats.wire import Round, decoder, encoder
from indextables.core.types.types import (
    DataType,
    DecimalType,
    FieldPath,
    Leaf,
    PrimitiveType,
    StructType,
    is_float,
    is_orderable,
    leaves,
)

DecodedBound: TypeAlias = tuple[Physical | None, bool]
"""A bound, None if it is unknown; and False if it was moved outward, so that it need not occur."""

# This library writes six digits after the point of every time. Writers that keep milliseconds have cut
# the rest off towards zero, which lowers a maximum but raises a minimum before 1970.
_CUT: Final = re.compile(r"\.\d{1,5}(?!\d)", re.ASCII)
_CUT_MICROS: Final = 999


@dataclass(frozen=True, slots=True)
class BoundCodec:
    """Encodes and decodes the bounds of one leaf; `ordered` is False if it has no bounds at all."""

    path: FieldPath
    ordered: bool
    is_float: bool
    encode: Callable[[Physical], object]
    decode_min: Callable[[object], DecodedBound]
    decode_max: Callable[[object], DecodedBound]

    def decode(self, low: object, high: object) -> tuple[DecodedBound, DecodedBound]:
        """Returns both bounds; neither is known if one is NaN, because NaN spoils a writer's comparisons."""
        if not self.ordered or (self.is_float and (_is_nan(low) or _is_nan(high))):
            return (None, True), (None, True)
        return self.decode_min(low), self.decode_max(high)


def codecs_of(schema: StructType) -> dict[FieldPath, BoundCodec]:
    """Returns the codec of every leaf, in the schema's order."""
    return _codecs(_Same(schema))


class _Same:
    """A schema compared by identity: comparing by value costs more than decoding a line of statistics."""

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
            _decoder(leaf.type, "down"),
            _decoder(leaf.type, "up"),
        )
        for leaf in leaves(key.schema)
    }


def _decoder(dtype: DataType, side: Round) -> Callable[[object], DecodedBound]:
    outward, exactly = decoder(dtype, side), decoder(dtype, None)

    def decode_number(raw: object) -> DecodedBound:
        value = outward(raw)
        return value, value == exactly(raw)

    def decode_instant(raw: object) -> DecodedBound:
        value = outward(raw)
        if not isinstance(value, int) or not _CUT.search(str(raw)):
            return value, True
        return value + (_CUT_MICROS if side == "up" else -_CUT_MICROS), False

    match dtype:
        case PrimitiveType("float" | "double") | DecimalType():
            return decode_number
        case PrimitiveType("timestamp" | "timestamp_ntz"):
            return decode_instant
        case _:
            return lambda raw: (outward(raw), True)


def _is_nan(raw: object) -> bool:
    return isinstance(raw, float) and math.isnan(raw)


# The statistics of one split, and their form in an action.

WireStats: TypeAlias = dict[str, Any]
"""The `stats` object of an action, or one of the objects in it."""
_Item: TypeAlias = tuple[FieldPath, object]
_PATHS: Final = pa.list_(pa.list_(pa.string()))


@dataclass(frozen=True, slots=True)
class SplitStats:
    """What is known of the values in one split; what is not listed is unknown.

    A bound is a physical value (`core.stats.values`). `inexact_min` and `inexact_max` name the columns
    whose bound need not occur in the split; `dropped` names those that lost a bound because it was too long.
    """

    num_records: int | None = None
    min_values: Mapping[FieldPath, Physical] = field(default_factory=dict)
    max_values: Mapping[FieldPath, Physical] = field(default_factory=dict)
    null_count: Mapping[FieldPath, int] = field(default_factory=dict)
    nan_count: Mapping[FieldPath, int] = field(default_factory=dict)
    inexact_min: frozenset[FieldPath] = frozenset()
    inexact_max: frozenset[FieldPath] = frozenset()
    dropped: frozenset[FieldPath] = frozenset()


def to_wire(stats: SplitStats, schema: StructType) -> WireStats:
    """Returns the `stats` object of an action; values that JSON cannot hold are left out."""
    return _to_object(stats, schema, _encode_for_json)


def to_wire_row(stats: SplitStats, schema: StructType) -> WireStats:
    """Returns statistics as a row of `stats_wire_type`, in which an infinity is a float and not a text."""
    return _to_object(stats, schema, _encode_for_arrow)


def _encode_for_json(column: BoundCodec, value: Physical) -> object:
    return column.encode(value)


def _encode_for_arrow(column: BoundCodec, value: Physical) -> object:
    encoded = column.encode(value)
    return value if column.is_float and isinstance(encoded, str) else encoded


def _to_object(
    stats: SplitStats, schema: StructType, encode: Callable[[BoundCodec, Physical], object]
) -> WireStats:
    known = codecs_of(schema)

    def bounds(values: Mapping[FieldPath, Physical], zero: float) -> Iterator[_Item]:
        for path, value in values.items():
            column = known.get(path)
            if column is None or not column.ordered:
                continue
            # -0.0 and 0.0 are equal, but a reader may order them: the range must contain both.
            encoded = encode(column, zero if column.is_float and value == 0 else value)
            if not isinstance(encoded, Omit):
                yield path, encoded

    entries: WireStats = {
        "numRecords": stats.num_records,
        "minValues": _nested(bounds(stats.min_values, -0.0)),
        "maxValues": _nested(bounds(stats.max_values, 0.0)),
        "nullCount": _nested(stats.null_count.items()),
        "nanCount": _nested(stats.nan_count.items()),
        "inexact": {
            side: _sorted(paths)
            for side, paths in (("min", stats.inexact_min), ("max", stats.inexact_max))
            if paths
        },
        "dropped": _sorted(stats.dropped),
    }
    return {
        name: entry for name, entry in entries.items() if entry is not None and entry not in ({}, [])
    }


def _has_bounds(leaf: Leaf) -> bool:
    return is_orderable(leaf.type, leaf.field.metadata)


def _sorted(paths: Iterable[FieldPath]) -> list[list[str]]:
    return [list(path) for path in sorted(paths)]


def _nested(values: Iterable[_Item]) -> WireStats:
    root: WireStats = {}
    for path, value in values:
        at = root
        for name in path[:-1]:
            at = at.setdefault(name, {})
        at[path[-1]] = value
    return root


def from_wire(obj: WireStats | str | None, schema: StructType) -> SplitStats:
    """Returns the statistics in an action; what cannot be decoded is unknown and never an error."""
    found = _loads(obj) if isinstance(obj, str) else obj
    if not isinstance(found, dict):
        return SplitStats()
    columns = codecs_of(schema).values()
    records = _count(found.get("numRecords"), None)
    lows, highs = found.get("minValues"), found.get("maxValues")
    read = {c.path: c.decode(_at(lows, c.path), _at(highs, c.path)) for c in columns}
    inexact = found.get("inexact")
    inexact = inexact if isinstance(inexact, dict) else {}
    return SplitStats(
        num_records=records,
        min_values={path: low for path, ((low, _), _) in read.items() if low is not None},
        max_values={path: high for path, (_, (high, _)) in read.items() if high is not None},
        null_count=_counts(found.get("nullCount"), columns, records),
        nan_count=_counts(found.get("nanCount"), [c for c in columns if c.is_float], records),
        inexact_min=_paths(inexact.get("min"))
        | {p for p, ((_, exact), _) in read.items() if not exact},
        inexact_max=_paths(inexact.get("max"))
        | {p for p, (_, (_, exact)) in read.items() if not exact},
        dropped=_paths(found.get("dropped")),
    )


def _loads(text: str) -> object:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found


def _at(values: object, path: FieldPath) -> object:
    for name in path:
        values = values.get(name) if isinstance(values, dict) else None
    return values


def _count(value: object, limit: int | None) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        return None
    return value if limit is None or value <= limit else None


def _counts(values: object, columns: Iterable[BoundCodec], limit: int | None) -> dict[FieldPath, int]:
    if not isinstance(values, dict):
        return {}
    read = ((column.path, _count(_at(values, column.path), limit)) for column in columns)
    return {path: count for path, count in read if count is not None}


def _paths(value: object) -> frozenset[FieldPath]:
    """Returns paths from arrays of names; a plain text is a path of one name."""
    items = value if isinstance(value, list) else []
    texts = frozenset((item,) for item in items if isinstance(item, str))
    return texts | frozenset(
        tuple(item) for item in items if isinstance(item, list) and item and _all_text(item)
    )


def _all_text(names: list[object]) -> bool:
    return all(isinstance(name, str) for name in names)


def stats_wire_type(schema: StructType, partition_columns: Sequence[str] = ()) -> pa.StructType:
    """Returns the Arrow type of a `stats` object, with which many actions are parsed at once."""
    columns = [leaf for leaf in leaves(schema) if leaf.path[0] not in set(partition_columns)]
    bounds = _nested_type((leaf.path, wire_type(leaf.type)) for leaf in columns if _has_bounds(leaf))
    floats = (leaf for leaf in columns if is_float(leaf.type))
    return pa.struct(
        {
            "numRecords": pa.int64(),
            "minValues": bounds,
            "maxValues": bounds,
            "nullCount": _nested_type((leaf.path, pa.int64()) for leaf in columns),
            "nanCount": _nested_type((leaf.path, pa.int64()) for leaf in floats),
            "inexact": pa.struct({"min": _PATHS, "max": _PATHS}),
            "dropped": _PATHS,
        }
    )


def _nested_type(types: Iterable[_Item]) -> pa.StructType:
    return _struct_type(_nested(types))


def _struct_type(fields: Mapping[str, object]) -> pa.StructType:
    return pa.struct(
        {name: _struct_type(t) if isinstance(t, dict) else t for name, t in fields.items()}
    )
