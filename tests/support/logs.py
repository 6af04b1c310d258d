"""Small tables and logs for tests: a schema, splits by number, and logs as other writers leave them."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import orjson
import pyarrow as pa

from indextables.config import Config
from indextables.core.stats import SplitStats
from indextables.core.types import StructType, schema_from_arrow, schema_to_json
from indextables.log.wire.actions import Action, Add, Metadata, Protocol, Remove
from indextables.log.wire.files import LogNames
from indextables.log.commit.intent import Append, CommitPlan, Rewrite
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.storage.base import LogStore
from indextables.storage.open import open_store

SCHEMA: StructType = schema_from_arrow(
    pa.schema(
        [
            ("id", pa.int64()),
            ("name", pa.string()),
            ("score", pa.float64()),
            ("price", pa.decimal128(10, 2)),
            ("at", pa.timestamp("us", tz="UTC")),
            ("st", pa.struct([("a", pa.int32()), ("b", pa.string())])),
            ("tags", pa.list_(pa.string())),
            ("day", pa.date32()),
        ]
    )
)
METADATA = Metadata("11111111-2222-3333-4444-555555555555", SCHEMA, ("day",), created_time=1)
NO_CHECKPOINTS = Config.of(write={"spark.indextables.checkpoint.interval": 0})

_names = itertools.count()


def fresh_store() -> LogStore:
    """An empty store in memory that nobody else uses."""
    return open_store(f"memory://log-test-{next(_names)}")


def stats_of(number: int) -> SplitStats:
    """Statistics of split `number`: ids from 10·number to 10·number + 9."""
    low, high = 10 * number, 10 * number + 9
    return SplitStats(
        num_records=10,
        min_values={("id",): low, ("name",): f"n{low:06}", ("score",): low / 2, ("st", "a"): number},
        max_values={("id",): high, ("name",): f"n{high:06}", ("score",): high / 2, ("st", "a"): number},
        null_count={("id",): 0, ("name",): 1, ("score",): 0, ("st", "a"): 0, ("tags",): 3},
        nan_count={("score",): 0},
        inexact_max=frozenset({("name",)}) if number % 3 == 0 else frozenset(),
    )


def add_of(number: int, **changes: Any) -> Add:
    """The add of split `number`."""
    add = Add(
        path=f"data/0-ab/part-{number:05}.parquet",
        size=1000 + number,
        partition_values={"day": f"2024-01-{1 + number % 28:02}"},
        modification_time=1_700_000_000_000 + number,
        stats=stats_of(number),
        schema_id=0,
    )
    return replace(add, **changes)


def remove_of(number: int, when: int = 4_000_000_000_000) -> Remove:
    """The remove of split `number`, so young that no checkpoint forgets it."""
    return Remove(add_of(number).path, when)


def appending(*actions: Action, operation: str = "APPEND", **options: Any) -> CommitPlan:
    """A plan that adds these files."""
    return CommitPlan(Append(), operation, actions, **options)


def rewriting(*actions: Action, where: Any = None, **options: Any) -> CommitPlan:
    """A plan that replaces files."""
    return CommitPlan(Rewrite(where), "OVERWRITE", actions, **options)


def new_log(
    store: LogStore | None = None, *actions: Action, config: Config | None = None, **options: Any
) -> TransactionLog:
    """A table with these files in version 0."""
    log = TransactionLog(store or fresh_store(), config or NO_CHECKPOINTS, **options)
    log.create(CommitPlan(Append(), "CREATE TABLE", (Protocol(), METADATA, *actions)))
    return log


def paths(snapshot: Any) -> set[str]:
    """The keys of all live files."""
    return set(snapshot.column("key").to_pylist())


def numbers(snapshot: Any) -> list[int]:
    """The numbers of all live splits."""
    return sorted(int(path[-13:-8]) for path in paths(snapshot))


def file_of(number: int) -> str:
    """The key of split `number`."""
    return add_of(number).path


# -- logs as other writers leave them ---------------------------------------------------------------

Line = Mapping[str, Any] | bytes | str


def foreign_metadata(**changes: Any) -> dict[str, Any]:
    """A metaData line without any of this library's own fields."""
    body = {
        "id": "foreign",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema_to_json(SCHEMA),
        "partitionColumns": ["day"],
        "configuration": {},
        "createdTime": 1,
    }
    return {"metaData": body | changes}


def foreign_add(number: int, **changes: Any) -> dict[str, Any]:
    """An add line without seq, schemaId and statistics."""
    body = {
        "path": f"part-{number:05}.parquet",
        "partitionValues": {"day": "2024-01-01"},
        "size": 100 + number,
        "modificationTime": 1,
        "dataChange": True,
    }
    return {"add": body | changes}


def text_of(lines: Iterable[Line], *, newline_at_end: bool = True) -> bytes:
    """Lines as a log file has them."""
    encoded = [
        line
        if isinstance(line, bytes)
        else line.encode()
        if isinstance(line, str)
        else orjson.dumps(line)
        for line in lines
    ]
    return b"\n".join(encoded) + (b"\n" if newline_at_end else b"")


def write_foreign(
    store: LogStore,
    commits: Mapping[int, Iterable[Line]],
    *,
    width: int = 18,
    packed: str = "plain",
    directory: str = "_transaction_log",
) -> None:
    """Commits of another writer: without trailers, in this width, plain or compressed."""
    for version, lines in commits.items():
        text = text_of(lines)
        if packed != "plain":
            text = (b"\x01\x01" if packed == "prefixed" else b"") + gzip.compress(text, mtime=0)
        store.put(LogNames(directory).commit(version, width), text)


def copy_of(store: LogStore) -> LogStore:
    """The same objects in a store of their own, to be damaged."""
    copy = fresh_store()
    for meta in store.list(""):
        copy.put(meta.key, store.get(meta.key))
    return copy


def same_state(left: Snapshot, right: Snapshot) -> bool:
    """True if two snapshots show the same table, however each was put together."""
    few = (
        "version",
        "commit_id",
        "timestamp_ms",
        "protocol",
        "metadata",
        "min_read_version",
        "unknown",
    )
    return (
        all(getattr(left, name) == getattr(right, name) for name in few)
        and dict(left.txns) == dict(right.txns)
        and left.files().equals(right.files())
        and _by_key(left.tombstones).equals(_by_key(right.tombstones))
    )


def _by_key(tombstones: Any) -> Any:
    return tombstones.sort_by("key").combine_chunks()
