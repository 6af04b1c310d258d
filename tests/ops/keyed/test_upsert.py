"""Rows by their key: what is replaced, what is added, which files that costs, and what is refused."""

import datetime as dt
import json
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

import indextables as it
from indextables.parquet.write.executor import ArrowExecutor
from indextables.errors import (
    ConfigError,
    DuplicateKeyError,
    ProtocolError,
    SchemaError,
    SchemaEvolutionError,
    SchemaMismatchError,
)
from indextables.log.wire.actions import MERGE_ON_READ, Metadata, Txn
from indextables.log.commit.intent import ChangeSchema, CommitPlan
from indextables.log.transaction_log import TransactionLog
from indextables.ops.append import append
from indextables.ops.create import as_schema, new_metadata
from indextables.ops.replace import create_as
from indextables.ops.replace import replace_table
from indextables.ops.keyed.upsert import UpsertPlanner
from indextables.parquet.write.by_key import ArrowChange
from indextables.storage.open import open_store

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("w", pa.int64()), ("p", pa.string())]
)  # fmt: skip


def rows(v, *ids, w=0, p="a"):
    n = len(ids)
    return pa.table({"id": list(ids), "v": [v] * n, "w": [w] * n, "p": [p] * n}, SCHEMA)


def contents(table, where=None):
    found = table.scan(where).to_arrow().to_pylist()
    ids = [row["id"] for row in found]
    assert len(ids) == len(set(ids))
    return {row.pop("id"): tuple(row.values()) for row in found}


def new(path, *, mode="record", partitions=(), **more):
    return it.Table.create(
        path, SCHEMA, record_key=["id"], merge_mode=mode, partition_by=partitions, **more
    )


def files(table):
    """(kind, block, rows) of every file, oldest first."""
    return [(s.kind, s.block, s.stats.num_records) for s in table.snapshot().splits()]


def test_the_first_rows_are_not_looked_up(path):
    """No key can be in an empty table, so that an upsert costs what an append does: no index, no copy."""
    table = new(path)
    log = TransactionLog(open_store(path))
    change = ArrowChange(log.store, rows("a", 2, 1, 3))
    planner = UpsertPlanner(change)
    planner(log.snapshot())
    (incoming,) = change._fitted.values()
    assert "index" not in vars(incoming)
    table.upsert(rows("a", 2, 1, 3))
    planner(log.snapshot())
    assert incoming.index.size == 3 and "index" in vars(incoming)
    with pytest.raises(DuplicateKeyError):
        new(f"{path}2").upsert(rows("b", 5, 4, 5))


# -- what a table with a key is -------------------------------------------------------------------


def test_a_key_is_part_of_the_protocol(path):
    """A reader that cannot merge must not read."""
    table = new(path)
    snapshot = table.snapshot()
    assert snapshot.properties == {"recordKey": '["id"]', "mergeMode": "record"}
    assert MERGE_ON_READ in snapshot.protocol.reader_features
    assert MERGE_ON_READ in snapshot.protocol.writer_features
    plain = it.Table.create(f"{path}-plain", SCHEMA).snapshot().protocol
    assert MERGE_ON_READ not in plain.reader_features


def test_a_key_may_come_as_a_property_as_sql_gives_it(path):
    """TBLPROPERTIES are texts."""
    table = it.Table.create(path, SCHEMA, properties={"recordKey": "ID", "mergeMode": "columns"})
    assert table.properties == {"recordKey": '["id"]', "mergeMode": "columns"}
    again = it.Table.create(f"{path}-2", SCHEMA, properties=dict(table.properties))
    assert again.properties == table.properties


TWO = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string(), nullable=False)])


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"record_key": ["id"], "merge_mode": "newest"}, ConfigError, "no merge mode 'newest'"),
        ({"merge_mode": "record"}, ConfigError, "there is no record key"),
        ({"properties": {"mergeMode": "record"}}, ConfigError, "there is no record key"),
        ({"record_key": ["v"]}, SchemaError, "may be NULL"),
        ({"record_key": ["id", "ID"]}, SchemaError, "repeats"),
        ({"schema": TWO, "record_key": ["a"], "partition_by": ["a"]}, SchemaError, "partition column"),
        ({"record_key": ["id"], "properties": {"mergeMode": "custom"}}, ConfigError, "'custom'"),
    ],
)
def test_a_key_that_could_not_identify_rows_is_refused(path, arguments, error, text):
    """Before anything is written."""
    with pytest.raises(error, match=text):
        it.Table.create(path, arguments.pop("schema", SCHEMA), **arguments)
    assert not list(open_store(path).list(""))


def test_an_unknown_merge_mode_is_refused_by_name(path):
    """Read by another rule, the rows would be others."""
    table = new(path)
    table.upsert(rows("a", 1))
    table.upsert(rows("b", 1))
    log = TransactionLog(open_store(path))
    log.commit(
        lambda now: CommitPlan(
            ChangeSchema(),
            "FUTURE",
            (replace(now.metadata, properties={**now.properties, "mergeMode": "crdt"}),),
        )
    )
    for attempt in (
        lambda t: t.scan().to_arrow(),
        lambda t: t.upsert(rows("c", 1)),
        lambda t: t.delete("id = 1"),
    ):
        with pytest.raises(ProtocolError, match="'crdt'"):
            attempt(it.Table(path))
    (problem,) = it.Table(path).check(deep=True).problems
    assert problem.kind == "unknown-merge-mode"


def test_without_a_key_upsert_says_what_is_missing(path):
    """And what to do about it."""
    table = it.Table.create(path, SCHEMA)
    with pytest.raises(SchemaError, match="record_key"):
        table.upsert(rows("a", 1))


# -- what an upsert does --------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["record", "columns"])
def test_rows_replace_those_with_their_key_and_the_others_are_added(path, mode):
    """One data log for the group that has some of them, one new group for the rest."""
    table = new(path, mode=mode)
    table.upsert(rows("old", 1, 2, 3))
    result = table.upsert(rows("new", 2, 3, 4))
    assert contents(table) == {
        1: ("old", 0, "a"), 2: ("new", 0, "a"), 3: ("new", 0, "a"), 4: ("new", 0, "a"),
    }  # fmt: skip
    assert sorted(files(table), key=str) == sorted(
        [("base", None, 3), ("log", "data", 2), ("base", None, 1)], key=str
    )
    wanted = {"numUpdatedRows": 2, "numInsertedRows": 1, "numTouchedGroups": 1, "numOutputRows": 3}
    assert wanted.items() <= result.metrics.items()
    assert table.history(1)[0].metrics == result.metrics
    assert table.check(deep=True).problems == ()


def test_a_log_has_statistics_of_its_own_and_a_delete_log_those_of_its_keys(path):
    """So that a query can skip the slice, and the next upsert the file."""
    table = new(path, partitions=["p"])
    table.upsert(rows("old", *range(10)))
    table.upsert(rows("new", 3, 4, w=7))
    table.delete("id = 9")
    _, data, delete = table.snapshot().splits()
    assert data.stats.min_values == {("id",): 3, ("v",): "new", ("w",): 7}
    assert data.stats.max_values == {("id",): 4, ("v",): "new", ("w",): 7}
    assert delete.stats.num_records == 1
    assert delete.stats.min_values == {("id",): 9} == delete.stats.max_values


def test_key_columns_have_statistics_whatever_the_options_say(path):
    """By them an upsert finds the files it has to look into."""
    table = new(path, properties={"spark.indextables.dataSkippingNumIndexedCols": 0})
    table.upsert(rows("old", 1, 2))
    assert table.snapshot().splits()[0].stats.min_values == {("id",): 1}


def test_an_upsert_opens_only_files_that_may_hold_its_keys(path):
    """Other groups are not touched, nor read."""
    table = new(path)
    for start in range(0, 100, 10):
        table.upsert(rows("old", *range(start, start + 10)))
    with it.query_stats() as stats:
        table.upsert(rows("new", 5, 95, 1000))
    assert stats.data_files_opened == 2
    assert contents(table, "v = 'new'").keys() == {5, 95, 1000}


def test_a_row_that_changes_its_partition_leaves_its_old_group(path):
    """A delete log there and a row in a new group, in one commit."""
    table = new(path, partitions=["p"])
    table.upsert(rows("old", 1, 2, 3))
    version = table.version
    result = table.upsert(
        pa.concat_tables([rows("new", 1, p="b"), rows("new", 2), rows("new", 9, p="c")])
    )
    assert table.version == version + 1
    assert contents(table) == {
        1: ("new", 0, "b"), 2: ("new", 0, "a"), 3: ("old", 0, "a"), 9: ("new", 0, "c"),
    }  # fmt: skip
    assert {
        "numMovedRows": 1,
        "numUpdatedRows": 2,
        "numInsertedRows": 1,
    }.items() <= result.metrics.items()
    assert [split.partition_values["p"] for split in table.plan("p = 'b'").files] == ["b"]
    table.upsert(rows("back", 1))
    assert contents(table, "id = 1") == {1: ("back", 0, "a")}
    assert table.check(deep=True).problems == ()


def test_partition_columns_may_be_part_of_the_key(path):
    """Then a row never moves: another partition is another key."""
    schema = pa.schema([pa.field("day", pa.date32(), nullable=False), *SCHEMA])
    table = it.Table.create(path, schema, record_key=["day", "id"], partition_by=["day"])

    def at(day, v, *ids):
        return rows(v, *ids).add_column(
            0, schema.field(0), pa.array([dt.date(2024, 1, day)] * len(ids))
        )

    table.upsert(pa.concat_tables([at(1, "old", 1, 2), at(2, "old", 1, 2)]))
    table.upsert(at(2, "new", 2, 3))
    found = [(r["day"].day, r["id"], r["v"]) for r in table.scan().to_arrow().to_pylist()]
    assert sorted(found) == [(1, 1, "old"), (1, 2, "old"), (2, 1, "old"), (2, 2, "new"), (2, 3, "new")]
    table.delete("day = date'2024-01-02' and id >= 2")
    assert table.scan().count() == 3
    table.delete("day = date'2024-01-01'")
    assert {s.partition_values["day"] for s in table.snapshot().splits()} == {"2024-01-02"}
    assert table.check(deep=True).problems == ()


KEYS = [
    (pa.bool_(), [True, False], [False]),
    (pa.int8(), [-128, 127, 0], [127, 1]),
    (pa.decimal128(20, 2), [Decimal("1.10"), Decimal("-5.00")], [Decimal("1.10"), Decimal("7.00")]),
    (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)], [dt.date(9999, 12, 31)]),
    (pa.timestamp("us", "UTC"), [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)], [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]),
    (pa.timestamp("us"), [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)], [dt.datetime(2024, 1, 2)]),
    (pa.string(), ["", "é", "a" * 3000, "a" * 2999 + "b"], ["a" * 3000, "zz"]),
    (pa.binary(), [b"", b"\x00", b"\xff" * 2000], [b"\xff" * 2000, b"\x01"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "first", "second"), KEYS, ids=[str(kind) for kind, *_ in KEYS])
def test_every_type_of_key_finds_its_rows(path, kind, first, second):
    """Also where its bounds are too long for the log."""
    schema = pa.schema([pa.field("k", kind, nullable=False), ("v", pa.int64())])
    table = it.Table.create(path, schema, record_key=["k"])
    table.upsert(pa.table({"k": first, "v": [0] * len(first)}, schema))
    table.upsert(pa.table({"k": second, "v": [1] * len(second)}, schema))
    found = {row["k"]: row["v"] for row in table.scan().to_arrow().to_pylist()}
    assert found == dict.fromkeys(first, 0) | dict.fromkeys(second, 1)
    assert table.scan().count() == len(found)


def test_more_keys_than_a_list_can_name_are_found_by_their_range(path):
    """Ten thousand keys, and two columns."""
    schema = pa.schema(
        [pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string(), nullable=False), ("v", pa.int64())]
    )  # fmt: skip
    table = it.Table.create(path, schema, record_key=["b", "a"])

    def some(numbers, v):
        return pa.table(
            {"a": [n // 3 for n in numbers], "b": [str(n % 3) for n in numbers], "v": [v] * len(numbers)}, schema
        )  # fmt: skip

    table.upsert(some(range(15_000), 0))
    result = table.upsert(some(range(14_000, 29_000), 1))
    assert {"numUpdatedRows": 1000, "numInsertedRows": 14_000}.items() <= result.metrics.items()
    assert table.scan().count() == 29_000
    assert table.scan("v = 0").count() == 14_000


def test_new_groups_are_split_at_the_target_size(path):
    """One base each."""
    table = new(path, options={"spark.indextables.write.targetFileSize": "16KB"})
    ids = range(9000)
    data = pa.table(
        {"id": ids, "v": [f"{i * 7919 % 10007:08}" * 3 for i in ids], "w": ids, "p": ["a"] * len(ids)},
        SCHEMA,
    )
    table.upsert(data)
    splits = table.snapshot().splits()
    assert len(splits) > 3
    assert len({split.file_group for split in splits}) == len(splits)
    assert {split.kind for split in splits} == {"base"}


def test_rows_the_log_has_no_use_for_commit_nothing(path):
    """No rows, no commit; but an application's batch is noted."""
    table = new(path)
    assert table.upsert(rows("none")).committed is False
    log, executor = TransactionLog(open_store(path)), ArrowExecutor(open_store(path))
    txn = Txn("app", 3)
    assert append(log, executor, rows("a", 1), txn=txn).committed
    assert not append(log, executor, rows("b", 1), txn=txn).committed
    assert append(log, executor, rows("c"), txn=Txn("app", 4)).committed
    assert contents(table) == {1: ("a", 0, "a")}


def test_append_is_an_upsert(path):
    """No key occurs twice."""
    table = new(path)
    table.append(rows("a", 1, 2))
    result = table.append(rows("b", 2, 3))
    assert result.operation == "APPEND"
    assert {i: v[0] for i, v in contents(table).items()} == {1: "a", 2: "b", 3: "b"}


# -- what it refuses ------------------------------------------------------------------------------


def test_a_key_that_the_data_repeats_is_named(path):
    """Which of the rows is newer, the data does not say."""
    table = new(path)
    for verb in (table.upsert, table.append, table.overwrite):
        with pytest.raises(DuplicateKeyError, match="2 rows of the data.*id = 7"):
            verb(rows("a", 5, 7, 7, 8, 5))
    assert table.version == 0


def test_a_key_without_a_value_is_refused(path):
    """NULL equals nothing, so it could never be found again."""
    table = new(path)
    data = pa.table({"id": [1, None], "v": ["a", "b"], "w": [0, 0], "p": ["a", "a"]})
    with pytest.raises(SchemaMismatchError, match="'id' contains NULL"):
        table.upsert(data)
    partitioned = it.Table.create(f"{path}-p", TWO, record_key=["a", "b"], partition_by=["b"])
    with pytest.raises(SchemaMismatchError, match="'b' contains NULL or ''"):
        partitioned.upsert(pa.table({"a": [1], "b": [""]}, TWO))
    assert (table.version, partitioned.version) == (0, 0)
    assert not list(open_store(path).list("data/"))


def test_an_upsert_that_does_not_fit_leaves_nothing_behind(path):
    """Rows in record mode are whole."""
    table = new(path)
    table.upsert(rows("a", 1))
    before = [meta.key for meta in open_store(path).list("")]
    with pytest.raises(SchemaMismatchError, match="'w' .bigint. is missing"):
        table.upsert(pa.table({"id": [1], "v": ["b"], "p": ["a"]}))
    assert [meta.key for meta in open_store(path).list("")] == before


# -- schemas that change --------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["record", "columns"])
def test_upserts_may_add_columns_and_widen_them(path, mode):
    """Also the key: an int and the same number as a decimal are one key."""
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False), ("v", pa.int32())])
    table = it.Table.create(path, schema, record_key=["id"], merge_mode=mode)
    table.upsert(pa.table({"id": [1, 2, 3], "v": [0, 0, 0]}, schema))
    table.upsert(pa.table({"id": pa.array([2, 2**40]), "v": pa.array([2**41, 5])}), merge_schema=True)
    table.upsert(pa.table({"id": [3], "v": [7], "new": ["n"]}), merge_schema=True)
    table.evolve(
        pa.schema(
            [
                pa.field("id", pa.decimal128(25, 2), nullable=False),
                ("v", pa.int64()),
                ("new", pa.string()),
            ]
        )
    )
    table.upsert(
        pa.table({"id": pa.array([Decimal(1)], pa.decimal128(25, 2)), "v": [9], "new": [None]})
    )
    table.delete("id = 2")
    found = [(int(r["id"]), r["v"], r["new"]) for r in table.scan().to_arrow().to_pylist()]
    assert sorted(found) == [(1, 9, None), (3, 7, "n"), (2**40, 5, None)]
    assert table.check(deep=True).problems == ()


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        (pa.field("id", pa.int32()), "may be NULL"),
        (pa.field("id", pa.float64(), nullable=False), "is a float"),
    ],
)
def test_a_key_column_stays_one(path, field, reason):
    """It cannot become nullable, nor a float, wide as that is."""
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False), ("v", pa.int32())])
    table = it.Table.create(path, schema, record_key=["id"])
    with pytest.raises(SchemaEvolutionError, match=reason):
        table.evolve(schema.set(0, field))


# -- some columns only ----------------------------------------------------------------------------


def test_columns_that_are_left_out_keep_their_values(path):
    """A column takes the newest file that sets it; a NULL that is given is set."""
    table = new(path, mode="columns")
    table.upsert(rows("old", 1, 2, 3, w=1))
    table.upsert(pa.table({"id": [1, 2], "w": [10, None]}))
    table.upsert(pa.table({"V": ["x"], "id": [1]}))
    assert contents(table) == {1: ("x", 10, "a"), 2: ("old", None, "a"), 3: ("old", 1, "a")}
    assert [
        json.loads(s.to_add().tags["columns"]) for s in table.snapshot().splits() if s.to_add().tags
    ] == [
        ["id", "w"],
        ["id", "v"],
    ]
    assert contents(table, "v = 'x' and w = 10") == {1: ("x", 10, "a")}
    assert table.check(deep=True).problems == ()


def test_a_new_key_needs_every_column_that_must_not_be_null(path):
    """What is left out is NULL in a new row."""
    schema = pa.schema([*list(SCHEMA)[:2], pa.field("must", pa.int64(), nullable=False)])
    table = it.Table.create(path, schema, record_key=["id"], merge_mode="columns")
    table.upsert(pa.table({"id": [1], "v": ["a"], "must": [1]}, schema))
    table.upsert(pa.table({"id": [1], "v": ["b"]}))
    table.upsert(pa.table({"id": [2], "must": [2]}))
    with pytest.raises(SchemaMismatchError, match=r"'id': 3.*\['must'\]"):
        table.upsert(pa.table({"id": [1, 3], "v": ["c", "c"]}))
    with pytest.raises(SchemaMismatchError, match="'id'.*missing"):
        table.upsert(pa.table({"v": ["c"]}))
    with pytest.raises(SchemaMismatchError, match="'vv' is not in the table"):
        table.upsert(pa.table({"id": [1], "vv": ["c"]}))
    assert contents(table) == {1: ("b", 1), 2: (None, 2)}


def test_a_row_that_moves_takes_along_what_is_not_set(path):
    """Its columns come from several files of the group it leaves."""
    table = new(path, mode="columns", partitions=["p"])
    table.upsert(rows("old", 1, 2, 3, w=1))
    table.upsert(pa.table({"id": [1, 2], "w": [10, 20]}))
    table.upsert(pa.table({"id": [1, 3, 9], "p": ["b", "a", "b"]}))
    assert contents(table) == {
        1: ("old", 10, "b"), 2: ("old", 20, "a"), 3: ("old", 1, "a"), 9: (None, None, "b"),
    }  # fmt: skip
    table.upsert(pa.table({"id": [1], "v": ["new"]}))
    assert contents(table, "p = 'b'") == {1: ("new", 10, "b"), 9: (None, None, "b")}
    assert table.check(deep=True).problems == ()


# -- tables made at once --------------------------------------------------------------------------


def test_a_table_is_created_and_replaced_with_its_rows(path):
    """Each file is a group, and a key that occurs twice is refused before there is a table."""
    log, executor = TransactionLog(open_store(path)), ArrowExecutor(open_store(path))
    metadata: Metadata = new_metadata(as_schema(SCHEMA), record_key=["id"])
    with pytest.raises(DuplicateKeyError):
        create_as(log, executor, rows("a", 1, 1), metadata)
    assert not list(open_store(path).list(""))
    create_as(log, executor, rows("a", 1, 2), metadata)
    table = it.Table(path)
    table.upsert(rows("b", 2))
    assert contents(table) == {1: ("a", 0, "a"), 2: ("b", 0, "a")}
    replace_table(log, executor, rows("c", 5, 6), metadata)
    table.upsert(rows("d", 6))
    assert contents(table) == {5: ("c", 0, "a"), 6: ("d", 0, "a")}
    plain = it.Table.create(f"{path}-plain", SCHEMA)
    plain.append(rows("a", 1, 1))
    store = open_store(f"{path}-plain")
    replace_table(TransactionLog(store), ArrowExecutor(store), rows("c", 5, 6), metadata)
    assert MERGE_ON_READ in plain.snapshot().protocol.reader_features
    plain.upsert(rows("d", 6))
    assert contents(plain) == {5: ("c", 0, "a"), 6: ("d", 0, "a")}


def test_data_in_many_pieces_is_placed_like_data_in_one(path):
    """Rows of one partition lie in several batches."""
    table = new(path, partitions=["p"])
    pieces = [rows("x", i, p="abc"[i % 3]) for i in range(9)]
    table.upsert(pa.concat_tables(pieces))
    table.upsert(pa.concat_tables([rows("y", i, p="abc"[i % 2]) for i in range(12)]))
    assert contents(table) == {i: ("y", 0, "abc"[i % 2]) for i in range(12)}
    assert table.check(deep=True).problems == ()
