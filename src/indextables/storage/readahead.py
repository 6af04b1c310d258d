"""A file over a store's `get_range` that turns many small reads into few requests."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from typing import Final

# A Parquet reader asks for 8 bytes, then the footer, then pieces of it: one request for all of that.
_BLOCK: Final = 64 * 1024
# A sequential reader's requests double up to this.
_LARGEST: Final = 8 * 1024 * 1024


class ReadAhead(io.RawIOBase):
    """Seekable, thread-safe reads of an object of known size; `fetch(start, length)` gets bytes."""

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
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def size(self) -> int:
        """The number of bytes in the object."""
        return self._size

    def tell(self) -> int:
        """Where the next read starts."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves the next read; behind the end is allowed and reads nothing."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"cannot seek to {base + offset}")
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Up to `size` bytes, all of them unless the object ends; everything left for -1 or None."""
        with self._lock:
            if self.closed:
                raise ValueError("read from a closed file")
            left = max(0, self._size - self._position)
            wanted = left if size is None or size < 0 else min(size, left)
            data = self._read_at(self._position, wanted) if wanted else b""
            self._position += len(data)
            return data

    def readall(self) -> bytes:
        """Everything from the current position on."""
        return self.read(-1)

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fills `buffer`; fewer bytes only at the end."""
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
            # the read may begin in front of the tail
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
