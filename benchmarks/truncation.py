"""What truncating statistics does to the log of a table with long texts (seed 000).

    python benchmarks/truncation.py [--splits 100] [--characters 8000] [--columns 1 8]

One commit of 100 splits with 8,000-character articles, with truncation off, on (the default: drop)
and with `bound`. Prints the size of the log, the time to open it, and the time to plan a query on it,
for one column of articles and for eight (title to comments: the 12 MB commit of the seed's example).
"read" is both together: a log is read once a query can be planned on what it says. Fails if the default log is
not 95 % smaller, or does not open 10 times faster, than without truncation, for any number of columns.
"""

from __future__ import annotations

import argparse
import random
import string
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from common import save

import indextables as it
from indextables.log.transaction_log import TransactionLog
from indextables.plan.planner import plan_files
from indextables.storage.open import open_store

PREFIX = "spark.indextables.stats.truncation."
VARIANTS = {
    "off": {f"{PREFIX}enabled": False},
    "drop (default)": {},
    "bound": {f"{PREFIX}strategy": "bound"},
}


def articles(splits: int, characters: int, columns: int) -> pa.Table:
    """Two articles per split, so that the least and the greatest are both long."""
    chance = random.Random(0)
    letters = string.ascii_letters + "     äöü"

    def text() -> str:
        return "".join(chance.choices(letters, k=characters))

    rows = splits * 2
    data = {"split": [i // 2 for i in range(rows)], "id": list(range(rows))}
    data |= {f"article_{c}": [text() for _ in range(rows)] for c in range(columns)}
    return pa.table(data)


def write(path: Path, data: pa.Table, options: dict) -> float:
    table = it.Table.create(path, data.schema, partition_by=["split"], properties=options)
    started = time.perf_counter()
    table.append(data)
    return time.perf_counter() - started


def log_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in (path / "_transaction_log").iterdir())


def measure(paths: dict[str, Path], repeats: int) -> dict[str, dict[str, float]]:
    """Best milliseconds to open each log from nothing, and to plan a point query on what was opened.

    The variants take turns, so that a busy machine slows all of them alike.
    """
    best = {name: {"open_ms": float("inf"), "plan_ms": float("inf")} for name in paths}
    for _ in range(repeats):
        for name, path in paths.items():
            started = time.perf_counter()
            snapshot = TransactionLog(open_store(path)).snapshot()
            opened = time.perf_counter()
            assert len(plan_files(snapshot, it.col("id") == 7).files) == 1
            planned = time.perf_counter()
            best[name]["open_ms"] = min(best[name]["open_ms"], (opened - started) * 1000)
            best[name]["plan_ms"] = min(best[name]["plan_ms"], (planned - opened) * 1000)
    return best


def run(columns: int, options: argparse.Namespace) -> dict:
    data = articles(options.splits, options.characters, columns)
    with tempfile.TemporaryDirectory() as root:
        paths = {name: Path(root) / name.split()[0] for name in VARIANTS}
        written = {name: write(paths[name], data, settings) for name, settings in VARIANTS.items()}
        times = measure(paths, options.repeats)
        rows = {
            name: {"bytes": log_bytes(path), **times[name], "write_s": written[name]}
            for name, path in paths.items()
        }
    off, on = rows["off"], rows["drop (default)"]
    return {
        "columns": columns,
        "variants": rows,
        "smaller": 1 - on["bytes"] / off["bytes"],
        "faster": off["open_ms"] / on["open_ms"],
        "read_faster": (off["open_ms"] + off["plan_ms"]) / (on["open_ms"] + on["plan_ms"]),
    }


def show(found: dict, options: argparse.Namespace) -> None:
    print(
        f"\n{options.splits} splits, {found['columns']} column(s) of {options.characters:,} characters, one commit"
    )
    print(f"{'truncation':<16}{'log bytes':>12}{'open ms':>10}{'plan ms':>10}{'write s':>10}")
    for name, row in found["variants"].items():
        numbers = (
            f"{row['bytes']:>12,}{row['open_ms']:>10.2f}{row['plan_ms']:>10.2f}{row['write_s']:>10.2f}"
        )
        print(f"{name:<16}{numbers}")
    print(
        f"the default log is {found['smaller']:.1%} smaller, opens {found['faster']:.1f} times faster, "
        f"and is read (opened and planned on) {found['read_faster']:.1f} times faster"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--characters", type=int, default=8000)
    parser.add_argument("--columns", type=int, nargs="+", default=[1, 8], help="columns of articles")
    parser.add_argument("--repeats", type=int, default=100)
    options = parser.parse_args()
    results = [run(columns, options) for columns in options.columns]
    for found in results:
        show(found, options)
    save("truncation", {"options": vars(options), "tables": results})
    missed = [r["columns"] for r in results if r["smaller"] < 0.95 or r["faster"] < 10]
    if missed:
        print(f"\nbelow 95 % smaller or 10 times faster, by number of columns: {missed}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
