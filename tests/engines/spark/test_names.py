"""Tables by name: the session catalog has the name, the table's log has everything else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import functions as F

from indextables.engines.spark.versions import seam
from indextables.errors import (
    ConfigError,
    IndexTablesError,
    SchemaMismatchError,
    TableExistsError,
    TableNotFoundError,
)
from indextables.table.table import Table


@pytest.fixture(scope="module")
def db(spark):
    """A database for this module, which is the current one."""
    spark.sql("CREATE DATABASE names")
    spark.sql("USE names")
    yield "names"
    spark.sql("USE default")
    spark.sql("DROP DATABASE names CASCADE")


@pytest.fixture
def orders(spark, db):
    """A table of nine rows by name, partitioned by p."""
    spark.sql(
        "CREATE TABLE orders (id BIGINT COMMENT 'the number', s STRING, p INT) USING indextables PARTITIONED BY (p)"
    )
    spark.sql("INSERT INTO orders SELECT id, concat('s', id), CAST(id % 3 AS INT) FROM range(9)")
    yield "orders"
    spark.sql("DROP TABLE IF EXISTS orders")


def all_of(spark, text, **args):
    return sorted(map(tuple, spark.sql(text, **args).collect()))


def place(spark, name="orders"):
    from indextables.engines.spark.statement.names import find_named

    return find_named(spark, tuple(name.split("."))).path


QUERIES = [
    "SELECT count(*) FROM orders WHERE orders.id >= 0",
    "SELECT count(names.orders.id) FROM names.orders",
    "SELECT count(*) FROM spark_catalog.names.orders AS o WHERE o.p IN (0, 1, 2)",
    "WITH orders AS (SELECT * FROM orders) SELECT count(*) FROM orders",
    "WITH q AS (SELECT * FROM orders), r AS (SELECT * FROM q) SELECT count(*) FROM (SELECT * FROM r)",
    "SELECT count(*) FROM (WITH orders AS (SELECT 1 AS one) SELECT * FROM orders) a CROSS JOIN orders",
    "SELECT (SELECT count(*) FROM orders)",
    "SELECT count(*) FROM orders o WHERE EXISTS (SELECT 1 FROM names.orders q WHERE q.id = o.id)",
    "SELECT sum(n) FROM (SELECT count(*) AS n FROM orders GROUP BY p)",
    "SELECT count(*) FROM orders VERSION AS OF 1",
    "SELECT count(*) FROM IDENTIFIER('names.' || 'orders')",
    "WITH q AS (SELECT * FROM IDENTIFIER('orders')) SELECT count(*) FROM q",
]


@pytest.mark.parametrize("query", QUERIES)
def test_a_name_may_stand_wherever_a_table_may(spark, orders, query):
    """In joins, subqueries and CTEs, whole or in part, and where a CTE has the same name."""
    assert all_of(spark, query) == [(9,)]


def test_reading_by_name_from_python(spark, orders):
    """`spark.table`, `spark.read.table` with options, parameters, and DataFrames beside it."""
    assert spark.table(orders).where("orders.id = 3").count() == 1
    assert spark.read.option("versionAsOf", 0).table("names.orders").count() == 0
    assert all_of(spark, "SELECT id FROM orders WHERE id > :low", args={"low": 7}) == [(8,)]
    few = spark.range(2)
    assert spark.sql("SELECT count(*) FROM orders JOIN {few} USING (id)", few=few).first()[0] == 2
    plan = spark.table(orders).where("id = 3")._jdf.queryExecution().executedPlan().toString()
    assert "IndexTables[" in plan


def test_a_temporary_view_goes_before_a_table_of_its_name(spark, orders):
    """As Spark resolves names."""
    spark.range(2).createOrReplaceTempView("orders")
    try:
        assert spark.table("orders").count() == 2
        assert all_of(spark, "SELECT count(*) FROM orders") == [(2,)]
        assert all_of(spark, "SELECT count(*) FROM names.orders") == [(9,)]
    finally:
        spark.catalog.dropTempView("orders")


def test_statements_that_change_rows_by_name(spark, orders):
    """Columns may be qualified by the name, in whole or in part."""
    spark.sql("DELETE FROM orders WHERE orders.id = 0")
    spark.sql("UPDATE names.orders SET orders.s = 'new' WHERE names.orders.id = 1")
    spark.sql(
        "MERGE INTO orders USING (SELECT explode(array(2L, 20L)) AS id) AS s ON orders.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, 1)"
    )
    spark.sql("INSERT OVERWRITE orders PARTITION (p = 0) VALUES (30, 'x')")
    found = {row.id: row.s for row in spark.table(orders).collect()}
    assert found == {1: "new", 4: "s4", 5: "s5", 7: "s7", 8: "s8", 20: None, 30: "x"}
    spark.sql("TRUNCATE TABLE orders")
    assert spark.table(orders).count() == 0


def test_writers_by_name(spark, db, tmp_path):
    """`saveAsTable`, `insertInto` and `writeTo` make a table, add to it and replace its rows."""
    rows = spark.range(4).withColumn("p", F.col("id") % 2)
    try:
        rows.write.format("indextables").partitionBy("p").saveAsTable("made")
        rows.write.format("indextables").mode("append").saveAsTable("names.made")
        rows.write.insertInto("made")
        rows.writeTo("made").append()
        assert spark.table("made").count() == 16
        with pytest.raises(TableExistsError):
            rows.write.format("indextables").saveAsTable("made")
        rows.write.format("indextables").mode("overwrite").saveAsTable("made")
        rows.where("id = 0").writeTo("made").overwrite(F.col("p") == 0)
        assert spark.table("made").count() == 3
        rows.writeTo("v2").using("indextables").partitionedBy("p").create()
        rows.writeTo("v2").using("indextables").createOrReplace()
        assert spark.table("v2").count() == 4
        outside = str(tmp_path / "outside")
        rows.write.format("indextables").option("path", outside).saveAsTable("outside")
        spark.sql("DROP TABLE outside")
        assert Table(outside).count() == 4
        inside = Path(place(spark, "made"))
        spark.sql("DROP TABLE made")
        assert not inside.exists()
    finally:
        for name in ("made", "v2", "outside"):
            spark.sql(f"DROP TABLE IF EXISTS {name}")


def test_create_table_by_name(spark, db, tmp_path):
    """With columns, AS SELECT, over a table that is there, IF NOT EXISTS and OR REPLACE."""
    there = str(tmp_path / "there")
    spark.range(3).write.format("indextables").save(there)
    try:
        spark.sql(f"CREATE TABLE t USING indextables LOCATION '{there}'")
        assert spark.table("t").count() == 3
        with pytest.raises(TableExistsError):
            spark.sql("CREATE TABLE t (a INT) USING indextables")
        spark.sql("CREATE TABLE IF NOT EXISTS t (a INT) USING indextables")
        spark.sql("CREATE OR REPLACE TABLE t USING indextables AS SELECT 1 AS a")
        assert Table(there).count() == 1
        with pytest.raises(SchemaMismatchError):
            spark.sql(f"CREATE TABLE u (b STRING) USING indextables LOCATION '{there}'")
        spark.sql("CREATE TABLE u USING indextables AS SELECT * FROM t")
        assert all_of(spark, "SELECT * FROM u") == [(1,)]
        with pytest.raises(TableNotFoundError):
            spark.sql("REPLACE TABLE nowhere (a INT) USING indextables")
        with pytest.raises(ConfigError, match="another catalog"):
            spark.sql("CREATE TABLE elsewhere.db.t (a INT) USING indextables")
        spark.sql("CREATE TABLE plain (a INT) USING parquet")
        with pytest.raises(TableExistsError, match="not in this format"):
            spark.range(1).write.format("indextables").mode("append").saveAsTable("plain")
    finally:
        for name in ("t", "u", "plain"):
            spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.mark.parametrize("verb", ["CREATE", "CREATE TABLE IF NOT EXISTS", "REPLACE", "save", "writeTo"])
def test_a_new_name_does_not_take_over_the_table_in_its_directory(spark, db, verb):
    """The catalog would own the directory: REPLACE and DROP would take the rows of another table."""
    spark.sql("CREATE TABLE probe (a INT) USING indextables")
    taken = place(spark, "probe")
    spark.sql("DROP TABLE probe")
    spark.range(3).write.format("indextables").save(taken)
    ways = {
        "CREATE": lambda: spark.sql("CREATE TABLE probe USING indextables AS SELECT 1 AS a"),
        "CREATE TABLE IF NOT EXISTS": lambda: spark.sql(
            "CREATE TABLE IF NOT EXISTS probe (a INT) USING indextables"
        ),
        "REPLACE": lambda: spark.sql(
            "CREATE OR REPLACE TABLE probe USING indextables AS SELECT 1 AS a"
        ),
        "save": lambda: (
            spark.range(1).write.format("indextables").mode("overwrite").saveAsTable("probe")
        ),
        "writeTo": lambda: spark.range(1).writeTo("probe").using("indextables").createOrReplace(),
    }
    try:
        with pytest.raises(TableExistsError, match="where the catalog would put"):
            ways[verb]()
        assert not spark.catalog.tableExists("probe")
        assert Table(taken).count() == 3
        spark.sql(f"CREATE TABLE probe USING indextables LOCATION '{taken}'")
        spark.sql("DROP TABLE probe")
        assert Table(taken).count() == 3
    finally:
        spark.sql("DROP TABLE IF EXISTS probe")
        shutil.rmtree(taken)


def test_what_the_catalog_says_of_a_table(spark, orders):
    """Columns come from the log, also those that came later."""
    spark.sql("ALTER TABLE orders ADD COLUMNS (z DOUBLE COMMENT 'later')")
    assert "orders" in [row.tableName for row in spark.sql("SHOW TABLES").collect()]
    assert spark.catalog.tableExists("names.orders") and spark.catalog.tableExists("orders", "names")
    assert not spark.catalog.tableExists("names.order")
    assert spark.catalog.getTable("orders").tableType == "MANAGED"
    assert "orders" in [table.name for table in spark.catalog.listTables("names")]
    assert [c.name for c in spark.catalog.listColumns("orders")] == ["id", "s", "p", "z"]
    assert [row.col_name for row in spark.sql("SHOW COLUMNS IN orders").collect()] == [
        "id",
        "s",
        "p",
        "z",
    ]
    assert all_of(spark, "DESCRIBE orders")[-1] == ("z", "double", "later")
    assert all_of(spark, "DESCRIBE orders id") == [
        ("col_name", "id"),
        ("comment", "the number"),
        ("data_type", "bigint"),
    ]
    assert all_of(spark, "SHOW PARTITIONS orders") == [("p=0",), ("p=1",), ("p=2",)]
    text = spark.sql("SHOW CREATE TABLE orders").first()[0]
    assert "PARTITIONED BY (`p`)" in text and "`z` DOUBLE COMMENT 'later'" in text
    spark.catalog.refreshTable("orders")
    spark.sql("ALTER TABLE orders RENAME TO orders_2")
    assert spark.table("orders_2").count() == 9
    spark.sql("ALTER TABLE orders_2 RENAME TO orders")


@pytest.mark.parametrize("by", ["name", "path"])
def test_alter_changes_the_table_and_not_the_catalog(spark, orders, by):
    """Another reader of the directory sees it, too."""
    t = orders if by == "name" else f"indextables.`{place(spark)}`"
    spark.sql(f"ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'shop', 'b' = '1')")
    spark.sql(f"ALTER TABLE {t} UNSET TBLPROPERTIES (b)")
    spark.sql(f"ALTER TABLE {t} UNSET TBLPROPERTIES IF EXISTS (never)")
    with pytest.raises(ConfigError, match="never"):
        spark.sql(f"ALTER TABLE {t} UNSET TBLPROPERTIES (never)")
    spark.sql(f"ALTER TABLE {t} ADD COLUMNS (n INT, st STRUCT<a: INT>)")
    spark.sql(f"ALTER TABLE {t} ADD COLUMN st.b STRING")
    spark.sql(f"ALTER TABLE {t} ALTER COLUMN n TYPE BIGINT")
    spark.sql(f"ALTER TABLE {t} ALTER COLUMN n COMMENT 'how many'")
    spark.sql(f"COMMENT ON TABLE {t} IS 'all orders'")
    table = Table(place(spark))
    assert dict(table.properties) == {"team": "shop"}
    assert all_of(spark, f"SHOW TBLPROPERTIES {t}") == [("team", "shop")]
    assert table.snapshot().metadata.description == "all orders"
    described = {row[0]: row[1:] for row in spark.sql(f"DESCRIBE {t}").collect()}
    assert described["n"] == ("bigint", "how many")
    assert described["st"][0] == "struct<a:int,b:string>"
    assert spark.sql(f"SELECT count(n) FROM {t}").first()[0] == 0


@pytest.mark.parametrize("by", ["name", "path"])
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("ALTER TABLE {t} RENAME COLUMN s TO u", "RENAME COLUMN does not work on"),
        ("ALTER TABLE {t} DROP COLUMN s", "DROP COLUMNS does not work on"),
        ("ALTER TABLE {t} ALTER COLUMN s FIRST", "wider type"),
        ("ALTER TABLE {t} ALTER COLUMN id TYPE INT", "cannot change"),
        ("ALTER TABLE {t} ADD PARTITION (p = 9)", "ADD PARTITIONS does not work on"),
        ("ALTER TABLE {t} SET LOCATION '/x'", "SET TABLE LOCATION does not work on"),
        ("ALTER TABLE {t} SET TBLPROPERTIES (recordKey = 'id')", "is created"),
        ("MSCK REPAIR TABLE {t}", "REPAIR TABLE does not work on"),
        ("LOAD DATA INPATH '/x' INTO TABLE {t}", "LOAD DATA does not work on"),
        ("EXPLAIN DELETE FROM {t}", "EXPLAIN cannot show"),
        ("BEGIN IF 1 = 1 THEN DELETE FROM {t}; END IF; END", "a script"),
    ],
)
def test_what_is_not_built_is_one_clear_sentence(spark, orders, by, statement, words):
    """No stack of Java, no "not found" of a table that is there, and nothing ignored."""
    if statement.startswith("BEGIN") and seam.name < "4.1":
        pytest.skip("Spark has no scripts before 4.1, unless a setting says so")
    t = orders if by == "name" else f"indextables.`{place(spark)}`"
    with pytest.raises(IndexTablesError) as found:
        spark.sql(statement.format(t=t))
    assert words in str(found.value)
    assert spark.table(orders).count() == 9


def test_commands_take_names(spark, orders):
    """OPTIMIZE, VACUUM, DESCRIBE HISTORY and the like; others' tables are left to Spark."""
    assert spark.sql("OPTIMIZE orders ZORDER BY (id, s)").first().version == 2
    assert spark.sql("DESCRIBE HISTORY names.orders LIMIT 1").count() == 1
    assert spark.sql("VACUUM orders RETAIN 0 HOURS DRY RUN").columns == [
        "path",
        "size",
        "what",
        "deleted",
    ]
    assert spark.sql("VACUUM orders").count() == 0
    assert spark.sql("DESCRIBE DETAIL orders").first().format == "indextables"
    spark.sql("RESTORE TABLE orders TO VERSION AS OF 0")
    assert spark.table("orders").count() == 0
    spark.sql("CREATE TABLE plain (a INT) USING parquet")
    assert [row[0] for row in spark.sql("DESCRIBE plain").collect()] == ["a"]
    spark.sql("DROP TABLE plain")


def test_stored_views_read_the_newest_version(spark, orders):
    """With the names, types and settings of the day they were made, from any database."""
    spark.sql("CREATE VIEW odd (n, t) AS SELECT id, s FROM orders WHERE id % 2 = 1")
    spark.sql("CREATE VIEW of_view AS SELECT count(*) AS c FROM odd")
    try:
        assert all_of(spark, "SELECT odd.n FROM odd WHERE n < 4") == [(1,), (3,)]
        spark.sql("INSERT INTO orders VALUES (11, 'x', 1)")
        spark.sql("USE default")
        assert all_of(spark, "SELECT c FROM names.of_view") == [(5,)]
        assert spark.table("names.odd").columns == ["n", "t"]
        spark.range(1).createOrReplaceTempView("orders")
        assert all_of(spark, "SELECT c FROM names.of_view") == [(5,)]
    finally:
        spark.catalog.dropTempView("orders")
        spark.sql("USE names")
        spark.sql("DROP VIEW IF EXISTS of_view")
        spark.sql("DROP VIEW IF EXISTS odd")


@pytest.mark.skipif(seam.name == "3.5", reason="Spark 3.5 has no EXECUTE IMMEDIATE")
def test_execute_immediate_by_name_and_by_path(spark, orders):
    """With parameters of both kinds."""
    text = "EXECUTE IMMEDIATE 'SELECT count(*) FROM orders WHERE id > ?' USING 5"
    assert all_of(spark, text) == [(3,)]
    text = f"EXECUTE IMMEDIATE 'SELECT count(*) FROM indextables.`{place(spark)}` WHERE id > :a' USING 5 AS a"
    assert all_of(spark, text) == [(3,)]
    assert all_of(spark, "EXECUTE IMMEDIATE 'SELECT 1'") == [(1,)]


def test_a_session_that_did_not_enable_gets_an_error_and_never_plain_files(spark, orders):
    """The entry in the catalog has no columns and no format that Spark knows."""
    with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
        spark._jsparkSession.table("names.orders")
