"""What can be asked of a table whose log may be too damaged to be opened."""

from __future__ import annotations

from collections.abc import Mapping

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
    storage_options: Mapping[str, object] | None = None,
) -> CheckReport:
    """Checks a table as `Table.check` does, even if its log is too damaged to be opened.

    Args:
        path: The table's path or URI, or a store.
        deep: Also read every data file and compare its rows with the log.
        progress: Called with the number of files checked and of all files.
        storage_options: Credentials and endpoints of an object store.

    Returns:
        The problems found, each with its file and line. Printed, it is a summary.

    Raises:
        TableNotFoundError: There is no log at this path.
        NotATableError: The directory holds a table of another format.

    Example:
        >>> import indextables as it
        >>> import pyarrow as pa
        >>> _ = it.Table.create("memory://check_table", pa.schema({"n": pa.int64()}))
        >>> it.check_table("memory://check_table").problems
        ()
    """
    log = _log(path, storage_options)
    return check(log, ArrowExecutor(log.store), deep=deep, progress=progress)


def describe_log(
    path: Location,
    *,
    include_all: bool = False,
    storage_options: Mapping[str, object] | None = None,
) -> pa.Table:
    """Lists the actions of the log, even if the log is too damaged to be opened.

    Args:
        path: The table's path or URI, or a store.
        include_all: Read every file of the log instead of the newest checkpoint and what follows it.
        storage_options: Credentials and endpoints of an object store.

    Returns:
        One row for each action, with its version, file, line and content.

    Raises:
        TableNotFoundError: There is no log at this path.
        NotATableError: The directory holds a table of another format.

    Example:
        >>> import indextables as it
        >>> import pyarrow as pa
        >>> _ = it.Table.create("memory://describe_log", pa.schema({"n": pa.int64()}))
        >>> it.describe_log("memory://describe_log")["action"].to_pylist()
        ['protocol', 'metaData', 'commitInfo']
    """
    rows = _describe_log(_log(path, storage_options), include_all=include_all)
    return pa.Table.from_pylist(list(rows), LOG_COLUMNS)


def _log(path: Location, storage_options: Mapping[str, object] | None) -> TransactionLog:
    """Returns the log; TableNotFoundError or NotATableError if there is none."""
    store = store_of(path, storage_options)
    log = TransactionLog(store, Config.of())
    if not log.exists():
        missing = TableNotFoundError(f"there is no table at {store.uri}", uri=store.uri)
        raise not_a_table(store, missing)
    return log
