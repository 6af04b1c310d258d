"""Reading splits: the right rows in the right order, and nothing opened that is not needed."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.parquet.read.read import in_order
from indextables.errors import ObjectNotFoundError, PredicateError, StorageError, UnknownColumnError

SCHEMA = pa.schema(
    [("id", pa.int64()), ("t", pa.string()), ("s", pa.struct([("a", pa.int64())])), ("p", pa.int32())]
)


def rows(start, count=10, p=0):
    ids = range(start, start + count)
    return pa.table(
        {"id": ids, "t": [f"t{i}" for i in ids], "s": [{"a": i} for i in ids], "p": [p] * count}, SCHEMA
    )


@pytest.fixture
def table():
    found = it.Table.create(f"memory://{uuid4()}", SCHEMA, partition_by=["p"])
    for i in range(5):
        found.append(rows(i * 10, p=i % 2))
    return found


def test_rows_come_in_the_order_of_their_commits(table):
    """Then of splits, then of their position; also with several threads reading ahead."""
    assert table.scan().to_arrow().column("id").to_pylist() == list(range(50))


def test_only_the_columns_asked_for_come_in_the_order_asked_for(table):
    """Names without regard to case; the result has the table's spelling."""
    found = table.scan("id < 2", columns=["P", "t"]).to_arrow()
    assert found.schema.names == ["p", "t"]
    assert found.to_pylist() == [{"p": 0, "t": "t0"}, {"p": 0, "t": "t1"}]


def test_a_condition_may_use_columns_that_are_not_read_out(table):
    """They are read for the condition and dropped again."""
    assert table.scan("s.a = 7", columns=["t"]).to_arrow().to_pylist() == [{"t": "t7"}]


def test_no_columns_at_all_still_count_rows(table):
    """An empty projection has rows, just no values."""
    assert table.scan(columns=[]).to_arrow().num_columns == 0
    assert table.scan("id >= 45", columns=[]).count() == 5


def test_a_condition_without_columns_counts_rows_too(table):
    """`true` needs no column of a file, and its rows are counted all the same."""
    assert table.scan("true").count() == 50
    assert table.scan("1 = 2").count() == 0
    assert table.scan("NULL OR true").count() == 50


def test_an_unknown_column_is_named(table):
    """With the nearest name there is."""
    with pytest.raises(UnknownColumnError, match="did you mean"):
        table.scan(columns=["ids"])
    with pytest.raises(UnknownColumnError):
        table.scan("nope = 1")


def test_files_and_bytes_are_counted_where_they_are_opened(table):
    """Pruned files are never touched; a narrow read costs fewer bytes than a wide one."""
    with it.query_stats() as pruned:
        table.scan("id = 15").to_arrow()
    assert (pruned.data_files_opened, pruned.files_pruned) == (1, 4)
    with it.query_stats() as wide:
        table.scan().to_arrow()
    with it.query_stats() as narrow:
        table.scan(columns=["id"]).to_arrow()
    assert wide.data_files_opened == narrow.data_files_opened == 5
    assert 0 < narrow.bytes_read < wide.bytes_read
    assert wide.bytes_read < table.snapshot().total_bytes


def test_a_file_all_of_whose_rows_match_is_read_without_the_columns_of_the_condition(table):
    """Its statistics have answered; of the file at the edge of the range they are read."""

    def bytes_of(*condition):
        with it.query_stats() as stats:
            found = table.scan(*condition, columns=["t"]).to_arrow()
        return found["t"].to_pylist(), stats.bytes_read

    texts, bare = bytes_of()
    assert bytes_of("id >= 0 AND s.a < 50") == (texts, bare)
    found, inside = bytes_of("id BETWEEN 10 AND 29")
    edged, beside = bytes_of("id BETWEEN 10 AND 28")
    assert (found, edged) == (texts[10:30], texts[10:29])
    assert inside < beside


@pytest.mark.parametrize(
    ("values", "condition", "expected"),
    [
        ([1.0, None], "f > 0", [1.0]),
        ([1.0, float("nan")], "f < 5", [1.0]),
        ([0.0, -0.0], "f = 0", [0.0, -0.0]),
        ([None, None], "f IS NULL", [None, None]),
        ([1.0, 2.0], "f > 0 AND rand() >= 0 IS NOT NULL", None),
    ],
    ids=["null", "nan", "zeros", "all null", "opaque"],
)
def test_a_file_with_one_row_that_may_not_match_is_filtered(values, condition, expected):
    """Bounds inside the range do not speak for NULL and NaN."""
    found = it.Table.create(f"memory://{uuid4()}", pa.schema([("f", pa.float64()), ("i", pa.int32())]))
    found.append(pa.table({"f": pa.array(values, pa.float64()), "i": pa.array([1, 2], pa.int32())}))
    if expected is None:
        assert not found.plan(condition).plan.whole
        return
    assert found.scan(condition, columns=["f"]).to_arrow()["f"].to_pylist() == expected


def test_a_huge_table_is_not_asked_twice_for_a_few_files(table):
    """What must match costs a look at all files, which a few kept ones do not pay back."""
    plan = table.plan("id BETWEEN 10 AND 19").plan
    assert len(plan.whole) == 1
    huge = replace(plan, mask=np.concatenate([plan.mask, np.zeros(100_000, np.bool_)]))
    assert not huge.whole


def test_counting_rows_without_a_condition_opens_no_file(table):
    """The log knows; where it does not, the footer does."""
    with it.query_stats() as stats:
        assert table.scan().count() == 50
    assert stats.data_files_opened == 0


def test_counters_nest_and_threads_keep_theirs_apart(table):
    """An outer block sees its inner ones; another thread's queries are its own."""
    with it.query_stats() as outer:
        with it.query_stats() as inner:
            table.scan("id = 15").to_arrow()
        table.scan("id = 25").to_arrow()

        def elsewhere():
            with it.query_stats() as own:
                table.scan().to_arrow()
            return own.data_files_opened

        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(lambda _: elsewhere(), range(4))) == [5] * 4
    assert (inner.data_files_opened, outer.data_files_opened) == (1, 2)


def test_row_groups_that_cannot_match_are_not_read(tmp_path):
    """The Parquet statistics inside a split skip what the log's cannot."""
    table = it.Table.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("pad", pa.string())]))
    size = {"spark.indextables.write.targetFileSize": "1GB"}
    data = pa.table({"id": range(100_000), "pad": [f"{i:0100d}" for i in range(100_000)]})
    table.append(data, options=size)
    (split,) = table.snapshot().splits()
    whole = pq.read_table(tmp_path / "t" / split.path)
    pq.write_table(whole, tmp_path / "t" / split.path, row_group_size=10_000, compression="zstd")
    with it.query_stats() as everything:
        table.scan("id >= 0").to_arrow()
    with it.query_stats() as little:
        assert table.scan("id = 55555").count() == 1
    assert little.bytes_read * 5 < everything.bytes_read


def test_batches_are_a_stream_with_bounded_memory(tmp_path):
    """The consumer decides the pace; at most a few files are ahead of it."""
    table = it.Table.create(tmp_path / "t", pa.schema([("t", pa.string())]))
    for _ in range(12):
        table.append(pa.table({"t": [uuid4().hex * 30 for _ in range(2000)]}))
    with it.query_stats() as stats:
        reader = table.scan().to_batches()
        first = reader.read_next_batch()
        time.sleep(0.3)
        assert stats.data_files_opened <= 5
        assert first.num_rows == 2000
        assert sum(batch.num_rows for batch in reader) == 22_000
    assert stats.data_files_opened == 12


def test_a_stream_that_is_abandoned_stops_its_threads():
    """Nobody reads on for a consumer that has left."""
    before = threading.active_count()
    streams = in_order([lambda: iter(range(100)) for _ in range(10)], threads=4)
    assert next(streams) == 0
    assert threading.active_count() > before
    streams.close()
    assert threading.active_count() == before


def test_an_error_surfaces_in_its_place():
    """Items before it arrive, items after it do not."""

    def good():
        yield from (1, 2)

    def bad():
        yield 3
        raise StorageError("gone")

    found = []
    with pytest.raises(StorageError, match="gone"):
        for item in in_order([good, bad, good], threads=3):
            found.append(item)
    assert found == [1, 2, 3]


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_many_streams_keep_their_order(threads):
    """Whatever the number of threads, and whoever is slow."""

    def stream(i):
        def items():
            for j in range(20):
                if i % 3 == 0 and j == 5:
                    time.sleep(0.005)
                yield i, j

        return items

    expected = [(i, j) for i in range(10) for j in range(20)]
    assert list(in_order([stream(i) for i in range(10)], threads=threads)) == expected


def test_a_missing_file_says_which_and_what_to_do(tmp_path):
    """Not pyarrow's bare message."""
    table = it.Table.create(tmp_path / "t", pa.schema([("a", pa.int64())]))
    table.append(pa.table({"a": [1]}))
    (split,) = table.snapshot().splits()
    (Path(table.uri) / split.path).unlink()
    with pytest.raises(ObjectNotFoundError, match=split.path):
        table.scan().to_arrow()


def test_a_condition_only_an_engine_can_answer_is_refused_for_rows_but_plans(table):
    """Files are still skipped by the other part."""
    with pytest.raises(PredicateError, match="rand"):
        table.scan("id = 15 and rand() < 0.5").to_arrow()
    assert len(table.plan("id = 15 and rand() < 0.5").files) == 1


def test_every_library_gets_the_same_rows(table):
    """Arrow, pandas, Polars, DuckDB, and whatever speaks Arrow's stream interface."""
    import duckdb
    import polars as pl

    scan = table.scan("id between 8 and 12", columns=["id", "p"])
    expected = [(8, 0), (9, 0), (10, 1), (11, 1), (12, 1)]
    assert [tuple(r.values()) for r in scan.to_arrow().to_pylist()] == expected
    assert list(scan.to_pandas().itertuples(index=False, name=None)) == expected
    assert scan.to_polars().rows() == expected
    assert pl.DataFrame(scan).rows() == expected
    connection = duckdb.connect()
    assert scan.to_duckdb(connection).order("id").fetchall() == expected
    assert pa.table(scan).num_rows == 5


def converted(tmp_path, data, rows_per_group):
    pq.write_table(data, tmp_path / "f.parquet", row_group_size=rows_per_group)
    return it.convert(tmp_path)


def bytes_read(scan):
    with it.query_stats() as stats:
        rows = scan.to_arrow().num_rows
    return rows, stats.bytes_read


def test_row_groups_with_hidden_nan_are_read(tmp_path):
    """Arrow would skip them even for `x > 5 OR is_nan(x)`: the bounds it sees leave NaN out."""
    nan = float("nan")
    table = converted(tmp_path, pa.table({"x": [1.0, nan, 1.0, 2.0, nan, nan]}), 2)
    for _ in range(2):
        assert table.scan("x > 5").count() == 3
        assert table.scan("x between 5 and 6").count() == 0
        table.analyze()


def test_row_groups_are_skipped_by_nested_fields_partitions_and_nulls(tmp_path):
    """Whatever the evaluator understands of splits, it understands of row groups."""
    data = pa.table(
        {
            "s": [{"a": i} for i in range(8000)],
            "n": pa.array([None] * 4000 + list(range(4000)), pa.int64()),
            "pad": [f"{i:0200d}" for i in range(8000)],
        }
    )
    (tmp_path / "k=1").mkdir()
    pq.write_table(data, tmp_path / "k=1" / "f.parquet", row_group_size=1000)
    table = it.convert(tmp_path)
    everything = bytes_read(table.scan())[1]
    for where, rows in (
        ("s.a = 4500", 1),
        ("n is null and s.a < 500", 500),
        ("k = 1 and n > 3990", 9),
        ("n < 5 or s.a = 0", 6),
    ):
        found, read = bytes_read(table.scan(where))
        assert found == rows
        assert read < everything / 2


def test_a_column_that_looks_like_a_nested_field_is_read_as_itself(tmp_path):
    """`a.b` the column and b of struct a have the same dotted name in Parquet."""
    table = it.Table.create(
        tmp_path / "t", pa.schema([("a.b", pa.int64()), ("a", pa.struct([("b", pa.int64())]))])
    )
    table.append(pa.table({"a.b": [1, 2], "a": [{"b": 10}, {"b": 20}]}))
    assert table.scan("`a.b` = 1").to_arrow().to_pylist() == [{"a.b": 1, "a": {"b": 10}}]
    assert table.scan("a.b = 20", columns=["a.b"]).to_arrow().to_pylist() == [{"a.b": 2}]
    assert table.scan("a.b = 1").count() == 0
