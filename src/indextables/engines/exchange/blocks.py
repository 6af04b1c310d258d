"""Blocks: how Presto and Trino write the values of one type into JSON, as base64 of a few encodings.

A block is the name of its encoding (length, then text), the number of its positions, and what the
encoding needs. Numbers are little-endian. Nulls are one bit per position, the first one on top.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from indextables.errors import PredicateError

Raw: TypeAlias = int | bytes | None
"""A position's value: a signed integer as wide as the encoding, bytes, or None for NULL."""

_WIDTHS: Final = {
    "BYTE_ARRAY": 1,
    "SHORT_ARRAY": 2,
    "INT_ARRAY": 4,
    "LONG_ARRAY": 8,
    "INT128_ARRAY": 16,
}


def encode_block(encoding: str, values: Sequence[Raw]) -> str:
    """The values as base64 text."""
    name = encoding.encode()
    head = struct.pack("<i", len(name)) + name + struct.pack("<i", len(values))
    if encoding == "VARIABLE_WIDTH":
        body = _encode_texts(values)
    else:
        width = _WIDTHS[encoding]
        numbers = b"".join(_number(value, width) for value in values if value is not None)
        body = _encode_nulls(values) + numbers
    return base64.b64encode(head + body).decode()


def decode_block(text: str) -> list[Raw]:
    """The values of a block; PredicateError if it is damaged, or written in an encoding we cannot read."""
    try:
        reader = _Bytes(base64.b64decode(text, validate=True))
        values = reader.block()
    except (struct.error, binascii.Error, UnicodeDecodeError, RecursionError) as error:
        raise PredicateError(
            f"a block of values is damaged: {error}", hint="pass it as the engine wrote it"
        ) from error
    if reader.at != len(reader.data):
        raise PredicateError(
            "a block of values has bytes left over", hint="pass it as the engine wrote it"
        )
    return values


def _number(value: Raw, width: int) -> bytes:
    assert isinstance(value, int)
    if width == 16:  # two longs, the high one first
        high, low = value >> 64, value & (2**64 - 1)
        return struct.pack("<qQ", high, low)
    return value.to_bytes(width, "little", signed=True)


def _encode_nulls(values: Sequence[Raw]) -> bytes:
    if None not in values:
        return b"\0"
    bits = bytearray((len(values) + 7) // 8)
    for i, value in enumerate(values):
        bits[i // 8] |= (value is None) << (7 - i % 8)
    return b"\1" + bytes(bits)


def _encode_texts(values: Sequence[Raw]) -> bytes:
    texts = [value if isinstance(value, bytes) else b"" for value in values]
    ends, end = [], 0
    for value in texts:
        end += len(value)
        ends.append(end)
    whole = b"".join(texts)
    return struct.pack(f"<{len(ends)}i", *ends) + _encode_nulls(values) + struct.pack("<i", end) + whole


@dataclass
class _Bytes:
    """A place in the bytes of a block."""

    data: bytes
    at: int = 0

    def take(self, length: int) -> bytes:
        if length < 0 or self.at + length > len(self.data):
            raise struct.error("it ends too early")
        self.at += length
        return self.data[self.at - length : self.at]

    def integer(self) -> int:
        found: int = struct.unpack("<i", self.take(4))[0]
        return found

    def block(self) -> list[Raw]:
        name = self.take(self.integer()).decode()
        count = self.integer()
        if count < 0:
            raise struct.error("it has a negative length")
        match name:
            case "RLE":
                return [value for value in self.block() for _ in range(count)]
            case "DICTIONARY":
                return self._dictionary(count)
            case "VARIABLE_WIDTH":
                return self._texts(count)
            case _ if name in _WIDTHS:
                return self._numbers(count, _WIDTHS[name])
            case _:
                raise PredicateError(
                    f"values in the encoding {name} cannot be read",
                    hint="leave the column out",
                    encoding=name,
                )

    def _dictionary(self, count: int) -> list[Raw]:
        values = self.block()
        indices = struct.unpack(f"<{count}i", self.take(4 * count))
        self.take(24)  # the identity of the dictionary
        return [values[i] for i in indices]

    def _nulls(self, count: int) -> list[bool]:
        if self.take(1) == b"\0":
            return [False] * count
        bits = self.take((count + 7) // 8)
        return [bool(bits[i // 8] >> (7 - i % 8) & 1) for i in range(count)]

    def _numbers(self, count: int, width: int) -> list[Raw]:
        nulls = self._nulls(count)
        return [None if is_null else self._number(width) for is_null in nulls]

    def _number(self, width: int) -> int:
        if width == 16:
            high, low = struct.unpack("<qQ", self.take(16))
            return int(high << 64 | low)
        return int.from_bytes(self.take(width), "little", signed=True)

    def _texts(self, count: int) -> list[Raw]:
        ends = struct.unpack(f"<{count}i", self.take(4 * count))
        nulls = self._nulls(count)
        whole = self.take(self.integer())
        starts = (0, *ends)
        pieces: Any = (whole[start:end] for start, end in zip(starts, ends, strict=False))
        return [None if is_null else piece for piece, is_null in zip(pieces, nulls, strict=True)]
