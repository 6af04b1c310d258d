"""Stores that fail on purpose: at the n-th call, before or after its effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from indextables.errors import StorageError
from indextables.storage.base import LogStore, ObjectMeta
from indextables.storage.filesystem import filesystem_over

When = Literal["before", "after"]


class SimulatedCrash(BaseException):
    """The process died here: not an Exception, so that no handler of the library can catch it."""


class FaultyStore:
    """Counts every call to `inner`; the call number `fail_at` (from 0) raises StorageError.

    "before": nothing has happened. "after": the effect took place and only the answer was lost, as when a
    server stores an object and the connection breaks. Without `fail_at` it only records: run a scenario
    once, then once for each n in range(len(store.calls)).

        for n in range(calls_of(scenario)):
            store = FaultyStore(open_store(path), fail_at=n, when="after")

    Data files written through `filesystem()` go through the same counted calls. `only` restricts the
    counting to some methods. `times` makes that many calls in a row fail (None: all that follow).
    """

    def __init__(
        self,
        inner: LogStore,
        fail_at: int | None = None,
        when: When = "before",
        *,
        only: Iterable[str] | None = None,
        times: int | None = 1,
    ) -> None:
        self.inner = inner
        self.fail_at = fail_at
        self.when = when
        self.only = None if only is None else frozenset(only)
        self.times = times
        self.calls: list[tuple[str, str]] = []

    @property
    def uri(self) -> str:
        return self.inner.uri

    @property
    def failed(self) -> bool:
        """True once the fault has happened: a test that never reaches it proves nothing."""
        return self.fail_at is not None and len(self.calls) > self.fail_at

    def get(self, key: str) -> bytes:
        return self._call("get", key, lambda: self.inner.get(key))

    def get_range(self, key: str, start: int, length: int) -> bytes:
        return self._call("get_range", key, lambda: self.inner.get_range(key, start, length))

    def head(self, key: str) -> ObjectMeta:
        return self._call("head", key, lambda: self.inner.head(key))

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        return iter(
            self._call("list", prefix, lambda: [*self.inner.list(prefix, start_after=start_after)])
        )

    def put(self, key: str, data: bytes) -> None:
        self._call("put", key, lambda: self.inner.put(key, data))

    def put_if_absent(self, key: str, data: bytes) -> None:
        self._call("put_if_absent", key, lambda: self.inner.put_if_absent(key, data))

    def delete(self, key: str) -> None:
        self._call("delete", key, lambda: self.inner.delete(key))

    def sync_files(self, keys: Iterable[str]) -> None:
        names = [*keys]
        self._call("sync_files", ",".join(names), lambda: self.inner.sync_files(names))

    def stale_temporaries(self, *, modified_before_ms: int) -> Iterator[ObjectMeta]:
        found = self._call(
            "stale_temporaries",
            "",
            lambda: [*self.inner.stale_temporaries(modified_before_ms=modified_before_ms)],
        )
        return iter(found)

    def filesystem(self) -> Any:
        return filesystem_over(self)

    def _call(self, name: str, key: str, effect: Any) -> Any:
        if self.only is not None and name not in self.only:
            return effect()
        number = len(self.calls)
        self.calls.append((name, key))
        if not self._fails(number):
            return effect()
        if self.when == "after":
            effect()
        raise self._error(number, name, key)

    def _fails(self, number: int) -> bool:
        if self.fail_at is None or number < self.fail_at:
            return False
        return self.times is None or number < self.fail_at + self.times

    def _error(self, number: int, name: str, key: str) -> BaseException:
        return StorageError(f"injected fault: call {number}, {self.when} {name}({key!r})", key=key)


class CrashingStore(FaultyStore):
    """The same, but the process 'dies': SimulatedCrash at that call and at every call after it."""

    def __init__(
        self, inner: LogStore, fail_at: int | None = None, when: When = "before", **options: Any
    ) -> None:
        super().__init__(inner, fail_at, when, **options)
        self.dead = False

    def _call(self, name: str, key: str, effect: Any) -> Any:
        if self.dead:
            raise SimulatedCrash(f"{name}({key!r}) by a process that is dead")
        return super()._call(name, key, effect)

    def _error(self, number: int, name: str, key: str) -> BaseException:
        self.dead = True
        return SimulatedCrash(f"call {number}, {self.when} {name}({key!r})")
