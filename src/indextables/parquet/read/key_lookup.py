"""Where the rows with given keys are now: which file group shows each of them, if any does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.predicate.nodes import And, Compare, IsIn, Literal, Predicate, Ref
from indextables.core.types import DataType, StructType
from indextables.errors import ProtocolError
from indextables.log.state.rows import Split
from indextables.parquet.read.key_index import KeyIndex, Numbers, distinct_numbers
from indextables.parquet.read.read import Reading, read_batches
from indextables.storage.base import LogStore

LONGEST_LIST: Final = 4096
"""Distinct values of a key column up to which a condition names each of them."""
_THREADS: Final = 2


@dataclass(frozen=True, slots=True)
class Home:
    """A file group and the partition all its rows are in."""

    group: str
    partition_values: Mapping[str, str | None] = field(hash=False)

    @classmethod
    def of(cls, split: Split) -> Home:
        """The group of this file; ProtocolError if it has none, because no log file could join it."""
        if split.file_group is None:
            raise ProtocolError(
                f"the file {split.path!r} of a table with a record key belongs to no file group",
                hint="it was added by a writer that does not know record keys; write the table anew",
                key=split.path,
            )
        return cls(split.file_group, split.partition_values)


@dataclass(frozen=True, slots=True)
class Places:
    """Every row that has one of some keys: `keys` by number in their index, `homes` by place in `groups`."""

    keys: Numbers
    homes: Numbers
    groups: tuple[Home, ...]

    @classmethod
    def nowhere(cls) -> Places:
        """No row has one of the keys."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), ())


def key_condition(keys: pa.Table, schema: StructType) -> Predicate:
    """TRUE for every row that has one of these keys, and for as few others as ranges and lists can say."""
    types = {f.name: f.type for f in schema}
    parts = [
        part for name in keys.column_names for part in _within(name, types[name], keys.column(name))
    ]
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def live_places(
    store: LogStore,
    schema: StructType,
    key: Sequence[str],
    splits: Sequence[Split],
    *,
    wanted: pa.Table,
    index: KeyIndex,
) -> Places:
    """The rows that have one of the `wanted` keys, which `index` numbers.

    `splits` are all files that may hold one: of a key only what its newest file in a group says counts,
    so files that hold none of the keys are not needed. Only the key columns are read.
    """
    reading = Reading(store, schema, tuple(key), key_condition(wanted, schema))

    def find(split: Split) -> Numbers:
        found = [index.find(batch) for batch in read_batches(reading, [split])]
        numbers = np.concatenate(found) if found else np.zeros(0, np.int64)
        return distinct_numbers(numbers[numbers >= 0])

    with ThreadPoolExecutor(_THREADS, "indextables-place") as pool:
        # each in a copy of this thread's context, where queries count what they open
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


def _within(name: str, dtype: DataType, column: Any) -> Iterator[Predicate]:
    ref = Ref((name,))
    # A few rows may show that there are too many values; only if they do not, all are looked at.
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


def _natural(values: Any) -> list[Any]:
    """The values as literals hold them; days and microseconds, as years outside 1-9999 are no dates."""
    if pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    plain: list[Any] = values.to_pylist()
    return plain
