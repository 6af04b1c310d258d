"""What the log needs from a store: a few calls, with exact promises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class ObjectMeta:
    """What a listing tells about one object."""

    key: str
    size: int
    modified_ms: int


@runtime_checkable
class LogStore(Protocol):
    """Objects under one root (a table's directory), by keys such as `data/0-ab/part-0.parquet`.

    Keys are the real names: '/'-separated, relative, never percent-encoded by us (storage/keys.py
    has the exact rule). Every call may raise StorageError; only ObjectNotFoundError means that an
    object is missing. Every call may come from several threads at once.
    """

    @property
    def uri(self) -> str:
        """The root as the user would write it, without a trailing slash."""
        ...

    def get(self, key: str) -> bytes:
        """The whole object, or ObjectNotFoundError."""
        ...

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """`length` bytes from `start`; fewer only where the object ends, none behind its end."""
        ...

    def head(self, key: str) -> ObjectMeta:
        """Size and time without the bytes, or ObjectNotFoundError."""
        ...

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        """Every object whose key starts with `prefix`, at any depth, in byte order of keys.

        `start_after` leaves out keys up to and including it. A missing directory lists nothing.
        """
        ...

    def put(self, key: str, data: bytes) -> None:
        """Write or replace: readers see the old bytes or the new ones, never a mixture."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Exclusive, all-or-nothing visible and durable on return; else ObjectExistsError.

        ObjectExistsError may be about the caller's own object: a client that retries after a lost
        answer finds what its first attempt stored. Read the object back before believing it.
        """
        ...

    def delete(self, key: str) -> None:
        """Gone afterwards; deleting what is not there is fine."""
        ...

    def sync_files(self, keys: Iterable[str]) -> None:
        """These objects, and the directories that lead to them, survive a power cut from here on.

        For files written through `filesystem()`; call it before the commit that names them.
        """
        ...

    def stale_temporaries(self, *, modified_before_ms: int) -> Iterator[ObjectMeta]:
        """What writers that died left behind: hidden from `list`, safe to `delete`."""
        ...

    def filesystem(self) -> Any:
        """The same objects as a `pyarrow.fs.FileSystem` whose root is this store's root."""
        ...
