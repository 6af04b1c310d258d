"""Checkpoints: the state of one version in one file, so that nobody has to read what came before."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow.compute as pc

from indextables.log.actions import CommitInfo, Remove, StateAction, Vacuum
from indextables.log.codec import add_object, encode_action
from indextables.log.files import read_body
from indextables.log.lenient import dumps
from indextables.log.names import WIDTH, LogFile, LogNames
from indextables.log.replay import replay
from indextables.log.rows import loads_extra
from indextables.log.segments import FIELDS
from indextables.log.snapshot import Snapshot
from indextables.storage.base import LogStore

_AT_ONCE: Final = 4096
_INFINITIES: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}


@dataclass(frozen=True, slots=True)
class Written:
    """A checkpoint that is in the store."""

    version: int
    size_in_bytes: int
    num_files: int
    parts: int | None = None


def read_checkpoint(store: LogStore, file: LogFile) -> Snapshot:
    """The snapshot a checkpoint holds; LogCorruptedError if it is not intact."""
    return replay(None, [read_body(store, file)], store.uri)


def write_checkpoint(
    store: LogStore, names: LogNames, snapshot: Snapshot, *, keep_removes_after: int, width: int = WIDTH
) -> Written:
    """Writes the state of a version; removes older than `keep_removes_after` (ms) are forgotten."""
    data = encode_checkpoint(snapshot, keep_removes_after=keep_removes_after)
    store.put(names.checkpoint(snapshot.version, width), data)
    return Written(snapshot.version, len(data), snapshot.num_files)


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


def encode_checkpoint(snapshot: Snapshot, *, keep_removes_after: int) -> bytes:
    """The bytes of a JSON checkpoint: every action of the state, then the trailer that proves it whole."""
    lines = [*_state(snapshot), *_removes(snapshot, keep_removes_after), *add_lines(snapshot)]
    body = b"".join(lines)
    info = CommitInfo(
        operation="CHECKPOINT",
        timestamp=snapshot.timestamp_ms,
        commit_id=snapshot.commit_id,
        actions=len(lines),
        crc32=zlib.crc32(body),
        num_files=snapshot.num_files,
    )
    return body + encode_action(info, version=snapshot.version, schema=snapshot.schema)


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
        yield encode_action(action, version=snapshot.version, schema=snapshot.schema)


def _removes(snapshot: Snapshot, keep_after: int) -> Iterator[bytes]:
    table = snapshot.tombstones
    since = table.column("deletion_timestamp")
    young = table.filter(pc.or_kleene(pc.is_null(since), pc.greater(since, keep_after)))
    for batch in young.to_batches(_AT_ONCE):
        for row in batch.to_pylist():
            extra = loads_extra(row.pop("extra"))
            remove = Remove(row.pop("key"), **row, extra=extra)
            yield encode_action(remove, version=snapshot.version, schema=snapshot.schema)


def add_lines(snapshot: Snapshot) -> Iterator[bytes]:
    """One line per live file, with everything the log says of it; a repair commits exactly these."""
    for batch in snapshot.files().to_batches(_AT_ONCE):
        for row in batch.to_pylist():
            yield dumps({"add": _add(row)}) + b"\n"


def _add(row: dict[str, Any]) -> dict[str, Any]:
    extra = loads_extra(row["extra"])
    fields = {field: row[column] for column, field, _ in FIELDS[1:]}
    fields["stats"] = _present(fields["stats"])
    return add_object(row["key"], extra=extra, **fields)


def _present(value: Any) -> Any:
    """A row of statistics as JSON has it: nothing for null, a text for an infinity."""
    match value:
        case dict():
            return {name: _present(part) for name, part in value.items() if part is not None}
        case float():
            return _INFINITIES.get(value, value)
        case _:
            return value
