"""Gives up the history of a table: keeps a checkpoint of the newest version and nothing before it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from indextables.errors import CommitConflictError, RepairError
from indextables.log.open.checkpoint import read_checkpoint
from indextables.log.open.load import list_log
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.files import LogFile


@dataclass(frozen=True, slots=True)
class TruncationPlan:
    """The files of the log to delete, oldest first; printing it is the dry run."""

    version: int
    """The only version that stays readable."""
    files: tuple[LogFile, ...]
    applied: bool = False

    @property
    def total_bytes(self) -> int:
        """Returns the number of bytes that become free."""
        return sum(file.size for file in self.files)


def truncate_time_travel(log: TransactionLog, *, apply: bool = False) -> TruncationPlan:
    """Returns the files of the log that only older versions need; with `apply` deletes them.

    Nothing is deleted before a checkpoint of the newest version has been written and read back. The commit
    of that version stays, because a writer at work looks for its id there.
    """
    snapshot = log.snapshot()
    if apply:
        log.checkpoint(snapshot)
    plan = _plan(log, snapshot.version)
    if not apply:
        return plan
    listing = list_log(log.store, log.names)
    newest = next((file for file in listing.checkpoints if file.version == snapshot.version), None)
    if newest is None:
        raise CommitConflictError(
            f"version {snapshot.version}, which was to be the oldest, was cleaned up by another process meanwhile",
            hint="look at the history, and cut it again if it is still too long",
            version=snapshot.version,
        )
    kept = read_checkpoint(log.store, newest)
    if kept.metadata != snapshot.metadata or not kept.files().equals(snapshot.files()):
        raise RepairError(
            f"the checkpoint {newest.name} is not what was written to it; nothing was deleted",
            hint="check the storage, then try again",
            file=newest.name,
        )
    for file in plan.files:
        log.store.delete(file.key)
    return replace(plan, applied=True)


def _plan(log: TransactionLog, version: int) -> TruncationPlan:
    listing = list_log(log.store, log.names)
    commits = (file for files in listing.commits.values() for file in files)
    doomed = (file for file in (*commits, *listing.checkpoints) if file.version < version)
    return TruncationPlan(version, tuple(sorted(doomed, key=lambda file: (file.version, file.kind))))
