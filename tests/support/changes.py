"""The same DELETE, UPDATE and MERGE on a table of ours through Spark and in DuckDB, row for row."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa

from indextables.table.table import Table

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("g", pa.int32()),
        pa.field("v", pa.int32()),
        pa.field("name", pa.string()),
    ]
)
ROWS = [
    {
        "id": i,
        "g": None if i == 7 else i % 3,
        "v": None if i % 4 == 0 else i,
        "name": "ab"[i % 2] * (i % 3) or None,
    }
    for i in range(12)
]
SOURCE = [(1, 10, "x"), (2, None, "y"), (5, 50, None), (7, 70, "z"), (20, 5, "new"), (21, None, None)]
STATEMENTS = [
    "DELETE FROM {t} WHERE NOT (v > 3) AND id > 1",
    "UPDATE {t} SET v = v + 1, name = NULL, g = 2 - g WHERE g = 1 OR name IS NULL",
    """MERGE INTO {t} AS t USING {s} AS s ON t.id = s.id
       WHEN MATCHED AND s.x > 40 THEN DELETE
       WHEN MATCHED THEN UPDATE SET v = s.x, name = s.label
       WHEN NOT MATCHED AND s.x IS NOT NULL THEN INSERT (id, g, v) VALUES (s.id, 1, s.x)
       WHEN NOT MATCHED BY SOURCE AND t.g = 0 THEN UPDATE SET name = 'alone', g = 1
       WHEN NOT MATCHED BY SOURCE AND t.v IS NULL THEN DELETE""",
    "DELETE FROM {t} AS t WHERE t.id IN (SELECT s.id FROM {s} AS s WHERE s.x < 20) AND t.g = 1",
]
"""In a few statements: NULL in conditions, a subquery, rows that move, every clause of MERGE."""
MORE = [
    "DELETE FROM {t} WHERE v > 9",
    "UPDATE {t} SET g = 2 WHERE id = 6",
    "UPDATE {t} AS t SET v = (SELECT max(s.x) FROM {s} AS s WHERE s.id >= t.id) WHERE t.g <> 1",
    """MERGE INTO {t} AS t USING (SELECT id + 100 AS id, g, v, name FROM {t} WHERE g = 2) AS s ON t.id = s.id
       WHEN NOT MATCHED THEN INSERT (id, g, v, name) VALUES (s.id, s.g, s.v, s.name)""",
]


class Twin:
    """A table of ours and a table of DuckDB's that get the same statements."""

    def __init__(self, spark: Any, path: Any, *, key: bool, partition_by: tuple[str, ...]) -> None:
        self.spark, self.path = spark, str(path)
        more = {"record_key": ["id"]} if key else {}
        self.table = Table.create(self.path, SCHEMA, partition_by=partition_by, **more)
        for start in (0, 4, 8):
            self.table.append(pa.Table.from_pylist(ROWS[start : start + 4], SCHEMA))
        self.duckdb = duckdb.connect()
        rows, source = pa.Table.from_pylist(ROWS, SCHEMA), source_table()
        self.duckdb.register("rows", rows)
        self.duckdb.register("source_rows", source)
        self.duckdb.execute("CREATE TABLE t AS SELECT * FROM rows")
        self.duckdb.execute("CREATE TABLE s AS SELECT * FROM source_rows")
        spark.createDataFrame(source).createOrReplaceTempView("twin_source")

    def run(self, statement: str) -> None:
        """On both sides; the same number of rows is affected, and the same rows are left."""
        (count, *_), *_ = self.spark.sql(
            statement.format(t=f"indextables.`{self.path}`", s="twin_source")
        ).collect()
        (expected,) = self.duckdb.execute(statement.format(t="t", s="s")).fetchone()
        assert count == expected, statement
        assert self.rows() == self.expected(), statement

    def rows(self) -> list[tuple[Any, ...]]:
        frame = self.spark.read.format("indextables").load(self.path)
        return sorted(map(tuple, frame.collect()), key=str)

    def expected(self) -> list[tuple[Any, ...]]:
        return sorted(self.duckdb.execute("SELECT * FROM t").fetchall(), key=str)


def source_table() -> pa.Table:
    """The rows that statements read besides the table."""
    ids, values, labels = zip(*SOURCE, strict=True)
    schema = pa.schema([("id", pa.int64()), ("x", pa.int32()), ("label", pa.string())])
    return pa.table([list(ids), list(values), list(labels)], schema=schema)


def random_statements(seed: int, count: int) -> Iterator[str]:
    """Statements with conditions over every column, NULL and not."""
    rng = random.Random(seed)
    conditions = [
        "v > {}",
        "g = {}",
        "id >= {}",
        "v IS NULL",
        "NOT (v <= {})",
        "name = 'a'",
        "g IS NULL OR id = {}",
    ]

    def condition() -> str:
        parts = [rng.choice(conditions).format(rng.randrange(12)) for _ in range(rng.randint(1, 2))]
        return rng.choice([" AND ", " OR "]).join(f"({part})" for part in parts)

    for number in range(count):
        low = rng.randrange(15)
        source = f"(SELECT id + {low} AS id, x, label FROM {{s}}) AS s"
        yield rng.choice(
            [
                f"DELETE FROM {{t}} WHERE {condition()} AND id % 3 = {rng.randrange(3)}",
                f"UPDATE {{t}} SET v = {number}, g = g + {rng.randrange(2)} WHERE {condition()}",
                f"""MERGE INTO {{t}} AS t USING {source} ON t.id = s.id
                    WHEN MATCHED AND {rng.choice(["s.x > 9", "t.v IS NULL", "t.g = 1"])} THEN UPDATE SET v = s.x
                    WHEN MATCHED THEN DELETE
                    WHEN NOT MATCHED THEN INSERT (id, v, name) VALUES (s.id, s.x, s.label)""",
            ]
        )
