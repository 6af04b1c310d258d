"""The lines of a log file and what each is about, found without making an object per line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson

from indextables.errors import LogCorruptedError

# JSON as it should be, and as other writers leave it: a bad value costs a statistic, never a split.


@dataclass(frozen=True, slots=True)
class LinePosition:
    """A line of a log file, for messages."""

    file: str
    line: int

    def corrupted(self, reason: str) -> LogCorruptedError:
        """Returns the error that names this line."""
        return LogCorruptedError(
            f"{self.file}, line {self.line}: {reason}",
            hint="run REPAIR INDEXFILES TRANSACTION LOG, or `indextables check` to see every problem",
            file=self.file,
            line=self.line,
        )


def loads(text: bytes, position: LinePosition) -> Any:
    """Returns the value of a line; NaN, lone surrogates and stray bytes are let through for `is_clean` to find.

    Examples:
        >>> loads(b'{"min": NaN}', LinePosition("0.json", 1))
        {'min': nan}
    """
    return parse(text, position)[0]


def parse(text: bytes, position: LinePosition) -> tuple[Any, bool]:
    """Returns the same, and whether it is plain JSON: its texts are clean and its numbers finite.

    Examples:
        >>> (
        ...     parse(b'{"min": 1}', LinePosition("0.json", 1)),
        ...     parse(b'{"min": NaN}', LinePosition("0.json", 1)),
        ... )
        (({'min': 1}, True), ({'min': nan}, False))
    """
    try:
        return orjson.loads(text), True
    except orjson.JSONDecodeError:
        pass
    try:
        # surrogateescape turns half a UTF-8 character into lone surrogates: both are found by one test
        decoded = text.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
        return json.loads(decoded, strict=False), False
    except json.JSONDecodeError as error:
        # its own text counts lines too, and in here there is only one
        raise position.corrupted(f"not JSON ({error.msg}, column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise position.corrupted(f"not JSON ({error})") from None


def dumps(value: Any) -> bytes:
    """Compact JSON of everything `loads` can return."""
    try:
        return orjson.dumps(value)
    except (
        TypeError,
        orjson.JSONEncodeError,
    ):  # a number beyond 64 bits, which only the lenient reader keeps
        return json.dumps(value, separators=(",", ":")).encode()


def is_clean(value: Any) -> bool:
    """Returns True if every text in the value is text: no lone surrogate that UTF-8 cannot hold.

    Examples:
        >>> is_clean({"a": ["x"]}), is_clean({"a": [chr(0xD800)]})
        (True, False)
    """
    match value:
        case str():
            return value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value)
        case dict():
            return all(is_clean(k) and is_clean(v) for k, v in value.items())
        case list():
            return all(map(is_clean, value))
        case _:
            return True


ADD: Final = 1
REMOVE: Final = 2
OTHER: Final = 0
BLANK: Final = -1
_PIECE: Final = 1 << 19
_FEW: Final = 256
"""Up to so many lines, looking at each is cheaper than setting up arrays for all."""
_WRITTEN: Final = re.compile(rb"\S[^\n]*")
# What a writer of compact JSON begins such a line with. Any other spelling is OTHER: slower, never lost.
_PREFIXES: Final = ((ADD, b'{"add":{'), (REMOVE, b'{"remove":{'))


@dataclass(frozen=True, slots=True)
class Lines:
    """Line i of `data` is `data[starts[i]:ends[i]]`, without its newline.

    Numbers in messages are i + 1.
    """

    file: str
    data: bytes
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int8]

    def text(self, index: int) -> bytes:
        """Returns one line."""
        return self.data[int(self.starts[index]) : int(self.ends[index])]

    def position(self, index: int) -> LinePosition:
        """Returns one line, for messages."""
        return LinePosition(self.file, int(index) + 1)

    def of(self, kind: int) -> npt.NDArray[np.int64]:
        """Returns the indices of all lines of a kind."""
        found: npt.NDArray[np.int64] = (self.kinds == kind).nonzero()[0]
        return found

    def others(self, *, but_last: bool = False) -> Iterator[tuple[int, str, Any, bytes]]:
        """Yields (index, action, value, raw line) of every line that is not plainly an add or a remove."""
        indices = self.of(OTHER).tolist()
        for index in indices[:-1] if but_last else indices:
            raw, position = self.text(index), self.position(index)
            if not raw.strip():
                continue
            value = loads(raw, position)
            if not isinstance(value, dict) or not value:
                raise position.corrupted("not an action: an object with the action's name was expected")
            for name, body in value.items():
                yield index, name, body, raw if len(value) == 1 else dumps({name: body})


def find_lines(file: str, data: bytes) -> Lines:
    """Returns every line of the file, blank ones marked as such."""
    buffer = np.frombuffer(data, np.uint8)
    ends = _newlines(buffer)
    if not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    starts = np.zeros_like(ends)
    starts[1:] = ends[:-1] + 1
    if len(ends) <= _FEW:
        kinds = np.array(_kinds(data, starts.tolist()), np.int8)
    else:
        kinds = np.full(len(ends), OTHER, np.int8)
        for kind, prefix in _PREFIXES:
            kinds[_starting_with(buffer, starts, ends, prefix)] = kind
    kinds[starts == ends] = BLANK
    return Lines(file, data, starts, ends, kinds)


def _kinds(data: bytes, starts: list[int]) -> list[int]:
    begins, ((_, add), (_, remove)) = data.startswith, _PREFIXES
    return [ADD if begins(add, s) else REMOVE if begins(remove, s) else OTHER for s in starts]


def _newlines(buffer: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Returns where the newlines are, found piece by piece: what fits the processor's cache is fast."""
    pieces = [
        (buffer[at : at + _PIECE] == ord("\n")).nonzero()[0] + at
        for at in range(0, len(buffer), _PIECE)
    ]
    return pieces[0] if len(pieces) == 1 else np.concatenate([np.zeros(0, np.int64), *pieces])


def written_lines(data: bytes, first: int = 1) -> Iterator[tuple[int, bytes]]:
    """Yields (number, text) of every line that is not blank; the first line has the number `first`."""
    number, counted = first, 0
    for found in _WRITTEN.finditer(data):
        start = data.rfind(b"\n", 0, found.start()) + 1
        number += data.count(b"\n", counted, start)
        counted = start
        yield number, data[start : found.end()]


def count_lines(data: bytes, end: int) -> int:
    """Returns how many newlines there are before `end`.

    Several times faster than bytes count themselves.
    """
    buffer = np.frombuffer(data, np.uint8)[:end]
    pieces = (buffer[at : at + _PIECE] for at in range(0, len(buffer), _PIECE))
    return sum(int(np.count_nonzero(piece == ord("\n"))) for piece in pieces)


def _starting_with(
    buffer: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    prefix: bytes,
) -> npt.NDArray[np.int64]:
    """Returns the lines that begin so.

    The third byte tells nearly all others apart before the rest is looked at.
    """
    likely: npt.NDArray[np.int64] = (ends - starts >= len(prefix)).nonzero()[0]
    likely = likely[buffer[starts[likely] + 2] == prefix[2]]
    if not len(likely):
        return likely
    windows = np.lib.stride_tricks.sliding_window_view(buffer, len(prefix))[starts[likely]]
    matches: npt.NDArray[np.bool_] = (windows == np.frombuffer(prefix, np.uint8)).all(axis=1)
    return likely[matches]
