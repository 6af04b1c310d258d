"""The system calls that make a local write survive a power cut, each with its trap."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from indextables.errors import ReadOnlyStoreError
from indextables.storage.base import temporary_name

_NO_HARD_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
_NO_SUCH_RENAME: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
_RENAME_NOREPLACE: Final = 1
_RENAME_EXCHANGE: Final = 2
_AT_FDCWD: Final = -100
_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)


def fsync_descriptor(descriptor: int) -> None:
    """Brings the bytes of an open file onto the disk itself."""
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415 - does not exist on Windows

        # On macOS fsync stops at the drive's volatile cache, but this call does not.
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def fsync_file(path: Path) -> None:
    """Brings the bytes of a closed file onto the disk itself."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fsync_descriptor(descriptor)
    finally:
        os.close(descriptor)


def fsync_directory(path: Path) -> None:
    """Brings a directory's entries onto the disk itself, as a synced file is lost without its name."""
    if os.name == "nt":
        return  # Windows has no such call, but NTFS journals its directories
    descriptor = os.open(path, _DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # EINVAL: some network file systems cannot sync a directory.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


def make_directories(path: Path, root: Path) -> None:
    """Creates a directory so that it, and those above it, survive a power cut.

    Directories between `root` and `path` are synced even if they exist already, because another writer may
    have created them a moment ago without having synced them yet.
    """
    above_root = _missing(root.parent)
    path.mkdir(parents=True, exist_ok=True)
    entry = path
    while entry != root:
        entry = entry.parent
        fsync_directory(entry)
    for parent in {root.parent, *(made.parent for made in above_root)}:
        try:
            fsync_directory(parent)
        except PermissionError:
            # The parent of an existing root may be inaccessible, but not one that was just written to.
            if above_root:
                raise


def _missing(path: Path) -> list[Path]:
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    return missing


def write_temporary(directory: Path, data: bytes) -> Path:
    """Writes these bytes to a temporary file that is on the disk itself, and returns its path."""
    path = directory / temporary_name()
    # 0o666 minus the umask, like every other file of the table; mkstemp's 0o600 would lock out readers.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o666)
    try:
        with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123 - a descriptor, not a path
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
            fsync_descriptor(descriptor)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def publish_exclusively(temporary: Path, final: Path) -> None:
    """Gives a temporary file its final name; raises FileExistsError if there is one, so one writer of two wins.

    The temporary name may stay as a second name of the file.
    """
    try:
        os.link(temporary, final)
    except FileExistsError:
        # NFS repeats a request after a lost answer, and then reports the success of the first one as a failure.
        # Nobody else links to this file, so a second link is the one made here.
        if temporary.stat().st_nlink != 2:
            raise
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        _rename_exclusively(temporary, final)


def _rename_exclusively(temporary: Path, final: Path) -> None:
    rename = _renameat2()
    code = errno.ENOSYS if rename is None else rename(temporary, final)
    if code in _NO_SUCH_RENAME:
        raise ReadOnlyStoreError(
            f"the file system of {str(final.parent)!r} has neither hard links nor an exclusive rename, "
            "so two writers could both believe that they committed",
            hint="keep the table on a local POSIX file system or in an object store; it can be read from here",
            path=str(final),
        )
    if code:
        raise OSError(code, os.strerror(code), str(final))


def exchange(one: Path, two: Path) -> bool:
    """Exchanges what two names lead to in one step; returns False if the system cannot do that."""
    rename = _renameat2()
    code = errno.ENOSYS if rename is None else rename(one, two, _RENAME_EXCHANGE)
    if code and code not in _NO_SUCH_RENAME:
        raise OSError(code, os.strerror(code), str(one), None, str(two))
    return code == 0


def rename_exclusively(source: Path, target: Path) -> None:
    """Renames a file or directory; raises FileExistsError if the new name is taken.

    Where the system has no exclusive rename, another process may take the name between check and rename.
    """
    rename = _renameat2()
    code = errno.ENOSYS if rename is None else rename(source, target, _RENAME_NOREPLACE)
    if code in _NO_SUCH_RENAME:
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        source.rename(target)
    elif code:
        raise OSError(code, os.strerror(code), str(source), None, str(target))


@cache
def _renameat2() -> Callable[..., int] | None:
    """Returns Linux's rename with flags, which returns an errno (0 if done); None on other systems."""
    if sys.platform != "linux":
        return None
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)

    def rename(source: Path, target: Path, flags: int = _RENAME_NOREPLACE) -> int:
        done = function(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), flags)
        return 0 if done == 0 else ctypes.get_errno()

    return rename
