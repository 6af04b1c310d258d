"""SQL over tables of ours: wherever a table may stand, and nothing else touched."""

from __future__ import annotations

import datetime as dt

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, ParseException
from support.spark_tables import days, write_table

from indextables.engines.spark.statement import statements
from indextables.engines.spark.scan.scan_report import last_scan
from indextables.errors import (
    ConfigError,
    IndexTablesError,
    SqlSyntaxError,
    TableNotFoundError,
    VersionNotFoundError,
)


@pytest.fixture(scope="module")
def t(tmp_path_factory):
    """Three hundred rows in three versions, as SQL names the table."""
    path = tmp_path_factory.mktemp("sql") / "my table"
    write_table(path, days(300), splits=3)
    return f"indextables.`{path}`"


@pytest.fixture(scope="module")
def p(tmp_path_factory):
    """The same rows by day."""
    path = tmp_path_factory.mktemp("sql") / "parts"
    write_table(path, days(300), splits=3, partition_by=["day"])
    return f"indextables.`{path}`"


def one(spark, text, **kwargs):
    return spark.sql(text, **kwargs).collect()[0][0]


QUERIES = [
    ("SELECT count(*) FROM {t}", 300),
    ("SELECT count(*) FROM {t} WHERE id < 10 OR id > 290", 19),
    ("SELECT count(*) FROM {t} AS x WHERE x.id = 5", 1),
    ("SELECT count(*) FROM {T} WHERE ID = 5", 1),
    ("TABLE {t} |> WHERE id >= 250 |> AGGREGATE count(*)", 50),
    ("FROM {t} |> WHERE id = 7 |> SELECT id", 7),
    ("SELECT count(*) FROM {t} a JOIN {p} b ON a.id = b.id WHERE a.id < 50", 50),
    ("SELECT count(*) FROM {t} a LEFT ANTI JOIN (SELECT * FROM {p} WHERE id < 100) b USING (id)", 200),
    ("SELECT count(*) FROM (SELECT id FROM {t} UNION ALL SELECT id FROM {p})", 600),
    ("SELECT max(id) FROM {t} WHERE id < (SELECT avg(id) FROM {p})", 149),
    ("SELECT count(*) FROM {t} WHERE id IN (SELECT id FROM {p} WHERE day = DATE'2024-01-02')", 100),
    ("SELECT count(*) FROM {t} a WHERE EXISTS (SELECT 1 FROM {p} b WHERE a.id = b.id AND b.id < 3)", 3),
    ("WITH q AS (SELECT * FROM {t} WHERE id < 20) SELECT count(*) FROM q", 20),
    (
        "WITH q AS (SELECT * FROM {t}), r AS (SELECT * FROM q WHERE id < 3) SELECT count(*) FROM r JOIN q USING (id)",
        3,
    ),
    (
        "SELECT count(*) FROM (WITH q AS (SELECT * FROM {p}) SELECT * FROM q WHERE day > DATE'2024-01-01')",
        200,
    ),
    ("SELECT (WITH q AS (SELECT max(id) m FROM {t}) SELECT m FROM q)", 299),
    ("SELECT count(*) FROM {t} TABLESAMPLE (100 PERCENT)", 300),
    ("SELECT /*+ BROADCAST(b) */ count(*) FROM {t} a JOIN {p} b USING (id)", 300),
    ("SELECT count(*) FROM {t} VERSION AS OF 1", 100),
    ("SELECT count(*) FROM {t} FOR VERSION AS OF 2 AS x WHERE x.id > 100", 99),
    ("SELECT count(*) FROM {t} TIMESTAMP AS OF current_timestamp()", 300),
    ("SELECT count(*) FROM {t} TIMESTAMP AS OF current_timestamp() - INTERVAL 0 SECONDS", 300),
    ("SELECT count(*) FROM {t} VERSION AS OF 1 a JOIN {t} b ON a.id = b.id", 100),
    ("SELECT count(*) FROM {t} VERSION AS OF 3 a LEFT ANTI JOIN {t} VERSION AS OF 1 b USING (id)", 200),
    ("SELECT count(*) FROM {t} WITH ('versionAsOf' = '1')", 100),
    (
        "SELECT sum(s) FROM (SELECT sum(id) OVER (PARTITION BY day ORDER BY id) s FROM {p} WHERE id < 3)",
        4,
    ),
    ("SELECT '{t}'", "{t}"),
    ("SELECT 1 -- {t}", 1),
]


@pytest.mark.parametrize(("text", "expected"), QUERIES, ids=[text for text, _ in QUERIES])
def test_a_table_stands_wherever_a_table_may_stand(spark, t, p, text, expected):
    """Joins, subqueries, CTEs, pipes, hints, samples and time travel are Spark's own."""
    names = {"t": t, "p": p, "T": t.replace("indextables", "IndexTables")}
    wanted = expected.format(**names) if isinstance(expected, str) else expected
    assert one(spark, text.format(**names)) == wanted


def test_filters_of_a_query_skip_splits(spark, t, p):
    """Each table of a join gets the filter that Spark infers for it."""
    frame = spark.sql(f"SELECT * FROM {t} a JOIN {p} b ON a.id = b.id WHERE a.id = 5")
    assert [scan.report.kept_files for scan in last_scan(frame).scans] == [1, 1]


def test_time_travel_by_timestamp(spark, t):
    """The time is an expression of Spark's, in the session's zone."""
    moments = {row.version: row.timestamp for row in spark.sql(f"DESCRIBE HISTORY {t}").collect()}
    text = moments[2].strftime("%Y-%m-%d %H:%M:%S.%f")
    assert one(spark, f"SELECT count(*) FROM {t} TIMESTAMP AS OF '{text}'") == 200
    assert (
        one(spark, f"SELECT count(*) FROM {t} TIMESTAMP AS OF TIMESTAMP'{text}' + INTERVAL 0 DAYS")
        == 200
    )
    with pytest.raises(VersionNotFoundError):
        spark.sql(f"SELECT * FROM {t} TIMESTAMP AS OF '2001-01-01'")
    with pytest.raises(VersionNotFoundError):
        spark.sql(f"SELECT * FROM {t} VERSION AS OF 77")


def test_a_time_that_is_none_is_never_the_newest_version(spark, t, configured):
    """Regression: NULL, and where ANSI is off any text that is no time, read the newest version."""
    configured("spark.sql.ansi.enabled", "false")
    for text in ("NULL", "'2024-13-01'", "CAST('soon' AS DATE)"):
        with pytest.raises(ConfigError, match="is not a time"):
            spark.sql(f"SELECT * FROM {t} TIMESTAMP AS OF {text}")


def test_parameters_and_frames_in_a_query(spark, t):
    """Named, positional and {frame} parameters, together."""
    assert (
        one(
            spark,
            f"SELECT count(*) FROM {t} WHERE id > :low AND name LIKE :like",
            args={"low": 5, "like": "k0000%"},
        )
        == 4
    )
    assert one(spark, f"SELECT count(*) FROM {t} WHERE id BETWEEN ? AND ?", args=[5, 9]) == 5
    few = spark.range(5)
    assert one(spark, f"SELECT count(*) FROM {{few}} JOIN {t} USING (id)", few=few) == 5
    assert (
        one(
            spark,
            f"SELECT count(*) FROM {{few}} JOIN {t} USING (id) WHERE id > :low",
            args={"low": 2},
            few=few,
        )
        == 2
    )


def test_temporary_views(spark, t):
    """A view keeps the plan, pinned to its version; columns can be renamed."""
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW v AS SELECT id, name FROM {t} WHERE id < 10")
    assert one(spark, "SELECT count(*) FROM v") == 10
    spark.sql(f"CREATE OR REPLACE TEMP VIEW w (a, b) COMMENT 'two' AS SELECT id, name FROM {t}")
    assert one(spark, "SELECT max(a) FROM w WHERE b LIKE 'k0001%'") == 19
    spark.sql(f"CREATE OR REPLACE GLOBAL TEMP VIEW g AS SELECT max(id) m FROM {t}")
    assert one(spark, "SELECT m FROM global_temp.g") == 299
    with pytest.raises(AnalysisException):
        spark.sql(f"CREATE TEMPORARY VIEW v AS SELECT * FROM {t}")
    spark.sql(f"CREATE VIEW permanent AS SELECT count(*) AS c FROM {t}")
    assert one(spark, "SELECT c FROM permanent") == 300
    spark.sql("DROP VIEW permanent")


def test_a_query_can_be_cached_by_name_and_described(spark, t):
    """Regression: both kept the query's text, in which Spark found no such table."""
    spark.sql(
        f"CACHE TABLE kept OPTIONS ('storageLevel' 'DISK_ONLY') AS SELECT id FROM {t} WHERE id < 7"
    )
    try:
        assert spark.catalog.isCached("kept")
        assert spark.table("kept").storageLevel.useMemory is False
        assert one(spark, "SELECT count(*) FROM kept") == 7
        with pytest.raises(AnalysisException):
            spark.sql(f"CACHE TABLE kept AS SELECT * FROM {t}")
    finally:
        spark.sql("UNCACHE TABLE IF EXISTS kept")
        spark.catalog.dropTempView("kept")
    described = spark.sql(f"DESCRIBE QUERY SELECT id, name FROM {t}").collect()
    assert [(row.col_name, row.data_type) for row in described] == [
        ("id", "bigint"),
        ("name", "string"),
    ]


def test_the_catalog_holds_the_name_of_a_table(spark, t):
    """Regression: a stack trace of the JVM said that there is no such data source."""
    path = t.partition("`")[2].rstrip("`")
    for rest in (f"USING indextables LOCATION '{path}'", f"USING indextables AS SELECT * FROM {t}"):
        spark.sql(f"CREATE TABLE in_catalog {rest}")
        assert one(spark, "SELECT count(*) FROM in_catalog") == 300
        spark.sql("DROP TABLE in_catalog")
    assert one(spark, f"SELECT count(*) FROM {t}") == 300


def test_a_view_using_the_format(spark, t):
    """CREATE TEMPORARY VIEW … USING, with the options of a read."""
    path = t.partition("`")[2].rstrip("`")
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW u USING indextables OPTIONS (path '{path}', versionAsOf '1')"
    )
    assert one(spark, "SELECT count(*) FROM u") == 100
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW u USING IndexTables OPTIONS (path '{path}', where 'id > 297')"
    )
    assert one(spark, "SELECT count(*) FROM u") == 2
    with pytest.raises(ConfigError):
        spark.sql(
            f"CREATE OR REPLACE TEMPORARY VIEW u USING indextables OPTIONS (path '{path}', x '1')"
        )


def test_explain_shows_the_native_scan(spark, t):
    """EXPLAIN works in its modes."""
    for mode in ("", "EXTENDED", "FORMATTED", "COST"):
        text = one(spark, f"EXPLAIN {mode} SELECT name FROM {t} WHERE id = 3")
        assert "FileScan parquet" in text or "Scan parquet" in text, mode
        assert "v3, 1 of 3 splits" in text, mode


def test_table_by_name(spark, t):
    """spark.table and spark.read.table take the same name, with options of the reader."""
    assert spark.table(t).count() == 300
    assert spark.read.table(t).where("id < 3").count() == 3
    assert spark.read.option("versionAsOf", 1).table(t).count() == 100
    spark.range(3).createOrReplaceTempView("plain")
    assert spark.table("plain").count() == 3
    with pytest.raises(AnalysisException):
        spark.table("indextables_nowhere")


def test_rows_go_into_tables_of_spark(spark, t, tmp_path):
    """CREATE TABLE AS and INSERT of other formats read from tables of ours."""
    spark.sql(
        f"CREATE TABLE copied USING parquet LOCATION '{tmp_path}/c' AS SELECT id, name FROM {t} WHERE id < 5"
    )
    try:
        spark.sql(f"INSERT INTO copied SELECT id, name FROM {t} WHERE id BETWEEN 10 AND 12")
        spark.sql(
            f"WITH q AS (SELECT id, name FROM {t} WHERE id = 20) INSERT INTO copied SELECT * FROM q"
        )
        assert spark.table("copied").count() == 9
    finally:
        spark.sql("DROP TABLE copied")


def test_a_database_of_the_same_name_keeps_its_tables(spark, t):
    """A table in the catalog wins over a path, and paths still work beside it."""
    spark.sql("CREATE DATABASE indextables")
    try:
        spark.sql("CREATE TABLE indextables.mine USING parquet AS SELECT 42 AS x")
        assert one(spark, "SELECT x FROM indextables.mine") == 42
        assert spark.table("indextables.mine").count() == 1
        assert spark.catalog.tableExists("indextables.mine")
        assert not Path("mine").exists(), "it is Spark's, not a table at the path 'mine'"
        assert one(spark, f"SELECT count(*) FROM {t}") == 300
    finally:
        spark.sql("DROP DATABASE indextables CASCADE")


# --- what is not ours


@pytest.mark.parametrize(
    "text", ["SELEC 1", "SELECT * FROM indextables.", "SELEC * FROM indextables.`/a`"]
)
def test_a_syntax_error_is_sparks_own(spark, text):
    """Whether or not it mentions a table of ours."""
    with pytest.raises(ParseException):
        spark.sql(text)


def test_an_analysis_error_is_sparks_own(spark, t):
    """A wrong column in a query over a table of ours is reported as for any table."""
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        spark.sql(f"SELECT nope FROM {t}")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql(f"SELECT * FROM {t} JOIN nope USING (id)")


def test_a_path_without_a_table_is_one_clear_error(spark):
    """Not a stack trace of the JVM, though the path is found while a plan is being rewritten."""
    with pytest.raises(TableNotFoundError, match="no table at /nowhere"):
        spark.sql("SELECT * FROM indextables.`/nowhere/x` WHERE id = 1")


def test_other_statements_work_as_before(spark):
    """SET, SHOW, DESCRIBE, functions with the name in a string."""
    assert one(spark, "SELECT concat('indextables', '.x')") == "indextables.x"
    spark.sql("SET spark.indextables.stats.truncation.maxLength = 2048")
    try:
        assert spark.conf.get("spark.indextables.stats.truncation.maxLength") == "2048"
    finally:
        spark.conf.unset("spark.indextables.stats.truncation.maxLength")
    assert spark.sql("SHOW DATABASES LIKE 'indextables*'").count() == 0
    assert spark.sql("DESCRIBE FUNCTION abs").count() > 0


# --- our own commands


def test_describe_history(spark, t):
    """Newest first, with what each commit did."""
    rows = spark.sql(f"DESCRIBE HISTORY {t}").collect()
    assert [row.version for row in rows] == [3, 2, 1, 0]
    assert all(isinstance(row.timestamp, dt.datetime) and row.verified for row in rows)
    assert rows[-1].numFiles == 0
    assert spark.sql(f"desc history {t} limit 2;").count() == 2


def test_describe_detail_and_columns(spark, p):
    """One row about the table; its columns and partition columns as Spark shows them."""
    row = spark.sql(f"DESCRIBE DETAIL {p}").collect()[0]
    assert (row.format, row.version, row.partitionColumns, row.numFiles) == (
        "indextables",
        3,
        ["day"],
        3,
    )
    assert row.sizeInBytes > 0
    columns = [(r.col_name, r.data_type) for r in spark.sql(f"DESCRIBE TABLE EXTENDED {p}").collect()]
    assert columns[:2] == [("id", "bigint"), ("day", "date")]
    assert columns[-1] == ("day", "date")


def test_a_misspelled_command_shows_its_usage(spark, t):
    """It is ours, so Spark is not asked what it might mean."""
    with pytest.raises(SqlSyntaxError) as error:
        spark.sql(f"DESCRIBE HISTORY {t} LIMIT ten")
    assert "DESCRIBE|DESC HISTORY <table> [LIMIT <limit:count>]" in str(error.value)


# --- statements that change a table


@pytest.fixture
def seen(monkeypatch):
    """Statements as they are handed to whoever carries them out."""
    found = []
    kinds = (statements.Insert, statements.Create)
    handlers = {kind: lambda _session, statement: found.append(statement) for kind in kinds}
    monkeypatch.setattr(statements, "HANDLERS", handlers)
    return found


def test_an_insert_is_taken_apart(spark, t, p, seen):
    """Target, rows, partition, columns and mode, in each form of the statement."""
    path = t.partition("`")[2].rstrip("`")
    spark.sql(f"INSERT INTO {t} SELECT * FROM {p} WHERE id < 3")
    spark.sql(f"INSERT OVERWRITE {t} PARTITION (day = '2024-01-01', hour) (id, name) SELECT 1, 'a'")
    spark.sql(f"INSERT INTO {t} BY NAME SELECT 1 AS id")
    spark.sql(f"WITH q AS (SELECT id FROM {p} WHERE id = 7) INSERT INTO {t} SELECT * FROM q")
    spark.sql(f"INSERT INTO {t} REPLACE WHERE id > 5 SELECT * FROM {p} WHERE id > 5")
    spark.sql(f"INSERT INTO {t} VALUES (1, 'x')")
    plain, fixed, named, common, replaced, values = seen
    assert (plain.path, plain.overwrite, plain.rows.count()) == (path, False, 3)
    assert (fixed.overwrite, dict(fixed.partition)) == (True, {"day": "2024-01-01"})
    assert fixed.open_partitions == ("hour",)
    assert fixed.columns == ("id", "name")
    assert (named.by_name, named.rows.columns) == (True, ["id"])
    assert [row.id for row in common.rows.collect()] == [7]
    assert replaced.replace_where.sql() == "(id > 5)"
    assert [tuple(row) for row in values.rows.collect()] == [(1, "x")]


def test_create_table_is_taken_apart(spark, p, seen):
    """By columns or by a query, with partitions and properties."""
    spark.sql(
        "CREATE TABLE IF NOT EXISTS indextables.`/x/new` (id BIGINT NOT NULL, day DATE COMMENT 'd') "
        "USING indextables PARTITIONED BY (day) TBLPROPERTIES ('a' = 'b')"
    )
    spark.sql(f"CREATE OR REPLACE TABLE indextables.`/x/new` AS SELECT id FROM {p} WHERE id < 3")
    empty, filled = seen
    assert (empty.path, empty.partition_by, empty.if_not_exists) == ("/x/new", ("day",), True)
    assert (empty.is_filled, dict(empty.properties)) == (False, {"a": "b"})
    assert empty.rows.schema.simpleString() == "struct<id:bigint,day:date>"
    assert not empty.rows.schema["id"].nullable
    assert (filled.is_filled, filled.replace, filled.rows.count()) == (True, True, 3)
