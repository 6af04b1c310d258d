"""Parses adds and removes into columns, and turns every path into the key of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from indextables.errors import UnsafePathError
from indextables.log.state.rows import Fields, Known, add_row, remove_row, with_sound_stats
from indextables.log.state.segments import TOMBSTONES, Layout, Shape
from indextables.log.wire.lines import ADD, REMOVE, LinePosition, Lines, dumps, parse
from indextables.storage.location import file_key, file_keys

# Lines are parsed by Arrow, many at once. Those near a line that Arrow refuses are read one by one.

_TINY: Final = 8
"""For this many lines or fewer, as in most commits, Python is faster than starting Arrow's threads."""
_FEW: Final = 64
"""For this many lines or fewer, reading each with tolerance is cheaper than halving further."""
_CHUNK: Final = 1024
"""Lines that are Python objects at one time."""
_AT_ONCE: Final = 64 << 20
"""Bytes for one call of Arrow's parser, which counts with 32 bits."""
_BLOCK: Final = 4 << 20
"""Bytes for one thread of Arrow's parser."""

Piece: TypeAlias = tuple[pa.StructArray, list[str | None] | None]
"""An array of structs, and the unknown fields of each as JSON; None if there are none."""


@dataclass(frozen=True, slots=True)
class Body:
    """The lines of one file of the log."""

    lines: Lines
    version: int
    ordinal: int
    """The number of the file among those that are replayed, which decides which action is the last."""
    trusted: bool
    """True if a checksum proves that the file is as its writer wrote it."""
    strays: tuple[tuple[int, str, object], ...] = ()
    """(line, "add" or "remove", value) of file actions that are spelled in an unusual way."""
    committed_ms: int | None = None
    """When the commit was made, as it says itself; None for a checkpoint."""


@dataclass(frozen=True, slots=True)
class Run:
    """Lines of several files as one text, to be parsed in one call: line i is `raw[at[i]:at[i+1]]`."""

    raw: memoryview
    at: npt.NDArray[np.int64]
    bodies: Sequence[Body]
    body_of: npt.NDArray[np.int64]
    line_of: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.line_of)

    def text(self, row: int) -> bytes:
        """Returns one line."""
        return bytes(self.raw[int(self.at[row]) : int(self.at[row + 1])])

    def position(self, row: int) -> LinePosition:
        """Returns where a line came from."""
        return self.bodies[int(self.body_of[row])].lines.position(int(self.line_of[row]))


@dataclass(frozen=True, slots=True)
class Reader:
    """How lines of one kind are read: many at once by their Arrow type, else one by one."""

    name: str
    layout: Layout
    read: Callable[[object, LinePosition], Known]
    """Reads the value of one line with tolerance."""
    mend: Callable[[Fields], Fields]
    """Returns what `read` returned without the values that Arrow would refuse."""


def gather(bodies: Sequence[Body], kind: int, name: str) -> Run:
    """Returns all lines of one kind, including those that are spelled in an unusual way."""
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
    # A large commit is a single stretch, which need not be copied.
    raw = texts[0] if len(texts) == 1 else memoryview(b"\n".join(texts))
    return Run(
        raw,
        np.minimum(np.cumsum(np.concatenate(lengths)), len(raw)),
        bodies,
        np.concatenate([none, *owners]),
        np.concatenate([none, *numbers]),
    )


def _stretches(found: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yields the first and last line of each stretch of consecutive lines."""
    if len(found) and found[-1] - found[0] == len(found) - 1:  # as in nearly every file
        yield int(found[0]), int(found[-1])
        return
    breaks = np.flatnonzero(np.diff(found) != 1)
    firsts = np.concatenate([found[:1], found[breaks + 1]])
    lasts = np.concatenate([found[breaks], found[-1:]])
    yield from zip(firsts.tolist(), lasts.tolist(), strict=True)


def parse_run(run: Run, low: int, high: int, reader: Reader) -> Iterator[Piece]:
    """Yields arrays for the lines from `low` up to `high`, in order; lines that Arrow refuses are halved."""
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
    """Returns True if Arrow refuses each of these lines, probably because all lines of this writer are alike."""
    return all(_bulk(run, row, row + 1, reader) is None for row in rows)


def _bulk(run: Run, low: int, high: int, reader: Reader) -> list[pa.StructArray] | None:
    start, end = int(run.at[low]), int(run.at[high])
    trusted = all(body.trusted for body in run.bodies) or all(
        run.bodies[owner].trusted for owner in np.unique(run.body_of[low:high]).tolist()
    )
    # Arrow reads the token NaN as a number, and a bound that is NaN would be compared as if it were one.
    text = run.raw[start:end]
    if not trusted and b"NaN" in bytes(text):
        return None
    return _arrow(pa.py_buffer(text), high - low, reader, trusted=trusted)


def _arrow(
    text: pa.Buffer, lines: int, reader: Reader, *, trusted: bool
) -> list[pa.StructArray] | None:
    """Returns one struct per line; None unless every line is exactly of the type."""
    # Blocks are parsed in parallel, and Arrow refuses a line that is longer than a block. After halving
    # it is one of few lines, which are one block.
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
            table.validate(full=True)  # the parser does not check that a text is UTF-8
    except pa.ArrowInvalid:
        return None
    arrays = table.column(0).chunks
    # Two objects on one line are two rows for Arrow, but such a line is garbled.
    sound = table.num_rows == lines and not any(a.field("path").null_count for a in arrays)
    return arrays if sound else None


def _one_by_one(run: Run, low: int, high: int, reader: Reader) -> Piece:
    known = [_read_line(run.text(row), run.position(row), reader) for row in range(low, high)]
    bodies, extras = [one.body for one in known], [one.extra for one in known]
    if high - low > _TINY and all(one.plain for one in known):
        text = b"\n".join(dumps({reader.name: body}) for body in bodies)
        found = _arrow(pa.py_buffer(text), len(bodies), reader, trusted=False)
        if found is not None:
            return pa.concat_arrays(found), extras
    return pa.array([reader.mend(body) for body in bodies], reader.layout.kind), extras


def _read_line(text: bytes, position: LinePosition, reader: Reader) -> Known:
    value, plain = parse(text, position)
    assert isinstance(value, dict), "an add or a remove begins with a brace"
    others = [name for name, body in value.items() if name != reader.name and body is not None]
    if others:
        raise position.corrupted(f"two actions on one line: {reader.name!r} and {others[0]!r}")
    known = reader.read(value[reader.name], position)
    return known if plain else known._replace(plain=False)


_REMOVE: Final = Layout(
    pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())])
)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of actions, numbered in the order of the log: a later action has a higher `order`."""

    table: pa.Table
    order: npt.NDArray[np.int64]
    versions: npt.NDArray[np.int64]


def parse_adds(bodies: Sequence[Body], shape: Shape, table_uri: str) -> Rows:
    """Returns every add of these files as a row of a segment of this shape."""

    def read(value: object, position: LinePosition) -> Known:
        return add_row(value, shape, position)

    def mend(body: Fields) -> Fields:
        return with_sound_stats(body, shape)

    run = gather(bodies, ADD, "add")
    pieces = parse_run(run, 0, len(run), Reader("add", shape.layout, read, mend))
    columns = shape.columns()
    tables = [_table(piece, columns, shape.layout) for piece in pieces]
    return _with_defaults(_rows(run, _one_table(tables, columns), table_uri))


def parse_removes(bodies: Sequence[Body], table_uri: str) -> Rows:
    """Returns every remove of these files as a row of the tombstones."""
    run = gather(bodies, REMOVE, "remove")
    if not len(run):
        return Rows(no_tombstones(), run.line_of, run.line_of)
    pieces = parse_run(run, 0, len(run), Reader("remove", _REMOVE, remove_row, dict))
    tables = [_table(piece, TOMBSTONES, _REMOVE) for piece in pieces]
    return _not_before_commit(_rows(run, _one_table(tables, TOMBSTONES), table_uri), run)


def _not_before_commit(rows: Rows, run: Run) -> Rows:
    """Returns the removes with no time earlier than their commit, whatever clock set the time in a remove."""
    made = [body.committed_ms for body in run.bodies]
    if all(moment is None for moment in made):
        return rows
    stated = rows.table.column("deletion_timestamp")
    moments = pa.array(made, pa.int64()).take(pa.array(run.body_of))
    later = pc.if_else(pc.less(stated, moments), moments, stated)
    at = rows.table.schema.get_field_index("deletion_timestamp")
    table = rows.table.set_column(at, "deletion_timestamp", pc.coalesce(later, stated))
    return Rows(table, rows.order, rows.versions)


@cache
def no_tombstones() -> pa.Table:
    """Returns an empty table of removed files, made when it is needed because Arrow loads pandas for it."""
    return TOMBSTONES.empty_table()


def _one_table(tables: list[pa.Table], columns: pa.Schema) -> pa.Table:
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables([columns.empty_table(), *tables])


def _table(piece: Piece, columns: pa.Schema, layout: Layout) -> pa.Table:
    array, extras = piece
    extra = pa.array(extras, pa.string()) if extras else pa.nulls(len(array), pa.string())
    return pa.Table.from_arrays([*layout.columns(array), extra], schema=columns)


def _rows(run: Run, table: pa.Table, table_uri: str) -> Rows:
    column = table.column("key")
    chunks = [_keys(chunk, run, table_uri) for chunk in _with_offsets(column)]
    if any(key is not path for key, path in zip(chunks, column.chunks, strict=True)):
        table = table.set_column(0, "key", pa.chunked_array(chunks, pa.string()))
    versions = np.array([body.version for body in run.bodies], np.int64)
    ordinals = np.array([body.ordinal for body in run.bodies], np.int64)
    return Rows(
        table,
        (ordinals[run.body_of] << 31) + run.line_of,
        versions[run.body_of],
    )


def _with_offsets(column: pa.ChunkedArray) -> Iterator[tuple[int, pa.Array]]:
    offset = 0
    for chunk in column.chunks:
        yield offset, chunk
        offset += len(chunk)


def _keys(chunk: tuple[int, pa.Array], run: Run, table_uri: str) -> pa.Array:
    offset, paths = chunk
    try:
        return file_keys(paths, table_uri)
    except UnsafePathError:
        for row, path in enumerate(paths.to_pylist()):
            _check(path, table_uri, run.position(offset + row))
        raise


def _check(path: str, table_uri: str, position: LinePosition) -> None:
    try:
        file_key(path, table_uri)
    except UnsafePathError as error:
        raise UnsafePathError(
            f"{position.file}, line {position.line}: {error.message}",
            hint=error.hint,
            **{**error.facts, "file": position.file, "line": position.line},
        ) from None


def _with_defaults(rows: Rows) -> Rows:
    """Returns adds completed as other writers mean them: `seq` is the version, and data was changed."""
    table = rows.table
    for name in ("seq", "data_change"):
        if table.column(name).null_count:
            default = pa.array(rows.versions) if name == "seq" else pa.scalar(value=True)
            filled = pc.coalesce(table.column(name), default)
            table = table.set_column(table.schema.get_field_index(name), name, filled)
    return Rows(_without_empty_partitions(table), rows.order, rows.versions)


def _without_empty_partitions(table: pa.Table) -> pa.Table:
    """Returns adds with NULL for empty partition values, because Spark stores an empty text as NULL."""
    column = table.column("partition_values")
    kind = column.type
    if not any(_has_empty(texts) for chunk in column.chunks for texts in chunk.flatten()):
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


def _has_empty(texts: pa.Array) -> bool:
    """Returns True if one of these texts is empty."""
    # Without NULLs the offsets alone say it, which is much faster.
    if len(texts) and not texts.null_count and not texts.offset:
        at = np.frombuffer(texts.buffers()[1], np.int32)[: len(texts) + 1]
        return bool((at[1:] == at[:-1]).any())
    return bool(pc.any(pc.equal(texts, "")).as_py())
