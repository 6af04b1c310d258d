"""QueryBuilder gives ArcticDB's answers, and prunes no row of them."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.parquet.read.row_filter import evaluable_part, to_row_mask
from indextables.core.bind.bind import bind
from indextables.core.stats.collect import collect_stats
from indextables.core.prune.index import ColumnStatsIndex, source_of
from indextables.core.predicate.nodes import Constant
from indextables.core.prune.evaluate import may_match
from indextables.core.predicate.to_sql import to_sql
from indextables.core.types import leaves, schema_from_arrow
from indextables.errors import PredicateError, UnknownColumnError
from indextables.table.query.builder import QueryBuilder

# ArcticDB builds its frames in a way that pandas has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:Passing a BlockManager:DeprecationWarning")

DATA = pa.table(
    {
        "k": pa.array(range(8), pa.int64()),
        "i": pa.array([1, 2, 3, -4, 0, None, 5, 6], pa.int32()),
        "l": pa.array([2**53, 2**53 + 1, 5, -1, 0, None, 2**63 - 1, -(2**63)], pa.int64()),
        "d": pa.array([1.0, math.nan, -0.0, 2.5, 0.0, None, -1e300, 7.0], pa.float64()),
        "f": pa.array([0.1, math.nan, 2.5, 0.0, -0.5, None, 1.0, 3.0], pa.float32()),
        "s": pa.array(["a", None, "b", "", "a b", "c", "a", "é"]),
        "b": pa.array([True, False, True, False, None, True, False, True]),
        "t": pa.array(
            [dt.datetime(2024, 1, day) if day else None for day in (1, 2, 0, 4, 5, 6, 7, 8)],
            pa.timestamp("us"),
        ),
        "g": pa.array(["x", "y", None, "x", "y", "z", "x", "z"]),
    }
)
SCHEMA = schema_from_arrow(DATA.schema)


def rows(query: QueryBuilder, data: pa.Table = DATA, **options: Any) -> list[int]:
    """The k of the rows that are left."""
    return query.execute(data, **options).column("k").to_pylist()


q = QueryBuilder()
FILTERS = [
    (q["i"] < 2, [0, 3, 4], "NULL is less than nothing"),
    (~(q["i"] < 2), [1, 2, 5, 6, 7], "so it is not less"),
    (q["i"] != 1, [1, 2, 3, 4, 5, 6, 7], "and unlike everything"),
    (~(q["i"] != 1), [0], "negated, it is gone again"),
    (q["d"] < 2, [0, 2, 4, 6], "NaN is less than nothing"),
    (q["d"] > 2, [3, 7], "nor is it greater, as it would be in Spark"),
    (~(q["d"] > 2), [0, 1, 2, 4, 5, 6], "but not greater it is"),
    (q["d"] == 0, [2, 4], "two zeros are one"),
    (q["d"] == np.nan, [], "nothing equals NaN"),
    (q["d"] != np.nan, [0, 1, 2, 3, 4, 5, 6, 7], "everything differs from it"),
    (q["d"] == None, [], "nothing equals None"),
    (q["d"].isnull(), [1, 5], "NaN and NULL are both missing"),
    (q["d"].notnull(), [0, 2, 3, 4, 6, 7], "the others are there"),
    (q["s"].isna(), [1], "under pandas' other name"),
    (q["s"].notna(), [0, 2, 3, 4, 5, 6, 7], "likewise"),
    (q["s"] == "a", [0, 6], "text"),
    (q["s"] != "a", [1, 2, 3, 4, 5, 7], "with the missing one"),
    (q["s"] < "b", [0, 3, 4, 6], "text has an order here"),
    (q["s"].isin(["a", "b"]), [0, 2, 6], "a list"),
    (q["s"].isin("a", "b"), [0, 2, 6], "one by one"),
    (q["s"].isin({"a"}), [0, 6], "a set"),
    (q["s"] == ["a", "b"], [0, 2, 6], "equality with a list"),
    (q["s"] != ["a", "b"], [1, 3, 4, 5, 7], "and its negation"),
    (q["s"].isnotin(["a", "b"]), [1, 3, 4, 5, 7], "a missing value is in no list"),
    (q["d"].isin([0.0, np.nan, None]), [2, 4], "not even one of missing values"),
    (q["d"].isnotin([0.0, np.nan]), [0, 1, 3, 5, 6, 7], "negated"),
    (q["d"].isin([]), [], "nothing is in no list"),
    (q["d"].isnotin([]), [0, 1, 2, 3, 4, 5, 6, 7], "everything is not"),
    (q["i"].isin(np.array([1, 5])), [0, 6], "an array"),
    (q["l"] == float(2**53), [0, 1], "two longs are this double"),
    (q["l"] == 2**53, [0], "one is this long"),
    (q["i"] < 2.5, [0, 1, 3, 4], "an int against a double"),
    (q["f"] == 0.1, [0], "a bare float takes the column's precision, as in pandas"),
    (q["f"] == np.float64(0.1), [], "numpy's double keeps its own"),
    (q["f"] == np.float32(0.1), [0], "and its float"),
    (q["f"].isin([0.1]), [], "in a list, too"),
    (q["b"], [0, 2, 5, 7], "a boolean column"),
    (~q["b"], [1, 3, 4, 6], "its negation holds for the missing one"),
    (q["b"] ^ (q["i"] > 1), [0, 1, 5, 6], "exclusive or"),
    (q["b"] & True, [0, 2, 5, 7], "constants"),
    (q["b"] | True, [0, 1, 2, 3, 4, 5, 6, 7], "constants"),
    ((q["i"] > 1) | (q["s"] == "a"), [0, 1, 2, 6, 7], "or"),
    ((q["i"] > 1) & (q["s"] == "a"), [6], "and"),
    (q["t"] > pd.Timestamp("2024-01-04"), [4, 5, 6, 7], "a time"),
    (q["t"] != pd.Timestamp("2024-01-04"), [0, 1, 2, 4, 5, 6, 7], "NaT differs"),
    (q["t"] <= dt.date(2024, 1, 2), [0, 1], "a date"),
    (q["t"] == pd.NaT, [], "nothing equals NaT"),
    (q["i"] == q["d"], [0, 4], "an int column against a double column"),
    (q["d"] == q["d"], [0, 2, 3, 4, 6, 7], "NaN differs from itself"),
    (q["d"] != q["d"], [1, 5], "and only what is missing does"),
    (q["s"] == q["g"], [], "text columns"),
    (1 < q["i"], [1, 2, 6, 7], "from the left"),
    (np.int64(1) < q["i"], [1, 2, 6, 7], "by a numpy scalar"),
    (q["i"] + 1 > 3, [2, 6, 7], "arithmetic"),
    (q["i"] / 2 == 1.5, [2], "division is exact"),
    (-q["i"] > 0, [3], "negative"),
    (abs(q["i"]) > 4, [6, 7], "absolute"),
    (q["i"] ** 2 > 20, [6, 7], "powers"),
    (5 - q["i"] > 3, [0, 3, 4], "from the left"),
    (q["i"] + q["d"] != 2, [1, 2, 3, 4, 5, 6, 7], "a missing sum differs"),
    ((q["i"] * 2).isin([2, 4]), [0, 1], "a list of sums"),
    ((q["d"] * -1).isin([0]), [2, 4], "a product that is minus zero"),
    ((q["d"] * 0 / 0).isin([math.nan, 1]), [], "a quotient that is NaN is in no list"),
    ((q["d"] + 0).isnotin([math.nan, 1.0]), [1, 2, 3, 4, 5, 6, 7], "nor is a missing one"),
    ((q["l"] + 0).isin([2**53 + 1]), [1], "integers beyond a double's are still told apart"),
    ((q["l"] + 0).isin([5, -0.5]), [2], "among doubles"),
    ((q["l"] + 0).isin([]), [], "a sum in no list"),
    ((q["i"] + q["d"]).isnull(), [1, 5], "a missing sum"),
    (q["s"].regex_match("^a"), [0, 4, 6], "a regular expression"),
    (~q["s"].regex_match("a"), [1, 2, 3, 5, 7], "its negation"),
    (q["I"] == 1, [0], "names have no case"),
]


@pytest.mark.parametrize(("condition", "kept", "why"), FILTERS, ids=[str(f[0]) for f in FILTERS])
def test_missing_values_follow_pandas(condition: Any, kept: list[int], why: str) -> None:
    """A comparison with NaN or NULL is False, != is True, ~ turns both round."""
    assert rows(q[condition]) == kept, why


@pytest.mark.parametrize(("condition", "kept", "why"), FILTERS, ids=[str(f[0]) for f in FILTERS])
def test_no_row_of_the_answer_is_pruned(condition: Any, kept: list[int], why: str) -> None:
    """With one row in each split, the splits kept are those of the answer, and no others if it is known."""
    query = q[condition]
    bound = bind(query.pruning_predicate(SCHEMA), SCHEMA)
    found = np.flatnonzero(may_match(bound, _index([DATA.slice(i, 1) for i in range(8)]))).tolist()
    assert set(kept) <= set(found), why
    superset = to_row_mask(evaluable_part(bound), DATA)
    assert set(kept) <= set(DATA["k"].filter(superset).to_pylist())


TIGHT = [
    (q["i"] > 1, [1, 2, 6, 7]),
    (q["i"] != 1, [1, 2, 3, 4, 5, 6, 7]),
    (~(q["d"] > 2), [0, 1, 2, 4, 5, 6]),
    (q["s"].isin(["a", "b"]), [0, 2, 6]),
    (q["s"].isnotin(["a", "b"]), [1, 3, 4, 5, 7]),
    (q["d"].isnull(), [1, 5]),
    (q["d"].notnull(), [0, 2, 3, 4, 6, 7]),
    (q["b"] ^ (q["i"] > 1), [0, 1, 5, 6]),
    (~q["b"], [1, 3, 4, 6]),
]


@pytest.mark.parametrize(("condition", "kept"), TIGHT, ids=[str(f[0]) for f in TIGHT])
def test_statistics_of_one_row_decide(condition: Any, kept: list[int]) -> None:
    """Not only sound: a split of one row is kept only if that row is in the answer."""
    bound = bind(q[condition].pruning_predicate(SCHEMA), SCHEMA)
    assert (
        np.flatnonzero(may_match(bound, _index([DATA.slice(i, 1) for i in range(8)]))).tolist() == kept
    )


def _index(splits: list[pa.Table]) -> ColumnStatsIndex:
    paths = [leaf.path for leaf in leaves(SCHEMA)]
    return ColumnStatsIndex(
        source_of([collect_stats(split, SCHEMA, paths) for split in splits], SCHEMA)
    )


# --- steps ---------------------------------------------------------------------------------------------


def test_a_query_is_never_changed() -> None:
    """Each step gives a new one, so a query can be the start of several."""
    base = q[q["i"] > 1]
    base[q["b"]]
    base.apply("x", q["i"] + 1)
    assert rows(base) == [1, 2, 6, 7]
    assert rows(q) == list(range(8))


def test_filters_chain() -> None:
    """Two filters are an AND, in pruning too."""
    query = q[q["i"] <= 3][q["b"]]
    assert rows(query) == [0, 2]
    assert to_sql(query.pruning_predicate(SCHEMA)) == "(i <= 3) IS TRUE AND (b) IS TRUE"


def test_pruning_stops_at_the_first_step_that_is_no_filter() -> None:
    """A filter after row_range, apply or groupby sees other rows or other values than the files hold."""
    first = q[q["i"] > 1]
    alone = to_sql(first.pruning_predicate(SCHEMA))
    later = [
        first.row_range((0, 2))[q["k"] > 5],
        first.apply("i", q["i"] * 0)[q["i"] > 5],
        first.groupby("g").agg({"i": "sum"})[q["i"] > 5],
        first.columns(["i", "k"])[q["k"] > 5],
        first.head(1)[q["k"] > 5],
    ]
    assert [to_sql(query.pruning_predicate(SCHEMA)) for query in later] == [alone] * len(later)
    assert q.row_range((0, 1))[q["k"] > 5].pruning_predicate(SCHEMA) == Constant(True)
    assert rows(q.row_range((0, 2))[q["i"] > 1]) == [1]
    assert rows(q[q["i"] > 1].row_range((0, 2))) == [1, 2]


def test_rows_are_taken_by_place_as_python_slices_do() -> None:
    """Negative places count from the end, and a range may be empty."""
    for start, end in [
        (0, 3),
        (2, None),
        (None, 3),
        (-2, None),
        (None, -2),
        (5, 2),
        (-100, 100),
        (3, 3),
        (None, None),
    ]:
        assert rows(q.row_range((start, end))) == list(range(8))[start:end]
    assert rows(q.head(2)) == [0, 1]
    assert rows(q.head(-6)) == [0, 1]
    assert rows(q.tail(2)) == [6, 7]
    assert rows(q.tail(-6)) == [6, 7]
    assert rows(q.tail(0)) == []


def test_a_date_range_has_both_ends_and_prunes() -> None:
    """It acts on the table's index column and is a filter like any other."""
    query = q.date_range((pd.Timestamp("2024-01-02"), pd.Timestamp("2024-01-05")))
    assert rows(query, index_column="t") == [1, 3, 4]
    assert rows(q.date_range((None, dt.datetime(2024, 1, 2))), index_column="t") == [0, 1]
    assert rows(q.date_range((dt.datetime(2024, 1, 7), None)), index_column="t") == [6, 7]
    assert rows(q.date_range(pd.date_range("2024-01-02", "2024-01-05")), index_column="t") == [1, 3, 4]
    bound = bind(query[q["b"]].pruning_predicate(SCHEMA, index_column="t"), SCHEMA)
    kept = may_match(bound, _index([DATA.slice(i, 1) for i in range(8)]))
    assert np.flatnonzero(kept).tolist() == []
    with pytest.raises(PredicateError, match="which column holds the time"):
        query.execute(DATA)


def test_apply_computes_columns() -> None:
    """Integers stay integers, division makes doubles, a missing operand makes a missing result."""
    query = (
        q.apply("sum", q["i"] + q["k"])
        .apply("half", q["i"] / 2)
        .apply("twice", q["sum"] * 2)
        .apply("one", 1)
    )
    result = query.execute(DATA.slice(3, 3)).select(["sum", "half", "twice", "one"])
    assert result.to_pydict() == {
        "sum": [-1, 4, None],
        "half": [-2.0, 0.0, None],
        "twice": [-2, 8, None],
        "one": [1, 1, 1],
    }
    assert [str(t) for t in result.schema.types] == ["int64", "double", "int64", "int64"]
    assert q.apply("i", q["i"] * 10).execute(DATA)["i"].to_pylist()[:3] == [10, 20, 30]
    assert q.apply("x", q["i"] / 0).execute(DATA)["x"].to_pylist()[0] == math.inf
    assert q.apply("x", q["i"] ** -1).execute(DATA.slice(1, 1))["x"].to_pylist() == [0.5]


def test_groups_leave_out_what_is_missing() -> None:
    """Missing keys form no group, missing values enter no result; groups come in the order of their key."""
    query = q.groupby("g").agg({"i": "sum", "n": ("d", "count"), "m": ("d", "mean"), "b": "max"})
    assert query.execute(DATA).to_pylist() == [
        {"g": "x", "i": 2, "n": 3, "m": pytest.approx((1.0 + 2.5 - 1e300) / 3), "b": True},
        {"g": "y", "i": 2, "n": 1, "m": 0.0, "b": False},
        {"g": "z", "i": 6, "n": 1, "m": 7.0, "b": True},
    ]
    empty = pa.table({"g": ["x"], "d": pa.array([math.nan])})
    nothing = q.groupby("g").agg(
        {"s": ("d", "sum"), "m": ("d", "mean"), "n": ("d", "count"), "lo": ("d", "min")}
    )
    assert nothing.execute(empty).to_pylist() == [{"g": "x", "s": 0.0, "m": None, "n": 0, "lo": None}]
    zeros = pa.table({"d": [0.0, -0.0, 1.0, math.nan], "v": [1, 2, 3, 4]})
    assert q.groupby("d").agg({"v": "sum"}).execute(zeros)["v"].to_pylist() == [3, 3]


def test_steps_after_groups_work_on_groups() -> None:
    """Filters, computed columns and groups again."""
    query = q.groupby("g").agg({"i": "sum"})[q["i"] > 2].apply("x", q["i"] + 1)
    assert query.execute(DATA).to_pylist() == [{"g": "z", "i": 6, "x": 7}]


def test_only_the_columns_that_are_needed_are_read() -> None:
    """Those of the result and those the steps look at; all, where the result has all."""
    assert q[q["i"] > 1].needed_columns(SCHEMA) is None
    assert q[q["i"] > 1].columns(["s"]).needed_columns(SCHEMA) == ("i", "s")
    assert q.apply("x", q["i"] + q["d"]).columns(["x"]).needed_columns(SCHEMA) == ("i", "d")
    grouped = q[q["b"]].groupby("g").agg({"n": ("i", "sum")})[q["n"] > 1]
    assert grouped.needed_columns(SCHEMA) == ("i", "b", "g")
    ranged = q.date_range((None, None)).columns(["k"])
    assert ranged.needed_columns(SCHEMA, index_column="t") == ("k", "t")
    for query in (q[q["i"] > 1].columns(["k"]), grouped):
        needed = query.needed_columns(SCHEMA)
        assert query.execute(DATA.select(needed)).equals(query.execute(DATA))


def test_queries_join_end_to_end() -> None:
    """`then` runs after, `prepend` before."""
    first, second = q[q["i"] > 1], q.head(1)
    assert rows(first.then(second)) == [1]
    assert rows(second.prepend(first)) == [1]
    assert rows(second.then(first)) == []


def test_a_nested_field_and_a_name_with_a_dot() -> None:
    """The column of that very name wins."""
    data = pa.table({"k": [0, 1], "st": [{"a": 1}, {"a": 2}], "x.y": [5, 6]})
    assert rows(q[q["st.a"] == 2], data) == [1]
    assert rows(q[q["x.y"] == 5], data) == [0]


def test_thousands_of_conditions_need_no_stack() -> None:
    """A loop that adds alternatives makes a wide query."""
    condition = q["l"] == 0
    for i in range(5_000):
        condition = condition | (q["l"] == i)
    assert rows(q[condition]) == [2, 4]


MISTAKES = [
    (lambda: q[q["s"] == 1].execute(DATA), "cannot be compared"),
    (lambda: q[q["i"] == "a"].execute(DATA), "cannot be compared"),
    (lambda: q[q["b"] == 1].execute(DATA), "cannot be compared"),
    (lambda: q[q["i"] == True].execute(DATA), "cannot be compared"),
    (lambda: q[q["i"].isin([1, "a"])].execute(DATA), "cannot be compared"),
    (lambda: q[q["l"] + 0 == 2**63].execute(DATA), "not a 64-bit integer"),
    (lambda: q[q["i"]].execute(DATA), "not a condition"),
    (lambda: q[q["i"] + 1].execute(DATA), "not a condition"),
    (lambda: q[5], "takes a column's name or a condition"),
    (lambda: (q["i"] > 1) & 5, "not a condition"),
    (lambda: q[q["s"] + 1 > 2].execute(DATA), "needs numbers"),
    (lambda: q[q["i"] ** 0.5 > 2].execute(DATA), "exponent"),
    (lambda: q.apply("x", q["i"] > 1).execute(DATA), "not a number"),
    (lambda: q.agg({"i": "sum"}), "needs a groupby"),
    (lambda: q.groupby("g").execute(DATA), "needs agg"),
    (lambda: q.groupby("g").agg({"i": "median"}), "not an aggregation"),
    (lambda: q.groupby("g").agg({"s": "sum"}).execute(DATA), "not a number"),
    (lambda: q.columns(["zz"]).execute(DATA), "no column"),
    (lambda: q.row_range((1.5, 2)), "takes integers"),
    (lambda: q[q["i"].regex_match("x")].execute(DATA), "searches text"),
    (lambda: q[q["s"] == q["i"]].execute(DATA), "Spark casts"),
]


@pytest.mark.parametrize(("mistake", "message"), MISTAKES, ids=[m for _, m in MISTAKES])
def test_a_mistake_is_named(mistake: Any, message: str) -> None:
    """What pandas or ArcticDB would refuse, with words."""
    with pytest.raises(PredicateError, match=message):
        mistake()


def test_an_unknown_column_is_named() -> None:
    """Before anything is read."""
    with pytest.raises(UnknownColumnError):
        q[q["zz"] > 1].pruning_predicate(SCHEMA)
    with pytest.raises(UnknownColumnError):
        q[q["zz"] + 1 > 1].pruning_predicate(SCHEMA)
    with pytest.raises(TypeError, match="combine conditions"):
        (q["i"] > 1) and (q["i"] < 5)


# --- ArcticDB ------------------------------------------------------------------------------------------

numbers = st.one_of(st.integers(-5, 5), st.floats(-5, 5, width=32), st.just(float("nan")))
longs = st.sampled_from([0, 1, -1, 5, 2**53, 2**53 + 1, 2**53 + 2, -(2**63), 2**63 - 1])
texts = st.sampled_from(["", "a", "b", "ab", "x y"])
times = st.sampled_from([pd.Timestamp(2024, 1, day) for day in (1, 2, 3)])


@st.composite
def conditions(draw: Any) -> Any:
    """A function from a query builder, ours or ArcticDB's, to one test."""
    name = draw(st.sampled_from("ildfsbt"))
    op = draw(
        st.sampled_from(
            [
                "eq",
                "ne",
                "lt",
                "le",
                "gt",
                "ge",
                "isin",
                "isnotin",
                "isnull",
                "notnull",
                "column",
                "sum",
            ]
        )
    )
    if op in {"isnull", "notnull"}:
        return lambda q: getattr(q[name], op)()
    if name == "b":
        wanted = draw(st.booleans())
        return (
            (lambda q: q["b"] == wanted)
            if op in {"eq", "ne", "column"}
            else (lambda q: q["b"] == (not wanted))
        )
    values = {"s": texts, "t": times, "l": longs}.get(name, numbers)
    if op in {"isin", "isnotin"}:
        listed = draw(st.lists(values.filter(lambda v: v == v), min_size=1, max_size=3))
        listed = [float(v) for v in listed] if name in "dfi" else listed
        return lambda q: getattr(q[name], op)(listed)
    if name == "s":
        value = draw(values)
        return (lambda q: q["s"] == value) if op in {"eq", "lt", "le"} else (lambda q: q["s"] != value)
    if op in {"column", "sum"}:
        other = draw(st.sampled_from("ildf" if name in "ildf" else "t"))
        if op == "sum" and name in "id" and other in "id":
            value = draw(st.integers(-5, 5))
            return lambda q: q[name] + q[other] > value
        return lambda q: q[name] < q[other]
    value = draw(values)
    return lambda q: getattr(q[name], f"__{op}__")(value)


queries = st.recursive(
    conditions(),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: lambda q: p[0](q) & p[1](q)),
        st.tuples(inner, inner).map(lambda p: lambda q: p[0](q) | p[1](q)),
        st.tuples(inner, inner).map(lambda p: lambda q: p[0](q) ^ p[1](q)),
        inner.map(lambda f: lambda q: ~f(q)),
    ),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Rows of the types both have; integers and booleans without missing values, as in ArcticDB."""
    rng = np.random.default_rng(7)
    n = 60

    def pick(values: list[Any]) -> list[Any]:
        return [values[j] for j in rng.integers(0, len(values), n)]

    return pd.DataFrame(
        {
            "k": np.arange(n),
            "i": np.array(pick([-5, -1, 0, 1, 2, 5]), "int32"),
            "l": np.array(pick([0, 1, 5, 2**53, 2**53 + 1, 2**53 + 2, -(2**63), 2**63 - 1]), "int64"),
            "d": np.array(pick([np.nan, -0.0, 0.0, 0.5, 1.0, 2.5, -3.0, np.inf, -np.inf]), "float64"),
            "f": np.array(pick([np.nan, 0.0, 0.1, 0.5, -2.5, 3.0]), "float32"),
            "s": pick([None, "", "a", "b", "ab"]),
            "b": np.array(pick([True, False])),
            "t": pd.Series(
                pick([pd.NaT, *(pd.Timestamp(2024, 1, d) for d in (1, 2, 3))]), dtype="datetime64[ns]"
            ),
            "g": pick([None, "x", "y"]),
        }
    )


@pytest.fixture(scope="module")
def arctic(frame: pd.DataFrame) -> Any:
    """The same rows in ArcticDB, in memory, without statistics, seven rows in a segment."""
    import arcticdb

    library = arcticdb.Arctic("mem://").create_library(
        "peer", arcticdb.LibraryOptions(rows_per_segment=7)
    )
    library.write("rows", frame)
    return library


def _to_arrow(frame: pd.DataFrame) -> pa.Table:
    """Half of the missing doubles as NULL, the others as NaN: to a query they are the same."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    table = table.set_column(table.column_names.index("t"), "t", table["t"].cast(pa.timestamp("us")))
    nulls = frame["d"].isna() & (frame["k"] % 2 == 0)
    doubles = pa.array([None if null else value for null, value in zip(nulls, frame["d"], strict=True)])
    return table.set_column(table.column_names.index("d"), "d", doubles)


@settings(max_examples=100)
@given(build=queries)
def test_arcticdb_keeps_the_same_rows(frame: pd.DataFrame, arctic: Any, build: Any) -> None:
    """Random filters over the types both have, missing values included; and none of the rows is pruned."""
    import arcticdb

    theirs = arcticdb.QueryBuilder()
    expected = arctic.read("rows", query_builder=theirs[build(theirs)]).data["k"].tolist()
    data = _to_arrow(frame)
    query = q[build(q)]
    assert rows(query, data) == expected
    schema = schema_from_arrow(data.schema)
    bound = bind(query.pruning_predicate(schema), schema)
    splits = [data.slice(i, 5) for i in range(0, len(frame), 5)]
    paths = [leaf.path for leaf in leaves(schema)]
    index = ColumnStatsIndex(
        source_of([collect_stats(split, schema, paths) for split in splits], schema)
    )
    assert {k // 5 for k in expected} <= set(np.flatnonzero(may_match(bound, index)).tolist())


@pytest.mark.parametrize("column", ["i", "l", "d", "f", "b"])
@pytest.mark.parametrize("function", ["sum", "mean", "min", "max", "count"])
def test_arcticdb_aggregates_alike(
    frame: pd.DataFrame, arctic: Any, column: str, function: str
) -> None:
    """The five aggregations over each kind of number."""
    import arcticdb

    theirs = arcticdb.QueryBuilder().groupby("g").agg({"r": (column, function)})
    expected = arctic.read("rows", query_builder=theirs).data["r"].sort_index()
    ours = q.groupby("g").agg({"r": (column, function)}).execute(_to_arrow(frame))
    assert ours["g"].to_pylist() == expected.index.tolist()
    np.testing.assert_allclose(
        np.array([np.nan if v is None else v for v in ours["r"].to_pylist()], float),
        expected.to_numpy(float),
        rtol=1e-12,
    )


@pytest.mark.parametrize(
    "build",
    [
        lambda q: q["i"] + 1,
        lambda q: q["i"] * q["i"],
        lambda q: q["i"] / 2,
        lambda q: q["i"] + q["d"],
        lambda q: q["l"] - q["i"],
        lambda q: -q["d"],
        lambda q: abs(q["i"]),
        lambda q: q["i"] ** 2,
        lambda q: q["f"] + q["f"],
        lambda q: q["f"] + 1.5,
        lambda q: 1 - q["d"],
        lambda q: (q["i"] + 2) * (q["d"] - 1) / 4,
    ],
    ids=range(12),
)
def test_arcticdb_computes_alike(frame: pd.DataFrame, arctic: Any, build: Any) -> None:
    """Projections over integers and floats."""
    import arcticdb

    theirs = arcticdb.QueryBuilder()
    expected = (
        arctic.read("rows", query_builder=theirs.apply("r", build(theirs))).data["r"].to_numpy(float)
    )
    ours = q.apply("r", build(q)).execute(_to_arrow(frame))["r"].to_pylist()
    np.testing.assert_allclose(
        np.array([np.nan if v is None else v for v in ours], float), expected, rtol=1e-7
    )


def test_filters_then_rows_then_groups_as_in_arcticdb(frame: pd.DataFrame, arctic: Any) -> None:
    """A chain of steps in the same order gives the same result."""
    import arcticdb

    def build(start: Any) -> Any:
        step = start[start["i"] > 0]
        step = step.row_range((1, 20))
        step = step.apply("x", step["i"] * 2)
        step = step[step["x"] > 2]
        return step.groupby("g").agg({"x": "sum"})

    expected = arctic.read("rows", query_builder=build(arcticdb.QueryBuilder())).data["x"].sort_index()
    ours = build(QueryBuilder()).execute(_to_arrow(frame))
    assert dict(zip(ours["g"].to_pylist(), ours["x"].to_pylist(), strict=True)) == expected.to_dict()
