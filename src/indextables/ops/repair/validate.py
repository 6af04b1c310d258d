"""Files that a table with slices cannot go on without: leaving them out would show rows that are not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import ObjectNotFoundError, RepairError
from indextables.log.state.snapshot import Snapshot
from indextables.ops.repair.findings import Excluded, listed
from indextables.plan.column_sets import columns_set
from indextables.plan.merge_rule import MERGE_MODE, MergeMode
from indextables.storage import LogStore

# Is every split where the log says it is, and as large? Asked of the store, many at a time.

Progress: TypeAlias = Callable[[int, int], None]
"""Called with (done, total) as work goes on, from one thread at a time."""

_Row: TypeAlias = tuple[str, int | None, str | None]
_AT_ONCE: Final = 64


@dataclass(frozen=True, slots=True)
class Validation:
    """Which splits are there, in the snapshot's order, and what is wrong with the others."""

    valid: npt.NDArray[np.bool_]
    missing: tuple[Excluded, ...] = ()
    mismatched: tuple[Excluded, ...] = ()


def unchecked(snapshot: Snapshot) -> Validation:
    """Returns every split taken at the log's word."""
    return Validation(np.ones(snapshot.num_files, np.bool_))


def validate(
    snapshot: Snapshot, store: LogStore, parallelism: int, progress: Progress | None = None
) -> Validation:
    """Asks for each split; only 'not found' means missing, every other failure is raised."""
    columns = (snapshot.column(name).to_pylist() for name in ("key", "size", "kind"))
    rows: list[_Row] = list(zip(*columns, strict=True))
    counter = _Counter(len(rows), progress)

    def look(start: int) -> list[int | None]:
        part = rows[start : start + _AT_ONCE]
        sizes = [_size(store, key) for key, _, _ in part]
        counter.add(len(part))
        return sizes

    with ThreadPoolExecutor(parallelism, "indextables-repair") as pool:
        try:
            sizes = [size for part in pool.map(look, range(0, len(rows), _AT_ONCE)) for size in part]
        except BaseException:
            pool.shutdown(cancel_futures=True)  # one failure ends the run: ask no further
            raise
    return _judged(rows, sizes)


def _judged(rows: Sequence[_Row], sizes: Sequence[int | None]) -> Validation:
    missing, mismatched = [], []
    valid = np.ones(len(rows), np.bool_)
    for row, ((key, expected, kind), found) in enumerate(zip(rows, sizes, strict=True)):
        if found is None:
            missing.append(Excluded(key, "there is no such file", kind == "log"))
        elif expected is not None and found != expected:
            reason = f"it has {found} bytes, the log says {expected}"
            mismatched.append(Excluded(key, reason, kind == "log"))
        else:
            continue
        valid[row] = False
    return Validation(valid, tuple(missing), tuple(mismatched))


def _size(store: LogStore, key: str) -> int | None:
    try:
        return store.head(key).size
    except ObjectNotFoundError:
        return None


class _Counter:
    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done = 0
        self._total = total
        self._progress = progress
        self._lock = threading.Lock()

    def add(self, count: int) -> None:
        if self._progress is not None:
            with self._lock:
                self._done += count
                self._progress(self._done, self._total)


def newer_strangers(
    snapshot: Snapshot, store: LogStore, committed_ms: int, log_directory: str
) -> Iterator[str]:
    """Yields data files the log never heard of, written after its newest commit.

    They are the trace of a commit that is lost, or of a writer at work.
    """
    known = frozenset(snapshot.column("key").to_pylist())
    known |= frozenset(snapshot.tombstones.column("key").to_pylist())
    for meta in store.list(""):
        top = meta.key.partition("/")[0]
        if top == log_directory or top.startswith(("_", ".")) or meta.key in known:
            continue
        if meta.key.endswith(".parquet") and meta.modified_ms > committed_ms:
            yield meta.key


def lost_from_slices(state: Snapshot, checked: Validation) -> RepairError | None:
    """Returns why the rows of slices cannot be told any more.

    None if whatever is lost is lost by itself.
    """
    lost = [*checked.missing, *checked.mismatched]
    if logs := [one for one in lost if one.is_log]:
        return RepairError(
            f"log files of slices are not as the log says: {listed(logs)}",
            hint="without them deleted and replaced rows would come back: restore the files",
            excluded=tuple(logs),
        )
    if bases := _completed_by_others(state, lost):
        return RepairError(
            f"files whose rows are completed by others are not as the log says: {listed(bases)}",
            hint="without them rows would show NULL for what they had: restore the files",
            excluded=tuple(bases),
        )
    return None


def _completed_by_others(state: Snapshot, lost: list[Excluded]) -> list[Excluded]:
    """Returns those of whose rows a log file sets some columns; the other columns would be NULL."""
    if not lost or state.properties.get(MERGE_MODE, MergeMode.RECORD) == MergeMode.RECORD:
        return []
    groups = pa.array(sorted(state.groups_of(frozenset(one.path for one in lost))), pa.string())
    files = state.splits(np.asarray(pc.is_in(state.column("file_group"), groups)))
    partial = {f.file_group for f in files if f.is_log and columns_set(f.extra_json) is not None}
    needed = {f.path for f in files if f.file_group in partial}
    return [one for one in lost if one.path in needed]
