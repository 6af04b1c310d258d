"""Deletes files that no version within the retention needs, after telling every writer so."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow.compute as pc

from indextables.config import VACUUM_RETENTION
from indextables.errors import ConfigError
from indextables.log.commit.intent import CommitPlan, Maintain, written_for
from indextables.log.open.age import Expiry
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Vacuum
from indextables.ops.shared.commit import config_for
from indextables.storage.base import ObjectMeta, folded_name


@dataclass(frozen=True, slots=True)
class VacuumPlan:
    """The files a vacuum deletes, or would delete; printing it is the dry run."""

    files: tuple[ObjectMeta, ...]
    temporaries: tuple[ObjectMeta, ...]
    min_read_version: int
    applied: bool = False
    waiting: int = 0
    """Files that are old enough by the times in the log but not by every clock; a later vacuum takes them."""

    @property
    def total_bytes(self) -> int:
        """Returns the number of bytes that become free."""
        return sum(meta.size for meta in (*self.files, *self.temporaries))


def vacuum(
    log: TransactionLog,
    *,
    apply: bool = False,
    allow_short_retention: bool = False,
    options: Mapping[str, object] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> VacuumPlan:
    """Returns the files that no version within the retention needs; with `apply` deletes them.

    Only files under this table's own `data/` directories, and files the log says were removed, are ever
    deleted: never a live file, never the log, never what others put beside the table. A retention below
    the table's own is refused, because it must exceed the longest write and the longest query.
    """
    snapshot = log.snapshot()
    retention = config_for(snapshot.properties, options).get(VACUUM_RETENTION)
    if apply and not allow_short_retention:
        _check_long_enough(snapshot, retention)
    expiry = log.expiry(retention)
    if not apply:
        return _plan(log, snapshot, expiry)
    is_asking = expiry.unseen_ms > 0 and _plan(log, snapshot, expiry).waiting > 0
    if _mark(log, snapshot, expiry, is_asking=is_asking):
        expiry = log.expiry(
            retention
        )  # the mark is a commit, and its time tells what time it is at the store
        _mark(log, log.snapshot(), expiry)
    # A writer that started below the mark either is in this snapshot, or will never commit.
    plan = _plan(log, log.snapshot(), expiry)
    doomed = (*plan.files, *plan.temporaries)
    for done, meta in enumerate(doomed, start=1):
        log.store.delete(meta.key)
        if progress is not None:
            progress(done, len(doomed))
    return replace(plan, applied=True)


def _check_long_enough(snapshot: Snapshot, retention: dt.timedelta) -> None:
    usual = config_for(snapshot.properties, None).get(VACUUM_RETENTION)
    if retention < usual:
        raise ConfigError(
            f"a retention of {retention} is shorter than the {usual} this table keeps removed files: running "
            "writes would be refused, and queries of older versions would lose their files",
            hint="if nobody is writing or reading, allow it: vacuum(apply=True, allow_short_retention=True), "
            "--allow-short-retention, or PURGE … ALLOW SHORT RETENTION",
            retention=retention,
        )


def _mark(log: TransactionLog, snapshot: Snapshot, expiry: Expiry, *, is_asking: bool = False) -> bool:
    """Commits the mark if it moves, or if only a new commit can tell how much time has passed."""
    oldest = expiry.version or 0
    if oldest <= snapshot.min_read_version and not is_asking:
        return False
    oldest = max(oldest, snapshot.min_read_version)
    mark = CommitPlan(Maintain(), "VACUUM", (Vacuum(oldest),), metrics={"minReadVersion": oldest})
    log.commit(mark, snapshot)
    return is_asking


def _plan(log: TransactionLog, snapshot: Snapshot, expiry: Expiry) -> VacuumPlan:
    found = [meta for meta in log.store.list("") if not meta.key.startswith(log.names.prefix)]
    garbage = _garbage(log, snapshot, expiry, found)
    waiting = 0
    if expiry.stated is not None and expiry.stated > (expiry.version or 0):
        sooner = replace(expiry, version=expiry.stated)
        waiting = len(_garbage(log, snapshot, sooner, found)) - len(garbage)
    return VacuumPlan(
        files=garbage,
        temporaries=tuple(log.store.stale_temporaries(modified_before_ms=expiry.cutoff_ms)),
        min_read_version=expiry.version or 0,
        waiting=max(waiting, 0),
    )


def _garbage(
    log: TransactionLog, snapshot: Snapshot, expiry: Expiry, found: Iterable[ObjectMeta]
) -> tuple[ObjectMeta, ...]:
    """Returns the files that no version since the oldest needs and that are known to be this table's."""
    oldest = expiry.version or 0
    removed = _removed(snapshot, expiry)
    if not oldest and not removed:
        return ()
    kept = log.kept_since(oldest).union(snapshot.column("key").to_pylist())

    def is_known(key: str) -> bool:
        written = written_for(key)
        return key in removed or (written is not None and written < oldest)

    doomed = [meta for meta in found if meta.key not in kept and is_known(meta.key)]
    return tuple(_not_spelled_as(kept, doomed))


def _not_spelled_as(kept: frozenset[str], doomed: list[ObjectMeta]) -> Iterator[ObjectMeta]:
    """Returns the files that are no kept file in another spelling: some file systems do not tell 'A' from 'a'."""
    spellings = {folded_name(key) for key in kept} if doomed else frozenset()
    return (meta for meta in doomed if folded_name(meta.key) not in spellings)


def _removed(snapshot: Snapshot, expiry: Expiry) -> frozenset[str]:
    """Returns files that were removed long enough ago.

    Where the log reaches back over the retention, its versions tell what is needed. Otherwise the times
    of the removes have to tell it.
    """
    gone = snapshot.tombstones
    if expiry.version is None:
        old = pc.less_equal(gone.column("deletion_timestamp"), expiry.cutoff_ms)
        gone = gone.filter(pc.fill_null(old, fill_value=False))
    return frozenset(gone.column("key").to_pylist())
