"""Checkpoints: the state of one version, so that nobody has to read what came before.

A checkpoint is lines of actions and a trailer, as a commit is. A large one keeps its adds in Parquet
parts and only names them; a part that an earlier checkpoint wrote is named again, not written again.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from indextables.log.open.replay import replay, shape_in
from indextables.log.state.parts import PART_ACTION, decode_part, encode_part, part_of, write_part
from indextables.log.state.rows import loads_extra
from indextables.log.state.segments import FIELDS, TOMBSTONES, Segment, Shape, conform
from indextables.log.state.snapshot import Files, Snapshot
from indextables.log.wire.actions import CommitInfo, Remove, StateAction, Vacuum
from indextables.log.wire.codec import add_object, encode_action
from indextables.log.wire.files import WIDTH, LogBody, LogFile, LogNames, read_body
from indextables.log.wire.lines import dumps, find_lines
from indextables.storage.base import LogStore

Format: TypeAlias = Literal["auto", "json", "parquet"]

JSON_LIMIT: Final = 2_000
"""Splits up to which `auto` writes JSON."""
_AT_ONCE: Final = 4096
_INFINITIES: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}


@dataclass(frozen=True, slots=True)
class Written:
    """A checkpoint that is in the store, and its snapshot: the same state, with its parts as segments."""

    version: int
    size_in_bytes: int
    num_files: int
    snapshot: Snapshot
    parts: int | None = None


def read_checkpoint(store: LogStore, file: LogFile) -> Snapshot:
    """Returns the snapshot a checkpoint holds.

    LogCorruptedError if it, or a part of it, is not intact.
    """
    body = read_body(store, file)
    segments = tuple(_parts(store, body))
    for segment in segments:
        segment.table.check()
    return replay(None, [body], store.uri, Files(segments, TOMBSTONES.empty_table()))


def parts_of(store: LogStore, file: LogFile) -> list[str]:
    """Returns the keys of the parts a checkpoint names.

    Nothing is said about whether they are there.
    """
    body = read_body(store, file)
    return [f"{file.directory}/{segment.table.ref.name}" for segment in _parts(store, body)]


def _parts(store: LogStore, body: LogBody) -> Iterator[Segment]:
    if PART_ACTION.encode() not in body.data:
        return
    names = LogNames(body.file.directory)
    lines = find_lines(body.file.name, body.data)
    shape = shape_in(lines)
    for index, name, value, _ in lines.others():
        if name == PART_ACTION:
            yield decode_part(value, store, names, shape, lines.position(index))


def write_checkpoint(
    store: LogStore,
    names: LogNames,
    snapshot: Snapshot,
    *,
    keep_removes_after: int,
    width: int = WIDTH,
    form: Format = "json",
) -> Written:
    """Writes the state of a version; removes older than `keep_removes_after` (ms) are forgotten."""
    columnar = form == "parquet" or (form == "auto" and snapshot.num_files > JSON_LIMIT)
    if columnar:
        segments = tuple(_as_parts(store, names, snapshot, width))
        snapshot = replace(snapshot, state=replace(snapshot.state, segments=segments))
        adds = [dumps(encode_part(segment)) + b"\n" for segment in segments]
        size = sum(segment.table.ref.size for segment in segments)
    else:
        adds, size = list(add_lines(snapshot)), 0
    data = _sealed(snapshot, [*_state(snapshot), *_removes(snapshot, keep_removes_after), *adds])
    store.put(names.checkpoint(snapshot.version, width), data)
    parts = len(adds) if columnar else None
    return Written(snapshot.version, len(data) + size, snapshot.num_files, snapshot, parts)


def write_hint(store: LogStore, names: LogNames, written: Written) -> None:
    """Points `_last_checkpoint` to a checkpoint."""
    hint = {
        "version": written.version,
        "size": written.num_files,
        "parts": written.parts,
        "sizeInBytes": written.size_in_bytes,
        "numOfAddFiles": written.num_files,
        "checkpointSchema": None,
    }
    store.put(names.hint, dumps(hint))


def _as_parts(store: LogStore, names: LogNames, snapshot: Snapshot, width: int) -> Iterator[Segment]:
    kept, fresh = choose_parts(snapshot.state.segments)
    yield from kept
    if not fresh:
        return
    shape = Shape.of(snapshot.metadata)
    columns = shape.columns()
    tables = [
        pa.table([conform(segment.column(f.name), f.type) for f in columns], schema=columns)
        for segment in fresh
    ]
    rows = pa.concat_tables(tables).sort_by([("seq", "ascending"), ("key", "ascending")])
    yield write_part(store, names, rows.combine_chunks(), shape, version=snapshot.version, width=width)


def choose_parts(segments: Sequence[Segment]) -> tuple[list[Segment], list[Segment]]:
    """Returns (parts that are used again, segments whose live rows go into one new part).

    A part is written anew once a fifth of it is dead, or once the new part would be as large as it is:
    so there are few parts, and writing a checkpoint costs about what has changed.
    """
    usable = [s for s in segments if part_of(s) is not None and s.num_live * 5 >= len(s.dead) * 4]
    fresh = [s for s in segments if s not in usable]
    rows = sum(segment.num_live for segment in fresh)
    for segment in sorted(usable, key=lambda s: s.num_live):
        if segment.num_live > rows:
            break
        fresh.append(segment)
        rows += segment.num_live
    return [s for s in usable if s not in fresh], fresh


def _sealed(snapshot: Snapshot, lines: Sequence[bytes]) -> bytes:
    body = b"".join(lines)
    info = CommitInfo(
        operation="CHECKPOINT",
        timestamp=snapshot.timestamp_ms,
        commit_id=snapshot.commit_id,
        actions=len(lines),
        crc32=zlib.crc32(body),
        num_files=snapshot.num_files,
    )
    return body + encode_action(info, seq=snapshot.version, schema=snapshot.schema)


def _state(snapshot: Snapshot) -> Iterator[bytes]:
    vacuum = [Vacuum(snapshot.min_read_version)] if snapshot.min_read_version else []
    few: tuple[StateAction, ...] = (
        snapshot.protocol,
        snapshot.metadata,
        *snapshot.txns.values(),
        *vacuum,
        *snapshot.unknown,
    )
    for action in few:
        yield encode_action(action, seq=snapshot.version, schema=snapshot.schema)


def _removes(snapshot: Snapshot, keep_after: int) -> Iterator[bytes]:
    table = snapshot.tombstones
    since = table.column("deletion_timestamp")
    young = table.filter(pc.or_kleene(pc.is_null(since), pc.greater(since, keep_after)))
    for batch in young.to_batches(_AT_ONCE):
        for row in batch.to_pylist():
            extra = loads_extra(row.pop("extra"))
            remove = Remove(row.pop("key"), **row, extra=extra)
            yield encode_action(remove, seq=snapshot.version, schema=snapshot.schema)


def add_lines(snapshot: Snapshot) -> Iterator[bytes]:
    """Yields one line per live file, with everything the log says of it.

    A repair commits exactly these.
    """
    for batch in snapshot.files().to_batches(_AT_ONCE):
        for row in batch.to_pylist():
            yield dumps({"add": _add(row)}) + b"\n"


def _add(row: dict[str, Any]) -> dict[str, Any]:
    extra = loads_extra(row["extra"])
    fields = {field: row[column] for column, field, _ in FIELDS[1:]}
    fields["stats"] = _present(fields["stats"])
    return add_object(row["key"], extra=extra, **fields)


def _present(value: Any) -> Any:
    """Returns a row of statistics as JSON has it: nothing for null, a text for an infinity."""
    match value:
        case dict():
            return {name: _present(part) for name, part in value.items() if part is not None}
        case float():
            return _INFINITIES.get(value, value)
        case _:
            return value
