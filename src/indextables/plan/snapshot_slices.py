"""The slices of our own tables: every live file is committed, and its action says what it is."""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.prune.index import ColumnStatsIndex
from indextables.core.prune.source import FileMask, as_mask
from indextables.errors import ProtocolError
from indextables.log.state.snapshot import Snapshot
from indextables.plan.column_sets import ColumnSets
from indextables.plan.merge_rule import MergeMode, MergeRule
from indextables.plan.slices import Block, Slices, State

_known: Final[WeakKeyDictionary[ColumnStatsIndex, Slices | None]] = WeakKeyDictionary()
"""What one plan of a snapshot found out the next one need not; gone with the snapshot's index."""


def slices_of(snapshot: Snapshot) -> Slices | None:
    """The slices of a snapshot; None if it has no log file, so that every file stands for itself."""
    index = snapshot.index()
    if index not in _known:
        _known[index] = _slices(snapshot)
    return _known[index]


def _slices(snapshot: Snapshot) -> Slices | None:
    is_log = as_mask(pc.equal(snapshot.column("kind"), "log"))
    if not is_log.any():
        return None
    blocks = snapshot.column("block")
    _check_blocks(blocks, is_log)
    deletes = as_mask(pc.equal(blocks, "delete"))
    block = np.where(is_log, np.where(deletes, Block.DELETE, Block.DATA), Block.BASE).astype(np.int8)
    rule, sets = MergeRule.of(snapshot.properties), None
    if not rule.key:
        raise ProtocolError(
            "the table has log files whose rows must be merged with older ones, and no record key says how",
            hint="Table.check() lists these files; a writer that is not ours has added them",
        )
    if rule.mode is MergeMode.COLUMNS:
        sets = ColumnSets.from_tags(snapshot.column("extra"), block == Block.DATA, rule.key)
    return Slices.of(
        snapshot.column("file_group"),
        block,
        np.full(len(block), State.COMMITTED, np.int8),
        snapshot.column("seq").to_numpy(),
        key=rule.key,
        sets=sets,
    )


def _check_blocks(blocks: Any, is_log: FileMask) -> None:
    known = as_mask(pc.is_in(blocks, pa.array(["data", "delete"])))
    if (is_log & ~known).any():
        found = blocks.filter(pa.array(is_log & ~known))[0].as_py()
        raise ProtocolError(
            f"the table has log files of the kind {found!r}, which this version does not know",
            hint="upgrade indextables, or compact the table with the version that wrote it",
        )
