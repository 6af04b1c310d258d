"""A table and plain Parquet of the same rows, with the values at which Spark's functions turn."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from support.spark_tables import write_table

from indextables.engines.spark.scan.file_list import UNFILTERED

FILES, PER_FILE = 20, 8
ROWS = FILES * PER_FILE
DAY = 86_400_000_000
EDGE = 2**53

_INTEGERS = [
    *(0, 0, 1, -1, 2, 5, 7, 9, 10, 20, 59, 60, 100, 127, 128, 255, 300, 2023, 2024, 32767, 32768, 86399, 86400),
    *(2**24 + 1, 2**31 - 1, 2**31, 2**32 + 5, 10**9, 1_700_000_000, EDGE - 1, EDGE, EDGE + 1, 10**18, 2**62),
    *(2**63 - 1, 2**63 - 2, -2, -5, -7, -100, -128, -129, -32768, -(2**31), -(2**31) - 1, -EDGE - 1, -(2**63)),
]  # fmt: skip
_DOUBLES = [
    *(0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -1.5, 0.1, 0.30000001192092896, 1.0, 2.0, 20.0, 1e-9, 1e9, 1e18, 1e300),
    *(-1e300, 5e-324, float("inf"), float("-inf"), float("nan"), float("nan"), float(EDGE), 9.223372036854775807e18),
    *(2147483647.0, 2147483648.0, -2147483649.0, 3.4e38, 100.05, -100.05, 2024.0, 127.5, 0.05, 0.15, 1e-320),
]  # fmt: skip
_DECIMALS = [
    Decimal(text)
    for text in "0 0.01 -0.01 0.5 0.05 1 -1 1.5 2.5 -2.5 20 99.99 100 2024 2147483647 2147483648 9007199254740993 "
    "999999999999999999.99 -999999999999999999.99 123.45 0.12 7 5 300 127.99 -128.5".split()
]
_TEXTS = [
    *("", " ", "a", "A", "ab", "aB", "Ab", "AB", "abc", "ABC", "abc ", " abc", "abcde", "abcdeé", "b", "B", "z", "Z"),
    *("é", "É", "ß", "SS", "ss", "ſ", "s", "K", "\u212a", "k", "İ", "i", "ı", "I", "Σ", "σ", "ς", "ABCaΣA", "abcaσa"),
    *("5", "05", "5.0", " 5", "5 ", "-5", "+5", "1e2", "1E2", "0x5", "20", "300", "2147483648", "NaN", "Infinity"),
    *("true", "TRUE", "t", "yes", "0", "1", "null", "2024-01-01", "2024-1-1", "2024-01-01 12:00:00", "2024-02-30"),
    *("12:30", "20240101", "10000-01-01", "-0001-01-01", "a_b", "a%b", "a\\b", "a'b", "a\nb", "{}", '{"a":1}'),
    *("\U0001f600", "日本", "日本語", "a\u0301", "\u00e1", "zzz", "~", "_", "https://x.y/z?a=1", "a,b,c", "ab12"),
]  # fmt: skip


def _days() -> list[int]:
    """Days since 1970 around the edges of calendars, months, years and what a text of a date can say."""
    days = [
        -1,
        0,
        1,
        -719_162,
        -719_163,
        -141_428,
        -141_427,
        -141_438,
        -25_567,
        -25_568,
        2_932_896,
        2_932_897,
        -800_000,
    ]
    for year in (1600, 1899, 1900, 1935, 1969, 1970, 1999, 2000, 2023, 2024, 2037, 2038, 2100):
        for month, day in ((1, 1), (1, 31), (2, 28), (3, 1), (3, 31), (10, 29), (12, 31)):
            days.append((dt.date(year, month, day) - dt.date(1970, 1, 1)).days)
    return days + [(dt.date(2024, 1, 1) - dt.date(1970, 1, 1)).days + i for i in range(20)]


def _instants() -> list[int]:
    """Microseconds since 1970 around midnights, and where clocks of odd zones are put forward and back."""
    moments = [0, -1, 1, 999_999, -999_999, DAY - 1, DAY, -DAY]
    moments += [day * DAY + shift for day in _days() for shift in (0,) if -700_000 < day < 2_900_000]
    for year, month, day, hour in (
        *((2024, 3, 10, 5), (2024, 11, 3, 4), (2024, 11, 3, 5), (2024, 3, 31, 1), (2024, 10, 27, 1)),
        *(
            (1985, 12, 31, 18),
            (1986, 1, 1, 0),
            (1937, 6, 30, 23),
            (1937, 7, 1, 0),
            (2040, 7, 1, 4),
            (2100, 7, 1, 4),
        ),
        *((2024, 1, 1, 0), (2023, 12, 31, 23), (2024, 2, 29, 12), (2024, 12, 31, 18), (2025, 1, 1, 5)),
    ):
        base = (dt.datetime(year, month, day, hour) - dt.datetime(1970, 1, 1)) // dt.timedelta(
            microseconds=1
        )
        moments += [base, base - 1, base + 1, base + 1_800_000_000, base + 3_600_000_000 - 1]
    return moments


def _spread(values: list[Any], chance: random.Random, *, key: Any = None) -> list[Any]:
    """A column: sorted in files, so that files can be skipped; some are NULL, and some files all of one value."""
    many = sorted((values * (ROWS // len(values) + 1))[:ROWS] if len(values) < ROWS else chance.sample(values, ROWS), key=key)  # fmt: skip
    files = [many[i : i + PER_FILE] for i in range(0, ROWS, PER_FILE)]
    chance.shuffle(files)
    files[chance.randrange(FILES)] = [chance.choice(values)] * PER_FILE
    files[chance.randrange(FILES)] = [None] * PER_FILE
    for file in chance.sample(files, FILES // 3):
        file[chance.randrange(PER_FILE)] = None
    return [value for file in files for value in file]


def _fitting(values: list[int], bits: int) -> list[int]:
    return [n for n in values if -(2 ** (bits - 1)) <= n < 2 ** (bits - 1)]


def rows(seed: int) -> pa.Table:
    """Twenty files of eight rows, of every type that conditions compare."""
    chance = random.Random(seed)
    longs, others = _spread(_INTEGERS, chance), _spread(_INTEGERS, chance)
    nan_last = lambda x: (x != x, x)  # noqa: E731, PLR0124
    texts, other_texts = _spread(_TEXTS, chance), _spread(_TEXTS, chance)
    instants = [n for n in _instants() if abs(n) < 2**60]
    arrays = [None if chance.random() < 0.1 else [chance.choice([*_fitting(_INTEGERS, 32), None]) for _ in range(chance.randrange(4))] for _ in range(ROWS)]  # fmt: skip
    columns = {
        "k": pa.array(range(ROWS), pa.int64()),
        "l": pa.array(longs, pa.int64()),
        "m": pa.array(others, pa.int64()),
        "i": pa.array(_spread(_fitting(_INTEGERS, 32), chance), pa.int32()),
        "h": pa.array(_spread(_fitting(_INTEGERS, 16), chance), pa.int16()),
        "c": pa.array(_spread(_fitting(_INTEGERS, 8), chance), pa.int8()),
        "f": pa.array(
            _spread(
                [
                    x
                    for x in _DOUBLES
                    if not 1e-40 > abs(x) > 0 and abs(x) < 3.4e38 or x in (float("inf"),)
                ],
                chance,
                key=nan_last,
            ),
            pa.float32(),
        ),  # fmt: skip
        "x": pa.array(_spread(_DOUBLES, chance, key=nan_last), pa.float64()),
        "n": pa.array(_spread(_DECIMALS, chance), pa.decimal128(20, 2)),
        "s": pa.array(texts, pa.string()),
        "t": pa.array(other_texts, pa.string()),
        "e": pa.array(
            [None if text is None else text.encode() for text in _spread(_TEXTS, chance)], pa.binary()
        ),
        "d": pa.array(_spread(_days(), chance), pa.date32()),
        "z": pa.array(_spread(instants, chance), pa.timestamp("us", "UTC")),
        "y": pa.array(_spread(instants, chance), pa.timestamp("us")),
        "b": pa.array(_spread([True, False], chance)),
        "a": pa.array(arrays, pa.list_(pa.int32())),
        "st": pa.StructArray.from_arrays(
            [
                pa.array(_spread(_INTEGERS, chance), pa.int64()),
                pa.array(_spread(_TEXTS, chance), pa.string()),
            ],
            ["l", "s"],
        ),  # fmt: skip
        "p": pa.array([[0, 5, None, 2024][i // PER_FILE % 4] for i in range(ROWS)], pa.int32()),
        "q": pa.array(
            [["a", "5", None, "2024-01-01", "B"][i // PER_FILE % 5] for i in range(ROWS)], pa.string()
        ),
    }
    return pa.table(columns)


def write_both(path: Path, seed: int, partition_by: Any = ()) -> pa.Table:
    """`path/table` in twenty splits, and `path/plain`, one Parquet file for each of them."""
    data = rows(seed)
    write_table(path / "table", data, splits=FILES, partition_by=partition_by)
    (path / "plain").mkdir()
    for start in range(0, ROWS, PER_FILE):
        pq.write_table(data.slice(start, PER_FILE), path / "plain" / f"{start}.parquet")
    return data


def plain_frame(spark: Any, path: Path) -> Any:
    """All rows of the plain files, no filter inside of them: what a condition leaves of these is the truth."""
    return spark.read.options(**UNFILTERED).parquet(str(path / "plain"))
