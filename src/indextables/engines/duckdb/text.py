"""DuckDB's SQL as a condition, read by DuckDB itself.

Its dialect is not Spark's: `/` divides integers into doubles, `LIKE` has no escape of its own, casts and
folded constants follow its own rules. So DuckDB's binder and optimiser read the text over a table without
rows, and the filters they hand to its scan are the condition. The rest is `Opaque`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

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


def from_duckdb(
    condition: str | duckdb.Expression,
    schema: StructType,
    *,
    connection: duckdb.DuckDBPyConnection | None = None,
) -> Predicate:
    """Reads a condition in DuckDB's SQL, as DuckDB itself understands it.

    It is TRUE for the rows DuckDB would keep or, if a piece of it is Opaque, for more. It may be FALSE where
    DuckDB has NULL, so use it as a whole and not as a piece of another condition. Settings such as the time
    zone are the connection's.

    Args:
        condition: What may stand after WHERE, or a `duckdb.Expression`.
        schema: The table's schema.
        connection: The connection to read it with; a new one without it.

    Returns:
        The condition.

    Raises:
        PredicateError: It is no condition over these columns; the message has DuckDB's own words.

    Example:
        >>> import indextables as it
        >>> import pyarrow as pa
        >>> table = it.Table.create("memory://from_duckdb", pa.schema({"n": pa.int64()}))
        >>> type(it.duckdb.from_duckdb("n > 5", table.schema)).__name__
        'Compare'
    """
    try:
        text = str(duckdb.SQLExpression(condition) if isinstance(condition, str) else condition)
        return flatten(_read(text, schema, connection or duckdb.connect()))
    except duckdb.Error as error:
        raise PredicateError(
            f"DuckDB cannot read the condition: {error}",
            hint="write it as it would stand after WHERE in DuckDB",
            condition=str(condition),
        ) from error


def _read(text: str, schema: StructType, connection: duckdb.DuckDBPyConnection) -> Predicate:
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
    # a plan with nothing but the scan keeps every row of it
    is_whole = set(names) <= {SCAN, "PROJECTION"} and len(known) == len(filters)
    return And(tuple(known) if is_whole else (*known, rest))
