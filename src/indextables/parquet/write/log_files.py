"""Log files of slices: rows that replace older ones, and keys of rows that are gone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal
from uuid import uuid4

import pyarrow as pa

from indextables.core.types import StructType
from indextables.parquet.read.key_lookup import Home
from indextables.parquet.read.partition import partition_directory
from indextables.parquet.write.write import WriteTarget, Written, write_splits
from indextables.plan.column_sets import TAG
from indextables.storage.base import LogStore


def write_log(
    store: LogStore,
    target: WriteTarget,
    home: Home,
    rows: pa.Table,
    *,
    block: Literal["data", "delete"],
    columns: Sequence[str] | None = None,
) -> Written:
    """These rows as log files of one group, with statistics of their own; durable on return.

    `columns` are those a partial data log sets; None: all there are. A log file holds no partition
    column: the group has one value of each.
    """
    stored = [name for name in rows.column_names if name not in target.partition_columns]
    fields = {field.name: field for field in target.schema}
    directory = f"{target.directory}/{partition_directory(home.partition_values)}".rstrip("/")
    narrow = replace(
        target,
        schema=StructType(tuple(fields[name] for name in stored)),
        partition_columns=(),
        directory=directory,
        stats_columns=tuple(path for path in target.stats_columns if path[0] in stored),
    )
    written = write_splits(rows.select(stored).to_batches(), store, narrow)
    more: dict[str, Any] = {} if columns is None else {"tags": {TAG: json.dumps(list(columns))}}
    adds = tuple(
        replace(
            add,
            partition_values=dict(home.partition_values),
            file_group=home.group,
            kind="log",
            block=block,
            **more,
        )
        for add in written.adds
    )
    return replace(written, adds=adds)


def as_new_groups(written: Written) -> Written:
    """Each of these splits as the base of a file group of its own."""
    adds = tuple(replace(add, file_group=str(uuid4()), kind="base") for add in written.adds)
    return replace(written, adds=adds)
