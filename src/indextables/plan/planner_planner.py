"""What an engine's adapter holds: one version of a table, ready to be asked for its files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from indextables.core.bind.bind import bind
from indextables.core.bind.bound import uncoerced
from indextables.core.predicate.nodes import Predicate
from indextables.core.prune.source import FileMask
from indextables.core.types import StructType
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.plan.planner import Plan, plan_files
from indextables.storage.base import LogStore
from indextables.storage.open import open_store


@dataclass(frozen=True)
class Planner:
    """One snapshot; every plan it makes is of that version, whoever commits meanwhile."""

    log: TransactionLog
    snapshot: Snapshot
    within: FileMask | None = None
    """The splits to choose from; None: all of the snapshot's."""
    read_optimized: bool = False
    """Read base files alone, without the logs over them."""

    @classmethod
    def open(
        cls,
        table: str | Path | LogStore,
        *,
        version: int | None = None,
        timestamp: int | dt.datetime | None = None,
        storage_options: Mapping[str, Any] | None = None,
        read_optimized: bool = False,
    ) -> Planner:
        """The table at a path or URI, now, at a version, or at a moment."""
        store = open_store(table, options=storage_options) if isinstance(table, str | Path) else table
        log = TransactionLog(store)
        return cls(log, log.snapshot(version, timestamp), read_optimized=read_optimized)

    def newest(self) -> Planner:
        """The same table as it is now."""
        return Planner(self.log, self.log.snapshot(), read_optimized=self.read_optimized)

    @property
    def store(self) -> LogStore:
        """Where the splits are."""
        return self.log.store

    @property
    def schema(self) -> StructType:
        """The columns, partition columns included."""
        return self.snapshot.schema

    def bind(self, where: Predicate) -> Predicate:
        """An engine's condition over the table's columns; nothing is coerced."""
        return bind(uncoerced(where, self.schema), self.schema, case_sensitive=True)

    def plan(self, where: Predicate | None = None) -> Plan:
        """The splits an engine must read for its condition."""
        return self.plan_bound(None if where is None else self.bind(where))

    def plan_bound(self, bound: Predicate | None) -> Plan:
        """The same for a condition that was bound before."""
        return plan_files(
            self.snapshot,
            bound,
            within=self.within,
            case_sensitive=True,
            read_optimized=self.read_optimized,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self.store, self.snapshot.version, self.within, self.read_optimized)


def _reopened(store: LogStore, version: int, within: FileMask | None, read_optimized: bool) -> Planner:
    planner = Planner.open(store, version=version, read_optimized=read_optimized)
    return replace(planner, within=within)
