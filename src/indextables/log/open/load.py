"""Opens a log at a version and follows it: what was read is not read again, a replaced log is noticed."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Final

import orjson

from indextables.errors import (
    IndexTablesError,
    LogCorruptedError,
    LogReplacedError,
    NotATableError,
    ObjectNotFoundError,
    ReadOnlyStoreError,
    StorageError,
    TableNotFoundError,
    VersionNotFoundError,
)
from indextables.log.open.checkpoint import read_checkpoint
from indextables.log.open.replay import replay
from indextables.log.state.parse import no_tombstones
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.actions import last_version
from indextables.log.wire.files import WIDTH, WIDTHS, LogBody, LogFile, LogNames, read_body, read_info
from indextables.log.wire.lines import LinePosition
from indextables.storage.base import LogStore

# Listings: what a store shows of a log, and commits that it has without showing them.

_logger: Final = logging.getLogger(__name__)
_BY_NAME: Final = 2
"""This many names or fewer are looked up one by one; for more, one listing is faster."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a log; `complete` is False if only those from some version on were listed."""

    names: LogNames
    commits: Mapping[int, tuple[LogFile, ...]]
    checkpoints: tuple[LogFile, ...]
    """Newest first."""
    parts: tuple[LogFile, ...]
    complete: bool
    turns: tuple[str, ...] = ()
    """Keys of requests of writers that have lost too often."""

    @classmethod
    def of(cls, names: LogNames, files: Iterable[LogFile], *, complete: bool) -> Listing:
        """Returns a listing of these files."""
        commits: dict[int, tuple[LogFile, ...]] = {}
        checkpoints, parts = [], []
        for file in files:
            match file.kind:
                case "commit":
                    commits[file.version] = (*commits.get(file.version, ()), file)
                case "checkpoint":
                    checkpoints.append(file)
                case "part":
                    parts.append(file)
        newest_first = sorted(checkpoints, key=lambda file: (file.version, file.width), reverse=True)
        return cls(names, commits, tuple(newest_first), tuple(parts), complete)

    @property
    def newest(self) -> int:
        """Returns the highest version of a commit or checkpoint; -1 for an empty log."""
        return max([*self.commits, *(file.version for file in self.checkpoints)], default=-1)

    @property
    def widths(self) -> frozenset[int]:
        """Returns the numbers of digits in names of this log."""
        commits = (file.width for files in self.commits.values() for file in files)
        return frozenset([*commits, *(file.width for file in self.checkpoints)])

    @property
    def width(self) -> int:
        """Returns the number of digits in the name of the lowest version, with which new names are spelled."""
        lowest = min(self.commits, default=None)
        if lowest is not None:
            return self.commits[lowest][0].width
        return self.checkpoints[-1].width if self.checkpoints else WIDTH


def check_one_width(widths: frozenset[int]) -> None:
    """Raises ReadOnlyStoreError for names of two widths: two writers could then create the same version."""
    if len(widths) > 1:
        raise ReadOnlyStoreError(
            f"the log mixes names of {' and '.join(map(str, sorted(widths)))} digits, so it can be read "
            "but not written",
            hint="run REPAIR INDEXFILES TRANSACTION LOG to get a log whose names have one width",
            widths=widths,
        )


def reachable(listing: Listing) -> list[int]:
    """Returns the versions that can be opened: all from version 0 on, or from the first checkpoint on."""
    checkpoints = [file.version for file in listing.checkpoints]
    first = 0 if 0 in listing.commits else min(checkpoints, default=0)
    return sorted(version for version in {*listing.commits, *checkpoints} if version >= first)


def list_log(store: LogStore, names: LogNames) -> Listing:
    """Returns every file of the log."""
    return Listing.of(names, names.parse_all(store.list(names.prefix)), complete=True)


def list_from(store: LogStore, names: LogNames, version: int, width: int, *, unread: int) -> Listing:
    """Returns the files of this version and of later ones.

    Versions from `unread` up to the one after the newest are also looked for in the other width. If one is
    found, every file of the log is returned.
    """
    found = list(store.list(names.prefix, start_after=names.before(version, width)))
    files = [file for file in names.parse_all(found) if file.version >= version]
    turns = tuple(meta.key for meta in found if meta.key.startswith(names.turns))
    listing = replace(Listing.of(names, files, complete=False), turns=turns)
    # Names with 20 digits sort before those with 18, so this listing does not reach the other width.
    if not files or _has_twins(store, names, range(unread, listing.newest + 2), width):
        return list_log(store, names)
    return listing


def _has_twins(store: LogStore, names: LogNames, versions: range, width: int) -> bool:
    """Returns True if one of these versions exists in the other width."""
    (other,) = (known for known in WIDTHS if known != width)
    if len(versions) <= _BY_NAME:
        return any(_is_there(store, names.commit(version, other)) for version in versions)
    first, end = names.before(versions.start, other), names.before(versions.stop, other)
    found = takewhile(lambda meta: meta.key < end, store.list(names.prefix, start_after=first))
    return any(file.width == other and file.kind == "commit" for file in names.parse_all(found))


def _is_there(store: LogStore, key: str) -> bool:
    try:
        store.head(key)
    except ObjectNotFoundError:
        return False
    return True


def read_hint(store: LogStore, names: LogNames) -> int | None:
    """Returns the version that the hint names; None if the hint is missing or garbled."""
    try:
        hint: Any = orjson.loads(store.get(names.hint))
    except ObjectNotFoundError:
        return None
    except orjson.JSONDecodeError:
        hint = None
    except StorageError as error:
        # This is no warning, because a store that fails will also fail to list the log.
        _logger.info("%s cannot be read; the log is listed instead: %s", names.hint, error.message)
        return None
    version = hint.get("version") if isinstance(hint, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version < 10**18:
        _logger.warning("%s is garbled; the log is listed instead", names.hint)
        return None
    return version


def find_commit(store: LogStore, listing: Listing, version: int) -> LogFile:
    """Returns the commit of a version; one that the listing lacks is looked up by name.

    Raises LogCorruptedError if it is missing, or exists in two widths with different contents.
    """
    listed = listing.commits.get(version, ())
    if len(listed) == 1:
        return listed[0]
    if not listed:
        listed = tuple(_fetch(store, listing.names, version))
    if len(listed) == 2 and store.get(listed[0].key) != store.get(listed[1].key):
        first, second = (file.name for file in listed)
        raise LogCorruptedError(
            f"version {version} exists twice, as {first} and as {second}, and they differ",
            hint="find out which of the two writers was wrong and remove its file; REPAIR cannot decide that",
            file=second,
            line=1,
        )
    if not listed:
        name = listing.names.commit(version, listing.width).rpartition("/")[2]
        raise LogCorruptedError(
            f"{name} is missing: the log has later versions, but not version {version}",
            hint="restore the file, or run REPAIR INDEXFILES TRANSACTION LOG to see what can be saved",
            file=name,
            line=0,
            version=version,
        )
    return listed[0]


def is_missing(error: IndexTablesError) -> bool:
    """Returns True if the error is about a file that is missing and not about one that is damaged."""
    return isinstance(error, LogCorruptedError) and error.facts.get("line") == 0


def _fetch(store: LogStore, names: LogNames, version: int) -> Iterable[LogFile]:
    for width in WIDTHS:
        try:
            meta = store.head(names.commit(version, width))
        except ObjectNotFoundError:
            continue
        yield LogFile("commit", version, width, meta.key, meta.size, meta.modified_ms)


# Opening a version: the newest intact checkpoint, and every commit after it.

_READERS: Final = 8
_SLOW: Final = 0.001
"""Seconds for one file above which the next files are read by several threads."""


def load(store: LogStore, names: LogNames, version: int | None = None) -> tuple[Snapshot, Listing]:
    """Returns the snapshot of a version (the newest if none is given) and the listing it was read from."""
    listing = _first_listing(store, names, version)
    for last_try in (False, False, True):
        try:
            return _from_listing(store, listing, version, believe=last_try), listing
        except (ObjectNotFoundError, LogReplacedError):
            # A cleanup removed, or a repair replaced, files that the listing showed: list again.
            listing = _full_listing(store, names, read_hint(store, names))
        except (LogCorruptedError, VersionNotFoundError) as error:
            # While a cleanup deletes files, a listing may show a later file and miss an earlier one.
            if listing.complete and not (is_missing(error) and not last_try):
                raise
            listing = _full_listing(store, names, read_hint(store, names))
    return _from_listing(store, listing, version, believe=True), listing


def _first_listing(store: LogStore, names: LogNames, version: int | None) -> Listing:
    hint = read_hint(store, names)
    if hint is not None and (version is None or hint <= version):
        listing = list_from(store, names, hint, WIDTH, unread=hint)
        if any(file.version >= hint for file in listing.checkpoints):
            return listing
        _logger.warning("%s names version %d, which has no checkpoint", names.hint, hint)
    return _full_listing(store, names, hint)


def _full_listing(store: LogStore, names: LogNames, hint: int | None) -> Listing:
    """Returns every file of the log; a commit that must exist is added even if the store does not list it yet.

    Raises LogCorruptedError if the log ends before a version that must exist, since rows would be missing then.
    Such a version is the one in the hint, which is written after its checkpoint, and the last version of a
    repaired log, which its first commit names.
    """
    for last_try in (False, True):
        listing = list_log(store, names)
        if listing.newest < 0:
            raise _no_table(store, names)
        promised = _promised(store, listing, hint)
        if promised <= listing.newest:
            return listing
        if last_try and (found := tuple(_fetch(store, names, promised))):
            return replace(listing, commits={**listing.commits, promised: found})
        hint = read_hint(store, names)  # the log may have been replaced in the meantime
    raise _cut_short(listing, promised)


def _promised(store: LogStore, listing: Listing, hint: int | None) -> int:
    """Returns the newest version that must exist, by the hint and by the first commit of a repaired log."""
    promised = -1 if hint is None else hint
    if listing.newest == 0 and listing.commits:
        with suppress(LogCorruptedError, ObjectNotFoundError):
            promised = max(promised, last_version(read_info(store, listing.commits[0][0])))
    return promised


def _cut_short(listing: Listing, promised: int) -> LogCorruptedError:
    name = listing.names.commit(promised, listing.width).rpartition("/")[2]
    return LogCorruptedError(
        f"{name} is missing: the log says that it goes to version {promised}, but ends at {listing.newest}",
        hint="restore what is missing, for example by copying the log again; delete "
        f"{listing.names.hint} only if you know that nothing is missing",
        file=name,
        line=0,
        version=promised,
    )


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
    """Returns the snapshot by this listing.

    With `believe`, files that do not belong together are an error and not a sign that the log was replaced.
    """
    target = listing.newest if version is None else version
    if not 0 <= target <= listing.newest:
        raise _outside(target, f"the newest is {listing.newest}", newest=listing.newest)
    unread: list[StorageError] = []
    for base in _bases(store, listing, target, unread):
        try:
            return _on(base, store, listing, target)
        except LogReplacedError as error:
            if not believe:
                raise
            _logger.warning(
                "the checkpoint of version %d belongs to another log: %s", base.version, error
            )
    oldest = min(listing.commits, default=0)
    if oldest > 0 and unread and listing.complete:
        raise unread[0]
    if oldest > 0 and version is not None and listing.complete:
        raise _outside(target, f"commits are kept from {oldest} on", oldest=oldest)
    try:
        return _replayed(None, store, listing, target)
    except LogReplacedError as error:
        if not believe:
            raise
        name = listing.names.commit(error.facts["version"], listing.width).rpartition("/")[2]
        raise LinePosition(name, 1).corrupted(error.message) from error


def _outside(version: int, why: str, **facts: int) -> VersionNotFoundError:
    return VersionNotFoundError(
        f"there is no version {version}: {why}",
        hint="history() lists the versions",
        version=version,
        **facts,
    )


def _bases(
    store: LogStore, listing: Listing, target: int, unread: list[StorageError]
) -> Iterator[Snapshot]:
    """Yields intact checkpoints up to this version, newest first; a torn or unreadable one only costs time."""
    for file in listing.checkpoints:
        if file.version > target:
            continue
        try:
            yield read_checkpoint(store, file)
        except LogCorruptedError as error:
            _logger.warning("checkpoint %s is not usable: %s", file.name, error.message)
        except ObjectNotFoundError:
            raise
        except StorageError as error:
            _logger.warning("checkpoint %s cannot be read: %s", file.name, error.message)
            unread.append(error)


def _on(base: Snapshot, store: LogStore, listing: Listing, target: int) -> Snapshot:
    """Returns the snapshot, replayed on top of a checkpoint.

    Raises LogReplacedError if the checkpoint does not belong to this log.
    """
    if len(listing.commits.get(base.version, ())) > 1:
        # Raises if the two commits differ, because the checkpoint can belong to one of them only.
        find_commit(store, listing, base.version)
    if base.version < target:
        return _replayed(base, store, listing, target)
    if any(file.is_state and file.version == target for file in listing.checkpoints):
        return base  # such a log has no commit beside it
    commits = listing.commits.get(target, ())
    if commits:
        info = read_info(store, commits[0])
        if info and None not in (info.commit_id, base.commit_id) and info.commit_id != base.commit_id:
            raise LogReplacedError(
                f"its commit is {base.commit_id}, but {commits[0].name} is {info.commit_id}"
            )
    elif not listing.complete or any(version < target for version in listing.commits):
        # Cleanup deletes the oldest files first. If commits before a checkpoint are there and its own is
        # not, that one was lost or replaced.
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
    """Returns the texts of these files, read by several threads if the store turns out to be slow.

    Starting a thread costs more than reading a local file.
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
    """The newest snapshot that is known, the file of its commit, and the widths of names in the log."""

    snapshot: Snapshot
    commit: tuple[LogFile, ...]
    width: int
    widths: frozenset[int]

    @classmethod
    def of(cls, snapshot: Snapshot, listing: Listing) -> Seen:
        """Returns what this snapshot and the listing it was read from show."""
        commit = listing.commits.get(snapshot.version, ())
        return cls(snapshot, commit, listing.width, listing.widths)

    def then(self, snapshot: Snapshot, listing: Listing) -> Seen:
        """Returns what is known after a newer snapshot was read from this listing."""
        commit = listing.commits.get(snapshot.version, ())
        return Seen(snapshot, commit, self.width, self.widths | listing.widths)

    def written(self, snapshot: Snapshot) -> Seen:
        """Returns what is known after this process committed this snapshot."""
        return replace(self, snapshot=snapshot, commit=())


class Follower:
    """Keeps the newest snapshot of one log. Threads may share it, as whatever one of them learns is true."""

    def __init__(self, store: LogStore, names: LogNames) -> None:
        self._store = store
        self._names = names
        self._seen: Seen | None = None
        self.turns: tuple[str, ...] = ()
        """Requests of other writers for their turn, as the newest listing shows them."""

    def newest(self) -> Snapshot:
        """Returns the newest version; only commits after the one that is known are read."""
        seen = self._seen
        if seen is None:
            return self._reload()
        known = seen.snapshot
        listing = list_from(
            self._store, self._names, known.version, seen.width, unread=known.version + 1
        )
        self.turns = listing.turns
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
            return self._reload()  # a cleanup deleted the file
        return self.learn(seen.then(newest, listing))

    def commits_after(self, known: Snapshot, width: int) -> Sequence[LogBody]:
        """Returns the commits after this snapshot, against which a writer has lost."""
        listing = list_from(
            self._store, self._names, known.version + 1, width, unread=known.version + 1
        )
        check_one_width(listing.widths | {width})
        return self._bodies(known, listing)

    def kept_since(self, version: int) -> frozenset[str]:
        """Returns every file of this version and of later ones, whether it was removed since or not.

        If the log does not reach back so far, files from the oldest version that can be opened are returned.
        """
        for last_try in (False, False, True):
            listing = list_log(self._store, self._names)
            first = min((v for v in reachable(listing) if v >= version), default=version)
            try:
                return self._touched_since(load(self._store, self._names, first)[0])
            except (LogCorruptedError, VersionNotFoundError, ObjectNotFoundError):
                if last_try:  # a cleanup does not explain that many failures
                    raise
        raise AssertionError

    def _touched_since(self, first: Snapshot) -> frozenset[str]:
        bare = replace(first, state=replace(first.state, tombstones=no_tombstones()))
        bodies = self.commits_after(first, self.writable().width)
        after = replay(bare, bodies, self._store.uri) if bodies else bare
        live, removed = after.column("key"), after.tombstones.column("key")
        return frozenset(live.to_pylist()).union(removed.to_pylist())

    def writable(self) -> Seen:
        """Returns what is known of the log.

        Raises ReadOnlyStoreError if it cannot be written.
        """
        if self._seen is None:
            self._reload()
        assert self._seen is not None
        check_one_width(self._seen.widths)
        return self._seen

    def learn(self, seen: Seen) -> Snapshot:
        """Keeps what was learned last, even if it is older: the log may have been replaced by a shorter one."""
        self._seen = seen
        return seen.snapshot

    def exchange(self, old: Snapshot, new: Snapshot) -> None:
        """Replaces the snapshot by an equal one that is stored in another way."""
        if self._seen is not None and self._seen.snapshot is old:
            self._seen = replace(self._seen, snapshot=new)

    def _reload(self) -> Snapshot:
        return self.learn(Seen.of(*load(self._store, self._names)))

    def _bodies(self, known: Snapshot, listing: Listing) -> list[LogBody]:
        wanted = range(known.version + 1, listing.newest + 1)
        return read_bodies(self._store, [find_commit(self._store, listing, v) for v in wanted])

    def _is_same(self, seen: Seen, listing: Listing) -> bool:
        """Returns True if the newest commit that is known is still in the log."""
        now = listing.commits.get(seen.snapshot.version, ())
        if seen.commit == now or not now:
            return bool(now)
        info = read_info(self._store, now[0])
        return (info.commit_id if info else None) == seen.snapshot.commit_id
