"""Data from outside fits the table exactly, or the error names every difference."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from indextables.parquet.read.split import align
from indextables.parquet.write.conform import as_reader, check_fits, conform, source_schema
from indextables.core.types import schema_from_arrow, schema_to_arrow
from indextables.errors import SchemaMismatchError, UnsupportedTypeError


def fit(data, arrow_schema, **options):
    target = schema_from_arrow(arrow_schema)
    reader = as_reader(data)
    check_fits(reader.schema, target, **options)
    batches = list(conform(reader, target))
    for batch in batches:
        batch.validate(full=True)
    return pa.Table.from_batches(batches, schema_to_arrow(target))


def differences(source, target, **options):
    with pytest.raises(SchemaMismatchError) as caught:
        check_fits(source, schema_from_arrow(target), **options)
    return caught.value.differences


def test_every_difference_is_named_in_one_error():
    """Whoever fixes the data sees the whole list, not the first item of it."""
    found = differences(
        pa.schema([("idd", pa.int64()), ("text", pa.int32()), ("Day", pa.string())]),
        pa.schema([("id", pa.int64()), ("text", pa.string()), ("day", pa.date32())]),
    )
    assert found == (
        "column 'idd' is not in the table (did you mean 'id'?)",
        "column 'id' (bigint) is missing",
        "column 'text' is int, the table has string",
        "column 'day' is string, the table has date",
    )


def test_a_nested_difference_is_named_by_its_path():
    """A struct is compared field by field."""
    found = differences(
        pa.schema([("s", pa.struct([("a", pa.string()), ("extra", pa.int8())]))]),
        pa.schema([("s", pa.struct([("a", pa.int64())]))]),
    )
    assert found == (
        "column 's.a' is string, the table has bigint",
        "field 's.extra' is not in the table",
    )


def test_a_required_field_of_a_struct_may_not_be_missing():
    """NULL cannot stand in for a field that is never NULL."""
    required = pa.struct([pa.field("a", pa.int64()), pa.field("b", pa.int64(), nullable=False)])
    found = differences(
        pa.schema([("s", pa.struct([("a", pa.int64())]))]), pa.schema([("s", required)])
    )
    assert found == ("field 's.b' (bigint) is missing",)


def test_names_match_without_case_and_take_the_tables_spelling():
    """As in Spark; the stored spelling never changes."""
    result = fit(
        pa.table({"VALUE": ["x"], "ID": pa.array([1], pa.int32())}),
        pa.schema([("Id", pa.int64()), ("value", pa.string())]),
    )
    assert result.schema.names == ["Id", "value"]
    assert result.to_pylist() == [{"Id": 1, "value": "x"}]


def test_two_columns_that_differ_in_case_only_are_refused():
    """Nobody can say which of the two is meant."""
    found = differences(
        pa.schema([("a", pa.int64()), ("A", pa.int64())]), pa.schema([("a", pa.int64())])
    )
    assert found == ("columns 'a', 'A' have the same name",)


WIDENINGS = [
    (pa.int8(), pa.int64(), 5),
    (pa.uint32(), pa.int64(), 2**32 - 1),
    (pa.int32(), pa.float64(), 2**31 - 1),
    (pa.float32(), pa.float64(), 0.5),
    (pa.float16(), pa.float32(), np.float16(0.5)),
    (pa.int64(), pa.decimal128(38, 10), 2**63 - 1),
    (pa.decimal128(5, 2), pa.decimal128(12, 4), decimal.Decimal("123.45")),
    (pa.date32(), pa.timestamp("us"), dt.datetime(2024, 1, 1)),
    (pa.timestamp("ms"), pa.timestamp("us"), dt.datetime(2024, 1, 1)),
    (
        pa.timestamp("ns", "Europe/Paris"),
        pa.timestamp("us", "UTC"),
        dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
    ),
    (pa.large_string(), pa.string(), "x"),
    (pa.string_view(), pa.string(), "x"),
    (pa.dictionary(pa.int8(), pa.string()), pa.string(), "x"),
    (pa.binary(2), pa.binary(), b"xy"),
    (pa.large_list(pa.int32()), pa.list_(pa.int64()), [1, None]),
    (pa.list_(pa.int32(), 2), pa.list_(pa.int64()), [1, 2]),
    (pa.list_view(pa.int32()), pa.list_(pa.int64()), [1, 2]),
    (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64()), [("k", 1)]),
    (pa.null(), pa.int32(), None),
]


@pytest.mark.parametrize(("source", "target", "value"), WIDENINGS, ids=lambda x: str(x)[:30])
def test_a_value_is_widened_without_change(source, target, value):
    """The formats widenings and Arrow's other encodings of the same type, sliced and with NULLs."""
    data = pa.table({"x": pa.array([None, value, None, value], source)})
    for part in (data, data.slice(1), data.slice(3), data.slice(4)):
        result = fit(part, pa.schema([("x", target)])).column("x")
        expected = pa.array([None, value, None, value], target).slice(4 - part.num_rows)
        assert result.to_pylist() == expected.to_pylist()


NARROWINGS = [
    (pa.int64(), pa.int32()),
    (pa.int64(), pa.float64()),
    (pa.float64(), pa.float32()),
    (pa.decimal128(10, 2), pa.decimal128(10, 1)),
    (pa.string(), pa.int64()),
    (pa.int64(), pa.string()),
    (pa.timestamp("us"), pa.timestamp("us", "UTC")),
    (pa.timestamp("us"), pa.date32()),
    (pa.list_(pa.string()), pa.list_(pa.int64())),
    (pa.int64(), pa.list_(pa.int64())),
    (pa.uint64(), pa.int64()),
]


@pytest.mark.parametrize(("source", "target"), NARROWINGS, ids=str)
def test_a_type_that_could_lose_values_is_refused(source, target):
    """Even if these values happened to fit: the next batch might not."""
    assert len(differences(pa.schema([("x", source)]), pa.schema([("x", target)]))) == 1


def test_nanoseconds_are_taken_only_where_nothing_is_lost():
    """A pandas timestamp has nanoseconds even if it never uses them."""
    schema = pa.schema([("t", pa.timestamp("us"))])
    whole = pa.table({"t": pa.array([1_000], pa.timestamp("ns"))})
    assert fit(whole, schema).column("t").to_pylist() == [dt.datetime(1970, 1, 1, 0, 0, 0, 1)]
    with pytest.raises(SchemaMismatchError, match="'t' has a value that does not fit"):
        fit(pa.table({"t": pa.array([1_001], pa.timestamp("ns"))}), schema)


STRICT = [
    (pa.int64(), [1, None], "x"),
    (pa.struct([pa.field("a", pa.int64(), nullable=False)]), [{"a": 1}, {"a": None}], "x.a"),
    (pa.list_(pa.field("element", pa.int64(), nullable=False)), [[1], [None]], "x.element"),
    (
        pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False)),
        [[("k", 1)], [("k", None)]],
        "x.value",
    ),
]


@pytest.mark.parametrize(("kind", "values", "path"), STRICT, ids=lambda x: str(x)[:20])
def test_null_in_a_column_that_has_none_is_refused(kind, values, path):
    """At any depth, by the path of the field."""
    loose = pa.array(values, _loosen(kind))
    target = pa.schema([pa.field("x", kind, nullable=False)])
    assert fit(pa.table({"x": loose.slice(0, 1)}), target).num_rows == 1
    with pytest.raises(SchemaMismatchError) as caught:
        fit(pa.table({"x": loose}), target)
    assert caught.value.column == path


def _loosen(kind):
    if pa.types.is_struct(kind):
        return pa.struct([kind.field(0).with_nullable(True)])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_type)
    if pa.types.is_list(kind):
        return pa.list_(kind.value_type)
    return kind


def test_a_required_field_under_a_null_struct_is_no_violation():
    """The struct is NULL there, so its field has no value at all."""
    inner = pa.field("a", pa.int64(), nullable=False)
    data = pa.table({"s": pa.array([None, {"a": 1}], pa.struct([("a", pa.int64())]))})
    assert fit(data, pa.schema([("s", pa.struct([inner]))])).to_pylist() == [
        {"s": None},
        {"s": {"a": 1}},
    ]


def test_merging_lets_a_column_be_left_out():
    """With merge_schema the missing column is NULL, unless it must not be."""
    target = pa.schema([("a", pa.int64()), ("b", pa.string())])
    assert fit(pa.table({"a": [1]}), target, merge=True).to_pylist() == [{"a": 1, "b": None}]
    strict = pa.schema([("a", pa.int64()), pa.field("b", pa.string(), nullable=False)])
    assert differences(pa.schema([("a", pa.int64())]), strict, merge=True)


def test_a_struct_keeps_its_nulls_apart_from_those_of_its_fields():
    """Reordered, renamed and extended fields; a NULL struct stays one, also in a slice."""
    source = pa.struct([("B", pa.int32()), ("a", pa.string())])
    target = pa.struct([("a", pa.string()), ("b", pa.int64()), ("new", pa.date32())])
    array = pa.array([None, {"B": 1, "a": None}, None, {"B": None, "a": "x"}], source).slice(1)
    kind = schema_from_arrow(pa.schema([("s", target)])).fields[0].type
    result = align(array, kind)
    result.validate(full=True)
    assert result.to_pylist() == [
        {"a": None, "b": 1, "new": None},
        None,
        {"a": "x", "b": None, "new": None},
    ]


def test_frames_of_pandas_and_polars_are_read():
    """Without the frame's index; a missing number of pandas is NULL, NaN of Polars stays NaN."""
    schema = pa.schema([("n", pa.float64()), ("s", pa.string())])
    frame = pd.DataFrame({"n": [1.5, np.nan], "s": ["a", None]}, index=[7, 8])
    assert fit(frame, schema).to_pylist() == [{"n": 1.5, "s": "a"}, {"n": None, "s": None}]
    polars = fit(pl.DataFrame({"n": [1.5, float("nan")], "s": ["a", None]}), schema)
    assert polars.column("n").null_count == 0
    assert polars.column("s").to_pylist() == ["a", None]


def test_something_that_is_no_table_is_an_error_with_the_way_out():
    """A list of dicts looks like rows to a human only."""
    with pytest.raises(UnsupportedTypeError, match="pass a pyarrow Table"):
        as_reader([{"a": 1}])
    with pytest.raises(UnsupportedTypeError, match=r"\.collect\(\)"):
        as_reader(pl.LazyFrame({"a": [1]}))


def test_the_schema_of_pandas_data_counts_nanoseconds_as_microseconds():
    """So that a table can be created from a frame's own schema."""
    nested = pa.schema([("l", pa.list_(pa.struct([("t", pa.timestamp("ns"))])))])
    assert source_schema(nested) == schema_from_arrow(
        pa.schema([("l", pa.list_(pa.struct([("t", pa.timestamp("us"))])))])
    )
