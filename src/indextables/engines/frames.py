"""Arrow results handed to libraries that are installed only if the user wants them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from indextables.engines.optional import require


def pandas_frame(table: pa.Table) -> Any:
    """The rows as a pandas DataFrame."""
    require("pandas")
    return table.to_pandas()


def polars_frame(table: pa.Table) -> Any:
    """The rows as a Polars DataFrame."""
    return require("polars").from_arrow(table)


def duckdb_relation(reader: pa.RecordBatchReader, connection: Any | None) -> Any:
    """The rows as a DuckDB relation, read as DuckDB asks for them, once."""
    duckdb = require("duckdb")
    return (connection or duckdb.default_connection()).from_arrow(reader)
