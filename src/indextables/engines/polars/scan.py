"""`it.scan_polars`: a LazyFrame whose filters reach the planner."""

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
    """Returns the table as a LazyFrame; each collect opens only the files its filters need.

    It is the version of this moment, or the one asked for, however often it is collected. With
    `follow` each collect sees the newest version instead. With `read_optimized` log files are left
    out: rows are those of the last compaction, and all of them are read by Polars itself.
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
