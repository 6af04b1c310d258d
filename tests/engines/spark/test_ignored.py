"""What a table cannot do is refused: no option, clause or statement is accepted and forgotten."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import functions as F

from indextables.errors import ConfigError, IndexTablesError, TableExistsError, UnsupportedTypeError
from indextables.table.table import Table

FORMAT = "indextables"


@pytest.fixture
def path(spark, tmp_path):
    """A table (id int, p string) without a record key, partitioned by p."""
    path = str(tmp_path / "t")
    rows(spark).write.format(FORMAT).partitionBy("p").save(path)
    return path


def rows(spark):
    return spark.createDataFrame([(1, "a"), (2, "b")], "id int, p string").coalesce(1)


def keyed(spark, mode, **options):
    return rows(spark).write.format(FORMAT).mode(mode).options(**options)


WRITES = [
    ("append", lambda s, t: keyed(s, "append", recordKey="id").save(t)),
    ("overwrite", lambda s, t: keyed(s, "overwrite", recordKey="id").save(t)),
    ("mergeMode", lambda s, t: keyed(s, "append", mergeMode="columns").save(t)),
    ("insertInto", lambda s, t: keyed(s, "append", recordKey="id").insertInto(f"{FORMAT}.`{t}`")),
    ("writeTo", lambda s, t: rows(s).writeTo(f"{FORMAT}.`{t}`").option("recordKey", "id").append()),
    ("INSERT WITH", lambda s, t: s.sql(f"INSERT INTO {FORMAT}.`{t}` WITH (recordKey = 'id') VALUES (1, 'a')")),
]  # fmt: skip


@pytest.mark.parametrize("write", [case[1] for case in WRITES], ids=[case[0] for case in WRITES])
def test_a_key_is_not_ignored_by_a_table_that_has_none(spark, path, write):
    """Regression: the rows were added a second time, although the write named what identifies them."""
    with pytest.raises(ConfigError, match="has no record key") as found:
        write(spark, path)
    assert "overwriteSchema" in str(found.value)
    assert Table(path).snapshot().version == 0


def test_a_key_given_with_a_new_schema_makes_a_table_with_a_key(spark, path):
    """As the error for a table without one says; from then on every write must mean that key."""
    keyed(spark, "overwrite", recordKey="id", overwriteSchema="true").save(path)
    keyed(spark, "append", recordKey="ID").save(path)
    assert spark.read.format(FORMAT).load(path).count() == 2
    for options, words in (
        ({"recordKey": "p"}, "has the record key"),
        ({"mergeMode": "columns"}, "merges"),
    ):
        for mode in ("append", "overwrite"):
            with pytest.raises(ConfigError, match=words):
                keyed(spark, mode, **options).save(path)


def test_options_of_create_table_are_kept_or_refused(spark, tmp_path):
    """Regression: OPTIONS (recordKey …) made a table without a key."""
    for number, statement in enumerate(
        (
            "CREATE TABLE {t} (id INT, v STRING) OPTIONS (recordKey 'id', mergeMode 'columns')",
            "CREATE TABLE {t} OPTIONS (recordKey 'id', mergeMode 'columns') AS SELECT 1 AS id, 'a' AS v",
            "CREATE TABLE {t} (id INT NOT NULL, v STRING) COMMENT 'kept' "
            "TBLPROPERTIES (recordKey = 'id', mergeMode = 'columns')",
        )
    ):
        place = str(tmp_path / str(number))
        spark.sql(statement.format(t=f"{FORMAT}.`{place}`"))
        properties = Table(place).snapshot().properties
        assert (json.loads(properties["recordKey"]), properties["mergeMode"]) == (["id"], "columns")
    assert Table(place).snapshot().metadata.description == "kept"
    for clause, error, words in (
        ("OPTIONS (compression 'zstd')", ConfigError, "would be forgotten"),
        ("TBLPROPERTIES (record_key = 'id')", ConfigError, "did you mean 'recordKey'"),
        ("DEFAULT COLLATION UTF8_LCASE", UnsupportedTypeError, "collation"),
    ):
        with pytest.raises(error) as found:
            spark.sql(f"CREATE TABLE {FORMAT}.`{tmp_path}/no` (id INT NOT NULL, v STRING) {clause}")
        assert words in str(found.value)
    assert not (tmp_path / "no").exists()


def test_what_write_to_says_of_a_new_table_is_not_ignored_by_one_that_is_there(spark, path):
    """Spark's own writer forgets both."""
    name = f"{FORMAT}.`{path}`"
    for writer, method in (
        (rows(spark).writeTo(name).partitionedBy("id"), "partitionedBy"),
        (rows(spark).writeTo(name).tableProperty("a", "b"), "tableProperty"),
    ):
        with pytest.raises(ConfigError, match=method):
            writer.append()
        with pytest.raises(ConfigError, match=method):
            writer.overwrite(F.lit(True))
        with pytest.raises(TableExistsError):
            writer.create()


@pytest.mark.parametrize(
    "clause",
    [
        "OVERWRITE {t} PARTITION (p = 'a') IF NOT EXISTS VALUES (9)",
        "INTO {t} REPLACE USING (id) VALUES (1, 'z')",
        "INTO {t} AS t REPLACE ON t.id = s.id (SELECT 1 AS id, 'z' AS p) AS s",
        "OVERWRITE {t} WITH (overwriteSchema = 'true') PARTITION (p = 'a') VALUES (9)",
    ],
)
def test_a_clause_of_insert_that_would_be_ignored_is_refused(spark, path, clause):
    """Regression: IF NOT EXISTS replaced the rows of the partition that it was to protect."""
    with pytest.raises(IndexTablesError):
        spark.sql(f"INSERT {clause.format(t=f'{FORMAT}.`{path}`')}")
    assert sorted(map(tuple, spark.read.format(FORMAT).load(path).collect())) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DROP TABLE IF EXISTS {t}", "DROP TABLE does not work on"),
        ("DROP TABLE {t} PURGE", "delete its directory"),
        ("DROP TABLE IF EXISTS spark_catalog.{t}", "DROP TABLE does not work on"),
        ("DROP VIEW IF EXISTS {t}", "DROP VIEW does not work on"),
        ("ALTER TABLE {t} SET TBLPROPERTIES (recordKey = 'id')", "is created"),
        ("CREATE VIEW IF NOT EXISTS {t} AS SELECT 1", "CREATE VIEW does not work on"),
        ("EXPLAIN DROP TABLE IF EXISTS {t}", "DROP TABLE does not work on"),
        ("EXPLAIN DELETE FROM {t} WHERE id = 1", "EXPLAIN cannot show"),
        ("EXECUTE IMMEDIATE 'DROP TABLE IF EXISTS {t}'", "DROP TABLE does not work on"),
        ("BEGIN DROP TABLE IF EXISTS {t}; END", "does not work on"),
    ],
)
def test_a_statement_of_the_catalog_is_refused_for_a_table_of_a_path(spark, path, statement, words):
    """Regression: DROP TABLE IF EXISTS answered as if it had dropped the table, and did nothing."""
    with pytest.raises(IndexTablesError) as found:
        spark.sql(statement.format(t=f"{FORMAT}.`{path}`"))
    assert words in str(found.value)
    assert spark.read.format(FORMAT).load(path).count() == 2


def test_a_table_of_the_catalog_in_a_database_of_our_name_can_be_dropped(spark):
    """Only a path is refused there; IF EXISTS then means what it means in Spark."""
    spark.sql(f"CREATE DATABASE {FORMAT}")
    try:
        spark.sql(f"CREATE TABLE {FORMAT}.there (id INT) USING parquet")
        spark.sql(f"DROP TABLE {FORMAT}.there")
        spark.sql(f"DROP TABLE IF EXISTS {FORMAT}.there")
        with pytest.raises(IndexTablesError, match="does not work on"):
            spark.sql(f"DROP TABLE IF EXISTS {FORMAT}.`/data/t`")
    finally:
        spark.sql(f"DROP DATABASE {FORMAT}")
