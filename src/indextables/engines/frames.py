"""Arrow results handed to libraries that are installed only if the user wants them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pyarrow as pa

from indextables.errors import MissingDependencyError


def pandas_frame(table: pa.Table) -> Any:
    """The rows as a pandas DataFrame."""
    _require("pandas")
    return table.to_pandas()


def polars_frame(table: pa.Table) -> Any:
    """The rows as a Polars DataFrame."""
    return _require("polars").from_arrow(table)


def duckdb_relation(reader: pa.RecordBatchReader, connection: Any | None) -> Any:
    """The rows as a DuckDB relation, read as DuckDB asks for them, once."""
    duckdb = _require("duckdb")
    return (connection or duckdb.default_connection()).from_arrow(reader)


def _require(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"the package {name} is not installed",
            hint=f"pip install 'indextables[{name}]'",
            package=name,
        ) from error
