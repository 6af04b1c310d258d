"""QueryBuilder against a loop over Python rows: whatever is skipped, the answer is the loop's."""

import datetime as dt
import math
import operator
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import indextables as it

DAY = dt.datetime(2024, 1, 1)
OPS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("k", pa.int64()),
        ("d", pa.float64()),
        ("f", pa.float32()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("m", pa.decimal128(6, 2)),
        ("t", pa.timestamp("us")),
        ("z", pa.timestamp("us", "UTC")),
    ]
)
_small = st.integers(-3, 3)
_times = st.integers(-3, 3).map(lambda n: DAY + dt.timedelta(hours=12 * n))
VALUES = {
    "n": _small,
    "k": _small,
    "d": st.sampled_from([math.nan, -0.0, 0.0, -1.5, 2.0, math.inf, 0.1]),
    "f": st.sampled_from([math.nan, -0.0, 0.0, -1.5, 2.0, 0.5]),
    "s": st.sampled_from(["", "a", "ab", "b", "\ufffd", "\U00010000"]),
    "b": st.booleans(),
    "m": st.sampled_from(["-1.50", "0.00", "0.01", "2.00"]).map(Decimal),
    "t": _times,
    "z": _times.map(lambda moment: moment.replace(tzinfo=dt.UTC)),
}
# The same constant in other clothes; each must mean the same.
CLOTHES = {
    "n": (int, np.int8, np.int64, float, np.float32, Decimal),
    "d": (float, np.float64),
    "s": (str, np.str_),
    "b": (bool, np.bool_),
    "m": (Decimal, float),
    "t": (lambda v: v, pd.Timestamp, np.datetime64, str),
    "z": (lambda v: v, pd.Timestamp, lambda v: v.astimezone(dt.timezone(dt.timedelta(hours=5)))),
}


@dataclass(frozen=True)
class Test:
    """A condition twice: as an expression of a query, and as a function of a row."""

    __test__ = False
    expression: Any
    holds: Any


def missing(value):
    return value is None or value is pd.NaT or (isinstance(value, float) and math.isnan(value))


def compared(op, left, right):
    return op == "!=" if missing(left) or missing(right) else OPS[op](left, right)


@st.composite
def leaves(draw):
    q = it.QueryBuilder()
    name = draw(st.sampled_from(SCHEMA.names))
    form = draw(st.sampled_from(["compare", "compare", "flipped", "list", "missing", "columns", "sum"]))
    op = draw(st.sampled_from(sorted(OPS)))
    absent = st.sampled_from([None, math.nan, pd.NaT])
    if form in {"compare", "flipped"}:
        value = draw(st.one_of(VALUES[name], VALUES[name], VALUES[name], absent))
        dressed = (
            value if missing(value) else draw(st.sampled_from(CLOTHES.get(name, (lambda v: v,))))(value)
        )
        if form == "flipped" and not isinstance(dressed, np.generic):
            return Test(OPS[op](dressed, q[name]), lambda row: compared(op, value, row[name]))
        return Test(OPS[op](q[name], dressed), lambda row: compared(op, row[name], value))
    if form == "list":
        values = draw(st.lists(st.one_of(VALUES[name], VALUES[name], absent), max_size=4))
        return Test(q[name].isin(values), lambda row: any(compared("==", row[name], v) for v in values))
    if form == "missing":
        return Test(q[name].isnull(), lambda row: missing(row[name]))
    if form == "columns":
        one, two = draw(st.sampled_from([("n", "k"), ("d", "f"), ("n", "d"), ("k", "n"), ("t", "t")]))
        return Test(OPS[op](q[one], q[two]), lambda row: compared(op, row[one], row[two]))
    value = draw(_small)
    return Test(
        OPS[op](q["n"] * 2 - q["k"], value),
        lambda row: compared(
            op, None if None in (row["n"], row["k"]) else row["n"] * 2 - row["k"], value
        ),
    )


def _both(parts):
    return Test(
        reduce(operator.and_, (p.expression for p in parts)),
        lambda row: all(p.holds(row) for p in parts),
    )


def _either(parts):
    return Test(
        reduce(operator.or_, (p.expression for p in parts)),
        lambda row: any(p.holds(row) for p in parts),
    )


def _one_of_two(parts):
    return Test(
        reduce(operator.xor, (p.expression for p in parts)),
        lambda row: sum(p.holds(row) for p in parts) % 2 == 1,
    )


tests = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(_both),
        st.lists(inner, min_size=2, max_size=3).map(_either),
        st.lists(inner, min_size=2, max_size=2).map(_one_of_two),
        inner.map(lambda part: Test(~part.expression, lambda row: not part.holds(row))),
    ),
    max_leaves=5,
)


@st.composite
def steps(draw):
    """One step of a query: what it makes of the builder, and of a list of rows."""
    form = draw(st.sampled_from(["filter", "filter", "dates", "rows", "apply"]))
    if form == "filter":
        test = draw(tests)
        return (lambda q: q[test.expression]), (lambda rows: [row for row in rows if test.holds(row)])
    if form == "dates":
        ends = draw(st.tuples(st.none() | _times, st.none() | _times))
        low, high = ends[0] or dt.datetime.min, ends[1] or dt.datetime.max
        inside = lambda row: row["t"] is not None and low <= row["t"] <= high  # noqa: E731
        return (lambda q: q.date_range(ends)), (lambda rows: [row for row in rows if inside(row)])
    if form == "rows":
        start, end = draw(st.tuples(st.none() | st.integers(-6, 6), st.none() | st.integers(-6, 6)))
        return (lambda q: q.row_range((start, end))), (lambda rows: rows[start:end])
    by = draw(_small)
    computed = lambda row: {**row, "n": None if row["n"] is None else row["n"] + by}  # noqa: E731
    return (lambda q: q.apply("n", q["n"] + by)), (lambda rows: [computed(row) for row in rows])


rows = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), max_size=4
)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(
    splits=st.lists(rows, max_size=4),
    chains=st.lists(st.lists(steps(), max_size=4), min_size=5, max_size=5),
)
def test_property_a_query_is_a_loop_over_rows(splits, chains):
    """Filters with every operator and kind of constant, date ranges, rows by place and computed columns."""
    table = it.Table.create(f"memory://{uuid4()}", SCHEMA, properties={"index_column": "t"})
    for split in splits:
        table.append(pa.Table.from_pylist(split, SCHEMA))
    whole = [row for split in splits for row in pa.Table.from_pylist(split, SCHEMA).to_pylist()]
    for chain in chains:
        query = reduce(lambda q, step: step[0](q), chain, it.QueryBuilder())
        expected = reduce(lambda found, step: step[1](found), chain, whole)
        assert repr(table.read(query).to_arrow().to_pylist()) == repr(expected), query
        narrow = table.read(query.columns(["s", "n"])).to_arrow().to_pylist()
        assert narrow == [{"s": row["s"], "n": row["n"]} for row in expected]
