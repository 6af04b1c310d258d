"""Each of Spark's verbs with a vacuum beside it: refused, or right, and never a broken table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from support.interleave import SteppedStore

from indextables.engines.spark.place.tables_and_options import open_table
from indextables.errors import IndexTablesError
from indextables.table.table import Table

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
NOW = {"spark.indextables.vacuum.retention": "0 seconds"}
REFUSED = {"CommitConflictError", "ObjectNotFoundError", "VersionNotFoundError"}

Rows = dict[int, str]
"""The values by id; every id is there once."""


def rows(*ids, v):
    return pa.table({"id": list(ids), "v": [v] * len(ids)}, SCHEMA)


@dataclass(frozen=True)
class Verb:
    """A change, and what it means for the rows."""

    run: Callable[[Any, Any, Any], Any]
    """Gets the session, a DataFrame of the rows 4 and 5, and the table's store."""
    model: Callable[[Rows], Rows] = lambda rows: rows
    keyed: bool = False
    replanned: bool = True
    """Once overtaken it has to be planned again, so that a vacuum after that refuses it."""


def write(mode, **options):
    def run(_spark, new, store):
        new.write.format("indextables").mode(mode).options(**options).save(store.uri)

    return run


def statement(text):
    def run(spark, new, store):
        new.createOrReplaceTempView("mine")
        spark.sql(text.replace("$t", f"indextables.`{store.uri}`"))

    return run


def on_spark(change):
    return lambda spark, new, store: change(Table(store).on(spark), new)


MINE = {4: "mine", 5: "mine"}
MERGE = "MERGE INTO $t t USING mine s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"


def without(*ids):
    return lambda rows: {i: v for i, v in rows.items() if i not in ids}


def put(rows):
    return rows | MINE


VERBS = {
    "append": Verb(
        lambda _, new, store: write("append")(_, new.selectExpr("id + 10 AS id", "v"), store),
        lambda rows: rows | {14: "mine", 15: "mine"},
        replanned=False,
    ),
    "INSERT": Verb(
        statement("INSERT INTO $t SELECT id + 10, v FROM mine"),
        lambda rows: rows | {14: "mine", 15: "mine"},
        replanned=False,
    ),
    "INSERT OVERWRITE": Verb(statement("INSERT OVERWRITE $t SELECT * FROM mine"), lambda _: MINE),
    "REPLACE WHERE": Verb(
        statement("INSERT INTO $t REPLACE WHERE id > 3 SELECT * FROM mine"),
        lambda rows: {i: v for i, v in rows.items() if i <= 3} | MINE,
    ),
    "overwrite": Verb(write("overwrite"), lambda _: MINE),
    "replaceWhere": Verb(
        write("overwrite", replaceWhere="id > 3"),
        lambda rows: {i: v for i, v in rows.items() if i <= 3} | MINE,
    ),
    "DELETE": Verb(statement("DELETE FROM $t WHERE id = 4"), without(4)),
    "DELETE of files": Verb(statement("DELETE FROM $t"), lambda _: {}),
    "UPDATE": Verb(statement("UPDATE $t SET v = 'mine' WHERE id = 4"), lambda rows: rows | {4: "mine"}),
    "MERGE": Verb(statement(MERGE), put),
    "OPTIMIZE": Verb(statement("OPTIMIZE $t"), replanned=False),
    "ZORDER": Verb(statement("OPTIMIZE $t ZORDER BY (id)"), replanned=False),
    "ANALYZE": Verb(on_spark(lambda table, _: table.analyze(["v"], rebuild=True)), replanned=False),
    "RESTORE": Verb(
        statement("RESTORE $t TO VERSION AS OF 1"), lambda _: dict.fromkeys(range(3), "old")
    ),
    "Table.on: append": Verb(
        on_spark(lambda table, new: table.append(new.selectExpr("id + 10 AS id", "v"))),
        lambda rows: rows | {14: "mine", 15: "mine"},
        replanned=False,
    ),
    "Table.on: delete": Verb(on_spark(lambda table, _: table.delete("id = 4")), without(4)),
    "upsert": Verb(write("upsert"), put, keyed=True),
    "overwrite by key": Verb(write("overwrite"), lambda _: MINE, keyed=True),
    "DELETE by key": Verb(statement("DELETE FROM $t WHERE id = 4"), without(4), keyed=True),
    "UPDATE by key": Verb(
        statement("UPDATE $t SET v = 'mine' WHERE id = 4"), lambda rows: rows | {4: "mine"}, keyed=True
    ),
    "MERGE by key": Verb(statement(MERGE), put, keyed=True),
    "COMPACT": Verb(statement("COMPACT $t"), keyed=True),
    "Table.on: upsert": Verb(on_spark(lambda table, new: table.upsert(new)), put, keyed=True),
}


def theirs(table):
    """What every rewrite has to look at again: new rows, and a split that is another one now."""
    table.append(rows(6, v="theirs"))
    table.delete("id = 3")


def rows_of(uri: str) -> Rows:
    found = Table(uri).scan().to_arrow()
    ids = found.column("id").to_pylist()
    assert len(set(ids)) == len(ids)
    return dict(zip(ids, found.column("v").to_pylist(), strict=True))


def raced(spark, path, monkeypatch, verb: Verb, *, overtaken: bool) -> str:
    """Runs the verb with a vacuum right before its commit, after another writer's commits if it is overtaken."""
    table = Table.create(path, SCHEMA, record_key=["id"] if verb.keyed else [])
    for ids in (range(3), range(3, 6)):
        table.append(rows(*ids, v="old"))
    if verb.keyed:
        table.upsert(rows(1, v="delta"))
    uri, before = table.uri, rows_of(table.uri)
    steps = [lambda: theirs(Table(uri))] if overtaken else []
    if overtaken:
        before = without(3)(before | {6: "theirs"})
    vacuum = lambda: Table(uri).vacuum(apply=True, allow_short_retention=True, options=NOW)  # noqa: E731
    store = SteppedStore(open_table(spark, uri).log.store, *steps, vacuum)
    monkeypatch.setattr(open_table(spark, uri).log, "store", store)
    new = spark.createDataFrame([*MINE.items()], "id long not null, v string")
    try:
        verb.run(spark, new, store)
        expected, outcome = verb.model(before), "done"
    except IndexTablesError as error:
        expected, outcome = before, type(error).__name__
        assert outcome in REFUSED, error
    assert store.happened or not verb.replanned
    assert rows_of(uri) == expected
    assert Table(uri).check(deep=True).problems == ()
    return outcome


LIKE_ANOTHER = {"INSERT", "REPLACE WHERE", "DELETE of files", "ZORDER", "UPDATE by key"} | {
    name for name in VERBS if name.startswith("Table.on")
}
"""Verbs that take the road of another one, and are tried in the long run."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] if n in LIKE_ANOTHER else []) for n in VERBS],
)
def test_a_vacuum_beside_a_write_that_was_overtaken_never_breaks_the_table(
    spark, tmp_path, monkeypatch, name
):
    """The files of the first plan may be gone, and the rows of the table are those of the other writer."""
    verb = VERBS[name]
    outcome = raced(spark, tmp_path / "t", monkeypatch, verb, overtaken=True)
    assert outcome == "CommitConflictError" or not verb.replanned


@pytest.mark.slow
@pytest.mark.parametrize("name", VERBS)
def test_a_vacuum_beside_a_write_never_breaks_the_table(spark, tmp_path, monkeypatch, name):
    """The long version: nobody else commits, and the vacuum comes before the first try."""
    raced(spark, tmp_path / "t", monkeypatch, VERBS[name], overtaken=False)
