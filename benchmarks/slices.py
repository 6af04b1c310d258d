"""What slices cost: how many a query skips, how long planning takes, and how long reading takes.

    python benchmarks/slices.py                     all of it, about two minutes
    python benchmarks/slices.py --slices 1000 --groups 50

Planning: 10,000 slices, each a base file with up to five delta files. A quarter of them has a delete delta, a
quarter a rollback block, a quarter row deltas alone, the rest none. "Before" is the rule that keeps a
slice for every file the index does not know, "now" the one that looks at what the file is. The same
question is put to a listing with a timeline, and to a table of this format, which has delete deltas and row
deltas but no rollback blocks. No data file is opened.

Reading: two tables with the same rows, one with a record key (deletes and updates are delta files), one
without (they rewrite files). A quarter of the slices has a delete delta, a quarter a row delta. Each
number is the best of several runs, which take turns.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
from common import best_ms, interleaved, print_table, save

import indextables as it
from indextables.core.types import Field, PrimitiveType, StructType
from indextables.log.commit.intent import Append, CommitPlan
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Add, Metadata, Protocol
from indextables.plan.planner import plan_files
from indextables.slices import (
    ListedFile,
    LogBlock,
    MergeMode,
    SplitStats,
    Timeline,
    bind,
    index_of_listing,
    prune_slices,
    slices_from_listing,
)
from indextables.storage import open_store

ROWS = 1000
SCHEMA = StructType(tuple(Field(name, PrimitiveType("long")) for name in ("id", "n", "m")))
KINDS = ("delete", "rollback", "data", "plain")


def stats(slice_number: int, *columns: str) -> SplitStats:
    """A thousand keys and a thousand values that no other slice has."""
    paths = [(name,) for name in columns]
    low = slice_number * ROWS
    return SplitStats(
        ROWS, dict.fromkeys(paths, low), dict.fromkeys(paths, low + ROWS - 1), dict.fromkeys(paths, 0)
    )


def condition(slices: int) -> str:
    """One slice in a hundred has rows that satisfy it."""
    first = slices // 2 * ROWS
    return f"n >= {first} AND n < {first + slices // 100 * ROWS}"


# -- planning -------------------------------------------------------------------------------------------


def listing(slices: int) -> list[ListedFile]:
    files = []
    for number in range(slices):
        kind, group, known = KINDS[number % 4], f"group {number:06}", stats(number, "id", "n", "m")
        files.append(ListedFile(f"{group}/base", group, "001", stats=known))
        if kind == "plain":
            continue
        for version in range(1, 5):
            block = LogBlock("data", f"00{1 + version}")
            files.append(
                ListedFile(f"{group}/log.{version}", group, "001", "log", version, (block,), known)
            )
        if kind != "data":
            last = LogBlock("delete", "006") if kind == "delete" else LogBlock("rollback", "006", "777")
            files.append(ListedFile(f"{group}/log.5", group, "001", "log", 5, (last,)))
    return files


def table(slices: int, mode: str) -> TransactionLog:
    log = TransactionLog(open_store(f"memory://bench-{uuid4().hex}"))
    properties = {"recordKey": '["id"]', "mergeMode": mode}
    metadata = Metadata("id", SCHEMA, properties=properties)
    log.create(CommitPlan(Append(), "CREATE TABLE", (Protocol(), metadata)))
    adds = []
    for number in range(slices):
        kind, group = KINDS[number % 4], f"group {number:06}"
        whole = stats(number, "id", "n", "m")
        adds.append(Add(f"{group}-base", 1, stats=whole, seq=1, file_group=group, kind="base"))
        logs = {"delete": ["data", "delete"], "rollback": ["delete"], "data": ["data"] * 2}.get(
            kind, []
        )
        for seq, block in enumerate(logs, 2):
            columns = (
                ("id",) if block == "delete" else ("id", "m") if mode == "columns" else ("id", "n", "m")
            )
            tags = {"columns": json.dumps(columns)} if block == "data" and mode == "columns" else {}
            adds.append(
                Add(
                    f"{group}-log-{seq}",
                    1,
                    stats=stats(number, *columns),
                    tags=tags,
                    seq=seq,
                    file_group=group,
                    kind="log",
                    block=block,
                )
            )
    log.commit(lambda _: CommitPlan(Append(), "UPSERT", tuple(adds)))
    return log


def first_and_next(call: Callable[[], object], runs: int) -> tuple[float, float]:
    """Milliseconds of the first call, which decodes statistics, and of the best of the others."""
    started = time.perf_counter()
    call()
    first = (time.perf_counter() - started) * 1000
    return first, best_ms(interleaved({"next": call}, runs)["next"])


def plan_listing(slices: int, mode: MergeMode, runs: int) -> dict:
    files = listing(slices)
    timeline = Timeline([f"00{n}" for n in range(1, 7)])
    started = time.perf_counter()
    found = slices_from_listing(files, timeline, record_key=["id"])
    index = index_of_listing(files, SCHEMA)
    listed = (time.perf_counter() - started) * 1000
    bound = bind(it.parse_predicate(condition(slices)), SCHEMA)
    first, again = first_and_next(lambda: prune_slices(found, index, bound, mode), runs)
    counts = prune_slices(found, index, bound, mode).counts
    row = {"source": "listing", "merge": mode.value, "files": len(files)}
    return row | shares(counts) | {"classify_ms": listed, "first_ms": first, "next_ms": again}


def plan_table(slices: int, mode: MergeMode, runs: int) -> dict:
    log = table(slices, mode.value)
    snapshot = log.snapshot()
    where = it.parse_predicate(condition(slices))
    first, again = first_and_next(lambda: plan_files(snapshot, where), runs)
    report = plan_files(snapshot, where).report
    row = {"source": "table", "merge": mode.value, "files": report.total_files}
    return row | shares(report.slices) | {"classify_ms": None, "first_ms": first, "next_ms": again}


def shares(counts) -> dict:
    return {
        "slices": counts.total,
        "skipped_before_%": 100 * (counts.total - counts.kept_before) / counts.total,
        "skipped_now_%": 100 * counts.skipped / counts.total,
    }


# -- reading --------------------------------------------------------------------------------------------


def rows_of(groups: int, rows: int) -> pa.Table:
    count = groups * rows
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "part": np.repeat(np.arange(groups), rows),
            "id": np.arange(count),
            "n": np.arange(count),
            "flag": np.arange(count) % 50,
            "text": pa.array([f"row {value:016x}" for value in rng.integers(0, 2**62, count)]),
        },
        schema=pa.schema(
            [
                pa.field("part", pa.int64()),
                pa.field("id", pa.int64(), nullable=False),
                pa.field("n", pa.int64()),
                pa.field("flag", pa.int64()),
                pa.field("text", pa.string()),
            ]
        ),
    )


def changed(data: pa.Table, groups: int) -> pa.Table:
    """New versions of one row in fifty, in the second quarter of the groups."""
    part, flag = data["part"].to_numpy(), data["flag"].to_numpy()
    chosen = data.filter(pa.array((flag == 1) & (part >= groups // 4) & (part < groups // 2)))
    at = chosen.schema.get_field_index("text")
    return chosen.set_column(at, chosen.schema.field(at), pa.array(["changed"] * chosen.num_rows))


def write_both(root: Path, groups: int, rows: int) -> tuple[dict, list[dict]]:
    data = rows_of(groups, rows)
    update = changed(data, groups)
    deleted = f"flag = 0 AND part < {groups // 4}"
    updated = f"flag = 1 AND part >= {groups // 4} AND part < {groups // 2}"
    merge = it.Table.create(root / "merge", data.schema, partition_by=["part"], record_key=["id"])
    copy = it.Table.create(root / "copy", data.schema, partition_by=["part"])
    steps = {
        "write all rows": (lambda: merge.upsert(data), lambda: copy.append(data)),
        "delete 2% of a quarter": (lambda: merge.delete(deleted), lambda: copy.delete(deleted)),
        "update 2% of a quarter": (
            lambda: merge.upsert(update),
            lambda: copy.overwrite(update, updated),
        ),
    }
    written = []
    for name, step in steps.items():
        row: dict = {"step": name}
        for kind, table, call in zip(
            ("merge_on_read", "copy_on_write"), (merge, copy), step, strict=True
        ):
            before = {split.path for split in table.snapshot().splits()}
            started = time.perf_counter()
            call()
            row[f"{kind}_s"] = time.perf_counter() - started
            added = [s.size for s in table.snapshot().splits() if s.path not in before]
            row[f"{kind}_mb"] = sum(added) / 1e6
        written.append(row)
    return {"merge-on-read": merge, "copy-on-write": copy}, written


def read_both(tables: dict, groups: int, rows: int, runs: int) -> list[dict]:
    middle = groups // 4 * rows  # where groups with deletes end and groups with updates begin
    few = max(groups // 100, 2) // 2 * rows
    queries = {
        "1% of the rows, all in slices with delta files": f"n >= {middle - few} AND n < {middle + few}",
        "1% of the rows, in slices without delta files": f"n >= {3 * middle} AND n < {3 * middle + 2 * few}",
        "one key, in a slice with delta files": f"id = {middle - 7}",
        "all rows": None,
    }
    found = []
    for name, where in queries.items():
        results = {kind: t.scan(where).to_arrow().sort_by("id") for kind, t in tables.items()}
        one, other = results.values()
        assert one.equals(other), name
        work = {kind: lambda t=t, w=where: t.scan(w).to_arrow() for kind, t in tables.items()}
        work["bases only"] = lambda w=where: (
            tables["merge-on-read"].scan(w, read_optimized=True).to_arrow()
        )
        seconds = interleaved(work, runs if where is None else 5 * runs)  # short ones need more luck
        found.append(
            {"query": name, "rows": one.num_rows, **{f"{k} ms": best_ms(s) for k, s in seconds.items()}}
        )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--slices", type=int, default=10_000)
    parser.add_argument(
        "--groups", type=int, default=200, help="file groups of the tables that are read"
    )
    parser.add_argument("--rows", type=int, default=10_000, help="rows of each of these groups")
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    planned = [
        measure(options.slices, mode, options.runs)
        for measure in (plan_listing, plan_table)
        for mode in (MergeMode.RECORD, MergeMode.COLUMNS)
    ]
    print_table(f"{options.slices:,} slices, half with delete deltas or rollbacks; 1% match", planned)
    with tempfile.TemporaryDirectory() as root:
        tables, written = write_both(Path(root), options.groups, options.rows)
        print_table(f"{options.groups} groups of {options.rows:,} rows", written)
        read = read_both(tables, options.groups, options.rows, options.runs)
        print_table("reading, half of the slices with delta files", read)
    save("slices", {"options": vars(options), "planning": planned, "writing": written, "reading": read})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
