"""Delete and overwrite in a table with a record key: whole slices go by metadata, other rows by delete logs.

A slice goes as a whole only if every file of it that holds rows must match: a data log alone never
goes, because the older rows it replaced would be there again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.predicate.nodes import Predicate
from indextables.core.prune.evaluate import may_match, must_match
from indextables.core.types import StructType, schema_to_arrow
from indextables.log.commit.intent import CommitPlan, Rewrite
from indextables.log.state.rows import Split
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Metadata, Remove, Txn
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
from indextables.ops.shared.commit import CommitResult, Condition, SamePartitions
from indextables.ops.shared.schema import evolved, merged_schema
from indextables.parquet.read.key_index import KeyIndex, repeated_mask
from indextables.parquet.read.read import Home, ReadRequest, Unit, live_places, read_batches, units_of
from indextables.parquet.write.conform import conform, source_schema
from indextables.parquet.write.executor import all_within
from indextables.parquet.write.write import Written
from indextables.plan.planner import plan_files
from indextables.plan.slices import slices_of
from indextables.storage.base import LogStore

# Which rows of a table with a record key a condition is TRUE for: whole slices, or keys in slices that stay.

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Matching:
    """The rows a condition is TRUE for."""

    files: Mask
    """Files of which every row is one of them; always all files of a slice."""
    keys: Mapping[Home, pa.Table]
    """The keys of the others, by the group they are in."""
    num_rows: int | None
    """How many they are; None if only reading slices that need not be read would tell."""


@dataclass
class Matcher:
    """Finds them in one snapshot after another; a slice that has not changed is not read again."""

    store: LogStore
    key: tuple[str, ...]
    _found: dict[tuple[Any, ...], pa.Table] = field(default_factory=dict)

    def find(self, snapshot: Snapshot, bound: Predicate | None) -> Matching:
        """Returns the rows the bound condition is TRUE for; without a condition all rows."""
        alone = _alone(snapshot)
        if bound is None:
            every = np.ones(snapshot.num_files, np.bool_)
            return Matching(every, {}, _records(snapshot, every, alone))
        whole = _whole_slices(snapshot, must_match(bound, snapshot.index()))
        paths = snapshot.column("key")
        gone = frozenset(paths.filter(pa.array(whole)).to_pylist())
        single = frozenset(paths.filter(pa.array(alone)).to_pylist())
        keys: dict[Home, list[pa.Table]] = {}
        emptied: list[str] = []
        for unit in units_of(plan_files(snapshot, bound, case_sensitive=True)):
            first = unit if isinstance(unit, Split) else unit.files[0]
            found = None if first.path in gone else self._keys(snapshot, bound, unit)
            if found is None or not found.num_rows:
                continue
            if first.path in single and found.num_rows == first.stats.num_records:
                emptied.append(first.path)
            else:
                keys.setdefault(Home.of(first), []).append(found)
        files = whole | np.asarray(pc.is_in(paths, pa.array(emptied, pa.string())))
        tables = {home: pa.concat_tables(parts) for home, parts in keys.items()}
        known = _records(snapshot, files, alone)
        some = sum(table.num_rows for table in tables.values())
        return Matching(files, tables, None if known is None else known + some)

    def _keys(self, snapshot: Snapshot, bound: Predicate, unit: Unit) -> pa.Table:
        files = (unit,) if isinstance(unit, Split) else (*unit.files, *unit.logs)
        what = (snapshot.metadata.schema_id, *(split.path for split in files))
        if what not in self._found:
            request = ReadRequest(self.store, snapshot.schema, self.key, bound)
            batches = read_batches(request, [unit])
            self._found[what] = pa.Table.from_batches(batches, request.result_schema)
        return self._found[what]


def _whole_slices(snapshot: Snapshot, must: Mask) -> Mask:
    """Returns the files of slices whose row-bearing files all must match.

    That holds where columns are combined too: the newest file that sets a column of the condition
    decides it, whatever the others say, or it would not be known to match.
    """
    slices = slices_of(snapshot)
    if slices is None:
        return must
    spared = slices.having(slices.holds_rows & ~must)
    mask: Mask = (slices.having(slices.holds_rows) & ~spared)[slices.codes]
    return mask


def _alone(snapshot: Snapshot) -> Mask:
    """Returns the files that are the only one of their slice."""
    slices = slices_of(snapshot)
    if slices is None:
        return np.ones(snapshot.num_files, np.bool_)
    mask: Mask = np.bincount(slices.codes, minlength=slices.count)[slices.codes] == 1
    return mask


def _records(snapshot: Snapshot, files: Mask, alone: Mask) -> int | None:
    """Returns how many rows these files show.

    None where log files hide some of them, or the log does not say.
    """
    counts = snapshot.index().source.num_records().filter(pa.array(files))
    if counts.null_count or (files & ~alone).any():
        return None
    total: int = pc.sum(counts).as_py() or 0
    return total


def delete_by_key(
    log: TransactionLog,
    condition: Condition,
    snapshot: Snapshot,
    options: Mapping[str, Any] | None,
) -> CommitResult:
    """Commits the table without the rows the condition is TRUE for; nothing, if there are none."""
    planner = _planner(log, condition, "DELETE", snapshot, options)
    return commit_keyed(log, planner, snapshot)


def overwrite_by_key(
    log: TransactionLog,
    raw: pa.Table,
    condition: Condition | SamePartitions,
    snapshot: Snapshot,
    *,
    merge_schema: bool,
    options: Mapping[str, Any] | None,
    txn: Txn | None,
) -> CommitResult:
    """Commits `raw` in place of the rows the condition is TRUE for, and of every row with a key of `raw`."""
    planner = _planner(log, condition, "OVERWRITE", snapshot, options)
    planner.raw, planner.merge_schema, planner.txn = raw, merge_schema, txn
    return commit_keyed(log, planner, snapshot)


def _planner(
    log: TransactionLog,
    condition: Condition | SamePartitions,
    operation: str,
    snapshot: Snapshot,
    options: Mapping[str, Any] | None,
) -> KeyedRewritePlanner:
    key = rule_of(snapshot.metadata, operation.lower()).key
    return KeyedRewritePlanner(
        condition, operation, key, Files(log.store, options), Matcher(log.store, key)
    )


@dataclass(frozen=True, slots=True)
class Replacement:
    """The rows an overwrite brings, as one version of the table takes them."""

    metadata: Metadata
    keys: pa.Table
    written: Written


@dataclass
class KeyedRewritePlanner:
    """Plans the same change against whatever snapshot is the newest."""

    condition: Condition | SamePartitions
    operation: str
    key: tuple[str, ...]
    files: Files
    matcher: Matcher
    raw: pa.Table | None = None
    merge_schema: bool = False
    txn: Txn | None = None
    _replacements: dict[Metadata, Replacement] = field(default_factory=dict)

    def __call__(self, snapshot: Snapshot) -> CommitPlan:
        """Returns the removes, delete logs and new groups that turn this snapshot into the one asked for."""
        new = self._replacement(snapshot)
        condition = self.condition
        if isinstance(condition, SamePartitions):
            condition = condition.of(new.written, new.metadata)
        bound = condition.bound(snapshot)
        found = self.matcher.find(snapshot, bound)
        replaced = self._rows_with(new, snapshot, ~found.files)
        deletes = [
            self._delete_log(new.metadata, home, found.keys.get(home), replaced.get(home))
            for home in {**found.keys, **replaced}
        ]
        logs = self.files.logs(new.metadata, snapshot.version, deletes)
        removes = (Remove(path) for path in _paths(snapshot, found.files))
        metadata = () if new.metadata == snapshot.metadata else (new.metadata,)
        txn = () if self.txn is None else (self.txn,)
        inserted = None
        if new.keys.num_rows:
            inserted = condition_on(new.keys, new.metadata.schema, snapshot)
        deleted = {} if found.num_rows is None else {"numDeletedRows": found.num_rows}
        return CommitPlan(
            Rewrite(bound, inserted),
            self.operation,
            (*metadata, *txn, *removes, *adds_of(*logs, new.written)),
            parameters=condition.parameters,
            metrics={
                **metrics_of(*logs, new.written),
                **deleted,
                "numOutputRows": new.keys.num_rows,
                "numRemovedFiles": int(np.count_nonzero(found.files)),
                "numTouchedGroups": len(logs),
            },
        )

    def _replacement(self, snapshot: Snapshot) -> Replacement:
        metadata = snapshot.metadata
        if metadata not in self._replacements:
            self._replacements[metadata] = self._fitted(snapshot)
        return self._replacements[metadata]

    def _fitted(self, snapshot: Snapshot) -> Replacement:
        metadata = snapshot.metadata
        if self.raw is None:
            none = ReadRequest(self.files.store, metadata.schema, self.key).result_schema.empty_table()
            return Replacement(metadata, none, Written())
        rule = rule_of(metadata, self.operation.lower())
        if self.merge_schema:
            incoming = source_schema(self.raw.schema)
            metadata = evolved(metadata, merged_schema(metadata.schema, incoming))
        # what has fitted once may lack a column that the table got since: that one is NULL
        merge = self.merge_schema or bool(self._replacements)
        rows, _ = distinct_rows(self.raw, metadata.schema, rule, merge=merge)
        within = None if isinstance(self.condition, SamePartitions) else self.condition.bound(snapshot)
        if within is not None:
            inside = all_within(rows.to_batches(), within, metadata.partition_columns)
            rows = pa.Table.from_batches(inside, rows.schema)
        written = self.files.bases(metadata, snapshot.version, rows, b"all")
        return Replacement(metadata, rows.select(list(self.key)), written)

    def _rows_with(self, new: Replacement, snapshot: Snapshot, among: Mask) -> dict[Home, pa.Table]:
        """By group, those of the new keys that a row in one of these files has."""
        keys, schema = new.keys, new.metadata.schema
        if not keys.num_rows or not among.any():
            return {}
        index = KeyIndex.of(keys)
        may = may_match(condition_on(keys, schema, snapshot), snapshot.index())
        splits = snapshot.splits(may & among)
        places = live_places(self.files.store, schema, self.key, splits, wanted=keys, index=index)
        rows = by_number(places.homes, index.rows()[places.keys])
        return {places.groups[code]: keys.take(chosen) for code, chosen in rows.items()}

    def _delete_log(self, metadata: Metadata, home: Home, *parts: pa.Table | None) -> LogRows:
        fields = {field.name: field for field in metadata.schema}
        schema = StructType(tuple(fields[name] for name in self.key))
        batches = (batch for part in parts if part is not None for batch in part.to_batches())
        keys = pa.Table.from_batches(conform(batches, schema), schema_to_arrow(schema))
        keys = keys.take(np.flatnonzero(~repeated_mask(keys))).combine_chunks()
        return LogRows(home, keys, "delete", _fingerprint(keys))


def _fingerprint(rows: pa.Table) -> bytes:
    """Returns the same for the same rows, and for no others."""
    digest = hashlib.sha256()
    for batch in rows.to_batches():
        digest.update(batch.serialize())
    return digest.digest()


def _paths(snapshot: Snapshot, mask: Mask) -> list[str]:
    paths: list[str] = snapshot.column("key").filter(pa.array(mask)).to_pylist()
    return paths
