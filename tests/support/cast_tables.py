"""A table and plain Parquet of the same rows, with values that casts round, wrap and fold together."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from support.spark_tables import write_table

from indextables.engines.spark.scan.file_list import UNFILTERED

PER_FILE = 4
_EDGE = 2**53
_LONGS = [
    *(0, 0, 0, 0),
    *(20, 20, 20, 20),
    *(1, 2, 3, None),
    *(_EDGE, _EDGE, _EDGE + 1, _EDGE + 1),
    *(_EDGE + 1, _EDGE + 1, _EDGE + 1, _EDGE + 1),
    *(-_EDGE - 1, -5, None, None),
    *(2**31, 2**31 + 1, 2**32, 2**32 + 5),
    *(2**63 - 1, 2**63 - 1, 2**63 - 2, 2**63 - 1),
    *(-(2**63), 5, 300, 2**24 + 1),
]
_OTHERS = [_EDGE if n == _EDGE + 1 else n for n in _LONGS]
_TEXTS = [
    *("abc", "ABC", "Abc", "aBC"),
    *("ABC", "ABC", "ABC", "ABC"),
    *("b", "B", "c", None),
    *("5", "05", "5.0", " 5"),
    *("abc ", "abc  ", "abc", "ab"),
    *("2024-01-01", "2024-1-1", "1e2", "true"),
    *("Z", "a", "_", "É"),
    *("abcdefgh", "abcdexyz", "abcde", ""),
    *("é", "k", "\u212a", "ß"),
]
_FIRST = dt.date(2024, 1, 1)
_DAYS = [None if i % 11 == 10 else _FIRST + dt.timedelta(i // PER_FILE) for i in range(len(_LONGS))]
_EARLY = dt.datetime(2023, 12, 31, 22)


def _times(zone: dt.tzinfo | None) -> list[dt.datetime | None]:
    moments = [_EARLY + dt.timedelta(hours=6 * i, microseconds=i % 3) for i in range(len(_LONGS))]
    return [None if i % 13 == 12 else m.replace(tzinfo=zone) for i, m in enumerate(moments)]


def rows() -> pa.Table:
    """Nine files of four rows; some files hold one value only, so that a condition can be proven of them."""
    ints = [None if n is None else (n + 2**31) % 2**32 - 2**31 for n in _LONGS]
    doubles = [None if n is None else n / 4 for n in _LONGS]
    doubles[8:11] = [float("nan"), -0.0, 0.1]
    singles = [None if n is None else n % 1000 / 10 for n in _LONGS]
    decimals = [None if n is None else Decimal(n % 1000) / 8 for n in _LONGS]
    return pa.table(
        {
            "k": pa.array(range(len(_LONGS)), pa.int64()),
            "l": pa.array(_LONGS, pa.int64()),
            "m": pa.array(_OTHERS, pa.int64()),
            "i": pa.array(ints, pa.int32()),
            "h": pa.array([None if n is None else n % 300 for n in _LONGS], pa.int16()),
            "f": pa.array(singles, pa.float32()),
            "x": pa.array(doubles, pa.float64()),
            "n": pa.array(decimals, pa.decimal128(10, 3)),
            "w": pa.array([None if n is None else Decimal(n) for n in _LONGS], pa.decimal128(20, 0)),
            "s": pa.array(_TEXTS, pa.string()),
            "t": pa.array([None if text is None else text.lower() for text in _TEXTS], pa.string()),
            "d": pa.array(_DAYS, pa.date32()),
            "z": pa.array(_times(dt.UTC), pa.timestamp("us", "UTC")),
            "y": pa.array(_times(None), pa.timestamp("us")),
            # one value per file: the table may be partitioned by them
            "p": pa.array([[0, 5, None][i // PER_FILE % 3] for i in range(len(_LONGS))], pa.int32()),
            "q": pa.array([_FIRST + dt.timedelta(i // 12) for i in range(len(_LONGS))], pa.date32()),
            "b": pa.array([[True, False, None][i // PER_FILE % 3] for i in range(len(_LONGS))]),
            "st": pa.array(
                [
                    {"l": number, "s": text, "d": day}
                    for number, text, day in zip(_LONGS, _TEXTS, _DAYS, strict=True)
                ],
                pa.struct([("l", pa.int64()), ("s", pa.string()), ("d", pa.date32())]),
            ),
        }
    )


def write_both(path: Path, partition_by: Any = ()) -> pa.Table:
    """`path/table` in nine splits, and `path/plain`, one Parquet file for each of them."""
    data = rows()
    splits = data.num_rows // PER_FILE
    write_table(path / "table", data, splits=splits, partition_by=partition_by)
    (path / "plain").mkdir()
    for start in range(0, data.num_rows, PER_FILE):
        pq.write_table(data.slice(start, PER_FILE), path / "plain" / f"{start}.parquet")
    return data


def plain_frame(spark: Any, path: Path) -> Any:
    """All rows of the plain files, no filter inside of them: what a condition leaves of these is the truth."""
    return spark.read.options(**UNFILTERED).parquet(str(path / "plain"))
