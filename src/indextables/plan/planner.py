"""Plans a query: finds the splits that must be read for a condition, and reports why others are skipped."""

from __future__ import annotations

import datetime as dt
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.config import READ_KEEP_ERRORS, Config
from indextables.core.bind.bind import bind
from indextables.core.bind.bound import uncoerced
from indextables.core.domain.column_domain import ColumnDomain
from indextables.core.expr.evaluate import why_not
from indextables.core.predicate.nodes import Compare, Literal, Opaque, Over, Predicate, Ref
from indextables.core.predicate.to_sql import to_sql
from indextables.core.predicate.tree import fold, is_computed
from indextables.core.prune.evaluate import Pruned, must_match, prune
from indextables.core.prune.index import ColumnStatsIndex
from indextables.core.stats.columns import FileMask
from indextables.core.types import FieldPath, StructType, path_text
from indextables.errors import ConfigError
from indextables.log.state.rows import Split
from indextables.log.state.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.plan.merge_rule import RECORD_KEY, MergeRule, Piece
from indextables.plan.report import PruneReport
from indextables.plan.slices import PrunedSlices, prune_slices, slices_of
from indextables.storage.base import LogStore
from indextables.storage.open import open_store

Where: TypeAlias = Predicate | ColumnDomain | None
_logger: Final = logging.getLogger(__name__)
_FILES_PER_KEPT: Final = 50_000
"""If a table has more files than this for each kept one, looking for whole files costs more than it saves."""


@dataclass(frozen=True)
class Plan:
    """The splits that a query must read; no other split has a row that it wants."""

    snapshot: Snapshot
    predicate: Predicate | None
    """The condition, bound to the table's schema; None if all rows are wanted."""
    mask: FileMask = field(repr=False)
    """A bit for each file of the snapshot, in its order: the file must be opened."""
    rows: FileMask = field(repr=False)
    """The files in `mask` whose rows are read; the others are delta files whose keys hide rows."""
    bare: FileMask = field(repr=False)
    """The files in `rows` that need no merge: after the condition is applied, every row of them is a row of
    the table, because no newer delta file has a key that the condition leaves. Any Parquet reader can read them."""
    report: PruneReport
    read_optimized: bool = False
    """Only base files are read, so that rows are as they were when each slice was last compacted."""

    @cached_property
    def files(self) -> list[Split]:
        """Returns the splits to open, in the snapshot's order."""
        return self.snapshot.splits(self.mask)

    @cached_property
    def whole(self) -> frozenset[str]:
        """Returns the bare files of which every row satisfies the condition, so that it need not be applied."""
        if self.predicate is None or len(self.mask) > _FILES_PER_KEPT * self.report.kept_files:
            return frozenset()
        sure = (must_match(self.predicate, self.snapshot.index()) & self.bare)[self.mask]
        return frozenset(split.path for split, all_ in zip(self.files, sure, strict=True) if all_)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """Returns the slices that must be merged, in the order of their oldest files."""
        merged = self.rows & ~self.bare
        if not merged.any():
            return ()
        rule = MergeRule.of(self.snapshot.properties)
        found: dict[str, tuple[list[Split], list[Split]]] = {}
        # Kept files are in order of `seq`, so a delta file that comes before the first file of its slice
        # that is merged is older than all of those and cannot change them.
        for split, is_merged in zip(self.files, merged[self.mask].tolist(), strict=True):
            name = split.file_group or split.path
            if is_merged:
                files, deltas = found.setdefault(name, ([], []))
                files.append(split)
            elif name not in found:
                continue
            files, deltas = found[name]
            if split.is_delta and split.seq > files[0].seq:
                deltas.append(split)
        return tuple(
            Piece(name, tuple(files), tuple(deltas), rule.mode, rule.key)
            for name, (files, deltas) in found.items()
        )


def plan_files(
    snapshot: Snapshot,
    where: Where = None,
    timezone: str = "UTC",
    *,
    within: FileMask | None = None,
    case_sensitive: bool = False,
    read_optimized: bool = False,
    settings: Callable[[], Mapping[str, object]] = dict,
) -> Plan:
    """Returns the plan for the rows that satisfy `where`, or for all rows if it is None.

    `within` are the splits that remain after an engine's own partition filters; the others count as pruned by
    partition. With `read_optimized` only base files are read, as if no delta file had been written. `settings`
    gives what goes before the table's own properties.
    """
    started = time.perf_counter()
    bound = _bound(where, snapshot, timezone, case_sensitive=case_sensitive)
    errors = bound is None or not _is_computed(bound) or _keeps_errors(snapshot, settings())
    slices, wanted = slices_of(snapshot), None
    if slices is None:
        found = _prune_files(snapshot, bound, within, wanted, keep_errors=errors)
    elif read_optimized:
        wanted = ~slices.is_delta
        found = _prune_files(snapshot, bound, within, wanted, keep_errors=errors)
    else:
        mode = MergeRule.of(snapshot.properties).mode
        found = prune_slices(slices, snapshot.index(), bound, mode, within=within, keep_errors=errors)
    mask, inside = found.files, found.inside
    sizes = snapshot.column("size")
    report = PruneReport(
        total_files=len(mask) if wanted is None else int(wanted.sum()),
        partition_pruned=_count(~inside & ~mask, wanted),
        stats_pruned=_count(inside & ~mask, wanted),
        kept_files=int(mask.sum()),
        total_bytes=_total(sizes if wanted is None else sizes.filter(pa.array(wanted))),
        kept_bytes=_total(sizes.filter(pa.array(mask))),
        missing_stats=_missing(found.columns, found.rows, snapshot.index()),
        opaque={} if bound is None else _opaque(bound),
        slices=found.counts,
        planning_ms=(time.perf_counter() - started) * 1000,
    )
    _log(report)
    return Plan(snapshot, bound, mask, found.rows, found.bare, report, read_optimized)


def _is_computed(bound: Predicate) -> bool:
    return fold(bound, lambda node, inner: is_computed(node) or any(inner))


def _keeps_errors(snapshot: Snapshot, settings: Mapping[str, object]) -> bool:
    return Config.of(session=settings, table=snapshot.properties).get(READ_KEEP_ERRORS)


def _prune_files(
    snapshot: Snapshot,
    bound: Predicate | None,
    within: FileMask | None,
    wanted: FileMask | None,
    *,
    keep_errors: bool,
) -> PrunedSlices:
    """Returns what is left of the wanted files (None: all), each of which is a slice of its own."""
    found = _everything(snapshot)
    if bound is not None:
        found = prune(bound, snapshot.index(), keep_errors=keep_errors)
    inside = found.kept_by_partition if within is None else found.kept_by_partition & within
    rows = found.kept & inside if wanted is None else found.kept & inside & wanted
    slices = np.zeros(0, np.bool_)
    if RECORD_KEY in snapshot.properties:
        slices = rows if wanted is None else rows[wanted]
    nowhere = np.zeros_like(rows)
    return PrunedSlices(slices, slices, rows, nowhere, rows, inside, found.columns)


def _count(files: FileMask, wanted: FileMask | None) -> int:
    return int((files if wanted is None else files & wanted).sum())


def files_to_query(
    snapshot: Snapshot, columns: Sequence[str | FieldPath], column_domain: ColumnDomain
) -> list[Split]:
    """Returns the splits that may have a row of the domain, judged by these columns only (RFC-58)."""
    return plan_files(snapshot, column_domain.only(columns)).files


def _bound(
    where: Where, snapshot: Snapshot, timezone: str, *, case_sensitive: bool
) -> Predicate | None:
    if where is None:
        return None
    if isinstance(where, ColumnDomain):
        return where.bind(snapshot.schema, case_sensitive=case_sensitive)
    return bind(where, snapshot.schema, timezone=timezone, case_sensitive=case_sensitive)


def _everything(snapshot: Snapshot) -> Pruned:
    every = np.ones(snapshot.num_files, np.bool_)
    return Pruned(every, every, ())


def _total(sizes: pa.ChunkedArray) -> int:
    total: int | None = pc.sum(sizes).as_py()
    return total or 0


def _missing(columns: Sequence[FieldPath], kept: FileMask, index: ColumnStatsIndex) -> dict[str, int]:
    counts = {path_text(path): int((index.column(path).missing & kept).sum()) for path in columns}
    return {name: count for name, count in counts.items() if count}


def _opaque(bound: Predicate) -> dict[str, str]:
    found: dict[str, str] = {}

    def visit(node: Predicate, _inner: tuple[None, ...]) -> None:
        match node:
            case Opaque(text, _, why):
                found[text] = why
            case Over(expression) if why := why_not(expression):
                found[to_sql(node)] = why
            case Compare(_, Ref() | Literal(), Ref() | Literal()):
                pass
            case Compare(_, left, right) if why := why_not(left) or why_not(right):
                found[to_sql(node)] = why

    fold(bound, visit)
    return found


def _log(report: PruneReport) -> None:
    for column, count in report.missing_stats.items():
        _logger.debug("Statistics missing for column '%s', cannot skip file (%d files)", column, count)
    for text, why in report.opaque.items():
        _logger.debug("Statistics cannot answer '%s' (%s), cannot skip file", text, why)
    _logger.debug(
        "Column stats pruned %d of %d segments, partition values %d",
        report.stats_pruned,
        report.total_files,
        report.partition_pruned,
    )
    if report.total_slices:
        _logger.debug("Skipped %d slices: %s", report.slices_skipped, report.slices)
    _logger.info("Planned query: %s", report)


# For the adapters of engines: one version of a table, which makes plans.


@dataclass(frozen=True)
class Planner:
    """A snapshot for which plans are made; all are of this version, even if somebody commits in the meantime."""

    log: TransactionLog
    snapshot: Snapshot
    within: FileMask | None = None
    """The splits to choose from; None for all splits of the snapshot."""
    read_optimized: bool = False
    """Only base files are read, without the delta files over them."""

    def __post_init__(self) -> None:
        self.snapshot.check_parquet()

    @classmethod
    def open(
        cls,
        table: str | Path | LogStore,
        *,
        version: int | None = None,
        timestamp: int | dt.datetime | None = None,
        storage_options: Mapping[str, object] | None = None,
        read_optimized: bool = False,
    ) -> Planner:
        """Returns a planner for the table at a path or URI: as it is now, at a version, or at a time."""
        store = open_store(table, options=storage_options) if isinstance(table, str | Path) else table
        if not hasattr(store, "put_if_absent"):
            raise ConfigError(
                f"a {type(table).__name__} is not the location of a table",
                hint="pass a path, a URI or a store",
            )
        log = TransactionLog(store)
        return cls(log, log.snapshot(version, timestamp), read_optimized=read_optimized)

    def newest(self) -> Planner:
        """Returns a planner for the table as it is now."""
        return Planner(self.log, self.log.snapshot(), read_optimized=self.read_optimized)

    @property
    def store(self) -> LogStore:
        """Returns the store of the table."""
        return self.log.store

    @property
    def schema(self) -> StructType:
        """Returns the table's columns, including partition columns."""
        return self.snapshot.schema

    def bind(self, where: Predicate) -> Predicate:
        """Returns an engine's condition bound to the table's schema, without coercing values."""
        return bind(uncoerced(where, self.schema), self.schema, case_sensitive=True)

    def plan(self, where: Predicate | None = None) -> Plan:
        """Returns the plan for an engine's condition."""
        return self.plan_bound(None if where is None else self.bind(where))

    def plan_bound(self, bound: Predicate | None) -> Plan:
        """Returns the plan for a condition that is already bound."""
        return plan_files(
            self.snapshot,
            bound,
            within=self.within,
            case_sensitive=True,
            read_optimized=self.read_optimized,
        )

    def __reduce__(self) -> tuple[object, ...]:
        return _reopened, (self.store, self.snapshot.version, self.within, self.read_optimized)


def _reopened(store: LogStore, version: int, within: FileMask | None, read_optimized: bool) -> Planner:
    planner = Planner.open(store, version=version, read_optimized=read_optimized)
    return replace(planner, within=within)
