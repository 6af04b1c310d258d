"""Which versions are old enough to be given up, although any one of the clocks that say so may be wrong.

A commit has two times: the one its writer wrote into it, which grows with the version, and the one the
store shows for its file. What is to be deleted must be old by both, and a clock that jumps must not make
it so:

* Where the store has a clock of its own, age by the store is counted up to the newest commit, so the clock
  of this process has no part in it.
* Where it has none (a local disk), one silence between two commits, or since the newest one, counts for half
  a retention at most, and a version must be half a retention older. One jump of a clock makes nothing old.
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

"""A parent from further in the future than this was written by a clock that is ahead: say so."""
LEEWAY_MS: Final = 24 * 60 * 60 * 1000
"""A time that lies further ahead of this process's clock is believed by nobody."""


@dataclass(frozen=True, slots=True)
class Expiry:
    """What is older than one retention."""

    version: int | None
    """The newest version that was current a whole retention ago by every witness; None: not known."""
    stated: int | None
    """The same by the times in the commits alone."""
    cutoff_ms: int
    """What has no version and is older than this is old, too."""
    unseen_ms: int = 0
    """Time since the newest commit that does not count: a commit made now would let it count."""


@dataclass(frozen=True, slots=True)
class Age:
    """The retention, the moment it is counted from, and whether commits are in order of time."""

    now_ms: int
    retention_ms: int
    ordered: bool

    def version(self, store: LogStore, listing: Listing) -> int | None:
        """Returns the newest version that is older than the retention by every witness.

        None if none is.
        """
        versions = reachable(listing)
        if not versions or self.retention_ms == 0:
            return versions[-1] if versions else None
        moments = [written_at(listing, version) for version in versions]
        try:
            if moments[-1] > self.now_ms + LEEWAY_MS:  # the store's clock is not one to go by
                return self._by_commits(store, listing, versions)
            old = versions[: self._by_store(store, moments)]
            if old and timestamp_of(store, listing, old[-1]) > self.now_ms + LEEWAY_MS:
                return old[-1]  # what says it is from the future says nothing
            return self._by_commits(store, listing, old)
        except VersionNotFoundError:
            return None  # a commit without a time: nothing says how old anything is

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
        """Of the silence since the newest commit, what is believed."""
        return 0 if _has_own_clock(store) else min(self._silence(newest), self.retention_ms // 2)

    def _by_store(self, store: LogStore, moments: Sequence[int]) -> int:
        """Returns how many versions, from the oldest on, the store shows to be old enough."""
        half = self.retention_ms // 2
        own = _has_own_clock(store)
        most, needed = (
            (self.retention_ms, self.retention_ms) if own else (half, self.retention_ms + half)
        )
        age, left = self._counted(store, moments[-1]), len(moments) - 1
        # a version was there before the next one, so a time that is later than the next one's is not its own
        moments = list(accumulate(reversed(moments), min))[::-1]
        while left and age < needed:
            age += min(max(moments[left] - moments[left - 1], 0), most)
            left -= 1
        return left + 1 if age >= needed else 0

    def _by_commits(self, store: LogStore, listing: Listing, versions: Sequence[int]) -> int | None:
        """Returns the newest of these versions that is old by its own time."""
        cutoff = self.now_ms - self.retention_ms

        def is_old(version: int) -> bool:
            return timestamp_of(store, listing, version) <= cutoff

        if self.ordered:
            found = versions[: bisect_left(versions, True, key=lambda v: not is_old(v))]
        else:
            found = list(takewhile(is_old, versions))
        return found[-1] if found else None


def _has_own_clock(store: LogStore) -> bool:
    """Returns True if the times of files do not come from the machines that write them."""
    return bool(getattr(store, "has_own_clock", False))
