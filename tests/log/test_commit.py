"""Commits: exactly once, whatever the store says, whoever else writes."""

import threading
from dataclasses import replace

import orjson
import pytest

from indextables.config import Config
from indextables.core.predicate.nodes import Constant
from indextables.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    IndexTablesError,
    LogReplacedError,
    ObjectExistsError,
    ReadOnlyStoreError,
    StorageError,
    TableExistsError,
)
from indextables.log.wire.actions import Protocol, Txn, Vacuum
from indextables.log.wire.files import LogNames
from indextables.log.commit.intent import Append, ChangeSchema, CommitPlan, Maintain, SnapshotId
from indextables.log.transaction_log import TransactionLog
from support.faults import FaultyStore
from support.logs import (
    METADATA,
    NO_CHECKPOINTS,
    add_of,
    appending,
    foreign_add,
    foreign_metadata,
    fresh_store,
    new_log,
    numbers,
    remove_of,
    rewriting,
    write_foreign,
)

NAMES = LogNames()


def handle(store, **options):
    """A writer that does not really sleep."""
    return TransactionLog(store, NO_CHECKPOINTS, pause=lambda _: None, **options)


def trailer(store, version):
    return orjson.loads(store.get(NAMES.commit(version)).splitlines()[-1])["commitInfo"]


def test_a_commit_names_its_parent_its_operation_and_its_metrics():
    """What history shows later."""
    log = new_log(None, add_of(1))
    done = log.commit(
        lambda s: appending(
            add_of(2),
            metrics={"numTruncatedColumns": 3, "truncatedBytesSaved": 99},
            parameters={"mode": "Append"},
        )
    )
    info = trailer(log.store, 1)
    assert info["parent"] == trailer(log.store, 0)["commitId"]
    assert (info["operation"], info["readVersion"], info["numFiles"]) == ("APPEND", 0, 2)
    assert info["operationMetrics"] == {"numTruncatedColumns": 3, "truncatedBytesSaved": 99}
    assert info["operationParameters"] == {"mode": "Append"}
    assert (done.version, done.attempts, done.no_op) == (1, 1, False)


def test_the_time_of_a_commit_is_always_after_its_parents():
    """A clock that stands still or runs backwards must not confuse time travel."""
    clock = iter([1000, 1000, 500, 2000, 1999])
    log = new_log(None, now_ms=lambda: next(clock))
    for i in range(4):
        log.commit(lambda s, i=i: appending(add_of(i)))
    assert [trailer(log.store, v)["timestamp"] for v in range(5)] == [1000, 1001, 1002, 2000, 2001]


def test_a_writer_that_loses_commits_on_top_of_the_winner():
    """Its adds carry the version they ended up in."""
    log = new_log()
    late, early = handle(log.store), handle(log.store)
    stale = late.snapshot()
    early.commit(lambda s: appending(add_of(1)))
    early.commit(lambda s: appending(add_of(2)))
    done = late.commit(lambda s: appending(add_of(3)), snapshot=stale)
    assert (done.version, done.attempts) == (3, 2)
    assert {s.path: s.seq for s in done.snapshot.splits()} == {add_of(i).path: i for i in (1, 2, 3)}
    assert trailer(log.store, 3)["readVersion"] == 0


def test_the_commit_id_is_the_same_in_every_attempt():
    """It is how a writer recognises its own commit."""
    log = new_log()
    ids = []

    class Recording(FaultyStore):
        def put_if_absent(self, key, data):
            ids.append(orjson.loads(data.splitlines()[-1])["commitInfo"]["commitId"])
            super().put_if_absent(key, data)

    stale = log.snapshot()
    log.commit(lambda s: appending(add_of(1)))
    handle(Recording(log.store)).commit(lambda s: appending(add_of(2)), snapshot=stale)
    assert len(ids) == 2
    assert len(set(ids)) == 1


def test_a_writer_that_always_loses_gives_up_after_max_attempts():
    """With an error that says how to wait longer."""
    log = new_log()
    config = Config.of(write={"spark.indextables.commit.maxAttempts": 3})

    class Unlucky(FaultyStore):
        def put_if_absent(self, key, data):
            handle(self.inner).commit(lambda s: appending(add_of(100 + s.version)))
            super().put_if_absent(key, data)

    writer = TransactionLog(Unlucky(log.store), config, pause=lambda _: None)
    with pytest.raises(CommitConflictError, match="3 versions in a row") as caught:
        writer.commit(lambda s: appending(add_of(1)))
    assert "maxAttempts" in str(caught.value)
    assert 1 not in numbers(log.snapshot())


# -- a store that does not say what it did ---------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 2, 4])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_put_whose_answer_is_lost_is_committed_once(when, times):
    """Stored and answered with an error, or not stored at all: the writer finds out."""
    log = new_log()
    store = FaultyStore(log.store, fail_at=0, when=when, only=["put_if_absent"], times=times)
    done = handle(store).commit(lambda s: appending(add_of(1)))
    assert done.version == 1
    assert store.failed
    assert (log.snapshot().version, numbers(log.snapshot())) == (1, [1])


def test_a_client_that_retries_by_itself_and_then_says_exists_is_understood():
    """The server stored it and answered 500; the client tried again and saw its own object."""
    log = new_log()

    class Retrying(FaultyStore):
        def put_if_absent(self, key, data):
            self.inner.put_if_absent(key, data)
            raise ObjectExistsError("already there", key=key)

    assert handle(Retrying(log.store)).commit(lambda s: appending(add_of(1))).version == 1
    assert numbers(log.snapshot()) == [1]
    assert log.snapshot().version == 1


def test_a_put_that_never_gets_an_answer_is_an_error_that_says_so():
    """The caller must not delete its data files: the commit may be there."""
    log = new_log()
    for when in ("before", "after"):
        store = FaultyStore(
            log.store, fail_at=0, when=when, only=["put_if_absent", "head", "get"], times=None
        )
        writer = handle(store)
        writer._follower = log._follower
        with pytest.raises(CommitStateUnknownError, match="never said whether version") as caught:
            writer.commit(lambda s: appending(add_of(1)), snapshot=log.snapshot())
        assert caught.value.commit_id in caught.value.hint
    assert (log.snapshot().version, numbers(log.snapshot())) == (1, [1])


def test_a_put_that_fails_every_time_and_is_not_there_is_unknown_too():
    """It may still be on its way."""
    log = new_log()
    store = FaultyStore(log.store, fail_at=0, only=["put_if_absent"], times=None)
    with pytest.raises(CommitStateUnknownError):
        handle(store).commit(lambda s: appending(add_of(1)))


def test_a_store_that_refuses_to_write_is_believed():
    """Nothing was attempted, so nothing is unknown."""
    log = new_log()

    class ReadOnly(FaultyStore):
        def put_if_absent(self, key, data):
            raise ReadOnlyStoreError("no exclusive put here")

    with pytest.raises(ReadOnlyStoreError):
        handle(ReadOnly(log.store)).commit(lambda s: appending(add_of(1)))


# -- a log that is replaced under a writer -----------------------------------------------------------------


def replace_log(store, *actions):
    """What a repair and its swap do."""
    for meta in [*store.list("_transaction_log/")]:
        store.delete(meta.key)
    other = new_log(None, *actions)
    for meta in other.store.list("_transaction_log/"):
        store.put(meta.key, other.store.get(meta.key))
    return other


def test_a_commit_into_a_log_that_was_replaced_by_a_shorter_one_is_taken_back():
    """Else version 6 would hang above version 0, and the log would have a hole."""
    log = new_log(None, add_of(0))
    for i in range(1, 6):
        log.commit(lambda s, i=i: appending(add_of(i)))

    class Swapping(FaultyStore):
        def put_if_absent(self, key, data):
            replace_log(self.inner, add_of(50))
            super().put_if_absent(key, data)

    with pytest.raises(LogReplacedError, match="taken back"):
        handle(Swapping(log.store)).commit(lambda s: appending(add_of(6)))
    assert (handle(log.store).snapshot().version, numbers(handle(log.store).snapshot())) == (0, [50])


def test_a_commit_into_a_log_that_was_replaced_by_a_longer_one_is_an_error():
    """The version is taken, by a commit that does not follow ours."""
    log = new_log(None, add_of(0))
    stale = log.snapshot()
    other = replace_log(log.store, add_of(50))
    handle(log.store).commit(lambda s: appending(add_of(51)))
    with pytest.raises(LogReplacedError, match="follows commit"):
        handle(log.store).commit(lambda s: appending(add_of(1)), snapshot=stale)
    assert other.snapshot().version == 0
    assert numbers(handle(log.store).snapshot()) == [50, 51]


def test_a_commit_on_a_version_that_only_its_checkpoint_remembers_is_fine():
    """Somebody deleted every commit up to the checkpoint."""
    log = new_log(None, add_of(0))
    log.checkpoint()
    log.store.delete(NAMES.commit(0))
    assert handle(log.store).commit(lambda s: appending(add_of(1))).version == 1
    assert numbers(handle(log.store).snapshot()) == [0, 1]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_store_that_fails_while_the_parent_is_confirmed_is_asked_again(when):
    """The commit is there; only certainty is missing."""
    log = new_log()

    class Flaky(FaultyStore):
        def put_if_absent(self, key, data):
            self.inner.put_if_absent(key, data)
            self.fail_at, self.times = len(self.calls), 3

    writer = handle(Flaky(log.store, when=when))
    assert writer.commit(lambda s: appending(add_of(1))).version == 1


def test_a_foreign_log_that_vanished_under_a_writer_is_noticed():
    """Its commits have no id to compare, but they must still be there."""
    store = fresh_store()
    write_foreign(store, {0: [foreign_metadata()], 1: [foreign_add(1)]})

    class Swapping(FaultyStore):
        def put_if_absent(self, key, data):
            replace_log(self.inner, add_of(50))
            super().put_if_absent(key, data)

    with pytest.raises(LogReplacedError):
        handle(Swapping(store)).commit(lambda s: appending(add_of(2)))
    assert numbers(handle(store).snapshot()) == [50]


def test_a_checkpoint_of_a_log_that_was_replaced_is_taken_back():
    """Else the new log would have a checkpoint ahead of its commits."""
    log = new_log(None, add_of(0))
    log.commit(lambda s: appending(add_of(1)))

    class Swapping(FaultyStore):
        def put(self, key, data):
            other = replace_log(self.inner, add_of(50))
            other.commit(lambda s: appending(add_of(51)))
            self.inner.put(NAMES.commit(1), other.store.get(NAMES.commit(1)))
            super().put(key, data)

    with pytest.raises(LogReplacedError, match="not in the log any more"):
        handle(Swapping(log.store)).checkpoint()
    assert numbers(handle(log.store).snapshot()) == [50, 51]
    assert NAMES.checkpoint(1) not in {meta.key for meta in log.store.list("")}


def test_what_is_written_after_a_repair_is_later_than_what_was_there():
    """A repaired log starts at version 0 with files numbered 40 and more."""
    log = new_log(None, add_of(1, seq=40), add_of(2, seq=47))
    log.commit(lambda s: appending(add_of(3)))
    log.commit(lambda s: rewriting(remove_of(3), add_of(4)))
    assert {s.path: s.seq for s in log.snapshot().splits()} == {
        add_of(1).path: 40,
        add_of(2).path: 47,
        add_of(4).path: 49,
    }


# -- streaming, vacuum, creation ----------------------------------------------------------------------------


def test_a_batch_that_was_committed_before_is_not_committed_again():
    """Success, and nothing happens."""
    log = new_log()
    log.commit(lambda s: appending(Txn("stream", 7), add_of(1)))
    for batch in (7, 6):
        again = handle(log.store).commit(
            lambda s, batch=batch: appending(Txn("stream", batch), add_of(2))
        )
        assert again.no_op
        assert again.version == 1
    assert handle(log.store).commit(lambda s: appending(Txn("other", 7), add_of(3))).version == 2
    assert numbers(log.snapshot()) == [1, 3]


def test_a_batch_that_another_writer_committed_meanwhile_is_not_committed_again():
    """Two drivers of one stream, after one was thought dead."""
    log = new_log()
    stale = log.snapshot()
    log.commit(lambda s: appending(Txn("stream", 7), add_of(1)))
    again = handle(log.store).commit(lambda s: appending(Txn("stream", 7), add_of(2)), snapshot=stale)
    assert again.no_op
    assert numbers(log.snapshot()) == [1]


EAGER = Config.of(
    write={"spark.indextables.checkpoint.interval": 1, "spark.indextables.log.retention": "0 seconds"}
)


@pytest.mark.parametrize("plan", [appending, rewriting])
def test_a_writer_whose_winners_are_cleaned_up_before_it_sees_them_follows_the_newest_version(plan):
    """An append goes on; everything else is planned again on what there is now."""
    store = fresh_store()
    new_log(store, add_of(0))
    other = TransactionLog(store, EAGER)

    def go_on(_):
        for i in range(2, 6):
            other.commit(lambda s, i=i: appending(add_of(i)))

    log = TransactionLog(store, NO_CHECKPOINTS, pause=go_on)
    base = log.snapshot()
    other.commit(lambda s: appending(add_of(1)))
    planned_on = []

    def planner(snapshot):
        planned_on.append(snapshot.version)
        return plan(add_of(9))

    done = log.commit(planner, base)
    assert planned_on == ([0] if plan is appending else [0, 5])
    assert NAMES.commit(1) not in {meta.key for meta in store.list("")}
    assert numbers(done.snapshot) == numbers(TransactionLog(store).snapshot()) == [0, 1, 2, 3, 4, 5, 9]


@pytest.mark.parametrize("bound", [False, True])
def test_a_planner_that_hands_back_the_plan_of_an_older_snapshot_is_refused(bound):
    """It looks as if it had planned again, and what it says of the table is no longer so."""
    log = new_log(None, add_of(0))
    base = log.snapshot()
    plan = rewriting(remove_of(0), add_of(9))
    if bound:
        plan = plan.bound(SnapshotId(base.version, base.commit_id))
    log.commit(lambda s: rewriting(remove_of(0), add_of(1)))
    with pytest.raises(CommitConflictError, match="version 0"):
        handle(log.store).commit(lambda _: plan, base)
    assert numbers(handle(log.store).snapshot()) == [1]


def test_a_plan_without_a_planner_follows_its_winners_or_is_refused():
    """An append by others is no reason to refuse it; the same file removed is."""
    log = new_log(None, add_of(0))
    base = log.snapshot()
    plan = rewriting(remove_of(0), add_of(9), where=Constant(False))
    log.commit(lambda s: appending(add_of(1)))
    assert numbers(handle(log.store).commit(plan, base).snapshot) == [1, 9]
    with pytest.raises(CommitConflictError, match="stands on what was read from version 0"):
        handle(log.store).commit(plan, base)


def test_a_commit_that_others_went_on_from_is_not_taken_back_after_a_cleanup():
    """The version before is gone by then, but a checkpoint holds ours: nobody replaced the log."""
    store = fresh_store()
    new_log(store, add_of(0))

    class Slow:
        """Others commit and clean up between our put and our look at the version before."""

        def __getattr__(self, name):
            return getattr(store, name)

        def put_if_absent(self, key, data):
            store.put_if_absent(key, data)
            other = handle(store)
            for i in (2, 3):
                other.checkpoint()
                other.commit(lambda s, i=i: appending(add_of(i)))
            assert NAMES.commit(0) in TransactionLog(store, EAGER).cleanup()

    log = TransactionLog(Slow(), NO_CHECKPOINTS)
    assert log.commit(lambda s: appending(add_of(1))).version == 1
    assert numbers(TransactionLog(store).snapshot()) == [0, 1, 2, 3]


def test_an_append_whose_files_are_older_than_a_vacuum_allows_fails_although_it_was_planned_again():
    """Vacuum goes by the version in the names of files, and planning again does not rename them."""
    store = fresh_store()
    log = new_log(store, add_of(0))
    base = log.snapshot()
    other = handle(store)
    other.commit(lambda s: appending(add_of(1)))
    changed = replace(METADATA, properties={"colour": "blue"})
    other.commit(lambda s: CommitPlan(ChangeSchema(), "SET", (changed,)))
    other.commit(lambda s: CommitPlan(Maintain(), "VACUUM", (Vacuum(2),)))

    def planner(snapshot):
        own = (replace(METADATA, description="mine"),) if snapshot.version == 0 else ()
        return appending(*own, add_of(9))

    with pytest.raises(CommitConflictError, match="read version 0"):
        handle(store).commit(planner, base)


def test_a_writer_that_read_a_version_whose_files_a_vacuum_may_have_deleted_fails():
    """Its plan may copy rows from files that are gone."""
    log = new_log(None, add_of(1))
    stale = log.snapshot()
    log.commit(lambda s: appending(add_of(2)))
    log.commit(lambda s: CommitPlan(Maintain(), "VACUUM", (Vacuum(1),)))
    with pytest.raises(CommitConflictError, match="vacuum"):
        handle(log.store).commit(lambda s: appending(add_of(3)), snapshot=stale)
    assert handle(log.store).commit(lambda s: appending(add_of(3))).version == 3


def test_a_plan_without_actions_commits_nothing():
    """A delete that matched no row."""
    log = new_log(None, add_of(1))
    done = log.commit(lambda s: rewriting())
    assert done.no_op
    assert log.snapshot().version == 0


@pytest.mark.parametrize(
    "action", [add_of(1, path="_transaction_log/000000000000000009.json"), add_of(1, size=2**70)]
)
def test_a_commit_that_no_reader_would_accept_is_never_published(action):
    """It would lock everybody out of the table."""
    log = new_log(None, add_of(0))
    with pytest.raises(IndexTablesError):
        log.commit(lambda s: appending(action))
    assert (handle(log.store).snapshot().version, numbers(handle(log.store).snapshot())) == (0, [0])
    with pytest.raises(IndexTablesError):
        new_log(fresh_store(), action)


def test_a_table_is_created_once():
    """Also if two create it at the same moment."""
    store = fresh_store()
    plan = CommitPlan(Append(), "CREATE TABLE", (Protocol(), METADATA))
    results = []

    def create():
        try:
            results.append(handle(store).create(plan).version)
        except TableExistsError:
            results.append("exists")

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, results)) == ["0", "exists", "exists", "exists"]


def test_creating_over_a_log_of_another_writer_is_refused():
    """Whatever its width."""
    store = fresh_store()
    write_foreign(store, {0: [foreign_metadata()]}, width=20)
    with pytest.raises(TableExistsError):
        handle(store).create(CommitPlan(Append(), "CREATE TABLE", (Protocol(), METADATA)))


def test_a_foreign_log_can_be_continued():
    """Its commits have no id, so there is nothing to confirm; ours have one."""
    store = fresh_store()
    write_foreign(store, {0: [foreign_metadata()], 1: [foreign_add(1)]})
    handle(store).commit(lambda s: appending(add_of(2)))
    handle(store).commit(lambda s: rewriting(add_of(3), remove_of(2)))
    info = trailer(store, 2)
    assert "parent" not in info
    assert trailer(store, 3)["parent"] == info["commitId"]
    assert numbers(handle(store).snapshot()) == [1, 3]


def test_many_threads_commit_to_one_handle():
    """A handle may be shared."""
    log = new_log(config=Config.of(write={"spark.indextables.checkpoint.interval": 5}))
    errors = []

    def work(base):
        try:
            for i in range(5):
                log.commit(lambda s, i=i: appending(add_of(base + i)))
        except StorageError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(10 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert numbers(TransactionLog(log.store).snapshot()) == sorted(
        10 * n + i for n in range(4) for i in range(5)
    )
    assert log.snapshot().version == 20
