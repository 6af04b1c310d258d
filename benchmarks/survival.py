"""Writers that are killed again and again, with vacuum at retention 0 beside them: what was acknowledged is there.

    python benchmarks/survival.py --processes 64 --seconds 600 [--uri s3://bucket/t --endpoint URL]

Each writer appends numbers of its own and prints each once it is committed. Every half second one of them is
killed with SIGKILL and started again; two processes vacuum with no retention, one writer cuts the history.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa

import indextables as it
from indextables.errors import IndexTablesError

SCHEMA = pa.schema([("writer", pa.int64()), ("number", pa.int64())])
NOW = {"spark.indextables.vacuum.retention": "0 seconds"}


def work(uri: str, writer: int, first: int, options: dict[str, str]) -> None:
    number = first
    while True:
        try:
            table = it.Table(uri, storage_options=options)
            if writer < 0:
                table.vacuum(apply=True, allow_short_retention=True, options=NOW)
                time.sleep(0.2)
                continue
            table.append(pa.table({"writer": [writer], "number": [number]}, SCHEMA))
            print(number, flush=True)
            number += 1
        except IndexTablesError as error:
            print(f"{type(error).__name__} {number}", flush=True)
            number += 1  # what became of this one is not known: it is there once, or not at all


def start(
    uri: str, writer: int, first: int, options: dict[str, str], directory: Path
) -> subprocess.Popen:
    output = (directory / f"{writer}.txt").open("a")
    command = [sys.executable, __file__, "--work", uri, str(writer), str(first), json.dumps(options)]
    return subprocess.Popen(command, stdout=output)


def acknowledged(directory: Path, writers: int) -> tuple[Counter, int]:
    found: Counter = Counter()
    refused = 0
    for writer in range(writers):
        for line in (directory / f"{writer}.txt").read_text().splitlines():
            if line.isdigit():
                found[writer, int(line)] += 1
            else:
                refused += 1
    return found, refused


def survive(uri: str, processes: int, seconds: float, options: dict[str, str]) -> dict[str, object]:
    table = it.Table.create(uri, SCHEMA, storage_options=options)
    writers = max(processes - 2, 1)
    chance = random.Random(7)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        running = {w: start(uri, w, 0, options, directory) for w in [*range(writers), -1, -2]}
        starts = Counter(list(running))
        kills, until = 0, time.monotonic() + seconds
        try:
            while time.monotonic() < until:
                time.sleep(0.5)
                victim = chance.choice(list(running))
                running[victim].kill()
                running[victim].wait()
                kills += 1
                starts[victim] += 1
                running[victim] = start(uri, victim, starts[victim] * 1_000_000, options, directory)
        finally:
            for process in running.values():
                process.kill()
                process.wait()
        told, refused = acknowledged(directory, writers)
    rows = table.scan().to_arrow()
    there = Counter(zip(rows["writer"].to_pylist(), rows["number"].to_pylist(), strict=True))
    return {
        "processes": processes,
        "seconds": seconds,
        "commits": table.version,
        "kills": kills,
        "acknowledged": len(told),
        "refused": refused,
        "lost": len(set(told) - set(there)),
        "twice": sum(count > 1 for count in there.values()),
        "problems": len(table.check().problems),
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), json.loads(sys.argv[5]))
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--uri")
    parser.add_argument("--endpoint")
    arguments = parser.parse_args()
    options = {}
    if arguments.endpoint:
        options = {"endpoint": arguments.endpoint, "region": "us-east-1"}
        options |= {"access_key_id": "test", "secret_access_key": "test"}
    with tempfile.TemporaryDirectory() as directory:
        uri = arguments.uri or f"{directory}/t"
        found = survive(uri, arguments.processes, arguments.seconds, options)
    print(json.dumps(found, indent=1))
    sys.exit(bool(found["lost"] or found["twice"] or found["problems"]))
