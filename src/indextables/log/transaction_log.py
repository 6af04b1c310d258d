"""The log of one table: opens it at any version, commits to it, and keeps it short."""

from __future__ import annotations

import datetime as dt
import itertools
import logging
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Final, cast

from indextables.config import (
    CHECKPOINT_FORMAT,
    CHECKPOINT_INTERVAL,
    COMMIT_MAX_ATTEMPTS,
    LOG_RETENTION,
    VACUUM_RETENTION,
    Config,
)
from indextables.errors import (
    ConfigError,
    TableExistsError,
    VersionNotFoundError,
)
from indextables.log.commit.attempt import (
    Committed,
    Proposal,
    Publisher,
    commit,
    first_snapshot,
    sealed,
)
from indextables.log.commit.conflict import Winner, winner
from indextables.log.commit.intent import CommitPlan
from indextables.log.commit.turn import let_pass
from indextables.log.open.age import Age, Expiry
from indextables.log.open.checkpoint import Format, Written, write_checkpoint
from indextables.log.open.cleanup import cleanup
from indextables.log.open.history import History, history, version_at
from indextables.log.open.load import Follower, Seen, list_log, load
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.actions import check_writable, needs_trailer
from indextables.log.wire.files import LOG_DIRECTORY, WIDTH, LogNames
from indextables.storage.base import LogStore

_logger: Final = logging.getLogger(__name__)


class TransactionLog:
    """The log of the table in a store; what was read once is not read again.

    Threads may share it. `now_ms` and `pause` exist for tests.
    """

    def __init__(
        self,
        store: LogStore,
        config: Config | None = None,
        *,
        directory: str = LOG_DIRECTORY,
        now_ms: Callable[[], int] | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.store = store
        self.names = LogNames(directory)
        self._config = config or Config({})
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self._pause = pause
        self._follower = Follower(store, self.names)
        self._replans = True

    def configured(self, config: Config, *, replans: bool = True) -> TransactionLog:
        """Returns this log with other settings; what was read once is not read again.

        Without `replans`, a commit that would have to be planned again raises CommitConflictError. It is for
        rows that were read from the table itself, because they would be different now.
        """
        other = TransactionLog(
            self.store,
            config,
            directory=self.names.directory,
            now_ms=self._now_ms,
            pause=self._pause,
        )
        other._follower = self._follower
        other._replans = replans
        return other

    def snapshot(
        self, version: int | None = None, timestamp: int | dt.datetime | None = None
    ) -> Snapshot:
        """Returns the table now, at a version, or at a time (in milliseconds, or a datetime with a zone)."""
        if version is not None and timestamp is not None:
            raise ValueError("give a version or a timestamp, not both")
        if timestamp is not None:
            version = self._version_at(_milliseconds(timestamp))
        if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
            raise ConfigError(
                f"{version!r:.60} is not a version", hint="versions are whole numbers from 0 on"
            )
        if version is None:
            return self._follower.newest()
        return load(self.store, self.names, version)[0]

    def exists(self) -> bool:
        """Returns True if there is a log with at least one commit or checkpoint."""
        return any(True for _ in self.names.parse_all(self.store.list(self.names.prefix)))

    def history(self, limit: int | None = None) -> History:
        """Returns the commits that are kept, newest first."""
        listing = list_log(self.store, self.names)
        if listing.newest < 0:
            self._follower.newest()  # raises the error that says what is wrong
        return History(itertools.islice(history(self.store, listing), limit))

    def changes_after(self, snapshot: Snapshot) -> Iterator[Winner]:
        """Yields what each commit after this snapshot changed, oldest first."""
        before = snapshot
        for body in self._follower.commits_after(snapshot, self._follower.writable().width):
            change = winner(before, body, self.store.uri)
            yield change
            before = change.after

    def expiry(self, retention: dt.timedelta) -> Expiry:
        """Returns what is older than this retention by every clock that counts (see `log.open.age`)."""
        age = self._age(self._follower.newest(), retention)
        return age.expiry(self.store, list_log(self.store, self.names))

    def kept_since(self, version: int) -> frozenset[str]:
        """Returns every file of this version and of later ones, whether it was removed since or not."""
        return self._follower.kept_since(version)

    def create(self, plan: CommitPlan) -> Committed:
        """Commits the plan as version 0.

        Raises TableExistsError if there is a table, even one that was created a moment ago.
        """
        if self.exists():
            raise self._exists()
        publisher, commit_id = self._publisher(WIDTH), uuid.uuid4().hex
        data = sealed(plan, None, None, commit_id, self._now_ms())
        # The commit is read before it is published, so that a commit no reader accepts is never published.
        snapshot = first_snapshot(publisher.file(0), data, self.store.uri)
        if not publisher.publish(0, data, commit_id):
            raise self._exists()
        self._follower.learn(Seen(snapshot, (), WIDTH, frozenset({WIDTH})))
        return Committed(0, snapshot)

    def commit(self, proposal: Proposal, snapshot: Snapshot | None = None) -> Committed:
        """Commits the proposal as the next version, exactly once.

        A proposal is a planner, which may be asked again if another writer takes the version, or a plan that
        was made for exactly `snapshot` (the newest one if it is not given). Raises CommitConflictError if
        the plan cannot follow the commits that came first.
        """
        base = snapshot or self._follower.newest()
        if self._follower.turns:
            let_pass(self.store, self._follower.turns, self._pause)
        seen = self._follower.writable()
        done = commit(
            self._publisher(seen.width),
            proposal,
            base,
            winners_after=lambda known: self._follower.commits_after(known, seen.width),
            newest_now=self._follower.newest,
            kept_since=self.kept_since,
            max_attempts=self._setting(base).get(COMMIT_MAX_ATTEMPTS),
            replans=self._replans,
        )
        if not done.no_op:
            self._follower.learn(seen.written(done.snapshot))
            self._after_commit(done.snapshot)
        return done

    def checkpoint(self, snapshot: Snapshot | None = None) -> Written:
        """Writes a checkpoint of the newest version, or of this snapshot, and the hint that names it."""
        snapshot = snapshot or self._follower.newest()
        check_writable(snapshot.protocol)
        width = self._follower.writable().width
        settings = self._setting(snapshot)
        retention = settings.get(VACUUM_RETENTION) / dt.timedelta(milliseconds=1)
        written = write_checkpoint(
            self.store,
            self.names,
            snapshot,
            # Vacuum may wait longer than its retention, so removes are kept for twice as long.
            keep_removes_after=self._now_ms() - 2 * int(retention),
            width=width,
            form=cast("Format", settings.get(CHECKPOINT_FORMAT)),
            check=lambda here, after: (
                self._publisher(width).on(here).check_has(snapshot, or_nothing=after)
            ),
        )
        self._follower.exchange(snapshot, written.snapshot)
        return written

    def cleanup(self) -> list[str]:
        """Deletes files of the log that no version within the retention needs; returns their keys."""
        snapshot = self._follower.newest()
        retention = self._setting(snapshot).get(LOG_RETENTION)
        return cleanup(self.store, self.names, self._age(snapshot, retention))

    def _after_commit(self, snapshot: Snapshot) -> None:
        """Writes a checkpoint when one is due and cleans up; the commit is done, so no error may leave here."""
        try:
            interval = self._setting(snapshot).get(CHECKPOINT_INTERVAL)
            if not interval or snapshot.version % interval:
                return
            self.checkpoint(snapshot)
        except Exception as error:  # noqa: BLE001 - whatever it is, the commit did not fail
            _logger.warning("no checkpoint of version %d: %s", snapshot.version, error)
            return
        try:
            self.cleanup()
        except Exception as error:  # noqa: BLE001 - neither did it here
            _logger.warning("old files of the log were not removed: %s", error)

    def _setting(self, snapshot: Snapshot) -> Config:
        return self._config.over(snapshot.properties)

    def _age(self, snapshot: Snapshot, retention: dt.timedelta) -> Age:
        span = int(retention / dt.timedelta(milliseconds=1))
        return Age(self._now_ms(), span, needs_trailer(snapshot.protocol))

    def _publisher(self, width: int) -> Publisher:
        return Publisher(self.store, self.names, width, self._now_ms, self._pause)

    def _exists(self) -> TableExistsError:
        return TableExistsError(
            f"there is already a table at {self.store.uri}",
            hint="open it with Table(path), or choose another path",
            uri=self.store.uri,
        )

    def _version_at(self, timestamp_ms: int) -> int:
        if timestamp_ms > self._now_ms():
            raise VersionNotFoundError(
                f"the timestamp {timestamp_ms} (milliseconds since 1970) is in the future",
                hint="leave out the timestamp to read the newest version",
                timestamp_ms=timestamp_ms,
            )
        ordered = needs_trailer(self._follower.newest().protocol)
        listing = list_log(self.store, self.names)
        return version_at(self.store, listing, timestamp_ms, ordered=ordered, now_ms=self._now_ms())


def _milliseconds(moment: int | dt.datetime) -> int:
    if isinstance(moment, int):
        return moment
    if not isinstance(moment, dt.datetime):
        raise ConfigError(
            f"{moment!r:.60} is not a moment", hint="pass milliseconds since 1970, or an aware datetime"
        )
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone; give one, or milliseconds since 1970")
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)
