"""From Arrow to numpy: one array whatever the chunks, one bit per split whatever the nulls."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

FileMask: TypeAlias = npt.NDArray[np.bool_]
"""One bit per split, in the order of the source."""


def as_array(column: Any) -> Any:
    """One Arrow array, whatever number of chunks the column has."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def as_mask(booleans: Any, *, unknown: bool = False) -> FileMask:
    """An Arrow boolean array as a mask, its nulls answered by `unknown`."""
    filled = booleans.fill_null(unknown) if booleans.null_count else booleans
    mask: FileMask = filled.to_numpy(zero_copy_only=False)
    return mask


def is_null(column: Any) -> FileMask:
    """Where an Arrow array has no value."""
    if not column.null_count:
        return np.zeros(len(column), np.bool_)
    return as_mask(column.is_null())


def without(column: Any, rows: FileMask) -> Any:
    """The array with these rows unknown."""
    if not rows.any():
        return column
    return pc.if_else(pa.array(rows), pa.scalar(None, column.type), column)
