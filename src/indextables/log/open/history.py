"""The history of a table: what each kept commit says of itself, and which version was current at a time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from indextables.display import html_table, human_moment, what_changed
from indextables.errors import VersionNotFoundError
from indextables.log.open.load import Listing, find_commit, reachable
from indextables.log.wire.actions import CommitInfo
from indextables.log.wire.files import LogFile, read_info
from indextables.storage.base import LogStore


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A commit as its writer described it."""

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
    """False for another writer's commit, which has no checksum."""


class History(list[HistoryEntry]):
    """The commits of a table, newest first; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        rows = [
            (
                entry.version,
                human_moment(entry.timestamp_ms) or "not known",
                entry.operation or "not said",
                what_changed(entry.metrics),
            )
            for entry in self
        ]
        return html_table("History", ("version", "committed", "operation", "what it did"), rows)


def history(store: LogStore, listing: Listing) -> Iterator[HistoryEntry]:
    """Yields the kept commits, newest first; each is read when it is needed."""
    states = {file.version: file for file in listing.checkpoints if file.is_state}
    for version in sorted({*states, *listing.commits}, reverse=True):
        file = states.get(version) or find_commit(store, listing, version)
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
    """Returns the newest version that was committed at or before this time, by the times in the commits.

    A commit with a time after `now_ms` was written by a clock that is ahead, and the times of all later ones
    follow it; for these the store's times are used. If `ordered`, every writer makes sure that times grow
    with the version, so a binary search finds the version; otherwise all commits are read.
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
            f"no version as old as {timestamp_ms} (milliseconds since 1970) is kept",
            hint="history() lists the versions and their times",
            timestamp_ms=timestamp_ms,
        )
    return found[-1]


def _made_by(listing: Listing, versions: Sequence[int], version: int) -> int:
    """Returns a time at which the store had this version: the earliest of its own and of all later ones."""
    return min(written_at(listing, later) for later in versions if later >= version)


def timestamp_of(store: LogStore, listing: Listing, version: int) -> int:
    """Returns when a version was committed, as its writer says.

    Raises VersionNotFoundError if the commit does not say it.
    """
    for file in _files(listing, version):
        info = read_info(store, file)
        if info is not None and info.timestamp is not None:
            return info.timestamp
    raise VersionNotFoundError(
        f"version {version} does not say when it was committed, so versions cannot be found by time",
        hint="ask for a version instead; the times of files are no proof",
        version=version,
    )


def written_at(listing: Listing, version: int) -> int:
    """Returns the store's time of the file that made a version."""
    commits = listing.commits.get(version) or _files(listing, version)
    return commits[0].modified_ms


def _files(listing: Listing, version: int) -> list[LogFile]:
    of_checkpoint = [file for file in listing.checkpoints if file.version == version]
    return [*listing.commits.get(version, ()), *of_checkpoint]
