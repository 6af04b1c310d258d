"""The steps of a query: each takes a table and gives the next one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import PredicateError
from indextables.table.query.evaluate_evaluate import mask_of, numbers
from indextables.table.query.expressions import Column, Expression, Logic

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
    """The date range as a condition on the table's index column."""
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
    """The table after one step."""
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
    """The name as the table spells it."""
    found = [known for known in data.column_names if known.lower() == name.lower()]
    exact = name if name in found else (found[0] if len(found) == 1 else None)
    if exact is None:
        raise PredicateError(
            f"no column {name!r}", hint=f"the columns are: {', '.join(data.column_names)}", column=name
        )
    return exact


def _aggregate(data: pa.Table, key: str, results: tuple[tuple[str, str, str], ...]) -> pa.Table:
    """Rows with a missing key belong to no group, missing values to no result; groups are in order."""
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
