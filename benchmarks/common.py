"""What the benchmark programs share: fair timing, a table on the screen, a result on disk."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("pyarrow", "numpy", "orjson", "deltalake", "pyiceberg", "pyspark", "duckdb", "polars")


def interleaved(work: Mapping[str, Callable[[], Any]], runs: int) -> dict[str, list[float]]:
    """Seconds of each run of each candidate; they take turns, so a busy machine slows all alike.

    Each round has another order, so that nobody always comes after the one that empties the caches. One
    round beforehand is not counted: it pays for imports.
    """
    seconds: dict[str, list[float]] = {name: [] for name in work}
    order = random.Random(58)
    for turn in range(runs + 1):
        for name, call in order.sample(list(work.items()), len(work)):
            started = time.perf_counter()
            call()
            if turn:
                seconds[name].append(time.perf_counter() - started)
    return seconds


def best_ms(seconds: Sequence[float]) -> float:
    """The fastest run: other work on the machine can only add to it."""
    return min(seconds) * 1000


def median_ms(seconds: Sequence[float]) -> float:
    return statistics.median(seconds) * 1000


def print_table(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Columns as wide as they need to be; numbers to the right."""
    print(f"\n{title}")
    names = list(rows[0])
    cells = [[_cell(row.get(name)) for name in names] for row in rows]
    widths = [max(len(name), *(len(row[i]) for row in cells)) for i, name in enumerate(names)]
    numeric = [isinstance(rows[0].get(name), int | float) for name in names]
    for row in (names, *cells):
        parts = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(row, widths, numeric, strict=True)
        ]
        print("  " + "  ".join(parts).rstrip())


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str("" if value is None else value)


def save(name: str, results: Any) -> Path:
    """Writes the results with the date, the machine and the versions they were measured with."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    record = {
        "benchmark": name,
        "command": " ".join(["python", f"benchmarks/{name}.py", *sys.argv[1:]]),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "load": round(os.getloadavg()[1], 1),
        "python": platform.python_version(),
        "versions": {package: found for package in PACKAGES if (found := _version(package))},
        "results": results,
    }
    path.write_text(json.dumps(record, indent=2) + "\n")
    return path


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
