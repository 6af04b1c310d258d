"""Statistics save I/O, and the proof is the number of data files opened (ArcticDB's plan, test by test)."""

import logging
from dataclasses import replace
from uuid import uuid4

import pyarrow as pa
import pytest

import indextables as it
from support.trap_tables import matching_rows, trap_table
from support.traps import load_traps

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64())])
WITHOUT_B = {"spark.indextables.dataSkippingStatsColumns": "a,c"}


@pytest.fixture
def table():
    """Five splits: a in [0, 9], [10, 19], …; no statistics for b."""
    found = it.Table.create(f"memory://{uuid4()}", SCHEMA, properties=WITHOUT_B)
    for i in range(5):
        a = range(i * 10, i * 10 + 10)
        found.append(pa.table({"a": a, "b": [f"b{n}" for n in a], "c": [n / 2 for n in a]}, SCHEMA))
    return found


# (why, condition, data files opened, rows)
CASES = [
    ("a filter on a column with statistics prunes", "a > 35", 2, 14),
    ("a filter on a column without statistics prunes nothing, and is right", "b = 'b7'", 5, 1),
    ("AND prunes by the leg that has statistics", "a < 10 AND b = 'b7'", 1, 1),
    ("AND, the other way round", "b = 'b7' AND a >= 40", 1, 0),
    ("OR needs both legs", "a < 10 OR a > 44", 2, 15),
    ("OR with a leg that has no statistics prunes nothing", "a < 10 OR b = 'b47'", 5, 11),
    ("all splits pruned: an empty result, nothing opened", "a > 100", 0, 0),
    ("just above the greatest value prunes all", "a > 49", 0, 0),
    ("just below the least value prunes all", "a < 0", 0, 0),
    ("equal to a greatest value keeps that split", "a = 9", 1, 1),
    ("equal to a least value keeps that split", "a = 10", 1, 1),
    ("greater or equal to the greatest keeps the last", "a >= 49", 1, 1),
    ("less or equal to the least keeps the first", "a <= 0", 1, 1),
    ("a value in the gap between splits prunes all", "a > 9 AND a < 10", 0, 0),
    ("two conditions on one column that exclude each other prune all", "a = 3 AND a = 33", 0, 0),
    ("negation of a range", "NOT (a < 40)", 1, 10),
    ("negation of AND", "NOT (a < 40 AND c < 1000)", 1, 10),
    ("negation of OR", "NOT (a < 20 OR a >= 30)", 1, 10),
    ("double negation", "NOT NOT (a = 5)", 1, 1),
    ("negation over a column without statistics keeps all", "NOT (b = 'b7')", 5, 49),
    ("not equal keeps every split that holds another value", "a <> 5", 5, 49),
    ("a float column", "c >= 24.5", 1, 1),
    ("both columns", "a = 5 AND c = 2.5", 1, 1),
    ("both columns that never agree", "a = 5 AND c = 20", 0, 0),
    ("BETWEEN", "a BETWEEN 8 AND 12", 2, 5),
    ("IN looks at each value, not at the range of the list", "a IN (5, 45)", 2, 2),
    ("IN with a NULL", "a IN (5, NULL)", 1, 1),
    ("NOT IN with a NULL is never TRUE", "a NOT IN (5, NULL)", 0, 0),
    ("no split has a NULL", "a IS NULL", 0, 0),
    ("every split has values", "a IS NOT NULL", 5, 50),
    ("a condition that is FALSE", "false", 0, 0),
    ("a condition that is NULL", "a = NULL", 0, 0),
    ("case of names", "A = 5", 1, 1),
]


@pytest.mark.parametrize(("why", "where", "opened", "rows"), CASES, ids=[c[0] for c in CASES])
def test_only_the_files_that_may_match_are_opened(table, why, where, opened, rows):
    """The count of opened files is the least that the statistics allow, and the rows are right."""
    with it.query_stats() as stats:
        found = table.scan(where).to_arrow()
    assert (stats.data_files_opened, found.num_rows) == (opened, rows), why
    assert stats.files_pruned == 5 - opened
    everything = table.scan().to_arrow()
    assert found.num_rows <= everything.num_rows


def test_dynamic_schema_where_the_type_varies_across_splits():
    """int, then long, then double near 2**53: each split is judged by the values it has."""
    table = it.Table.create(f"memory://{uuid4()}", pa.schema([("a", pa.int32()), ("k", pa.int8())]))
    one = pa.array([1], pa.int8())
    table.append(pa.table({"a": pa.array([1, 5], pa.int32()), "k": pa.concat_arrays([one, one])}))
    table.append(pa.table({"a": pa.array([10.5], pa.float64()), "k": one}), merge_schema=True)
    table.append(pa.table({"a": pa.array([2.0**53], pa.float64()), "k": one}))
    for where, opened, rows in (
        ("a < 6", 1, 2),
        ("a = 5", 1, 1),
        ("a = 10.5D", 1, 1),
        ("a between 5.5D and 10D", 0, 0),
        ("a >= 9007199254740992D and a < 9.1e15D", 1, 1),
    ):
        with it.query_stats() as stats:
            assert table.scan(where).to_arrow().num_rows == rows
        assert stats.data_files_opened == opened, where


def test_a_column_that_older_splits_do_not_have():
    """It is NULL there, and that is known: conditions on it open only the newer split."""
    table = it.Table.create(f"memory://{uuid4()}", pa.schema([("a", pa.int64())]))
    table.append(pa.table({"a": [1, 2]}))
    table.append(pa.table({"a": [3, 4], "new": [30, 40]}), merge_schema=True)
    for where, opened, rows in (
        ("new > 5", 1, 2),
        ("new > 50", 0, 0),
        ("new IS NULL", 1, 2),
        ("NOT (new > 35)", 1, 1),
        ("new <> 30 OR a = 1", 2, 2),
        ("new <=> NULL", 1, 2),
    ):
        with it.query_stats() as stats:
            assert table.scan(where).to_arrow().num_rows == rows
        assert stats.data_files_opened == opened, where


def test_the_statistics_columns_changed_over_time():
    """Splits with and without statistics live side by side; only those with them are skipped."""
    table = it.Table.create(f"memory://{uuid4()}", SCHEMA)
    for i, options in enumerate([{}, {"spark.indextables.dataSkippingNumIndexedCols": 0}, {}]):
        table.append(pa.table({"a": [i], "b": ["x"], "c": [0.0]}, SCHEMA), options=options)
    with it.query_stats() as stats:
        assert table.scan("a = 0").to_arrow().num_rows == 1
    assert stats.data_files_opened == 2
    assert table.plan("a = 0").report.missing_stats == {"a": 1}


def test_the_log_says_how_many_segments_were_pruned(table, caplog):
    """For troubleshooting, at debug level."""
    with caplog.at_level(logging.DEBUG, "indextables"):
        table.scan("a > 35 AND b = 'x'").to_arrow()
    assert "Column stats pruned 3 of 5 segments" in caplog.text
    assert "Statistics missing for column 'b', cannot skip file" in caplog.text


def test_statistics_that_were_dropped_prune_nothing_and_lose_nothing(table):
    """The same answer at a higher price."""
    table.drop_statistics(["a"])
    with it.query_stats() as stats:
        assert table.scan("a = 15").to_arrow().num_rows == 1
    assert stats.data_files_opened == 5


@pytest.mark.parametrize("trap", load_traps(), ids=lambda trap: trap.name)
def test_a_trap_opens_exactly_the_files_it_should_and_loses_no_row(trap):
    """Files really opened, through a real table; a condition only an engine can evaluate reads the same files."""
    table = trap_table(trap)
    scan = table.scan(trap.where, timezone=trap.timezone)
    wanted = matching_rows(trap)
    if wanted is None:
        scan = replace(scan, filter_rows=False)
    with it.query_stats() as stats:
        found = scan.to_arrow()
    assert stats.data_files_opened == len(trap.keeps), trap.why
    order = [split.path for split in table.snapshot().splits()]
    assert [order.index(split.path) for split in scan.plan.files] == trap.keeps, trap.why
    if wanted is not None:
        assert [str(row) for row in found.to_pylist()] == wanted, trap.why
