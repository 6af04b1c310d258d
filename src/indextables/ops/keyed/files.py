"""What every write to a table with a record key needs: rows with distinct keys, and files written once.

The rows are held in memory: they are placed again for every snapshot a commit is tried on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from indextables.core.bind.bind import bind
from indextables.core.predicate.nodes import Predicate
from indextables.core.types import StructType, schema_to_arrow
from indextables.errors import DuplicateKeyError, SchemaError
from indextables.log.commit.intent import CommitPlan
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Add, Metadata
from indextables.ops.shared.commit import CommitResult, commit, config_for, write_target
from indextables.ops.shared.executor import Executor
from indextables.parquet.read.key_index import KeyIndex, Numbers, surely_distinct
from indextables.parquet.read.read import Home, key_condition
from indextables.parquet.write.conform import check_fits, conform
from indextables.parquet.write.write import WriteTarget, Written, as_new_groups, write_log, write_splits
from indextables.plan.merge_rule import MergeRule
from indextables.storage.base import LogStore

_THREADS: Final = 2


def rule_of(metadata: Metadata, verb: str) -> MergeRule:
    """Returns how this table merges rows.

    SchemaError if it has no key, which `verb` cannot do without.
    """
    rule = MergeRule.of(metadata.properties)
    if not rule.key:
        raise SchemaError(
            f"{verb} replaces rows by their key, and this table has none",
            hint="create it with record_key=[…], or use append, overwrite and delete",
        )
    return rule


def distinct_rows(
    raw: pa.Table, schema: StructType, rule: MergeRule, *, merge: bool
) -> tuple[pa.Table, KeyIndex | None]:
    """Returns the data as rows of this schema; DuplicateKeyError if two of them have one key.

    With them comes the index of their keys, if it took one to find that out.
    """
    check_fits(raw.schema, schema, merge=merge)
    rows = pa.Table.from_batches(conform(raw.to_batches(), schema), schema_to_arrow(schema))
    keys = rows.select(list(rule.key))
    index = None if surely_distinct(keys) else KeyIndex.of(keys)
    if index is not None and index.size < rows.num_rows:
        repeated = index.repeated()
        first = int(np.argmax(repeated))
        key = {name: _shown(keys.column(name)[first]) for name in rule.key}
        raise DuplicateKeyError(
            f"{int(repeated.sum())} rows of the data repeat the key of an earlier row, the first of them "
            f"{', '.join(f'{name} = {value}' for name, value in key.items())}",
            hint="keep one row for each key: which of them is newer, the data does not say",
            row=first,
            record_key=key,
        )
    return rows, index


def _shown(value: Any) -> Any:
    """Returns the value as Python has it; its text where Python has none (a year outside 1-9999)."""
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        return str(value.cast(pa.int64()))


@runtime_checkable
class WritesByKey(Protocol):
    """An executor that finds keys which occur twice by itself, wherever the rows are."""

    def write_keyed(self, data: Any, target: WriteTarget, key: Sequence[str]) -> Written:
        """Returns the prepared data as bases of new groups.

        DuplicateKeyError if two rows have one key.
        """
        ...


def write_first(
    executor: Executor, data: Any, metadata: Metadata, target: WriteTarget, store: LogStore
) -> Written:
    """Returns the data as all there is in a table.

    With a record key each file is a group, and no key is there twice.
    """
    prepared = executor.prepare(data)
    rule = MergeRule.of(metadata.properties)
    if not rule.key:
        return executor.write(prepared, target)
    if isinstance(executor, WritesByKey):
        return executor.write_keyed(prepared, target, rule.key)
    rows, _ = distinct_rows(executor.fetch(prepared), metadata.schema, rule, merge=False)
    return as_new_groups(write_splits(rows.to_batches(), store, target))


@dataclass(frozen=True, slots=True)
class LogRows:
    """The rows of one log file; `what` tells different rows for one group apart."""

    home: Home
    rows: pa.Table
    block: Literal["data", "delete"]
    what: bytes
    is_partial: bool = False
    """They set some columns only."""


@dataclass
class Files:
    """The files of one write. What was written for one snapshot serves the next one as well."""

    store: LogStore
    options: Mapping[str, Any] | None
    _written: dict[Any, Written] = field(default_factory=dict)
    _targets: dict[Metadata, WriteTarget] = field(default_factory=dict)

    def logs(self, metadata: Metadata, version: int, wanted: Sequence[LogRows]) -> list[Written]:
        """Returns each of these as a log of its group, a few at a time."""
        target = self._target(metadata, version)

        def write(log: LogRows) -> Written:
            columns = log.rows.column_names if log.is_partial else None
            return self._once(
                (metadata.schema_id, log.home.group, log.block, log.what),
                lambda: write_log(
                    self.store, target, log.home, log.rows, block=log.block, columns=columns
                ),
            )

        with ThreadPoolExecutor(_THREADS, "indextables-logs") as pool:
            work = [pool.submit(write, log) for log in wanted]
            try:
                return [future.result() for future in work]
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def bases(self, metadata: Metadata, version: int, rows: pa.Table, what: bytes) -> Written:
        """Returns these rows as bases of new groups; `what` tells different rows of one write apart."""
        target = self._target(metadata, version)
        return self._once(
            (metadata.schema_id, None, what),
            lambda: as_new_groups(write_splits(rows.to_batches(), self.store, target)),
        )

    def discard(self) -> None:
        """Deletes all that was written: for a write that never tried to commit."""
        for written in self._written.values():
            for add in written.adds:
                with suppress(Exception):
                    self.store.delete(add.path)

    def _target(self, metadata: Metadata, version: int) -> WriteTarget:
        if metadata not in self._targets:
            config = config_for(metadata.properties, self.options)
            self._targets[metadata] = write_target(metadata, version, config)
        return self._targets[metadata]

    def _once(self, what: Any, write: Callable[[], Written]) -> Written:
        if what not in self._written:
            self._written[what] = write()
        return self._written[what]


class KeyedPlanner(Protocol):
    """Plans one change of a table with a record key against any snapshot of it."""

    files: Files

    def __call__(self, snapshot: Snapshot) -> CommitPlan:
        """Returns the commit for this snapshot."""
        ...


def commit_keyed(log: TransactionLog, planner: KeyedPlanner, snapshot: Snapshot) -> CommitResult:
    """Commits what the planner plans; if it cannot plan at all, nothing is left behind."""
    try:
        first = planner(snapshot)
    except BaseException:
        # No commit was attempted yet, so nobody can refer to these files.
        planner.files.discard()
        raise
    return commit(log, lambda now: first if now is snapshot else planner(now), snapshot)


def condition_on(keys: pa.Table, schema: StructType, snapshot: Snapshot) -> Predicate:
    """Returns the condition that a row has one of these keys, for the statistics of this snapshot.

    The keys are of `schema`, which may be wider than the snapshot's: this write may be what widens it.
    """
    condition = key_condition(keys, schema)
    return condition if schema == snapshot.schema else bind(condition, snapshot.schema)


def metrics_of(*written: Written) -> dict[str, int]:
    """Returns the numbers of all these files together."""
    names = ("numAddedFiles", "numOutputBytes", "numTruncatedColumns", "truncationBytesSaved")
    return {name: sum(w.metrics.get(name, 0) for w in written) for name in names}


def adds_of(*written: Written) -> tuple[Add, ...]:
    """Returns the adds of all these files."""
    return tuple(add for w in written for add in w.adds)


def by_number(numbers: Numbers, rows: Numbers) -> dict[int, Numbers]:
    """Returns the rows of each number, ascending."""
    order = np.lexsort((rows, numbers))
    cuts = np.flatnonzero(np.diff(numbers[order])) + 1
    parts = np.split(order, cuts) if len(order) else []
    return {int(numbers[part[0]]): rows[part] for part in parts}
