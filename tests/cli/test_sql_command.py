"""`indextables sql`: our own statements and DuckDB's queries, without a JVM."""

import json
import subprocess
import sys

import pyarrow as pa
import pytest

import indextables as it
from indextables.sql.select import find_tables
from support.commands import run, run_json


def sql(text, *words):
    return run_json("sql", text, *words)


def test_every_statement_of_ours_runs(articles):
    """As in Spark, with the same answers."""
    assert len(sql(f"DESCRIBE INDEXTABLES TRANSACTION LOG '{articles}'")) == 11
    assert sql(f"CHECKPOINT INDEXTABLES '{articles}'")[0]["version"] == 4
    assert len(sql(f"DESCRIBE INDEXTABLES TRANSACTION LOG '{articles}' INCLUDE ALL")) > 11
    assert sql(f"ANALYZE INDEXTABLES '{articles}' COMPUTE STATISTICS FOR COLUMNS (id)") == [
        {"table_path": str(articles), "version": 4, "analyzed_splits": 0}
    ]
    done = sql(f"OPTIMIZE INDEXTABLES '{articles}' WHERE day = DATE'2024-01-01' ZORDER BY (id)")
    assert done[0]["removed_splits"] == 2
    assert sql(f"PURGE INDEXTABLES '{articles}' OLDER THAN 7 DAYS DRY RUN") == []
    assert len(sql(f"PURGE INDEXTABLES '{articles}' OLDER THAN 0 HOURS DRY RUN")) == 2
    assert len(sql(f"TRUNCATE INDEXTABLES TIME TRAVEL '{articles}' DRY RUN")) == 6
    assert [row["col_name"] for row in sql(f"DESCRIBE indextables.`{articles}`")][:2] == ["id", "text"]
    assert sql(f"DESCRIBE HISTORY indextables.`{articles}` LIMIT 1")[0]["operation"] == "OPTIMIZE"
    assert sql(f"DESCRIBE DETAIL indextables.`{articles}`")[0]["numFiles"] == 3
    log = articles / "_transaction_log"
    repaired = sql(f"REPAIR INDEXFILES TRANSACTION LOG '{log}' AT LOCATION '{log}_new';")
    assert repaired[0]["status"] == "SUCCESS"


def test_a_repair_that_fails_is_exit_code_1(articles):
    """The row says why; the exit code says it to scripts."""
    (articles / "_transaction_log" / "000000000000000002.json").write_text("garbage\n")
    log = articles / "_transaction_log"
    code, out, _ = run("sql", f"REPAIR INDEXFILES TRANSACTION LOG '{log}' AT LOCATION '{log}_new'")
    assert code == 1
    assert "000000000000000002.json" in out


def test_settings_reach_the_statement(articles):
    """--set is what SET is in a session."""
    setting = "spark.indextables.stats.truncation.strategy=bound"
    done = sql(f"ANALYZE INDEXTABLES '{articles}' COMPUTE STATISTICS", "--set", setting)
    assert done[0]["analyzed_splits"] == 4


def test_a_query_opens_only_the_files_it_needs(articles):
    """DuckDB's SQL over our table, pruned."""
    for path in (f"`{articles}`", f'"{articles}"'):
        assert sql(f"SELECT max(id) AS m, count(*) AS n FROM indextables.{path} WHERE id > 350") == [
            {"m": 399, "n": 49}
        ]
    for split in it.Table(articles).plan("id < 300").files:
        (articles / split.path).unlink()
    query = f"SELECT count(*) AS n FROM indextables.`{articles}` WHERE id > 350"
    assert sql(query) == [{"n": 49}], "the files that are gone were not needed"


def test_a_query_travels_in_time_and_joins(articles):
    """The same table at two versions is two tables."""
    at = it.Table(articles).history()[2].timestamp_ms
    then = it.Table(articles).snapshot(timestamp=at).version
    query = (
        f"SELECT count(*) AS n FROM indextables.`{articles}` VERSION AS OF 1 AS old "
        f"JOIN indextables.`{articles}` AS new USING (id)"
    )
    assert sql(query) == [{"n": 100}]
    import datetime as dt

    text = dt.datetime.fromtimestamp(at / 1000, dt.UTC).isoformat()
    query = f"SELECT count(*) AS n FROM indextables.`{articles}` TIMESTAMP AS OF '{text}'"
    assert sql(query) == [{"n": 100 * then}]


def test_rows_beyond_the_limit_are_counted_not_printed(articles):
    """A table for people is cut; JSON for programs is not, unless asked."""
    query = f"SELECT * EXCLUDE (text) FROM indextables.`{articles}` ORDER BY id"
    _, out, advice = run("sql", query, "--limit", 3)
    assert len(out.splitlines()) == 4
    assert advice == "400 rows, 397 not shown (--limit)\n"
    assert len(sql(query)) == 400
    assert len(sql(query, "--limit", 3)) == 3


def test_values_of_every_kind_are_printed():
    """Dates, decimals, bytes, NaN, nested values: JSON holds something readable for each."""
    query = "SELECT DATE '2024-01-01' d, 1.50::DECIMAL(5,2) n, 'ab'::BLOB b, 'NaN'::DOUBLE f, {'x': [1, NULL]} s"
    assert sql(query) == [
        {"d": "2024-01-01", "n": "1.50", "b": "6162", "f": None, "s": {"x": [1, None]}}
    ]
    assert run("sql", query)[0] == 0


def test_the_statement_can_come_from_stdin(articles):
    """For statements longer than a line."""
    code, out, _ = run(
        "sql", "-", "--format", "json", stdin=f"DESCRIBE HISTORY indextables.`{articles}`"
    )
    assert code == 0
    assert len(json.loads(out)) == 5


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "empty"),
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT * FROM indextables.`/no/such/table`", "there is no table"),
        ("SELECT nope FROM indextables.`TABLE`", "nope"),
        ("SELECT * FROM indextables.`TABLE` VERSION AS OF 99", "99"),
        ("SELECT * FROM indextables.`TABLE` TIMESTAMP AS OF 'soon'", "'soon' is not a date or time"),
        ("INSERT INTO indextables.`TABLE` SELECT 1", "INSERT cannot reach"),
        ("DELETE FROM indextables.`TABLE`", "DELETE cannot reach"),
        ("PURGE INDEXTABLES 'x' OLDER THAN 3 WEEKS", "not how the command is written"),
        ("OPTIMIZE INDEXTABLES 'TABLE' WHERE nope = 1", "no column 'nope'"),
        ("CHECKPOINT INDEXTABLES 's4://x/y'", "no store"),
    ],
)
def test_what_cannot_run_is_one_message_and_exit_code_1(articles, text, what):
    """No traceback, nothing on stdout."""
    code, out, err = run(
        "sql", text.replace("TABLE`", f"{articles}`").replace("'TABLE'", f"'{articles}'")
    )
    assert (code, out) == (1, "")
    assert what in err
    assert err.startswith("error: ")
    assert len(err.splitlines()) <= 2


def test_without_duckdb_our_own_statements_still_run(articles):
    """And a query says what to install."""
    script = (
        "import sys; sys.modules['duckdb'] = None\n"
        "from indextables.cli import main\n"
        "main(sys.argv[1:], prog_name='indextables')"
    )

    def command(text):
        words = [sys.executable, "-c", script, "sql", text]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    assert command(f"CHECKPOINT INDEXTABLES '{articles}'").returncode == 0
    failed = command("SELECT 1")
    assert failed.returncode == 1
    assert "pip install 'indextables[duckdb]'" in failed.stderr
    assert "Traceback" not in failed.stderr


# (text, the text for the engine, tables)
NAMES = [
    ("SELECT 1", "SELECT 1", []),
    ("FROM indextables.`/a b`", "FROM t0", [("/a b", None, None)]),
    ('FROM INDEXTABLES . "x""y"', "FROM t0", [('x"y', None, None)]),
    ("FROM indextables.`a``b` FOR VERSION AS OF 3", "FROM t0", [("a`b", 3, None)]),
    ("indextables.`a` timestamp as of '2024'", "t0", [("a", None, "2024")]),
    ("indextables.`a`, indextables.`b`, indextables.`a`", "t0, t1, t0", [("a",), ("b",)]),
    ("-- indextables.`a`\nSELECT 'indextables.`a`'", None, []),
    ('/* indextables.`a` */ SELECT "indextables.`a`"', None, []),
    ("SELECT myindextables.`a`, x.indextables.`a`", None, []),
    ("SELECT t0.x FROM indextables.`a` t0", "SELECT t0.x FROM t_0 t0", [("a",)]),
]


@pytest.mark.parametrize(("text", "rewritten", "tables"), NAMES)
def test_only_names_of_our_tables_are_replaced(text, rewritten, tables):
    """Texts, quoted names, comments and other schemas are left alone."""
    found = find_tables(text)
    assert found.text == (text if rewritten is None else rewritten)
    given = [(t.path, t.version, t.timestamp) for t in found.tables.values()]
    assert [one[: len(want)] for one, want in zip(given, tables, strict=True)] == tables


def test_an_empty_answer_has_its_columns():
    """Zero rows are no problem."""
    assert run("sql", "SELECT 1 AS a WHERE false")[1].split() == ["a"]
    assert sql("SELECT 1 AS a WHERE false") == []


def test_a_table_of_any_name_can_be_queried(tmp_path):
    """Quotes, spaces, percent signs, Unicode and backticks in the path."""
    for name in ("it's", "a b", "100%", "ünï", "tick`ed", "q'u\"o"):
        schema = pa.schema([("a", pa.int64())])
        it.Table.create(tmp_path / name, schema).append(pa.table({"a": [1, 2]}, schema))
        path = str(tmp_path / name).replace("`", "``")
        assert sql(f"SELECT sum(a) AS s FROM indextables.`{path}` WHERE a > 1") == [{"s": 2}], name
