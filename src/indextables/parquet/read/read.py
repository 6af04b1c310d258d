"""Reads the rows of splits and slices in order, with bounded memory; each file is opened once."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Any, Final, Generic, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.fs import FileSystem

from indextables.core.predicate.nodes import And, Compare, IsIn, Literal, Predicate, Ref
from indextables.core.stats.columns import FileMask, as_mask
from indextables.core.types import DataType, StructType
from indextables.errors import ProtocolError
from indextables.log.state.rows import Split
from indextables.parquet.read.key_index import KeyIndex, Numbers, distinct_numbers
from indextables.parquet.read.merge_slice import read_piece
from indextables.parquet.read.split import ReadRequest, open_split, read_split
from indextables.plan.merge_rule import Piece
from indextables.plan.planner import Plan
from indextables.plan.report import Recorder
from indextables.plan.slices import slices_of
from indextables.storage.base import LogStore

__all__ = ["THREADS", "ReadRequest", "Unit", "count_rows", "plain_files", "read_batches", "units_of"]


# Several streams, read ahead by a few threads and returned in order, with bounded memory.

T = TypeVar("T")
Stream: TypeAlias = Callable[[], Iterable[T]]

_DEPTH: Final = 4
_END: Final = object()


def in_order(streams: Sequence[Stream[T]], *, threads: int) -> Iterator[T]:
    """Yields every item of every stream in the order of a plain loop; an error is raised in its place.

    At most `threads` streams are open at a time, and each is at most a few items ahead of the consumer.
    """
    if threads < 2 or len(streams) < 2:
        for stream in streams:
            yield from stream()
        return
    stop = threading.Event()
    waiting = iter(streams)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="indextables-read")
    try:
        ahead = deque(_Ahead(stream, pool, stop) for stream in islice(waiting, threads))
        while ahead:
            yield from ahead[0]
            ahead.popleft()
            ahead.extend(_Ahead(stream, pool, stop) for stream in islice(waiting, 1))
    finally:
        # The consumer may stop early, which threads that wait for room in a queue must notice.
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


class _Ahead(Generic[T]):
    """A stream that a thread drains into a short queue."""

    def __init__(self, stream: Stream[T], pool: ThreadPoolExecutor, stop: threading.Event) -> None:
        self._items: queue.Queue[object] = queue.Queue(_DEPTH)
        self._stop = stop
        self._error: BaseException | None = None
        pool.submit(self._drain, stream)

    def __iter__(self) -> Iterator[T]:
        while (item := self._items.get()) is not _END:
            yield item  # type: ignore[misc]
        if self._error is not None:
            raise self._error

    def _drain(self, stream: Stream[T]) -> None:
        try:
            for item in stream():
                if not self._put(item):
                    return
        except BaseException as error:  # noqa: BLE001 - it is raised again in the consumer
            self._error = error
        self._put(_END)

    def _put(self, item: object) -> bool:
        while not self._stop.is_set():
            try:
                self._items.put(item, timeout=0.05)
            except queue.Full:
                continue
            return True
        return False


THREADS: Final = 4
_QUICK_BYTES: Final = 1 << 20

Unit: TypeAlias = Split | Piece
"""What is read at a time: a file as it is, or the files of a slice that must be merged."""


def plain_files(plan: Plan) -> FileMask:
    """Returns the files whose rows are read as they are, in slices of which nothing has to be merged.

    The newest delta file of a slice that is merged is not among them: the merge opens it for its keys anyway.
    """
    if not plan.pieces:
        return plan.rows
    merged = pa.array([piece.file_group for piece in plan.pieces], pa.string())
    return plan.bare & ~as_mask(pc.is_in(plan.snapshot.column("file_group"), value_set=merged))


def units_of(plan: Plan, *, without: FileMask | None = None) -> list[Unit]:
    """Returns what the plan reads, in the order of the table, in which a slice has the rank of its oldest file.

    That is so even if the oldest file is not read, because the order of rows must not depend on what is
    skipped. `without` are plain files that someone else reads.
    """
    plan.snapshot.check_parquet()
    slices = slices_of(plan.snapshot)
    if slices is None:
        return list(plan.files if without is None else plan.snapshot.splits(plan.rows & ~without))
    wanted = plan.bare if plan.pieces else plan.rows
    wanted = wanted if without is None else wanted & ~without
    beside: dict[str, list[Split]] = {piece.file_group: [] for piece in plan.pieces}
    ranks: dict[str, int] = {}
    units: list[tuple[int, Unit]] = []
    first_files = slices.first_files[plan.mask].tolist()
    for split, rank, is_wanted in zip(plan.files, first_files, wanted[plan.mask].tolist(), strict=True):
        name = split.file_group or split.path
        ranks[name] = rank
        if is_wanted and name in beside:
            beside[name].append(split)
        elif is_wanted:
            units.append((rank, split))
    units += [(ranks[p.file_group], _with_files(p, beside[p.file_group])) for p in plan.pieces]
    return [unit for _, unit in sorted(units, key=itemgetter(0))]


def _with_files(piece: Piece, more: Sequence[Split]) -> Piece:
    """Returns the slice with delta files whose rows are all shown, as they are opened for their keys anyway."""
    return replace(piece, files=tuple(sorted((*piece.files, *more), key=_age)))


def read_batches(
    request: ReadRequest,
    units: Sequence[Unit],
    *,
    threads: int = THREADS,
    recorder: Recorder | None = None,
) -> Iterator[pa.RecordBatch]:
    """Returns the rows in the order of the units, then of their commits, then of the rows in a file.

    At most a few batches of a split are in memory, and the delta files of a slice. Each file that is opened
    is counted in the `query_stats()` blocks of the calling thread, or in those of the recorder.
    """
    recorder = recorder or Recorder.current()
    filesystem = request.store.filesystem()
    streams: list[Callable[[], Iterator[pa.RecordBatch]]] = [
        partial(_read, request, unit, filesystem, recorder) for unit in units
    ]
    return in_order(streams, threads=1 if _is_quick(request.store, units) else threads)


def count_rows(request: ReadRequest, units: Sequence[Unit], *, threads: int = THREADS) -> int:
    """Returns how many rows satisfy the predicate, without opening files whose row count the log has.

    The log does not know how many rows of a slice are hidden, so slices are counted by reading them.
    """
    if request.predicate is not None:
        # A file that matches whole counts as without a condition, the others are read.
        whole = [unit for unit in units if isinstance(unit, Split) and unit.path in request.whole]
        rest = [unit for unit in units if not (isinstance(unit, Split) and unit.path in request.whole)]
        matching: int = sum(batch.num_rows for batch in read_batches(request, rest, threads=threads))
        return matching + count_rows(replace(request, predicate=None), whole, threads=threads)
    known = {i: records for i, unit in enumerate(units) if (records := _records(unit)) is not None}
    unknown = [unit for i, unit in enumerate(units) if i not in known]
    recorder, filesystem = Recorder.current(), request.store.filesystem()
    footers = (
        open_split(filesystem, unit, recorder).metadata.num_rows
        for unit in unknown
        if isinstance(unit, Split)
    )
    pieces = [unit for unit in unknown if isinstance(unit, Piece)]
    merged = (batch.num_rows for batch in read_batches(request, pieces, threads=threads))
    return int(sum(known.values()) + sum(footers) + sum(merged))


def _read(
    request: ReadRequest, unit: Unit, filesystem: FileSystem, recorder: Recorder
) -> Iterator[pa.RecordBatch]:
    if isinstance(unit, Piece):
        return read_piece(request, unit, filesystem, recorder)
    return read_split(request.of(unit), unit, filesystem, recorder)


def _files(unit: Unit) -> Sequence[Split]:
    return (*unit.files, *unit.deltas) if isinstance(unit, Piece) else (unit,)


def _age(split: Split) -> tuple[int, str]:
    return split.seq, split.path


def _is_quick(store: LogStore, units: Sequence[Unit]) -> bool:
    """Returns True if starting threads would take longer than reading, as for little data without a network."""
    is_near = "://" not in store.uri or store.uri.startswith("memory://")
    return is_near and sum(split.size for unit in units for split in _files(unit)) < _QUICK_BYTES


def _records(unit: Unit) -> int | None:
    return None if isinstance(unit, Piece) else (unit.wire_stats or {}).get("numRecords")


# Where the rows with given keys are now: which slice shows each of them, if any does.

LONGEST_LIST: Final = 4096
"""A condition lists this many distinct values of a key column or fewer, and gives bounds of more."""
_THREADS: Final = 2


@dataclass(frozen=True, slots=True)
class Home:
    """A slice, by its `fileGroup`, and the partition of all its rows."""

    group: str
    partition_values: Mapping[str, str | None] = field(hash=False)

    @classmethod
    def of(cls, split: Split) -> Home:
        """Returns the slice of this file.

        Raises ProtocolError if the file has no `fileGroup`, because delta files could not name it then.
        """
        if split.file_group is None:
            raise ProtocolError(
                f"the file {split.path!r} belongs to no file group, although the table has a record key",
                hint="a writer that does not know record keys has added it; write the table anew",
                key=split.path,
            )
        return cls(split.file_group, split.partition_values)


@dataclass(frozen=True, slots=True)
class Places:
    """The rows that have given keys: for each, the number of its key and the index of its slice in `groups`."""

    keys: Numbers
    homes: Numbers
    groups: tuple[Home, ...]

    @classmethod
    def nowhere(cls) -> Places:
        """Returns the places of no rows at all."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), ())


def key_condition(keys: pa.Table, schema: StructType) -> Predicate:
    """Returns a condition that is TRUE for every row with one of these keys, and for few others."""
    types = {f.name: f.type for f in schema}
    conditions = [
        condition
        for name in keys.column_names
        for condition in _within(name, types[name], keys.column(name))
    ]
    return conditions[0] if len(conditions) == 1 else And(tuple(conditions))


def live_places(
    store: LogStore,
    schema: StructType,
    key: Sequence[str],
    splits: Sequence[Split],
    *,
    wanted: pa.Table,
    index: KeyIndex,
) -> Places:
    """Returns the rows that have one of the `wanted` keys, numbered by `index`.

    `splits` must have every file with one of the keys, since the newest file of a slice that has a key
    decides whether the slice shows a row. Only the key columns are read.
    """
    request = ReadRequest(store, schema, tuple(key), key_condition(wanted, schema))

    def find(split: Split) -> Numbers:
        found = [index.find(batch) for batch in read_batches(request, [split])]
        numbers = np.concatenate(found) if found else np.zeros(0, np.int64)
        return distinct_numbers(numbers[numbers >= 0])

    with ThreadPoolExecutor(_THREADS, "indextables-place") as pool:
        # Each runs in a copy of this thread's context, in which queries count what they open.
        work = [pool.submit(copy_context().run, find, split) for split in splits]
        found = [future.result() for future in work]
    homes = {split.file_group: Home.of(split) for split in splits}
    codes = {group: code for code, group in enumerate(homes)}
    counts = [len(numbers) for numbers in found]
    keys = np.concatenate(found) if found else np.zeros(0, np.int64)
    groups = np.repeat(np.array([codes[s.file_group] for s in splits], np.int64), counts)
    seq = np.repeat(np.array([s.seq for s in splits], np.int64), counts)
    gone = np.repeat(np.array([s.block == "delete" for s in splits], np.bool_), counts)
    order = np.lexsort((gone, seq, groups, keys))
    last = np.ones(len(order), np.bool_)
    last[:-1] = (np.diff(keys[order]) != 0) | (np.diff(groups[order]) != 0)
    live = order[last & ~gone[order]]
    return Places(keys[live], groups[live], tuple(homes.values()))


def _within(name: str, dtype: DataType, column: pa.ChunkedArray) -> Iterator[Predicate]:
    ref = Ref((name,))
    # A few rows may already have too many values; if they do not, all rows are looked at.
    distinct = pc.unique(column.slice(0, 2 * LONGEST_LIST))
    if len(distinct) <= LONGEST_LIST:
        distinct = pc.unique(column)
    if len(distinct) <= LONGEST_LIST:
        yield IsIn(ref, tuple(Literal(value, dtype) for value in _natural(distinct)))
        return
    bounds = pc.min_max(column)
    low, high = _natural(pa.array([bounds["min"], bounds["max"]], column.type))
    yield Compare(">=", ref, Literal(low, dtype))
    yield Compare("<=", ref, Literal(high, dtype))


def _natural(values: pa.Array) -> list[Any]:
    """Returns the values as literals have them: days and microseconds, as Python has years 1 to 9999 only."""
    if pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    plain: list[Any] = values.to_pylist()
    return plain
