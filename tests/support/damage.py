"""Real logs to damage: made by the library's own commits, small enough to be read by eye."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from indextables.config import Config
from indextables.core.stats import SplitStats
from indextables.core.types import Field, PrimitiveType, StructType
from indextables.log.wire.actions import Add, Metadata, Protocol, Remove, Txn
from indextables.log.commit.intent import Append, CommitPlan, Rewrite
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.storage import open_store

LONG = 2000
SCHEMA = StructType(
    (
        Field("id", PrimitiveType("long")),
        Field("text", PrimitiveType("string")),
        Field("score", PrimitiveType("double")),
        Field("day", PrimitiveType("date")),
    )
)


@dataclass(frozen=True)
class RealTable:
    """A table on disk whose log can be damaged file by file."""

    root: Path

    @property
    def log(self) -> Path:
        return self.root / "_transaction_log"

    @property
    def target(self) -> Path:
        return self.root / "_transaction_log_repaired"

    def commit(self, version: int, width: int = 18) -> Path:
        return self.log / f"{version:0{width}d}.json"

    def checkpoint(self, version: int) -> Path:
        return self.log / f"{version:018d}.checkpoint.json"

    @property
    def pointer(self) -> Path:
        return self.log / "_last_checkpoint"

    def transaction_log(
        self, directory: str = "_transaction_log", checkpoint_format: str = "json"
    ) -> TransactionLog:
        settings = {"checkpoint.interval": 0, "checkpoint.format": checkpoint_format}
        config = Config.of(write={f"spark.indextables.{k}": v for k, v in settings.items()})
        return TransactionLog(open_store(self.root), config, directory=directory)

    def snapshot(self, directory: str = "_transaction_log") -> Snapshot:
        return self.transaction_log(directory).snapshot()

    def seal(self) -> dict[str, tuple[str, int]]:
        """Bytes and times of everything under the table, to be compared afterwards."""
        return seal(self.root)


def seal(root: Path) -> dict[str, tuple[str, int]]:
    """Bytes and times of every file under a directory."""
    return {
        str(path.relative_to(root)): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mtime_ns,
        )
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def stats(number: int, length: int = LONG) -> SplitStats:
    """Statistics with a long text bound and a few short ones."""
    low, high = f"{number:04d}" + "a" * length, f"{number:04d}" + "z" * length
    return SplitStats(
        num_records=10,
        min_values={("id",): number * 10, ("text",): low, ("score",): 0.5, ("day",): 19000},
        max_values={("id",): number * 10 + 9, ("text",): high, ("score",): 1.5, ("day",): 19001},
        null_count={("id",): 0, ("text",): 0, ("score",): 0, ("day",): 0},
        nan_count={("score",): 0},
    )


def new_split(root: Path, number: int, *, name: str | None = None, length: int = LONG) -> Add:
    """A data file on disk (its content does not matter to a log) and the action that adds it."""
    key = name or f"data/0-{number:04d}/part-{number}.parquet"
    path = root / key
    path.parent.mkdir(parents=True, exist_ok=True)
    content = b"PAR1" + bytes([number % 256]) * (100 + number)
    path.write_bytes(content)
    return Add(
        path=key,
        size=len(content),
        modification_time=1_700_000_000_000 + number,
        stats=stats(number, length),
        schema_id=0,
    )


def make_table(
    root: Path,
    *,
    commits: int = 6,
    splits: int = 2,
    checkpoints: tuple[int, ...] = (),
    length: int = LONG,
    checkpoint_format: str = "json",
) -> RealTable:
    """`commits` appends of `splits` files each after version 0; checkpoints at these versions."""
    table = RealTable(root)
    log = table.transaction_log(checkpoint_format=checkpoint_format)
    metadata = Metadata(uuid4().hex, SCHEMA, properties={"owner": "tests"})
    log.create(CommitPlan(Append(), "CREATE TABLE", (Protocol(), metadata)))
    for version in range(1, commits + 1):
        adds = tuple(new_split(root, version * 100 + number, length=length) for number in range(splits))
        txn = (Txn("stream", version),)
        log.commit(lambda _, adds=adds, txn=txn: CommitPlan(Append(), "APPEND", (*txn, *adds)))
        if version in checkpoints:
            log.checkpoint()
    return table


def remove_one(table: RealTable, number: int = 0) -> str:
    """A commit that removes one live split; its file stays, as until the next vacuum."""
    log = table.transaction_log()
    split = log.snapshot().splits()[number]
    log.commit(lambda _: CommitPlan(Rewrite(), "DELETE", (Remove(split.path, 1_700_000_000_000),)))
    return split.path


def edit_lines(path: Path, change) -> None:
    """Rewrites a file through a function from its lines to its lines."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(change(lines)))


def foreign_log(root: Path, commits: list[list[dict]], width: int = 20) -> RealTable:
    """A log as another writer leaves it: no trailers, 20 digits."""
    table = RealTable(root)
    table.log.mkdir(parents=True)
    for version, actions in enumerate(commits):
        text = "".join(json.dumps(action) + "\n" for action in actions)
        table.commit(version, width).write_text(text)
    return table


def foreign_metadata() -> dict:
    from indextables.core.types import schema_to_json

    return {
        "metaData": {
            "id": "x",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema_to_json(SCHEMA),
            "partitionColumns": [],
            "configuration": {},
        }
    }


def foreign_add(root: Path, path: str, *, key: str | None = None, **fields) -> dict:
    file = root / (key or path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"PAR1" + path.encode())
    body = {
        "path": path,
        "partitionValues": {},
        "size": file.stat().st_size,
        "modificationTime": 1,
        "dataChange": True,
    }
    return {"add": body | fields}
