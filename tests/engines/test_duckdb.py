"""Tables in DuckDB: registered, and queried on the fast road."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import duckdb
import pyarrow as pa
import pytest

import indextables as it


def make(path, ids):
    made = it.Table.create(
        path, pa.schema([("id", pa.int64()), ("g", pa.string()), ("d", pa.float64())])
    )
    for i in ids:
        rows = range(i * 10, i * 10 + 10)
        made.append(
            pa.table({"id": rows, "g": [f"g{r % 3}" for r in rows], "d": [float(r) for r in rows]})
        )
    return made


@pytest.fixture
def con(tmp_path):
    make(tmp_path / "a", range(5))
    make(tmp_path / "b", range(3, 6))
    connection = duckdb.connect()
    it.duckdb.register(connection, "a", tmp_path / "a")
    it.duckdb.register(connection, "b", str(tmp_path / "b"))
    return connection


QUERIES = [
    "SELECT count(*), sum(d) FROM a WHERE id BETWEEN 12 AND 17",
    "SELECT * FROM a WHERE g = 'g1' AND id < 20 ORDER BY id",
    "SELECT x.id, y.d FROM a x JOIN a y ON x.id = y.id + 10 WHERE x.id > 30 ORDER BY 1",
    "SELECT a.id FROM a LEFT JOIN b ON a.id = b.id WHERE b.id IS NULL ORDER BY 1",
    "SELECT id FROM a WHERE id IN (SELECT id FROM b WHERE d < 45) ORDER BY 1",
    "SELECT g, max(id) FROM a GROUP BY g HAVING max(id) > 5 ORDER BY 1",
    "SELECT DISTINCT ON (g) g, id FROM a WHERE id > 3 ORDER BY g, id",
    "SELECT id, lag(id) OVER (ORDER BY id) FROM a WHERE id < 4 ORDER BY 1",
    "SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id) n FROM a) WHERE n = 50",
    "WITH w AS (SELECT * FROM a WHERE d > 40) SELECT count(*) FROM w UNION ALL SELECT count(*) FROM b WHERE id = 31",
    "SELECT a.id, b.id FROM a ASOF JOIN b ON a.id >= b.id WHERE a.id > 45 ORDER BY 1",
    "SELECT a.id, b.id FROM a POSITIONAL JOIN b WHERE a.id = 3",
    "SELECT count(*) FROM a WHERE (SELECT max(id) FROM b) > 3",
    "PIVOT a ON g USING sum(id)",
    "SELECT id FROM a WHERE id > 100",
    "SELECT count(*) FROM (SELECT * FROM a USING SAMPLE 50 ROWS) WHERE id < 10",
    "SELECT count(*) FROM (SELECT * FROM a ORDER BY id LIMIT 5) WHERE id > 2",
]


@pytest.mark.parametrize("query", QUERIES)
def test_both_roads_give_what_plain_tables_give(con, tmp_path, query):
    """Whatever the query does, files left out change nothing."""
    plain = duckdb.connect()
    for name in ("a", "b"):
        rows = it.Table(tmp_path / name).scan().to_arrow()
        plain.register("rows", rows)
        plain.execute(f"CREATE TABLE {name} AS SELECT * FROM rows ORDER BY id")
    expected = sorted(plain.sql(query).fetchall(), key=repr)
    assert sorted(it.duckdb.sql(con, query).fetchall(), key=repr) == expected
    assert sorted(con.sql(query).fetchall(), key=repr) == expected


def test_the_fast_road_opens_only_files_the_query_needs(con, tmp_path):
    """With the other files gone, DuckDB's own reader still answers."""
    table = it.Table(tmp_path / "a")
    kept = {split.path for split in table.plan("id >= 30 AND id < 35").files}
    for split in table.plan().files:
        if split.path not in kept:
            (tmp_path / "a" / split.path).unlink()
    query = "SELECT count(*) FROM a x JOIN a y USING (id) WHERE x.id >= 30 AND x.id < 35"
    assert it.duckdb.sql(con, query).fetchall() == [(5,)]
    assert con.sql(query).fetchall() == [(5,)]


def test_parameters_and_the_open_transaction_are_the_users(con):
    """The query runs on the connection itself, so it sees what is not committed yet."""
    con.execute("BEGIN; CREATE TEMP TABLE mine AS SELECT 12 AS id")
    found = it.duckdb.sql(con, "SELECT a.id FROM a JOIN mine USING (id) WHERE a.id > ?", [5])
    assert found.fetchall() == [(12,)]
    con.execute("ROLLBACK")


def test_a_result_keeps_its_rows_while_other_queries_run(con):
    """A relation made earlier must not be read through the files of a later query."""
    first = it.duckdb.sql(con, "SELECT id FROM a WHERE id < 2 ORDER BY 1")
    it.duckdb.sql(con, "SELECT id FROM a WHERE id > 48")
    assert first.fetchall() == [(0,), (1,)]
    assert con.sql("SELECT count(*) FROM a").fetchall() == [(50,)]


def test_after_an_error_the_tables_are_whole_again(con):
    """A query that fails on the way leaves no pruned view behind."""
    with pytest.raises(duckdb.Error):
        it.duckdb.sql(con, "SELECT error('stop') FROM a WHERE id = 3")
    assert con.sql("SELECT count(*) FROM a").fetchall() == [(50,)]


def test_a_table_is_the_version_it_was_registered_at(con, tmp_path):
    """Registered again, it is the newest; or the one asked for."""
    it.Table(tmp_path / "a").append(pa.table({"id": [99], "g": ["x"], "d": [0.0]}))
    assert con.sql("SELECT count(*) FROM a").fetchall() == [(50,)]
    it.duckdb.register(con, "a", tmp_path / "a")
    assert con.sql("SELECT count(*) FROM a").fetchall() == [(51,)]
    it.duckdb.register(con, "a", tmp_path / "a", version=1)
    assert it.duckdb.sql(con, "SELECT count(*) FROM a").fetchall() == [(10,)]


def test_an_unregistered_table_is_gone(con):
    """And forgetting it twice is fine."""
    it.duckdb.unregister(con, "a")
    it.duckdb.unregister(con, "a")
    with pytest.raises(duckdb.CatalogException):
        con.sql("SELECT * FROM a")


def test_without_the_private_hook_tables_are_datasets(tmp_path, monkeypatch):
    """A DuckDB without it still prunes, by the filters it hands to datasets."""
    from indextables.engines.duckdb import tables

    monkeypatch.setattr(tables, "_source", lambda *_: None)
    table = make(tmp_path / "t", range(3))
    connection = duckdb.connect()
    it.duckdb.register(connection, "t", table.uri)
    for split in table.plan("id >= 10").files:
        (tmp_path / "t" / split.path).unlink()
    assert it.duckdb.sql(connection, "SELECT count(*) FROM t WHERE id < 10").fetchall() == [(10,)]
    it.duckdb.unregister(connection, "t")


def test_files_duckdb_reads_itself_are_counted_as_handed_over(con):
    """On the fast road DuckDB opens the kept files; registered tables are read by our reader."""
    query = "SELECT count(*) FROM a WHERE id BETWEEN 12 AND 25"
    with it.query_stats() as stats:
        assert it.duckdb.sql(con, query).fetchall() == [(14,)]
    assert (stats.files_handed_over, stats.files_pruned) == (2, 3)
    with it.query_stats() as stats:
        assert con.sql(query).fetchall() == [(14,)]
    assert (stats.files_handed_over, stats.data_files_opened, stats.files_pruned) == (0, 2, 3)


def test_a_query_changes_no_view_that_others_see_meanwhile(con):
    """Whoever looks while it runs finds the table as it was registered, not the files of this query."""
    looks = "SELECT sql FROM duckdb_views() WHERE view_name = 'a'"
    whole = con.sql(looks).fetchall()
    assert it.duckdb.sql(con, f"{looks} UNION ALL SELECT g FROM a WHERE id = 3").fetchall() == [
        *whole,
        ("g0",),
    ]


def test_threads_on_one_connection_get_their_own_rows_or_an_error(con):
    """No thread reads the files of another one's query, and the table is whole afterwards."""
    wrong, done = [], []

    def ask(first):
        for i in (*range(first, 40, 4),) * 5:
            with suppress(duckdb.Error):  # newer versions refuse a second call
                rows = it.duckdb.sql(
                    con, f"SELECT id FROM a WHERE id >= {i} AND id < {i + 5}"
                ).fetchall()
                wrong.extend([rows] if sorted(rows) != [(n,) for n in range(i, i + 5)] else [])
                done.append(i)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))
    assert done
    assert not wrong
    assert con.sql("SELECT count(*) FROM a").fetchall() == [(50,)]


@pytest.mark.parametrize(
    "query",
    [
        "/* é */ WITH w AS (SELECT * FROM a WHERE id < 9) SELECT count(*) FROM w",
        "-- a comment\nwith recursive w AS (SELECT 1 AS id UNION ALL SELECT w.id + 1 FROM w JOIN a USING (id)"
        " WHERE id < 9) SELECT count(*) FROM w",
        "WITH a AS (SELECT * FROM a WHERE id < 9) SELECT count(*) FROM a",
        "FROM a SELECT count(*) WHERE id < 9",
        "(SELECT count(*) FROM A WHERE id < 9)",
        "SELECT count(*) FROM temp.a WHERE id < 9",
        "SELECT count(*) FROM over_a",
        "SELECT count(*) FROM over_a JOIN a USING (id)",
        "SELECT count(*) FROM (WITH a AS (SELECT * FROM a WHERE id < 9) SELECT * FROM a)",
    ],
)
def test_however_a_query_names_a_table_it_finds_its_rows(con, query):
    """A WITH before, after, inside or of the same name, views of the user's own, qualified names."""
    con.execute("CREATE TEMP VIEW over_a AS SELECT * FROM (SELECT * FROM a) WHERE id < 9")
    assert it.duckdb.sql(con, query).fetchall() == con.sql(query).fetchall() == [(9,)]


@pytest.mark.parametrize("query", ["DESCRIBE a", "SHOW TABLES", "TABLE a", "VALUES (1)"])
def test_statements_that_only_look_like_selects_run(con, query):
    """They take no WITH, or need none."""
    assert it.duckdb.sql(con, query).fetchall() == con.sql(query).fetchall()


def test_summarize_runs(con):
    """The last digit of its deviations depends on which thread is first, so they are not compared."""

    def summary():
        return it.duckdb.sql(con, "SUMMARIZE a").project("* EXCLUDE (std)").fetchall()

    assert summary() == con.sql("SUMMARIZE a").project("* EXCLUDE (std)").fetchall()
    assert len(summary()) > 1
