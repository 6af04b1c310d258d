"""Whatever a user gets wrong in Spark is said in one clear Python error, and nothing is written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import functions as sf
from support.spark_tables import days, write_table

import indextables as it
from indextables.engines.spark.place.hadoop import Place
from indextables.engines.spark.write.native_write import why_unwritable
from indextables.errors import (
    ConfigError,
    IndexTablesError,
    MissingDependencyError,
    NotATableError,
    ObjectNotFoundError,
    SchemaError,
    SchemaMismatchError,
    StorageError,
    TableNotFoundError,
    UnsupportedTypeError,
)
from indextables.storage.local import LocalStore


@pytest.fixture
def table(tmp_path):
    """A table partitioned by day."""
    write_table(tmp_path / "t", days(20).drop_columns(["st"]), partition_by=["day"])
    return str(tmp_path / "t")


def rows(spark, table):
    return spark.read.format("indextables").load(table)


def write(frame):
    return frame.write.format("indextables")


def said(error: BaseException) -> str:
    """The message: a line or a few, and no stack of the JVM."""
    text = str(error)
    assert len(text.splitlines()) <= 6, text
    assert not any(sign in text for sign in ("\tat ", "py4j", "Py4J", "Traceback", "java."))
    assert error.__class__.__module__.startswith("indextables")
    return text


def test_a_path_that_is_no_table(spark, tmp_path):
    """Nothing there, a directory of something else, a file; for reading, for SQL and for writing."""
    (tmp_path / "file").write_text("x")
    spark.range(3).write.parquet(str(tmp_path / "plain"))
    nothing = str(tmp_path / "nothing")
    for attempt in (
        lambda: rows(spark, nothing),
        lambda: spark.sql(f"SELECT * FROM indextables.`{nothing}`"),
        lambda: spark.sql(f"INSERT INTO indextables.`{nothing}` SELECT 1"),
        lambda: spark.sql(f"DESCRIBE HISTORY indextables.`{nothing}`"),
        lambda: rows(spark, str(tmp_path / "file")),
    ):
        with pytest.raises(TableNotFoundError) as found:
            attempt()
        assert "there is no table" in said(found.value)
    for place in ("plain", "file"):
        with pytest.raises(NotATableError) as found:
            write(spark.range(3)).mode("append").save(str(tmp_path / place))
        assert "a table cannot be created there" in said(found.value)
    assert (tmp_path / "file").read_text() == "x"
    with pytest.raises(NotATableError) as found:
        rows(spark, str(tmp_path / "plain"))
    assert "convert" in said(found.value)


NO_DIRECTORY = "/proc/t"
"""Where nobody can make a directory, whoever runs the tests."""


@pytest.mark.parametrize(
    "attempt",
    [
        lambda s, p: write(s.range(3)).save(p),
        lambda s, p: write(s.range(3)).mode("upsert").option("recordKey", "id").save(p),
        lambda s, p: s.sql(f"CREATE TABLE indextables.`{p}` AS SELECT 1 AS id"),
        lambda s, p: s.sql(f"CREATE TABLE indextables.`{p}` (id INT)"),
    ],
)
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a place like /proc")
def test_a_target_that_cannot_be_written(spark, tmp_path, attempt):
    """Below a file, or where no directory can be made: said before any job runs, and nothing is left."""
    (tmp_path / "file").write_text("x")
    for target in (NO_DIRECTORY, str(tmp_path / "file" / "t")):
        with pytest.raises(StorageError) as found:
            attempt(spark, target)
        assert target in said(found.value) and found.value.hint
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_directory_that_became_unwritable(spark, table):
    """The rows that are there stay, and the next write succeeds once the reason is gone."""
    more = rows(spark, table).localCheckpoint()
    data = Path(table) / "data"
    data.rename(f"{table}/kept")
    data.write_text("x")
    with pytest.raises(StorageError) as found:
        write(more).mode("append").save(table)
    assert "nothing can be written to" in said(found.value)
    data.unlink()
    Path(f"{table}/kept").rename(data)
    write(more).mode("append").save(table)
    assert rows(spark, table).count() == 40


def test_what_stopped_a_job_names_its_place_only(spark):
    """A full disk and a refusal by the target are ours to tell; a source that is refused is not."""
    java = spark.sparkContext._jvm.java
    place = Place(LocalStore("/data/t"), "s3a://bucket/t", "s3://bucket/t")

    def told(cause):
        return why_unwritable(java.lang.RuntimeException("Task failed", cause), place)

    assert "space" in said(told(java.io.IOException("No space left on device")))
    assert "bucket/t" in said(told(java.nio.file.AccessDeniedException("s3a://bucket/t/data/0-a: 403")))
    assert told(java.nio.file.AccessDeniedException("s3a://other/rows: 403")) is None


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (lambda s, t: s.read.format("indextables").option("verionAsOf", 1).load(t), "'versionAsOf'?"),
        (lambda s, t: s.read.format("indextables").option("wher", "id = 1").load(t), "'where'?"),
        (
            lambda s, t: write(rows(s, t)).mode("append").option("mergeShema", True).save(t),
            "'mergeSchema'?",
        ),
        (
            lambda s, t: write(rows(s, t)).mode("append").option("maxRecordPerFile", 1).save(t),
            "'maxRecordsPerFile'?",
        ),
        (
            lambda s, t: (
                write(rows(s, t))
                .mode("append")
                .option("spark.indextables.stats.truncation.maxLength", "many")
                .save(t)
            ),
            "it is an integer",
        ),
    ],
)
def test_an_option_that_means_nothing(spark, table, attempt, words):
    """The name that was meant, or what the value must be; nothing is committed."""
    with pytest.raises(ConfigError) as found:
        attempt(spark, table)
    assert words in said(found.value)
    assert it.Table(table).version == 1


@pytest.mark.parametrize(
    "value",
    ["INTERVAL '1' DAY", "make_interval(1)", "NULL", "struct(NULL AS a)", "array(INTERVAL '1' DAY)"],
)
def test_a_type_that_the_format_cannot_hold(spark, tmp_path, value):
    """The column and its type are named before a file is written."""
    with pytest.raises(UnsupportedTypeError) as found:
        write(spark.sql(f"SELECT 1 AS id, {value} AS x")).save(str(tmp_path / "t"))
    assert "which a table cannot hold" in said(found.value)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_other_partition_columns(spark, table, mode):
    """The table's and the write's are both named."""
    with pytest.raises(SchemaMismatchError) as found:
        write(rows(spark, table)).mode(mode).partitionBy("name").save(table)
    assert "partitioned by ['day'], this write by ['name']" in said(found.value)
    assert rows(spark, table).count() == 20


def test_columns_that_vanished_or_changed(spark, table):
    """In the data of a write, in the condition of an overwrite, and in what cannot be a partition."""
    frame = rows(spark, table)
    for data, words in (
        (frame.drop("score"), "column 'score' (double) is missing"),
        (frame.withColumn("id", sf.col("name")), "column 'id' is string, the table has bigint"),
        (frame.withColumn("extra", sf.lit(1)), "column 'extra' is not in the table"),
    ):
        with pytest.raises(SchemaMismatchError) as found:
            write(data).mode("append").save(table)
        assert words in said(found.value)
    with pytest.raises(IndexTablesError) as found:
        write(frame).mode("overwrite").option("replaceWhere", "gone = 1").save(table)
    assert "no column 'gone'" in said(found.value)
    with pytest.raises(SchemaError) as found:
        write(frame.selectExpr("id", "map(1, 2) AS m")).partitionBy("m").save(f"{table}2")
    assert "cannot be a partition" in said(found.value)


@pytest.mark.parametrize("setting", [None, "ignoreMissingFiles", "ignoreCorruptFiles"])
def test_a_data_file_that_is_gone_or_damaged(spark, table, setting):
    """The file, the table and its version, and what to do; never fewer rows, whatever the session says."""
    (key,) = it.Table(table).snapshot().column("key").to_pylist()
    frame = rows(spark, table)
    if setting:
        spark.conf.set(f"spark.sql.files.{setting}", "true")
    try:
        os.truncate(f"{table}/{key}", 100)
        with pytest.raises(StorageError) as found:
            frame.collect()
        text = said(found.value)
        assert key in text and "version 1" in text and "check(deep=True)" in text
        os.remove(f"{table}/{key}")
        for attempt in (
            frame.collect,
            lambda: write(frame).save(f"{table}2"),
            lambda: spark.sql(f"UPDATE indextables.`{table}` SET name = 'x'"),
        ):
            with pytest.raises(ObjectNotFoundError) as found:
                attempt()
            text = said(found.value)
            assert found.value.key == key and found.value.version == 1
            assert "vacuum" in text and "REPAIR" in text and table in text
        with pytest.raises(ObjectNotFoundError) as found:
            spark.sql(f"DELETE FROM indextables.`{table}` WHERE name LIKE '%x%'")
        assert key in said(found.value) and "REPAIR" in said(found.value)
    finally:
        if setting:
            spark.conf.unset(f"spark.sql.files.{setting}")
    assert it.Table(table).version == 1


def test_java_that_is_missing(tmp_path, monkeypatch):
    """The command says so in one line, and so does a session of ours."""
    environment = {**os.environ, "JAVA_HOME": str(tmp_path / "no java")}
    done = subprocess.run(
        [sys.executable, "-m", "indextables", "demo"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 1
    problem = [line for line in done.stderr.splitlines() if line and not line.startswith("Starting")]
    assert problem[0].startswith("error: Spark did not start: it needs Java 17 or newer")
    assert len(problem) == 2  # and what to do

    from indextables.engines.spark.local_session import local_session

    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependencyError) as found:
        local_session("no Java")
    assert "Java 17" in said(found.value)


def test_enable_takes_a_session(spark):
    """Anything else is told what to give."""
    with pytest.raises(IndexTablesError) as found:
        it.enable("spark")
    assert "SparkSession" in said(found.value)
    assert it.enable(spark) is spark
