"""Conditions over functions: Spark reads the same rows as from plain Parquet, from fewer files."""

from __future__ import annotations

import datetime as dt
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
    "NOT (year(ts) = 2022 AND id > 10)",
    "year(ts) <=> 2022 OR n IS NULL",
    "year(ts) IN (2020, 2021, 2023, 2024, 2025, 2026, 2027, 2028, 2029, 2030, 2031, 2032)",
    "cast(s as string) IS NOT NULL AND id < 30",
]
# a part of every day, and what is NULL everywhere
NEVER_PRUNED = {
    "id > n + 5",
    "least(n, id) > 30",
    "(id, n) IN ((204L, 68), (3L, 4))",
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
