"""DuckDB's conditions mean here what they mean to DuckDB, or they are Opaque."""

import random

import duckdb
import pyarrow as pa
import pytest
from support.conformance import NEW, conditions, random_rows, to_sql

from indextables.parquet.read.row_filter import evaluable_part, is_evaluable, to_row_mask
from indextables.core.predicate.nodes import Constant, Opaque
from indextables.core.predicate.tree import fold
from indextables.core.types import schema_from_arrow
from indextables.engines.exchange import from_duckdb
from indextables.errors import PredicateError

SCHEMA = schema_from_arrow(NEW)


@pytest.fixture(scope="module")
def rows():
    rng = random.Random(3)
    found = [row for number in (0, 5, 11) for row in random_rows(rng, number, NEW.names)]
    return pa.Table.from_pylist(found, NEW)


@pytest.fixture(scope="module")
def connection(rows):
    made = duckdb.connect()
    made.execute("SET TimeZone = 'America/Lima'; SET threads = 1")
    made.register("source", rows)
    made.execute("CREATE TABLE rows AS SELECT * FROM source")
    return made


def kept_by_duckdb(connection, text):
    return {i for (i,) in connection.execute(f"SELECT id FROM rows WHERE {text}").fetchall()}


def kept_by_us(condition, rows):
    return set(rows.filter(to_row_mask(evaluable_part(condition), rows))["id"].to_pylist())


# What DuckDB reads otherwise than Spark does, or only DuckDB reads; True: nothing of it is Opaque.
TEXTS = {
    "n == 5": True,
    "n != 5": True,
    "5 < n": True,
    "n / 2 = 2.5": False,
    "n // 2 = 2": False,
    "n % 2 = 0": False,
    "n::VARCHAR = '5'": False,
    "n::BIGINT > 25": True,
    "n + 1 > 27": True,
    "n = 5.0": False,
    "n = 5.5": False,
    "n = '5'": True,
    "n BETWEEN 9 AND 1": True,
    "n IN (1, 2, NULL)": False,
    "n NOT IN (1, 2)": True,
    "n NOT IN (1, NULL)": False,
    "n IS DISTINCT FROM 5": False,
    "n = NULL": True,
    "n = 1 AND n = 2": True,
    "id = 3 OR random() < 0": False,
    "id > 20 AND random() >= 0": False,
    "name LIKE 'ada%'": False,
    "name LIKE 'ad\\_%'": False,
    "name ILIKE 'GRACE'": False,
    "name = 'o''hara'": True,
    "name > E'a\\n'": False,
    "name = 'GRACE' COLLATE NOCASE": False,
    "name ^@ 'ad'": False,
    "flag": False,
    "d > 50": True,
    "NOT (d > 50)": True,
    "d = 'NaN'": False,
    "isnan(d)": False,
    "f = 0.1": False,
    "amount > 1.005": True,
    "amount = 1": True,
    "\"at\" > '2024-01-06'": True,
    "\"at\" > TIMESTAMP '2024-01-06'": False,
    "\"on\" = '2024-01-06'": True,
    "local < '2024-01-06 12:00'": True,
    "day IS NULL": True,
    "place.code = 5": True,
    "place['code'] = 5": False,
    "list_contains(tags, 5)": False,
    "raw >= '\\x05'::BLOB": True,
    "coalesce(n, 1) = 1": False,
    "N = 5": True,
    "n > (SELECT 25)": False,
    "id IN (SELECT id FROM rows WHERE n > 25)": False,
    "id NOT IN (SELECT 1 WHERE false)": False,
    "true": True,
    "false": True,
    "CASE WHEN n > 5 THEN flag END": False,
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_keeps_the_rows_duckdb_keeps(text, connection, rows):
    """Exactly those if all of it was read, and never fewer."""
    found = from_duckdb(text, SCHEMA, connection=connection)
    wanted = kept_by_duckdb(connection, text)
    assert kept_by_us(found, rows) >= wanted
    if TEXTS[text]:
        assert is_evaluable(found)
    if is_evaluable(found):
        assert kept_by_us(found, rows) == wanted


def test_generated_conditions_keep_the_rows_duckdb_keeps(connection, rows):
    """A part of the conditions of the conformance suite, in DuckDB's words."""
    whole = 0
    for condition in conditions(200)[::3]:
        text = to_sql(condition, "duckdb")
        found = from_duckdb(text, SCHEMA, connection=connection)
        wanted = kept_by_duckdb(connection, text)
        assert kept_by_us(found, rows) >= wanted, text
        if is_evaluable(found):
            whole += 1
            assert kept_by_us(found, rows) == wanted, text
    assert whole > 25


def test_an_expression_object_is_read_like_its_text(connection):
    """As DuckDB's relational API makes them."""
    expression = duckdb.ColumnExpression("n") > duckdb.ConstantExpression(5)
    assert from_duckdb(expression, SCHEMA) == from_duckdb("n > 5", SCHEMA)


def test_what_can_never_hold_is_a_constant():
    """DuckDB proves it before any file is looked at."""
    assert from_duckdb("n = 1 AND n = 2", SCHEMA) == Constant(False)


@pytest.mark.parametrize("text", ["nope = 1", "n =", "n = 1; DROP TABLE rows", "n = 1) OR (true", ""])
def test_what_is_no_condition_is_an_error_of_ours(text):
    """An unknown column, no SQL, more than one expression."""
    with pytest.raises(PredicateError, match="DuckDB cannot read"):
        from_duckdb(text, SCHEMA)


def test_what_duckdb_cannot_serialise_is_opaque(connection):
    """A subquery over an object of Python's: nothing is skipped, nothing is guessed."""
    connection.register("listed", pa.table({"n": [5, 25]}))
    found = from_duckdb("n > 5 AND n IN (SELECT n FROM listed)", SCHEMA, connection=connection)
    connection.unregister("listed")
    assert fold(found, lambda node, inner: isinstance(node, Opaque) or any(inner))


def test_the_connection_is_left_as_it_was(connection):
    """No table of ours stays behind, also after an error."""
    before = connection.execute("SELECT count(*) FROM duckdb_views()").fetchall()
    from_duckdb("n > 5", SCHEMA, connection=connection)
    with pytest.raises(PredicateError):
        from_duckdb("nope > 5", SCHEMA, connection=connection)
    assert connection.execute("SELECT count(*) FROM duckdb_views()").fetchall() == before
