"""Where statistics come from: a few columnar calls that a snapshot, or a list of splits, can answer."""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from indextables.core.types import FieldPath, StructType

FileMask: TypeAlias = npt.NDArray[np.bool_]
"""One bit per split, in the order of the source."""


@runtime_checkable
class StatsSource(Protocol):
    """The statistics of all live splits, one array per question, all in one row order.

    An array is a pyarrow Array or ChunkedArray of `num_rows` values. None for a whole column, or a
    null for one split, means *unknown*. A call decodes no more than it is asked for.
    """

    @property
    def num_rows(self) -> int:
        """The number of splits."""
        ...

    @property
    def schema(self) -> StructType:
        """The table's schema, by which every value is decoded."""
        ...

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Columns whose value is one per split and known."""
        ...

    def num_records(self) -> Any:
        """Rows per split, int64."""
        ...

    def bound(self, which: Literal["min", "max"], path: FieldPath) -> Any | None:
        """The stored bound of a leaf, in its wire type (`core.values.wire_type`)."""
        ...

    def count(self, which: Literal["null", "nan"], path: FieldPath) -> Any | None:
        """How many rows are NULL, or NaN, int64."""
        ...

    def inexact(self, which: Literal["min", "max"], path: FieldPath) -> FileMask | None:
        """True where the stored bound is only a bound, not a value of the column; None: nowhere."""
        ...

    def partition_value(self, name: str) -> Any:
        """The value of a partition column as text; null is NULL."""
        ...

    def absent(self, path: FieldPath) -> FileMask | None:
        """True where the column is newer than the split: every row is NULL there, and that is known."""
        ...
