"""SQL text becomes the condition Spark would evaluate, or a clear error, and never a guess."""

from __future__ import annotations

import cProfile
import datetime as dt
import math
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.core.bind.bind import bind
from indextables.core.predicate.like import like
from indextables.core.predicate.nodes import (
    And,
    BoolRef,
    Compare,
    Constant,
    IsIn,
    IsNan,
    IsNull,
    IsTrue,
    Literal,
    Not,
    Opaque,
    Or,
    Ref,
    StartsWith,
)
from indextables.core.predicate.to_sql import to_sql
from indextables.core.predicate.tree import flatten
from indextables.core.types import Field, PrimitiveType, StructType
from indextables.errors import PredicateError
from indextables.sql.conditions.parser import parse_predicate
from support.shapes import read_cases, shape
from support.strategies import nasty_binary, nasty_dates, nasty_datetimes, nasty_ints, nasty_text

HERE = Path(__file__).parent
CASES = read_cases((HERE / "predicates.txt").read_text(encoding="utf-8"))
ERRORS = read_cases((HERE / "syntax_errors.txt").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("sql", "expected", "why"), CASES, ids=[case[0] for case in CASES])
def test_sql_is_read_as_spark_reads_it(sql: str, expected: str, why: str) -> None:
    """Each line of predicates.txt, in the zone Europe/Berlin."""
    assert shape(parse_predicate(sql, timezone="Europe/Berlin")) == expected, why


@pytest.mark.parametrize(("sql", "place", "message", "why"), ERRORS, ids=[case[0] for case in ERRORS])
def test_a_syntax_error_says_where_and_what(sql: str, place: str, message: str, why: str) -> None:
    """Each line of syntax_errors.txt."""
    with pytest.raises(PredicateError, match=message) as caught:
        parse_predicate(sql)
    error = caught.value
    assert f"{error.line}:{error.column}" == place, why
    assert error.hint


def test_the_place_of_an_error_is_right_on_later_lines() -> None:
    """Lines and columns count from the start of the condition."""
    with pytest.raises(PredicateError) as caught:
        parse_predicate("a = 1\n  AND b = = 5\nOR c")
    assert (caught.value.line, caught.value.column) == (2, 11)
    assert caught.value.position == 16


def test_a_condition_that_is_no_text_is_an_error() -> None:
    """A Predicate or a number instead of SQL is named, not stringified."""
    with pytest.raises(PredicateError, match="text, not int"):
        parse_predicate(5)  # type: ignore[arg-type]


def test_an_unknown_time_zone_is_an_error() -> None:
    """Guessing a zone would move every timestamp."""
    with pytest.raises(PredicateError, match="Mars/Olympus"):
        parse_predicate("a = 1", timezone="Mars/Olympus")


N = 10_000
DEEP = {
    "a long OR": " OR ".join(f"a = {i}" for i in range(N)),
    "parentheses around one": "(" * N + "a = 1" + ")" * N,
    "ORs as Spark prints them": "(" * N + "a = 0" + "".join(f") OR (a = {i})" for i in range(N)),
    "NOTs": "NOT " * N + "a",
    "signs": "- " * N + "5 = a",
    "parentheses around a value": "(" * N + "a + 1" + ")" * N + " > 3",
    "tests of tests": "(" * N + "a = 1" + ") IS TRUE" * N,
    "calls": "f(" * N + "a" + ")" * N,
}


@pytest.mark.parametrize("sql", DEEP.values(), ids=DEEP)
def test_no_condition_is_too_deep(sql: str) -> None:
    """Ten thousand levels are read or left to the engine, and walking the result needs no stack either."""
    predicate = parse_predicate(sql)
    assert to_sql(flatten(predicate))


def test_a_long_or_is_read_whole() -> None:
    """Depth does not turn what can be read into something opaque."""
    predicate = parse_predicate(DEEP["ORs as Spark prints them"])
    assert isinstance(predicate, Or)
    assert len(predicate.children) == N + 1


LISTS = {
    "integers": ",".join(map(str, range(N))),
    "texts": ",".join(f"'v{i}'" for i in range(N)),
    "negative numbers": ", ".join(f"-{i}" for i in range(N)),
    "dates": ", ".join(f"DATE '{2000 + i % 20}-01-02'" for i in range(N)),
}


@pytest.mark.parametrize("values", LISTS.values(), ids=LISTS)
def test_a_long_list_costs_a_few_calls_for_each_value(values: str) -> None:
    """Counted, not timed: nothing walks the whole list per value, nor all precedences for a literal."""
    profile = cProfile.Profile()
    predicate = profile.runcall(parse_predicate, f"a IN ({values})")
    calls = sum(entry.callcount for entry in profile.getstats())
    assert isinstance(predicate, IsIn)
    assert len(predicate.values) == N
    assert calls < 50 * N


TOO_LONG = "1" * 5000


@pytest.mark.parametrize(
    "value",
    [TOO_LONG, f"-{TOO_LONG}", f"{TOO_LONG}L", f"'{TOO_LONG}'", f"CAST('{TOO_LONG}' AS BIGINT)"]
    + [f"DATE '2024-01-01' + INTERVAL {TOO_LONG} DAY", "1e999999999999BD", "1e3L"],
    ids=lambda value: value[:30],
)
def test_a_number_python_has_no_value_for_is_left_to_the_engine(value: str) -> None:
    """Python refuses integers of thousands of digits and decimals of huge exponents; a query does not fail."""
    schema = StructType((Field("a", PrimitiveType("long")),))
    for sql in (f"a = {value}", f"a IN ({value}, {value})"):
        bound = bind(parse_predicate(sql), schema)
        assert all(
            isinstance(part, Opaque) for part in (bound.children if isinstance(bound, Or) else [bound])
        )


names = st.sampled_from(["a", "B c", "d.e", "and", "date", "x`y", "end", "ü", "1st", "not", "null"])
refs = st.lists(names, min_size=1, max_size=3).map(lambda path: Ref(tuple(path)))
constants = st.one_of(
    st.booleans(),
    nasty_ints(64),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9),
    nasty_text,
    nasty_binary,
    nasty_dates,
    nasty_datetimes,
    nasty_datetimes.map(lambda value: value.replace(tzinfo=dt.UTC)),
).map(Literal)
far_times = st.sampled_from(
    [
        Literal(-800_000, PrimitiveType("date")),
        Literal(3_000_000, PrimitiveType("date")),
        Literal(-(10**17), PrimitiveType("timestamp")),
        Literal(3 * 10**17, PrimitiveType("timestamp_ntz")),
    ]
)
literals = st.one_of(constants, far_times, st.just(Literal(None)))
patterns = st.text(st.sampled_from("a%_\\'b\n"), max_size=6)
leaves = st.one_of(
    st.builds(
        Compare, st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"]), refs, refs | literals
    ),
    st.builds(IsNull, refs),
    st.builds(IsNan, refs),
    st.builds(BoolRef, refs),
    st.builds(IsIn, refs, st.lists(literals, max_size=4).map(tuple)),
    st.builds(StartsWith, refs, nasty_text | nasty_binary),
    st.builds(like, refs, patterns).filter(lambda found: found is not None),
    st.builds(Constant, st.sampled_from([True, False, None])),
    st.builds(
        Opaque, st.sampled_from(["rand() < 0.5", "reverse(a) = 'x' || \"y\"", "a + 1 IN (SELECT 2)"])
    ),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: And(tuple(parts))),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: Or(tuple(parts))),
        st.builds(Not, inner),
    ),
    max_leaves=8,
)


@given(trees)
def test_what_is_written_is_read_back(tree: And) -> None:
    """SQL text of any condition parses to the same condition."""
    assert _comparable(parse_predicate(to_sql(tree))) == _comparable(flatten(tree))


@given(leaves)
def test_is_true_is_read_back(leaf: Compare) -> None:
    """A condition under IS TRUE too, unless a part of it belongs to the engine."""
    read = parse_predicate(to_sql(IsTrue(leaf)))
    if not isinstance(leaf, Opaque | BoolRef | Constant):
        assert _comparable(read) == _comparable(IsTrue(leaf))


def test_numbers_without_a_literal_form_are_written_as_calls() -> None:
    """NaN and the infinities survive the round trip."""
    for value in (math.inf, -math.inf, math.nan):
        read = parse_predicate(to_sql(Compare("=", Ref(("a",)), Literal(value))))
        assert repr(read.right.value) == repr(value)


def _comparable(tree: object) -> str:
    # columns of an opaque part are found by the reader; 1 == 1.0 == Decimal(1), but their text differs
    text = repr(tree)
    for left in ("columns=()", "columns=(('a',),)"):
        text = text.replace(left, "columns=…")
    # nor does a time without a zone keep which of two equal clock times it is
    return text.replace("why='only an engine can evaluate it'", "why=''").replace(", fold=1", "")


@given(st.text(st.sampled_from("ab1'\"`\\ ()[]=<>!.,-+*/%:?ANDORNTIS\n\t"), max_size=25))
def test_any_text_is_a_condition_or_a_predicate_error(text: str) -> None:
    """No input makes the reader fail in any other way."""
    try:
        predicate = parse_predicate(text)
    except PredicateError as error:
        assert 0 <= error.position <= len(text)
    else:
        to_sql(predicate)


@pytest.mark.parametrize("places", [0, 1, 38])
def test_a_decimal_keeps_its_scale(places: int) -> None:
    """Spark's decimal arithmetic depends on how many digits were written."""
    text = "0." + "0" * (places - 1) + "1" if places else "1BD"
    read = parse_predicate(f"a = {text}")
    assert read.right.value.as_tuple().exponent == -places
    assert isinstance(read.right.value, Decimal)


def test_conditions_that_are_read_load_no_other_parser():
    """sqlglot costs a tenth of a second, and only what is opaque needs it."""
    code = (
        "import sys\n"
        "from indextables.sql.conditions.parser import parse_predicate\n"
        "parse_predicate(\"a > 1 AND b IN ('x', 'y') OR c IS NULL\")\n"
        "assert 'sqlglot' not in sys.modules\n"
        "parse_predicate('a IN (SELECT 1)')\n"
        "assert 'sqlglot' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
