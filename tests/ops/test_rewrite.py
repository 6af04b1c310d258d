"""Delete and overwrite: exactly the rows the condition is TRUE for, and as little work as possible."""

import datetime as dt
import math
from uuid import uuid4

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import PredicateError, SchemaMismatchError, StorageError
from indextables.storage.open import open_store
from support.faults import FaultyStore

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string()), ("x", pa.float64())])


@pytest.fixture
def uri():
    return f"memory://{uuid4()}"


def rows(ids, v="a", x=0.0):
    ids = list(ids)
    return pa.table({"id": ids, "v": [v] * len(ids), "x": [x] * len(ids)}, SCHEMA)


def table_of(uri, *parts):
    table = it.Table.create(uri, SCHEMA)
    for part in parts:
        table.append(part)
    return table


def ids(table):
    return table.scan(columns=["id"]).to_arrow().column("id").to_pylist()


def test_a_split_that_must_match_is_dropped_without_being_opened(uri):
    """Its statistics prove that every row satisfies the condition."""
    table = table_of(uri, rows(range(10)), rows(range(10, 20)))
    paths = {split.path for split in table.snapshot().splits()}
    result = table.delete("id < 10")
    assert result.metrics["numRewrittenFiles"] == 0
    assert result.metrics["numDeletedRows"] == 10
    assert {split.path for split in table.snapshot().splits()} < paths
    assert ids(table) == list(range(10, 20))


def test_a_split_that_matches_in_part_is_rewritten_and_keeps_its_place(uri):
    """Rows keep their order: the new file has the age of the rows it holds."""
    table = table_of(uri, rows(range(10)), rows(range(10, 20)))
    result = table.delete("id in (3, 4)")
    assert (result.metrics["numRewrittenFiles"], result.metrics["numCopiedRows"]) == (1, 8)
    assert ids(table) == [0, 1, 2, 5, 6, 7, 8, 9, *range(10, 20)]
    assert [split.seq for split in table.snapshot().splits()] == [1, 2]


def test_a_split_that_only_might_match_stays_untouched(uri):
    """5 lies between the bounds, but no row has it."""
    table = table_of(uri, rows([1, 9]))
    before = table.snapshot().splits()
    result = table.delete("id = 5")
    assert not result.committed
    assert (table.version, table.snapshot().splits()) == (1, before)


def test_rows_for_which_the_condition_is_null_stay(uri):
    """NULL is not TRUE, in whichever way the split is handled."""
    data = pa.table({"id": [1, None, 3], "v": ["a", "b", None], "x": [1.0, math.nan, None]}, SCHEMA)
    table = table_of(uri, data)
    table.delete("id <> 1")
    assert ids(table) == [1, None]
    table.delete("not (v = 'a')")
    assert ids(table) == [1]


def test_nan_is_greater_than_every_number(uri):
    """Spark's rule: it goes with x > 5 and stays with x < 5."""
    table = table_of(uri, rows([1], x=math.nan), rows([2], x=1.0), rows([3], x=9.0))
    table.delete("x > 5")
    assert ids(table) == [2]


def test_everything_can_be_deleted_but_not_by_accident(uri):
    """A missing condition is an error; TRUE means it."""
    table = table_of(uri, rows([1]), rows([None]))
    with pytest.raises(PredicateError, match=r'delete\("true"\)'):
        table.delete(None)
    assert table.delete("true").metrics["numRemovedFiles"] == 2
    assert table.snapshot().num_files == 0


def test_overwriting_without_a_condition_replaces_all(uri):
    """One commit: no reader ever sees an empty table."""
    table = table_of(uri, rows(range(10)), rows(range(10)))
    result = table.overwrite(rows([7]))
    assert (result.version, ids(table)) == (3, [7])
    assert table.scan(version=2).count() == 20


def test_overwriting_with_no_rows_empties_the_part(uri):
    """The same as deleting it."""
    table = table_of(uri, rows(range(10)))
    table.overwrite(rows([]), where="id >= 5")
    assert ids(table) == [0, 1, 2, 3, 4]


def test_overwriting_a_part_leaves_the_rest(uri):
    """Split dropped, split rewritten, split untouched: each in one commit."""
    table = table_of(uri, rows(range(10)), rows(range(10, 20)), rows(range(20, 30)))
    result = table.overwrite(rows([5, 12], v="new"), where="id < 15")
    assert result.metrics["numRewrittenFiles"] == 1
    assert sorted(ids(table)) == [5, 12, *range(15, 30)]


@pytest.mark.parametrize("row", [rows([50]), rows([None])], ids=["outside", "NULL"])
def test_rows_outside_the_condition_are_refused_and_nothing_stays(uri, row):
    """Else the next overwrite of the same part would not find them."""
    table = table_of(uri, rows(range(10)))
    before = [meta.key for meta in open_store(uri).list("")]
    with pytest.raises(PredicateError, match="row 1 of the data"):
        table.overwrite(pa.concat_tables([rows([5]), row]), where="id < 10")
    assert [meta.key for meta in open_store(uri).list("")] == before


def test_a_condition_rows_cannot_be_told_apart_by_is_refused_up_front(uri):
    """Nothing is written, nothing deleted."""
    table = table_of(uri, rows(range(10)))
    for action in (
        lambda: table.delete("rand() < 0.5"),
        lambda: table.overwrite(rows([]), where="rand() < 1"),
    ):
        with pytest.raises(PredicateError, match="rand"):
            action()
    assert table.version == 1


def test_partitions_are_dropped_by_their_value_alone(uri):
    """A partition value is exact, so whole partitions always must match or cannot."""
    schema = pa.schema([("day", pa.date32()), ("v", pa.int64())])
    table = it.Table.create(uri, schema, partition_by=["day"])
    days = [dt.date(2024, 1, d) for d in (1, 2, 3)]
    table.append(pa.table({"day": days * 2, "v": range(6)}, schema))
    result = table.overwrite(
        pa.table({"day": [days[1]], "v": [100]}, schema), where="day = date'2024-01-02'"
    )
    assert result.metrics["numRewrittenFiles"] == 0
    assert sorted(table.scan().to_arrow().column("v").to_pylist()) == [0, 2, 3, 5, 100]
    assert table.delete("day is null").committed is False


def test_data_that_does_not_fit_changes_nothing(uri):
    """The check comes before the first byte is written."""
    table = table_of(uri, rows(range(10)))
    with pytest.raises(SchemaMismatchError):
        table.overwrite(pa.table({"id": ["x"]}))
    assert (table.version, len(list(open_store(uri).list("data/")))) == (1, 1)


def test_a_read_that_fails_while_rewriting_leaves_no_new_file(uri):
    """No commit was attempted, so what was written for it goes away again."""
    table = table_of(uri, rows(range(10)), rows(range(10)))
    before = {meta.key for meta in open_store(uri).list("data/")}
    recorded = FaultyStore(open_store(uri), only=["get_range"])
    it.Table(recorded).plan().scan().to_arrow()
    reads = len(recorded.calls)
    for number in range(reads):
        failing = FaultyStore(open_store(uri), fail_at=number, only=["get_range"])
        with pytest.raises(StorageError):
            it.Table(failing).overwrite(rows([3]), where="id = 3")
        assert {meta.key for meta in open_store(uri).list("data/")} == before
    assert table.version == 2


def test_a_wider_overwrite_brings_its_columns(uri):
    """merge_schema works for overwrite as it does for append."""
    table = table_of(uri, rows([1, 2]))
    table.overwrite(pa.table({"id": [2], "new": ["n"]}), where="id = 2", merge_schema=True)
    assert table.scan(columns=["id", "new"]).to_arrow().to_pylist() == [
        {"id": 1, "new": None},
        {"id": 2, "new": "n"},
    ]


def test_history_shows_the_condition_and_the_numbers(uri):
    """Whoever wonders where rows went finds out."""
    table = table_of(uri, rows(range(10)))
    table.delete("id >= 8 and v = 'a'")
    entry = table.history(1)[0]
    assert entry.operation == "DELETE"
    assert entry.parameters == {"predicate": "id >= 8 AND v = 'a'"}
    assert entry.metrics["numDeletedRows"] == 2


@pytest.mark.parametrize("key", [[], ["id"]])
def test_an_overwrite_of_the_empty_partition_does_not_double_its_rows(uri, key):
    """'' is NULL as a partition value, so it is the rows with NULL that such data replaces."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("p", pa.string())])
    table = it.Table.create(uri, schema, partition_by=["p"], record_key=key)
    empty = pa.table({"id": [1], "p": [""]}, schema)
    with pytest.raises(PredicateError, match="'p': None"):
        table.overwrite(empty, where="p = ''")
    for _ in range(2):
        table.overwrite(empty, where="p is null")
        assert table.scan().to_arrow().to_pylist() == [{"id": 1, "p": None}]
