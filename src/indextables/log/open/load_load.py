"""Opening a log: the newest intact checkpoint, and every commit after it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
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
    find_commit,
    is_missing,
    list_from,
    list_log,
    read_hint,
)
from indextables.log.open.replay import replay
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.files import LogBody, read_body, read_info
from indextables.log.wire.lenient import Place
from indextables.log.wire.names import WIDTH, LogFile, LogNames
from indextables.storage.base import LogStore

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
