"""Temporary views show the newest version of their tables, as those over Parquet and Delta do."""

from __future__ import annotations

from itertools import count

import pyarrow as pa
import pytest

from indextables.errors import IndexTablesError, SchemaError
from indextables.table.table import Table

pytest.importorskip("pyspark")
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

_numbers = count()


@pytest.fixture
def name(spark):
    """A name for a view that is dropped after the test."""
    found = f"following_{next(_numbers)}"
    yield found
    spark.catalog.dropTempView(found)
    spark.catalog.dropGlobalTempView(found)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])


def rows_of(*ids):
    return pa.table({"id": list(ids), "name": [f"n{i}" for i in ids]}, SCHEMA)


def made(path, rows, **options):
    table = Table.create(path, rows.schema, **options)
    table.append(rows)
    return table


@pytest.fixture
def table(path):
    return made(path, rows_of(1, 2, 3))


def load(spark, path, **options):
    return spark.read.format("indextables").options(**options).load(path)


def ids(spark, text):
    return sorted(row[0] for row in spark.sql(text).collect())


def test_a_view_of_a_select_shows_rows_that_were_written_later(spark, table, path, name):
    spark.sql(f"CREATE TEMP VIEW {name} (a) AS SELECT id FROM indextables.`{path}` WHERE id > 1")
    assert ids(spark, f"SELECT a FROM {name}") == [2, 3]
    table.append(rows_of(4))
    assert ids(spark, f"SELECT a FROM {name.upper()}") == [2, 3, 4]
    assert sorted(row.a for row in spark.table(name).collect()) == [2, 3, 4]
    table.delete("id = 4")
    assert sorted(row.a for row in spark.read.table(name).collect()) == [2, 3]


@pytest.mark.parametrize("is_global", [False, True])
def test_a_view_of_a_data_frame_shows_rows_that_were_written_later(spark, table, path, name, is_global):
    frame = load(spark, path).where("id > 1")
    if is_global:
        frame.createGlobalTempView(name)
        name = f"global_temp.{name}"
    else:
        frame.createOrReplaceTempView(name)
    table.append(rows_of(4))
    assert ids(spark, f"SELECT id FROM {name}") == [2, 3, 4]
    assert sorted(row.id for row in frame.collect()) == [2, 3]  # a DataFrame is one version


def test_a_view_with_the_format_shows_rows_that_were_written_later(spark, table, path, name):
    spark.sql(f"CREATE TEMP VIEW {name} USING indextables OPTIONS (path '{path}', where 'id > 1')")
    table.append(rows_of(4))
    assert ids(spark, f"SELECT id FROM {name}") == [2, 3, 4]


def test_a_view_of_a_named_version_stays_there(spark, table, path, name):
    load(spark, path, versionAsOf=table.version).createOrReplaceTempView(name)
    table.append(rows_of(4))
    assert ids(spark, f"SELECT id FROM {name}") == [1, 2, 3]


def test_views_of_views_joins_and_subqueries_follow(spark, table, path, name):
    table_in_sql = f"indextables.`{path}`"
    spark.sql(
        f"CREATE TEMP VIEW {name} AS SELECT a.id, (SELECT max(id) FROM {table_in_sql}) AS m "
        f"FROM {table_in_sql} a JOIN {table_in_sql} b ON a.id = b.id WHERE a.id IN (SELECT id FROM {table_in_sql})"
    )
    spark.sql(f"CREATE TEMP VIEW over_{name} AS SELECT id + m AS s FROM {name}")
    try:
        table.append(rows_of(10))
        assert ids(spark, f"SELECT s FROM over_{name}") == [11, 12, 13, 20]
        with_cte = f"WITH c AS (SELECT * FROM {name}) SELECT count(*) FROM c"
        assert ids(spark, with_cte) == [4]
    finally:
        spark.catalog.dropTempView(f"over_{name}")


def test_a_view_of_slices_with_delta_files_follows(spark, path, name):
    table = made(path, rows_of(1, 2, 3), record_key=["id"])
    load(spark, path).select("id", "name").createOrReplaceTempView(name)
    table.upsert(pa.table({"id": [2, 9], "name": ["new", "nine"]}, SCHEMA))
    found = {row.id: row.name for row in spark.table(name).collect()}
    assert found == {1: "n1", 2: "new", 3: "n3", 9: "nine"}
    table.upsert(pa.table({"id": [2], "name": ["newer"]}, SCHEMA))
    assert {row.id: row.name for row in spark.table(name).collect()}[2] == "newer"
    table.delete("id = 1")
    twice = spark.sql(f"SELECT a.name FROM {name} a JOIN {name} b ON a.id = b.id").collect()
    assert sorted(row[0] for row in twice) == ["n3", "newer", "nine"]


def test_a_view_keeps_the_settings_and_columns_it_was_made_with(spark, table, path, name, configured):
    configured("spark.sql.ansi.enabled", "false")
    load(spark, path).selectExpr("*", "CAST(name AS INT) AS x", "_metadata.file_name").createTempView(
        name
    )
    configured("spark.sql.ansi.enabled", "true")
    table.append(rows_of(4).append_column("more", pa.array([1])), merge_schema=True)
    with pytest.raises(SchemaError, match="make it again"):
        spark.table(name)  # columns of files are found only where the table has the same columns
    load(spark, path).selectExpr("id").createOrReplaceTempView(name)
    table.append(rows_of(5), merge_schema=True)
    assert spark.table(name).columns == ["id"]
    configured("spark.sql.ansi.enabled", "false")
    load(spark, path).selectExpr("id", "CAST(name AS INT) AS x").createOrReplaceTempView(name)
    configured("spark.sql.ansi.enabled", "true")
    table.append(rows_of(6), merge_schema=True)
    assert ids(spark, f"SELECT id FROM {name} WHERE x IS NULL") == [1, 2, 3, 4, 5, 6]


def test_a_view_replaced_or_dropped_by_another_is_not_brought_back(spark, table, path, name):
    load(spark, path).createOrReplaceTempView(name)
    spark.range(2).createOrReplaceTempView(name)
    table.append(rows_of(4))
    assert ids(spark, f"SELECT id FROM {name}") == [0, 1]
    load(spark, path).createOrReplaceTempView(name)
    spark.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT 7 AS id")
    table.append(rows_of(5))
    assert ids(spark, f"SELECT id FROM {name}") == [7]
    load(spark, path).createOrReplaceTempView(name)
    spark.catalog.dropTempView(name)
    table.append(rows_of(6))
    with pytest.raises(AnalysisException):
        spark.table(name)


def test_a_cached_view_of_a_select_keeps_its_rows(spark, table, path, name):
    spark.sql(f"CACHE TABLE {name} AS SELECT id FROM indextables.`{path}`")
    table.append(rows_of(4))
    assert ids(spark, f"SELECT id FROM {name}") == [1, 2, 3]
    spark.sql(f"UNCACHE TABLE {name}")


def test_a_view_whose_table_is_gone_can_be_dropped(spark, table, path, name, tmp_path):
    load(spark, path).createOrReplaceTempView(name)
    (tmp_path / "t").rename(tmp_path / "elsewhere")
    with pytest.raises(IndexTablesError):
        spark.table(name)
    assert spark.sql("SELECT 1 AS x").first()[0] == 1
    spark.sql(f"DROP VIEW {name}")


def test_a_data_frame_in_a_statement_stays_at_its_version(spark, table, path):
    frame = load(spark, path)
    table.append(rows_of(4))
    assert spark.sql("SELECT count(*) FROM {frame}", frame=frame).first()[0] == 3


def test_a_view_of_other_rows_is_not_touched(spark, name):
    spark.range(3).where(F.rand() < 2).createOrReplaceTempView(name)
    assert spark.table(name).count() == 3


def test_a_merge_reads_the_newest_rows_of_a_view(spark, table, path, name, tmp_path):
    other = str(tmp_path / "other")
    source = made(other, rows_of(3))
    load(spark, other).createOrReplaceTempView(name)
    source.append(rows_of(4))
    spark.sql(
        f"MERGE INTO indextables.`{path}` t USING {name} s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    )
    assert sorted(load(spark, path).toPandas()["id"]) == [1, 2, 3, 4]
