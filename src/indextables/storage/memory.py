"""A store in this process's memory: the reference the others are compared with, and for tests."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from indextables.errors import ObjectExistsError, ObjectNotFoundError
from indextables.storage.base import ObjectMeta, check_key, check_new_key, check_range
from indextables.storage.filesystem import filesystem_over


@dataclass(frozen=True, slots=True)
class _Space:
    """What all stores with one name share."""

    objects: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


_SPACES: dict[str, _Space] = {}
_SPACES_LOCK = threading.Lock()


class MemoryStore:
    """`memory://name/some/prefix`: every store of one process with that name sees the same objects."""

    def __init__(self, location: str) -> None:
        self._location = location.strip("/")
        name, _, prefix = self._location.partition("/")
        self._prefix = f"{check_key(prefix)}/" if prefix else ""
        with _SPACES_LOCK:
            self._space = _SPACES.setdefault(name, _Space())

    def __repr__(self) -> str:
        return f"MemoryStore({self._location!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return MemoryStore, (self._location,)

    @property
    def uri(self) -> str:
        """`memory://name/some/prefix`."""
        return f"memory://{self._location}"

    def get(self, key: str) -> bytes:
        """Returns the whole object."""
        return self._find(key)[0]

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """Returns part of the object."""
        check_range(start, length)
        return self._find(key)[0][start : start + length]

    def head(self, key: str) -> ObjectMeta:
        """Returns size and time of the object."""
        data, modified_ms = self._find(key)
        return ObjectMeta(key, len(data), modified_ms)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        """Returns the objects at the moment of the call, in byte order of keys."""
        first = self._prefix + prefix
        cut = len(self._prefix)
        with self._space.lock:
            keys = sorted(self._space.objects)
            # code points sort as their UTF-8 bytes do, so comparing text is comparing bytes
            found = [
                ObjectMeta(key[cut:], len(self._space.objects[key][0]), self._space.objects[key][1])
                for key in keys[bisect_left(keys, first) :]
                if key.startswith(first) and key[cut:] > (start_after or "")
            ]
        return iter(found)

    def put(self, key: str, data: bytes) -> None:
        """Write or replace."""
        with self._space.lock:
            self._space.objects[self._full(check_new_key(key))] = (bytes(data), _now_ms())

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Exclusive among all threads; as durable as the process."""
        full = self._full(check_new_key(key))
        with self._space.lock:
            if full in self._space.objects:
                raise ObjectExistsError(f"there is already an object {key!r}", key=key)
            self._space.objects[full] = (bytes(data), _now_ms())

    def delete(self, key: str) -> None:
        """Gone afterwards."""
        with self._space.lock:
            self._space.objects.pop(self._full(key), None)

    def sync_files(self, keys: Iterable[str]) -> None:
        """Nothing to do, except to fail for an object that is not there."""
        for key in keys:
            self._find(key)

    def stale_temporaries(self, *, modified_before_ms: int) -> Iterator[ObjectMeta]:  # noqa: ARG002
        """Returns None: a put here has no middle."""
        return iter(())

    def filesystem(self) -> Any:
        """Returns the objects as an Arrow file system."""
        return filesystem_over(self)

    def _full(self, key: str) -> str:
        return self._prefix + check_key(key)

    def _find(self, key: str) -> tuple[bytes, int]:
        with self._space.lock:
            found = self._space.objects.get(self._full(key))
        if found is None:
            raise ObjectNotFoundError(f"there is no object {key!r}", key=key)
        return found


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
