"""The text of a log file in pieces of whole lines: a file of any size, plain or gzip, in little memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from indextables.log.names import LogFile
from indextables.storage import LogStore

AT_ONCE: Final = 16 << 20
_GZIP: Final = b"\x1f\x8b"
_PREFIXED_GZIP: Final = b"\x01\x01" + _GZIP
_GZIP_WINDOW: Final = 31


def read_chunks(store: LogStore, file: LogFile, at_once: int = AT_ONCE) -> Iterator[bytes]:
    """All of the text, in order, cut only behind newlines; zlib.error or EOFError if it does not unpack."""
    held: list[bytes] = []
    for piece in _unpacked(_raw(store, file, at_once), at_once):
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


def _unpacked(pieces: Iterator[bytes], at_once: int) -> Iterator[bytes]:
    first = next(pieces, b"")
    if first.startswith(_PREFIXED_GZIP):
        first = first[2:]
    if first.startswith(_GZIP):
        yield from _inflated(_chained(first, pieces), at_once)
    else:
        yield from _chained(first, pieces)


def _chained(first: bytes, rest: Iterable[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _inflated(pieces: Iterator[bytes], at_once: int) -> Iterator[bytes]:
    """The text of all members; never more than `at_once` of it, however well it was packed."""
    inflater = zlib.decompressobj(_GZIP_WINDOW)
    for piece in pieces:
        left = piece
        while left.strip(b"\0"):  # some tools pad with zeros
            if inflater.eof:
                inflater = zlib.decompressobj(_GZIP_WINDOW)
            yield inflater.decompress(left, at_once)
            left = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
    if not inflater.eof:
        yield inflater.flush()
    if not inflater.eof:
        raise EOFError("it ends too early")
