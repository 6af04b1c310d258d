"""Tables with log files in Spark: the rows the Arrow reader gives, and filters that reach the files."""

from __future__ import annotations

import pyarrow as pa
import pytest

import indextables as it
from indextables.table.table import Table

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("day", pa.int32()),
        pa.field("v", pa.int64()),
        pa.field("name", pa.string()),
    ]
)
CONDITIONS = ["true", "id = 3", "day = 1 AND v < 50", "day IS NULL"]
MORE = ["v >= 100", "name = 'new' OR id > 8", "NOT (v < 100)", "day <> 1"]


def rows_of(first, last, v=0, name="old", day=None):
    return pa.table(
        {
            "id": list(range(first, last)),
            "day": [i % 3 if day is None else day for i in range(first, last)],
            "v": [i + v for i in range(first, last)],
            "name": [name] * (last - first),
        },
        SCHEMA,
    )


def make(path, mode="record", partition_by=("day",)):
    """Bases, rows replaced twice, deleted, moved to another partition, and one partition that is NULL."""
    table = Table.create(path, SCHEMA, partition_by=partition_by, record_key=["id"], merge_mode=mode)
    table.append(rows_of(0, 12))
    table.upsert(rows_of(2, 5, v=100, name="new"))
    table.upsert(rows_of(4, 6, v=200, name="newest"))
    table.delete("id = 3 OR id = 10")
    table.upsert(rows_of(6, 7, day=0, v=300))
    table.append(
        pa.table({"id": [20, 21], "day": [None, None], "v": [1, 2], "name": ["x", "y"]}, SCHEMA)
    )
    table.delete("id = 21")
    table.append(rows_of(30, 40))
    return table


def part(**columns):
    """Some columns of some rows."""
    return pa.table(columns, pa.schema([SCHEMA.field(name) for name in columns]))


def sorted_rows(data):
    return sorted(map(tuple, (row.values() for row in data.to_pylist())), key=str)


def loaded(spark, table, **options):
    return spark.read.format("indextables").options(**options).load(table.uri)


@pytest.mark.parametrize(
    ("partition_by", "conditions"),
    [
        pytest.param(("day",), CONDITIONS, id="partitioned"),
        pytest.param(("day",), MORE, id="more", marks=pytest.mark.slow),
        pytest.param((), [*CONDITIONS, *MORE], id="plain", marks=pytest.mark.slow),
    ],
)
def test_spark_shows_what_is_left_after_replacing_and_deleting(
    spark, tmp_path, partition_by, conditions
):
    """Whole, by version, filtered in ways that reach the files, and the base files alone."""
    table = make(tmp_path / "t", partition_by=partition_by)
    frame = loaded(spark, table)
    assert frame.columns == SCHEMA.names
    for condition in conditions:
        expected = sorted_rows(table.scan(condition).to_arrow())
        assert sorted_rows(frame.where(condition).toArrow()) == expected, condition
    old = table.scan(version=3).to_arrow()
    assert sorted_rows(loaded(spark, table, versionAsOf="3").toArrow()) == sorted_rows(old)
    bases = table.scan(read_optimized=True).to_arrow()
    assert sorted_rows(loaded(spark, table, read_optimized="true").toArrow()) == sorted_rows(bases)
    # the frame stays at its version
    count = frame.count()
    table.delete("id < 100")
    assert frame.count() == count
    assert loaded(spark, table).count() == 0


def test_columns_of_one_row_come_from_several_files(spark, tmp_path):
    """Each from the newest file that sets it, and none from before the row was deleted."""
    table = make(tmp_path / "t", mode="columns")
    table.upsert(part(id=[0, 4, 5], v=[-1, None, -5]))
    table.upsert(part(id=[0, 8], name=[None, "only"]))
    table.delete("id = 8")
    table.upsert(part(id=[8], name=["again"], day=[2]))
    frame = loaded(spark, table)
    for condition in ["true", "v = -1 AND name IS NULL", "id = 8", "day = 1"]:
        expected = sorted_rows(table.scan(condition).to_arrow())
        assert sorted_rows(frame.where(condition).toArrow()) == expected, condition


def test_filters_reach_every_scan_and_files_are_counted_once(spark, tmp_path):
    """A filter on a column reaches the files with rows, one on the key or the partition the logs as well."""
    table = make(tmp_path / "t")
    frame = loaded(spark, table)

    def plan(condition):
        execution = frame.where(condition)._jdf.queryExecution()
        return execution.executedPlan().toString()

    assert "LeftAnti" in plan("v > 5")
    # files no log can change, files of named partitions, and files of the one that is NULL
    assert plan("v > 5").count("PushedFilters: [IsNotNull(v), GreaterThan(v,5)]") == 3
    assert plan("id = 4").count("EqualTo(id,4)") == 5
    whole = it.last_scan(frame)
    assert (len(whole.scans), whole.total_files) == (1, table.snapshot().num_files)
    assert whole.kept_files == table.plan().report.kept_files
    some = it.last_scan(frame.where("v >= 300"))
    assert some.kept_files < whole.kept_files
    by_day = it.last_scan(frame.where("day = 1")).kept_files
    # one more: the log in the partition that is NULL, which no filter on the partition leaves out
    assert by_day == table.plan("day = 1").report.kept_files + 1
    assert it.last_scan(frame.where("id = 4")).kept_files == table.plan("id = 4").report.kept_files
    plain = Table.create(tmp_path / "u", SCHEMA, record_key=["id"])
    plain.append(rows_of(0, 5))
    unmerged = loaded(spark, plain)._jdf.queryExecution().executedPlan().toString()
    assert "Join" not in unmerged and "Union" not in unmerged
