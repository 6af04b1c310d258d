"""The last line of a file proves that the file is whole, or shows that it is not."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from indextables.core.types import StructType
from indextables.errors import LogCorruptedError
from indextables.log.wire.actions import Action, CommitInfo
from indextables.log.wire.codec import encode_action
from indextables.log.wire.decode import decode_action
from indextables.log.wire.inflate import inflated
from indextables.log.wire.lenient import Place, loads
from indextables.log.wire.lines import count_lines

_AT_ONCE: Final = 16 << 20
_TAIL: Final = 64
_MANY: Final = 1_000_000
_SHORTEST: Final = 8
"""Bytes of the shortest line with an action, its newline included."""


@dataclass(frozen=True, slots=True)
class Whole:
    """Every byte is there: the checksum of the trailer says so."""

    info: CommitInfo


@dataclass(frozen=True, slots=True)
class Torn:
    """Bytes are missing or changed; `line` is where that shows."""

    reason: str
    line: int
    has_lines: bool = True
    """False if it is no log at all, and none of its lines is worth a look."""


@dataclass(frozen=True, slots=True)
class Unverified:
    """Another writer's file: it may be whole, nothing proves it."""


Verdict: TypeAlias = Whole | Torn | Unverified


def seal(actions: Sequence[Action], info: CommitInfo, *, seq: int, schema: StructType) -> bytes:
    """The bytes of a commit: its actions, then the trailer that counts and checks them."""
    lines = [encode_action(action, seq=seq, schema=schema) for action in actions]
    body = b"".join(lines)
    sealed = replace(info, actions=len(lines), crc32=zlib.crc32(body))
    return body + encode_action(sealed, seq=seq, schema=schema)


def unpack(raw: bytes) -> bytes:
    """The text of a log file, whether it is stored plain, as gzip, or as gzip behind two marker bytes."""
    texts = list(inflated(iter([raw]), _AT_ONCE))
    return texts[0] if len(texts) == 1 else b"".join(texts)


def verify(data: bytes) -> Verdict:
    """Whole only if the last line is a trailer and its count and checksum fit all bytes before it."""
    if not data or data.isspace():
        return Torn("the file is empty", 1)
    end = _end(data)
    start = data.rfind(b"\n", 0, end) + 1
    line = count_lines(data, start) + 1
    if (blank := mostly_blank(len(data), line + len(data) - end)) is not None:
        return blank
    info = _trailer(data[start:end])
    if info is None:
        return Unverified()
    if info.crc32 != zlib.crc32(memoryview(data)[:start]):
        return Torn("the checksum in the last line does not fit the lines before it", line)
    if info.actions != line - 1:
        return Torn(f"the last line counts {info.actions} actions, there are {line - 1}", line)
    return Whole(info)


def mostly_blank(size: int, lines: int) -> Torn | None:
    """The verdict on a text that can hold no action in most of its many lines; None for any other."""
    if lines <= _MANY or size >= lines * _SHORTEST:
        return None
    return Torn(
        f"not a log: about {lines:,} lines in {size:,} bytes, most of them blank", 1, has_lines=False
    )


def _end(data: bytes) -> int:
    """Where the text of the last line ends; the file is not copied, it may be large."""
    tail = data[-_TAIL:]
    if text := tail.rstrip(b"\r\n"):
        return len(data) - len(tail) + len(text)
    return len(data.rstrip(b"\r\n"))


def last_info(data: bytes) -> CommitInfo | None:
    """The commitInfo in the last line, whoever wrote it; nothing is checked."""
    end = _end(data)
    return _info(data[data.rfind(b"\n", 0, end) + 1 : end])


def _trailer(line: bytes) -> CommitInfo | None:
    """The commitInfo that ends a file of ours; None for any other line."""
    info = _info(line) if line.startswith(b'{"commitInfo":') else None
    return info if info is not None and info.crc32 is not None else None


def _info(line: bytes) -> CommitInfo | None:
    place = Place("", 0)
    try:
        value: Any = loads(line, place)
        info = decode_action("commitInfo", value.get("commitInfo"), line, place)
    except (LogCorruptedError, AttributeError):
        return None
    return info if isinstance(info, CommitInfo) else None
