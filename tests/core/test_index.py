"""The index: what statistics prove, what they leave open, and that nobody decodes what nobody asked for."""

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from indextables.core.prune.index import ColumnStatsIndex, ListSource, StatsSource, source_of
from indextables.core.prune.partitions import decode_partition
from indextables.core.predicate.nodes import And, Compare, IsNull, Literal, Not, Ref
from indextables.core.prune.evaluate import evaluate, may_match
from indextables.core.stats.split_stats import SplitStats
from indextables.core.types import (
    DecimalType,
    Field,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
)

X, S = ("x",), ("s",)
NAN = math.nan


def column(dtype, *stats, name="x", metadata=None, **more):
    schema = StructType(
        (Field(name, PrimitiveType(dtype) if isinstance(dtype, str) else dtype, True, metadata or {}),)
    )
    return ColumnStatsIndex(source_of(stats, schema, **more)).column((name,))


def stats(records=None, low=None, high=None, null=None, nan=None, path=X, **more):
    def known(value):
        return {} if value is None else {path: value}

    return SplitStats(records, known(low), known(high), known(null), known(nan), **more)


# -- the states of not knowing -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "null", "nan", "value", "low", "high", "why"),
    [
        (stats(10, 1.0, 2.0, 0, 0), False, False, True, 1.0, 2.0, "all is known"),
        (stats(10, 1.0, 2.0, 3, 2), True, True, True, 1.0, 2.0, "some of each"),
        (stats(10, 1.0, 2.0, None, 0), True, False, True, 1.0, 2.0, "no count of NULLs: may be NULL"),
        (stats(10, 1.0, 2.0, 0, None), False, True, True, 1.0, 2.0, "no count of NaNs: may be NaN"),
        (stats(10, None, 2.0, 0, 0), False, False, True, None, 2.0, "a lower bound missing"),
        (stats(10, 1.0, None, 0, 0), False, False, True, 1.0, None, "an upper bound missing"),
        (stats(10), True, True, True, None, None, "nothing but the number of rows"),
        (stats(), True, True, True, None, None, "nothing at all"),
        (stats(10, null=10, nan=0), True, False, False, None, None, "all NULL"),
        (stats(10, null=10), True, False, False, None, None, "all NULL leaves no room for NaN"),
        (stats(10, null=0, nan=10), False, True, False, None, None, "all NaN"),
        (stats(10, nan=10), False, True, False, None, None, "all NaN leaves no room for NULL"),
        (stats(10, null=4, nan=6), True, True, False, None, None, "NULL and NaN share all rows"),
        (stats(10, null=4, nan=5), True, True, True, None, None, "one row is left for a value"),
        (stats(None, null=10, nan=0), True, False, True, None, None, "all of how many?"),
        (stats(0), True, True, True, None, None, "an empty split is known by its number of rows"),
        (stats(10, 1.0, 2.0, -1, -1), True, True, True, 1.0, 2.0, "negative counts count nothing"),
        (stats(10, 1.0, 2.0, 11, 0), True, False, True, 1.0, 2.0, "more NULLs than rows"),
        (stats(10, 1.0, 2.0, 6, 6), True, True, True, 1.0, 2.0, "more NULLs and NaNs than rows"),
        (stats(10, 1.0, 2.0, 10, 0), True, False, True, 1.0, 2.0, "all NULL, and yet a bound"),
        (stats(10, 2.0, 1.0, 0, 0), False, False, True, None, None, "a minimum above the maximum"),
        (stats(10, 1.0, NAN, 0, 1), False, True, True, None, None, "NaN as a bound spoils both"),
        (stats(10, NAN, 2.0, 0, 1), False, True, True, None, None, "from either side"),
        (stats(10, -0.0, 0.0, 0, 0), False, False, True, -0.0, 0.0, "zeros"),
        (stats(10, -math.inf, math.inf, 0, 0), False, False, True, -math.inf, math.inf, "infinities"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_each_kind_of_not_knowing_is_kept_apart(found, null, nan, value, low, high, why):
    """A mask is False, and a bound is there, only where the statistics prove it."""
    c = column("double", found)
    assert (c.may_null[0], c.may_nan[0], c.may_value[0]) == (null, nan, value), why
    assert (c.lo[0].as_py(), c.hi[0].as_py()) == (low, high), why


def test_only_floats_can_be_nan():
    """A count of NaNs is not missed where there are none."""
    assert not column("long", stats(10, 1, 2)).may_nan[0]
    assert not column("string", stats(10, "a", "b")).may_nan[0]


def test_a_split_without_rows_answers_nothing():
    """Not even IS NULL, and not its NOT."""
    schema = StructType((Field("x", PrimitiveType("long")),))
    index = ColumnStatsIndex(source_of([stats(0), stats(0, 1, 2, 0)], schema))
    for p in (IsNull(Ref(X)), Not(IsNull(Ref(X))), Compare("=", Ref(X), Literal(1))):
        masks = evaluate(p, index)
        assert not (masks.true | masks.false | masks.null).any()


# -- stored bounds -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "low", "high", "exact", "why"),
    [
        (stats(9, "a", "b"), "a", "b", (True, True), "values of the column"),
        (
            stats(9, "ab [TRUNCATED]", "xy [TRUNCATED]", inexact_min={X}, inexact_max={X}),
            "ab",
            "xz",
            (False, False),
            "listed: a prefix, and the next prefix",
        ),
        (
            stats(9, "ab [TRUNCATED]", "xy [TRUNCATED]"),
            "a",
            "y",
            (False, False),
            "unlisted: one character less is certain",
        ),
        (
            stats(9, "ab", "xz", inexact_min={X}, inexact_max={X}),
            "ab",
            "xz",
            (False, False),
            "plain inexact bounds",
        ),
        (
            stats(9, "a", "\U0010ffff [TRUNCATED]", inexact_max={X}),
            "a",
            None,
            (True, False),
            "no next prefix",
        ),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_a_shortened_text_is_read_as_the_bound_it_is(found, low, high, exact, why):
    """Only an exact bound may answer MIN and MAX."""
    c = column("string", found)
    assert (c.lo[0].as_py(), c.hi[0].as_py()) == (low, high), why
    assert (c.lo_exact[0], c.hi_exact[0]) == exact, why


class Wire(ListSource):
    """A source whose bounds are exactly the given arrays, as a log of another writer holds them."""

    def bound(self, which, path):
        return self.partition_values[0][which]


def wired(dtype, low, high):
    schema = StructType((Field("x", dtype),))
    return ColumnStatsIndex(
        Wire([stats(9)] * len(low), schema, (), [{"min": low, "max": high}])
    ).column(X)


@pytest.mark.parametrize("name", ["timestamp", "timestamp_ntz"])
@pytest.mark.parametrize(
    ("text", "micros", "widened"),
    [
        ("1970-01-01T00:00:00.001000", 1_000, False),
        ("1970-01-01T00:00:00.001", 1_000, True),
        ("1969-12-31T23:59:59.999", -1_000, True),
        ("1970-01-01 00:00:00", 0, False),
    ],
)
def test_a_timestamp_cut_to_milliseconds_gives_way_on_both_sides(name, text, micros, widened):
    """Delta cuts towards zero: that lowers a maximum, and raises a minimum before 1970."""
    wire = pa.array([text + ("Z" if name == "timestamp" else "")])
    c = wired(PrimitiveType(name), wire, wire)
    shift = 999 if widened else 0
    assert (c.lo[0].as_py(), c.hi[0].as_py()) == (micros - shift, micros + shift)
    assert (c.lo_exact[0], c.hi_exact[0]) == (not widened, not widened)


def test_a_float_printed_in_its_own_short_form_is_a_bound_but_no_value():
    """0.1 as a float is 0.10000000149…: taken as a double, the maximum would be too low."""
    wire = pa.array([0.1, 0.5])
    c = wired(PrimitiveType("float"), wire, wire)
    single = float(np.float32(0.1))
    assert c.lo[0].as_py() <= 0.1 < single <= c.hi[0].as_py()
    assert c.lo_exact.tolist() == c.hi_exact.tolist() == [False, True]


def test_integers_of_a_column_that_became_a_double_are_rounded_outward():
    """2**53 + 1 is no double; the range must still hold it."""
    wire = pa.array([2**53 + 1])
    c = wired(PrimitiveType("double"), wire, wire)
    assert c.lo[0].as_py() < 2**53 + 1 < c.hi[0].as_py()


def test_chunks_are_one_column():
    """A snapshot of several segments has chunked columns."""
    wire = pa.chunked_array([[1], [], [5, 9]], pa.int64())
    c = wired(PrimitiveType("long"), wire, wire)
    assert c.lo.to_pylist() == c.hi.to_pylist() == [1, 5, 9]


def test_a_bound_that_does_not_decode_is_unknown_alone():
    """Its neighbours keep theirs, and so does its other side."""
    low, high = pa.array(["2024-01-01", "garbage", None]), pa.array(["2024-01-02"] * 3)
    c = wired(PrimitiveType("date"), low, high)
    assert c.lo.to_pylist() == [19723, None, None]
    assert c.hi.to_pylist() == [19724] * 3


# -- columns that came later -------------------------------------------------------------------------


def test_a_column_newer_than_the_split_is_null_and_that_is_known():
    """Different from missing statistics: IS NOT NULL skips the split."""
    schema = StructType((Field("x", PrimitiveType("long")),))
    index = ColumnStatsIndex(source_of([stats(9), stats(9)], schema, newer=[{X}, set()]))
    assert may_match(Not(IsNull(Ref(X))), index).tolist() == [False, True]
    assert may_match(IsNull(Ref(X)), index).tolist() == [True, True]
    assert may_match(Not(Compare("=", Ref(X), Literal(1))), index).tolist() == [False, True]
    assert index.column(X).missing.tolist() == [False, True]


def test_statistics_under_the_name_of_a_dropped_column_are_not_believed():
    """A name that was dropped and added again is another column: all NULL in the old split."""
    schema = StructType((Field("x", PrimitiveType("long")),))
    index = ColumnStatsIndex(source_of([stats(9, 5, 7, 0)], schema, newer=[{X}]))
    assert may_match(Compare("=", Ref(X), Literal(6)), index).tolist() == [False]
    assert may_match(IsNull(Ref(X)), index).tolist() == [True]


# -- nested ------------------------------------------------------------------------------------------

ST = StructType((Field("a", PrimitiveType("long")), Field("b", PrimitiveType("double"))))
NESTED = StructType(
    (
        Field("st", ST),
        Field("tags", ListType(PrimitiveType("string"))),
        Field("m", MapType(PrimitiveType("string"), PrimitiveType("long"))),
        Field("st.a", PrimitiveType("long")),
    )
)


def nested(null=(), **bounds):
    return SplitStats(9, null_count=dict(null), **bounds)


@pytest.mark.parametrize(
    ("null", "may_be_null", "may_not", "why"),
    [
        ({}, True, True, "nothing is known"),
        ({("st", "a"): 0}, False, True, "a field that is never NULL proves the struct is not"),
        ({("st", "a"): 3, ("st", "b"): 0}, False, True, "any field does"),
        ({("st", "a"): 9, ("st", "b"): 9}, True, True, "a struct of NULLs need not be NULL"),
        ({("st",): 0}, False, True, "a count of its own"),
        ({("st",): 9}, True, False, "all NULL by a count of its own"),
    ],
)
def test_a_null_struct_is_not_a_struct_of_nulls(null, may_be_null, may_not, why):
    """The fields' counts hold NULL structs too, so they prove one direction only."""
    index = ColumnStatsIndex(source_of([nested(null)], NESTED))
    masks = evaluate(IsNull(Ref(("st",))), index)
    assert (masks.true[0], masks.false[0]) == (may_be_null, may_not), why


def test_a_list_or_map_is_known_by_its_nulls():
    """They have no bounds, but a count."""
    splits = [nested({("tags",): n, ("m",): n}) for n in (0, 4, 9)] + [nested()]
    index = ColumnStatsIndex(source_of(splits, NESTED))
    for path in (("tags",), ("m",)):
        assert may_match(IsNull(Ref(path)), index).tolist() == [False, True, True, True]
        assert may_match(Not(IsNull(Ref(path))), index).tolist() == [True, True, False, True]
        assert index.column(path).missing.tolist() == [False, False, False, True]


def test_a_name_with_a_dot_is_not_a_field_of_a_struct():
    """`st.a` the column and st.a the field have statistics of their own."""
    dotted, field = ("st.a",), ("st", "a")
    splits = [nested(min_values={dotted: 1, field: 50}, max_values={dotted: 2, field: 60})]
    index = ColumnStatsIndex(source_of(splits, NESTED))
    assert may_match(Compare("=", Ref(dotted), Literal(55)), index).tolist() == [False]
    assert may_match(Compare("=", Ref(field), Literal(55)), index).tolist() == [True]


@pytest.mark.parametrize(
    "metadata", [{"__COLLATIONS": {"x": "icu.UNICODE_CI"}}, {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}]
)
def test_bounds_of_a_text_whose_order_is_not_ours_are_ignored(metadata):
    """Collated and CHAR columns: only NULL can be told."""
    c = column("string", stats(9, "a", "b", 0), metadata=metadata)
    assert c.lo.null_count == c.hi.null_count == 1
    assert not c.may_null[0]


# -- partition columns -------------------------------------------------------------------------------

MICROS = 1_704_067_200_000_000  # 2024-01-01


@pytest.mark.parametrize(
    ("dtype", "text", "value"),
    [
        ("integer", "5", 5),
        ("integer", "-05", -5),
        ("byte", "300", None),
        ("long", "5.0", None),
        ("long", "9223372036854775808", None),
        ("boolean", "true", True),
        ("boolean", "FALSE", False),
        ("boolean", "1", None),
        ("double", "1.5", 1.5),
        ("double", "-Infinity", -math.inf),
        ("double", "1e3", 1000.0),
        ("double", "one", None),
        ("float", "0.1", float(np.float32(0.1))),
        (DecimalType(5, 2), "1.5", Decimal("1.50")),
        (DecimalType(5, 2), "1.555", None),
        (DecimalType(5, 2), "x", None),
        ("date", "2024-01-01", 19723),
        ("date", "2024-1-1", None),
        ("timestamp", "2024-01-01T00:00:00.000000Z", MICROS),
        ("timestamp", "2024-01-01 00:00:00", MICROS),
        ("timestamp", "2024-01-01 00:00:00.5", MICROS + 500_000),
        ("timestamp", "2024-01-01 02:00:00+02:00", MICROS),
        ("timestamp_ntz", "2024-01-01 00:00:00", MICROS),
        ("string", "x", "x"),
        ("string", "10", "10"),
        ("binary", "/w==", b"\xff"),
    ],
)
def test_a_partition_value_is_typed_by_the_schema(dtype, text, value):
    """Never guessed from the text; what does not decode is unknown."""
    dtype = PrimitiveType(dtype) if isinstance(dtype, str) else dtype
    found = decode_partition(text, dtype)
    assert found == value
    assert type(found) is type(value)


def partitioned(dtype, *texts):
    more = {"partition_columns": ["x"], "partition_values": [{"x": t} for t in texts]}
    return column(dtype, *[stats(9) for _ in texts], **more)


def test_a_partition_value_is_both_bounds_and_never_missing():
    """NULL and the empty text are NULL, NaN is NaN, and what does not decode may be anything."""
    c = partitioned("double", "1.5", None, "", "NaN", "junk")
    assert c.lo.to_pylist() == c.hi.to_pylist() == [1.5, None, None, None, None]
    assert c.may_null.tolist() == [False, True, True, False, True]
    assert c.may_nan.tolist() == [False, False, False, True, True]
    assert c.may_value.tolist() == [True, False, False, False, True]
    assert c.lo_exact.tolist() == c.hi_exact.tolist() == [True, False, False, False, False]
    assert not c.missing.any()


def test_numeric_looking_partitions_compare_as_their_type_says():
    """'9' < '10' as numbers, but not as texts."""
    for dtype, literal, expected in (("integer", 10, [True, False]), ("string", "10", [False, False])):
        schema = StructType((Field("x", PrimitiveType(dtype)),))
        source = source_of(
            [stats(9)] * 2, schema, partition_columns=["x"], partition_values=[{"x": "9"}, {"x": "10"}]
        )
        assert (
            may_match(Compare("<", Ref(X), Literal(literal)), ColumnStatsIndex(source)).tolist()
            == expected
        )


# -- laziness ----------------------------------------------------------------------------------------


class Watched:
    """A source that remembers what it was asked."""

    def __init__(self, inner):
        self.inner, self.asked = inner, []
        self.num_rows, self.schema = inner.num_rows, inner.schema
        self.partition_columns = inner.partition_columns

    def __getattr__(self, name):
        def call(*args):
            self.asked.append((name, *args))
            return getattr(self.inner, name)(*args)

        return call


def test_only_the_columns_of_the_condition_are_decoded_and_only_once():
    """A table of a thousand columns costs what its condition costs."""
    names = ("a", "b", "c")
    schema = StructType(tuple(Field(n, PrimitiveType("long")) for n in names))
    inner = source_of([SplitStats(9, {(n,): 1 for n in names}, {(n,): 5 for n in names})], schema)
    assert isinstance(inner, StatsSource)
    source = Watched(inner)
    index = ColumnStatsIndex(source)
    assert source.asked == []
    where = And((Compare(">", Ref(("a",)), Literal(3)), Compare("<", Ref(("c",)), Literal(2))))
    may_match(where, index)
    assert {args[-1] for _, *args in source.asked if args} == {("a",), ("c",)}
    asked = list(source.asked)
    may_match(where, index)
    assert source.asked == asked


def test_missing_statistics_are_those_that_a_condition_needed():
    """No bound although there may be a value; an all-NULL split lacks nothing."""
    found = [stats(9), stats(9, 1), stats(9, 1, 2), stats(9, null=9), stats(9, dropped={X})]
    assert column("long", *found).missing.tolist() == [True, False, False, False, True]
