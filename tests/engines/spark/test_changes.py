"""DELETE, UPDATE and MERGE through spark.sql, on tables without and with a record key."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from support.changes import MORE, SCHEMA, STATEMENTS, Twin, random_statements
from support.interleave import InterleavedStore

from indextables import errors
from indextables.engines.spark.versions import seam
from indextables.engines.spark.place.tables_and_options import open_table
from indextables.table.table import Table

KINDS = pytest.mark.parametrize("key", [False, True], ids=["copied", "logged"])


@KINDS
def test_a_change_leaves_the_rows_that_another_engine_leaves(spark, tmp_path, key):
    """NULLs in conditions, subqueries, rows that move to another partition, every clause of MERGE."""
    twin = Twin(spark, tmp_path / "t", key=key, partition_by=("g",))
    for statement in STATEMENTS:
        twin.run(statement)
    assert any(split.is_delta for split in twin.table.snapshot().splits()) == key
    assert (
        sorted(map(tuple, (r.values() for r in twin.table.scan().to_arrow().to_pylist())), key=str)
        == twin.rows()
    )


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("partition_by", [(), ("g",)], ids=["plain", "partitioned"])
def test_random_changes_leave_the_rows_that_another_engine_leaves(spark, tmp_path, key, partition_by):
    """The long version."""
    twin = Twin(spark, tmp_path / "t", key=key, partition_by=partition_by)
    for statement in (*MORE, *random_statements(seed=len(partition_by) + 2 * key, count=40)):
        twin.run(statement)


@pytest.fixture
def small(spark, tmp_path):
    """A table of three rows in two files: (name in SQL, handle)."""

    def make(key=False):
        path = str(tmp_path / ("keyed" if key else "plain"))
        table = Table.create(path, SCHEMA, **({"record_key": ["id"]} if key else {}))
        table.append(rows((1, 1, 10, "a"), (2, 1, 20, "b")))
        table.append(rows((3, 2, 30, "c")))
        return f"indextables.`{path}`", table

    return make


def rows(*values):
    return pa.table([list(column) for column in zip(*values, strict=True)], schema=SCHEMA)


def values_of(table):
    return {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}


def test_only_touched_files_are_written_anew_and_history_says_what_was_done(spark, small):
    """Files without a matching row stay; a delete that statistics can answer opens no file."""
    name, table = small()
    before = {split.path for split in table.snapshot().splits()}
    answer = spark.sql(f"UPDATE {name} SET v = v * 2 WHERE name = 'b'")
    assert answer.columns == ["num_affected_rows"] and answer.collect() == [(1,)]
    after = {split.path for split in table.snapshot().splits()}
    assert len(before & after) == 1
    entry = table.history()[0]
    assert (entry.operation, entry.metrics["numUpdatedRows"], entry.metrics["numCopiedRows"]) == (
        "UPDATE",
        1,
        1,
    )
    assert "name" in entry.parameters["predicate"]
    spark.sql(f"DELETE FROM {name} WHERE v = 30")
    entry = table.history()[0]
    assert (entry.metrics["numRemovedFiles"], entry.metrics["numRewrittenFiles"]) == (1, 0)
    assert values_of(table) == {1: 10, 2: 40}
    spark.sql(f"DELETE FROM {name}")
    assert values_of(table) == {} and table.history()[0].metrics["numRewrittenFiles"] == 0


WRONG = [
    ("UPDATE {t} SET v = DEFAULT", errors.SchemaMismatchError, "has no default"),
    ("UPDATE {t} SET nothing = 1", errors.UnknownColumnError, "nothing"),
    ("UPDATE {t} SET v = 'text'", errors.SchemaMismatchError, "'v' is string"),
    ("UPDATE {t} SET v = 3000000000", errors.SchemaMismatchError, "does not fit"),
    ("UPDATE {t} SET id = NULL WHERE v = 20", errors.SchemaMismatchError, "contains NULL"),
    ("UPDATE {t} SET v = 1, {t}.v = 2", errors.SchemaMismatchError, "more than once"),
    ("UPDATE {t} SET v = count(*)", errors.PredicateError, "other rows"),
    ("UPDATE {t} SET v = unknown", AnalysisException, "unknown"),
    ("MERGE INTO {t} t USING (SELECT 1L id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
     errors.UnknownColumnError, "'g'"),
    ("WITH q AS (SELECT 1L id) DELETE FROM {t} WHERE id IN (SELECT id FROM q)", errors.IndexTablesError, "WITH"),
    ("MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 1L id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
     errors.SchemaEvolutionError, "SCHEMA EVOLUTION"),
    ("MERGE INTO {t} t USING (SELECT 1L id UNION ALL SELECT 1L) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 0",
     errors.PredicateError, "more than one row"),
]  # fmt: skip


def test_a_wrong_change_is_refused_and_nothing_is_committed(spark, small):
    """In one clear error, before a job runs where that is possible."""
    name, table = small()
    version = table.snapshot().version
    for statement, kind, message in WRONG:
        if "EVOLUTION" in statement and seam.name == "3.5":
            continue  # it does not parse
        with pytest.raises(kind, match=message):
            spark.sql(statement.format(t=name))
    assert table.snapshot().version == version
    # rows of the source that only delete agree with each other
    twice = "(SELECT 1L id UNION ALL SELECT 1L)"
    spark.sql(f"MERGE INTO {name} t USING {twice} s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert values_of(table) == {2: 20, 3: 30}


@KINDS
def test_rows_with_promises_inside_can_be_changed(spark, tmp_path, key):
    """Lists without NULL elements and structs with required fields, as Arrow's schemas have them."""
    kind = pa.struct([pa.field("x", pa.int32(), nullable=False), ("y", pa.string())])
    items = pa.list_(pa.field("element", pa.int32(), nullable=False))
    names = [pa.field("id", pa.int64(), nullable=False), ("l", items), ("s", kind), ("v", pa.int32())]
    path, schema = str(tmp_path / "t"), pa.schema(names)
    table = Table.create(path, schema, **({"record_key": ["id"]} if key else {}))
    given = [[1, 2], [[1], [2]], [{"x": 1, "y": "a"}, None], [1, 2]]
    table.append(pa.table(given, schema=schema))
    spark.sql(f"UPDATE indextables.`{path}` SET v = v + 8, s.y = 'b' WHERE id = 1")
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    assert found[0] == {"id": 1, "l": [1], "s": {"x": 1, "y": "b"}, "v": 9}
    assert found[1]["s"] is None
    with pytest.raises(errors.SchemaMismatchError, match=r"s\.x.* contains NULL"):
        spark.sql(f"UPDATE indextables.`{path}` SET s.y = 'c' WHERE id = 2")


@pytest.mark.parametrize(
    ("setting", "condition"),
    [
        ("spark.sql.ansi.enforceReservedKeywords", "`user` <> 'bob'"),
        ("spark.sql.parser.escapedStringLiterals", r"`user` = 'a\b' OR `user` = 'c'"),
    ],
    ids=["a name that is a function", "a backslash that is itself"],
)
def test_a_delete_means_the_same_however_the_parser_is_set(spark, tmp_path, setting, condition):
    """The condition is understood once, and not read again from a text that a setting changes."""
    path = str(tmp_path / "t")
    table = Table.create(path, pa.schema([("user", pa.string())]))
    table.append(pa.table({"user": ["a\\b", "bob", "c"]}))
    spark.conf.set(setting, "true")
    try:
        spark.sql(f"DELETE FROM indextables.`{path}` WHERE {condition}")
    finally:
        spark.conf.unset(setting)
    assert table.scan().to_arrow()["user"].to_pylist() == ["bob"]


def test_a_key_is_never_there_twice_after_a_change(spark, small):
    """Not by an insert of a known key, nor by giving a row the key of another; swapped keys are fine."""
    name, table = small(key=True)
    for statement in (
        f"MERGE INTO {name} t USING (SELECT 9L AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (1)",
        f"UPDATE {name} SET id = 3 WHERE id = 1",
        f"UPDATE {name} SET id = 7",
    ):
        with pytest.raises(errors.DuplicateKeyError):
            spark.sql(statement)
    spark.sql(f"UPDATE {name} SET id = 3 - id WHERE id < 3")
    assert values_of(table) == {2: 10, 1: 20, 3: 30}


def test_a_source_that_never_answers_the_same_way_is_read_once(spark, small):
    """Every target row that is deleted is one that matched, however random the source is."""
    name, table = small()
    spark.range(1, 4).where(F.rand() < 0.5).createOrReplaceTempView("chance_source")
    (answer,) = spark.sql(
        f"MERGE INTO {name} t USING chance_source s ON t.id = s.id WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 0"
    ).collect()
    left = values_of(table)
    assert answer["num_deleted_rows"] == 3 - len(left)
    assert answer["num_updated_rows"] == len(left) and set(left.values()) <= {0}


@KINDS
def test_a_merge_opens_only_files_that_may_have_the_keys_of_its_source(spark, tmp_path, key):
    """By a list of few values or the range of many; not where rows without a match change too."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])
    path = str(tmp_path / "t")
    table = Table.create(path, schema, **({"record_key": ["id"]} if key else {}))
    for start in range(0, 9000, 3000):
        ids = range(start, start + 3000)
        table.append(pa.table([ids, [0] * 3000], schema=schema))
    name = f"indextables.`{path}`"
    match = (
        f"MERGE INTO {name} t USING ({{source}}) s ON s.k + 1 = t.id AND t.v >= 0 WHEN MATCHED THEN "
    )
    some = "SELECT CAST(x AS INT) k FROM VALUES (4000), (4001), (NULL) AS s(x)"
    many = "SELECT id + 3099 AS k FROM range(2000)"
    add = " WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.k, 7)"
    for source, action, skipped in (
        (some, "UPDATE SET v = 1", 2),
        (many, "UPDATE SET v = t.v + 1", 2),
        ("SELECT 1 AS k WHERE false", "DELETE", None),
        ("SELECT 9998 AS k", "DELETE" + add, "all"),
        ("SELECT 0 AS k", "DELETE WHEN NOT MATCHED BY SOURCE AND t.id = 8999 THEN UPDATE SET v = 5", 0),
    ):
        files = Table(path).snapshot().num_files
        spark.sql(match.format(source=source) + action)
        if skipped is not None:
            metrics = Table(path).history()[0].metrics
            assert metrics["numSkippedFiles"] == (files if skipped == "all" else skipped), source
    found = Table(path).scan().to_arrow()
    values = dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))
    assert len(values) == found.num_rows == 9000
    assert {i: v for i, v in values.items() if v != (1 if 3100 <= i < 5100 else 0)} == {
        **{4001: 2, 4002: 2, 8999: 5, 9998: 7}
    }
    assert 1 not in values


@pytest.mark.skipif(seam.merge_writer is None, reason="Spark 3.5 has no mergeInto")
def test_merge_into_of_a_dataframe_is_the_same_merge(spark, small):
    """`df.mergeInto(…)` and SQL share their plan."""
    name, table = small(key=True)
    source = spark.createDataFrame([(3, 33), (4, 44)], "id long, v int").alias("s")
    (
        source.mergeInto(name, F.expr(f"{name}.id = s.id"))
        .whenMatched()
        .update({"v": F.col("s.v")})
        .whenNotMatched()
        .insert({"id": F.col("s.id"), "v": F.col("s.v")})
        .merge()
    )
    assert values_of(table) == {1: 10, 2: 20, 3: 33, 4: 44}


MERGE = (
    "MERGE INTO {t} t USING (SELECT 9L AS id) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET v = 2 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (9, 1)"
)
INCREMENT = "UPDATE {t} SET v = v + 1 WHERE id + 0 = 2"
RACES = [
    ("merge", False, MERGE, lambda t: t.append(rows((9, 1, 90, "n"))), {1: 10, 2: 20, 3: 30, 9: 2}),
    ("update of a deleted row", True, INCREMENT, lambda t: t.delete("id = 2"), {1: 10, 3: 30}),
]
MORE_RACES = [
    ("update", False, INCREMENT, lambda t: t.delete("id = 1"), {2: 21, 3: 30}),
    (
        "delete",
        False,
        "DELETE FROM {t} WHERE v + 0 > 15",
        lambda t: t.append(rows((8, 1, 80, "n"))),
        {1: 10},
    ),
    (
        "update of a changed row",
        True,
        INCREMENT,
        lambda t: t.upsert(rows((2, 1, 50, "n"))),
        {1: 10, 2: 51, 3: 30},
    ),
    (
        "merge by key",
        True,
        MERGE,
        lambda t: t.append(rows((9, 1, 90, "n"))),
        {1: 10, 2: 20, 3: 30, 9: 2},
    ),
]
CASES = [pytest.param(*race, id=name) for name, *race in RACES]
CASES += [pytest.param(*race, id=name, marks=pytest.mark.slow) for name, *race in MORE_RACES]


@pytest.mark.parametrize(("key", "statement", "other", "left"), CASES)
def test_a_change_that_was_overtaken_is_made_again(
    spark, small, monkeypatch, key, statement, other, left
):
    """On top of the commit that came first, as if it had begun after it."""
    name, table = small(key)
    log = open_table(spark, table.uri).log
    store = InterleavedStore(log.store, lambda: other(Table(table.uri)))
    monkeypatch.setattr(log, "store", store)
    spark.sql(statement.format(t=name))
    assert store.happened
    assert values_of(table) == left
