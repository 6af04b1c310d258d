"""A stream into a table: every batch once."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from indextables.engines.spark.streaming import Sink
from indextables.engines.spark.place.tables_and_options import WriteOptions
from indextables.errors import ConfigError, IndexTablesError
from indextables.table.table import Table


@pytest.fixture
def stream(spark, tmp_path):
    """A directory that is streamed, and how to add ten more rows to it."""
    directory = str(tmp_path / "source")

    def more(start):
        frame = spark.range(start, start + 10, 1, 1).select("id", (F.col("id") % 2).alias("p"))
        frame.write.mode("append").parquet(directory)

    more(0)
    return spark.readStream.schema("id long, p long").parquet(directory), more


def run(frame, path, checkpoint, **options):
    writer = frame.writeStream.format("indextables").partitionBy("p").options(**options)
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start(path)
    query.awaitTermination()
    return query


def test_a_stream_that_is_started_again_adds_only_what_is_new(spark, stream, tmp_path):
    """Each batch is one commit with the query's id and the batch's number."""
    frame, more = stream
    path, checkpoint = str(tmp_path / "t"), str(tmp_path / "checkpoint")
    first = run(frame, path, checkpoint)
    more(10)
    second = run(frame, path, checkpoint)
    assert first.id == second.id
    table = Table(path)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(20))
    snapshot = table.snapshot()
    assert snapshot.partition_columns == ("p",)
    assert (snapshot.version, snapshot.txns[first.id].version) == (1, 1)


def test_a_batch_whose_commit_was_not_recorded_is_not_written_twice(spark, stream, tmp_path):
    """The crash between our commit and Spark's: the checkpoint forgets, the table does not."""
    frame, _ = stream
    path, checkpoint = str(tmp_path / "t"), tmp_path / "checkpoint"
    run(frame, path, str(checkpoint))
    (checkpoint / "commits" / "0").unlink()
    (checkpoint / "commits" / ".0.crc").unlink(missing_ok=True)
    run(frame, path, str(checkpoint))
    assert Table(path).scan().to_arrow().num_rows == 10
    assert Table(path).version == 0


def test_complete_mode_replaces_the_table_with_each_batch(spark, stream, tmp_path):
    """An aggregate over all that has come so far."""
    frame, more = stream
    path, checkpoint = str(tmp_path / "t"), str(tmp_path / "checkpoint")
    counts = frame.groupBy("p").count()
    for start in (10, 20):
        writer = counts.writeStream.outputMode("complete").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).toTable(f"indextables.`{path}`").awaitTermination()
        more(start)
    assert sorted(Table(path).scan().to_arrow()["count"].to_pylist()) == [10, 10]


def test_complete_mode_replaces_partitions_that_the_result_no_longer_has(spark, tmp_path):
    """The session's partitionOverwriteMode is about other writes: this batch is the whole result."""
    path, name = str(tmp_path / "t"), "spark.sql.sources.partitionOverwriteMode"
    sink = Sink(path, ("p",), WriteOptions(), "overwrite")
    spark.conf.set(name, "dynamic")
    try:
        sink(spark.range(0, 2, 1, 1).selectExpr("id", "id AS p"), 0)
        sink(spark.range(1, 2, 1, 1).selectExpr("id", "id AS p"), 1)
    finally:
        spark.conf.unset(name)
    assert Table(path).scan().to_arrow()["id"].to_pylist() == [1]


def test_update_mode_is_refused_before_the_stream_starts(stream, tmp_path):
    """An append would keep the old rows beside the new ones."""
    frame, _ = stream
    writer = frame.writeStream.format("indextables").outputMode("update")
    with pytest.raises(ConfigError, match="update"):
        writer.start(str(tmp_path / "t"))


def test_a_batch_outside_a_stream_has_no_number(spark, tmp_path):
    """The sink itself is a function of a DataFrame and a number."""
    sink = Sink(str(tmp_path / "t"), (), WriteOptions(), "append")
    for _ in range(2):
        sink(spark.range(0, 3, 1, 1), 0)
    assert Table(str(tmp_path / "t")).scan().to_arrow().num_rows == 6


def test_a_table_is_no_source_of_a_stream(spark, tmp_path):
    """Regression: a stack trace of the JVM said that there is no such data source."""
    with pytest.raises(IndexTablesError, match="source of a stream"):
        spark.readStream.format("indextables").load(str(tmp_path))
    with pytest.raises(IndexTablesError, match="source of a stream"):
        spark.readStream.load(str(tmp_path), format="indextables")
    assert spark.readStream.format("text").load(str(tmp_path)).isStreaming
