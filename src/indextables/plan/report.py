"""What planning a query found out: how much was skipped, why, and what stood in the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
        """The slices of which no row has to be read."""
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
        """The splits that need not be opened."""
        return self.partition_pruned + self.stats_pruned

    @property
    def total_slices(self) -> int:
        """The file slices of the table."""
        return self.slices.total

    @property
    def kept_slices(self) -> int:
        """The slices that may show a row."""
        return self.slices.kept

    @property
    def kept_slices_before(self) -> int:
        """The slices that would be kept if every file without statistics kept its own."""
        return self.slices.kept_before

    @property
    def slices_skipped(self) -> int:
        """The slices of which no row has to be read."""
        return self.slices.skipped

    @property
    def pruned_bytes(self) -> int:
        """The bytes that need not be read."""
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
