"""QueryBuilder: filters, computed columns and aggregates, chained as ArcticDB's users chain them."""

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

# The steps of a query: each turns one table into the next.

_AGGREGATES: Final = {"sum": "sum", "mean": "mean", "min": "min", "max": "max", "count": "count"}


@dataclass(frozen=True, slots=True)
class Filter:
    """Keeps the rows for which the condition is True."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class DateRange:
    """Keeps the rows whose index lies between two times, both included; None leaves a side open."""

    start: object
    end: object


@dataclass(frozen=True, slots=True)
class RowRange:
    """Keeps rows by their number, as a slice of a Python list does."""

    start: int | None
    end: int | None


@dataclass(frozen=True, slots=True)
class Apply:
    """Adds or replaces a column."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Columns:
    """Keeps these columns, in this order."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupBy:
    """The first half of an aggregation; `agg` must follow."""

    key: str


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Makes one row for each value of the key: (new name, source column, function) for each result."""

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
    """Returns the table after one step of the query."""
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
                f"groupby({key!r}) needs agg() after it",
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
    """Returns one row for each value of the key, in the order of these values.

    Rows whose key is missing are left out, and missing values count in no result.
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


def _without_nan(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns the values with NaN as NULL, and -0.0 as 0.0."""
    if not pa.types.is_floating(values.type):
        return values
    one_zero = pc.add(values, pa.scalar(0.0, values.type))
    return pc.if_else(pc.is_nan(one_zero), pa.scalar(None, values.type), one_zero)


def _summable(values: pa.ChunkedArray, name: str, function: str) -> pa.ChunkedArray:
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


def check_aggregations(
    aggregations: Mapping[str, str | tuple[str, str]],
) -> tuple[tuple[str, str, str], ...]:
    """Returns (new name, source column, function) for each aggregation; PredicateError if one is unknown."""
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
    """A query over one table. Every method returns a longer query and leaves this one as it is.

    Missing values follow pandas: a comparison with NULL or NaN is False, and `!=` is True.

    Example:
        >>> q = QueryBuilder()
        >>> q = q[(q["a"] < 2) & ~(q["b"] == "x")]
        >>> data = pa.table({"a": [1, 1, 3, None], "b": ["x", "y", "y", "y"]})
        >>> q.execute(data).to_pylist()
        [{'a': 1, 'b': 'y'}]
    """

    clauses: tuple[Clause, ...] = ()

    @overload
    def __getitem__(self, item: str) -> Column: ...
    @overload
    def __getitem__(self, item: Expression) -> QueryBuilder: ...
    def __getitem__(self, item: str | Expression) -> Column | QueryBuilder:
        """Returns a column by its name, or the query with one more filter."""
        if isinstance(item, str):
            return Column(item)
        if isinstance(item, Operators):
            return self._then(Filter(item))
        raise PredicateError(
            f"q[…] takes a column's name or a condition, not {type(item).__name__}",
            hint='q = q[q["a"] > 5]',
        )

    def apply(self, name: str, expression: object) -> QueryBuilder:
        """Adds a column, or replaces one.

        Args:
            name: The name of the column.
            expression: Its values, computed from other columns, or a constant.

        Returns:
            The longer query.

        Example:
            >>> q = QueryBuilder()
            >>> q.apply("b", q["a"] * 2 + 1).execute(pa.table({"a": [1, 2]}))["b"].to_pylist()
            [3, 5]
        """
        return self._then(Apply(name, as_expression(expression)))

    def groupby(self, name: str) -> QueryBuilder:
        """Starts an aggregation by the values of a column; `agg` must follow.

        Args:
            name: The column.

        Returns:
            The longer query.

        Example:
            >>> data = pa.table({"city": ["Oslo", "Rome", "Oslo"], "km": [1, 2, 4]})
            >>> QueryBuilder().groupby("city").agg({"km": "sum"}).execute(data).to_pylist()
            [{'city': 'Oslo', 'km': 5}, {'city': 'Rome', 'km': 2}]
        """
        return self._then(GroupBy(name))

    def agg(self, aggregations: Mapping[str, str | tuple[str, str]]) -> QueryBuilder:
        """Makes one row for each value of the column given to `groupby`.

        Args:
            aggregations: `{"km": "sum"}`, or `{"mean_km": ("km", "mean")}` for a column of another name. The
                functions are sum, mean, min, max and count.

        Returns:
            The longer query.

        Raises:
            PredicateError: There is no `groupby` before it, or a function is not known.

        Example:
            >>> data = pa.table({"city": ["Oslo", "Oslo"], "km": [1, 4]})
            >>> QueryBuilder().groupby("city").agg({"longest": ("km", "max")}).execute(data).to_pylist()
            [{'city': 'Oslo', 'longest': 4}]
        """
        if not self.clauses or not isinstance(self.clauses[-1], GroupBy):
            raise PredicateError(
                "agg() needs a groupby() before it", hint='q.groupby("g").agg({"a": "sum"})'
            )
        key = self.clauses[-1].key
        return QueryBuilder((*self.clauses[:-1], Aggregate(key, check_aggregations(aggregations))))

    def date_range(self, date_range: tuple[object, object]) -> QueryBuilder:
        """Keeps the rows whose index column lies in a range, both ends included.

        Args:
            date_range: The two ends; None leaves one open. Instead of a pair, anything with
                `start` and `end` will do, or a sorted index.

        Returns:
            The longer query.

        Example:
            >>> import datetime as dt
            >>> data = pa.table({"day": [dt.date(2024, 5, day) for day in (1, 2, 3)]})
            >>> q = QueryBuilder().date_range((dt.date(2024, 5, 2), None))
            >>> q.execute(data, index_column="day").num_rows
            2
        """
        start, end = _ends(date_range)
        return self._then(DateRange(start, end))

    def row_range(self, row_range: tuple[int | None, int | None]) -> QueryBuilder:
        """Keeps rows by their number, as a slice of a list does.

        Args:
            row_range: The first row kept and the first one after it that is not. Negative numbers count from the end.

        Returns:
            The longer query.

        Raises:
            PredicateError: An end is neither an integer nor None.

        Example:
            >>> QueryBuilder().row_range((1, -1)).execute(pa.table({"a": [1, 2, 3]}))["a"].to_pylist()
            [2]
        """
        start, end = row_range
        for bound in (start, end):
            if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int)):
                raise PredicateError(
                    f"row_range takes integers, not {bound!r}", hint="row_range((0, 100))"
                )
        return self._then(RowRange(start, end))

    def head(self, n: int = 5) -> QueryBuilder:
        """Keeps the first rows.

        Args:
            n: How many; if negative, all but the last -n.

        Returns:
            The longer query.

        Example:
            >>> QueryBuilder().head(2).execute(pa.table({"a": [1, 2, 3]}))["a"].to_pylist()
            [1, 2]
        """
        return self.row_range((None, n))

    def tail(self, n: int = 5) -> QueryBuilder:
        """Keeps the last rows.

        Args:
            n: How many; if negative, all but the first -n.

        Returns:
            The longer query.

        Example:
            >>> QueryBuilder().tail(2).execute(pa.table({"a": [1, 2, 3]}))["a"].to_pylist()
            [2, 3]
        """
        return self.row_range((-n, None) if n else (0, 0))

    def columns(self, names: Iterable[str]) -> QueryBuilder:
        """Keeps only some columns from here on; earlier steps may use others.

        Args:
            names: The columns, in the order wanted.

        Returns:
            The longer query.

        Example:
            >>> QueryBuilder().columns(["b"]).execute(pa.table({"a": [1], "b": [2]})).to_pylist()
            [{'b': 2}]
        """
        return self._then(Columns(tuple(names)))

    def then(self, other: QueryBuilder) -> QueryBuilder:
        """Appends the steps of another query.

        Args:
            other: The query to run on the result of this one.

        Returns:
            The longer query.

        Example:
            >>> rows = QueryBuilder().head(2).then(QueryBuilder().tail(1))
            >>> rows.execute(pa.table({"a": [1, 2, 3]}))["a"].to_pylist()
            [2]
        """
        return QueryBuilder((*self.clauses, *other.clauses))

    def prepend(self, other: QueryBuilder) -> QueryBuilder:
        """Puts the steps of another query before those of this one.

        Args:
            other: The query whose result this one is run on.

        Returns:
            The longer query.

        Example:
            >>> rows = QueryBuilder().head(2).prepend(QueryBuilder().tail(2))
            >>> rows.execute(pa.table({"a": [1, 2, 3]}))["a"].to_pylist()
            [2, 3]
        """
        return other.then(self)

    def _then(self, clause: Clause) -> QueryBuilder:
        return QueryBuilder((*self.clauses, clause))

    # --- what a table needs to run a query --------------------------------------------------------------

    def pruning_predicate(self, schema: StructType, index_column: str | None = None) -> Predicate:
        """Returns the filters before the first other step, as one condition.

        Every row that a later step sees satisfies it, so a file without such a row need not be opened.

        Args:
            schema: The table's schema.
            index_column: The column that `date_range` filters.

        Returns:
            The condition; it is TRUE or FALSE for every row, never NULL.

        Raises:
            UnknownColumnError: A filter names a column the table does not have.

        Example:
            >>> from indextables.core.types import schema_from_arrow
            >>> q = QueryBuilder()
            >>> schema = schema_from_arrow(pa.schema({"a": pa.int64()}))
            >>> type(q[q["a"] > 1].head().pruning_predicate(schema)).__name__
            'IsTrue'
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
        """Returns the top-level columns that the query reads.

        Args:
            schema: The table's schema.
            index_column: The column that `date_range` filters.

        Returns:
            The columns in the table's order; None if it needs all of them.

        Example:
            >>> from indextables.core.types import schema_from_arrow
            >>> schema = schema_from_arrow(pa.schema({"a": pa.int64(), "b": pa.int64()}))
            >>> QueryBuilder().columns(["b"]).needed_columns(schema)
            ('b',)
        """
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
        """Runs the query over rows.

        Args:
            data: The rows; those that `pruning_predicate` excludes may be missing.
            index_column: The column that `date_range` filters.
            timezone: The time zone of timestamps in the query.

        Returns:
            The result.

        Raises:
            PredicateError: A step cannot be run over these columns.

        Example:
            >>> q = QueryBuilder()
            >>> q[q["a"] > 1].execute(pa.table({"a": [1, 2]})).num_rows
            1
        """
        for clause in self.clauses:
            data = run(clause, data, index_column, timezone)
        return data


def _ends(given: Any) -> tuple[object, object]:
    """Returns the two ends of a pair, of anything with start and end, or of a sorted index."""
    if hasattr(given, "start") and hasattr(given, "end"):
        return given.start, given.end
    start, end = (given[0], given[-1]) if len(given) else (None, None)
    return start, end


def _needed_before(clause: Clause, after: set[str] | None, index_column: str | None) -> set[str] | None:
    """Returns the columns that a step and all that follow it need; None means all."""
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
