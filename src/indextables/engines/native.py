"""Which splits an engine may read with its own Parquet reader, and which only ours reads right."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from indextables.core.arrays import FileMask
from indextables.core.types import DataType, DecimalType, Field, PrimitiveType, StructType
from indextables.log.split import Split
from indextables.scan.plan import Plan
from indextables.storage.base import LogStore
from indextables.storage.local import LocalStore

_OURS: Final = re.compile(r"data/\d+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/")
_MOST_GROUPS: Final = 100
"""Beyond it an engine plans so many little scans for longer than one reader takes to read them."""


@dataclass(frozen=True, slots=True)
class NativeGroup:
    """Files alike in every way: the same columns stored in the same types, the same partition."""

    paths: list[str]
    written: StructType
    """The table's schema when they were written."""
    partition_values: Mapping[str, str | None]

    def stored(self, field: Field) -> Field | None:
        """How the files have a column of the table; None where it came later."""
        return next((f for f in self.written if f.name == field.name), None)


@dataclass(frozen=True, slots=True)
class NativePlan:
    """A plan in two parts: groups of files for the engine's reader, and a mask of splits for ours."""

    groups: list[NativeGroup]
    others: FileMask


def native_plan(plan: Plan, store: LogStore) -> NativePlan:
    """The plan's splits, each in one of the parts.

    An engine reads what this library wrote to a local disk: there is nothing between the file and
    the row. Files adopted from elsewhere may differ from what the log says in the spelling and types
    of columns, and rows of a slice with logs are not the rows of its files.
    """
    splits = plan.files
    if not isinstance(store, LocalStore) or any(split.is_log for split in splits):
        return NativePlan([], plan.mask)
    groups: dict[tuple[object, ...], NativeGroup] = {}
    native = np.zeros(len(splits), np.bool_)
    for i, split in enumerate(splits):
        written = _readable_as_written(split, plan)
        if written is None:
            continue
        key = (split.schema_id, *split.partition_values.items())
        group = groups.setdefault(key, NativeGroup([], written, split.partition_values))
        group.paths.append(f"{store.uri}/{split.path}")
        native[i] = True
    if len(groups) > _MOST_GROUPS:
        return NativePlan([], plan.mask)
    others = plan.mask.copy()
    others[np.flatnonzero(plan.mask)[native]] = False
    return NativePlan(list(groups.values()), others)


def _readable_as_written(split: Split, plan: Plan) -> StructType | None:
    metadata = plan.snapshot.metadata
    written = metadata.schema_of(split.schema_id) if _OURS.match(split.path) else None
    if written is None or written is metadata.schema:
        return written
    now = {field.name: field.type for field in metadata.schema}
    # engines cast numbers alike, but structs each in its own way
    changed = (f for f in written if f.name in now and now[f.name] != f.type)
    return None if any(_is_nested(f.type) or _is_nested(now[f.name]) for f in changed) else written


def _is_nested(dtype: DataType) -> bool:
    return not isinstance(dtype, PrimitiveType | DecimalType)
