"""Writes splits anew: small ones packed together, or all rows of a partition sorted along a curve.

No row changes. Splits that become new ones together are exchanged together. They are left as they are
if another writer touched one of them meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import uuid4

import numpy as np

from indextables.config import TARGET_FILE_SIZE
from indextables.core.prune.evaluate import may_match
from indextables.core.stats.columns import FileMask
from indextables.core.types import is_orderable, resolve, type_name
from indextables.errors import ConfigError, SchemaError
from indextables.log.commit.intent import CommitPlan, Group, Optimize
from indextables.log.state.rows import Split
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.log.wire.actions import Remove
from indextables.ops.delete_overwrite import Condition
from indextables.ops.shared.commit import CommitResult, commit, config_for, write_target
from indextables.ops.shared.executor import Executor
from indextables.parquet.write.curves import Curve
from indextables.parquet.write.write import Written

CLUSTERED_BY: Final = "clusteredBy"
"""The tag of a split that names the curve its rows are sorted along."""
_SMALL: Final = 0.75


@dataclass(frozen=True, slots=True)
class Clustering:
    """The columns that a curve runs through, in the table's spelling."""

    columns: tuple[str, ...]
    curve: Curve = "z"

    @property
    def tag(self) -> str:
        """Returns the value of the tag of splits sorted along this curve."""
        return json.dumps({"curve": self.curve, "columns": list(self.columns)})


@dataclass(frozen=True, slots=True)
class OptimizePlan:
    """The sets of splits that are rewritten together; printing it is the dry run."""

    groups: tuple[tuple[Split, ...], ...]
    clustering: Clustering | None
    target_bytes: int


def optimize(
    log: TransactionLog,
    executor: Executor,
    condition: Condition | None = None,
    *,
    clustering: Clustering | None = None,
    target_bytes: int | None = None,
    options: Mapping[str, object] | None = None,
) -> CommitResult:
    """Commits the same rows in better splits; commits nothing if they are good already."""
    snapshot = log.snapshot()
    config = config_for(snapshot.properties, options)
    size = config.get(TARGET_FILE_SIZE) if target_bytes is None else target_bytes
    plan = plan_optimize(snapshot, condition or Condition(), clustering, size)
    if not plan.groups:
        return CommitResult(snapshot.version, "OPTIMIZE", committed=False)
    target = replace(write_target(snapshot.metadata, snapshot.version, config), split_bytes=size)
    written = executor.cluster(plan.groups, target, plan.clustering)
    proposal = _commit_plan(plan, written)
    return commit(log, proposal, snapshot)


def plan_optimize(
    snapshot: Snapshot, condition: Condition, clustering: Clustering | None, target_bytes: int
) -> OptimizePlan:
    """Returns the sets of splits to rewrite together, each of one partition.

    Slices with delta files are left to compaction.
    """
    if target_bytes < 1:
        raise ConfigError(
            f"a split cannot have {target_bytes} bytes", hint="pass a size such as 128 << 20"
        )
    chosen = None if clustering is None else _resolved(snapshot, clustering)
    bound = condition.bound(snapshot)
    mask = np.ones(snapshot.num_files, np.bool_)
    if bound is not None:
        mask = may_match(bound, snapshot.index())
    partitions = _by_partition(_without_deltas(snapshot, mask))
    if chosen is None:
        groups = [bin_ for splits in partitions for bin_ in _packed(splits, target_bytes)]
    else:
        groups = [splits for splits in partitions if not _is_done(splits, chosen, target_bytes)]
    return OptimizePlan(tuple(map(tuple, groups)), chosen, target_bytes)


def _resolved(snapshot: Snapshot, clustering: Clustering) -> Clustering:
    names = []
    for name in clustering.columns:
        (*_, spelled), kind = resolve(snapshot.schema, (name,))
        if not is_orderable(kind):
            raise SchemaError(
                f"column {spelled!r} is {type_name(kind)}, which has no order to sort rows by",
                hint="choose columns of numbers, dates, times or texts",
                column=spelled,
            )
        if spelled in snapshot.partition_columns:
            raise SchemaError(
                f"column {spelled!r} is a partition column: every split has a single value of it already",
                hint="leave it out",
                column=spelled,
            )
        names.append(spelled)
    if not names:
        raise ConfigError("a curve needs at least one column", hint="pass z_order_by=['a', 'b']")
    return replace(clustering, columns=tuple(dict.fromkeys(names)))


def _without_deltas(snapshot: Snapshot, mask: FileMask) -> list[Split]:
    changed = {split.file_group for split in snapshot.splits() if split.is_delta}
    return [
        split
        for split in snapshot.splits(mask)
        if split.file_group is None or split.file_group not in changed
    ]


def _by_partition(splits: Iterable[Split]) -> list[list[Split]]:
    found: dict[tuple[tuple[str, str | None], ...], list[Split]] = {}
    for split in splits:
        found.setdefault(tuple(split.partition_values.items()), []).append(split)
    return list(found.values())


def _packed(splits: Sequence[Split], target_bytes: int) -> Iterator[list[Split]]:
    """Yields runs of small splits in the table's order, each as long as fits: rows written together stay together."""
    bin_: list[Split] = []
    for split in [s for s in splits if s.size < _SMALL * target_bytes]:
        if bin_ and sum(s.size for s in bin_) + split.size > target_bytes:
            yield from [bin_] if len(bin_) > 1 else []
            bin_ = []
        bin_.append(split)
    if len(bin_) > 1:
        yield bin_


def _is_done(splits: Sequence[Split], clustering: Clustering, target_bytes: int) -> bool:
    """Returns True if the splits were sorted along this curve and nothing was added since, or if one split is all."""
    if len(splits) == 1 and splits[0].size <= target_bytes:
        return True
    return all(split.to_add().tags.get(CLUSTERED_BY) == clustering.tag for split in splits)


def _commit_plan(plan: OptimizePlan, written: Sequence[Written]) -> CommitPlan:
    groups = tuple(
        _exchange(number, splits, new, plan.clustering)
        for number, (splits, new) in enumerate(zip(plan.groups, written, strict=True))
    )
    clustering = plan.clustering
    return CommitPlan(
        Optimize(),
        "OPTIMIZE",
        groups=groups,
        parameters={
            "targetBytes": plan.target_bytes,
            **({"curve": clustering.curve, "columns": list(clustering.columns)} if clustering else {}),
        },
    )


def _exchange(
    number: int, splits: Sequence[Split], written: Written, clustering: Clustering | None
) -> Group:
    removes = (Remove(split.path, data_change=False) for split in splits)
    groups = frozenset(split.file_group for split in splits if split.file_group is not None)
    new = (
        replace(
            add,
            data_change=False,
            # as old as the youngest row in it, so that a delta file newer than all of them still wins
            seq=max(split.seq for split in splits),
            file_group=str(uuid4()) if groups else None,
            kind=splits[0].kind,
            tags={CLUSTERED_BY: clustering.tag} if clustering else {},
        )
        for add in written.adds
    )
    inputs = frozenset(split.path for split in splits)
    metrics = {
        "numRemovedFiles": len(splits),
        "numRemovedBytes": sum(split.size for split in splits),
        "numAddedFiles": written.metrics["numAddedFiles"],
        "numOutputBytes": written.metrics["numOutputBytes"],
    }
    return Group(f"group {number}", inputs, (*removes, *new), groups, metrics)
