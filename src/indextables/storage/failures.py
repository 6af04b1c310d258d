"""What the system says when a file cannot be read or written, as one error with advice."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from indextables.errors import StorageError

_HINTS: Final = {
    errno.EACCES: "whoever runs this needs permission to read the table's directory, and to write it",
    errno.ENOENT: "no directory can be made there, or it was removed meanwhile: check the path",
    errno.ENOTDIR: "a part of this path is a file: name a directory below directories",
    errno.EROFS: "the file system is mounted read-only",
    errno.ENOSPC: "free some space and try again: what was committed is safe",
    errno.EDQUOT: "free some space and try again: what was committed is safe",
}


def failure(what: str, error: Exception, key: str, hint: str | None = None) -> StorageError:
    """`what` happened, as the system tells it; `hint` where the system's own reason has no better one."""
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
