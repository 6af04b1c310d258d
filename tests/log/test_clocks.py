"""Any one clock may be wrong: nothing within the retention is lost, and time goes on afterwards."""

import logging

import pytest

from indextables.errors import ObjectNotFoundError
from indextables.log.wire.actions import Protocol, Remove
from indextables.log.commit.intent import Append, CommitPlan
from indextables.log.transaction_log import TransactionLog
from indextables.ops.truncate_history import truncate_time_travel
from indextables.ops.vacuum import vacuum
from support.clocks import DAY, Machines
from support.logs import (
    METADATA,
    add_of,
    appending,
    file_of,
    foreign_add,
    foreign_metadata,
    fresh_store,
    new_log,
    remove_of,
    rewriting,
    write_foreign,
)

START = 1_700_000_000_000
YEAR = 365 * DAY
GONE = "data/0-00000000-0000-0000-0000-000000000000/gone.parquet"
WRONG = {"a year ahead": YEAR, "ten years ahead": 10 * YEAR, "three weeks behind": -21 * DAY}


def table_of(machines):
    """Forty days with a commit each; one file of the first day is really there."""
    machines.store.put(GONE, b"rows")
    machines.log().create(
        CommitPlan(Append(), "CREATE TABLE", (Protocol(), METADATA, add_of(0, path=GONE)))
    )
    for day in range(1, 41):
        machines.time.now += DAY
        machines.log().commit(lambda _, day=day: appending(add_of(day)))


def removing(machines, off_by=0):
    """The file is removed by a machine whose clock may be off; returns the last version that has it."""
    log = machines.log(off_by)
    last = log.snapshot().version
    log.commit(lambda _: rewriting(Remove(GONE)))
    return last


def is_there(machines):
    try:
        machines.store.head(GONE)
    except ObjectNotFoundError:
        return False
    return True


@pytest.mark.parametrize("has_own_clock", [False, True])
@pytest.mark.parametrize(
    ("who", "off_by"),
    [
        ("nobody", 0),
        *((who, wrong) for who in ("remover", "vacuumer", "bystander") for wrong in WRONG.values()),
    ],
)
def test_one_wrong_clock_makes_no_file_and_no_history_old(who, off_by, has_own_clock):
    """Two days after its removal the file and the version that has it are there; two weeks later it is not."""
    machines = Machines(START, has_own_clock=has_own_clock)
    table_of(machines)
    last = removing(machines, off_by if who == "remover" else 0)
    for _ in range(2):
        machines.time.now += DAY
        wrong = machines.log(off_by if who == "bystander" else 0)
        for number in range(60, 71):  # past a checkpoint and the cleanup after it
            wrong.commit(lambda _, number=number: appending(add_of(number)))
        vacuum(machines.log(off_by if who == "vacuumer" else 0), apply=True)
        machines.log(off_by if who == "vacuumer" else 0).cleanup()
    assert is_there(machines)
    assert GONE in machines.log().snapshot(last).column("key").to_pylist()
    assert machines.log().snapshot(15).num_files == 16  # current 27 days ago, history is kept for 30
    for day in range(14):
        machines.time.now += DAY
        machines.log().commit(lambda _, day=day: appending(add_of(200 + day)))
    vacuum(machines.log(), apply=True)
    assert not is_there(machines)


@pytest.mark.parametrize("has_own_clock", [False, True])
def test_a_table_nobody_writes_to_is_vacuumed_all_the_same(has_own_clock):
    """The mark is a commit: a store with a clock says at once what time it is, a local disk after a while."""
    machines = Machines(START, has_own_clock=has_own_clock)
    table_of(machines)
    removing(machines)
    machines.time.now += 30 * DAY
    first = vacuum(machines.log(), apply=True)
    assert (is_there(machines), first.waiting) == ((False, 0) if has_own_clock else (True, 1))
    for _ in range(2):
        machines.time.now += 30 * DAY
        vacuum(machines.log(), apply=True)
    assert not is_there(machines)
    version = machines.log().snapshot().version
    machines.time.now += 30 * DAY
    vacuum(machines.log(), apply=True)
    assert vacuum(machines.log(), apply=True).waiting == 0
    assert machines.log().snapshot().version <= version + 1  # the mark, and nothing more to wait for


@pytest.mark.parametrize("has_own_clock", [False, True])
def test_a_writer_years_ahead_does_not_stop_time_travel(has_own_clock):
    """The commits after it have to claim later times still; the store knows when they were made."""
    machines = Machines(START, has_own_clock=has_own_clock)
    table_of(machines)
    machines.log(10 * YEAR).commit(lambda _: appending(add_of(50)))
    for number in (51, 52):
        machines.time.now += DAY
        machines.log().commit(lambda _, number=number: appending(add_of(number)))
    log = machines.log()
    assert log.snapshot(timestamp=machines.time.now).version == 43
    assert log.snapshot(timestamp=machines.time.now - DAY).version == 42
    assert log.snapshot(timestamp=START + 20 * DAY).version == 20
    times = [entry.timestamp_ms for entry in log.history()]
    assert times == sorted(times, reverse=True)


def test_a_clock_that_is_far_behind_the_table_is_said(caplog):
    """Whichever of the two is wrong, somebody has to look."""
    machines = Machines(START, has_own_clock=True)
    table_of(machines)
    with caplog.at_level(logging.WARNING, "indextables"):
        machines.log(-600_000).commit(lambda _: appending(add_of(50)))
        assert not caplog.records
        machines.log(-2 * DAY).commit(lambda _: appending(add_of(51)))
    assert "48.0 hours from now" in caplog.text


def test_a_remove_has_the_time_of_its_commit():
    """The clock of whoever planned it has no say."""
    log = new_log(None, add_of(1), now_ms=lambda: START)
    log.commit(lambda _: rewriting(remove_of(1, when=5)))
    assert TransactionLog(log.store).snapshot().tombstones.column("deletion_timestamp").to_pylist() == [
        START + 1
    ]


def test_a_remove_that_says_it_was_before_its_commit_is_read_with_the_commits_time():
    """Older versions of this library wrote the clock of the remover."""
    store = fresh_store()
    lines = [
        *(
            {"remove": {"path": f"part-{n:05}.parquet", "deletionTimestamp": t}}
            for n, t in ((1, 5), (2, 9000))
        ),
        {"remove": {"path": "part-00003.parquet"}},
        {"commitInfo": {"timestamp": 1000}},
    ]
    adds = [foreign_add(number) for number in (1, 2, 3)]
    write_foreign(store, {0: [foreign_metadata(), *adds], 1: lines})
    found = TransactionLog(store).snapshot().tombstones
    assert found.column("deletion_timestamp").to_pylist() == [1000, 9000, None]


def test_a_file_that_came_and_went_within_the_retention_is_kept_by_versions_not_by_clocks():
    """Its writer began before the oldest version, and its remove says that it went long ago."""
    machines = Machines(START, has_own_clock=True)
    table_of(machines)
    machines.store.put(GONE, b"rows")
    log = machines.log()
    log.commit(lambda _: rewriting(Remove(GONE)))
    log.commit(lambda _: appending(add_of(0, path=GONE)))
    removing(machines, -21 * DAY)
    machines.time.now += DAY
    assert vacuum(machines.log(), apply=True).files == ()
    assert is_there(machines)
    assert file_of(0) not in machines.log().snapshot().column("key").to_pylist()


@pytest.mark.parametrize(("days", "is_kept"), [(5, True), (12, False)])
def test_in_a_log_that_reaches_back_a_day_the_times_of_the_removes_decide(days, is_kept):
    """Its owner gave up the history, so no version is old enough; the files need not stay for ever."""
    machines = Machines(START, has_own_clock=False)
    table_of(machines)
    removing(machines)
    for _ in range(days):
        machines.time.now += DAY
        machines.log().commit(lambda _: appending(add_of(70)))
    truncate_time_travel(machines.log(), apply=True)
    machines.time.now += DAY
    machines.log().commit(lambda _: appending(add_of(71)))
    vacuum(machines.log(), apply=True)
    assert is_there(machines) == is_kept
