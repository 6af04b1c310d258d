"""One value on the wire, and whole columns of them."""

import datetime as dt
import json
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.strategies import ORDERED_TYPES, nasty_ints, values_of

from indextables.core.stats import values
from indextables.core.types import DecimalType, ListType, PrimitiveType
from indextables.core.stats.values import (
    OMIT,
    decode_column,
    decode_value,
    encode_value,
    index_type,
    to_physical,
    wire_type,
)

P = PrimitiveType
typed_values = st.sampled_from(ORDERED_TYPES).flatmap(lambda t: st.tuples(st.just(t), values_of(t)))


@given(typed_values)
def test_a_value_survives_the_wire(typed):
    """Every value but NaN comes back from JSON text as it was."""
    dtype, natural = typed
    physical = to_physical(natural, dtype)
    encoded = encode_value(physical, dtype)
    if isinstance(physical, float) and math.isnan(physical):
        assert encoded is OMIT
    else:
        again = decode_value(json.loads(json.dumps(encoded, allow_nan=False)), dtype)
        assert (again, str(again)) == (physical, str(physical))


WIRE = [
    (P("date"), dt.date(1, 1, 1), "0001-01-01"),
    (P("date"), dt.date(2024, 1, 1), "2024-01-01"),
    (P("timestamp_ntz"), dt.datetime(2024, 1, 1), "2024-01-01T00:00:00.000000"),
    (
        P("timestamp"),
        dt.datetime(2024, 1, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        "2024-01-01T00:00:00.000000Z",
    ),
    (
        P("timestamp"),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
        "1969-12-31T23:59:59.999999Z",
    ),
    (P("double"), math.inf, "Infinity"),
    (P("double"), -math.inf, "-Infinity"),
    (DecimalType(38, 0), Decimal("1E+30"), "1" + "0" * 30),
    (DecimalType(38, 30), Decimal("1E-30"), "0." + "0" * 29 + "1"),
    (P("binary"), b"\x00\xff", "AP8="),
    (P("boolean"), True, True),
]


@pytest.mark.parametrize(("dtype", "natural", "text"), WIRE, ids=str)
def test_a_value_is_written_in_the_form_of_the_format(dtype, natural, text):
    """Plain decimals, ISO dates, zone Z, base64."""
    assert encode_value(to_physical(natural, dtype), dtype) == text


@pytest.mark.parametrize(
    ("dtype", "physical"),
    [
        (P("date"), (dt.date.max - dt.date(1970, 1, 1)).days + 1),
        (P("date"), (dt.date.min - dt.date(1970, 1, 1)).days - 1),
        (P("timestamp"), 2**62),
        (P("timestamp_ntz"), -(2**62)),
        (P("string"), "\ud800"),
        (P("double"), math.nan),
    ],
)
def test_what_json_cannot_hold_is_omitted(dtype, physical):
    """An omitted bound is unknown; a wrong one would lose rows."""
    assert encode_value(physical, dtype) is OMIT


UNKNOWN = [
    (P("long"), "5"),
    (P("long"), 5.0),
    (P("long"), True),
    (P("long"), 2**63),
    (P("boolean"), 1),
    (P("boolean"), "true"),
    (P("double"), "5"),
    (P("double"), "NaN"),
    (P("double"), math.nan),
    (P("string"), 5),
    (P("string"), "\udfff"),
    (P("binary"), "not base64!"),
    (P("binary"), "YQ"),
    (P("date"), "2024-02-30"),
    (P("date"), "20240101"),
    (P("date"), "2024-W01-1"),
    (P("date"), "0000-01-01"),
    (P("date"), "٢٠٢٤-01-01"),
    (P("date"), 19000),
    (P("timestamp"), "2024-01-01T00:00:00.000000"),
    (P("timestamp"), "2024-01-01"),
    (P("timestamp"), "2024-01-01T00:00:00.000000+24:00"),
    (P("timestamp"), "0001-01-01T00:00:00.000000+01:00"),
    (P("timestamp_ntz"), "2024-01-01T00:00:00.000000Z"),
    (P("timestamp_ntz"), "2024-01-01T24:00:00.000000"),
    (P("timestamp_ntz"), "2024-01-01T00:00:00.0000001"),
    (DecimalType(5, 2), "1000"),
    (DecimalType(5, 2), 12.5),
    (DecimalType(5, 2), "NaN"),
    (DecimalType(5, 2), "1_0"),
    (DecimalType(5, 2), "1e99999999"),
    (DecimalType(5, 2), 10**30),
    (P("variant"), "x"),
    (ListType(P("long")), [1]),
    (P("string"), None),
    (P("string"), {"a": 1}),
]


@pytest.mark.parametrize(("dtype", "value"), UNKNOWN, ids=str)
def test_a_value_that_is_not_of_the_columns_type_is_unknown(dtype, value):
    """Nothing is guessed from another type's spelling."""
    assert decode_value(value, dtype, "down") is None


WIDENED = [
    (P("double"), 2**53 + 1, 2.0**53, 2.0**53 + 2),
    (P("double"), -(2**53) - 1, -(2.0**53) - 2, -(2.0**53)),
    (P("double"), 10**400, 1.7976931348623157e308, math.inf),
    (P("double"), 5, 5.0, 5.0),
    (P("float"), 0.1, float(np.nextafter(np.float32(0.1), np.float32(0))), float(np.float32(0.1))),
    (P("float"), 16777217, 16777216.0, 16777218.0),
    (P("float"), 1e300, float(np.finfo(np.float32).max), math.inf),
    (DecimalType(5, 2), "1.239", Decimal("1.23"), Decimal("1.24")),
    (DecimalType(5, 2), "-1.239", Decimal("-1.24"), Decimal("-1.23")),
    (DecimalType(5, 2), "999.999", Decimal("999.99"), None),
    (DecimalType(20, 0), 7, Decimal(7), Decimal(7)),
    (DecimalType(5, 2), "1e-4000", Decimal(0), Decimal("0.01")),
    (P("timestamp_ntz"), "2024-01-01", 1704067200000000, 1704067200000000),
]


@pytest.mark.parametrize(("dtype", "value", "down", "up"), WIDENED, ids=str)
def test_a_value_the_type_cannot_hold_goes_outward(dtype, value, down, up):
    """A lower bound may only go down and an upper bound only up."""
    assert decode_value(value, dtype, "down") == down
    assert decode_value(value, dtype, "up") == up
    assert decode_value(value, dtype) in ({down} if down == up else {None, value})


@given(
    nasty_ints() | st.integers() | st.floats(allow_nan=False),
    st.sampled_from([P("float"), P("double")]),
)
def test_rounding_never_goes_inward(value, dtype):
    """However large the number, it lies between its two readings."""
    assert decode_value(value, dtype, "down") <= value <= decode_value(value, dtype, "up")


dirty_texts = st.one_of(
    st.sampled_from([value for _, value in UNKNOWN if isinstance(value, str) and value.isprintable()]),
    st.sampled_from(
        [
            "2024-01-01",
            "2024-01-01 10:11",
            "2024-01-01T10",
            "2024-01-01T10:11:12.5Z",
            "1.",
            ".5",
            "+1",
            "1E2",
            "-0",
            "Infinity",
            "",
            "2024-01-01T10:11:12-0130",
            "2024-01-01T10+02",
        ]
    ),
    st.dates().map(str),
    st.datetimes().map(dt.datetime.isoformat),
    st.from_regex(
        r"\A[0-9]{4}-[01][0-9]-[0-3][0-9][T ][0-2][0-9](:[0-5][0-9](:[0-9]{2}(\.[0-9]{1,7})?)?)?(Z|[+-][0-2][0-9]:?[0-6][0-9])?\Z"
    ),
    st.from_regex(r"\A[+-]?[0-9]{0,40}\.?[0-9]{0,40}([eE][+-]?[0-9]{1,3})?\Z"),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.text(max_size=5),
)
dirty_columns = st.one_of(
    st.lists(st.none() | dirty_texts, max_size=8).map(lambda v: pa.array(v, pa.string())),
    st.lists(st.none() | nasty_ints(), max_size=8).map(lambda v: pa.array(v, pa.int64())),
    st.lists(st.none() | st.floats(), max_size=8).map(lambda v: pa.array(v, pa.float64())),
    st.lists(st.none() | st.booleans(), max_size=8).map(lambda v: pa.array(v, pa.bool_())),
)


@given(dirty_columns, st.sampled_from(ORDERED_TYPES), st.sampled_from(["down", "up"]))
@example(pa.array(["0000-06-01"]), P("date"), "down")
@example(pa.array([0.1, 1e300]), P("float"), "up")
@example(pa.array([16777217]), P("float"), "down")
@example(pa.array([2**53 + 1]), P("double"), "up")
@example(pa.array(["9999-12-31T23:59:59-01:00"]), P("timestamp"), "up")
def test_a_column_is_read_exactly_as_its_values_are(column, dtype, side):
    """Reading in bulk and reading one by one never disagree, whatever the column holds."""
    one_by_one = [decode_value(value, dtype, side) for value in column.to_pylist()]
    decoded = decode_column(column, dtype, side)
    assert decoded.type == index_type(dtype)
    assert decoded.to_pylist() == one_by_one


@given(
    st.sampled_from(ORDERED_TYPES).flatmap(
        lambda t: st.tuples(st.just(t), st.lists(values_of(t), max_size=6))
    )
)
def test_what_we_write_is_decoded_in_bulk(typed):
    """The wire type of a column takes every value we encode, and the index gets it back."""
    dtype, naturals = typed
    physical = [to_physical(v, dtype) for v in naturals]
    encoded = [v if isinstance(v, float) else encode_value(v, dtype) for v in physical]
    decoded = decode_column(pa.chunked_array([pa.array(encoded, wire_type(dtype))]), dtype, "down")
    assert decoded.to_pylist() == [None if v != v else v for v in physical]


@pytest.mark.parametrize(("bad", "looked_at"), [("garbage", 0), ("2024-02-30", 256)])
def test_one_bad_value_among_many_costs_only_its_neighbourhood(bad, looked_at, monkeypatch):
    """What does not even look like a date is never looked at; an impossible date with a few others."""
    days = np.datetime_as_string(np.arange(0, 36525).astype("datetime64[D]"))
    texts = np.resize(days, 100_000).astype(object)
    texts[77_777] = bad
    slow, seen = values._one_by_one, []
    monkeypatch.setattr(
        values, "_one_by_one", lambda part, *rest: seen.append(len(part)) or slow(part, *rest)
    )
    decoded = decode_column(pa.array(texts, pa.string()), P("date"), "down")
    assert sum(seen) <= looked_at
    assert decoded.null_count == 1
    assert not decoded[77_777].is_valid


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (dt.datetime(2024, 1, 1), P("timestamp")),
        (dt.datetime(2024, 1, 1, tzinfo=dt.UTC), P("timestamp_ntz")),
        (dt.datetime(2024, 1, 1), P("date")),
        (True, P("long")),
        (1, P("boolean")),
        ("1", P("long")),
        (1.5, P("long")),
    ],
)
def test_a_python_value_of_another_type_is_refused(value, dtype):
    """A naive time is no instant, and True is no number."""
    with pytest.raises(TypeError):
        to_physical(value, dtype)


def test_an_instant_at_the_end_of_time_does_not_overflow():
    """Year 1 in Kiritimati lies before year 1 in UTC; it still has a number."""
    early = dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=14)))
    assert encode_value(to_physical(early, P("timestamp")), P("timestamp")) is OMIT
