"""Conditions over functions: Spark reads the same rows as from plain Parquet, from fewer files."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import indextables as it
from indextables.engines.spark.scan.scan_report import our_scans

FILES, ROWS = 12, 8
FORMS = [
    "year(ts) = 2022",
    "month(ts) = 5",
    "date_trunc('MONTH', ts) = timestamp'2022-03-01 00:00:00'",
    "trunc(d, 'MONTH') = date'2022-03-01'",
    "hour(ts) < 3",
    "ts + interval 1 day > timestamp'2022-10-01 00:00:00'",
    "d + interval 1 month > date'2022-10-01'",
    "date_add(d, 3) < date'2022-02-01'",
    "datediff(d, date'2022-10-01') > 3",
    "unix_timestamp(ts) < 1643000000",
    "id + 1 > 1100",
    "try_add(id, 1) > 1100",
    "id * 2 < 50",
    "-id > -50",
    "abs(id - 500) < 30",
    "id % 700 < 30",
    "floor(x) = 100",
    "round(x) = 100",
    "cast(x as int) < 10",
    "cast(id as double) > 1100.5",
    "cast(cast(id as double) as bigint) = 204",
    "coalesce(n, 0) > 300",
    "case when n > 3 then id else 0 end > 1100",
    "if(n is null, id, 0) > 1000",
    "nullif(id, 5) < 20",
    "greatest(id, 3) < 30",
    "least(n, id) > 30",
    "id + n > 1130",
    "lower(s) = 'file3'",
    "upper(s) LIKE 'FILE3%'",
    "s ILIKE 'file3%'",
    "s RLIKE '^File3'",
    "substring(s, 1, 5) = 'File3'",
    "concat('a', s) > 'aFile7'",
    "length(s) = 5 AND id < 30",
    "w + 1.5 > 1100",
    "w * 2 < 30",
    "id > n + 5",
    "id IN (n, 5, 204)",
    "(id, n) IN ((204L, 68), (3L, 4))",
    "(id, n) IN ((204L, 68), (3L, CAST(NULL AS INT)), (3L, 1), "
    + ", ".join(f"({i}L, 5)" for i in range(20))
    + ")",
    "(id, n, s) NOT IN ((204L, 68, 'File2'), (3L, CAST(NULL AS INT), 'File0')) AND id < 30",
    "(id, s) = (304L, 'File3')",
    "(w, d, x) IN ((CAST(3 AS DECIMAL(10,2)), DATE'2022-01-12', 1.5D), (CAST(304 AS DECIMAL(10,2)), DATE'2022-04-04', 152D))",
    "ts + interval 1 month < timestamp'2022-02-20 00:00:00'",
    "ts - interval 1 year > timestamp'2021-12-01 00:00:00'",
    "date_format(ts, 'yyyy-MM') = '2022-03'",
    "date_format(ts, 'E') = 'Mon' AND id < 30",
    "from_unixtime(unix_seconds(ts)) < '2022-01-20'",
    "cast(id as string) = '304'",
    "cast(id as string) LIKE '110%'",
    "cast(d as string) < '2022-02'",
    "cast(ts as string) < '2022-01-20 12'",
    "round(x, 1) = 152.0",
    "w / 3 > 365",
    "w / -7 > -1",
    "NOT (year(ts) = 2022 AND id > 10)",
    "year(ts) <=> 2022 OR n IS NULL",
    "year(ts) IN (2020, 2021, 2023, 2024, 2025, 2026, 2027, 2028, 2029, 2030, 2031, 2032)",
    "cast(s as string) IS NOT NULL AND id < 30",
]
# a part of every day, and what is NULL everywhere
NEVER_PRUNED = {
    "id > n + 5",
    "least(n, id) > 30",
    "hour(ts) < 3",
    "year(ts) = 2022",
    "NOT (year(ts) = 2022 AND id > 10)",
    "year(ts) <=> 2022 OR n IS NULL",
    "if(n is null, id, 0) > 1000",
    "length(s) = 5 AND id < 30",
}
SETTINGS = [("UTC", "true"), ("America/New_York", "false"), ("America/Havana", "true")]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """The same rows as a table and as plain Parquet."""
    rng, folder = random.Random(3), tmp_path_factory.mktemp("functions")
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("n", pa.int32()),
            ("x", pa.float64()),
            ("s", pa.string()),
            ("d", pa.date32()),
        ]
        + [("ts", pa.timestamp("us", "UTC")), ("w", pa.decimal128(10, 2))]
    )
    table = it.Table.create(folder / "table", schema)
    (folder / "plain").mkdir()
    for file in range(FILES):
        start = dt.datetime(2022, 1, 3, tzinfo=dt.UTC) + dt.timedelta(days=30 * file)
        rows = []
        for _ in range(ROWS):
            number, at = (
                file * 100 + rng.randrange(60),
                start + dt.timedelta(seconds=rng.randrange(20 * 86_400)),
            )
            rows.append(
                {
                    "id": number,
                    "n": rng.choice([None, number // 3]),
                    "x": number / 2,
                    "s": f"File{file}",
                    "d": at.date(),
                    "ts": at,
                    "w": number,
                }
            )
        part = pa.Table.from_pylist([{**row, "w": None} for row in rows], schema)
        part = part.set_column(
            6,
            "w",
            pa.array([row["w"] for row in rows]).cast(pa.decimal128(21, 2)).cast(pa.decimal128(10, 2)),
        )
        table.append(part)
        pq.write_table(part, folder / "plain" / f"{file}.parquet")
    return folder


@pytest.mark.parametrize(("zone", "ansi"), SETTINGS)
def test_rows_are_those_of_plain_parquet(spark, configured, places, zone, ansi):
    """In any zone and mode; and what reads no row of a file reads fewer files."""
    configured("spark.sql.session.timeZone", zone)
    configured("spark.sql.ansi.enabled", ansi)
    wrong, kept = [], {}
    ours = spark.read.format("indextables").load(str(places / "table"))
    plain = spark.read.parquet(str(places / "plain"))
    for condition in FORMS:
        found = sorted(map(str, ours.where(condition).collect()))
        if found != sorted(map(str, plain.where(condition).collect())):
            wrong.append(condition)
        kept[condition] = _kept(ours.where(condition))
    assert not wrong
    whole = {condition for condition, files in kept.items() if files == FILES}
    assert whole <= NEVER_PRUNED, (zone, ansi, whole)


def _kept(frame):
    (found,) = [scan.plan().rows for scan in our_scans(frame._jdf.queryExecution().sparkPlan())]
    return int(found.sum())


def test_a_view_keeps_the_mode_and_the_zone_it_was_made_with(spark, configured, places):
    """Its functions are not those of the session that reads it."""
    configured("spark.sql.ansi.enabled", "false")
    ours = spark.read.format("indextables").load(str(places / "table"))
    ours.createOrReplaceTempView("made_without_ansi")
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW doubled AS SELECT *, id * 9000000000000000000 AS y FROM made_without_ansi"
    )
    expected = spark.sql("SELECT count(*) FROM doubled WHERE y < 0").collect()
    configured("spark.sql.ansi.enabled", "true")
    assert spark.sql("SELECT count(*) FROM doubled WHERE y < 0").collect() == expected


def test_a_delete_by_a_function_removes_what_it_removes_from_plain_parquet(spark, places, tmp_path):
    """Whole files and rows of others."""
    import shutil

    for number, condition in enumerate(
        ["year(ts) = 2022 AND month(ts) < 6", "id % 2 = 0", "lower(s) = 'file3'"]
    ):
        path = tmp_path / str(number)
        shutil.copytree(places / "table", path)
        left = (
            spark.read.parquet(str(places / "plain")).where(f"NOT coalesce({condition}, false)").count()
        )
        spark.sql(f"DELETE FROM indextables.`{path}` WHERE {condition}")
        assert spark.read.format("indextables").load(str(path)).count() == left


@pytest.fixture(params=[(), ("id",)], ids=["without a key", "with a key"])
def hundreds(request, tmp_path):
    """A table of four files of ten rows, with the ids from 0, 100, 200 and 300 on."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", pa.string())])
    table = it.Table.create(tmp_path / "t", schema, record_key=request.param)
    for start in range(0, 400, 100):
        ids = list(range(start, start + 10))
        table.append(pa.table({"id": ids, "s": [f"x{i}" for i in ids]}, schema))
    return table


def test_a_delete_by_a_function_does_not_open_a_file_of_which_every_row_matches(spark, hundreds):
    """By the statement's own condition; the file that matches in part is written anew, or gets a delta file."""
    (whole,) = hundreds.plan("id = 205").files
    (folder := Path(hundreds.uri) / whole.path).write_bytes(b"nobody reads this")
    done = spark.sql(f"DELETE FROM indextables.`{hundreds.uri}` WHERE id div 100 = 2 OR id + 1 = 305")
    assert done.collect()[0][0] == 11
    assert folder.exists()
    left = [i for start in (0, 100, 300) for i in range(start, start + 10) if i != 304]
    assert hundreds.scan(columns=["id"]).to_arrow()["id"].to_pylist() == left


def test_a_delete_of_nothing_but_whole_files_opens_none(spark, hundreds):
    """Every row goes, by a function."""
    for split in hundreds.plan().files:
        (Path(hundreds.uri) / split.path).write_bytes(b"")
    done = spark.sql(f"DELETE FROM indextables.`{hundreds.uri}` WHERE abs(id) >= 0")
    assert done.collect()[0][0] == 40
    assert hundreds.count() == 0


@pytest.mark.parametrize(
    "condition", ["CAST(s AS INT) = 3 OR id >= 0", "1 / (id - 205) > 5 OR id + 1 > 0"]
)
def test_no_file_goes_unseen_where_a_part_of_the_condition_may_raise(
    spark, configured, hundreds, condition
):
    """The DELETE raises as it would over plain Parquet, and no row is gone."""
    configured("spark.sql.ansi.enabled", "true")
    with pytest.raises((PySparkException, Py4JJavaError)):
        spark.sql(f"DELETE FROM indextables.`{hundreds.uri}` WHERE {condition}")
    assert hundreds.count() == 40


def test_a_setting_says_whether_a_possible_error_alone_keeps_a_file(spark, configured, hundreds):
    """By default a query raises as over plain Parquet; with the setting off, the files that only raise are skipped."""
    configured("spark.sql.ansi.enabled", "true")
    frame = spark.read.format("indextables").load(hundreds.uri)
    condition = "id + 9223372036854775600 = 9223372036854775601 AND id < 400"
    with pytest.raises((PySparkException, Py4JJavaError)):
        frame.where(condition).collect()
    spark.conf.set("spark.indextables.read.keepErrors", "false")
    try:
        assert [row.id for row in frame.where(condition).collect()] == [1]
    finally:
        spark.conf.unset("spark.indextables.read.keepErrors")


def test_a_function_of_a_column_without_any_bounds_keeps_every_file(spark, tmp_path):
    """An empty table, and one whose column is NULL everywhere, have no place where values are."""
    table = it.Table.create(tmp_path / "t", pa.schema([("ts", pa.timestamp("us", "UTC"))]))
    frame = spark.read.format("indextables")
    assert frame.load(table.uri).where("hour(ts) = 5").count() == 0
    table.append(pa.table({"ts": pa.array([None, None], pa.timestamp("us", "UTC"))}))
    assert frame.load(table.uri).where("hour(ts) = 5").count() == 0
    assert table.scan("hour(ts) = 5").to_arrow().num_rows == 0


def test_the_report_of_a_scan_says_which_function_kept_files_and_what_would_help(spark, places):
    """One that is known and has no order, and one that only Spark knows."""
    frame = spark.read.format("indextables").load(str(places / "table"))
    found = {}
    for condition in ("length(s) = 5", "soundex(s) = 'F400'"):
        plan = frame.where(f"id > 5 AND {condition}")._jdf.queryExecution().sparkPlan()
        (scan,) = our_scans(plan)
        found |= scan.plan().report.opaque
    assert len(found) == 2
    for why, name in zip(found.values(), ("length", "soundex"), strict=True):
        assert name in why
        assert "a condition on s beside it, or a column that holds its result, skips files" in why
