"""Convert adopts Parquet files where they are: all rows, sound statistics, no file touched."""

import datetime as dt
import decimal
import os

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.errors import (
    NotATableError,
    SchemaError,
    SchemaMismatchError,
    StorageError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedTypeError,
)


def write(path, data, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(data, path, **options)


def test_files_become_splits_and_stay_as_they_are(tmp_path):
    """Bytes and times unchanged; rows in the order of the names; statistics skip files."""
    for i in range(3):
        write(tmp_path / f"f{i}.parquet", pa.table({"id": range(i * 10, i * 10 + 10)}))
    before = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.glob("*.parquet")}
    table = it.convert(tmp_path)
    assert before == {
        p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.glob("*.parquet")
    }
    assert table.scan().to_arrow().column("id").to_pylist() == list(range(30))
    assert len(table.plan("id = 15").files) == 1
    assert table.history()[0].metrics["numConvertedFiles"] == 3
    assert table.check(deep=True).ok


def test_hive_directories_become_typed_partition_columns(tmp_path):
    """Of the narrowest type that spells every value as it is written: '007' is no number."""
    for day, code, n in (
        ("2024-01-01", "007", 1),
        ("2024-01-02", "10", 2),
        ("__HIVE_DEFAULT_PARTITION__", "a%2Fb", 3),
    ):
        write(tmp_path / f"day={day}/code={code}/n={n}/f.parquet", pa.table({"v": [n]}))
    table = it.convert(tmp_path)
    assert [(f.name, f.type.name) for f in table.schema] == [
        ("v", "long"),
        ("day", "date"),
        ("code", "string"),
        ("n", "integer"),
    ]
    assert table.scan().to_arrow().to_pylist() == [
        {"v": 1, "day": dt.date(2024, 1, 1), "code": "007", "n": 1},
        {"v": 2, "day": dt.date(2024, 1, 2), "code": "10", "n": 2},
        {"v": 3, "day": None, "code": "a/b", "n": 3},
    ]
    assert table.scan("code = 'a/b' and day is null").count() == 1


def test_partition_types_can_be_given(tmp_path):
    """By name, in whatever case; a value that is none of that type is an error."""
    write(tmp_path / "k=1/f.parquet", pa.table({"v": [1]}))
    given = it.Table.convert(tmp_path, partition_schema=pa.schema([("K", pa.string())]))
    assert given.scan("k = '1'").count() == 1
    other = tmp_path / "other"
    write(other / "k=x/f.parquet", pa.table({"v": [1]}))
    with pytest.raises(SchemaMismatchError, match="'x' in .* is not a bigint"):
        it.Table.convert(other, partition_schema=pa.schema([("k", pa.int64())]))


def test_files_that_grew_over_time_make_one_schema(tmp_path):
    """New columns are NULL in older files, narrower types are widened, nested fields are merged."""
    write(tmp_path / "1.parquet", pa.table({"a": pa.array([1], pa.int32()), "s": [{"x": 1}]}))
    write(
        tmp_path / "2.parquet",
        pa.table({"A": pa.array([2], pa.int64()), "new": ["n"], "s": [{"x": 2, "y": "y"}]}),
    )
    table = it.convert(tmp_path)
    assert table.scan().to_arrow().to_pylist() == [
        {"a": 1, "s": {"x": 1, "y": None}, "new": None},
        {"a": 2, "s": {"x": 2, "y": "y"}, "new": "n"},
    ]
    assert len(table.plan("new is not null").files) == 1
    assert len(table.plan("s.y = 'y'").files) == 1


def test_a_partition_column_inside_the_file_gives_way_to_the_directory(tmp_path):
    """As in Spark: the path decides."""
    write(tmp_path / "k=1/f.parquet", pa.table({"k": [99], "v": [1]}))
    assert it.convert(tmp_path).scan().to_arrow().to_pylist() == [{"v": 1, "k": 1}]


def test_int96_is_an_instant_in_utc(tmp_path):
    """Old Spark's timestamps; Arrow shows them without a zone."""
    moment = dt.datetime(1500, 1, 1, 12, tzinfo=dt.UTC)
    data = pa.table(
        {
            "t": pa.array([moment], pa.timestamp("us", "UTC")),
            "l": pa.array([[moment]], pa.list_(pa.timestamp("us", "UTC"))),
        }
    )
    write(tmp_path / "f.parquet", data, use_deprecated_int96_timestamps=True)
    table = it.convert(tmp_path)
    assert table.schema.fields[0].type.name == "timestamp"
    assert table.scan().to_arrow().to_pylist() == [{"t": moment, "l": [moment]}]
    assert table.scan("t < timestamp'1600-01-01 00:00:00Z'").count() == 1


def test_long_texts_of_other_writers_are_never_lost(tmp_path):
    """Polars cuts bounds at 64 bytes, DuckDB at 256: equality on the longest row must find it."""
    long = "z" * 500
    pl.DataFrame({"t": ["a", long]}).write_parquet(tmp_path / "p.parquet", statistics="full")
    duckdb.sql(f"copy (select 'a' t union all select '{long}') to '{tmp_path / 'd.parquet'}'")
    table = it.convert(tmp_path)
    assert table.scan(it.col("t") == long).count() == 2
    assert table.delete(it.col("t") >= "zz").metrics["numDeletedRows"] == 2
    assert table.scan().count() == 2


def test_nan_hidden_by_foreign_statistics_is_found(tmp_path):
    """pyarrow records the bounds of the other numbers only; NaN is greater than all of them."""
    write(tmp_path / "f.parquet", pa.table({"x": [1.0, float("nan")]}))
    table = it.convert(tmp_path)
    assert table.scan("x > 5").count() == 1
    assert table.analyze().committed
    assert table.scan("x > 5").count() == 1
    assert table.scan("x between 5 and 6").count() == 0


def test_hidden_and_other_files_are_left_alone(tmp_path):
    """_SUCCESS, _metadata, .crc files and notes are not data; empty files hold no rows."""
    write(tmp_path / "a.parquet", pa.table({"d": pa.array([decimal.Decimal("1.50")])}))
    write(tmp_path / "b.parquet", pa.table({"d": pa.array([], pa.decimal128(3, 2))}))
    for name in ("_SUCCESS", "_temporary/x.parquet", ".a.parquet.crc", "notes.txt", "_metadata"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    assert [split.path for split in it.convert(tmp_path).snapshot().splits()] == ["a.parquet"]


def test_what_is_no_plain_parquet_is_refused(tmp_path):
    """With the reason, and without leaving a log behind."""
    with pytest.raises(TableNotFoundError):
        it.convert(tmp_path / "nothing")
    delta = tmp_path / "delta"
    write(delta / "a.parquet", pa.table({"a": [1]}))
    (delta / "_delta_log").mkdir()
    (delta / "_delta_log" / "00000000000000000000.json").write_text("{}")
    with pytest.raises(NotATableError, match="Delta Lake"):
        it.convert(delta)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "x.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(NotATableError, match=r"x\.parquet.*is not a Parquet file"):
        it.convert(broken)
    assert not list(tmp_path.rglob("_transaction_log"))


DISAGREE = [
    (
        {"a.parquet": pa.table({"x": [1]}), "b.parquet": pa.table({"x": ["t"]})},
        "'x' is bigint in 'a.parquet' and string in 'b.parquet'",
    ),
    (
        {"k=1/a.parquet": pa.table({"x": [1]}), "b.parquet": pa.table({"x": [1]})},
        "different partition columns",
    ),
    (
        {"k=1/j=2/a.parquet": pa.table({"x": [1]}), "j=1/k=2/b.parquet": pa.table({"x": [1]})},
        "different partition columns",
    ),
    (
        {"a.parquet": pa.table({"s": [{"x": 1}]}), "b.parquet": pa.table({"s": [{"x": "t"}]})},
        "'s.x' is bigint",
    ),
]


@pytest.mark.parametrize(("files", "message"), DISAGREE, ids=lambda x: str(x)[:30])
def test_files_that_do_not_make_one_table_are_refused(tmp_path, files, message):
    """The error names both files."""
    for name, data in files.items():
        write(tmp_path / name, data)
    with pytest.raises(SchemaMismatchError, match=message):
        it.convert(tmp_path)
    assert not (tmp_path / "_transaction_log").exists()


@pytest.mark.parametrize("names", [["a", "a"], ["abc", "abc"], ["a", "A"]])
def test_a_file_with_two_columns_of_one_name_is_refused(tmp_path, names):
    """One of them would be lost, or no row could be read at all."""
    write(tmp_path / "f.parquet", pa.table([pa.array([1]), pa.array([2])], names=names))
    with pytest.raises(SchemaMismatchError, match=r"'f\.parquet'.*have the same name"):
        it.convert(tmp_path)


def test_fields_of_one_name_in_one_struct_are_refused(tmp_path):
    """Also where another file would make one field of the two."""
    for name in ("f.parquet", "g.parquet"):
        write(tmp_path / name, pa.table({"s": [{"a": 1, "A": 2}]}))
    with pytest.raises(SchemaMismatchError, match=r"'f\.parquet'.*have the same name"):
        it.convert(tmp_path)


def test_one_partition_column_twice_in_a_path_is_refused(tmp_path):
    """Neither value could be believed."""
    write(tmp_path / "k=1/k=2/f.parquet", pa.table({"v": [1]}))
    with pytest.raises(SchemaError, match="have the same name"):
        it.convert(tmp_path)


@pytest.mark.parametrize("name", [b"new\nline.parquet", b"\xff.parquet", b"sub\\dir/f.parquet"])
def test_a_file_that_no_listing_shows_is_named_not_lost(tmp_path, name):
    """Its rows would be missing from the table, and nobody would know."""
    write(tmp_path / "seen.parquet", pa.table({"v": [1]}))
    odd = tmp_path / os.fsdecode(name)
    odd.parent.mkdir(exist_ok=True)
    odd.write_bytes((tmp_path / "seen.parquet").read_bytes())
    with pytest.raises(NotATableError, match=r"would lack the rows of .*: it contains the character"):
        it.convert(tmp_path)
    assert not (tmp_path / "_transaction_log").exists()


def test_a_link_to_nowhere_is_named_not_lost(tmp_path):
    """The disk it leads to may just not be there today; links that lead somewhere are followed."""
    elsewhere = tmp_path / "elsewhere"
    write(elsewhere / "far.parquet", pa.table({"v": [2]}))
    root = tmp_path / "root"
    write(root / "near.parquet", pa.table({"v": [1]}))
    (root / "linked").symlink_to(elsewhere)
    (root / "loop").symlink_to(root)
    (root / "gone.parquet").symlink_to(tmp_path / "no such disk" / "x.parquet")
    with pytest.raises(NotATableError, match=r"'gone\.parquet': it is a link to nowhere"):
        it.convert(root)
    (root / "gone.parquet").unlink()
    assert sorted(it.convert(root).scan().to_arrow()["v"].to_pylist()) == [1, 2]


def test_a_type_for_a_partition_that_is_none_is_an_error(tmp_path):
    """A misspelt name would leave the column with a guessed type."""
    write(tmp_path / "day=1/f.parquet", pa.table({"v": [1]}))
    with pytest.raises(SchemaMismatchError, match=r"\['dya'\], which no directory names"):
        it.convert(tmp_path, partition_schema=pa.schema([("dya", pa.string())]))


def test_a_directory_without_parquet_files_gets_advice_that_helps(tmp_path):
    """Hive and old Spark write files without a suffix."""
    (tmp_path / "000000_0").write_bytes(b"PAR1")
    with pytest.raises(NotATableError, match=r"\*\.parquet"):
        it.convert(tmp_path)


def test_nanoseconds_are_refused(tmp_path):
    """Spark cannot read them, so a table cannot promise them."""
    write(tmp_path / "a.parquet", pa.table({"t": pa.array([1], pa.timestamp("ns"))}))
    with pytest.raises(UnsupportedTypeError, match="timestamp"):
        it.convert(tmp_path)


def test_a_table_is_not_converted_twice(tmp_path):
    """It is one already."""
    write(tmp_path / "a.parquet", pa.table({"a": [1]}))
    it.convert(tmp_path)
    with pytest.raises(TableExistsError):
        it.convert(tmp_path)


def test_a_converted_table_is_written_like_any_other(tmp_path):
    """Appends, deletes and partitions go on from there."""
    write(tmp_path / "k=1/a.parquet", pa.table({"v": [1, 2]}))
    table = it.convert(tmp_path)
    table.append(pa.table({"v": [3], "k": pa.array([2], pa.int32())}))
    table.delete("v = 1")
    assert table.scan().to_arrow().to_pylist() == [{"v": 2, "k": 1}, {"v": 3, "k": 2}]
    assert table.check(deep=True).ok


@pytest.mark.parametrize("inside", ["data", "data/deeper"])
def test_a_directory_inside_a_table_is_not_converted(tmp_path, inside):
    """Its files are that table's: rows it has removed would be back."""
    table = it.Table.create(tmp_path / "t", pa.schema([("a", pa.int64())]))
    table.append(pa.table({"a": [1]}))
    table.delete("a = 1")
    write(tmp_path / "t" / "data" / "deeper" / "x.parquet", pa.table({"a": [2]}))
    with pytest.raises(NotATableError, match="lies inside the table") as caught:
        it.convert(tmp_path / "t" / inside)
    assert caught.value.hint == f"open that table with Table({str(tmp_path / 't')!r})"


@pytest.mark.parametrize("mark", ["_transaction_log", "_delta_log", ".hoodie"])
def test_a_directory_with_a_table_in_it_is_not_converted(tmp_path, mark):
    """A warehouse is no table; what its tables have removed would be rows of it."""
    write(tmp_path / "a.parquet", pa.table({"a": [1]}))
    write(tmp_path / "deep" / "t" / "b.parquet", pa.table({"a": [2]}))
    (tmp_path / "deep" / "t" / mark).mkdir()
    (tmp_path / "deep" / "t" / mark / "000000000000000000.json").write_text("{}")
    with pytest.raises(NotATableError, match="holds the table 'deep/t'"):
        it.convert(tmp_path)
    assert not (tmp_path / "_transaction_log").exists()


def test_a_file_that_arrow_cannot_open_is_an_error_of_ours(tmp_path):
    """As one that may not be read: the error names it."""
    kind = pa.int64()
    for level in range(120):
        kind = pa.struct([(f"f{level}", kind)])
    write(tmp_path / "deep.parquet", pa.table({"a": pa.nulls(1, kind)}))
    with pytest.raises(StorageError, match=r"the data file 'deep\.parquet' cannot be read"):
        it.convert(tmp_path)
