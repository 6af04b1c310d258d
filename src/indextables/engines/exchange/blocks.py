"""Blocks: how Presto and Trino write the values of one type into JSON, as base64 of a few encodings.

A block is the name of its encoding (length, then text), the number of its positions, and what the
encoding needs. Numbers are little-endian. Nulls are one bit per position, the first one on top.

Nothing in a block says which of the two wrote it, and they differ. Presto writes where each text ends.
Trino writes the lengths of the texts that are not NULL, after their number, and also writes that number
before the integers of a block with nulls. Dictionaries have an identity after their indices, except in
newer versions. A block is read in every way, and believed if exactly one of them fits to the last byte.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, product
from typing import Final, Literal, NamedTuple, TypeAlias

from indextables.errors import PredicateError

Raw: TypeAlias = int | bytes | None
"""A position's value: a signed integer as wide as the encoding, bytes, or None for NULL."""
Form: TypeAlias = Literal["presto", "trino"]

_WIDTHS: Final = {
    "BYTE_ARRAY": 1,
    "SHORT_ARRAY": 2,
    "INT_ARRAY": 4,
    "LONG_ARRAY": 8,
    "INT128_ARRAY": 16,
}
_IDENTITY: Final = 24


class _Layout(NamedTuple):
    """What differs between systems and versions."""

    counts_integers: bool
    has_lengths: bool
    has_identity: bool


_LAYOUTS: Final = tuple(_Layout(*choice) for choice in product((True, False), repeat=3))


def encode_block(encoding: str, values: Sequence[Raw], form: Form = "trino") -> str:
    """Returns the values as base64 text."""
    name = encoding.encode()
    head = struct.pack("<i", len(name)) + name + struct.pack("<i", len(values))
    if encoding == "VARIABLE_WIDTH":
        body = _encode_texts(values, form)
    else:
        width = _WIDTHS[encoding]
        numbers = [_number(value, width) for value in values if value is not None]
        counted = form == "trino" and len(numbers) < len(values)
        count = struct.pack("<i", len(numbers)) if counted else b""
        body = _encode_nulls(values) + count + b"".join(numbers)
    return base64.b64encode(head + body).decode()


def decode_block(text: str) -> list[Raw]:
    """Returns the values of a block; PredicateError if it is damaged or written in an unknown way."""
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise _damaged(str(error)) from error
    found: list[list[Raw]] = []
    problem = "it has bytes left over"
    for layout in _LAYOUTS:
        reader = _Bytes(data, layout)
        try:
            values = reader.block()
        except (struct.error, UnicodeDecodeError, RecursionError) as error:
            problem = str(error)
            continue
        if reader.at == len(data) and values not in found:
            found.append(values)
    if len(found) > 1:
        raise _damaged("it can be read in two ways")
    if not found:
        raise _damaged(problem)
    return found[0]


def _damaged(problem: str) -> PredicateError:
    return PredicateError(
        f"a block of values is damaged: {problem}", hint="pass it as the engine wrote it"
    )


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


def _encode_texts(values: Sequence[Raw], form: Form) -> bytes:
    texts = [value if isinstance(value, bytes) else b"" for value in values]
    lengths = [len(value) for value in values if isinstance(value, bytes)]
    numbers = [len(lengths), *lengths] if form == "trino" else [*accumulate(map(len, texts))]
    whole = b"".join(texts)
    places = struct.pack(f"<{len(numbers)}i", *numbers)
    return places + _encode_nulls(values) + struct.pack("<i", len(whole)) + whole


@dataclass
class _Bytes:
    """A position in the bytes of a block."""

    data: bytes
    layout: _Layout
    at: int = 0

    def take(self, length: int) -> bytes:
        if length < 0 or self.at + length > len(self.data):
            raise struct.error("it ends too early")
        self.at += length
        return self.data[self.at - length : self.at]

    def integer(self) -> int:
        found: int = struct.unpack("<i", self.take(4))[0]
        return found

    def integers(self, count: int) -> tuple[int, ...]:
        found: tuple[int, ...] = struct.unpack(f"<{max(count, 0)}i", self.take(4 * count))
        return found

    def block(self) -> list[Raw]:
        name = self.take(self.integer()).decode()
        count = self.integer()
        if count < 0:
            raise struct.error("it has a negative length")
        match name:
            case "RLE":
                return self._repeated(count)
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

    def _repeated(self, count: int) -> list[Raw]:
        values = self.block()
        if len(values) != 1:
            raise struct.error("it repeats more than one value")
        return values * count

    def _dictionary(self, count: int) -> list[Raw]:
        values = self.block()
        indices = self.integers(count)
        if not all(0 <= i < len(values) for i in indices):
            raise struct.error("it points outside its dictionary")
        self.take(_IDENTITY if self.layout.has_identity else 0)
        return [values[i] for i in indices]

    def _nulls(self, count: int) -> list[bool]:
        if self.take(1) == b"\0":
            return [False] * count
        bits = self.take((count + 7) // 8)
        return [bool(bits[i // 8] >> (7 - i % 8) & 1) for i in range(count)]

    def _numbers(self, count: int, width: int) -> list[Raw]:
        nulls = self._nulls(count)
        if any(nulls) and self.layout.counts_integers and self.integer() != nulls.count(False):
            raise struct.error("its nulls do not fit its values")
        return [None if is_null else self._number(width) for is_null in nulls]

    def _number(self, width: int) -> int:
        if width == 16:
            high, low = struct.unpack("<qQ", self.take(16))
            return int(high << 64 | low)
        return int.from_bytes(self.take(width), "little", signed=True)

    def _texts(self, count: int) -> list[Raw]:
        filled = self.integer() if self.layout.has_lengths else count
        numbers = self.integers(filled)
        nulls = self._nulls(count)
        whole = self.take(self.integer())
        if self.layout.has_lengths:
            if filled != nulls.count(False):
                raise struct.error("its nulls do not fit its values")
            given = iter(numbers)
            lengths = [0 if is_null else next(given) for is_null in nulls]
        else:
            lengths = [end - start for start, end in zip((0, *numbers), numbers, strict=False)]
        return _cut(whole, lengths, nulls)


def _cut(whole: bytes, lengths: Sequence[int], nulls: Sequence[bool]) -> list[Raw]:
    """Returns the texts that stand side by side in `whole`; a NULL has no bytes."""
    taken = any(length for length, is_null in zip(lengths, nulls, strict=True) if is_null)
    if taken or min(lengths, default=0) < 0 or sum(lengths) != len(whole):
        raise struct.error("its texts do not fit its bytes")
    ends = [*accumulate(lengths)]
    pairs = zip((0, *ends), ends, nulls, strict=False)
    return [None if is_null else whole[start:end] for start, end, is_null in pairs]
