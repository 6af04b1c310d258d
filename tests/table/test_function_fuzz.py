"""Random conditions over functions: Table.scan gives DuckDB's rows, and Table.plan leaves out no file with one.

Where both mean the same, which is how `support.function_conditions` spells them. FUZZ_EXAMPLES draws more,
INDEXTABLES_SEED others.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import duckdb
import pytest

import indextables as it
from indextables.errors import PredicateError
from support.function_conditions import FILES, ROWS, SCHEMA, Draw, Pair, world

SCANS = int(os.environ.get("FUZZ_EXAMPLES", "100"))
PLANS = int(os.environ.get("FUZZ_EXAMPLES", "200"))
SEED = os.environ.get("INDEXTABLES_SEED", "1")
ZONES = ("UTC", "UTC", "UTC", "America/New_York", "Asia/Kathmandu")
AT_ONCE = 50


@pytest.fixture(scope="module")
def data():
    return world()


@pytest.fixture(scope="module")
def connection(data):
    made = duckdb.connect()
    made.execute("SET threads = 1")
    made.register("source", data)
    made.execute("CREATE TABLE world AS SELECT * FROM source")
    return made


def table_of(data, name, files):
    """Returns a table in which these many files hold the rows, in order."""
    table = it.Table.create(f"memory://{name}", SCHEMA)
    size = FILES * ROWS // files
    for start in range(0, FILES * ROWS, size):
        table.append(data.slice(start, size))
    return table


def _batches(count):
    """Yields conditions, and the time zone they are for."""
    rng = random.Random(SEED)
    for start in range(0, count, AT_ONCE):
        zone = rng.choice(ZONES)
        draw = Draw(rng, zoned=zone != "UTC")
        yield zone, [draw.condition() for _ in range(min(AT_ONCE, count - start))]


def _apart(ask, conditions: list[Pair]):
    """Returns what DuckDB answers for each condition, many at once; None for one that raises."""
    try:
        return ask(conditions)
    except duckdb.Error:
        if len(conditions) == 1:
            return [None]
        half = len(conditions) // 2
        return _apart(ask, conditions[:half]) + _apart(ask, conditions[half:])


def _zipped(ask, connection, conditions):
    found = _apart(lambda some: ask(connection, some), conditions)
    return zip(conditions, found, strict=True)


def _rows(connection, conditions: list[Pair]):
    columns = ", ".join(f"coalesce({pair.duckdb}, FALSE) AS c{i}" for i, pair in enumerate(conditions))
    found = connection.sql(f"SELECT file, row, {columns} FROM world").fetchnumpy()
    keys = found["file"] * ROWS + found["row"]
    return [set(keys[found[f"c{i}"]].tolist()) for i in range(len(conditions))]


def _files(connection, conditions: list[Pair]):
    # what raises for a row is no row
    columns = ", ".join(f"count_if(TRY({pair.duckdb}))" for pair in conditions)
    counts = connection.sql(f"SELECT {columns} FROM world GROUP BY file ORDER BY file").fetchall()
    return [
        {number for number, count in enumerate(per_file) if count}
        for per_file in zip(*counts, strict=True)
    ]


def test_random_conditions_give_the_rows_of_duckdb(data, connection):
    """Where one of the two raises, the other may answer: which part of a condition is looked at first is its own affair."""
    table, seen = table_of(data, "function-scans", 2), Counter()
    for zone, conditions in _batches(SCANS):
        connection.execute(f"SET TimeZone = '{zone}'")
        for pair, expected in _zipped(_rows, connection, conditions):
            try:
                found = table.scan(pair.spark, columns=["file", "row"], timezone=zone).to_arrow()
            except PredicateError as error:
                seen["refused" if "cannot be filtered" in str(error) else "raised"] += 1
                continue
            if expected is None:
                seen["raised by DuckDB"] += 1
                continue
            rows = zip(found["file"].to_pylist(), found["row"].to_pylist(), strict=True)
            assert {file * ROWS + row for file, row in rows} == expected, (SEED, zone, pair)
            seen["equal"] += 1
            seen["with rows"] += bool(expected)
    print(dict(seen))
    assert seen["equal"] > 0.8 * SCANS
    assert seen["with rows"] > 0.4 * SCANS
    assert seen["refused"] <= 0.04 * SCANS + 2


def test_random_conditions_are_planned_with_every_file_that_holds_a_row(data, connection):
    """DuckDB counts the rows of many conditions file by file in one query; what raises there is no row."""
    table, seen = table_of(data, "function-plans", FILES), Counter()
    numbers = {split.path: number for number, split in enumerate(table.plan().files)}
    for zone, conditions in _batches(PLANS):
        connection.execute(f"SET TimeZone = '{zone}'")
        for pair, needed in _zipped(_files, connection, conditions):
            if needed is None:
                seen["raised by DuckDB"] += 1
                continue
            kept = {numbers[split.path] for split in table.plan(pair.spark, timezone=zone).files}
            assert needed <= kept, (SEED, zone, pair, sorted(needed - kept))
            seen["needed"] += len(needed)
            seen["kept"] += len(kept)
            seen["all"] += FILES
    print(dict(seen))
    assert seen["kept"] < 0.9 * seen["all"]
