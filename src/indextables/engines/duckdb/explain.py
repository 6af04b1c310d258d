"""What DuckDB's optimiser makes of a query: its operators, and the filters of its scans."""

from __future__ import annotations

import json
from dataclasses import dataclass

from duckdb import DuckDBPyConnection

SCAN = "PYTHON_ARROW_SCAN"


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of a query plan."""

    name: str
    filters: tuple[str, ...] = ()
    """The filters of a scan, as text."""


def explain(connection: DuckDBPyConnection, query: str, params: object = None) -> list[Operator]:
    """Returns the operators of a query's plan, the outermost first; the query does not run.

    DuckDB's own errors are raised, and ValueError if its answer has another form than expected.
    """
    # sql() and not execute(), whose result belongs to the connection: another thread could fetch it
    shown = connection.sql(f"EXPLAIN (FORMAT json) {query}", params=params).fetchall()
    if len(shown) != 1:
        raise ValueError("EXPLAIN answers with one plan")
    plan = json.loads(shown[0][1])
    todo = list(reversed(plan)) if isinstance(plan, list) else [plan]
    found = []
    while todo:
        node = todo.pop()
        todo.extend(reversed(node.get("children", ())))
        filters = node.get("extra_info", {}).get("Filters", [])
        texts = (filters,) if isinstance(filters, str) else tuple(filters)
        found.append(Operator(node.get("name", "").strip(), texts))
    return found
