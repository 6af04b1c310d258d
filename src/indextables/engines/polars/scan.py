"""`it.scan_polars`: a LazyFrame whose filters decide which files are read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import polars as pl

from indextables.engines.polars.frames import planning_source
from indextables.plan.planner import Planner
from indextables.storage.base import LogStore


def scan_polars(
    table: str | Path | LogStore,
    *,
    version: int | None = None,
    timestamp: int | dt.datetime | None = None,
    follow: bool = False,
    read_optimized: bool = False,
    storage_options: Mapping[str, object] | None = None,
) -> pl.LazyFrame:
    """Reads a table as a Polars LazyFrame. Each collect opens only the files its filters need.

    Args:
        table: The table's path or URI, or a store.
        version: The version to read; without it the newest at the time of this call, for every collect.
        timestamp: A moment instead of a version: milliseconds since 1970, or an aware datetime.
        follow: Read the newest version at each collect instead.
        read_optimized: Leave delta files out: the rows are those of the last compaction, and Polars itself
            reads all files.
        storage_options: Credentials and endpoints of an object store.

    Returns:
        The LazyFrame.

    Raises:
        TableNotFoundError: There is no table at this path.
        VersionNotFoundError: The log does not have that version.

    Example:
        >>> import indextables as it
        >>> import pyarrow as pa, polars as pl
        >>> table = it.Table.create("memory://scan_polars", pa.schema({"n": pa.int64()}))
        >>> _ = table.append(pa.table({"n": [1, 2, 3]}))
        >>> it.scan_polars("memory://scan_polars").filter(pl.col("n") > 1).collect()["n"].to_list()
        [2, 3]
    """
    planner = Planner.open(
        table,
        version=version,
        timestamp=timestamp,
        storage_options=storage_options,
        read_optimized=read_optimized,
    )
    if find_spec("polars.lazyframe.resolver") is None:
        return planning_source(planner)
    from indextables.engines.polars.resolver import TableResolver  # noqa: PLC0415 - newer Polars only

    return pl.LazyFrame.from_lazyframe_resolver(TableResolver(planner, follow=follow))
