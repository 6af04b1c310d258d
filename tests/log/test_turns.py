"""A writer that has lost twice gets its turn, and nothing relies on that."""

from __future__ import annotations

import threading
import time

import pytest

from indextables.errors import CommitConflictError
from indextables.log.commit.intent import Append, CommitPlan, Rewrite
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.files import LogNames
from support.logs import NO_CHECKPOINTS, add_of, appending, new_log

TURN = LogNames().turns


def writing(log, stop, errors):
    """Commits as fast as it can, one row after the other."""
    mine = TransactionLog(log.store, NO_CHECKPOINTS)
    number = 0
    while not stop.is_set():
        number += 1
        path = f"data/0-fast/{threading.get_ident()}-{number}.parquet"
        try:
            mine.commit(lambda _, path=path: CommitPlan(Append(), "APPEND", (add_of(1, path=path),)))
        except Exception as error:
            errors.append(error)
            return


def test_a_slow_writer_beside_eight_fast_ones_commits_within_five_attempts():
    """It has to plan again whatever they do, and that takes longer than their commits."""
    log, stop, errors = new_log(), threading.Event(), []
    threads = [threading.Thread(target=writing, args=(log, stop, errors)) for _ in range(8)]

    def slow(snapshot):
        time.sleep(0.2)
        return CommitPlan(Rewrite(None), "OVERWRITE", (add_of(2),))

    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            mine = TransactionLog(log.store, NO_CHECKPOINTS)
            assert mine.commit(slow).attempts <= 5
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert errors == []
    assert not [meta for meta in log.store.list(TURN)], "every request is taken away"


def test_a_request_of_a_dead_writer_holds_others_up_for_ten_seconds_once():
    """It is removed by whoever has waited for it."""
    pauses = []
    log = new_log(None, add_of(1), pause=pauses.append)
    log.store.put(LogNames().turn("dead"), b"")
    log.snapshot()
    log.commit(lambda _: appending(add_of(2)))
    assert 9 < sum(pauses) < 11
    pauses.clear()
    log.snapshot()
    log.commit(lambda _: appending(add_of(3)))
    assert pauses == []


def test_a_request_is_taken_away_when_the_commit_fails():
    """Otherwise every conflict would hold the others up."""
    log = new_log(None, add_of(1))
    other = TransactionLog(log.store, NO_CHECKPOINTS, pause=lambda _: None)

    def overtaken(snapshot):
        other.commit(lambda _: CommitPlan(Rewrite(None), "OVERWRITE", (add_of(snapshot.version + 10),)))
        if snapshot.version > 4:
            raise CommitConflictError("given up")
        return CommitPlan(Rewrite(None), "OVERWRITE", (add_of(5),))

    with pytest.raises(CommitConflictError, match="given up"):
        log.commit(overtaken)
    assert not list(log.store.list(TURN))


def test_requests_are_no_part_of_the_log():
    """A reader passes over them, and a directory with nothing else holds no table."""
    log = new_log(None, add_of(1))
    log.store.put(LogNames().turn("somebody"), b"")
    assert TransactionLog(log.store).snapshot().version == 0
    log.store.delete(LogNames().commit(0))
    assert not TransactionLog(log.store).exists()
