"""Spark Connect: reads planned in the client, commands, and a clear word on what does not work."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from decimal import Decimal

import pytest

pytest.importorskip("grpc", reason="Spark Connect is tried on the newest Spark alone")
from support.spark_tables import days, write_table

import indextables as it
import pyarrow as pa
from indextables.errors import (
    ConfigError,
    IndexTablesError,
    SchemaError,
    SqlSyntaxError,
    TableNotFoundError,
)

pytest.importorskip("grpc")
pytest.importorskip("grpc_status")

# What Connect imports warns about what it imports; its first call loads thousands of classes.
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def server(spark):
    """A Connect server in the JVM that is there already, on a port the system chose."""
    context = spark.sparkContext._jsc.sc()
    context.conf().set("spark.connect.grpc.binding.port", "0")
    name = "org.apache.spark.sql.connect.service.SparkConnectService$"
    service = getattr(getattr(spark._jvm, name), "MODULE$")
    service.start(context)
    yield f"sc://localhost:{service.localPort()}"
    none = spark._jvm.scala.Option.empty()
    service.stop(none, none)


@pytest.fixture(scope="module")
def connect(server):
    """A session on that server."""
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(server).create()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    assert it.enable(session) is session
    assert it.enable(session) is session
    yield session
    session.stop()


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Five hundred rows in ten splits, by id, in a directory with a name that is a pattern."""
    path = tmp_path_factory.mktemp("connect") / "t [1] {a,b}*"
    write_table(path, days(500), splits=10)
    return str(path)


def read(session, path, **options):
    return session.read.format("indextables").options(**options).load(str(path))


def rows(frame, *order):
    return [tuple(row) for row in frame.orderBy(*order).collect()]


def test_a_read_with_a_condition_opens_the_splits_it_needs(connect, table):
    """The same rows as a classic session gives, from two files of ten."""
    frame = read(connect, table, where="id >= 120 AND id < 180")
    assert len(frame.inputFiles()) == 2
    assert [row.id for row in frame.select("id").orderBy("id").collect()] == list(range(120, 180))
    assert frame.columns == days(1).column_names
    assert (
        connect.read.load(table, format="indextables", where="id = 7").select("st.b").first()[0] == "b7"
    )


@pytest.mark.parametrize(
    "where", ["score IS NULL AND day = '2024-01-02'", "length(name) + id = 48 OR id > 495", "id < 0"]
)
def test_rows_are_those_of_a_classic_session(connect, spark, table, where):
    """Conditions that skip, that only Spark can evaluate, and that leave nothing."""
    wanted = rows(read(spark, table).where(where).drop("st"), "id")
    assert rows(read(connect, table, where=where).drop("st"), "id") == wanted


def test_a_condition_skips_no_split_where_the_session_reads_it_otherwise(connect, tmp_path):
    """Regression: the client took a backslash for an escape where the server does not, and rows were missing."""
    path = str(tmp_path / "t")
    texts = pa.table({"s": ["a\\b", "x"]})
    write_table(path, texts, splits=2)
    for setting, where in (
        ("spark.sql.parser.escapedStringLiterals", r"s = 'a\b'"),
        ("spark.sql.ansi.doubleQuotedIdentifiers", """ "s" <> 'x' """),
    ):
        connect.conf.set(setting, "true")
        try:
            assert rows(read(connect, path, where=where), "s") == [("a\\b",)]
        finally:
            connect.conf.unset(setting)


def test_a_condition_that_spark_does_not_understand_is_an_error_of_spark(connect, table):
    """In Spark's words, as it would be for any DataFrame."""
    from pyspark.errors import AnalysisException, ParseException

    with pytest.raises(ParseException):
        read(connect, table, where="id >>>= 3").collect()
    with pytest.raises(AnalysisException, match="missing"):
        read(connect, table, where="missing = 3").collect()


def test_partition_values_of_every_type_and_versions(connect, spark, tmp_path):
    """NULL, NaN, quotes and times arrive as they are, and an older version has its own rows."""
    data = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int64()),
            "text": ["it's `x` \\ %", "ü/=", None],
            "day": pa.array([dt.date(1969, 12, 31), None, dt.date(2024, 2, 29)]),
            "time": pa.array([-1, 1_700_000_000_123_456, None], pa.timestamp("us", "UTC")),
            "wall": pa.array([-1, 1_700_000_000_123_456, None], pa.timestamp("us")),
            "real": pa.array([float("nan"), -0.5, float("inf")]),
            "short": pa.array([-3, None, 7], pa.int16()),
            "flag": [True, False, None],
            "price": pa.array([Decimal("1.50"), None, Decimal("-0.05")], pa.decimal128(10, 2)),
        }
    )
    names = data.column_names[1:]
    made = write_table(tmp_path / "p", data, partition_by=names)
    made.append(data.slice(0, 1))
    frame = read(connect, tmp_path / "p")
    assert dict(frame.dtypes) == dict(read(spark, tmp_path / "p").dtypes)
    as_text = [f"CAST({name} AS STRING) AS {name}" for name in frame.columns]
    wanted = rows(read(spark, tmp_path / "p").selectExpr(*as_text), "id")
    assert len(wanted) == 4
    assert rows(frame.selectExpr(*as_text), "id") == wanted
    assert read(connect, tmp_path / "p", versionAsOf=1).count() == 3
    chosen = read(connect, tmp_path / "p", where="day = DATE'2024-02-29'")
    assert len(chosen.inputFiles()) == 1
    assert [row.id for row in chosen.collect()] == [3]


def test_columns_that_came_later_are_null_in_older_files(connect, tmp_path):
    """An evolved schema: one column is new, one is wider than it was."""
    first = pa.table({"a": pa.array([1, 2], pa.int32())})
    made = write_table(tmp_path / "e", first)
    made.evolve(pa.schema([("a", pa.int64()), ("z", pa.string())]))
    made.append(pa.table({"a": pa.array([2**40], pa.int64()), "z": ["new"]}))
    frame = read(connect, tmp_path / "e")
    assert rows(frame, "a") == [(1, None), (2, None), (2**40, "new")]
    assert read(connect, tmp_path / "e", where="z IS NULL").count() == 2


def test_many_files_are_read_in_parts(connect, table, monkeypatch):
    """No call carries more files than it should."""
    from indextables.engines.spark.connect import read as connect_read

    monkeypatch.setattr(connect_read, "_FILES_AT_ONCE", 3)
    frame = read(connect, table)
    assert frame.count() == 500
    assert len(frame.inputFiles()) == 10


def test_commands_run_in_the_client(connect, tmp_path):
    """They answer with a DataFrame, and do what they say."""
    write_table(tmp_path / "c", days(50), splits=2)
    name = f"indextables.`{tmp_path / 'c'}`"
    history = connect.sql(f"DESCRIBE HISTORY {name}").collect()
    assert [row.operation for row in history][:2] == ["APPEND", "APPEND"]
    assert connect.sql(f"DESCRIBE DETAIL {name}").collect()[0].numFiles == 2
    assert connect.sql(f"CHECKPOINT INDEXTABLES '{tmp_path / 'c'}'").count() == 1
    repaired = connect.sql(
        f"REPAIR INDEXFILES TRANSACTION LOG '{tmp_path / 'c' / '_transaction_log'}' "
        f"AT LOCATION '{tmp_path / 'fixed'}'"
    )
    assert len(repaired.collect()) == 1
    with pytest.raises(SqlSyntaxError):
        connect.sql(f"DESCRIBE HISTORY {name} LIMIT x")


def test_queries_name_tables_by_their_path(connect, table):
    """Joins, subqueries, versions, names in texts and comments; other statements reach the server."""
    name = f"indextables.`{table}`"
    query = f"""SELECT count(*), max(x.id) FROM {name} VERSION AS OF 2 x -- not indextables.`/nowhere`
                JOIN {name} y ON x.id = y.id WHERE y.name <> 'indextables.`/no`'
                AND x.id IN (SELECT id FROM {name} WHERE id > 10)"""
    assert tuple(connect.sql(query).first()) == (89, 99)
    assert (
        connect.sql(
            f"WITH few AS (SELECT * FROM {name} WHERE id < 3) SELECT count(*) FROM few"
        ).first()[0]
        == 3
    )
    assert connect.sql(f"SELECT count(*) FROM {name} WHERE id < :most", {"most": 5}).first()[0] == 5
    assert connect.table(name).count() == 500
    assert connect.read.option("versionAsOf", 1).table(name).count() == 50
    assert connect.sql("SELECT 1 AS indextables").first()[0] == 1
    assert connect.sql("SELECT 'INDEXTABLES.`x`'").first()[0] == "INDEXTABLES.`x`"


def test_a_query_sees_the_version_it_was_made_for(connect, tmp_path):
    """A later commit shows in a new query, not in an old DataFrame."""
    made = write_table(tmp_path / "v", days(20))
    before = connect.sql(f"SELECT * FROM indextables.`{tmp_path / 'v'}`")
    made.append(days(5))
    assert before.count() == 20
    assert connect.sql(f"SELECT * FROM indextables.`{tmp_path / 'v'}`").count() == 25


def test_what_does_not_work_says_so(connect, table, tmp_path):
    """One line and a way out, and nothing is written."""
    frame, name = connect.range(3), f"indextables.`{tmp_path / 'w'}`"
    refused = [
        lambda: frame.write.format("indextables").save(str(tmp_path / "w")),
        lambda: frame.write.save(str(tmp_path / "w"), "IndexTables", "append"),
        lambda: frame.write.insertInto(name),
        lambda: frame.write.saveAsTable(name),
        lambda: frame.writeTo(name).append(),
        lambda: frame.writeTo("t").using("indextables").create(),
        lambda: connect.sql(f"INSERT INTO {name} SELECT 1"),
        lambda: connect.sql(f"DELETE FROM indextables.`{table}` WHERE id = 1"),
        lambda: connect.sql(f"WITH x AS (SELECT 1) INSERT INTO {name} SELECT * FROM x"),
        lambda: connect.sql(
            f"SELECT * FROM indextables.`{table}` TIMESTAMP AS OF now() - INTERVAL 1 DAY"
        ),
        lambda: connect.readStream.format("indextables").load(table),
        lambda: connect.readStream.format("rate").load().writeStream.format("indextables").start(),
    ]
    for attempt in refused:
        with pytest.raises(IndexTablesError, match="does not work on Spark Connect"):
            attempt()
    assert not (tmp_path / "w").exists()
    frame.write.parquet(str(tmp_path / "plain"))
    assert connect.read.load(str(tmp_path / "plain")).count() == 3


def test_wrong_input_is_one_clear_error(connect, table, tmp_path):
    """As on a classic session."""
    with pytest.raises(TableNotFoundError):
        read(connect, tmp_path / "nothing")
    with pytest.raises(ConfigError, match="versionAsOf"):
        read(connect, table, versionAsof="x")
    with pytest.raises(ConfigError, match="did you mean"):
        read(connect, table, wheer="id = 1")
    with pytest.raises(SchemaError):
        connect.read.format("indextables").schema("id long").load(table)


def test_files_to_be_merged_are_refused(connect, tmp_path):
    """Rows that a log replaced must not come back: an error, unless base files are asked for."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
    made = it.Table.create(str(tmp_path / "m"), schema, record_key=["id"])
    made.append(pa.table({"id": [1, 2], "v": ["a", "b"]}, schema))
    made.upsert(pa.table({"id": [2], "v": ["new"]}, schema))
    assert any(split.is_delta for split in made.snapshot().splits())
    with pytest.raises(IndexTablesError, match="delta files"):
        read(connect, tmp_path / "m")
    assert rows(read(connect, tmp_path / "m", readOptimized=True), "id") == [(1, "a"), (2, "b")]


CLIENT = """
import sys
from pyspark.sql import SparkSession
import indextables as it

spark = it.enable(SparkSession.builder.remote(sys.argv[1]).getOrCreate())
frame = spark.read.format("indextables").load(sys.argv[2], where="id < 60")
print(frame.count(), len(frame.inputFiles()))
from pyspark import SparkContext
assert SparkContext._gateway is None, "a client starts no JVM"
spark.stop()
"""


def test_a_client_needs_no_java(server, table):
    """The same in a process of its own, where nothing but the client runs."""
    environment = {k: v for k, v in os.environ.items() if k != "JAVA_HOME"}
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, server, table],
        env={**environment, "JAVA_HOME": "/nowhere"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["60", "2"]
