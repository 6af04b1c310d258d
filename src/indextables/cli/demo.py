"""`indextables demo`: the main job from beginning to end; every number is measured while it runs."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

import indextables as it
from indextables.cli.streams import advise
from indextables.display import human_bytes
from indextables.table.table import Table

T = TypeVar("T")

TRUNCATION = "spark.indextables.stats.truncation.enabled"
ARTICLE_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the demo works, and with how much data."""

    spark: Any
    root: Path
    articles: int
    splits: int

    @property
    def table(self) -> str:
        """Returns the path of the demo's table."""
        return str(self.root / "articles")


@click.command()
@click.option("--articles", default=10_000, show_default=True, help="How many articles to generate.")
@click.option("--splits", default=100, show_default=True, help="How many files to write them to.")
@click.option("--keep", is_flag=True, help="Keep the tables and say where they are.")
def demo(articles: int, splits: int, keep: bool) -> None:
    """Write a table of long articles with Spark and query it selectively.

    Shows the log with and without truncated statistics, splits and bytes skipped, upserts, time travel,
    other engines reading the same table, and the repair of a damaged log. Every number is measured in this run.

    \b
    Example:
      indextables demo --articles 2000 --splits 20
    """
    advise("Starting Spark …")
    root = Path(tempfile.mkdtemp(prefix="indextables-demo-"))
    enable = it.enable  # says which extra to install where Spark is missing
    from indextables.engines.spark.local_session import (  # noqa: PLC0415 - PySpark may be missing
        local_session,
    )

    spark = enable(local_session("indextables demo"))
    try:
        stage = Stage(spark, root, articles, splits)
        for step in (_write, _truncation, _queries, _upserts, _time_travel, _without_jvm, _repair):
            step(stage)
    finally:
        spark.stop()
        if keep:
            advise(f"The tables are in {root}")
        else:
            shutil.rmtree(root, ignore_errors=True)


def _write(stage: Stage) -> None:
    _title(f"Write {stage.articles:,} articles of {ARTICLE_CHARACTERS:,} characters")
    frame = _articles(stage)
    # The first job pays for Spark's warming up, so both ways of writing run once before they are compared.
    for kind in ("parquet", "indextables"):
        frame.write.format(kind).save(str(stage.root / f"warm-{kind}"))
    plain = str(stage.root / "plain")
    _, plain_seconds = _timed(lambda: frame.write.parquet(plain))
    _, seconds = _timed(lambda: frame.write.format("indextables").save(stage.table))
    _say("plain Parquet", f"{plain_seconds:.2f} s")
    _say("this table", f"{seconds:.2f} s ({seconds / plain_seconds:.2f}x)")
    snapshot = Table(stage.table).snapshot()
    _say("splits", f"{snapshot.num_files}, {human_bytes(snapshot.total_bytes)}")


def _truncation(stage: Stage) -> None:
    _title("The log, with and without truncated statistics")
    untruncated = str(stage.root / "untruncated")
    _articles(stage).write.format("indextables").option(TRUNCATION, "false").save(untruncated)
    sizes, reads = [], []
    for path in (untruncated, stage.table):
        log = Path(path) / "_transaction_log"
        sizes.append(sum(file.stat().st_size for file in log.glob("*.json")))
        reads.append(min(_opening(path) for _ in range(5)))
    _say("without truncation", f"{human_bytes(sizes[0])}, opened in {reads[0] * 1000:.1f} ms")
    _say("with truncation", f"{human_bytes(sizes[1])}, opened in {reads[1] * 1000:.1f} ms")
    _say("", f"{1 - sizes[1] / sizes[0]:.1%} smaller, {reads[0] / reads[1]:.1f}x as fast to open")


def _queries(stage: Stage) -> None:
    _title("Selective queries from Spark")
    table = stage.spark.read.format("indextables").load(stage.table)
    plain = stage.spark.read.parquet(str(stage.root / "plain"))
    for frame in (table, plain):
        frame.where("id < 0").selectExpr("count(*)", "sum(score)").collect()  # warms up both alike
    low = stage.articles // 2
    for where in (
        f"id BETWEEN {low} AND {low + stage.articles // 100}",
        "published = DATE'2024-01-15' AND score > 90",
        "author = 'author-0042' OR id IS NULL",
        "body LIKE 'zz%'",
    ):
        query = table.where(where).selectExpr("count(*) AS n", "sum(score) AS s")
        rows, seconds = _timed(query.collect)
        same, plain_seconds = _timed(plain.where(where).selectExpr("count(*)", "sum(score)").collect)
        if tuple(rows[0]) != tuple(same[0]):
            raise click.ClickException(f"{where}: {rows[0]} here, {same[0]} from plain Parquet")
        scans = it.last_scan(query)
        click.echo(f"  WHERE {where}")
        _say(
            f"  {rows[0][0]:,} rows",
            f"{scans.kept_files} of {scans.total_files} splits read, "
            f"{human_bytes(scans.total_bytes - scans.kept_bytes)} skipped; "
            f"{seconds:.2f} s, plain Parquet {plain_seconds:.2f} s",
        )


def _upserts(stage: Stage) -> None:
    _title("Rows that change: a table with a record key")
    path = str(stage.root / "keyed")
    frame = _articles(stage).drop("body")
    frame.write.format("indextables").option("recordKey", "id").save(path)
    changed = frame.where("id % 100 = 7").selectExpr(
        "id", "published", "author", "score + 1000 AS score"
    )
    _, seconds = _timed(lambda: changed.write.format("indextables").mode("upsert").save(path))
    base = Table(path).snapshot(version=0).total_bytes
    written = Table(path).snapshot().total_bytes - base
    _say(
        "upsert",
        f"{changed.count():,} rows in {seconds:.2f} s: {human_bytes(written)} written beside "
        f"{human_bytes(base)}",
    )
    for verb, work in (("merged", None), ("compacted", Table(path).compact)):
        if work is not None:
            work()
        rows, seconds = _timed(
            stage.spark.read.format("indextables").load(path).where("score >= 1000").count
        )
        if rows != changed.count():
            raise click.ClickException(f"{rows} rows changed, {changed.count()} were written")
        _say(f"read {verb}", f"{rows:,} changed rows found in {seconds:.2f} s")


def _time_travel(stage: Stage) -> None:
    _title("Time travel")
    Table(stage.table).delete(f"id < {stage.articles // 4}")
    for version in (0, 1):
        count = stage.spark.sql(
            f"SELECT count(*) FROM indextables.`{stage.table}` VERSION AS OF {version}"  # noqa: S608
        ).collect()[0][0]
        _say(f"version {version}", f"{count:,} articles")


def _without_jvm(stage: Stage) -> None:
    _title("The same table without a JVM")
    where = f"id BETWEEN {stage.articles // 2} AND {stage.articles // 2 + 10}"
    scan = Table(stage.table).scan(where, columns=["id", "author", "score"])
    rows, seconds = _timed(scan.to_arrow)
    _say("Arrow", f"{rows.num_rows} rows in {seconds * 1000:.0f} ms: {scan.plan.report}")
    from indextables.engines.duckdb import query as duckdb  # noqa: PLC0415 - DuckDB may be missing

    select = "SELECT id FROM {} WHERE " + where  # noqa: S608 - the numbers come from this module
    engines: dict[str, Callable[[], Any]] = {
        "DuckDB": lambda: duckdb.query(select.format(f"indextables.`{stage.table}`")),
        "Polars": lambda: it.scan_polars(stage.table).sql(select.format("self")).collect(),
    }
    for name, work in engines.items():
        work()  # loads the engine, which is not part of the query's time
        found, seconds = _timed(work)
        if len(found) != rows.num_rows:
            raise click.ClickException(f"{len(found)} rows from {name}, {rows.num_rows} from Arrow")
        _say(name, f"{len(found)} rows in {seconds * 1000:.0f} ms")


def _repair(stage: Stage) -> None:
    _title("Repair a damaged log")
    log = Path(stage.table) / "_transaction_log"
    Table(stage.table).checkpoint()
    checkpoint = next(log.glob("*.checkpoint.json"))
    checkpoint.write_bytes(checkpoint.read_bytes()[: checkpoint.stat().st_size // 2])
    _say("damage", f"{checkpoint.name} is cut in half")
    result = stage.spark.sql(
        f"REPAIR INDEXFILES TRANSACTION LOG '{log}' AT LOCATION '{stage.root}/repaired/_transaction_log'"
    ).collect()[0]
    for name, value in result.asDict().items():
        if name not in {"source_path", "target_path"}:
            _say(name, str(value))


def _articles(stage: Stage) -> Any:
    """Returns articles ordered by day of publication, as a pipeline that appends every day would write them."""
    words = ARTICLE_CHARACTERS // 65
    return stage.spark.range(0, stage.articles, 1, stage.splits).selectExpr(
        "id",
        f"date_add(DATE'2024-01-01', CAST(id * 60 / {stage.articles} AS INT)) AS published",
        "concat('author-', lpad(CAST(id % 1000 AS STRING), 4, '0')) AS author",
        "CAST(pmod(hash(id), 100) AS INT) AS score",
        f"array_join(transform(sequence(1, {words}), i -> sha2(concat(id, '/', i), 256)), ' ') AS body",
    )


def _opening(path: str) -> float:
    """Returns the seconds it takes to open the table and know its files."""
    return _timed(lambda: Table(path).snapshot().num_files)[1]


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def _title(text: str) -> None:
    click.secho(f"\n{text}", bold=True)


def _say(label: str, text: str) -> None:
    click.echo(f"  {label:<20} {text}")
