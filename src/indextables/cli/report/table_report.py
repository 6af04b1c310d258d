"""A table at a glance: its files, its log, its statistics, and what could be better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.cli.report.known import ColumnReach, column_reach
from indextables.config import CHECKPOINT_INTERVAL, TARGET_FILE_SIZE, Config
from indextables.core.prune.evaluate import overlaps
from indextables.core.prune.index import ColumnStatsIndex
from indextables.core.states import States
from indextables.core.stats.columns import as_mask
from indextables.core.types import FieldPath, is_orderable, leaves
from indextables.log.open.history import HistoryEntry
from indextables.log.open.load import Listing, list_log
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.files import LogNames
from indextables.plan.merge_rule import MergeRule
from indextables.storage.base import LogStore
from indextables.storage.open import open_store
from indextables.table.table import Table

_SAMPLE: Final = 32
_MEGABYTE: Final = 1 << 20
SIZES: Final = ((1, "under 1 MB"), (16, "1 to 16 MB"), (64, "16 to 64 MB"), (128, "64 to 128 MB"))
"""Upper ends of the size classes, in megabytes; the last class has none."""
LARGEST: Final = "over 128 MB"


@dataclass(frozen=True, slots=True)
class ColumnReport:
    """One column: its statistics, and how well they tell the splits apart."""

    reach: ColumnReach
    splits: int
    """Splits that hold rows; a delete delta file holds none."""
    orderable: bool
    """Whether its type has an order, so that it can have bounds."""
    dropped: int
    """Splits whose bounds were left out for their length."""
    point_reads: float | None
    """Splits that an equality with a value of the table reads on average; None if nothing is known."""


@dataclass(frozen=True, slots=True)
class LogReport:
    """The files of the transaction log."""

    commits: int
    checkpoints: int
    total_bytes: int
    opening_bytes: int
    """What opening the table reads: the newest checkpoint and the commits after it."""
    commits_to_replay: int
    truncation_saved: int
    """Bytes of statistics that truncation kept out of the commits that are still there."""


@dataclass(frozen=True, slots=True)
class TableReport:
    """Everything that the report shows."""

    uri: str
    snapshot: Snapshot
    drawn: Snapshot
    """This version without delta files of deletes, which hold no rows."""
    record_key: tuple[str, ...]
    rows: int | None
    """None if a split does not say, or if delta files have to be merged first."""
    delta_files: int
    """Delta files, which wait to be compacted."""
    sizes: Mapping[str, int]
    """Files by size class."""
    small_files: int
    """Files that an OPTIMIZE would pack together with others."""
    target_bytes: int
    checkpoint_interval: int
    partitions: int
    removed_files: int
    columns: tuple[ColumnReport, ...]
    log: LogReport
    history: tuple[HistoryEntry, ...]
    growth: tuple[tuple[int, int], ...]
    """Each kept version, oldest first, and the bytes of all kept commits up to it."""


def table_report(
    path: str | Path | LogStore,
    *,
    storage_options: Mapping[str, object] | None = None,
    recent: int = 20,
) -> TableReport:
    """Returns a report on the newest version of a table and its `recent` commits, from its log alone."""
    store = open_store(path, options=storage_options) if isinstance(path, str | Path) else path
    table = Table(store)
    snapshot, history = table.snapshot(), table.history()
    config = Config.of(table=snapshot.properties)
    target = config.get(TARGET_FILE_SIZE)
    is_delta = as_mask(pc.equal(snapshot.column("kind"), "log"))
    holds_rows = ~as_mask(pc.equal(snapshot.column("block"), "delete"))
    drawn = snapshot if holds_rows.all() else snapshot.subset(holds_rows)
    sizes = np.asarray(snapshot.column("size").fill_null(0))
    return TableReport(
        uri=table.uri,
        snapshot=snapshot,
        drawn=drawn,
        record_key=MergeRule.of(snapshot.properties).key,
        rows=None if is_delta.any() else _rows(snapshot),
        delta_files=int(np.count_nonzero(is_delta)),
        sizes=_by_size(sizes),
        small_files=int(np.count_nonzero((sizes < target * 3 // 4) & ~is_delta)),
        target_bytes=target,
        checkpoint_interval=config.get(CHECKPOINT_INTERVAL),
        partitions=_partitions(snapshot),
        removed_files=snapshot.tombstones.num_rows,
        columns=tuple(_columns(drawn)),
        log=_log(list_log(store, LogNames()), history),
        history=tuple(history[:recent]),
        growth=_growth(history),
    )


def _growth(history: list[HistoryEntry]) -> tuple[tuple[int, int], ...]:
    oldest_first = history[::-1]
    sizes = accumulate(entry.size_in_bytes for entry in oldest_first)
    return tuple(zip((entry.version for entry in oldest_first), sizes, strict=True))


def _rows(snapshot: Snapshot) -> int | None:
    counts = snapshot.stats_source().num_records()
    return None if counts.null_count else pc.sum(counts).as_py() or 0


def _by_size(sizes: npt.NDArray[np.int64]) -> dict[str, int]:
    ends = [end * _MEGABYTE for end, _ in SIZES]
    counts = np.bincount(np.searchsorted(ends, sizes, side="right"), minlength=len(SIZES) + 1)
    return dict(zip([*(name for _, name in SIZES), LARGEST], counts.tolist(), strict=True))


def _partitions(snapshot: Snapshot) -> int:
    if not snapshot.partition_columns:
        return 0
    values = snapshot.column("partition_values").combine_chunks()
    names = [str(i) for i in range(values.type.num_fields)]
    flat = pa.table([values.field(i) for i in range(len(names))], names)
    return int(flat.group_by(names).aggregate([]).num_rows)


def _columns(snapshot: Snapshot) -> list[ColumnReport]:
    index, source = snapshot.index(), snapshot.stats_source()
    found = []
    for leaf in leaves(snapshot.schema):
        dropped = None if index.is_partition(leaf.path) else source.dropped(leaf.path)
        ordered = is_orderable(leaf.type, leaf.field.metadata)
        reads = _point_reads(index, leaf.path) if ordered else None
        count = 0 if dropped is None else int(np.count_nonzero(dropped))
        found.append(
            ColumnReport(column_reach(index, leaf.path), index.num_rows, ordered, count, reads)
        )
    return found


def _point_reads(index: ColumnStatsIndex, path: FieldPath) -> float | None:
    """Returns how many splits an equality reads on average, over some lower bounds, which lie where the rows are."""
    stats, space = index.column(path), index.space(path)
    known = np.flatnonzero(stats.may_value & ~stats.missing & np.asarray(stats.lo.is_valid()))
    if not len(known):
        return None
    chosen = known[np.linspace(0, len(known) - 1, min(_SAMPLE, len(known))).astype(np.intp)]
    points = {stats.lo[int(at)].as_py() for at in chosen}
    reads = [int(overlaps(path, States(space.point(value)), index).sum()) for value in points]
    return sum(reads) / len(reads)


def _log(listing: Listing, history: list[HistoryEntry]) -> LogReport:
    commits = [file for files in listing.commits.values() for file in files]
    newest = listing.checkpoints[0].version if listing.checkpoints else -1
    later = [file for file in commits if file.version > newest]
    base = [file for file in (*listing.checkpoints, *listing.parts) if file.version == newest]
    everything = [*commits, *listing.checkpoints, *listing.parts]
    saved = [entry.metrics.get("truncationBytesSaved", 0) for entry in history]
    return LogReport(
        commits=len(listing.commits),
        checkpoints=len(listing.checkpoints),
        total_bytes=sum(file.size for file in everything),
        opening_bytes=sum(file.size for file in (*later, *base)),
        commits_to_replay=len(later),
        truncation_saved=sum(value for value in saved if isinstance(value, int)),
    )
