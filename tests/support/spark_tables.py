"""Tables for the tests of the Spark engine, written without Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from indextables.table.table import Table


def write_table(path: Path | str, data: pa.Table, *, splits: int = 1, partition_by: Any = ()) -> Table:
    """A table of these rows, cut into this many appends."""
    table = Table.create(str(path), data.schema, partition_by=partition_by)
    size = max(1, -(-data.num_rows // splits))
    for start in range(0, data.num_rows, size):
        table.append(data.slice(start, size))
    return table


def days(rows: int = 1000, per_day: int = 100) -> pa.Table:
    """A thousand rows, sorted by id and day, with a few columns of each kind."""
    first = dt.date(2024, 1, 1)
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "day": pa.array(
                [first + dt.timedelta(days=i // per_day) for i in range(rows)], pa.date32()
            ),
            "name": pa.array([f"k{i:05d}" for i in range(rows)]),
            "score": pa.array([None if i % 7 == 0 else i / 2 for i in range(rows)], pa.float64()),
            "price": pa.array([Decimal(i) / 4 for i in range(rows)], pa.decimal128(10, 2)),
            "st": pa.array([{"a": i, "b": f"b{i % 10}"} for i in range(rows)]),
        }
    )
