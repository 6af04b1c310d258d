"""Zeros of both signs and NaN: no filter inside a file hides a row that Spark's comparison keeps."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.engines.spark.scan.file_list import UNFILTERED

ZEROS = pa.table(
    {
        "id": pa.array(range(60), pa.int64()),
        # three splits: -0.0 with a neighbour, 0.0 with a neighbour, and both with NaN
        "x": [-0.0, 1.0] * 10 + [0.0, -1.0] * 10 + [-0.0, math.nan] * 10,
        "st": [{"y": y} for y in [-0.0] * 20 + [0.0] * 20 + [math.nan, 0.0] * 10],
    },
    pa.schema([("id", pa.int64()), ("x", pa.float64()), ("st", pa.struct([("y", pa.float32())]))]),
)
CONDITIONS = [
    f"{column} {rest}"
    for column in ("x", "st.y")
    for rest in (
        "= 0.0D",
        "= -0.0D",
        "<=> double('-0.0')",
        ">= 0.0D",
        "<= double('-0.0')",
        "IN (0.0D, 7.0D)",
        "NOT IN (1.0D, -1.0D)",
        "> 0.5D",
        "<> 1.0D",
        "= double('NaN')",
    )
]


def ids(frame, conditions):
    """The rows of each condition, in one job."""
    parts = [frame.where(c).selectExpr(f"{i} AS n", "id") for i, c in enumerate(conditions)]
    union = parts[0]
    for part in parts[1:]:
        union = union.unionAll(part)
    found = {c: [] for c in conditions}
    for n, row in union.collect():
        found[conditions[n]].append(row)
    return {c: sorted(rows) for c, rows in found.items()}


@pytest.fixture(scope="module")
def expected(spark):
    """What Spark finds in memory; not in its cache, whose own statistics hide NaN."""
    return ids(spark.createDataFrame(ZEROS), CONDITIONS)


@pytest.mark.parametrize("writer", ["spark", "arrow"])
def test_both_zeros_are_found_whatever_the_sign(spark, tmp_path, expected, writer):
    """A dictionary with -0.0 only must not hide its rows from `x = 0.0`, in a nested field neither."""
    path = str(tmp_path / "t")
    table = it.Table.create(path, ZEROS.schema)
    for start in range(0, 60, 20):
        part = ZEROS.slice(start, 20)
        if writer == "arrow":
            table.append(part)
        else:
            rows = spark.createDataFrame(part).coalesce(1)
            rows.write.format("indextables").mode("append").save(path)
    frame = spark.read.format("indextables").load(path)
    assert ids(frame, CONDITIONS) == expected


@pytest.mark.parametrize("is_analyzed", [False, True])
def test_nan_in_files_of_other_writers_is_found(spark, tmp_path, expected, is_analyzed):
    """Arrow's bounds leave NaN out: `x > 0.5` must still find it in a directory that was adopted."""
    (tmp_path / "t").mkdir()
    for start in range(0, 60, 20):
        pq.write_table(ZEROS.slice(start, 20), tmp_path / "t" / f"{start}.parquet")
    table = it.convert(str(tmp_path / "t"))
    if is_analyzed:
        table.analyze()
    frame = spark.read.format("indextables").load(str(tmp_path / "t"))
    assert ids(frame, CONDITIONS) == expected


def options_of(spark, path):
    """The options of the relation behind a read."""
    plan = spark.read.format("indextables").load(str(path))._jdf.queryExecution().analyzed()
    options = plan.relation().options()
    return {key for key in UNFILTERED if options.contains(key)}


def test_filters_that_cannot_lose_rows_stay_on(spark, tmp_path):
    """All of them without floats or zeros, those by bounds unless a foreign file may hold NaN."""
    by_bounds = {"parquet.filter.stats.enabled", "parquet.filter.columnindex.enabled"}
    it.Table.create(tmp_path / "ints", pa.schema([("id", pa.int64())]))
    assert options_of(spark, tmp_path / "ints") == set()

    prices = pa.table({"price": [0.01, 9.99, None], "loss": [-5.0, math.nan, -0.5]})
    table = it.Table.create(tmp_path / "own", prices.schema)
    table.append(prices)
    assert options_of(spark, tmp_path / "own") == set()
    table.append(pa.table({"price": [0.0], "loss": [-1.0]}))
    assert options_of(spark, tmp_path / "own") == set(UNFILTERED) - by_bounds

    (tmp_path / "foreign").mkdir()
    pq.write_table(prices.select(["price"]), tmp_path / "foreign" / "0.parquet")
    table = it.convert(str(tmp_path / "foreign"))
    assert options_of(spark, tmp_path / "foreign") == set(UNFILTERED)
    table.analyze()  # which counts NaN: there is none
    assert options_of(spark, tmp_path / "foreign") == set()
