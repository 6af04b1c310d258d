"""Delete files that no version within the retention needs, after telling every writer so."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow.compute as pc

from indextables.config import VACUUM_RETENTION
from indextables.errors import VersionNotFoundError
from indextables.log.commit.intent import CommitPlan, Maintain
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Vacuum
from indextables.ops.shared.commit import config_for
from indextables.storage.base import ObjectMeta

# The version a writer had read when it began: a writer below minReadVersion can no longer commit.
_WRITTEN_BY_US: Final = re.compile(r"data/(\d+)-[0-9a-f-]{36}/")


@dataclass(frozen=True, slots=True)
class VacuumPlan:
    """What a vacuum deletes, or would delete; printing it is the dry run."""

    files: tuple[ObjectMeta, ...]
    temporaries: tuple[ObjectMeta, ...]
    min_read_version: int
    applied: bool = False

    @property
    def total_bytes(self) -> int:
        """Returns the space that becomes free."""
        return sum(meta.size for meta in (*self.files, *self.temporaries))


def vacuum(
    log: TransactionLog,
    *,
    apply: bool = False,
    options: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> VacuumPlan:
    """Returns the files nobody needs; with `apply` they are gone afterwards.

    Only files under this table's own `data/` directories, and files the log says were removed, are
    ever deleted: never a live file, never the log, never what somebody else put beside the table.
    """
    snapshot = log.snapshot()
    retention = config_for(snapshot.properties, options).get(VACUUM_RETENTION)
    cutoff = time.time_ns() // 1_000_000 - int(retention.total_seconds() * 1000)
    oldest = _version_at(log, cutoff)
    if not apply:
        return _plan(log, snapshot, oldest, cutoff)
    if oldest > snapshot.min_read_version:
        mark = CommitPlan(Maintain(), "VACUUM", (Vacuum(oldest),), metrics={"minReadVersion": oldest})
        log.commit(lambda _: mark, snapshot)
    # A writer that started below `oldest` either is in this snapshot, or will never commit.
    plan = _plan(log, log.snapshot(), oldest, cutoff)
    doomed = (*plan.files, *plan.temporaries)
    for done, meta in enumerate(doomed, start=1):
        log.store.delete(meta.key)
        if progress is not None:
            progress(done, len(doomed))
    return replace(plan, applied=True)


def _version_at(log: TransactionLog, cutoff: int) -> int:
    """Returns the version that was current then; 0 if the log does not reach back that far."""
    for entry in log.history():  # newest first
        if entry.timestamp_ms is not None and entry.timestamp_ms <= cutoff:
            return entry.version
    return 0


def _plan(log: TransactionLog, snapshot: Snapshot, oldest: int, cutoff: int) -> VacuumPlan:
    live = frozenset(snapshot.column("key").to_pylist()) | _live_at(log, oldest)
    fresh, expired = _tombstones(snapshot, cutoff)

    def is_garbage(key: str) -> bool:
        if key in live or key in fresh:
            return False
        ours = _WRITTEN_BY_US.match(key)
        return key in expired or (ours is not None and int(ours[1]) < oldest)

    return VacuumPlan(
        files=tuple(meta for meta in _data_files(log) if is_garbage(meta.key)),
        temporaries=tuple(log.store.stale_temporaries(modified_before_ms=cutoff)),
        min_read_version=oldest,
    )


def _live_at(log: TransactionLog, version: int) -> frozenset[str]:
    """Returns the files of the oldest version that stays: it can be read, and restored, whatever clocks said."""
    try:
        return frozenset(log.snapshot(version).column("key").to_pylist())
    except VersionNotFoundError:
        return frozenset()  # no commit that is kept is that old


def _tombstones(snapshot: Snapshot, cutoff: int) -> tuple[frozenset[str], frozenset[str]]:
    """Returns files removed after the cutoff, which readers may still need, and those removed before it."""
    removed = snapshot.tombstones
    # a remove without a time may have happened just now
    fresh = pc.fill_null(pc.greater(removed.column("deletion_timestamp"), cutoff), fill_value=True)
    keys = removed.column("key")
    return (
        frozenset(keys.filter(fresh).to_pylist()),
        frozenset(keys.filter(pc.invert(fresh)).to_pylist()),
    )


def _data_files(log: TransactionLog) -> Iterator[ObjectMeta]:
    for meta in log.store.list(""):
        if not meta.key.startswith(log.names.prefix):
            yield meta
