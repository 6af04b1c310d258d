"""The rows against what the log says of them: a statistic that lies makes queries lose rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from indextables.core.prune.index import ColumnStatsIndex
from indextables.core.stats import SplitStats
from indextables.core.types import Leaf, PrimitiveType, is_orderable, leaves, path_text
from indextables.errors import IndexTablesError
from indextables.log.state.rows import Split
from indextables.log.state.snapshot import Snapshot
from indextables.ops.check.problem import Problem
from indextables.ops.shared.executor import Executor

_AT_ONCE: Final = 16


def check_rows(
    snapshot: Snapshot,
    executor: Executor,
    skip: Collection[str],
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[Problem]:
    """Reads every split not in `skip` and names each statistic its rows contradict."""
    columns = [
        leaf for leaf in leaves(snapshot.schema) if leaf.path[0] not in snapshot.partition_columns
    ]
    splits = snapshot.splits()
    index = snapshot.index()
    for position, split in enumerate(splits):
        if split.path not in skip:
            try:
                found = executor.collect([split], snapshot.schema, [leaf.path for leaf in columns])
            except IndexTablesError as error:
                yield Problem("unreadable-file", split.path, None, error.message)
            else:
                yield from _contradictions(split, found[split.path], columns, index, position)
        if progress is not None and (position % _AT_ONCE == 0 or position + 1 == len(splits)):
            progress(position + 1, len(splits))


def _contradictions(
    split: Split, rows: SplitStats, columns: list[Leaf], index: ColumnStatsIndex, position: int
) -> Iterator[Problem]:
    said = split.stats
    if said.num_records is not None and said.num_records != rows.num_records:
        message = f"the log says {said.num_records} rows, the file has {rows.num_records}"
        yield Problem("wrong-statistics", split.path, None, message)
    for leaf in columns:
        name = path_text(leaf.path)
        for what, log, file in (
            ("NULL", said.null_count.get(leaf.path), rows.null_count.get(leaf.path, 0)),
            ("NaN", said.nan_count.get(leaf.path), rows.nan_count.get(leaf.path, 0)),
        ):
            if log is not None and log != file:
                message = f"column {name}: the log counts {log} {what}, the file has {file}"
                yield Problem("wrong-statistics", split.path, None, message)
        if is_orderable(leaf.type, leaf.field.metadata):
            yield from _outside(split, rows, leaf, index, position)


def _outside(
    split: Split, rows: SplitStats, leaf: Leaf, index: ColumnStatsIndex, position: int
) -> Iterator[Problem]:
    stats, name = index.column(leaf.path), path_text(leaf.path)
    low, high = _comparable(stats.lo[position], leaf), _comparable(stats.hi[position], leaf)
    least, greatest = rows.min_values.get(leaf.path), rows.max_values.get(leaf.path)
    if low is not None and least is not None and least < low:
        message = f"column {name}: the log says nothing is below {low!r}, the file has {least!r}"
        yield Problem("wrong-statistics", split.path, None, message)
    if high is not None and greatest is not None and greatest > high:
        message = f"column {name}: the log says nothing is above {high!r}, the file has {greatest!r}"
        yield Problem("wrong-statistics", split.path, None, message)


def _comparable(bound: Any, leaf: Leaf) -> Any:
    value = bound.as_py()
    return bool(value) if value is not None and leaf.type == PrimitiveType("boolean") else value
