"""A snapshot's statistics for the pruner, column by column as they are asked for."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.prune.index import FileMask
from indextables.core.stats.values import wire_type
from indextables.core.types import FieldPath, StructType, leaves, resolve
from indextables.errors import UnknownColumnError

if TYPE_CHECKING:
    from indextables.log.state.snapshot import Snapshot

_BOUNDS: Final = {"min": "minValues", "max": "maxValues"}
_COUNTS: Final = {"null": "nullCount", "nan": "nanCount"}
_PATHS: Final = pa.list_(pa.list_(pa.string()))
_SEPARATOR: Final = "\x00"


class SnapshotStats:
    """Answers `core.source.StatsSource` for all live files, in the snapshot's order."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @property
    def num_rows(self) -> int:
        """The number of live files."""
        return self._snapshot.num_files

    @property
    def schema(self) -> StructType:
        """The table's schema, by which every value is decoded."""
        return self._snapshot.schema

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Columns whose value is one per file and known."""
        return self._snapshot.partition_columns

    def num_records(self) -> Any:
        """Rows per file."""
        found = self._snapshot.statistic(("numRecords",), pa.int64())
        return pa.nulls(self.num_rows, pa.int64()) if found is None else found

    def bound(self, which: Literal["min", "max"], path: FieldPath) -> Any | None:
        """The stored bound of a leaf in its wire type."""
        _, dtype = resolve(self.schema, path, case_sensitive=True)
        return self._snapshot.statistic((_BOUNDS[which], *path), wire_type(dtype))

    def count(self, which: Literal["null", "nan"], path: FieldPath) -> Any | None:
        """How many rows are NULL, or NaN."""
        return self._snapshot.statistic((_COUNTS[which], *path), pa.int64())

    def inexact(self, which: Literal["min", "max"], path: FieldPath) -> FileMask | None:
        """True where the stored bound is only a bound."""
        return self._listing(("inexact", which), path)

    def dropped(self, path: FieldPath) -> FileMask | None:
        """True where a bound was left out for its length; only for reports."""
        return self._listing(("dropped",), path)

    def partition_value(self, name: str) -> Any:
        """The value of a partition column as text; null is NULL."""
        return pc.struct_field(self._snapshot.column("partition_values"), [name])

    def absent(self, path: FieldPath) -> FileMask | None:
        """True where the column is newer than the file's schema."""
        ids = self._snapshot.column("schema_id")
        known = {
            value: self._snapshot.metadata.schema_of(value) for value in pc.unique(ids).to_pylist()
        }
        lacking = [i for i, schema in known.items() if schema is not None and not _has(schema, path)]
        if not lacking:
            return None
        return np.asarray(pc.is_in(ids, pa.array(lacking, pa.int64())))

    def _listing(self, part: tuple[str, ...], path: FieldPath) -> FileMask | None:
        """True for each file whose list of paths holds this path."""
        lists = self._snapshot.statistic(part, _PATHS)
        if lists is None or lists.null_count == len(lists):
            return None
        array = lists.combine_chunks()
        inner = array.flatten()
        # A name with the separator in it can only mark too many: a bound is doubted, never trusted.
        same = pc.and_(
            pc.equal(pc.binary_join(inner, _SEPARATOR), _SEPARATOR.join(path)),
            pc.equal(pc.list_value_length(inner), len(path)),
        )
        mask = np.zeros(len(array), np.bool_)
        mask[pc.list_parent_indices(array).filter(same).to_numpy()] = True
        return mask


@lru_cache(maxsize=1024)
def _has(schema: StructType, path: FieldPath) -> bool:
    try:
        resolve(schema, path, case_sensitive=True)
    except UnknownColumnError:
        return False
    return any(leaf.path[: len(path)] == path for leaf in leaves(schema))
