"""QueryBuilder: filters, computed columns and groups, chained as ArcticDB's users chain them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final, TypeAlias, overload

import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.predicate.nodes import And, Constant, Predicate
from indextables.core.predicate.tree import flatten
from indextables.core.types import StructType
from indextables.errors import PredicateError
from indextables.table.query.evaluate import find_column, mask_of, numbers, to_predicate
from indextables.table.query.expressions import (
    Column,
    Expression,
    Logic,
    Operators,
    as_expression,
    columns_in,
)

# The steps of a query: each takes a table and gives the next one.

_AGGREGATES: Final = {"sum": "sum", "mean": "mean", "min": "min", "max": "max", "count": "count"}


@dataclass(frozen=True, slots=True)
class Filter:
    """Keep the rows for which the condition is True."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class DateRange:
    """Keep the rows whose index lies between two times, both included; None leaves a side open."""

    start: Any
    end: Any


@dataclass(frozen=True, slots=True)
class RowRange:
    """Keep rows by their place, as a slice of a Python list does."""

    start: int | None
    end: int | None


@dataclass(frozen=True, slots=True)
class Apply:
    """Add or replace a column."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Columns:
    """Keep these columns, in this order."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupBy:
    """Half a step: what to aggregate comes next."""

    key: str


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One row per value of the key: (new name, source column, function) for each result."""

    key: str
    results: tuple[tuple[str, str, str], ...]


Clause: TypeAlias = Filter | DateRange | RowRange | Apply | Columns | GroupBy | Aggregate


def range_condition(clause: DateRange, index_column: str | None) -> Expression:
    """Returns the date range as a condition on the table's index column."""
    if index_column is None:
        raise PredicateError(
            "date_range needs to know which column holds the time",
            hint="set the table property index_column",
        )
    index = Column(index_column)
    ends = [index >= clause.start] if clause.start is not None else []
    if clause.end is not None:
        ends.append(index <= clause.end)
    return Logic("&", (*ends,)) if ends else index.notnull()


def run(clause: Clause, data: pa.Table, index_column: str | None, timezone: str) -> pa.Table:
    """Returns the table after one step."""
    match clause:
        case Filter(condition):
            return data.filter(mask_of(condition, data, timezone))
        case DateRange():
            return data.filter(mask_of(range_condition(clause, index_column), data, timezone))
        case RowRange(start, end):
            first, last, _ = slice(start, end).indices(data.num_rows)
            return data.slice(first, max(last - first, 0))
        case Apply(name, expression):
            return _with_column(data, name, expression)
        case Columns(names):
            return data.select([_spelled(data, name) for name in names])
        case Aggregate(key, results):
            return _aggregate(data, key, results)
        case GroupBy(key):
            raise PredicateError(
                f"groupby({key!r}) says nothing without agg()",
                hint=f'q.groupby({key!r}).agg({{"a": "sum"}})',
            )


def _with_column(data: pa.Table, name: str, expression: Expression) -> pa.Table:
    values = numbers(expression, data)
    if isinstance(values, pa.Scalar):
        values = pa.repeat(values, data.num_rows)
    if name in data.column_names:
        return data.set_column(data.column_names.index(name), name, values)
    return data.append_column(name, values)


def _spelled(data: pa.Table, name: str) -> str:
    """Returns the name as the table spells it."""
    found = [known for known in data.column_names if known.lower() == name.lower()]
    exact = name if name in found else (found[0] if len(found) == 1 else None)
    if exact is None:
        raise PredicateError(
            f"no column {name!r}", hint=f"the columns are: {', '.join(data.column_names)}", column=name
        )
    return exact


def _aggregate(data: pa.Table, key: str, results: tuple[tuple[str, str, str], ...]) -> pa.Table:
    """Returns rows with a missing key belong to no group, missing values to no result.

    Groups are in order.
    """
    keys = _without_nan(data.column(_spelled(data, key)))
    columns = {"key": keys}
    steps = []
    for i, (_, source, function) in enumerate(results):
        columns[str(i)] = _summable(_without_nan(data.column(_spelled(data, source))), source, function)
        options = pc.ScalarAggregateOptions(min_count=0 if function == "sum" else 1)
        steps.append((str(i), _AGGREGATES[function], None if function == "count" else options))
    rows = pa.table(columns).filter(pc.is_valid(keys))
    found = rows.group_by("key", use_threads=False).aggregate(steps).sort_by("key")
    arrays = [
        found.column(f"{i}_{_AGGREGATES[function]}") for i, (_, _, function) in enumerate(results)
    ]
    names = [_spelled(data, key), *(name for name, _, _ in results)]
    return pa.table([found.column("key"), *arrays], names=names)


def _without_nan(values: Any) -> Any:
    """NaN as NULL, and one zero."""
    if not pa.types.is_floating(values.type):
        return values
    one_zero = pc.add(values, pa.scalar(0.0, values.type))
    return pc.if_else(pc.is_nan(one_zero), pa.scalar(None, values.type), one_zero)


def _summable(values: Any, name: str, function: str) -> Any:
    if function in {"min", "max", "count"}:
        return values
    if pa.types.is_boolean(values.type) or pa.types.is_integer(values.type):
        return pc.cast(values, pa.int64())
    if pa.types.is_decimal(values.type) or pa.types.is_floating(values.type):
        return (
            pc.cast(values, pa.float64())
            if function == "mean" or values.type == pa.float32()
            else values
        )
    raise PredicateError(
        f"{function} of column {name!r}: it is {values.type}, not a number", column=name
    )


def check_aggregations(aggregations: Any) -> tuple[tuple[str, str, str], ...]:
    """(new name, source, function) of what `agg` was given, or PredicateError."""
    results = []
    for name, wanted in aggregations.items():
        source, function = (name, wanted) if isinstance(wanted, str) else wanted
        if function.lower() not in _AGGREGATES:
            raise PredicateError(
                f"{function!r} is not an aggregation", hint=f"use one of: {', '.join(_AGGREGATES)}"
            )
        results.append((name, source, function.lower()))
    return tuple(results)


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
        """Returns a column by its name, or the query with one more filter."""
        if isinstance(item, str):
            return Column(item)
        if isinstance(item, Operators):
            return self._then(Filter(item))  # type: ignore[arg-type]
        raise PredicateError(
            f"q[…] takes a column's name or a condition, not {type(item).__name__}",
            hint='q = q[q["a"] > 5]',
        )

    def apply(self, name: str, expression: Any) -> QueryBuilder:
        """Returns a new column, or another content for one that is there."""
        return self._then(Apply(name, as_expression(expression)))

    def groupby(self, name: str) -> QueryBuilder:
        """Groups by the values of a column; `agg` must follow."""
        return self._then(GroupBy(name))

    def agg(self, aggregations: Mapping[str, str | tuple[str, str]]) -> QueryBuilder:
        """Returns one row per group: `{"a": "sum"}` or `{"new": ("a", "mean")}`.

        Sum, mean, min, max, count.
        """
        if not self.clauses or not isinstance(self.clauses[-1], GroupBy):
            raise PredicateError(
                "agg() needs a groupby() before it", hint='q.groupby("g").agg({"a": "sum"})'
            )
        key = self.clauses[-1].key
        return QueryBuilder((*self.clauses[:-1], Aggregate(key, check_aggregations(aggregations))))

    def date_range(self, date_range: tuple[Any, Any]) -> QueryBuilder:
        """Returns rows whose index column lies in the range, both ends included.

        None leaves an end open.
        """
        start, end = _ends(date_range)
        return self._then(DateRange(start, end))

    def row_range(self, row_range: tuple[int | None, int | None]) -> QueryBuilder:
        """Returns rows by their place: the first is included, the last is not, negative ones count from the end."""
        start, end = row_range
        for place in (start, end):
            if place is not None and (isinstance(place, bool) or not isinstance(place, int)):
                raise PredicateError(
                    f"row_range takes integers, not {place!r}", hint="row_range((0, 100))"
                )
        return self._then(RowRange(start, end))

    def head(self, n: int = 5) -> QueryBuilder:
        """Returns the first n rows; if n is negative, all but the last -n."""
        return self.row_range((None, n))

    def tail(self, n: int = 5) -> QueryBuilder:
        """Returns the last n rows; if n is negative, all but the first -n."""
        return self.row_range((-n, None) if n else (0, 0))

    def columns(self, names: Iterable[str]) -> QueryBuilder:
        """Only these columns from here on; earlier steps may use others."""
        return self._then(Columns(tuple(names)))

    def then(self, other: QueryBuilder) -> QueryBuilder:
        """This query, and the other one on its result."""
        return QueryBuilder((*self.clauses, *other.clauses))

    def prepend(self, other: QueryBuilder) -> QueryBuilder:
        """Returns the other query, and this one on its result."""
        return other.then(self)

    def _then(self, clause: Clause) -> QueryBuilder:
        return QueryBuilder((*self.clauses, clause))

    # --- what a table needs to run it --------------------------------------------------------------

    def pruning_predicate(self, schema: StructType, index_column: str | None = None) -> Predicate:
        """Returns what every row must satisfy that any later step sees: the filters before the first other step.

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
        """Returns the top-level columns to read, in the table's order; None for all of them."""
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
        """Returns the result over these rows, which may already be without those `pruning_predicate` excludes."""
        for clause in self.clauses:
            data = run(clause, data, index_column, timezone)
        return data


def _ends(given: Any) -> tuple[Any, Any]:
    """Returns the two ends of a tuple, of anything with start and end, or of a sorted index."""
    if hasattr(given, "start") and hasattr(given, "end"):
        return given.start, given.end
    start, end = (given[0], given[-1]) if len(given) else (None, None)
    return start, end


def _needed_before(clause: Clause, after: set[str] | None, index_column: str | None) -> set[str] | None:
    """Returns the columns a step and all that follow it need; None for all."""
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
