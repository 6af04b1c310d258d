"""How long it takes to open a table of many splits, compared with deltalake in the same run.

    python benchmarks/open.py                                 1,000 to 1,000,000 splits
    python benchmarks/open.py --splits 1000 10000 --runs 3
    python benchmarks/open.py --splits 300 1000 2000 10000 --checkpoints json parquet     where one overtakes the other

Both logs say the same of the same (imaginary) files: path, size, partition, and the bounds of five
columns. "one commit" is a log of a single JSON commit; "checkpoint" a log that has just been checkpointed.
"open" is what a handle does before its first plan. "files" also hands out every path with its statistics
as Arrow columns. "point plan" opens and decides which files `id = k` needs. Above a hundred thousand splits
only our own checkpoint is measured: half a gigabyte of JSON is nobody's idea of a log.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import zlib
from pathlib import Path
from typing import Any

import orjson
from common import best_ms, interleaved, print_table, save

from indextables.config import Config
from indextables.core.bind.bind import bind
from indextables.core.predicate.nodes import Compare, Literal, Ref
from indextables.core.prune.evaluate import may_match
from indextables.core.types import Field, PrimitiveType, StructType, schema_to_json
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import CommitInfo, Metadata, Protocol
from indextables.log.wire.codec import encode_action
from indextables.storage.open import open_store

SCHEMA = StructType(
    (
        Field("id", PrimitiveType("long")),
        Field("name", PrimitiveType("string")),
        Field("score", PrimitiveType("double")),
        Field("at", PrimitiveType("timestamp")),
        Field("n", PrimitiveType("integer")),
        Field("day", PrimitiveType("date")),
    )
)
METADATA = Metadata("b3c6c1de-3f9a-4b4c-8f0e-2f1f2f0d9a11", SCHEMA, ("day",), created_time=1)
PEER_LIMIT = 100_000


def stats(number: int) -> dict[str, Any]:
    low, high = number * 10, number * 10 + 9
    at = f"2024-01-01T{number % 24:02}:00:00.000"
    return {
        "numRecords": 1000,
        "minValues": {
            "id": low,
            "name": f"user-{low:09}",
            "score": low / 8,
            "at": f"{at}000Z",
            "n": low % 97,
        },
        "maxValues": {
            "id": high,
            "name": f"user-{high:09}",
            "score": high / 8,
            "at": f"{at}999Z",
            "n": 97,
        },
        "nullCount": {"id": 0, "name": number % 3, "score": 0, "at": 0, "n": 0},
    }


def add(number: int) -> dict[str, Any]:
    day = f"2024-01-{1 + number % 28:02}"
    return {
        "path": f"data/0-6f0c/day={day}/part-{number:08}-8d5ad1c0.parquet",
        "partitionValues": {"day": day},
        "size": 1_000_000 + number,
        "modificationTime": 1_700_000_000_000,
        "dataChange": True,
    }


def write_ours(root: Path, splits: int) -> TransactionLog:
    log = root / "_transaction_log"
    log.mkdir(parents=True)
    crc = 0
    with (log / "000000000000000000.json").open("wb") as file:

        def write(line: bytes) -> None:
            nonlocal crc
            crc = zlib.crc32(line, crc)
            file.write(line)

        for action in (Protocol(), METADATA):
            write(encode_action(action, seq=0, schema=SCHEMA))
        for i in range(splits):
            write(orjson.dumps({"add": add(i) | {"schemaId": 0, "seq": 0, "stats": stats(i)}}) + b"\n")
        info = CommitInfo(
            "WRITE", 1_700_000_000_000, "b", actions=splits + 2, crc32=crc, num_files=splits
        )
        file.write(encode_action(info, seq=0, schema=SCHEMA))
    return TransactionLog(open_store(root))


def write_delta(root: Path, splits: int) -> None:
    log = root / "_delta_log"
    log.mkdir(parents=True)
    metadata = {
        "id": METADATA.id,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema_to_json(SCHEMA),
        "partitionColumns": ["day"],
        "configuration": {},
        "createdTime": 1,
    }
    lines: list[Any] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": metadata},
    ]
    lines += [{"add": add(i) | {"stats": json.dumps(stats(i))}} for i in range(splits)]
    (log / f"{0:020}.json").write_bytes(b"\n".join(map(orjson.dumps, lines)) + b"\n")


def plan(root: Path, splits: int) -> None:
    snapshot = TransactionLog(open_store(root)).snapshot()
    condition = bind(Compare("=", Ref(("id",)), Literal(splits * 5)), snapshot.schema)
    assert len(snapshot.splits(may_match(condition, snapshot.index()))) == 1


def open_ours(root: Path, splits: int) -> None:
    assert TransactionLog(open_store(root)).snapshot().num_files == splits


def files_ours(root: Path, splits: int) -> None:
    assert TransactionLog(open_store(root)).snapshot().files().num_rows == splits


def peers(root: Path, splits: int) -> dict[str, Any]:
    from deltalake import DeltaTable

    def files() -> None:
        assert DeltaTable(root).get_add_actions(flatten=True).num_rows == splits

    return {"deltalake open": lambda: DeltaTable(root), "deltalake files": files}


def measure(form: str, ours: Path, delta: Path | None, splits: int, runs: int) -> dict[str, Any]:
    work = {
        "open": lambda: open_ours(ours, splits),
        "files": lambda: files_ours(ours, splits),
        "point plan": lambda: plan(ours, splits),
    }
    if delta is not None:
        work |= peers(delta, splits)
    best = {name: best_ms(seconds) for name, seconds in interleaved(work, runs).items()}
    row: dict[str, Any] = {
        "splits": splits,
        "log": form,
        **{f"{name} ms": ms for name, ms in best.items()},
    }
    if delta is not None:
        row["open, times faster"] = best["deltalake open"] / best["open"]
        row["files, times faster"] = best["deltalake files"] / best["files"]
    return row


def checkpoint(log: TransactionLog, form: str) -> None:
    settings = Config.of(write={"spark.indextables.checkpoint.format": form})
    log.configured(settings).checkpoint()


def run(splits: int, runs: int, forms: list[str], folder: Path) -> list[dict[str, Any]]:
    ours, delta = folder / "ours", folder / "delta" if splits <= PEER_LIMIT else None
    log = write_ours(ours, splits)
    if delta is not None:
        write_delta(delta, splits)
    rows = [measure("one commit", ours, delta, splits, runs)] if delta is not None else []
    if delta is not None:
        from deltalake import DeltaTable

        DeltaTable(delta).create_checkpoint()
    for form in forms:
        checkpoint(log, form)
        name = "checkpoint" if form == "auto" else f"checkpoint, {form}"
        rows.append(measure(name, ours, delta, splits, runs))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--splits", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument(
        "--checkpoints", nargs="+", default=["auto"], choices=["auto", "json", "parquet"]
    )
    options = parser.parse_args()
    rows = []
    for splits in options.splits:
        folder = Path(tempfile.mkdtemp(prefix="indextables-open-"))
        try:
            rows += run(splits, options.runs, options.checkpoints, folder)
        finally:
            shutil.rmtree(folder)
        print(f"measured {splits:,} splits", flush=True)
    names = max(rows, key=len)
    print_table(
        "Opening a table (best of the runs, milliseconds)",
        [{n: row.get(n) for n in names} for row in rows],
    )
    if options.checkpoints == ["auto"]:  # what a user gets; the rest is for comparison
        print(f"\nsaved {save('open', rows).name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
