"""A plan as a LazyFrame: Polars' own Parquet scan for splits it reads right, this library's reader for others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import polars as pl
from polars.io.plugins import register_io_source

from indextables.core.predicate.nodes import Predicate, StartsWith
from indextables.core.predicate.tree import fold, is_computed
from indextables.core.prune.partitions import partition_scalar
from indextables.core.types import Field, StructType, schema_to_arrow
from indextables.engines.native_files import NativeGroup, NativePlan, native_plan
from indextables.engines.polars.expressions import predicate_of
from indextables.parquet.read.read import ReadRequest, read_batches, units_of
from indextables.parquet.read.row_filter import evaluable_part
from indextables.plan.planner import Plan, Planner
from indextables.plan.report import Recorder
from indextables.storage.base import LogStore


@lru_cache(maxsize=64)
def polars_schema(schema: StructType) -> pl.Schema:
    """Returns the table's columns in Polars' types."""
    empty = pl.from_arrow(schema_to_arrow(schema).empty_table())
    assert isinstance(empty, pl.DataFrame)
    return empty.schema


def lazy_frame(plan: Plan, store: LogStore, where: Predicate | None) -> pl.LazyFrame:
    """Returns all rows of the splits of a plan for `where`; Polars filters them."""
    schema = plan.snapshot.schema
    found = native_plan(plan, store)
    recorder = found.counted(plan)
    # Polars computes with a row group's bounds as with values, even where that overflows
    by_bounds = where is None or not fold(where, lambda node, inner: _is_more(node) or any(inner))
    parts = [_scan(group, schema, use_statistics=by_bounds) for group in found.groups]
    if found.others.any():
        parts.append(_read(plan, found, store, recorder))
    if not parts:
        return pl.LazyFrame(schema=polars_schema(schema))
    return parts[0] if len(parts) == 1 else pl.concat(parts)


def _is_more(node: Predicate) -> bool:
    """Returns whether this part of a condition is more than columns compared with constants."""
    return is_computed(node) or (isinstance(node, StartsWith) and node.pattern is not None)


def _scan(group: NativeGroup, schema: StructType, *, use_statistics: bool) -> pl.LazyFrame:
    """Returns Polars' scan of files that are alike, cast to the types the table has now."""
    stored = StructType(tuple(f for f in group.written if f.name not in group.partition_values))
    frame = pl.scan_parquet(
        group.paths,
        schema=polars_schema(stored),
        glob=False,  # names may hold brackets
        hive_partitioning=False,  # the log has the values
        use_statistics=use_statistics,
    )
    today = polars_schema(schema)
    changes = [_column(field, group, today[field.name]) for field in schema]
    return frame.with_columns([c for c in changes if c is not None]).select(schema.names)


def _column(field: Field, group: NativeGroup, dtype: pl.DataType) -> pl.Expr | None:
    """Returns what to put in place of a column of the files; None if it is as the table has it."""
    if field.name in group.partition_values:
        value = partition_scalar(group.partition_values[field.name], field.type)
        return pl.lit(value.as_py(), dtype).alias(field.name)
    before = group.stored(field)
    if before is None:
        return pl.lit(None, dtype).alias(field.name)
    return None if before.type == field.type else pl.col(field.name).cast(dtype)


def planning_source(planner: Planner) -> pl.LazyFrame:
    """Returns a LazyFrame for Polars versions without resolvers, which plans when Polars reads it."""

    def rows(
        columns: list[str] | None, predicate: pl.Expr | None, limit: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        del size
        useful = predicate if limit is None else None  # a limit comes before the filter
        where = None if useful is None else predicate_of(useful, planner.schema)
        frame = lazy_frame(planner.plan(where), planner.store, where)
        frame = frame if limit is None else frame.head(limit)
        frame = frame if predicate is None else frame.filter(predicate)
        yield (frame if columns is None else frame.select(columns)).collect()

    return register_io_source(rows, schema=polars_schema(planner.schema))


def _read(plan: Plan, native: NativePlan, store: LogStore, recorder: Recorder) -> pl.LazyFrame:
    """Returns a LazyFrame of the rows that are left to this library's reader, a batch at a time."""
    schema = plan.snapshot.schema
    units = units_of(plan, without=native.mask)
    filtered = None if plan.predicate is None else evaluable_part(plan.predicate)

    def rows(
        columns: list[str] | None, predicate: pl.Expr | None, limit: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        del size
        names = schema.names if columns is None else tuple(columns)
        # a limit comes before the filter
        request = ReadRequest(store, schema, names, filtered if limit is None else None)
        left = limit
        for batch in read_batches(request, units, recorder=recorder):
            frame = pl.from_arrow(batch)
            assert isinstance(frame, pl.DataFrame)
            frame = frame if left is None else frame.head(left)
            left = left if left is None else left - frame.height
            yield frame if predicate is None else frame.filter(predicate)
            if left == 0:
                return

    return register_io_source(rows, schema=polars_schema(schema))
