"""What happened to the table, newest first, from the commits that are kept."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from indextables.errors import VersionNotFoundError
from indextables.log.open.load import Listing, find_commit
from indextables.log.wire.actions import CommitInfo
from indextables.log.wire.files import read_info
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


def version_at(store: LogStore, listing: Listing, timestamp_ms: int, *, ordered: bool) -> int:
    """Returns the newest version committed at or before this moment, by the commits' own clock.

    `ordered`: every commit is from a writer that never lets time run backwards from one version to the
    next, so halving finds it. Otherwise all commits are asked.
    """
    versions = _reachable(listing)

    def is_by_then(version: int) -> bool:
        return _timestamp(store, listing, version) <= timestamp_ms

    if ordered:
        found = versions[: bisect_left(versions, True, key=lambda v: not is_by_then(v))]
    else:
        found = [version for version in versions if is_by_then(version)]
    if not found:
        raise VersionNotFoundError(
            f"the history that is kept starts after {timestamp_ms} (milliseconds since 1970)",
            hint="history() lists the versions there are and their times",
            timestamp_ms=timestamp_ms,
        )
    return found[-1]


def _reachable(listing: Listing) -> list[int]:
    """Versions that can be put together again: those from a checkpoint on, or all from the first."""
    checkpoints = [file.version for file in listing.checkpoints]
    first = 0 if 0 in listing.commits else min(checkpoints, default=0)
    return sorted(version for version in {*listing.commits, *checkpoints} if version >= first)


def _timestamp(store: LogStore, listing: Listing, version: int) -> int:
    of_checkpoint = [file for file in listing.checkpoints if file.version == version]
    files = [*listing.commits.get(version, ()), *of_checkpoint]
    for file in files:
        info = read_info(store, file)
        if info is not None and info.timestamp is not None:
            return info.timestamp
    raise VersionNotFoundError(
        f"version {version} does not say when it was committed, so no time can be looked up",
        hint="ask for a version instead; the times of files prove nothing",
        version=version,
    )
