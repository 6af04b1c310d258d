"""Which text is a key. The same rule on every store, so that a table can move between them."""

from __future__ import annotations

import re
from typing import Final
from uuid import uuid4

from indextables.errors import StorageError

# Cc is refused as a whole: a newline or an escape sequence in a name makes log lines and terminals lie.
# A backslash separates directories on Windows. A lone surrogate has no UTF-8 form.
_FORBIDDEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\\\\\ud800-\udfff]")
_NOT_A_NAME: Final = frozenset({"", ".", ".."})
_TEMPORARY: Final = re.compile(r"\.indextables-[0-9a-f]{32}\.tmp")


def why_not_a_key(key: str) -> str | None:
    """None if this is a key, else what is wrong with it.

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
    """The key itself; StorageError before anything is touched if a store must not see it."""
    if reason := why_not_a_key(key):
        raise StorageError(
            f"{key!a} cannot be the key of an object: {reason}",
            hint="keys are relative, separated by '/', without '.', '..', backslashes or control characters",
            key=key,
        )
    return key


def check_new_key(key: str) -> str:
    """The same for an object to be written, which also must not look like a temporary one."""
    if is_temporary(check_key(key)):
        raise StorageError(f"{key!r} is the name of a temporary file; listings would hide it", key=key)
    return key


def check_range(start: int, length: int) -> None:
    """Refuses a range that starts before the object or runs backwards."""
    if start < 0 or length < 0:
        raise StorageError(f"no such range: {length} bytes from {start}", start=start, length=length)


def temporary_name() -> str:
    """A name that no listing shows and no other writer uses."""
    return f".indextables-{uuid4().hex}.tmp"


def is_temporary(key: str) -> bool:
    """True for names made by `temporary_name`, in any directory."""
    return _TEMPORARY.fullmatch(key.rpartition("/")[2]) is not None
