"""Footers prove what they prove and nothing more, whoever wrote the file."""

import datetime as dt
import io
import math
import struct
from decimal import Decimal
from pathlib import Path

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from pyarrow import fs
from support.strategies import all_paths, long_text, tables
from hypothesis import strategies as st

from indextables.parquet.read.footers import read_footers, stats_from_footer
from indextables.core.stats import SplitStats, collect_stats
from indextables.core.types import (
    DecimalType,
    Field,
    ListType,
    PrimitiveType,
    StructType,
    is_float,
    leaves,
    schema_from_arrow,
)
from indextables.errors import NotATableError, ObjectNotFoundError

P = PrimitiveType


def footer_of(table, **options):
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return pq.read_metadata(buffer)


def schema_of(**types):
    return StructType(
        tuple(Field(name, t if not isinstance(t, str) else P(t)) for name, t in types.items())
    )


def stats_of(table, schema=None, *, trusted=True, **options):
    schema = schema or schema_from_arrow(table.schema)
    return stats_from_footer(footer_of(table, **options), schema, all_paths(schema), trusted=trusted)


@given(tables(), st.sampled_from([1, 2, 100]), st.booleans())
def test_a_footer_never_says_more_than_the_rows(found, group, trusted):
    """Each fact it gives is a fact of the data: counts exact, bounds around every value."""
    schema, table = found
    real = collect_stats(table, schema, all_paths(schema))
    stats = stats_of(
        table, schema, trusted=trusted and not any(real.nan_count.values()), row_group_size=group
    )
    assert stats.num_records == real.num_records
    for path, count in (*stats.null_count.items(),):
        assert count == real.null_count[path]
    for path, count in stats.nan_count.items():
        assert count == real.nan_count[path]
    for path, low in stats.min_values.items():
        assert path not in real.min_values or low <= real.min_values[path]
    for path, high in stats.max_values.items():
        assert path not in real.max_values or high >= real.max_values[path]


@given(tables())
def test_a_footer_of_our_own_says_all_that_the_rows_do(found):
    """For ordered columns without NaN the footer is as good as the data, and exact."""
    schema, table = found
    real = collect_stats(table, schema, all_paths(schema))
    stats = stats_of(table, schema, row_group_size=2)
    ordered = [leaf.path for leaf in leaves(schema) if not isinstance(leaf.type, ListType)]
    for path in ordered:
        if real.nan_count.get(path) or path not in real.min_values:
            continue
        assert stats.min_values[path] == real.min_values[path]
        assert stats.max_values[path] == real.max_values[path]
        assert stats.nan_count.get(path) == real.nan_count.get(path)
    assert not stats.inexact_min | stats.inexact_max


WRITERS = {
    "polars": lambda df, path: df.write_parquet(path),
    "duckdb": lambda df, path: duckdb.connect().from_arrow(df.to_arrow()).write_parquet(str(path)),
    "delta": lambda df, path: _write_delta(df, path),
    "pyarrow": lambda df, path: pq.write_table(df.to_arrow(), path),
}


def _write_delta(df, path):
    deltalake.write_deltalake(path.with_suffix(".table"), df.to_arrow())
    next(path.with_suffix(".table").glob("*.parquet")).rename(path)


LONG = [
    ["a" * 300, "b" * 300],
    ["\U0010ffff" * 100, "a"],
    ["\ud7ff" * 100],
    ["ü" * 299 + "é", "ü" * 300],
    ["\x7f" * 300],
    ["x" + "\U0010ffff" * 100, "x"],
    ["", "\x00" * 300],
    [" [TRUNCATED]", "z" * 60 + " [TRUNCATED]"],
]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("texts", LONG, ids=ascii)
def test_foreign_text_bounds_enclose_the_values_and_are_not_exact(writer, texts, tmp_path):
    """Polars and delta-rs cut at 64 bytes, DuckDB at 256; the bounds still hold, in bytes and in text."""
    path = tmp_path / "file.parquet"
    WRITERS[writer](pl.DataFrame({"s": texts, "b": [t.encode() for t in texts]}), path)
    schema = schema_of(s="string", b="binary")
    stats = stats_from_footer(pq.read_metadata(path), schema, all_paths(schema), trusted=False)
    for column, values in (("s", texts), ("b", [t.encode() for t in texts])):
        low, high = stats.min_values.get((column,)), stats.max_values.get((column,))
        as_bytes = (lambda v: v.encode()) if column == "s" else bytes
        assert low is None or as_bytes(low) <= min(map(as_bytes, values))
        assert high is None or as_bytes(high) >= max(map(as_bytes, values))
        assert ((column,) in stats.inexact_max) is (high is not None)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_foreign_float_column_may_hold_nan_whatever_its_bounds_say(writer, tmp_path):
    """No other writer records how many there are."""
    path = tmp_path / "file.parquet"
    WRITERS[writer](pl.DataFrame({"x": [1.0, math.nan], "y": [1.0, 2.0], "z": [math.nan] * 2}), path)
    schema = schema_of(x="double", y="double", z="double")
    stats = stats_from_footer(pq.read_metadata(path), schema, all_paths(schema), trusted=False)
    assert not stats.nan_count
    assert not any(math.isnan(v) for v in (*stats.min_values.values(), *stats.max_values.values()))
    assert (stats.min_values[("y",)], stats.max_values[("y",)]) == (1.0, 2.0)


SPARK_FILE = Path(__file__).parent / "data" / "spark_nan.parquet"
"""Two rows by Spark 4.3: (1, NaN, NaN, 1, 0.0) over (NaN, 1, NaN, 2, -0.0), and 2,500 characters of text."""


def test_spark_records_nan_as_the_maximum_and_the_minimum_still_holds():
    """Its file is trusted: no NaN on top means no NaN at all, and missing text bounds were too long."""
    names = ("first", "last", "only", "none", "zero", "nul")
    schema = schema_of(**dict.fromkeys(names, "double"), f32="float", long="string", short="string")
    stats = stats_from_footer(pq.read_metadata(SPARK_FILE), schema, all_paths(schema), trusted=True)
    assert stats.min_values == {
        ("first",): 1.0, ("last",): 1.0, ("none",): 1.0, ("zero",): 0.0, ("f32",): 1.0, ("short",): "s",
    }  # fmt: skip
    assert stats.max_values == {("none",): 2.0, ("zero",): 0.0, ("short",): "t"}
    assert stats.nan_count == {("none",): 0, ("zero",): 0, ("nul",): 0}
    assert stats.dropped == {("long",)}
    assert ("long",) not in stats.null_count


def poisoned(groups):
    """A real file with these bounds, one row group each; NaN is patched into the footer bytes."""
    marks = [(1000.5 + i, 2000.5 + i) for i in range(len(groups))]
    buffer = io.BytesIO()
    table = pa.table({"x": [value for mark in marks for value in mark]})
    pq.write_table(table, buffer, row_group_size=2, use_dictionary=False)
    data = buffer.getvalue()
    at = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[at:]
    for mark, group in zip(marks, groups, strict=True):
        for placeholder, bound in zip(mark, group, strict=True):
            footer = footer.replace(struct.pack("<d", placeholder), struct.pack("<d", bound))
    return pq.read_metadata(io.BytesIO(data[:at] + footer))


@pytest.mark.parametrize(
    ("groups", "trusted", "low", "high"),
    [
        ([(1.0, 2.0), (0.5, 3.0)], True, 0.5, 3.0),
        ([(1.0, math.nan)], True, 1.0, None),
        ([(1.0, 2.0), (0.5, math.nan)], True, 0.5, None),
        ([(math.nan, math.nan), (1.0, 2.0)], True, None, None),
        ([(1.0, math.nan)], False, None, None),
        ([(math.nan, 2.0)], False, None, None),
        ([(math.nan, 2.0)], True, None, None),
    ],
    ids=str,
)
def test_nan_as_a_bound_means_unknown_and_nan_present(groups, trusted, low, high):
    """Only a writer that sorts NaN on top leaves a true minimum; the others may have mixed it up."""
    stats = stats_from_footer(poisoned(groups), schema_of(x="double"), [("x",)], trusted=trusted)
    assert stats.min_values.get(("x",)) == low
    assert stats.max_values.get(("x",)) == high
    assert bool(stats.nan_count) is (high is not None)


def test_a_float_column_without_statistics_is_unknown_and_not_dropped():
    """That is how our own writer marks a column with NaN."""
    table = pa.table({"x": [1.0, math.nan], "s": ["a", "b"]})
    stats = stats_of(table, write_statistics=["s"])
    assert ("x",) not in stats.nan_count
    assert ("x",) not in stats.min_values
    assert not stats.dropped
    assert stats.max_values == {("s",): "b"}


def test_text_without_bounds_in_our_own_file_was_too_long():
    """Spark's writer leaves out bounds above 4 KiB; the report shall say so."""
    table = pa.table({"s": ["a", "b"], "n": pa.array([None, None], pa.string())})
    assert stats_of(table, write_statistics=["n"]).dropped == {("s",)}
    assert not stats_of(table, write_statistics=["n"], trusted=False).dropped


def test_one_row_group_without_bounds_makes_the_column_unknown():
    """A group of NULLs needs none, though; one whose text was too long for a footer does."""
    table = pa.table({"a": [1, 2, None, None, 5, 6], "s": ["x", "y", "z" * 5000, "z", None, None]})
    stats = stats_of(table, row_group_size=2)
    assert (stats.min_values, stats.max_values) == ({("a",): 1}, {("a",): 6})
    assert stats.null_count[("a",)] == 2
    assert stats.dropped == {("s",)}


def test_names_with_dots_are_told_apart_from_nested_fields():
    """Both are written a.b in a footer."""
    table = pa.table({"a": [{"b": 1}], "a.b": [2], "x": [{"y.z": 3}]})
    stats = stats_of(table)
    assert stats.max_values == {("a", "b"): 1, ("a.b",): 2, ("x", "y.z"): 3}


def test_a_column_the_file_lacks_is_all_null_and_one_in_another_shape_is_unknown():
    """Readers fill with NULL, match names without case, and do not choose between twins."""
    table = pa.table(
        {
            "Name": ["x"],
            "v": [{"value": b"", "metadata": b""}],
            "l": [[1]],
            "t": [1],
            "T": [2],
            "st": [{"x": 1}],
        }
    )
    schema = schema_of(
        name="string",
        new="double",
        v="variant",
        l=ListType(P("long")),
        tT="long",
        st=StructType((Field("x", P("long")), Field("y", P("long")))),
    )
    schema = StructType((*schema.fields, Field("t", P("long"))))
    stats = stats_of(table, schema)
    assert stats.null_count == {
        ("name",): 0,
        ("new",): 1,
        ("tT",): 1,
        ("st", "x"): 0,
        ("st", "y"): 1,
        ("t",): 0,
    }
    assert stats.nan_count == {("new",): 0}
    assert stats.max_values == {("name",): "x", ("st", "x"): 1, ("t",): 1}
    twins = stats_of(pa.table({"Aa": [1], "aA": [2]}), schema_of(aa="long"))
    assert twins == SplitStats(1)


def micros(*args):
    return (dt.datetime(*args) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)


CONVERSIONS = [
    (pa.array([7], pa.int32()), P("long"), 7, 7),
    (pa.array([7], pa.int32()), P("double"), 7.0, 7.0),
    (pa.array([7], pa.int64()), DecimalType(20, 0), Decimal(7), Decimal(7)),
    (pa.array([2**32 - 1], pa.uint32()), P("long"), 2**32 - 1, 2**32 - 1),
    (pa.array([0.1], pa.float32()), P("double"), 0.10000000149011612, 0.10000000149011612),
    (
        pa.array([Decimal("1.5")], pa.decimal128(5, 1)),
        DecimalType(10, 3),
        Decimal("1.500"),
        Decimal("1.500"),
    ),
    (pa.array([dt.date(2024, 1, 1)]), P("timestamp_ntz"), micros(2024, 1, 1), micros(2024, 1, 1)),
    (
        pa.array([1700000000], pa.timestamp("s")),
        P("timestamp_ntz"),
        1700000000_000000,
        1700000000_000000,
    ),
    (pa.array([-1], pa.timestamp("ns", "UTC")), P("timestamp"), -1, 0),
    (pa.array(["x"]).dictionary_encode(), P("string"), "x", "x"),
    (pa.array([b"x"]), P("string"), "x", "x"),
    (pa.array([b"\xff"]), P("string"), None, None),
    (pa.array([0], pa.timestamp("us")), P("timestamp"), None, None),
    (pa.array([0], pa.timestamp("us", "UTC")), P("timestamp_ntz"), None, None),
    (pa.array([1.5]), P("float"), None, None),
    (pa.array([1.5], pa.float16()), P("float"), None, None),
    (pa.array(["1"]), P("long"), None, None),
    (pa.array([1]), P("string"), None, None),
    (pa.array([2**62], pa.timestamp("us")), P("timestamp_ntz"), 2**62, 2**62),
]


@pytest.mark.parametrize(
    ("column", "dtype", "low", "high"), CONVERSIONS, ids=lambda v: str(getattr(v, "type", v))
)
def test_a_bound_is_read_as_the_tables_type(column, dtype, low, high):
    """Widened types, other units, unsigned numbers; types that do not meet are unknown."""
    stats = stats_of(pa.table({"x": column}), schema_of(x=dtype))
    assert stats.min_values.get(("x",)) == low
    assert stats.max_values.get(("x",)) == high


def test_a_list_is_not_taken_for_a_struct_of_the_same_names():
    """Its elements are not rows, and neither are their NULLs."""
    table = pa.table({"x": pa.array([[1, 2], None], pa.list_(pa.field("element", pa.int64())))})
    stats = stats_of(table, schema_of(x=StructType((Field("element", P("long")),))))
    assert stats == SplitStats(2)


def test_int96_has_no_bounds():
    """Its order was never defined."""
    table = pa.table({"t": pa.array([0, 5], pa.timestamp("us"))})
    stats = stats_of(table, schema_of(t="timestamp_ntz"), use_deprecated_int96_timestamps=True)
    assert stats.min_values == {}


def test_columns_without_an_order_count_nulls_only():
    """A collated text has NULLs like any other."""
    ci = Field("ci", P("string"), metadata={"__COLLATIONS": {"ci": "icu.UNICODE_CI"}})
    stats = stats_of(pa.table({"ci": ["a", None]}), StructType((ci,)))
    assert stats == SplitStats(2, null_count={("ci",): 1})


def test_an_empty_file_has_no_rows_and_that_is_known():
    """No bounds, no NULLs."""
    empty = pa.table({"a": pa.array([], pa.int64())})
    assert stats_of(empty) == SplitStats(0, null_count={("a",): 0})


def test_footers_are_read_in_bulk_and_in_order(tmp_path):
    """A file that is missing or no Parquet is named."""
    for i in range(20):
        pq.write_table(pa.table({"a": [i] * i}), tmp_path / f"{i}.parquet")
    filesystem = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    keys = [f"{i}.parquet" for i in range(20)]
    assert [footer.num_rows for footer in read_footers(filesystem, keys)] == list(range(20))
    assert read_footers(filesystem, []) == []
    with pytest.raises(ObjectNotFoundError, match="gone.parquet"):
        read_footers(filesystem, [*keys, "gone.parquet"])
    Path(tmp_path / "text.parquet").write_text("hello, I am not Parquet at all")
    with pytest.raises(NotATableError, match="text.parquet"):
        read_footers(filesystem, ["text.parquet"])


@given(st.lists(long_text, min_size=1, max_size=4))
def test_polars_cuts_any_text_to_a_true_bound(texts):
    """The foreign cut most often met, on every character that could break it."""
    buffer = io.BytesIO()
    pl.DataFrame({"s": texts}).write_parquet(buffer)
    stats = stats_from_footer(pq.read_metadata(buffer), schema_of(s="string"), [("s",)], trusted=False)
    low, high = stats.min_values.get(("s",)), stats.max_values.get(("s",))
    for text in texts:
        assert low is None or low.encode() <= text.encode()
        assert high is None or text.encode() <= high.encode()


@pytest.mark.parametrize(
    ("mark", "is_known"),
    [
        ({}, True),
        ({"org.apache.spark.version": "4.0.0"}, True),
        ({"org.apache.spark.version": "2.4.8"}, False),
        ({"org.apache.spark.version": "4.0.0", "org.apache.spark.legacyDateTime": ""}, False),
        ({"org.apache.spark.version": "4.0.0", "org.apache.spark.legacyINT96": ""}, False),
    ],
)
def test_dates_of_another_calendar_have_bounds_only_after_its_end(mark, is_known):
    """Below 15 October 1582, and 1900 for timestamps, the numbers of such files are other dates."""
    zoned = lambda *when: dt.datetime(*when, tzinfo=dt.UTC)
    table = pa.table(
        {
            "d": [dt.date(1582, 10, 14), dt.date(1582, 10, 15)],
            "t": pa.array([zoned(1899, 12, 31), zoned(1900, 1, 2)], pa.timestamp("us", "UTC")),
            "st": [{"d": dt.date(1500, 1, 1)}, {"d": dt.date(1582, 10, 14)}],
            "new": [dt.date(1582, 10, 15), dt.date(2024, 1, 1)],
        }
    ).replace_schema_metadata(mark)
    stats = stats_of(table)
    old = {("d",), ("t",), ("st", "d")}
    assert set(stats.min_values) == {("new",)} | (old if is_known else set())
    assert set(stats.max_values) == {("new",), ("d",), ("t",)} | (old if is_known else set())
    assert stats.null_count == dict.fromkeys((*old, ("new",)), 0)
