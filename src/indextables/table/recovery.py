"""Looking into tables whose log may be too damaged to be opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from indextables.config import Config
from indextables.errors import TableNotFoundError
from indextables.log.transaction_log import TransactionLog
from indextables.ops.check.check import CheckReport, check
from indextables.ops.describe_log import LOG_COLUMNS
from indextables.ops.describe_log import describe_log as _describe_log
from indextables.parquet.write.executor import ArrowExecutor
from indextables.table.arguments import Location, Progress, not_a_table, store_of


def check_table(
    path: Location,
    *,
    deep: bool = False,
    progress: Progress | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> CheckReport:
    """Returns what `Table.check` finds, also for a table whose log is too damaged to be opened."""
    log = _log(path, storage_options)
    return check(log, ArrowExecutor(log.store), deep=deep, progress=progress)


def describe_log(
    path: Location,
    *,
    include_all: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> pa.Table:
    """Returns the actions of the log, a row each: from the newest checkpoint on, or of every file there is."""
    rows = _describe_log(_log(path, storage_options), include_all=include_all)
    return pa.Table.from_pylist(list(rows), LOG_COLUMNS)


def _log(path: Location, storage_options: Mapping[str, Any] | None) -> TransactionLog:
    """Returns the log, if there is one."""
    store = store_of(path, storage_options)
    log = TransactionLog(store, Config.of())
    if not log.exists():
        missing = TableNotFoundError(f"there is no table at {store.uri}", uri=store.uri)
        raise not_a_table(store, missing)
    return log
