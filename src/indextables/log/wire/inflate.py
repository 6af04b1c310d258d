"""The text of a log file, however it is stored; what unpacks to more than any log would is refused."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

_GZIP: Final = b"\x1f\x8b"
_PREFIXED_GZIP: Final = b"\x01\x01" + _GZIP
_WINDOW: Final = 31
_SMALL: Final = 64 << 20
_DENSEST: Final = 200
"""Text beyond 64 MB that packs better than that is no log: its paths alone differ by more."""


def inflated(pieces: Iterator[bytes], at_once: int) -> Iterator[bytes]:
    """The text of a plain or gzip file, never more than `at_once` of it; zlib.error or EOFError if damaged."""
    first = next(pieces, b"")
    if first.startswith(_PREFIXED_GZIP):
        first = first[2:]
    stored = chain([first], pieces)
    return _members(stored, at_once) if first.startswith(_GZIP) else stored


def _members(pieces: Iterable[bytes], at_once: int) -> Iterator[bytes]:
    inflater = zlib.decompressobj(_WINDOW)
    packed = unpacked = 0
    for piece in pieces:
        packed += len(piece)
        left = piece
        while left.strip(b"\0"):  # some tools pad with zeros
            if inflater.eof:
                inflater = zlib.decompressobj(_WINDOW)
            text = inflater.decompress(left, at_once)
            unpacked += len(text)
            _check_density(packed, unpacked)
            yield text
            left = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
    if not inflater.eof:
        yield inflater.flush()
    if not inflater.eof:
        raise EOFError("it ends too early")


def _check_density(packed: int, unpacked: int) -> None:
    if unpacked > _SMALL and unpacked > _DENSEST * packed:
        raise zlib.error(
            f"{packed:,} bytes unpack to over {unpacked:,}, more than {_DENSEST} times as many: "
            "that is no log"
        )
