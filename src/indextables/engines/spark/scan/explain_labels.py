"""What EXPLAIN shows as the location of a scan: `IndexTables[/data/t] v12, 3 of 400 splits`.

Spark asks an index for its location when it describes a scan, before it asks for the files, and does
not say which scan it describes. So the plan is searched once for its scans. The scan being described
lists its files now instead of a moment later, and they are counted. A query that runs is not asked
anything: its label is `400 splits`, and Spark's own metric has the number of files it reads.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol

from py4j.java_gateway import JavaMember, JavaObject

from indextables.engines.spark.jvm.gateway import JvmTools, jvm_tools

_logger: Final = logging.getLogger(__name__)
# Spark describes the scans of a plan in their order, so the scan being described is one of the next few.
_NEXT: Final = 3


class Numbered(Protocol):
    """A file index, as far as its label needs it."""

    number: int | None
    """The number of the JVM's object for it, known once it was described."""


class Query:
    """A query that is being described: its scans, and which of them are still to be described."""

    def __init__(self, execution: JavaObject) -> None:
        self.execution = execution
        self._scans: list[Any] | None = None
        self._to_come: deque[Any] = deque()
        self._by_index: dict[int, list[Any]] | None = None
        self._splits: dict[int, str] = {}

    def described_now(self) -> JavaObject | None:
        """Returns the scan being described: the JVM holds its lock while its text is made, which happens once."""
        if self._scans is None:
            self._scans = list(_scans(self.execution.executedPlan()))
            self._to_come.extend(self._scans)
        holds_lock = _handles(jvm_tools()).holds_lock
        for scan in [self._to_come[i] for i in range(min(_NEXT, len(self._to_come)))]:
            if holds_lock(scan):
                self._to_come.remove(scan)
                return scan
        return None

    def splits_of(self, index: int) -> str | None:
        """Returns what all scans of the index with that number read."""
        if self._by_index is None:
            self._by_index = {}
            for scan in self._scans or ():
                self._by_index.setdefault(_number(scan), []).append(scan)
        if index not in self._splits and index in self._by_index:
            self._splits[index] = _words(*map(_count, self._by_index[index]))
        return self._splits.get(index)


explained: Final[dict[int, Query]] = {}
"""Queries that are printed without being run, by the thread of the JVM that prints them."""


@contextmanager
def describing(execution: JavaObject) -> Iterator[None]:
    """Counts the splits of a QueryExecution's scans while it is printed without being run."""
    thread = _thread()
    explained[thread] = Query(execution)
    try:
        yield
    finally:
        del explained[thread]


def described_query() -> JavaObject | None:
    """Returns the query that this thread prints without running it; None while one runs."""
    query = explained.get(_thread()) if explained else None
    return None if query is None else query.execution


def _thread() -> int:
    """Returns the number of the JVM's thread that works for this one."""
    return int(_handles(jvm_tools()).current_thread().getId())


def splits_read(index: Numbered) -> str | None:
    """Returns how many splits the scan being described reads from this index; None if that is unknown.

    A text is made more than once while a query runs, and the JVM tells for which scan only when the first
    one is made. The others speak for all scans of the index in the query.
    """
    try:
        query = explained.get(_thread())
        if query is None:
            return None
        scan = query.described_now()
        if scan is None:
            return None if index.number is None else query.splits_of(index.number)
        if index.number is None:
            index.number = _number(scan)
        return _words(_count(scan))
    except Exception as e:  # noqa: BLE001 - the error appears when the query runs, not in its label
        _logger.debug("A plan is shown without the number of its splits: %s", e)
        return None


def _words(*counts: int) -> str:
    least, most = min(counts), max(counts)
    return f"{most}" if least == most else f"{least} to {most}"


def _count(scan: JavaObject) -> int:
    """Returns the number of files of a scan; Spark keeps the list made here and reads by it."""
    return int(scan.selectedPartitions().totalNumberOfFiles())


def _number(scan: JavaObject) -> int:
    """Returns the number in the JVM of the index that a scan reads; the scan itself does not tell which it is."""
    return int(_handles(jvm_tools()).identity(scan.relation().location()))


def _scans(plan: JavaObject) -> Iterator[JavaObject]:
    """Yields the scans of Parquet in a physical plan in the order they are printed, those of cached plans last."""
    todo = deque([plan])
    while todo:
        part = todo.popleft()
        leaves, subqueries = part.collectLeaves(), part.subqueriesAll()
        todo.extend(subqueries.apply(i).child() for i in range(subqueries.length()))
        for leaf in (leaves.apply(i) for i in range(leaves.length())):
            match str(leaf.nodeName()).strip():
                case "Scan parquet":
                    yield leaf
                case "AdaptiveSparkPlan":
                    todo.append(leaf.initialPlan())
                case "InMemoryTableScan":
                    todo.append(leaf.relation().cachedPlan())


@dataclass(frozen=True)
class _Handles:
    current_thread: JavaMember
    holds_lock: JavaMember
    identity: JavaMember


@lru_cache(maxsize=1)
def _handles(tools: JvmTools) -> _Handles:
    thread = tools.lookup("java.lang.Thread")
    return _Handles(
        thread.currentThread,
        thread.holdsLock,
        tools.lookup("java.lang.System").identityHashCode,
    )
