"""Skipping inside a split: its row groups judged by the same evaluator as the splits themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from indextables.core.predicate.nodes import Predicate
from indextables.core.predicate.tree import columns_of
from indextables.core.prune.evaluate import may_match
from indextables.core.prune.index import ColumnStatsIndex, source_of
from indextables.core.stats import SplitStats
from indextables.core.types import FieldPath, StructType, leaves
from indextables.log.state.rows import Split
from indextables.parquet.read.footers_footers import stats_from_footer


def row_groups_to_read(
    footer: Any, split: Split, schema: StructType, predicate: Predicate | None
) -> list[int]:
    """The row groups that may hold a row for which the bound predicate is TRUE.

    Arrow's own filtering is not asked: it takes a float column's bounds as proof that there is no
    NaN, and other writers keep bounds beside NaN.
    """
    everything = list(range(footer.num_row_groups))
    if predicate is None or len(everything) < 2:
        return everything  # of a single row group the log has told all there is
    tops = {path[0] for path in columns_of(predicate)}
    columns = [leaf.path for leaf in leaves(schema) if leaf.path[0] in tops]
    clean = _without_nan(split)
    stats = [
        _trust_log(stats_from_footer(_OneGroup(footer, i), schema, columns, trusted=False), clean)
        for i in everything
    ]
    partitions = tuple(split.partition_values)
    source = source_of(
        stats,
        schema,
        partition_columns=partitions,
        partition_values=[split.partition_values] * len(stats),
    )
    mask = may_match(predicate, ColumnStatsIndex(source))
    return [i for i in everything if mask[i]]


@dataclass(frozen=True, slots=True)
class _OneGroup:
    """A footer that shows one row group only."""

    footer: Any
    index: int

    @property
    def num_row_groups(self) -> int:
        return 1

    @property
    def num_rows(self) -> int:
        return int(self.footer.row_group(self.index).num_rows)

    @property
    def schema(self) -> Any:
        return self.footer.schema

    @property
    def num_columns(self) -> int:
        return int(self.footer.num_columns)

    def row_group(self, _: int) -> Any:
        return self.footer.row_group(self.index)


def _without_nan(split: Split) -> frozenset[FieldPath]:
    """Float fields of which the log says that the whole split has no NaN."""
    counts = (split.wire_stats or {}).get("nanCount") or {}
    return frozenset(path for path, count in _flat(counts, ()) if count == 0)


def _flat(values: Mapping[str, Any], path: FieldPath) -> Sequence[tuple[FieldPath, Any]]:
    found: list[tuple[FieldPath, Any]] = []
    for name, value in values.items():
        below = (*path, name)
        found += _flat(value, below) if isinstance(value, Mapping) else [(below, value)]
    return found


def _trust_log(stats: SplitStats, clean: frozenset[FieldPath]) -> SplitStats:
    return replace(stats, nan_count={**stats.nan_count, **dict.fromkeys(clean, 0)})
