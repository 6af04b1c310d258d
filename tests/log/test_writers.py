"""Many processes, one log on a real file system, some of them killed."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from indextables.log.wire.files import LogNames
from support.logs import same_state
from indextables.log.transaction_log import TransactionLog
from indextables.storage.open import open_store
from support.logs import appending, add_of, new_log, numbers

WORKERS, COMMITS = 8, 50
TESTS = Path(__file__).parents[1]


def worker(root: str, number: int, commits: int) -> None:
    """Commits split number·1000 + i for each i; prints each once it is in the table."""
    log = TransactionLog(open_store(root))
    for i in range(commits):
        log.commit(lambda s, i=i: appending(add_of(1000 * number + i)))
        print(1000 * number + i, flush=True)


def start(root, number, commits=COMMITS):
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    command = [sys.executable, __file__, str(root), str(number), str(commits)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)


def printed(process):
    return [int(line) for line in process.communicate()[0].splitlines() if line.strip().isdigit()]


def check_log(root, expected_versions):
    """Every version is there once, and a new handle sees what replaying everything gives."""
    store = open_store(root)
    snapshot = TransactionLog(store).snapshot()
    commits = [
        file for file in LogNames().parse_all(store.list("_transaction_log/")) if file.kind == "commit"
    ]
    assert sorted(file.version for file in commits) == list(range(expected_versions))
    for file in LogNames().parse_all(store.list("_transaction_log/")):
        if file.kind == "checkpoint":
            store.delete(file.key)
    assert same_state(TransactionLog(store).snapshot(), snapshot)
    return snapshot


@pytest.mark.slow  # tests/table/test_processes.py does the same through tables
def test_eight_processes_with_fifty_commits_each_lose_and_double_nothing(tmp_path):
    """400 commits, each by an exclusive link, with checkpoints on the way."""
    new_log(open_store(tmp_path))
    processes = [start(tmp_path, n) for n in range(WORKERS)]
    done = [printed(process) for process in processes]
    assert [process.returncode for process in processes] == [0] * WORKERS
    snapshot = check_log(tmp_path, 1 + WORKERS * COMMITS)
    assert numbers(snapshot) == sorted(1000 * n + i for n in range(WORKERS) for i in range(COMMITS))
    assert sorted(sum(done, [])) == numbers(snapshot)
    assert snapshot.version == WORKERS * COMMITS


@pytest.mark.parametrize("seed", [1, 2])
def test_processes_killed_at_random_moments_leave_whole_commits_only(tmp_path, seed):
    """What was reported as committed is there; at most the last one of each victim is there unreported."""
    chance = random.Random(seed)
    new_log(open_store(tmp_path))
    # more commits than a victim can make before it is killed, however fast the machine is
    processes = [start(tmp_path, n, 999 if n < 3 else 5) for n in range(4)]
    victims = processes[:3]
    first = [int(process.stdout.readline()) for process in processes]  # all are at work now
    for victim in victims:
        time.sleep(chance.uniform(0.0, 0.1))
        victim.send_signal(signal.SIGKILL)
    done = [[number, *printed(process)] for number, process in zip(first, processes, strict=True)]
    assert all(process.returncode == -signal.SIGKILL for process in victims)
    assert all(process.returncode == 0 for process in processes[3:])
    snapshot = TransactionLog(open_store(tmp_path)).snapshot()
    for n, reported in enumerate(done):
        mine = [i for i in numbers(snapshot) if i // 1000 == n]
        assert mine[: len(reported)] == reported
        assert len(mine) - len(reported) <= (1 if n < 3 else 0)
    check_log(tmp_path, snapshot.version + 1)
    TransactionLog(open_store(tmp_path)).commit(lambda s: appending(add_of(99_000)))


if __name__ == "__main__":
    worker(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
