"""Arrow results handed to libraries that are installed only if the user wants them."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from indextables.engines.optional import require

_LONGEST_DOUBLE: Final = 2**53
"""Beyond it not every integer is a double."""


def pandas_frame(table: pa.Table) -> Any:
    """Returns the rows as a pandas DataFrame, every value as it is.

    Integers beside NULL are doubles in pandas; where that would change one the column is an `Int64`.
    """
    pandas = require("pandas")
    frame = table.to_pandas()
    for place, column in enumerate(table.columns):
        if _loses_digits(column):
            frame.isetitem(place, column.to_pandas(types_mapper={pa.int64(): pandas.Int64Dtype()}.get))
    return frame


def _loses_digits(column: pa.ChunkedArray) -> bool:
    if column.type != pa.int64() or not column.null_count:
        return False
    ends = pc.min_max(column).as_py()
    return ends["min"] is not None and max(-ends["min"], ends["max"]) > _LONGEST_DOUBLE


def polars_frame(table: pa.Table) -> Any:
    """Returns the rows as a Polars DataFrame."""
    return require("polars").from_arrow(table)


def duckdb_relation(reader: pa.RecordBatchReader, connection: Any | None) -> Any:
    """Returns the rows as a DuckDB relation, read as DuckDB asks for them, once."""
    duckdb = require("duckdb")
    return (connection or duckdb.default_connection()).from_arrow(reader)
