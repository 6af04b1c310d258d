"""A table with a record key: every file in its slice, every key in the table once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import IndexTablesError, ProtocolError
from indextables.log.state.rows import Split
from indextables.log.state.snapshot import Snapshot
from indextables.ops.check.problem import Problem
from indextables.parquet.read.key_index import KeyIndex
from indextables.parquet.read.read import Reading, Unit, read_batches, units_of
from indextables.plan.column_sets import columns_set
from indextables.plan.merge_rule import MergeRule
from indextables.plan.planner import plan_files
from indextables.storage.base import LogStore

_SHOWN: Final = 20


def check_slices(snapshot: Snapshot) -> Iterator[Problem]:
    """What is wrong with the slices by what the log says of their files."""
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
            message = "a log file, whose rows replace others by their key, and the table has no key"
            yield Problem("log-without-key", path, None, message)
        return
    for path in files.filter(pc.is_null(files.column("file_group"))).column("key").to_pylist():
        message = "is in no file group: no row of it can be replaced or deleted"
        yield Problem("no-file-group", path, None, message)
    for _, group in groupby(_in_slices(files).to_pylist(), key=lambda file: file["file_group"]):
        yield from _group_problems(list(group))


def _in_slices(files: pa.Table) -> pa.Table:
    """The files of groups that are more than one base, group by group, oldest first."""
    groups = files.group_by("file_group").aggregate([("key", "count"), ("kind", "max")])
    several = pc.greater(groups.column("key_count"), 1)
    has_log = pc.fill_null(pc.equal(groups.column("kind_max"), "log"), fill_value=False)
    names = groups.filter(pc.or_(several, has_log)).column("file_group").drop_null()
    chosen = files.filter(pc.is_in(files.column("file_group"), names.combine_chunks()))
    return chosen.sort_by([("file_group", "ascending"), ("seq", "ascending")])


def _group_problems(files: list[dict[str, Any]]) -> Iterator[Problem]:
    """The files of one group, oldest first."""
    name = files[0]["file_group"]
    bases = [file for file in files if file["kind"] != "log"]
    for file in bases[1:]:
        message = f"is a second base of the file group {name}, beside {bases[0]['key']}"
        yield Problem("two-bases", file["key"], None, message)
    for file in files[1:]:
        if file["partition_values"] != files[0]["partition_values"]:
            message = f"is in another partition than the file group {name} it belongs to"
            yield Problem("mixed-partitions", file["key"], None, message)
    if not bases:
        for file in files:
            if file["block"] == "data" and columns_set(file["extra"]) is not None:
                message = f"sets some columns of rows of the file group {name}, whose base is gone"
                yield Problem("lost-base", file["key"], None, message)


def check_keys(snapshot: Snapshot, store: LogStore) -> Iterator[Problem]:
    """Reads the keys of all rows the table shows and names those that it shows twice."""
    key = MergeRule.of(snapshot.properties).key
    if not key:
        return
    reading = Reading(store, snapshot.schema, key)
    units = units_of(plan_files(snapshot))
    try:
        tables = [
            pa.Table.from_batches(read_batches(reading, [unit]), reading.result_schema)
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
