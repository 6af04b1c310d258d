"""Conditions over functions: the same rows as DuckDB where both mean the same, and no file too many."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import PredicateError

FILES, ROWS = 30, 12


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A table of thirty files, each of one month and one range of ids, and its rows."""
    rng = random.Random(7)
    rows = []
    for file in range(FILES):
        start = dt.datetime(2022, 1, 15, tzinfo=dt.UTC) + dt.timedelta(days=31 * file)
        for row in range(ROWS):
            at = start + dt.timedelta(seconds=rng.randrange(20 * 86_400))
            number = file * 100 + rng.randrange(60)
            rows.append(
                {
                    "file": file,
                    "row": row,
                    "id": number,
                    "n": None if rng.random() < 0.2 else rng.randrange(-50, 50),
                    "ts": at,
                    "d": at.date(),
                    "x": number / 7,
                }
            )
    schema = pa.schema(
        [("file", pa.int32()), ("row", pa.int32()), ("id", pa.int64()), ("n", pa.int32())]
        + [
            ("ts", pa.timestamp("us", "UTC")),
            ("d", pa.date32()),
            ("x", pa.float64()),
        ]
    )
    data = pa.Table.from_pylist(rows, schema)
    table = it.Table.create(tmp_path_factory.mktemp("functions") / "t", schema)
    for file in range(FILES):
        table.append(data.slice(file * ROWS, ROWS))
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("world", data)
    return table, connection


def _keys(table, condition):
    found = table.scan(condition, columns=["file", "row"]).to_arrow()
    return sorted(zip(found["file"].to_pylist(), found["row"].to_pylist(), strict=True))


FORMS = [
    # condition, and how far from the least number of files it may be
    ("year(ts) = 2023", 0),
    ("month(ts) = 5", 0),
    ("quarter(d) = 2 AND year(d) = 2023", 0),
    ("day(ts) <= 3", FILES),
    ("date_trunc('month', ts) = TIMESTAMP '2023-03-01 00:00:00'", 0),
    ("CAST(ts AS DATE) = DATE '2023-05-20'", 1),
    ("ts + INTERVAL 1 DAY >= TIMESTAMP '2024-05-01 00:00:00'", 0),
    ("id + 1 > 2900", 0),
    ("id * 2 BETWEEN 100 AND 300", 0),
    ("-id >= -50", 0),
    ("abs(id - 1500) < 40", 1),
    ("id % 1000 < 20", 1),
    ("floor(x) = 100", 1),
    ("CAST(id AS DOUBLE) / 2 > 1400", 0),
    ("CAST(x AS INT) IS NULL", 0),
    ("coalesce(id, 0) > 2800", 0),
    ("CASE WHEN id > 2800 THEN 1 ELSE 0 END = 1", 0),
    ("id + n > 2950", 1),
    ("greatest(id, 100) < 50", 0),
    ("nullif(id, 5) IS NULL", 1),
    ("(id, n) IN ((1, 2), (3, 4))", 1),
]


@pytest.mark.parametrize(("condition", "more"), FORMS, ids=[form[0] for form in FORMS])
def test_a_daily_form_of_condition_reads_only_files_that_may_hold_a_row(world, condition, more):
    """And its rows are DuckDB's; `more` are files whose bounds cannot exclude one."""
    table, connection = world
    expected = connection.sql(
        f"SELECT file, row FROM world WHERE {_duckdb(condition)} ORDER BY 1, 2"
    ).fetchall()
    assert _keys(table, condition) == expected
    least = len({file for file, _ in expected})
    assert least <= len(table.plan(condition).files) <= least + more


def _duckdb(condition):
    # in DuckDB a cast to an integer rounds, and month names of date_trunc are the same
    return condition.replace("CAST(x AS INT)", "CAST(trunc(x) AS INT)").replace(
        "TIMESTAMP '", "TIMESTAMPTZ '"
    )


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("IF((id > 2800), 1, 0) = 1", "id > 2800"),
        ("coalesce(isnan(x), false)", "isnan(x)"),
        ("IF(isnan(x), 0, 1) = 1", "NOT isnan(x)"),
        ("isnan(x) IS NOT TRUE", "NOT isnan(x)"),
        ("date_part('YEAR', ts) = 2023", "year(ts) = 2023"),
    ],
)
def test_a_condition_in_another_spelling_gives_the_same_rows(world, condition, expected):
    """Conditions in brackets, and tests by name, are arguments too."""
    table, _ = world
    assert _keys(table, condition) == _keys(table, expected)


def test_a_decimal_is_rounded_to_places():
    """The constant decides the type of the result."""
    schema = pa.schema([("m", pa.decimal128(10, 2))])
    table = it.Table.create("memory://rounded", schema)
    table.append(pa.table({"m": [Decimal("1.25"), Decimal("-1.25"), Decimal("44.44")]}, schema=schema))
    for condition, rows in (("round(m, 1) = 1.3", 1), ("round(m) = -1", 1), ("round(m, -1) = 40", 1)):
        assert table.scan(condition).to_arrow().num_rows == rows, condition


def test_a_part_that_raises_decides_nothing():
    """The value in the place of an error once made an IF take its other branch, and the error was gone."""
    table = it.Table.create("memory://raises", pa.schema([("x", pa.float64()), ("n", pa.int64())]))
    table.append(pa.table({"x": [math.nan, 1.0], "n": [7, 8]}))
    with pytest.raises(PredicateError, match="no result for 1 row"):
        table.scan("coalesce(CAST(x AS BIGINT), n) = 7").to_arrow()
    # FALSE from a part that does not raise wins, a constant too
    for decided in ("n = 8 AND CAST(x AS BIGINT) = 1", "x < 5 AND CAST(x AS BIGINT) = 1"):
        assert table.scan(decided).to_arrow().num_rows == 1
    assert (
        table.scan("CAST(x AS BIGINT) = 1 AND coalesce(nullif(1, 1), 0) = 1").to_arrow().num_rows == 0
    )
