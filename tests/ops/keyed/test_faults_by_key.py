"""A store that fails at every call in turn, under writes by key: the old table or the new one, nothing between."""

from functools import cache
from uuid import uuid4

import pyarrow as pa
import pytest
from support.faults import CrashingStore, FaultyStore, SimulatedCrash

import indextables as it
from indextables.errors import IndexTablesError
from indextables.storage.open import open_store

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("p", pa.string())])


def rows(v, *ids, p="a"):
    return pa.table({"id": list(ids), "v": [v] * len(ids), "p": [p] * len(ids)}, SCHEMA)


@cache
def _model():
    uri = f"memory://{uuid4()}"
    table = it.Table.create(
        uri,
        SCHEMA,
        record_key=["id"],
        merge_mode="columns",
        partition_by=["p"],
        properties={"spark.indextables.checkpoint.interval": 4},
    )
    table.upsert(rows("old", 1, 2, 3))
    table.upsert(rows("log", 2))
    table.delete("id = 3")
    store = open_store(uri)
    return {meta.key: store.get(meta.key) for meta in store.list("")}


def seeded():
    """A copy of a table with a slice, whose next commit also writes a checkpoint."""
    uri = f"memory://{uuid4()}"
    store = open_store(uri)
    for key, data in _model().items():
        store.put(key, data)
    return uri


BEFORE = {1: ("old", "a"), 2: ("log", "a")}
VERBS = {
    "upsert": (
        lambda t: t.upsert(pa.concat_tables([rows("new", 2), rows("new", 1, 9, p="b")])),
        {1: ("new", "b"), 2: ("new", "a"), 9: ("new", "b")},
    ),
    "set a column and move": (
        lambda t: t.upsert(pa.table({"id": [1, 2], "p": ["b", "a"]})),
        {1: ("old", "b"), 2: ("log", "a")},
    ),
    "delete rows": (lambda t: t.delete("v = 'log'"), {1: ("old", "a")}),
    "delete a slice": (lambda t: t.delete("p = 'a'"), {}),
    "overwrite": (
        lambda t: t.overwrite(rows("over", 2, 3), where="v <> 'old'"),
        {1: ("old", "a"), 2: ("over", "a"), 3: ("over", "a")},
    ),
}


def contents(uri):
    found = it.Table(uri).scan().to_arrow().to_pylist()
    assert len(found) == len({row["id"] for row in found})
    return {row["id"]: (row["v"], row["p"]) for row in found}


def number_of_calls(verb):
    store = FaultyStore(open_store(seeded()))
    verb(it.Table(store))
    return len(store.calls)


def check_faults(name, kind, when):
    verb, after = VERBS[name]
    for number in range(number_of_calls(verb)):
        uri = seeded()
        store = kind(open_store(uri), fail_at=number, when=when)
        succeeded = False
        try:
            verb(it.Table(store))
            succeeded = True
        except (IndexTablesError, SimulatedCrash):
            pass
        assert store.failed
        found, call = contents(uri), (number, store.calls[number])
        assert found in ([after] if succeeded else [BEFORE, after]), call
        table = it.Table(uri)
        table.upsert(rows("again", 1, 3))
        assert contents(uri) == {**found, 1: ("again", "a"), 3: ("again", "a")}, call
        assert table.check().problems == (), call


CASES = [
    (name, kind, when)
    for name in VERBS
    for kind in (FaultyStore, CrashingStore)
    for when in ("before", "after")
]
QUICK = [("upsert", FaultyStore, "before"), ("overwrite", FaultyStore, "after"), ("delete rows", CrashingStore, "after")]  # fmt: skip


@pytest.mark.parametrize(("name", "kind", "when"), QUICK, ids=lambda x: getattr(x, "__name__", x))
def test_a_fault_at_any_call_leaves_the_old_table_or_the_new_one(name, kind, when):
    """Files of a write that failed are seen by nobody, and stand in nobody's way."""
    check_faults(name, kind, when)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind", "when"), CASES, ids=lambda x: getattr(x, "__name__", x))
def test_every_fault_at_any_call(name, kind, when):
    """The same for all verbs, errors and crashes."""
    check_faults(name, kind, when)


def test_a_write_that_fails_before_its_commit_removes_what_it_wrote():
    """The last file cannot be written; the ones before it are of no use to anybody."""
    uri = seeded()
    before = {meta.key for meta in open_store(uri).list("")}
    store = FaultyStore(open_store(uri), only=["put"])
    VERBS["upsert"][0](it.Table(store))
    uploads = len([call for call in store.calls if call[1].startswith("data/")])
    assert uploads == 3
    for number in range(uploads):
        uri = seeded()
        store = FaultyStore(open_store(uri), fail_at=number, only=["put"])
        with pytest.raises(IndexTablesError, match="injected"):
            VERBS["upsert"][0](it.Table(store))
        assert {meta.key for meta in open_store(uri).list("")} == before
