"""Random conditions under casts: files that are skipped, files that a DELETE drops, and rows it tells apart."""

from __future__ import annotations

import os

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from support.cast_conditions import Conditions
from support.cast_tables import plain_frame, write_both

from indextables.core.predicate.to_sql import to_spark_sql
from indextables.core.prune.evaluate import may_match, must_match
from indextables.engines.spark.change.reading import Reading
from indextables.engines.spark.scan.scan_report import our_scans
from indextables.engines.spark.place.tables_and_options import open_table

FEW = 60
MANY = int(os.environ.get("FUZZ_EXAMPLES", "1500"))
BATCH = 60
SEED = int(os.environ.get("INDEXTABLES_CAST_SEED", "1"))


class World:
    """A table, partitioned or not, and for each of its files the rows it holds."""

    def __init__(self, spark, path, partition_by):
        write_both(path, partition_by=partition_by)
        self.spark, self.path = spark, str(path / "table")
        self.frame = spark.read.format("indextables").load(self.path)
        self.table = open_table(spark, self.path)
        self.snapshot = self.table.log.snapshot()
        self.plain = plain_frame(spark, path)
        self.files = [
            pq.read_table(f"{self.path}/{split.path}", columns=["k"], partitioning=None)[
                "k"
            ].to_pylist()
            for split in self.snapshot.splits()
        ]

    def read_rows(self, condition):
        """The rows of the files that a query by this condition opens."""
        plan = self.frame.where(condition)._jdf.queryExecution().sparkPlan()
        kept = [scan.plan().rows for scan in our_scans(plan)]
        return {k for mask in kept for i in np.flatnonzero(mask) for k in self.files[i]}

    def removal(self, condition):
        """Of a DELETE that statistics may answer, the files it drops and keeps unread, and its text for rows."""
        parser = self.spark._jsparkSession.sessionState().sqlParser()
        plan = parser.parsePlan(f"DELETE FROM indextables.`{self.path}` WHERE {condition}")
        reading = Reading(self.spark, self.table, self.snapshot, plan)
        if not reading.is_plain:
            return None
        index = self.snapshot.index()
        whole, may = must_match(reading.where, index), may_match(reading.where, index)
        rows = [{k for i in np.flatnonzero(mask) for k in self.files[i]} for mask in (whole, ~may)]
        return (*rows, to_spark_sql(reading.where))

    def is_typed(self, condition):
        """Whether Spark's analyser takes it: not every type casts to every other."""
        try:
            self.plain.where(condition)
        except AnalysisException:
            return False
        return True

    def true_rows(self, conditions):
        """The rows that each condition is TRUE for; None for one that Spark refuses, or that fails on a row."""
        if not conditions:
            return []
        try:
            rows = self.plain.selectExpr("k", *(f"({c}) <=> true" for c in conditions)).collect()
        except Exception as error:
            if len(conditions) == 1:
                is_type = isinstance(error, AnalysisException)
                assert is_type or "SQLSTATE" in str(error), error
                return [None]
            half = len(conditions) // 2
            return self.true_rows(conditions[:half]) + self.true_rows(conditions[half:])
        return [{row[0] for row in rows if row[i + 1]} for i in range(len(conditions))]

    def filtered(self, condition):
        """The same by a filter, which Spark's optimizer may see otherwise than a column."""
        return {row.k for row in self.plain.where(condition).select("k").collect()}


def mistakes(world, conditions):
    """What was lost or removed wrongly, and how many conditions were compared and answered by statistics."""
    known = list(dict.fromkeys(filter(world.is_typed, conditions)))
    truths = world.true_rows(known)
    found, texts = [], []
    for condition, truth in zip(known, truths, strict=True):
        if truth is None:
            continue
        if lost := truth - world.read_rows(condition):
            found.append(("lost", condition, sorted(lost)))
        removal = world.removal(condition)
        if removal is None:
            continue
        whole, unread, text = removal
        if wrong := (whole - truth) | (unread & truth):
            found.append(("deleted or kept whole", condition, sorted(wrong)))
        texts.append((condition, truth, text))
    for (condition, truth, text), rows in zip(
        texts, world.true_rows([t[2] for t in texts]), strict=True
    ):
        if rows != truth:
            found.append(("told apart by", condition, text))
    real = [case for case in found if world.filtered(case[1]) == truths[known.index(case[1])]]
    return real, sum(truth is not None for truth in truths), len(texts)


@pytest.fixture(scope="module", params=[(), ("p", "q")], ids=["plain", "partitioned"])
def world(spark, tmp_path_factory, request):
    """A table of each kind."""
    return World(spark, tmp_path_factory.mktemp("fuzz"), request.param)


def search(world, configured, ansi, count, seed):
    configured("spark.sql.ansi.enabled", str(ansi).lower())
    made = Conditions(seed, ansi=ansi)
    compared = answered = 0
    wrong = []
    for _ in range(-(-count // BATCH)):
        found, some, few = mistakes(world, [made.next() for _ in range(BATCH)])
        wrong += found
        compared, answered = compared + some, answered + few
    assert not wrong, "\n".join(map(str, wrong))
    assert compared > count / 2
    return compared, answered


@pytest.mark.parametrize("ansi", [True, False], ids=["ansi", "legacy"])
def test_no_random_condition_under_casts_loses_a_row_or_deletes_another(world, configured, ansi):
    """A file is skipped only if no row of it matches, and dropped only if each does."""
    _, answered = search(world, configured, ansi, FEW, SEED)
    assert answered > 0


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("ansi", [True, False], ids=["ansi", "legacy"])
def test_no_condition_of_many_under_casts_loses_a_row_or_deletes_another(world, configured, ansi):
    """The long version."""
    print(search(world, configured, ansi, MANY, SEED + 1000))
