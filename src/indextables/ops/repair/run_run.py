"""REPAIR INDEXFILES TRANSACTION LOG: the plan, then the new log."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from indextables.config import Config
from indextables.core.stats.truncate import log_truncation
from indextables.errors import IndexTablesError, StorageError
from indextables.ops.repair.log_place import Opener, check_apart, opener_with, place_of
from indextables.ops.repair.new_log import check_target, write_log
from indextables.ops.repair.plan import RepairPlan, make_plan
from indextables.ops.repair.run import RepairResult
from indextables.ops.repair.settings import RepairSettings
from indextables.ops.repair.validate_validate import Progress

_logger: Final = logging.getLogger(__name__)


def repair(
    src: str | Path,
    dst: str | Path,
    *,
    validate_splits: bool | None = None,
    preserve_stats: bool | None = None,
    parallelism: int | None = None,
    fail_on_missing: bool | None = None,
    config: Config | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    opener: Opener | None = None,
    progress: Progress | None = None,
) -> RepairResult:
    """A clean log at `dst` with every split of the log at `src` that exists; `src` is only read.

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
    source, target = place_of(src, opener), place_of(dst, opener)
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
