"""Log files to columns: whole runs of lines at once, single lines only where a run has a bad one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from indextables.errors import UnsafePathError
from indextables.log.lenient import Place, dumps, loads
from indextables.log.lines import ADD, REMOVE, Lines
from indextables.log.rows import add_row, is_finite, remove_row, with_sound_stats
from indextables.log.segments import FIELDS, TOMBSTONES, Shape
from indextables.storage.paths import file_key, file_keys

_FEW: Final = 64
"""Below this many lines, reading each with tolerance is cheaper than halving further."""
_AT_ONCE: Final = 64 << 20
"""Bytes for one call of the parser, which counts with 32 bits."""
_REMOVE: Final = pa.struct(
    [("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())]
)

Known: TypeAlias = tuple[dict[str, Any], str | None]
_Piece: TypeAlias = tuple[Any, list[str | None] | None]


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
class Rows:
    """Rows with the place of each in the log: a later action has a higher `order`."""

    table: Any
    order: npt.NDArray[np.int64]
    versions: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Run:
    """Lines of several files as one text, so that they are parsed in one call: line i is raw[at[i]:at[i+1]]."""

    raw: bytes
    at: npt.NDArray[np.int64]
    bodies: Sequence[Body]
    body_of: npt.NDArray[np.int64]
    line_of: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.line_of)

    def text(self, row: int) -> bytes:
        return self.raw[int(self.at[row]) : int(self.at[row + 1])]

    def place(self, row: int) -> Place:
        return self.bodies[int(self.body_of[row])].lines.place(int(self.line_of[row]))


def parse_adds(bodies: Sequence[Body], shape: Shape, table_uri: str) -> Rows:
    """Every add of these files as a row of a segment, typed by one schema."""

    def read(value: Any, place: Place) -> Known:
        return add_row(value, shape, place)

    def mend(body: dict[str, Any]) -> dict[str, Any]:
        return with_sound_stats(body, shape)

    run = _gather(bodies, ADD, "add")
    pieces = _parse(run, 0, len(run), _Reader("add", shape.wire(), read, mend))
    columns = shape.columns()
    names = [column for column, _, _ in FIELDS]
    tables = [_table(piece, names, columns) for piece in pieces]
    rows = _rows(run, pa.concat_tables([columns.empty_table(), *tables]), table_uri)
    return _with_defaults(rows)


def parse_removes(bodies: Sequence[Body], table_uri: str) -> Rows:
    """Every remove of these files as a row of the tombstones."""
    run = _gather(bodies, REMOVE, "remove")
    pieces = _parse(run, 0, len(run), _Reader("remove", _REMOVE, remove_row, dict))
    tables = [_table(piece, TOMBSTONES.names[:3], TOMBSTONES) for piece in pieces]
    return _rows(run, pa.concat_tables([TOMBSTONES.empty_table(), *tables]), table_uri)


@dataclass(frozen=True, slots=True)
class _Reader:
    """How lines of one kind are read: in bulk by their Arrow type, else one by one."""

    name: str
    wire: Any
    read: Callable[[Any, Place], Known]
    mend: Callable[[dict[str, Any]], dict[str, Any]]


def _gather(bodies: Sequence[Body], kind: int, name: str) -> _Run:
    texts: list[bytes] = []
    lengths, owners, numbers = [np.zeros(1, np.int64)], [], []
    for owner, body in enumerate(bodies):
        found = body.lines.of(kind)
        for first, last in _stretches(found):
            texts.append(body.lines.data[int(body.lines.starts[first]) : int(body.lines.ends[last])])
        lengths.append(body.lines.ends[found] - body.lines.starts[found] + 1)
        strays = [(line, dumps({name: value})) for line, action, value in body.strays if action == name]
        texts.extend(text for _, text in strays)
        lengths.append(np.array([len(text) + 1 for _, text in strays], np.int64))
        lines = np.concatenate([found, np.array([line for line, _ in strays], np.int64)])
        numbers.append(lines)
        owners.append(np.full(len(lines), owner, np.int64))
    empty = np.zeros(0, np.int64)
    raw = texts[0] if len(texts) == 1 else b"\n".join(texts)
    return _Run(
        raw,
        np.minimum(np.cumsum(np.concatenate(lengths)), len(raw)),
        bodies,
        np.concatenate([empty, *owners]),
        np.concatenate([empty, *numbers]),
    )


def _stretches(found: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """First and last of each stretch of neighbouring lines: one slice, however many lines."""
    breaks = np.flatnonzero(np.diff(found) != 1)
    firsts = np.concatenate([found[:1], found[breaks + 1]])
    lasts = np.concatenate([found[breaks], found[-1:]])
    yield from zip(firsts.tolist(), lasts.tolist(), strict=True)


def _parse(run: _Run, low: int, high: int, reader: _Reader) -> Iterator[_Piece]:
    """Arrays for lines low…high, in order; a stretch that does not parse is halved."""
    if low == high:
        return
    few = high - low <= _FEW
    if few or run.at[high] - run.at[low] <= _AT_ONCE:
        found = _bulk(run, low, high, reader)
        if found is not None:
            yield found, None
            return
    if few:
        yield _one_by_one(run, low, high, reader)
        return
    middle = (low + high) // 2
    yield from _parse(run, low, middle, reader)
    yield from _parse(run, middle, high, reader)


def _bulk(run: _Run, low: int, high: int, reader: _Reader) -> Any | None:
    start, end = int(run.at[low]), int(run.at[high])
    trusted = all(run.bodies[owner].trusted for owner in np.unique(run.body_of[low:high]).tolist())
    # Arrow reads the token NaN as a number; a bound that is NaN would compare as if it meant something.
    if not trusted and run.raw.find(b"NaN", start, end) >= 0:
        return None
    text = pa.py_buffer(memoryview(run.raw)[start:end])
    return _arrow(text, high - low, reader, trusted=trusted)


def _arrow(text: Any, lines: int, reader: _Reader, *, trusted: bool) -> Any | None:
    """One struct per line, or None unless every line is exactly of the type."""
    try:
        table = pj.read_json(
            pa.BufferReader(text),
            read_options=pj.ReadOptions(block_size=text.size + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema([(reader.name, reader.wire)]),
                unexpected_field_behavior="error",
            ),
        )
        if not trusted:
            table.validate(full=True)  # the parser does not look if a text is UTF-8
    except pa.ArrowInvalid:
        return None
    # two objects on one line are two rows to Arrow; to us that line is garbled
    array = pa.concat_arrays(table.column(0).chunks) if table.num_rows == lines else None
    return array if array is not None and array.field("path").null_count == 0 else None


def _one_by_one(run: _Run, low: int, high: int, reader: _Reader) -> _Piece:
    known = [_read_line(run.text(row), run.place(row), reader) for row in range(low, high)]
    bodies, extras = [body for body, _ in known], [extra for _, extra in known]
    if all(map(is_finite, bodies)):
        text = b"\n".join(dumps({reader.name: body}) for body in bodies)
        found = _arrow(pa.py_buffer(text), len(bodies), reader, trusted=False)
        if found is not None:
            return found, extras
    return pa.array([reader.mend(body) for body in bodies], reader.wire), extras


def _read_line(text: bytes, place: Place, reader: _Reader) -> Known:
    value = loads(text, place)
    others = [name for name, body in value.items() if name != reader.name and body is not None]
    if others:
        raise place.corrupted(f"two actions on one line: {reader.name!r} and {others[0]!r}")
    return reader.read(value[reader.name], place)


def _table(piece: _Piece, names: Sequence[str], columns: Any) -> Any:
    array, extras = piece
    extra = pa.array(extras, pa.string()) if extras else pa.nulls(len(array), pa.string())
    return pa.table([*array.flatten(), extra], schema=columns) if names else columns.empty_table()


def _rows(run: _Run, table: Any, table_uri: str) -> Rows:
    chunks = [_keys(chunk, run, table_uri) for chunk in _with_offsets(table.column("key"))]
    keys = pa.chunked_array(chunks, pa.string())
    versions = np.array([body.version for body in run.bodies], np.int64)
    positions = np.array([body.position for body in run.bodies], np.int64)
    return Rows(
        table.set_column(0, "key", keys),
        (positions[run.body_of] << 31) + run.line_of,
        versions[run.body_of],
    )


def _with_offsets(column: Any) -> Iterator[tuple[int, Any]]:
    offset = 0
    for chunk in column.chunks:
        yield offset, chunk
        offset += len(chunk)


def _keys(chunk: tuple[int, Any], run: _Run, table_uri: str) -> Any:
    offset, paths = chunk
    try:
        return file_keys(paths, table_uri)
    except UnsafePathError:
        for row, path in enumerate(paths.to_pylist()):
            _check(path, table_uri, run.place(offset + row))
        raise


def _check(path: str, table_uri: str, place: Place) -> None:
    try:
        file_key(path, table_uri)
    except UnsafePathError as error:
        raise UnsafePathError(
            f"{place.file}, line {place.line}: {error.message}",
            hint=error.hint,
            **{**error.facts, "file": place.file, "line": place.line},
        ) from None


def _with_defaults(rows: Rows) -> Rows:
    """Adds of other writers: `seq` is the commit's version, data changed, an empty partition is NULL."""
    table = rows.table
    for name, default in (("seq", pa.array(rows.versions)), ("data_change", pa.scalar(value=True))):
        if table.column(name).null_count:
            filled = pc.coalesce(table.column(name), default)
            table = table.set_column(table.schema.get_field_index(name), name, filled)
    return Rows(_without_empty_partitions(table), rows.order, rows.versions)


def _without_empty_partitions(table: Any) -> Any:
    """Spark stores an empty text as NULL, so here it is NULL too."""
    column = table.column("partition_values")
    kind = column.type
    if not any(
        pc.any(pc.equal(pc.struct_field(column, [i]), "")).as_py() for i in range(kind.num_fields)
    ):
        return table
    array = pa.concat_arrays(column.chunks)
    cleared = [
        pc.if_else(pc.equal(child, ""), pa.scalar(None, pa.string()), child)
        for child in array.flatten()
    ]
    values = pa.StructArray.from_arrays(cleared, fields=list(kind))
    return table.set_column(
        table.schema.get_field_index("partition_values"), "partition_values", values
    )
