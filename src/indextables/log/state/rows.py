"""Reads one add or remove with tolerance: unknown fields are kept, and bad statistics are dropped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias, TypedDict, TypeGuard

import orjson
import pyarrow as pa

from indextables.core.stats import SplitStats, from_wire
from indextables.core.types import DataType, DecimalType, StructType
from indextables.deprecated import renamed
from indextables.errors import LogCorruptedError
from indextables.log.state.segments import Shape
from indextables.log.wire.actions import Add
from indextables.log.wire.indextables4spark import stats_of
from indextables.log.wire.lines import LinePosition, dumps, is_clean, parse

_INTEGERS: Final = ("size", "modificationTime", "schemaId", "seq")
_TEXTS: Final = ("path", "fileGroup", "kind", "block")
_INFINITIES: Final = {"Infinity": math.inf, "-Infinity": -math.inf}


Fields: TypeAlias = dict[str, object]
"""The fields of an action by name, as JSON has them."""


class Known(NamedTuple):
    """One action: the fields that are known, and the JSON of those that are not."""

    body: Fields
    extra: str | None
    plain: bool
    """True if the texts in it that are JSON themselves are plain JSON (`wire.lines.parse`)."""


def add_row(value: object, shape: Shape, position: LinePosition) -> Known:
    """Returns an add, with partition values and statistics in the form of this shape."""
    left = _object(value, "add", position)
    values, unread_values = _partition_values(left.pop("partitionValues", None), shape, position)
    is_theirs = "minValues" in left or "numRecords" in left
    beside = stats_of(left, shape.schema) if is_theirs else None
    stats, plain = (beside, True) if beside else _stats_object(left.pop("stats", None), position)
    unread_stats: Fields = {}
    if stats is not None:
        stats, odd = shape.layout.members["stats"].divide(stats)
        unread_stats = {
            name: member
            for name, member in odd.items()
            if is_clean({name: member}) and _is_finite(member)
        }
    body: Fields = {"partitionValues": values, "stats": stats}
    body |= {field: _text(left, field, position) for field in _TEXTS}
    body |= {field: _integer(left, field, position) for field in _INTEGERS}
    body["dataChange"] = _flag(left, "dataChange", position)
    left |= {"partitionValues": unread_values} if unread_values else {}
    left |= {"stats": unread_stats} if unread_stats else {}
    return Known(body, _extra(left, "add", position), plain)


def remove_row(value: object, position: LinePosition) -> Known:
    """Returns a remove; its unknown fields are kept."""
    left = _object(value, "remove", position)
    body: Fields = {
        "path": _text(left, "path", position),
        "deletionTimestamp": _integer(left, "deletionTimestamp", position),
        "dataChange": _flag(left, "dataChange", position),
    }
    return Known(body, _extra(left, "remove", position), plain=True)


def _object(value: object, name: str, position: LinePosition) -> Fields:
    if not isinstance(value, dict) or not isinstance(value.get("path"), str):
        raise position.corrupted(f"{name!r} is not an object with a path")
    return dict(value)


def _text(body: Fields, field: str, position: LinePosition) -> str | None:
    value = body.pop(field, None)
    if value is None or (isinstance(value, str) and is_clean(value)):
        return value
    raise position.corrupted(f"{field} is not a text: {value!a:.80}")


def _integer(body: Fields, field: str, position: LinePosition) -> int | None:
    value = body.pop(field, None)
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # some writers know only one kind of number
    if value is None or _is_int64(value):
        return value
    raise position.corrupted(f"{field} is not an integer: {value!a:.80}")


def _is_int64(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _flag(body: Fields, field: str, position: LinePosition) -> bool | None:
    value = body.pop(field, None)
    if value is not None and not isinstance(value, bool):
        raise position.corrupted(f"{field} is neither true nor false: {value!a:.80}")
    return value


def _extra(unread: Fields, name: str, position: LinePosition) -> str | None:
    if not is_clean(unread):
        raise position.corrupted(f"{name!r} has a field that is not valid text")
    return dumps(unread).decode() if unread else None


def _partition_values(
    value: object, shape: Shape, position: LinePosition
) -> tuple[dict[str, str | None] | None, Fields]:
    if value is None:
        return None, {}
    if not isinstance(value, dict):
        raise position.corrupted("partitionValues is not an object")
    given = dict(value)
    known = {name: _partition_text(given.pop(name, None), position) for name in shape.partition_columns}
    return known, given


def _partition_text(value: object, position: LinePosition) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str() if is_clean(value):
            return value
        case _:
            raise position.corrupted(f"a partition value is not a text: {value!a:.80}")


def _stats_object(value: object, position: LinePosition) -> tuple[Fields | None, bool]:
    """Returns the statistics, None if they are garbage, and True if they are plain JSON.

    They are an object, or the JSON text of one as in Delta's logs.
    """
    plain = True
    if isinstance(value, str):
        try:
            value, plain = parse(value.encode("utf-8", "surrogatepass"), position)
        except LogCorruptedError:
            return None, True
    if not isinstance(value, dict):
        return None, plain
    if not _are_paths(value.get("inexact")):
        # Nobody knows which bounds are prefixes, so none can be used.
        return {
            name: member
            for name, member in value.items()
            if name not in {"minValues", "maxValues", "inexact"}
        }, plain
    return value, plain


def _are_paths(inexact: object) -> bool:
    """Returns True if `inexact` is absent or lists paths for each side."""
    if inexact is None:
        return True
    sides = (
        [inexact.get(side) or [] for side in ("min", "max")] if isinstance(inexact, dict) else [None]
    )
    return all(
        isinstance(paths, list)
        and all(
            isinstance(path, str) or (isinstance(path, list) and _are_texts(path)) for path in paths
        )
        for paths in sides
    )


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def with_sound_stats(body: Fields, shape: Shape) -> Fields:
    """Returns an add as a row for Arrow, with only those statistics that have the type of their column.

    Each leaf gets exactly the value that Arrow's parser would read, so that it makes no difference which of
    the two reads a line.
    """
    stats = body["stats"]
    if not isinstance(stats, dict):
        return body
    sound = {
        member.name: _sound(stats.get(member.name), member.type, shape.schema)
        for member in shape.stats_type
    }
    return body | {"stats": sound}


def _sound(value: object, kind: pa.DataType, dtype: DataType | None) -> object:
    """Returns the value if it is one of this Arrow type, else None."""
    if pa.types.is_struct(kind):
        if not isinstance(value, dict):
            return None
        types = {f.name: f.type for f in dtype} if isinstance(dtype, StructType) else {}
        return {f.name: _sound(value.get(f.name), f.type, types.get(f.name)) for f in kind}
    if pa.types.is_list(kind):
        return _sound_paths(value)
    if pa.types.is_boolean(kind):
        return value if isinstance(value, bool) else None
    if pa.types.is_string(kind):
        return _sound_text(value, dtype)
    if pa.types.is_integer(kind):
        return value if _is_int64(value) else None
    return _sound_number(value)


def _sound_paths(value: object) -> list[list[str]] | None:
    """Returns paths as arrays of names; a plain text is a path of one name."""
    if not isinstance(value, list) or not is_clean(value):
        return None
    paths = [[item] if isinstance(item, str) else item for item in value]
    return [path for path in paths if isinstance(path, list) and _are_texts(path)]


def _sound_text(value: object, dtype: DataType | None) -> str | None:
    if isinstance(dtype, DecimalType) and isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # the column was an integer when the split was written
    return value if isinstance(value, str) and is_clean(value) else None


def _sound_number(value: object) -> float | None:
    number = _INFINITIES.get(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int | float) or number != number:  # noqa: PLR0124 - NaN
        return None
    try:
        return float(number)
    except OverflowError:
        return None


def _is_finite(value: object) -> bool:
    """Returns False if the value has a NaN or an infinity at any depth, which JSON cannot hold."""
    match value:
        case float():
            return math.isfinite(value)
        case dict():
            return all(map(_is_finite, value.values()))
        case list():
            return all(map(_is_finite, value))
        case _:
            return True


def loads_extra(text: str | None) -> dict[str, Any]:
    """Returns the fields in the JSON of an `extra` column."""
    return orjson.loads(text) if text else {}


# Splits as objects, which are made only for the splits that a plan returns.


class FileRow(TypedDict):
    """A row of `Snapshot.files()`."""

    key: str
    size: int | None
    modification_time: int | None
    partition_values: Mapping[str, str | None] | None
    seq: int
    schema_id: int | None
    file_group: str | None
    kind: str | None
    block: str | None
    data_change: bool
    stats: Mapping[str, Any] | None
    extra: str | None


@dataclass(frozen=True, slots=True)
class Split:
    """A live file of the table; `path` is its key in the store."""

    path: str
    size: int
    modification_time: int | None
    partition_values: Mapping[str, str | None] = field(hash=False)
    """By column, as text; None is NULL."""
    seq: int
    schema_id: int | None
    file_group: str | None
    kind: str | None
    block: str | None
    data_change: bool
    schema: StructType = field(repr=False, compare=False)
    wire_stats: Mapping[str, Any] | None = field(repr=False, hash=False)
    extra_json: str | None = field(repr=False)

    @classmethod
    def of(cls, row: FileRow, schema: StructType) -> Split:
        """Returns the split of one row of `Snapshot.files()`."""
        return cls(
            path=row["key"],
            size=row["size"] or 0,
            modification_time=row["modification_time"],
            partition_values=row["partition_values"] or {},
            seq=row["seq"],
            schema_id=row["schema_id"],
            file_group=row["file_group"],
            kind=row["kind"],
            block=row["block"],
            data_change=row["data_change"],
            schema=schema,
            wire_stats=row["stats"],
            extra_json=row["extra"],
        )

    @property
    def stats(self) -> SplitStats:
        """Returns what is known of the split's values, decoded at each call."""
        return from_wire(dict(self.wire_stats) if self.wire_stats else None, self.schema)

    @property
    def is_delta(self) -> bool:
        """Returns True for a delta file, whose rows replace or delete rows of older files."""
        return self.kind == "log"

    is_log = renamed("is_log", "is_delta", removed_in="0.3")

    def to_add(self) -> Add:
        """Returns the action that adds exactly this split again, with its unknown fields and its `seq`."""
        extra = loads_extra(self.extra_json)
        return Add(
            path=self.path,
            size=self.size,
            partition_values=self.partition_values,
            modification_time=self.modification_time,
            data_change=self.data_change,
            stats=self.stats if self.wire_stats is not None else None,
            tags=extra.pop("tags", None) or {},
            schema_id=self.schema_id,
            seq=self.seq,
            file_group=self.file_group,
            kind=self.kind,
            block=self.block,
            extra=extra,
        )
