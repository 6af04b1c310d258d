"""Random conditions in DuckDB's dialect: its rows through a table of ours are its rows of a table of its own.

FUZZ_EXAMPLES draws more, FUZZ_SECONDS draws until then, INDEXTABLES_SEED draws others.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter

import duckdb
import pytest

import indextables as it
from indextables.engines.exchange import from_duckdb
from indextables.errors import PredicateError
from indextables.parquet.read.row_filter import is_evaluable, to_row_mask
from indextables.plan.planner import Planner
from support.duckdb_conditions import Draw
from support.edge_rows import FILES, ROWS, SCHEMA, edge_rows

COUNT = int(os.environ.get("FUZZ_EXAMPLES", "400"))
SECONDS = float(os.environ.get("FUZZ_SECONDS", "inf"))
SEED = os.environ.get("INDEXTABLES_SEED", "1")
ZONES = ("UTC", "UTC", "America/New_York", "America/Havana", "Asia/Kathmandu", "Europe/Amsterdam")


@pytest.fixture(scope="module")
def rows():
    return edge_rows()


@pytest.fixture(scope="module")
def table(tmp_path_factory, rows):
    made = it.Table.create(tmp_path_factory.mktemp("duckdb") / "t", SCHEMA)
    for start in range(0, FILES * ROWS, ROWS):
        made.append(rows.slice(start, ROWS))
    return made


@pytest.fixture(scope="module")
def connection(table, rows):
    made = duckdb.connect()
    made.execute("SET threads = 1")
    it.duckdb.register(made, "t", table.uri)
    made.register("source", rows)
    made.execute("CREATE TABLE plain AS SELECT * FROM source")
    return made


def _ids(found):
    return {number for (number,) in found.fetchall()}


def test_random_conditions_find_the_rows_that_duckdb_finds_in_a_table_of_its_own(
    connection, table, rows
):
    """No file with such a row is skipped, a query over the rest gives these rows, and so do our own functions."""
    rng, seen, until = random.Random(SEED), Counter(), time.monotonic() + SECONDS
    draw, planner = Draw(rng), Planner.open(table.uri)
    for number in range(COUNT):
        if time.monotonic() > until:
            break
        if number % 50 == 0:
            zone = rng.choice(ZONES)
            connection.execute(f"SET TimeZone = '{zone}'")
        text = draw.condition()
        case = (SEED, zone, text)
        try:
            expected = _ids(connection.sql(f"SELECT id FROM plain WHERE {text}"))
        except duckdb.Error:
            seen["raised"] += 1
            continue
        try:
            condition = from_duckdb(text, planner.schema, connection=connection)
        except PredicateError:
            # folding a constant raises where the query would not look at it
            seen["refused"] += 1
            continue
        plan = planner.plan_bound(condition)
        files = {number // ROWS for number in expected}
        kept = set(plan.rows.nonzero()[0].tolist())
        assert files <= kept, (case, sorted(files - kept))
        if is_evaluable(condition):
            _same_rows(condition, rows, expected, case, seen)
        if number % 8 == 0:
            found = it.duckdb.sql(connection, f"SELECT id FROM t WHERE {text}")
            assert _ids(found) == expected, case
        seen.update({"compared": 1, "with rows": bool(expected), "needed": len(files)})
        seen.update({"kept": len(kept), "all": FILES})
    print(dict(seen))
    assert seen["compared"] > 0.6 * (seen["compared"] + seen["raised"] + seen["refused"])
    assert seen["computed"] > 0.2 * seen["compared"]
    assert seen["kept"] < 0.8 * seen["all"]


def _same_rows(condition, rows, expected, case, seen):
    try:
        mask = to_row_mask(condition, rows)
    except PredicateError:  # beyond what we know of the calendar, or an error DuckDB did not look at
        seen["not computed"] += 1
        return
    assert set(rows.filter(mask)["id"].to_pylist()) == expected, case
    seen["computed"] += 1
