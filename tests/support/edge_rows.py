"""Rows at the edges of every type, clustered by file in every column, for comparing engines with themselves."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

from indextables.core.types import PrimitiveType, schema_from_arrow
from support.expressions import DAY, edges

FILES, ROWS = 16, 12
COLUMNS = {
    "i8": pa.int8(),
    "i16": pa.int16(),
    "i32": pa.int32(),
    "j32": pa.int32(),
    "i64": pa.int64(),
    "j64": pa.int64(),
    "f32": pa.float32(),
    "f64": pa.float64(),
    "g64": pa.float64(),
    "money": pa.decimal128(10, 2),
    "wide": pa.decimal128(30, 5),
    "day": pa.date32(),
    "until": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("us"),
    "name": pa.string(),
    "word": pa.string(),
    "flag": pa.bool_(),
    "st": pa.struct([("x", pa.int32()), ("s", pa.string())]),
}
SCHEMA = pa.schema([("id", pa.int64()), *COLUMNS.items()])
_PLAIN = {"i32", "j64", "g64", "until", "name"}
"""Columns of everyday values, which functions seldom leave the type of."""
_WORDS = (
    "",
    "a",
    "ab",
    "abc",
    "Bean",
    "bean",
    "cat",
    "Dog",
    "é",
    "Éa",
    "k",
    "K",
    "ß",
    "x%y",
    "x_y",
    "z\\",
    "日本",
)


def _values(name: str, dtype: pa.DataType, count: int, rng: random.Random) -> list[Any]:
    if name == "st":
        inner = [
            _values(part, kind, count, rng)
            for part, kind in (("i32", pa.int32()), ("name", pa.string()))
        ]
        return [None if rng.random() < 0.1 else {"x": x, "s": s} for x, s in zip(*inner, strict=True)]
    own = schema_from_arrow(pa.schema([(name, dtype)])).fields[0].type
    pool: list[Any] = []
    while len(pool) < count:
        pool += _everyday(own, rng) if name in _PLAIN else edges(own, rng)
    drawn = rng.sample(pool, count)
    known = [value for value in drawn if value is not None]
    known.sort(key=lambda value: (value != value, value))
    # a few out of order, a few NULL, some files nothing but NULL
    for _ in range(count // 40):
        one, two = rng.randrange(len(known)), rng.randrange(len(known))
        known[one], known[two] = known[two], known[one]
    known += [None] * (count - len(known))
    start = rng.randrange(count)
    return known[start:] + known[:start]


def _everyday(dtype: Any, rng: random.Random) -> list[Any]:
    match dtype:
        case PrimitiveType("string"):
            return [rng.choice(_WORDS) + rng.choice(_WORDS) for _ in range(30)] + [None]
        case PrimitiveType("double"):
            return [rng.randrange(-400, 900) / 8 for _ in range(30)] + [None]
        case PrimitiveType("date"):
            return [rng.randrange(-1000, 20_500) for _ in range(30)] + [None]
        case _:
            return [rng.randrange(-500, 3000) for _ in range(30)] + [None]


def edge_rows(seed: int = 5) -> pa.Table:
    """Returns the rows of all files, one file after another."""
    rng, count = random.Random(seed), FILES * ROWS
    columns = [pa.array(range(count), pa.int64())]
    for name, dtype in COLUMNS.items():
        values = _values(name, dtype, count, rng)
        physical = pa.int32() if pa.types.is_date(dtype) else dtype
        columns.append(pa.array(values, physical).cast(dtype))
    return pa.Table.from_arrays(columns, schema=SCHEMA)


__all__ = ["COLUMNS", "DAY", "FILES", "ROWS", "SCHEMA", "edge_rows"]
