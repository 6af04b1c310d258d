"""The heavy work of the verbs as Spark jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from indextables.config import CHANGE_DRIVER_ROWS, Config
from indextables.core.predicate.nodes import Predicate
from indextables.core.stats import SplitStats
from indextables.core.stats.columns import FileMask
from indextables.core.types import FieldPath, StructType
from indextables.engines.spark.place.hadoop import Place, place_of
from indextables.engines.spark.versions import seam
from indextables.engines.spark.write.by_key import SparkChange
from indextables.engines.spark.write.changed_rows import kept
from indextables.engines.spark.write.cluster import cluster_splits, compact_slices
from indextables.engines.spark.write.fit import fit_within, frame_schema, promises_in_words
from indextables.engines.spark.write.native_write import NativeWriter
from indextables.engines.spark.write.rewrite import Rewrite
from indextables.engines.spark.write.statistics import Measurement, measure
from indextables.errors import IndexTablesError, UnsupportedTypeError
from indextables.log.state.rows import Split
from indextables.log.state.snapshot import Snapshot
from indextables.parquet.write.by_key import ArrowChange
from indextables.parquet.write.write import Rewritten, WriteTarget, Written
from indextables.plan.merge_rule import Piece


@dataclass(frozen=True, slots=True)
class SparkExecutor:
    """Takes DataFrames; reads and writes files with Spark's own Parquet code, on the executors."""

    session: SparkSession
    place: Place
    parquet_options: Mapping[str, str] = field(default_factory=dict)
    """For Spark's Parquet writer: compression, maxRecordsPerFile and the like."""
    assign: bool = False
    """Convert values as SQL's INSERT does, instead of widening them only."""

    @property
    def at_once(self) -> int:
        """Returns how many splits one job may read."""
        return 10_000

    def prepare(self, data: Any) -> DataFrame:
        """Returns the DataFrame itself: it runs when it is written, once."""
        if not isinstance(data, DataFrame):
            raise UnsupportedTypeError(
                f"cannot write a {type(data).__module__}.{type(data).__qualname__} with Spark",
                hint="pass a Spark DataFrame, or write Arrow, pandas and Polars data with Table.append",
            )
        return data

    def source_schema(self, data: DataFrame) -> StructType:
        """Returns the schema a table of exactly this data would have."""
        return frame_schema(data)

    def write(
        self,
        data: DataFrame,
        target: WriteTarget,
        *,
        merge: bool = False,
        within: Predicate | None = None,
    ) -> Written:
        """Returns the data as new splits; nothing is left behind if a row does not fit."""
        return self._writer.write(
            fit_within(data, target, within, merge=merge, assign=self.assign), target
        )

    @contextmanager
    def change_by_key(
        self, data: DataFrame | None, config: Config
    ) -> Iterator[SparkChange | ArrowChange]:
        """Returns the work of one change by key; what it computes stays on the executors until it is done.

        Rows come to this process only if they are no more than `spark.indextables.change.driverRows`.
        """
        with ExitStack() as until, promises_in_words():
            limit = config.get(CHANGE_DRIVER_ROWS)
            if data is not None and limit and not self.assign and not self.parquet_options:
                data = until.enter_context(kept(data))
                if data.count() <= limit:
                    yield ArrowChange(self.place.store, seam.to_arrow(data))
                    return
            yield SparkChange(self._writer, self.assign, until, data)

    def rewrite(
        self, snapshot: Snapshot, mask: FileMask, condition: Predicate, target: WriteTarget
    ) -> Mapping[str, Rewritten]:
        """Returns each of these files without the rows the condition is TRUE for.

        Untouched ones are left out, and not written.
        """
        return Rewrite(self._writer, snapshot, condition, target).run(mask)

    def collect(
        self, splits: Sequence[Split], schema: StructType, columns: Sequence[FieldPath]
    ) -> Mapping[str, SplitStats]:
        """Returns exact statistics of these leaves, from the rows, in one job."""
        keys = [split.path for split in splits]
        return measure(self.session, self.place, keys, Measurement(schema, columns))

    def cluster(
        self, groups: Sequence[Sequence[Split]], target: WriteTarget, clustering: Any | None
    ) -> Sequence[Written]:
        """Returns each group as new splits, packed together or laid along a curve, in one job."""
        return cluster_splits(self._writer, groups, target, clustering)

    def compact(
        self, snapshot: Snapshot, pieces: Sequence[Piece], target: WriteTarget
    ) -> Sequence[Written]:
        """Returns the rows each slice shows, as files of its own, in one job with a task per slice."""
        return compact_slices(self._writer, snapshot, pieces, target)

    @property
    def _writer(self) -> NativeWriter:
        return NativeWriter(self.session, self.place, self.parquet_options)


def spark_executor(session: Any, location: str) -> SparkExecutor:
    """Returns Spark for the table at this location; StorageError where Spark cannot reach it."""
    if not isinstance(session, SparkSession) or not hasattr(session, "_jsparkSession"):
        raise IndexTablesError(
            f"work on a table needs a classic SparkSession, not {type(session).__name__}",
            hint="spark = indextables.enable(SparkSession.builder.getOrCreate())",
        )
    return SparkExecutor(session, place_of(session, location))
