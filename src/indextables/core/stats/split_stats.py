"""How the bounds of one column are written to and read from the wire; worked out once per schema."""

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
        """Returns both bounds.

        Where one is NaN the writer's comparisons were spoiled, and neither counts.
        """
        if not self.ordered or (self.is_float and (_is_nan(low) or _is_nan(high))):
            return (None, True), (None, True)
        return self.read_min(low), self.read_max(high)


def codecs_of(schema: StructType) -> dict[FieldPath, BoundCodec]:
    """Returns the codec of every leaf, in the schema's order."""
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


# What is known about the values of one split, and its form in a log line.

Json: TypeAlias = dict[str, Any]
_Item: TypeAlias = tuple[FieldPath, Any]
_PATHS: Final = pa.list_(pa.list_(pa.string()))


@dataclass(frozen=True, slots=True)
class SplitStats:
    """Facts about one split; what is not listed is unknown, never assumed.

    A bound is physical (`core.values`). `inexact_min` and `inexact_max` name bounds that hold but
    need not occur; `dropped` names columns that lost a bound for its length.
    """

    num_records: int | None = None
    min_values: Mapping[FieldPath, Physical] = field(default_factory=dict)
    max_values: Mapping[FieldPath, Physical] = field(default_factory=dict)
    null_count: Mapping[FieldPath, int] = field(default_factory=dict)
    nan_count: Mapping[FieldPath, int] = field(default_factory=dict)
    inexact_min: frozenset[FieldPath] = frozenset()
    inexact_max: frozenset[FieldPath] = frozenset()
    dropped: frozenset[FieldPath] = frozenset()


def to_wire(stats: SplitStats, schema: StructType) -> Json:
    """Returns the `stats` object of a log line: ready for JSON, and with no value JSON cannot hold."""
    return _to_object(stats, schema, _encode_for_json)


def to_wire_row(stats: SplitStats, schema: StructType) -> Json:
    """Returns the same as a row of `stats_wire_type`, where an infinity is a float and not a text."""
    return _to_object(stats, schema, _encode_for_arrow)


def _encode_for_json(column: BoundCodec, value: Physical) -> Any:
    return column.encode(value)


def _encode_for_arrow(column: BoundCodec, value: Physical) -> Any:
    encoded = column.encode(value)
    return value if column.is_float and isinstance(encoded, str) else encoded


def _to_object(
    stats: SplitStats, schema: StructType, encode: Callable[[BoundCodec, Physical], Any]
) -> Json:
    known = codecs_of(schema)

    def bounds(values: Mapping[FieldPath, Physical], zero: float) -> Iterator[_Item]:
        for path, value in values.items():
            column = known.get(path)
            if column is None or not column.ordered:
                continue
            # -0.0 and 0.0 are one value, but a reader may order them: let the range hold both.
            encoded = encode(column, zero if column.is_float and value == 0 else value)
            if not isinstance(encoded, Omit):
                yield path, encoded

    parts: Json = {
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
    return {name: part for name, part in parts.items() if part is not None and part not in ({}, [])}


def _has_bounds(leaf: Leaf) -> bool:
    return is_orderable(leaf.type, leaf.field.metadata)


def _sorted(paths: Iterable[FieldPath]) -> list[list[str]]:
    return [list(path) for path in sorted(paths)]


def _nested(values: Iterable[_Item]) -> Json:
    root: Json = {}
    for path, value in values:
        at = root
        for part in path[:-1]:
            at = at.setdefault(part, {})
        at[path[-1]] = value
    return root


def from_wire(obj: Json | str | None, schema: StructType) -> SplitStats:
    """Returns the statistics a log line holds; whatever does not decode is unknown, never an error."""
    found = _loads(obj) if isinstance(obj, str) else obj
    if not isinstance(found, dict):
        return SplitStats()
    columns = codecs_of(schema).values()
    records = _count(found.get("numRecords"), None)
    lows, highs = found.get("minValues"), found.get("maxValues")
    read = {c.path: c.read(_at(lows, c.path), _at(highs, c.path)) for c in columns}
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


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _at(values: Any, path: FieldPath) -> Any:
    for part in path:
        values = values.get(part) if isinstance(values, dict) else None
    return values


def _count(value: Any, limit: int | None) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        return None
    return value if limit is None or value <= limit else None


def _counts(values: Any, columns: Iterable[BoundCodec], limit: int | None) -> dict[FieldPath, int]:
    if not isinstance(values, dict):
        return {}
    read = ((column.path, _count(_at(values, column.path), limit)) for column in columns)
    return {path: count for path, count in read if count is not None}


def _paths(value: Any) -> frozenset[FieldPath]:
    """Paths from arrays of name parts; a plain text is one name."""
    items = value if isinstance(value, list) else []
    texts = frozenset((item,) for item in items if isinstance(item, str))
    return texts | frozenset(
        tuple(item) for item in items if isinstance(item, list) and item and _all_text(item)
    )


def _all_text(parts: list[Any]) -> bool:
    return all(isinstance(part, str) for part in parts)


def stats_wire_type(schema: StructType, partition_columns: Sequence[str] = ()) -> pa.StructType:
    """Returns the Arrow type of a whole `stats` object, for parsing log lines column by column."""
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


def _struct_type(parts: Json) -> pa.StructType:
    return pa.struct({name: _struct_type(t) if isinstance(t, dict) else t for name, t in parts.items()})
