"""What a store must do for the log: a few calls with exact promises, and the rule for keys."""

from __future__ import annotations

import errno
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable
from uuid import uuid4

from pyarrow.fs import FileSystem

from indextables.errors import StorageError


@dataclass(frozen=True, slots=True)
class ObjectMeta:
    """What a listing says about one object."""

    key: str
    size: int
    modified_ms: int


@runtime_checkable
class LogStore(Protocol):
    """Objects under one root, the directory of a table, with keys such as `data/0-ab/part-0.parquet`.

    Keys are real names: relative, separated by '/', and never percent-encoded (see `why_not_a_key`). Every
    call may raise StorageError, and only ObjectNotFoundError means that an object is missing. Several
    threads may make calls at once.
    """

    @property
    def uri(self) -> str:
        """Returns the root as the user would write it, without a trailing slash."""
        ...

    def get(self, key: str) -> bytes:
        """Returns the whole object; raises ObjectNotFoundError if there is none."""
        ...

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """Returns `length` bytes from `start` on; fewer if the object ends before, none after its end."""
        ...

    def head(self, key: str) -> ObjectMeta:
        """Returns size and time of an object; raises ObjectNotFoundError if there is none."""
        ...

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        """Returns every object whose key starts with `prefix`, at any depth, in byte order of keys.

        Keys up to and including `start_after` are left out. A missing directory has no objects.
        """
        ...

    def put(self, key: str, data: bytes) -> None:
        """Writes or replaces an object; readers see the old bytes or the new ones, never a mixture."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Creates an object, which appears as a whole and is durable on return.

        Raises ObjectExistsError if there is one. That may be the caller's own object, because a client that
        repeats a request after a lost answer finds what its first attempt stored. Read the object back
        before believing the error.
        """
        ...

    def delete(self, key: str) -> None:
        """Deletes an object; it is no error if there is none."""
        ...

    def sync_files(self, keys: Iterable[str]) -> None:
        """Makes sure that these objects, and the directories that lead to them, survive a power cut.

        It is for files that were written through `filesystem()`, before the commit that names them.
        """
        ...

    def stale_temporaries(self, *, modified_before_ms: int) -> Iterator[ObjectMeta]:
        """Returns temporary objects that dead writers left behind, which `list` hides; they may be deleted."""
        ...

    def filesystem(self) -> FileSystem:
        """Returns the objects as an Arrow file system whose root is the store's root."""
        ...


@contextmanager
def held(store: LogStore, directory: str) -> Iterator[LogStore]:
    """Yields the store with one directory held: its keys lead there even if another one gets its name.

    A store that cannot do that, or does not have the directory, is yielded as it is.
    """
    hold = getattr(type(store), "held", None)  # not of something that the store only wraps
    with nullcontext(store) if hold is None else hold(store, directory) as here:
        yield here


# Which texts are keys. All stores have the same rule, so that a table can be moved between them.

# All control characters are refused: a newline or an escape sequence in a name falsifies logs and terminals.
# A backslash separates directories on Windows. A lone surrogate has no UTF-8 form.
_FORBIDDEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\\\\\ud800-\udfff]")
_NOT_A_NAME: Final = frozenset({"", ".", ".."})
_TEMPORARY: Final = re.compile(r"\.indextables-[0-9a-f]{32}\.tmp")


def why_not_a_key(key: str) -> str | None:
    """Returns what is wrong with a text as a key; None if it is one.

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
    """Returns the key; raises StorageError if it is not one, before a store sees it."""
    if reason := why_not_a_key(key):
        raise StorageError(
            f"{key!a} cannot be the key of an object: {reason}",
            hint="keys are relative paths with '/', without '.', '..', backslashes and control characters",
            key=key,
        )
    return key


def check_new_key(key: str) -> str:
    """Returns the key of an object to be written; raises StorageError if it is not one, or is a temporary name."""
    if is_temporary(check_key(key)):
        raise StorageError(
            f"{key!r} is the name of a temporary file, which listings hide",
            hint="choose another name",
            key=key,
        )
    return key


def folded_name(key: str) -> str:
    """Returns the same text for all keys that are one name on some file system.

    macOS, Windows and many network drives ignore case and the difference between the Unicode forms of a text.

    Examples:
        >>> folded_name("data/k=A/x") == folded_name("data/k=a/x")
        True
    """
    if key.isascii():
        return key.lower()
    plain = unicodedata.normalize("NFKD", key).upper().casefold()
    return unicodedata.normalize("NFKD", plain)


def check_range(start: int, length: int) -> None:
    """Raises StorageError for a range that starts before the object or has a negative length."""
    if start < 0 or length < 0:
        raise StorageError(
            f"there is no range of {length} bytes from {start}", start=start, length=length
        )


def temporary_name() -> str:
    """Returns a new name that listings hide."""
    return f".indextables-{uuid4().hex}.tmp"


def is_temporary(key: str) -> bool:
    """Returns True for names made by `temporary_name`, in any directory."""
    return _TEMPORARY.fullmatch(key.rpartition("/")[2]) is not None


# Errors of the operating system as StorageError, with advice.

_HINTS: Final = {
    errno.EACCES: "get permission to read the table's directory, and to write into it if you change the table",
    errno.ENOENT: "check the path: the directory cannot be created, or was removed in the meantime",
    errno.ENOTDIR: "check the path: one of its directories is a file",
    errno.EROFS: "the file system is mounted read-only",
    errno.ENOSPC: "free some space and try again; committed data is safe",
    errno.EDQUOT: "free some space and try again; committed data is safe",
}


def failure(what: str, error: Exception, key: str, hint: str | None = None) -> StorageError:
    """Returns an error that says what happened, with advice for the system's reason, else with `hint`."""
    number = getattr(error, "errno", None)
    return StorageError(what, hint=_HINTS.get(number or 0) or hint, key=key, errno=number)


@contextmanager
def translated_file_write(key: str) -> Iterator[None]:
    """Raises Arrow's errors while it writes this data file as StorageError."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        why = error.strerror or error
        raise failure(f"the data file {key!r} cannot be written: {why}", error, key) from error
