"""Makes an Arrow file system of any store, with which Parquet files are read and written."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from typing import Final

import pyarrow as pa
from pyarrow.fs import (
    FileInfo,
    FileSelector,
    FileSystem,
    FileSystemHandler,
    FileType,
    PyFileSystem,
)

from indextables.errors import ObjectNotFoundError, StorageError
from indextables.storage.base import LogStore, ObjectMeta

# Files that are read through a store's `get_range`, with few requests for many small reads.

_BLOCK: Final = 64 * 1024
"""The smallest request. A Parquet reader wants 8 bytes, then the footer: one request gets both."""
_LARGEST: Final = 8 * 1024 * 1024
"""The largest request; requests of a sequential reader grow up to this size."""


class ReadAhead(io.RawIOBase):
    """A seekable, thread-safe file over an object of known size, whose bytes `fetch(start, length)` gets."""

    def __init__(self, fetch: Callable[[int, int], bytes], size: int) -> None:
        super().__init__()
        self._fetch = fetch
        self._size = size
        self._position = 0
        self._lock = threading.RLock()
        self._tail: tuple[int, bytes] = (size, b"")
        self._window: tuple[int, bytes] = (0, b"")
        self._step = _BLOCK

    def readable(self) -> bool:
        """Returns True."""
        return True

    def seekable(self) -> bool:
        """Returns True."""
        return True

    def size(self) -> int:
        """Returns the number of bytes in the object."""
        return self._size

    def tell(self) -> int:
        """Returns where the next read starts."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Sets where the next read starts; after the end of the object it reads nothing."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"cannot seek to {base + offset}")
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Returns `size` bytes, or what is left if that is less or if `size` is -1 or None."""
        with self._lock:
            if self.closed:
                raise ValueError("read from a closed file")
            left = max(0, self._size - self._position)
            wanted = left if size is None or size < 0 else min(size, left)
            data = self._read_at(self._position, wanted) if wanted else b""
            self._position += len(data)
            return data

    def readall(self) -> bytes:
        """Returns everything from the current position on."""
        return self.read(-1)

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fills `buffer` as far as the object has bytes; returns their number."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _read_at(self, start: int, length: int) -> bytes:
        for first, data in (self._tail, self._window):
            if first <= start and start + length <= first + len(data):
                return data[start - first : start - first + length]
        if start + length > self._size - _BLOCK and length <= _BLOCK:
            first = max(0, self._size - _BLOCK)
            self._tail = (first, self._fetch(first, self._size - first))
            # the read may begin before the tail
            return self._slice_of_tail(start, length)
        return self._read_through_window(start, length)

    def _slice_of_tail(self, start: int, length: int) -> bytes:
        first, data = self._tail
        if start >= first:
            return data[start - first : start - first + length]
        return self._fetch(start, first - start) + data[: length - (first - start)]

    def _read_through_window(self, start: int, length: int) -> bytes:
        first, data = self._window
        sequential = first <= start <= first + len(data) and bool(data)
        self._step = min(self._step * 2, _LARGEST) if sequential else _BLOCK
        have = data[start - first :] if sequential else b""
        begin = start + len(have)
        fetched = self._fetch(begin, min(max(length - len(have), self._step), self._size - begin))
        if length > _LARGEST:
            # a whole column chunk: keep no second copy of it
            self._window = (begin + len(fetched), b"")
            return have + fetched
        self._window = (start, have + fetched)
        return self._window[1][:length]


OpenOutput = Callable[[str], io.IOBase]


def filesystem_over(store: LogStore, open_output: OpenOutput | None = None) -> FileSystem:
    """Returns a file system whose paths are the store's keys.

    Without `open_output`, a file is kept in memory while it is written and stored with one `put` when closed.
    """
    return PyFileSystem(StoreHandler(store, open_output or (lambda key: _PutOnClose(store, key))))


class _PutOnClose(io.BytesIO):
    """A file in memory that becomes an object when it is closed."""

    def __init__(self, store: LogStore, key: str) -> None:
        super().__init__()
        self._store, self._key = store, key

    def close(self) -> None:
        """Stores the object, once."""
        if not self.closed:
            data = self.getvalue()
            super().close()
            self._store.put(self._key, data)

    def __del__(self) -> None:
        """Drops an abandoned file; the base class would close it, so that an incomplete object would appear."""


class StoreHandler(FileSystemHandler):  # type: ignore[misc]  # pyarrow has no types
    """A store as Arrow calls it. Directories are not stored: one exists as long as a key leads through it."""

    def __init__(self, store: LogStore, open_output: OpenOutput) -> None:
        self._store = store
        self._open_output = open_output

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoreHandler) and self._store is other._store

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return id(self._store)

    def get_type_name(self) -> str:
        """Returns the name that Arrow prints."""
        return f"indextables+{type(self._store).__name__}"

    def normalize_path(self, path: str) -> str:
        """Returns the path without slashes at its ends."""
        return path.strip("/")

    def get_file_info(self, paths: list[str]) -> list[FileInfo]:
        """Returns one entry per path, which is `NotFound` if there is nothing."""
        return [self._info(path.strip("/")) for path in paths]

    def get_file_info_selector(self, selector: FileSelector) -> list[FileInfo]:
        """Returns the files below a directory, and the directories through which their keys lead."""
        base = selector.base_dir.strip("/")
        found = _entries(self._store, f"{base}/" if base else "", recursive=selector.recursive)
        if not found and base and not selector.allow_not_found:
            raise ObjectNotFoundError(f"there is no directory {base!r}", key=base)
        return found

    def create_dir(self, path: str, recursive: bool) -> None:
        """Does nothing, because directories are not stored."""

    def delete_dir(self, path: str) -> None:
        """Deletes every object below the directory."""
        self.delete_dir_contents(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = True) -> None:  # noqa: ARG002
        """Deletes every object below the directory, which is never missing because directories are not stored."""
        base = path.strip("/")
        if not base:
            raise StorageError("everything in the store would be deleted, which is refused")
        for meta in list(self._store.list(f"{base}/")):
            self._store.delete(meta.key)

    def delete_root_dir_contents(self) -> None:
        """Raises StorageError, because nothing in this library should ever do this."""
        raise StorageError("everything in the store would be deleted, which is refused")

    def delete_file(self, path: str) -> None:
        """Deletes one object."""
        self._store.head(path)
        self._store.delete(path)

    def move(self, src: str, dest: str) -> None:
        """Copies and then deletes the object, which is not atomic, as on every object store."""
        self.copy_file(src, dest)
        self._store.delete(src)

    def copy_file(self, src: str, dest: str) -> None:
        """Copies the object through memory."""
        self._store.put(dest, self._store.get(src))

    def open_input_stream(self, path: str) -> pa.PythonFile:
        """Returns the object as a stream."""
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> pa.PythonFile:
        """Returns the object for random access, with few requests."""
        size = self._store.head(path).size
        fetch = lambda start, length: self._store.get_range(path, start, length)  # noqa: E731
        return pa.PythonFile(ReadAhead(fetch, size), mode="r")

    def open_output_stream(self, path: str, metadata: object) -> pa.PythonFile:  # noqa: ARG002
        """Returns a stream to a new object, which appears when the stream is closed."""
        return pa.PythonFile(self._open_output(path), mode="w")

    def open_append_stream(self, path: str, metadata: object) -> pa.PythonFile:  # noqa: ARG002
        """Raises StorageError, because objects cannot be changed."""
        raise StorageError(f"cannot append to {path!r}: objects are written once", key=path)

    def _info(self, path: str) -> FileInfo:
        if not path:
            return FileInfo("", FileType.Directory)
        try:
            return _file_info(self._store.head(path))
        except ObjectNotFoundError:
            below = next(iter(self._store.list(f"{path}/")), None)
            return FileInfo(path, FileType.Directory if below else FileType.NotFound)


def _entries(store: LogStore, base: str, *, recursive: bool) -> list[FileInfo]:
    found, seen = [], set()
    for meta in store.list(base):
        segments = meta.key[len(base) :].split("/")
        for depth in range(1, len(segments) if recursive else min(2, len(segments))):
            directory = base + "/".join(segments[:depth])
            if directory not in seen:
                seen.add(directory)
                found.append(FileInfo(directory, FileType.Directory))
        if recursive or len(segments) == 1:
            found.append(_file_info(meta))
    return found


def _file_info(meta: ObjectMeta) -> FileInfo:
    return FileInfo(meta.key, FileType.File, size=meta.size, mtime_ns=meta.modified_ms * 1_000_000)
