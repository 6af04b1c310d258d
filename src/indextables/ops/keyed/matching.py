"""Which rows of a table with a record key a condition is TRUE for: whole slices, or keys in slices that stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.predicate.nodes import Predicate
from indextables.core.prune.evaluate import must_match
from indextables.log.state.rows import Split
from indextables.log.state.snapshot import Snapshot
from indextables.parquet.read.key_lookup import Home
from indextables.parquet.read.read import Reading, Unit, read_batches, units_of
from indextables.plan.planner import plan_files
from indextables.plan.slices import slices_of
from indextables.storage.base import LogStore

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Matching:
    """The rows a condition is TRUE for."""

    files: Mask
    """Files of which every row is one of them; always all files of a slice."""
    keys: Mapping[Home, pa.Table]
    """The keys of the others, by the group they are in."""
    num_rows: int | None
    """How many they are; None if only reading slices that need not be read would tell."""


@dataclass
class Matcher:
    """Finds them in one snapshot after another; a slice that has not changed is not read again."""

    store: LogStore
    key: tuple[str, ...]
    _found: dict[tuple[Any, ...], pa.Table] = field(default_factory=dict)

    def find(self, snapshot: Snapshot, bound: Predicate | None) -> Matching:
        """The rows the bound condition is TRUE for; without a condition all rows."""
        alone = _alone(snapshot)
        if bound is None:
            every = np.ones(snapshot.num_files, np.bool_)
            return Matching(every, {}, _records(snapshot, every, alone))
        whole = _whole_slices(snapshot, must_match(bound, snapshot.index()))
        paths = snapshot.column("key")
        gone = frozenset(paths.filter(pa.array(whole)).to_pylist())
        single = frozenset(paths.filter(pa.array(alone)).to_pylist())
        keys: dict[Home, list[pa.Table]] = {}
        emptied: list[str] = []
        for unit in units_of(plan_files(snapshot, bound, case_sensitive=True)):
            first = unit if isinstance(unit, Split) else unit.files[0]
            found = None if first.path in gone else self._keys(snapshot, bound, unit)
            if found is None or not found.num_rows:
                continue
            if first.path in single and found.num_rows == first.stats.num_records:
                emptied.append(first.path)
            else:
                keys.setdefault(Home.of(first), []).append(found)
        files = whole | np.asarray(pc.is_in(paths, pa.array(emptied, pa.string())))
        tables = {home: pa.concat_tables(parts) for home, parts in keys.items()}
        known = _records(snapshot, files, alone)
        some = sum(table.num_rows for table in tables.values())
        return Matching(files, tables, None if known is None else known + some)

    def _keys(self, snapshot: Snapshot, bound: Predicate, unit: Unit) -> pa.Table:
        files = (unit,) if isinstance(unit, Split) else (*unit.files, *unit.logs)
        what = (snapshot.metadata.schema_id, *(split.path for split in files))
        if what not in self._found:
            reading = Reading(self.store, snapshot.schema, self.key, bound)
            batches = read_batches(reading, [unit])
            self._found[what] = pa.Table.from_batches(batches, reading.result_schema)
        return self._found[what]


def _whole_slices(snapshot: Snapshot, must: Mask) -> Mask:
    """The files of slices whose row-bearing files all must match.

    That holds where columns are combined too: the newest file that sets a column of the condition
    decides it, whatever the others say, or it would not be known to match.
    """
    slices = slices_of(snapshot)
    if slices is None:
        return must
    spared = slices.having(slices.holds_rows & ~must)
    mask: Mask = (slices.having(slices.holds_rows) & ~spared)[slices.codes]
    return mask


def _alone(snapshot: Snapshot) -> Mask:
    """The files that are the only one of their slice."""
    slices = slices_of(snapshot)
    if slices is None:
        return np.ones(snapshot.num_files, np.bool_)
    mask: Mask = np.bincount(slices.codes, minlength=slices.count)[slices.codes] == 1
    return mask


def _records(snapshot: Snapshot, files: Mask, alone: Mask) -> int | None:
    """How many rows these files show; None where log files hide some of them, or the log does not say."""
    counts = snapshot.index().source.num_records().filter(pa.array(files))
    if counts.null_count or (files & ~alone).any():
        return None
    total: int = pc.sum(counts).as_py() or 0
    return total
