"""Proof that I/O was skipped: what a query really opened, counted where the file is opened."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final


@dataclass(slots=True, eq=False)
class QueryStats:
    """What the queries inside one `query_stats()` block did."""

    data_files_opened: int = 0
    """By our reader, which counts where it opens."""
    files_handed_over: int = 0
    """To an engine's own reader, which opens what it needs of them."""
    files_pruned: int = 0
    bytes_read: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, *, opened: int = 0, handed_over: int = 0, pruned: int = 0, read: int = 0) -> None:
        """Counts; safe from several threads at once."""
        with self._lock:
            self.data_files_opened += opened
            self.files_handed_over += handed_over
            self.files_pruned += pruned
            self.bytes_read += read


_active: Final[ContextVar[tuple[QueryStats, ...]]] = ContextVar("indextables_query_stats", default=())
_open: Final[dict[int, tuple[QueryStats, ...]]] = {}
"""Every block that is open in the process, by its identity, with those around it."""


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
    blocks = (*_active.get(), stats)
    token = _active.set(blocks)
    _open[id(stats)] = blocks
    try:
        yield stats
    finally:
        del _open[id(stats)]
        _active.reset(token)


@dataclass(frozen=True, slots=True)
class Recorder:
    """The counters that were active where a query began, for the threads that work for it."""

    counters: tuple[QueryStats, ...]

    @classmethod
    def current(cls) -> Recorder:
        """Call it in the thread of the query: a new thread starts with an empty context."""
        return cls(_active.get())

    @classmethod
    def of_engine(cls) -> Recorder:
        """For an adapter whom its engine asks for rows in a thread of its own.

        Whose query it is nobody can tell there, unless only one thread has blocks open; counts that
        could be another's are left out.
        """
        known = list(_open.values())
        innermost = max(known, key=len, default=())
        alone = all(innermost[: len(blocks)] == blocks for blocks in known)
        return cls(_active.get() or (innermost if alone else ()))

    def add(self, *, opened: int = 0, handed_over: int = 0, pruned: int = 0, read: int = 0) -> None:
        """Counts in every active block."""
        for counter in self.counters:
            counter.add(opened=opened, handed_over=handed_over, pruned=pruned, read=read)
