"""Rows are kept exactly where the condition is TRUE."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indextables.parquet.read.row_filter import check_evaluable, to_row_mask, truth_of
from indextables.core.bind.bind import bind
from indextables.core.predicate.col import col
from indextables.core.predicate.like import like
from indextables.core.predicate.nodes import (
    And,
    BoolRef,
    Compare,
    IsIn,
    IsNan,
    IsNull,
    IsTrue,
    Literal,
    NanRule,
    Not,
    Or,
    Predicate,
    Ref,
    StartsWith,
)
from indextables.core.predicate.to_sql import to_sql
from indextables.core.types import schema_from_arrow
from indextables.errors import PredicateError
from indextables.sql.conditions.parser import parse_predicate
from support.nasty import COLUMNS, nasty_table

DATA = nasty_table()
SCHEMA = schema_from_arrow(DATA.schema)
NUMBERS = ["i", "l", "d", "f", "m"]

ref_of = {name: Ref((name,)) for name in COLUMNS}


def _literals(name: str) -> st.SearchStrategy[Literal]:
    """Values from the data and some beside them, of the column's own type: there engines agree."""
    present = st.sampled_from(COLUMNS[name][1])
    extra = {
        "i": st.integers(-10, 10),
        "s": st.text(st.sampled_from("ab%_"), max_size=3),
        "d": st.floats(width=64),
        "f": st.floats(width=32),
        "x": st.binary(max_size=2),
    }.get(name)
    return (present | extra if extra is not None else present).map(Literal)


@st.composite
def leaves(draw: Any) -> Predicate:
    """One leaf over one column, or over two of the same type."""
    name = draw(st.sampled_from(["i", "l", "f", "d", "m", "s", "b", "x", "dt", "ts", "tn"]))
    ref = ref_of[name]
    op = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"]))
    kind = draw(st.integers(0, 5))
    match kind, name:
        case 0, "s":
            pattern = draw(st.text(st.sampled_from("ab%_\n"), max_size=4))
            return like(ref, pattern)  # type: ignore[return-value]
        case 0, "d" | "f":
            return IsNan(ref)
        case 0, "b":
            return BoolRef(ref)
        case 1, _:
            return IsNull(ref)
        case 2, _:
            values = draw(st.lists(_literals(name) | st.just(Literal(None)), min_size=1, max_size=4))
            return IsIn(ref, tuple(values))
        case 3, "i" | "l":
            return Compare(op, ref_of["i"], ref_of["l"])
        case 3, "d":
            return Compare(op, ref, ref)
        case _:
            return Compare(op, ref, draw(_literals(name)))


trees = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: And(tuple(parts))),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: Or(tuple(parts))),
        st.builds(Not, inner),
        st.builds(IsTrue, inner),
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def con() -> Any:
    """DuckDB over the nasty rows; its NaN and its text order are Spark's."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("rows", DATA)
    connection.execute("CREATE TABLE t AS SELECT row_number() OVER () AS n, * FROM rows")
    return connection


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=trees)
def test_truth_values_are_duckdbs(con: Any, tree: Predicate) -> None:
    """Random conditions over nasty rows: TRUE, FALSE and NULL agree row by row."""
    sql = to_sql(tree, "duckdb")
    answers = [row[0] for row in con.execute(f"SELECT ({sql}) FROM t ORDER BY n").fetchall()]
    assert truth_of(bind(tree, SCHEMA), DATA).to_pylist() == answers


@settings(max_examples=200)
@given(tree=trees)
def test_batches_and_tables_give_the_same_rows(tree: Predicate) -> None:
    """Chunks, slices and views of text change nothing."""
    bound = bind(tree, SCHEMA)
    whole = to_row_mask(bound, DATA).to_pylist()
    chunked = pa.concat_tables([DATA.slice(0, 5), DATA.slice(5, 0), DATA.slice(5)])
    views = DATA.set_column(
        DATA.schema.get_field_index("s"), "s", DATA["s"].cast(pa.string_view())
    ).combine_chunks()
    coded = DATA.set_column(
        DATA.schema.get_field_index("s"), "s", DATA["s"].dictionary_encode()
    ).combine_chunks()
    assert to_row_mask(bound, chunked).to_pylist() == whole
    assert to_row_mask(bound, views.to_batches()[0]).to_pylist() == whole
    assert to_row_mask(bound, coded).to_pylist() == whole
    assert None not in whole


def test_nan_is_judged_by_the_rule_of_its_leaf() -> None:
    """Spark's NaN is above every number, pandas' is nothing."""
    data = pa.table({"d": [1.0, 7.0, math.nan, None]})
    schema = schema_from_arrow(data.schema)

    def mask(op: Any, value: float, rule: NanRule) -> list[bool]:
        bound = bind(Compare(op, Ref(("d",)), Literal(value), rule), schema)
        return to_row_mask(bound, data).to_pylist()

    assert mask(">", 5.0, NanRule.SPARK) == [False, True, True, False]
    assert mask(">", 5.0, NanRule.IEEE) == [False, True, False, False]
    assert mask("<>", 7.0, NanRule.IEEE) == [True, False, True, False]
    assert mask("=", math.nan, NanRule.SPARK) == [False, False, True, False]
    assert mask("=", math.nan, NanRule.IEEE) == [False, False, False, False]
    assert mask("<>", math.nan, NanRule.IEEE) == [True, True, True, False]


def test_a_field_of_a_null_struct_is_null() -> None:
    """Whatever the child's buffer holds at that place."""
    child = pa.array([1, 2, 3])
    struct = pa.StructArray.from_arrays([child], ["a"], mask=pa.array([False, True, False]))
    data = pa.table({"st": struct})
    bound = bind(col("st.a") >= 1, schema_from_arrow(data.schema))
    assert truth_of(bound, data).to_pylist() == [True, None, True]


@pytest.mark.parametrize(
    ("sql", "part"),
    [
        ("i = 1 AND rand() < 0.5", "rand() < 0.5"),
        ("reverse(s) = 'A'", "reverse(s) = 'A'"),
        ("s > DATE '2024-01-01'", "s > DATE '2024-01-01'"),
        ("b = 1", "b = 1"),
        ("i", "i"),
        ("dt = ts", "dt = ts"),
    ],
)
def test_a_part_only_an_engine_can_evaluate_is_named(sql: str, part: str) -> None:
    """Before any file is opened, with the part and a way out."""
    bound = bind(parse_predicate(sql), SCHEMA)
    with pytest.raises(PredicateError) as caught:
        check_evaluable(bound)
    assert caught.value.part == part
    assert "DuckDB" in caught.value.hint
    with pytest.raises(PredicateError):
        to_row_mask(bound, DATA)


def test_text_that_is_no_number_stops_a_comparison_with_numbers() -> None:
    """As Spark does in ANSI mode, instead of losing the row."""
    bound = bind(parse_predicate("s = 9"), SCHEMA)
    check_evaluable(bound)
    with pytest.raises(PredicateError, match="not every text is a bigint"):
        to_row_mask(bound, DATA)


def test_a_prefix_without_its_pattern_cannot_filter_rows() -> None:
    """An adapter may know only the prefix of a condition: enough to skip files, not to filter rows."""
    bound = bind(StartsWith(Ref(("s",)), "a", exact=False), SCHEMA)
    with pytest.raises(PredicateError):
        check_evaluable(bound)
    with pytest.raises(PredicateError):
        to_row_mask(bound, DATA)


def test_ten_thousand_alternatives_filter_quickly() -> None:
    """They are one hashed list, not ten thousand passes over the rows."""
    data = pa.table({"a": range(100_000)})
    bound = bind(
        parse_predicate(" OR ".join(f"a = {i * 7}" for i in range(10_000))),
        schema_from_arrow(data.schema),
    )
    assert pc.sum(to_row_mask(bound, data)).as_py() == 10_000


def test_values_of_every_type_are_found_again() -> None:
    """Equality with each value of the data finds its rows."""
    for name, (_, values) in COLUMNS.items():
        for value in values:
            if name == "f" or value != value:  # 0.1 is no float, NaN is unlike itself
                continue
            mask = to_row_mask(bind(Compare("=", ref_of[name], Literal(value)), SCHEMA), DATA)
            found = set(DATA[name].filter(mask).to_pylist())
            assert found == {value}
    assert isinstance(COLUMNS["m"][1][0], Decimal)
    assert isinstance(COLUMNS["dt"][1][0], dt.date)


@pytest.mark.parametrize(("dtype", "bits"), [(pa.float32(), "<u4"), (pa.float64(), "<u8")], ids=str)
def test_a_list_with_nan_finds_every_nan(dtype: pa.DataType, bits: str) -> None:
    """0.0 / 0.0 gives a NaN whose sign is set, and others carry a payload: to SQL they are one value."""
    one = np.array([math.nan], bits.replace("u", "f")).view(bits)[0]
    sign = one.dtype.type(1 << (one.dtype.itemsize * 8 - 1))
    nans = np.array([one, one | sign, one | 1, one | sign | 7]).view(bits.replace("u", "f"))
    data = pa.table({"x": pa.array([*nans, 1.0, None], dtype)})
    assert pc.is_nan(data["x"]).to_pylist() == [True] * 4 + [False, None]
    schema = schema_from_arrow(data.schema)
    for text, rows in {
        "x IN (double('NaN'))": [True] * 4 + [False, None],
        "x NOT IN (double('NaN'), 3)": [False] * 4 + [True, None],
        "x IN (double('NaN'), 1, NULL)": [True] * 5 + [None],
    }.items():
        assert truth_of(bind(parse_predicate(text), schema), data).to_pylist() == rows, text
