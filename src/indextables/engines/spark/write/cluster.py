"""Splits exchanged for better ones, as one Spark job for all groups.

What runs on the executors is Spark SQL, but for the place of a row on a curve: that code travels with the
job, so that their Python needs PyArrow and NumPy, not this package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from indextables.core.stats.columns import as_array, as_mask
from indextables.engines.spark.jvm.gateway import quoted, use_own_python
from indextables.engines.spark.scan.partition_rows import SLICE, Lineage
from indextables.engines.spark.scan.relation import table_frame
from indextables.engines.spark.versions import seam
from indextables.engines.spark.write.file_rows import GROUP, check_all_read, read_groups
from indextables.engines.spark.write.native_write import NativeWriter, as_written
from indextables.engines.spark.write.rewrite import group_files
from indextables.log.state.rows import Split
from indextables.log.state.snapshot import Snapshot
from indextables.ops.optimize import Clustering
from indextables.parquet.write import curves
from indextables.parquet.write.curves import Curve, Ranker
from indextables.parquet.write.write import WriteTarget, Written
from indextables.plan.merge_rule import Piece

register_pickle_by_value(curves)  # type: ignore[no-untyped-call]

_KEY: Final = "__indextables_place"
_SAMPLE: Final = 200_000
"""Rows whose values say where the bounds between ranks lie."""


def cluster_splits(
    writer: NativeWriter,
    groups: Sequence[Sequence[Split]],
    target: WriteTarget,
    clustering: Clustering | None,
) -> list[Written]:
    """Returns each group as new splits of about the target's size, packed together or laid along a curve."""
    rows = read_groups(writer.session, writer.place, groups, target)
    sizes = [sum(split.size for split in splits) for splits in groups]
    files = sum(max(1, -(-size // target.split_bytes)) for size in sizes)
    if clustering is None:
        # a group is small enough for one task, and one task writes one file per group
        placed = rows.repartition(files, F.col(GROUP))
    else:
        count = sum(split.stats.num_records or 0 for splits in groups for split in splits)
        placed = _along_curve(rows, clustering, files, count)
    columns = [F.col(quoted(name)) for name in (*target.file_schema.names, GROUP)]
    with writer.directory(target) as location:
        writer.run(placed.select(columns), [GROUP], location)
        found = group_files(writer.new_files(target), target)
        for number, splits in enumerate(groups):
            written = sum(file.stats.num_records or 0 for file in found.get(number, []))
            check_all_read(written, writer.place.store, splits)
        return [
            as_written(found.get(number, []), target, partial(_values_of, splits[0]))
            for number, splits in enumerate(groups)
        ]


def compact_slices(
    writer: NativeWriter, snapshot: Snapshot, pieces: Sequence[Piece], target: WriteTarget
) -> list[Written]:
    """Returns the rows that each of these slices shows, as files of its own; a slice may show none."""
    paths = pa.array([split.path for piece in pieces for split in (*piece.files, *piece.deltas)])
    chosen = snapshot.subset(as_mask(pc.is_in(as_array(snapshot.column("key")), paths)))
    rows = table_frame(writer.session, writer.place, chosen, with_slice=True)
    columns = [F.col(quoted(name)) for name in target.file_schema.names]
    rows = rows.select(*columns, F.col(SLICE).alias(GROUP)).repartition(len(pieces), F.col(GROUP))
    with writer.directory(target) as location:
        writer.run(rows, [GROUP], location)
        found = group_files(writer.new_files(target), target)
    numbers = dict(zip(chosen.column("key").to_pylist(), Lineage.of(chosen).slice, strict=True))
    made = []
    for piece in pieces:
        split = (*piece.files, *piece.deltas)[0]
        files = found.get(int(numbers[split.path]), [])
        made.append(as_written(files, target, partial(_values_of, split)))
    return made


def _values_of(split: Split, _key: str) -> Mapping[str, str | None]:
    """Returns all files of a group have the partition of any of its splits."""
    return split.partition_values


def _along_curve(rows: DataFrame, clustering: Clustering, files: int, count: int) -> DataFrame:
    names = [quoted(name) for name in clustering.columns]
    fraction = min(1.0, _SAMPLE / count) if count else 1.0
    sample = rows.select(*names).sample(fraction=fraction, seed=0)
    found = seam.to_arrow(sample)
    ranker = Ranker.of([found.column(i).combine_chunks() for i in range(len(names))])
    use_own_python(rows.sparkSession)
    place = seam.arrow_function(place_function(ranker, clustering.curve), "long")
    placed = rows.withColumn(_KEY, place(*names))
    return placed.repartitionByRange(files, GROUP, _KEY).sortWithinPartitions(GROUP, _KEY)


def place_function(ranker: Ranker, curve: Curve) -> Callable[..., pa.Array]:
    """Returns the function of Arrow arrays that says where on the curve each row is."""

    def place(*columns: pa.Array) -> pa.Array:
        return pa.array(ranker.keys(columns, curve))

    return place
