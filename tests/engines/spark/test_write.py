"""df.write: modes, call orders, what is stored, and what is refused before anything is stored."""

from __future__ import annotations

import datetime as dt
import json
import logging
import threading
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from indextables import errors
from indextables.core.stats import collect_stats
from indextables.engines.spark.versions import seam
from indextables.table.table import Table

FORMAT = "indextables"
LONG_NAME = "io.indextables.spark.core.IndexTables4SparkTableProvider"


@pytest.fixture
def path(tmp_path):
    """Where a table may go; the name has characters that URIs encode."""
    return str(tmp_path / "my table%20é")


@pytest.fixture
def numbers(spark):
    """id 0 to 99, part = id modulo 3, in one task."""
    return spark.range(0, 100, 1, 1).select("id", (F.col("id") % 3).alias("part"))


def rows(spark, path, where="true"):
    return spark.read.format(FORMAT).load(path).where(where).count()


def data_files(path):
    """Every file of the table that is not of its log."""
    from pathlib import Path

    found = [p for p in Path(path).rglob("*") if p.is_file()]
    return sorted(str(p.relative_to(path)) for p in found if "_transaction_log" not in p.parts)


# -- the integration tests of the truncation design, in their own calls ----------------------------------


def test_write_and_read_table_with_truncated_statistics(spark, path):
    """The log stays small although the texts are long, and every row comes back."""
    from pathlib import Path

    data = spark.createDataFrame(
        [("doc1", "x" * 2000, 100), ("doc2", "y" * 2000, 200)], ["id", "long_text", "score"]
    )
    data.write.format(LONG_NAME).option("spark.indextables.indexing.fastfields", "score").save(path)
    files = Path(path, "_transaction_log").glob("*.json")
    assert sum(file.stat().st_size for file in files) < 100_000
    frame = spark.read.format(LONG_NAME).load(path)
    assert frame.count() == 2
    results = frame.orderBy("id").collect()
    assert [(r["id"], len(r["long_text"])) for r in results] == [("doc1", 2000), ("doc2", 2000)]


def test_data_skipping_works_for_columns_with_stats_falls_back_for_truncated_columns(spark, path):
    """A filter on a column with statistics and one on a column without find the same, right row."""
    data = spark.createDataFrame(
        [("doc1", "x" * 2000, 100), ("doc2", "y" * 2000, 200), ("doc3", "z" * 2000, 300)],
        ["id", "long_text", "score"],
    )
    data.write.format(LONG_NAME).option("spark.indextables.indexing.fastfields", "score").save(path)
    frame = spark.read.format(LONG_NAME).load(path)
    by_score = frame.filter(F.col("score") == 100).collect()
    assert [r["id"] for r in by_score] == ["doc1"]
    by_text = frame.filter(F.col("long_text").startswith("x")).collect()
    assert [r["id"] for r in by_text] == ["doc1"]
    split = Table(path).snapshot().splits()[0]
    assert ("long_text",) not in split.stats.min_values
    assert ("score",) in split.stats.min_values


# -- modes and calls --------------------------------------------------------------------------------------


def test_the_four_modes_do_what_they_do_for_every_source(spark, path, numbers):
    """Create, refuse, ignore, add, replace."""
    numbers.write.format(FORMAT).save(path)
    with pytest.raises(errors.TableExistsError, match="append"):
        numbers.write.format(FORMAT).save(path)
    numbers.write.format(FORMAT).mode("ignore").save(path)
    assert rows(spark, path) == 100
    numbers.write.format(FORMAT).mode("append").save(path)
    assert rows(spark, path) == 200
    numbers.limit(7).write.format(FORMAT).mode("overwrite").save(path)
    assert rows(spark, path) == 7
    assert [entry.operation for entry in Table(path).history()] == [
        "OVERWRITE",
        "APPEND",
        "CREATE TABLE AS SELECT",
    ]


CALLS = [
    lambda w, p: w.format(FORMAT).mode("overwrite").partitionBy("part").option("a", 1).save(p),
    lambda w, p: w.partitionBy("part").mode("overwrite").format(FORMAT).save(p),
    lambda w, p: (
        w.option("path", p).partitionBy(["part"]).format("IndexTables").mode("overwrite").save()
    ),
    lambda w, p: w.save(p, FORMAT, "overwrite", "part"),
    lambda w, p: w.save(path=p, format=LONG_NAME, mode="overwrite", partitionBy=["part"]),
    lambda w, p: w.mode("overwrite").format(LONG_NAME.upper()).save(p, partitionBy="part"),
    lambda w, p: w.saveAsTable(f"{FORMAT}.`{p}`", mode="overwrite", partitionBy="part"),
]


@pytest.mark.parametrize("call", CALLS)
def test_every_order_of_calls_means_the_same(path, numbers, call):
    """Format, mode, path and partitions may come from any call, in any order and form."""
    call(numbers.limit(4).write, path)
    snapshot = Table(path).snapshot()
    assert snapshot.partition_columns == ("part",)
    assert snapshot.num_files >= 1


def test_other_formats_do_not_notice(spark, tmp_path, numbers):
    """A write of Parquet, JSON or a table of the catalog is Spark's own."""
    numbers.write.parquet(str(tmp_path / "p"))
    numbers.write.format("json").mode("overwrite").save(str(tmp_path / "j"))
    numbers.write.mode("overwrite").saveAsTable("of_the_catalog")
    numbers.limit(1).write.insertInto("of_the_catalog")
    with pytest.raises(AnalysisException, match="v1 table"):
        numbers.limit(1).writeTo("of_the_catalog").append()
    assert spark.table("of_the_catalog").count() == 101
    assert spark.read.parquet(str(tmp_path / "p")).count() == 100
    spark.sql("drop table of_the_catalog")


def test_a_table_that_is_read_can_be_overwritten_with_what_was_read(spark, path, numbers):
    """The read is pinned to its version, the write goes elsewhere."""
    numbers.write.format(FORMAT).save(path)
    small = spark.read.format(FORMAT).load(path).where("id < 10")
    small.write.format(FORMAT).mode("overwrite").save(path)
    assert rows(spark, path) == 10


def test_replace_where_replaces_exactly_the_rows_it_names(spark, path, numbers):
    """Rows outside stay, also in files that are only partly affected; new rows outside are refused."""
    numbers.write.format(FORMAT).save(path)
    new = spark.createDataFrame([(25, 100), (26, 100)], "id long, part long")
    new.write.format(FORMAT).mode("overwrite").option("replaceWhere", "id BETWEEN 20 AND 29").save(path)
    assert rows(spark, path) == 92
    assert rows(spark, path, "part = 100") == 2
    before = data_files(path)
    with pytest.raises(errors.PredicateError, match="BETWEEN|20"):
        numbers.write.format(FORMAT).mode("overwrite").option("replaceWhere", "id >= 20").save(path)
    assert rows(spark, path) == 92
    assert data_files(path) == before


def test_replace_where_means_the_same_however_the_parser_is_set(spark, path):
    """Regression: `user` was a function in conditions that statistics cannot answer, by a setting."""
    frame = spark.createDataFrame([("5", 1, 0.5), ("7", 2, 9.5)], "`user` string, id int, d double")
    frame.write.format(FORMAT).save(path)
    new = spark.createDataFrame([("5", 3, 9.5)], frame.schema)
    spark.conf.set("spark.sql.ansi.enforceReservedKeywords", "true")
    try:
        for condition in ("`user` = 5", "`user` IN (5, 6) AND id < d"):
            new.write.format(FORMAT).mode("overwrite").option("replaceWhere", condition).save(path)
    finally:
        spark.conf.unset("spark.sql.ansi.enforceReservedKeywords")
    found = spark.read.format(FORMAT).load(path).orderBy("id").collect()
    assert [row["id"] for row in found] == [2, 3]


@pytest.mark.parametrize(
    "condition",
    ["rand() < 0.5", "id IN (SELECT 1)", "id = current_user()", "id > uuid()", "abs(id) = 1"],
)
def test_replace_where_takes_no_condition_that_only_an_engine_can_judge(
    spark, path, numbers, condition
):
    """It is judged twice, for the rows that go and for those that come: it must say the same each time."""
    numbers.write.format(FORMAT).save(path)
    refusals = "rows cannot be filtered by|cannot be handed to Spark as text"
    if seam.name == "3.5":  # where a name that is no number compares as FALSE
        refusals += "|does not satisfy the condition"
    with pytest.raises(errors.PredicateError, match=refusals):
        numbers.write.format(FORMAT).mode("overwrite").option("replaceWhere", condition).save(path)
    assert rows(spark, path) == 100


def test_no_bytes_are_null_in_a_partition_column_that_has_no_null(spark, path):
    """A path cannot tell them apart, and rows whose key is NULL would never find each other."""
    schema = pa.schema([pa.field("k", pa.binary(), nullable=False), ("v", pa.int32())])
    Table.create(path, schema, partition_by=["k"])
    new = spark.sql("SELECT X'' AS k, 1 AS v")
    with pytest.raises(errors.SchemaMismatchError, match="'k' contains NULL"):
        new.write.format(FORMAT).mode("append").save(path)


def test_an_overwrite_of_the_empty_partition_does_not_double_its_rows(spark, path):
    """'' is NULL as a partition value, so it is the rows with NULL that such data replaces."""
    new = spark.sql("SELECT 1 AS id, '' AS p")
    new.write.format(FORMAT).partitionBy("p").save(path)
    overwrite = new.write.format(FORMAT).mode("overwrite")
    with pytest.raises(errors.PredicateError, match="p = ''"):
        overwrite.option("replaceWhere", "p = ''").save(path)
    overwrite.option("replaceWhere", "p IS NULL").save(path)
    assert Table(path).scan().to_arrow().to_pylist() == [{"id": 1, "p": None}]


def test_a_dynamic_overwrite_replaces_only_the_partitions_it_has_rows_for(spark, path, numbers):
    """NULL is a partition like every other; the session's setting counts as the option does."""
    with_null = numbers.withColumn("part", F.when(F.col("part") > 0, F.col("part")))
    with_null.write.format(FORMAT).partitionBy("part").save(path)
    few = with_null.where("part IS NULL OR part = 1").limit(5).coalesce(1)
    few.write.format(FORMAT).mode("overwrite").option("partitionOverwriteMode", "dynamic").save(path)
    assert rows(spark, path, "part = 2") == 33
    assert rows(spark, path, "part IS NULL OR part = 1") == 5
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        numbers.where("part = 2").limit(1).write.format(FORMAT).mode("overwrite").save(path)
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert rows(spark, path, "part = 2") == 1
    assert rows(spark, path) == 6


@pytest.mark.skipif(
    not seam.reads_narrower, reason="Spark 3.5 does not read files narrower than a table"
)
def test_merge_schema_adds_columns_and_widens_types(spark, path):
    """Old rows are NULL in a new column; an int column that meets a long becomes one."""
    spark.createDataFrame([(1, "a")], "i int, s string").write.format(FORMAT).save(path)
    wider = spark.createDataFrame([(2**40, 1.5)], "I long, d double")
    wider.write.format(FORMAT).mode("append").option("mergeSchema", "true").save(path)
    frame = spark.read.format(FORMAT).load(path)
    assert frame.schema.simpleString() == "struct<i:bigint,s:string,d:double>"
    assert sorted(map(tuple, frame.collect()), key=str) == [(1, "a", None), (2**40, None, 1.5)]


def test_overwrite_schema_makes_a_different_table_of_it(spark, path, numbers):
    """Other columns, other partitions; the older version stays readable as it was."""
    numbers.write.format(FORMAT).partitionBy("part").save(path)
    other = spark.createDataFrame([("x", 1.5)], "id string, v double")
    other.write.format(FORMAT).mode("overwrite").option("overwriteSchema", "true").partitionBy(
        "id"
    ).save(path)
    assert spark.read.format(FORMAT).load(path).collect() == other.select("id", "v").collect()
    old = spark.read.format(FORMAT).option("versionAsOf", 0).load(path)
    assert old.where("part = 1").count() == 33


# -- what is stored ---------------------------------------------------------------------------------------

ALL_TYPES = T.StructType(
    [
        T.StructField("bo", T.BooleanType()),
        T.StructField("by", T.ByteType()),
        T.StructField("sh", T.ShortType()),
        T.StructField("i", T.IntegerType()),
        T.StructField("l", T.LongType()),
        T.StructField("f", T.FloatType()),
        T.StructField("d", T.DoubleType()),
        T.StructField("de", T.DecimalType(20, 5)),
        T.StructField("da", T.DateType()),
        T.StructField("ts", T.TimestampType()),
        T.StructField("tn", T.TimestampNTZType()),
        T.StructField("s", T.StringType()),
        T.StructField("b", T.BinaryType()),
    ]
)
UTC = dt.timezone.utc
ROWS = [
    (True, 1, 2, 3, 4, 0.5, 1.5, Decimal("1.25000"), dt.date(2024, 1, 1),
     dt.datetime(2024, 10, 27, 0, 30, tzinfo=UTC), dt.datetime(2024, 1, 1, 1, 2, 3, 456), "a/b=c d%:", b"\x00\xff"),
    (False, -128, -5, -3, -(2**60), -0.1, float("-inf"), Decimal("-0.00001"), dt.date(1, 1, 1),
     dt.datetime(2024, 10, 27, 1, 30, tzinfo=UTC), dt.datetime(1900, 1, 1), "é😀", b""),
    (None,) * 13,
]  # fmt: skip


@pytest.fixture
def all_types(spark):
    """Two rows of every simple type, and one of NULLs."""
    return spark.createDataFrame(ROWS, ALL_TYPES)


def test_a_partition_value_of_every_type_comes_back_as_it_was(spark, tmp_path, all_types):
    """Also instants of a night when clocks go back, bytes that are no text, and NULL."""
    frame = all_types.withColumn("k", F.lit(1)).coalesce(1)
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        for column in ALL_TYPES.names:
            path = str(tmp_path / column)
            frame.write.format(FORMAT).partitionBy(column).save(path)
            expected = [
                None if row[column] == b"" else row[column] for row in frame.select(column).collect()
            ]
            found = [
                row[column] for row in spark.read.format(FORMAT).load(path).select(column).collect()
            ]
            assert sorted(map(str, found)) == sorted(map(str, expected)), column
            arrow = Table(path).scan(columns=[column]).to_arrow().column(column)
            assert len(arrow.unique()) == len(set(map(str, expected))), column
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_the_empty_text_is_null_as_a_partition_value(spark, path):
    """As in every Hive-style table."""
    spark.createDataFrame([("", 1), ("x", 2)], "p string, i int").write.format(FORMAT).partitionBy(
        "p"
    ).save(path)
    assert rows(spark, path, "p IS NULL") == 1


@pytest.mark.parametrize("value", ["__HIVE_DEFAULT_PARTITION__", "next\x85line"])
def test_a_partition_value_that_a_directory_cannot_carry_is_refused(spark, path, value):
    """Silently becoming NULL, or vanishing from a listing, would lose rows."""
    frame = spark.createDataFrame([(value, 1)], "p string, i int")
    with pytest.raises(errors.SchemaMismatchError, match="directory"):
        frame.write.format(FORMAT).partitionBy("p").save(path)
    assert data_files(path) == []


def test_footer_statistics_are_those_of_the_rows(spark, path, all_types):
    """Each split's statistics equal what its rows say, for every type, NaN and nested fields included."""
    nan = F.lit(float("nan"))
    frame = (
        all_types.union(all_types)
        .withColumn("x", F.when(F.col("i") == 3, nan).otherwise(F.col("d")))
        .withColumn("only_nan", nan)
        .withColumn(
            "st",
            F.when(F.col("i").isNotNull(), F.struct(F.col("l").alias("a"), F.col("s").alias("b.c"))),
        )
        .withColumn("list", F.array("i"))
        .withColumn("a.b", F.col("by"))
    )
    frame.repartition(3).write.format(FORMAT).save(path)
    table = Table(path)
    splits = table.snapshot().splits()
    assert sum(split.stats.num_records for split in splits) == 6
    for split in splits:
        data = table.plan().scan().to_arrow() if len(splits) == 1 else _rows_of(path, split)
        schema = table.schema
        expected = collect_stats(data, schema, [leaf for leaf in _leaf_paths(schema)])
        found = split.stats
        assert found.min_values == expected.min_values
        assert found.max_values == expected.max_values
        assert found.nan_count == expected.nan_count
        counted = {path: n for path, n in expected.null_count.items() if path in found.null_count}
        assert found.null_count == counted
        assert ("list",) not in found.min_values


def _rows_of(path, split):
    import pyarrow.parquet as pq

    return pq.read_table(f"{path}/{split.path}", partitioning=None)


def _leaf_paths(schema):
    from indextables.core.types import leaves

    return [leaf.path for leaf in leaves(schema)]


@pytest.mark.parametrize(
    ("strategy", "bounds"),
    [
        ("drop", (None, None)),
        ("truncate", ("a" * 88 + " [TRUNCATED]", "é" * 88 + " [TRUNCATED]")),
        ("bound", ("a" * 100, "é" * 99 + "ê")),
    ],
)
def test_texts_beyond_what_a_footer_keeps_are_still_bounded(spark, path, strategy, bounds):
    """Spark's writer records no bounds beyond 4 KiB; the strategies that need them get them anyway."""
    frame = spark.createDataFrame([("a" * 5000,), ("m",), ("é" * 3000,)], "t string").coalesce(1)
    prefix = "spark.indextables.stats.truncation."
    frame.write.format(FORMAT).option(f"{prefix}strategy", strategy).option(
        f"{prefix}maxLength", 100
    ).save(path)
    stats = Table(path).snapshot().splits()[0].stats
    assert (stats.min_values.get(("t",)), stats.max_values.get(("t",))) == bounds
    assert (("t",) in stats.dropped) == (strategy == "drop")
    for text in ("a" * 5000, "m", "é" * 3000):
        assert spark.read.format(FORMAT).load(path).where(F.col("t") == text).count() == 1


def test_without_truncation_the_whole_bounds_are_kept(spark, path):
    """Switching truncation off means what it says, also where the footer has nothing."""
    frame = spark.createDataFrame([("a" * 3000,), ("b" * 3000,)], "t string").coalesce(1)
    frame.write.format(FORMAT).option("spark.indextables.stats.truncation.enabled", "false").save(path)
    stats = Table(path).snapshot().splits()[0].stats
    assert stats.min_values == {("t",): "a" * 3000}
    assert stats.max_values == {("t",): "b" * 3000}


def test_truncation_is_told_once_per_write(spark, path, caplog):
    """In the words of the design, not once per split."""
    frame = spark.createDataFrame([(str(i) + "x" * 1500,) for i in range(8)], "t string").repartition(4)
    with caplog.at_level(logging.INFO, "indextables"):
        frame.write.format(FORMAT).save(path)
    told = [
        r.getMessage() for r in caplog.records if r.getMessage().startswith("Truncating statistics")
    ]
    assert len(told) == 1
    assert told[0].startswith("Truncating statistics for column 't' (min length: 15")
    metrics = Table(path).history()[0].metrics
    assert metrics["numTruncatedColumns"] == 1
    assert metrics["truncationBytesSaved"] > 0


def test_only_data_files_lie_beside_the_log(path, numbers):
    """No _SUCCESS, no checksums, no empty files, and timestamps are not INT96."""
    import pyarrow.parquet as pq

    frame = numbers.withColumn("ts", F.timestamp_micros("id")).repartition(4)
    frame.where("id < 0").write.format(FORMAT).save(path)
    assert data_files(path) == []
    frame.write.format(FORMAT).mode("append").save(path)
    files = data_files(path)
    assert all(name.endswith(".parquet") and name.startswith("data/0-") for name in files)
    schema = pq.read_schema(f"{path}/{files[0]}")
    assert str(schema.field("ts").type) == "timestamp[us, tz=UTC]"
    assert sorted(files) == sorted(split.path for split in Table(path).snapshot().splits())


def test_options_of_parquet_reach_sparks_writer(spark, path, numbers):
    """compression and maxRecordsPerFile."""
    import pyarrow.parquet as pq

    numbers.coalesce(1).write.format(FORMAT).option("compression", "zstd").option(
        "maxRecordsPerFile", 30
    ).save(path)
    files = data_files(path)
    assert len(files) == 4
    assert pq.read_metadata(f"{path}/{files[0]}").row_group(0).column(0).compression == "ZSTD"


def test_a_write_with_a_number_is_done_once(spark, path, numbers):
    """txnAppId and txnVersion: a job that is run again adds nothing."""
    numbers.write.format(FORMAT).save(path)
    for _ in range(2):
        numbers.write.format(FORMAT).mode("append").option("txnAppId", "nightly").option(
            "txnVersion", 7
        ).save(path)
    assert rows(spark, path) == 200
    numbers.write.format(FORMAT).mode("append").option("txnAppId", "nightly").option(
        "txnVersion", 8
    ).save(path)
    assert rows(spark, path) == 300


# -- what is refused --------------------------------------------------------------------------------------


def test_a_failed_job_commits_nothing_and_leaves_nothing(spark, path, numbers):
    """Neither a version nor a file, and the error is the job's own."""
    numbers.write.format(FORMAT).save(path)
    before = data_files(path)
    bad = numbers.withColumn("part", F.expr("CASE WHEN id = 77 THEN raise_error('boom') ELSE part END"))
    with pytest.raises(Exception, match="boom"):
        bad.write.format(FORMAT).mode("append").save(path)
    assert Table(path).version == 0
    assert data_files(path) == before
    assert not list((__import__("pathlib").Path(path) / "data").glob("*/_temporary"))


REFUSED = [
    (
        "interval",
        lambda f: f.withColumn("v", F.expr("INTERVAL 1 DAY")),
        errors.UnsupportedTypeError,
        "interval",
    ),
    ("void", lambda f: f.withColumn("v", F.lit(None)), errors.UnsupportedTypeError, "void"),
    (
        "same name",
        lambda f: f.withColumn("ID", F.lit(1)).select("id", F.lit(1).alias("Id")),
        errors.SchemaError,
        "same name",
    ),
    ("no column", lambda f: f.select(), errors.SchemaError, "no columns"),
]


@pytest.mark.parametrize(
    ("_name", "change", "error", "message"), REFUSED, ids=[case[0] for case in REFUSED]
)
def test_what_no_table_can_hold_is_refused_before_a_job_runs(
    path, numbers, _name, change, error, message
):
    """One Python error that names the column, and nothing on the disk."""
    with pytest.raises(error, match=message):
        change(numbers).write.format(FORMAT).save(path)
    assert data_files(path) == []


MISFITS = [
    ("missing", lambda f: f.drop("part"), "'part' .bigint. is missing"),
    ("new", lambda f: f.withColumn("prat", F.lit(1)), "did you mean 'part'"),
    (
        "text for a number",
        lambda f: f.withColumn("id", F.col("id").cast("string")),
        "'id' is string, the table has bigint",
    ),
    ("narrower", lambda f: f.withColumn("id", F.col("id").cast("double")), "'id' is double"),
]


@pytest.mark.parametrize(("_name", "change", "message"), MISFITS, ids=[case[0] for case in MISFITS])
def test_data_that_does_not_fit_the_table_is_refused(path, numbers, _name, change, message):
    """Every difference at once, with what to do about it."""
    numbers.write.format(FORMAT).save(path)
    with pytest.raises(errors.SchemaMismatchError, match=message) as caught:
        change(numbers).write.format(FORMAT).mode("append").save(path)
    assert "mergeSchema" in str(caught.value)
    assert Table(path).version == 0


def test_other_partition_columns_are_refused(path, numbers):
    """A table keeps its partitions; the same ones in another case are the same."""
    numbers.write.format(FORMAT).partitionBy("part").save(path)
    numbers.write.format(FORMAT).mode("append").partitionBy("PART").save(path)
    with pytest.raises(errors.SchemaMismatchError, match="partitioned by \\['part'\\]"):
        numbers.write.format(FORMAT).mode("append").partitionBy("id").save(path)


@pytest.mark.parametrize("method", ["bucketBy", "sortBy", "clusterBy"])
def test_buckets_and_sorted_buckets_are_refused(path, numbers, method):
    """They mean nothing here, and silence would be a lie."""
    writer = numbers.write.format(FORMAT)
    if not hasattr(writer, method):
        pytest.skip("Spark 3.5 has no clusterBy")
    writer = writer.bucketBy(2, "id") if method == "bucketBy" else getattr(writer, method)("id")
    with pytest.raises(errors.ConfigError, match=method):
        writer.save(path)


def test_a_directory_of_something_else_is_not_written_into(spark, tmp_path, numbers):
    """Plain Parquet is offered conversion instead."""
    numbers.write.parquet(str(tmp_path / "plain"))
    for mode in ("append", "overwrite", "error"):
        with pytest.raises(errors.NotATableError, match="Parquet"):
            numbers.write.format(FORMAT).mode(mode).save(str(tmp_path / "plain"))


def test_columns_match_by_name_and_nested_fields_too(spark, path):
    """Order and case do not matter, at any depth; what the data lacks inside a struct is NULL."""
    spark.createDataFrame(
        [(1, (1, "x"), [(1, 2)], {"k": (5, 6)})],
        "i int, st struct<a: long, b: string>, l array<struct<p: long, q: int>>, m map<string, struct<u: long, v: int>>",
    ).write.format(FORMAT).save(path)
    shuffled = spark.createDataFrame(
        [({"k": (60, 50)}, [(20, 10)], ("y", 2), 2), (None, None, None, 3)],
        "M map<string, struct<v: int, u: int>>, l array<struct<q: int, p: int>>, ST struct<b: string, a: int>, I int",
    )
    shuffled.write.format(FORMAT).mode("append").save(path)
    found = spark.read.format(FORMAT).load(path).orderBy("i").collect()
    assert [json.loads(json.dumps(r.asDict(recursive=True))) for r in found][1:] == [
        {"i": 2, "st": {"a": 2, "b": "y"}, "l": [{"p": 10, "q": 20}], "m": {"k": {"u": 50, "v": 60}}},
        {"i": 3, "st": None, "l": None, "m": None},
    ]


def test_a_not_null_column_never_gets_a_null(spark, path):
    """The first NULL stops the job; what cannot be NULL needs no check."""
    schema = T.StructType([T.StructField("k", T.LongType(), False), T.StructField("v", T.StringType())])
    Table.create(path, schema)
    spark.range(3).select(F.col("id").alias("k"), F.lit("x").alias("v")).write.format(FORMAT).mode(
        "append"
    ).save(path)
    with pytest.raises(errors.SchemaMismatchError, match="'k' contains NULL"):
        spark.createDataFrame([(1, "a"), (None, "b")], "k long, v string").write.format(FORMAT).mode(
            "append"
        ).save(path)
    assert rows(spark, path) == 3


def test_rows_read_from_a_table_with_required_parts_fit_into_it(spark, path):
    """Regression: Spark reads every part as nullable, so such rows were refused unseen."""
    kind = pa.struct([pa.field("x", pa.int32(), nullable=False), ("y", pa.string())])
    deep = pa.struct([pa.field("in", kind, nullable=False)])
    items = pa.list_(pa.field("element", kind, nullable=False))
    values = pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False))
    schema = pa.schema([("id", pa.int64()), ("s", deep), ("l", items), ("m", values)])
    table = Table.create(path, schema)
    one = {"id": 1, "s": {"in": {"x": 1, "y": None}}, "l": [{"x": 1, "y": "a"}], "m": [("k", 1)]}
    two = {"id": 2, "s": None, "l": None, "m": None}
    table.append(pa.Table.from_pylist([one, two], schema=schema))
    frame = spark.read.format(FORMAT).load(path)
    frame.write.format(FORMAT).mode("append").save(path)
    spark.sql(f"INSERT INTO indextables.`{path}` SELECT * FROM indextables.`{path}` WHERE id = 1")
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [one] * 4 + [two] * 2
    y = "CAST(NULL AS STRING) AS y"
    for part, column, value in (
        ("s.in", "s", "struct(CAST(NULL AS struct<x: int, y: string>) AS in)"),
        ("s.in.x", "s", f"struct(struct(IF(id = 1, NULL, 1) AS x, {y}) AS in)"),
        ("l.element", "l", f"array(struct(1 AS x, {y}), NULL)"),
        ("l.element.x", "l", f"array(struct(1 AS x, {y}), struct(IF(id = 1, NULL, 1) AS x, {y}))"),
        ("m.value", "m", "map('a', 1, 'b', IF(id = 1, NULL, 1))"),
    ):
        with pytest.raises(errors.SchemaMismatchError, match=f"'{part}' contains NULL"):
            broken = frame.withColumn(column, F.expr(value))
            broken.write.format(FORMAT).mode("append").save(path)
    assert rows(spark, path) == 6


# -- several writers --------------------------------------------------------------------------------------


def test_writers_at_the_same_time_lose_nothing(spark, path, numbers):
    """Four threads append; one of them also creates the table, and none knows which."""
    failures = []

    def write(k):
        try:
            numbers.withColumn("part", F.lit(k)).coalesce(1).write.format(FORMAT).mode("append").save(
                path
            )
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=write, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    counts = spark.read.format(FORMAT).load(path).groupBy("part").count().collect()
    assert sorted(map(tuple, counts)) == [(k, 100) for k in range(4)]
    assert Table(path).check(deep=True).ok


@pytest.mark.parametrize(
    ("setting", "value", "condition"),
    [
        ("parser.escapedStringLiterals", "true", r"s = 'a\b'"),
        ("parser.escapedStringLiterals", "true", r"s = 'a\\b'"),
        ("ansi.doubleQuotedIdentifiers", "true", """ "s" = 'x' """),
        ("ansi.enabled", "false", "id = '2.5'"),
        ("ansi.enabled", "false", "id = 'no number'"),
        ("ansi.enabled", "false", "s = 'x' AND id <> 'no number'"),
        ("timestampType", "TIMESTAMP_NTZ", "t >= TIMESTAMP '2024-01-02 00:00:00'"),
        ("session.timeZone", "Asia/Tokyo", "t >= '2024-01-02 00:00:00'"),
    ],
)
@pytest.mark.parametrize("key", [{}, {"recordKey": "id"}], ids=["rows", "keyed"])
def test_an_overwrite_replaces_the_rows_that_a_delete_takes_out(
    spark, path, configured, key, setting, value, condition
):
    """Regression: replaceWhere was read with fixed settings, and replaced other rows than the session meant."""
    schema = "id int, s string, t timestamp"
    values = "(1, 'a\\\\b', '2024-01-01'), (2, 'x', '2024-01-02'), (3, 'a\\\\\\\\b', '2024-01-03')"
    frame = spark.sql(f"SELECT id, s, CAST(t AS TIMESTAMP) t FROM VALUES {values} AS v(id, s, t)")
    frame = spark.createDataFrame(frame.collect(), schema)
    configured(f"spark.sql.{setting}", value)
    left = []
    for number, replace_rows in enumerate(
        (
            lambda name, _: spark.sql(f"DELETE FROM {name} WHERE {condition}"),
            lambda name, _: spark.sql(f"INSERT INTO {name} REPLACE WHERE {condition} SELECT * FROM {name} WHERE false"),
            lambda _, to: frame.limit(0).write.format(FORMAT).mode("overwrite").option("replaceWhere", condition).save(to),
            lambda name, _: frame.limit(0).writeTo(name).overwrite(F.expr(condition)),
        )
    ):  # fmt: skip
        table = f"{path}{number}"
        frame.write.format(FORMAT).options(**key).save(table)
        replace_rows(f"{FORMAT}.`{table}`", table)
        left.append(sorted(row.id for row in spark.read.format(FORMAT).load(table).collect()))
    assert left == [left[0]] * len(left)
    if len(left[0]) < frame.count():
        assert Table(f"{path}2").history()[0].parameters["predicate"] == condition
