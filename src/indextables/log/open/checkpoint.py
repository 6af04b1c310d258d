"""Checkpoints: the whole state of one version, so that nobody has to read the commits before it.

Like a commit, a checkpoint consists of actions and a trailer. A large one is a manifest: it keeps its adds
in Parquet files, called parts, and names them. A part of an earlier checkpoint is named again if possible.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import LogReplacedError
from indextables.log.open.replay import replay, shape_in
from indextables.log.state.parts import PART_ACTION, decode_part, encode_part, part_of, write_part
from indextables.log.state.rows import FileRow, loads_extra
from indextables.log.state.segments import FIELDS, TOMBSTONES, Segment, Shape, conform
from indextables.log.state.snapshot import Files, Snapshot
from indextables.log.wire.actions import CommitInfo, Remove, StateAction, Vacuum
from indextables.log.wire.codec import add_object, encode_action
from indextables.log.wire.files import WIDTH, LogBody, LogFile, LogNames, read_body
from indextables.log.wire.indextables4spark import is_search_index, spelled
from indextables.log.wire.lines import dumps, find_lines
from indextables.storage.base import LogStore, held

Format: TypeAlias = Literal["auto", "json", "parquet"]

JSON_LIMIT: Final = 2_000
"""The format `auto` writes JSON for this many splits or fewer."""
_AT_ONCE: Final = 4096
_INFINITIES: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}


@dataclass(frozen=True, slots=True)
class Written:
    """A checkpoint that was written, and the snapshot whose segments are its parts."""

    version: int
    size_in_bytes: int
    num_files: int
    snapshot: Snapshot
    parts: int | None = None


def read_checkpoint(store: LogStore, file: LogFile) -> Snapshot:
    """Returns the snapshot in a checkpoint.

    Raises LogCorruptedError if the checkpoint or one of its parts is not intact.
    """
    body = read_body(store, file)
    segments = tuple(_parts(store, body))
    for segment in segments:
        segment.table.check()
    return replay(None, [body], store.uri, Files(segments, TOMBSTONES.empty_table()))


def parts_of(store: LogStore, file: LogFile) -> list[str]:
    """Returns the keys of the parts that a checkpoint names, whether they exist or not."""
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
    check: Callable[[LogStore, bool], None] = lambda *_: None,
) -> Written:
    """Writes a checkpoint and the hint; removes older than `keep_removes_after` (in milliseconds) are left out.

    `check` raises LogReplacedError if the log is another one by now. It is asked before anything gets a name in the log
    but parts, which count only once a checkpoint names them; and again afterwards, when the log may be cleaned up.
    """
    columnar = form == "parquet" or (form == "auto" and snapshot.num_files > JSON_LIMIT)
    if columnar:
        segments = tuple(_as_parts(store, names, snapshot, width))
        snapshot = replace(snapshot, state=replace(snapshot.state, segments=segments))
        adds = [dumps(encode_part(segment)) + b"\n" for segment in segments]
        size = sum(segment.table.ref.size for segment in segments)
    else:
        adds, size = list(add_lines(snapshot)), 0
    data = _sealed(snapshot, [*_state(snapshot), *_removes(snapshot, keep_removes_after), *adds])
    parts = len(adds) if columnar else None
    written = Written(snapshot.version, len(data) + size, snapshot.num_files, snapshot, parts)
    key = names.checkpoint(snapshot.version, width)
    with held(store, names.directory) as here:
        check(here, False)
        here.put(key, data)
        try:
            check(here, True)
        except LogReplacedError:  # by a store that cannot hold a directory
            here.delete(key)
            raise
        _write_hint(here, names, written)
    return written


def _write_hint(store: LogStore, names: LogNames, written: Written) -> None:
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
    """Returns the parts that are used again, and the segments whose live rows go into a new part.

    A part is written anew if more than a fifth of it is dead, or if the new part would be as large as it.
    So there are few parts, and the cost of a checkpoint grows with the changes and not with the table.
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
    """Yields a line for each live file, with all that the log says of it; a repair commits these lines."""
    as_theirs = is_search_index(snapshot.metadata)
    for batch in snapshot.files().to_batches(_AT_ONCE):
        for row in batch.to_pylist():
            add = _add(row)
            yield dumps({"add": spelled(add, snapshot.schema) if as_theirs else add}) + b"\n"


def _add(row: FileRow) -> dict[str, object]:
    values = cast("Mapping[str, object]", row)
    fields = {field: values[column] for column, field, _ in FIELDS[1:] if field != "stats"}
    stats = _present(row["stats"])
    assert isinstance(stats, dict | None)
    return add_object(row["key"], stats=stats, extra=loads_extra(row["extra"]), **fields)


def _present(value: object) -> object:
    """Returns a row of statistics as JSON has it, without nulls and with texts for infinities."""
    match value:
        case dict():
            return {name: _present(member) for name, member in value.items() if member is not None}
        case float():
            return _INFINITIES.get(value, value)
        case _:
            return value
