"""One query in every engine: through the table, over plain Parquet, and through deltalake and pyiceberg.

    python benchmarks/engines.py                       400 splits of 50,000 rows, about five minutes
    python benchmarks/engines.py --rows 5000           a small version

All read the same 400 files, sorted by `id`; the query counts and sums the one per cent of rows whose `id`
lies in a range, so it needs 4 files. Tables are open beforehand, for us and for the peers: what is timed is
planning and reading. "Its files alone" is the engine's own reader over those 4 files, which nobody can
tell it without planning. The range begins and ends where files do, the best case for our own reader: it then
leaves `id` unread, which the engines' readers do not. Then 100,000 splits are planned through each adapter: 99,600 of their files do not
exist, so that whoever opens one of them fails. Candidates take turns in changing order. The best of the runs
ranks them, because other work on the machine can only add to it; the median says what it was like.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from common import best_ms, interleaved, median_ms, print_table, save

import indextables as it
from indextables.core.stats import SplitStats
from indextables.engines.polars import predicate_of
from indextables.engines.polars.frames import lazy_frame
from indextables.log.commit.intent import Append, CommitPlan
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Add
from indextables.plan.planner import Planner
from indextables.storage.open import open_store

SCHEMA = pa.schema([("id", pa.int64()), ("r", pa.float64()), ("k", pa.int32()), ("s", pa.string())])
WORDS = pa.array([f"word-{i:05d}" for i in range(1000)])


def write_files(root: Path, splits: int, rows: int) -> list[str]:
    """The data, under names as the table would give them."""
    folder = f"data/0-{uuid.uuid4()}"
    (root / folder).mkdir(parents=True)
    rng = np.random.default_rng(58)
    names = []
    for number in range(splits):
        columns = {
            "id": pa.array(np.arange(number * rows, (number + 1) * rows)),
            "r": pa.array(rng.random(rows)),
            "k": pa.array(rng.integers(0, 1000, rows).astype(np.int32)),
            "s": WORDS.take(pa.array(rng.integers(0, 1000, rows))),
        }
        names.append(f"{folder}/part-{number:05d}.parquet")
        pq.write_table(pa.table(columns, schema=SCHEMA), root / names[-1])
    return names


def entries(root: Path, names: list[str], rows: int, total: int) -> Iterator[tuple[str, int, int, int]]:
    """(path, size, lowest id, highest id) of the files, then of files that do not exist."""
    folder = names[0].rpartition("/")[0]
    for number in range(total):
        there = number < len(names)
        path = names[number] if there else f"{folder}/absent-{number:06d}.parquet"
        size = (root / path).stat().st_size if there else 500_000
        yield path, size, number * rows, (number + 1) * rows - 1


def our_table(root: Path, names: list[str], rows: int, total: int) -> None:
    log = TransactionLog(open_store(root))
    zero = {(name,): 0 for name in SCHEMA.names}
    adds = tuple(
        Add(
            path=path,
            size=size,
            modification_time=0,
            schema_id=0,
            stats=SplitStats(
                num_records=rows,
                min_values={("id",): low},
                max_values={("id",): high},
                null_count=zero,
                nan_count={("r",): 0},
            ),
        )
        for path, size, low, high in entries(root, names, rows, total)
    )
    log.commit(lambda _: CommitPlan(Append(), "APPEND", adds))


def delta_table(root: Path, names: list[str], rows: int, total: int) -> None:
    """A Delta log over the same files."""
    types = {"id": "long", "r": "double", "k": "integer", "s": "string"}
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in types.items()]
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 0,
    }
    lines = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]
    for path, size, low, high in entries(root, names, rows, total):
        stats = {
            "numRecords": rows,
            "minValues": {"id": low},
            "maxValues": {"id": high},
            "nullCount": dict.fromkeys(SCHEMA.names, 0),
        }
        add = {
            "path": path,
            "partitionValues": {},
            "size": size,
            "modificationTime": 0,
            "dataChange": True,
        }
        lines.append({"add": {**add, "stats": json.dumps(stats)}})
    (root / "_delta_log").mkdir()
    text = "\n".join(map(json.dumps, lines))
    (root / "_delta_log" / "00000000000000000000.json").write_text(text)


def iceberg_table(root: Path, names: list[str], warehouse: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    warehouse.mkdir()
    catalog = SqlCatalog("bench", uri=f"sqlite:///{warehouse}/c.db", warehouse=f"file://{warehouse}")
    catalog.create_namespace("b")
    table = catalog.create_table("b.t", schema=SCHEMA)
    table.add_files([f"file://{root / name}" for name in names])
    return table


def answer(rows: pa.Table) -> tuple[int, float]:
    return rows.num_rows, round(pc.sum(rows["r"]).as_py(), 3)


def timing(seconds: list[float]) -> dict[str, float]:
    return {"ms": best_ms(seconds), "median ms": median_ms(seconds)}


def queries(
    root: Path, names: list[str], kept: list[str], low: int, high: int, iceberg: Any
) -> dict[str, Callable[[], Any]]:
    import datafusion
    from deltalake import DeltaTable
    from pyiceberg.expressions import And, GreaterThanOrEqual, LessThanOrEqual

    condition = (pc.field("id") >= low) & (pc.field("id") <= high)
    glob = f"{root / names[0].rpartition('/')[0]}/*.parquet"
    table, delta = it.Table(root), DeltaTable(str(root))
    dataset, delta_dataset = table.to_dataset(), delta.to_pyarrow_dataset()
    plain = ds.dataset(glob.rpartition("/")[0])
    needed = [str(root / name) for name in kept]
    alone = f"read_parquet({needed})"  # a list of Python is one of DuckDB
    between = pl.col("id").is_between(low, high)
    where = f"WHERE id BETWEEN {low} AND {high}"

    def polars(frame: pl.LazyFrame) -> tuple[int, float]:
        found = frame.filter(between).select(pl.len(), pl.col("r").sum()).collect()
        return found.item(0, 0), round(found.item(0, 1), 3)

    connection = duckdb.connect()
    it.duckdb.register(connection, "ours", root)
    connection.register("delta", delta_dataset)

    def duck(run: Callable[[str], Any], source: str) -> tuple[int, float]:
        count, total = run(f"SELECT count(*), sum(r) FROM {source} {where}").fetchall()[0]
        return count, round(total, 3)

    context = datafusion.SessionContext()
    context.register_dataset("ours", dataset)
    context.register_dataset("delta", delta_dataset)
    context.register_parquet("plain", glob.rpartition("/")[0])
    context.register_dataset("alone", ds.dataset(needed))

    def fusion(name: str) -> tuple[int, float]:
        found = context.sql(f"SELECT count(*) AS n, sum(r) AS t FROM {name} {where}").to_pydict()
        return found["n"][0], round(found["t"][0], 3)

    wanted = And(GreaterThanOrEqual("id", low), LessThanOrEqual("id", high))
    frame, delta_frame = it.scan_polars(root), pl.scan_delta(delta)
    return {
        "Arrow | table scan": lambda: answer(
            table.scan(f"id BETWEEN {low} AND {high}", ["r"]).to_arrow()
        ),
        "Arrow | table as a dataset": lambda: answer(dataset.to_table(columns=["r"], filter=condition)),
        "Arrow | plain Parquet": lambda: answer(plain.to_table(columns=["r"], filter=condition)),
        "Arrow | its files alone": lambda: answer(
            ds.dataset(needed).to_table(columns=["r"], filter=condition)
        ),
        "Arrow | deltalake": lambda: answer(delta_dataset.to_table(columns=["r"], filter=condition)),
        "Arrow | pyiceberg": lambda: answer(
            iceberg.scan(wanted, selected_fields=("id", "r")).to_arrow()
        ),
        "Polars | table": lambda: polars(frame),
        "Polars | plain Parquet": lambda: polars(pl.scan_parquet(glob)),
        "Polars | its files alone": lambda: polars(pl.scan_parquet(needed)),
        "Polars | deltalake": lambda: polars(delta_frame),
        "Polars | pyiceberg": lambda: polars(pl.scan_iceberg(iceberg)),
        "DuckDB | table, sql()": lambda: duck(lambda q: it.duckdb.sql(connection, q), "ours"),
        "DuckDB | table, registered": lambda: duck(connection.sql, "ours"),
        "DuckDB | plain Parquet": lambda: duck(connection.sql, f"read_parquet('{glob}')"),
        "DuckDB | its files alone": lambda: duck(connection.sql, alone),
        "DuckDB | deltalake": lambda: duck(connection.sql, "delta"),
        "DataFusion | table": lambda: fusion("ours"),
        "DataFusion | plain Parquet": lambda: fusion("plain"),
        "DataFusion | its files alone": lambda: fusion("alone"),
        "DataFusion | deltalake": lambda: fusion("delta"),
    }


def planners(root: Path, low: int, high: int) -> dict[str, Callable[[], int]]:
    from deltalake import DeltaTable

    planner, delta = Planner.open(root), DeltaTable(str(root))
    dataset = it.Table(root).to_dataset()
    condition = (pc.field("id") >= low) & (pc.field("id") <= high)
    expression = pl.col("id").is_between(low, high)
    connection = duckdb.connect()
    it.duckdb.register(connection, "t", root)
    turn = iter(range(10**9))

    def fresh() -> Any:
        # each run another filter, so that no plan is remembered
        return condition & (pc.field("k") >= -next(turn) - 1)

    def polars() -> int:
        plan = planner.plan(predicate_of(expression))
        lazy_frame(plan, planner.store)
        return plan.report.kept_files

    def duck() -> int:
        query = f"SELECT count(r) FROM t WHERE id BETWEEN {low} AND {high}"
        it.duckdb.sql(connection, query).fetchall()
        return planner.plan(predicate_of(expression)).report.kept_files

    def delta_plan() -> int:
        return sum(1 for _ in delta.to_pyarrow_dataset().get_fragments(condition))

    kept = delta.to_pyarrow_dataset()
    return {
        "Arrow, DataFusion: TableDataset": lambda: len(dataset.plan(fresh()).files),
        "Polars: expression to LazyFrame": polars,
        "DuckDB: sql(), plan and run": duck,
        "deltalake: to_pyarrow_dataset + fragments": delta_plan,
        "deltalake: fragments of a kept dataset": lambda: sum(1 for _ in kept.get_fragments(condition)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--splits", type=int, default=400)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--plan-splits", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=25)
    options = parser.parse_args()
    low = options.splits // 2 * options.rows
    wanted = max(1, options.splits // 100)
    high = low + wanted * options.rows - 1
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "t"
        it.Table.create(root, SCHEMA)
        names = write_files(root, options.splits, options.rows)
        our_table(root, names, options.rows, options.splits)
        delta_table(root, names, options.rows, options.splits)
        iceberg = iceberg_table(root, names, Path(folder) / "iceberg")
        kept = names[options.splits // 2 :][:wanted]
        work = queries(root, names, kept, low, high, iceberg)
        answers = {name: run() for name, run in work.items()}
        assert len({count for count, _ in answers.values()}) == 1, answers
        found = interleaved(work, options.runs)
        rows = [
            dict(zip(("engine", "through"), name.split(" | "), strict=True)) | timing(times)
            for name, times in found.items()
        ]
        print_table(f"1 % of {options.splits * options.rows:,} rows in {options.splits} files", rows)

        large = Path(folder) / "large"
        it.Table.create(large, SCHEMA)
        (large / "data").symlink_to(root / "data")
        our_table(large, names, options.rows, options.plan_splits)
        delta_table(large, names, options.rows, options.plan_splits)
        plans = planners(large, low, high)
        planned_files = {n: run() for n, run in plans.items() if not n.startswith("deltalake: to_")}
        assert len(set(planned_files.values())) == 1, planned_files
        slow = {"deltalake: to_pyarrow_dataset + fragments"}  # a minute each
        timed = interleaved({n: run for n, run in plans.items() if n not in slow}, options.runs)
        timed |= interleaved({n: run for n, run in plans.items() if n in slow}, 1)
        planned = [{"adapter": name} | timing(times) for name, times in timed.items()]
        print_table(f"planning {options.plan_splits:,} splits", planned)
    if (options.splits, options.rows, options.plan_splits) == (400, 50_000, 100_000):
        print(f"\nwritten to {save('engines', {'query': rows, 'planning': planned})}")


if __name__ == "__main__":
    main()
