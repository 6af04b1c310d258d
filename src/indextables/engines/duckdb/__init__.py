"""The table in DuckDB: `register` makes it queryable, and `sql` is the faster way to run a whole query."""

from indextables.engines.optional import require

require("duckdb")

from indextables.engines.duckdb.tables import register, sql, unregister  # noqa: E402
from indextables.engines.duckdb.text import from_duckdb  # noqa: E402

__all__ = ["from_duckdb", "register", "sql", "unregister"]
