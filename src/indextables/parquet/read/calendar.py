"""Files whose old dates and times are numbers of another calendar than the one they are read in.

Spark 2 counted the days before 15 October 1582 in the Julian calendar, and newer ones still do where they
are set to. Such a file says so in its footer; Spark then reads other values than the file holds, and no
bound of these is known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from indextables.core.stats import SplitStats
from indextables.core.types import FieldPath, PrimitiveType, StructType, leaves

_VERSION: Final = b"org.apache.spark.version"
_MARKS: Final = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_FIRST_UNMARKED: Final = b"3.1.0"
"""What an older Spark wrote may be of the other calendar without a mark; compared as text, as Spark does."""
_SAME_SINCE: Final = {
    "date": -141_427,  # 15 October 1582
    # Local times are shifted up to 1900; a day later no zone shifts a bound past it.
    "timestamp": -2_208_902_400_000_000,
    "timestamp_ntz": -2_208_902_400_000_000,
}


def is_other_calendar(metadata: Any) -> bool:
    """Returns whether Spark takes old dates and times of the file with this footer for Julian ones."""
    found = metadata.metadata or {}
    return any(mark in found for mark in _MARKS) or found.get(_VERSION, b"9") < _FIRST_UNMARKED


def has_old_times(stats: SplitStats, schema: StructType) -> bool:
    """Returns whether a bound is of a date or time for which the calendar matters."""
    return bool(_old(stats, schema))


def without_old_times(stats: SplitStats, schema: StructType) -> SplitStats:
    """Returns the statistics without these bounds; a later one is right whatever stands below it."""
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
