"""Statistics of files that Spark wrote: from footers, in a job when there are many, from rows where they lack."""

from __future__ import annotations

import logging

import pytest

from indextables.engines.spark.write import distribute, statistics as footers, statistics as gaps
from indextables.table.table import Table


def written(spark, path, frame, **options):
    """A table of these rows, and the statistics of its splits."""
    frame.write.format("indextables").options(**options).save(str(path))
    return [split.stats for split in Table(str(path)).snapshot().splits()]


def frame_of(spark, files):
    """So many files with ten rows each, one column with a NaN in every file."""
    return spark.range(0, files * 10, 1, files).selectExpr(
        "id",
        "concat('k', id) AS s",
        "IF(id % 10 = 3, double('NaN'), id / 4) AS x",
        "struct(id AS a) AS st",
    )


def test_many_footers_are_read_on_the_executors(spark, tmp_path, monkeypatch):
    """The statistics are those that the driver reads, file by file."""
    tasks = []
    on_workers = distribute._on_workers
    monkeypatch.setattr(
        distribute, "_on_workers", lambda *a: tasks.append((len(a[2]), a[3])) or on_workers(*a)
    )
    here = written(spark, tmp_path / "here", frame_of(spark, 12))
    assert tasks == []
    monkeypatch.setattr(footers, "MANY", 10)
    monkeypatch.setattr(footers, "PER_TASK", 4)
    there = written(spark, tmp_path / "there", frame_of(spark, 12))
    assert tasks == [(12, 4)]
    by_id = lambda stats: sorted(stats, key=lambda s: s.min_values["id",])
    assert by_id(there) == by_id(here)
    assert [s.nan_count["x",] for s in there] == [1] * 12


def test_workers_that_cannot_read_leave_it_to_the_driver(spark, tmp_path, monkeypatch, caplog):
    """A cluster whose workers lack this package still writes tables, and says so."""
    from pyspark.errors import PySparkRuntimeError

    def fail(*_):
        raise PySparkRuntimeError("No module named 'indextables'")

    monkeypatch.setattr(footers, "MANY", 1)
    monkeypatch.setattr(distribute, "_on_workers", fail)
    with caplog.at_level(logging.WARNING, "indextables"):
        stats = written(spark, tmp_path / "t", frame_of(spark, 3))
    assert sum(s.num_records for s in stats) == 30
    assert "not on the executors" in caplog.text


@pytest.fixture
def measured(monkeypatch):
    """The columns that were looked up in the rows, for each look."""
    looks = []
    measure = gaps.measure
    monkeypatch.setattr(
        gaps,
        "measure",
        lambda session, place, keys, wanted: (
            looks.append((len(keys), sorted(wanted.columns))) or measure(session, place, keys, wanted)
        ),
    )
    return looks


LONG = "IF(id < 10, 'short', repeat(char(int(97 + id % 10)), 3000)) AS s"


def test_bounds_that_a_footer_lacks_come_from_the_rows_of_those_files(spark, tmp_path, measured):
    """Spark's writer omits bounds beyond 4 KiB; a strategy that shortens them needs to see them."""
    frame = spark.range(0, 20, 1, 2).selectExpr("id", LONG)
    key = "spark.indextables.stats.truncation"
    stats = written(
        spark, tmp_path / "t", frame, **{f"{key}.strategy": "bound", f"{key}.maxLength": "8"}
    )
    assert measured == [(1, [("s",)])]
    by_id = sorted(stats, key=lambda s: s.min_values["id",])
    assert [s.min_values["s",] for s in by_id] == ["short", "aaaaaaaa"]
    assert ("s",) in by_id[1].inexact_min
    table = Table(str(tmp_path / "t"))
    assert table.plan("s = 'short'").report.kept_files == 1
    assert table.scan("s LIKE 'jj%'").to_arrow().num_rows == 1


def test_bounds_that_would_be_dropped_are_not_looked_up(spark, tmp_path, measured):
    """With the default strategy a long text has no statistics, so nothing runs for it."""
    stats = written(spark, tmp_path / "t", spark.range(0, 20, 1, 2).selectExpr("id", LONG))
    assert measured == []
    assert sorted(("s",) in s.dropped for s in stats) == [False, True]
