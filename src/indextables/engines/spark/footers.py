"""Statistics from the footers of new files: threads for some, a Spark job for very many."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from indextables.arrow.footers import read_footers, stats_from_footer
from indextables.core.statistics.stats import SplitStats
from indextables.core.types import FieldPath, StructType
from indextables.engines.spark.hadoop_store import HadoopStore
from indextables.engines.spark.patching import use_own_python
from indextables.storage.base import LogStore

MANY: Final = 2_000
"""More files than this are worth a job of their own; a driver reads about 4,000 footers a second."""
_PER_TASK: Final = 500
_logger: Final = logging.getLogger(__name__)


def footer_stats(
    session: SparkSession,
    store: LogStore,
    keys: Sequence[str],
    schema: StructType,
    columns: Sequence[FieldPath],
) -> list[SplitStats]:
    """What the footer of each file, written by Spark just now, says about these leaves."""
    read = partial(_read, store, schema, tuple(columns))
    # A worker has no JVM to ask, so what only Hadoop can read is read here.
    if len(keys) <= MANY or isinstance(store, HadoopStore):
        return read(keys)
    use_own_python(session)
    try:
        return _distributed(session, read, keys)
    except (PySparkException, Py4JError) as error:
        _logger.warning("Reading %d footers here, not on the executors: %s", len(keys), error)
        return read(keys)


def _read(
    store: LogStore, schema: StructType, columns: tuple[FieldPath, ...], keys: Sequence[str]
) -> list[SplitStats]:
    footers = read_footers(store.filesystem(), keys)
    return [stats_from_footer(footer, schema, columns, trusted=True) for footer in footers]


def _distributed(
    session: SparkSession, read: partial[list[SplitStats]], keys: Sequence[str]
) -> list[SplitStats]:
    chunks = [list(keys[i : i + _PER_TASK]) for i in range(0, len(keys), _PER_TASK)]

    def task(parts: Iterable[list[str]]) -> Iterator[bytes]:
        for part in parts:
            yield pickle.dumps(read(part))

    answers = session.sparkContext.parallelize(chunks, len(chunks)).mapPartitions(task).collect()
    return [stats for answer in answers for stats in pickle.loads(answer)]  # noqa: S301 - our own bytes
