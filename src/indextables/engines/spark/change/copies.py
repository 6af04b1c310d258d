"""A change of a table without a key: every file that has a changed row is written anew, and no other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.stats.columns import FileMask
from indextables.engines.spark.jvm.gateway import quoted
from indextables.engines.spark.place.hadoop import Place
from indextables.engines.spark.scan.file_index import Subset
from indextables.engines.spark.scan.partition_rows import FILE
from indextables.engines.spark.scan.relation import native_frame
from indextables.engines.spark.write.changed_rows import ACTION, Target
from indextables.engines.spark.write.file_rows import of_file
from indextables.engines.spark.write.native_write import NativeWriter
from indextables.log.state.snapshot import Snapshot
from indextables.parquet.write.write import WriteTarget, Written

ROW: Final = "__indextables_row"
"""The place of a row in its file."""
_NEW: Final = -1
"""The file of a row that has none yet."""


def rows_with_places(
    session: SparkSession, place: Place, snapshot: Snapshot, mask: FileMask | None = None
) -> Target:
    """Returns the rows of these files (all without a mask), each with its file and its place in it."""
    every = np.ones(snapshot.num_files, np.bool_) if mask is None else mask
    rows = native_frame(session, snapshot, place, subset=Subset.with_lineage(every))
    columns = [F.col(quoted(column)) for column in (*snapshot.schema.names, FILE)]
    frame = rows.select(*columns, of_file(rows, "row_index").alias(ROW))
    return Target(frame, snapshot.schema, {FILE: FILE, ROW: ROW}, (FILE, ROW))


@dataclass(frozen=True)
class Counted:
    """How many rows a change touches, and in which files."""

    by_action: Mapping[str, int]
    files: FileMask

    @classmethod
    def of(cls, changes: DataFrame, snapshot: Snapshot) -> Counted:
        """Returns one small job over rows that were found before."""
        files = np.zeros(snapshot.num_files, np.bool_)
        actions: dict[str, int] = {}
        for action, file, count in changes.groupBy(ACTION, FILE).count().collect():
            actions[action] = actions.get(action, 0) + count
            if file is not None:
                files[file] = True
        return cls(actions, files)


def write_copies(
    writer: NativeWriter,
    changes: DataFrame,
    counted: Counted,
    files: DataFrame,
    target: WriteTarget,
    *,
    held: int,
) -> Written:
    """Returns the touched `files` with the changes made to their rows, and the new rows.

    What was in one file stays in one file, and in its order: clustered data stays clustered. StorageError if
    not all of the rows that they `held` were read.
    """
    columns = [F.col(quoted(name)) for name in target.schema.names]
    parts = []
    if touched := int(np.count_nonzero(counted.files)):
        changed = changes.select(FILE, ROW).where(F.col(FILE).isNotNull())
        rows = files.join(changed, on=[FILE, ROW], how="left_anti").select(*columns, FILE, ROW)
        if counted.by_action.get("update"):
            updated = changes.where(F.col(ACTION) == "update")
            rows = rows.union(updated.select(*columns, FILE, ROW))
        parts.append(rows.repartition(touched, FILE).sortWithinPartitions(FILE, ROW).drop(ROW))
    if counted.by_action.get("insert"):
        new = changes.where(F.col(ACTION) == "insert")
        parts.append(new.select(*columns, F.lit(_NEW).cast("long").alias(FILE)))
    actions = counted.by_action
    expected = held - actions.get("delete", 0) + actions.get("insert", 0)
    return writer.write(reduce(DataFrame.union, parts), target, by=FILE, at_least=expected)
