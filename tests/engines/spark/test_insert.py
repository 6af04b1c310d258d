"""INSERT, CREATE TABLE and df.writeTo on tables of ours."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import ParseException
from pyspark.sql import functions as F
from support.interleave import InterleavedStore

from indextables import errors
from indextables.engines.spark.place.tables_and_options import open_table
from indextables.engines.spark.versions import seam
from indextables.table.table import Table


@pytest.fixture
def name(spark, tmp_path):
    """A table (id long, v string, day int) with one row per day, as SQL names it."""
    path = str(tmp_path / "t é")
    rows = [(1, "a", 1), (2, "b", 2), (3, "c", 3)]
    frame = spark.createDataFrame(rows, "id long, v string, day int").coalesce(1)
    frame.write.format("indextables").partitionBy("day").save(path)
    return f"indextables.`{path}`"


def rows(spark, name):
    return sorted(map(tuple, spark.table(name).select("id", "v", "day").collect()), key=str)


OLD = [(1, "a", 1), (2, "b", 2), (3, "c", 3)]
INSERTS = [
    ("VALUES", "INSERT INTO {t} VALUES (4, 'd', 4)", [*OLD, (4, "d", 4)]),
    ("some columns", "INSERT INTO {t} (day, id) VALUES (4, 4)", [*OLD, (4, None, 4)]),
    ("by name", "INSERT INTO {t} BY NAME SELECT 4 AS day, 4L AS id, 'd' AS v", [*OLD, (4, "d", 4)]),
    ("a fixed partition", "INSERT INTO {t} PARTITION (day = 9) VALUES (4, 'd')", [*OLD, (4, "d", 9)]),
    ("overwrite", "INSERT OVERWRITE {t} VALUES (4, 'd', 4)", [(4, "d", 4)]),
    ("overwrite a partition", "INSERT OVERWRITE {t} PARTITION (day = 2) VALUES (4, 'd')",
     [(1, "a", 1), (3, "c", 3), (4, "d", 2)]),
    ("replace where", "INSERT INTO {t} REPLACE WHERE day >= 2 VALUES (4, 'd', 5)", [(1, "a", 1), (4, "d", 5)]),
    ("from itself", "INSERT INTO {t} SELECT id + 10, v, day FROM {t} WHERE day = 1", [*OLD, (11, "a", 1)]),
]  # fmt: skip


@pytest.mark.parametrize(("_what", "statement", "expected"), INSERTS, ids=[case[0] for case in INSERTS])
def test_an_insert_does_what_it_says(spark, name, _what, statement, expected):
    """Values are converted as Spark's own INSERT converts them."""
    spark.sql(statement.format(t=name))
    assert rows(spark, name) == sorted(expected, key=str)


@pytest.fixture
def two(spark, tmp_path):
    """A table (id int, a string, b date) in two levels of partitions."""
    name = f"indextables.`{tmp_path}/two`"
    spark.sql(f"CREATE TABLE {name} (id INT, a STRING, b DATE) PARTITIONED BY (a, b)")
    spark.sql(
        f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, a, DATE(b) FROM VALUES (1, 'x', '2020-01-01'), "
        "(2, 'x', '2020-01-02'), (3, 'y', '2020-01-01'), (4, NULL, '2020-01-01') AS v(id, a, b)"
    )
    return name


@pytest.mark.parametrize(
    ("mode", "clause", "select", "left"),
    [
        ("static", "a = 'x', b", "9, DATE'2020-01-01'", {3, 4, 9}),
        ("dynamic", "a = 'x', b", "9, DATE'2020-01-01'", {2, 3, 4, 9}),
        ("dynamic", "a = 'x', b = '2020-1-1'", "9", {2, 3, 4, 9}),
        ("dynamic", "a = 'x', b = '2020-01-01'", "9 WHERE false", {2, 3, 4}),
        ("static", "a = NULL, b = ' 2020-01-01'", "9", {1, 2, 3, 9}),
        ("static", "a = '', b = '2020'", "9", {1, 2, 3, 9}),
    ],
)
def test_an_overwrite_of_partitions_replaces_what_spark_would(
    spark, two, configured, mode, clause, select, left
):
    """Regression: partitions without new rows were dropped in dynamic mode, and NULL was a value of the rows."""
    configured("spark.sql.sources.partitionOverwriteMode", mode)
    spark.sql(f"INSERT OVERWRITE {two} PARTITION ({clause}) SELECT {select}")
    assert {row.id for row in spark.table(two).collect()} == left


@pytest.mark.parametrize("key", [{}, {"recordKey": "id"}], ids=["rows", "keyed"])
@pytest.mark.parametrize(
    ("mode", "overwrite"),
    [
        ("static", "INSERT OVERWRITE {t} PARTITION (p = NULL) VALUES (9)"),
        ("dynamic", "INSERT OVERWRITE {t} PARTITION (p = NULL) VALUES (9)"),
        ("dynamic", "INSERT OVERWRITE {t} PARTITION (p) VALUES (9, NULL)"),
        ("dynamic", "INSERT OVERWRITE {t} VALUES (9, '')"),
    ],
)
def test_the_partition_of_null_alone_can_be_overwritten(
    spark, tmp_path, configured, key, mode, overwrite
):
    """Regression: NULL beside no other value was asked for as `IN ()`, which Spark does not read."""
    name = f"indextables.`{tmp_path}/n`"
    frame = spark.createDataFrame([(1, "a"), (2, None), (3, None)], "id int, p string").coalesce(1)
    frame.write.format("indextables").partitionBy("p").options(**key).save(f"{tmp_path}/n")
    configured("spark.sql.sources.partitionOverwriteMode", mode)
    spark.sql(overwrite.format(t=name))
    assert {tuple(row) for row in spark.table(name).collect()} == {(1, "a"), (9, None)}
    if mode == "dynamic":
        spark.sql(f"INSERT OVERWRITE {name} SELECT * FROM {name} WHERE false")
        assert spark.table(name).count() == 2


@pytest.mark.parametrize(
    ("clause", "words"),
    [("a = 'x', b = 'soon'", "'soon' is not a value"), ("id = 1, a = 'x'", "not a partition column")],
)
def test_a_partition_that_is_none_is_refused(spark, two, configured, clause, words):
    """Regression: where ANSI is off, a text that is no date filled the partition NULL."""
    configured("spark.sql.ansi.enabled", "false")
    with pytest.raises(errors.SchemaMismatchError, match=words):
        spark.sql(f"INSERT INTO {two} PARTITION ({clause}) SELECT 9")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("INSERT INTO {t} VALUES (1, 'x')", "2 columns"),
        ("INSERT INTO {t} VALUES ('no number', 'x', 1)", "'id' is string"),
        ("INSERT INTO {t} VALUES (1, 'x', 3000000000)", "'day' has a value that does not fit"),
    ],
)
def test_an_insert_that_does_not_fit_is_refused(spark, name, statement, message):
    """Before the job, or at the first value that does not fit; nothing is committed."""
    with pytest.raises(errors.SchemaMismatchError, match=message):
        spark.sql(statement.format(t=name))
    assert rows(spark, name) == OLD


def test_create_table_and_its_variants(spark, tmp_path):
    """With columns, from a query, if it is not there, and in place of what is there."""
    name = f"indextables.`{tmp_path}/c`"
    spark.sql(f"CREATE TABLE {name} (a INT NOT NULL, b STRING) PARTITIONED BY (b)")
    assert Table(str(tmp_path / "c")).snapshot().partition_columns == ("b",)
    with pytest.raises(errors.TableExistsError):
        spark.sql(f"CREATE TABLE {name} (a INT)")
    spark.sql(f"CREATE TABLE IF NOT EXISTS {name} (a INT)")
    with pytest.raises(errors.SchemaMismatchError, match="'a' contains NULL"):
        spark.sql(f"INSERT INTO {name} VALUES (NULL, 'x')")
    spark.sql(f"CREATE OR REPLACE TABLE {name} AS SELECT id AS other FROM range(5)")
    assert [row["other"] for row in spark.table(name).orderBy("other").collect()] == list(range(5))


SINCE = {
    "'a' cannot have an identity": "4.0",
    "does not check the constraint": "4.1",
    "cannot be partitioned by": "4.0",
}
"""The versions of Spark whose SQL has these clauses."""


@pytest.mark.parametrize(
    ("clauses", "words"),
    [
        ("(a INT, b INT DEFAULT 7)", "'b' cannot have a default value"),
        ("(a INT, b INT GENERATED ALWAYS AS (a + 1))", "'b' cannot have a generated value"),
        ("(a BIGINT GENERATED ALWAYS AS IDENTITY)", "'a' cannot have an identity"),
        ("(a INT CHECK (a > 0))", "does not check the constraint"),
        ("(a INT PRIMARY KEY)", "does not check the constraint"),
        ("(a INT, c ARRAY<CHAR(5)>)", "'c' has the type array<char"),
        ("(a INT, d DATE) PARTITIONED BY (years(d))", "partitioned by years"),
        ("(a INT, b INT) CLUSTER BY (b)", "cannot be partitioned by"),
        ("(a INT) LOCATION '/elsewhere'", "two locations"),
    ],
)
def test_a_clause_that_no_table_keeps_is_refused(spark, tmp_path, clauses, words):
    """Regression: defaults, checks and keys were accepted and forgotten, a partition by year was one by day."""
    # a version of Spark that does not know a clause says so itself
    refused = "SYNTAX_ERROR" if seam.name < SINCE.get(words, "") else words
    with pytest.raises((errors.IndexTablesError, ParseException), match=refused):
        spark.sql(f"CREATE TABLE indextables.`{tmp_path}/c` {clauses}")
    assert not (tmp_path / "c").exists()


def test_write_to_does_what_its_verbs_say(spark, tmp_path):
    """create, append, overwrite, overwritePartitions, replace and createOrReplace."""
    name = f"indextables.`{tmp_path}/w`"
    frame = spark.range(0, 9, 1, 1).select("id", (F.col("id") % 3).alias("p"))

    def count(where="true"):
        return spark.table(name).where(where).count()

    with pytest.raises(errors.TableNotFoundError):
        frame.writeTo(name).append()
    frame.writeTo(name).partitionedBy("p").tableProperty("owner", "me").create()
    with pytest.raises(errors.TableExistsError):
        frame.writeTo(name).create()
    frame.writeTo(name).append()
    assert count() == 18
    frame.where("p = 1").writeTo(name).overwrite((F.col("p") == 1) & (F.col("id") < 100))
    assert (count(), count("p = 1")) == (15, 3)
    frame.where("id = 2").writeTo(name).overwritePartitions()
    assert count("p = 2") == 1
    with pytest.raises(errors.PredicateError, match="replaceWhere"):
        frame.writeTo(name).overwrite(F.rand() < 0.5)
    frame.select("id").writeTo(name).replace()
    assert spark.table(name).columns == ["id"]
    assert Table(f"{tmp_path}/w").properties["owner"] == "me"
    frame.writeTo(name).createOrReplace()
    assert count() == 9


def test_insert_into_goes_by_position(spark, name):
    """Whatever the DataFrame's columns are called; the default mode adds."""
    frame = spark.createDataFrame([(7, "g", 7)], "x int, y string, z long").coalesce(1)
    frame.write.insertInto(name)
    assert (7, "g", 7) in rows(spark, name)
    frame.write.insertInto(name, overwrite=True)
    assert rows(spark, name) == [(7, "g", 7)]


@pytest.mark.parametrize("how", ["upsert", "insert"])
@pytest.mark.parametrize("other", ["upsert", "delete"])
def test_an_upsert_computed_from_the_table_never_undoes_a_change_of_the_same_row(
    spark, tmp_path, monkeypatch, how, other
):
    """Regression: a row that another commit had changed came back as it was, with this write's change."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.int64())])
    table = Table.create(str(tmp_path / "t"), schema, record_key=("id",))
    table.append(pa.table([[1, 2], [1, 2]], schema=schema))
    log = open_table(spark, table.uri).log
    name = f"indextables.`{table.uri}`"

    def write(where):
        if how == "insert":
            spark.sql(f"INSERT INTO {name} SELECT id, v + 10 FROM {name} WHERE {where}")
            return
        rows = spark.table(name).where(where).select("id", F.expr("v + 10").alias("v"))
        rows.write.format("indextables").mode("upsert").save(table.uri)

    def meanwhile():
        if other == "delete":
            return Table(table.uri).delete("id = 1")
        return Table(table.uri).upsert(pa.table([[1], [100]], schema=schema))

    store = InterleavedStore(log.store, meanwhile)
    monkeypatch.setattr(log, "store", store)
    with pytest.raises(errors.CommitConflictError, match="stands on what was read"):
        write("id = 1")
    assert store.happened
    left = table.scan().to_arrow().sort_by("id").to_pylist()
    changed = [] if other == "delete" else [{"id": 1, "v": 100}]
    assert left == [*changed, {"id": 2, "v": 2}]
    write("id = 2")
    assert table.scan().to_arrow().sort_by("id")["v"].to_pylist()[-1] == 12


@pytest.mark.parametrize("key", [(), ("id",)], ids=["copied", "logged"])
def test_an_overwrite_computed_from_the_table_never_drops_rows_it_did_not_see(
    spark, tmp_path, monkeypatch, key
):
    """Regression: rows of a commit that came first were replaced by ones computed without them."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.int64())])
    table = Table.create(str(tmp_path / "t"), schema, record_key=key)
    table.append(pa.table([[1, 2], [1, 2]], schema=schema))
    log = open_table(spark, table.uri).log
    other = pa.table([[5], [7]], schema=schema)
    name = f"indextables.`{table.uri}`"
    store = InterleavedStore(log.store, lambda: Table(table.uri).append(other))
    monkeypatch.setattr(log, "store", store)
    with pytest.raises(errors.CommitConflictError, match="stands on what was read"):
        spark.sql(
            f"INSERT OVERWRITE {name} SELECT id, v + (SELECT max(v) FROM {name}) FROM VALUES (1L, 1L) AS s(id, v)"
        )
    assert store.happened
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 5]
    spark.sql(f"INSERT OVERWRITE {name} SELECT id, v + 1 FROM {name}")
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [2, 3, 8]
