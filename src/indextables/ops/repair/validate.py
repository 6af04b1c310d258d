"""Files that a table with slices cannot go on without: leaving them out would show rows that are not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import RepairError
from indextables.log.state.snapshot import Snapshot
from indextables.ops.repair.findings import Excluded, listed
from indextables.ops.repair.validate_validate import Validation
from indextables.plan.column_sets import columns_set
from indextables.plan.merge_rule import MERGE_MODE, MergeMode


def lost_from_slices(state: Snapshot, checked: Validation) -> RepairError | None:
    """Why the rows of slices cannot be told any more; None if whatever is lost is lost by itself."""
    lost = [*checked.missing, *checked.mismatched]
    if logs := [one for one in lost if one.is_log]:
        return RepairError(
            f"log files of slices are not as the log says: {listed(logs)}",
            hint="without them deleted and replaced rows would come back: restore the files",
            excluded=tuple(logs),
        )
    if bases := _completed_by_others(state, lost):
        return RepairError(
            f"files whose rows are completed by others are not as the log says: {listed(bases)}",
            hint="without them rows would show NULL for what they had: restore the files",
            excluded=tuple(bases),
        )
    return None


def _completed_by_others(state: Snapshot, lost: list[Excluded]) -> list[Excluded]:
    """Those of whose rows a log file sets some columns; the other columns would be NULL."""
    if not lost or state.properties.get(MERGE_MODE, MergeMode.RECORD) == MergeMode.RECORD:
        return []
    groups = pa.array(sorted(state.groups_of(frozenset(one.path for one in lost))), pa.string())
    files = state.splits(np.asarray(pc.is_in(state.column("file_group"), groups)))
    partial = {f.file_group for f in files if f.is_log and columns_set(f.extra_json) is not None}
    needed = {f.path for f in files if f.file_group in partial}
    return [one for one in lost if one.path in needed]
