"""Conditions that once lost rows, in each verb that takes one: what goes and what stays is as in plain Parquet."""

from __future__ import annotations

import datetime as dt
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables import errors

EDGE = 2**53
ROWS = [
    # k, l, m, s, d, p
    *((0, 0, 0, "abc", dt.date(2024, 1, 1), "1"), (1, 0, 0, "ABC", dt.date(2024, 1, 1), "1")),
    *((2, EDGE + 1, EDGE, "b", dt.date(1500, 2, 27), "1"), (3, EDGE, EDGE, "B", dt.date(1582, 10, 4), "1")),
    *((4, 20, 21, "abcd", dt.date(1582, 10, 15), "x"), (5, 5, None, None, None, "x")),
    *((6, 20, 20, "ABC", dt.date(1500, 3, 1), "2"), (7, None, 1, "x'y", dt.date(1969, 12, 31), "2")),
]  # fmt: skip
PER_FILE = 2
ANSI = {"spark.sql.ansi.enabled": "true"}
LEGACY = {
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
}
QUOTED = {**ANSI, "spark.sql.ansi.doubleQuotedIdentifiers": "true"}
HALVES = ", ".join(f"{n}.5D" for n in range(12))
FOLDED = "CAST(s AS STRING COLLATE UTF8_LCASE)"
CASES = {
    "a long list of doubles": (f"l NOT IN ({HALVES})", ANSI),
    "two bigints as doubles": ("CAST(l AS DOUBLE) = CAST(m AS DOUBLE)", ANSI),
    "folded text": (f"{FOLDED} IN ('abc', 'b')", ANSI),
    "old dates in a session with another calendar": ("d < DATE'1582-10-10'", LEGACY),
    "a cast of a partition that another part excludes": ("p <> 'x' AND CAST(p AS INT) = 1", ANSI),
    "names in double quotes": ('"l" = 20 AND "s" <> \'abcd\'', QUOTED),
    "a text that is no number, without ANSI": ("CAST(s AS INT) IS NULL AND k + 1 > 2", {"spark.sql.ansi.enabled": "false"}),
    "a function of whole files": ("k div 2 = 1 OR year(d) = 2024", ANSI),
}  # fmt: skip
REFUSED = {
    name for name in CASES if name not in {"old dates in a session with another calendar", "names in double quotes"}
}  # fmt: skip
"""What an overwrite may refuse, instead of doing it right; never the plain ones."""


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A table of four files in three partitions, and plain Parquet of the same rows."""
    folder = tmp_path_factory.mktemp("verbs")
    schema = pa.schema(
        [("k", pa.int64()), ("l", pa.int64()), ("m", pa.int64()), ("s", pa.string())]
        + [("d", pa.date32()), ("p", pa.string())]
    )
    table = it.Table.create(folder / "table", schema, partition_by=["p"])
    columns = list(zip(*ROWS, strict=True))
    data = pa.table([pa.array(column, f.type) for column, f in zip(columns, schema, strict=True)], schema=schema)  # fmt: skip
    for start in range(0, len(ROWS), PER_FILE):
        table.append(data.slice(start, PER_FILE))
    (folder / "plain").mkdir()
    pq.write_table(data, folder / "plain" / "rows.parquet")
    return folder


@pytest.mark.parametrize("name", CASES)
def test_every_verb_finds_the_rows_that_plain_parquet_has(spark, configured, both, tmp_path, name):
    """SELECT, DELETE, UPDATE, MERGE and an overwrite by the condition, each on a copy of the table."""
    condition, settings = CASES[name]
    for setting, value in settings.items():
        configured(setting, value)
    plain = spark.read.parquet(str(both / "plain"))
    wanted = {row.k for row in plain.where(condition).select("k").collect()}
    every = {row[0] for row in ROWS}
    assert wanted
    assert wanted < every

    def keys(path):
        return {row.k for row in spark.read.format("indextables").load(str(path)).select("k").collect()}

    def after(verb, statement):
        path = tmp_path / verb
        shutil.copytree(both / "table", path)
        spark.sql(statement.format(table=f"indextables.`{path}`", condition=condition))
        return keys(path)

    table = spark.read.format("indextables").load(str(both / "table"))
    assert {row.k for row in table.where(condition).select("k").collect()} == wanted
    assert after("delete", "DELETE FROM {table} WHERE {condition}") == every - wanted
    moved = {k + 100 if k in wanted else k for k in every}
    assert after("update", "UPDATE {table} SET k = k + 100 WHERE {condition}") == moved
    merge = "MERGE INTO {table} t USING (SELECT 1 AS one) src ON {condition} WHEN MATCHED THEN DELETE"
    assert after("merge", merge) == every - wanted
    path = tmp_path / "overwrite"
    shutil.copytree(both / "table", path)
    writer = plain.limit(0).write.format("indextables").mode("overwrite")
    try:
        writer.option("replaceWhere", condition).save(str(path))
    except errors.PredicateError:
        assert name in REFUSED
        assert keys(path) == every
    else:
        assert keys(path) == every - wanted
