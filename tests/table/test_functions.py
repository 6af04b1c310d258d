"""Conditions over functions: the same rows as DuckDB where both mean the same, and no file too many."""

from __future__ import annotations

import datetime as dt
import os
import random

import duckdb
import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import PredicateError

FILES, ROWS = 30, 12
COUNT = int(os.environ.get("FUZZ_EXAMPLES", "60"))


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
                    "s": rng.choice(["Apple", "apple", "bean", "Bean", "cat"]) + str(file % 7),
                    "b": rng.choice([True, False, None]),
                }
            )
    schema = pa.schema(
        [("file", pa.int32()), ("row", pa.int32()), ("id", pa.int64()), ("n", pa.int32())]
        + [
            ("ts", pa.timestamp("us", "UTC")),
            ("d", pa.date32()),
            ("x", pa.float64()),
            ("s", pa.string()),
            ("b", pa.bool_()),
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


NUMBERS = [
    "id",
    "n",
    "id + {k}",
    "id - {k}",
    "{k} - n",
    "id * 2",
    "-n",
    "abs(n)",
    "id % {p}",
    "coalesce(n, {k})",
    "CASE WHEN n > {k} THEN id ELSE n END",
    "year(ts)",
    "month(d)",
    "day(d)",
    "hour(ts)",
    "minute(ts)",
    "length(s)",
    "greatest(n, id)",
    "least(n, {k})",
    "nullif(n, {k})",
    "id + n",
    "n * n",
    "IF(b, n, id)",
]
TEXTS = ["s", "lower(s)", "upper(s)", "substring(s, 1, 2)", "concat('x', s)", "left(s, 3)"]
DATES = ["d", "CAST(ts AS DATE)", "d + {p}", "d - {p}", "last_day(d)"]


def _draw(rng, depth=0):
    if depth < 3 and rng.random() < 0.45:
        one, two = _draw(rng, depth + 1), _draw(rng, depth + 1)
        return rng.choice([f"({one} AND {two})", f"({one} OR {two})", f"NOT ({one})"])
    op = rng.choice(["=", "<>", "<", "<=", ">", ">="])
    fill = {"k": rng.choice([-3, 0, 7, 50, 1500, 2900]), "p": rng.choice([3, 7, 100])}
    kind = rng.random()
    if kind < 0.6:
        left, right = (rng.choice(NUMBERS).format(**fill) for _ in range(2))
        values = [-20, -1, 0, 1, 5, 12, 30, 100, 1500, 2023, 2900]
        if rng.random() < 0.2:
            return f"{left} {op} {right}"
        if rng.random() < 0.2:
            return f"{left} IN ({', '.join(str(rng.choice(values)) for _ in range(3))})"
        return f"{left} IS NULL" if rng.random() < 0.1 else f"{left} {op} {rng.choice(values)}"
    if kind < 0.8:
        text = rng.choice(["Apple3", "apple", "ap", "xbean", "cat", "BEAN1", "be"])
        left = rng.choice(TEXTS)
        return f"{left} LIKE '{text}%'" if rng.random() < 0.4 else f"{left} {op} '{text}'"
    day = dt.date(2022, 1, 1) + dt.timedelta(days=rng.randrange(1100))
    return f"{rng.choice(DATES).format(**fill)} {op} DATE '{day}'"


def test_random_conditions_give_the_rows_of_duckdb_from_the_files_that_hold_them(world):
    """Where both mean the same; INDEXTABLES_SEED draws others, FUZZ_EXAMPLES more."""
    table, connection = world
    seed = os.environ.get("INDEXTABLES_SEED", "1")
    rng, raised = random.Random(seed), 0
    for number in range(COUNT):
        condition = _draw(rng)
        expected = connection.sql(
            f"SELECT file, row FROM world WHERE {_in_duckdb(condition)} ORDER BY 1, 2"
        ).fetchall()
        try:
            found = _keys(table, condition)
        except PredicateError as error:
            raised += 1
            assert "cannot be filtered" not in str(error), (seed, number, condition, error)
            continue
        assert found == expected, (seed, number, condition)
    assert raised <= COUNT // 10


def _in_duckdb(condition):
    return condition.replace("IF(b, n, id)", "CASE WHEN b THEN n ELSE id END")
