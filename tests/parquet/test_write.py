"""Splits on disk: every row once, statistics exact, and files every engine reads alike."""

import datetime as dt
import decimal
import math
import random
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.parquet.write import write as write_module
from indextables.parquet.write.conform import conform
from indextables.core.prune.partitions import escape_segment, group_rows, unescape_segment
from indextables.parquet.write.write import WriteTarget, write_splits
from indextables.config import Config
from indextables.core.stats import stats_columns
from indextables.core.stats.truncate import TruncationOptions
from indextables.core.types import schema_from_arrow
from indextables.errors import SchemaMismatchError, StorageError
from indextables.storage.open import open_store
from support.faults import FaultyStore


def target_for(schema, *, partition_by=(), split_bytes=1 << 27, options=None):
    config = Config.of(write=options or {})
    return WriteTarget(
        schema=schema,
        partition_columns=tuple(partition_by),
        schema_id=0,
        directory="data/0-test",
        stats_columns=stats_columns(schema, partition_by, config),
        truncation=TruncationOptions.from_config(config),
        split_bytes=split_bytes,
    )


def write(path, data, **options):
    schema = schema_from_arrow(data.schema)
    target = target_for(schema, **options)
    return write_splits(conform(data.to_batches(), schema), open_store(path), target)


def read_back(path, adds):
    return [pq.read_table(Path(path) / add.path, partitioning=None) for add in adds]


def test_no_rows_make_no_split(tmp_path):
    """An empty file would be opened by every query for nothing."""
    written = write(tmp_path, pa.table({"a": pa.array([], pa.int64())}))
    assert written.adds == ()
    assert written.metrics["numOutputRows"] == 0
    assert list(tmp_path.rglob("*.parquet")) == []


def test_a_split_says_what_it_holds(tmp_path):
    """Size, time, schema and statistics are the file's own."""
    data = pa.table({"a": [3, 1, None], "s": pa.array([{"b": "x"}, None, {"b": "y"}])})
    (add,) = write(tmp_path, data).adds
    file = tmp_path / add.path
    assert add.size == file.stat().st_size
    assert add.path.startswith("data/0-test/part-00000-")
    assert add.stats.num_records == 3
    assert add.stats.min_values == {("a",): 1, ("s", "b"): "x"}
    assert add.stats.max_values == {("a",): 3, ("s", "b"): "y"}
    assert add.stats.null_count == {("a",): 1, ("s", "b"): 1}
    assert read_back(tmp_path, [add])[0].equals(data)


def test_splits_end_at_the_target_size_and_lose_no_row(tmp_path):
    """Each file passes the target by at most one row group; the order of rows stays."""
    rows = 200_000
    data = pa.table({"i": range(rows), "h": [hash(str(i)) for i in range(rows)]})
    target = 300_000
    adds = write(tmp_path, data, split_bytes=target).adds
    assert len(adds) > 4
    assert all(target <= add.size < 3 * target for add in adds[:-1])
    assert sum(add.stats.num_records for add in adds) == rows
    assert sorted(adds, key=lambda add: add.path) == list(adds)
    assert pa.concat_tables(read_back(tmp_path, adds)).column("i").to_pylist() == list(range(rows))


def test_one_huge_batch_is_still_cut(tmp_path):
    """A table in one chunk must not become one file."""
    data = pa.table(
        {"t": [random.Random(i).randbytes(100).hex() for i in range(3000)]}
    ).combine_chunks()
    assert len(write(tmp_path, data, split_bytes=20_000).adds) > 2


def test_partitions_are_directories_and_not_columns(tmp_path):
    """Hive style, as Spark writes it; the log has the value, the file has not."""
    data = pa.table(
        {
            "day": pa.array([dt.date(2024, 1, 1), None, dt.date(2024, 1, 1)]),
            "city": ["a/b", "", "ü:%"],
            "v": [1, 2, 3],
        }
    )
    adds = write(tmp_path, data, partition_by=["day", "city"]).adds
    found = {add.path.split("/", 2)[2].rpartition("/")[0]: add for add in adds}
    assert {name: add.partition_values for name, add in found.items()} == {
        "day=2024-01-01/city=a%2Fb": {"day": "2024-01-01", "city": "a/b"},
        "day=__HIVE_DEFAULT_PARTITION__/city=__HIVE_DEFAULT_PARTITION__": {"day": None, "city": None},
        "day=2024-01-01/city=ü%3A%25": {"day": "2024-01-01", "city": "ü:%"},
    }
    assert {pq.read_schema(tmp_path / add.path).names[0] for add in adds} == {"v"}


PARTITION_VALUES = [
    (pa.int32(), -5, "-5"),
    (pa.bool_(), True, "true"),
    (pa.float64(), -0.0, "0.0"),
    (pa.float64(), math.nan, "NaN"),
    (pa.float64(), math.inf, "Infinity"),
    (pa.decimal128(10, 2), decimal.Decimal("1.50"), "1.50"),
    (pa.timestamp("us"), dt.datetime(2024, 1, 1, 2, 3, 4, 5), "2024-01-01T02:03:04.000005"),
    (pa.timestamp("us", "UTC"), dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "2024-01-01T00:00:00.000000Z"),
    (pa.binary(), b"\xff", "/w=="),
    (pa.string(), "", None),
]


@pytest.mark.parametrize(("kind", "value", "text"), PARTITION_VALUES, ids=str)
def test_the_text_of_a_partition_value_is_that_of_its_statistics(tmp_path, kind, value, text):
    """One spelling per value, decoded by the column's type."""
    data = pa.table({"p": pa.array([value, value], kind), "v": [1, 2]})
    (add,) = write(tmp_path, data, partition_by=["p"]).adds
    assert add.partition_values == {"p": text}
    assert add.stats.num_records == 2


def test_a_partition_value_longer_than_a_file_name_is_kept_whole_in_the_log(tmp_path):
    """The directory gets a shorter name, and another one for another value."""
    values = ["é" * 300 + end for end in "ab"]
    data = pa.table({"p": values, "v": [1, 2]})
    adds = write(tmp_path, data, partition_by=["p"]).adds
    assert [add.partition_values["p"] for add in adds] == values
    assert len({add.path.rpartition("/")[0] for add in adds}) == 2


def test_an_empty_text_cannot_be_the_partition_of_a_required_column(tmp_path):
    """It would be read back as NULL."""
    data = pa.table(
        [pa.array([""]), pa.array([1])],
        pa.schema([pa.field("p", pa.string(), nullable=False), ("v", pa.int64())]),
    )
    with pytest.raises(SchemaMismatchError, match="stored as NULL"):
        write(tmp_path, data, partition_by=["p"])


def test_a_year_the_log_cannot_spell_is_refused_as_partition(tmp_path):
    """Better than a directory that nobody can read back."""
    data = pa.table({"p": pa.array([4_000_000], pa.int32()).cast(pa.date32()), "v": [1]})
    with pytest.raises(SchemaMismatchError, match="years 1 to 9999"):
        write(tmp_path, data, partition_by=["p"])


def test_more_partitions_than_open_files_lose_nothing(tmp_path, monkeypatch):
    """Files are closed in order of use, memory is bounded, and every row arrives."""
    monkeypatch.setattr(write_module, "OPEN_FILES", 3)
    monkeypatch.setattr(write_module, "MEMORY_BYTES", 2000)
    data = pa.table({"p": [i % 10 for i in range(1000)], "v": range(1000)})
    batches = data.to_batches(max_chunksize=50)
    schema = schema_from_arrow(data.schema)
    adds = write_splits(
        conform(batches, schema), open_store(tmp_path), target_for(schema, partition_by=["p"])
    ).adds
    assert len(adds) > 10
    by_partition = {}
    for add, rows in zip(adds, read_back(tmp_path, adds), strict=True):
        by_partition.setdefault(add.partition_values["p"], []).extend(rows.column("v").to_pylist())
    assert by_partition == {str(p): list(range(p, 1000, 10)) for p in range(10)}


@given(st.text(st.characters(codec="utf-8"), max_size=20))
def test_escaping_a_partition_value_is_reversible(text):
    """And leaves no character that cannot be part of a key."""
    escaped = escape_segment(text)
    assert unescape_segment(escaped) == text
    assert not set(escaped) & set('/\\:="') and all(ord(c) > 31 for c in escaped)


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "", None]), st.sampled_from([0.0, -0.0, math.nan, 1.0, None]))
    )
)
def test_every_row_is_in_exactly_one_group(rows):
    """Rows that name the same partition are together, in their order."""
    batch = pa.record_batch(
        {
            "s": pa.array([s for s, _ in rows], pa.string()),
            "f": pa.array([f for _, f in rows], pa.float64()),
            "i": pa.array(range(len(rows)), pa.int64()),
        }
    )
    groups = (
        [(values, rest.column("i").to_pylist()) for values, rest in group_rows(batch, ["s", "f"])]
        if rows
        else []
    )
    assert sorted(i for _, members in groups for i in members) == list(range(len(rows)))
    keys = [str(tuple(v.as_py() for v in values)) for values, _ in groups]
    assert len(keys) == len(set(keys))
    assert all(members == sorted(members) for _, members in groups)


def nan_columns_with_statistics(file):
    metadata = pq.read_metadata(file)
    row_group = metadata.row_group(0)
    return {
        row_group.column(i).path_in_schema
        for i in range(row_group.num_columns)
        if row_group.column(i).is_stats_set
    }


def test_a_float_column_with_nan_gets_no_parquet_statistics(tmp_path):
    """Else DuckDB and Spark skip the row group and lose the NaN rows of x > 5."""
    data = pa.table(
        {
            "x": [1.0, math.nan],
            "y": [1.0, 2.0],
            "s": pa.array([{"z": math.nan}, None]),
            "l": pa.array([[1.0], []]),
        }
    )
    (add,) = write(tmp_path, data).adds
    assert nan_columns_with_statistics(tmp_path / add.path) == {"y"}
    count = duckdb.sql(f"select count(*) from '{tmp_path / add.path}' where x > 5").fetchall()
    assert count == [(1,)]
    assert add.stats.nan_count == {("x",): 1, ("y",): 0, ("s", "z"): 1}


def test_nan_that_comes_late_starts_a_new_file(tmp_path):
    """The file that was open had promised statistics for that column."""
    clean = pa.table({"x": [1.0, 2.0] * 500, "y": [0.5] * 1000})
    dirty = pa.table({"x": [math.nan] * 1000, "y": [0.5] * 1000})
    data = pa.concat_tables([clean, dirty, clean])
    adds = write(tmp_path, data, split_bytes=12_000).adds
    for add in adds:
        has_nan = add.stats.nan_count["x",] > 0
        assert has_nan is False or "x" not in nan_columns_with_statistics(tmp_path / add.path)
    assert any(add.stats.nan_count["x",] for add in adds)
    assert "x" in nan_columns_with_statistics(tmp_path / adds[0].path)


def test_a_dotted_name_shared_by_two_columns_loses_statistics_with_either(tmp_path):
    """Parquet spells column `a.b` and field b of struct a alike."""
    data = pa.table({"a.b": [1.0, 2.0], "a": pa.array([{"b": math.nan}, {"b": 1.0}])})
    (add,) = write(tmp_path, data).adds
    assert nan_columns_with_statistics(tmp_path / add.path) == set()


def test_a_failed_write_leaves_no_file(tmp_path):
    """Nothing was committed, so nothing may stay."""

    def batches():
        yield pa.record_batch({"a": list(range(10_000))})
        raise RuntimeError("the source broke")

    schema = schema_from_arrow(pa.schema([("a", pa.int64())]))
    with pytest.raises(RuntimeError, match="the source broke"):
        write_splits(batches(), open_store(tmp_path), target_for(schema, split_bytes=1000))
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_files_are_synced_before_anyone_names_them(tmp_path):
    """A power cut after the commit must not take the data away."""
    store = FaultyStore(open_store(tmp_path))
    schema = schema_from_arrow(pa.schema([("a", pa.int64())]))
    (add,) = write_splits([pa.record_batch({"a": [1]})], store, target_for(schema)).adds
    assert store.calls[-1] == ("sync_files", add.path)
    failing = FaultyStore(open_store(tmp_path), fail_at=len(store.calls) - 1)
    with pytest.raises(StorageError):
        write_splits([pa.record_batch({"a": [1]})], failing, target_for(schema))
    assert len(list(tmp_path.rglob("*.parquet"))) == 1


def test_timestamps_and_decimals_are_stored_as_spark_reads_them(tmp_path):
    """Microseconds with the right zone flag, decimals as integers, plain strings."""
    data = pa.table(
        {
            "ltz": pa.array([0], pa.timestamp("us", "UTC")),
            "ntz": pa.array([0], pa.timestamp("us")),
            "d": pa.array([decimal.Decimal("1.5")], pa.decimal128(10, 2)),
            "t": ["x"],
            "l": pa.array([[1]]),
        }
    )
    (add,) = write(tmp_path, data).adds
    schema = pq.ParquetFile(tmp_path / add.path).schema
    kinds = {schema.column(i).path: schema.column(i) for i in range(len(schema))}
    assert '"isAdjustedToUTC":true,"timeUnit":"microseconds"' in kinds["ltz"].logical_type.to_json()
    assert '"isAdjustedToUTC":false,"timeUnit":"microseconds"' in kinds["ntz"].logical_type.to_json()
    assert kinds["d"].physical_type == "INT64"
    assert kinds["t"].logical_type.type == "STRING"
    assert "l.list.element" in kinds


NASTY = st.one_of(st.none(), st.floats(), st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf]))


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(NASTY, st.none() | st.text(st.characters(codec="utf-8"), max_size=5)),
        min_size=1,
        max_size=60,
    ),
    st.integers(200, 4000),
)
def test_property_statistics_of_each_split_hold_for_its_rows(tmp_path_factory, rows, split_bytes):
    """min <= every value <= max, counts exact, whatever the number of row groups per file."""
    path = tmp_path_factory.mktemp("t")
    data = pa.table(
        {
            "f": pa.array([f for f, _ in rows], pa.float64()),
            "s": pa.array([s for _, s in rows], pa.string()),
        }
    )
    schema = schema_from_arrow(data.schema)
    adds = write_splits(
        conform(data.to_batches(max_chunksize=7), schema),
        open_store(path),
        target_for(schema, split_bytes=split_bytes),
    ).adds
    for add, table in zip(adds, read_back(path, adds), strict=True):
        stats = add.stats
        for name in ("f", "s"):
            values = [v for v in table.column(name).to_pylist() if v is not None]
            numbers = [v for v in values if v == v]
            assert stats.num_records == table.num_rows
            assert stats.null_count[name,] == table.num_rows - len(values)
            if numbers:
                assert stats.min_values[name,] == min(numbers)
                assert stats.max_values[name,] == max(numbers)
            else:
                assert (name,) not in stats.min_values
        assert stats.nan_count["f",] == sum(
            1 for v in table.column("f").to_pylist() if v is not None and v != v
        )
    assert sum(add.stats.num_records for add in adds) == len(rows)
