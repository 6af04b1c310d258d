"""Putting a commit into the store, and finding out what happened when the store does not say."""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from indextables.errors import (
    CommitStateUnknownError,
    LogCorruptedError,
    LogReplacedError,
    ObjectNotFoundError,
    ReadOnlyStoreError,
    StorageError,
)
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.actions import CommitInfo
from indextables.log.wire.files import read_info
from indextables.log.wire.names import LogFile, LogNames
from indextables.storage.base import LogStore

_logger: Final = logging.getLogger(__name__)
_PAUSES: Final = (0.05, 0.2, 0.8, 2.0)
"""Seconds between the questions to a store that fails."""

_REFUSED: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOENT, errno.ENAMETOOLONG}
    | {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
)
"""The system itself said no, and nothing is there: that is no doubt, and asking again does not help."""


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Publisher:
    """Writes commits of one log, in its spelling."""

    store: LogStore
    names: LogNames
    width: int
    now_ms: Callable[[], int] = _now_ms
    pause: Callable[[float], None] = time.sleep

    def file(self, version: int) -> LogFile:
        """The commit of a version, by name."""
        return LogFile("commit", version, self.width, self.names.commit(version, self.width))

    def publish(self, version: int, data: bytes, commit_id: str) -> bool:
        """True: this version is our commit. False: it is another writer's. Never a guess.

        A store may write the object and answer with an error; trying again then finds our own commit.
        """
        file = self.file(version)
        problem: StorageError | None = None
        for seconds in (0.0, *_PAUSES):
            if seconds:
                self.pause(seconds)
            try:
                self.store.put_if_absent(file.key, data)
            except ReadOnlyStoreError:
                raise
            except StorageError as error:
                problem = error
            else:
                return True
            try:
                owner = self._owner(file)
            except ObjectNotFoundError:
                if problem.facts.get("errno") in _REFUSED:
                    raise problem from None
                continue  # not there: the same bytes under the same name can safely be put again
            except StorageError as error:
                problem = error
                continue
            return owner.commit_id == commit_id
        raise CommitStateUnknownError(
            f"the store never said whether version {version} was written: {problem}",
            hint=f"look if {file.key} has commitId {commit_id}; do not delete the data files before",
            version=version,
            commit_id=commit_id,
        ) from problem

    def confirm_parent(self, base: Snapshot, commit_id: str) -> None:
        """After a put: the version before is still the one this commit was built on.

        A repair may have replaced the log in between. Then this commit would hang in the void, so it is
        taken back.
        """
        parent, mine = self.file(base.version), self.file(base.version + 1)
        # of another writer's commit without an id all that can be said is whether it is there
        found = self._settled_owner(parent, base)
        if found is not None and found.commit_id == base.commit_id:
            return
        if found is None and self._is_checkpointed(mine, commit_id):
            return  # others went on from here, and a cleanup has followed them
        with suppress(StorageError):
            self.store.delete(mine.key)
        raise LogReplacedError(
            f"the log was replaced while version {mine.version} was written; it has been taken back",
            hint=f"open the table again, see that {mine.key} is gone, and repeat the write",
            version=mine.version,
            expected=base.commit_id,
            found=found.commit_id if found else None,
        )

    def is_still(self, snapshot: Snapshot) -> bool:
        """False if the version of this snapshot is another commit by now."""
        try:
            return self._owner(self.file(snapshot.version)).commit_id == snapshot.commit_id
        except ObjectNotFoundError:
            return True  # deleted by hand, as commits below a checkpoint may be

    def _settled_owner(self, parent: LogFile, base: Snapshot) -> CommitInfo | None:
        """What the version before says of itself; None if it is gone."""
        problem: StorageError | None = None
        for seconds in (0.0, *_PAUSES):
            if seconds:
                self.pause(seconds)
            try:
                return self._owner(parent)
            except ObjectNotFoundError:
                return self._checkpointed_owner(base.version)
            except StorageError as error:
                problem = error
        raise CommitStateUnknownError(
            f"version {base.version + 1} was written, but the store does not show version {base.version} "
            f"any more: {problem}",
            hint="look at the table's history before you repeat the write",
            version=base.version + 1,
        ) from problem

    def _is_checkpointed(self, mine: LogFile, commit_id: str) -> bool:
        """True if a checkpoint has our commit: somebody read it as the version it is."""
        found = self._checkpointed_owner(mine.version)
        return found is not None and found.commit_id == commit_id

    def _checkpointed_owner(self, version: int) -> CommitInfo | None:
        """A commit may be gone by cleanup, if a checkpoint of it is there."""
        key = self.names.checkpoint(version, self.width)
        try:
            return self._owner(LogFile("checkpoint", version, self.width, key))
        except ObjectNotFoundError:
            return None

    def _owner(self, file: LogFile) -> CommitInfo:
        """Who wrote this version; an empty answer for a writer that leaves no name."""
        size = self.store.head(file.key).size
        known = LogFile(file.kind, file.version, file.width, file.key, size)
        try:
            return read_info(self.store, known) or CommitInfo()
        except LogCorruptedError:
            return CommitInfo()
