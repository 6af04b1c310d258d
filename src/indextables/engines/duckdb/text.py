"""DuckDB's SQL as a condition, read by DuckDB itself.

Its dialect is not Spark's: `/` divides integers into doubles, `LIKE` has no escape of its own, casts and
folded constants follow its own rules. So DuckDB's binder and optimiser read the text over a stand-in for the
table, and what they place above it is the condition. What is not known of it is `Opaque`.
"""

from __future__ import annotations

from typing import Final

import duckdb

from indextables.core.bind.bind import bind
from indextables.core.predicate.nodes import And, Opaque, Predicate
from indextables.core.predicate.tree import flatten
from indextables.core.types import StructType
from indextables.engines.duckdb.optimised import scans_of, stand_in
from indextables.errors import PredicateError

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
        found = _read(text, schema, connection or duckdb.connect())
    except duckdb.Error as error:
        raise PredicateError(
            f"DuckDB cannot read the condition: {error}",
            hint="write it as it would stand after WHERE in DuckDB",
            condition=str(condition),
        ) from error
    return bind(flatten(found), schema, case_sensitive=True)


def _read(text: str, schema: StructType, connection: duckdb.DuckDBPyConnection) -> Predicate:
    source = stand_in(0, schema)
    found = scans_of(connection, f"SELECT * FROM ({source}) WHERE {text}", [schema])  # noqa: S608 - one expression
    if found is None or len(found) != 1:
        return Opaque(text, (), _WHY)
    (scan,) = found
    return And(tuple(scan.conditions if scan.is_whole else (*scan.conditions, Opaque(text, (), _WHY))))
