"""A store that fails at every call in turn, before and after its effect: no half commit, no double one."""

from functools import cache
from uuid import uuid4

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import IndexTablesError
from indextables.storage.open import open_store
from support.faults import CrashingStore, FaultyStore, SimulatedCrash

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])
PROPERTIES = {"spark.indextables.checkpoint.interval": 2}


def rows(*ids, p="a"):
    return pa.table({"id": list(ids), "p": [p] * len(ids)}, SCHEMA)


@cache
def _model():
    uri = f"memory://{uuid4()}"
    table = it.Table.create(uri, SCHEMA, partition_by=["p"], properties=PROPERTIES)
    table.append(rows(1, 2, 3))
    store = open_store(uri)
    return {meta.key: store.get(meta.key) for meta in store.list("")}


def seeded():
    """A copy of a table whose next commit also writes a checkpoint."""
    uri = f"memory://{uuid4()}"
    store = open_store(uri)
    for key, data in _model().items():
        store.put(key, data)
    return uri


VERBS = {
    "append": (lambda t: t.append(rows(10, 11)), [1, 2, 3, 10, 11]),
    "append to two partitions": (
        lambda t: t.append(pa.concat_tables([rows(10), rows(11, p="b")])),
        [1, 2, 3, 10, 11],
    ),
    "overwrite": (lambda t: t.overwrite(rows(10)), [10]),
    "overwrite a part": (lambda t: t.overwrite(rows(2), where="id = 2"), [1, 2, 3]),
    "delete a part": (lambda t: t.delete("id = 2"), [1, 3]),
    "analyze": (lambda t: t.analyze(rebuild=True), [1, 2, 3]),
    "evolve": (lambda t: t.evolve(pa.schema([*SCHEMA, ("n", pa.int8())])), [1, 2, 3]),
    "vacuum": (
        lambda t: t.vacuum(
            apply=True,
            allow_short_retention=True,
            options={"spark.indextables.vacuum.retention": "0 seconds"},
        ),
        [1, 2, 3],
    ),
}
BEFORE = [1, 2, 3]


def contents(uri):
    return sorted(it.Table(uri).scan(columns=["id"]).to_arrow().column("id").to_pylist())


def number_of_calls(verb):
    store = FaultyStore(open_store(seeded()))
    verb(it.Table(store))
    return len(store.calls)


FAULTS = [(name, FaultyStore) for name in VERBS]
CRASHES = [(name, CrashingStore) for name in ("append", "overwrite a part", "vacuum")]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("name", "kind"), FAULTS + CRASHES, ids=lambda x: getattr(x, "__name__", x))
def test_a_fault_at_any_call_leaves_the_old_table_or_the_new_one(name, when, kind):
    """It opens, is sound down to the rows, holds the change once or not at all, and can be written again."""
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
        found = contents(uri)
        assert found in ([after] if succeeded else [BEFORE, after]), (number, store.calls[number])
        table = it.Table(uri)
        assert table.check(deep=True).problems == (), (number, store.calls[number])
        assert table.version <= 2
        table.append(rows(99), merge_schema=True)
        assert contents(uri) == [*found, 99]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_fault_while_a_table_is_created_leaves_a_table_or_none(when):
    """Never something that is neither."""
    recorded = FaultyStore(open_store(f"memory://{uuid4()}"))
    it.Table.create(recorded, SCHEMA)
    for number in range(len(recorded.calls)):
        uri = f"memory://{uuid4()}"
        store = FaultyStore(open_store(uri), fail_at=number, when=when)
        with pytest.raises(IndexTablesError):
            it.Table.create(store, SCHEMA)
            raise IndexTablesError("the fault was survived")
        try:
            table = it.Table(uri)
        except it.errors.TableNotFoundError:
            table = it.Table.create(uri, SCHEMA)
        assert table.version == 0
        assert table.check().ok


@pytest.mark.parametrize("when", ["before", "after"])
def test_reading_through_a_fault_is_an_error_never_a_wrong_answer(when):
    """Or the right answer, where the fault could be worked around."""
    uri = seeded()
    recorded = FaultyStore(open_store(uri))
    expected = it.Table(recorded).scan("id > 1").to_arrow()
    for number in range(len(recorded.calls)):
        store = FaultyStore(open_store(uri), fail_at=number, when=when)
        try:
            found = it.Table(store).scan("id > 1").to_arrow()
        except IndexTablesError:
            continue
        assert found.equals(expected)
