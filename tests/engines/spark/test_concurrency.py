"""One DataFrame in many threads, many queries in one process: right rows each time, nothing lost on the way.

Every query asks Python for its files through py4j; the JVM's threads, Python's threads and both
garbage collectors take part.
"""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import functions as sf
from support.spark_tables import days, write_table

from indextables.engines.spark.scan.file_index import TableFileIndex
from indextables.errors import IndexTablesError


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Four hundred rows in eight splits, by id."""
    return write_table(tmp_path_factory.mktemp("concurrency") / "t", days(400, 40), splits=8)


def load(spark, table):
    return spark.read.format("indextables").load(table.uri)


@pytest.fixture
def collecting():
    """Both collectors run all the time: Python's after few allocations."""
    before = gc.get_threshold()
    gc.set_threshold(30, 2, 2)
    yield
    gc.set_threshold(*before)


def test_one_dataframe_in_eight_threads_while_the_table_changes(spark, table, collecting):
    """Filters, self-joins and broadcast joins over a pinned DataFrame, while commits go on."""
    frame = load(spark, table)
    start = threading.Barrier(9)

    def work(seed: int) -> list[int]:
        start.wait(timeout=120)
        low = seed * 45
        near = frame.where(f"id BETWEEN {low} AND {low + 9}")
        other = frame.where(f"id >= {low + 5}").select("id", sf.col("name").alias("other"))
        joined = near.join(other, "id").where("name = other")
        broadcast = frame.join(sf.broadcast(near.select("day").distinct()), "day", "left_semi")
        return [near.count(), joined.count(), broadcast.count()]

    def change() -> None:
        start.wait(timeout=120)
        table.append(days(400, 40))
        table.delete("id < 200")

    with ThreadPoolExecutor(9) as pool:
        changed = pool.submit(change)
        found = list(pool.map(work, range(8)))
        changed.result()
    days_hit = [len({i // 40 for i in range(s * 45, s * 45 + 10)}) for s in range(8)]
    assert found == [[10, 5, 40 * hit] for hit in days_hit]
    assert frame.count() == 400
    assert load(spark, table).count() == 400


def quick_queries(spark, table, count: int) -> None:
    frame = load(spark, table)
    total = frame.count()
    java = spark._jvm.java.lang.System
    for i in range(count):
        assert frame.where(f"id >= {i % 300} AND id < {i % 300 + 1}").count() <= total
        if i % 10 == 0:
            java.gc()
            assert load(spark, table).count() == total


def test_quick_queries_while_everything_is_collected(spark, table, collecting):
    """Regression: an answer that was collected too early reached the JVM as null."""
    quick_queries(spark, table, 15)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_hundred_quick_queries_while_everything_is_collected(spark, table, collecting):
    """The long version."""
    quick_queries(spark, table, 200)


def test_indexes_are_forgotten_with_their_dataframes(spark, table):
    """The JVM tells Python when it drops a relation; nothing holds on to it but the last query described."""
    pool = spark.sparkContext._gateway.gateway_property.pool

    def indexes() -> int:
        found = list(pool.dict.values())
        return sum(isinstance(each, TableFileIndex) for each in found)

    frames = [load(spark, table) for _ in range(30)]
    most = indexes()
    assert most >= len(frames)
    del frames
    for _ in range(50):
        gc.collect()
        spark._jvm.java.lang.System.gc()
        spark._jvm.java.lang.System.runFinalization()
        if indexes() < most - 15:
            break
        threading.Event().wait(0.2)
    assert indexes() < most - 15


def test_an_error_of_a_plan_is_the_same_when_it_is_met_again(spark, table, monkeypatch):
    """Spark keeps a plan that failed and throws the same exception again; so do we, with our own error."""
    frame = load(spark, table).where("id = 3")

    def fails(self):
        raise IndexTablesError("no size today")

    from indextables.engines.spark.jvm.callbacks import jvm_callback

    monkeypatch.setattr(TableFileIndex, "sizeInBytes", jvm_callback(fails))
    joined = frame.join(frame.select("id"), "id")
    for _ in range(2):
        with pytest.raises(IndexTablesError, match="no size today"):
            joined.collect()
