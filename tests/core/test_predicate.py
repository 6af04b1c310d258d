"""Conditions as values: built by `col`, compared by structure, never true or false by themselves."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest

from indextables.core.predicate.col import Column, col
from indextables.core.predicate.nodes import And, BoolRef, Compare, Literal, Node, Not, Or, Ref
from indextables.core.predicate.to_sql import to_spark_sql, to_sql
from indextables.errors import PredicateError, UnknownColumnError

A = Ref(("a",))

BUILT = [
    (col("a") == 1, "a = 1"),
    (col("a") != 1, "a <> 1"),
    (col("a") < 1, "a < 1"),
    (col("a") <= 1, "a <= 1"),
    (col("a") > 1, "a > 1"),
    (col("a") >= 1, "a >= 1"),
    (5 < col("a"), "a > 5"),
    (col("a").eq_null_safe(None), "a <=> NULL"),
    (col("a") == None, "a = NULL"),
    (col("a") == col("b"), "a = b"),
    (col("a").isin(1, 2, None), "a IN (1, 2, NULL)"),
    (col("a").isin([1, 2]), "a IN (1, 2)"),
    (col("a").isin({3: "x"}), "a IN (3)"),
    (col("a").isin("xy"), "a IN ('xy')"),
    (col("a").isin([]), "a IN ()"),
    (col("a").between(1, 2), "a >= 1 AND a <= 2"),
    (col("a").is_null(), "a IS NULL"),
    (col("a").is_not_null(), "NOT (a IS NULL)"),
    (col("a").is_nan(), "isnan(a)"),
    (col("a").startswith("x_"), r"a LIKE 'x\\_%'"),
    (col("a").startswith(b"\xff"), "startswith(a, X'FF')"),
    (col("a").like("x%y"), "a LIKE 'x%y'"),
    (col("a").like("10!%", escape="!"), r"a LIKE '10\\%'"),
    (col("a.b") == 1, "a.b = 1"),
    (col("a")["b"] == 1, "a.b = 1"),
    (col("a").field("b.c") == 1, "a.`b.c` = 1"),
    (col("`a.b`") == 1, "`a.b` = 1"),
    (col("a") & (col("b") > 1), "a AND b > 1"),
    ((col("b") > 1) & col("a"), "b > 1 AND a"),
    (col("a") & col("b"), "a AND b"),
    (col("a") | col("b"), "a OR b"),
    ((col("b") > 1) | col("a"), "b > 1 OR a"),
    (~col("a"), "NOT (a)"),
    (~(col("a") > 1), "NOT (a > 1)"),
]


def test_an_empty_list_is_false_in_the_text_of_every_engine() -> None:
    """Regression: Spark refuses `a IN ()`, and DuckDB says NULL of NULL, so that NOT of it lost rows."""
    nothing = ~col("a").isin([])
    assert to_spark_sql(nothing) == to_sql(nothing, "duckdb") == "NOT (FALSE)"


@pytest.mark.parametrize(("built", "sql"), BUILT, ids=[sql for _, sql in BUILT])
def test_the_builder_says_what_sql_says(built: Node, sql: str) -> None:
    """Each method and operator, as its SQL."""
    assert to_sql(built) == sql


def test_only_columns_overload_equality() -> None:
    """Two conditions are equal when they have the same parts, and can be keys of a dict."""
    assert (col("a") > 1) == Compare(">", A, Literal(1))
    assert (col("a") > 1) != (col("a") > 2)
    assert len({col("a") > 1, col("a") > 1, col("a") < 1}) == 2
    assert isinstance(col("a") == col("a"), Compare)


@pytest.mark.parametrize("condition", [col("a") > 1, col("a"), ~col("a"), And(()), col("a").is_null()])
def test_a_condition_has_no_truth_value(condition: Any) -> None:
    """`if a > 1` and `a > 1 and b > 1` would silently drop a part."""
    with pytest.raises(TypeError, match="combine conditions with &"):
        bool(condition)
    with pytest.raises(TypeError, match="combine conditions with &"):
        condition and condition


def test_chains_of_and_and_or_stay_flat() -> None:
    """So a loop that adds ten thousand conditions makes a wide tree, not a deep one."""
    parts = [col("a") == i for i in range(10_000)]
    assert reduce(lambda a, b: a | b, parts) == Or(tuple(parts))
    assert reduce(lambda a, b: a & b, parts) == And(tuple(parts))
    assert (parts[0] & parts[1]) | parts[2] == Or((And((parts[0], parts[1])), parts[2]))


def test_a_condition_combines_with_conditions_only() -> None:
    """A number or text beside & is a mistake, most often missing parentheses."""
    with pytest.raises(TypeError):
        (col("a") > 1) & 5  # type: ignore[operator]
    with pytest.raises(TypeError):
        (col("a") > 1) | "b = 1"  # type: ignore[operator]


def test_a_column_is_no_key() -> None:
    """Its == builds a condition, so a dict could not find it."""
    with pytest.raises(TypeError, match="unhashable"):
        hash(col("a"))


@pytest.mark.parametrize("name", ["", ".", "a.", ".a", "a..b", "`a", "`a`b"])
def test_a_name_that_names_nothing_is_an_error(name: str) -> None:
    """Half a path is not quietly another column."""
    with pytest.raises(UnknownColumnError, match="not a column name"):
        col(name)


@pytest.mark.parametrize("pattern", ["a\\", "a\\b"])
def test_a_pattern_that_spark_refuses_is_an_error(pattern: str) -> None:
    """An escape character escapes %, _ and itself, nothing else."""
    with pytest.raises(PredicateError, match="not a LIKE pattern"):
        col("a").like(pattern)


def test_a_bare_column_is_a_condition_only_among_conditions() -> None:
    """A Column becomes a boolean column when it stands beside a condition."""
    assert col("a") & col("b") == And((BoolRef(A), BoolRef(Ref(("b",)))))
    assert ~Column(("a",)) == Not(BoolRef(A))
