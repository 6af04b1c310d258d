"""Spark over a table and over plain Parquet with the same rows, in the same run: scan, filter, write, plan.

    python benchmarks/spark.py                            20M rows in 400 splits, about six minutes on two cores
    python benchmarks/spark.py --rows 400000 --splits 40  a quick look

Ratios are medians of interleaved runs; below 1 the table is faster. "planning" is the time Spark takes to
an executed plan for a filter that keeps one of `--plan-splits` splits, beside the same query over one file.
"1 % filter, many splits" reads the same rows in ten times as many splits, where what plain Parquet does with
each file shows; both sides read the very same files there.
"full plan" is the time until Spark has every task of a scan of all `--full-splits` splits, from the log in
memory: the first time in this JVM, and once its code is compiled.
The program fails if a limit of `missed` is not kept.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import interleaved, median_ms, print_table, save

FORMAT = "indextables"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--splits", type=int, default=400)
    parser.add_argument(
        "--many-splits", type=int, help="of the second filter; ten times as many if not given"
    )
    parser.add_argument("--plan-splits", type=int, default=10_000)
    parser.add_argument("--full-splits", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5, help="of each read; a write runs three times")
    options = parser.parse_args()
    options.many_splits = options.many_splits or options.splits * 10
    return options


def session() -> Any:
    from indextables.engines.spark.local_session import local_session
    from indextables.engines.spark.session import enable

    return enable(local_session("benchmark", memory="4g"))


def rows_of(spark: Any, rows: int, splits: int) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    return spark.range(0, rows, 1, splits).select(
        "id",
        (F.hash("id") % 1_000_000).alias("k"),
        (F.rand(1) * 1000).alias("score"),
        F.concat(F.lit("user-"), (F.hash("id") % 10_000).cast("string")).alias("name"),
        F.date_add(F.lit("2024-01-01").cast("date"), (F.col("id") * 365 / rows).cast("int")).alias(
            "day"
        ),
    )


def compare(work: dict[str, Callable[[], Any]], runs: int) -> dict[str, float]:
    seconds = interleaved(work, runs)
    ours, plain = median_ms(seconds["table"]), median_ms(seconds["plain"])
    return {"table_ms": ours, "plain_ms": plain, "ratio": ours / plain}


def same(a: Any, b: Any) -> bool:
    """Sums of doubles depend on the order they are added in."""
    return math.isclose(a, b, rel_tol=1e-9) if isinstance(a, float) else a == b


def reads(spark: Any, frame: Any, base: Path, options: argparse.Namespace) -> dict[str, Any]:
    table, plain = str(base / "table"), str(base / "plain")
    frame.write.format(FORMAT).save(table)
    frame.write.parquet(plain)
    all_rows = ("sum(k)", "sum(score)", "max(name)", "min(day)")

    def full(read: Callable[[], Any]) -> list[Any]:
        return read().selectExpr(*all_rows).collect()

    return {
        "full scan": compare_read(spark, full, table, plain, options.runs),
        "1 % filter": compare_read(spark, one_percent(options.rows), table, plain, options.runs),
    }


def one_percent(rows: int) -> Callable[[Callable[[], Any]], list[Any]]:
    low = rows // 2
    high = low + max(1, rows // 100)

    def query(read: Callable[[], Any]) -> list[Any]:
        part = read().where(f"id BETWEEN {low} AND {high - 1}")
        return part.selectExpr("count(*)", "sum(k)").collect()

    return query


def compare_read(
    spark: Any, query: Callable[[Callable[[], Any]], list[Any]], table: str, plain: str, runs: int
) -> dict[str, float]:
    """The same query over both, which must find the same."""
    work = {
        "table": lambda: query(lambda: spark.read.format(FORMAT).load(table)),
        "plain": lambda: query(lambda: spark.read.parquet(plain)),
    }
    (ours,), (theirs,) = (call() for call in work.values())
    assert all(map(same, ours, theirs)), (ours, theirs)
    return compare(work, runs)


def reads_of_many(spark: Any, base: Path, options: argparse.Namespace) -> dict[str, Any]:
    table = base / "small"
    rows_of(spark, options.rows, options.many_splits).write.format(FORMAT).save(str(table))
    (plain,) = (table / "data").iterdir()
    query = one_percent(options.rows)
    found = compare_read(spark, query, str(table), str(plain), options.runs)
    return {f"1 % filter, {options.many_splits:,} splits": found}


def writes(frame: Any, base: Path) -> dict[str, Any]:
    """Everything is warm: both have been written before, to be read."""
    place = base / "written"

    def timed(kind: str) -> float:
        shutil.rmtree(place, ignore_errors=True)
        started = time.perf_counter()
        frame.write.format(kind).save(str(place))
        return time.perf_counter() - started

    seconds: dict[str, list[float]] = {FORMAT: [], "parquet": []}
    for turn in range(3):
        for kind in (FORMAT, "parquet") if turn % 2 else ("parquet", FORMAT):
            seconds[kind].append(timed(kind))
    shutil.rmtree(place, ignore_errors=True)
    ours, plain = median_ms(seconds[FORMAT]), median_ms(seconds["parquet"])
    return {"write": {"table_ms": ours, "plain_ms": plain, "ratio": ours / plain}}


def many_splits(path: Path, count: int) -> str:
    """A log of many splits whose files do not exist: planning must not look at them."""
    import pyarrow as pa

    from indextables.core.stats import SplitStats
    from indextables.log.commit.intent import Append, CommitPlan
    from indextables.log.transaction_log import TransactionLog
    from indextables.log.wire.actions import Add
    from indextables.storage.open import open_store
    from indextables.table.table import Table

    Table.create(path, pa.schema([("id", pa.int64()), ("k", pa.int64())]))
    adds = tuple(
        Add(
            f"data/0-0f8fad5b-d9cb-469f-a165-70867728950e/part-{i:06d}.snappy.parquet",
            1000,
            modification_time=1,
            stats=SplitStats(100, {("id",): i * 100}, {("id",): i * 100 + 99}, {("id",): 0}),
        )
        for i in range(count)
    )
    TransactionLog(open_store(path)).commit(lambda _: CommitPlan(Append(), "APPEND", adds))
    return str(path)


def planning(spark: Any, base: Path, options: argparse.Namespace) -> dict[str, Any]:
    path, one = many_splits(base / "many", options.plan_splits), str(base / "one")
    spark.range(100).selectExpr("id", "id AS k").coalesce(1).write.parquet(one)
    many, single = spark.read.format(FORMAT).load(path), spark.read.parquet(one)
    turn = iter(range(10**9))

    def plan(frame: Any) -> Callable[[], Any]:
        # another constant each time, so that nothing is reused; Spark lists files for its tasks
        def call() -> int:
            query = frame.where(f"id = {next(turn) % 100 + 500}")._jdf.queryExecution()  # noqa: SLF001
            return query.toRdd().getNumPartitions()

        return call

    found = compare({"table": plan(many), "plain": plan(single)}, max(options.runs, 15))
    added = found["table_ms"] - found["plain_ms"]
    return {f"planning, {options.plan_splits:,} splits": {**found, "added_ms": added}}


def full_plan(spark: Any, base: Path, options: argparse.Namespace) -> dict[str, Any]:
    from indextables.engines.spark.scan import relation

    path = many_splits(base / "all", options.full_splits)
    spark.read.format(FORMAT).load(path)  # reads the log
    seconds = []
    for _ in range(5):
        relation._lists.clear()  # noqa: SLF001 - what the run before built is no help
        started = time.perf_counter()
        query = spark.read.format(FORMAT).load(path)._jdf.queryExecution()  # noqa: SLF001
        query.toRdd().getNumPartitions()
        seconds.append(time.perf_counter() - started)
    name = f"full plan, {options.full_splits:,} splits"
    return {
        f"{name}, first": {"table_ms": seconds[0] * 1000},
        name: {"table_ms": median_ms(seconds[1:])},
    }


def missed(results: dict[str, Any], options: argparse.Namespace) -> list[str]:
    """The limits that were not kept; one of the two filters must be five times as fast."""
    fastest = min(each["ratio"] for name, each in results.items() if name.startswith("1 % filter"))
    limits = (
        ("full scan over plain", results["full scan"]["ratio"], 1.05),
        ("write over plain", results["write"]["ratio"], 1.10),
        ("1 % filter over plain", fastest, 1 / 5),
        ("added planning, ms", results[f"planning, {options.plan_splits:,} splits"]["added_ms"], 50.0),
        (
            "full plan, ms",
            results[f"full plan, {options.full_splits:,} splits"]["table_ms"],
            3000.0,
        ),
    )
    return [
        f"{name}: {value:.2f} is above {limit:.2f}" for name, value, limit in limits if value > limit
    ]


def main() -> None:
    options = arguments()
    spark = session()
    frame = rows_of(spark, options.rows, options.splits)
    with tempfile.TemporaryDirectory(prefix="indextables-benchmark-") as directory:
        base = Path(directory)
        results = {
            **full_plan(spark, base, options),
            **planning(spark, base, options),
            **reads(spark, frame, base, options),
            **reads_of_many(spark, base, options),
            **writes(frame, base),
        }
    rows = [{"what": name, **numbers} for name, numbers in results.items()]
    title = f"{options.rows:,} rows in {options.splits} splits"
    print_table(
        title,
        [
            {
                "what": r["what"],
                "table_ms": r["table_ms"],
                "plain_ms": r.get("plain_ms"),
                "ratio": f"{r['ratio']:.2f}" if "ratio" in r else None,
                "added_ms": r.get("added_ms"),
            }
            for r in rows
        ],
    )
    if (options.rows, options.splits) == (20_000_000, 400):
        save("spark", {"rows": options.rows, "splits": options.splits, **results})
    spark.stop()
    for line in missed(results, options):
        print(line, file=sys.stderr)
    if missed(results, options):
        sys.exit(1)


if __name__ == "__main__":
    main()
