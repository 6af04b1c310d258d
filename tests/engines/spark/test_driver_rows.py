"""Writes by key: which rows come to this process, and on whose side the work is done."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.classic.dataframe import DataFrame

import indextables as it
from indextables.errors import PredicateError

DRIVER_ROWS = "spark.indextables.change.driverRows"
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("p", pa.string())])


def rows(ids, v="old"):
    ids = list(ids)
    return pa.table([ids, [v] * len(ids), [f"p{i % 3}" for i in ids]], schema=SCHEMA)


@pytest.fixture
def table(tmp_path):
    """4,000 rows by id, in two slices for each of three partitions."""
    table = it.Table.create(str(tmp_path / "t"), SCHEMA, partition_by=["p"], record_key=["id"])
    table.append(rows(range(2000)))
    table.append(rows(range(2000, 4000)))
    return table


@pytest.fixture
def fetched(monkeypatch):
    """What every call that brings rows of a DataFrame to Python brought."""
    found = []

    def watch(name):
        original = getattr(DataFrame, name)

        def call(self, *arguments, **options):
            answer = original(self, *arguments, **options)
            found.append(answer.to_pylist() if isinstance(answer, pa.Table) else list(answer))
            return answer

        monkeypatch.setattr(DataFrame, name, call)

    for name in ("collect", "toArrow", "toLocalIterator", "toPandas"):
        watch(name)
    return found


def new_rows(spark, ids):
    return spark.createDataFrame([(i, "new", f"p{i % 3}") for i in ids], "id long, v string, p string")


WAYS = {
    "upsert": lambda spark, t: t.on(spark).upsert(new_rows(spark, range(1000, 5000))),
    "append": lambda spark, t: t.on(spark).append(new_rows(spark, range(1000, 5000))),
    "overwrite": lambda spark, t: t.on(spark).overwrite(new_rows(spark, range(0, 3000, 3)), "p = 'p0'"),
    "delete": lambda spark, t: t.on(spark).delete("id > 100"),
    "mode": lambda spark, t: new_rows(spark, range(1000, 5000))
    .write.format("indextables").mode("upsert").save(t.uri),
    "sql delete": lambda spark, t: spark.sql(f"DELETE FROM indextables.`{t.uri}` WHERE id > 100"),
    "sql update": lambda spark, t: spark.sql(f"UPDATE indextables.`{t.uri}` SET v = 'u' WHERE id > 9"),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_no_row_of_a_write_by_key_comes_to_this_process(spark, table, fetched, way):
    """By default not one: only an answer of a single row, such as a count, is fetched at a time."""
    WAYS[way](spark, table)
    assert max(map(len, fetched), default=0) <= 1
    assert not any("new" in str(answer) or "old" in str(answer) for answer in fetched)
    assert table.check(deep=True).ok


def test_of_a_few_rows_the_keys_alone_are_fetched(spark, table, fetched):
    """They are a list in one row, and say which files may have them."""
    table.on(spark).upsert(new_rows(spark, [5, 6, 9999]))
    assert [len(answer) for answer in fetched] == [1]
    assert "new" not in str(fetched)
    metrics = table.history(1)[0].metrics
    assert (metrics["numUpdatedRows"], metrics["numInsertedRows"]) == (2, 1)


@pytest.mark.parametrize("way", ["upsert", "append", "overwrite"])
def test_both_sides_write_the_same_rows_by_key(spark, tmp_path, way):
    """In this process up to as many rows as the option allows, on the executors beyond."""
    answers = []
    for limit in (0, 3999, 4000):
        table = it.Table.create(
            str(tmp_path / str(limit)), SCHEMA, partition_by=["p"], record_key=["id"]
        )
        table.append(rows(range(2000)))
        WAYS[way](spark, it.Table(table.uri, options={DRIVER_ROWS: limit}))
        found = table.scan().to_arrow().sort_by("id").to_pylist()
        metrics = table.history(1)[0].metrics
        counts = {
            n: metrics[n]
            for n in ("numOutputRows", "numTouchedGroups", "numRemovedFiles")
            if n in metrics
        }
        answers.append((found, counts))
    assert answers[0] == answers[1] == answers[2]


def test_a_small_write_is_one_small_job_where_the_option_allows_it(spark, table):
    """The rows are computed and fetched; finding and writing takes no job of Spark's."""
    small = it.Table(table.uri, options={DRIVER_ROWS: 10}).on(spark)
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    frame = new_rows(spark, [1, 2, 7000])
    before = scheduler.nextJobId()
    small.upsert(frame)
    assert scheduler.nextJobId() - before <= 4
    found = table.scan("id IN (1, 2, 7000)").to_arrow().column("v").to_pylist()
    assert found == ["new", "new", "new"]


def test_a_frame_that_never_answers_the_same_way_is_read_once_on_either_side(spark, table):
    """Rows that were counted are the rows that are placed, and those that are written."""
    name = "concat(uuid(), '') AS v"
    frame = spark.range(100).selectExpr("id * 1000 + floor(rand() * 1000) AS id", name, "'p0' AS p")
    for limit in (0, 1000):
        before = table.scan().to_arrow().num_rows
        result = it.Table(table.uri, options={DRIVER_ROWS: limit}).on(spark).upsert(frame)
        after = table.scan().to_arrow()
        assert after.num_rows - before == result.metrics["numInsertedRows"]
        assert result.metrics["numOutputRows"] == 100
        assert table.check(deep=True).ok


@pytest.mark.parametrize("limit", [0, 100])
@pytest.mark.parametrize("way", ["upsert", "overwrite"])
def test_keys_are_compared_as_the_table_has_them_whatever_the_collation_of_the_data(
    spark, tmp_path, limit, way
):
    """To a collation 'A' and 'a' may be one key; to the table they are two."""
    schema = pa.schema([pa.field("k", pa.string(), nullable=False), ("v", pa.string())])
    uri = it.Table.create(str(tmp_path / "t"), schema, record_key=["k"]).uri
    table = it.Table(uri, options={DRIVER_ROWS: limit})
    table.append(pa.table([["a", "b"], ["old", "old"]], schema=schema))
    values = "VALUES ('A', 'new A'), ('a', 'new a') AS s(k, v)"
    frame = spark.sql(f"SELECT k COLLATE UTF8_LCASE AS k, v FROM {values}")
    writes = {
        "upsert": lambda: table.on(spark).upsert(frame),
        "overwrite": lambda: table.on(spark).overwrite(frame, "k IN ('a', 'A')"),
    }
    writes[way]()
    found = table.scan().to_arrow().sort_by("k").to_pylist()
    assert [(row["k"], row["v"]) for row in found] == [("A", "new A"), ("a", "new a"), ("b", "old")]
    if way == "overwrite":
        with pytest.raises(PredicateError):
            table.on(spark).overwrite(frame, "k = 'a'")
