"""Files with old dates and times that were counted in another calendar.

Spark 2 counted the days before 15 October 1582 in the Julian calendar, and newer Sparks still do if they
are set to. The footer of the file says so. Spark then reads other values than the file has, so their bounds
are unknown.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pyarrow.parquet as pq

from indextables.core.stats import SplitStats
from indextables.core.types import FieldPath, PrimitiveType, StructType, leaves

_VERSION: Final = b"org.apache.spark.version"
_MARKS: Final = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_FIRST_UNMARKED: Final = b"3.1.0"
"""A file of an older Spark may have the other calendar without a mark; compared as text, as Spark does it."""
_SAME_SINCE: Final = {
    "date": -141_427,  # 15 October 1582
    # Local times are shifted until 1900; one more day covers the offset of every time zone.
    "timestamp": -2_208_902_400_000_000,
    "timestamp_ntz": -2_208_902_400_000_000,
}


def is_other_calendar(metadata: pq.FileMetaData) -> bool:
    """Returns whether Spark reads old dates and times of the file with this footer as Julian ones."""
    found = metadata.metadata or {}
    return any(mark in found for mark in _MARKS) or found.get(_VERSION, b"9") < _FIRST_UNMARKED


def has_old_times(stats: SplitStats, schema: StructType) -> bool:
    """Returns whether a bound is so old that the calendar matters."""
    return bool(_old(stats, schema))


def without_old_times(stats: SplitStats, schema: StructType) -> SplitStats:
    """Returns the statistics without bounds that are so old that the calendar matters."""
    old = _old(stats, schema)
    if not old:
        return stats
    low, high = stats.min_values, stats.max_values
    return replace(
        stats,
        min_values={path: low[path] for path in low if ("min", path) not in old},
        max_values={path: high[path] for path in high if ("max", path) not in old},
        dropped=stats.dropped | {path for _, path in old},
    )


def _old(stats: SplitStats, schema: StructType) -> set[tuple[str, FieldPath]]:
    found = set()
    for leaf in leaves(schema):
        match leaf.type:
            case PrimitiveType(name) if name in _SAME_SINCE:
                for side, bounds in (("min", stats.min_values), ("max", stats.max_values)):
                    bound = bounds.get(leaf.path)
                    if isinstance(bound, int) and bound < _SAME_SINCE[name]:
                        found.add((side, leaf.path))
            case _:
                continue
    return found
