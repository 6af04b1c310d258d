"""A hundred thousand splits open as columns: no Python object for each of them."""

import gc
import sys
import zlib

import orjson
import pytest

from indextables.log.state import parse as bulk
from indextables.log.wire.actions import Add, CommitInfo
from indextables.log.wire.codec import encode_action
from indextables.log.wire.files import LogNames
from indextables.log.state.rows import Split
from indextables.log.transaction_log import TransactionLog
from support.logs import SCHEMA, add_of, foreign_metadata, fresh_store

SPLITS = 100_000


@pytest.fixture(scope="module")
def store():
    """One commit of 100,000 adds with statistics, about 45 MB."""
    store = fresh_store()
    line = encode_action(add_of(0), seq=0, schema=SCHEMA)
    lines = [
        line.replace(b"part-00000", b"part-%06d" % i).replace(b'"id":0', b'"id":%d' % i)
        for i in range(SPLITS)
    ]
    body = orjson.dumps(foreign_metadata()) + b"\n" + b"".join(lines)

    info = CommitInfo("WRITE", 1, "id", actions=SPLITS + 1, crc32=zlib.crc32(body), num_files=SPLITS)
    store.put(LogNames().commit(0), body + encode_action(info, seq=0, schema=SCHEMA))
    return store


class Count:
    """How many objects a block of code leaves behind and makes."""

    def __enter__(self):
        gc.collect()
        self.blocks = sys.getallocatedblocks()
        self.tracked = len(gc.get_objects())
        return self

    def __exit__(self, *_):
        gc.collect()
        self.blocks = sys.getallocatedblocks() - self.blocks
        self.tracked = len(gc.get_objects()) - self.tracked


def open_and_plan(store):
    snapshot = TransactionLog(store).snapshot()
    assert snapshot.num_files == SPLITS
    assert snapshot.total_bytes > 0
    snapshot.index().column(("id",))
    return snapshot


def test_opening_and_planning_100_000_splits_leaves_no_object_per_split(store):
    """Arrow's buffers hold them: the interpreter's own blocks hardly grow."""
    open_and_plan(store)  # imports and caches
    with Count() as count:
        snapshot = open_and_plan(store)
    assert snapshot.version == 0
    assert count.blocks < SPLITS / 20
    assert count.tracked < SPLITS / 100


def test_opening_100_000_splits_makes_no_object_per_split_not_even_for_a_moment(store, monkeypatch):
    """No line goes to the reader that makes Python objects, no Add and no Split is built."""
    made = []
    monkeypatch.setattr(bulk, "_one_by_one", lambda *_: made.append("line"))
    for kind in (Add, Split):
        original = kind.__init__

        def counting(self, *args, __original=original, **kwargs):
            made.append(type(self).__name__)
            __original(self, *args, **kwargs)

        monkeypatch.setattr(kind, "__init__", counting)
    events = [0]

    def count_calls(frame, event, arg):
        events[0] += 1

    sys.setprofile(count_calls)
    try:
        open_and_plan(store)
    finally:
        sys.setprofile(None)
    assert made == []
    assert events[0] < SPLITS / 4  # one call per split would be two events for each


def test_only_the_splits_a_plan_returns_become_objects(store):
    """Ten of a hundred thousand."""
    import numpy as np

    snapshot = open_and_plan(store)
    mask = np.zeros(SPLITS, bool)
    mask[:10] = True
    with Count() as count:
        splits = snapshot.splits(mask)
    assert len(splits) == 10
    assert count.blocks < SPLITS / 20


def test_the_counter_of_this_test_counts():
    """A hundred thousand dictionaries are seen."""
    with Count() as count:
        kept = [{"i": i} for i in range(SPLITS)]
    assert len(kept) == SPLITS
    assert count.blocks > SPLITS
