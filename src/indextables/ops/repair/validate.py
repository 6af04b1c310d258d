"""Checks the splits of a log against the store, and finds those a table with slices cannot do without."""

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

# Asks the store whether every split is where the log says, and as large; many at a time.

Progress: TypeAlias = Callable[[int, int], None]
"""Called with (done, total) as work goes on, from one thread at a time."""

_Row: TypeAlias = tuple[str, int | None, str | None]
_AT_ONCE: Final = 64


@dataclass(frozen=True, slots=True)
class Validation:
    """Which splits are stored as the log says, in the snapshot's order, and what is wrong with the others."""

    valid: npt.NDArray[np.bool_]
    missing: tuple[Excluded, ...] = ()
    mismatched: tuple[Excluded, ...] = ()


def unchecked(snapshot: Snapshot) -> Validation:
    """Returns the splits without looking: the log is believed."""
    return Validation(np.ones(snapshot.num_files, np.bool_))


def validate(
    snapshot: Snapshot, store: LogStore, parallelism: int, progress: Progress | None = None
) -> Validation:
    """Asks the store for each split; only 'not found' means missing, any other failure is raised."""
    columns = (snapshot.column(name).to_pylist() for name in ("key", "size", "kind"))
    rows: list[_Row] = list(zip(*columns, strict=True))
    counter = _Counter(len(rows), progress)

    def look(start: int) -> list[int | None]:
        some = rows[start : start + _AT_ONCE]
        sizes = [_size(store, key) for key, _, _ in some]
        counter.add(len(some))
        return sizes

    with ThreadPoolExecutor(parallelism, "indextables-repair") as pool:
        try:
            sizes = [size for some in pool.map(look, range(0, len(rows), _AT_ONCE)) for size in some]
        except BaseException:
            pool.shutdown(cancel_futures=True)  # one failure ends the run, so the rest is not asked for
            raise
    return _judged(rows, sizes)


def _judged(rows: Sequence[_Row], sizes: Sequence[int | None]) -> Validation:
    missing, mismatched = [], []
    valid = np.ones(len(rows), np.bool_)
    for row, ((key, expected, kind), found) in enumerate(zip(rows, sizes, strict=True)):
        if found is None:
            missing.append(Excluded(key, "there is no such file", kind == "log"))
        elif expected is not None and found != expected:
            reason = f"it has {found} bytes, but the log says {expected}"
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
    """Yields data files that the log does not know and that were written after its newest commit.

    They were written by a commit that is lost, or by a writer at work.
    """
    known = frozenset(snapshot.column("key").to_pylist())
    known |= frozenset(snapshot.tombstones.column("key").to_pylist())
    for meta in store.list(""):
        top = meta.key.partition("/")[0]
        if top == log_directory or top.startswith(("_", ".")) or meta.key in known:
            continue
        if meta.key.endswith(".parquet") and meta.modified_ms > committed_ms:
            yield meta.key


def all_lost(state: Snapshot, checked: Validation) -> RepairError | None:
    """Returns why a log of which no split is there is not repaired: it lies beside another table, if any."""
    if not state.num_files or checked.valid.any():
        return None
    return RepairError(
        f"none of the {state.num_files} splits is where the log says: {listed(checked.missing[:3])}",
        hint="is this log where its table is, and are these the right credentials? To give up all rows, create "
        "a new table; validateSplits=false keeps every split at the log's word",
        excluded=(*checked.missing, *checked.mismatched),
    )


def lost_from_slices(state: Snapshot, checked: Validation) -> RepairError | None:
    """Returns the error for lost files without which slices would show wrong rows; None if there are none."""
    lost = [*checked.missing, *checked.mismatched]
    if deltas := [one for one in lost if one.is_delta]:
        return RepairError(
            f"delta files are not stored as the log says: {listed(deltas)}",
            hint="restore the files: without them deleted and replaced rows would come back",
            excluded=tuple(deltas),
        )
    if bases := _completed_by_others(state, lost):
        return RepairError(
            f"files whose rows delta files update are not stored as the log says: {listed(bases)}",
            hint="restore the files: without them rows would show NULL in the other columns",
            excluded=tuple(bases),
        )
    return None


def _completed_by_others(state: Snapshot, lost: list[Excluded]) -> list[Excluded]:
    """Returns the lost files of which a delta file sets only some columns; the other columns would be NULL."""
    if not lost or state.properties.get(MERGE_MODE, MergeMode.RECORD) == MergeMode.RECORD:
        return []
    slices = pa.array(sorted(state.groups_of(frozenset(one.path for one in lost))), pa.string())
    files = state.splits(np.asarray(pc.is_in(state.column("file_group"), slices)))
    partial = {f.file_group for f in files if f.is_delta and columns_set(f.extra_json) is not None}
    needed = {f.path for f in files if f.file_group in partial}
    return [one for one in lost if one.path in needed]
