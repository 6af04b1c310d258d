"""A store on a file system that takes two spellings for one name, as those of macOS and Windows do."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from indextables.storage.memory import MemoryStore


def _name(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())


class FoldingStore(MemoryStore):
    """A directory or file keeps the spelling it was first made with, and is found under every other."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self._spelled: dict[tuple[str, ...], str] = {}

    def put(self, key: str, data: bytes) -> None:
        self._make(key)
        super().put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> None:
        self._make(key)
        super().put_if_absent(key, data)

    def _make(self, key: str) -> None:
        for path, segment in _segments(key):
            self._spelled.setdefault(path, segment)

    def _full(self, key: str) -> str:
        return super()._full("/".join(self._spelled.get(path, name) for path, name in _segments(key)))


def _segments(key: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each name of the path, and the folded path that leads to it."""
    path: tuple[str, ...] = ()
    for segment in key.split("/"):
        path = (*path, _name(segment))
        yield path, segment
