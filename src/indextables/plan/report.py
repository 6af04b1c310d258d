"""Reports of plans and queries: how much was skipped and why, and what was really opened."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from indextables.display import counted, html_facts, html_share, human_bytes


@dataclass(frozen=True, slots=True)
class SliceCounts:
    """How many slices are kept, and how many would be if every file without statistics kept its slice."""

    total: int = 0
    kept: int = 0
    """The slices that may show a row."""
    kept_before: int = 0
    """The slices that would be kept if every file without statistics kept its slice, even a delete delta file,
    a rollback block, or a file of a failed commit."""

    @property
    def skipped(self) -> int:
        """Returns the number of slices that need not be read."""
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
    """By column, how many kept splits have no statistics of it, which `analyze` could add."""
    opaque: Mapping[str, str] = field(default_factory=dict)
    """Conditions that statistics cannot answer, with the reasons."""
    slices: SliceCounts = field(default_factory=SliceCounts)
    """Slices of a table with a record key or delta files; counts of other tables are 0."""
    planning_ms: float = field(default=0.0, compare=False)

    @property
    def pruned_files(self) -> int:
        """Returns the number of splits that need not be opened."""
        return self.partition_pruned + self.stats_pruned

    @property
    def total_slices(self) -> int:
        """Returns the number of slices in the table."""
        return self.slices.total

    @property
    def kept_slices(self) -> int:
        """Returns the number of slices that may show a row."""
        return self.slices.kept

    @property
    def kept_slices_before(self) -> int:
        """Returns the number of slices that would be kept if every file without statistics kept its slice."""
        return self.slices.kept_before

    @property
    def slices_skipped(self) -> int:
        """Returns the number of slices that need not be read."""
        return self.slices.skipped

    @property
    def pruned_bytes(self) -> int:
        """Returns the number of bytes that need not be read."""
        return self.total_bytes - self.kept_bytes

    def __str__(self) -> str:
        return (
            f"{self.kept_files} of {self.total_files} splits kept "
            f"({self.kept_bytes} of {self.total_bytes} bytes), "
            f"{self.partition_pruned} pruned by partition, {self.stats_pruned} by statistics, "
            f"in {self.planning_ms:.1f} ms{self._of_slices()}"
        )

    def _repr_html_(self) -> str:
        kept = f"{self.kept_files:,} of {counted(self.total_files, 'split')} kept"
        facts = {
            "read": f"{human_bytes(self.kept_bytes)} of {human_bytes(self.total_bytes)}",
            "skipped by partition": self.partition_pruned,
            "skipped by statistics": self.stats_pruned,
            "slices": str(self.slices) if self.slices.total else None,
            "kept splits without statistics": _named(self.missing_stats),
            "not answered by statistics": _named(self.opaque),
            "planned in": f"{self.planning_ms:.1f} ms",
        }
        return html_share(self.kept_files, self.total_files, kept) + html_facts("", facts)

    def _of_slices(self) -> str:
        """Returns the counts of slices as text; "" if files without statistics make no difference."""
        return f"; {self.slices}" if self.slices.kept < self.slices.kept_before else ""


def _named(reasons: Mapping[str, object]) -> str | None:
    return "; ".join(f"{name}: {reason}" for name, reason in reasons.items()) or None


# What queries really opened, counted where a file is opened, to prove that I/O was skipped.


@dataclass(slots=True, eq=False)
class QueryStats:
    """What the queries in a `query_stats()` block did."""

    data_files_opened: int = 0
    """Files that the reader of this library opened."""
    files_handed_over: int = 0
    """Files that an engine's own reader got, which opens those that it needs."""
    files_pruned: int = 0
    """Files that were skipped."""
    bytes_read: int = 0
    """Bytes that the reader of this library read."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, *, opened: int = 0, handed_over: int = 0, pruned: int = 0, read: int = 0) -> None:
        """Adds to the counts; several threads may do so at once."""
        with self._lock:
            self.data_files_opened += opened
            self.files_handed_over += handed_over
            self.files_pruned += pruned
            self.bytes_read += read


_active: Final[ContextVar[tuple[QueryStats, ...]]] = ContextVar("indextables_query_stats", default=())
_open: Final[dict[int, tuple[QueryStats, ...]]] = {}
"""The blocks that are open in this process: by the id of the innermost, it and those around it."""


@contextmanager
def query_stats() -> Iterator[QueryStats]:
    """Counts what the queries of this thread or task open while the block runs.

    Blocks may be nested; each counts the queries that run inside it.

    Returns:
        A context manager with the counts, which grow while queries run.

    Examples:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> from indextables import Table, query_stats
        >>> with tempfile.TemporaryDirectory() as path:
        ...     table = Table.create(path, pa.schema({"n": pa.int64()}))
        ...     _ = table.append(pa.table({"n": [1, 2, 3]}))
        ...     with query_stats() as stats:
        ...         rows = table.scan("n = 2").to_arrow()
        >>> rows.num_rows, stats.data_files_opened
        (1, 1)
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
    """The counters that were active where a query began, for other threads that work for the query."""

    counters: tuple[QueryStats, ...]

    @classmethod
    def current(cls) -> Recorder:
        """Returns the counters of the calling thread, which must be the query's: a new thread has none."""
        return cls(_active.get())

    @classmethod
    def of_engine(cls) -> Recorder:
        """Returns the counters for an adapter that its engine calls in a thread of the engine.

        It is not known there which query the call is for, unless a single thread has open blocks. Counts that
        may belong to another query are left out.
        """
        known = list(_open.values())
        innermost = max(known, key=len, default=())
        alone = all(innermost[: len(blocks)] == blocks for blocks in known)
        return cls(_active.get() or (innermost if alone else ()))

    def add(self, *, opened: int = 0, handed_over: int = 0, pruned: int = 0, read: int = 0) -> None:
        """Adds to the counts of every active block."""
        for counter in self.counters:
            counter.add(opened=opened, handed_over=handed_over, pruned=pruned, read=read)
