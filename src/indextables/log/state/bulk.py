"""Whole runs of lines parsed at once; single lines only where a run has one that is not as it should be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json as pj

from indextables.log.state.layout import Layout
from indextables.log.state.rows import Known
from indextables.log.wire.lenient import Place, dumps, parse
from indextables.log.wire.lines import Lines

_TINY: Final = 8
"""Up to so many lines, as in most commits, Python is faster than handing them to Arrow's threads."""
_FEW: Final = 64
"""Below this many lines, reading each with tolerance is cheaper than halving further."""
_CHUNK: Final = 1024
"""Lines that are objects of Python at one time."""
_AT_ONCE: Final = 64 << 20
"""Bytes for one call of the parser, which counts with 32 bits."""
_BLOCK: Final = 4 << 20
"""Bytes for one thread of the parser."""

Piece: TypeAlias = tuple[Any, list[str | None] | None]
"""An array of structs, and the unknown fields of each where there are any."""


@dataclass(frozen=True, slots=True)
class Body:
    """One file of the log: its lines, its place among the files read, and if a checksum vouches for it."""

    lines: Lines
    version: int
    position: int
    trusted: bool
    strays: tuple[tuple[int, str, Any], ...] = ()
    """(line, "add" or "remove", value) of file actions in a spelling that only the slow reader knows."""


@dataclass(frozen=True, slots=True)
class Run:
    """Lines of several files as one text, so that they are parsed in one call: line i is raw[at[i]:at[i+1]]."""

    raw: memoryview
    at: npt.NDArray[np.int64]
    bodies: Sequence[Body]
    body_of: npt.NDArray[np.int64]
    line_of: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.line_of)

    def text(self, row: int) -> bytes:
        """One line."""
        return bytes(self.raw[int(self.at[row]) : int(self.at[row + 1])])

    def place(self, row: int) -> Place:
        """Where a line came from."""
        return self.bodies[int(self.body_of[row])].lines.place(int(self.line_of[row]))


@dataclass(frozen=True, slots=True)
class Reader:
    """How lines of one kind are read: in bulk by their Arrow type, else one by one."""

    name: str
    layout: Layout
    read: Callable[[Any, Place], Known]
    mend: Callable[[dict[str, Any]], dict[str, Any]]


def gather(bodies: Sequence[Body], kind: int, name: str) -> Run:
    """All lines of one kind, those in an odd spelling included."""
    none = np.zeros(0, np.int64)
    texts: list[memoryview] = []
    lengths, owners, numbers = [np.zeros(1, np.int64)], [], []
    for owner, body in enumerate(bodies):
        found = body.lines.of(kind)
        if not len(found) and not body.strays:
            continue
        for first, last in _stretches(found):
            text = memoryview(body.lines.data)
            texts.append(text[int(body.lines.starts[first]) : int(body.lines.ends[last])])
        lengths.append(body.lines.ends[found] - body.lines.starts[found] + 1)
        strays = [(line, dumps({name: value})) for line, action, value in body.strays if action == name]
        if strays:
            texts.extend(memoryview(text) for _, text in strays)
            lengths.append(np.array([len(text) + 1 for _, text in strays], np.int64))
            found = np.concatenate([found, np.array([line for line, _ in strays], np.int64)])
        numbers.append(found)
        owners.append(np.full(len(found), owner, np.int64))
    if not numbers:
        return Run(memoryview(b""), lengths[0], bodies, none, none)
    # the one stretch of a large commit is not copied
    raw = texts[0] if len(texts) == 1 else memoryview(b"\n".join(texts))
    return Run(
        raw,
        np.minimum(np.cumsum(np.concatenate(lengths)), len(raw)),
        bodies,
        np.concatenate([none, *owners]),
        np.concatenate([none, *numbers]),
    )


def _stretches(found: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """First and last of each stretch of neighbouring lines: one slice, however many lines."""
    if len(found) and found[-1] - found[0] == len(found) - 1:  # as in nearly every file
        yield int(found[0]), int(found[-1])
        return
    breaks = np.flatnonzero(np.diff(found) != 1)
    firsts = np.concatenate([found[:1], found[breaks + 1]])
    lasts = np.concatenate([found[breaks], found[-1:]])
    yield from zip(firsts.tolist(), lasts.tolist(), strict=True)


def parse_run(run: Run, low: int, high: int, reader: Reader) -> Iterator[Piece]:
    """Arrays for lines low…high, in order; a stretch that does not parse is halved."""
    if low == high:
        return
    if high - low <= _TINY:
        yield _one_by_one(run, low, high, reader)
        return
    few = high - low <= _FEW
    if few or run.at[high] - run.at[low] <= _AT_ONCE:
        found = _bulk(run, low, high, reader)
        if found is not None:
            yield from ((array, None) for array in found)
            return
    if few or _are_odd(run, (low, (low + high) // 2, high - 1), reader):
        for start in range(low, high, _CHUNK):
            yield _one_by_one(run, start, min(start + _CHUNK, high), reader)
        return
    middle = (low + high) // 2
    yield from parse_run(run, low, middle, reader)
    yield from parse_run(run, middle, high, reader)


def _are_odd(run: Run, rows: Sequence[int], reader: Reader) -> bool:
    """True if none of these lines can be read in bulk: another writer's, whose lines are all alike."""
    return all(_bulk(run, row, row + 1, reader) is None for row in rows)


def _bulk(run: Run, low: int, high: int, reader: Reader) -> list[Any] | None:
    start, end = int(run.at[low]), int(run.at[high])
    trusted = all(body.trusted for body in run.bodies) or all(
        run.bodies[owner].trusted for owner in np.unique(run.body_of[low:high]).tolist()
    )
    # Arrow reads the token NaN as a number; a bound that is NaN would compare as if it meant something.
    text = run.raw[start:end]
    if not trusted and b"NaN" in bytes(text):
        return None
    return _arrow(pa.py_buffer(text), high - low, reader, trusted=trusted)


def _arrow(text: Any, lines: int, reader: Reader, *, trusted: bool) -> list[Any] | None:
    """One struct per line, or None unless every line is exactly of the type."""
    # Blocks are parsed side by side. No line of a few is cut by one; a longer line among many is not
    # read in bulk then, but among few.
    block = _BLOCK if lines > _FEW and text.size > _BLOCK else text.size + 1
    try:
        table = pj.read_json(
            pa.BufferReader(text),
            read_options=pj.ReadOptions(block_size=block, use_threads=block == _BLOCK),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema([(reader.name, reader.layout.kind)]),
                unexpected_field_behavior="error",
            ),
        )
        if not trusted:
            table.validate(full=True)  # the parser does not look if a text is UTF-8
    except pa.ArrowInvalid:
        return None
    arrays = table.column(0).chunks
    # two objects on one line are two rows to Arrow; to us that line is garbled
    sound = table.num_rows == lines and not any(a.field("path").null_count for a in arrays)
    return arrays if sound else None


def _one_by_one(run: Run, low: int, high: int, reader: Reader) -> Piece:
    known = [_read_line(run.text(row), run.place(row), reader) for row in range(low, high)]
    bodies, extras = [one.body for one in known], [one.extra for one in known]
    if high - low > _TINY and all(one.plain for one in known):
        text = b"\n".join(dumps({reader.name: body}) for body in bodies)
        found = _arrow(pa.py_buffer(text), len(bodies), reader, trusted=False)
        if found is not None:
            return pa.concat_arrays(found), extras
    return pa.array([reader.mend(body) for body in bodies], reader.layout.kind), extras


def _read_line(text: bytes, place: Place, reader: Reader) -> Known:
    value, plain = parse(text, place)
    others = [name for name, body in value.items() if name != reader.name and body is not None]
    if others:
        raise place.corrupted(f"two actions on one line: {reader.name!r} and {others[0]!r}")
    known = reader.read(value[reader.name], place)
    return known if plain else known._replace(plain=False)
