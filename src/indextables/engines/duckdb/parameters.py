"""A query's parameters as constants of the same types, because a plan is serialised of a text alone."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final, TypeAlias

import duckdb
from duckdb import DuckDBPyConnection

from indextables.engines.duckdb.views import text as as_text

Params: TypeAlias = Sequence[object] | Mapping[str, object] | None

_PLAIN: Final = (bool, int, float, str, bytes, Decimal, dt.date)
_PARAMETER: Final = re.compile(rb"\?(\d+)?|\$(\w+)")


def with_values(connection: DuckDBPyConnection, query: str, params: Params) -> str | None:
    """Returns the query with each parameter written as a constant; None if one has none that is surely the same."""
    named = dict(params) if isinstance(params, Mapping) else dict(enumerate(params or (), 1))
    if any(not isinstance(value, _PLAIN) and value is not None for value in named.values()):
        return None
    constants = {str(name): _constant(connection, value) for name, value in named.items()}
    text, found, at, count = query.encode(), [], 0, 0
    starts = [start for start, kind in duckdb.tokenize(query) if kind == duckdb.token_type.operator]
    for start in starts:
        parameter = _PARAMETER.match(text, start)
        if parameter is None or start < at:
            continue
        count += parameter[0] == b"?"
        name = (parameter[1] or parameter[2] or str(count).encode()).decode()
        if name not in constants:
            return None
        found += [text[at:start], constants[name].encode()]
        at = parameter.end()
    return b"".join([*found, text[at:]]).decode()


def _constant(connection: DuckDBPyConnection, value: object) -> str:
    ((spelled, kind),) = connection.sql(
        "SELECT CAST($1 AS VARCHAR), typeof($1)", params=[value]
    ).fetchall()
    return "NULL" if spelled is None else f"CAST({as_text(spelled)} AS {kind})"
