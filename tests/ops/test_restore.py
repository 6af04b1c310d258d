"""Going back: a version restored whole, one commit undone, and nothing lost or doubled on the way."""

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

from indextables.parquet.write.executor import ArrowExecutor
from indextables.errors import (
    CommitConflictError,
    ConfigError,
    IndexTablesError,
    ObjectNotFoundError,
    SchemaEvolutionError,
    VersionNotFoundError,
)
from indextables.log.wire.actions import Remove
from indextables.log.commit.intent import CommitPlan, Rewrite
from indextables.log.transaction_log import TransactionLog
from indextables.ops.append import append
from indextables.ops.create import as_schema, create, new_metadata
from indextables.ops.replace import replace_table
from indextables.ops.restore import restore
from indextables.ops.vacuum import vacuum
from indextables.storage.open import open_store
from indextables.table.table import Table
from support.clocks import DAY, Machines
from support.faults import CrashingStore, FaultyStore, SimulatedCrash
from support.interleave import InterleavedStore

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
AT_ONCE = {"spark.indextables.vacuum.retention": "0 seconds"}


def rows(*ids, v="x"):
    return pa.table({"id": list(ids), "v": [v] * len(ids)}, SCHEMA)


@pytest.fixture
def uri():
    return f"memory://{uuid4()}"


@pytest.fixture
def table(uri):
    """Version 1: ids 1-3. Version 2: and 4-6. Version 3: without 2. Version 4: and 7."""
    found = Table.create(uri, SCHEMA)
    found.append(rows(1, 2, 3))
    found.append(rows(4, 5, 6))
    found.delete("id = 2")
    found.append(rows(7))
    return found


def ids(table, **options):
    return sorted(table.scan(columns=["id"], **options).to_arrow().column("id").to_pylist())


def entries(table, version=None):
    """Everything the log says of each file, but whether rows changed with it."""
    found = table.snapshot(version).splits()
    return {split.path: replace(split.to_add(), data_change=True) for split in found}


# -- restore ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(5))
def test_a_restored_version_is_exactly_what_it_was(table, version):
    """The same files with the same entries: number, statistics, tags and all."""
    expected = entries(table, version), ids(table, version=version)
    done = table.restore(version)
    assert (entries(table), ids(table)) == expected
    assert done.committed is (version != 4)
    assert done.version == table.version == (4 if version == 4 else 5)
    assert table.check(deep=True).problems == ()


def test_a_restore_is_a_commit_like_any_other(table):
    """History shows it, older versions stay readable, and it can be restored away itself."""
    table.restore(version=1)
    assert table.history(1)[0].operation == "RESTORE"
    assert table.history(1)[0].parameters == {"version": 1}
    assert table.history(1)[0].metrics["numRestoredFiles"] == 1
    assert ids(table, version=4) == [1, 3, 4, 5, 6, 7]
    table.restore(4)
    assert ids(table) == [1, 3, 4, 5, 6, 7]


def test_what_is_written_after_a_restore_is_newer_than_every_file(table):
    """Files that came back keep their numbers, and later ones go on above them."""
    table.restore(2)
    table.append(rows(8))
    numbers = {split.path: split.seq for split in table.snapshot().splits()}
    assert sorted(numbers.values()) == [1, 2, 6]


def test_a_moment_can_be_restored(table):
    """By the commits' own clock, as when reading."""
    stamp = table.history()[-3].timestamp_ms  # version 2
    table.restore(timestamp=stamp)
    assert ids(table) == [1, 2, 3, 4, 5, 6]
    at = datetime.fromtimestamp(table.history()[-2].timestamp_ms / 1000, UTC)
    table.restore(timestamp=at.isoformat())
    assert ids(table) == [1, 2, 3]


@pytest.mark.parametrize("arguments", [{}, {"version": 1, "timestamp": 1}])
def test_one_of_version_and_moment_is_needed(table, arguments):
    """Neither and both say nothing."""
    with pytest.raises(ConfigError):
        table.restore(**arguments)


def test_a_version_that_never_was_cannot_be_restored(table):
    """It is not guessed."""
    with pytest.raises(VersionNotFoundError):
        table.restore(9)


def test_a_schema_that_has_grown_stays(uri):
    """Rows of that time have NULL in newer columns, and wider types; statistics still skip."""
    table = Table.create(uri, pa.schema([("id", pa.int32()), ("d", pa.date32()), ("n", pa.int32())]))
    old = {"id": [1, 2], "d": [date(2024, 1, 1), date(2024, 1, 2)], "n": [10, 20]}
    table.append(pa.table(old, pa.schema([("id", pa.int32()), ("d", pa.date32()), ("n", pa.int32())])))
    wide = pa.schema(
        [("id", pa.int64()), ("d", pa.timestamp("us")), ("n", pa.float64()), ("more", pa.string())]
    )
    table.evolve(wide)
    table.overwrite(pa.table({"id": [9], "d": [datetime(2030, 1, 1)], "n": [0.5], "more": ["m"]}, wide))
    metadata = table.snapshot().metadata
    table.restore(1)
    assert table.snapshot().metadata == metadata
    assert table.scan().to_arrow().to_pylist() == [
        {"id": 1, "d": datetime(2024, 1, 1), "n": 10.0, "more": None},
        {"id": 2, "d": datetime(2024, 1, 2), "n": 20.0, "more": None},
    ]
    for nothing in ("id > 2", "d > timestamp'2024-01-02 00:00:00'", "n < 10", "more is not null"):
        assert table.plan(nothing).files == [], nothing
    assert table.scan("d = date'2024-01-02' and n = 20").count() == 1
    assert table.check(deep=True).problems == ()


def test_a_table_that_was_replaced_gets_its_old_columns_back(uri):
    """Other columns, partitions and rows: all of that version, and it can be changed again."""
    table = Table.create(uri, SCHEMA, partition_by=["v"])
    table.append(rows(1, 2))
    store = open_store(uri)
    other = new_metadata(as_schema(pa.schema([("x", pa.date32())])))
    replace_table(
        TransactionLog(store), ArrowExecutor(store), pa.table({"x": [date(2024, 1, 1)]}), other
    )
    assert table.schema.names == ("x",)
    table.restore(1)
    assert table.schema.names == ("id", "v")
    assert table.snapshot().partition_columns == ("v",)
    assert ids(table) == [1, 2]
    table.evolve(pa.schema([*SCHEMA, ("new", pa.int64())]))
    past = table.snapshot().metadata
    assert past.schema_id not in past.past_schemas
    table.restore(2)
    assert table.scan().to_arrow().to_pylist() == [{"x": date(2024, 1, 1)}]
    assert table.check(deep=True).problems == ()


def test_a_file_that_is_live_in_both_keeps_what_was_learnt_of_it(table):
    """Statistics of the same rows stay true, so they are not forgotten."""
    table.drop_statistics(["v"])
    bare = table.version
    table.analyze(["v"])
    table.append(rows(8))
    table.restore(bare)
    assert {info.column: info.missing for info in table.statistics_info()}[("v",)] == 0


# -- restore and vacuum ----------------------------------------------------------------------------


def test_files_that_a_vacuum_took_are_named(table):
    """Nothing is committed then, and versions whose files are all there can still be restored."""
    (gone,) = set(entries(table, 1)) - set(entries(table))
    table.vacuum(apply=True, allow_short_retention=True, options=AT_ONCE)
    for version in (1, 2):
        with pytest.raises(ObjectNotFoundError, match="vacuum") as error:
            table.restore(version)
        assert error.value.files == (gone,)
    assert table.version == 5
    table.delete("id = 7")
    table.restore(5)
    assert ids(table) == [1, 3, 4, 5, 6, 7]


def test_a_file_that_somebody_deleted_is_named(tmp_path):
    """Without a vacuum that says so, the store is asked."""
    table = Table.create(tmp_path / "t", SCHEMA)
    table.append(rows(1))
    (gone,) = entries(table)
    table.delete("true")
    (Path(table.uri) / gone).unlink()
    with pytest.raises(ObjectNotFoundError, match="not in the store") as error:
        table.restore(1)
    assert error.value.files == (gone,)
    assert table.version == 2


def test_a_version_below_a_vacuums_mark_comes_back_if_its_files_do(table):
    """Version 3 is older than the mark, but the version of the mark had all of its files."""
    table.vacuum(apply=True, allow_short_retention=True, options=AT_ONCE)
    table.delete("id > 3")
    table.restore(3)
    assert ids(table) == [1, 3, 4, 5, 6]
    table.vacuum(apply=True, allow_short_retention=True, options=AT_ONCE)
    assert ids(table) == [1, 3, 4, 5, 6]
    assert table.check(deep=True).problems == ()


def test_a_vacuum_at_work_never_takes_a_file_that_comes_back(table, uri):
    """The mark stands before anything is deleted: a restore that comes after it refuses."""
    restored = []

    class Between:
        """A store in which somebody restores version 1 right before the first file is deleted."""

        def __init__(self, inner):
            self._inner = inner

        def delete(self, key):
            if not restored:
                restored.append(key)
                with pytest.raises(ObjectNotFoundError, match="vacuum"):
                    Table(uri).restore(1)
            self._inner.delete(key)

        def __getattr__(self, name):
            return getattr(self._inner, name)

    Table(Between(open_store(uri))).vacuum(apply=True, allow_short_retention=True, options=AT_ONCE)
    assert restored
    assert ids(table) == [1, 3, 4, 5, 6, 7]
    assert table.check(deep=True).problems == ()


def test_a_restore_that_loses_against_a_vacuum_looks_again(table, uri):
    """It was planned while the file was safe; the mark in between makes it plan anew, and refuse."""
    with pytest.raises(ObjectNotFoundError, match="vacuum"):
        _race(
            uri,
            lambda t: t.restore(1),
            lambda t: t.vacuum(apply=True, allow_short_retention=True, options=AT_ONCE),
        )
    assert ids(table) == [1, 3, 4, 5, 6, 7]


def test_vacuum_keeps_every_file_of_the_oldest_version_it_promises():
    """Also if the clock of the writer that removed it was behind."""
    machines = Machines(1_700_000_000_000, has_own_clock=True)
    executor = ArrowExecutor(machines.store)
    create(machines.log(), new_metadata(as_schema(SCHEMA)))
    for number in (1, 2):
        append(machines.log(), executor, rows(number))
    kept = machines.log().snapshot().splits()[0].path
    machines.time.now += 8 * DAY
    stale = CommitPlan(Rewrite(), "DELETE", (Remove(kept, 1),))
    machines.log(-30 * DAY).commit(stale)
    plan = vacuum(machines.log(), apply=True)
    assert (plan.min_read_version, plan.files) == (2, ())
    restore(machines.log(), machines.log().snapshot(2))
    assert ids(Table(machines.store)) == [1, 2]


# -- restore and other writers ---------------------------------------------------------------------


def _race(uri, mine, theirs):
    """Runs `mine` on one handle; `theirs` commits through another one just before it does."""
    store = InterleavedStore(open_store(uri), lambda: theirs(Table(uri)))
    try:
        return mine(Table(store))
    finally:
        assert store.happened


WINNERS = {
    "append": lambda t: t.append(rows(50)),
    "delete": lambda t: t.delete("id = 5"),
    "delete what stays": lambda t: t.delete("id > 3"),
    "overwrite": lambda t: t.overwrite(rows(60)),
    "optimize": lambda t: t.optimize(),
    "analyze": lambda t: t.analyze(rebuild=True),
    "evolve": lambda t: t.evolve(pa.schema([*SCHEMA, ("more", pa.int8())])),
    "restore": lambda t: t.restore(1),
    "checkpoint": lambda t: (t.checkpoint(), t.append(rows(70))),
}


@pytest.mark.parametrize("winner", WINNERS)
def test_a_restore_that_loses_is_still_exactly_that_version(table, uri, winner):
    """Whatever the other writer did: its rows are in the history, and the table is the old one."""
    expected = set(entries(table, 2))
    _race(uri, lambda t: t.restore(2), WINNERS[winner])
    assert set(entries(table)) == expected
    assert ids(table) == [1, 2, 3, 4, 5, 6]
    assert table.check(deep=True).problems == ()


def test_a_restore_to_where_the_winner_has_gone_has_nothing_left_to_do(table, uri):
    """Two that want the same get it once."""
    done = _race(uri, lambda t: t.restore(1), lambda t: t.restore(1))
    assert (done.committed, table.version) == (False, 5)


LOSERS = {
    "append": (lambda t: t.append(rows(50)), [1, 2, 3, 50]),
    "delete": (lambda t: t.delete("id in (2, 5)"), [1, 3]),
    "overwrite a part": (lambda t: t.overwrite(rows(2), where="id < 3"), [2, 3]),
    "overwrite": (lambda t: t.overwrite(rows(60)), [60]),
    "optimize": (lambda t: t.optimize(), [1, 2, 3]),
    "analyze": (lambda t: t.analyze(rebuild=True), [1, 2, 3]),
    "evolve": (lambda t: t.evolve(pa.schema([*SCHEMA, ("more", pa.int8())])), [1, 2, 3]),
}


@pytest.mark.parametrize("loser", LOSERS)
def test_who_loses_against_a_restore_ends_up_as_if_it_had_come_second(table, uri, loser):
    """Rows that came back are looked at, and files that are gone are not written over."""
    run, expected = LOSERS[loser]
    _race(uri, run, lambda t: t.restore(1))
    assert ids(table) == expected
    assert table.check(deep=True).problems == ()


@pytest.mark.parametrize("kind", [FaultyStore, CrashingStore])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("verb", "after"),
    [(lambda t: t.restore(1), [1, 2, 3]), (lambda t: t.rollback(3), [1, 2, 3, 4, 5, 6, 7])],
    ids=["restore", "rollback"],
)
def test_a_fault_at_any_call_leaves_the_old_table_or_the_new_one(uri, verb, after, when, kind):
    """Once or not at all, and sound in any case."""
    _, objects = _seeded()
    recorded = FaultyStore(_copy(objects))
    verb(Table(recorded))
    for number in range(len(recorded.calls)):
        inner = _copy(objects)
        store = kind(inner, fail_at=number, when=when)
        succeeded = False
        try:
            verb(Table(store))
            succeeded = True
        except (IndexTablesError, SimulatedCrash):
            pass
        assert store.failed
        found = Table(inner)
        assert ids(found) in ([after] if succeeded else [[1, 3, 4, 5, 6, 7], after])
        assert found.check(deep=True).problems == ()


def _seeded():
    uri = f"memory://{uuid4()}"
    found = Table.create(uri, SCHEMA)
    found.append(rows(1, 2, 3))
    found.append(rows(4, 5, 6))
    found.delete("id = 2")
    found.append(rows(7))
    store = open_store(uri)
    return found, {meta.key: store.get(meta.key) for meta in store.list("")}


def _copy(objects):
    store = open_store(f"memory://{uuid4()}")
    for key, data in objects.items():
        store.put(key, data)
    return store


# -- rollback --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "expected"),
    [(2, [1, 3, 7]), (3, [1, 2, 3, 4, 5, 6, 7]), (4, [1, 3, 4, 5, 6])],
)
def test_one_commit_is_undone_and_later_ones_stay(table, version, expected):
    """An append loses its rows, a delete gives them back; everything else is as it was."""
    table.rollback(version)
    assert ids(table) == expected
    assert table.history(1)[0].operation == "ROLLBACK"
    assert table.history(1)[0].parameters["version"] == version
    assert table.check(deep=True).problems == ()


def test_a_commit_that_a_later_one_builds_on_is_not_undone(table):
    """The error says which one, and what to do."""
    with pytest.raises(CommitConflictError, match="version 3 \\(DELETE\\)") as error:
        table.rollback(1)
    assert (error.value.version, error.value.blocked_by) == (1, 3)
    assert "restore(version=0)" in error.value.hint
    assert table.version == 4


def test_what_was_undone_is_not_in_the_way(table):
    """Undone one after the other, from the newest, all commits go."""
    for version in (4, 3, 2, 1):
        table.rollback(version)
    assert ids(table) == []
    table.rollback(table.version)  # the rollback of version 1
    assert ids(table) == [1, 2, 3]


def test_a_commit_is_undone_once(table):
    """The second time it is no longer there to be undone."""
    table.rollback(4)
    with pytest.raises(CommitConflictError, match="version 5 \\(ROLLBACK\\)"):
        table.rollback(4)


def test_an_overwrite_is_undone_with_what_it_removed(table):
    """Both halves of it."""
    table.overwrite(rows(3, 3, v="y"), where="id = 3")
    table.append(rows(8))
    table.rollback(5)
    assert ids(table) == [1, 3, 4, 5, 6, 7, 8]
    assert table.scan("id = 3").to_arrow().column("v").to_pylist() == ["x"]


def test_moving_rows_can_be_undone(table):
    """An optimize, for readers that follow the changes, changes no rows; undoing it does not either."""
    before = set(entries(table))
    table.optimize()
    table.rollback(5)
    assert set(entries(table)) == before
    assert not any(split.data_change for split in table.snapshot().splits())
    assert ids(table) == [1, 3, 4, 5, 6, 7]


def test_statistics_that_were_dropped_come_back(table):
    """A commit that replaced entries is undone by the entries before it."""
    before = entries(table)
    table.drop_statistics(["v"])
    table.rollback(5)
    assert {path: add.stats for path, add in entries(table).items()} == {
        path: add.stats for path, add in before.items()
    }


def test_a_column_stays_when_the_rows_that_brought_it_go(table):
    """A schema only grows."""
    table.append(pa.table({"id": [9], "more": [1.5]}), merge_schema=True)
    table.rollback(5)
    assert table.schema.names == ("id", "v", "more")
    assert ids(table) == [1, 3, 4, 5, 6, 7]


def test_a_change_of_the_schema_alone_cannot_be_undone(table):
    """And says so."""
    table.evolve(pa.schema([*SCHEMA, ("more", pa.int8())]))
    with pytest.raises(SchemaEvolutionError, match="only grow"):
        table.rollback(5)


def test_a_replaced_table_is_restored_not_rolled_back(uri):
    """The files before it need the columns before it."""
    table = Table.create(uri, SCHEMA)
    table.append(rows(1))
    store = open_store(uri)
    other = new_metadata(as_schema(pa.schema([("x", pa.date32())])))
    replace_table(
        TransactionLog(store), ArrowExecutor(store), pa.table({"x": [date(2024, 1, 1)]}), other
    )
    with pytest.raises(SchemaEvolutionError, match="version 2") as error:
        table.rollback(2)
    assert "restore(version=1)" in error.value.hint


@pytest.mark.parametrize("version", [-1, 0, 5, 77])
def test_there_must_be_something_to_undo(table, version):
    """Not the creation of the table, and nothing that has not happened."""
    with pytest.raises(VersionNotFoundError):
        table.rollback(version)


def test_a_commit_without_files_leaves_nothing_to_undo(table):
    """A vacuum's mark stays: the files are gone, whatever the log says."""
    table.vacuum(apply=True, allow_short_retention=True, options=AT_ONCE)
    assert table.rollback(5).committed is False


def test_files_that_a_vacuum_took_cannot_be_rolled_back_to(table):
    """The same error as that of a restore."""
    table.vacuum(apply=True, allow_short_retention=True, options=AT_ONCE)
    with pytest.raises(ObjectNotFoundError, match="vacuum"):
        table.rollback(3)


def test_a_rollback_that_loses_looks_again(table, uri):
    """It goes on beside an append, and stops if the winner has built on the commit."""
    _race(uri, lambda t: t.rollback(2), lambda t: t.append(rows(80)))
    assert ids(table) == [1, 3, 7, 80]
    with pytest.raises(CommitConflictError, match="version 7"):
        _race(uri, lambda t: t.rollback(4), lambda t: t.delete("id = 7"))
    assert ids(table) == [1, 3, 80]
