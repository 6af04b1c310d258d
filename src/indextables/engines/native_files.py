"""Which splits an engine may read with its own Parquet reader, and which it would read wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indextables.core.stats.columns import FileMask
from indextables.core.types import DataType, DecimalType, Field, PrimitiveType, StructType
from indextables.parquet.read.read import plain_files
from indextables.plan.planner import Plan
from indextables.plan.report import Recorder
from indextables.storage.base import LogStore
from indextables.storage.local import LocalStore

_OURS: Final = re.compile(r"data/[0-9]+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/")
_MOST_GROUPS: Final = 100
"""With more of them, an engine would take longer to plan its scans than one reader takes to read the files."""


@dataclass(frozen=True, slots=True)
class NativeGroup:
    """Files that are alike: the same columns stored in the same types, and the same partition."""

    paths: list[str]
    written: StructType
    """The table's schema when they were written."""
    partition_values: Mapping[str, str | None]

    def stored(self, field: Field) -> Field | None:
        """Returns how the files store a column of the table; None if the column is newer than they are."""
        return next((f for f in self.written if f.name == field.name), None)


@dataclass(frozen=True, slots=True)
class NativePlan:
    """A plan in two pieces: files for the engine's own reader, and the rest for this library's reader."""

    groups: list[NativeGroup]
    mask: FileMask
    """The files of the groups."""
    others: FileMask
    """All other files to read, slices that are merged among them."""

    def counted(self, plan: Plan) -> Recorder:
        """Counts what was skipped and what the engine reads; returns the recorder for the threads that read the rest."""
        recorder = Recorder.of_engine()
        report = plan.report
        handed_over = sum(len(group.paths) for group in self.groups)
        recorder.add(handed_over=handed_over, pruned=report.total_files - report.kept_files)
        return recorder


def native_plan(plan: Plan, store: LogStore) -> NativePlan:
    """Returns the plan's files, divided between the engine's reader and this library's.

    An engine reads files that this library wrote to a local disk. Files adopted from elsewhere may differ
    from what the log says in the spelling and types of columns, and the rows of a slice with delta files
    are not the rows of its files.
    """
    nothing = NativePlan([], np.zeros_like(plan.rows), plan.rows)
    if not isinstance(store, LocalStore):
        return nothing
    kept = np.flatnonzero(plain_files(plan))
    rows = _Rows.of(plan, kept)
    groups: dict[tuple[object, ...], NativeGroup] = {}
    native = np.zeros_like(plan.rows)
    for i, key, schema_id, values in zip(
        kept, rows.keys, rows.schema_ids, rows.partitions, strict=True
    ):
        written = _readable_as_written(key, schema_id, plan)
        if written is None:
            continue
        like = (schema_id, *values.items())
        group = groups.setdefault(like, NativeGroup([], written, values))
        group.paths.append(f"{store.uri}/{key}")
        native[i] = True
    if len(groups) > _MOST_GROUPS:
        return nothing
    return NativePlan(list(groups.values()), native, plan.rows & ~native)


class _Rows(NamedTuple):
    """What the log says of some splits, column by column; whole `Split`s would decode statistics too."""

    keys: list[str]
    schema_ids: list[int | None]
    partitions: list[Mapping[str, str | None]]

    @classmethod
    def of(cls, plan: Plan, places: npt.NDArray[np.intp]) -> _Rows:
        at = pa.array(places)

        def column(name: str) -> list[Any]:
            found: list[Any] = plan.snapshot.column(name).take(at).to_pylist()
            return found

        named = plan.snapshot.partition_columns
        partitions = column("partition_values") if named else [{}] * len(places)
        return cls(column("key"), column("schema_id"), partitions)


def _readable_as_written(key: str, schema_id: int | None, plan: Plan) -> StructType | None:
    metadata = plan.snapshot.metadata
    written = metadata.schema_of(schema_id) if _OURS.match(key) else None
    if written is None or written is metadata.schema:
        return written
    now = {field.name: field.type for field in metadata.schema}
    # all engines cast numbers alike, but structs in different ways
    changed = (f for f in written if f.name in now and now[f.name] != f.type)
    return None if any(_is_nested(f.type) or _is_nested(now[f.name]) for f in changed) else written


def _is_nested(dtype: DataType) -> bool:
    return not isinstance(dtype, PrimitiveType | DecimalType)
