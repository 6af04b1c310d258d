"""Insert or replace rows by their key: a log file for every group that has some, new groups for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indextables.arrow.conform import conform, source_schema
from indextables.arrow.keys import KeyIndex, Numbers
from indextables.arrow.place import Home, Places, key_condition, live_places
from indextables.arrow.read import Reading, read_batches, units_of
from indextables.arrow.write import partition_texts
from indextables.core.pruning.prune import may_match
from indextables.core.types import StructType, schema_to_arrow
from indextables.errors import SchemaMismatchError
from indextables.log.actions import Action, Metadata, Txn
from indextables.log.plan import CommitPlan, Upsert
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.ops.evolve import evolved, merged_schema
from indextables.ops.executor import Executor
from indextables.ops.keyed import (
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
from indextables.ops.result import CommitResult
from indextables.ops.target import config_for
from indextables.scan.merge import MergeMode, MergeRule
from indextables.scan.plan import plan_files

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


def is_done(snapshot: Snapshot, txn: Txn | None) -> bool:
    """Whether the application has committed this batch, or a later one, before."""
    done = snapshot.txns.get(txn.app_id) if txn else None
    return txn is not None and done is not None and done.version >= txn.version


@dataclass(frozen=True, slots=True)
class Incoming:
    """The rows of an upsert as this version of the table takes them."""

    metadata: Metadata
    rule: MergeRule
    rows: pa.Table
    """The columns the data gives, in the table's order and types."""
    index: KeyIndex

    @property
    def keys(self) -> pa.Table:
        """The key of each row."""
        return self.rows.select(list(self.rule.key))

    @property
    def is_partial(self) -> bool:
        """True if other columns keep their values."""
        return len(self.rows.column_names) < len(self.metadata.schema.fields)

    @property
    def given_partitions(self) -> tuple[str, ...]:
        """The partition columns the data says something of."""
        given = set(self.rows.column_names)
        return tuple(name for name in self.metadata.partition_columns if name in given)


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
        """The log files and new groups that bring these rows into this snapshot."""
        new = self._fitted(snapshot.metadata)
        condition = condition_on(new.keys, new.metadata.schema, snapshot)
        splits = snapshot.splits(may_match(condition, snapshot.index()))
        places = live_places(
            self.files.store,
            new.metadata.schema,
            new.rule.key,
            splits,
            wanted=new.keys,
            index=new.index,
        )
        stays, homes, leaves = settle(new, places)
        groups = places.groups
        logs = self.files.logs(
            new.metadata,
            snapshot.version,
            [
                *(
                    LogRows(groups[code], new.rows.take(rows), "data", rows.tobytes(), new.is_partial)
                    for code, rows in by_number(homes[stays], np.flatnonzero(stays)).items()
                ),
                *(
                    LogRows(groups[code], new.keys.take(rows), "delete", rows.tobytes())
                    for code, rows in by_number(*leaves).items()
                ),
            ],
        )
        inserted = np.flatnonzero(~stays)
        bases = self._bases(snapshot, new, inserted, homes[inserted] >= 0)
        touched = frozenset(add.file_group for add in adds_of(*logs) if add.file_group is not None)
        metadata: tuple[Action, ...] = (new.metadata,) if new.metadata != snapshot.metadata else ()
        moved = int(np.count_nonzero(homes[inserted] >= 0))
        return CommitPlan(
            Upsert(
                condition,
                touched,
                inserted=condition_on(new.keys.take(inserted), new.metadata.schema, snapshot)
                if len(inserted)
                else None,
                partial=new.is_partial,
            ),
            self.operation,
            (*metadata, *((self.txn,) if self.txn else ()), *adds_of(*logs, *bases)),
            metrics={
                **metrics_of(*logs, *bases),
                "numOutputRows": new.rows.num_rows,
                "numInsertedRows": len(inserted) - moved,
                "numUpdatedRows": int(np.count_nonzero(stays)) + moved,
                "numMovedRows": moved,
                "numTouchedGroups": len(touched),
            },
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

    def _bases(self, snapshot: Snapshot, new: Incoming, inserted: Numbers, moved: Mask) -> list[Any]:
        if not len(inserted):
            return []
        rows = new.rows.take(inserted)
        if new.is_partial:
            fresh = _completed(rows.filter(pa.array(~moved)), new)
            rows = pa.concat_tables(
                [fresh, self._overlaid(snapshot, new, rows.filter(pa.array(moved)))]
            )
        what = inserted.tobytes()
        if new.is_partial and moved.any():
            what += snapshot.version.to_bytes(8, "big")  # what the table held is part of these rows
        return [self.files.bases(new.metadata, snapshot.version, rows, what)]

    def _overlaid(self, snapshot: Snapshot, new: Incoming, rows: pa.Table) -> pa.Table:
        """Rows that leave their partition, whole: what the data leaves out is what the table has."""
        schema, key = new.metadata.schema, list(new.rule.key)
        wanted = schema_to_arrow(schema)
        if not rows.num_rows:
            return wanted.empty_table()
        condition = key_condition(rows.select(key), schema)
        reading = Reading(self.files.store, schema, schema.names, condition)
        plan = plan_files(snapshot, condition, case_sensitive=True)
        old = pa.Table.from_batches(read_batches(reading, units_of(plan)), wanted)
        index = KeyIndex.of(old.select(key))
        old = old.take(index.rows()[index.find(rows.select(key))])
        given = {name: rows.column(name) for name in rows.column_names}
        return pa.table([given.get(name, old.column(name)) for name in schema.names], schema=wanted)


def fitted(raw: pa.Table, metadata: Metadata, *, merge_schema: bool, is_late: bool = False) -> Incoming:
    """The data as rows of this table; SchemaMismatchError or DuplicateKeyError if they cannot be that."""
    rule = rule_of(metadata, "upsert")
    if merge_schema:
        metadata = evolved(metadata, merged_schema(metadata.schema, source_schema(raw.schema)))
    schema, merge = metadata.schema, merge_schema or is_late
    if rule.mode is MergeMode.COLUMNS:
        given = {name.lower() for name in (*raw.column_names, *rule.key)}
        schema = StructType(tuple(field for field in schema if field.name.lower() in given))
        merge = False
    rows = distinct_rows(raw, schema, rule, merge=merge)
    return Incoming(metadata, rule, rows, KeyIndex.of(rows.select(list(rule.key))))


def settle(new: Incoming, places: Places) -> tuple[Mask, Numbers, tuple[Numbers, Numbers]]:
    """For each row whether its group keeps it and which group has its key (-1: none); and who leaves.

    The last is (group, row) of every row that must go from where it is: it changes its partition.
    """
    count = new.rows.num_rows
    homes = np.full(count, -1, np.int64)
    stays = np.zeros(count, np.bool_)
    rows = new.index.rows()[places.keys]
    here = _partition_codes(new, places.groups)
    fits = here[0][rows] == here[1][places.homes]
    # Keys are unique, so each has one home; were there two, one of them keeps the row and the others lose it.
    homes[rows] = places.homes
    homes[rows[fits]] = places.homes[fits]
    stays[rows[fits]] = True
    leaves = ~(fits & (homes[rows] == places.homes))
    return stays, homes, (places.homes[leaves], rows[leaves])


def _partition_codes(new: Incoming, groups: Sequence[Home]) -> tuple[Numbers, Numbers]:
    """One number per row and per group, equal where the partition columns the data gives are equal."""
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


def _completed(rows: pa.Table, new: Incoming) -> pa.Table:
    """Rows of new keys, whole: what the data leaves out is NULL, if it may be."""
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
