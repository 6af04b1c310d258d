"""Rows of every type with the values that break comparisons, and as Spark's own rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa

UTC = dt.UTC
NAN, INF = float("nan"), float("inf")

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "y": (pa.int8(), [-128, -1, 0, 5, 6, 127]),
    "h": (pa.int16(), [-32768, 0, 5, 32767]),
    "i": (pa.int32(), [-(2**31), -1, 0, 1, 5, 6, 2**31 - 1]),
    "l": (
        pa.int64(),
        [-(2**63), -(2**53) - 1, 0, 5, 2**53, 2**53 + 1, 2**53 + 2, 2**53 + 3, 2**63 - 1],
    ),
    "f": (pa.float32(), [-INF, -0.0, 0.0, 0.1, 0.5, 16777216.0, 3.4028234663852886e38, INF, NAN]),
    "d": (pa.float64(), [-INF, -1.5, -0.0, 0.0, 0.1, 5.0, 9007199254740992.0, 1e308, INF, NAN]),
    "m": (
        pa.decimal128(10, 2),
        [Decimal(x) for x in ("-99999999.99", "-0.01", "0.00", "0.30", "1.00", "5.50")],
    ),
    "w": (pa.decimal128(38, 10), [Decimal(x) for x in ("-1E+27", "0", "0.3000000000", "0.3000000001")]),
    "s": (
        pa.string(),
        ["", "a", "ab", "abc", "a%b", "a_b", "a\nb", "9", "10", "é", "\ufffd", "\U0001d403", "b"],
    ),
    "n": (pa.string(), ["5", " 5 ", "10", "-3", "255"]),
    "b": (pa.bool_(), [True, False]),
    "x": (pa.binary(), [b"", b"a", b"ab", b"\x7f", b"\xff", b"\xff\xff"]),
    "dt": (
        pa.date32(),
        [
            dt.date(1, 1, 1),
            dt.date(1582, 10, 4),
            dt.date(1969, 12, 31),
            dt.date(2024, 1, 1),
            dt.date(2024, 3, 31),
            dt.date(9999, 12, 31),
        ],
    ),
    "ts": (
        pa.timestamp("us", "UTC"),
        [
            dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
            dt.datetime(2023, 12, 31, 23, 0, tzinfo=UTC),
            dt.datetime(2024, 1, 1, tzinfo=UTC),
            dt.datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
            dt.datetime(2024, 10, 27, 0, 30, tzinfo=UTC),
            dt.datetime(2024, 10, 27, 1, 30, tzinfo=UTC),
        ],
    ),
    "tn": (
        pa.timestamp("us"),
        [
            dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
            dt.datetime(2024, 1, 1),
            dt.datetime(2024, 3, 31, 2, 30),
        ],
    ),
}


def nasty_table() -> pa.Table:
    """Every value of every column at least once, NULLs, and a struct that is sometimes NULL."""
    height = max(len(values) for _, values in COLUMNS.values()) + 1
    columns = {}
    for name, (dtype, values) in COLUMNS.items():
        cycled = [values[i % len(values)] for i in range(height - 1)]
        columns[name] = pa.array([*cycled, None], dtype)
    inner = [{"a": i, "b.c": str(i)} for i in range(height - 3)]
    struct = pa.struct([("a", pa.int64()), ("b.c", pa.string())])
    columns["st"] = pa.array([*inner, None, {"a": None, "b.c": "x"}, None], struct)
    return pa.table(columns)
