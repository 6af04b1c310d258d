"""Proof that I/O was skipped: what a query really opened, counted where the file is opened."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final


@dataclass(slots=True)
class QueryStats:
    """What the queries inside one `query_stats()` block did."""

    data_files_opened: int = 0
    files_pruned: int = 0
    bytes_read: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, *, opened: int = 0, pruned: int = 0, read: int = 0) -> None:
        """Counts; safe from several threads at once."""
        with self._lock:
            self.data_files_opened += opened
            self.files_pruned += pruned
            self.bytes_read += read


_active: Final[ContextVar[tuple[QueryStats, ...]]] = ContextVar("indextables_query_stats", default=())


@contextmanager
def query_stats() -> Iterator[QueryStats]:
    """Counts what this thread's (or task's) queries open; blocks nest, and each counts its own.

    Examples:
        >>> with query_stats() as stats:
        ...     pass
        >>> stats.data_files_opened
        0
    """
    stats = QueryStats()
    token = _active.set((*_active.get(), stats))
    try:
        yield stats
    finally:
        _active.reset(token)


@dataclass(frozen=True, slots=True)
class Recorder:
    """The counters that were active where a query began, for the threads that work for it."""

    counters: tuple[QueryStats, ...]

    @classmethod
    def current(cls) -> Recorder:
        """Call it in the thread of the query: a new thread starts with an empty context."""
        return cls(_active.get())

    def add(self, *, opened: int = 0, pruned: int = 0, read: int = 0) -> None:
        """Counts in every active block."""
        for counter in self.counters:
            counter.add(opened=opened, pruned=pruned, read=read)
