"""Reading a table in Spark: the rows, the splits that are skipped, and the version that is seen."""

from __future__ import annotations

import datetime as dt
import gc
import json
import threading
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf
from support.spark_tables import days, write_table

from indextables.core.types import schema_to_json
from indextables.engines.spark.jvm import gateway
from indextables.engines.spark.scan.file_index import find_scan, known_scans, register
from indextables.engines.spark.scan.scan_report import last_scan, reads_table
from indextables.errors import (
    ConfigError,
    IndexTablesError,
    LogCorruptedError,
    NotATableError,
    SchemaError,
    StorageError,
    TableNotFoundError,
    VersionNotFoundError,
)
from indextables.table.table import Table


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A thousand rows in ten splits, by id."""
    path = tmp_path_factory.mktemp("plain") / "t"
    write_table(path, days(), splits=10)
    return str(path)


@pytest.fixture(scope="module")
def partitioned(tmp_path_factory):
    """The same rows, one partition per day, several splits in each."""
    path = tmp_path_factory.mktemp("parts") / "t"
    write_table(path, days(), splits=30, partition_by=["day"])
    return str(path)


def load(spark, path, **options):
    return spark.read.format("indextables").options(**options).load(path)


def ids(frame):
    return sorted(row.id for row in frame.select("id").collect())


def plan_text(frame):
    return frame._jdf.queryExecution().executedPlan().toString()


# --- the scan


def test_all_rows_come_back_in_the_tables_columns(spark, partitioned):
    """Columns keep the table's order even if one of them is a partition column in the middle."""
    frame = load(spark, partitioned)
    assert frame.columns == ["id", "day", "name", "score", "price", "st"]
    found = frame.orderBy("id").toArrow()
    assert found.drop_columns("st").to_pylist() == days().drop_columns("st").to_pylist()


def test_the_plan_is_a_native_vectorised_parquet_scan(spark, table):
    """Spark's own reader does the work: batches, few columns, filters in the row groups."""
    text = plan_text(load(spark, table).where("id > 990 AND score IS NOT NULL").select("name"))
    assert "FileScan parquet" in text
    assert "Batched: true" in text
    assert "ReadSchema: struct<id:bigint,name:string,score:double>" in text
    pushed = text.partition("PushedFilters: [")[2].partition("]")[0].split(", ")
    assert sorted(pushed) == ["GreaterThan(id,990)", "IsNotNull(id)", "IsNotNull(score)"]
    assert f"IndexTables[{table}] v10, 10 splits" in text


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("id = 5", 1),
        ("id = 5 OR id = 995", 2),
        ("id IN (5, 205, 405)", 3),
        ("id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)", 1),
        ("id NOT BETWEEN 100 AND 899", 2),
        ("name LIKE 'k009%'", 1),
        ("name >= 'k00950'", 1),
        ("price > 200.25", 2),
        ("day = DATE'2024-01-03'", 1),
        ("year(day) = 2024", 10),
        ("year(day) = 2024 AND id < 100", 1),
        ("st.a = 555", 1),
        ("st.a = 555 AND st.b = 'b5'", 1),
        ("score IS NULL AND id >= 900", 1),
        ("id < 0", 0),
        ("length(name) = 6", 10),
    ],
)
def test_splits_without_matching_rows_are_not_read(spark, table, condition, kept):
    """The rows are those of a scan over everything, and the report says what was skipped."""
    frame = load(spark, table).where(condition)
    everything = spark.createDataFrame(days().select(["id", "day", "name", "score", "price", "st"]))
    assert ids(frame) == ids(everything.where(condition))
    found = last_scan(frame)
    assert found.kept_files == kept
    assert found.skipped_files == 10 - kept


def test_a_skipped_split_is_never_opened(spark, tmp_path):
    """Every other file is gone, and a query that needs one split still runs."""
    table = write_table(tmp_path / "t", days(), splits=10)
    wanted = {split.path for split in table.plan("id = 555").files}
    for file in (tmp_path / "t" / "data").rglob("*.parquet"):
        if str(file.relative_to(tmp_path / "t")) not in wanted:
            file.unlink()
    assert load(spark, str(tmp_path / "t")).where("id = 555").count() == 1


def test_a_column_is_found_in_any_case(spark, table):
    """Spark hands over the table's spelling, whatever the query writes."""
    frame = load(spark, table).where("ID = 5 AND St.A = 5")
    assert last_scan(frame).kept_files == 1
    assert frame.count() == 1


def test_a_filter_on_file_metadata_is_not_one_on_a_column_of_that_name(spark, tmp_path):
    """`_metadata.file_size` arrives as an attribute called file_size; the table may have one too."""
    data = pa.table({"file_size": [1, 2, 3], "file_name": ["x", "y", "z"]})
    write_table(tmp_path / "t", data, splits=3)
    frame = load(spark, str(tmp_path / "t"))
    assert frame.where("_metadata.file_size > 100").count() == 3
    assert frame.where("_metadata.file_size > 100 AND file_size = 2").count() == 1
    assert frame.where("_metadata.file_name LIKE '%.parquet'").count() == 3
    paths = [row[0] for row in frame.select("_metadata.file_path").distinct().collect()]
    assert len(paths) == 3


@pytest.mark.parametrize("name", ["with space", "ünï", "per%20cent", "a=b", "plus+", "q?h#", "x'y"])
def test_odd_names_of_directories_work(spark, tmp_path, name):
    """Real names go to Hadoop as they are; it encodes them itself."""
    data = pa.table({"id": [1, 2], "p": ["a b", "c/d%3A=ü"]})
    write_table(tmp_path / name, data, splits=2, partition_by=["p"])
    frame = load(spark, str(tmp_path / name))
    assert sorted(tuple(row) for row in frame.collect()) == [(1, "a b"), (2, "c/d%3A=ü")]
    assert frame.where("p LIKE 'c/%'").count() == 1


def test_a_relative_path_and_a_file_uri_are_the_same_table(spark, table, monkeypatch):
    """A path without a scheme belongs to the default file system, from the working directory."""
    monkeypatch.chdir(Path(table).parent)
    assert load(spark, "t").count() == 1000
    assert load(spark, f"file://{table}/").count() == 1000
    assert load(spark, f"file:{table}").where("id = 3").count() == 1


def test_an_empty_table_has_no_rows_and_its_columns(spark, tmp_path):
    """A table without a single split is planned like any other."""
    Table.create(str(tmp_path / "t"), days().schema, partition_by=["day"])
    frame = load(spark, str(tmp_path / "t"))
    assert frame.count() == 0
    assert frame.where("day = DATE'2024-01-01' AND id > 5").collect() == []
    assert frame.agg({"id": "max"}).collect()[0][0] is None


# --- partitions


def test_partition_filters_are_exact(spark, partitioned):
    """Spark does not check them again, so each must remove exactly its rows."""
    everything = spark.createDataFrame(days())
    for condition in (
        "day = DATE'2024-01-03'",
        "day <> DATE'2024-01-03'",
        "day IN (DATE'2024-01-01', DATE'2024-01-09', NULL)",
        "NOT (day IN (DATE'2024-01-01', DATE'2024-01-09'))",
        "dayofmonth(day) % 2 = 0",
        "CASE WHEN day > DATE'2024-01-05' THEN true ELSE false END",
        "CAST(day AS STRING) LIKE '%-03'",
        "day + INTERVAL 1 DAY = DATE'2024-01-03'",
        "day IS NULL",
        "day <=> NULL",
        "day = DATE'2024-01-03' OR id = 7",
        "day > DATE'2024-01-08' AND id % 2 = 1 AND month(day) = 1",
    ):
        assert ids(load(spark, partitioned).where(condition)) == ids(everything.where(condition)), (
            condition
        )


PARTITIONS = [
    (pa.bool_(), [True, False, None]),
    (pa.int8(), [-128, 0, 127, None]),
    (pa.int32(), [-(2**31), 3, None]),
    (pa.int64(), [-(2**63), 3, 2**63 - 1, None]),
    (pa.float32(), [1.5, float("nan"), float("inf"), None]),
    (pa.float64(), [0.1, float("nan"), float("-inf"), None]),
    (pa.decimal128(20, 4), [Decimal("-12345678.9012"), None]),
    (pa.string(), ["a", "A b", "ü/%=", "NULL", "__x", None]),
    (pa.binary(), [b"\x00\xff", b"a", None]),
    (pa.date32(), [dt.date(1500, 3, 1), dt.date(2024, 2, 29), None]),
    (pa.timestamp("us", "UTC"), [dt.datetime(2024, 3, 31, 1, 30, 0, 123456, dt.UTC), None]),
    (pa.timestamp("us"), [dt.datetime(1600, 1, 1, 1, 2, 3), dt.datetime(2024, 1, 1), None]),
]


@pytest.mark.parametrize(("kind", "values"), PARTITIONS, ids=[str(kind) for kind, _ in PARTITIONS])
def test_every_type_is_a_partition_column(spark, tmp_path, kind, values):
    """The values come back typed, NULL and NaN too, and a filter finds each of them."""
    data = pa.table({"id": range(len(values)), "p": pa.array(values, kind)})
    write_table(tmp_path / "t", data, partition_by=["p"])
    frame = load(spark, str(tmp_path / "t"))
    found = frame.orderBy("id").toArrow()
    assert str(found["p"].to_pylist()) == str(data["p"].to_pylist())
    everything = spark.createDataFrame(data)
    for row in everything.collect():
        wanted = sf.col("p").eqNullSafe(sf.lit(row.p).cast(frame.schema["p"].dataType))
        assert ids(frame.where(wanted)) == ids(everything.where(wanted)), row
    assert frame.select("p").distinct().count() == everything.select("p").distinct().count()


def test_two_partition_columns_of_two_types(spark, tmp_path):
    """Groups are by all columns together; filters on either and on both are exact."""
    data = pa.table(
        {"id": range(12), "a": [i % 3 for i in range(12)], "b": [f"x{i % 4}" for i in range(12)]}
    )
    write_table(tmp_path / "t", data, splits=2, partition_by=["b", "a"])
    frame = load(spark, str(tmp_path / "t"))
    everything = spark.createDataFrame(data)
    for condition in (
        "a = 1",
        "b = 'x2'",
        "a = 1 AND b = 'x2'",
        "a = 1 OR b = 'x2'",
        "concat(b, a) = 'x21'",
        "id > 5 AND a < 2",
    ):
        assert ids(frame.where(condition)) == ids(everything.where(condition)), condition
    assert frame.groupBy("b", "a").count().count() == 12


def test_a_filter_that_is_a_constant_is_a_partition_filter_too(spark, partitioned):
    """Regression: `b <> b` is NULL or FALSE, and what Spark made of it named no column at all."""
    load(spark, partitioned).createOrReplaceTempView("constant_filter")
    never = "SELECT * FROM constant_filter WHERE name <> name AND score IS NULL"
    left = spark.sql(
        f"SELECT a.id FROM constant_filter a LEFT JOIN ({never}) b ON a.id = b.id WHERE b.id IS NULL"
    )
    assert left.count() == 1000
    column = spark.range(1).select(sf.expr("1 = 2"))._jdf.queryExecution().analyzed().expressions()
    (scan,) = (s for s in known_scans() if s.location == partitioned)
    filters = gateway.jvm_tools().seq([column.apply(0).child()])
    assert not scan.plan(filters, gateway.jvm_tools().seq([])).rows.any()


def test_dynamic_partition_pruning_reads_only_the_joined_partitions(spark, partitioned):
    """The scan has a filter that waits for the other side of the join."""
    wanted = spark.createDataFrame(
        [(dt.date(2024, 1, 2), "x"), (dt.date(2024, 1, 5), "y")], "day DATE, tag STRING"
    )
    spark.conf.set("spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly", "false")
    try:
        joined = load(spark, partitioned).join(wanted.where("tag = 'x'"), "day")
        assert "dynamicpruning" in plan_text(joined)
        assert ids(joined) == list(range(100, 200))
    finally:
        spark.conf.unset("spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly")


def test_a_scalar_subquery_on_a_partition_column_is_right(spark, partitioned):
    """Such a filter has no value while the files are listed; Spark applies it later."""
    frame = load(spark, partitioned)
    frame.createOrReplaceTempView("parts")
    found = spark.sql("SELECT id FROM parts WHERE day = (SELECT max(day) FROM parts)")
    assert ids(found) == list(range(900, 1000))
    assert last_scan(found).total_files == 2 * Table(partitioned).snapshot().num_files


def test_an_unreadable_partition_value_is_one_clear_error(spark, tmp_path):
    """A log that says 'soon' where a date belongs never becomes NULL rows; the error is ours, not the JVM's."""
    table = write_table(tmp_path / "t", days(200), partition_by=["day"])
    add = {"path": "data/a.parquet", "partitionValues": {"day": "soon"}, "size": 1, "dataChange": True}
    _replace_log(table, ["day"], [add])
    with pytest.raises(LogCorruptedError, match="partition value 'soon'"):
        load(spark, str(tmp_path / "t")).where("day = DATE'2024-01-01'").count()


def _replace_log(table, partition_by, adds):
    """The log of another writer: one commit, no trailer."""
    actions = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 1}},
        {
            "metaData": {
                "id": "x",
                "schemaString": schema_to_json(table.schema),
                "partitionColumns": partition_by,
            }
        },
        *({"add": add} for add in adds),
    ]
    log = Path(table.uri) / "_transaction_log"
    for file in log.glob("*"):
        file.unlink()
    (log / "000000000000000000.json").write_text("\n".join(map(json.dumps, actions)) + "\n")


# --- schema


def test_files_older_than_a_column_read_as_null(spark, tmp_path):
    """A new column is NULL in old splits, a widened one keeps its values, and both prune."""
    path = str(tmp_path / "t")
    table = write_table(path, pa.table({"id": pa.array([1, 2], pa.int32())}))
    wider = pa.table({"id": pa.array([2**40, 4], pa.int64()), "z": ["a", None]})
    table.append(wider, merge_schema=True)
    frame = load(spark, path)
    assert frame.schema.simpleString() == "struct<id:bigint,z:string>"
    assert sorted(map(str, (tuple(r) for r in frame.collect()))) == sorted(
        map(str, [(1, None), (2, None), (2**40, "a"), (4, None)])
    )
    assert ids(frame.where("z IS NULL")) == [1, 2, 4]
    assert ids(frame.where("z IS NOT NULL")) == [2**40]
    assert ids(frame.where("id > 3000000000")) == [2**40]
    assert last_scan(frame.where("z = 'a'")).kept_files == 1


def test_a_column_that_cannot_be_null_may_still_be_asked(spark, tmp_path):
    """Spark must not fold IS NULL away: a split may be older than the column."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    table = Table.create(str(tmp_path / "t"), schema)
    table.append(pa.table({"id": [1, 2]}, schema=schema))
    frame = load(spark, str(tmp_path / "t"))
    assert frame.schema["id"].nullable
    assert frame.where("id IS NULL").count() == 0


# --- versions


def test_a_frame_is_pinned_and_a_new_load_sees_new_rows(spark, tmp_path):
    """Later commits change neither rows nor plans of a DataFrame that is already there."""
    path = str(tmp_path / "t")
    table = write_table(path, days(100))
    before = load(spark, path)
    filtered = before.where("id >= 50")
    assert before.count() == 100
    table.append(days(300).slice(100))
    assert (before.count(), filtered.count()) == (100, 50)
    assert load(spark, path).count() == 300
    table.delete("id < 150")
    assert (before.count(), load(spark, path).count()) == (100, 150)
    assert load(spark, path).join(before, "id", "left_anti").count() == 150


def test_time_travel_by_version_and_by_time(spark, tmp_path):
    """versionAsOf and timestampAsOf, in the session's zone; outside of history is an error."""
    path = str(tmp_path / "t")
    table = write_table(path, days(300), splits=3)
    history = {entry.version: entry.timestamp_ms for entry in table.history()}
    assert [load(spark, path, versionAsOf=v).count() for v in range(4)] == [0, 100, 200, 300]
    moment = dt.datetime.fromtimestamp(history[2] / 1000, dt.UTC)
    assert load(spark, path, timestampAsOf=moment.isoformat(" ")).count() == 200
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        local = moment.astimezone(ZoneInfo("America/New_York")).replace(tzinfo=None)
        assert load(spark, path, timestampAsOf=str(local)).count() == 200
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    with pytest.raises(VersionNotFoundError):
        load(spark, path, versionAsOf=99)
    with pytest.raises(VersionNotFoundError):
        load(spark, path, timestampAsOf="2001-01-01")
    with pytest.raises(ConfigError, match="exclude each other"):
        load(spark, path, versionAsOf=1, timestampAsOf="2024-01-01")


# --- more than one use


def test_self_joins_subqueries_and_reuse_give_right_rows(spark, table):
    """One relation is scanned with different filters in one query."""
    frame = load(spark, table)
    left, right = frame.where("id < 100").alias("l"), frame.where("id BETWEEN 50 AND 149").alias("r")
    joined = left.join(right, left["id"] == right["id"])
    assert joined.count() == 50
    assert [scan.report.kept_files for scan in last_scan(joined).scans] == [1, 1]
    counts = [
        frame.count(),
        frame.where("id = 3").count(),
        frame.count(),
        frame.where("id > 3").count(),
    ]
    assert counts == [1000, 1, 1000, 996]


def test_equal_scans_share_their_exchange(spark, table):
    """Two loads of one version are equal for Spark: it shuffles once."""
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        left = load(spark, table).groupBy("name").count()
        right = load(spark, table).groupBy("name").count()
        assert "ReusedExchange" in plan_text(left.join(right, "name"))
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
        spark.conf.unset("spark.sql.adaptive.enabled")


def test_a_cached_frame_answers_for_an_equal_one_only(spark, tmp_path):
    """The cache is found by another load of the same version, and not by a newer one."""
    path = str(tmp_path / "t")
    table = write_table(path, days(100))
    cached = load(spark, path).cache()
    try:
        assert cached.count() == 100
        assert "InMemoryTableScan" in plan_text(load(spark, path).select("id"))
        table.append(days(200).slice(100))
        newer = load(spark, path)
        assert "InMemoryTableScan" not in plan_text(newer)
        assert (cached.count(), newer.count()) == (100, 200)
    finally:
        cached.unpersist()


def test_a_small_table_is_broadcast_and_a_large_one_is_not(spark, table):
    """Spark knows the size of the files."""
    frame = load(spark, table)
    size = frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()
    assert size == Table(table).snapshot().total_bytes
    big = spark.range(10_000_000)
    assert "BroadcastHashJoin" in plan_text(big.join(frame, "id"))
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "1000")
    try:
        assert "BroadcastHashJoin" not in plan_text(big.join(frame, "id"))
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_eight_threads_plan_and_run_at_once(spark, table, partitioned):
    """Each query gets its own splits, whoever else is planning."""
    plain, parts = load(spark, table), load(spark, partitioned)
    wrong: list[object] = []

    def work(seed: int) -> None:
        try:
            for i in range(3):
                low = (seed * 97 + i * 31) % 900
                day = dt.date(2024, 1, 1) + dt.timedelta(days=seed % 10)
                if ids(plain.where(f"id BETWEEN {low} AND {low + 20}")) != list(range(low, low + 21)):
                    wrong.append(low)
                if parts.where(f"day = DATE'{day}'").count() != 100:
                    wrong.append(day)
        except Exception as e:
            wrong.append(e)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_new_session_of_the_same_application_reads_too(spark, table):
    """Patches are per class, so every session of the process has them."""
    other = spark.newSession()
    assert load(other, table).where("id < 10").count() == 10


# --- what is wrong is said once


@pytest.mark.parametrize(
    "name", ["indextables", "IndexTables", "io.indextables.spark.core.IndexTables4SparkTableProvider"]
)
def test_every_name_of_the_format_works(spark, table, name):
    """The short name and the long one of the JVM implementation, in any case."""
    assert spark.read.format(name).load(table).where("id = 1").count() == 1
    assert spark.read.load(table, format=name, where="id = 1").count() == 1
    assert spark.read.format(name).option("path", table).load().count() == 1000


def test_other_formats_go_to_spark_untouched(spark, tmp_path):
    """Every form of the call works as before for formats that are not ours."""
    path = str(tmp_path / "p")
    spark.range(5).write.parquet(path)
    assert spark.read.load(path).count() == 5
    assert spark.read.format("parquet").schema("id BIGINT").load([path]).count() == 5
    assert spark.read.parquet(path).count() == 5


ERRORS = [
    ({"path": "/nowhere/at/all"}, TableNotFoundError, "no table at"),
    ({"path": "memory://x"}, StorageError, "only in this Python process"),
    ({"path": ""}, ConfigError, "empty"),
    ({"versionAsOf": "new"}, ConfigError, "versionAsOf cannot be 'new'"),
    ({"timestampAsOf": "soon"}, ConfigError, "timestampAsOf cannot be 'soon'"),
    ({"versonAsOf": "1"}, ConfigError, "no option 'versonAsOf'"),
    ({"spark.indextables.checkpoint.interval": "often"}, ConfigError, "cannot be 'often'"),
]


@pytest.mark.parametrize(("options", "kind", "text"), ERRORS, ids=[str(case[0]) for case in ERRORS])
def test_wrong_input_is_one_clear_error(spark, table, options, kind, text):
    """Never a stack trace of the JVM."""
    given = {"path": table, **options}
    with pytest.raises(kind, match=text):
        spark.read.format("indextables").options(**given).load().count()


def test_a_directory_of_something_else_is_not_a_table(spark, tmp_path):
    """The error says what is there and how to adopt it."""
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(NotATableError):
        load(spark, str(tmp_path))


def test_a_schema_or_several_paths_are_refused(spark, table):
    """A table has one path and its own schema."""
    with pytest.raises(SchemaError, match="its own schema"):
        spark.read.format("indextables").schema("id INT").load(table)
    with pytest.raises(ConfigError, match="one path, not 2"):
        spark.read.format("indextables").load([table, table])
    with pytest.raises(ConfigError, match="one path, not 0"):
        spark.read.format("indextables").load()


def test_a_forked_child_is_told_not_to_use_the_session(spark, monkeypatch):
    """Its calls would take answers meant for the parent."""
    monkeypatch.setattr(gateway.os, "getpid", lambda: -1)
    with pytest.raises(IndexTablesError, match="forked"):
        gateway.jvm_tools()


def test_a_scan_is_known_after_another_of_the_same_version_is_gone(spark, table):
    """A write asks by it whether its rows come from the table itself, whatever was read in between."""
    frame = load(spark, table)
    identity = frame._jdf.queryExecution().analyzed().relation().location().toString()
    register(replace(find_scan(identity)))
    gc.collect()
    assert find_scan(identity) is not None
    assert reads_table(frame, find_scan(identity).root)


def test_last_scan_needs_a_frame(spark):
    """Anything else is named in the error."""
    with pytest.raises(IndexTablesError, match="not int"):
        last_scan(3)
    assert last_scan(spark.range(3)).scans == ()


def test_a_log_without_file_sizes_is_read(spark, tmp_path):
    """Logs of other writers may lack a size; Hadoop knows it."""
    table = write_table(tmp_path / "t", days(200), splits=2)
    log = tmp_path / "t" / "_transaction_log"
    lines = [
        json.loads(line)
        for file in sorted(log.glob("0*.json"))
        for line in file.read_text().splitlines()
    ]
    adds = [{k: v for k, v in line["add"].items() if k != "size"} for line in lines if "add" in line]
    _replace_log(table, [], adds)
    frame = load(spark, str(tmp_path / "t"))
    assert frame.count() == 200
    assert last_scan(frame.where("id = 3")).kept_files == 1
