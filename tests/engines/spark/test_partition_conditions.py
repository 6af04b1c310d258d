"""Conditions on partition columns: answered where Spark answers them over plain Parquet."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from indextables.engines.spark.scan.plan_scans import planned_scans
from indextables.engines.spark.scan.scan_report import last_scan
from indextables.table.table import Table

FORMAT = "indextables"
ROWS = [(1, "x"), (2, "1"), (3, "2"), (4, None)]
GUARDED = "p <> 'x' AND CAST(p AS INT) = 1"


@pytest.fixture(params=[{}, {"recordKey": "id"}], ids=["rows", "keyed"])
def name(spark, tmp_path, request):
    """A table of one row per partition, one of whose values is no number; with a key it has a log too."""
    path = str(tmp_path / "t")
    frame = spark.createDataFrame(ROWS, "id int, p string")
    frame.write.format(FORMAT).partitionBy("p").options(**request.param).save(path)
    if request.param:
        frame.write.format(FORMAT).mode("upsert").save(path)
    return f"{FORMAT}.`{path}`"


def ids(spark, name, where="true"):
    return sorted(row.id for row in spark.sql(f"SELECT id FROM {name} WHERE {where}").collect())


def test_a_condition_is_not_asked_of_a_partition_that_another_one_excludes(spark, name, tmp_path):
    """Regression: `CAST(p AS INT)` failed for the value that `p <> 'x'` beside it leaves out."""
    plain = str(tmp_path / "plain")
    spark.createDataFrame(ROWS, "id int, p string").write.partitionBy("p").parquet(plain)
    for where in (
        GUARDED,
        f"{GUARDED} AND id > 0",
        "p NOT IN ('x', '2') AND p IS NOT NULL AND 1 / p = 1",
    ):
        assert ids(spark, name, where) == ids(spark, f"parquet.`{plain}`", where) == [2]
    # Spark may turn the two around, as it does for the log files of a table with a key.
    assert ids(spark, name, "CAST(p AS INT) = 1 AND p <> 'x'") == [2]
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        ids(spark, name, "CAST(p AS INT) = 1")


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("DELETE FROM {t} WHERE {where}", [1, 3, 4]),
        ("UPDATE {t} SET id = 20 WHERE {where}", [1, 3, 4, 20]),
        (
            "MERGE INTO {t} USING (SELECT 1 AS k) ON p <> 'x' AND CAST(p AS INT) = k "
            "WHEN MATCHED THEN DELETE",
            [1, 3, 4],
        ),
    ],
    ids=["DELETE", "UPDATE", "MERGE"],
)
def test_a_change_answers_where_a_query_does(spark, name, statement, left):
    """Regression: the same conditions stopped statements that change rows."""
    spark.sql(statement.format(t=name, where=GUARDED))
    assert ids(spark, name) == left


# Conditions that need partition columns and others, which Spark does not hand down.

MIXED = {
    "p = 1 OR id > 25": 14,
    "id > p": 29,
    "id > p * 15": 13,
    "(p = 0 AND id > 8) OR (p = 2 AND id < 22)": 3,
    "id IN (p + 10, 25)": 2,
    "(id + 1 > 28 OR p = 0) AND id <> 7": 11,
    "p = 0 OR id > 27 OR hash(id) = 1": 30,
    "p = 9 OR id > (SELECT max(id) FROM range(200))": 30,
}
"""Conditions, and how many of thirty files of one row hold one, or may."""


@pytest.fixture(scope="module")
def thirty(spark, tmp_path_factory):
    """A table of thirty files with one row each, ids 0 to 29 and a partition for every ten."""
    path = str(tmp_path_factory.mktemp("mixed") / "t")
    frame = spark.range(30).selectExpr("id", "CAST(id DIV 10 AS INT) AS p").repartition(30, "id")
    for part in range(0, 30, 10):
        few = frame.where(f"id >= {part} AND id < {part} + 10").repartitionByRange(10, "id")
        few.write.format(FORMAT).mode("append").partitionBy("p").save(path)
    frame.write.partitionBy("p").parquet(f"{path}-plain")
    assert Table(path).snapshot().num_files == 30
    return path


def _files_read(frame):
    """The number of files that the scan of a query that ran has read, by Spark's own metric."""
    rows = frame.collect()
    plan = frame._jdf.queryExecution().executedPlan()
    (scan,) = [found.node for found in planned_scans(plan, is_running=True)]
    return int(scan.metrics().apply("numFiles").value()), sorted(row.id for row in rows)


@pytest.mark.parametrize("where", list(MIXED))
def test_a_part_over_partition_and_other_columns_skips_files(spark, thirty, where):
    frame = spark.read.format(FORMAT).load(thirty).where(where).select("id")
    plain = spark.read.parquet(f"{thirty}-plain").where(where).select("id")
    read, found = _files_read(frame)
    assert found == sorted(row.id for row in plain.collect())
    assert read == MIXED[where]
    assert last_scan(spark.read.format(FORMAT).load(thirty).where(where)).kept_files == read
    said = spark.sql(f"EXPLAIN SELECT id FROM {FORMAT}.`{thirty}` WHERE {where}").first()[0]
    assert f"{read} of 30 splits" in said


def test_each_scan_of_a_table_goes_by_the_condition_above_itself(spark, thirty):
    """One index serves several scans: a join with itself, a union, a broadcast, a cached plan beside a query."""
    frame = spark.read.format(FORMAT).load(thirty)
    low, high = frame.where("p = 0 OR id = 25"), frame.where("p = 2 OR id = 5")
    assert low.union(high).count() == 22
    assert low.join(high, "id").count() == 2
    assert low.join(F.broadcast(high), "id").count() == 2
    assert frame.where("id IN (SELECT id FROM VALUES (5), (25) AS v(id))").count() == 2
    kept = frame.select("id").cache()
    try:
        # the cached scan is run by a query with a condition of this kind beside it
        assert low.select("id").union(kept).count() == 11 + 30
        assert kept.count() == 30
    finally:
        kept.unpersist()


def test_a_view_or_a_change_by_such_a_part_finds_every_row(spark, thirty, tmp_path):
    name = f"{FORMAT}.`{tmp_path / 'changed'}`"
    spark.read.format(FORMAT).load(thirty).write.format(FORMAT).partitionBy("p").save(
        str(tmp_path / "changed")
    )
    spark.sql(f"DELETE FROM {name} WHERE p = 0 AND id < 3 OR id = 29")
    spark.sql(f"UPDATE {name} SET id = id + 100 WHERE p = 1 AND id < 13 OR id = 28")
    expected = [*range(3, 10), *range(13, 28), 110, 111, 112, 128]
    assert ids(spark, name) == expected
