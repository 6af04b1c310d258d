"""Tables with file slices, built file by file: which group, which kind, which columns, in which commit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

import indextables as it
from indextables.parquet.write.conform import conform
from indextables.parquet.write.write import write_splits
from indextables.core.types import StructType
from indextables.log.wire.actions import Add
from indextables.log.commit.intent import Append, CommitPlan
from indextables.log.transaction_log import TransactionLog
from indextables.ops.shared.commit import config_for, write_target
from indextables.storage.open import open_store


@dataclass(frozen=True)
class File:
    """One file of a slice: a base, a data log (of some columns only, maybe), or a delete log."""

    group: str
    rows: pa.Table
    """Of a delete log, the key columns and the partition columns."""
    block: str | None = None
    """None: a base file."""
    columns: Sequence[str] | None = None
    """What a data log sets, the key included; None: whole rows."""


class SliceWriter:
    """Commits files of slices to a table that was created with a record key."""

    def __init__(self, table: it.Table | str | Path) -> None:
        uri = table.uri if isinstance(table, it.Table) else str(table)
        self.store = open_store(uri)
        self.log = TransactionLog(self.store)

    def commit(self, *files: File) -> int:
        """All these files in one commit; its version."""
        adds = [add for file in files for add in self._write(file)]
        plan = CommitPlan(Append(), "UPSERT", tuple(adds))
        return self.log.commit(lambda _: plan).version

    def _write(self, file: File) -> list[Add]:
        snapshot = self.log.snapshot()
        metadata = snapshot.metadata
        names = set(file.rows.column_names)
        schema = StructType(tuple(f for f in metadata.schema if f.name in names))
        config = config_for(snapshot.properties, None)
        target = write_target(replace(metadata, schema=schema), snapshot.version, config)
        written = write_splits(conform(file.rows.to_batches(), schema), self.store, target)
        assert len(written.adds) == 1, "one partition, one file"
        return [replace(add, **self._fields(file)) for add in written.adds]

    @staticmethod
    def _fields(file: File) -> dict[str, Any]:
        tags = {} if file.columns is None else {"columns": json.dumps(list(file.columns))}
        kind = "base" if file.block is None else "log"
        return {"file_group": file.group, "kind": kind, "block": file.block, "tags": tags}
