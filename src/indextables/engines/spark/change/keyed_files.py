"""Changes of a table with a record key as files: logs in the slices that have the rows, new slices for the rest.

* A row that is replaced where it is goes into a data log of its slice.
* A row that is gone, or moves because its key or its partition changes, goes into a delete log.
* A row that is new, or moves, goes into the base of a new slice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.types import PrimitiveType, StructType
from indextables.engines.spark.change.rows import ACTION, Target
from indextables.engines.spark.jvm.attributes import quoted
from indextables.engines.spark.place.hadoop import Place
from indextables.engines.spark.scan.lineage import SLICE
from indextables.engines.spark.scan.merge import table_frame
from indextables.engines.spark.write.native_write import NativeWriter, directory_value
from indextables.errors import DuplicateKeyError
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.actions import Add, Metadata
from indextables.ops.keyed.files import adds_of, metrics_of
from indextables.parquet.write.write import WriteTarget, Written, as_new_groups
from indextables.plan.column_sets import TAG
from indextables.plan.merge_rule import MergeRule

_MOVED: Final = "__indextables_moved"


def old(name: str) -> str:
    """Returns a column of a changed row as it was before."""
    return f"__indextables_old {name}"


def keyed_target(
    session: SparkSession, place: Place, snapshot: Snapshot, where: Column | None = None
) -> Target:
    """Returns the rows of the table, each with its slice, its key and its partition to find it again."""
    frame = table_frame(session, place, snapshot, with_slice=True)
    if where is not None:
        frame = frame.where(where)
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
class KeyedFiles:
    """What a change wrote, and how many rows of which kind."""

    logs: Written = field(default_factory=Written)
    deletes: Written = field(default_factory=Written)
    bases: Written = field(default_factory=Written)
    updated: int = 0
    deleted: int = 0
    inserted: int = 0
    moved: int = 0

    @property
    def adds(self) -> tuple[Add, ...]:
        """Returns all files."""
        return adds_of(self.logs, self.deletes, self.bases)

    @property
    def groups(self) -> frozenset[str]:
        """Returns the file groups that get a log file."""
        logs = adds_of(self.logs, self.deletes)
        return frozenset(add.file_group for add in logs if add.file_group is not None)

    @property
    def metrics(self) -> dict[str, int]:
        """Returns the numbers of the commit."""
        return {
            **metrics_of(self.logs, self.deletes, self.bases),
            "numOutputRows": self.updated + self.inserted,
            "numUpdatedRows": self.updated,
            "numDeletedRows": self.deleted,
            "numInsertedRows": self.inserted,
            "numMovedRows": self.moved,
            "numTouchedGroups": len(self.groups),
        }


@dataclass(frozen=True)
class KeyedWriter:
    """Writes the changes that were found in one snapshot; nothing is left behind if it fails."""

    writer: NativeWriter
    snapshot: Snapshot
    target: WriteTarget
    key: tuple[str, ...]
    partial: tuple[str, ...] | None = None
    """The columns that are set, where it is not all of them."""

    def write(self, changes: DataFrame) -> KeyedFiles:
        """Returns the changed rows (with `with_moves`.

        They are computed before) as files of this table.
        """
        counts: dict[tuple[str, bool], int] = {
            (row[ACTION], row[_MOVED]): row["count"]
            for row in changes.groupBy(ACTION, _MOVED).count().collect()
        }
        stays = (F.col(ACTION) == "update") & ~F.col(_MOVED)
        leaves = (F.col(ACTION) == "delete") | F.col(_MOVED)
        arrives = (F.col(ACTION) == "insert") | F.col(_MOVED)
        updated, moved = counts.get(("update", False), 0), counts.get(("update", True), 0)
        deleted, inserted = counts.get(("delete", False), 0), counts.get(("insert", False), 0)
        done = [Written()] * 3
        try:
            if updated:
                done[0] = self._data_logs(changes.where(stays))
            if deleted + moved:
                done[1] = self._delete_logs(changes.where(leaves))
            if inserted + moved:
                done[2] = self._bases(changes.where(arrives))
        except BaseException:
            self._discard(done)
            raise
        logs, deletes, bases = done
        return KeyedFiles(logs, deletes, bases, updated + moved, deleted, inserted, moved)

    def _data_logs(self, rows: DataFrame) -> Written:
        target = self.target if self.partial is None else self._narrow(self.partial)
        written = self._by_slice(rows, target)
        tags = {} if self.partial is None else {TAG: json.dumps(list(self.partial))}
        return self._as_logs(written, target, "data", tags)

    def _delete_logs(self, rows: DataFrame) -> Written:
        target = self._narrow(self.key)
        names = [SLICE, *target.schema.names]
        before = [F.col(quoted(n if n == SLICE else old(n))).alias(n) for n in names]
        return self._as_logs(self._by_slice(rows.select(before), target), target, "delete", {})

    def _bases(self, rows: DataFrame) -> Written:
        columns = [F.col(quoted(name)) for name in self.target.schema.names]
        return as_new_groups(self.writer.write(rows.select(columns), _fresh(self.target)))

    def _by_slice(self, rows: DataFrame, target: WriteTarget) -> Written:
        columns = [F.col(quoted(name)) for name in (*target.schema.names, SLICE)]
        return self.writer.write(rows.select(columns).repartition(F.col(SLICE)), target, by=SLICE)

    def _narrow(self, columns: Sequence[str]) -> WriteTarget:
        """Returns the same target for some columns only; the partition belongs to every file."""
        names = {*columns, *self.target.partition_columns}
        return replace(
            _fresh(self.target),
            schema=StructType(tuple(f for f in self.target.schema if f.name in names)),
            stats_columns=tuple(path for path in self.target.stats_columns if path[0] in columns),
        )

    def _as_logs(self, written: Written, target: WriteTarget, block: str, tags: Any) -> Written:
        slices = pa.array([int(directory_value(add.path, target)) for add in written.adds], pa.int64())
        groups = self.snapshot.column("file_group").take(slices).to_pylist()
        adds = tuple(
            replace(add, file_group=group, kind="log", block=block, tags=tags)
            for add, group in zip(written.adds, groups, strict=True)
        )
        return replace(written, adds=adds)

    def _discard(self, done: Sequence[Written]) -> None:
        for add in adds_of(*done):
            with suppress(Exception):
                self.writer.place.store.delete(add.path)


def _fresh(target: WriteTarget) -> WriteTarget:
    """Returns the same target with a directory that no job has written to."""
    version = target.directory.rpartition("/")[2].partition("-")[0]
    return replace(target, directory=f"data/{version}-{uuid4()}")


def refuse_repeated_keys(rows: DataFrame, key: Sequence[str]) -> None:
    """DuplicateKeyError if two of the rows have one key."""
    names = [quoted(name) for name in key]
    found = rows.groupBy(*names).count().where("count > 1").limit(1).collect()
    if found:
        raise _repeated(found[0], key, "more than one row of the data has")


def refuse_taken_keys(changes: DataFrame, target: Target, key: Sequence[str]) -> None:
    """DuplicateKeyError if a row would get a key that another row of the table has, or gets."""
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
        raise _repeated(found[0], key, "a new row would have, and a row of the table has,")


def _repeated(row: Any, key: Sequence[str], what: str) -> DuplicateKeyError:
    values = {name: row[name] for name in key}
    return DuplicateKeyError(
        f"{what} the key {', '.join(f'{n} = {v!r}' for n, v in values.items())}",
        hint="keep one row for each key; nothing was committed",
        record_key=values,
    )
