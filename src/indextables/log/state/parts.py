"""Parts of a checkpoint: Parquet files that a manifest names and the next checkpoint may use again."""

from __future__ import annotations

import base64
import re
import uuid
import zlib
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from indextables.log.state.segments import PartRef, PartTable, Segment, Shape, conform, without_hollow
from indextables.log.wire.files import LogNames
from indextables.log.wire.lines import LinePosition
from indextables.storage.base import LogStore

PART_ACTION: Final = "checkpointPart"
_ROW_GROUP: Final = 32 * 1024
"""Rows that are read to name one file. With fewer, the columns of a plan lie so close that a store reads all of them."""
_NAME: Final = re.compile(r"([0-9]{18}|[0-9]{20})\.checkpoint\.[0-9A-Za-z-]+\.parquet")


def write_part(
    store: LogStore, names: LogNames, table: pa.Table, shape: Shape, *, version: int, width: int
) -> Segment:
    """Writes rows as a part and returns the segment that consists of it."""
    stored = _storable(table)
    sink = pa.BufferOutputStream()
    pq.write_table(
        stored, sink, row_group_size=_ROW_GROUP, compression="zstd", write_page_checksum=True
    )
    data = sink.getvalue().to_pybytes()
    key = names.part(version, str(uuid.uuid4()), width)
    store.put(key, data)
    ref = PartRef(key.rpartition("/")[2], len(data), zlib.crc32(data), table.num_rows)
    return Segment.alive(PartTable(store, names, ref, table), shape)


def part_of(segment: Segment) -> PartTable | None:
    """Returns the part that a segment consists of; None if it is not stored as one."""
    return segment.table if isinstance(segment.table, PartTable) else None


def encode_part(segment: Segment) -> dict[str, object]:
    """Returns the line of a manifest for a part: its name, how to verify it, and which rows are dead."""
    part = part_of(segment)
    assert part is not None
    ref = part.ref
    body: dict[str, object] = {"name": ref.name, "size": ref.size, "crc32": ref.crc32, "rows": ref.rows}
    if segment.dead.any():
        packed = zlib.compress(np.packbits(segment.dead).tobytes())
        body["dead"] = base64.b64encode(packed).decode()
    return {PART_ACTION: body}


def decode_part(
    value: object, store: LogStore, names: LogNames, shape: Shape, position: LinePosition
) -> Segment:
    """Returns the segment that a line of a manifest names."""
    match value:
        case {
            "name": str(name),
            "size": int(size),
            "crc32": int(crc32),
            "rows": int(rows),
            **others,
        } if _NAME.fullmatch(name) and rows >= 0:
            table = PartTable(store, names, PartRef(name, size, crc32, rows))
            return Segment(table, _dead(others.get("dead"), rows, position), shape)
        case _:
            raise position.corrupted(f"not a part of a checkpoint: {value!a:.80}")


def _dead(text: object, rows: int, position: LinePosition) -> npt.NDArray[np.bool_]:
    if text is None:
        return np.zeros(rows, np.bool_)
    if not isinstance(text, str):
        raise position.corrupted(f"the dead rows of a part are not a text: {text!a:.80}")
    try:
        packed = np.frombuffer(zlib.decompress(base64.b64decode(text, validate=True)), np.uint8)
        return np.unpackbits(packed, count=rows).astype(np.bool_)
    except (ValueError, zlib.error) as error:
        raise position.corrupted(f"the dead rows of a part are garbled ({error})") from None


def _storable(table: pa.Table) -> pa.Table:
    """Returns the table without structs that have no fields, which Parquet cannot store."""
    columns = {}
    for field in table.schema:
        kind = without_hollow(field.type)
        if kind is not None:
            columns[field.name] = conform(table.column(field.name), kind)
    return pa.table(columns)
