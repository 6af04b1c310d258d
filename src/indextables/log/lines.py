"""The lines of a log file and what each is about, found without making an object per line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from indextables.log.lenient import Place, dumps, loads

ADD: Final = 1
REMOVE: Final = 2
OTHER: Final = 0
BLANK: Final = -1
_PIECE: Final = 1 << 19
# What a writer of compact JSON begins such a line with. Any other spelling is OTHER: slower, never lost.
_PREFIXES: Final = ((ADD, b'{"add":{'), (REMOVE, b'{"remove":{'))


@dataclass(frozen=True, slots=True)
class Lines:
    """Line i of `data` is `data[starts[i]:ends[i]]`, without its newline; numbers in messages are i + 1."""

    file: str
    data: bytes
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int8]

    def text(self, index: int) -> bytes:
        """One line."""
        return self.data[int(self.starts[index]) : int(self.ends[index])]

    def place(self, index: int) -> Place:
        """One line, for messages."""
        return Place(self.file, int(index) + 1)

    def of(self, kind: int) -> npt.NDArray[np.int64]:
        """The indices of all lines of a kind."""
        return np.flatnonzero(self.kinds == kind)

    def others(self) -> Iterator[tuple[int, str, Any, bytes]]:
        """(index, action, value, raw line) of every line that is not plainly an add or a remove."""
        for index in self.of(OTHER).tolist():
            raw, place = self.text(index), self.place(index)
            if not raw.strip():
                continue
            value = loads(raw, place)
            if not isinstance(value, dict) or not value:
                raise place.corrupted("not an action: an object with the action's name was expected")
            for name, body in value.items():
                yield index, name, body, raw if len(value) == 1 else dumps({name: body})


def find_lines(file: str, data: bytes) -> Lines:
    """Every line of the file, blank ones marked as such."""
    buffer = np.frombuffer(data, np.uint8)
    newlines = _newlines(buffer)
    ends = np.append(newlines, len(data)) if not data.endswith(b"\n") else newlines
    starts = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
    kinds = np.full(len(ends), OTHER, np.int8)
    kinds[starts == ends] = BLANK
    for kind, prefix in _PREFIXES:
        kinds[_starting_with(buffer, starts, ends, prefix)] = kind
    return Lines(file, data, starts.astype(np.int64), ends.astype(np.int64), kinds)


def _newlines(buffer: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Where the newlines are, found piece by piece: what fits the processor's cache is fast."""
    pieces = [
        np.flatnonzero(buffer[at : at + _PIECE] == ord("\n")) + at
        for at in range(0, len(buffer), _PIECE)
    ]
    return np.concatenate(pieces) if pieces else np.zeros(0, np.int64)


def _starting_with(
    buffer: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    prefix: bytes,
) -> npt.NDArray[np.int64]:
    long_enough = np.flatnonzero(ends - starts >= len(prefix))
    windows = buffer[starts[long_enough, None] + np.arange(len(prefix))]
    matches: npt.NDArray[np.bool_] = (windows == np.frombuffer(prefix, np.uint8)).all(axis=1)
    return long_enough[matches]
