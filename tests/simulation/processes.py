"""What a process does, by the real library: every verb over its own handle, its own clock and its own store."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from indextables.config import Config
from indextables.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    IndexTablesError,
    LogReplacedError,
    ObjectNotFoundError,
    StorageError,
    TableExistsError,
    VersionNotFoundError,
)
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import BEING_REPLACED
from indextables.ops.analyze import analyze
from indextables.ops.append import append
from indextables.ops.compact import compact
from indextables.ops.create import create, new_metadata
from indextables.ops.delete_overwrite import Condition, delete, overwrite
from indextables.ops.keyed.upsert import upsert
from indextables.ops.optimize import optimize
from indextables.ops.repair import repair
from indextables.ops.repair.log_location import location_of
from indextables.ops.repair.swap import Moves, replace_log, undo_replace
from indextables.ops.restore import restore
from indextables.ops.truncate_history import truncate_time_travel
from indextables.ops.vacuum import vacuum
from indextables.core.types import schema_from_arrow
from indextables.parquet.write.executor import ArrowExecutor
from indextables.plan.planner import plan_files
from indextables.sql.conditions.parser import parse_predicate
from indextables.table.scan import TablePlan
from simulation.record import LOG, Log, Op, Record, Row, Rows
from simulation.scheduler import DAY, Task, World
from simulation.stores import ROOT, Disk, SimulatedStore
from support.faults import SimulatedCrash

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64()), ("p", pa.string())])
VALUES = 3
PARTITIONS = ("A", "a", "b")
_NOW = {"spark.indextables.vacuum.retention": "0 seconds"}
_BY_VALUE = {v: Condition(parse_predicate(f"v = {v}", "UTC")) for v in range(VALUES)}
_ALL = Condition()
_MILLISECONDS = 1000
_read: dict[bytes, tuple[Row, ...]] = {}


def setup(disk: Disk, properties: dict[str, str], *, partitioned: bool, keyed: bool) -> None:
    """The table, before anything can go wrong."""
    log = TransactionLog(SimulatedStore(disk, None), now_ms=lambda: disk.world.now)
    metadata = new_metadata(
        schema_from_arrow(SCHEMA),
        partition_by=("p",) if partitioned else (),
        record_key=("id",) if keyed else (),
        properties=properties,
    )
    create(log, metadata)


class Process:
    """Does its script; a kill makes it begin the next line with a fresh handle."""

    def __init__(
        self,
        world: World,
        disk: Disk,
        record: Record,
        script: list[str],
        *,
        partitioned: bool,
        keyed: bool,
    ) -> None:
        self.world, self.disk, self.record = world, disk, record
        self.script, self.partitioned, self.keyed = script, partitioned, keyed
        self.task: Task | None = None
        self.last_seen: tuple[Log, int] | None = None

    def __call__(self, task: Task) -> None:
        self.task = task
        self._start()
        for line in self.script:
            op = self.record.begin(Op(line))
            task.op = op
            self.world.say(f"> {line}")
            try:
                self._run(line, op)
            except SimulatedCrash:
                self.world.say("killed")
                self._start()
            except (CommitStateUnknownError, LogReplacedError) as error:
                self.world.say(f"{type(error).__name__}: {error.message}")
            except (CommitConflictError, VersionNotFoundError) as error:
                op.outcome = "refused"
                self.world.say(f"{type(error).__name__}: {error.message}")
            except IndexTablesError as error:
                self.world.say(f"{type(error).__name__}: {error.message}")
                self._judge(line, error)
            except Exception as error:
                self.record.violated(f"{line} ends in {type(error).__name__}: {error}")
                return

    def _judge(self, line: str, error: IndexTablesError) -> None:
        """An error must come from a fault, or say that somebody else was first."""
        chances = self.world.chances
        if isinstance(error, StorageError) and (
            chances.error or isinstance(error, ObjectNotFoundError)
        ):
            return
        if line in {"repair", "undo"}:
            return
        if not (chances.error or chances.kill or chances.power_cut):
            self.record.violated(f"{line} ends in {type(error).__name__}: {error.message}")

    def _start(self) -> None:
        store = SimulatedStore(self.disk, self.task)
        clock = self.world.clock(self.task)
        config = Config.of(session={})
        self.store = store
        self.log = TransactionLog(store, config, now_ms=clock, pause=self.world.pause)
        self.executor = ArrowExecutor(store)
        self.last_seen = None

    def _run(self, line: str, op: Op) -> None:
        name, _, rest = line.partition(" ")
        getattr(self, f"_{name}")(op, *rest.split())

    # -- writing -----------------------------------------------------------------------------------

    def _commits(self, op: Op, change: Callable[[Rows, Log], Rows], run: Callable[[], Any]) -> None:
        op.change = change
        result = run()
        op.version, op.log = result.version, self.record.log
        op.outcome = "acknowledged" if result.committed else "nothing"
        self.world.say(f"{op.outcome}: {op.name} is version {result.version}")

    def _rows(self, ids: str, value: str) -> list[Row]:
        wanted = [int(one) for one in ids.split(",")]
        names = [PARTITIONS[i % len(PARTITIONS)] if self.partitioned else None for i in wanted]
        return [(i, int(value), p) for i, p in zip(wanted, names, strict=True)]

    def _append(self, op: Op, ids: str, value: str) -> None:
        rows = self._rows(ids, value)
        self._commits(op, _put(rows), lambda: append(self.log, self.executor, _table(rows)))

    def _upsert(self, op: Op, ids: str, value: str) -> None:
        rows = self._rows(ids, value)
        self._commits(op, _put(rows), lambda: upsert(self.log, self.executor, _table(rows)))

    def _delete(self, op: Op, value: str) -> None:
        condition = _BY_VALUE[int(value)]
        self._commits(op, _drop(int(value)), lambda: delete(self.log, self.executor, condition))

    def _overwrite(self, op: Op, value: str, ids: str) -> None:
        where = _ALL if value == "all" else _BY_VALUE[int(value)]
        rows = self._rows(ids, "0" if value == "all" else value)

        def change(now: Rows, log: Log) -> Rows:
            kept = frozenset() if value == "all" else _drop(int(value))(now, log)
            return _put(rows)(kept, log)

        self._commits(op, change, lambda: overwrite(self.log, self.executor, _table(rows), where))

    def _optimize(self, op: Op) -> None:
        self._commits(op, _same, lambda: optimize(self.log, self.executor))

    def _compact(self, op: Op) -> None:
        self._commits(op, _same, lambda: compact(self.log, self.executor))

    def _analyze(self, op: Op) -> None:
        self._commits(op, _same, lambda: analyze(self.log, self.executor, ["v"], rebuild=True))

    def _restore(self, op: Op, back: str) -> None:
        now, log = self.log.snapshot(), self.record.log
        target = self.log.snapshot(max(now.version - int(back), 0))
        rows = log.rows(target.version) if target.version in log.entries else None
        self._commits(op, lambda _now, _log: rows, lambda: restore(self.log, target))

    # -- maintenance -------------------------------------------------------------------------------

    def _vacuum(self, op: Op, *now: str) -> None:
        vacuum(self.log, apply=True, allow_short_retention=bool(now), options=_NOW if now else None)

    def _checkpoint(self, op: Op) -> None:
        self.log.checkpoint()

    def _cleanup(self, op: Op) -> None:
        self.log.cleanup()

    def _truncate(self, op: Op) -> None:
        self.record.history_is_cut = True
        truncate_time_travel(self.log, apply=True)

    def _sleep(self, op: Op, days: str) -> None:
        self.world.pause(float(days) * DAY / _MILLISECONDS)

    # -- repair and swap ---------------------------------------------------------------------------

    def _location(self, name: str) -> Any:
        return location_of(f"{ROOT}/{name}", lambda _uri: self.store)

    @property
    def _moves(self) -> Moves:
        store = self.store
        return Moves(store.rename_directory, store.exchange_directories, store.exists)

    def _repair(self, op: Op) -> None:
        log, repaired = self._location(LOG), self._location(f"{LOG}_repaired")
        try:
            replace_log(log, repaired, moves=self._moves)  # of a run that died
        except IndexTablesError:
            self.disk.clear(repaired.names.directory)  # it is of an older version
        else:
            return
        if repair(log.uri, repaired.uri, opener=lambda _uri: self.store).ok:
            replace_log(log, repaired, moves=self._moves)

    def _undo(self, op: Op) -> None:
        undo_replace(self._location(LOG), moves=self._moves)

    # -- reading -----------------------------------------------------------------------------------

    def _read(self, op: Op) -> None:
        snapshot = self.log.snapshot()
        log = self.record.log
        if snapshot.commit_id != _id_of(log, snapshot.version):
            return  # the log was exchanged between the two
        seen = self.last_seen
        if seen is not None and seen[0] is log and snapshot.version < seen[1]:
            self.record.violated(
                f"a reader that saw version {seen[1]} sees {snapshot.version} after it"
            )
        # a fence is a version without a change, and goes again with the swap it was put up for
        if BEING_REPLACED not in snapshot.protocol.writer_features:
            self.last_seen = (log, snapshot.version)
        with suppress(StorageError):
            rows = rows_of(self.store, snapshot, keyed=self.keyed)
            if snapshot.version not in log.entries:
                return  # a fence that was taken down meanwhile
            self.record.saw(log, snapshot.version, rows)


def _id_of(log: Log, version: int) -> str | None:
    entry = log.entries.get(version)
    return entry.actions[-1]["commitInfo"]["commitId"] if entry and entry.actions else None


def _table(rows: list[Row]) -> pa.Table:
    return pa.table([pa.array(column) for column in zip(*rows, strict=True)], SCHEMA)


def _same(rows: Rows, _log: Log) -> Rows:
    return rows


def _put(new: list[Row]) -> Callable[[Rows, Log], Rows]:
    ids = {row[0] for row in new}
    return lambda rows, _log: frozenset([*(row for row in rows if row[0] not in ids), *new])


def _drop(value: int) -> Callable[[Rows, Log], Rows]:
    return lambda rows, _log: frozenset(row for row in rows if row[1] != value)


def rows_of(store: SimulatedStore, snapshot: Any, *, keyed: bool) -> Rows:
    """The rows a query of this version gets; files with the same bytes are decoded once."""
    if keyed:
        scan = TablePlan(plan_files(snapshot), store).scan(None).to_arrow()
        return frozenset(_as_rows(scan.select(SCHEMA.names)))
    found: list[Row] = []
    for split in snapshot.splits():
        data = store.get(split.path)
        name = hashlib.blake2b(data, digest_size=16).digest()
        if name not in _read:
            _read[name] = tuple(_as_rows(_with_partition(pq.read_table(pa.BufferReader(data)))))
        p = split.partition_values.get("p")
        found += [row if p is None else (row[0], row[1], p) for row in _read[name]]
    if len(set(found)) != len(found):
        return frozenset([*found, (-1, len(found), "rows are there twice")])
    return frozenset(found)


def _with_partition(table: pa.Table) -> pa.Table:
    if "p" in table.column_names:
        return table.select(SCHEMA.names)
    return table.append_column("p", pa.nulls(table.num_rows, pa.string()))


def _as_rows(table: pa.Table) -> list[Row]:
    return (
        list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        if table.num_rows
        else []
    )
