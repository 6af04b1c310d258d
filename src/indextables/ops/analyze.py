"""Adds or removes statistics in the log. No data is rewritten."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indextables.core.prune.index import ColumnStatsIndex
from indextables.core.stats import SplitStats, stats_columns
from indextables.core.stats.collect import exchange_columns
from indextables.core.stats.truncate import (
    TruncationMetrics,
    TruncationOptions,
    log_truncation,
    truncate_stats,
)
from indextables.core.types import (
    FieldPath,
    Leaf,
    StructType,
    is_float,
    is_orderable,
    leaves,
    parse_path,
    resolve,
    type_name,
)
from indextables.errors import UnknownColumnError
from indextables.log.commit.intent import Analyze, CommitPlan, Group
from indextables.log.state.rows import Split
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Add
from indextables.ops.shared.commit import CommitResult, commit, config_for, truncation_for
from indextables.ops.shared.executor import Executor
from indextables.parquet.read.footers import (
    has_old_times,
    is_other_calendar,
    read_footers,
    without_old_times,
)
from indextables.plan.column_sets import columns_set
from indextables.plan.merge_rule import MergeRule
from indextables.plan.slices import Block, slices_of

Progress: TypeAlias = Callable[[int, int], None]
"""Called with (done, total) as work goes on."""


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """How many splits have statistics of one column."""

    column: FieldPath
    type: str
    splits: int
    complete: int
    """Splits whose counts and bounds are all known."""
    inexact: int
    """Complete splits with a cut bound, which serves to skip them but not to answer MIN and MAX."""
    missing: int
    """Splits that lack a count or a bound."""


def statistics_info(snapshot: Snapshot) -> list[ColumnStatistics]:
    """Returns an entry for each column and nested field, without partition columns, whose values are in the log."""
    index, holding = snapshot.index(), _holding(snapshot)
    found = []
    for leaf in _leaves(snapshot):
        holds = holding(leaf.path[0])
        lacking = _lacks(index, leaf) & holds
        inexact = np.zeros_like(lacking)
        if is_orderable(leaf.type, leaf.field.metadata):
            stats = index.column(leaf.path)
            inexact = holds & stats.may_value & ~lacking & ~(stats.lo_exact & stats.hi_exact)
        splits, missing = int(np.count_nonzero(holds)), int(np.count_nonzero(lacking))
        found.append(
            ColumnStatistics(
                column=leaf.path,
                type=type_name(leaf.type),
                splits=splits,
                complete=splits - missing,
                inexact=int(np.count_nonzero(inexact)),
                missing=missing,
            )
        )
    return found


def analyze(
    log: TransactionLog,
    executor: Executor,
    columns: Sequence[str] | None = None,
    *,
    rebuild: bool = False,
    progress: Progress | None = None,
    options: Mapping[str, object] | None = None,
) -> CommitResult:
    """Commits statistics for the splits that lack them; commits nothing if none do.

    `columns` are by default those a write would collect. `rebuild` computes them for every split.
    """
    snapshot = log.snapshot()
    config = config_for(snapshot.properties, options)
    wanted = (
        stats_columns(snapshot.schema, snapshot.partition_columns, config)
        if columns is None
        else _named(snapshot, columns)
    )
    truncation = truncation_for(snapshot.metadata, config)
    key = MergeRule.of(snapshot.properties).key
    mask = np.ones(snapshot.num_files, np.bool_) if rebuild else _need(snapshot, wanted, truncation)
    splits = snapshot.splits(mask) if wanted else []
    adds: list[Add] = []
    metrics = TruncationMetrics()
    for start in range(0, len(splits), executor.at_once):
        chunk = splits[start : start + executor.at_once]
        collected = _collected(log, executor, chunk, snapshot.schema, wanted)
        for split in chunk:
            new, truncated = truncate_stats(collected[split.path], snapshot.schema, truncation)
            metrics += truncated
            held = [path for path in wanted if _holds(split, path, key)]
            adds.append(_with_stats(split, exchange_columns(split.stats, new, held)))
        if progress is not None:
            progress(start + len(chunk), len(splits))
    log_truncation(metrics)
    plan = _plan("ANALYZE", wanted, adds, metrics)
    return commit(log, plan, snapshot)


def drop_statistics(log: TransactionLog, columns: Sequence[str]) -> CommitResult:
    """Commits every split without the statistics of these columns; commits nothing if there are none."""
    snapshot = log.snapshot()
    gone = _named(snapshot, columns)
    adds = [
        _with_stats(split, lean)
        for split in snapshot.splits()
        if (lean := exchange_columns(split.stats, SplitStats(), gone)) != split.stats
    ]
    plan = _plan("DROP STATISTICS", gone, adds, TruncationMetrics())
    return commit(log, plan, snapshot)


def _collected(
    log: TransactionLog,
    executor: Executor,
    splits: Sequence[Split],
    schema: StructType,
    wanted: Sequence[FieldPath],
) -> dict[str, SplitStats]:
    """Reads the statistics from the rows.

    Old dates of a file in another calendar are left out: engines read other values there than Spark does.
    """
    found = dict(executor.collect(splits, schema, wanted))
    old = [key for key, stats in found.items() if has_old_times(stats, schema)]
    for key, footer in zip(old, read_footers(log.store.filesystem(), old), strict=True):
        if is_other_calendar(footer):
            found[key] = without_old_times(found[key], schema)
    return found


def _plan(
    operation: str, columns: Iterable[FieldPath], adds: Sequence[Add], truncated: TruncationMetrics
) -> CommitPlan:
    paths = tuple(columns)
    return CommitPlan(
        Analyze(frozenset(paths)),
        operation,
        # one group for each split, so that a split another writer replaced meanwhile is left out
        groups=tuple(Group(add.path, frozenset({add.path}), (add,)) for add in adds),
        parameters={"columns": [list(path) for path in paths]},
        metrics={
            "numAnalyzedFiles": len(adds),
            "numTruncatedColumns": truncated.columns,
            "truncationBytesSaved": truncated.bytes_saved,
        },
    )


def _with_stats(split: Split, stats: SplitStats) -> Add:
    return replace(split.to_add(), stats=stats, data_change=False)


def _named(snapshot: Snapshot, columns: Sequence[str]) -> tuple[FieldPath, ...]:
    """Returns the leaves that these names stand for; a struct stands for all its fields."""
    known = [leaf.path for leaf in _leaves(snapshot)]
    found: dict[FieldPath, None] = {}
    for name in columns:
        path, _ = resolve(snapshot.schema, parse_path(name))
        below = [leaf for leaf in known if leaf[: len(path)] == path]
        if not below:
            raise UnknownColumnError(
                f"{name!r} is a partition column: its value is in the log for every split",
                hint="name columns that are stored in the files",
                column=name,
            )
        found |= dict.fromkeys(below)
    return tuple(found)


def _leaves(snapshot: Snapshot) -> list[Leaf]:
    return [leaf for leaf in leaves(snapshot.schema) if leaf.path[0] not in snapshot.partition_columns]


def _need(
    snapshot: Snapshot, wanted: Sequence[FieldPath], truncation: TruncationOptions
) -> npt.NDArray[np.bool_]:
    """Returns one bit per split, True if it lacks something that was not dropped on purpose for its length."""
    index, holding = snapshot.index(), _holding(snapshot)
    need = np.zeros(snapshot.num_files, np.bool_)
    for leaf in _leaves(snapshot):
        if leaf.path in set(wanted):
            lacking = _lacks(index, leaf) & holding(leaf.path[0])
            if truncation.enabled and truncation.rule(leaf.path).strategy == "drop":
                lacking &= ~_dropped(snapshot, leaf.path)
            need |= lacking
    return need


def _holding(snapshot: Snapshot) -> Callable[[str], npt.NDArray[np.bool_]]:
    """Returns a function from a column to one bit per split, True if the split stores that column.

    A delta file may store only the record key, or only some columns.
    """
    slices = slices_of(snapshot)
    if slices is None:
        return lambda _: np.ones(snapshot.num_files, np.bool_)
    deletes = slices.block == Block.DELETE

    def holding(column: str) -> npt.NDArray[np.bool_]:
        whole = np.ones(snapshot.num_files, np.bool_) if column in slices.key else ~deletes
        return whole if slices.sets is None else whole & slices.sets.setting(column)

    return holding


def _holds(split: Split, path: FieldPath, key: Sequence[str]) -> bool:
    """Returns True if this split stores the column; otherwise it must not be said to be NULL there."""
    if path[0] in key:
        return True
    if split.block == "delete":
        return False
    given = columns_set(split.extra_json) if split.is_delta else None
    return given is None or path[0] in given


def _lacks(index: ColumnStatsIndex, leaf: Leaf) -> npt.NDArray[np.bool_]:
    """Returns one bit per split, True if a count or a bound is unknown."""
    source = index.source
    absent = source.absent(leaf.path)
    unknown = _unknown(source.count("null", leaf.path), index.num_rows)
    if is_float(leaf.type):
        unknown |= _unknown(source.count("nan", leaf.path), index.num_rows)
    if is_orderable(leaf.type, leaf.field.metadata):
        stats = index.column(leaf.path)
        bounds = _unknown(stats.lo, index.num_rows) | _unknown(stats.hi, index.num_rows)
        unknown |= stats.may_value & bounds
    return unknown if absent is None else unknown & ~absent


def _unknown(values: pa.Array | None, rows: int) -> npt.NDArray[np.bool_]:
    if values is None:
        return np.ones(rows, np.bool_)
    return np.array(values.is_null(), np.bool_)


def _dropped(snapshot: Snapshot, path: FieldPath) -> npt.NDArray[np.bool_]:
    return np.array([path in split.stats.dropped for split in snapshot.splits()], np.bool_)
