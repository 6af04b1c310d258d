"""A table on a file system that only Hadoop can reach: Spark's own files, and our log beside them."""

from __future__ import annotations

import threading

from pyspark.sql import functions as F

from indextables.engines.spark.place.hadoop import place_of
from indextables.log.transaction_log import TransactionLog
from support.webhdfs import webhdfs  # noqa: F401 - a fixture


def test_writers_at_the_same_time_lose_nothing_on_hadoop(spark, webhdfs):  # noqa: F811
    """Three threads append through Hadoop's rename; every commit and every row is there."""
    path = webhdfs.uri("table é")
    rows = spark.range(0, 10, 1, 1).select("id", (F.col("id") % 2).alias("p"))
    rows.write.format("indextables").partitionBy("p").save(path)
    failures = []

    def append():
        try:
            rows.write.format("indextables").mode("append").save(path)
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=append) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    frame = spark.read.format("indextables").load(path)
    assert frame.count() == 40
    assert frame.where("p = 1").count() == 20
    snapshot = TransactionLog(place_of(spark, path).store).snapshot()
    assert (snapshot.version, snapshot.num_files) == (3, 8)
