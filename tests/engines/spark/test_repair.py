"""REPAIR through spark.sql: the seed's integration tests, and that it runs once, at once."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql.types import IntegerType, LongType, StringType

from indextables.errors import RepairError
from indextables.ops.repair.log_location import location_of
from indextables.ops.repair.swap import replace_log
from indextables.storage import open_store
from support.damage import seal

TRUNCATION = "spark.indextables.stats.truncation.enabled"


@contextmanager
def setting(spark, key: str, value: str):
    """A session setting that is as it was afterwards."""
    before = spark.conf.get(key, None)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        spark.conf.unset(key) if before is None else spark.conf.set(key, before)


@pytest.fixture(scope="module")
def articles(spark, tmp_path_factory) -> Path:
    """Twelve splits with texts of 2,000 characters, written without truncation as an old writer would."""
    path = tmp_path_factory.mktemp("repair") / "articles"
    frame = spark.range(240).selectExpr(
        "id", "concat(lpad(id, 6, '0'), repeat('x', 2000)) AS text", "id * 2 AS score"
    )
    for part in range(3):
        rows = frame.where(f"id % 3 = {part}").repartition(4)
        rows.write.format("indextables").mode("append").option(TRUNCATION, "false").save(str(path))
    return path


def repair(spark, path: Path, target: str):
    log = path / "_transaction_log"
    return spark.sql(
        f"REPAIR INDEXFILES TRANSACTION LOG '{log}'\n AT LOCATION '{path / target}/_transaction_log'"
    )


def log_size(log: Path) -> int:
    return sum(file.stat().st_size for file in log.iterdir())


def test_it_runs_once_and_at_once_and_has_the_seeds_columns(spark, articles: Path):
    """Showing the result again repairs nothing again: that would fail, the target is not empty."""
    before = seal(articles)
    result = repair(spark, articles, "once")
    assert (articles / "once" / "_transaction_log" / "_last_checkpoint").exists()
    assert [(field.name, type(field.dataType)) for field in result.schema] == [
        ("source_path", StringType),
        ("target_path", StringType),
        ("source_version", LongType),
        ("total_splits", IntegerType),
        ("valid_splits", IntegerType),
        ("missing_splits", IntegerType),
        ("status", StringType),
    ]
    result.show()
    [first], [second] = result.collect(), result.collect()
    assert first == second
    assert tuple(first)[3:] == (12, 12, 0, "SUCCESS")
    assert seal(articles).items() >= before.items()
    with pytest.raises(RepairError, match="Target location already exists and is not empty"):
        repair(spark, articles, "once")


def test_an_error_is_a_row(spark, tmp_path: Path):
    """A source that is not there."""
    [row] = repair(spark, tmp_path / "nothing", "x").collect()
    assert tuple(row)[2:6] == (-1, 0, 0, 0)
    assert row.status.startswith("ERROR: ")


def test_long_statistics_are_truncated_and_the_table_reads_the_same_after_replacement(
    spark, articles: Path
):
    """More than 80 % smaller; every query as before."""
    original = log_size(articles / "_transaction_log")
    assert original > 45_000
    [row] = repair(spark, articles, "lean").collect()
    assert row.status == "SUCCESS"
    # the source has no checkpoint, so the new one does not count
    lean = articles / "lean" / "_transaction_log"
    commits = sum(path.stat().st_size for path in lean.glob("*.json") if "checkpoint" not in path.name)
    assert commits < 0.2 * original

    def answers():
        frame = spark.read.format("indextables").load(str(articles))
        return [
            sorted(map(tuple, frame.where(where).select("id", "score").collect()))
            for where in ("true", "id = 17", "text > '000200'", "score BETWEEN 10 AND 20")
        ]

    before = answers()
    log = location_of(articles / "_transaction_log", open_store)
    replace_log(log, location_of(lean, open_store))
    assert answers() == before
    assert len(before[0]) == 240
    spark.range(3).selectExpr("id", "'new' AS text", "id AS score").write.format("indextables").mode(
        "append"
    ).save(str(articles))
    assert spark.read.format("indextables").load(str(articles)).count() == 243


def test_with_truncation_disabled_the_statistics_stay(spark, tmp_path: Path):
    """The session's setting reaches the repair, and is as it was afterwards."""
    path = tmp_path / "t"
    frame = spark.range(5).selectExpr("id", "concat(id, repeat('y', 2000)) AS text")
    frame.write.format("indextables").option(TRUNCATION, "false").save(str(path))
    with setting(spark, TRUNCATION, "false"):
        [row] = repair(spark, path, "whole").collect()
    assert row.status == "SUCCESS"
    from indextables.log.transaction_log import TransactionLog

    [split, *_] = TransactionLog(open_store(path / "whole")).snapshot().splits()
    assert len(split.stats.min_values["text",]) > 1024
    assert spark.conf.get(TRUNCATION, None) is None
