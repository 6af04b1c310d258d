"""Splits without some of their rows, as one Spark job for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.predicate.nodes import Predicate
from indextables.core.predicate.to_sql import to_spark_sql
from indextables.engines.spark.jvm.attributes import quoted
from indextables.engines.spark.write.file_rows import GROUP, check_all_read, read_groups, row_counts
from indextables.engines.spark.write.native_write import NativeWriter, NewFile, as_written
from indextables.log.state.rows import Split
from indextables.log.wire.actions import Add
from indextables.parquet.write.write import Rewritten, WriteTarget, Written
from indextables.storage.base import LogStore


def rewrite_splits(
    writer: NativeWriter, splits: Sequence[Split], condition: Predicate, target: WriteTarget
) -> dict[str, Rewritten]:
    """Returns each split without the rows the condition is TRUE for; untouched ones are left out."""
    store = writer.place.store
    seen = Observation()
    rows = read_groups(writer.session, writer.place, [[split] for split in splits], target)
    rows = rows.observe(seen, F.count(F.lit(1)).alias("rows"))
    kept = rows.where(~F.coalesce(F.expr(to_spark_sql(condition)), F.lit(False)))
    columns = [F.col(quoted(name)) for name in (*target.file_schema.names, GROUP)]
    with writer.directory(target) as location:
        writer.run(kept.select(columns), [GROUP], location)
        by_split = group_files(writer.new_files(target), target)
        check_all_read(seen.get["rows"], store, splits)
        counts = row_counts(store, splits)
    found = {}
    for number, split in enumerate(splits):
        files = by_split.get(number, [])
        removed = counts[split.path] - sum(file.stats.num_records or 0 for file in files)
        if removed:
            found[split.path] = Rewritten(_in_place_of(split, files, target), removed)
        else:
            _discard(store, files)
    return found


def group_files(files: Sequence[NewFile], target: WriteTarget) -> dict[int, list[NewFile]]:
    """Returns the files by the group whose rows they hold: it is in the name of their directory."""
    found: dict[int, list[NewFile]] = {}
    for file in files:
        segment = file.key.removeprefix(f"{target.directory}/").partition("/")[0]
        found.setdefault(int(segment.removeprefix(f"{GROUP}=")), []).append(file)
    return found


def _in_place_of(split: Split, files: Sequence[NewFile], target: WriteTarget) -> Written:
    written = as_written(files, target, lambda _: split.partition_values)
    return replace(written, adds=tuple(_as_old_as(split, add) for add in written.adds))


def _as_old_as(split: Split, add: Add) -> Add:
    """Returns the new file keeps the age of the rows it holds: newer log files still win over it."""
    return replace(add, seq=split.seq, file_group=split.file_group, kind=split.kind)


def _discard(store: LogStore, files: Sequence[NewFile]) -> None:
    for file in files:
        with suppress(Exception):
            store.delete(file.key)
