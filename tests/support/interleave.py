"""Two real writers, one after the other inside one put: the second commits while the first is about to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from indextables.storage.base import LogStore


class InterleavedStore:
    """`inner`, except that `meanwhile` runs right before the first commit that goes through here."""

    def __init__(self, inner: LogStore, meanwhile: Callable[[], Any]) -> None:
        self._inner = inner
        self._meanwhile: Callable[[], Any] | None = meanwhile

    @property
    def happened(self) -> bool:
        """True once the other writer has run: a test in which it never does proves nothing."""
        return self._meanwhile is None

    def put_if_absent(self, key: str, data: bytes) -> None:
        if self._meanwhile is not None and key.startswith("_transaction_log/"):
            run, self._meanwhile = self._meanwhile, None
            run()
        self._inner.put_if_absent(key, data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
