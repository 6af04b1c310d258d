"""What the log needs from a store: a few calls, with exact promises."""

from __future__ import annotations

import errno
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable
from uuid import uuid4

from indextables.errors import StorageError


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
        """Returns the root as the user would write it, without a trailing slash."""
        ...

    def get(self, key: str) -> bytes:
        """Returns the whole object, or ObjectNotFoundError."""
        ...

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """`length` bytes from `start`; fewer only where the object ends, none behind its end."""
        ...

    def head(self, key: str) -> ObjectMeta:
        """Returns size and time without the bytes, or ObjectNotFoundError."""
        ...

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        """Returns every object whose key starts with `prefix`, at any depth, in byte order of keys.

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
        """Returns what writers that died left behind: hidden from `list`, safe to `delete`."""
        ...

    def filesystem(self) -> Any:
        """Returns the same objects as a `pyarrow.fs.FileSystem` whose root is this store's root."""
        ...


# Which text is a key. The same rule on every store, so that a table can move between them.

# Cc is refused as a whole: a newline or an escape sequence in a name makes log lines and terminals lie.
# A backslash separates directories on Windows. A lone surrogate has no UTF-8 form.
_FORBIDDEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\\\\\ud800-\udfff]")
_NOT_A_NAME: Final = frozenset({"", ".", ".."})
_TEMPORARY: Final = re.compile(r"\.indextables-[0-9a-f]{32}\.tmp")


def why_not_a_key(key: str) -> str | None:
    """Returns None if this is a key, else what is wrong with it.

    Examples:
        >>> why_not_a_key("data/day=2024-01-01/a b%.parquet")
        >>> why_not_a_key("data/../../etc/passwd")
        "it has a segment '..'"
    """
    if found := _FORBIDDEN.search(key):
        return f"it contains the character {found.group()!a}"
    for segment in key.split("/"):
        if segment in _NOT_A_NAME:
            return f"it has a segment {segment!r}"
    return None


def check_key(key: str) -> str:
    """Returns the key itself; StorageError before anything is touched if a store must not see it."""
    if reason := why_not_a_key(key):
        raise StorageError(
            f"{key!a} cannot be the key of an object: {reason}",
            hint="keys are relative, separated by '/', without '.', '..', backslashes or control characters",
            key=key,
        )
    return key


def check_new_key(key: str) -> str:
    """Returns the same for an object to be written, which also must not look like a temporary one."""
    if is_temporary(check_key(key)):
        raise StorageError(f"{key!r} is the name of a temporary file; listings would hide it", key=key)
    return key


def folded_name(key: str) -> str:
    """Returns the same text for all keys that some file system takes for one name.

    Case and the two Unicode forms of a text are no difference on macOS, Windows and many network drives.

    Examples:
        >>> folded_name("data/k=A/x") == folded_name("data/k=a/x")
        True
    """
    if key.isascii():
        return key.lower()
    plain = unicodedata.normalize("NFKD", key).upper().casefold()
    return unicodedata.normalize("NFKD", plain)


def check_range(start: int, length: int) -> None:
    """Refuses a range that starts before the object or runs backwards."""
    if start < 0 or length < 0:
        raise StorageError(f"no such range: {length} bytes from {start}", start=start, length=length)


def temporary_name() -> str:
    """Returns a name that no listing shows and no other writer uses."""
    return f".indextables-{uuid4().hex}.tmp"


def is_temporary(key: str) -> bool:
    """Returns True for names made by `temporary_name`, in any directory."""
    return _TEMPORARY.fullmatch(key.rpartition("/")[2]) is not None


# What the system says when a file cannot be read or written, as one error with advice.

_HINTS: Final = {
    errno.EACCES: "whoever runs this needs permission to read the table's directory, and to write it",
    errno.ENOENT: "no directory can be made there, or it was removed meanwhile: check the path",
    errno.ENOTDIR: "a part of this path is a file: name a directory below directories",
    errno.EROFS: "the file system is mounted read-only",
    errno.ENOSPC: "free some space and try again: what was committed is safe",
    errno.EDQUOT: "free some space and try again: what was committed is safe",
}


def failure(what: str, error: Exception, key: str, hint: str | None = None) -> StorageError:
    """`what` happened, as the system tells it.

    `hint` where the system's own reason has no better one.
    """
    number = getattr(error, "errno", None)
    return StorageError(what, hint=_HINTS.get(number or 0) or hint, key=key, errno=number)


@contextmanager
def writing_file(key: str) -> Iterator[None]:
    """Arrow's errors while it writes this data file, as ours."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        why = error.strerror or error
        raise failure(f"the data file {key!r} cannot be written: {why}", error, key) from error
