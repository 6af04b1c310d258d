"""How long it takes to decide which of a million splits a query needs.

    python benchmarks/prune.py                          all of it, about three minutes
    python benchmarks/prune.py --splits 100000 --no-peers

Every split has statistics of a long, a string, a double and a decimal column. "first" decodes the
columns it needs, "next" finds them decoded. Each number is the best of several runs, for us and for the
peers, because other work on the machine can only add to it. The peers, deltalake and
pyiceberg, plan the same two conditions over the same bounds of fewer splits, in the same run; their
tables name data files that do not exist, because planning opens none.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from common import best_ms, interleaved, save

from indextables.core.bind.bind import bind
from indextables.core.prune.evaluate import may_match, must_match
from indextables.core.prune.index import ColumnStatsIndex
from indextables.core.types import DecimalType, Field, PrimitiveType, StructType
from indextables.sql.conditions.parser import parse_predicate

ROWS = 1000
SCHEMA = StructType(
    (
        Field("n", PrimitiveType("long")),
        Field("s", PrimitiveType("string")),
        Field("x", PrimitiveType("double")),
        Field("d", DecimalType(30, 2)),
        Field("m", PrimitiveType("long")),
    )
)
TARGETS_MS = {
    "long range": 20,
    "string equality": 20,
    "IN, 10,000 longs": 100,
    "IN, 10,000 strings": 100,
    "NOT IN, 10,000 longs": 100,
}
PLAIN = "ts BETWEEN '2016-01-01' AND '2016-01-02'"
TARGET_RATIOS = {
    "year(ts) = 2024": 4,
    "month(ts) = 5": 8,
    "hour(ts) = 5": 30,
    "date_trunc('MONTH', ts) = '2024-02-01'": None,
    "to_date(ts) = '2024-02-03'": None,
    "dayofweek(ts) = 1": None,
    "a + 1 > 5": None,
    "a + b > 5": 10,
}
"""How many times as long as `PLAIN` a plan may take, in the same run."""


def text(number: int) -> str:
    return f"user-{number:012d}"


@dataclass
class Bounds:
    """Ranges in random order, each about a ten-thousandth of the whole."""

    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, splits: int) -> Bounds:
        rng = np.random.default_rng(7)
        low = rng.integers(0, 10**9, splits)
        return cls(low, low + rng.integers(0, 10**5, splits))


class ArraySource:
    """Statistics as the columns of a checkpoint hold them."""

    partition_columns = ()

    def __init__(self, schema: StructType, bounds: Mapping[str, Mapping[str, Any]]) -> None:
        self.schema, self._bounds = schema, bounds
        self.num_rows = len(next(iter(bounds["min"].values())))
        self._zero = pa.array(np.zeros(self.num_rows, np.int64))
        self._rows = pa.array(np.full(self.num_rows, ROWS))

    def num_records(self) -> Any:
        return self._rows

    def bound(self, which: str, path: tuple[str, ...]) -> Any:
        return self._bounds[which][path[0]]

    def count(self, _which: str, _path: tuple[str, ...]) -> Any:
        return self._zero

    def inexact(self, _which: str, _path: tuple[str, ...]) -> None:
        return None

    def absent(self, _path: tuple[str, ...]) -> None:
        return None


def source_of(bounds: Bounds) -> ArraySource:
    """Statistics of a long, a string, a double, a decimal and another long column."""
    sides = {"min": bounds.low, "max": bounds.high}
    columns = {
        which: {
            "n": pa.array(values),
            "m": pa.array(values + 5),
            "s": pa.array([text(v) for v in values.tolist()]),
            "x": pa.array(values / 7),
            "d": pa.array([f"{v}.25" for v in values.tolist()]),
        }
        for which, values in sides.items()
    }
    return ArraySource(SCHEMA, columns)


def source_of_times(splits: int) -> ArraySource:
    """Statistics of two hours out of fifteen years, in random order, and of two longs."""
    rng = np.random.default_rng(7)
    start = np.datetime64("2010-01-01", "us").astype(np.int64)
    low = start + rng.integers(0, 15 * 365 * 86_400, splits) * 1_000_000
    high = low + rng.integers(0, 7200, splits) * 1_000_000
    a = rng.integers(0, 10**9, splits)
    schema = StructType(
        tuple(
            Field(n, PrimitiveType(t)) for n, t in (("ts", "timestamp"), ("a", "long"), ("b", "long"))
        )
    )
    columns = {
        "min": {"ts": _instants(low), "a": pa.array(a), "b": pa.array(a // 2)},
        "max": {"ts": _instants(high), "a": pa.array(a + 1000), "b": pa.array(a // 2 + 100)},
    }
    return ArraySource(schema, columns)


def _instants(micros: np.ndarray) -> pa.Array:
    return pa.array(np.char.add(np.datetime_as_string(micros.view("M8[us]")), "Z"))


def conditions(members: int) -> dict[str, str]:
    rng = np.random.default_rng(11)
    chosen = rng.choice(10**9, members, replace=False).tolist()
    longs, texts = ", ".join(map(str, chosen)), ", ".join(f"'{text(v)}'" for v in chosen)
    return {
        "long range": "n >= 500000000 AND n < 500010000",
        "long equality": "n = 500000000",
        "string equality": f"s = '{text(500_000_000)}'",
        "string prefix": "s LIKE 'user-0005000%'",
        "double range": "x > 1e7 AND x <= 1.0001e7",
        "decimal equality": "d = 500000000.25",
        f"IN, {members:,} longs": f"n IN ({longs})",
        f"IN, {members:,} strings": f"s IN ({texts})",
        f"NOT IN, {members:,} longs": f"n NOT IN ({longs})",
        "two columns": "n < m",
        "AND of three columns": f"n > 5 AND s = '{text(500_000_000)}' AND x < 1e8",
        "OR of NOTs": "NOT (n > 5) OR NOT (s < 'user-0009') OR x IS NULL",
    }


def milliseconds(work: Callable[[], Any], runs: int) -> float:
    taken = []
    for _ in range(runs):
        started = time.perf_counter()
        work()
        taken.append((time.perf_counter() - started) * 1000)
    return min(taken)


def measure_ours(splits: int, runs: int) -> list[dict[str, Any]]:
    print(f"\n{splits:,} splits: milliseconds", flush=True)
    source = source_of(Bounds.of(splits))
    results = []
    print(f"  {'condition':26}{'kept':>10}{'bind':>9}{'first':>9}{'next':>9}{'must_match':>12}")
    for name, sql in conditions(10_000).items():
        predicate = parse_predicate(sql)
        bound = bind(predicate, SCHEMA)
        index = ColumnStatsIndex(source)  # a fresh one: nothing is decoded yet
        first = milliseconds(lambda i=index, b=bound: may_match(b, i), 1)
        found = {
            "condition": name,
            "kept": int(may_match(bound, index).sum()),
            "bind_ms": milliseconds(lambda p=predicate: bind(p, SCHEMA), 3),
            "first_ms": first,
            "next_ms": milliseconds(lambda i=index, b=bound: may_match(b, i), runs),
            "must_match_ms": milliseconds(lambda i=index, b=bound: must_match(b, i), 3),
        }
        results.append({key: round(v, 2) if isinstance(v, float) else v for key, v in found.items()})
        print(
            f"  {name:26}{found['kept']:>10,}{found['bind_ms']:>9.1f}{first:>9.1f}"
            f"{found['next_ms']:>9.1f}{found['must_match_ms']:>12.1f}",
            flush=True,
        )
    return results


def measure_functions(splits: int, runs: int) -> list[dict[str, Any]]:
    """Warm plans by functions, in turns with a plain range of the same column."""
    print(f"\n{splits:,} splits, functions, America/New_York: milliseconds", flush=True)
    source = source_of_times(splits)
    index = ColumnStatsIndex(source)
    bound = {
        sql: bind(parse_predicate(sql), source.schema, timezone="America/New_York")
        for sql in (PLAIN, *TARGET_RATIOS)
    }
    plans = {sql: (lambda b=each: may_match(b, index)) for sql, each in bound.items()}
    best = {sql: best_ms(seconds) for sql, seconds in interleaved(plans, runs).items()}
    results = [
        {
            "condition": sql,
            "kept": int(plans[sql]().sum()),
            "next_ms": round(ms, 2),
            "times_plain": round(ms / best[PLAIN], 2),
            "target": TARGET_RATIOS.get(sql),
        }
        for sql, ms in best.items()
    ]
    for row in results:
        target = row["target"]
        state = "" if target is None else "ok" if row["times_plain"] <= target else "MISSED"
        print(
            f"  {row['condition']:42}{row['kept']:>10,}{row['next_ms']:>9.2f}{row['times_plain']:>8.2f}x {state}"
        )
    return results


# -- peers -------------------------------------------------------------------------------------------


def delta_planner(bounds: Bounds, folder: Path) -> tuple[float, Callable[[Any], int]]:
    """deltalake prunes by statistics in its PyArrow dataset: building it is its first plan."""
    import deltalake

    log = folder / "delta" / "_delta_log"
    log.mkdir(parents=True)
    fields = [
        {"name": n, "type": t, "nullable": True, "metadata": {}}
        for n, t in (("n", "long"), ("s", "string"))
    ]
    head: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "b",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": [],
                "configuration": {},
            }
        },
    ]
    with (log / f"{0:020d}.json").open("w") as file:
        for action in head:
            file.write(json.dumps(action) + "\n")
        for i, (low, high) in enumerate(zip(bounds.low.tolist(), bounds.high.tolist(), strict=True)):
            stats = {
                "numRecords": ROWS,
                "minValues": {"n": low, "s": text(low)},
                "maxValues": {"n": high, "s": text(high)},
                "nullCount": {"n": 0, "s": 0},
            }
            add = {"path": f"{i}.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1}
            file.write(
                json.dumps({"add": add | {"dataChange": True, "stats": json.dumps(stats)}}) + "\n"
            )
    table = deltalake.DeltaTable(str(log.parent))
    started = time.perf_counter()
    dataset = table.to_pyarrow_dataset()
    built = (time.perf_counter() - started) * 1000
    return built, lambda condition: sum(1 for _ in dataset.get_fragments(filter=condition))


def iceberg_planner(bounds: Bounds, folder: Path) -> Callable[[Any], int]:
    """pyiceberg reads its manifests and evaluates the condition file by file, for every plan."""
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.conversions import to_bytes
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.schema import Schema
    from pyiceberg.typedef import Record
    from pyiceberg.types import LongType, NestedField, StringType

    catalog = SqlCatalog(
        "b", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/iceberg"
    )
    catalog.create_namespace("ns")
    schema = Schema(NestedField(1, "n", LongType()), NestedField(2, "s", StringType()))
    table = catalog.create_table("ns.t", schema=schema)

    def side(value: int) -> dict[int, bytes]:
        return {1: to_bytes(LongType(), value), 2: to_bytes(StringType(), text(value))}

    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        for i, (low, high) in enumerate(zip(bounds.low.tolist(), bounds.high.tolist(), strict=True)):
            file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"{table.location()}/data/{i}.parquet",
                file_format=FileFormat.PARQUET,
                partition=Record(),
                record_count=ROWS,
                file_size_in_bytes=1,
                value_counts={1: ROWS, 2: ROWS},
                null_value_counts={1: 0, 2: 0},
                lower_bounds=side(low),
                upper_bounds=side(high),
            )
            file.spec_id = 0
            append.append_data_file(file)
    return lambda condition: sum(1 for _ in table.scan(row_filter=condition).plan_files())


def measure_peers(splits: int) -> list[dict[str, Any]]:
    import pyarrow.dataset as ds

    print(f"\n{splits:,} splits against peers: milliseconds", flush=True)
    bounds, wanted = Bounds.of(splits), text(500_000_000)
    index = ColumnStatsIndex(source_of(bounds))
    ours = {"long range": "n >= 500000000 AND n < 500010000", "string equality": f"s = '{wanted}'"}
    delta = {
        "long range": (ds.field("n") >= 500_000_000) & (ds.field("n") < 500_010_000),
        "string equality": ds.field("s") == wanted,
    }
    results = []
    with tempfile.TemporaryDirectory() as name:
        built, delta_plan = delta_planner(bounds, Path(name))
        print(f"  deltalake built its dataset in {built:,.0f} ms", flush=True)
        iceberg_plan = iceberg_planner(bounds, Path(name))
        for condition, sql in ours.items():
            bound = bind(parse_predicate(sql), SCHEMA)
            first = milliseconds(lambda b=bound: may_match(b, index), 1)
            kept = [int(may_match(bound, index).sum()), delta_plan(delta[condition]), iceberg_plan(sql)]
            assert len(set(kept)) == 1, f"the systems disagree: {kept}"
            row = {
                "condition": condition,
                "kept": kept[0],
                "first_ms": first,
                "next_ms": milliseconds(lambda b=bound: may_match(b, index), 9),
                "deltalake_dataset_ms": built,
                "deltalake_ms": milliseconds(lambda c=condition: delta_plan(delta[c]), 3),
                "pyiceberg_ms": milliseconds(lambda s=sql: iceberg_plan(s), 3),
            }
            row["times_faster_than_deltalake"] = row["deltalake_ms"] / row["next_ms"]
            row["times_faster_than_pyiceberg"] = row["pyiceberg_ms"] / row["next_ms"]
            results.append({key: round(v, 2) if isinstance(v, float) else v for key, v in row.items()})
            print(
                f"  {condition:18} ours {row['next_ms']:.2f} (first {first:.1f}), deltalake "
                f"{row['deltalake_ms']:,.0f}, pyiceberg {row['pyiceberg_ms']:,.0f}; "
                f"{row['times_faster_than_deltalake']:,.0f}x and {row['times_faster_than_pyiceberg']:,.0f}x faster",
                flush=True,
            )
    return results


def verdict(results: list[dict[str, Any]]) -> bool:
    found = {row["condition"]: row["next_ms"] for row in results}
    print()
    for name, target in TARGETS_MS.items():
        print(
            f"  {name}: {found[name]:.1f} ms, target {target} ms: {'ok' if found[name] < target else 'MISSED'}"
        )
    return all(found[name] < target for name, target in TARGETS_MS.items())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--splits", type=int, default=1_000_000)
    parser.add_argument("--peer-splits", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args()
    ours = measure_ours(options.splits, options.runs)
    peers = [] if options.no_peers else measure_peers(options.peer_splits)
    functions = measure_functions(options.splits, options.runs)
    good = verdict(ours) and all(
        row["times_plain"] <= (row["target"] or row["times_plain"]) for row in functions
    )
    save(
        "prune",
        {
            "splits": options.splits,
            "ours": ours,
            "functions": functions,
            "peer_splits": options.peer_splits,
            "peers": peers,
        },
    )
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
