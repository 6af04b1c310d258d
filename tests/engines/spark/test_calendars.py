"""Dates and times before 1900: the calendar of files, of sessions, and of Spark's filters inside files."""

from __future__ import annotations

import datetime as dt
import glob

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from support.spark_tables import write_table

import indextables as it
from indextables import errors
from indextables.engines.spark.scan.file_list import UNFILTERED

WRITE = "spark.sql.parquet.datetimeRebaseModeInWrite"
INT96 = "spark.sql.parquet.int96RebaseModeInWrite"
READ = "spark.sql.parquet.datetimeRebaseModeInRead"
OLD = pa.table(
    {
        "k": pa.array(range(4), pa.int64()),
        "d": [dt.date(1200, 1, 1), dt.date(1500, 6, 1), dt.date(1700, 1, 1), dt.date(2020, 1, 1)],
        "t": [dt.datetime(y, 7, 1, 12, tzinfo=dt.UTC) for y in (1200, 1500, 1899, 2020)],
    },
    pa.schema([("k", pa.int64()), ("d", pa.date32()), ("t", pa.timestamp("us", "UTC"))]),
)
# (condition, the keys of its rows)
CONDITIONS = {
    "d = DATE'1500-06-01'": [1],
    "d < DATE'1200-01-01'": [],
    "d <= DATE'1200-01-01'": [0],
    "d > DATE'1200-01-03' AND d < DATE'1500-06-02'": [1],
    "d >= DATE'1700-01-01'": [2, 3],
    "t = TIMESTAMP'1500-07-01 12:00:00'": [1],
    "t < TIMESTAMP'1200-07-01 12:00:00'": [],
    "t BETWEEN TIMESTAMP'1899-07-01 12:00:00' AND TIMESTAMP'1899-07-01 12:00:00'": [2],
}


def found(frame):
    """The keys of the rows of each condition, in one job."""
    parts = [frame.where(c).selectExpr(f"{i} AS number", "k") for i, c in enumerate(CONDITIONS)]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionAll(part)
    rows = {condition: [] for condition in CONDITIONS}
    for number, k in whole.collect():
        rows[list(CONDITIONS)[number]].append(k)
    return {condition: sorted(keys) for condition, keys in rows.items()}


def load(spark, path):
    return spark.read.format("indextables").load(str(path))


@pytest.mark.parametrize("setting", ["LEGACY", "EXCEPTION", "legacy"])
def test_a_session_set_to_another_calendar_writes_tables_in_the_common_one(
    spark, tmp_path, configured, setting
):
    """Every engine reads the rows as they were given, by bounds that are theirs; the setting stays."""
    configured(WRITE, setting)
    configured(INT96, "LEGACY")
    frame = spark.createDataFrame(OLD).repartitionByRange(4, "k")
    frame.write.format("indextables").save(str(tmp_path / "t"))
    assert found(load(spark, tmp_path / "t")) == CONDITIONS
    spark.sql(f"UPDATE indextables.`{tmp_path / 't'}` SET k = k WHERE k < 2")
    spark.sql(f"DELETE FROM indextables.`{tmp_path / 't'}` WHERE d < DATE'1200-01-01' OR k = 3")
    left = it.Table(tmp_path / "t").scan().to_arrow().sort_by("k")
    assert left.to_pylist() == OLD.slice(0, 3).to_pylist()
    assert it.Table(tmp_path / "t").scan("d = DATE '1500-06-01'").to_arrow()["k"].to_pylist() == [1]
    assert spark.conf.get(WRITE) == setting


@pytest.fixture
def julian(spark, tmp_path, configured):
    """A directory of four files that Spark wrote in its legacy calendar, by the kind of their timestamps."""

    def make(kind):
        configured(WRITE, "LEGACY")
        configured(INT96, "LEGACY")
        path = tmp_path / kind
        frame = spark.createDataFrame(OLD).repartitionByRange(4, "k")
        frame.write.option("spark.sql.parquet.outputTimestampType", kind).parquet(str(path))
        for checksum in glob.glob(f"{path}/.*"):
            (path / checksum).unlink()
        spark.conf.set(WRITE, "CORRECTED")
        return path

    return make


@pytest.mark.parametrize("kind", ["TIMESTAMP_MICROS", "INT96"])
@pytest.mark.parametrize("analyzed_by", [None, "arrow", "spark"])
def test_old_dates_of_files_in_the_julian_calendar_have_no_bounds(spark, julian, kind, analyzed_by):
    """Spark reads other values than the file holds: adopted or analyzed, no row of theirs is skipped."""
    path = julian(kind)
    table = it.convert(str(path))
    if analyzed_by == "arrow":
        table.analyze()
    if analyzed_by == "spark":
        spark.sql(f"ANALYZE TABLE indextables.`{path}` COMPUTE STATISTICS")
    assert found(load(spark, path)) == CONDITIONS
    known = [split.stats for split in table.snapshot().splits()]
    assert sum(("d",) in stats.min_values for stats in known) == 2  # 1700 and 2020
    spark.sql(
        f"DELETE FROM indextables.`{path}` WHERE d < DATE'1200-01-01' OR t < TIMESTAMP'1200-07-01'"
    )
    assert load(spark, path).count() == 4


def test_what_a_table_holds_does_not_change_with_the_calendar_of_a_session(spark, tmp_path, configured):
    """Files of other writers have no word about it, so Spark would go by its setting; an option is refused."""
    write_table(tmp_path / "t", OLD, splits=4)
    configured(READ, "LEGACY")
    assert found(load(spark, tmp_path / "t")) == CONDITIONS
    spark.sql(f"UPDATE indextables.`{tmp_path / 't'}` SET k = k")
    assert it.Table(tmp_path / "t").scan().to_arrow().sort_by("k") == OLD
    with pytest.raises(errors.ConfigError, match="as they are stored"):
        spark.read.format("indextables").option("datetimeRebaseMode", "LEGACY").load(
            str(tmp_path / "t")
        )


def gap_rows():
    """A row every six hours around the days that java.sql.Date lacks, two files of many row groups."""
    start, day = dt.datetime(1582, 9, 25), dt.timedelta(days=1)
    times = [start + i * day / 4 for i in range(160)]
    # 5 July 1892: Samoa had the 4th twice
    times += [dt.datetime(1892, 7, 4) + i * day / 4 for i in range(8)]
    return pa.table(
        {
            "k": pa.array(range(168), pa.int64()),
            "d": pa.array([t.date() for t in times], pa.date32()),
            "t": pa.array([t.replace(tzinfo=dt.UTC) for t in times], pa.timestamp("us", "UTC")),
        }
    )


def test_filters_inside_files_lose_no_date_that_java_lacks(spark, tmp_path):
    """Spark gives a constant between 5 and 14 October 1582 to its Parquet reader as a later one."""
    data = gap_rows()
    write_table(tmp_path / "t", data, splits=14)
    pq.write_table(data, tmp_path / "rows.parquet")
    conditions = [
        f"{column} {op} {literal}"
        for day in ("1582-10-05", "1582-10-10")
        for column, literal in (("d", f"DATE'{day}'"), ("t", f"TIMESTAMP'{day} 06:00:00'"))
        for op in ("=", ">", ">=", "IN")
        for literal in [f"({literal})" if op == "IN" else literal]
    ]
    frames = [
        spark.read.options(**UNFILTERED).parquet(str(tmp_path / "rows.parquet")),
        load(spark, tmp_path / "t"),
    ]
    answers = []
    for frame in frames:
        parts = [frame.where(c).agg(F.lit(c), F.count("k"), F.sum("k")) for c in conditions]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.unionAll(part)
        answers.append({row[0]: (row[1], row[2]) for row in whole.collect()})
    truth, ours = answers
    assert {c: (n, ours[c]) for c, n in truth.items() if ours[c] != n} == {}


def options_of(spark, path):
    """The options of the relation behind a read that are about filters inside files."""
    options = load(spark, path)._jdf.queryExecution().analyzed().relation().options()
    return {key for key in UNFILTERED if options.contains(key)}


def test_filters_inside_files_stay_on_where_no_date_is_that_old(spark, tmp_path):
    """Bounds that exclude the days in question say so; a column without bounds may hold one."""
    for name, first, is_off in (
        ("new", dt.datetime(1900, 1, 1), False),
        ("ancient", dt.datetime(1200, 1, 1), False),
        ("old", dt.datetime(1892, 7, 4), True),
    ):
        data = pa.table(
            {
                "d": pa.array([first.date()]),
                "t": pa.array([first.replace(tzinfo=dt.UTC)], pa.timestamp("us", "UTC")),
                "n": pa.array([first], pa.timestamp("us")),
            }
        )
        write_table(tmp_path / name, data)
        assert bool(options_of(spark, tmp_path / name)) == is_off, name
    it.Table(tmp_path / "new").drop_statistics(["n"])
    assert not options_of(spark, tmp_path / "new")
    it.Table(tmp_path / "new").drop_statistics(["d"])
    assert options_of(spark, tmp_path / "new") == set(UNFILTERED)
