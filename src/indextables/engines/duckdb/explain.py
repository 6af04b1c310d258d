"""What DuckDB's optimiser makes of a query: which operators there are, and by what its scans filter."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

SCAN = "PYTHON_ARROW_SCAN"


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of a plan."""

    name: str
    filters: tuple[str, ...] = ()
    """Of a scan, the filters it was given, as text."""


def explain(connection: Any, query: str, params: Any = None) -> list[Operator]:
    """Returns the operators of a query's plan, the outermost first; the query does not run.

    Raises what DuckDB raises, and ValueError if its answer has another form than expected.
    """
    # a relation: the result of execute() is the connection's, and another thread could fetch it
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
