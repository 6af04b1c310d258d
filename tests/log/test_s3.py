"""The log on a real S3 server: writers that race, answers that get lost, parts read by range."""

import threading

from indextables.config import Config
from indextables.log.wire.files import LogNames
from support.logs import same_state
from indextables.log.transaction_log import TransactionLog
from indextables.storage.open import open_store
from support.logs import add_of, appending, new_log, numbers, remove_of, rewriting
from support.s3 import Misbehaviour, misbehaving

NAMES = LogNames()


def test_two_writers_racing_for_every_version_lose_nothing(s3_server):
    """Each reads the same version before either commits."""
    uri = s3_server.uri("race")
    new_log(open_store(uri, options=s3_server.options))
    start = threading.Barrier(2)
    attempts, errors = [], []

    def work(base):
        try:
            log = TransactionLog(open_store(uri, options=s3_server.options))
            for i in range(4):
                stale = log.snapshot()
                start.wait(timeout=60)
                done = log.commit(lambda s, i=i: appending(add_of(base + i)), snapshot=stale)
                attempts.append(done.attempts)
        except Exception as error:
            errors.append(error)
            start.abort()

    threads = [threading.Thread(target=work, args=(base,)) for base in (0, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    snapshot = TransactionLog(open_store(uri, options=s3_server.options)).snapshot()
    assert (snapshot.version, numbers(snapshot)) == (8, [0, 1, 2, 3, 100, 101, 102, 103])
    assert sum(attempts) > len(attempts)


def test_a_commit_that_the_server_stored_and_answered_with_500_is_committed_once(s3_server):
    """The client retries by itself and is told that the key exists: it is its own."""
    uri = s3_server.uri("lost")
    new_log(open_store(uri, options=s3_server.options))
    how = Misbehaviour(lose_answers=1, only="000000000000000001.json")
    with misbehaving(s3_server, how) as proxy:
        log = TransactionLog(open_store(uri, options=proxy.options), pause=lambda _: None)
        assert log.commit(lambda s: appending(add_of(1))).version == 1
    assert how.lose_answers == 0
    snapshot = TransactionLog(open_store(uri, options=s3_server.options)).snapshot()
    assert (snapshot.version, numbers(snapshot)) == (1, [1])


def test_a_checkpoint_with_parts_is_written_and_read(s3_server):
    """Through Arrow's file system over the store."""
    uri = s3_server.uri("parts")
    store = open_store(uri, options=s3_server.options)
    config = Config.of(write={"spark.indextables.checkpoint.format": "parquet"})
    log = new_log(store, *(add_of(i) for i in range(300)), config=config)
    log.commit(lambda s: rewriting(remove_of(7), add_of(1000)))
    before = log.snapshot()
    log.checkpoint()
    for version in (0, 1):
        store.delete(NAMES.commit(version))
    opened = TransactionLog(open_store(uri, options=s3_server.options)).snapshot()
    assert same_state(opened, before)
