"""The column statistics index: typed arrays per column, decoded for the columns that are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from indextables.core.source import FileMask, StatsSource

__all__ = ["ColumnStats", "FileMask", "StatsSource"]


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """What is known of one column in every split.

    `lo` and `hi` are Arrow arrays of `core.values.index_type`; null means that side is unknown. A
    mask is False only where the statistics prove it.
    """

    lo: Any
    hi: Any
    may_null: FileMask
    may_nan: FileMask
    may_value: FileMask
    lo_exact: FileMask
    hi_exact: FileMask
