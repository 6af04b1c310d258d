"""Statistics from the footers of new files: threads for some, a Spark job for very many."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from pyspark.sql import SparkSession

from indextables.core.stats import SplitStats
from indextables.core.types import FieldPath, StructType
from indextables.engines.spark.write.distribute import distribute
from indextables.parquet.read.footers import read_footers, stats_from_footer
from indextables.storage.base import LogStore

MANY: Final = 2_000
"""More files than this are worth a job of their own; a driver reads about 4,000 footers a second."""
PER_TASK: Final = 500


def footer_stats(
    session: SparkSession,
    store: LogStore,
    keys: Sequence[str],
    schema: StructType,
    columns: Sequence[FieldPath],
) -> list[SplitStats]:
    """What the footer of each file, written by Spark just now, says about these leaves."""
    read = partial(_read, store, schema, tuple(columns))
    if len(keys) <= MANY:
        return read(keys)
    return distribute(session, store, read, keys, per_task=PER_TASK)


def _read(
    store: LogStore, schema: StructType, columns: tuple[FieldPath, ...], keys: Sequence[str]
) -> list[SplitStats]:
    footers = read_footers(store.filesystem(), keys)
    return [stats_from_footer(footer, schema, columns, trusted=True) for footer in footers]
