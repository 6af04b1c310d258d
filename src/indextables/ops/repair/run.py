"""What a repair answers: the seven columns of REPAIR INDEXFILES TRANSACTION LOG."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from indextables.errors import IndexTablesError
from indextables.ops.repair.findings import Excluded
from indextables.ops.repair.plan import RepairPlan

COLUMNS: Final = (
    ("source_path", "string"),
    ("target_path", "string"),
    ("source_version", "long"),
    ("total_splits", "integer"),
    ("valid_splits", "integer"),
    ("missing_splits", "integer"),
    ("status", "string"),
)
"""Name and Spark type of each column."""


@dataclass(frozen=True, slots=True)
class RepairResult:
    """One row; `status` is SUCCESS, or ERROR and why nothing was written."""

    source_path: str
    target_path: str
    source_version: int
    total_splits: int
    valid_splits: int
    missing_splits: int
    status: str
    excluded: tuple[Excluded, ...] = field(default=(), repr=False)
    """Every split that was left out, with the reason."""
    notes: tuple[str, ...] = field(default=(), repr=False)
    error: IndexTablesError | None = field(default=None, repr=False, compare=False)

    @classmethod
    def succeeded(cls, target: str, plan: RepairPlan) -> RepairResult:
        """The row for a log that was written."""
        return cls(
            source_path=plan.source,
            target_path=target,
            source_version=plan.version,
            total_splits=plan.total_splits,
            valid_splits=plan.total_splits - len(plan.excluded),
            missing_splits=len(plan.excluded),
            status="SUCCESS",
            excluded=plan.excluded,
            notes=plan.notes,
        )

    @classmethod
    def failed(cls, source: str, target: str, error: IndexTablesError) -> RepairResult:
        """The row for a repair that wrote nothing, or took back what it had written."""
        return cls(source, target, -1, 0, 0, 0, f"ERROR: {error.message}", error=error)

    @property
    def ok(self) -> bool:
        """True if the new log is there."""
        return self.error is None

    def row(self) -> tuple[str, str, int, int, int, int, str]:
        """The seven columns."""
        return (
            self.source_path,
            self.target_path,
            self.source_version,
            self.total_splits,
            self.valid_splits,
            self.missing_splits,
            self.status,
        )
