"""Many processes upsert the same keys of one local table: no key twice, no row lost."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from support.upserter import SHARED

import indextables as it

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("writer", pa.int64()), ("number", pa.int64())]
)
TESTS = Path(__file__).parents[2]


def contend(path, writers, commits):
    table = it.Table.create(path, SCHEMA, record_key=["id"])
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]),
    }
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "support.upserter", table.uri, str(writer), str(commits)],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for writer in range(writers)
    ]
    for process in processes:
        told = process.communicate(timeout=280)[0].split()
        assert told == ["ready", *map(str, range(commits))]
        assert process.returncode == 0
    deletes = commits // 3
    assert table.version == writers * (commits + deletes)
    found = {r["id"]: (r["writer"], r["number"]) for r in table.scan().to_arrow().to_pylist()}
    own = {
        1000 * (writer + 1) + number: (writer, number)
        for writer in range(writers)
        for number in range(commits)
        if not (number % 3 == 1 and number + 1 < commits)
    }
    assert {key: value for key, value in found.items() if key >= 1000} == own
    assert {key for key in found if key < 1000} == set(range(SHARED))
    # keys of one commit come from one writer: an upsert is seen whole or not at all
    newest = found[SHARED - 1]
    assert all(found[key] == newest for key in range(newest[1] % SHARED, SHARED))
    assert table.scan().count() == len(found)
    assert table.check(deep=True).problems == ()


def test_eight_processes_upsert_the_same_keys(tmp_path):
    """Each key is there once, with what the last commit said, and every writer's own rows are there."""
    contend(tmp_path / "t", writers=8, commits=5)


@pytest.mark.slow
def test_eight_processes_upsert_for_a_while(tmp_path):
    """The same with more commits."""
    contend(tmp_path / "t", writers=8, commits=20)
