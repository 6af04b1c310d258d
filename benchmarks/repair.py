"""How long REPAIR takes, and how much memory, for a log bloated by long statistics.

    python benchmarks/repair.py                     100,000 adds in 100 commits, 4,000 characters per bound
    python benchmarks/repair.py --commits 1         the same in one commit of 800 MB

The log is written first (not measured). The repair runs in a process of its own, so that its peak memory
is its own. `validate` asks the file system for every one of the splits.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from uuid import uuid4

from common import save


def write_log(root: Path, adds: int, commits: int, length: int) -> None:
    from indextables.core.types import Field, PrimitiveType, StructType
    from indextables.log.wire.actions import CommitInfo, Metadata, Protocol
    from indextables.log.wire.codec import encode_action
    from indextables.log.wire.files import seal

    fields = (("id", "long"), ("title", "string"), ("score", "double"))
    schema = StructType(tuple(Field(name, PrimitiveType(kind)) for name, kind in fields))
    log = root / "_transaction_log"
    log.mkdir(parents=True)
    parent = uuid4().hex
    first = CommitInfo("CREATE TABLE", 1, parent, num_files=0)
    actions = (Protocol(), Metadata("bench", schema))
    (log / f"{0:018d}.json").write_bytes(seal(actions, first, seq=0, schema=schema))
    per_commit = adds // commits
    for version in range(1, commits + 1):
        lines = []
        for number in range((version - 1) * per_commit, version * per_commit):
            key = f"data/{version - 1}-{version:08d}/part-{number:06d}.parquet"
            path = root / key
            if number % per_commit == 0:
                path.parent.mkdir(parents=True)
            path.write_bytes(b"x")
            text = f"{number:06d}" + "lorem ipsum " * (length // 12 + 1)
            stats = {
                "numRecords": 1000,
                "minValues": {"id": number * 1000, "title": text[:length], "score": 0.25},
                "maxValues": {
                    "id": number * 1000 + 999,
                    "title": "z" + text[: length - 1],
                    "score": 9.5,
                },
                "nullCount": {"id": 0, "title": 0, "score": 3},
                "nanCount": {"score": 0},
            }
            add = {
                "path": key,
                "partitionValues": {},
                "size": 1,
                "modificationTime": 1,
                "dataChange": True,
                "stats": stats,
                "schemaId": 0,
                "seq": version,
            }
            lines.append(json.dumps({"add": add}, separators=(",", ":")).encode() + b"\n")
        body = b"".join(lines)
        own = uuid4().hex
        info = CommitInfo(
            "APPEND", version + 1, own, parent, num_files=version * per_commit,
            actions=len(lines), crc32=zlib.crc32(body),
        )  # fmt: skip
        trailer = encode_action(info, seq=version, schema=schema)
        (log / f"{version:018d}.json").write_bytes(body + trailer)
        parent = own


def peak_memory_mb() -> float:
    """Of this process alone: ru_maxrss also remembers the parent that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(root: Path, parallelism: int) -> dict:
    """Runs in a process of its own."""
    import indextables.ops.repair as ops

    idle = peak_memory_mb()
    reports = []
    started, cpu = time.perf_counter(), time.process_time()
    result = ops.repair(
        root / "_transaction_log",
        root / "_transaction_log_repaired",
        parallelism=parallelism,
        progress=lambda done, total: reports.append((done, total)),
    )
    seconds = time.perf_counter() - started
    return {
        "status": result.status,
        "splits": result.valid_splits,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "progress_reports": len(reports),
        "idle_memory_mb": round(idle),
        "peak_memory_mb": round(peak_memory_mb()),
    }


def size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--adds", type=int, default=100_000)
    parser.add_argument("--commits", type=int, default=100)
    parser.add_argument("--length", type=int, default=4000, help="characters of each text bound")
    parser.add_argument("--parallelism", type=int, default=4)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.parallelism)))
        return 0
    root = Path(tempfile.mkdtemp(prefix="repair-bench-"))
    try:
        write_log(root, options.adds, options.commits, options.length)
        command = [
            sys.executable,
            __file__,
            "--measure",
            str(root),
            "--parallelism",
            str(options.parallelism),
        ]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout)
        found |= {
            "adds": options.adds,
            "commits": options.commits,
            "characters_per_bound": options.length,
            "log_mb_before": round(size_of(root / "_transaction_log") / 1e6, 1),
            "log_mb_after": round(size_of(root / "_transaction_log_repaired") / 1e6, 1),
        }
    finally:
        shutil.rmtree(root)
    for name, value in found.items():
        print(f"{name:>22}  {value}")
    save("repair", found)
    return 0 if found["status"] == "SUCCESS" and found["peak_memory_mb"] < 1000 else 1


if __name__ == "__main__":
    raise SystemExit(main())
