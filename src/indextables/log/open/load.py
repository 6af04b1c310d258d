"""Following a log: what was read before is not read again, and a log that was replaced is noticed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from indextables.errors import LogCorruptedError, LogReplacedError, ObjectNotFoundError
from indextables.log.open.listing import Listing, check_one_width, find_commit, is_missing, list_from
from indextables.log.open.load_load import load, read_bodies
from indextables.log.open.replay import replay
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.files import LogBody, read_info
from indextables.log.wire.names import LogFile, LogNames
from indextables.storage.base import LogStore


@dataclass(frozen=True, slots=True)
class Seen:
    """The newest snapshot that is known, what its commit looked like, and the log's spelling."""

    snapshot: Snapshot
    commit: tuple[LogFile, ...]
    width: int
    widths: frozenset[int]

    @classmethod
    def of(cls, snapshot: Snapshot, listing: Listing) -> Seen:
        """What a listing shows."""
        commit = listing.commits.get(snapshot.version, ())
        return cls(snapshot, commit, listing.width, listing.widths)

    def then(self, snapshot: Snapshot, listing: Listing) -> Seen:
        """The same log, later."""
        commit = listing.commits.get(snapshot.version, ())
        return Seen(snapshot, commit, self.width, self.widths | listing.widths)

    def written(self, snapshot: Snapshot) -> Seen:
        """The same log with one more commit, of our own."""
        return replace(self, snapshot=snapshot, commit=())


class Follower:
    """Keeps the newest snapshot of one log. Threads may share it: each learns something true."""

    def __init__(self, store: LogStore, names: LogNames) -> None:
        self._store = store
        self._names = names
        self._seen: Seen | None = None

    def newest(self) -> Snapshot:
        """The newest version: what is known already, and the commits after it."""
        seen = self._seen
        if seen is None:
            return self._reload()
        known = seen.snapshot
        listing = list_from(
            self._store, self._names, known.version, seen.width, unread=known.version + 1
        )
        if listing.complete or not self._is_same(seen, listing):
            return self._reload()
        try:
            bodies = self._bodies(known, listing)
            newest = replay(known, bodies, self._store.uri) if bodies else known
        except (LogReplacedError, ObjectNotFoundError):
            return self._reload()
        except LogCorruptedError as error:
            if not is_missing(error):
                raise
            return self._reload()  # a cleanup went by
        return self.learn(seen.then(newest, listing))

    def commits_after(self, known: Snapshot, width: int) -> Sequence[LogBody]:
        """The commits that a writer lost against."""
        listing = list_from(
            self._store, self._names, known.version + 1, width, unread=known.version + 1
        )
        check_one_width(listing.widths | {width})
        return self._bodies(known, listing)

    def writable(self) -> Seen:
        """What is known, if the log can be written at all."""
        if self._seen is None:
            self._reload()
        assert self._seen is not None
        check_one_width(self._seen.widths)
        return self._seen

    def learn(self, seen: Seen) -> Snapshot:
        """What was learned last counts: a log put in place of the one we knew may be shorter."""
        self._seen = seen
        return seen.snapshot

    def exchange(self, old: Snapshot, new: Snapshot) -> None:
        """The same version, put together in another way."""
        if self._seen is not None and self._seen.snapshot is old:
            self._seen = replace(self._seen, snapshot=new)

    def _reload(self) -> Snapshot:
        return self.learn(Seen.of(*load(self._store, self._names)))

    def _bodies(self, known: Snapshot, listing: Listing) -> list[LogBody]:
        wanted = range(known.version + 1, listing.newest + 1)
        return read_bodies(self._store, [find_commit(self._store, listing, v) for v in wanted])

    def _is_same(self, seen: Seen, listing: Listing) -> bool:
        """The commit we know is still the one under its name."""
        now = listing.commits.get(seen.snapshot.version, ())
        if seen.commit == now or not now:
            return bool(now)
        info = read_info(self._store, now[0])
        return (info.commit_id if info else None) == seen.snapshot.commit_id
