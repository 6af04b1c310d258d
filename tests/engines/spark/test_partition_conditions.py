"""Conditions on partition columns: answered where Spark answers them over plain Parquet."""

from __future__ import annotations

import pytest

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
