"""A writer that has lost twice asks for its turn, and others let it pass: a courtesy, on which nothing relies.

The request is an object beside the commits whose name sorts behind theirs, so whoever lists the newest versions
sees it and needs no further question to the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from indextables.errors import StorageError
from indextables.storage.base import LogStore

_PATIENCE: Final = 10.0
"""Seconds after which whoever asked is taken for dead."""
_LOOK: Final = 0.05


@contextmanager
def asked(store: LogStore, key: str) -> Iterator[None]:
    """Others are asked to wait; the request is taken away at the end, however the commit went."""
    with suppress(StorageError):
        store.put(key, b"")
    try:
        yield
    finally:
        with suppress(StorageError):
            store.delete(key)


def let_pass(store: LogStore, turns: Sequence[str], pause: Callable[[float], None]) -> None:
    """Waits until these writers have had their turn, for some seconds at most; removes requests of dead ones."""
    waited = 0.0
    for key in turns:
        while _is_there(store, key):
            if waited >= _PATIENCE:
                with suppress(StorageError):
                    store.delete(key)
                break
            pause(_LOOK)
            waited += _LOOK


def _is_there(store: LogStore, key: str) -> bool:
    try:
        store.head(key)
    except StorageError:
        return False  # it has passed, or cannot be seen: nobody waits for that
    return True
