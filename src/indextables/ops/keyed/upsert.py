"""The rows of an upsert as the table takes them: whole, or the columns that are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indextables.core.prune.evaluate import may_match
from indextables.core.types import StructType, schema_to_arrow
from indextables.errors import SchemaMismatchError
from indextables.log.commit.intent import CommitPlan, Upsert
from indextables.log.state.rows import Split
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Action, Metadata, Txn
from indextables.ops.keyed.files import (
    Files,
    LogRows,
    adds_of,
    by_number,
    commit_keyed,
    condition_on,
    distinct_rows,
    metrics_of,
    rule_of,
)
from indextables.ops.shared.commit import CommitResult, config_for, is_done
from indextables.ops.shared.executor import Executor
from indextables.ops.shared.schema import evolved, merged_schema
from indextables.parquet.read.key_index import KeyIndex, Numbers, distinct_numbers
from indextables.parquet.read.read import (
    Home,
    Places,
    ReadRequest,
    key_condition,
    live_places,
    read_batches,
    units_of,
)
from indextables.parquet.write.conform import conform, source_schema
from indextables.parquet.write.write import Written, partition_texts
from indextables.plan.merge_rule import MergeMode, MergeRule
from indextables.plan.planner import plan_files


@dataclass(frozen=True)
class Incoming:
    """The rows of an upsert as this version of the table takes them."""

    metadata: Metadata
    rule: MergeRule
    rows: pa.Table
    """The columns the data gives, in the table's order and types."""
    known_index: KeyIndex | None = None

    @cached_property
    def index(self) -> KeyIndex:
        """Returns the keys of the rows, to find them in files.

        Not needed where no file can have one.
        """
        return self.known_index or KeyIndex.of(self.keys)

    @property
    def keys(self) -> pa.Table:
        """Returns the key of each row."""
        return self.rows.select(list(self.rule.key))

    @property
    def is_partial(self) -> bool:
        """Returns True if other columns keep their values."""
        return len(self.rows.column_names) < len(self.metadata.schema.fields)

    @property
    def given_partitions(self) -> tuple[str, ...]:
        """Returns the partition columns the data says something of."""
        given = set(self.rows.column_names)
        return tuple(name for name in self.metadata.partition_columns if name in given)


def fitted(raw: pa.Table, metadata: Metadata, *, merge_schema: bool, is_late: bool = False) -> Incoming:
    """Returns the data as rows of this table.

    SchemaMismatchError or DuplicateKeyError if they cannot be that.
    """
    rule = rule_of(metadata, "upsert")
    if merge_schema:
        metadata = evolved(metadata, merged_schema(metadata.schema, source_schema(raw.schema)))
    schema, merge = metadata.schema, merge_schema or is_late
    if rule.mode is MergeMode.COLUMNS:
        given = {name.lower() for name in (*raw.column_names, *rule.key)}
        schema = StructType(tuple(field for field in schema if field.name.lower() in given))
        merge = False
    rows, index = distinct_rows(raw, schema, rule, merge=merge)
    return Incoming(metadata, rule, rows, index)


def completed(rows: pa.Table, new: Incoming) -> pa.Table:
    """Returns rows of new keys, whole: what the data leaves out is NULL, if it may be."""
    schema = new.metadata.schema
    missing = [f.name for f in schema if not f.nullable and f.name not in rows.column_names]
    if rows.num_rows and missing:
        key = {name: rows.column(name)[0].as_py() for name in new.rule.key}
        raise SchemaMismatchError(
            f"the key {key} is not in the table, and its new row would have NULL in {missing}, "
            "which the table says never happens",
            hint="give these columns for keys that are new",
            columns=tuple(missing),
        )
    return pa.Table.from_batches(conform(rows.to_batches(), schema), schema_to_arrow(schema))


# Insert or replace rows by their key: a log file for every group that has some, new groups for the rest.

Mask = npt.NDArray[np.bool_]


def upsert(
    log: TransactionLog,
    executor: Executor,
    data: Any,
    *,
    merge_schema: bool = False,
    options: Mapping[str, Any] | None = None,
    txn: Txn | None = None,
    operation: str = "UPSERT",
) -> CommitResult:
    """Commits the rows of `data`, each in place of the row that has its key, if there is one.

    SchemaError for a table without a record key, DuplicateKeyError if the data repeats a key. In a table
    that merges columns the data may leave columns out: they keep their values.
    """
    snapshot = log.snapshot()
    config_for(snapshot.properties, options)
    rule_of(snapshot.metadata, operation.lower())
    if is_done(snapshot, txn):
        return CommitResult(snapshot.version, operation, committed=False)
    raw = executor.fetch(executor.prepare(data))
    planner = UpsertPlanner(
        raw, Files(log.store, options), merge_schema=merge_schema, txn=txn, operation=operation
    )
    return commit_keyed(log, planner, snapshot)


@dataclass
class UpsertPlanner:
    """Places the same rows in whatever snapshot is the newest."""

    raw: pa.Table
    files: Files
    merge_schema: bool = False
    txn: Txn | None = None
    operation: str = "UPSERT"
    _incoming: dict[Metadata, Incoming] = field(default_factory=dict)

    def __call__(self, snapshot: Snapshot) -> CommitPlan:
        """Returns the log files and new groups that bring these rows into this snapshot."""
        new = self._fitted(snapshot.metadata)
        condition = condition_on(new.keys, new.metadata.schema, snapshot)
        places = self._places(new, snapshot.splits(may_match(condition, snapshot.index())))
        settled = settle(new, places)
        wanted = _logs_of(new, settled, places.groups)
        logs = self.files.logs(new.metadata, snapshot.version, wanted)
        bases = self._bases(snapshot, new, settled)
        metadata: tuple[Action, ...] = (new.metadata,) if new.metadata != snapshot.metadata else ()
        return CommitPlan(
            self._verb(snapshot, new, settled, wanted),
            self.operation,
            (*metadata, *((self.txn,) if self.txn else ()), *adds_of(*logs, *bases)),
            metrics={**metrics_of(*logs, *bases), **settled.metrics},
        )

    def _places(self, new: Incoming, splits: Sequence[Split]) -> Places:
        """Returns where the keys are; none of these files, and the keys need not even be indexed."""
        if not splits:
            return Places.nowhere()
        return live_places(
            self.files.store,
            new.metadata.schema,
            new.rule.key,
            splits,
            wanted=new.keys,
            index=new.index,
        )

    def _verb(
        self, snapshot: Snapshot, new: Incoming, settled: Settled, logs: Sequence[LogRows]
    ) -> Upsert:
        """Returns what the plan relies on: where its keys are, and that those it inserts are nowhere."""
        schema, inserted = new.metadata.schema, new.keys.take(settled.inserted)
        return Upsert(
            condition_on(new.keys, schema, snapshot),
            frozenset(log.home.group for log in logs),
            inserted=condition_on(inserted, schema, snapshot) if inserted.num_rows else None,
            partial=new.is_partial,
        )

    def _fitted(self, metadata: Metadata) -> Incoming:
        if metadata not in self._incoming:
            first = next(iter(self._incoming.values()), None)
            # what has fitted once may lack a column that the table got since: that one is NULL
            raw = self.raw if first is None else first.rows
            self._incoming[metadata] = fitted(
                raw, metadata, merge_schema=self.merge_schema, is_late=first is not None
            )
        return self._incoming[metadata]

    def _bases(self, snapshot: Snapshot, new: Incoming, settled: Settled) -> list[Written]:
        """Returns new groups for the rows that no group keeps."""
        inserted = settled.inserted
        if not len(inserted):
            return []
        # all rows of an empty table's first upsert are new: they need not be copied
        rows = new.rows if len(inserted) == new.rows.num_rows else new.rows.take(inserted)
        what = inserted.tobytes()
        if new.is_partial:
            moved = settled.homes[inserted] >= 0
            parts = (
                completed(rows.filter(pa.array(~moved)), new),
                self._overlaid(snapshot, new, rows.filter(pa.array(moved))),
            )
            rows = pa.concat_tables(parts)
            if moved.any():
                what += snapshot.version.to_bytes(8, "big")  # what the table held is part of these rows
        return [self.files.bases(new.metadata, snapshot.version, rows, what)]

    def _overlaid(self, snapshot: Snapshot, new: Incoming, rows: pa.Table) -> pa.Table:
        """Returns rows that leave their partition, whole: what the data leaves out is what the table has."""
        schema, key = new.metadata.schema, list(new.rule.key)
        wanted = schema_to_arrow(schema)
        if not rows.num_rows:
            return wanted.empty_table()
        condition = key_condition(rows.select(key), schema)
        request = ReadRequest(self.files.store, schema, schema.names, condition)
        plan = plan_files(snapshot, condition, case_sensitive=True)
        old = pa.Table.from_batches(read_batches(request, units_of(plan)), wanted)
        index = KeyIndex.of(old.select(key))
        old = old.take(index.rows()[index.find(rows.select(key))])
        given = {name: rows.column(name) for name in rows.column_names}
        return pa.table([given.get(name, old.column(name)) for name in schema.names], schema=wanted)


@dataclass(frozen=True, slots=True)
class Settled:
    """Where each row of an upsert goes."""

    stays: Mask
    """For each row, whether the group that has its key keeps it."""
    homes: Numbers
    """For each row, the group that has its key, by number; -1: none has."""
    leaves: tuple[Numbers, Numbers]
    """(group, row) wherever a row is and must go from: it changes its partition."""

    @property
    def inserted(self) -> Numbers:
        """Returns the rows that go to new groups."""
        return np.flatnonzero(~self.stays)

    @property
    def metrics(self) -> dict[str, int]:
        """Returns the numbers for the commit."""
        moved = int(np.count_nonzero(self.homes[self.inserted] >= 0))
        kept = int(np.count_nonzero(self.stays))
        touched = distinct_numbers(np.concatenate((self.homes[self.stays], self.leaves[0])))
        return {
            "numOutputRows": len(self.stays),
            "numInsertedRows": len(self.stays) - kept - moved,
            "numUpdatedRows": kept + moved,
            "numMovedRows": moved,
            "numTouchedGroups": len(touched),
        }


def settle(new: Incoming, places: Places) -> Settled:
    """Returns a row stays in the group that has its key if that is in the row's partition."""
    homes = np.full(new.rows.num_rows, -1, np.int64)
    stays = np.zeros(new.rows.num_rows, np.bool_)
    if not len(places.keys):
        return Settled(stays, homes, (places.homes, places.keys))
    rows = new.index.rows()[places.keys]
    mine, theirs = _partition_codes(new, places.groups)
    fits = mine[rows] == theirs[places.homes]
    # Keys are unique, so each has one home; were there two, one of them keeps the row and the others lose it.
    homes[rows] = places.homes
    homes[rows[fits]] = places.homes[fits]
    stays[rows[fits]] = True
    leaves = ~(fits & (homes[rows] == places.homes))
    return Settled(stays, homes, (places.homes[leaves], rows[leaves]))


def _logs_of(new: Incoming, settled: Settled, groups: Sequence[Home]) -> list[LogRows]:
    """Returns a data log for each group that keeps rows, a delete log for each that some leave."""
    kept = by_number(settled.homes[settled.stays], np.flatnonzero(settled.stays))
    return [
        *(
            LogRows(groups[code], new.rows.take(rows), "data", rows.tobytes(), new.is_partial)
            for code, rows in kept.items()
        ),
        *(
            LogRows(groups[code], new.keys.take(rows), "delete", rows.tobytes())
            for code, rows in by_number(*settled.leaves).items()
        ),
    ]


def _partition_codes(new: Incoming, groups: Sequence[Home]) -> tuple[Numbers, Numbers]:
    """Returns one number per row and per group, equal where the partition columns the data gives are equal."""
    names = new.given_partitions
    codes: dict[tuple[str | None, ...], int] = {}
    theirs = [
        codes.setdefault(tuple(home.partition_values.get(name) for name in names), len(codes))
        for home in groups
    ]
    mine = np.zeros(new.rows.num_rows, np.int64)
    for texts, rows in partition_texts(new.rows, names, new.metadata.schema):
        mine[rows] = codes.setdefault(texts, len(codes))
    return mine, np.array(theirs, np.int64)
