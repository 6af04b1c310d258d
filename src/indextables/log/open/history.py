"""What happened to the table, newest first, from the commits that are kept."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from indextables.errors import VersionNotFoundError
from indextables.log.open.load import Listing, find_commit, reachable
from indextables.log.wire.actions import CommitInfo
from indextables.log.wire.files import LogFile, read_info
from indextables.storage.base import LogStore


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One commit, as its writer described it."""

    version: int
    timestamp_ms: int | None
    operation: str | None
    parameters: Mapping[str, Any] = field(hash=False)
    metrics: Mapping[str, Any] = field(hash=False)
    commit_id: str | None
    read_version: int | None
    num_files: int | None
    size_in_bytes: int
    verified: bool
    """False for a commit without a checksum, of another writer."""


def history(store: LogStore, listing: Listing) -> Iterator[HistoryEntry]:
    """Yields the commits in the store, newest first; each is read when it is asked for."""
    for version in sorted(listing.commits, reverse=True):
        file = find_commit(store, listing, version)
        info = read_info(store, file) or CommitInfo()
        yield HistoryEntry(
            version=version,
            timestamp_ms=info.timestamp,
            operation=info.operation,
            parameters=info.parameters,
            metrics=info.metrics,
            commit_id=info.commit_id,
            read_version=info.read_version,
            num_files=info.num_files,
            size_in_bytes=file.size,
            verified=info.crc32 is not None,
        )


def version_at(
    store: LogStore, listing: Listing, timestamp_ms: int, *, ordered: bool, now_ms: int
) -> int:
    """Returns the newest version committed at or before this moment, by the commits' own clock.

    A commit from the future of `now_ms` was written by a clock that is ahead, and all that follow it have
    to be later still: of those the store says when they were made.
    `ordered`: every commit is from a writer that never lets time run backwards from one version to the
    next, so halving finds it. Otherwise all commits are asked.
    """
    versions = reachable(listing)

    def stated(version: int) -> int:
        return timestamp_of(store, listing, version)

    def is_by_then(version: int) -> bool:
        if stated(version) > now_ms:
            return _made_by(listing, versions, version) <= timestamp_ms
        return stated(version) <= timestamp_ms

    if ordered:
        count = bisect_left(versions, True, key=lambda v: stated(v) > timestamp_ms)
        if count < len(versions) and stated(versions[count]) > now_ms:
            count = bisect_left(versions, True, lo=count, key=lambda v: not is_by_then(v))
        found = versions[:count]
    else:
        found = [version for version in versions if is_by_then(version)]
    if not found:
        raise VersionNotFoundError(
            f"the history that is kept starts after {timestamp_ms} (milliseconds since 1970)",
            hint="history() lists the versions there are and their times",
            timestamp_ms=timestamp_ms,
        )
    return found[-1]


def _made_by(listing: Listing, versions: Sequence[int], version: int) -> int:
    """By when the store had this version: no later than any version after it."""
    return min(written_at(listing, later) for later in versions if later >= version)


def timestamp_of(store: LogStore, listing: Listing, version: int) -> int:
    """When a version was committed, by its writer; VersionNotFoundError if it does not say."""
    for file in _files(listing, version):
        info = read_info(store, file)
        if info is not None and info.timestamp is not None:
            return info.timestamp
    raise VersionNotFoundError(
        f"version {version} does not say when it was committed, so no time can be looked up",
        hint="ask for a version instead; the times of files prove nothing",
        version=version,
    )


def written_at(listing: Listing, version: int) -> int:
    """When the store received the file of a version, by the store's clock."""
    commits = listing.commits.get(version) or _files(listing, version)
    return commits[0].modified_ms


def _files(listing: Listing, version: int) -> list[LogFile]:
    of_checkpoint = [file for file in listing.checkpoints if file.version == version]
    return [*listing.commits.get(version, ()), *of_checkpoint]
