"""Planning over a hundred thousand splits, none of whose files exist: nothing is opened, little is computed."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

from indextables.core.stats import SplitStats
from indextables.engines.spark.scan import relation
from indextables.engines.spark.scan.file_list import FileList
from indextables.log.wire.actions import Add
from indextables.log.commit.intent import Append, CommitPlan
from indextables.log.transaction_log import TransactionLog
from indextables.storage.open import open_store
from indextables.table.table import Table

SPLITS = 100_000
LIMIT = 3.0
"""Seconds of processor time, of every thread together: what is promised of the clock, and harder."""
ATTEMPTS = 5
"""The first ones pay for compiling Spark's code; one that is fast enough shows what planning takes."""


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A log with one commit of all splits, a hundred ids in each."""
    path = tmp_path_factory.mktemp("scale") / "t"
    Table.create(path, pa.schema([("id", pa.int64()), ("x", pa.float64())]))
    adds = tuple(
        Add(
            f"data/0-0f8fad5b-d9cb-469f-a165-70867728950e/part-{i:06d}.snappy.parquet",
            1000,
            modification_time=1,
            stats=SplitStats(100, {("id",): i * 100}, {("id",): i * 100 + 99}, {("id",): 0}),
        )
        for i in range(SPLITS)
    )
    TransactionLog(open_store(path)).commit(lambda _: CommitPlan(Append(), "APPEND", adds))
    return str(path)


class Processor:
    """Seconds of processor time that this process and its JVM have used."""

    def __init__(self, spark):
        java = spark._jvm.java.lang
        # The bean's own class is hidden; its interface is not.
        kind = java.Class.forName("com.sun.management.OperatingSystemMXBean")
        of_long = java.invoke.MethodType.methodType(java.Long.TYPE)
        found = java.invoke.MethodHandles.publicLookup().findVirtual(kind, "getProcessCpuTime", of_long)
        self._nanos = found.bindTo(java.management.ManagementFactory.getPlatformMXBean(kind))
        self._nothing = spark._jvm.java.util.ArrayList()

    def seconds(self):
        return time.process_time() + self._nanos.invokeWithArguments(self._nothing) / 1e9


def partitions(frame):
    """Spark's tasks for this query: all planning is done when they are known."""
    return frame._jdf.queryExecution().toRdd().getNumPartitions()


def test_a_full_scan_of_many_splits_is_planned_quickly(spark, many):
    """Every file gets its status and its task, each time from nothing but the log in memory."""
    processor = Processor(spark)
    took = []
    while len(took) < ATTEMPTS and (not took or min(took) > LIMIT):
        relation._lists.clear()  # what another query found out is no help
        started = processor.seconds()
        assert partitions(spark.read.format("indextables").load(many)) > 1
        took.append(processor.seconds() - started)
    assert min(took) <= LIMIT, took


def test_a_selective_query_builds_only_its_splits(spark, many, monkeypatch):
    """One of the hundred thousand, and no status is made for the others."""
    built = []
    build = FileList._build
    monkeypatch.setattr(
        FileList, "_build", lambda self, kept: built.append(int(kept.sum())) or build(self, kept)
    )
    relation._lists.clear()
    frame = spark.read.format("indextables").load(many).where("id BETWEEN 5000 AND 5050")
    assert (partitions(frame), built) == (1, [1])
