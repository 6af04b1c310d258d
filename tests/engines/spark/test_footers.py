"""Statistics of files that Spark wrote: from footers, and from rows where they lack."""

from __future__ import annotations

import pytest

from indextables.engines.spark.write import statistics as gaps
from indextables.table.table import Table


def written(spark, path, frame, **options):
    """A table of these rows, and the statistics of its splits."""
    frame.write.format("indextables").options(**options).save(str(path))
    return [split.stats for split in Table(str(path)).snapshot().splits()]


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
