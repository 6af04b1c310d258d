"""History, time travel by timestamp, and forgetting old versions."""

import datetime as dt

import pytest

from indextables.config import Config
from indextables.errors import LogCorruptedError, VersionNotFoundError
from indextables.log.wire.files import LogNames
from support.logs import same_state
from indextables.log.transaction_log import TransactionLog
from support.faults import FaultyStore
from support.logs import (
    add_of,
    appending,
    copy_of,
    foreign_add,
    foreign_metadata,
    fresh_store,
    new_log,
    numbers,
    write_foreign,
)

NAMES = LogNames()
DAY = 24 * 3600 * 1000
START = 1000 * DAY


@pytest.fixture(scope="module")
def daily():
    """One commit a day for 60 days, with a checkpoint every ten; version n has splits 0…n."""
    clock = [START]
    log = new_log(None, add_of(0), now_ms=lambda: clock[0])
    for i in range(1, 61):
        clock[0] += DAY
        log.commit(lambda s, i=i: appending(add_of(i), metrics={"numFiles": i}))
        if i % 10 == 0:
            log.checkpoint()
    return log.store


def at(day, store, **options):
    return TransactionLog(store, now_ms=lambda: START + int(day * DAY), **options)


def test_history_is_newest_first_and_says_what_each_commit_did(daily):
    """With the writer's own metrics."""
    log = at(60, daily)
    entries = log.history()
    assert [entry.version for entry in entries] == list(range(60, -1, -1))
    newest = entries[0]
    assert (newest.timestamp_ms, newest.operation, newest.metrics) == (
        START + 60 * DAY,
        "APPEND",
        {"numFiles": 60},
    )
    assert (newest.read_version, newest.num_files, newest.verified) == (59, 61, True)
    assert newest.size_in_bytes == len(daily.get(NAMES.commit(60)))
    assert [entry.version for entry in log.history(limit=3)] == [60, 59, 58]


def test_history_reads_the_end_of_a_large_commit_only():
    """A commit of many megabytes is not read to learn who wrote it."""
    log = new_log(None, *(add_of(i) for i in range(1000)))
    store = FaultyStore(log.store)
    [entry] = TransactionLog(store).history()
    assert entry.num_files == 1000
    assert {name for name, _ in store.calls} == {"list", "get_range"}


@pytest.mark.parametrize(
    ("day", "version"), [(0, 0), (0.5, 0), (1, 1), (33.9, 33), (34, 34), (59.99, 59), (60, 60)]
)
def test_a_timestamp_finds_the_version_that_was_current_then(daily, day, version):
    """At the very millisecond of a commit: that commit."""
    moment = START + int(day * DAY)
    assert at(60, daily).snapshot(timestamp=moment).version == version
    when = dt.datetime.fromtimestamp(moment / 1000, dt.UTC)
    assert at(60, daily).snapshot(timestamp=when).version == version


def test_a_moment_after_the_last_commit_is_the_newest_version_unless_it_is_in_the_future(daily):
    """Until now nothing else can have happened; later anything can."""
    assert at(100, daily).snapshot(timestamp=START + 99 * DAY).version == 60
    with pytest.raises(VersionNotFoundError, match="future"):
        at(61, daily).snapshot(timestamp=START + 62 * DAY)


def test_a_moment_before_the_history_is_an_error(daily):
    """The table did not exist, or nobody remembers."""
    with pytest.raises(VersionNotFoundError, match="no version as old as"):
        at(60, daily).snapshot(timestamp=START - 1)


def test_a_naive_datetime_is_refused(daily):
    """It means another moment on every machine."""
    with pytest.raises(ValueError, match="time zone"):
        at(60, daily).snapshot(timestamp=dt.datetime(2024, 1, 1))


def test_a_version_and_a_timestamp_together_are_refused(daily):
    """Which one should win?"""
    with pytest.raises(ValueError, match="not both"):
        at(60, daily).snapshot(version=1, timestamp=START)


def test_time_travel_looks_at_few_commits(daily):
    """Halving, not reading sixty of them."""
    store = FaultyStore(daily)
    log = at(60, store)
    log.snapshot()
    store.calls.clear()
    log.snapshot(timestamp=START + 31 * DAY)
    assert len([key for name, key in store.calls if name == "get" and key.endswith(".json")]) < 12


def test_times_of_files_mean_nothing(daily):
    """A copied log has new file times and the same history."""
    copy = copy_of(daily)
    assert at(60, copy).snapshot(timestamp=START + 31 * DAY).version == 31


def test_commits_of_other_writers_are_searched_one_by_one_and_must_have_a_time():
    """Their clocks may run backwards."""
    store = fresh_store()
    times = {0: 100, 1: 300, 2: 200, 3: 400}
    commits = {v: [foreign_add(v), {"commitInfo": {"timestamp": t}}] for v, t in times.items()}
    write_foreign(store, {**commits, 0: [foreign_metadata(), *commits[0]]})
    log = TransactionLog(store)
    assert log.snapshot(timestamp=250).version == 2
    assert log.snapshot(timestamp=150).version == 0
    write_foreign(store, {4: [foreign_add(4)]})
    with pytest.raises(VersionNotFoundError, match="version 4 does not say when"):
        log.snapshot(timestamp=250)


# -- cleanup ------------------------------------------------------------------------------------------


def versions(store, kind="commit"):
    return sorted(
        file.version for file in NAMES.parse_all(store.list("_transaction_log/")) if file.kind == kind
    )


def test_cleanup_forgets_what_no_version_of_the_last_thirty_days_needs(daily):
    """Day 60: versions from 30 on can still be read, on top of the checkpoint of version 30."""
    store = copy_of(daily)
    before = at(60, store).snapshot()
    deleted = at(60, store).cleanup()
    assert versions(store) == list(range(30, 61))
    assert versions(store, "checkpoint") == [30, 40, 50, 60]
    assert len(deleted) == 30 + 2
    assert same_state(at(60, store).snapshot(), before)
    assert numbers(at(60, store).snapshot(version=30)) == list(range(31))
    assert at(60, store).snapshot(timestamp=START + 35 * DAY).version == 35
    with pytest.raises(VersionNotFoundError, match="kept from 30 on"):
        at(60, store).snapshot(version=29)
    with pytest.raises(VersionNotFoundError):
        at(60, store).snapshot(timestamp=START + 29 * DAY)


def test_cleanup_deletes_oldest_first(daily):
    """So that what is left is a log at every moment."""
    deleted = at(60, copy_of(daily)).cleanup()
    assert deleted == sorted(deleted, key=lambda key: int(key.split("/")[1][:18]))


def test_two_intact_checkpoints_and_everything_after_the_older_are_kept_however_old(daily):
    """A year later nobody needs history, but a torn checkpoint must not be the end."""
    store = copy_of(daily)
    at(400, store).cleanup()
    assert versions(store, "checkpoint") == [50, 60]
    assert versions(store) == list(range(50, 61))
    store.put(NAMES.checkpoint(60), b"torn")
    assert numbers(at(400, store).snapshot()) == list(range(61))


def test_a_torn_checkpoint_does_not_count_as_one_of_the_two(daily):
    """It is what the second one is kept for."""
    store = copy_of(daily)
    store.put(NAMES.checkpoint(50), store.get(NAMES.checkpoint(50))[:-100])
    at(400, store).cleanup()
    assert versions(store) == list(range(40, 61))
    assert 40 in versions(store, "checkpoint")


def test_without_two_intact_checkpoints_nothing_is_deleted(daily):
    """Then the commits are all there is."""
    store = copy_of(daily)
    for version in (10, 20, 30, 40, 50):
        store.delete(NAMES.checkpoint(version))
    assert at(400, store).cleanup() == []
    assert versions(store) == list(range(61))


def test_nothing_young_is_deleted(daily):
    """On day 5 there is nothing to forget."""
    assert at(29.5, copy_of(daily)).cleanup() == []


def test_cleanup_runs_after_a_checkpoint_of_a_commit(daily):
    """Nobody has to remember to call it."""
    store = copy_of(daily)
    config = Config.of(
        write={"spark.indextables.checkpoint.interval": 1, "spark.indextables.log.retention": "10 days"}
    )
    at(61, store, config=config).commit(lambda s: appending(add_of(61)))
    assert versions(store)[0] == 50
    assert numbers(at(61, store).snapshot()) == list(range(62))


def test_a_log_whose_age_nobody_knows_is_left_alone():
    """Commits without a time prove nothing."""
    store = fresh_store()
    write_foreign(store, {0: [foreign_metadata()], **{v: [foreign_add(v)] for v in range(1, 5)}})
    log = TransactionLog(store)
    log.checkpoint()
    log.checkpoint()
    assert log.cleanup() == []


def test_reading_while_a_cleanup_deletes_still_ends_well(daily):
    """A listing may show what is gone a moment later; the next one shows what was kept."""
    inner = copy_of(daily)

    class Racing(FaultyStore):
        raced = False

        def list(self, prefix, *, start_after=None):
            found = list(super().list(prefix, start_after=start_after))
            if not self.raced:
                self.raced = True
                at(400, inner).cleanup()
            return iter(found)

    inner.delete(NAMES.hint)
    inner.put(NAMES.checkpoint(60), b"torn")
    store = Racing(inner)
    assert numbers(at(400, store).snapshot()) == list(range(61))


def test_a_missing_commit_is_still_an_error_after_all_tries(daily):
    """Trying again must not hide a hole."""
    store = copy_of(daily)
    store.delete(NAMES.commit(55))
    for version in (60,):
        store.delete(NAMES.checkpoint(version))
    with pytest.raises(LogCorruptedError, match="000000000000000055.json is missing"):
        at(60, store).snapshot()
