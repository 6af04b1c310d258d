"""The lines of a file of the log and the kind of each, found without an object per line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import orjson

from indextables.errors import LogCorruptedError

# JSON of this library and of other writers. A value that is not JSON may cost a statistic, never a split.


@dataclass(frozen=True, slots=True)
class LinePosition:
    """A line of a file of the log, for messages."""

    file: str
    line: int

    def corrupted(self, reason: str) -> LogCorruptedError:
        """Returns an error that names this line."""
        return LogCorruptedError(
            f"{self.file}, line {self.line}: {reason}",
            hint="run REPAIR INDEXFILES TRANSACTION LOG, or `indextables check` to see every problem",
            file=self.file,
            line=self.line,
        )


def loads(text: bytes, position: LinePosition) -> object:
    """Returns the value of a line; NaN, lone surrogates and stray bytes are kept, for `is_clean` to find.

    Examples:
        >>> loads(b'{"min": NaN}', LinePosition("0.json", 1))
        {'min': nan}
    """
    return parse(text, position)[0]


def parse(text: bytes, position: LinePosition) -> tuple[object, bool]:
    """Returns the value of a line, and True if it is plain JSON, with clean texts and finite numbers.

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
        # surrogateescape turns half a UTF-8 character into lone surrogates, so that one test finds both
        decoded = text.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
        return json.loads(decoded, strict=False), False
    except json.JSONDecodeError as error:
        # The error's own text has a line number, too, which is always 1 here.
        raise position.corrupted(f"not JSON ({error.msg}, column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise position.corrupted(f"not JSON ({error})") from None


def dumps(value: object) -> bytes:
    """Returns compact JSON of anything that `loads` can return."""
    try:
        return orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):
        # orjson refuses a number of more than 64 bits, which `loads` keeps.
        return json.dumps(value, separators=(",", ":")).encode()


def is_clean(value: object) -> bool:
    """Returns True if no text in the value has a lone surrogate, which UTF-8 cannot hold.

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
"""For this many lines or fewer, looking at each is cheaper than setting up arrays for all."""
_WRITTEN: Final = re.compile(rb"\S[^\n]*")
# How a line begins if its writer's JSON is compact. Any other spelling is OTHER, which is slower but not lost.
_PREFIXES: Final = ((ADD, b'{"add":{'), (REMOVE, b'{"remove":{'))


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a file: line i is `data[starts[i]:ends[i]]`, without its newline.

    Messages count lines from 1.
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
        """Returns where a line is, for messages."""
        return LinePosition(self.file, int(index) + 1)

    def of(self, kind: int) -> npt.NDArray[np.int64]:
        """Returns the indices of all lines of a kind."""
        found: npt.NDArray[np.int64] = (self.kinds == kind).nonzero()[0]
        return found

    def others(self, *, but_last: bool = False) -> Iterator[tuple[int, str, object, bytes]]:
        """Yields (index, action, value, raw line) of every line of the kind OTHER."""
        indices = self.of(OTHER).tolist()
        for index in indices[:-1] if but_last else indices:
            raw, position = self.text(index), self.position(index)
            if not raw.strip():
                continue
            value = loads(raw, position)
            if not isinstance(value, dict) or not value:
                raise position.corrupted(
                    "not an action, which is an object with the action's name as key"
                )
            for name, body in value.items():
                yield index, name, body, raw if len(value) == 1 else dumps({name: body})


def find_lines(file: str, data: bytes) -> Lines:
    """Returns every line of the file with its kind; blank lines have the kind BLANK."""
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
    """Returns where the newlines are, found piece by piece, as a piece that fits the cache is fast."""
    pieces = [
        (buffer[at : at + _PIECE] == ord("\n")).nonzero()[0] + at
        for at in range(0, len(buffer), _PIECE)
    ]
    return pieces[0] if len(pieces) == 1 else np.concatenate([np.zeros(0, np.int64), *pieces])


def written_lines(data: bytes, first: int = 1) -> Iterator[tuple[int, bytes]]:
    """Yields (number, text) of every line that is not blank; numbers start at `first`."""
    number, counted = first, 0
    for found in _WRITTEN.finditer(data):
        start = data.rfind(b"\n", 0, found.start()) + 1
        number += data.count(b"\n", counted, start)
        counted = start
        yield number, data[start : found.end()]


def count_lines(data: bytes, end: int) -> int:
    """Returns the number of newlines before `end`, several times faster than `bytes.count`."""
    buffer = np.frombuffer(data, np.uint8)[:end]
    pieces = (buffer[at : at + _PIECE] for at in range(0, len(buffer), _PIECE))
    return sum(int(np.count_nonzero(piece == ord("\n"))) for piece in pieces)


def _starting_with(
    buffer: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    prefix: bytes,
) -> npt.NDArray[np.int64]:
    """Returns the lines that begin with `prefix`; comparing its third byte first rules out nearly all others."""
    likely: npt.NDArray[np.int64] = (ends - starts >= len(prefix)).nonzero()[0]
    likely = likely[buffer[starts[likely] + 2] == prefix[2]]
    if not len(likely):
        return likely
    windows = np.lib.stride_tricks.sliding_window_view(buffer, len(prefix))[starts[likely]]
    matches: npt.NDArray[np.bool_] = (windows == np.frombuffer(prefix, np.uint8)).all(axis=1)
    return likely[matches]
