"""DataFrames and streams written to tables with a record key."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from support.interleave import InterleavedStore

from indextables import errors
from indextables.engines.spark.place.hadoop import place_of
from indextables.engines.spark.write.by_key import SparkChange
from indextables.engines.spark.write.executor import SparkExecutor
from indextables.log.transaction_log import TransactionLog
from indextables.ops.keyed.upsert import upsert
from indextables.storage.open import open_store
from indextables.table.table import Table

LAYOUT = "id long, day int, v int, name string"


def frame(spark, *rows, layout=LAYOUT):
    return spark.createDataFrame(list(rows), layout).coalesce(1)


def contents(path):
    return sorted(tuple(row.values()) for row in Table(path).scan().to_arrow().to_pylist())


SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("day", pa.int32()),
        pa.field("v", pa.int32()),
        pa.field("name", pa.string()),
    ]
)


@pytest.fixture
def path(tmp_path):
    """A table (id, day, v, name) by id, partitioned by day, with three rows."""
    table = Table.create(tmp_path / "t", SCHEMA, partition_by=["day"], record_key=["id"])
    table.append(pa.table([[1, 2, 3], [1, 1, 2], [10, 20, 30], ["a", "b", "c"]], schema=SCHEMA))
    return table.uri


def test_an_upsert_replaces_moves_and_adds_rows(spark, path):
    """As a mode, as an option of append, as an append, and as INSERT INTO; the partition may change."""
    writer = frame(spark, (2, 1, 21, "B"), (3, 5, 31, "C"), (4, 1, 40, "d")).write
    writer.format("indextables").mode("upsert").save(path)
    entry = Table(path).history()[0]
    assert entry.operation == "UPSERT"
    numbers = ("numInsertedRows", "numUpdatedRows", "numMovedRows")
    assert [entry.metrics[name] for name in numbers] == [1, 2, 1]
    expected = [(1, 1, 10, "a"), (2, 1, 21, "B"), (3, 5, 31, "C"), (4, 1, 40, "d")]
    assert contents(path) == expected
    frame(spark, (4, 1, 41, "e")).write.format("indextables").mode("append").save(path)
    frame(spark, (5, 1, 50, "f")).write.format("indextables").mode("append").option(
        "upsert", "true"
    ).save(path)
    spark.sql(f"INSERT INTO indextables.`{path}` VALUES (1, 1, 11, 'A')")
    expected = [(1, 1, 11, "A"), *expected[1:3], (4, 1, 41, "e"), (5, 1, 50, "f")]
    assert contents(path) == expected
    read = spark.read.format("indextables").load(path)
    assert sorted(map(tuple, read.collect())) == expected


def test_a_delete_of_whole_slices_counts_its_own_rows_where_the_table_is_cached(spark, path):
    """The cached rows are those of every slice."""
    Table(path).upsert(pa.table([[1, 3], [1, 2], [11, 31], ["A", "C"]], schema=SCHEMA))
    cached = spark.read.format("indextables").load(path).cache()
    try:
        assert cached.count() == 3
        answer = spark.sql(f"DELETE FROM indextables.`{path}` WHERE day = 1").collect()
    finally:
        cached.unpersist()
    assert answer == [(2,)]
    assert contents(path) == [(3, 2, 31, "C")]


def test_keys_that_occur_twice_are_refused(spark, path, tmp_path):
    """By every way of writing, and nothing is left behind."""
    twice = frame(spark, (7, 1, 1, "x"), (7, 2, 2, "y"))
    version = Table(path).snapshot().version
    for mode in ("upsert", "append", "overwrite"):
        with pytest.raises(errors.DuplicateKeyError, match="id = 7"):
            twice.write.format("indextables").mode(mode).save(path)
    with pytest.raises(errors.DuplicateKeyError):
        twice.write.format("indextables").option("recordKey", "id").save(str(tmp_path / "new"))
    assert Table(path).snapshot().version == version
    with pytest.raises(errors.SchemaMismatchError, match="'id' contains NULL"):
        frame(spark, (None, 1, 1, "x")).write.format("indextables").mode("append").save(path)


def test_an_overwrite_replaces_what_it_says_and_every_row_with_its_keys(spark, path):
    """A condition, the partitions of the data, or everything."""
    new = frame(spark, (1, 1, 11, "A"), (9, 1, 90, "i"))
    new.write.format("indextables").mode("overwrite").option("replaceWhere", "day = 1").save(path)
    assert contents(path) == [(1, 1, 11, "A"), (3, 2, 30, "c"), (9, 1, 90, "i")]
    # the row with key 3 is in another partition than the one that is replaced
    dynamic = frame(spark, (3, 1, 33, "C")).write.format("indextables").mode("overwrite")
    dynamic.option("partitionOverwriteMode", "dynamic").save(path)
    assert contents(path) == [(3, 1, 33, "C")]
    frame(spark, (5, 5, 5, "e")).write.format("indextables").mode("overwrite").save(path)
    assert contents(path) == [(5, 5, 5, "e")]


def test_columns_that_are_not_given_keep_their_values(spark, tmp_path):
    """In a table that merges columns; a new key has NULL there, and a row that moves takes them along."""
    path = str(tmp_path / "t")
    writer = (
        frame(spark, (1, 1, 10, "a"), (2, 1, 20, "b")).write.format("indextables").partitionBy("day")
    )
    writer.option("recordKey", "id").option("mergeMode", "columns").mode("upsert").save(path)
    assert Table(path).history()[0].operation == "CREATE TABLE AS SELECT"
    some = frame(spark, (1, 100), (3, 300), layout="id long, v int")
    some.write.format("indextables").mode("upsert").save(path)
    assert contents(path) == [(1, 1, 100, "a"), (2, 1, 20, "b"), (3, None, 300, None)]
    frame(spark, (2, 7), layout="id long, day int").write.format("indextables").mode("upsert").save(
        path
    )
    spark.sql(f"UPDATE indextables.`{path}` SET name = 'u' WHERE id = 1")
    assert contents(path) == [(1, 1, 100, "u"), (2, 7, 20, "b"), (3, None, 300, None)]
    read = spark.read.format("indextables").load(path)
    assert sorted(map(tuple, read.collect())) == contents(path)


def test_what_cannot_be_written_by_key_is_said(spark, path, tmp_path):
    """No key, another key, an unknown mode of Spark's own formats."""
    rows = frame(spark, (1, 1, 1, "x"))
    plain = str(tmp_path / "plain")
    rows.write.format("indextables").save(plain)
    with pytest.raises(errors.SchemaError, match="has none"):
        rows.write.format("indextables").mode("upsert").save(plain)
    with pytest.raises(errors.SchemaError, match="needs a key"):
        rows.write.format("indextables").mode("upsert").save(str(tmp_path / "new"))
    with pytest.raises(errors.ConfigError, match="record key"):
        rows.write.format("indextables").mode("upsert").option("recordKey", "v").save(path)
    with pytest.raises(AnalysisException, match="upsert"):
        rows.write.format("parquet").mode("upsert").save(str(tmp_path / "p"))
    rows.write.format("parquet").mode("upsert").mode("append").save(str(tmp_path / "p"))


def test_a_stream_updates_rows_by_their_key(spark, path, tmp_path):
    """Output mode update: an aggregate's newest row for each key; a batch that is run again is none."""
    source = str(tmp_path / "source")
    counts = "SELECT id, 1 AS day, CAST(count(*) AS INT) AS v, max(name) AS name FROM stream_rows GROUP BY id"

    def run_stream():
        spark.readStream.schema(LAYOUT).parquet(source).createOrReplaceTempView("stream_rows")
        writer = spark.sql(counts).writeStream.format("indextables").outputMode("update")
        query = (
            writer.option("checkpointLocation", str(tmp_path / "c"))
            .trigger(availableNow=True)
            .start(path)
        )
        query.awaitTermination()

    frame(spark, (1, 1, 1, "p"), (8, 1, 1, "q")).write.parquet(source)
    run_stream()
    frame(spark, (8, 1, 1, "r")).write.mode("append").parquet(source)
    run_stream()
    assert contents(path) == [(1, 1, 1, "p"), (2, 1, 20, "b"), (3, 2, 30, "c"), (8, 1, 2, "r")]


def files_in(path):
    """Every data file in the store, whether a commit names it or not."""
    return {str(file) for file in Path(path).rglob("data/**/*.parquet")}


def test_a_write_by_key_that_fails_leaves_no_file_behind(spark, path, tmp_path, monkeypatch):
    """Whether keys occur twice in what was written, or the second of two jobs fails."""
    before = files_in(path)
    twice = frame(spark, (7, 1, 1, "x"), (7, 2, 2, "y"))
    with pytest.raises(errors.DuplicateKeyError):
        twice.write.format("indextables").mode("overwrite").save(path)
    with pytest.raises(errors.DuplicateKeyError):
        new = twice.write.format("indextables").option("recordKey", "id")
        new.save(str(tmp_path / "new"))
    monkeypatch.setattr(SparkChange, "write_bases", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        rows = frame(spark, (2, 1, 21, "B"), (4, 1, 40, "d"))
        rows.write.format("indextables").mode("upsert").save(path)
    assert files_in(path) == before and files_in(tmp_path / "new") == set()


def test_an_upsert_that_was_overtaken_by_a_new_column_leaves_it_null(spark, path):
    """The rows were fitted before the column was there; they are not read again."""
    wider = pa.schema([*SCHEMA, pa.field("more", pa.string())])
    store = InterleavedStore(open_store(path), lambda: Table(path).evolve(wider))
    executor = SparkExecutor(spark, place_of(spark, path))
    upsert(TransactionLog(store), executor, frame(spark, (2, 1, 21, "B"), (9, 1, 90, "i")))
    assert store.happened
    assert contents(path)[1:] == [(2, 1, 21, "B", None), (3, 2, 30, "c", None), (9, 1, 90, "i", None)]


def _texts(count):
    return [f"it's \\ '{i}' é%_" for i in range(count)]


KEY_TYPES = {
    "byte": (pa.int8(), lambda n: list(range(-100, min(n, 200) - 100))),
    "integer": (pa.int32(), lambda n: [i - 500 for i in range(n)]),
    "decimal": (pa.decimal128(20, 3), lambda n: [Decimal(i) / 8 for i in range(n)]),
    "text": (pa.string(), _texts),
    "binary": (pa.binary(), lambda n: [t.encode() for t in _texts(n)]),
    "date": (pa.date32(), lambda n: [dt.date(1582, 9, 1) + dt.timedelta(days=i) for i in range(n)]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        lambda n: [dt.datetime(1899, 12, 31, tzinfo=dt.UTC) + dt.timedelta(hours=i) for i in range(n)],
    ),
    "timestamp_ntz": (
        pa.timestamp("us"),
        lambda n: [dt.datetime(1582, 10, 4) + dt.timedelta(hours=i) for i in range(n)],  # noqa: DTZ001
    ),
}


@pytest.mark.parametrize("count", [5, 1500], ids=["named one by one", "between two"])
@pytest.mark.parametrize("kind", KEY_TYPES)
def test_every_type_of_key_finds_its_rows(spark, tmp_path, kind, count):
    """Whether the condition on files lists the keys, or has the least and the greatest, or says nothing."""
    dtype, values = KEY_TYPES[kind]
    keys = values(count)
    schema = pa.schema([pa.field("k", dtype, nullable=False), ("v", pa.int64())])
    table = Table.create(tmp_path / "t", schema, record_key=["k"])
    for part in (keys[::2], keys[1::2]):
        table.append(pa.table([part, [0] * len(part)], schema=schema))
    new = spark.read.format("indextables").load(table.uri).selectExpr("k", "1L AS v").localCheckpoint()
    table.on(spark).upsert(new)
    metrics = table.history(1)[0].metrics
    assert (metrics["numUpdatedRows"], metrics["numInsertedRows"]) == (len(keys), 0)
    assert table.scan().to_arrow().column("v").to_pylist() == [1] * len(keys)
    assert table.check(deep=True).ok


@pytest.mark.parametrize("count", [5, 1500])
def test_a_key_of_many_columns_finds_its_rows(spark, tmp_path, count):
    """Each column has bounds of its own, and none is taken for another's."""
    names = [f"k{i}" for i in range(6)]
    fields = [pa.field(name, pa.int64(), nullable=False) for name in names]
    schema = pa.schema([*fields, pa.field("v", pa.int64())])
    table = Table.create(tmp_path / "t", schema, record_key=names)
    columns = [[i + 10_000 * at for i in range(count)] for at in range(6)]
    table.append(pa.table([*columns, [0] * count], schema=schema))
    new = spark.read.format("indextables").load(table.uri).selectExpr(*names, "1L AS v")
    table.on(spark).upsert(new.localCheckpoint())
    assert table.history(1)[0].metrics["numUpdatedRows"] == count
    assert table.scan().to_arrow().column("v").to_pylist() == [1] * count
