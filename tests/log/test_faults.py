"""A store that fails at every single call in turn, before its effect and after it."""

import pytest

from indextables.config import Config
from indextables.errors import CommitStateUnknownError, IndexTablesError
from indextables.log.wire.files import LogNames
from support.logs import same_state
from indextables.log.transaction_log import TransactionLog
from support.faults import CrashingStore, FaultyStore, SimulatedCrash
from support.logs import add_of, appending, copy_of, new_log, numbers, remove_of, rewriting

NAMES = LogNames()
DAY = 24 * 3600 * 1000
NOW = 10_000 * DAY
EVERY = Config.of(write={"spark.indextables.checkpoint.interval": 1})


@pytest.fixture(scope="module")
def aged():
    """Versions 0-6, sixty days apart, with checkpoints at 2, 4 and 6: much of it may be forgotten."""
    clock = [NOW - 400 * DAY]
    log = new_log(None, add_of(0), now_ms=lambda: clock[0])
    for i in range(1, 7):
        clock[0] += 60 * DAY
        log.commit(lambda s, i=i: appending(add_of(i)))
        if i % 2 == 0:
            log.checkpoint()
    return log.store


def writer(store):
    return TransactionLog(store, EVERY, now_ms=lambda: NOW, pause=lambda _: None)


def commit_one(store):
    return writer(store).commit(lambda s: rewriting(add_of(7), remove_of(0)))


def checkpoint(store):
    return writer(store).checkpoint()


def cleanup(store):
    return writer(store).cleanup()


def two_commits(store):
    log = writer(store)
    log.commit(lambda s: rewriting(add_of(7), remove_of(0)))
    return log.commit(lambda s: appending(add_of(8)))


def calls_of(scenario, aged):
    store = FaultyStore(copy_of(aged))
    scenario(store)
    return len(store.calls)


def faults(scenario, aged, kind):
    """(a damaged copy of the table, the outcome) for every call and both moments."""
    for n in range(calls_of(scenario, aged)):
        for when in ("before", "after"):
            inner = copy_of(aged)
            store = kind(inner, fail_at=n, when=when)
            try:
                outcome = scenario(store)
            except (IndexTablesError, SimulatedCrash) as error:
                outcome = error
            assert store.failed, (n, when)
            yield inner, outcome, (n, when, store.calls[n])


OLD, NEW = list(range(7)), list(range(1, 8))


@pytest.mark.parametrize("kind", [FaultyStore, CrashingStore])
def test_a_commit_is_whole_or_absent_and_the_writer_knows_which(aged, kind):
    """With the checkpoint and the cleanup that follow it."""
    for inner, outcome, where in faults(commit_one, aged, kind):
        snapshot = TransactionLog(inner).snapshot()
        assert (snapshot.version, numbers(snapshot)) in [(6, OLD), (7, NEW)], where
        if not isinstance(outcome, BaseException):
            assert numbers(snapshot) == NEW, where
        elif kind is FaultyStore and not isinstance(outcome, CommitStateUnknownError):
            assert numbers(snapshot) == OLD, (where, outcome)


def test_one_failure_of_the_store_after_the_first_put_never_fails_a_commit(aged):
    """From the put on, asking again is enough to find out."""
    put = [name for name, _ in recorded(commit_one, aged)].index("put_if_absent")
    for _, outcome, where in faults(commit_one, aged, FaultyStore):
        if where[0] >= put:
            assert not isinstance(outcome, BaseException), (where, outcome)


def recorded(scenario, aged):
    store = FaultyStore(copy_of(aged))
    scenario(store)
    return store.calls


@pytest.mark.parametrize("kind", [FaultyStore, CrashingStore])
def test_repeating_a_commit_that_failed_never_doubles_it(aged, kind):
    """What a caller may do after any error but CommitStateUnknownError, and after looking at the table."""
    for inner, outcome, where in faults(commit_one, aged, kind):
        before = numbers(TransactionLog(inner).snapshot())
        if isinstance(outcome, BaseException) and before == OLD:
            writer(inner).commit(lambda s: rewriting(add_of(7), remove_of(0)))
        assert numbers(TransactionLog(inner).snapshot()) == NEW, where
        assert TransactionLog(inner).snapshot().version == 7, where


@pytest.mark.parametrize("kind", [FaultyStore, CrashingStore])
@pytest.mark.parametrize("scenario", [checkpoint, cleanup])
def test_a_failed_checkpoint_or_cleanup_leaves_the_same_table(aged, kind, scenario):
    """And can be run again."""
    sound = TransactionLog(aged).snapshot()
    for inner, _, where in faults(scenario, aged, kind):
        assert same_state(TransactionLog(inner).snapshot(), sound), where
        scenario(inner)
        assert same_state(TransactionLog(inner).snapshot(), sound), where


def test_what_a_half_done_cleanup_leaves_is_finished_by_the_next(aged):
    """Oldest first: the rest is a log without a hole at every moment."""
    done = copy_of(aged)
    deleted = cleanup(done)
    assert deleted
    for inner, _, where in faults(cleanup, aged, CrashingStore):
        cleanup(inner)
        assert {m.key for m in inner.list("")} == {m.key for m in done.list("")}, where


@pytest.mark.parametrize("kind", [FaultyStore, CrashingStore])
def test_a_second_commit_of_the_same_handle_survives_a_fault_in_the_first(aged, kind):
    """What a handle remembers is never half a commit."""
    for inner, outcome, where in faults(two_commits, aged, kind):
        snapshot = TransactionLog(inner).snapshot()
        assert numbers(snapshot) in (OLD, NEW, [*NEW, 8]), where
        if not isinstance(outcome, BaseException):
            assert numbers(snapshot) == [*NEW, 8], where


def test_a_create_that_fails_leaves_nothing_or_a_table():
    """Never a directory that is neither."""
    from support.logs import fresh_store

    calls = FaultyStore(fresh_store())
    new_log(calls)
    for n in range(len(calls.calls)):
        for when in ("before", "after"):
            inner = fresh_store()
            try:
                new_log(FaultyStore(inner, fail_at=n, when=when), pause=lambda _: None)
            except IndexTablesError:
                assert not TransactionLog(inner).exists()
                new_log(inner)
            assert TransactionLog(inner).snapshot().version == 0
