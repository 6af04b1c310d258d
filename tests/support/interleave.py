"""Two real writers, one after the other inside one put: the second commits while the first is about to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from indextables.storage.base import LogStore, held


class InterleavedStore:
    """`inner`, except that `meanwhile` runs right before the first commit that goes through here."""

    def __init__(self, inner: LogStore, meanwhile: Callable[[], Any]) -> None:
        self._inner = inner
        self._meanwhile = [meanwhile]

    @property
    def happened(self) -> bool:
        """True once the other writer has run: a test in which it never does proves nothing."""
        return not self._meanwhile

    def put_if_absent(self, key: str, data: bytes) -> None:
        if self._meanwhile and key.startswith("_transaction_log/"):
            self._meanwhile.pop()()
        self._inner.put_if_absent(key, data)

    @contextmanager
    def held(self, directory: str) -> Iterator[Any]:
        with held(self._inner, directory) as inner:
            view = object.__new__(type(self))
            view.__dict__ = {**self.__dict__, "_inner": inner}
            yield view

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class SteppedStore(InterleavedStore):
    """`inner`, with one of the `steps` right before each attempt to commit, as long as there are some."""

    def __init__(self, inner: LogStore, *steps: Callable[[], Any]) -> None:
        self._inner = inner
        self._meanwhile = [*reversed(steps)]


class ForgetfulStore(InterleavedStore):
    """As `InterleavedStore`; what the other writer did is cleaned out of the log before it can be read."""

    def __init__(
        self, inner: LogStore, meanwhile: Callable[[], Any], clean_up: Callable[[], Any]
    ) -> None:
        super().__init__(inner, meanwhile)
        self._clean_up: Callable[[], Any] | None = clean_up

    @property
    def is_cleaned_up(self) -> bool:
        """True once the cleanup has run."""
        return self._clean_up is None

    def list(self, prefix: str, *, start_after: str | None = None) -> Any:
        if self.happened and self._clean_up is not None:
            run, self._clean_up = self._clean_up, None
            run()
        return self._inner.list(prefix, start_after=start_after)
