"""Reads protocol buffers without their schema: numbered fields, in the order they come."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TypeAlias

Field: TypeAlias = tuple[int, int | bytes]
Message: TypeAlias = dict[int, list[int | bytes]]


def message(data: bytes) -> Message:
    """Returns the fields by number, each with all its values; ValueError if the bytes are no message."""
    found: Message = {}
    for number, value in _fields(data):
        found.setdefault(number, []).append(value)
    return found


def _fields(data: bytes) -> Iterator[Field]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        match key & 7:
            case 0:
                value, at = _varint(data, at)
                yield key >> 3, value
            case 1:
                yield key >> 3, _slice(data, at, 8)
                at += 8
            case 2:
                length, at = _varint(data, at)
                yield key >> 3, _slice(data, at, length)
                at += length
            case 5:
                yield key >> 3, _slice(data, at, 4)
                at += 4
            case kind:
                raise ValueError(f"unknown wire type {kind}")


def _slice(data: bytes, at: int, length: int) -> bytes:
    if at + length > len(data):
        raise ValueError("the message ends too early")
    return data[at : at + length]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("the message ends too early")


def signed(value: int) -> int:
    """Returns a varint as the 64-bit integer it stands for."""
    return value - 2**64 if value >= 2**63 else value


def double(data: bytes) -> float:
    """Returns a fixed field of eight or four bytes as a number."""
    return float(struct.unpack("<d" if len(data) == 8 else "<f", data)[0])
