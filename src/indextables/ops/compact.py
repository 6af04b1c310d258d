"""Writes slices with delta files as new base files, so that reading them merges nothing.

No row changes. A new base file is as old as the youngest file it stands for, so a delta file that
another writer adds meanwhile is still newer. Each slice is exchanged as a whole. It is left as it is
if another writer removed one of its files or brought older ones back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from indextables.errors import ConfigError
from indextables.log.commit.intent import CommitPlan, Compact, Group
from indextables.log.state.rows import Split
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Remove
from indextables.ops.shared.commit import CommitResult, Condition, commit, config_for, write_target
from indextables.ops.shared.executor import Executor
from indextables.parquet.write.write import Written
from indextables.plan.merge_rule import MergeRule, Piece
from indextables.plan.planner import plan_files
from indextables.plan.slices import Block, slices_of

_ONE_FILE: Final = 1 << 62
_OUTPUT: Final = ("numAddedFiles", "numOutputRows", "numOutputBytes")


@dataclass(frozen=True, slots=True)
class Threshold:
    """Which slices are worth compacting: those with enough delta files, and large enough ones."""

    min_logs: int = 1
    min_percent: float = 0
    """The least size of the delta files, in percent of the base file; without a base file any size will do."""

    def __post_init__(self) -> None:
        if self.min_logs < 1 or not self.min_percent >= 0:
            raise ConfigError(
                f"min_logs is {self.min_logs} and min_percent is {self.min_percent}",
                hint="pass 1 or more delta files, and 0 or more percent",
            )


@dataclass(frozen=True, slots=True)
class CompactPlan:
    """The slices to compact, each with all of its files; printing it is the dry run."""

    pieces: tuple[Piece, ...]


def compact(
    log: TransactionLog,
    executor: Executor,
    condition: Condition | None = None,
    *,
    threshold: Threshold | None = None,
    progress: Callable[[int, int], None] | None = None,
    options: Mapping[str, object] | None = None,
) -> CommitResult:
    """Commits the same rows without delta files; commits nothing if no slice reaches the threshold.

    Only slices are compacted that may show a row the condition is TRUE for. `progress` is called with the
    number of slices compacted and of all to compact.
    """
    snapshot = log.snapshot()
    plan = plan_compact(snapshot, condition or Condition(), threshold or Threshold())
    if not plan.pieces:
        return CommitResult(snapshot.version, "COMPACT", committed=False)
    config = config_for(snapshot.properties, options)
    target = replace(write_target(snapshot.metadata, snapshot.version, config), split_bytes=_ONE_FILE)
    compacted: list[Written] = []
    try:
        for written in executor.compact(snapshot, plan.pieces, target):
            compacted.append(written)
            if progress is not None:
                progress(len(compacted), len(plan.pieces))
    except BaseException:
        _discard(log, compacted)
        raise
    proposal = _commit_plan(plan, compacted)
    return commit(log, proposal, snapshot)


def plan_compact(snapshot: Snapshot, condition: Condition, threshold: Threshold) -> CompactPlan:
    """Returns the slices with delta files that the condition chooses and that reach the threshold."""
    slices = slices_of(snapshot)
    if slices is None:
        return CompactPlan(())
    is_delta = slices.block != Block.BASE
    sizes = np.asarray(snapshot.column("size").fill_null(0))
    deltas = np.bincount(slices.codes[is_delta], minlength=slices.count)
    bytes_ = [
        np.bincount(slices.codes[kind], sizes[kind], minlength=slices.count)
        for kind in (is_delta, ~is_delta)
    ]
    chosen = (deltas >= threshold.min_logs) & (100 * bytes_[0] >= threshold.min_percent * bytes_[1])
    bound = condition.bound(snapshot)
    if bound is not None:
        chosen &= slices.having(plan_files(snapshot, bound, case_sensitive=True).mask)
    rule = MergeRule.of(snapshot.properties)
    found: dict[str, list[Split]] = {}
    for split in snapshot.splits(chosen[slices.codes]):  # in order of `seq`
        found.setdefault(split.file_group or split.path, []).append(split)
    return CompactPlan(
        tuple(
            Piece(
                name,
                tuple(split for split in splits if split.block != "delete"),
                tuple(split for split in splits if split.is_delta),
                rule.mode,
                rule.key,
            )
            for name, splits in found.items()
        )
    )


def _commit_plan(plan: CompactPlan, compacted: Sequence[Written]) -> CommitPlan:
    groups = tuple(_exchange(*pair) for pair in zip(plan.pieces, compacted, strict=True))
    return CommitPlan(Compact(), "COMPACT", groups=groups)


def _exchange(piece: Piece, new: Written) -> Group:
    """Returns the new base file in place of all files of its slice; a slice without visible rows disappears."""
    files = _files(piece)
    seq = max(split.seq for split in files)
    removes = (Remove(split.path, data_change=False) for split in files)
    adds = (
        replace(add, data_change=False, seq=seq, file_group=piece.file_group, kind="base")
        for add in new.adds
    )
    metrics = {
        "numCompactedSlices": 1,
        "numRemovedFiles": len(files),
        "numRemovedBytes": sum(split.size for split in files),
        **{name: new.metrics.get(name, 0) for name in _OUTPUT},
    }
    inputs = frozenset(split.path for split in files)
    return Group(piece.file_group, inputs, (*removes, *adds), frozenset({piece.file_group}), metrics)


def _files(piece: Piece) -> list[Split]:
    """Returns every file of the slice once."""
    return list({split.path: split for split in (*piece.files, *piece.deltas)}.values())


def _discard(log: TransactionLog, compacted: Iterable[Written]) -> None:
    """Deletes these files. No commit was attempted yet, so nothing refers to them."""
    for written in compacted:
        for add in written.adds:
            with suppress(Exception):
                log.store.delete(add.path)
