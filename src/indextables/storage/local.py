"""The store on a local file system, which keeps its promises through races, crashes and power cuts."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from pyarrow.fs import FileSystem, LocalFileSystem, SubTreeFileSystem

from indextables.errors import ObjectExistsError, ObjectNotFoundError, StorageError
from indextables.storage import durable
from indextables.storage.base import (
    ObjectMeta,
    check_key,
    check_new_key,
    check_range,
    failure,
    is_temporary,
    why_not_a_key,
)

# Without O_NONBLOCK, opening a named pipe in the table's directory would hang for ever.
_READ: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_DESCRIPTORS: Final = "/proc/self/fd"
_HAS_DESCRIPTORS: Final = os.path.isdir(_DESCRIPTORS)  # noqa: PTH112 - on Linux, where directories can be exchanged


class LocalStore:
    """A store whose objects are the regular files under a directory, which need not exist yet."""

    def __init__(self, root: str | Path) -> None:
        # The path is made absolute so that a later chdir does not move the table. Symbolic links are kept.
        self._root = Path(os.path.abspath(root))  # noqa: PTH100 - resolve() would follow links
        self._known: set[Path] = set()

    def __repr__(self) -> str:
        return f"LocalStore({self.uri!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return LocalStore, (str(self._root),)

    @property
    def uri(self) -> str:
        """Returns the absolute path of the root."""
        return str(self._root)

    def get(self, key: str) -> bytes:
        """Returns the whole file."""
        with _translated_read(key), open(self._descriptor(key), "rb", 0) as file:  # noqa: PTH123
            return file.readall()

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """Returns a range of the file."""
        check_range(start, length)
        with _translated_read(key), open(self._descriptor(key), "rb") as file:  # noqa: PTH123
            file.seek(start)
            return file.read(length)

    def head(self, key: str) -> ObjectMeta:
        """Returns size and time of the file."""
        with _translated_read(key):
            status = self._path(key).stat()
        if not stat.S_ISREG(status.st_mode):
            raise _not_found(key)
        return _meta(key, status)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        """Yields the files whose keys start with `prefix`, in byte order of their keys.

        Files that a key cannot name are left out: temporary files, names that are not UTF-8, pipes, and links
        to nowhere. Links to directories are followed unless they lead back to a directory above them.
        """
        for meta in self._walk(prefix, start_after or ""):
            if not is_temporary(meta.key):
                yield meta

    def stale_temporaries(self, *, modified_before_ms: int) -> Iterator[ObjectMeta]:
        """Yields temporary files of dead writers; younger files may belong to a writer at work."""
        for meta in self._walk("", ""):
            if is_temporary(meta.key) and meta.modified_ms < modified_before_ms:
                yield meta

    def put(self, key: str, data: bytes) -> None:
        """Writes or replaces the file, durable on return."""
        path = self._path(check_new_key(key))
        with _translated_write(key), self._temporary(path, data) as temporary:
            temporary.replace(path)
            durable.fsync_directory(path.parent)

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Creates the file, which appears as a whole and is durable on return."""
        path = self._path(check_new_key(key))
        with _translated_write(key):
            if os.path.lexists(path):  # this only saves work; the link below decides
                raise _exists(key)
            with self._temporary(path, data) as temporary:
                try:
                    durable.publish_exclusively(temporary, path)
                except FileExistsError as error:
                    raise _exists(key) from error
                durable.fsync_directory(path.parent)

    def delete(self, key: str) -> None:
        """Deletes the file; of a link, the link itself and never what it leads to."""
        path = self._path(key)
        with suppress(ObjectNotFoundError), _translated_read(key):
            self._refuse_outside(path, key)
            path.unlink()

    def sync_files(self, keys: Iterable[str]) -> None:
        """Brings the files, and every directory from theirs up to the root, onto the disk itself."""
        directories: set[Path] = set()
        for key in keys:
            path = self._path(key)
            with _translated_read(key):
                durable.fsync_file(path)
            directories.update(parent for parent in path.parents if parent.is_relative_to(self._root))
        with _translated_write(self.uri):
            for directory in sorted(directories, reverse=True):
                durable.fsync_directory(directory)
            if directories:
                self._make(self._root)  # the root exists: this syncs its name

    def try_directory(self, key: str) -> None:
        """Raises StorageError if a directory with this free name cannot be created; it is removed again."""
        path = self._path(check_new_key(key))
        with _translated_write(key):
            path.mkdir(parents=True)
            path.rmdir()  # not the ones above it: another writer may be about to use them

    def filesystem(self) -> FileSystem:
        """Returns Arrow's own local file system below the root, which reads without Python."""
        return SubTreeFileSystem(str(self._root), LocalFileSystem())

    @contextmanager
    def held(self, directory: str) -> Iterator[LocalStore]:
        """Yields this store with a directory held: an exchange of names does not change where its keys lead."""
        try:
            descriptor = os.open(self._path(directory), _DIRECTORY) if _HAS_DESCRIPTORS else None
        except OSError:
            descriptor = None  # it is not there, and has nothing to hold
        if descriptor is None:
            yield self
            return
        try:
            yield _HoldingStore(self._root, directory, descriptor)
        finally:
            os.close(descriptor)

    def _path(self, key: str) -> Path:
        return self._root.joinpath(*check_key(key).split("/"))

    def _text(self, key: str) -> str:
        return f"{self._root}/{check_key(key)}"

    def _descriptor(self, key: str) -> int:
        # Making a Path would take longer than the system call.
        descriptor = os.open(self._text(key), _READ)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise FileNotFoundError
        return descriptor

    @contextmanager
    def _temporary(self, path: Path, data: bytes) -> Iterator[Path]:
        self._make(path.parent)
        try:
            temporary = durable.write_temporary(path.parent, data)
        except FileNotFoundError:
            # The directory was empty, and somebody has removed it.
            self._known.discard(path.parent)
            self._make(path.parent)
            temporary = durable.write_temporary(path.parent, data)
        try:
            yield temporary
        finally:
            with suppress(OSError):
                temporary.unlink()

    def _make(self, directory: Path) -> None:
        if directory not in self._known:
            durable.make_directories(directory, self._root)
            self._known.add(directory)

    def _refuse_outside(self, path: Path, key: str) -> None:
        """Raises StorageError for a file that a linked directory puts outside the table."""
        parent, root = path.parent.resolve(), self._root.resolve()
        if not parent.is_relative_to(root):
            raise StorageError(
                f"{key!r} is outside the table, as a symbolic link leads to {str(parent)!r}",
                hint="delete the file there yourself if it is not needed",
                key=key,
            )

    def _walk(self, prefix: str, after: str) -> Iterator[ObjectMeta]:
        parent, slash, _ = prefix.rpartition("/")
        start = self._path(parent) if slash else self._root
        with _translated_read(prefix):
            yield from _descend(start, parent + slash, prefix, after, frozenset())


class _HoldingStore(LocalStore):
    """A store that finds one of its directories by an open descriptor instead of by its name."""

    def __init__(self, root: Path, directory: str, descriptor: int) -> None:
        super().__init__(root)
        self._prefix = f"{directory}/"
        self._open = f"{_DESCRIPTORS}/{descriptor}"
        self._known.add(Path(self._open))  # it exists: there is nothing to make

    def _path(self, key: str) -> Path:
        return Path(self._text(key))

    def _text(self, key: str) -> str:
        if key + "/" == self._prefix:
            return self._open
        if check_key(key).startswith(self._prefix):
            return f"{self._open}/{key.removeprefix(self._prefix)}"
        return super()._text(key)

    def _make(self, directory: Path) -> None:
        if directory in self._known:
            return
        if directory.is_relative_to(self._open):
            durable.make_directories(directory, Path(self._open))
        else:
            super()._make(directory)


def _descend(
    path: Path, base: str, prefix: str, after: str, above: frozenset[tuple[int, int]]
) -> Iterator[ObjectMeta]:
    """Yields files below `base` in byte order of keys, so a directory sorts as 'name/', after 'name-' and 'name.'."""
    with ExitStack() as stack:
        try:
            here = _held(path, stack)
            status = os.stat(here)  # noqa: PTH116 - a descriptor has no Path
            entries = {entry.name + "/" * entry.is_dir(): entry for entry in os.scandir(here)}
        except (FileNotFoundError, NotADirectoryError):
            return  # it was removed since its parent was read, or never existed
        identity = (status.st_dev, status.st_ino)
        if identity in above:
            return
        for name in sorted(entries):
            key = base + name
            if not key.startswith(prefix) or why_not_a_key(name.removesuffix("/")):
                continue
            if name.endswith("/"):
                if after <= key or after.startswith(key):
                    yield from _descend(path / name, key, prefix, after, above | {identity})
            elif key > after:
                with suppress(FileNotFoundError):
                    file_status = entries[name].stat()
                    if stat.S_ISREG(file_status.st_mode):
                        yield _meta(key, file_status)


def _held(path: Path, stack: ExitStack) -> int | Path:
    """Returns the descriptor of a directory, which stays the same even if another directory gets its name."""
    if os.scandir not in os.supports_fd:
        return path
    descriptor = os.open(path, _DIRECTORY)
    stack.callback(os.close, descriptor)
    return descriptor


def _meta(key: str, status: os.stat_result) -> ObjectMeta:
    return ObjectMeta(key, status.st_size, status.st_mtime_ns // 1_000_000)


def _not_found(key: str) -> ObjectNotFoundError:
    return ObjectNotFoundError(f"there is no object {key!r}", key=key)


def _exists(key: str) -> ObjectExistsError:
    return ObjectExistsError(f"there is already an object {key!r}", key=key)


@contextmanager
def _translated_read(key: str) -> Iterator[None]:
    """Raises ObjectNotFoundError if a path leads to no file, and other errors as StorageError."""
    try:
        yield
    except StorageError:
        raise
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise _not_found(key) from error
    except OSError as error:
        raise _failed(error, key) from error


@contextmanager
def _translated_write(key: str) -> Iterator[None]:
    """Raises every error as StorageError, since a directory may be missing, but not an object."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise _failed(error, key) from error


def _failed(error: OSError, key: str) -> StorageError:
    where = error.filename if isinstance(error.filename, str) else key or "the table's directory"
    return failure(f"{where!r}: {error.strerror or error}", error, key)
