"""Rows of a table with a record key that a change removes: keys for delete delta files, or whole files.

A file goes as a whole only if it is the only one of its slice and every row in it is one of them: a data delta
file alone never goes, because the older rows it replaced would be there again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.core.bind.bind import bind
from indextables.core.predicate.nodes import Predicate
from indextables.core.prune.evaluate import may_match
from indextables.core.stats.columns import FileMask
from indextables.core.types import StructType, schema_to_arrow
from indextables.log.state.rows import Split
from indextables.log.state.snapshot import Snapshot
from indextables.log.wire.actions import Metadata
from indextables.parquet.read.key_index import KeyIndex, by_number, repeated_mask
from indextables.parquet.read.read import (
    Home,
    ReadRequest,
    Unit,
    live_places,
    read_batches,
    units_of,
)
from indextables.parquet.write.conform import conform
from indextables.plan.merge_rule import MergeRule
from indextables.plan.planner import plan_files
from indextables.plan.slices import alone_in_slice
from indextables.storage.base import LogStore


@dataclass
class Search:
    """The search in some files of one version."""

    store: LogStore
    snapshot: Snapshot
    metadata: Metadata
    """What the table will be after the change: its keys may be wider."""
    among: FileMask
    known: dict[Any, pa.Table]
    """What was read of each slice: one that has not changed is not read again for the next version."""

    def matching(
        self, bound: Predicate | None
    ) -> tuple[dict[Home, list[pa.Table]], dict[str, pa.Table]]:
        """Returns the keys of the rows the condition is TRUE for, by slice, and those of files that it empties."""
        if bound is None or not self.among.any():
            return {}, {}
        paths = self.snapshot.column("key")
        wanted = frozenset(paths.filter(pa.array(self.among)).to_pylist())
        alone = frozenset(paths.filter(pa.array(alone_in_slice(self.snapshot))).to_pylist())
        keys: dict[Home, list[pa.Table]] = {}
        emptied = {}
        for unit in units_of(plan_files(self.snapshot, bound, case_sensitive=True)):
            first = unit if isinstance(unit, Split) else unit.files[0]
            found = self._keys(bound, unit) if first.path in wanted else None
            if found is None or not found.num_rows:
                continue
            if first.path in alone and found.num_rows == first.stats.num_records:
                emptied[first.path] = found
            else:
                keys.setdefault(Home.of(first), []).append(found)
        return keys, emptied

    def _keys(self, bound: Predicate, unit: Unit) -> pa.Table:
        files = (unit,) if isinstance(unit, Split) else (*unit.files, *unit.deltas)
        what = (self.snapshot.metadata.schema_id, *(split.path for split in files))
        if what not in self.known:
            request = ReadRequest(self.store, self.snapshot.schema, self._key, bound)
            batches = read_batches(request, [unit])
            self.known[what] = pa.Table.from_batches(batches, request.result_schema)
        return self.known[what]

    def with_keys(
        self, keys: pa.Table, index: KeyIndex, condition: Predicate, emptied: Collection[str]
    ) -> dict[Home, pa.Table]:
        """Returns those of the keys, which the index numbers, that a row in one of the files has, by slice."""
        schema, now = self.metadata.schema, self.snapshot
        bound = condition if schema == now.schema else bind(condition, now.schema)
        may = now.splits(may_match(bound, now.index()) & self.among)
        splits = [split for split in may if split.path not in emptied]
        if not splits:
            return {}
        places = live_places(self.store, schema, self._key, splits, wanted=keys, index=index)
        found = by_number(places.homes, index.rows()[places.keys])
        return {places.groups[code]: keys.take(chosen) for code, chosen in found.items()}

    def once(self, parts: Iterable[pa.Table]) -> pa.Table:
        """Returns the keys in these tables, each once, as the table has them after the change."""
        fields = {field.name: field for field in self.metadata.schema}
        schema = StructType(tuple(fields[name] for name in self._key))
        batches = (batch for part in parts for batch in part.to_batches())
        keys = pa.Table.from_batches(conform(batches, schema), schema_to_arrow(schema))
        return keys.take(np.flatnonzero(~repeated_mask(keys))).combine_chunks()

    @property
    def _key(self) -> tuple[str, ...]:
        return MergeRule.of(self.snapshot.properties).key


def fingerprint(rows: pa.Table) -> bytes:
    """Returns bytes that are equal only for equal rows."""
    digest = hashlib.sha256()
    for batch in rows.to_batches():
        digest.update(batch.serialize())
    return digest.digest()
