"""Machines with clocks of their own around one table, and a store that says when its files were written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from indextables.log.transaction_log import TransactionLog
from indextables.storage.base import LogStore, ObjectMeta
from support.logs import fresh_store

HOUR = 3600 * 1000
DAY = 24 * HOUR


class Clock:
    """A moment in milliseconds that only a test moves."""

    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


class ClockedStore:
    """`inner`, with the moment of each put of the log as its time, by the clock of the store."""

    def __init__(
        self,
        inner: LogStore,
        clock: Callable[[], int],
        times: dict[str, int],
        *,
        has_own_clock: bool = False,
    ) -> None:
        self._inner, self._clock, self._times = inner, clock, times
        self.has_own_clock = has_own_clock

    def put(self, key: str, data: bytes) -> None:
        self._inner.put(key, data)
        self._times[key] = self._clock()

    def put_if_absent(self, key: str, data: bytes) -> None:
        self._inner.put_if_absent(key, data)
        self._times[key] = self._clock()

    def head(self, key: str) -> ObjectMeta:
        return self._timed(self._inner.head(key))

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        return map(self._timed, self._inner.list(prefix, start_after=start_after))

    def _timed(self, meta: ObjectMeta) -> ObjectMeta:
        return replace(meta, modified_ms=self._times.get(meta.key, meta.modified_ms))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Machines:
    """One table in memory, and the true time; each machine's clock is off by as much as the test says.

    With `has_own_clock` the store itself says when a file came, and it is right; else the machine that writes
    it says so, as on a local disk.
    """

    def __init__(self, start: int, *, has_own_clock: bool) -> None:
        self.time = Clock(start)
        self.store = fresh_store()
        self._times: dict[str, int] = {}
        self._has_own_clock = has_own_clock

    def log(self, off_by: int = 0) -> TransactionLog:
        """The log as a machine sees it whose clock is off by this."""

        def now() -> int:
            return self.time() + off_by

        stamps = self.time if self._has_own_clock else now
        store = ClockedStore(self.store, stamps, self._times, has_own_clock=self._has_own_clock)
        return TransactionLog(store, now_ms=now)
