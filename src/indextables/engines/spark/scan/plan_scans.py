"""Scans in Spark's physical plans, each with the condition right above it.

Spark hands a scan the parts of a condition that are on partition columns alone, and those on other columns
alone. A part that needs both, such as `p = '1' OR id > 3`, stays in the filter above the scan; only the
plan of the running query shows it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from py4j.java_gateway import JavaMember, JavaObject
from py4j.protocol import Py4JError
from pyspark import SparkContext

from indextables.engines.spark.jvm.gateway import JvmTools, each, jvm_tools

_logger: Final = logging.getLogger(__name__)
_EXECUTION: Final = "spark.sql.execution.id"
_MOST_NODES: Final = 500
"""In a plan of more nodes than this, a scan is not searched for its condition: it would take longer than it saves."""
_SAME_ROWS: Final = ("ColumnarToRow", "InputAdapter", "WholeStageCodegen")
_STAGES: Final = (
    "ShuffleQueryStage",
    "BroadcastQueryStage",
    "ResultQueryStage",
    "TableCacheQueryStage",
)


@dataclass(frozen=True, slots=True)
class PlannedScan:
    """A scan of Parquet in a physical plan."""

    node: JavaObject
    above: JavaObject | None
    """The condition of the filter right above it; None without one."""


def planned_scans(plan: JavaObject, *, is_running: bool = False) -> Iterator[PlannedScan]:
    """Yields the scans of Parquet below a physical plan, in subqueries and cached plans too, each exchange once.

    Of an adaptive plan this is the first one, because a plan that ran may have lost its empty branches; that
    of a running query is the present one.
    """
    todo: list[tuple[JavaObject, JavaObject | None]] = [(plan, None)]
    while todo:
        node, above = todo.pop()
        name = str(node.nodeName())
        if name == "AdaptiveSparkPlan":
            todo.append((node.executedPlan() if is_running else node.initialPlan(), None))
            continue
        if name.startswith("Scan parquet"):
            yield PlannedScan(node, above)
        elif name in _STAGES:
            todo.append((node.plan(), None))
        elif name == "InMemoryTableScan":
            todo.append((node.relation().cachedPlan(), None))
        if name == "Filter":
            above = node.condition()
        elif not name.startswith(_SAME_ROWS):
            above = None
        children, subqueries = node.children(), node.subqueries()
        todo.extend((child, None) for child in reversed(list(each(subqueries))))
        todo.extend((child, above) for child in reversed(list(each(children))))


# The scan that lists its files now.

_busy: Final = threading.local()


def condition_being_planned(execution: JavaObject | None = None) -> JavaObject | None:
    """Returns the condition above the scan that asks for its files in this thread; None where it cannot be found.

    Args:
        execution: The query, if it is described without being run.
    """
    if getattr(_busy, "here", False):
        return None  # asking a query for its plan may make another scan list its files
    _busy.here = True
    try:
        running = execution or _execution()
        return None if running is None else _above(running)
    except Py4JError as e:
        _logger.debug("The condition above a scan is not known: %s", e)
        return None
    finally:
        _busy.here = False


def _execution() -> JavaObject | None:
    """Returns the query that the JVM's thread works for."""
    context = SparkContext._active_spark_context  # noqa: SLF001
    number = None if context is None else context.getLocalProperty(_EXECUTION)
    return None if number is None else _handles(jvm_tools()).execution_of(int(number))


def _above(execution: JavaObject) -> JavaObject | None:
    """Returns the condition above the scan whose lock this thread holds: it does while it lists its files."""
    holds_lock = _handles(jvm_tools()).holds_lock
    for seen, scan in enumerate(planned_scans(execution.executedPlan(), is_running=True)):
        if holds_lock(scan.node):
            return scan.above
        if seen > _MOST_NODES:
            break
    return None


@dataclass(frozen=True)
class _Handles:
    execution_of: JavaMember
    holds_lock: JavaMember


@lru_cache(maxsize=1)
def _handles(tools: JvmTools) -> _Handles:
    return _Handles(
        tools.lookup("org.apache.spark.sql.execution.SQLExecution").getQueryExecution,
        tools.lookup("java.lang.Thread").holdsLock,
    )
