"""Verbs as Spark jobs: the same results as in this process."""

from __future__ import annotations

from collections import Counter
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from indextables.engines.spark.write.executor import SparkExecutor
from indextables.engines.spark.place.hadoop import place_of
from indextables.errors import IndexTablesError, SchemaError, StorageError
from indextables.log.transaction_log import TransactionLog
from indextables.ops.analyze import analyze, drop_statistics
from indextables.ops.optimize import Clustering, optimize
from indextables.ops.delete_overwrite import Condition, delete
from indextables.sql.conditions.parser import parse_predicate
from indextables.table.table import Table


class Work:
    """A table and Spark to work on it."""

    def __init__(self, spark, path):
        place = place_of(spark, path)
        self.table, self.log = Table(path), TransactionLog(place.store)
        self.executor = SparkExecutor(spark, place)

    def rows(self):
        return sorted(map(str, self.table.scan().to_arrow().to_pylist()))


@pytest.fixture(scope="module")
def source(spark, tmp_path_factory):
    """6,000 rows in 12 splits and two partitions; a and b are shuffled, x has NaN and NULL."""
    path = str(tmp_path_factory.mktemp("maintenance") / "t é")
    frame = spark.range(0, 6000, 1, 6).select(
        "id",
        (F.hash("id") % 1000).alias("a"),
        F.concat(F.lit("https://"), F.hash("id", F.lit(7)).cast("string")).alias("b"),
        F.when(F.col("id") % 5 == 0, float("nan"))
        .when(F.col("id") % 5 > 1, F.col("id") / 3)
        .alias("x"),
        F.when(F.col("id") % 2 == 0, "even").alias("p"),
    )
    frame.write.format("indextables").partitionBy("p").save(path)
    return path


@pytest.fixture
def work(spark, source, tmp_path):
    """A copy of that table."""
    import shutil

    shutil.copytree(source, tmp_path / "t é")
    return Work(spark, str(tmp_path / "t é"))


def test_packing_makes_one_split_of_many_and_keeps_every_row(work):
    """One per partition, with exact statistics; a second time there is nothing to do."""
    before = work.rows()
    result = optimize(work.log, work.executor)
    assert (result.metrics["numRemovedFiles"], result.metrics["numAddedFiles"]) == (12, 2)
    assert work.rows() == before
    assert work.table.check(deep=True).ok
    assert not optimize(work.log, work.executor).committed


@pytest.mark.parametrize("curve", ["z", "hilbert"])
def test_a_curve_lets_a_condition_on_either_column_skip_splits(work, curve):
    """Shuffled columns kept every split before; afterwards less than half are needed."""
    before = work.rows()
    size = sum(split.size for split in work.table.snapshot().splits())
    assert work.table.plan("a = 500").report.kept_files == 12
    optimize(work.log, work.executor, clustering=Clustering(("A", "b"), curve), target_bytes=size // 64)
    assert work.rows() == before
    kept = work.table.plan("a = 500").report
    assert kept.kept_files * 2 < kept.total_files
    assert work.table.check(deep=True).ok


def test_only_columns_with_an_order_can_lead_a_curve(work):
    """A partition column has one value per split already."""
    with pytest.raises(SchemaError, match="partition column"):
        optimize(work.log, work.executor, clustering=Clustering(("p",)))


def test_a_delete_rewrites_only_what_it_must(work):
    """The same rows are left as a delete in this process leaves; untouched splits stay as they are."""
    condition = "id < 700 OR x > 1900 OR p IS NULL AND a = 3"
    matching = Counter(map(str, work.table.scan(condition).to_arrow().to_pylist()))
    expected = sorted((Counter(work.rows()) - matching).elements())
    assert 0 < len(expected) < len(work.rows())
    kept = {split.path for split in work.table.snapshot().splits()} - {
        split.path for split in work.table.plan(condition).files
    }
    delete(work.log, work.executor, Condition(parse_predicate(condition)))
    assert work.rows() == expected
    assert kept <= {split.path for split in work.table.snapshot().splits()}
    assert work.table.check(deep=True).ok


def test_analyze_rebuilds_what_a_write_records(work):
    """NaN, NULL and texts: the job finds the statistics that the footers gave."""
    original = {split.path: split.stats for split in work.table.snapshot().splits()}
    drop_statistics(work.log, ["a", "b", "x"])
    assert all(("x",) not in split.stats.nan_count for split in work.log.snapshot().splits())
    analyze(work.log, work.executor)
    assert {split.path: split.stats for split in work.log.snapshot().splits()} == original


def jobs_of(spark, work):
    """How many Spark jobs some work took, and its result."""
    group = f"jobs of {uuid4()}"
    context = spark.sparkContext
    context.setJobGroup(group, "a test")
    try:
        result = work()
        return len(context.statusTracker().getJobIdsForGroup(group)), result
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)


@pytest.mark.parametrize("curve", ["", "ZORDER BY (a, b)", "HILBERT BY (b)"])
def test_optimize_in_sql_is_a_spark_job(spark, work, curve):
    """Packing and both curves; the rows are the same afterwards."""
    before = work.rows()
    path = work.table.uri
    jobs, frame = jobs_of(spark, lambda: spark.sql(f"OPTIMIZE indextables.`{path}` {curve}"))
    (row,) = frame.collect()
    assert jobs > 0
    assert (row.removed_splits, row.version) == (12, work.table.version)
    assert 2 <= row.added_splits < 12
    assert work.rows() == before


def test_analyze_in_sql_is_a_spark_job(spark, work):
    """The statistics of the named columns are there again."""
    drop_statistics(work.log, ["a", "b"])
    text = f"ANALYZE TABLE indextables.`{work.table.uri}` COMPUTE STATISTICS FOR COLUMNS (a)"
    jobs, frame = jobs_of(spark, lambda: spark.sql(text))
    assert jobs > 0
    assert frame.collect()[0].analyzed_splits == 12
    stats = [split.stats for split in work.log.snapshot().splits()]
    assert all(("a",) in found.min_values and ("b",) not in found.min_values for found in stats)


def test_a_handle_can_do_its_work_on_spark(spark, work):
    """`Table.on(spark)` runs the same verbs as jobs; the handle it was made from does not."""
    before = work.rows()
    jobs, result = jobs_of(spark, lambda: work.table.on(spark).optimize(hilbert_by=["a"]))
    assert (jobs > 0, result.committed) == (True, True)
    assert work.rows() == before
    jobs, _ = jobs_of(spark, lambda: work.table.analyze(rebuild=True))
    assert jobs == 0


def test_spark_says_what_it_cannot_reach(spark):
    """A table in this process's memory is none for a JVM; its handle keeps working."""
    table = Table.create("memory://maintenance", pa.schema([("a", pa.int64())]))
    with pytest.raises(StorageError, match="only in this Python process"):
        table.on(spark)
    with pytest.raises(IndexTablesError, match="classic SparkSession"):
        table.on("spark")
    assert not table.optimize().committed


@pytest.mark.parametrize("mode", ["record", "columns"])
def test_compact_folds_slices_on_the_executors(spark, tmp_path, mode):
    """The rows shown are the same, and no log file is left."""
    key = pa.field("k", pa.int64(), nullable=False)
    schema = pa.schema([key, ("v", pa.string()), ("w", pa.float64())])
    table = Table.create(tmp_path / "t", schema, record_key=["k"], merge_mode=mode)
    for start in (0, 50):
        keys = list(range(start, start + 50))
        table.append(
            pa.table({"k": keys, "v": [f"v{k}" for k in keys], "w": [k / 2 for k in keys]}, schema)
        )
    changed = {"k": [3, 60], "v": ["new", None]} | ({"w": [0.0, 1.0]} if mode == "record" else {})
    table.upsert(pa.table(changed))
    table.delete("k IN (7, 99)")
    before = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["k"])
    assert any(split.is_delta for split in table.snapshot().splits())
    jobs, frame = jobs_of(spark, lambda: spark.sql(f"COMPACT indextables.`{table.uri}`"))
    assert (jobs > 0, frame.collect()[0].compacted_slices > 0) == (True, True)
    assert not any(split.is_delta for split in table.snapshot().splits())
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["k"]) == before
    assert table.check(deep=True).ok
