"""Following a log: what was read before is not read again, and a log that was replaced is noticed."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from indextables.errors import (
    LogCorruptedError,
    LogReplacedError,
    NotATableError,
    ObjectNotFoundError,
    TableNotFoundError,
    VersionNotFoundError,
)
from indextables.log.open.checkpoint import read_checkpoint
from indextables.log.open.listing import (
    Listing,
    check_one_width,
    find_commit,
    is_missing,
    list_from,
    list_log,
    read_hint,
)
from indextables.log.open.replay import replay
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.files import LogBody, read_body, read_info
from indextables.log.wire.lines import Place
from indextables.log.wire.names import WIDTH, LogFile, LogNames
from indextables.storage.base import LogStore

# Opening a log: the newest intact checkpoint, and every commit after it.

_logger: Final = logging.getLogger(__name__)
_READERS: Final = 8
_SLOW: Final = 0.001


def load(store: LogStore, names: LogNames, version: int | None = None) -> tuple[Snapshot, Listing]:
    """The snapshot of a version (the newest without one), and the listing it came from."""
    listing = _first_listing(store, names, version)
    for last_try in (False, False, True):
        try:
            return _from_listing(store, listing, version, believe=last_try), listing
        except (ObjectNotFoundError, LogReplacedError):
            # A cleanup removed, or a repair replaced, what the listing showed: look again.
            listing = list_log(store, names)
        except (LogCorruptedError, VersionNotFoundError) as error:
            # while a cleanup deletes files, a listing may have a later one and not an earlier one
            if listing.complete and not (is_missing(error) and not last_try):
                raise
            listing = list_log(store, names)
    return _from_listing(store, listing, version, believe=True), listing


def _first_listing(store: LogStore, names: LogNames, version: int | None) -> Listing:
    hint = read_hint(store, names)
    if hint is not None and (version is None or hint <= version):
        listing = list_from(store, names, hint, WIDTH, unread=hint)
        if any(file.version >= hint for file in listing.checkpoints):
            return listing
        _logger.warning("%s names version %d, which has no checkpoint", names.hint, hint)
    listing = list_log(store, names)
    if listing.newest < 0:
        raise _no_table(store, names)
    return listing


def _no_table(store: LogStore, names: LogNames) -> TableNotFoundError | NotATableError:
    if next(iter(store.list("")), None) is None:
        return TableNotFoundError(
            f"there is no table at {store.uri}",
            hint="create one with Table.create, or check the path",
            uri=store.uri,
        )
    return NotATableError(
        f"{store.uri} is not a table: it has files, but no {names.directory} with commits",
        hint="adopt a directory of Parquet files with indextables.convert",
        uri=store.uri,
    )


def _from_listing(store: LogStore, listing: Listing, version: int | None, *, believe: bool) -> Snapshot:
    """The snapshot by this listing; `believe` that what does not fit together in it never will."""
    target = listing.newest if version is None else version
    if not 0 <= target <= listing.newest:
        raise _outside(target, f"the newest is {listing.newest}", newest=listing.newest)
    for base in _bases(store, listing, target):
        try:
            return _on(base, store, listing, target)
        except LogReplacedError as error:
            if not believe:
                raise
            _logger.warning("the checkpoint of version %d is of another log: %s", base.version, error)
    oldest = min(listing.commits, default=0)
    if oldest > 0 and version is not None and listing.complete:
        raise _outside(target, f"commits are kept from {oldest} on", oldest=oldest)
    try:
        return _replayed(None, store, listing, target)
    except LogReplacedError as error:
        if not believe:
            raise
        name = listing.names.commit(error.facts["version"], listing.width).rpartition("/")[2]
        raise Place(name, 1).corrupted(error.message) from error


def _outside(version: int, why: str, **facts: int) -> VersionNotFoundError:
    return VersionNotFoundError(
        f"there is no version {version}: {why}",
        hint="history() lists the versions there are",
        version=version,
        **facts,
    )


def _bases(store: LogStore, listing: Listing, target: int) -> Iterator[Snapshot]:
    """Intact checkpoints up to this version, newest first; a torn one only costs time."""
    for file in listing.checkpoints:
        if file.version > target:
            continue
        try:
            yield read_checkpoint(store, file)
        except LogCorruptedError as error:
            _logger.warning("checkpoint %s is not usable: %s", file.name, error.message)


def _on(base: Snapshot, store: LogStore, listing: Listing, target: int) -> Snapshot:
    """The snapshot on top of a checkpoint that belongs to this log."""
    if len(listing.commits.get(base.version, ())) > 1:
        find_commit(
            store, listing, base.version
        )  # raises if they differ: then it is of one of two logs
    if base.version < target:
        return _replayed(base, store, listing, target)
    commits = listing.commits.get(target, ())
    if commits:
        info = read_info(store, commits[0])
        if info and None not in (info.commit_id, base.commit_id) and info.commit_id != base.commit_id:
            raise LogReplacedError(
                f"its commit is {base.commit_id}, {commits[0].name} is {info.commit_id}"
            )
    elif not listing.complete or any(version < target for version in listing.commits):
        # Cleanup deletes oldest first. Commits below a checkpoint, but not its own, were lost or replaced.
        raise LogCorruptedError(
            f"the checkpoint of version {target} is intact, but its commit and those before it are missing",
            hint="run REPAIR INDEXFILES TRANSACTION LOG to see what can be saved",
            file=listing.names.commit(target, listing.width).rpartition("/")[2],
            line=0,
            version=target,
        )
    return base


def _replayed(base: Snapshot | None, store: LogStore, listing: Listing, target: int) -> Snapshot:
    first = base.version + 1 if base else 0
    commits = [find_commit(store, listing, number) for number in range(first, target + 1)]
    return replay(base, read_bodies(store, commits), store.uri)


def read_bodies(store: LogStore, files: Sequence[LogFile]) -> list[LogBody]:
    """The texts of these files: one after the other, and side by side once the store is slow to answer.

    A thread costs more than a local file.
    """
    bodies: list[LogBody] = []
    for file in files:
        started = time.perf_counter()
        bodies.append(read_body(store, file))
        if time.perf_counter() - started > _SLOW:
            break
    left = files[len(bodies) :]
    if not left:
        return bodies
    with ThreadPoolExecutor(min(_READERS, len(left))) as pool:
        return [*bodies, *pool.map(lambda file: read_body(store, file), left)]


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
