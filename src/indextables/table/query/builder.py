"""QueryBuilder: filters, computed columns and groups, chained as ArcticDB's users chain them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, overload

import pyarrow as pa

from indextables.core.predicate.nodes import And, Constant, Predicate
from indextables.core.predicate.tree import flatten
from indextables.core.types import StructType
from indextables.errors import PredicateError
from indextables.table.query.clauses import (
    Aggregate,
    Apply,
    Clause,
    Columns,
    DateRange,
    Filter,
    GroupBy,
    RowRange,
    check_aggregations,
    range_condition,
    run,
)
from indextables.table.query.evaluate import find_column, to_predicate
from indextables.table.query.expressions import Column, Expression, Operators, as_expression, columns_in


@dataclass(frozen=True, slots=True)
class QueryBuilder:
    """A query over one table; every method returns a longer one and changes nothing.

    >>> q = QueryBuilder()
    >>> q = q[(q["a"] < 2) & ~(q["b"] == "x")]
    >>> data = pa.table({"a": [1, 1, 3, None], "b": ["x", "y", "y", "y"]})
    >>> q.execute(data).to_pylist()
    [{'a': 1, 'b': 'y'}]

    Missing values follow pandas: a comparison with NULL or NaN is False, and `!=` is True.
    """

    clauses: tuple[Clause, ...] = ()

    @overload
    def __getitem__(self, item: str) -> Column: ...
    @overload
    def __getitem__(self, item: Expression) -> QueryBuilder: ...
    def __getitem__(self, item: Any) -> Any:
        """A column by its name, or the query with one more filter."""
        if isinstance(item, str):
            return Column(item)
        if isinstance(item, Operators):
            return self._then(Filter(item))  # type: ignore[arg-type]
        raise PredicateError(
            f"q[…] takes a column's name or a condition, not {type(item).__name__}",
            hint='q = q[q["a"] > 5]',
        )

    def apply(self, name: str, expression: Any) -> QueryBuilder:
        """A new column, or another content for one that is there."""
        return self._then(Apply(name, as_expression(expression)))

    def groupby(self, name: str) -> QueryBuilder:
        """Groups by the values of a column; `agg` must follow."""
        return self._then(GroupBy(name))

    def agg(self, aggregations: Mapping[str, str | tuple[str, str]]) -> QueryBuilder:
        """One row per group: `{"a": "sum"}` or `{"new": ("a", "mean")}`; sum, mean, min, max, count."""
        if not self.clauses or not isinstance(self.clauses[-1], GroupBy):
            raise PredicateError(
                "agg() needs a groupby() before it", hint='q.groupby("g").agg({"a": "sum"})'
            )
        key = self.clauses[-1].key
        return QueryBuilder((*self.clauses[:-1], Aggregate(key, check_aggregations(aggregations))))

    def date_range(self, date_range: tuple[Any, Any]) -> QueryBuilder:
        """Rows whose index column lies in the range, both ends included; None leaves an end open."""
        start, end = _ends(date_range)
        return self._then(DateRange(start, end))

    def row_range(self, row_range: tuple[int | None, int | None]) -> QueryBuilder:
        """Rows by their place: the first is included, the last is not, negative ones count from the end."""
        start, end = row_range
        for place in (start, end):
            if place is not None and (isinstance(place, bool) or not isinstance(place, int)):
                raise PredicateError(
                    f"row_range takes integers, not {place!r}", hint="row_range((0, 100))"
                )
        return self._then(RowRange(start, end))

    def head(self, n: int = 5) -> QueryBuilder:
        """The first n rows; if n is negative, all but the last -n."""
        return self.row_range((None, n))

    def tail(self, n: int = 5) -> QueryBuilder:
        """The last n rows; if n is negative, all but the first -n."""
        return self.row_range((-n, None) if n else (0, 0))

    def columns(self, names: Iterable[str]) -> QueryBuilder:
        """Only these columns from here on; earlier steps may use others."""
        return self._then(Columns(tuple(names)))

    def then(self, other: QueryBuilder) -> QueryBuilder:
        """This query, and the other one on its result."""
        return QueryBuilder((*self.clauses, *other.clauses))

    def prepend(self, other: QueryBuilder) -> QueryBuilder:
        """The other query, and this one on its result."""
        return other.then(self)

    def _then(self, clause: Clause) -> QueryBuilder:
        return QueryBuilder((*self.clauses, clause))

    # --- what a table needs to run it --------------------------------------------------------------

    def pruning_predicate(self, schema: StructType, index_column: str | None = None) -> Predicate:
        """What every row must satisfy that any later step sees: the filters before the first other step.

        A file that holds no such row need not be opened.
        """
        leading = takewhile(lambda clause: isinstance(clause, Filter | DateRange), self.clauses)
        conditions = (
            clause.condition if isinstance(clause, Filter) else range_condition(clause, index_column)  # type: ignore[arg-type]
            for clause in leading
        )
        parts = tuple(to_predicate(condition, schema) for condition in conditions)
        return flatten(And(parts)) if parts else Constant(value=True)

    def needed_columns(
        self, schema: StructType, index_column: str | None = None
    ) -> tuple[str, ...] | None:
        """The top-level columns to read, in the table's order; None for all of them."""
        names: set[str] | None = None
        for clause in reversed(self.clauses):
            names = _needed_before(clause, names, index_column)
        if names is None:
            return None
        found = {find_column(schema, name)[0][0] for name in names}
        return tuple(name for name in schema.names if name in found)

    def execute(
        self, data: pa.Table, *, index_column: str | None = None, timezone: str = "UTC"
    ) -> pa.Table:
        """The result over these rows, which may already be without those `pruning_predicate` excludes."""
        for clause in self.clauses:
            data = run(clause, data, index_column, timezone)
        return data


def _ends(given: Any) -> tuple[Any, Any]:
    """The two ends of a tuple, of anything with start and end, or of a sorted index."""
    if hasattr(given, "start") and hasattr(given, "end"):
        return given.start, given.end
    start, end = (given[0], given[-1]) if len(given) else (None, None)
    return start, end


def _needed_before(clause: Clause, after: set[str] | None, index_column: str | None) -> set[str] | None:
    """The columns a step and all that follow it need; None for all."""
    match clause:
        case Columns(names):
            return set(names)
        case Aggregate(key, results):
            return {key, *(source for _, source, _ in results)}
        case Filter(condition):
            return after if after is None else after | set(columns_in(condition))
        case Apply(name, expression):
            return after if after is None else (after - {name}) | set(columns_in(expression))
        case DateRange():
            return after if after is None or index_column is None else after | {index_column}
        case RowRange() | GroupBy():
            return after
