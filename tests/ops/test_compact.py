"""Compaction folds logs into bases: the same rows, fewer files, and no other writer loses anything."""

from dataclasses import replace
from functools import cache
from uuid import uuid4

import pyarrow as pa
import pytest

from indextables.errors import (
    CommitConflictError,
    ConfigError,
    IndexTablesError,
    PredicateError,
    StorageError,
)
from indextables.log.wire.actions import Remove
from indextables.log.commit.intent import CommitPlan, Rewrite
from indextables.log.transaction_log import TransactionLog
from indextables.ops.compact import Threshold, plan_compact
from indextables.ops.shared.commit import Condition
from indextables.storage.open import open_store
from indextables.table.table import Table
from support.faults import CrashingStore, FaultyStore, SimulatedCrash
from support.interleave import InterleavedStore
from support.slices import File, SliceWriter

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("p", pa.string()), ("v", pa.int64())])
KEY = pa.schema([SCHEMA.field("id")])
AT_ONCE = {"spark.indextables.vacuum.retention": "0 seconds"}


def rows(*found, p="a"):
    """(id, v) pairs."""
    ids, values = zip(*found, strict=True) if found else ((), ())
    return pa.table({"id": ids, "p": [p] * len(ids), "v": values}, SCHEMA)


def part(*found):
    """(id, v) pairs that leave p as it is."""
    ids, values = zip(*found, strict=True)
    return pa.table({"id": ids, "v": values}, pa.schema([SCHEMA.field("id"), SCHEMA.field("v")]))


@pytest.fixture
def uri():
    return f"memory://{uuid4()}"


@pytest.fixture(params=["record", "columns"])
def table(request, uri):
    """Two slices with logs (ids 1-4 and 11-14, one of each updated and one deleted), one without (21, 22)."""
    return filled(uri, request.param)


def filled(uri, mode="record"):
    for key, data in model(mode).items():
        open_store(uri).put(key, data)
    return Table(uri)


@cache
def model(mode):
    """The objects of that table: made once, copied for every test."""
    uri = f"memory://{uuid4()}"
    found = Table.create(uri, SCHEMA, record_key=["id"], merge_mode=mode)
    found.upsert(rows((1, 1), (2, 2), (3, 3), (4, 4)))
    found.upsert(rows((11, 11), (12, 12), (13, 13), (14, 14)))
    found.upsert(rows((21, 21), (22, 22)))
    found.upsert(rows((1, 100), (11, 110)))
    found.delete("id in (2, 12)")
    return {meta.key: open_store(uri).get(meta.key) for meta in open_store(uri).list("")}


BEFORE = {1: 100, 3: 3, 4: 4, 11: 110, 13: 13, 14: 14, 21: 21, 22: 22}


def contents(table, **options):
    found = table.scan(columns=["id", "v"], **options).to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found), "a key occurs twice"
    return {row["id"]: row["v"] for row in found}


def shapes(table):
    """By group, how many bases and logs it has."""
    found = {}
    for split in table.snapshot().splits():
        bases, logs = found.get(split.file_group, (0, 0))
        found[split.file_group] = (bases + (not split.is_delta), logs + split.is_delta)
    return found


# -- what it does ----------------------------------------------------------------------------------


def test_logs_become_bases_and_no_row_changes(table):
    """One base per slice, in the same group; a slice without logs is not touched."""
    groups, untouched = set(shapes(table)), table.snapshot().splits()[2].path
    done = table.compact()
    assert contents(table) == BEFORE
    assert shapes(table) == dict.fromkeys(groups, (1, 0))
    assert untouched in {split.path for split in table.snapshot().splits()}
    assert done.metrics["numCompactedSlices"] == 2
    assert (done.metrics["numRemovedFiles"], done.metrics["numAddedFiles"]) == (6, 2)
    assert done.metrics["numOutputRows"] == 6
    assert table.check(deep=True).problems == ()


def test_a_new_base_is_as_old_as_the_youngest_file_it_folds(table):
    """And says that no row changed, so that whoever follows the changes sees none."""
    table.compact()
    assert [(s.seq, s.kind, s.data_change) for s in table.snapshot().splits()] == [
        (3, "base", True),
        (5, "base", False),
        (5, "base", False),
    ]


def test_compaction_is_read_without_merging(table):
    """Plans have no pieces left, and counts come from the log again."""
    assert len(table.plan().plan.pieces) == 2
    table.compact()
    assert table.plan().plan.pieces == ()
    assert contents(table, read_optimized=True) == BEFORE


def test_a_second_compaction_finds_nothing(table):
    """And commits nothing."""
    table.compact()
    done = table.compact()
    assert (done.committed, done.version) == (False, table.version)


def test_a_table_without_a_key_has_nothing_to_compact(uri):
    """Its files have no logs."""
    plain = Table.create(uri, SCHEMA)
    plain.append(rows((1, 1)))
    assert plain.compact().committed is False


def test_a_slice_without_a_visible_row_is_gone(uri):
    """Not an empty file."""
    table = filled(uri)
    table.delete("v in (100, 3)")
    table.upsert(rows((5, 5)))
    table.delete("id = 4")  # the last row of its slice
    table.compact()
    assert contents(table) == {5: 5, 11: 110, 13: 13, 14: 14, 21: 21, 22: 22}
    assert all(shape == (1, 0) for shape in shapes(table).values())
    assert len(shapes(table)) == 3
    table.upsert(rows((1, 7)))
    assert contents(table)[1] == 7


def test_columns_are_folded_from_the_newest_file_that_sets_them(uri):
    """What a partial update left alone keeps its value; a deleted row does not shine through."""
    table = Table.create(uri, SCHEMA, record_key=["id"], merge_mode="columns")
    table.upsert(rows((1, 1), (2, 2), (3, 3), p="old"))
    table.upsert(part((1, 10)))
    table.upsert(
        pa.table({"id": [1], "p": ["new"]}, pa.schema([SCHEMA.field("id"), SCHEMA.field("p")]))
    )
    table.delete("id = 2")
    table.upsert(part((2, 20)))
    expected = [
        {"id": 1, "p": "new", "v": 10},
        {"id": 2, "p": None, "v": 20},
        {"id": 3, "p": "old", "v": 3},
    ]
    for _ in range(2):
        found = table.scan().to_arrow().sort_by("id").to_pylist()
        assert found == expected
        table.compact()
    assert all(split.to_add().tags == {} for split in table.snapshot().splits())


def test_rows_are_folded_in_the_schema_the_table_has_now(uri):
    """Columns added and types widened since the files were written."""
    table = filled(uri)
    table.evolve(pa.schema([*SCHEMA, ("more", pa.string())]))
    table.upsert(
        pa.table({"id": [3], "p": ["a"], "v": [33], "more": ["m"]}, None).cast(
            pa.schema([*SCHEMA, ("more", pa.string())])
        )
    )
    table.compact()
    assert contents(table) == {**BEFORE, 3: 33}
    assert contents(table, where="more is not null") == {3: 33}
    ids = {split.schema_id for split in table.snapshot().splits() if split.seq > 3}
    assert ids == {1}


def test_statistics_of_a_new_base_skip_what_is_gone(uri):
    """The row that made the slice reach far has been deleted."""
    table = filled(uri)
    table.upsert(rows((4, 4000)))
    table.delete("id = 4")
    assert table.plan("v > 3999").files
    table.compact()
    assert table.plan("v > 3999").files == []


def test_slices_stay_in_their_partition(uri):
    """The new base lies where the old one was."""
    table = Table.create(uri, SCHEMA, partition_by=["p"], record_key=["id"])
    table.upsert(pa.concat_tables([rows((1, 1), (2, 2)), rows((3, 3), (4, 4), p="b")]))
    table.upsert(pa.concat_tables([rows((1, 10)), rows((2, 20), p="b")]))  # 2 moves
    done = table.compact("p = 'b'")
    assert done.committed is False  # b has no log: 2 went into a new group
    table.upsert(rows((3, 30), p="b"))
    assert table.compact("p = 'b'").metrics["numCompactedSlices"] == 1
    assert {s.partition_values["p"] for s in table.snapshot().splits() if s.is_delta} == {"a"}
    table.compact()
    assert contents(table) == {1: 10, 2: 20, 3: 30, 4: 4}
    assert contents(table, where="p = 'b'") == {2: 20, 3: 30, 4: 4}
    assert table.check(deep=True).problems == ()


# -- which slices ----------------------------------------------------------------------------------


def test_a_condition_chooses_slices(table):
    """Those that may show a row it is TRUE for."""
    assert table.compact("id = 100").committed is False
    assert table.compact("id = 1").metrics["numCompactedSlices"] == 1
    assert sorted(shapes(table).values()) == [(1, 0), (1, 0), (1, 2)]
    assert contents(table) == BEFORE


def test_few_or_small_logs_can_wait(uri):
    """By number, and by size in percent of the base."""
    table = filled(uri)
    table.upsert(rows((3, 30)))  # one slice has three logs, one two
    assert table.compact(min_logs=4).committed is False
    snapshot = table.snapshot()
    sizes = {}
    for split in snapshot.splits():
        sizes.setdefault(split.file_group, [0, 0])[split.is_delta] += split.size
    percents = sorted(100 * logs / base for base, logs in sizes.values() if logs)
    for least, expected in ((percents[0], 2), (percents[0] + 0.1, 1), (percents[1] + 0.1, 0)):
        plan = plan_compact(snapshot, Condition(), Threshold(min_percent=least))
        assert len(plan.pieces) == expected
    assert table.compact(min_logs=3).metrics["numCompactedSlices"] == 1
    assert table.compact(min_percent=0).metrics["numCompactedSlices"] == 1
    assert contents(table) == {**BEFORE, 3: 30}


def test_a_slice_without_a_base_is_always_large_enough(uri):
    """Nothing can be compared with nothing."""
    table = Table.create(uri, SCHEMA, record_key=["id"])
    SliceWriter(table).commit(File("g", rows((1, 1), (2, 2)), "data"))
    SliceWriter(table).commit(File("g", pa.table({"id": [2]}, KEY), "delete"))
    SliceWriter(table).commit(File("h", rows((3, 3)), "data"))
    SliceWriter(table).commit(File("dead", pa.table({"id": [9]}, KEY), "delete"))
    table.compact(min_percent=10_000)
    assert contents(table) == {1: 1, 3: 3}
    assert shapes(table) == {"g": (1, 0), "h": (1, 0)}


@pytest.mark.parametrize("wrong", [{"min_logs": 0}, {"min_percent": -1}, {"min_percent": float("nan")}])
def test_a_threshold_that_means_nothing_is_refused(table, wrong):
    """Before anything is read."""
    with pytest.raises(ConfigError):
        table.compact(**wrong)


def test_a_condition_that_cannot_be_read_is_refused(table):
    """And nothing is folded."""
    with pytest.raises(PredicateError):
        table.compact("id ===")
    assert table.version == 5


def test_progress_is_reported_slice_by_slice(table):
    """(done, total), for a progress bar."""
    seen = []
    table.compact(progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)]


# -- other writers ---------------------------------------------------------------------------------


def race(uri, mine, theirs):
    """Runs `mine` on one handle; `theirs` commits through another one just before it does."""
    store = InterleavedStore(open_store(uri), lambda: theirs(Table(uri)))
    try:
        return mine(Table(store))
    finally:
        assert store.happened


def without(*ids, **changed):
    new = {int(key[1:]): value for key, value in changed.items()}
    return {key: value for key, value in {**BEFORE, **new}.items() if key not in ids}


# the winner, the rows after it, and how many slices the compaction has to leave alone
WINNERS = {
    "upsert of a known key": (lambda t: t.upsert(rows((3, 30))), without(_3=30), 0),
    "upsert of a key that was deleted": (lambda t: t.upsert(rows((2, 20))), without(_2=20), 0),
    "upsert of a new key": (lambda t: t.upsert(rows((5, 50))), without(_5=50), 0),
    "delete of a row": (lambda t: t.delete("id = 3"), without(3), 0),
    "delete of a slice": (lambda t: t.delete("id < 10"), without(1, 3, 4), 1),
    "overwrite": (lambda t: t.overwrite(rows((1, 7))), {1: 7}, 2),
    "overwrite of a row": (lambda t: t.overwrite(rows((3, 7)), "id = 3"), without(_3=7), 0),
    "compact": (lambda t: t.compact(), BEFORE, 2),
    "compact of one slice": (lambda t: t.compact("id < 10"), BEFORE, 1),
    "optimize": (lambda t: t.optimize(), BEFORE, 0),
    "analyze": (lambda t: t.analyze(rebuild=True), BEFORE, 2),
    "restore to before the logs": (
        lambda t: t.restore(3),
        {**dict(zip(range(1, 5), range(1, 5), strict=True)), 11: 11, 12: 12, 13: 13, 14: 14, 21: 21, 22: 22},
        2,
    ),
    "rollback of the delete": (lambda t: t.rollback(5), without(_2=2, _12=12), 2),
    "rollback of the upsert": (lambda t: t.rollback(3), without(21, 22), 0),
    "evolve": (lambda t: t.evolve(pa.schema([*SCHEMA, ("n", pa.int8())])), BEFORE, 0),
}  # fmt: skip


@pytest.mark.parametrize("winner", WINNERS)
def test_a_compaction_that_loses_changes_no_row(uri, winner):
    """It goes on beside a newer log, and leaves slices alone that are not what it read."""
    filled(uri)
    run, expected, skipped = WINNERS[winner]
    done = race(uri, lambda t: t.compact(), run)
    table = Table(uri)
    assert contents(table) == expected
    assert len(done.skipped) == skipped
    assert done.metrics.get("numCompactedSlices", 0) == 2 - skipped
    if done.committed:
        assert table.history(1)[0].metrics == done.metrics
    assert table.check(deep=True).problems == ()
    table.compact()
    assert contents(table) == expected


LOSERS = {
    "upsert of a known key": (lambda t: t.upsert(rows((3, 30))), without(_3=30)),
    "upsert of a deleted key": (lambda t: t.upsert(rows((2, 20))), without(_2=20)),
    "upsert of a new key": (lambda t: t.upsert(rows((5, 50))), without(_5=50)),
    "delete": (lambda t: t.delete("v in (100, 13)"), without(1, 13)),
    "overwrite": (lambda t: t.overwrite(rows((3, 7)), "id < 5"), without(1, 4, _3=7)),
    "analyze": (lambda t: t.analyze(rebuild=True), BEFORE),
    "optimize": (lambda t: (t.upsert(rows((31, 31))), t.optimize()), without(_31=31)),
    "evolve": (lambda t: t.evolve(pa.schema([*SCHEMA, ("n", pa.int8())])), BEFORE),
    "restore": (lambda t: t.restore(4), without(_2=2, _12=12)),
}


@pytest.mark.parametrize("loser", LOSERS)
def test_who_loses_against_a_compaction_ends_up_as_if_it_had_come_second(uri, loser):
    """A slice keeps its group and its age when it is folded."""
    filled(uri)
    run, expected = LOSERS[loser]
    race(uri, run, lambda t: t.compact())
    table = Table(uri)
    assert contents(table) == expected
    assert table.check(deep=True).problems == ()


def test_a_log_for_a_slice_that_a_compaction_emptied_is_planned_again(uri):
    """The group it was meant for is gone; its row goes into a new one."""
    table = filled(uri)
    table.delete("id in (3, 4)")
    race(uri, lambda t: t.upsert(rows((1, 7))), lambda t: (t.delete("id = 1"), t.compact()))
    assert contents(table) == without(3, 4, _1=7)


def test_an_older_log_that_comes_back_is_not_folded_over(uri):
    """A restore puts a log between the base and the logs that were folded: this slice is left alone."""
    table = Table.create(uri, SCHEMA, record_key=["id"])
    table.upsert(rows((1, 1), (2, 2)))
    table.upsert(rows((1, 10)))
    table.upsert(rows((2, 20)))
    (between,) = [s.path for s in table.snapshot().splits() if s.seq == 2]
    undone = CommitPlan(Rewrite(), "UNDO", (Remove(between, 1),))  # by another writer
    TransactionLog(open_store(uri)).commit(lambda _: undone)
    assert contents(table) == {1: 1, 2: 20}
    done = race(uri, lambda t: t.compact(), lambda t: t.restore(3))
    assert contents(table) == {1: 10, 2: 20}
    assert len(done.skipped) == 1


@pytest.mark.parametrize("kind", [FaultyStore, CrashingStore])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_fault_at_any_call_changes_no_row(uri, when, kind):
    """Folded or not, the rows are the same; what was left behind is no part of the table."""
    recorded = FaultyStore(open_store(filled(uri).uri))
    Table(recorded).compact()
    for number in range(0, len(recorded.calls), 2):
        inner = open_store(filled(f"memory://{uuid4()}").uri)
        store = kind(inner, fail_at=number, when=when)
        try:
            Table(store).compact()
        except (IndexTablesError, SimulatedCrash):
            pass
        assert store.failed
        assert contents(Table(inner)) == BEFORE
        assert Table(inner).check().problems == ()


def test_files_of_a_compaction_that_fails_are_removed(uri):
    """No commit was tried, so nobody can refer to them."""
    table = filled(uri)
    before = {meta.key for meta in open_store(uri).list("data/")}

    def second(done, _total):
        if done == 2:
            raise StorageError("the second slice cannot be reported")

    with pytest.raises(StorageError):
        table.compact(progress=second)
    assert {meta.key for meta in open_store(uri).list("data/")} == before
    assert table.version == 5


# -- and back --------------------------------------------------------------------------------------


def test_time_travel_sees_the_slices_of_its_version(table):
    """Logs that were folded, and logs that were taken out, are still part of older versions."""
    expected = {version: contents(table, version=version) for version in range(6)}
    assert expected[5] == BEFORE
    table.compact()
    table.restore(4)
    table.upsert(rows((4, 44)))
    for version, found in expected.items():
        assert contents(table, version=version) == found
    assert contents(table, version=6) == BEFORE
    assert contents(table) == {**expected[4], 4: 44}


@pytest.mark.parametrize("version", range(1, 6))
def test_a_restored_version_shows_its_rows_and_takes_new_ones(table, version):
    """A delete that was restored away stays away, whatever is written next."""
    expected = contents(table, version=version)
    files = {s.path: (s.seq, s.file_group, s.kind, s.block) for s in table.snapshot(version).splits()}
    table.compact()
    table.restore(version)
    now = {s.path: (s.seq, s.file_group, s.kind, s.block) for s in table.snapshot().splits()}
    assert (now, contents(table)) == (files, expected)
    table.upsert(rows((2, 222), (30, 30)))
    assert contents(table) == {**expected, 2: 222, 30: 30}
    table.compact()
    assert contents(table) == {**expected, 2: 222, 30: 30}


def test_partial_updates_come_back_with_the_columns_they_set(uri):
    """The tag of a log is part of its entry."""
    table = Table.create(uri, SCHEMA, record_key=["id"], merge_mode="columns")
    table.upsert(rows((1, 1), p="kept"))
    table.upsert(part((1, 2)))
    table.compact()
    table.restore(2)
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "p": "kept", "v": 2}]
    assert [s.to_add().tags.get("columns") for s in table.snapshot().splits()] == [None, '["id", "v"]']


@pytest.mark.parametrize(
    ("version", "expected"),
    [(3, without(21, 22)), (5, without(_2=2, _12=12))],
)
def test_one_commit_of_a_keyed_table_is_undone(table, version, expected):
    """Rows it brought are gone, rows it deleted are back."""
    table.rollback(version)
    assert contents(table) == expected


def test_a_commit_is_not_undone_under_a_newer_log_of_its_slice(table):
    """The delete knew which rows the upsert had made."""
    with pytest.raises(CommitConflictError, match="version 5 \\(DELETE\\)"):
        table.rollback(4)
    table.rollback(5)
    table.rollback(4)
    assert contents(table)[1] == 1


def test_a_delete_is_not_undone_once_its_key_is_taken(table):
    """The row would be there twice; while the key is free, it can come back."""
    table.upsert(rows((50, 50)))  # another key, beyond those that were deleted
    table.upsert(rows((2, 222)))
    with pytest.raises(CommitConflictError, match="version 7") as error:
        table.rollback(5)
    assert error.value.blocked_by == 7
    table.rollback(7)
    table.rollback(5)
    assert contents(table) == without(_2=2, _12=12, _50=50)


def test_a_delete_of_a_whole_slice_is_not_undone_once_its_key_is_taken(table):
    """The same for rows that went by metadata alone."""
    table.delete("id > 20")
    assert all(len(shape) == 2 for shape in shapes(table).values())
    table.upsert(rows((21, 7)))
    with pytest.raises(CommitConflictError, match="version 7"):
        table.rollback(6)
    table.delete("id = 21")
    table.compact()
    table.rollback(6)
    assert contents(table) == BEFORE


def test_a_row_that_came_back_elsewhere_is_in_the_way_too(uri):
    """Not by a newer file, but because a delete in another slice was undone meanwhile."""
    table = Table.create(uri, SCHEMA, record_key=["id"])
    table.upsert(rows((1, 1), (0, 0)))
    table.delete("id = 1")  # 2
    table.upsert(rows((1, 2), (8, 8)))  # 3: in a group of its own
    table.delete("id = 1")  # 4
    table.compact("id = 8")  # 5: nothing is left of that row
    table.rollback(2)  # 6: the first row is back
    assert contents(table) == {0: 0, 1: 1, 8: 8}
    table.rollback(5)  # 7: the second one is there again, under its delete
    with pytest.raises(CommitConflictError):
        table.rollback(4)
    assert contents(table) == {0: 0, 1: 1, 8: 8}


def test_a_compaction_can_be_undone(table):
    """Until the slice is changed again."""
    before = shapes(table)
    table.compact()
    table.rollback(6)
    assert (shapes(table), contents(table)) == (before, BEFORE)
    table.compact()
    table.upsert(rows((1, 5)))
    with pytest.raises(CommitConflictError):
        table.rollback(8)


def test_a_vacuum_keeps_what_a_compacted_table_needs(table):
    """The folded files go, the rows stay."""
    table.compact()
    assert len(table.vacuum(apply=True, allow_short_retention=True, options=AT_ONCE).files) == 6
    assert contents(table) == BEFORE
    assert table.check(deep=True).problems == ()


def test_entries_of_a_restored_slice_are_what_they_were(table):
    """Statistics, tags and numbers, through a checkpoint as well."""
    before = {s.path: replace(s.to_add(), data_change=True) for s in table.snapshot(5).splits()}
    table.compact()
    table.restore(5)
    table.checkpoint()
    log = TransactionLog(open_store(table.uri))
    assert {s.path: replace(s.to_add(), data_change=True) for s in log.snapshot().splits()} == before
