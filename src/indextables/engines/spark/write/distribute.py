"""Work of the embedded engine on many files, done by Spark's Python workers instead of the driver."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from indextables.engines.spark.jvm.gateway import use_own_python
from indextables.engines.spark.place.hadoop import HadoopStore
from indextables.storage.base import LogStore

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_logger: Final = logging.getLogger(__name__)


def distribute(
    session: SparkSession,
    store: LogStore,
    work: Callable[[Sequence[Item]], Iterable[Answer]],
    items: Sequence[Item],
    *,
    per_task: int = 1,
) -> list[Answer]:
    """Returns what `work` makes of all items, in their order: a Spark job whose tasks take some items each.

    Workers need this package; where they lack it, and for files that only the driver's JVM can
    reach, the work is done here. `work` may therefore run twice for an item.
    """
    if isinstance(store, HadoopStore):
        return list(work(items))
    use_own_python(session)
    try:
        return _on_workers(session, work, items, per_task)
    except (PySparkException, Py4JError) as error:
        _logger.warning("Working on %d files here, not on the executors: %s", len(items), error)
        return list(work(items))


def _on_workers(
    session: SparkSession,
    work: Callable[[Sequence[Item]], Iterable[Answer]],
    items: Sequence[Item],
    per_task: int,
) -> list[Answer]:
    tasks = [pickle.dumps(list(items[i : i + per_task])) for i in range(0, len(items), per_task)]

    def run(parts: Iterable[bytes]) -> Iterator[bytes]:
        for part in parts:
            yield pickle.dumps(list(work(pickle.loads(part))))  # noqa: S301 - our own bytes

    answers: list[Any] = (
        session.sparkContext.parallelize(tasks, len(tasks)).mapPartitions(run).collect()
    )
    return [answer for part in answers for answer in pickle.loads(part)]  # noqa: S301 - our own bytes
