"""What a repair answers: the seven columns of REPAIR INDEXFILES TRANSACTION LOG."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from indextables.config import Config
from indextables.core.stats.truncate import log_truncation
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
        """Returns the row for a repair that wrote nothing, or took back what it had written."""
        return cls(source, target, -1, 0, 0, 0, f"ERROR: {error.message}", error=error)

    @property
    def ok(self) -> bool:
        """Returns True if the new log is there."""
        return self.error is None

    def row(self) -> tuple[str, str, int, int, int, int, str]:
        """Returns the seven columns."""
        return (
            self.source_path,
            self.target_path,
            self.source_version,
            self.total_splits,
            self.valid_splits,
            self.missing_splits,
            self.status,
        )


# REPAIR INDEXFILES TRANSACTION LOG: the plan, then the new log.

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
    """Returns a clean log at `dst` with every split of the log at `src` that exists; `src` is only read.

    Raises before anything is written if `dst` is not empty or an option has a value it cannot have. Every
    other failure is a result with status `ERROR: …`, and leaves nothing at `dst`. The arguments win over
    `config`; left out, they are as `spark.indextables.repair.*` says. `storage_options` are credentials and
    endpoints for object stores.
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
