"""Statistics seen in other ways: of some columns only, or of whole slices."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

from indextables.core.arrays import FileMask
from indextables.core.pruning.bounds import Bounds
from indextables.core.pruning.column_stats import ColumnStats
from indextables.core.pruning.index import ColumnStatsIndex, StatsSource
from indextables.core.types import FieldPath, StructType


class OnlyColumns(ColumnStatsIndex):
    """The statistics of some columns and of partition columns; of the others nothing is known."""

    def __init__(self, index: ColumnStatsIndex, columns: Collection[str]) -> None:
        super().__init__(_NothingKnown(index.source))
        self._index = index
        self._names = frozenset(columns) | frozenset(index.source.partition_columns)

    def column(self, path: FieldPath) -> ColumnStats:
        """The column's statistics, decoded once for both indexes."""
        return self._index.column(path) if path[0] in self._names else super().column(path)

    def bounds(self, path: FieldPath) -> Bounds:
        """The column's bounds as ordinals, made once for both indexes."""
        return self._index.bounds(path) if path[0] in self._names else super().bounds(path)


class _NothingKnown:
    """The same splits, of which only the number of rows is known."""

    def __init__(self, source: StatsSource) -> None:
        self._source = source

    @property
    def num_rows(self) -> int:
        return self._source.num_rows

    @property
    def schema(self) -> StructType:
        return self._source.schema

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return self._source.partition_columns

    def num_records(self) -> Any:
        return self._source.num_records()

    def bound(self, which: Literal["min", "max"], path: FieldPath) -> Any | None:  # noqa: ARG002
        return None

    def count(self, which: Literal["null", "nan"], path: FieldPath) -> Any | None:  # noqa: ARG002
        return None

    def inexact(self, which: Literal["min", "max"], path: FieldPath) -> FileMask | None:  # noqa: ARG002
        return None

    def partition_value(self, name: str) -> Any:
        return self._source.partition_value(name)

    def absent(self, path: FieldPath) -> FileMask | None:  # noqa: ARG002
        return None
