"""A writer that has lost twice asks for its turn, and others let it pass: a courtesy, on which nothing relies.

The request is an object beside the commits whose name sorts behind theirs, so whoever lists the newest versions
sees it and needs no further question to the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Self

from indextables.errors import StorageError
from indextables.log.wire.files import LogNames
from indextables.storage.base import LogStore

LOSSES: Final = 2
"""So often a writer loses before it asks for its turn."""
_PATIENCE: Final = 10.0
"""Seconds after which whoever asked is taken for dead."""
_LOOK: Final = 0.05


class Turn:
    """The request of one writer for one commit."""

    def __init__(self, store: LogStore, names: LogNames, commit_id: str) -> None:
        self._store = store
        self._key = names.turn(commit_id)
        self._is_asked = False

    def ask(self) -> None:
        """Puts the request into the log's directory, once."""
        if not self._is_asked:
            self._is_asked = True
            with suppress(StorageError):
                self._store.put(self._key, b"")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Takes the request away, however the commit went."""
        if self._is_asked:
            with suppress(StorageError):
                self._store.delete(self._key)


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
