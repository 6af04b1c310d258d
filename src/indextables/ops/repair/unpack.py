"""The text of a log file in pieces of whole lines: a file of any size, plain or gzip, in little memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from indextables.log.wire.files import inflated
from indextables.log.wire.names import LogFile
from indextables.storage import LogStore

AT_ONCE: Final = 16 << 20


def read_chunks(store: LogStore, file: LogFile, at_once: int = AT_ONCE) -> Iterator[bytes]:
    """All of the text, in order, cut only behind newlines; zlib.error or EOFError if it does not unpack."""
    held: list[bytes] = []
    for piece in inflated(_raw(store, file, at_once), at_once):
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield b"".join([*held, piece[:cut]])
            held = []
        held.append(piece[cut:])
    if rest := b"".join(held):
        yield rest


def _raw(store: LogStore, file: LogFile, at_once: int) -> Iterator[bytes]:
    if file.size <= at_once:
        yield store.get(file.key)
        return
    for start in range(0, file.size, at_once):
        yield store.get_range(file.key, start, at_once)
