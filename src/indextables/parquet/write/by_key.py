"""Changes by key in this process: rows are placed, and written as delta files of slices or as new slices.

The rows are held in memory: they are placed again for every version a commit is tried on. A file that was
written for one version serves the next one as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from indextables.core.predicate.nodes import Predicate
from indextables.core.prune.evaluate import may_match
from indextables.core.stats.columns import FileMask
from indextables.core.types import StructType, schema_to_arrow
from indextables.errors import DuplicateKeyError, SchemaMismatchError
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.actions import Metadata
from indextables.parquet.read.key_index import KeyIndex, Mask, Numbers, by_number, surely_distinct
from indextables.parquet.read.read import (
    Home,
    Places,
    ReadRequest,
    key_condition,
    live_places,
    read_batches,
    units_of,
)
from indextables.parquet.write.conform import check_fits, conform, source_schema
from indextables.parquet.write.removed_rows import Search, fingerprint
from indextables.parquet.write.within import all_within
from indextables.parquet.write.write import (
    Changes,
    WriteTarget,
    Written,
    as_new_groups,
    partition_texts,
    write_log,
    write_splits,
)
from indextables.plan.merge_rule import MergeRule
from indextables.plan.planner import plan_files
from indextables.storage.base import LogStore

_THREADS: Final = 2


@dataclass(frozen=True)
class KeyedRows:
    """The rows of a change as one version of the table takes them; no two have one key."""

    metadata: Metadata
    rows: pa.Table
    """The columns that are set, in the table's order and types."""
    known_index: KeyIndex | None = None

    @cached_property
    def index(self) -> KeyIndex:
        """Returns the keys of the rows, to find them in files.

        Not needed where no file can have one.
        """
        return self.known_index or KeyIndex.of(self.keys)

    @property
    def key(self) -> tuple[str, ...]:
        """Returns the columns of the record key."""
        return MergeRule.of(self.metadata.properties).key

    @property
    def keys(self) -> pa.Table:
        """Returns the key of each row."""
        return self.rows.select(list(self.key))

    @cached_property
    def condition(self) -> Predicate:
        """Returns the condition that a row has one of these keys."""
        return key_condition(self.keys, self.metadata.schema)

    @property
    def is_partial(self) -> bool:
        """Returns True if other columns keep their values."""
        return len(self.rows.column_names) < len(self.metadata.schema.fields)


def fitted(raw: pa.Table, metadata: Metadata, *, merge: bool) -> KeyedRows:
    """Returns the data as rows of this table.

    SchemaMismatchError or DuplicateKeyError if they cannot be that.
    """
    rule = MergeRule.of(metadata.properties)
    schema = rule.columns_set(metadata.schema, raw.column_names)
    check_fits(raw.schema, schema, merge=merge)
    rows = pa.Table.from_batches(conform(raw.to_batches(), schema), schema_to_arrow(schema))
    keys = rows.select(list(rule.key))
    index = None if surely_distinct(keys) else KeyIndex.of(keys)
    if index is not None and index.size < rows.num_rows:
        repeated = index.repeated()
        first = int(np.argmax(repeated))
        key = {name: _shown(keys.column(name)[first]) for name in rule.key}
        raise DuplicateKeyError(
            f"{int(repeated.sum())} rows of the data repeat the key of an earlier row, the first of them "
            f"{', '.join(f'{name} = {value}' for name, value in key.items())}",
            hint="keep one row for each key: which of them is newer, the data does not say",
            row=first,
            record_key=key,
        )
    return KeyedRows(metadata, rows, index)


def _shown(value: Any) -> Any:
    """Returns the value as Python has it; its text where Python has none (a year outside 1-9999)."""
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        return str(value.cast(pa.int64()))


@dataclass(frozen=True, slots=True)
class DeltaRows:
    """The rows of one delta file; `what` tells different rows for one slice apart."""

    home: Home
    rows: pa.Table
    block: Literal["data", "delete"]
    what: bytes
    is_partial: bool = False
    """They set some columns only."""


@dataclass(frozen=True, slots=True)
class Found:
    """What there is to write; `what` tells different rows for new slices apart."""

    deltas: Sequence[DeltaRows]
    bases: pa.Table | None = None
    what: bytes = b""


@dataclass
class ArrowChange:
    """One change by key: its rows, and what was written for it so far."""

    store: LogStore
    raw: pa.Table | None = None
    _fitted: dict[Metadata, KeyedRows] = field(default_factory=dict)
    _written: dict[Any, Written] = field(default_factory=dict)
    _read: dict[Any, pa.Table] = field(default_factory=dict)

    def source_schema(self) -> StructType:
        """Returns the schema a table of exactly these rows would have."""
        return source_schema(self._raw.schema)

    def fit(self, metadata: Metadata, *, merge: bool) -> KeyedRows:
        """Returns the rows as a table with this metadata takes them.

        What has fitted once may lack a column that the table got since: that one is NULL.
        """
        if metadata not in self._fitted:
            first = next(iter(self._fitted.values()), None)
            raw = self._raw if first is None else first.rows
            self._fitted[metadata] = fitted(raw, metadata, merge=merge or first is not None)
        return self._fitted[metadata]

    def find(self, snapshot: Snapshot, rows: KeyedRows, condition: Predicate) -> Changes:
        """Returns where each row belongs: into the slice that has its key, or into a new one."""
        splits = snapshot.splits(may_match(condition, snapshot.index()))
        places = Places.nowhere()
        if splits:  # none of these files, and the keys need not even be indexed
            places = live_places(
                self.store,
                rows.metadata.schema,
                rows.key,
                splits,
                wanted=rows.keys,
                index=rows.index,
            )
        return self._changes(snapshot, rows, _placed(rows, places), places.groups)

    def find_removed(
        self, snapshot: Snapshot, metadata: Metadata, among: FileMask, condition: Predicate | None
    ) -> Changes:
        """Returns the rows in these files that the condition is TRUE for or that have the key of a new row."""
        search = Search(self.store, snapshot, metadata, among, self._read)
        keys, emptied = search.matching(condition)
        inserted = None
        if self.raw is not None and self.raw.num_rows:
            rows = self.fit(metadata, merge=True)
            inserted = rows.condition
            for home, found in search.with_keys(rows.keys, rows.index, inserted, emptied).items():
                keys.setdefault(home, []).append(found)
        once = {home: search.once(parts) for home, parts in keys.items()}
        deltas = [DeltaRows(home, rows, "delete", fingerprint(rows)) for home, rows in once.items()]
        return Changes(
            Found(deltas),
            deleted=sum(rows.num_rows for rows in (*once.values(), *emptied.values())),
            inserted_keys=inserted,
            emptied=tuple(emptied),
        )

    def shown_rows(self, snapshot: Snapshot) -> int | None:
        """Returns None: only reading the slices would tell."""
        del snapshot
        return None

    def write_all(
        self, metadata: Metadata, target: WriteTarget, *, merge: bool, within: Predicate | None
    ) -> Written:
        """Returns all rows as new slices; PredicateError if the condition `within` is not TRUE for one."""
        batches = self.fit(metadata, merge=merge).rows.to_batches()
        if within is not None:
            batches = list(all_within(batches, within, metadata.partition_columns))
        return self._once(b"all", lambda: as_new_groups(write_splits(batches, self.store, target)))

    def write_deltas(self, changes: Changes, target: WriteTarget) -> Written:
        """Returns the rows that are replaced or removed as delta files of their slices, a few at a time."""

        def write(delta: DeltaRows) -> Written:
            columns = delta.rows.column_names if delta.is_partial else None
            return self._once(
                (target.schema_id, delta.home.group, delta.block, delta.what),
                lambda: write_log(
                    self.store, target, delta.home, delta.rows, block=delta.block, columns=columns
                ),
            )

        with ThreadPoolExecutor(_THREADS, "indextables-deltas") as pool:
            work = [pool.submit(write, delta) for delta in changes.found.deltas]
            try:
                return sum((future.result() for future in work), Written())
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def write_bases(self, changes: Changes, target: WriteTarget) -> Written:
        """Returns the rows that are new, or come from another slice, as new slices."""
        found = changes.found
        if found.bases is None:
            return Written()
        return self._once(
            (target.schema_id, None, found.what),
            lambda: as_new_groups(write_splits(found.bases.to_batches(), self.store, target)),
        )

    def discard(self) -> None:
        """Deletes all that was written: for a change that never tried to commit."""
        for written in self._written.values():
            for add in written.adds:
                with suppress(Exception):
                    self.store.delete(add.path)

    @property
    def _raw(self) -> pa.Table:
        assert self.raw is not None, "a change that only removes rows has none of its own"
        return self.raw

    def _once(self, what: Any, write: Callable[[], Written]) -> Written:
        if what not in self._written:
            self._written[what] = write()
        return self._written[what]

    def _changes(
        self, snapshot: Snapshot, new: KeyedRows, placed: _Placed, groups: Sequence[Home]
    ) -> Changes:
        inserted = placed.inserted
        moved = int(np.count_nonzero(placed.homes[inserted] >= 0))
        bases, what, keys = None, b"", None
        if len(inserted):
            bases, what = self._whole_rows(snapshot, new, placed)
            keys = key_condition(new.keys.take(inserted), new.metadata.schema)
        return Changes(
            Found(_deltas_of(new, placed, groups), bases, what),
            updated=len(placed.stays) - len(inserted) + moved,
            moved=moved,
            inserted=len(inserted) - moved,
            inserted_keys=keys,
        )

    def _whole_rows(
        self, snapshot: Snapshot, new: KeyedRows, placed: _Placed
    ) -> tuple[pa.Table, bytes]:
        """Returns the rows that no slice keeps, with all columns."""
        inserted = placed.inserted
        # all rows of an empty table's first upsert are new: they need not be copied
        rows = new.rows if len(inserted) == new.rows.num_rows else new.rows.take(inserted)
        if not new.is_partial:
            return rows, inserted.tobytes()
        moved = placed.homes[inserted] >= 0
        parts = (
            _completed(rows.filter(pa.array(~moved)), new),
            self._overlaid(snapshot, new, rows.filter(pa.array(moved))),
        )
        # what the table held is part of the rows that move
        version = snapshot.version.to_bytes(8, "big") if moved.any() else b""
        return pa.concat_tables(parts), inserted.tobytes() + version

    def _overlaid(self, snapshot: Snapshot, new: KeyedRows, rows: pa.Table) -> pa.Table:
        """Returns rows that leave their partition, whole: what the data leaves out is what the table has."""
        schema, key = new.metadata.schema, list(new.key)
        wanted = schema_to_arrow(schema)
        if not rows.num_rows:
            return wanted.empty_table()
        condition = key_condition(rows.select(key), schema)
        request = ReadRequest(self.store, schema, schema.names, condition)
        plan = plan_files(snapshot, condition, case_sensitive=True)
        old = pa.Table.from_batches(read_batches(request, units_of(plan)), wanted)
        index = KeyIndex.of(old.select(key))
        old = old.take(index.rows()[index.find(rows.select(key))])
        given = {name: rows.column(name) for name in rows.column_names}
        return pa.table([given.get(name, old.column(name)) for name in schema.names], schema=wanted)


def _completed(rows: pa.Table, new: KeyedRows) -> pa.Table:
    """Returns rows of new keys, whole: what the data leaves out is NULL, if it may be."""
    schema = new.metadata.schema
    missing = [f.name for f in schema if not f.nullable and f.name not in rows.column_names]
    if rows.num_rows and missing:
        key = {name: rows.column(name)[0].as_py() for name in new.key}
        raise SchemaMismatchError(
            f"the key {key} is not in the table, and its new row would have NULL in {missing}, "
            "which the table says never happens",
            hint="give these columns for keys that are new",
            columns=tuple(missing),
        )
    return pa.Table.from_batches(conform(rows.to_batches(), schema), schema_to_arrow(schema))


@dataclass(frozen=True, slots=True)
class _Placed:
    """Where each row of an upsert goes."""

    stays: Mask
    """For each row, whether the slice that has its key keeps it."""
    homes: Numbers
    """For each row, the slice that has its key, by number; -1: none has."""
    leaves: tuple[Numbers, Numbers]
    """(slice, row) wherever a row is and must go from: it changes its partition."""

    @property
    def inserted(self) -> Numbers:
        """Returns the rows that go to new slices."""
        return np.flatnonzero(~self.stays)


def _placed(new: KeyedRows, places: Places) -> _Placed:
    """Returns the places: a row stays in the slice that has its key if that is in the row's partition."""
    homes = np.full(new.rows.num_rows, -1, np.int64)
    stays = np.zeros(new.rows.num_rows, np.bool_)
    if not len(places.keys):
        return _Placed(stays, homes, (places.homes, places.keys))
    rows = new.index.rows()[places.keys]
    mine, theirs = _partition_codes(new, places.groups)
    fits = mine[rows] == theirs[places.homes]
    # Keys are unique, so each has one home; were there two, one of them keeps the row and the others lose it.
    homes[rows] = places.homes
    homes[rows[fits]] = places.homes[fits]
    stays[rows[fits]] = True
    leaves = ~(fits & (homes[rows] == places.homes))
    return _Placed(stays, homes, (places.homes[leaves], rows[leaves]))


def _deltas_of(new: KeyedRows, placed: _Placed, groups: Sequence[Home]) -> list[DeltaRows]:
    """Returns a data delta file for each slice that keeps rows, a delete delta file for each that some leave."""
    kept = by_number(placed.homes[placed.stays], np.flatnonzero(placed.stays))
    return [
        *(
            DeltaRows(groups[code], new.rows.take(rows), "data", rows.tobytes(), new.is_partial)
            for code, rows in kept.items()
        ),
        *(
            DeltaRows(groups[code], new.keys.take(rows), "delete", rows.tobytes())
            for code, rows in by_number(*placed.leaves).items()
        ),
    ]


def _partition_codes(new: KeyedRows, groups: Sequence[Home]) -> tuple[Numbers, Numbers]:
    """Returns one number per row and per slice, equal where the partition columns the data gives are equal."""
    names = [name for name in new.metadata.partition_columns if name in new.rows.column_names]
    codes: dict[tuple[str | None, ...], int] = {}
    theirs = [
        codes.setdefault(tuple(_texts(home.partition_values, names)), len(codes)) for home in groups
    ]
    mine = np.zeros(new.rows.num_rows, np.int64)
    for texts, rows in partition_texts(new.rows, names, new.metadata.schema):
        mine[rows] = codes.setdefault(texts, len(codes))
    return mine, np.array(theirs, np.int64)


def _texts(values: Mapping[str, str | None], names: Sequence[str]) -> list[str | None]:
    return [values.get(name) for name in names]
