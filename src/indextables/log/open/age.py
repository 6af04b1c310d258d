"""Which versions are old enough to be deleted, even if one of the clocks is wrong.

A commit has two times: the one that its writer wrote into it, which grows with the version, and the one that
the store shows for its file. A version must be old by both, and a clock that jumps must not make it old:

* If the store has a clock of its own, age by the store is counted up to the newest commit, so that the clock
  of this process does not matter.
* If it has none (a local disk), the time between two commits, or since the newest one, counts for half a
  retention at most, and a version must be one and a half retentions old. So one jump makes nothing old.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Final

from indextables.errors import VersionNotFoundError
from indextables.log.open.history import timestamp_of, written_at
from indextables.log.open.load import Listing, reachable
from indextables.storage.base import LogStore

LEEWAY_MS: Final = 24 * 60 * 60 * 1000
"""A time that is further ahead of this process's clock than this is not believed."""


@dataclass(frozen=True, slots=True)
class Expiry:
    """What is older than a retention."""

    version: int | None
    """The newest version that is older than the retention by both times; None if none is known to be."""
    stated: int | None
    """The newest version that is older than the retention by the times in the commits alone."""
    cutoff_ms: int
    """A file that belongs to no version is old if it is older than this time."""
    unseen_ms: int = 0
    """The time since the newest commit that does not count, but would if a commit were made now."""


@dataclass(frozen=True, slots=True)
class Age:
    """A retention, the time from which it is counted back, and whether commits are in order of time."""

    now_ms: int
    retention_ms: int
    ordered: bool

    def version(self, store: LogStore, listing: Listing) -> int | None:
        """Returns the newest version that is older than the retention by both times; None if there is none."""
        versions = reachable(listing)
        if not versions or self.retention_ms == 0:
            return versions[-1] if versions else None
        moments = [written_at(listing, version) for version in versions]
        try:
            if moments[-1] > self.now_ms + LEEWAY_MS:  # the store's clock cannot be right
                return self._by_commits(store, listing, versions)
            old = versions[: self._by_store(store, moments)]
            if old and timestamp_of(store, listing, old[-1]) > self.now_ms + LEEWAY_MS:
                return old[-1]  # a time in the future says nothing
            return self._by_commits(store, listing, old)
        except VersionNotFoundError:
            return None  # a commit has no time, so nobody can tell how old anything is

    def expiry(self, store: LogStore, listing: Listing) -> Expiry:
        """Returns what is older than the retention in this log."""
        versions, version = reachable(listing), self.version(store, listing)
        if not versions or self.retention_ms == 0:
            return Expiry(version, version, self.now_ms)
        try:
            stated = self._by_commits(store, listing, versions)
        except VersionNotFoundError:
            stated = None
        newest = written_at(listing, versions[-1])
        horizon = min(self.now_ms, newest) - self.retention_ms - self.retention_ms // 2
        return Expiry(version, stated, horizon, self._silence(newest) - self._counted(store, newest))

    def _silence(self, newest: int) -> int:
        return max(self.now_ms - newest, 0)

    def _counted(self, store: LogStore, newest: int) -> int:
        """Returns how much of the time since the newest commit counts."""
        return 0 if _has_own_clock(store) else min(self._silence(newest), self.retention_ms // 2)

    def _by_store(self, store: LogStore, moments: Sequence[int]) -> int:
        """Returns how many versions, from the oldest on, are old enough by the store's times."""
        half = self.retention_ms // 2
        own = _has_own_clock(store)
        most, needed = (
            (self.retention_ms, self.retention_ms) if own else (half, self.retention_ms + half)
        )
        age, left = self._counted(store, moments[-1]), len(moments) - 1
        # A version was there before the next one, so its time is at most the next one's.
        moments = list(accumulate(reversed(moments), min))[::-1]
        while left and age < needed:
            age += min(max(moments[left] - moments[left - 1], 0), most)
            left -= 1
        return left + 1 if age >= needed else 0

    def _by_commits(self, store: LogStore, listing: Listing, versions: Sequence[int]) -> int | None:
        """Returns the newest of these versions that is old by the time in its commit."""
        cutoff = self.now_ms - self.retention_ms

        def is_old(version: int) -> bool:
            return timestamp_of(store, listing, version) <= cutoff

        if self.ordered:
            found = versions[: bisect_left(versions, True, key=lambda v: not is_old(v))]
        else:
            found = list(takewhile(is_old, versions))
        return found[-1] if found else None


def _has_own_clock(store: LogStore) -> bool:
    """Returns True if the store, and not the machine that writes a file, sets the file's time."""
    return bool(getattr(store, "has_own_clock", False))
