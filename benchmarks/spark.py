"""Spark over a table and over plain Parquet with the same rows, in the same run: scan, filter, write, plan.

    python benchmarks/spark.py                           20M rows in 400 splits
    python benchmarks/spark.py --rows 400000 --splits 40  a quick look

Ratios are medians of interleaved runs; below 1 the table is faster. "planning" is the time Spark takes to
an executed plan for a filter that keeps one of `--plan-splits` splits, beside the same query over one file.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
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
    parser.add_argument("--plan-splits", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    return parser.parse_args()


def session() -> Any:
    from pyspark.sql import SparkSession

    from indextables.engines.spark.session import enable

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return enable(spark)


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


def reads(spark: Any, frame: Any, base: Path, options: argparse.Namespace) -> dict[str, Any]:
    table, plain = str(base / "table"), str(base / "plain")
    frame.write.format(FORMAT).save(table)
    frame.write.parquet(plain)
    low = options.rows // 2
    high = low + options.rows // 100

    def full(read: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: read().selectExpr("sum(k)", "sum(score)", "max(name)", "min(day)").collect()

    def one_percent(read: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: (
            read().where(f"id BETWEEN {low} AND {high - 1}").selectExpr("count(*)", "sum(k)").collect()
        )

    ours = lambda: spark.read.format(FORMAT).load(table)  # noqa: E731
    theirs = lambda: spark.read.parquet(plain)  # noqa: E731
    return {
        "full scan": compare({"table": full(ours), "plain": full(theirs)}, options.runs),
        "1 % filter": compare({"table": one_percent(ours), "plain": one_percent(theirs)}, options.runs),
    }


def writes(frame: Any, base: Path, options: argparse.Namespace) -> dict[str, Any]:
    def fresh(write: Callable[[str], Any]) -> Callable[[], Any]:
        def call() -> None:
            place = base / "written"
            shutil.rmtree(place, ignore_errors=True)
            write(str(place))

        return call

    work = {
        "table": fresh(lambda path: frame.write.format(FORMAT).save(path)),
        "plain": fresh(lambda path: frame.write.format("parquet").save(path)),
    }
    return {"write": compare(work, options.runs)}


def planning(spark: Any, base: Path, options: argparse.Namespace) -> dict[str, Any]:
    """A log of many splits whose files do not exist: planning must not look at them."""
    import pyarrow as pa

    from indextables.core.statistics.stats import SplitStats
    from indextables.log.actions import Add
    from indextables.log.plan import Append, CommitPlan
    from indextables.log.transaction_log import TransactionLog
    from indextables.storage import open_store
    from indextables.table import Table

    path, one = base / "many", str(base / "one")
    schema = pa.schema([("id", pa.int64()), ("k", pa.int64())])
    Table.create(path, schema)
    adds = tuple(
        Add(
            f"data/0-x/{i}.parquet",
            1000,
            stats=SplitStats(100, {("id",): i * 100}, {("id",): i * 100 + 99}, {("id",): 0}),
        )
        for i in range(options.plan_splits)
    )
    TransactionLog(open_store(path)).commit(lambda _: CommitPlan(Append(), "APPEND", adds))
    spark.range(100).selectExpr("id", "id AS k").coalesce(1).write.parquet(one)
    many, single = spark.read.format(FORMAT).load(str(path)), spark.read.parquet(one)
    turn = iter(range(10**9))

    def plan(frame: Any) -> Callable[[], Any]:
        # another constant each time, so that nothing is reused
        def call() -> str:
            query = frame.where(f"id = {next(turn) % 100 + 500}")._jdf.queryExecution()  # noqa: SLF001
            return query.executedPlan().toString()

        return call

    found = compare({"table": plan(many), "plain": plan(single)}, max(options.runs, 10))
    return {
        f"planning, {options.plan_splits:,} splits": {
            **found,
            "added_ms": found["table_ms"] - found["plain_ms"],
        }
    }


def main() -> None:
    options = arguments()
    spark = session()
    frame = rows_of(spark, options.rows, options.splits)
    with tempfile.TemporaryDirectory() as directory:
        base = Path(directory)
        results = {
            **reads(spark, frame, base, options),
            **writes(frame, base, options),
            **planning(spark, base, options),
        }
    rows = [{"what": name, **numbers} for name, numbers in results.items()]
    title = f"{options.rows:,} rows in {options.splits} splits"
    print_table(
        title,
        [
            {
                "what": r["what"],
                "table_ms": r["table_ms"],
                "plain_ms": r["plain_ms"],
                "ratio": round(r["ratio"], 2),
                "added_ms": r.get("added_ms"),
            }
            for r in rows
        ],
    )
    save("spark", {"rows": options.rows, "splits": options.splits, **results})
    spark.stop()


if __name__ == "__main__":
    main()
