"""How many modules a warm operation passes through: the way a newcomer has to follow with a debugger.

    python scripts/walk.py             every operation, Spark's included when PySpark is installed
    python scripts/walk.py --list      the modules, too
    python scripts/walk.py --no-spark  only what needs no JVM
    python scripts/walk.py --write     puts the numbers into docs/architecture.md

A module counts when one of its functions is called, in any thread, py4j's callbacks included. Exits with 1 if an
operation takes a longer way than `LIMITS` allows. docs/architecture.md shows the numbers.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

import indextables as it

LIMITS = {"scan": 35, "append": 38, "upsert": 50, "Spark read": 45, "Spark upsert": 65}
PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
MARK = "<!-- numbers of scripts/walk.py -->"
_PACKAGE = str(Path(it.__file__).parent) + "/"
_SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("body", pa.string()), ("day", pa.date32())]
)


class Walk:
    """Collects the modules of this package whose functions are called while it records."""

    def __init__(self) -> None:
        self._seen: set[str] | None = None

    def install(self) -> None:
        """Watches this thread and every thread that starts later; callbacks of the JVM run in such."""
        threading.setprofile(self._on_event)
        sys.setprofile(self._on_event)

    def during(self, work: Callable[[], Any]) -> list[str]:
        """Returns the modules that `work` passes through, sorted by name."""
        self._seen = found = set()
        try:
            work()
        finally:
            self._seen = None
        return sorted(found)

    def _on_event(self, frame: FrameType, event: str, _: Any) -> None:
        if self._seen is not None and event == "call":
            file = frame.f_code.co_filename
            if file.startswith(_PACKAGE):
                self._seen.add(file[len(_PACKAGE) : -len(".py")])


def rows(first: int, count: int = 3) -> pa.Table:
    """Returns a few rows of one day, with ids from `first` on."""
    ids = range(first, first + count)
    day = dt.date(2024, 1, 1) + dt.timedelta(days=first % 5)
    return pa.table(
        {"id": list(ids), "body": [f"text {i}" for i in ids], "day": [day] * count}, _SCHEMA
    )


def walks_of_arrow(folder: Path, walk: Walk) -> dict[str, list[str]]:
    """Returns the ways of a scan, an append and an upsert without Spark."""
    table = it.Table.create(str(folder / "plain"), _SCHEMA, partition_by=["day"])
    keyed = it.Table.create(str(folder / "keyed"), _SCHEMA, record_key=["id"])
    for first in range(0, 30, 3):
        table.append(rows(first))
    keyed.upsert(rows(0, 30))

    def scan() -> None:
        where = "id > 5 AND body = 'text 7' AND day >= DATE'2024-01-02'"
        table.scan(where, columns=["id", "body"]).to_arrow()

    works = {
        "scan": scan,
        "append": lambda: table.append(rows(90)),
        "upsert": lambda: keyed.upsert(rows(29)),
    }
    return {name: _warm(work, walk) for name, work in works.items()}


def walks_of_spark(folder: Path, walk: Walk) -> dict[str, list[str]]:
    """Returns the ways of a read and an upsert through a local Spark session."""
    from indextables.engines.spark.local_session import local_session

    spark = it.enable(local_session("walk"))
    try:
        spark.sparkContext.setLogLevel("ERROR")
        frame = spark.createDataFrame(rows(0, 100).to_pylist())
        plain, keyed = str(folder / "spark-plain"), str(folder / "spark-keyed")
        frame.write.format("indextables").partitionBy("day").save(plain)
        frame.write.format("indextables").option("recordKey", "id").save(keyed)
        few = spark.createDataFrame(rows(98, 5).to_pylist())

        def read() -> None:
            spark.read.format("indextables").load(plain).where("id > 5 AND body = 'text 7'").collect()

        def upsert() -> None:
            few.write.format("indextables").mode("upsert").save(keyed)

        return {"Spark read": _warm(read, walk), "Spark upsert": _warm(upsert, walk)}
    finally:
        spark.stop()


def _warm(work: Callable[[], Any], walk: Walk) -> list[str]:
    work()
    work()
    return walk.during(work)


def write_numbers(found: dict[str, list[str]]) -> None:
    """Puts the table of numbers into the page, between its marks."""
    rows = [f"| {name} | {len(modules)} | {LIMITS[name]} |\n" for name, modules in found.items()]
    table = "| operation | modules | limit |\n|---|---|---|\n" + "".join(rows)
    before, _, after = PAGE.read_text(encoding="utf-8").split(MARK)
    PAGE.write_text(f"{before}{MARK}\n{table}{MARK}{after}", encoding="utf-8")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="show the modules")
    parser.add_argument(
        "--write", action="store_true", help="put the numbers into docs/architecture.md"
    )
    parser.add_argument("--no-spark", action="store_true", help="leave out what needs a JVM")
    chosen = parser.parse_args(arguments)
    walk = Walk()
    walk.install()
    with tempfile.TemporaryDirectory() as folder:
        found = walks_of_arrow(Path(folder), walk)
        if not chosen.no_spark:
            found |= walks_of_spark(Path(folder), walk)
    for name, modules in found.items():
        rooms = {module.rpartition("/")[0] for module in modules}
        verdict = "" if len(modules) <= LIMITS[name] else f"  more than {LIMITS[name]}"
        print(f"{name:<13} {len(modules):>3} modules in {len(rooms):>2} folders{verdict}")
        if chosen.list:
            print("\n".join(f"    {module}" for module in modules))
    if chosen.write:
        write_numbers(found)
    return int(any(len(modules) > LIMITS[name] for name, modules in found.items()))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
