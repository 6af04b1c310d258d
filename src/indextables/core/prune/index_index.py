"""The column statistics index: typed arrays per column, decoded for the columns that are asked for."""

from __future__ import annotations

from indextables.core.domain.space import Ordinals, space_of
from indextables.core.prune.arrays import FileMask
from indextables.core.prune.bounds import Bounds, bounds_of
from indextables.core.prune.index import ColumnStats, integers, load_leaf, load_partition, load_struct
from indextables.core.prune.source import ListSource, StatsSource, source_of
from indextables.core.types import FieldPath, Leaf, leaves, resolve

__all__ = ["ColumnStats", "ColumnStatsIndex", "FileMask", "ListSource", "StatsSource", "source_of"]


class ColumnStatsIndex:
    """Statistics of all splits by column; a column that nobody asks for is never decoded."""

    def __init__(self, source: StatsSource) -> None:
        self.source = source
        self._leaves: dict[FieldPath, Leaf] = {leaf.path: leaf for leaf in leaves(source.schema)}
        self._columns: dict[FieldPath, ColumnStats] = {}
        self._bounds: dict[FieldPath, Bounds] = {}
        self._spaces: dict[FieldPath, Ordinals] = {}
        self._may_have_rows: FileMask | None = None

    @property
    def num_rows(self) -> int:
        """The number of splits."""
        return self.source.num_rows

    @property
    def may_have_rows(self) -> FileMask:
        """False where a split is known to be empty."""
        if self._may_have_rows is None:
            self._may_have_rows = integers(self.source.num_records(), self.num_rows) != 0
        return self._may_have_rows

    def is_partition(self, path: FieldPath) -> bool:
        """Whether all rows of a split have one known value in this column."""
        return len(path) == 1 and path[0] in self.source.partition_columns

    def space(self, path: FieldPath) -> Ordinals:
        """The space the column's values are compared in."""
        if path not in self._spaces:
            leaf = self._leaves.get(path)
            self._spaces[path] = (
                space_of(resolve(self.source.schema, path, case_sensitive=True)[1])
                if leaf is None
                else space_of(leaf.type, leaf.field.metadata)
            )
        return self._spaces[path]

    def column(self, path: FieldPath) -> ColumnStats:
        """The column's statistics, decoded once."""
        if path not in self._columns:
            self._columns[path] = self._load(path)
        return self._columns[path]

    def _load(self, path: FieldPath) -> ColumnStats:
        leaf = self._leaves.get(path)
        if leaf is None:
            resolve(self.source.schema, path, case_sensitive=True)
            inside = [leaf for leaf in self._leaves.values() if leaf.path[: len(path)] == path]
            return load_struct(self.source, path, inside)
        return (load_partition if self.is_partition(path) else load_leaf)(self.source, leaf)

    def bounds(self, path: FieldPath) -> Bounds:
        """The column's bounds as ordinals, made once."""
        if path not in self._bounds:
            stats = self.column(path)
            self._bounds[path] = bounds_of(stats.lo, stats.hi, self.space(path))
        return self._bounds[path]
