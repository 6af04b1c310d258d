"""Shortens the statistics of whole segments; only rows that need it become Python objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.stats import from_wire, to_wire_row
from indextables.core.stats.split_stats import WireStats
from indextables.core.stats.truncate import TruncationMetrics, TruncationOptions, truncate_stats
from indextables.core.types import FieldPath, PrimitiveType, StructType, leaves
from indextables.log.state.segments import Segment, Shape
from indextables.log.state.snapshot import Files, Snapshot

_TEXT: Final = (PrimitiveType("string"), PrimitiveType("binary"))


@dataclass(slots=True)
class Shortener:
    """Shortens the statistics of snapshots, and counts what each split saves by it."""

    options: TruncationOptions
    keep: bool = True
    """False drops all statistics."""
    saved: dict[str, int] = field(default_factory=dict)
    """Bytes saved, by the split's key; the last add of a key counts, as it does in the log."""
    metrics: TruncationMetrics = field(default_factory=TruncationMetrics)

    def shortened(self, snapshot: Snapshot) -> Snapshot:
        """Returns the table with its long bounds shortened."""
        segments = tuple(self.segment(segment) for segment in snapshot.state.segments)
        return replace(snapshot, state=Files(segments, snapshot.state.tombstones))

    def saved_by(self, keys: pa.ChunkedArray) -> int:
        """Returns the number of bytes that these splits save together."""
        return sum(self.saved.get(key, 0) for key in keys.to_pylist())

    def segment(self, segment: Segment) -> Segment:
        """Returns the rows with their long bounds shortened."""
        stats = segment.table.column("stats")
        if not self.keep:
            return _with_stats(segment, pa.nulls(len(stats), stats.type))
        if not self.options.enabled:
            return segment
        shortest = min(
            [self.options.default.max_length, *(r.max_length for r in self.options.columns.values())]
        )
        rows = np.flatnonzero(_long_rows(stats, shortest) & ~segment.dead)
        if not len(rows):
            return segment
        return _with_stats(segment, self._replaced(segment, stats, rows))

    def _replaced(
        self, segment: Segment, stats: pa.ChunkedArray, rows: npt.NDArray[np.intp]
    ) -> pa.Array:
        schema = _texts_of(segment.shape)
        keys = segment.table.column("key").take(rows).to_pylist()
        short = [
            self._row(key, row, schema)
            for key, row in zip(keys, stats.take(rows).to_pylist(), strict=True)
        ]
        # all old rows, with the new ones behind them; `take` then puts each in its place
        both = pa.concat_arrays([*stats.chunks, pa.array(short, stats.type)])
        at = np.arange(len(stats))
        at[rows] = len(stats) + np.arange(len(rows))
        return both.take(pa.array(at))

    def _row(self, key: str, row: WireStats, schema: StructType) -> WireStats:
        known, metrics = truncate_stats(from_wire(row, schema), schema, self.options)
        if not metrics.truncated:
            return row
        self.saved[key] = metrics.bytes_saved
        self.metrics += metrics
        short = to_wire_row(known, schema)
        row |= {name: short.get(name) for name in ("inexact", "dropped")}
        for side, path in product(("minValues", "maxValues"), metrics.truncated):
            _copy(path, short.get(side), row[side])
        return row


def without_dropped(files: pa.Table) -> pa.Table:
    """Returns rows of files whose statistics do not list what was too long, which other writers' logs cannot say."""
    at = files.schema.get_field_index("stats")
    stats = files.column(at).combine_chunks()
    children = [
        pa.nulls(len(stats), one.type) if one.name == "dropped" else stats.field(one.name)
        for one in stats.type
    ]
    plain = pa.StructArray.from_arrays(children, fields=list(stats.type), mask=stats.is_null())
    return files.set_column(at, files.schema.field(at), plain)


def _texts_of(shape: Shape) -> StructType:
    """Returns the columns with texts in them; only texts can be too long, so nothing else is decoded."""
    return StructType(
        tuple(
            column
            for column in shape.schema
            if column.name not in shape.partition_columns
            and any(leaf.type in _TEXT for leaf in leaves(StructType((column,))))
        )
    )


def _with_stats(segment: Segment, stats: pa.Array) -> Segment:
    at = segment.table.schema.get_field_index("stats")
    field_ = segment.table.schema.field(at)
    return replace(segment, table=segment.table.set_column(at, field_, stats))


def _copy(path: FieldPath, source: WireStats | None, target: WireStats | None) -> None:
    """Copies one bound and no other, so that values that were not too long keep their stored text."""
    *above, name = path
    for part in above:
        source, target = (source or {}).get(part), (target or {}).get(part)
    if target is not None:
        target[name] = (source or {}).get(name)


def _long_rows(stats: pa.ChunkedArray, limit: int) -> npt.NDArray[np.bool_]:
    """Returns one bit per row, True if a text exceeds the limit in bytes: all that truncation can change, or more."""
    long = np.zeros(len(stats), np.bool_)
    for side in ("minValues", "maxValues"):
        for path in _texts(stats.type.field(side).type, (side,)):
            length = pc.binary_length(pc.struct_field(stats, list(path)))
            long |= np.asarray(pc.fill_null(pc.greater(length, limit), fill_value=False))
    return long


def _texts(kind: pa.StructType, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for field_ in kind:
        if pa.types.is_struct(field_.type):
            yield from _texts(field_.type, (*path, field_.name))
        elif pa.types.is_string(field_.type):
            yield (*path, field_.name)
