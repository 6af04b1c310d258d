"""Delete and overwrite where rows have keys: slices go by metadata, rows by delete logs, and none comes back."""

import pyarrow as pa
import pytest

import indextables as it
from indextables.parquet.write.executor import ArrowExecutor
from indextables.errors import DuplicateKeyError, PredicateError
from indextables.log.wire.actions import Txn
from indextables.log.transaction_log import TransactionLog
from indextables.ops.shared.commit import SamePartitions
from indextables.ops.delete_overwrite import overwrite
from indextables.storage.open import open_store

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64()), ("p", pa.string())])


def rows(v, *ids, p="a"):
    return pa.table({"id": list(ids), "v": [v] * len(ids), "p": [p] * len(ids)}, SCHEMA)


def contents(table):
    found = [(row["id"], row["v"]) for row in table.scan().to_arrow().to_pylist()]
    assert len(found) == len(dict(found))
    return dict(found)


def new(path, mode="record", partitions=()):
    return it.Table.create(path, SCHEMA, record_key=["id"], merge_mode=mode, partition_by=partitions)


def blocks(table):
    return sorted((s.kind, s.block or "") for s in table.snapshot().splits())


@pytest.mark.parametrize("mode", ["record", "columns"])
def test_a_slice_goes_by_metadata_if_all_its_files_must_match(path, mode):
    """No data file is opened or written, and its logs go with it."""
    table = new(path, mode)
    table.upsert(rows(1, 1, 2, 3))
    table.upsert(rows(2, 2))
    table.upsert(rows(5, 11, 12))
    with it.query_stats() as stats:
        result = table.delete("id < 10")
    assert stats.data_files_opened == 0
    assert result.metrics["numAddedFiles"] == 0
    assert result.metrics["numRemovedFiles"] == 2
    assert contents(table) == {11: 5, 12: 5}
    table.delete("true")
    assert table.snapshot().num_files == 0


@pytest.mark.parametrize("mode", ["record", "columns"])
def test_a_log_that_must_match_does_not_go_alone(path, mode):
    """The base has older rows under the same keys: they would be back."""
    table = new(path, mode)
    table.upsert(rows(1, 1, 2, 3))
    table.upsert(rows(9, 1, 2))
    table.delete("v = 9")
    assert contents(table) == {3: 1}
    assert blocks(table) == [("base", ""), ("log", "data"), ("log", "delete")]


def test_a_row_that_is_replaced_is_judged_by_its_newest_version(path):
    """The base matches and the log has changed it; the log matches and the base does not."""
    table = new(path)
    table.upsert(rows(1, 1, 2, 3))
    table.upsert(rows(9, 1))
    assert not table.delete("v = 1 and id = 1").committed
    table.delete("v = 1")
    assert contents(table) == {1: 9}
    table.upsert(rows(1, 2))
    assert contents(table) == {1: 9, 2: 1}
    table.delete("v = 9")
    assert contents(table) == {2: 1}


def test_a_condition_on_combined_columns_is_true_of_the_combined_row_only(path):
    """v comes from one file and p from another."""
    table = new(path, "columns")
    table.upsert(rows(1, 1, 2))
    table.upsert(pa.table({"id": [1], "p": ["b"]}))
    table.upsert(pa.table({"id": [2], "v": [7]}))
    assert not table.delete("v = 7 and p = 'b'").committed
    table.delete("v = 1 and p = 'b'")
    assert contents(table) == {2: 7}
    table.upsert(pa.table({"id": [1], "v": [3]}))
    assert table.scan("id = 1").to_arrow().to_pylist() == [{"id": 1, "v": 3, "p": None}]


def test_a_base_without_logs_goes_when_all_its_rows_turn_out_to_match(path):
    """Statistics could not tell; having read it, there is nothing left to keep."""
    table = new(path)
    table.upsert(pa.table({"id": [1, 2], "v": [1, 9], "p": ["a", "a"]}, SCHEMA))
    result = table.delete("v = 1 or v = 9")
    assert result.metrics["numDeletedRows"] == 2
    assert table.snapshot().num_files == 0


def test_deleted_keys_may_come_again(path):
    """In a new group, and be deleted and replaced there."""
    table = new(path)
    for v in range(4):
        table.upsert(rows(v, 1, 2, 3))
        table.delete("id = 2")
        assert contents(table) == {1: v, 3: v}
    table.upsert(rows(9, 2))
    table.upsert(rows(10, 2))
    assert contents(table) == {1: 3, 2: 10, 3: 3}
    assert table.check(deep=True).problems == ()


def test_an_overwrite_replaces_what_the_condition_is_true_for_and_all_rows_with_its_keys(path):
    """A key outside of the condition is replaced as well: it could not be there twice."""
    table = new(path, partitions=["p"])
    table.upsert(pa.concat_tables([rows(1, 1, 2, 3), rows(1, 4, 5, 6, p="b")]))
    table.upsert(rows(2, 3))
    table.overwrite(rows(7, 2, 5), where="v >= 2 or p = 'a'")
    assert contents(table) == {2: 7, 4: 1, 5: 7, 6: 1}
    assert table.check(deep=True).problems == ()
    table.overwrite(rows(8, 2, 9))
    assert contents(table) == {2: 8, 9: 8}
    assert blocks(table) == [("base", "")]


def test_an_overwrite_is_refused_whole(path):
    """A row outside of the condition, a key that is repeated: nothing is written."""
    table = new(path)
    table.upsert(rows(1, 1, 2, 3))
    before = [meta.key for meta in open_store(path).list("")]
    with pytest.raises(PredicateError, match="row 1"):
        table.overwrite(rows(7, 2, 5), where="id = 2")
    with pytest.raises(DuplicateKeyError, match="id = 5"):
        table.overwrite(rows(7, 5, 5), where="id = 5")
    assert [meta.key for meta in open_store(path).list("")] == before


def test_partitions_are_overwritten_as_they_occur(path):
    """Those with new rows, and no others; an application's batch once."""
    table = new(path, partitions=["p"])
    table.upsert(pa.concat_tables([rows(1, 1, 2), rows(1, 4, 5, p="b"), rows(1, 7, p="c")]))
    store = open_store(path)
    log, executor = TransactionLog(store), ArrowExecutor(store)
    for _ in range(2):
        overwrite(
            log,
            executor,
            pa.concat_tables([rows(3, 1), rows(3, 7, p="b")]),
            SamePartitions(),
            txn=Txn("app", 1),
        )
    assert contents(table) == {1: 3, 7: 3}
    assert table.version == 2


def test_a_table_without_a_key_is_still_copied_on_write(path):
    """Nothing has changed for it."""
    table = it.Table.create(path, SCHEMA)
    table.append(rows(1, 1, 1, 2))
    table.delete("id = 2")
    assert [s.kind for s in table.snapshot().splits()] == [None]
    assert table.scan().count() == 2
