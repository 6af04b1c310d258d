"""The store in this process's memory, for tests; other stores are compared with it."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pyarrow.fs import FileSystem

from indextables.errors import ObjectExistsError, ObjectNotFoundError
from indextables.storage.base import ObjectMeta, check_key, check_new_key, check_range
from indextables.storage.filesystem import filesystem_over


@dataclass(frozen=True, slots=True)
class _Space:
    """The objects that all stores with one name share."""

    objects: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


_SPACES: dict[str, _Space] = {}
_SPACES_LOCK = threading.Lock()


class MemoryStore:
    """The store `memory://name/some/prefix`; all stores of a process with this name share their objects."""

    def __init__(self, location: str) -> None:
        self._location = location.strip("/")
        name, _, prefix = self._location.partition("/")
        self._prefix = f"{check_key(prefix)}/" if prefix else ""
        with _SPACES_LOCK:
            self._space = _SPACES.setdefault(name, _Space())

    def __repr__(self) -> str:
        return f"MemoryStore({self._location!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return MemoryStore, (self._location,)

    @property
    def uri(self) -> str:
        """Returns the root as `memory://name/some/prefix`."""
        return f"memory://{self._location}"

    def get(self, key: str) -> bytes:
        """Returns the whole object."""
        return self._find(key)[0]

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """Returns a range of the object."""
        check_range(start, length)
        return self._find(key)[0][start : start + length]

    def head(self, key: str) -> ObjectMeta:
        """Returns size and time of the object."""
        data, modified_ms = self._find(key)
        return ObjectMeta(key, len(data), modified_ms)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        """Returns the objects whose keys start with `prefix` at the time of the call, in byte order of keys."""
        first = self._prefix + prefix
        cut = len(self._prefix)
        with self._space.lock:
            keys = sorted(self._space.objects)
            # Texts sort as their UTF-8 bytes do.
            found = [
                ObjectMeta(key[cut:], len(self._space.objects[key][0]), self._space.objects[key][1])
                for key in keys[bisect_left(keys, first) :]
                if key.startswith(first) and key[cut:] > (start_after or "")
            ]
        return iter(found)

    def put(self, key: str, data: bytes) -> None:
        """Writes or replaces the object."""
        with self._space.lock:
            self._space.objects[self._full(check_new_key(key))] = (bytes(data), _now_ms())

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Creates the object; of several threads one succeeds."""
        full = self._full(check_new_key(key))
        with self._space.lock:
            if full in self._space.objects:
                raise ObjectExistsError(f"there is already an object {key!r}", key=key)
            self._space.objects[full] = (bytes(data), _now_ms())

    def delete(self, key: str) -> None:
        """Deletes the object."""
        with self._space.lock:
            self._space.objects.pop(self._full(key), None)

    def sync_files(self, keys: Iterable[str]) -> None:
        """Raises ObjectNotFoundError if an object is missing; there is nothing to sync."""
        for key in keys:
            self._find(key)

    def stale_temporaries(self, *, modified_before_ms: int) -> Iterator[ObjectMeta]:  # noqa: ARG002
        """Returns nothing, because a put here needs no temporary objects."""
        return iter(())

    def filesystem(self) -> FileSystem:
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
