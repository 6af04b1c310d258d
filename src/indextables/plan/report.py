"""What planning a query found out: how much was skipped, why, and what stood in the way."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class SliceCounts:
    """Slices under the rule that looks at what a file is, and under the one before it."""

    total: int = 0
    kept: int = 0
    """Slices that may show a row."""
    kept_before: int = 0
    """Slices kept if every file the index does not know keeps its slice: delete logs, rollback blocks
    and files of failed commits too."""

    @property
    def skipped(self) -> int:
        """Returns the slices of which no row has to be read."""
        return self.total - self.kept

    def __str__(self) -> str:
        return (
            f"{self.kept} of {self.total} slices kept, "
            f"{self.kept_before} if every file without statistics kept its slice"
        )


@dataclass(frozen=True, slots=True)
class PruneReport:
    """Splits and bytes before and after pruning; total = partition_pruned + stats_pruned + kept."""

    total_files: int
    partition_pruned: int
    stats_pruned: int
    kept_files: int
    total_bytes: int
    kept_bytes: int
    missing_stats: Mapping[str, int] = field(default_factory=dict)
    """By column, how many kept splits have no statistics of it: what `analyze` could help."""
    opaque: Mapping[str, str] = field(default_factory=dict)
    """Conditions that statistics cannot answer, and why."""
    slices: SliceCounts = field(default_factory=SliceCounts)
    """File slices of a table with a record key or log files; other tables have none."""
    planning_ms: float = field(default=0.0, compare=False)

    @property
    def pruned_files(self) -> int:
        """Returns the splits that need not be opened."""
        return self.partition_pruned + self.stats_pruned

    @property
    def total_slices(self) -> int:
        """Returns the file slices of the table."""
        return self.slices.total

    @property
    def kept_slices(self) -> int:
        """Returns the slices that may show a row."""
        return self.slices.kept

    @property
    def kept_slices_before(self) -> int:
        """Returns the slices that would be kept if every file without statistics kept its own."""
        return self.slices.kept_before

    @property
    def slices_skipped(self) -> int:
        """Returns the slices of which no row has to be read."""
        return self.slices.skipped

    @property
    def pruned_bytes(self) -> int:
        """Returns the bytes that need not be read."""
        return self.total_bytes - self.kept_bytes

    def __str__(self) -> str:
        return (
            f"{self.kept_files} of {self.total_files} splits kept "
            f"({self.kept_bytes} of {self.total_bytes} bytes), "
            f"{self.partition_pruned} pruned by partition, {self.stats_pruned} by statistics, "
            f"in {self.planning_ms:.1f} ms{self._of_slices()}"
        )

    def _of_slices(self) -> str:
        """Said where the rule for slices made a difference."""
        return f"; {self.slices}" if self.slices.kept < self.slices.kept_before else ""


# Proof that I/O was skipped: what a query really opened, counted where the file is opened.


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
