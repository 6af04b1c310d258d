"""Which files are live: for every key the last action on it decides, for all keys at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.log.state.parse import Rows
from indextables.log.state.segments import Segment, Shape

_MANY: Final = 32
"""Segments of a snapshot before small ones are merged."""


@dataclass(frozen=True, slots=True)
class Typed:
    """Adds that were typed by one schema."""

    rows: Rows
    shape: Shape


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a table: live ones in segments, removed ones as tombstones."""

    segments: tuple[Segment, ...]
    tombstones: Any


def reconcile(base: Files, adds: Sequence[Typed], removes: Rows) -> Files:
    """The files after these actions; the cost follows the actions, plus one scan of the base's keys."""
    columns = [*(typed.rows.table.column("key") for typed in adds), removes.table.column("key")]
    chunks = [chunk for column in columns for chunk in column.chunks if len(chunk)]
    if not chunks:
        return base
    encoded = (chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)).dictionary_encode()
    if len(encoded.dictionary) == len(encoded):  # each key once, as in nearly every commit
        wins = np.ones(len(encoded), np.bool_)
    else:
        order = np.concatenate([*(typed.rows.order for typed in adds), removes.order])
        wins = _last_of_each(encoded.indices.to_numpy(), len(encoded.dictionary), order)
    segments = [segment.bury(segment.contains(encoded.dictionary)) for segment in base.segments]
    start = 0
    for typed in adds:
        end = start + len(typed.rows.order)
        segments.append(_segment(typed, wins[start:end]))
        start = end
    live = [segment for segment in segments if segment.num_live]
    tombstones = _tombstones(base.tombstones, encoded.dictionary, removes.table, wins[start:])
    return Files(tuple(_merged(live)), tombstones)


def _tombstones(base: Any, keys: Any, removed: Any, wins: npt.NDArray[np.bool_]) -> Any:
    """Those of the base that no action is about, and the removes that were the last word."""
    kept = base.filter(pc.invert(pc.is_in(base.column("key"), keys))) if base.num_rows else base
    return pa.concat_tables([kept, removed.filter(pa.array(wins))]) if removed.num_rows else kept


def _merged(segments: list[Segment]) -> list[Segment]:
    """The same rows in fewer segments, once there are many; what is large is not copied."""
    if len(segments) <= _MANY:
        return segments
    large = sum(segment.num_live for segment in segments) // 4
    merged: list[Segment] = []
    for segment in segments:
        if (
            merged
            and merged[-1].shape == segment.shape
            and merged[-1].num_live + segment.num_live <= large
        ):
            merged[-1] = merged[-1].joined(segment)
        else:
            merged.append(segment)
    return merged


def _last_of_each(
    codes: npt.NDArray[np.int32], distinct: int, order: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """True for the row of each code with the highest order."""
    last = np.full(distinct, -1, np.int64)
    np.maximum.at(last, codes, order)
    wins: npt.NDArray[np.bool_] = order == last[codes]
    return wins


def _segment(typed: Typed, wins: npt.NDArray[np.bool_]) -> Segment:
    segment = Segment.alive(typed.rows.table, typed.shape)
    return segment if wins.all() else segment.bury(~wins).without_many_dead()
