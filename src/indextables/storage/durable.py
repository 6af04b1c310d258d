"""The few system calls that make a local write survive a power cut, each with its trap."""

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
    """The file's bytes are on the disk itself."""
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415 - does not exist on Windows

        # On macOS fsync stops at the drive's volatile cache; this one does not.
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def fsync_file(path: Path) -> None:
    """The same for a file that somebody else wrote and closed."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fsync_descriptor(descriptor)
    finally:
        os.close(descriptor)


def fsync_directory(path: Path) -> None:
    """The directory's entries survive a power cut: a synced file without its name is still lost."""
    if os.name == "nt":
        return  # Windows has no such call: NTFS journals its directories
    descriptor = os.open(path, _DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # EINVAL: this file system (some network ones) has no notion of syncing a directory.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


def make_directories(path: Path, root: Path) -> None:
    """`path` exists afterwards, and no power cut can take it or the way to it away.

    Directories between `root` and `path` are synced even when they exist already: another writer may
    have made them a moment ago and not have synced them yet.
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
            # The parent of a root that was there before us may be closed to us; one that we just
            # wrote into is not.
            if above_root:
                raise


def _missing(path: Path) -> list[Path]:
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    return missing


def write_temporary(directory: Path, data: bytes) -> Path:
    """Returns a hidden file in `directory` with these bytes, on the disk."""
    path = directory / temporary_name()
    # 0o666 minus the umask, as every other file of the table: mkstemp's 0o600 would lock out readers.
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
    """`final` appears whole, or FileExistsError; of two writers exactly one gets through.

    The temporary name may stay behind as a second name of the same file.
    """
    try:
        os.link(temporary, final)
    except FileExistsError:
        # NFS repeats a request whose answer was lost, and then reports our own success as a failure.
        # Nobody else links to this file, so a second link is ours.
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
            hint="keep the table on a local POSIX file system or in an object store; reading it here is fine",
            path=str(final),
        )
    if code:
        raise OSError(code, os.strerror(code), str(final))


def exchange(one: Path, two: Path) -> bool:
    """Returns each name leads to what the other led to, in one step.

    False where the system cannot do that.
    """
    rename = _renameat2()
    code = errno.ENOSYS if rename is None else rename(one, two, _RENAME_EXCHANGE)
    if code and code not in _NO_SUCH_RENAME:
        raise OSError(code, os.strerror(code), str(one), None, str(two))
    return code == 0


def rename_exclusively(source: Path, target: Path) -> None:
    """The name moves, and FileExistsError if the new one is taken.

    Without a gap wherever there is such a call.
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
    """Linux's rename with flags (by default: refuse to replace); returns an errno (0 = done)."""
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
