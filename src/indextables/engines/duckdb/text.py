"""DuckDB's SQL as a condition, read by DuckDB itself.

Its dialect is not Spark's: `/` divides integers into doubles, `LIKE` has no escape of its own, casts and
folded constants follow its own rules. So the text is given to DuckDB's binder and optimiser over a
table without rows, and what they ask a scan to filter by is the condition; the rest is `Opaque`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import duckdb

from indextables.core.bind.bind import bind
from indextables.core.bind.bound import uncoerced
from indextables.core.predicate.nodes import And, Constant, Opaque, Predicate
from indextables.core.predicate.tree import flatten
from indextables.core.types import StructType, schema_to_arrow
from indextables.engines.duckdb.explain import SCAN, Operator, explain
from indextables.errors import PredicateError

_PROBE: Final = "__indextables_condition"
_WHY: Final = "only DuckDB can evaluate it"


def from_duckdb(condition: Any, schema: StructType, *, connection: Any | None = None) -> Predicate:
    """Returns what a WHERE clause of DuckDB with this text, or this `duckdb.Expression`, keeps.

    TRUE for the rows DuckDB would keep, or, where a part of it is Opaque, for more; it may be FALSE where
    DuckDB has NULL, so it is a condition as a whole and no part of another one. Settings such as the
    time zone are the connection's. PredicateError with DuckDB's own words if it is no condition over
    these columns.
    """
    try:
        text = str(duckdb.SQLExpression(condition) if isinstance(condition, str) else condition)
        return flatten(_read(text, schema, connection or duckdb.connect()))
    except duckdb.Error as error:
        raise PredicateError(
            f"DuckDB cannot read the condition: {error}",
            hint="write what may stand after WHERE in DuckDB",
            condition=str(condition),
        ) from error


def _read(text: str, schema: StructType, connection: Any) -> Predicate:
    rest = Opaque(text, (), _WHY)
    if not hasattr(connection, "_register_arrow_source"):
        return rest
    try:
        from indextables.engines.duckdb.source import FilterSource  # noqa: PLC0415 - needs a private module
    except ImportError:
        return rest
    probe = FilterSource(
        schema_to_arrow(schema),
        lambda found: bind(uncoerced(found, schema), schema, case_sensitive=True),
    )
    connection._register_arrow_source(_PROBE, probe)  # noqa: SLF001 - tested for
    try:
        plan = explain(connection, f"SELECT * FROM {_PROBE} WHERE {text}")  # noqa: S608 - one expression
    except ValueError:
        return rest
    finally:
        connection.unregister(_PROBE)
    return _condition(plan, probe.offered, rest)


def _condition(plan: Sequence[Operator], offered: dict[str, Predicate], rest: Opaque) -> Predicate:
    names = [operator.name for operator in plan]
    if names == ["EMPTY_RESULT"]:
        return Constant(False)
    if names.count(SCAN) != 1:
        return rest
    filters = plan[names.index(SCAN)].filters
    known = [offered[text] for text in filters if text in offered]
    # a plan of the scan alone keeps every row the scan gives
    is_whole = set(names) <= {SCAN, "PROJECTION"} and len(known) == len(filters)
    return And(tuple(known) if is_whole else (*known, rest))
