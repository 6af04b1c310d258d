"""Runs a repair: plans it, writes the new log, and returns the seven columns of REPAIR INDEXFILES TRANSACTION LOG."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from indextables.config import Config
from indextables.core.stats.truncate import log_truncation
from indextables.display import html_facts
from indextables.errors import IndexTablesError, StorageError
from indextables.ops.repair.findings import Excluded
from indextables.ops.repair.log_location import Opener, check_apart, location_of, opener_with
from indextables.ops.repair.new_log import check_target, write_log
from indextables.ops.repair.plan import RepairPlan, make_plan
from indextables.ops.repair.settings import RepairSettings
from indextables.ops.repair.validate import Progress

COLUMNS: Final = (
    ("source_path", "string"),
    ("target_path", "string"),
    ("source_version", "long"),
    ("total_splits", "integer"),
    ("valid_splits", "integer"),
    ("missing_splits", "integer"),
    ("status", "string"),
)
"""The name and Spark type of each column."""


@dataclass(frozen=True, slots=True)
class RepairResult:
    """The result of a repair, one row; `status` is SUCCESS, or ERROR and why nothing was written."""

    source_path: str
    target_path: str
    source_version: int
    total_splits: int
    valid_splits: int
    missing_splits: int
    status: str
    excluded: tuple[Excluded, ...] = field(default=(), repr=False)
    """Every split that was left out, each with the reason."""
    notes: tuple[str, ...] = field(default=(), repr=False)
    error: IndexTablesError | None = field(default=None, repr=False, compare=False)

    def _repr_html_(self) -> str:
        facts = {
            "status": self.status,
            "from": f"{self.source_path}, version {self.source_version:,}",
            "to": self.target_path,
            "splits kept": f"{self.valid_splits:,} of {self.total_splits:,}",
            "notes": "; ".join(self.notes) or None,
        }
        return html_facts("Repair", facts)

    @classmethod
    def succeeded(cls, target: str, plan: RepairPlan) -> RepairResult:
        """Returns the row for a log that was written."""
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
        """Returns the row for a repair that wrote nothing, or deleted what it had written."""
        return cls(source, target, -1, 0, 0, 0, f"ERROR: {error.message}", error=error)

    @property
    def ok(self) -> bool:
        """Returns True if the new log was written."""
        return self.error is None

    def row(self) -> tuple[str, str, int, int, int, int, str]:
        """Returns the values of the seven columns."""
        return (
            self.source_path,
            self.target_path,
            self.source_version,
            self.total_splits,
            self.valid_splits,
            self.missing_splits,
            self.status,
        )


# The repair itself: first the plan, then the new log.

_logger: Final = logging.getLogger(__name__)


def repair(
    src: str | Path,
    dst: str | Path,
    *,
    validate_splits: bool | None = None,
    preserve_stats: bool | None = None,
    parallelism: int | None = None,
    fail_on_missing: bool | None = None,
    config: Config | Mapping[str, object] | None = None,
    storage_options: Mapping[str, object] | None = None,
    opener: Opener | None = None,
    progress: Progress | None = None,
) -> RepairResult:
    """Writes a clean log with every split of a log that is still there. The old log is only read.

    A failure while planning or writing is a result with status `ERROR: …`, and nothing is left at `dst`.

    Args:
        src: The log directory to repair, such as "table/_transaction_log".
        dst: The directory for the new log, beside the old one.
        validate_splits: Leave out splits that are not stored with the size the log says; True by default.
        preserve_stats: Keep statistics, shortened to the limits of the settings; True by default.
        parallelism: How many files to read at a time.
        fail_on_missing: Write nothing if a split is missing; False by default.
        config: Settings (`spark.indextables.repair.*`); the arguments go before them.
        storage_options: Credentials and endpoints of an object store.
        opener: Opens the store of a table by its URI, instead of this library's own stores.
        progress: Called with the number of splits looked at and of all.

    Returns:
        The counts of splits, and `status`: SUCCESS, or ERROR and why nothing was written.

    Raises:
        RepairError: `dst` is not empty, overlaps `src`, or one of them does not name a log directory.
        ConfigError: An option has a value it cannot have.

    Example:
        >>> import indextables as it
        >>> import pyarrow as pa
        >>> table = it.Table.create("memory://repair", pa.schema({"n": pa.int64()}))
        >>> _ = table.append(pa.table({"n": [1]}))
        >>> result = it.repair("memory://repair/_transaction_log", "memory://repair/repaired_log")
        >>> result.status, result.valid_splits
        ('SUCCESS', 1)
    """
    settings = RepairSettings.of(
        config,
        validate_splits=validate_splits,
        preserve_stats=preserve_stats,
        parallelism=parallelism,
        fail_on_missing=fail_on_missing,
    )
    opener = opener or opener_with(storage_options)
    source, target = location_of(src, opener), location_of(dst, opener)
    check_apart(source, target)
    try:
        leftovers = check_target(source, target)
    except StorageError as error:
        return _failed(source.uri, target.uri, error)
    try:
        plan = make_plan(source, settings, progress)
        snapshot = plan.check(fail_on_missing=settings.fail_on_missing)
        _report(plan)
        for key in reversed(leftovers):
            target.store.delete(key)
        write_log(plan, snapshot, target, settings.checkpoint_form(snapshot.properties))
    except IndexTablesError as error:
        return _failed(source.uri, target.uri, error)
    log_truncation(plan.truncated)
    return RepairResult.succeeded(target.uri, plan)


def _report(plan: RepairPlan) -> None:
    for excluded in plan.missing:
        _logger.warning("Split file not found: %s", excluded.path)
    for excluded in plan.mismatched:
        _logger.warning("Split file left out: %s", excluded)
    for note in plan.notes:
        _logger.info("%s", note)


def _failed(source: str, target: str, error: IndexTablesError) -> RepairResult:
    _logger.error("Repair of %s failed: %s", source, error.message)
    return RepairResult.failed(source, target, error)
