"""File slices: a base file and its log files are kept or skipped together.

A slice is skipped only if every file in it that holds rows cannot match. A delete log holds no
rows: it never keeps a slice, and never leaves one that is kept. What a file is says its action,
never its absence from the index.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.core.arrays import FileMask, as_mask
from indextables.errors import ProtocolError


def keep_whole_slices(may_match: FileMask, file_group: Any, block: Any) -> tuple[FileMask, int]:
    """The files to read, whole slices at a time, and how many slices are skipped.

    `file_group` and `block` are columns over the same files; a file without a group is its own slice.
    """
    if file_group.null_count == len(file_group):
        return may_match, 0
    groups = file_group.combine_chunks() if isinstance(file_group, pa.ChunkedArray) else file_group
    encoded = groups.dictionary_encode()
    grouped = as_mask(encoded.indices.is_valid())
    codes = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    holds_rows = ~as_mask(pc.equal(block, "delete"))
    kept = np.zeros(len(encoded.dictionary), np.bool_)
    kept[codes[grouped & holds_rows & may_match]] = True
    return np.where(grouped, kept[codes], may_match), int((~kept).sum())


def refuse_log_files(kinds: Any) -> None:
    """Raises if any of these files is a log file: read as plain rows it would show what was replaced.

    `kinds` are the files' kinds, as a column or a list.
    """
    column = kinds if isinstance(kinds, pa.Array | pa.ChunkedArray) else pa.array(kinds, pa.string())
    if pc.any(pc.equal(column, "log")).as_py():
        raise ProtocolError(
            "the table has log files whose rows must be merged with their base files, which this "
            "version cannot do",
            hint="upgrade indextables, or compact the table with the version that wrote it",
        )
