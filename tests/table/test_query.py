"""QueryBuilder over a table: pandas' rules for the rows, the pruner's for the files."""

import datetime as dt
import math
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import indextables as it

SCHEMA = pa.schema(
    [("t", pa.timestamp("us")), ("a", pa.float64()), ("b", pa.string()), ("g", pa.int64())]
)


def rows(start):
    n = range(start, start + 10)
    return pa.table(
        {
            "t": [dt.datetime(2024, 1, 1) + dt.timedelta(hours=i) for i in n],
            "a": [float(i) for i in n],
            "b": [f"b{i}" for i in n],
            "g": [i % 3 for i in n],
        },
        SCHEMA,
    )


@pytest.fixture
def table():
    found = it.Table.create(f"memory://{uuid4()}", SCHEMA, properties={"index_column": "t"})
    for i in range(5):
        found.append(rows(i * 10))
    return found


@pytest.fixture
def q():
    return it.QueryBuilder()


def run(table, query):
    with it.query_stats() as stats:
        found = table.read(query_builder=query).to_arrow()
    return found, stats.data_files_opened


def test_a_filter_prunes_files(table, q):
    """The smallest case, as ArcticDB writes it."""
    found, opened = run(table, q[q["a"] < 2])
    assert (found.column("a").to_pylist(), opened) == ([0.0, 1.0], 1)


def test_several_filters_all_prune(table, q):
    """Chained filters are one AND."""
    q = q[q["a"] > 5]
    q = q[q["a"] < 13]
    q = q[q["b"] != "b7"]
    found, opened = run(table, q)
    assert (found.column("a").to_pylist(), opened) == ([6.0, 8.0, 9.0, 10.0, 11.0, 12.0], 2)


def test_negation_in_filters(table, q):
    """~ and ^ as pandas has them."""
    found, opened = run(table, q[~(q["a"] < 45)])
    assert (found.num_rows, opened) == (5, 1)
    found, opened = run(table, q[(q["a"] < 5) ^ (q["a"] < 2)])
    assert found.column("a").to_pylist() == [2.0, 3.0, 4.0]


def test_filters_after_another_clause_do_not_prune(table, q):
    """The column a filter sees there need not be the one the statistics are about."""
    changed = q.apply("a", q["a"] + 100)
    found, opened = run(table, changed[changed["a"] < 105])
    assert (found.column("a").to_pylist(), opened) == ([100.0, 101.0, 102.0, 103.0, 104.0], 5)


def test_filters_before_another_clause_still_prune(table, q):
    """Only the leading ones: the second may use the new column."""
    first = q[q["a"] >= 40].apply("c", q["a"] * 2)
    found, opened = run(table, first[first["c"] > 95])
    assert (found.column("a").to_pylist(), opened) == ([48.0, 49.0], 1)


def test_a_row_range_counts_all_rows_before_the_filters_that_follow_it(table, q):
    """Rows are ordered by commit; a filter behind the range must not move it."""
    later = q.row_range((5, 15))
    found, opened = run(table, later[later["a"] >= 10])
    assert (found.column("a").to_pylist(), opened) == ([10.0, 11.0, 12.0, 13.0, 14.0], 5)


def test_a_date_range_acts_on_the_index_column_and_prunes(table, q):
    """Both ends are included."""
    found, opened = run(table, q.date_range((dt.datetime(2024, 1, 1, 8), dt.datetime(2024, 1, 1, 11))))
    assert (found.column("a").to_pylist(), opened) == ([8.0, 9.0, 10.0, 11.0], 2)


def test_groups_are_aggregated_over_the_files_that_remain(table, q):
    """One row per group."""
    found, opened = run(table, q[q["a"] < 9].groupby("g").agg({"a": "sum"}))
    assert sorted(zip(found.column("g").to_pylist(), found.column("a").to_pylist(), strict=True)) == [
        (0, 9.0),
        (1, 12.0),
        (2, 15.0),
    ]
    assert opened == 1


def test_a_comparison_with_nan_is_false_and_not_equal_is_true(q):
    """pandas' rules, exactly: also for files that hold nothing but NaN."""
    table = it.Table.create(f"memory://{uuid4()}", pa.schema([("a", pa.float64())]))
    for part in ([1.0, 2.0], [3.0, math.nan], [math.nan], [None]):
        table.append(pa.table({"a": pa.array(part, pa.float64())}))
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, np.nan, np.nan, np.nan]})
    for build in (
        lambda x: x["a"] < 2,
        lambda x: x["a"] > 2,
        lambda x: x["a"] >= 3,
        lambda x: x["a"] == 3,
        lambda x: x["a"] != 3,
        lambda x: ~(x["a"] < 2),
        lambda x: x["a"].isin([1.0, 3.0]),
        lambda x: ~x["a"].isin([1.0]),
    ):
        expected = frame[build(frame)]["a"].tolist()
        found = table.read(query_builder=q[build(q)]).data["a"].tolist()
        assert repr(found) == repr(expected)
    assert run(table, q[q["a"] > 2])[1] == 1


def test_columns_are_read_only_where_they_are_needed(table, q):
    """The projection reaches the Parquet files."""
    with it.query_stats() as narrow:
        found = table.read(query_builder=q[q["g"] == 1].columns(["a"])).to_arrow()
    with it.query_stats() as wide:
        table.read(query_builder=q[q["g"] == 1]).to_arrow()
    assert found.column_names == ["a"]
    assert narrow.bytes_read < wide.bytes_read


def test_a_result_comes_in_every_form(table, q):
    """`data` is what ArcticDB's users expect."""
    result = table.read(query_builder=q[q["a"] == 3])
    assert result.data["b"].tolist() == ["b3"]
    assert result.to_polars().rows()[0][1:] == (3.0, "b3", 0)
    assert result.to_duckdb().fetchall()[0][2] == "b3"
    assert table.read(query_builder=q[q["a"] == 3], version=0).to_arrow().num_rows == 0


@pytest.mark.parametrize("mode", ["record", "columns"])
def test_the_first_rows_of_slices_are_the_same_whatever_can_be_skipped(q, mode):
    """A slice stays where its oldest file is, even if only a newer log of it has to be read."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])
    table = it.Table.create(f"memory://{uuid4()}", schema, record_key=["id"], merge_mode=mode)
    for ids, v in (([1, 2, 3], 1), ([11, 12, 13], 7), ([2], 9)):
        table.upsert(pa.table({"id": ids, "v": [v] * len(ids)}, schema))
    q = q[q["v"] > 5]
    for query in (q.head(1), q.row_range((1, 3)), q.tail(1), q):
        skipping = table.read(query).to_arrow()
        assert skipping.to_pylist() == query.execute(table.scan().to_arrow()).to_pylist()
    table.drop_statistics(["v"])
    assert table.read(q).to_arrow().column("id").to_pylist() == [2, 11, 12, 13]
