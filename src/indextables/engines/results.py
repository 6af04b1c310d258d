"""Arrow results for libraries that are installed only if the user wants them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import pandas as pd

from indextables.engines.optional import require

_LONGEST_DOUBLE: Final = 2**53
"""Beyond it, a double cannot hold every integer."""


def pandas_frame(table: pa.Table) -> pd.DataFrame:
    """Returns the rows as a pandas DataFrame without changing a value.

    An integer column with NULLs becomes doubles in pandas. Where that would change a number, it becomes
    an `Int64` column instead.
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
    """Returns the rows as a DuckDB relation, which reads them once and only as it needs them."""
    duckdb = require("duckdb")
    return (connection or duckdb.default_connection()).from_arrow(reader)
