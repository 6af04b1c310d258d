"""Splits without some of their rows: those that hold such a row are found first, and only they are written anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.predicate.nodes import Predicate
from indextables.core.predicate.to_sql import to_spark_sql
from indextables.core.stats.columns import FileMask
from indextables.engines.spark.jvm.gateway import quoted
from indextables.engines.spark.scan.file_index import Subset
from indextables.engines.spark.scan.partition_rows import FILE
from indextables.engines.spark.scan.relation import native_frame
from indextables.engines.spark.write.file_rows import GROUP, fewer_read, row_counts
from indextables.engines.spark.write.native_write import NativeWriter, NewFile, as_written
from indextables.log.state.rows import Split
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.actions import Add
from indextables.parquet.write.write import Rewritten, WriteTarget, Written


@dataclass(frozen=True)
class Rewrite:
    """Rows to be removed from some files of one version."""

    writer: NativeWriter
    snapshot: Snapshot
    condition: Predicate
    target: WriteTarget

    def run(self, mask: FileMask) -> dict[str, Rewritten]:
        """Returns each of these files without the rows the condition is TRUE for; untouched ones are left out."""
        matching = self._matching(mask)
        if not matching:
            return {}
        splits = dict(zip(sorted(matching), self._splits(matching), strict=True))
        records = row_counts(self.writer.place.store, list(splits.values()))
        left = {n: records[split.path] - matching[n] for n, split in splits.items()}
        files = self._kept({n: rows for n, rows in left.items() if rows > 0})
        return {
            split.path: Rewritten(_in_place_of(split, files.get(n, []), self.target), matching[n])
            for n, split in splits.items()
        }

    def _matching(self, mask: FileMask) -> dict[int, int]:
        """Returns how many rows the condition is TRUE for, by the number of the file, where there are any.

        Of the columns only those of the condition are read, and what Spark can skip in a file is skipped.
        """
        rows = self._rows(mask).where(self._is_true)
        return {row[FILE]: row["count"] for row in rows.groupBy(FILE).count().collect()}

    def _kept(self, left: Mapping[int, int]) -> dict[int, list[NewFile]]:
        """Returns what is left of these files, by their numbers; `left` says how many rows that are.

        StorageError if fewer were read: what replaces a file would lose the others.
        """
        if not left:
            return {}
        kept = self._rows(self._mask(left)).where(~F.coalesce(self._is_true, F.lit(False)))
        columns = [F.col(quoted(name)) for name in self.target.file_schema.names]
        with self.writer.directory(self.target) as location:
            self.writer.run(kept.select(*columns, F.col(FILE).alias(GROUP)), [GROUP], location)
            files = group_files(self.writer.new_files(self.target), self.target)
            for number, expected in left.items():
                found = sum(file.stats.num_records or 0 for file in files.get(number, []))
                if found < expected:
                    raise fewer_read(found, expected)
        return files

    def _rows(self, mask: FileMask) -> DataFrame:
        writer = self.writer
        return native_frame(
            writer.session, self.snapshot, writer.place, subset=Subset.with_lineage(mask)
        )

    @property
    def _is_true(self) -> Column:
        return F.expr(to_spark_sql(self.condition))

    def _mask(self, numbers: Any) -> FileMask:
        mask = np.zeros(self.snapshot.num_files, np.bool_)
        mask[list(numbers)] = True
        return mask

    def _splits(self, numbers: Any) -> list[Split]:
        return self.snapshot.splits(self._mask(numbers))


def group_files(files: list[NewFile], target: WriteTarget) -> dict[int, list[NewFile]]:
    """Returns the files by the group whose rows they hold: it is in the name of their directory."""
    found: dict[int, list[NewFile]] = {}
    for file in files:
        segment = file.key.removeprefix(f"{target.directory}/").partition("/")[0]
        found.setdefault(int(segment.removeprefix(f"{GROUP}=")), []).append(file)
    return found


def _in_place_of(split: Split, files: list[NewFile], target: WriteTarget) -> Written:
    written = as_written(files, target, lambda _: split.partition_values)
    return replace(written, adds=tuple(_as_old_as(split, add) for add in written.adds))


def _as_old_as(split: Split, add: Add) -> Add:
    """Returns the new file keeps the age of the rows it holds: newer log files still win over it."""
    return replace(add, seq=split.seq, file_group=split.file_group, kind=split.kind)
