"""Statistics from data, and their form in a log line."""

import datetime as dt
import io
import json
import math
from decimal import Decimal

import orjson
import pyarrow as pa
import pyarrow.json
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import all_paths, tables

from indextables.config import Config
from indextables.core.stats import (
    SplitStats,
    collect_stats,
    from_wire,
    stats_columns,
    stats_wire_type,
    to_wire,
    to_wire_row,
)
from indextables.core.types import (
    DecimalType,
    Field,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
    is_float,
    is_orderable,
    leaves,
)
from indextables.core.stats.values import to_physical
from indextables.errors import ConfigError

P = PrimitiveType


def schema_of(**types):
    return StructType(
        tuple(Field(name, t if not isinstance(t, str) else P(t)) for name, t in types.items())
    )


def values_at(row, path):
    """The natural value of a leaf in one row; NULL where a struct around it is."""
    for part in path:
        row = None if row is None else row[part]
    return row


def order(value):
    return value.encode() if isinstance(value, str) else value


@given(tables())
def test_statistics_are_what_a_loop_over_the_rows_finds(found):
    """Counts and bounds of every leaf, nested ones too, equal the obvious computation."""
    schema, table = found
    stats = collect_stats(table, schema, all_paths(schema))
    rows = table.to_pylist()
    assert stats.num_records == len(rows)
    assert not stats.inexact_min | stats.inexact_max | stats.dropped
    for leaf in leaves(schema):
        values = [v for row in rows if (v := values_at(row, leaf.path)) is not None]
        assert stats.null_count[leaf.path] == len(rows) - len(values)
        if not is_orderable(leaf.type):
            assert leaf.path not in stats.min_values
            continue
        numbers = [v for v in values if v == v]
        assert stats.nan_count.get(leaf.path) == (
            len(values) - len(numbers) if is_float(leaf.type) else None
        )
        if numbers:
            assert stats.min_values[leaf.path] == to_physical(min(numbers, key=order), leaf.type)
            assert stats.max_values[leaf.path] == to_physical(max(numbers, key=order), leaf.type)
        else:
            assert leaf.path not in stats.min_values
            assert leaf.path not in stats.max_values


@given(tables())
def test_statistics_survive_the_wire(found):
    """What a line of JSON holds is what was collected."""
    schema, table = found
    stats = collect_stats(table, schema, all_paths(schema))
    assert from_wire(json.loads(orjson.dumps(to_wire(stats, schema))), schema) == stats
    assert from_wire(json.dumps(to_wire(stats, schema), allow_nan=False), schema) == stats


@given(tables())
def test_a_line_parses_as_the_wire_type(found):
    """Arrow's JSON reader takes our lines column by column, and a row built in Python is the same."""
    schema, table = found
    stats = collect_stats(table, schema, all_paths(schema))
    wire = stats_wire_type(schema)
    row = pa.array([to_wire_row(stats, schema)], wire)
    line = to_wire(stats, schema)
    if "Infinity" not in json.dumps(line):  # those lines take the lenient road
        options = pyarrow.json.ParseOptions(
            explicit_schema=pa.schema({"stats": wire}), unexpected_field_behavior="error"
        )
        parsed = pyarrow.json.read_json(
            io.BytesIO(orjson.dumps({"stats": line})), parse_options=options
        )
        assert parsed.column("stats").combine_chunks().to_pylist() == row.to_pylist()
    assert from_wire(row.to_pylist()[0], schema).max_values == stats.max_values


def test_a_line_looks_as_the_format_says():
    """Nested objects, literal dots, paths as arrays of names, zeros that enclose both zeros."""
    schema = StructType(
        (
            Field("st", StructType((Field("a", P("long")),))),
            Field("st.a", P("string")),
            Field("z", P("double")),
            Field("d", DecimalType(10, 2)),
            Field("l", ListType(P("long"))),
        )
    )
    stats = SplitStats(
        2,
        {("st", "a"): 1, ("st.a",): "x", ("z",): 0.0, ("d",): Decimal("1.50")},
        {("st", "a"): 2, ("z",): -0.0, ("d",): Decimal("1E+3")},
        {("st", "a"): 0, ("l",): 1},
        {("z",): 0},
        inexact_min=frozenset({("st.a",), ("st", "a")}),
        dropped=frozenset({("st.a",)}),
    )
    assert json.dumps(to_wire(stats, schema)) == json.dumps(
        {
            "numRecords": 2,
            "minValues": {"st": {"a": 1}, "st.a": "x", "z": -0.0, "d": "1.50"},
            "maxValues": {"st": {"a": 2}, "z": 0.0, "d": "1000"},
            "nullCount": {"st": {"a": 0}, "l": 1},
            "nanCount": {"z": 0},
            "inexact": {"min": [["st", "a"], ["st.a"]]},
            "dropped": [["st.a"]],
        }
    )


def test_a_column_newer_than_the_data_is_all_null():
    """So is a new field of an old struct."""
    schema = schema_of(
        a="long", new="double", st=StructType((Field("x", P("long")), Field("y", P("string"))))
    )
    data = pa.table({"a": [1, 2], "st": [{"x": 1}, None]})
    stats = collect_stats(data, schema, all_paths(schema))
    assert stats.null_count == {("a",): 0, ("new",): 2, ("st", "x"): 1, ("st", "y"): 2}
    assert stats.nan_count == {("new",): 0}


def test_what_lies_under_a_null_struct_is_not_seen():
    """Arrow keeps a value there; no query can ever see it."""
    hidden = pa.StructArray.from_arrays([pa.array([1, 999])], names=["x"], mask=pa.array([False, True]))
    schema = schema_of(st=StructType((Field("x", P("long")),)))
    stats = collect_stats(pa.table({"st": hidden}), schema, [("st", "x")])
    assert stats.max_values == {("st", "x"): 1}
    assert stats.null_count == {("st", "x"): 1}


def test_arrow_types_that_hold_the_same_values_give_the_same_statistics():
    """Dictionaries, views, wide offsets, other units and zones, wide decimals."""
    schema = schema_of(s="string", b="binary", t="timestamp", d=DecimalType(10, 2), f="float", i="long")
    berlin = dt.datetime(2024, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    data = pa.table(
        {
            "s": pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2]), pa.array(["b", "a", None])),
            "b": pa.array([b"x", None, b"\xff", b"y"], pa.binary_view()),
            "t": pa.array([berlin, None, None, berlin], pa.timestamp("ms", "Europe/Berlin")),
            "d": pa.array([Decimal("1.5"), None, None, None], pa.decimal256(60, 2)),
            "f": pa.array([0.5, None, None, None], pa.float16()),
            "i": pa.array([2**32 - 1, 0, None, None], pa.uint32()),
        }
    )
    stats = collect_stats(data, schema, all_paths(schema))
    micros = to_physical(dt.datetime(2024, 1, 1, tzinfo=dt.UTC), P("timestamp"))
    assert stats.min_values == {
        ("s",): "a",
        ("b",): b"x",
        ("t",): micros,
        ("d",): Decimal("1.50"),
        ("f",): 0.5,
        ("i",): 0,
    }
    assert stats.max_values == {
        ("s",): "b",
        ("b",): b"\xff",
        ("t",): micros,
        ("d",): Decimal("1.50"),
        ("f",): 0.5,
        ("i",): 2**32 - 1,
    }
    assert stats.null_count[("s",)] == 2


def test_a_float_is_recorded_as_the_double_it_is():
    """0.1 as a float is 0.10000000149…; anything shorter would be below it."""
    schema = schema_of(f="float")
    stats = collect_stats(pa.table({"f": pa.array([0.1], pa.float32())}), schema, [("f",)])
    assert to_wire(stats, schema)["maxValues"] == {"f": 0.10000000149011612}


def test_nan_is_counted_and_never_a_bound():
    """Infinities are bounds; a column of nothing but NaN has none."""
    schema = schema_of(x="double", y="double")
    data = pa.table({"x": [math.nan, -math.inf, 1.0, None], "y": [math.nan, math.nan, None, None]})
    stats = collect_stats(data, schema, [("x",), ("y",)])
    assert stats.min_values == {("x",): -math.inf}
    assert stats.max_values == {("x",): 1.0}
    assert stats.nan_count == {("x",): 1, ("y",): 2}
    assert "NaN" not in json.dumps(to_wire(stats, schema))


def test_years_the_calendar_text_cannot_hold_leave_that_side_unknown():
    """The other side is kept."""
    schema = schema_of(t="timestamp_ntz", d="date")
    data = pa.table(
        {"t": pa.array([0, 2**62], pa.timestamp("us")), "d": pa.array([-(10**6), 0], pa.date32())}
    )
    wire = to_wire(collect_stats(data, schema, [("t",), ("d",)]), schema)
    assert wire["minValues"] == {"t": "1970-01-01T00:00:00.000000"}
    assert wire["maxValues"] == {"d": "1970-01-01"}


def test_text_that_is_no_unicode_is_counted_but_has_no_bounds():
    """Parquet files of other writers do hold such bytes."""
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\x00\x00\x00\x00\x01\x00\x00\x00"), pa.py_buffer(b"\xff")]
    )
    stats = collect_stats(pa.table({"s": broken}), schema_of(s="string"), [("s",)])
    assert stats == SplitStats(1, null_count={("s",): 0})


def test_no_rows_have_no_bounds():
    """Zero of everything is still known."""
    schema = schema_of(a="long", f="double")
    empty = pa.table({"a": pa.array([], pa.int64()), "f": pa.array([], pa.float64())})
    stats = collect_stats(empty, schema, all_paths(schema))
    assert stats == SplitStats(0, null_count={("a",): 0, ("f",): 0}, nan_count={("f",): 0})


MALFORMED = [
    None,
    "",
    "not json",
    "[1]",
    "[" * 100_000,
    [],
    5,
    {"numRecords": "5"},
    {"numRecords": -1},
    {"numRecords": True},
    {"numRecords": 2**63},
    {"minValues": []},
    {"minValues": {"a": {"x": 1}, "st": 5, "l": [1], "zzz": 1}},
    {"nullCount": {"a": -1, "st": None}},
    {"nanCount": {"a": 1}},
    {"inexact": ["a"], "dropped": "a"},
    {"inexact": {"min": "a", "max": [[1], [], None]}},
]


@pytest.mark.parametrize("obj", MALFORMED, ids=lambda v: str(v)[:40])
def test_statistics_that_make_no_sense_are_unknown(obj):
    """Never an error: a plan without them is slower, not wrong."""
    schema = schema_of(a="long", st=StructType((Field("x", P("long")),)), l=ListType(P("long")))
    assert from_wire(obj, schema) == SplitStats()


def test_only_the_bad_statistic_is_lost():
    """Its neighbours stay, and a count above the number of rows is no count."""
    schema = schema_of(a="long", b="string", c="date")
    line = {
        "numRecords": 3,
        "minValues": {"a": "1", "b": "x", "c": "yesterday"},
        "maxValues": {"a": 9},
        "nullCount": {"a": 4, "b": 3},
        "inexact": {"max": ["a", ["b"]]},
    }
    stats = from_wire(line, schema)
    assert stats == SplitStats(
        3, {("b",): "x"}, {("a",): 9}, {("b",): 3}, inexact_max=frozenset({("a",), ("b",)})
    )


MOVED = [
    ("timestamp", "2024-01-01T00:00:00.123Z", 1704067200123000 - 999, 1704067200123000 + 999),
    ("timestamp_ntz", "1969-12-31T23:59:59.5", -500000 - 999, -500000 + 999),
    ("float", 0.1, 0.09999999403953552, 0.10000000149011612),
    ("double", 2**53 + 1, 2.0**53, 2.0**53 + 2),
    (DecimalType(5, 2), "1.239", Decimal("1.23"), Decimal("1.24")),
]


@pytest.mark.parametrize(("dtype", "stored", "low", "high"), MOVED, ids=str)
def test_a_bound_moved_outward_is_no_longer_exact(dtype, stored, low, high):
    """Written again it must not look like a value of the column; cut milliseconds count as moved."""
    schema = schema_of(x=dtype)
    stats = from_wire({"minValues": {"x": stored}, "maxValues": {"x": stored}}, schema)
    assert (stats.min_values, stats.max_values) == ({("x",): low}, {("x",): high})
    assert stats.inexact_min == stats.inexact_max == {("x",)}
    assert from_wire(to_wire(stats, schema), schema) == stats


@pytest.mark.parametrize("text", ["2024-01-01T00:00:00Z", "2024-01-01T00:00:00.000000Z"])
def test_a_whole_or_full_time_is_exact(text):
    """Nothing was cut off."""
    stats = from_wire({"maxValues": {"x": text}}, schema_of(x="timestamp"))
    assert stats == SplitStats(max_values={("x",): 1704067200000000})


@pytest.mark.parametrize(("low", "high"), [(math.nan, 2.0), (1.0, math.nan)])
def test_nan_as_one_bound_spoils_the_other(low, high):
    """Whoever wrote it compared with NaN, and then both may be wrong."""
    assert (
        from_wire({"minValues": {"x": low}, "maxValues": {"x": high}}, schema_of(x="double"))
        == SplitStats()
    )


def test_columns_without_an_order_only_count_nulls_on_the_wire():
    """Even if somebody wrote bounds for them."""
    ci = Field("ci", P("string"), metadata={"__COLLATIONS": {"ci": "icu.UNICODE_CI"}})
    schema = StructType((ci, Field("m", MapType(P("string"), P("long")))))
    stats = from_wire({"minValues": {"ci": "a", "m": 1}, "nullCount": {"ci": 1, "m": 2}}, schema)
    assert stats == SplitStats(null_count={("ci",): 1, ("m",): 2})
    assert "minValues" not in to_wire(SplitStats(1, {("ci",): "a"}), schema)
    assert stats_wire_type(schema).field("minValues").type.num_fields == 0


def test_partition_columns_have_no_place_in_the_wire_type():
    """Their value is one per split and recorded elsewhere."""
    wire = stats_wire_type(schema_of(day="date", a="long"), ["day"])
    assert wire.field("minValues").type == pa.struct({"a": pa.int64()})
    assert wire.field("nullCount").type == pa.struct({"a": pa.int64()})


# --- which columns ------------------------------------------------------------------------------

WIDE = StructType(
    (
        Field("day", P("date")),
        Field("st", StructType((Field("x", P("long")), Field("y", P("string"))))),
        *(Field(f"c{i}", P("long")) for i in range(40)),
        Field("a.b", P("string")),
    )
)


def chosen(**settings):
    config = Config.of(write={"spark.indextables." + k: v for k, v in settings.items()})
    return stats_columns(WIDE, ["day"], config)


def test_the_first_32_leaves_get_statistics_by_default():
    """Fields of structs count, partition columns do not."""
    assert chosen() == (("st", "x"), ("st", "y"), *((f"c{i}",) for i in range(30)))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"dataSkippingNumIndexedCols": "0"}, ()),
        ({"dataSkippingNumIndexedCols": "1"}, (("st", "x"),)),
        (
            {"dataSkippingNumIndexedCols": "0", "indexing.fastfields": "C39, `a.b`"},
            (("c39",), ("a.b",)),
        ),
        (
            {"dataSkippingStatsColumns": "st", "dataSkippingNumIndexedCols": "-1"},
            (("st", "x"), ("st", "y")),
        ),
        ({"dataSkippingStatsColumns": "st.y,day", "indexing.fastfields": "c5"}, (("st", "y"), ("c5",))),
    ],
    ids=str,
)
def test_the_user_chooses_the_columns(settings, expected):
    """Named columns win over the number; fast fields always count; a struct means all its fields."""
    assert chosen(**settings) == expected


def test_minus_one_means_all():
    """Partition columns still excepted."""
    assert len(chosen(dataSkippingNumIndexedCols="-1")) == 43


@pytest.mark.parametrize("key", ["dataSkippingStatsColumns", "indexing.fastfields"])
def test_a_column_the_table_lacks_is_an_error_with_a_suggestion(key):
    """A typing mistake must not silently switch statistics off."""
    with pytest.raises(ConfigError, match="did you mean 'c39'"):
        chosen(**{key: "cc39"})


@given(tables(), st.data())
def test_only_the_chosen_columns_are_counted(found, data):
    """A table of a thousand columns does not carry a thousand counts in every line."""
    schema, table = found
    some = data.draw(st.sets(st.sampled_from(all_paths(schema))))
    stats = collect_stats(table, schema, tuple(some))
    assert stats.null_count.keys() == some
    assert stats.min_values.keys() <= some
