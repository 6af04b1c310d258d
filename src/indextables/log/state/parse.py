"""The adds and removes of log files as columns, with every path turned into the key of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import UnsafePathError
from indextables.log.state.bulk import Body, Piece, Reader, Run, gather, parse_run
from indextables.log.state.layout import Layout
from indextables.log.state.rows import Known, add_row, remove_row, with_sound_stats
from indextables.log.state.segments import TOMBSTONES, Shape
from indextables.log.wire.lenient import Place
from indextables.log.wire.lines import ADD, REMOVE
from indextables.storage.location import file_key, file_keys

_REMOVE: Final = Layout(
    pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())])
)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows with the place of each in the log: a later action has a higher `order`."""

    table: Any
    order: npt.NDArray[np.int64]
    versions: npt.NDArray[np.int64]


def parse_adds(bodies: Sequence[Body], shape: Shape, table_uri: str) -> Rows:
    """Every add of these files as a row of a segment, typed by one schema."""

    def read(value: Any, place: Place) -> Known:
        return add_row(value, shape, place)

    def mend(body: dict[str, Any]) -> dict[str, Any]:
        return with_sound_stats(body, shape)

    run = gather(bodies, ADD, "add")
    pieces = parse_run(run, 0, len(run), Reader("add", shape.layout, read, mend))
    columns = shape.columns()
    tables = [_table(piece, columns, shape.layout) for piece in pieces]
    return _with_defaults(_rows(run, _one_table(tables, columns), table_uri))


def parse_removes(bodies: Sequence[Body], table_uri: str) -> Rows:
    """Every remove of these files as a row of the tombstones."""
    run = gather(bodies, REMOVE, "remove")
    if not len(run):
        return Rows(no_tombstones(), run.line_of, run.line_of)
    pieces = parse_run(run, 0, len(run), Reader("remove", _REMOVE, remove_row, dict))
    tables = [_table(piece, TOMBSTONES, _REMOVE) for piece in pieces]
    return _rows(run, _one_table(tables, TOMBSTONES), table_uri)


@cache
def no_tombstones() -> Any:
    """No removed files. Not made on import: Arrow would load pandas for it."""
    return TOMBSTONES.empty_table()


def _one_table(tables: list[Any], columns: Any) -> Any:
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables([columns.empty_table(), *tables])


def _table(piece: Piece, columns: Any, layout: Layout) -> Any:
    array, extras = piece
    extra = pa.array(extras, pa.string()) if extras else pa.nulls(len(array), pa.string())
    return pa.Table.from_arrays([*layout.columns(array), extra], schema=columns)


def _rows(run: Run, table: Any, table_uri: str) -> Rows:
    column = table.column("key")
    chunks = [_keys(chunk, run, table_uri) for chunk in _with_offsets(column)]
    if any(key is not path for key, path in zip(chunks, column.chunks, strict=True)):
        table = table.set_column(0, "key", pa.chunked_array(chunks, pa.string()))
    versions = np.array([body.version for body in run.bodies], np.int64)
    positions = np.array([body.position for body in run.bodies], np.int64)
    return Rows(
        table,
        (positions[run.body_of] << 31) + run.line_of,
        versions[run.body_of],
    )


def _with_offsets(column: Any) -> Iterator[tuple[int, Any]]:
    offset = 0
    for chunk in column.chunks:
        yield offset, chunk
        offset += len(chunk)


def _keys(chunk: tuple[int, Any], run: Run, table_uri: str) -> Any:
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
    for name in ("seq", "data_change"):
        if table.column(name).null_count:
            default = pa.array(rows.versions) if name == "seq" else pa.scalar(value=True)
            filled = pc.coalesce(table.column(name), default)
            table = table.set_column(table.schema.get_field_index(name), name, filled)
    return Rows(_without_empty_partitions(table), rows.order, rows.versions)


def _without_empty_partitions(table: Any) -> Any:
    """Spark stores an empty text as NULL, so here it is NULL too."""
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


def _has_empty(texts: Any) -> bool:
    """True if one of these texts is empty; where none is and none is NULL, a look at the offsets says so."""
    if len(texts) and not texts.null_count and not texts.offset:
        at = np.frombuffer(texts.buffers()[1], np.int32)[: len(texts) + 1]
        return bool((at[1:] == at[:-1]).any())
    return bool(pc.any(pc.equal(texts, "")).as_py())
