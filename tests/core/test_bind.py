"""Binding: names, and literals in the column's domain, exactly as Spark coerces them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from indextables.core.bind.bind import bind
from indextables.core.predicate.col import col
from indextables.core.bind.coerce import FLOAT32, float32_at
from indextables.core.predicate.nodes import Compare, Constant, IsIn, Literal, NanRule, Opaque, Or, Ref
from indextables.core.prune.index import ColumnStatsIndex, source_of
from indextables.core.prune.evaluate import may_match
from indextables.core.stats.split_stats import SplitStats
from indextables.core.types import (
    DecimalType,
    Field,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
)
from indextables.errors import UnknownColumnError
from indextables.sql.conditions.parser import parse_predicate
from support.shapes import read_cases, shape
from support.strategies import nasty_decimals, nasty_doubles, nasty_ints, nasty_singles
from support.truth import truth

CASE_FILE = Path(__file__).parent / "cases" / "bind.txt"
CASES = read_cases(CASE_FILE.read_text(encoding="utf-8")) if CASE_FILE.exists() else []


def _primitive(name: str) -> PrimitiveType:
    return PrimitiveType(name)  # type: ignore[arg-type]


INNER = StructType((Field("c", _primitive("string")),))
SCHEMA = StructType(
    (
        Field("y", _primitive("byte")),
        Field("i", _primitive("integer")),
        Field("l", _primitive("long")),
        Field("f", _primitive("float")),
        Field("d", _primitive("double")),
        Field("m", DecimalType(10, 2)),
        Field("w", DecimalType(38, 10)),
        Field("s", _primitive("string")),
        Field("b", _primitive("boolean")),
        Field("x", _primitive("binary")),
        Field("dt", _primitive("date")),
        Field("ts", _primitive("timestamp")),
        Field("tn", _primitive("timestamp_ntz")),
        Field("st", StructType((Field("a", _primitive("integer")), Field("B", INNER)))),
        Field("a.b", _primitive("integer")),
        Field("arr", ListType(_primitive("integer"))),
        Field("map", MapType(_primitive("string"), _primitive("integer"))),
        Field("ch", _primitive("string"), metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}),
        Field("co", _primitive("string"), metadata={"__COLLATIONS": {"co": "icu.UNICODE"}}),
        Field("v", _primitive("variant")),
    )
)


def bound_shape(sql: str) -> str:
    """The bound condition of a SQL text, in short."""
    berlin = "Europe/Berlin"
    return shape(bind(parse_predicate(sql, timezone=berlin), SCHEMA, timezone=berlin))


@pytest.mark.parametrize(("sql", "expected", "why"), CASES, ids=[case[0] for case in CASES])
def test_conditions_are_bound_as_spark_coerces(sql: str, expected: str, why: str) -> None:
    """Each line of cases/bind.txt, in the zone Europe/Berlin."""
    assert bound_shape(sql) == expected, why


def test_an_unknown_column_is_an_error_with_a_proposal() -> None:
    """Also inside a condition that only an engine can evaluate."""
    for sql in ("sq = 1", "upper(sq) = 'X'", "st.q = 1", "i = sq", "sq IN (1)", "sq IS NULL"):
        with pytest.raises(UnknownColumnError):
            bind(parse_predicate(sql), SCHEMA)
    with pytest.raises(UnknownColumnError, match="did you mean 'map'"):
        bind(col("mop") == 1, SCHEMA)


def test_two_spellings_of_one_name_are_ambiguous_unless_case_counts() -> None:
    """With case_sensitive each name is its own column."""
    schema = StructType((Field("ab", _primitive("integer")), Field("AB", _primitive("string"))))
    with pytest.raises(UnknownColumnError, match="ambiguous"):
        bind(col("aB") == 1, schema)
    bound = bind(col("AB") == "x", schema, case_sensitive=True)
    assert bound == Compare("=", Ref(("AB",)), Literal("x", _primitive("string")))
    with pytest.raises(UnknownColumnError):
        bind(col("aB") == 1, schema, case_sensitive=True)


def test_an_opaque_condition_says_why() -> None:
    """The reason reaches the report and the error of a scan."""
    assert bind(col("s") == 255, SCHEMA).why == "Spark casts the string column to integer"
    assert bind(col("b") == 1, SCHEMA).why == "Spark cannot compare boolean with integer"
    assert "not boolean" in bind(parse_predicate("i AND b"), SCHEMA).children[0].why


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int32(5), 5),
        (np.float64(5.0), 5),
        (pd.Timestamp("1970-01-01T00:00:01"), 1_000_000),
        (np.datetime64("1970-01-01T00:00:01"), 1_000_000),
        (np.datetime64("1970-01-01T00:00:01", "ns"), 1_000_000),
    ],
)
def test_scalars_of_numpy_and_pandas_are_values(value: Any, expected: int) -> None:
    """Their exact value is what is compared."""
    column = "l" if isinstance(value, np.number) else "tn"
    assert bind(col(column) == value, SCHEMA).right.value == expected


def test_every_null_of_pandas_is_null() -> None:
    """NaT and NA are NULL; NaN is a number."""
    for value in (None, pd.NaT, pd.NA, np.datetime64("NaT")):
        assert bind(col("ts") == value, SCHEMA) == Constant(None)
    assert bind(col("d") == np.nan, SCHEMA) != Constant(None)


def test_a_nanosecond_lies_between_two_microseconds() -> None:
    """Cutting it off would make < and = lie."""
    stamp = pd.Timestamp("1970-01-01T00:00:00.000001001")
    assert shape(bind(col("tn") < stamp, SCHEMA)) == "(<= tn 1)"
    assert shape(bind(col("tn") == stamp, SCHEMA)) == "(and (null tn) None)"
    assert shape(bind(col("ts") >= stamp.tz_localize("UTC"), SCHEMA)) == "(>= ts 2)"


def test_a_time_at_the_end_of_the_calendar_has_its_instant() -> None:
    """datetime.max in New York is after the last instant Python can name in UTC."""
    west = dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-5)))
    plain = dt.datetime.max.replace(tzinfo=dt.UTC)
    later, earlier = (bind(col("ts") < value, SCHEMA).right.value for value in (west, plain))
    assert later - earlier == 5 * 3600 * 10**6


def test_a_skipped_midnight_is_the_end_of_the_gap() -> None:
    """Samoa had no 30 December 2011: both dates begin at the same instant."""
    instant = dt.datetime(2011, 12, 30, 10, tzinfo=dt.UTC)
    bound = bind(col("dt") == instant, SCHEMA, timezone="Pacific/Apia")
    assert shape(bound) == "(and (>= dt 15338) (<= dt 15339))"


def test_a_list_of_ten_thousand_is_one_list() -> None:
    """However it was written."""
    ors: Any = reduce(lambda a, b: a | b, [col("l") == i for i in range(10_000)])
    assert isinstance(ors, Or)
    bound = bind(ors, SCHEMA)
    assert isinstance(bound, IsIn)
    assert bound == bind(col("l").isin(range(10_000)), SCHEMA)


OPS = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"])
NUMBERS = st.one_of(
    nasty_ints(64),
    nasty_ints(8),
    nasty_doubles,
    st.decimals(-(10**6), 10**6, places=3),
    nasty_singles,
    st.sampled_from([2**63, -(2**63) - 1, 2.0**63, 2.0**53 + 2, 1e300, Decimal("0.5")]),
)
COLUMNS = {
    "y": nasty_ints(8),
    "i": nasty_ints(32),
    "l": nasty_ints(64),
    "f": nasty_singles,
    "d": nasty_doubles,
    "m": nasty_decimals(10, 2),
    "w": nasty_decimals(38, 10),
}


@st.composite
def _comparisons(draw: Any) -> tuple[str, str, Any, Any]:
    name = draw(st.sampled_from(sorted(COLUMNS)))
    literal = draw(NUMBERS)
    near = _neighbours(name, literal)
    value = draw(
        st.none() | st.sampled_from(near) | COLUMNS[name] if near else st.none() | COLUMNS[name]
    )
    return name, draw(OPS), literal, value


def _neighbours(name: str, literal: Any) -> list[Any]:
    """Values of the column next to the literal, where mistakes are."""
    if isinstance(literal, float) and not math.isfinite(literal):
        return []
    bits = {"y": 8, "i": 32, "l": 64}.get(name)
    if bits is not None:
        whole = math.floor(literal)
        return [v for v in range(whole - 2, whole + 3) if -(2 ** (bits - 1)) <= v < 2 ** (bits - 1)]
    if name == "f":
        at = min(
            range(FLOAT32.low, FLOAT32.high, 1 << 24), key=lambda n: abs(float32_at(n) - float(literal))
        )
        return [float32_at(max(FLOAT32.low, min(FLOAT32.high, at + step))) for step in (-1, 0, 1)]
    if name in {"m", "w"} and abs(literal) < 10**7:
        scale = 2 if name == "m" else 10
        unit = math.floor(Fraction(literal) * 10**scale)
        return [Decimal(unit + step).scaleb(-scale) for step in (-1, 0, 1)]
    return []


def _spark_compares(op: str, value: Any, literal: Any) -> bool | None:
    """What Spark's comparison is, in plain Python: as doubles if one side is, otherwise exactly."""
    if value is None:
        return False if op == "<=>" else None
    as_doubles = isinstance(value, float) or isinstance(literal, float)
    a, b = (_order(float(side)) if as_doubles else Fraction(side) for side in (value, literal))
    return {
        "=": a == b,
        "<=>": a == b,
        "<>": a != b,
        "<": a < b,
        "<=": a <= b,
        ">": a > b,
        ">=": a >= b,
    }[op]


def _order(number: float) -> tuple[int, float]:
    return (1, 0.0) if math.isnan(number) else (0, number)


@given(_comparisons())
@example(("l", "=", 2.0**53, 2**53 + 1))
@example(("l", "<=", 2.0**53, 2**53 + 1))
@example(("w", "=", 0.3, Decimal("0.3000000000")))
@example(("f", ">", 0.1, 0.10000000149011612))
@example(("y", "<", math.nan, 127))
def test_a_bound_comparison_has_the_truth_value_of_sparks(case: tuple[str, str, Any, Any]) -> None:
    """For every numeric column, literal and operator, above all next to the literal."""
    name, op, literal, value = case
    bound = bind(Compare(op, Ref((name,)), Literal(literal)), SCHEMA)  # type: ignore[arg-type]
    if isinstance(bound, Opaque):
        assert "38 digits" in bound.why
    else:
        assert truth(bound, {(name,): value}) == _spark_compares(op, value, literal)


@given(_comparisons(), st.lists(NUMBERS, max_size=3), st.booleans())
def test_a_bound_list_has_the_truth_value_of_sparks(
    case: tuple[str, str, Any, Any], others: list[Any], with_null: bool
) -> None:
    """One double in the list makes all comparisons comparisons of doubles."""
    name, _, literal, value = case
    listed = [literal, *others]
    if any(isinstance(one, float) for one in listed):
        listed = [float(one) for one in listed]
    bound = bind(col(name).isin([*listed, *([None] if with_null else [])]), SCHEMA)
    if isinstance(bound, Opaque):
        assert "common" in bound.why
        return
    equal = [_spark_compares("=", value, one) for one in listed]
    expected = True if True in equal else None if with_null or None in equal else False
    assert truth(bound, {(name,): value}) == expected


@given(_comparisons())
def test_under_ieee_rules_nan_equals_nothing(case: tuple[str, str, Any, Any]) -> None:
    """Comparisons with NaN are FALSE on either side, only <> is TRUE."""
    name, op, literal, value = case
    if op == "<=>":
        return
    bound = bind(Compare(op, Ref((name,)), Literal(literal), NanRule.IEEE), SCHEMA)  # type: ignore[arg-type]
    if isinstance(bound, Opaque):
        return
    has_nan = any(isinstance(side, float) and math.isnan(side) for side in (value, literal))
    expected = (op == "<>") if has_nan and value is not None else _spark_compares(op, value, literal)
    assert truth(bound, {(name,): value}) == expected


def test_a_double_that_equals_an_integer_of_the_list_still_makes_the_list_one_of_doubles():
    """As a double, 2**53 + 1 is 2**53: a split that holds only it has a row of the list."""
    schema = StructType((Field("n", PrimitiveType("long")),))
    bound = bind(IsIn(Ref(("n",)), (Literal(2**53), Literal(float(2**53)))), schema)
    odd = SplitStats(1, {("n",): 2**53 + 1}, {("n",): 2**53 + 1}, {("n",): 0})
    assert may_match(bound, ColumnStatsIndex(source_of([odd], schema))).all()


def test_a_list_of_any_unicode_is_bound_and_one_with_half_a_character_is_not():
    """Two halves side by side in the list are still no character: no file can hold either."""
    schema = StructType((Field("s", PrimitiveType("string")),))
    texts = ["é", "日本", "\U0001d403", "a"]
    found = bind(col("s").isin(texts), schema)
    assert [literal.value for literal in found.values] == texts
    for halves in (["\ud835"], ["a", "\ud835", "\udc03"]):
        assert isinstance(bind(col("s").isin(halves), schema), Opaque)
