"""Compares the rows with what the log says of them: a wrong statistic makes queries lose rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import groupby
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.prune.index import ColumnStatsIndex
from indextables.core.stats import SplitStats
from indextables.core.types import Leaf, PrimitiveType, has_text, is_orderable, leaves, path_text
from indextables.errors import IndexTablesError, ProtocolError
from indextables.log.state.rows import Split
from indextables.log.state.snapshot import Snapshot
from indextables.ops.check.log import Problem
from indextables.ops.shared.executor import Executor
from indextables.parquet.read.key_index import KeyIndex
from indextables.parquet.read.read import ReadRequest, Unit, read_batches, units_of
from indextables.plan.column_sets import columns_set
from indextables.plan.merge_rule import MergeRule
from indextables.plan.planner import plan_files
from indextables.storage.base import LogStore

_AT_ONCE: Final = 16


def check_rows(
    snapshot: Snapshot,
    executor: Executor,
    skip: Collection[str],
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[Problem]:
    """Reads every split not in `skip` and yields each statistic that its rows contradict."""
    columns = [
        leaf for leaf in leaves(snapshot.schema) if leaf.path[0] not in snapshot.partition_columns
    ]
    splits = snapshot.splits()
    index = snapshot.index()
    for position, split in enumerate(splits):
        if split.path not in skip:
            try:
                found = executor.collect([split], snapshot.schema, [leaf.path for leaf in columns])
            except IndexTablesError as error:
                yield Problem("unreadable-file", split.path, None, error.message)
            else:
                yield from _contradictions(split, found[split.path], columns, index, position)
        if progress is not None and (position % _AT_ONCE == 0 or position + 1 == len(splits)):
            progress(position + 1, len(splits))


def check_text(snapshot: Snapshot, store: LogStore, skip: Collection[str]) -> Iterator[Problem]:
    """Reads the text of every split not in `skip` and names those with bytes that are no text."""
    stored = (f for f in snapshot.schema if f.name not in snapshot.partition_columns)
    names = tuple(field.name for field in stored if has_text(field.type))
    for split in snapshot.splits() if names else ():
        if split.path not in skip:
            for name in _not_text(ReadRequest(store, snapshot.schema, names), split):
                message = f"column {name} has text that is not UTF-8: engines other than Spark refuse the file"
                yield Problem("bad-text", split.path, None, message)


def _not_text(reading: ReadRequest, split: Split) -> list[str]:
    found: dict[str, None] = {}
    for batch in read_batches(reading, [split]):
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid:
                found[name] = None
    return list(found)


def _contradictions(
    split: Split, rows: SplitStats, columns: list[Leaf], index: ColumnStatsIndex, position: int
) -> Iterator[Problem]:
    said = split.stats
    if said.num_records is not None and said.num_records != rows.num_records:
        message = f"the log says {said.num_records} rows, the file has {rows.num_records}"
        yield Problem("wrong-statistics", split.path, None, message)
    for leaf in columns:
        name = path_text(leaf.path)
        for what, log, file in (
            ("NULL", said.null_count.get(leaf.path), rows.null_count.get(leaf.path, 0)),
            ("NaN", said.nan_count.get(leaf.path), rows.nan_count.get(leaf.path, 0)),
        ):
            if log is not None and log != file:
                message = f"column {name}: the log counts {log} {what}, the file has {file}"
                yield Problem("wrong-statistics", split.path, None, message)
        if is_orderable(leaf.type, leaf.field.metadata):
            yield from _outside(split, rows, leaf, index, position)


def _outside(
    split: Split, rows: SplitStats, leaf: Leaf, index: ColumnStatsIndex, position: int
) -> Iterator[Problem]:
    stats, name = index.column(leaf.path), path_text(leaf.path)
    low, high = _comparable(stats.lo[position], leaf), _comparable(stats.hi[position], leaf)
    least, greatest = rows.min_values.get(leaf.path), rows.max_values.get(leaf.path)
    if low is not None and least is not None and least < low:
        message = f"column {name}: the log says nothing is below {low!r}, the file has {least!r}"
        yield Problem("wrong-statistics", split.path, None, message)
    if high is not None and greatest is not None and greatest > high:
        message = f"column {name}: the log says nothing is above {high!r}, the file has {greatest!r}"
        yield Problem("wrong-statistics", split.path, None, message)


def _comparable(bound: pa.Scalar, leaf: Leaf) -> Any:
    value = bound.as_py()
    return bool(value) if value is not None and leaf.type == PrimitiveType("boolean") else value


# In a table with a record key every file belongs to a slice, and every key occurs once.

_SHOWN: Final = 20


def check_slices(snapshot: Snapshot) -> Iterator[Problem]:
    """Yields what is wrong with the slices, judged by what the log says of their files."""
    files = snapshot.files().select(
        ["key", "file_group", "kind", "block", "seq", "partition_values", "extra"]
    )
    try:
        rule = MergeRule.of(snapshot.properties)
    except ProtocolError as error:
        yield Problem("unknown-merge-mode", "", None, error.message)
        return
    if not rule.key:
        for path in files.filter(pc.equal(files.column("kind"), "log")).column("key").to_pylist():
            message = "is a delta file, whose rows replace others by their key, but the table has no record key"
            yield Problem("log-without-key", path, None, message)
        return
    for path in files.filter(pc.is_null(files.column("file_group"))).column("key").to_pylist():
        message = "is in no slice, so none of its rows can be replaced or deleted"
        yield Problem("no-file-group", path, None, message)
    for _, slice_ in groupby(_in_slices(files).to_pylist(), key=lambda file: file["file_group"]):
        yield from _slice_problems(list(slice_))


def _in_slices(files: pa.Table) -> pa.Table:
    """Returns the files of slices that are more than one base file, slice by slice and oldest first."""
    slices = files.group_by("file_group").aggregate([("key", "count"), ("kind", "max")])
    several = pc.greater(slices.column("key_count"), 1)
    has_log = pc.fill_null(pc.equal(slices.column("kind_max"), "log"), fill_value=False)
    names = slices.filter(pc.or_(several, has_log)).column("file_group").drop_null()
    chosen = files.filter(pc.is_in(files.column("file_group"), names.combine_chunks()))
    return chosen.sort_by([("file_group", "ascending"), ("seq", "ascending")])


def _slice_problems(files: list[dict[str, Any]]) -> Iterator[Problem]:
    """Yields what is wrong with the files of one slice, given oldest first."""
    name = files[0]["file_group"]
    bases = [file for file in files if file["kind"] != "log"]
    for file in bases[1:]:
        message = f"is a second base file of the slice {name}, beside {bases[0]['key']}"
        yield Problem("two-bases", file["key"], None, message)
    for file in files[1:]:
        if file["partition_values"] != files[0]["partition_values"]:
            message = f"is in another partition than the slice {name} it belongs to"
            yield Problem("mixed-partitions", file["key"], None, message)
    if not bases:
        for file in files:
            if file["block"] == "data" and columns_set(file["extra"]) is not None:
                message = f"sets some columns of rows of the slice {name}, whose base file is gone"
                yield Problem("lost-base", file["key"], None, message)


def check_keys(snapshot: Snapshot, store: LogStore) -> Iterator[Problem]:
    """Reads the keys of all rows that the table shows and yields those it shows more than once."""
    key = MergeRule.of(snapshot.properties).key
    if not key:
        return
    request = ReadRequest(store, snapshot.schema, key)
    units = units_of(plan_files(snapshot))
    try:
        tables = [
            pa.Table.from_batches(read_batches(request, [unit]), request.result_schema)
            for unit in units
        ]
    except IndexTablesError as error:
        yield Problem("unreadable-file", "", None, f"the rows cannot be merged: {error.message}")
        return
    if not any(table.num_rows for table in tables):
        return
    keys = pa.concat_tables(tables)
    sources = np.repeat(np.arange(len(units)), [table.num_rows for table in tables])
    numbers = KeyIndex.of(keys).numbers
    for number in np.flatnonzero(np.bincount(numbers) > 1)[:_SHOWN]:
        rows = np.flatnonzero(numbers == number)
        where = [_name(units[source]) for source in np.unique(sources[rows])]
        value = ", ".join(f"{name} = {keys.column(name)[int(rows[0])]}" for name in key)
        message = f"{len(rows)} rows have the key {value}; they are in the slices of {', '.join(where)}"
        yield Problem("duplicate-key", where[0], None, message)


def _name(unit: Unit) -> str:
    return unit.path if isinstance(unit, Split) else unit.files[0].path
