"""Many processes, one local table: every commit is there, once, also when processes die."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import indextables as it

SCHEMA = pa.schema([("writer", pa.int64()), ("number", pa.int64())])
TESTS = Path(__file__).parents[1]


def start(uri, writer, first, count):
    """A writer process that has opened the table."""
    return run("support.appender", uri, writer, first, count)


def run(module, *arguments):
    """A process of a program in tests/support."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def rows_of(table):
    found = table.scan().to_arrow()
    return list(
        zip(found.column("writer").to_pylist(), found.column("number").to_pylist(), strict=True)
    )


def test_eight_processes_append_fifty_commits_each(tmp_path):
    """All 400 commits are there, no row is lost or doubled, and the log is sound."""
    table = it.Table.create(tmp_path / "t", SCHEMA)
    processes = [start(table.uri, writer, 0, 50) for writer in range(8)]
    for process in processes:
        assert process.communicate(timeout=240)[0].split() == ["ready", *map(str, range(50))]
        assert process.returncode == 0
    assert table.version == 400
    assert Counter(rows_of(table)) == Counter((w, n) for w in range(8) for n in range(50))
    versions = [entry.version for entry in table.history()]
    assert versions == list(range(400, -1, -1))
    assert table.check().problems == ()


def test_processes_killed_at_random_moments_lose_and_double_nothing(tmp_path):
    """What a writer was told is committed stays; what it was not told is there once or not at all."""
    chance = random.Random(7)
    table = it.Table.create(tmp_path / "t", SCHEMA)
    told: set[tuple[int, int]] = set()
    started = [start(table.uri, writer, 0, 1000) for writer in range(4)]
    for process in started:
        process.stdout.readline()
    deadline = time.monotonic() + 6
    for writer, process in enumerate(started):
        time.sleep(
            chance.uniform(0.3, max(0.4, (deadline - time.monotonic()) / (len(started) - writer)))
        )
        process.send_signal(signal.SIGKILL)
    for writer, process in enumerate(started):
        told |= {(writer, int(line)) for line in process.communicate()[0].split()}
        assert process.returncode == -signal.SIGKILL
    found = Counter(rows_of(it.Table(table.uri)))
    assert told <= set(found)
    assert len(set(found) - told) <= len(started)
    assert set(found.values()) == {1}
    assert table.check(deep=True).problems == ()
    # what the dead left behind is no obstacle and is collected
    table.append(pa.table({"writer": [99], "number": [0]}, SCHEMA))
    table.vacuum(
        apply=True,
        allow_short_retention=True,
        options={"spark.indextables.vacuum.retention": "0 seconds"},
    )
    assert set(rows_of(table)) == {*found, (99, 0)}


SHOWN = {
    "append": lambda rows: len(rows) - 1 if sorted(rows) == list(range(len(rows))) else None,
    "overwrite": lambda rows: rows[0] if rows == rows[:1] * 5 else None,
}
"""The number of the commit that rows are the state of; None for rows that no version has."""


@pytest.mark.parametrize(("verb", "form"), [("append", "parquet"), ("overwrite", "json")])
def test_readers_see_whole_versions_while_a_writer_cleans_up_behind_itself(tmp_path, verb, form):
    """A checkpoint each second commit, no history kept, vacuum now and then: no error, nothing torn or old."""
    settings = {"checkpoint.interval": 2, "log.retention": "0 seconds", "checkpoint.format": form}
    table = it.Table.create(
        tmp_path / "t",
        pa.schema([("n", pa.int64())]),
        properties={f"spark.indextables.{name}": value for name, value in settings.items()},
    )
    table.append(pa.table({"n": [0] * (1 if verb == "append" else 5)}))
    writer = run("support.churner", table.uri, verb, 2)
    writer.stdout.readline()

    def read(open_table):
        """The commits it saw, one after the other."""
        seen = []
        while writer.poll() is None:
            seen.append(SHOWN[verb](open_table().scan().to_arrow().column("n").to_pylist()))
        return seen

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read, how) for how in (lambda: it.Table(table.uri), lambda: table)]
        seen = [reader.result() for reader in readers]
    last = int(writer.stdout.readline())
    assert all(None not in one and one == sorted(one) for one in seen)
    assert SHOWN[verb](table.scan().to_arrow().column("n").to_pylist()) == last
    assert not (tmp_path / "t/_transaction_log/000000000000000000.json").exists() or last < 6
    assert table.check().problems == ()
