"""Conditions that engines evaluate above a table skip the files that `Table.plan` skips for the same condition."""

import datetime as dt

import datafusion
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import indextables as it
from indextables.engines.datafusion.tables import needed_by
from indextables.plan.planner import Planner

FILES = 10
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("s", pa.string()),
        ("s2", pa.string()),
        ("b", pa.bool_()),
        ("d", pa.float64()),
        ("ts", pa.timestamp("us", "UTC")),
        ("st", pa.struct([("s", pa.string())])),
    ]
)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    made = it.Table.create(
        tmp_path_factory.mktemp("functions") / "t",
        SCHEMA,
    )
    for file in range(FILES):
        ids = range(file * 10, file * 10 + 10)
        words = [chr(97 + file) + f"{i:02}" for i in ids]
        rows = {
            "id": ids,
            "s": words,
            "s2": [chr(97 + FILES - file) + word for word in words],
            "b": [file == 3] * 10,
            "d": [float("nan") if file == 5 else i / 2 for i in ids],
            "ts": [dt.datetime(2015 + file, 3, 1, i % 10, tzinfo=dt.UTC) for i in ids],
            "st": [{"s": word} for word in words],
        }
        made.append(pa.table(rows, SCHEMA))
    return made


SQL = {
    "s LIKE 'ca%'": 0,
    "s LIKE 'c%'": 1,
    "starts_with(s, 'c')": 1,
    "s NOT LIKE 'c%'": FILES - 1,
    "b": 1,
    "isnan(d)": 1,
    "st['s'] LIKE 'c%'": 1,
    "id = 34.0": 1,
    "id = 34.5": 0,
    "id + 1 > 95": 1,
    "date_part('year', ts) = 2018": 1,
    "CAST(ts AS DATE) = DATE '2018-03-01'": 1,
    "upper(s) LIKE 'C%'": 1,
    "coalesce(id, 0) > 95": 1,
    "d * 2.0 < 5.0": 1,
    "id > 95 OR s LIKE 'a%'": 2,
}


@pytest.mark.parametrize("text", SQL)
def test_duckdb_and_datafusion_skip_for_what_stands_above_the_scan(table, text):
    """LIKE, a bare boolean, isnan, fields of structs, wider constants and functions; files our reader opens or DuckDB's."""
    connection, context = duckdb.connect(), datafusion.SessionContext()
    connection.execute("SET TimeZone = 'UTC'")
    it.duckdb.register(connection, "t", table.uri)
    it.datafusion.register(context, "t", table.uri)
    query = f"SELECT id FROM t WHERE {text}"
    rows = {tuple(row.values()) for row in context.sql(query).to_pylist()}
    for ask in (
        lambda: set(it.duckdb.sql(connection, query).fetchall()),
        lambda: {tuple(row.values()) for row in it.datafusion.sql(context, query).to_pylist()},
    ):
        with it.query_stats() as stats:
            assert ask() == rows
        assert stats.data_files_opened + stats.files_handed_over == SQL[text]


C = pl.col
EXPRESSIONS = {
    "starts": (C("s").str.starts_with("c"), 1),
    "ends": (C("s").str.ends_with("34"), FILES),
    "wider": (C("id") == 34.5, 0),
    "sum": (C("id") + 1 > 95, 1),
    "year": (C("ts").dt.year() == 2018, 1),
    "upper": (C("s").str.to_uppercase() == "C25", 1),
    "choice": (pl.when(C("id") > 95).then(1).otherwise(0) == 1, 1),
    "nested": (C("st").struct.field("s").str.starts_with("c"), 1),
    "whole quotient": (C("id") // 10 == 3, 1),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_polars_skips_for_functions(table, name):
    """Polars hands them over with the types it computes them in."""
    expression, files = EXPRESSIONS[name]
    rows = pl.from_arrow(table.scan().to_arrow()).filter(expression)["id"].sort().to_list()
    with it.query_stats() as stats:
        found = it.scan_polars(table.uri).filter(expression).select("id").collect()["id"]
    assert found.sort().to_list() == rows
    assert stats.data_files_opened + stats.files_handed_over == files


@pytest.mark.parametrize(
    ("expression", "files"),
    [
        (pc.year(pc.field("ts")) == 2018, 1),
        (pc.utf8_upper(pc.field("s")) == "C25", 1),
        (pc.match_like(pc.field("s"), "c%5"), 1),
        (pc.ends_with(pc.field("s"), "34"), FILES),
        (pc.hour(pc.field("ts")) == 3, FILES),
    ],
)
def test_arrow_datasets_skip_for_functions(table, expression, files):
    """Functions of a column, compared with a constant."""
    dataset = table.to_dataset()
    rows = table.scan().to_arrow().filter(expression)["id"].to_pylist()
    assert dataset.to_table(columns=["id"], filter=expression)["id"].to_pylist() == rows
    assert len(dataset.plan(expression).files) == files


def test_a_column_that_a_query_renames_is_not_taken_for_another(table):
    """EXPLAIN would print the filter of `s2` as one of `s`, for a cast most of all."""
    connection = duckdb.connect()
    it.duckdb.register(connection, "t", table.uri)
    swapped = "SELECT s2 AS s, s AS s2, id FROM t"
    for test in ("s LIKE 'j%'", "CAST(s[2:2] = 'b' AS INT) = 1", "upper(s) LIKE 'J%' AND s2 LIKE 'b%'"):
        query = f"SELECT id FROM ({swapped}) WHERE {test} ORDER BY id"
        assert it.duckdb.sql(connection, query).fetchall() == connection.sql(query).fetchall() != []


def test_a_use_of_the_table_without_a_condition_keeps_all_its_files(table):
    """A second use in a subquery or a join wants rows that the first one does not."""
    connection, context = duckdb.connect(), datafusion.SessionContext()
    it.duckdb.register(connection, "t", table.uri)
    it.datafusion.register(context, "t", table.uri)
    used_twice = (
        "SELECT count(*) AS n FROM t WHERE s LIKE 'c%' AND (SELECT count(*) FROM t) = 100",
        "SELECT count(*) AS n FROM t x JOIN t y ON x.id = y.id - 50 WHERE x.s LIKE 'c%'",
        "SELECT count(*) AS n FROM t x WHERE s LIKE 'c%' AND EXISTS (SELECT 1 FROM t y WHERE y.id = x.id + 70)",
    )
    for query in used_twice:
        assert it.duckdb.sql(connection, query).fetchall() == [(10,)]
        assert not needed_by(context, query)
    union = (
        "SELECT * FROM t WHERE s LIKE 'c%' UNION ALL SELECT * FROM t WHERE id < 0 OR upper(s) = 'J90'"
    )
    assert it.duckdb.sql(connection, f"SELECT count(*) FROM ({union})").fetchall() == [(11,)]
    assert len(Planner.open(table.uri).plan(needed_by(context, union)["t"]).files) == 2


def test_parameters_of_a_query_skip_files_too(table):
    """They are written into the plan as constants of the type that DuckDB gives them."""
    connection = duckdb.connect()
    it.duckdb.register(connection, "t", table.uri)
    for query, params in (
        ("SELECT count(*) FROM t WHERE s LIKE ? AND id >= ?", ["c%", 20]),
        ("SELECT count(*) FROM t WHERE s LIKE $word -- ?\n AND '?' <> ''", {"word": "c%"}),
        ("SELECT count(*) FROM t WHERE ts = ?", [dt.datetime(2018, 3, 1, 3, tzinfo=dt.UTC)]),
    ):
        with it.query_stats() as stats:
            found = it.duckdb.sql(connection, query, params).fetchall()
        assert found == connection.sql(query, params=params).fetchall() != [(0,)]
        assert stats.files_handed_over == 1


def test_a_query_with_a_with_of_its_own_keeps_it_in_datafusion(table):
    """The datasets of the needed files come before the query's own names."""
    context = datafusion.SessionContext()
    it.datafusion.register(context, "t", table.uri)
    for query in (
        "WITH w AS (SELECT * FROM t WHERE s LIKE 'c%') SELECT count(*) AS n FROM w",
        "WITH t AS (SELECT * FROM t WHERE s LIKE 'c%') SELECT count(*) AS n FROM t",
    ):
        assert (
            it.datafusion.sql(context, query).to_pydict()
            == context.sql(query).to_pydict()
            == {"n": [10]}
        )
    assert context.sql("SELECT count(*) AS n FROM t").to_pydict() == {"n": [100]}


def test_isnan_of_null_is_null_to_datafusion(tmp_path):
    """`NULL IS NOT FALSE` holds, and a file of nothing but NULL is read for it; found by the fuzzer."""
    made = it.Table.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("d", pa.float64())]))
    for number, value in enumerate((None, 1.0, float("nan"))):
        made.append(pa.table({"id": [number], "d": pa.array([value], pa.float64())}))
    context = datafusion.SessionContext()
    it.datafusion.register(context, "t", made.uri)
    query = "SELECT id FROM t WHERE (isnan(d) IS NOT FALSE) IS TRUE ORDER BY id"
    assert it.datafusion.sql(context, query).to_pydict() == {"id": [0, 2]}


def test_the_two_zeros_of_datafusion_are_both_looked_for(tmp_path):
    """It finds -0.0 NOT IN (0.0, …), and below zero; found by the fuzzer."""
    made = it.Table.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("d", pa.float64())]))
    for number, value in enumerate((-0.0, 0.0, 5.0)):
        made.append(pa.table({"id": [number], "d": [value]}))
    context = datafusion.SessionContext()
    it.datafusion.register(context, "t", made.uri)
    for test in ("d NOT IN (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)", "d * 1.0 < 0.0", "nullif(d, 1.0) <> 0.0"):
        query = f"SELECT id FROM t WHERE {test} ORDER BY id"
        assert it.datafusion.sql(context, query).to_pydict() == context.sql(query).to_pydict()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM (SELECT id, s, row_number() OVER (ORDER BY id) AS n FROM t) WHERE n > 25 AND s LIKE 'c%'",
        "SELECT id FROM (SELECT id, s, lag(id) OVER (ORDER BY id) AS n FROM t) WHERE n > 19 AND s LIKE 'c%'",
        "SELECT id FROM (SELECT id, s, 1 + count(*) OVER () AS n FROM t) WHERE n > 100 AND s LIKE 'c%'",
    ],
)
def test_a_window_counts_the_rows_that_a_condition_above_it_does_not_keep(table, query):
    """Substrait has a window as a column of a projection, and conditions above that are none of the table's."""
    connection, context = duckdb.connect(), datafusion.SessionContext()
    it.duckdb.register(connection, "t", table.uri)
    it.datafusion.register(context, "t", table.uri)
    expected = context.sql(f"{query} ORDER BY id").to_pydict()["id"]
    assert it.datafusion.sql(context, f"{query} ORDER BY id").to_pydict()["id"] == expected != []
    assert [row[0] for row in it.duckdb.sql(connection, f"{query} ORDER BY id").fetchall()] == expected


def test_letters_that_are_others_in_another_case_are_found_by_ilike(tmp_path):
    """DataFusion takes the long s for an s, and the kelvin sign for a k; lower() does not."""
    made = it.Table.create(tmp_path / "t", pa.schema([("s", pa.string())]))
    for word in ("\u017fun", "sun", "\u212aelvin", "kelvin", "moon"):
        made.append(pa.table({"s": [word]}))
    context = datafusion.SessionContext()
    it.datafusion.register(context, "t", made.uri)
    for pattern, found in (("s%", 2), ("S%", 2), ("k%", 2), ("MO%", 1)):
        query = f"SELECT s FROM t WHERE s ILIKE '{pattern}'"
        assert len(it.datafusion.sql(context, query).to_pydict()["s"]) == found


def test_milliseconds_of_duckdb_are_rounded(tmp_path):
    """A microsecond before 1970 is 0 ms to DuckDB, and -1 to Spark."""
    made = it.Table.create(tmp_path / "t", pa.schema([("n", pa.int64()), ("ts", pa.timestamp("us"))]))
    for number in (-1501, -1500, -1, 0, 499, 500, 1500):
        made.append(pa.table({"n": [number], "ts": pa.array([number], pa.timestamp("us"))}))
    connection = duckdb.connect()
    it.duckdb.register(connection, "t", made.uri)
    for number in range(-2, 3):
        query = f"SELECT n FROM t WHERE epoch_ms(ts) = {number} ORDER BY n"
        assert it.duckdb.sql(connection, query).fetchall() == connection.sql(query).fetchall()
