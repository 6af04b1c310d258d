"""A file being written to an object store: in parts while it grows, visible when it is closed."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any


class Upload(io.RawIOBase):
    """Obstore's writer as a Python file whose errors are ours."""

    def __init__(self, writer: Any, translated: Callable[[], AbstractContextManager[None]]) -> None:
        super().__init__()
        self._writer = writer
        self._translated = translated

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, data: Any) -> int:
        """All bytes, or an error."""
        # A copy: Arrow's buffer is of signed bytes, which obstore refuses, and may be reused by its owner.
        copied = bytes(data)
        with self._translated():
            self._writer.write(copied)
        return len(copied)

    def close(self) -> None:
        """The object is there when this returns, and only then."""
        if not self.closed:
            super().close()
            with self._translated():
                self._writer.close()

    def __del__(self) -> None:
        """An abandoned upload is dropped: the base class would close it, and half a file would appear."""
