"""The statistics of a table as the page of a report embeds them, so that it can answer conditions by itself.

Each bound is written as its rank among all bounds of its column. A condition's constant is looked up among these
once, and each split then takes two comparisons of small integers, in the page as in the pruner.
"""

from __future__ import annotations

import base64
import gzip
from typing import Any, Final, TypeAlias

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.prune.index import ColumnStatsIndex
from indextables.core.types import (
    DataType,
    DecimalType,
    FieldPath,
    PrimitiveType,
    is_orderable,
    leaves,
    path_text,
    type_name,
)
from indextables.log.state.snapshot import Snapshot

Json: TypeAlias = dict[str, Any]

MOST_BOUNDS: Final = 2_000_000
"""Columns are left out of the page, with their names, once it holds this many different bounds."""
_HAS_VALUE, _HAS_NULL, _HAS_NAN = 1, 2, 4
_KINDS: Final = {
    "string": "text",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp",
    "float": "single",
    "double": "double",
    "byte": "integer",
    "short": "integer",
    "integer": "integer",
    "long": "integer",
}


def live_table(snapshot: Snapshot) -> Json:
    """Returns what the page embeds of a snapshot: names and sizes of its splits, and the bounds of each column."""
    index = snapshot.index()
    found: list[Json] = []
    left_out: list[str] = []
    room = MOST_BOUNDS
    for leaf in leaves(snapshot.schema):
        kind = _kind(leaf.type) if is_orderable(leaf.type, leaf.field.metadata) else None
        column = None if kind is None else _column(index, leaf.path, leaf.type, kind)
        if column is None or len(column["points"]) > room:
            left_out.append(path_text(leaf.path))
            continue
        room -= len(column["points"])
        found.append(column)
    return {
        "paths": snapshot.column("key").to_pylist(),
        "bytes": snapshot.column("size").fill_null(0).to_pylist(),
        "rows": index.source.num_records().to_pylist(),
        "holdsRows": _text(index.may_have_rows.astype(np.uint8)),
        "columns": found,
        "leftOut": left_out,
    }


def packed(table: Json) -> str:
    """Returns the embedded form: JSON, compressed, in letters that mean nothing to HTML."""
    return base64.b64encode(gzip.compress(orjson.dumps(table), 6, mtime=0)).decode("ascii")


def _kind(dtype: DataType) -> str | None:
    match dtype:
        case DecimalType():
            return "decimal"
        case PrimitiveType(name):
            return _KINDS.get(name)
        case _:
            return None


def _column(index: ColumnStatsIndex, path: FieldPath, dtype: DataType, kind: str) -> Json | None:
    """Returns one column; None if nothing is known of it in any split."""
    stats, space = index.column(path), index.space(path)
    bounds = pa.chunked_array([*_chunks(stats.lo), *_chunks(stats.hi)], stats.lo.type)
    points = pc.unique(bounds.drop_null())
    points = points.take(pc.sort_indices(points))
    if not len(points) and bool(stats.missing.all()):
        return None
    flags = stats.may_value * _HAS_VALUE | stats.may_null * _HAS_NULL | stats.may_nan * _HAS_NAN
    values = points.to_pylist()
    text = kind == "text"
    return {
        "name": path_text(path),
        "path": list(path),
        "type": type_name(dtype),
        "kind": kind,
        "partition": index.is_partition(path),
        "scale": dtype.scale if isinstance(dtype, DecimalType) else 0,
        "universe": [] if text else [str(cut) for cut in space.universe],
        "points": values if text else [str(space.ordinal(value)) for value in values],
        "lo": _text(_ranks(stats.lo, points, unknown=-1)),
        "hi": _text(_ranks(stats.hi, points, unknown=len(points))),
        "flags": _text(flags.astype(np.uint8)),
        "cut": int(
            np.count_nonzero(stats.may_value & ~stats.missing & ~(stats.lo_exact & stats.hi_exact))
        ),
        "missing": int(np.count_nonzero(stats.missing)),
    }


def _chunks(column: Any) -> list[Any]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _ranks(bounds: Any, points: Any, *, unknown: int) -> Any:
    found = pc.index_in(bounds, value_set=points, skip_nulls=True).fill_null(unknown)
    return np.asarray(found).astype("<i4")


def _text(array: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
