"""Changes of a table with a record key by Spark: delta files in the slices that have the rows, new slices for the rest.

* A row that is replaced where it is goes into a data delta file of its slice.
* A row that is gone, or moves because its key or its partition changes, goes into a delete delta file.
* A row that is new, or moves, goes into the base of a new slice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final, Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.predicate.nodes import Constant, Predicate
from indextables.core.predicate.to_sql import to_spark_sql
from indextables.core.prune.evaluate import may_match
from indextables.core.stats.columns import FileMask
from indextables.core.types import PrimitiveType, StructType
from indextables.engines.spark.jvm.gateway import columns_in, quoted
from indextables.engines.spark.place.hadoop import Place
from indextables.engines.spark.scan.partition_rows import SLICE
from indextables.engines.spark.scan.relation import table_frame
from indextables.engines.spark.write.changed_rows import (
    ACTION,
    IN_SOURCE,
    Clause,
    Target,
    changed_rows,
    joined,
    kept,
    observed,
)
from indextables.engines.spark.write.file_rows import read_groups
from indextables.engines.spark.write.fit import fit, fit_within, frame_schema, not_null, spark_type
from indextables.engines.spark.write.key_ranges import (
    Keys,
    refuse_repeated_keys,
    repeated_key,
    with_keys,
)
from indextables.engines.spark.write.native_write import NativeWriter, directory_value
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.actions import Metadata
from indextables.parquet.write.write import Changes, WriteTarget, Written, as_new_groups
from indextables.plan.column_sets import TAG
from indextables.plan.merge_rule import MergeRule

_MOVED: Final = "__indextables_moved"


def old(name: str) -> str:
    """Returns a column of a changed row as it was before."""
    return f"__indextables_old {name}"


def keyed_target(
    session: SparkSession, place: Place, snapshot: Snapshot, where: Predicate | None = None
) -> Target:
    """Returns the rows of the table, each with its slice, its key and its partition to find it again.

    With `where`, a condition that the files of the snapshot were chosen by, only the rows it is TRUE for.
    """
    frame = table_frame(session, place, snapshot, with_slice=True, is_pruned=where is not None)
    if where is not None:
        frame = frame.where(F.expr(to_spark_sql(where)))
    key = MergeRule.of(snapshot.properties).key
    kept = dict.fromkeys((*key, *snapshot.partition_columns))
    marks = {SLICE: SLICE, **{old(name): name for name in kept}}
    return Target(frame, snapshot.schema, marks, tuple(old(name) for name in key))


def with_moves(changes: DataFrame, metadata: Metadata) -> DataFrame:
    """Returns the changed rows, with those marked that cannot stay in their slice."""
    key = MergeRule.of(metadata.properties).key
    names = dict.fromkeys((*key, *metadata.partition_columns))
    types = {f.name: f.type for f in metadata.schema}
    moved = F.lit(False)
    if key[0] in changes.columns:
        for name in names:
            new = F.col(quoted(name))
            if name in metadata.partition_columns and types[name] == PrimitiveType("string"):
                new = F.nullif(new, F.lit(""))  # in a path they are the same
            moved = moved | ~new.eqNullSafe(F.col(quoted(old(name))))
    return changes.withColumn(_MOVED, (F.col(ACTION) == "update") & moved)


@dataclass(frozen=True)
class KeyedRows:
    """The rows of a change as one version of the table takes them; no two have one key."""

    metadata: Metadata
    frame: DataFrame
    given: StructType
    """The columns that are set."""
    keys: Keys

    @property
    def condition(self) -> Predicate:
        """Returns a condition that is TRUE for every row with one of these keys."""
        return self.keys.condition

    @property
    def is_partial(self) -> bool:
        """Returns True if other columns keep their values."""
        return len(self.given.fields) < len(self.metadata.schema.fields)


@dataclass(frozen=True)
class Found:
    """The rows to be written, kept on the executors, and the version whose slices they were found in."""

    rows: DataFrame
    snapshot: Snapshot
    columns: tuple[str, ...] | None = None
    """The columns that a data delta file sets, where it is not all of them."""


@dataclass
class SparkChange:
    """One change by key; what it computed stays on the executors until `until` closes."""

    writer: NativeWriter
    assign: bool
    until: ExitStack
    data: DataFrame | None = None
    _fitted: dict[Metadata, KeyedRows] = field(default_factory=dict)
    _written: list[Written] = field(default_factory=list)
    _new_keys: DataFrame | None = None

    def source_schema(self) -> StructType:
        """Returns the schema a table of exactly these rows would have."""
        return frame_schema(self._data)

    def fit(self, metadata: Metadata, *, merge: bool) -> KeyedRows:
        """Returns the rows, computed once, as a table with this metadata takes them.

        What has fitted once may lack a column that the table got since: that one is NULL.
        """
        if metadata not in self._fitted:
            first = next(iter(self._fitted.values()), None)
            rule = MergeRule.of(metadata.properties)
            rows = self._data if first is None else first.frame
            given = rule.columns_set(metadata.schema, rows.columns)
            fitted = fit(rows, given, merge=merge or first is not None, assign=self.assign)
            fitted, keys = with_keys(fitted, metadata.schema, rule.key, self.until)
            if not keys.are_distinct:
                refuse_repeated_keys(fitted, rule.key)
            self._fitted[metadata] = KeyedRows(metadata, fitted, given, keys)
        return self._fitted[metadata]

    def find(self, snapshot: Snapshot, rows: KeyedRows, condition: Predicate) -> Changes:
        """Returns where each row belongs: into the slice that has its key, or into a new one."""
        part = snapshot.subset(may_match(condition, snapshot.index()))
        target = keyed_target(self.writer.session, self.writer.place, part, condition)
        changes = with_moves(_upserted(target, rows), rows.metadata)
        columns = tuple(rows.given.names) if rows.is_partial else None
        return self.computed(changes, part, columns, rows.condition)

    def find_removed(
        self, snapshot: Snapshot, metadata: Metadata, among: FileMask, condition: Predicate | None
    ) -> Changes:
        """Returns the rows in these files that the condition is TRUE for or that have the key of a new row."""
        part = snapshot.subset(among)
        new_keys = None if self._new_keys is None else Constant(True)
        if not part.num_files:
            return Changes(None, inserted_keys=new_keys)
        target = keyed_target(self.writer.session, self.writer.place, part)
        parts = [] if condition is None else [target.frame.where(F.expr(to_spark_sql(condition)))]
        if self._new_keys is not None:
            key = MergeRule.of(metadata.properties).key
            same = target.frame.join(self._new_keys, on=[*key], how="left_semi")
            parts.append(same.select(*(F.col(quoted(n)) for n in target.frame.columns)))
        rows = [changed_rows(each, target, [Clause("delete", "target")]) for each in parts]
        removed = reduce(DataFrame.union, rows)
        if len(parts) > 1:
            removed = removed.dropDuplicates([*target.identity])
        return replace(self.computed(with_moves(removed, metadata), part), inserted_keys=new_keys)

    def shown_rows(self, snapshot: Snapshot) -> int:
        """Returns how many rows this version shows."""
        return table_frame(self.writer.session, self.writer.place, snapshot).count()

    def computed(
        self,
        rows: DataFrame,
        snapshot: Snapshot,
        columns: tuple[str, ...] | None = None,
        keys: Predicate = Constant(True),  # noqa: B008 - frozen
    ) -> Changes:
        """Returns changed rows (`with_moves`) of this version, computed now, and once, and counted on the way."""
        seen = Observation()
        counts = [
            F.expr(f"count_if({each}) AS c{i}")
            for i, each in enumerate(
                (*(f"{ACTION} = '{action}'" for action in ("update", "delete", "insert")), _MOVED)
            )
        ]
        found = self.until.enter_context(kept(rows.observe(seen, *counts)))
        updated, deleted, inserted, moves = observed(seen, [f"c{i}" for i in range(len(counts))])
        return Changes(
            Found(found, snapshot, columns),
            updated=updated,
            moved=moves,
            deleted=deleted,
            inserted=inserted,
            inserted_keys=keys if inserted + moves else None,
        )

    def write_all(
        self, metadata: Metadata, target: WriteTarget, *, merge: bool, within: Predicate | None
    ) -> Written:
        """Returns all rows as new slices; what was written is what is checked for keys that are there twice."""
        rows = fit_within(self._data, target, within, merge=merge, assign=self.assign)
        written = self._kept(self.writer.write(rows, target))
        if written.adds:
            key = MergeRule.of(metadata.properties).key
            found = read_groups(self.writer.session, self.writer.place, [written.adds], target)
            self._new_keys = found.select(*(F.col(quoted(name)) for name in key))
            refuse_repeated_keys(self._new_keys, key)
        return as_new_groups(written)

    def write_deltas(self, changes: Changes, target: WriteTarget) -> Written:
        """Returns the rows that are replaced or removed as delta files of their slices."""
        found, done = changes.found, Written()
        if changes.updated > changes.moved:
            rows = found.rows.where((F.col(ACTION) == "update") & ~F.col(_MOVED))
            done += self._data_deltas(found, rows, target)
        if changes.deleted or changes.moved:
            rows = found.rows.where((F.col(ACTION) == "delete") | F.col(_MOVED))
            done += self._delete_deltas(found, rows, target)
        return done

    def write_bases(self, changes: Changes, target: WriteTarget) -> Written:
        """Returns the rows that are new, or come from another slice, as new slices."""
        if not changes.inserted and not changes.moved:
            return Written()
        rows = changes.found.rows.where((F.col(ACTION) == "insert") | F.col(_MOVED))
        columns = [F.col(quoted(name)) for name in target.schema.names]
        written = self.writer.write(rows.select(columns), target.elsewhere())
        return self._kept(as_new_groups(written))

    def discard(self) -> None:
        """Deletes all that was written: for a change that never tried to commit."""
        for add in sum(self._written, Written()).adds:
            with suppress(Exception):
                self.writer.place.store.delete(add.path)

    @property
    def _data(self) -> DataFrame:
        assert self.data is not None, "a change that only removes rows has none of its own"
        return self.data

    def _kept(self, written: Written) -> Written:
        self._written.append(written)
        return written

    def _data_deltas(self, found: Found, rows: DataFrame, target: WriteTarget) -> Written:
        if found.columns is None:
            return self._deltas(found, rows, target.elsewhere(), "data", {})
        tags = {TAG: json.dumps(list(found.columns))}
        return self._deltas(found, rows, _narrow(target, found.columns), "data", tags)

    def _delete_deltas(self, found: Found, rows: DataFrame, target: WriteTarget) -> Written:
        narrow = _narrow(target, MergeRule.of(found.snapshot.properties).key)
        names = [SLICE, *narrow.schema.names]
        before = [F.col(quoted(n if n == SLICE else old(n))).alias(n) for n in names]
        return self._deltas(found, rows.select(before), narrow, "delete", {})

    def _deltas(
        self,
        found: Found,
        rows: DataFrame,
        target: WriteTarget,
        block: Literal["data", "delete"],
        tags: Mapping[str, str],
    ) -> Written:
        columns = [F.col(quoted(name)) for name in (*target.schema.names, SLICE)]
        placed = rows.select(columns).repartition(F.col(SLICE))
        written = self._kept(self.writer.write(placed, target, by=SLICE))
        slices = pa.array([int(directory_value(add.path, target)) for add in written.adds], pa.int64())
        groups = found.snapshot.column("file_group").take(slices).to_pylist()
        adds = tuple(
            replace(add, file_group=group, kind="log", block=block, tags=tags)
            for add, group in zip(written.adds, groups, strict=True)
        )
        return replace(written, adds=adds)


def _narrow(target: WriteTarget, columns: Sequence[str]) -> WriteTarget:
    """Returns the same target for some columns only; the partition belongs to every file."""
    names = {*columns, *target.partition_columns}
    return replace(
        target.elsewhere(),
        schema=StructType(tuple(f for f in target.schema if f.name in names)),
        stats_columns=tuple(path for path in target.stats_columns if path[0] in columns),
    )


def _upserted(target: Target, rows: KeyedRows) -> DataFrame:
    """Returns each row as an update where its key is in the table, and as an insert where it is not."""
    source = rows.frame.select("*", F.lit(True).alias(IN_SOURCE))
    mine, theirs = columns_in(target.frame), columns_in(source)
    key = MergeRule.of(rows.metadata.properties).key
    same = reduce(Column.__and__, (mine[name] == theirs[name] for name in key))
    clauses = [
        Clause("update", "both", values=dict(_updated(mine, theirs, rows))),
        Clause("insert", "source", values=dict(_inserted(theirs, rows.metadata.schema))),
    ]
    pairs = joined(target, source, same, ["source"])
    return changed_rows(pairs, replace(target, schema=rows.metadata.schema), clauses)


def _updated(
    before: Mapping[str, Column], new: Mapping[str, Column], rows: KeyedRows
) -> Iterator[tuple[str, Column]]:
    """Yields the row as it is then. What is not given is needed only of a row that may move."""
    metadata = rows.metadata
    key = MergeRule.of(metadata.properties).key
    may_move = any(n in metadata.partition_columns and n not in key for n in rows.given.names)
    for column in metadata.schema:
        if column.name in new:
            yield column.name, new[column.name]
        elif column.name in before and (may_move or column.name in metadata.partition_columns):
            yield column.name, before[column.name]


def _inserted(new: Mapping[str, Column], schema: StructType) -> Iterator[tuple[str, Column]]:
    """Yields a row of its own: what is not given is NULL, which stops the job where it must not be."""
    for column in schema:
        nothing = F.lit(None).cast(spark_type(column.type))
        missing = nothing if column.nullable else not_null(nothing, column.name)
        yield column.name, new.get(column.name, missing)


def refuse_taken_keys(changes: DataFrame, target: Target, key: Sequence[str]) -> None:
    """Raises DuplicateKeyError if a row would get a key that another row of the table has, or gets."""
    key_changes = reduce(
        Column.__or__, (~F.col(quoted(n)).eqNullSafe(F.col(quoted(old(n)))) for n in key)
    )
    new = changes.where(
        (F.col(ACTION) == "insert") | ((F.col(ACTION) == "update") & key_changes)
    ).select(*(F.col(quoted(n)) for n in key))
    refuse_repeated_keys(new, key)
    given_up = changes.where(
        (F.col(ACTION) == "delete") | ((F.col(ACTION) == "update") & key_changes)
    ).select(*(F.col(quoted(old(n))).alias(n) for n in key))
    there = target.frame.select(*(F.col(quoted(n)) for n in key))
    taken = there.join(new, on=[*key], how="left_semi").join(given_up, on=[*key], how="left_anti")
    found = taken.limit(1).collect()
    if found:
        raise repeated_key(found[0], key, "a new row would have, and a row of the table has,")
