"""Three writers, where what the second relied on is older than what the third did."""

import threading
from uuid import uuid4

import pyarrow as pa
import pytest
from support.interleave import InterleavedStore

from indextables.storage.open import open_store
from indextables.table.table import Table

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("w", pa.string())])


class PausedStore:
    """A store whose second commit waits: its writer has seen a winner, judged it, and goes on."""

    def __init__(self, inner, meanwhile):
        self._inner = inner
        self._meanwhile = meanwhile
        self._puts = 0
        self.waits = threading.Event()
        self.may_go = threading.Event()

    def put_if_absent(self, key, data):
        if key.startswith("_transaction_log/"):
            self._puts += 1
            if self._puts == 1:
                self._meanwhile()
            elif self._puts == 2:
                self.waits.set()
                assert self.may_go.wait(60)
        self._inner.put_if_absent(key, data)

    def __getattr__(self, name):
        return getattr(self._inner, name)


def rows(v, *ids):
    return pa.table({"id": list(ids), "v": [v] * len(ids), "w": ["w"] * len(ids)}, SCHEMA)


def contents(path):
    found = Table(path).scan().to_arrow().to_pylist()
    return sorted((row["id"], row["v"], row["w"]) for row in found)


@pytest.mark.parametrize(
    ("mine", "expected"),
    [
        (lambda t: t.upsert(rows("mine", 1)), [(1, "mine", "w"), (2, "old", "w")]),
        (lambda t: t.upsert(rows("mine", 1, 2)), [(1, "mine", "w"), (2, "mine", "w")]),
        (lambda t: t.overwrite(rows("mine", 1), where="id = 1 or v = 'mine'"), [(1, "mine", "w"), (2, "old", "w")]),
        (lambda t: t.append(rows("mine", 1, 3)), [(1, "mine", "w"), (2, "old", "w"), (3, "mine", "w")]),
    ],
    ids=["upsert", "upsert into the same group too", "overwrite", "append"],
)  # fmt: skip
def test_a_key_that_was_gone_for_one_writer_and_there_for_another_is_there_once(mine, expected):
    """The first saw key 1 and replaces it, though it was deleted since; I saw it deleted and insert it."""
    path = f"memory://{uuid4()}"
    Table.create(path, SCHEMA, record_key=["id"]).upsert(rows("old", 1, 2))
    slow = PausedStore(open_store(path), lambda: Table(path).delete("id = 1"))
    first = threading.Thread(target=lambda: Table(slow).upsert(rows("first", 1)))
    first.start()
    assert slow.waits.wait(60)
    assert contents(path) == [(2, "old", "w")]

    def let_it_commit():
        slow.may_go.set()
        first.join(60)
        assert (1, "first", "w") in contents(path)

    store = InterleavedStore(open_store(path), let_it_commit)
    mine(Table(store))
    assert store.happened
    assert contents(path) == expected
    assert Table(path).check(deep=True).problems == ()


def test_columns_set_for_a_row_that_was_deleted_and_inserted_again_are_of_the_new_row():
    """Two winners at once: the row whose columns are set is gone, and another with its key is there."""
    path = f"memory://{uuid4()}"
    Table.create(path, SCHEMA, record_key=["id"], merge_mode="columns").upsert(rows("old", 1, 2))

    def meanwhile():
        Table(path).delete("id = 1")
        Table(path).upsert(pa.table({"id": [1], "w": ["new"]}))

    store = InterleavedStore(open_store(path), meanwhile)
    Table(store).upsert(pa.table({"id": [1], "v": ["mine"]}))
    assert store.happened
    assert contents(path) == [(1, "mine", "new"), (2, "old", "w")]


def test_rows_that_two_writers_move_to_different_partitions_are_in_the_last_one():
    """Each of them moved the row out of a group the other one knows."""
    path = f"memory://{uuid4()}"
    Table.create(path, SCHEMA, record_key=["id"], partition_by=["w"]).upsert(rows("old", 1, 2))

    def moved(w):
        return pa.table({"id": [1], "v": ["moved"], "w": [w]}, SCHEMA)

    store = InterleavedStore(open_store(path), lambda: Table(path).upsert(moved("theirs")))
    Table(store).upsert(moved("mine"))
    assert contents(path) == [(1, "moved", "mine"), (2, "old", "w")]
    store = InterleavedStore(open_store(path), lambda: Table(path).upsert(moved("back")))
    Table(store).upsert(rows("again", 1))
    assert contents(path) == [(1, "again", "w"), (2, "old", "w")]
