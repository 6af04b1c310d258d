"""Spark's writes with a vacuum beside them: refused, or right, and never a broken table."""

from __future__ import annotations

import pyarrow as pa
import pytest
from support.interleave import SteppedStore

from indextables.engines.spark.place.tables_and_options import open_table
from indextables.errors import CommitConflictError
from indextables.table.table import Table

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
NOW = {"spark.indextables.vacuum.retention": "0 seconds"}


def rows(*ids, v):
    return pa.table({"id": list(ids), "v": [v] * len(ids)}, SCHEMA)


def writer(frame, mode, **options):
    return frame.write.format("indextables").mode(mode).options(**options)


VERBS = {
    "DELETE": (
        False,
        lambda spark, new, uri: spark.sql(f"DELETE FROM indextables.`{uri}` WHERE id = 4"),
    ),
    "UPDATE": (
        False,
        lambda spark, new, uri: spark.sql(f"UPDATE indextables.`{uri}` SET v = 'mine' WHERE id = 4"),
    ),
    "overwrite": (False, lambda spark, new, uri: writer(new, "overwrite").save(uri)),
    "replaceWhere": (
        False,
        lambda spark, new, uri: writer(new, "overwrite", replaceWhere="id > 3").save(uri),
    ),
    "upsert": (True, lambda spark, new, uri: writer(new, "upsert").save(uri)),
    "overwrite by key": (True, lambda spark, new, uri: writer(new, "overwrite").save(uri)),
}


def theirs(table):
    table.append(rows(6, v="theirs"))
    table.delete("id = 3")


@pytest.mark.parametrize("name", VERBS)
def test_a_write_that_was_planned_again_is_refused_after_a_vacuum(spark, tmp_path, monkeypatch, name):
    """The files of the first plan may be gone, and the rows of the table are those of the other writer."""
    key, run = VERBS[name]
    table = Table.create(tmp_path / "t", SCHEMA, record_key=["id"] if key else [])
    table.append(rows(*range(6), v="old"))
    log = open_table(spark, table.uri).log
    steps = (
        lambda: theirs(Table(table.uri)),
        lambda: Table(table.uri).vacuum(apply=True, allow_short_retention=True, options=NOW),
    )
    store = SteppedStore(log.store, *steps)
    monkeypatch.setattr(log, "store", store)
    new = spark.createDataFrame([(4, "mine"), (5, "mine")], "id long not null, v string")
    with pytest.raises(CommitConflictError, match="vacuum"):
        run(spark, new, table.uri)
    assert store.happened
    found = Table(table.uri)
    assert sorted(found.scan().to_arrow().column("id").to_pylist()) == [0, 1, 2, 4, 5, 6]
    assert found.check(deep=True).problems == ()
